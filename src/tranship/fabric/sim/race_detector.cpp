#include "tranship/fabric/sim/race_detector.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/user_place.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {

RaceDetector::RaceDetector(int ranks)
    : ranks_(std::size_t(ranks)), heaps_(std::size_t(ranks)), words_(std::size_t(ranks)) {}

bool RaceDetector::knows(const View& who, const Access& what, const Bytes& part) {
  if (!what.transfer) return who.known.of(what.rank) >= what.time;
  if (who.way && what.transfer->is_ordered_before(who.rank, *who.way)) return true;
  return what.use.side == Side::peer ? what.transfer->is_written_for(who.known, part.first, part.end)
                                     : what.transfer->is_over_for(who.known);
}

bool RaceDetector::conflict(const Access& earlier, const Access& later) {
  const auto reads = [](What what) { return what == What::read || what == What::fetch; };
  const auto is_atomic = [](What what) { return what == What::fetch || what == What::update; };
  const What a = earlier.use.what, b = later.use.what;
  if (reads(a) && reads(b)) return false;
  if (a == What::free && b == What::free) return false;  // a block, and then its place in the heap
  if (!is_atomic(a) || !is_atomic(b)) return true;
  const bool are_kinds_known = earlier.use.code == nullptr && later.use.code == nullptr;
  return earlier.word_first != later.word_first || earlier.word_end != later.word_end ||
         (are_kinds_known && earlier.use.kind != later.use.kind);
}

Moment RaceDetector::next_moment(Rank rank) {
  RankState& mine = ranks_[std::size_t(rank)];
  mine.known.raise(rank, ++mine.time);
  return {rank, mine.time};
}

RaceDetector::Access RaceDetector::own_access(Rank rank, const Use& use) {
  return {.use = use, .rank = rank, .time = next_moment(rank).time};
}

void RaceDetector::access(Rank rank, const Accesses& all) {
  const Access access = own_access(rank, all.use);
  note(access, {known(rank)}, all.bytes);
}

void RaceDetector::note_late(Rank rank, const Accesses& all) noexcept {
  try {
    access(rank, all);
  } catch (const Error& error) {
    if (std::optional<Error>& late = ranks_[std::size_t(rank)].late_error; !late) late = error;
  }
}

Told RaceDetector::access(Rank rank, const FencedWay& way, const Accesses& all) {
  const Access access = own_access(rank, all.use);
  note(access, {known(rank), rank, &way}, all.bytes);
  Told before;
  before.known = known(rank);
  const Way& to = ranks_[std::size_t(rank)].ways[{way.context, way.target}];
  before.fenced = TransferRecord::fenced_before(to.last_ordered, way.fences);
  return before;
}

RaceDetector::Sent RaceDetector::send(Rank rank, const FencedWay& way, Fencing fencing, std::size_t put_bytes,
                                      const Accesses& remote, const Accesses* local) {
  RankState& mine = ranks_[std::size_t(rank)];
  Sent sent;
  sent.before.known = mine.known;
  Access access{.use = remote.use, .rank = rank, .fencing = fencing, .time = next_moment(rank).time};
  sent.transfer = access.transfer = std::make_shared<TransferRecord>(rank, way, put_bytes);
  Way& to = mine.ways[{way.context, way.target}];
  // A program that never calls quiet can learn from its peers that its transfers are over.
  while (!to.open.empty() && to.open.front()->is_over_for(mine.known)) to.open.pop_front();
  if (to.open.empty()) to.last_ordered.reset();
  to.open.push_back(sent.transfer);
  const bool is_ordered = fencing == Fencing::ordered;
  if (is_ordered) {
    sent.transfer->order_after(to.last_ordered);
    to.last_ordered = sent.transfer;
    sent.before.fenced = sent.transfer->fenced();
  }
  note(access, {sent.before.known, rank, is_ordered ? &way : nullptr}, remote.bytes);
  if (local) {
    // A fence does not order accesses to local memory.
    access.use = local->use;
    access.fencing = Fencing::unordered;
    note(access, {mine.known}, local->bytes);
  }
  return sent;
}

