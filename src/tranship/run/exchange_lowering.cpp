#include "tranship/run/exchange_lowering.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <tranship/kernels/host/host_move.hpp>
#include <tranship/plan/fills.hpp>
#include <tranship/run/exchange_schedule.hpp>
#include <tranship/run/message_protocol.hpp>

namespace tranship {
namespace {

using Moves = std::vector<LoweredMove>;

/// The moves of one message, by part: one list for all arrays of a part where they have equal layouts, else one per
/// array.
using LoweredMessage = std::vector<std::vector<Moves>>;

void append_moves(const Transfer& t, auto&&... how) {
  lower_transfer(t, how...);
}
void append_moves(const IndexedTransfer& t, auto&&... how) {
  lower_indexed(t, how...);
}

std::size_t index_of(const std::vector<Message>& messages, Rank peer) {
  const auto at =
      std::lower_bound(messages.begin(), messages.end(), peer, [](const Message& m, Rank r) { return m.peer < r; });
  return std::size_t(at - messages.begin());
}

class ExchangeLowering {
 public:
  ExchangeLowering(const ExchangeTerms& terms, ExchangeMessages& messages)
      : terms_(terms), messages_(messages), is_exposed_(messages.is_exposed(messages.cards.data())) {}

  void lower() {
    ExchangeMessages& all = messages_;
    LoweredMessage own;
    std::vector<LoweredMessage> received(all.receives.size()), sent(all.sends.size());
    terms_.for_each_receive([&](const auto& t, int from, int to) {
      if (t.peer == terms_.rank()) return lower_one(t, from, to, all.own, own);
      const std::size_t i = index_of(all.receives, t.peer);
      lower_one(t, from, to, all.receives[i], received[i]);
    });
    terms_.for_each_send([&](const auto& t, int from, int to) {
      const std::size_t i = index_of(all.sends, t.peer);
      lower_one(t, from, to, all.sends[i], sent[i]);
    });
    if (terms_.is_snapshot()) all.own_packing = moves_of(all.own, LoweredMessage(own), Hop::pack);
    all.own.moves = moves_of(all.own, std::move(own), terms_.is_snapshot() ? Hop::unpack : Hop::direct);
    set_moves(all.receives, std::move(received), Hop::unpack);
    set_moves(all.sends, std::move(sent), Hop::pack);
    choose_protocols(all, Travel::in_reach);
    all.fills_before = moves_of(terms_.plan.fills_before, Hop::direct);
    if (terms_.is_snapshot()) {
      const FillsBySource fills = fills_by_source(terms_.plan);
      all.fills_packing = moves_of(fills.of_kept, Hop::pack);
      all.fills_unpacking = moves_of(fills.of_kept, Hop::unpack);
      all.fills_after = moves_of(fills.of_written, Hop::direct);
      all.own_lines.resize(std::size_t(lines_of(all.own.bytes) + lines_of(all.fills_packing.bytes())));
    } else {
      all.fills_after = moves_of(terms_.plan.fills_after, Hop::direct);
    }
    bind_own();
    for (auto* messages : {&all.receives, &all.sends})
      for (Message& m : *messages)
        if (!m.is_staged) bind(m.moves, m, nullptr);
  }

  void bind_own() {
    ExchangeMessages& all = messages_;
    std::byte* const staging = all.own_lines.empty() ? nullptr : all.own_lines.front().bytes;
    for (MoveBundle* moves : {&all.own.moves, &all.own_packing}) bind(*moves, all.own, staging);
    std::byte* const of_fills = staging ? staging + lines_of(all.own.bytes) * sizeof(Line) : nullptr;
    for (MoveBundle* moves : {&all.fills_before, &all.fills_after, &all.fills_packing, &all.fills_unpacking})
      bind(*moves, all.own, of_fills);
  }

  /// A second buffer follows the first one. An outbox has only one.
  void bind_staged() {
    for (auto* messages : {&messages_.receives, &messages_.sends})
      for (Message& m : *messages) {
        if (!m.is_staged) continue;
        bind(m.moves, m, m.staging);
        if (!m.packing.empty()) bind(m.packing, m, messages_.links.packed_lines.front().bytes);
        const bool is_outbox = m.is_posted && messages == &messages_.sends;
        if (m.buffers > 1) bind(m.other_moves, m, is_outbox ? m.staging : m.staging + lines_of(m.bytes) * sizeof(Line));
      }
  }

 private:
  void lower_one(const auto& t, int from, int to, const Message& m, LoweredMessage& out) const {
    const auto at = std::lower_bound(m.parts.begin(), m.parts.end(), part_between(terms_, from, to));
    out.resize(m.parts.size());
    std::vector<Moves>& lists = out[std::size_t(at - m.parts.begin())];
    if (lists.empty()) lists.resize(lie_alike(at->arrays, m, from, to) ? 1 : std::size_t(at->arrays));
    for (int k = 0; k < int(lists.size()); ++k)
      append_moves(t, terms_.type_of(to), messages_.layout(m, m.source, from, k), messages_.layout(m, m.target, to, k),
                   lists[std::size_t(k)]);
  }
  bool lie_alike(int arrays, const Message& m, int from, int to) const {
    bool alike = true;
    for (int k = 1; k < arrays; ++k)
      alike &= messages_.layout(m, m.source, from, k) == messages_.layout(m, m.source, from, 0) &&
               messages_.layout(m, m.target, to, k) == messages_.layout(m, m.target, to, 0);
    return alike;
  }

