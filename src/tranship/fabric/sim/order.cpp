#include <algorithm>
#include <iterator>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/sim/order.hpp>
#include <tranship/fabric/wait_note.hpp>

namespace tranship {

void Order::Knowledge::join(const Knowledge& other) {
  for (std::size_t r = 0; r < own.size(); ++r) {
    own[r] = std::max(own[r], other.own[r]);
    transfers[r] = std::max(transfers[r], other.transfers[r]);
  }
  single.insert(other.single.begin(), other.single.end());
  // What the numbers say already.
  std::erase_if(single, [&](const auto& one) { return one.second <= transfers[std::size_t(one.first)]; });
}

Order::Order(int ranks) : ranks_(std::size_t(ranks)), heaps_(std::size_t(ranks)), words_(std::size_t(ranks)) {
  for (RankState& rank : ranks_) {
    rank.known.own.resize(std::size_t(ranks));
    rank.known.transfers.resize(std::size_t(ranks));
  }
}

bool Order::knows(const Knowledge& who, const Access& what) {
  if (!what.is_transfer) return who.own[std::size_t(what.rank)] >= what.number;
  return who.transfers[std::size_t(what.rank)] >= what.number || who.single.contains({what.rank, what.number});
}

void Order::access(Rank rank, What what, const char* name, const Bytes& bytes, CallSite where) {
  Knowledge& known = ranks_[std::size_t(rank)].known;
  const std::uint64_t number = ++known.own[std::size_t(rank)];
  note({.rank = rank, .what = what, .name = name, .number = number, .issued = number, .where = where}, known, bytes);
}

Order::Sent Order::send(Rank rank, int context, Rank target, std::uint64_t fences, What what, const char* name,
                        const std::vector<Bytes>& all, CallSite where) {
  RankState& mine = ranks_[std::size_t(rank)];
  Sent sent{.number = ++mine.transfers, .before = mine.known};
  for (const Unfinished& one : mine.unfinished)
    if (one.context == context && one.target == target && one.fences < fences)
      sent.before.single.emplace(rank, one.number);
  const std::uint64_t issued = ++mine.known.own[std::size_t(rank)];
  const Access access{.rank = rank,
                      .what = what,
                      .name = name,
                      .is_transfer = true,
                      .number = sent.number,
                      .issued = issued,
                      .where = where};
  for (const Bytes& bytes : all) note(access, sent.before, bytes);
  mine.unfinished.push_back({sent.number, context, target, fences});
  return sent;
}

void Order::quiet(Rank rank, int context) {
  RankState& mine = ranks_[std::size_t(rank)];
  std::erase_if(mine.unfinished, [&](const Unfinished& one) {
    if (one.context != context) return false;
    mine.known.single.emplace(rank, one.number);
    return true;
  });
  std::uint64_t& done = mine.known.transfers[std::size_t(rank)];
  done = mine.unfinished.empty() ? mine.transfers : mine.unfinished.front().number - 1;
  mine.known.join(mine.known);  // drops what the number says now
}

void Order::release(Rank owner, std::size_t offset_bytes, const Knowledge& what, bool is_added) {
  auto [word, is_new] = words_[std::size_t(owner)].try_emplace(offset_bytes, what);
  if (is_new) return;
  if (is_added)
    word->second.join(what);
  else
    word->second = what;
}

void Order::acquire(Rank rank, Rank owner, std::size_t offset_bytes) {
  const auto& words = words_[std::size_t(owner)];
  if (const auto word = words.find(offset_bytes); word != words.end()) learn(rank, word->second);
}

void Order::cut(Heap& heap, std::size_t at) {
  auto cell = heap.lower_bound(at);
  if (cell == heap.begin()) return;
  --cell;
  if (cell->second.end <= at) return;
  Cell rest = cell->second;
  cell->second.end = at;
  heap.emplace(at, std::move(rest));
}

void Order::note(const Access& access, const Knowledge& known, const Bytes& bytes) {
  if (bytes.first == bytes.end) return;
  Heap& heap = heaps_[std::size_t(bytes.owner)];
  cut(heap, bytes.first);
  cut(heap, bytes.end);
  std::size_t at = bytes.first;
  while (at < bytes.end) {
    auto cell = heap.lower_bound(at);
    const std::size_t next = cell == heap.end() ? bytes.end : std::min(cell->first, bytes.end);
    if (next > at) {  // nobody has been here
      heap.emplace_hint(cell, at, Cell{next, {access}});
      at = next;
      continue;
    }
    std::vector<Access>& accesses = cell->second.accesses;
    for (const Access& earlier : accesses) {
      const bool conflict = earlier.what == access.what ? access.what == What::write : true;
      if (conflict && !knows(known, earlier)) refuse(earlier, access, known, {bytes.owner, at, cell->second.end});
    }
    if (access.what == What::write)
      accesses.clear();
    else  // of one rank the last one stands for all that it knows
      std::erase_if(accesses, [&](const Access& earlier) {
        return earlier.what == access.what && earlier.rank == access.rank &&
               earlier.is_transfer == access.is_transfer && knows(known, earlier);
      });
    accesses.push_back(access);
    at = cell->second.end;
  }
}

void Order::forget(const Bytes& bytes) {
  Heap& heap = heaps_[std::size_t(bytes.owner)];
  cut(heap, bytes.first);
  cut(heap, bytes.end);
  heap.erase(heap.lower_bound(bytes.first), heap.lower_bound(bytes.end));
  auto& words = words_[std::size_t(bytes.owner)];
  words.erase(words.lower_bound(bytes.first), words.lower_bound(bytes.end));
}

void Order::refuse(const Access& earlier, const Access& later, const Knowledge& known, const Bytes& bytes) {
  const auto text = [](const Access& a) {
    return fmt::format("{} by rank {} ({})", a.name, a.rank, short_name(a.where));
  };
  std::string missing;
  if (earlier.rank == later.rank)
    missing = "a fence or a quiet is missing between them";
  else if (earlier.is_transfer && known.own[std::size_t(earlier.rank)] >= earlier.issued)
    missing = fmt::format(
        "rank {} knows of it, but not that it is complete: a quiet, a fence or a signal that is put "
        "with it is missing at rank {}",
        later.rank, earlier.rank);
  else
    missing = fmt::format("rank {} has not waited for it", later.rank);
  Error error =
      make_error(ErrorCode::race, "bytes [{}, {}) of the symmetric heap of rank {}: {} and {} are not ordered: {}",
                 bytes.first, bytes.end, bytes.owner, text(earlier), text(later), missing);
  error.rank = later.rank;
  error.peer = earlier.rank;
  throw error;
}

}  // namespace tranship