std::uint64_t RaceDetector::begin(Rank rank, const std::vector<Accesses>& all) {
  RankState& mine = ranks_[std::size_t(rank)];
  Access access{.rank = rank, .fencing = Fencing::unordered, .time = next_moment(rank).time};
  access.transfer = std::make_shared<TransferRecord>(rank, FencedWay{}, 0);
  mine.uses.emplace(++mine.uses_begun, access.transfer);
  for (const Accesses& some : all) {
    access.use = some.use;
    note_use(access, {mine.known}, some.bytes);
  }
  return mine.uses_begun;
}

void RaceDetector::end(Rank rank, std::uint64_t number) {
  RankState& mine = ranks_[std::size_t(rank)];
  const auto use = mine.uses.extract(number);
  if (!use) return;
  use.mapped()->note_over(next_moment(rank));
  // No other rank can reach the rank's own memory.
  std::erase_if(mine.own.uses, [&](const HeldUse& one) { return one.access.transfer == use.mapped(); });
  forget_known(mine);
}

void RaceDetector::forget_known(RankState& mine) {
  if (mine.own.cells.stretches() < mine.own_max) return;
  mine.own.cells.erase_if([&](const Cell& cell) {
    return std::all_of(cell.begin(), cell.end(),
                       [&](const Access& one) { return one.transfer->is_over_for(mine.known); });
  });
  mine.own_max = std::max<std::size_t>(64, 2 * mine.own.cells.stretches());
}

void RaceDetector::quiet(Rank rank, int context, std::optional<Rank> target, CallSite where) {
  RankState& mine = ranks_[std::size_t(rank)];
  const Moment now = next_moment(rank);
  const auto is_meant = [&](const auto& of) {
    return of.first.first == context && (!target || of.first.second == *target);
  };
  const auto first_of = [&](auto& all) { return all.lower_bound({context, target.value_or(0)}); };
  for (auto way = first_of(mine.ways); way != mine.ways.end() && is_meant(*way);) {
    for (const TransferRecord::Ref& one : way->second.open) one->note_over(now);
    way = mine.ways.erase(way);
  }
  for (auto fetched = first_of(mine.fetched); fetched != mine.fetched.end() && is_meant(*fetched);) {
    learn(rank, fetched->second);
    fetched = mine.fetched.erase(fetched);
  }
  release_sources(rank, &where);
  forget_known(mine);
}

void RaceDetector::watch(Rank rank, Source source) {
  ranks_[std::size_t(rank)].sources.push_back(std::move(source));
}

void RaceDetector::release_sources(Rank rank, const CallSite* quiet) {
  RankState& mine = ranks_[std::size_t(rank)];
  std::erase_if(mine.sources, [&](const Source& one) {
    if (!one.transfer->is_over_for(mine.known)) return false;
    // Any write that the rank knows of has been compared with the transfer already.
    if (mine.late_error || one.held->is_unchanged() || !is_unwritten_since(one)) return true;
    mine.late_error = make_error(
        ErrorCode::race,
        "the source of {} by rank {} ({}) is no longer what it was when rank {} {}: it may be written only after that",
        one.read.use.name, rank, short_name(one.read.use.where), rank,
        quiet ? fmt::format("calls quiet ({})", short_name(*quiet)) : "learns that it has been read");
    mine.late_error->rank = mine.late_error->peer = rank;
    return true;
  });
}

bool RaceDetector::is_unwritten_since(const Source& source) const {
  for (const Bytes& bytes : source.read.bytes) {
    if (bytes.memory == Bytes::Memory::own) continue;  // no other rank writes it
    std::size_t seen = 0;
    heaps_[std::size_t(bytes.owner)].cells.look(
        bytes.first, bytes.end, [&](std::size_t first, std::size_t end, const Cell& cell) {
          const auto read =
              std::find_if(cell.begin(), cell.end(), [&](const Access& a) { return a.transfer == source.transfer; });
          if (read != cell.end() && std::all_of(read, cell.end(), [](const Access& a) {
                return a.use.what == What::read || a.use.what == What::fetch;
              }))
            seen += end - first;
        });
    if (seen != bytes.end - bytes.first) return false;
  }
  return true;
}