  ContiguousRuns runs_of(const Message& m, const LoweredMessage& lowered) const {
    ContiguousRuns out;
    for (std::size_t s = 0; s < lowered.size(); ++s) {
      const Index arrays = lowered[s].size() == 1 ? m.parts[s].arrays : 1;
      for (const Moves& moves : lowered[s])
        for (const LoweredMove& move : moves)
          if (const Index bytes = move.bytes(); bytes > 0) {
            out.bytes += arrays * bytes;
            out.count += arrays * (bytes / run_bytes(move));
          }
    }
    return out;
  }
  bool is_staged(const Message& m, const LoweredMessage& direct) const {
    return terms_.is_snapshot() || !is_exposed_ || !m.is_exposed ||
           tranship::is_staged(terms_.options.schedule, runs_of(m, direct));
  }
  /// Returns true for a staged send that is first packed into this rank's own memory and then written to the peer's in
  /// long stores: it must be long enough for these, and fit into the private caches of this rank's core.
  static bool is_packed_first(const Message& m) {
    return !m.is_posted && is_long_put(m.bytes) && m.bytes <= private_cache_bytes();
  }

  void set_moves(std::vector<Message>& messages, std::vector<LoweredMessage> lowered, Hop when_staged) {
    ExchangeLinks& links = messages_.links;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      Message& m = messages[i];
      m.is_staged = is_staged(m, lowered[i]);
      const Hop hop = m.is_staged ? when_staged : Hop::direct;
      m.moves = moves_of(m, std::move(lowered[i]), hop);
      if (m.buffers > 1) m.other_moves = m.moves;
      if (hop != Hop::pack || !is_packed_first(m)) continue;
      m.packing = m.moves;
      links.packed_lines.resize(std::max(links.packed_lines.size(), std::size_t(lines_of(m.bytes))));
    }
  }
  MoveBundle moves_of(const Message& m, LoweredMessage lowered, Hop hop) const {
    MoveBundle out(terms_.accumulates() ? MoveOrder::given : MoveOrder::any, messages_.way);
    Index staging_bytes = 0;
    for (std::size_t s = 0; s < lowered.size(); ++s) {
      const MessagePart& part = m.parts[s];
      for (std::size_t k = 0; k < lowered[s].size(); ++k) {
        Moves& moves = lowered[s][k];
        route(moves, hop, staging_bytes + Index(k) * part.bytes);
        const bool all = lowered[s].size() == 1;
        out.add(std::move(moves), {.first = int(k), .count = all ? part.arrays : 1, .staging_pitch_bytes = part.bytes});
      }
      staging_bytes += part.arrays * part.bytes;
    }
    return out;
  }
  /// In order: a fill may copy what an earlier one has filled.
  MoveBundle moves_of(const std::vector<LocalFill>& fills, Hop hop) const {
    const Message& own = messages_.own;
    MoveBundle out(MoveOrder::given, messages_.way);
    Index staging_bytes = 0;
    for (std::size_t i = 0; i < fills.size();) {
      const int slot = fills[i].slot, arrays = terms_.arrays_of(slot);
      const std::size_t first = i;
      while (i < fills.size() && fills[i].slot == slot) ++i;
      const std::span same_slot(fills.data() + first, i - first);
      const bool alike = lie_alike(arrays, own, slot, slot);
      for (int k = 0; k < (alike ? 1 : arrays); ++k) {
        Moves moves;
        for (const LocalFill& fill : same_slot)
          lower_fill(fill, terms_.type_of(slot), messages_.layout(own, terms_.rank(), slot, k), moves);
        const int count = alike ? arrays : 1;
        const Index each = route(moves, hop, staging_bytes) - staging_bytes;
        out.add(std::move(moves), {.first = k, .count = count, .staging_pitch_bytes = each});
        staging_bytes += count * each;
      }
    }
    return out;
  }

  /// Binds moves to the arrays of a message and to its staging buffer, if it has one.
  void bind(MoveBundle& moves, const Message& m, std::byte* staging) const {
    moves.bind([&](MoveSide side, int slot, int array) {
      if (slot == staging_slot) return staging;
      const Rank r = side == MoveSide::source ? m.source : m.target;
      std::byte* const data = messages_.card(m, r, slot, array).data;
      return r == terms_.rank() ? data : static_cast<std::byte*>(reached(terms_.world, r, data));
    });
  }

  const ExchangeTerms& terms_;
  ExchangeMessages& messages_;
  const bool is_exposed_;  // peers that reach this rank's memory reach all of its arrays
};

}  // namespace

void lower_messages(const ExchangeTerms& terms, ExchangeMessages& messages) {
  ExchangeLowering(terms, messages).lower();
}
void bind_own_moves(const ExchangeTerms& terms, ExchangeMessages& messages) {
  ExchangeLowering(terms, messages).bind_own();
}
void bind_staged_messages(const ExchangeTerms& terms, ExchangeMessages& messages) {
  ExchangeLowering(terms, messages).bind_staged();
}

void choose_protocols(ExchangeMessages& messages, Travel travel) {
  for (auto* list : {&messages.receives, &messages.sends})
    for (Message& m : *list)
      if (m.is_posted == (travel == Travel::posted))
        m.protocol = &(m.is_posted ? posted() : m.is_staged ? staged() : zero_copy());
}

}  // namespace tranship
