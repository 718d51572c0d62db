// Private: ExchangeTerms, the plan of an exchange with the arrays that it moves, and ExchangeMessages, the list of
// messages. Set-up makes the list, and runs only read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include <tranship/lower/lowering.hpp>
#include <tranship/run/exchange_message.hpp>
#include <tranship/run/exchange_slots.hpp>

namespace tranship {

/// Returns true when runs of plans of this kind add to cells, or combine in another way.
inline bool accumulates(PlanKind kind) {
  return kind == PlanKind::redistribution_adjoint || kind == PlanKind::halo_adjoint;
}

struct ExchangeTerms {
  World& world;
  const TransferPlan plan;
  ExchangeSlots slots;
  const ExchangeOptions options;
  const CallSite where;

  Rank rank() const { return world.rank(); }
  bool is_snapshot() const { return options.sources == Sources::snapshot; }
  bool are_apart() const { return options.halves == Halves::apart; }
  bool accumulates() const { return tranship::accumulates(plan.kind); }
  ElementType type_of(int slot) const { return plan.slots[std::size_t(slot)].type; }
  int arrays_of(int slot) const { return int(slots[std::size_t(slot)].size()); }
  std::size_t arrays() const {
    std::size_t out = 0;
    for (const auto& of_slot : slots) out += of_slot.size();
    return out;
  }

  /// Calls f(transfer, source slot, target slot) for all receives that are not empty, including those from the rank
  /// itself.
  template <class F>
  void for_each_receive(F&& f) const {
    plan.for_each_receive([&](const Transfer& t) { visit(t, t.group->source_slot, t.group->target_slot, f); });
    for (const IndexedTransfer& t : plan.indexed_receives) visit(t, t.source_slot, t.target_slot, f);
  }
  /// Calls f(transfer, source slot, target slot) for all sends to other ranks that are not empty.
  template <class F>
  void for_each_send(F&& f) const {
    auto to_others = [&](const auto& t, int from, int to) {
      if (t.peer != rank()) f(t, from, to);
    };
    plan.for_each_send([&](const Transfer& t) { visit(t, t.group->source_slot, t.group->target_slot, to_others); });
    for (const IndexedTransfer& t : plan.indexed_sends) visit(t, t.source_slot, t.target_slot, to_others);
  }

 private:
  template <class T, class F>
  void visit(const T& transfer, int source_slot, int target_slot, F&& f) const {
    if (staged_bytes(transfer, type_of(source_slot)) > 0) f(transfer, source_slot, target_slot);
  }
};

/// The messages of one rank, and the moves that it makes alone.
struct ExchangeMessages {
  ExchangeLinks links;
  std::vector<Message> receives;  // by source, ascending
  std::vector<Message> sends;     // by target, ascending
  Message own;                    // from this rank to itself
  std::size_t first_taken = 0;    // the first receive from a higher rank
  MoveBundle fills_before;
  MoveBundle fills_after;
  /// For a snapshot: packs and unpacks the cells that this rank keeps itself.
  MoveBundle own_packing;
  MoveBundle fills_packing;
  MoveBundle fills_unpacking;

  Index bytes_in = 0;  // of one run, including from this rank to itself
  Index traffic = 0;   // the sum of bytes_in over all ranks
  CopyMethod way;

  std::vector<std::size_t> first_card;     // by slot: index of the card of its first array
  std::vector<ArrayCard> cards = {};       // this rank's
  std::vector<Notices::Found> found = {};  // of its peers, ascending
  std::shared_ptr<void> inbox = {};        // reachable by peers
  std::vector<Line> own_lines = {};        // for a snapshot: the message to itself, then the sources of fills

  explicit ExchangeMessages(const ExchangeTerms& terms);

  /// Lists all messages with their sizes, and this rank's arrivals and cards. Not collective.
  void list(const ExchangeTerms& terms);
  /// Updates this rank's cards after its arrays have been bound to other memory.
  void fill_cards(const ExchangeTerms& terms);

  /// Calls f(peer, receive, send) for all peers, ascending; null where there is no such message.
  template <class F>
  void for_each_peer(F&& f) {
    auto in = receives.begin(), out = sends.begin();
    while (in != receives.end() || out != sends.end()) {
      const Rank peer = out == sends.end()     ? in->peer
                        : in == receives.end() ? out->peer
                                               : std::min(in->peer, out->peer);
      Message* receive = in != receives.end() && in->peer == peer ? &*in++ : nullptr;
      Message* send = out != sends.end() && out->peer == peer ? &*out++ : nullptr;
      f(peer, receive, send);
    }
  }
  bool any(bool is_staged) const {
    const auto is = [&](const Message& m) { return m.is_staged == is_staged; };
    return std::any_of(receives.begin(), receives.end(), is) || std::any_of(sends.begin(), sends.end(), is);
  }
  /// The card of one of this rank's arrays, or of an array of a message's peer.
  const ArrayCard& card(const Message& m, Rank rank, int slot, int array) const {
    const ArrayCard* all = rank == own.peer ? cards.data() : m.cards;
    return all[first_card[std::size_t(slot)] + std::size_t(array)];
  }
  const SlotLayout& layout(const Message& m, Rank rank, int slot, int array) const {
    return card(m, rank, slot, array).layout;
  }
  bool is_exposed(const ArrayCard* all) const {
    return std::all_of(all, all + cards.size(), [](const ArrayCard& card) { return card.is_exposed; });
  }
};

/// The part of a message in which a transfer between two slots travels; its `bytes` are 0.
inline MessagePart part_between(const ExchangeTerms& terms, int source_slot, int target_slot) {
  if (terms.arrays_of(target_slot) == 1) return {};
  return {.source_slot = source_slot, .target_slot = target_slot, .arrays = terms.arrays_of(target_slot)};
}

/// Returns memory of this rank that its peers reach; null for 0 bytes. Throws `no_memory`.
std::shared_ptr<void> reachable_memory(World& world, std::size_t bytes);
/// Returns this rank's address for `address` in the memory of `peer`. Throws `unsupported` when it cannot reach it.
void* reached(World& world, Rank peer, const void* address);

}  // namespace tranship