void RaceDetector::release(const Bytes& bytes, const std::shared_ptr<Told>& what, Release how) {
  Words& words = words_[std::size_t(bytes.owner)];
  if (how == Release::replaces) return words.assign(bytes.first, bytes.end, what);
  words.visit(bytes.first, bytes.end, [&](std::size_t first, std::size_t end, std::shared_ptr<Told>& told) {
    if (!told) return void(told = what);
    auto joined = std::make_shared<Told>(*what);
    if (told->put) joined->updated = {told->put, first, end};
    if (!told->is_learnt_by(joined->known)) joined->updated_told = told;
    told = std::move(joined);
  });
}

std::vector<RaceDetector::Sight> RaceDetector::news_in(const Bytes& bytes, Rank rank) const {
  const Times& known = ranks_[std::size_t(rank)].known;
  std::vector<Sight> out;
  words_[std::size_t(bytes.owner)].look(
      bytes.first, bytes.end, [&](std::size_t first, std::size_t end, const std::shared_ptr<Told>& told) {
        if (!told) return;
        if (!told->is_learnt_by(known) || (told->put && !told->put->is_written_for(known, first, end)))
          out.push_back({told, first, end});
      });
  return out;
}

void RaceDetector::learn(Rank rank, const std::vector<Sight>& sights) {
  RankState& mine = ranks_[std::size_t(rank)];
  const Moment now = next_moment(rank);
  const auto see = [&](TransferRecord& put, std::size_t first, std::size_t end) {
    if (!put.is_written_for(mine.known, first, end)) put.note_written(now, first, end);
  };
  for (const Sight& sight : sights) {
    Told& told = *sight.told;
    const bool is_learnt = told.is_learnt_by(mine.known);
    for (Told* one = &told; one && !one->is_learnt_by(mine.known); one = one->updated_told.get()) {
      mine.known.join(one->known);
      if (one->fenced) TransferRecord::note_over_up_to(one->fenced, mine.known, now);
      for (const TransferRecord::Ref& transfer : one->over)
        if (!transfer->is_over_for(mine.known)) transfer->note_over(now);
      if (one->updated.put) see(*one->updated.put, one->updated.first, one->updated.end);
    }
    if (!is_learnt) told.learnt.push_back(now);
    if (told.put) see(*told.put, sight.first, sight.end);
  }
}

void RaceDetector::learn(Rank rank, const Times& what) {
  ranks_[std::size_t(rank)].known.join(what);
  release_sources(rank);
}

std::shared_ptr<Told> RaceDetector::told_by(Rank rank) const {
  auto told = std::make_shared<Told>();
  told->known = known(rank);
  return told;
}

void RaceDetector::acquire(Rank rank, const Bytes& bytes) {
  const std::vector<Sight> sights = news_in(bytes, rank);
  if (sights.empty()) return;
  learn(rank, sights);
  release_sources(rank);
}

void RaceDetector::acquire_at_quiet(Rank rank, int context, const Bytes& bytes) {
  std::vector<Sight> sights = news_in(bytes, rank);
  if (sights.empty()) return;
  auto& fetched = ranks_[std::size_t(rank)].fetched[{context, bytes.owner}];
  std::move(sights.begin(), sights.end(), std::back_inserter(fetched));
}

void RaceDetector::compare(const Cell& cell, const Access& access, const View& view, const Bytes& bytes) const {
  for (const Access& earlier : cell) {
    const bool is_same = access.transfer && earlier.transfer == access.transfer;
    if (is_same || !conflict(earlier, access)) continue;
    if (earlier.use.what == What::free || !knows(view, earlier, bytes)) refuse(earlier, access, view, bytes);
  }
}

