#include "tranship/run/exchange_messages.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Adds a transfer to its message and returns its bytes.
Index add_transfer(const ExchangeTerms& terms, const auto& t, int from, int to, Message& message) {
  const Index each = staged_bytes(t, terms.type_of(to)), bytes = checked_multiply(each, terms.arrays_of(to));
  MessagePart part = part_between(terms, from, to);
  const auto at = std::lower_bound(message.parts.begin(), message.parts.end(), part);
  if (at == message.parts.end() || part < *at) {
    part.bytes = each;
    message.parts.insert(at, part);
  } else {
    at->bytes = checked_add(at->bytes, each);
  }
  message.bytes = checked_add(message.bytes, bytes);
  return bytes;
}

/// Above this size, a second buffer would cost too much memory to save one short message among many.
constexpr Index mutual_bytes_max = 65536;

}  // namespace

ExchangeMessages::ExchangeMessages(const ExchangeTerms& terms)
    : links{.world = terms.world,
            .target_word = terms.are_apart() ? ExchangeLinks::apart_word : ExchangeLinks::source_word,
            .only_targets_move = terms.accumulates(),
            .buffers = terms.is_snapshot() ? 2 : 1} {
  std::size_t cards_before = 0;
  for (const auto& arrays : terms.slots) {
    first_card.push_back(cards_before);
    cards_before += arrays.size();
  }
}

void ExchangeMessages::list(const ExchangeTerms& terms) {
  const Rank rank = terms.rank();
  std::map<Rank, Message> in, out;
  own = {.source = rank, .target = rank, .peer = rank};
  terms.for_each_receive([&](const auto& t, int from, int to) {
    const Index bytes = add_transfer(terms, t, from, to, t.peer == rank ? own : in[t.peer]);
    bytes_in = checked_add(bytes_in, bytes);
  });
  terms.for_each_send([&](const auto& t, int from, int to) { add_transfer(terms, t, from, to, out[t.peer]); });
  for (auto& [peer, message] : in) {
    receives.push_back(std::move(message));
    receives.back().source = receives.back().peer = peer;
    receives.back().target = rank;
    if (peer < rank) first_taken = receives.size();
  }
  for (auto& [peer, message] : out) {
    sends.push_back(std::move(message));
    sends.back().target = sends.back().peer = peer;
    sends.back().source = rank;
  }
  // Where loads and stores do not reach a peer, because it is messaged or simulated, all moves must be transfers.
  for (auto* messages : {&receives, &sends})
    for (Message& m : *messages) m.is_posted = !terms.world.context().reaches(m.peer);
  cards.resize(terms.arrays());
  own.cards = cards.data();
  fill_cards(terms);

  links.notices.emplace(cards.size());
  std::int32_t reached = 0;  // messages that have words
  for_each_peer([&](Rank peer, Message* receive, Message* send) {
    const Index bytes = receive ? receive->bytes : 0;
    const bool is_messaged = (receive ? receive : send)->is_posted;
    const bool are_mutual = is_messaged && receive && send && !links.are_apart() &&
                            std::max(receive->bytes, send->bytes) <= mutual_bytes_max;
    const int buffers = are_mutual ? 2 : links.buffers;
    for (Message* m : {receive, send}) {
      if (!m) continue;
      m->is_mutual = are_mutual;
      m->buffers = buffers;
    }
    links.notices->add({.peer = peer,
                        .receive = receive && !is_messaged ? reached++ : -1,
                        .bytes_in = bytes,
                        .bytes_out = send ? send->bytes : 0},
                       is_messaged, checked_multiply(buffers * lines_of(bytes), sizeof(Line)));
  });
}

void ExchangeMessages::fill_cards(const ExchangeTerms& terms) {
  std::size_t i = 0;
  for (const auto& arrays : terms.slots)
    for (const ExchangeArray& array : arrays)
      cards[i++] = {layout_of(array.view), static_cast<std::byte*>(array.view.data),
                    !array.view.data || terms.world.is_exposed(array.view.data)};
}

std::shared_ptr<void> reachable_memory(World& world, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  std::shared_ptr<void> memory = world.local_memory(bytes);
  if (!memory)
    throw_error(ErrorCode::no_memory, "rank {} cannot get {} of memory that its peers reach", world.rank(),
                amount(bytes, "byte"));
  return memory;
}

void* reached(World& world, Rank peer, const void* address) {
  void* here = world.reach(peer, address);
  if (address && !here)
    throw_error(ErrorCode::unsupported, "rank {} cannot reach the memory of rank {}: exchanges need it", world.rank(),
                peer);
  return here;
}

}  // namespace tranship
