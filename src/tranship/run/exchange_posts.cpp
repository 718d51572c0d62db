#include "tranship/run/exchange_posts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <tranship/base/fail.hpp>

namespace tranship {

Index posted_lines(const ExchangeMessages& messages) {
  Index lines = 0;
  for (const Message& m : messages.receives)
    if (m.is_posted) lines = checked_add(lines, messages.links.buffers * lines_of(m.bytes));
  return lines;
}

void make_posts(const std::vector<Vote>& votes, ExchangeMessages& messages, CallSite where) {
  World& world = messages.links.world;
  Posts& posts = messages.links.posts.emplace();
  Index lines = 0, sends_max = 0;
  for (const Vote& vote : votes) {
    posts.receives_max = std::max(posts.receives_max, vote.posted_receives);
    sends_max = std::max(sends_max, vote.posted_sends);
    lines = std::max(lines, vote.inbox_lines);
  }
  posts.inbox = world.allocate<Line>(lines, where);
  posts.incoming = world.allocate<Posts::Card>(posts.receives_max, where);
  posts.outgoing = world.allocate<Posts::Card>(sends_max, where);
  posts.signals = world.allocate<std::uint64_t>((posts.receives_max + sends_max) * Posts::words_per_signal, where);
  Index line = 0, number = 0;
  for (Message& m : messages.receives) {
    if (!m.is_posted) continue;
    m.signal_here = number++;
    m.inbox_line = line;
    posts.incoming[m.signal_here] = {m.peer, m.bytes, line};
    line += messages.links.buffers * lines_of(m.bytes);
  }
  number = 0;
  for (Message& m : messages.sends) {
    if (!m.is_posted) continue;
    m.signal_here = posts.receives_max + number;
    posts.outgoing[number++] = {m.peer, m.bytes, 0};
  }
  world.barrier(where);
}

void open_posts(ExchangeMessages& messages) {
  World& world = messages.links.world;
  const Posts& posts = *messages.links.posts;
  const auto find = [&](const Message& m, const SymmetricArray<Posts::Card>& list) {
    std::vector<Posts::Card> theirs(std::size_t(list.size()));
    world.context().get(theirs, Symmetric<Posts::Card>(list), m.peer);
    const auto mine = [&](const Posts::Card& card) { return card.peer == world.rank(); };
    const auto card = std::find_if(theirs.begin(), theirs.end(), mine);
    if (const Index bytes = card == theirs.end() ? 0 : card->bytes; bytes != m.bytes)
      throw_error(ErrorCode::mismatch, "message {} -> {} has {} bytes on rank {} and {} on rank {}: their plans differ",
                  m.source, m.target, m.bytes, world.rank(), bytes, m.peer);
    return std::pair(Index(card - theirs.begin()), card->inbox_line);
  };
  for (Message& m : messages.receives)
    if (m.is_posted) m.signal_there = posts.receives_max + find(m, posts.outgoing).first;
  Index lines = 0;
  for (Message& m : messages.sends) {
    if (!m.is_posted) continue;
    std::tie(m.signal_there, m.inbox_line) = find(m, posts.incoming);
    m.outbox_line = lines;
    lines += lines_of(m.bytes);
  }
  messages.links.outbox_lines.resize(std::size_t(lines));
}

}  // namespace tranship