void RaceDetector::note(Access access, const View& view, const std::vector<Bytes>& all) {
  for (const Bytes& bytes : all) {
    if (bytes.first == bytes.end) continue;
    access.word_first = bytes.first;
    access.word_end = bytes.end;
    const bool is_own = bytes.memory == Bytes::Memory::own;
    Memory& memory = memory_of(bytes);
    ByteMap<Cell>& cells = memory.cells;
    const Stretch stretch{bytes.first, bytes.end};
    for (const HeldUse& use : memory.uses) compare(use, access, view, {&stretch, 1}, bytes);
    const auto in = [&](std::size_t first, std::size_t end) { return Bytes{bytes.owner, first, end, bytes.memory}; };
    if (is_own && !access.transfer) {  // no other rank can reach it, and this rank knows the access
      cells.look(bytes.first, bytes.end, [&](std::size_t first, std::size_t end, const Cell& cell) {
        compare(cell, access, view, in(first, end));
      });
      continue;
    }
    cells.visit(bytes.first, bytes.end, [&](std::size_t first, std::size_t end, Cell& cell) {
      compare(cell, access, view, in(first, end));
      if (access.use.what == What::write || access.use.what == What::free)
        cell.clear();
      else  // a rank's last access stands for all that it knows
        std::erase_if(cell, [&](const Access& earlier) {
          return earlier.use.what == access.use.what && earlier.rank == access.rank &&
                 bool(earlier.transfer) == bool(access.transfer) && !conflict(earlier, access) &&
                 knows(view, earlier, in(first, end));
        });
      cell.push_back(access);
    });
  }
}

void RaceDetector::note_use(const Access& access, const View& view, std::vector<Bytes> all) {
  std::erase_if(all, [](const Bytes& bytes) { return bytes.first == bytes.end; });
  const auto place = [](const Bytes& bytes) { return std::tuple(bytes.memory, bytes.owner, bytes.first); };
  std::sort(all.begin(), all.end(), [&](const Bytes& a, const Bytes& b) { return place(a) < place(b); });
  for (auto next = all.begin(); next != all.end();) {
    const Bytes in = *next;
    HeldUse use{access, {}};
    for (; next != all.end() && next->memory == in.memory && next->owner == in.owner; ++next)
      if (!use.stretches.empty() && next->first <= use.stretches.back().second)
        use.stretches.back().second = std::max(use.stretches.back().second, next->end);
      else
        use.stretches.emplace_back(next->first, next->end);
    Memory& memory = memory_of(in);
    compare(use, memory, view, in);
    // A rank that knows the last use of a rank knows the earlier ones.
    std::erase_if(memory.uses, [&](const HeldUse& before) {
      return before.access.rank == access.rank && before.access.use.what == access.use.what &&
             before.access.transfer->is_over_for(view.known) && before.stretches == use.stretches;
    });
    memory.uses.push_back(std::move(use));
    forget_over(memory);
  }
}

void RaceDetector::compare(const HeldUse& use, const Memory& held, const View& view, const Bytes& memory) const {
  for (const HeldUse& earlier : held.uses) compare(earlier, use.access, view, use.stretches, memory);
  auto stretch = use.stretches.begin();
  held.cells.look(use.first(), use.end(), [&](std::size_t first, std::size_t end, const Cell& cell) {
    while (stretch->second <= first) ++stretch;  // the last stretch ends where the search does
    for (auto at = stretch; at != use.stretches.end() && at->first < end; ++at)
      compare(cell, use.access, view,
              {memory.owner, std::max(first, at->first), std::min(end, at->second), memory.memory});
  });
}

void RaceDetector::compare(const HeldUse& earlier, const Access& access, const View& view,
                           std::span<const Stretch> stretches, const Bytes& memory) const {
  if (earlier.end() <= stretches.front().first || stretches.back().second <= earlier.first()) return;
  if (earlier.access.transfer == access.transfer || !conflict(earlier.access, access)) return;
  if (knows(view, earlier.access, memory)) return;
  for (const auto& [first, end] : stretches) {
    const auto after = std::upper_bound(earlier.stretches.begin(), earlier.stretches.end(), first,
                                        [](std::size_t at, const Stretch& stretch) { return at < stretch.second; });
    if (after != earlier.stretches.end() && after->first < end)
      refuse(earlier.access, access, view,
             {memory.owner, std::max(first, after->first), std::min(end, after->second), memory.memory});
  }
}

void RaceDetector::forget_over(Memory& memory) const {
  if (memory.uses.size() < memory.uses_max) return;
  std::erase_if(memory.uses, [&](const HeldUse& use) {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [&](const RankState& rank) { return use.access.transfer->is_over_for(rank.known); });
  });
  memory.uses_max = std::max<std::size_t>(64, 2 * memory.uses.size());
}

void RaceDetector::forget(const Bytes& bytes) {
  Memory& heap = heaps_[std::size_t(bytes.owner)];
  heap.cells.erase(bytes.first, bytes.end);
  std::erase_if(heap.uses, [&](const HeldUse& use) { return use.first() < bytes.end && bytes.first < use.end(); });
  words_[std::size_t(bytes.owner)].erase(bytes.first, bytes.end);
}

void RaceDetector::refuse(const Access& earlier, const Access& later, const View& view, const Bytes& bytes) const {
  const auto text = [](const Access& a) {
    constexpr const char* sides[] = {"", "the source of ", "the target of ", "the value of "};
    return fmt::format("{}{} by rank {} ({})", sides[int(a.use.side)], a.use.name, a.rank,
                       a.use.code ? place_of_code(a.use.code) : short_name(a.use.where));
  };
  const auto is_atomic = [](const Access& a) { return a.use.what == What::fetch || a.use.what == What::update; };
  const auto word = [](const Access& a) {
    return fmt::format("{} of {}", a.use.kind == WordKind::integer ? "an integer" : "a floating-point number",
                       amount(a.word_end - a.word_first, "byte"));
  };
  std::string missing;
  if (earlier.use.what == What::free)
    missing = "the memory has been freed";
  else if (earlier.rank == later.rank)
    missing =
        earlier.fencing == Fencing::ordered && later.fencing == Fencing::ordered
            ? "a fence or a quiet is missing between them"
            : fmt::format("{} is missing between them", earlier.use.completion ? earlier.use.completion : "a quiet");
  else if (earlier.transfer && view.known.of(earlier.rank) >= earlier.time)
    missing = earlier.use.completion
                  ? fmt::format(
                        "rank {} knows of it, but not that it is complete: a barrier, or a signal after {}, is "
                        "missing",
                        later.rank, earlier.use.completion)
                  : fmt::format(
                        "rank {} knows of it, but not that it is complete: a quiet, a fence or a signal that is "
                        "put with it is missing at rank {}",
                        later.rank, earlier.rank);
  else
    missing = fmt::format("rank {} has not waited for it", later.rank);
  if (is_atomic(earlier) && is_atomic(later))
    missing += fmt::format("; {} and {} are not atomic with each other", word(earlier), word(later));
  const Use& named = later.use.of ? later.use : earlier.use;
  const std::string place =
      named.of ? fmt::format("bytes [{}, {}) of {} of rank {}", std::ptrdiff_t(bytes.first - named.of_first),
                             std::ptrdiff_t(bytes.end - named.of_first), named.of, bytes.owner)
      : bytes.memory == Bytes::Memory::own
          ? fmt::format("bytes [{:#x}, {:#x}) of memory of rank {}", bytes.first, bytes.end, bytes.owner)
          : fmt::format("bytes [{}, {}) of the symmetric heap of rank {}", bytes.first, bytes.end, bytes.owner);
  Error error =
      make_error(ErrorCode::race, "{}: {} and {} are not ordered: {}", place, text(earlier), text(later), missing);
  error.rank = later.rank;
  error.peer = earlier.rank;
  throw error;
}

}  // namespace tranship
