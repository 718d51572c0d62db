#include "tranship/fabric/sim/race_detector.hpp"

#include <algorithm>
#include <iterator>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/user_place.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {

void RaceDetector::Seen::add(std::size_t first, std::size_t end) {
  auto at = stretches.upper_bound(first);
  if (at != stretches.begin() && std::prev(at)->second >= first) --at;
  while (at != stretches.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    at = stretches.erase(at);
  }
  stretches.emplace(first, end);
}

bool RaceDetector::Seen::has(std::size_t first, std::size_t end) const {
  const auto after = stretches.upper_bound(first);
  return after != stretches.begin() && std::prev(after)->second >= end;
}

bool RaceDetector::Seen::is_whole() const {
  std::size_t sum = 0;
  for (const auto& [first, end] : stretches) sum += end - first;
  return sum == bytes;
}

void RaceDetector::Knowledge::see(const Put& put, std::size_t first, std::size_t end) {
  if (has(put.rank, put.number)) return;
  Seen& seen = parts[{put.rank, put.number}];
  seen.bytes = put.bytes;
  seen.add(first, end);
  if (!seen.is_whole()) return;
  parts.erase({put.rank, put.number});
  single.emplace(put.rank, put.number);
}

void RaceDetector::Knowledge::join(const Knowledge& other) {
  for (std::size_t r = 0; r < own.size(); ++r) {
    own[r] = std::max(own[r], other.own[r]);
    transfers[r] = std::max(transfers[r], other.transfers[r]);
  }
  single.insert(other.single.begin(), other.single.end());
  for (const auto& [put, seen] : other.parts)
    for (const auto& [first, end] : seen.stretches) see({put.first, put.second, seen.bytes}, first, end);
  prune();
}

void RaceDetector::Knowledge::prune() {
  // Those that follow the number raise it, in the order of the set.
  for (const auto& [rank, number] : single)
    if (std::uint64_t& all = transfers[std::size_t(rank)]; number == all + 1) all = number;
  std::erase_if(single, [&](const auto& one) { return one.second <= transfers[std::size_t(one.first)]; });
  std::erase_if(parts, [&](const auto& one) { return has(one.first.first, one.first.second); });
}

RaceDetector::RaceDetector(int ranks)
    : ranks_(std::size_t(ranks)), heaps_(std::size_t(ranks)), words_(std::size_t(ranks)) {
  for (RankState& rank : ranks_) {
    rank.known.own.resize(std::size_t(ranks));
    rank.known.transfers.resize(std::size_t(ranks));
  }
}

bool RaceDetector::knows(const Knowledge& who, const Access& what) {
  if (!what.is_transfer) return who.own[std::size_t(what.rank)] >= what.number;
  return who.has(what.rank, what.number);
}
bool RaceDetector::knows(const Knowledge& who, const Access& what, const Bytes& part) {
  if (knows(who, what)) return true;
  const auto seen = who.parts.find({what.rank, what.number});
  return what.is_transfer && what.use.side == Side::peer && seen != who.parts.end() &&
         seen->second.has(part.first, part.end);
}

bool RaceDetector::conflict(const Access& earlier, const Access& later) {
  const auto reads = [](What what) { return what == What::read || what == What::fetch; };
  const auto is_atomic = [](What what) { return what == What::fetch || what == What::update; };
  const What a = earlier.use.what, b = later.use.what;
  if (reads(a) && reads(b)) return false;
  if (!is_atomic(a) || !is_atomic(b)) return true;
  const bool are_kinds_known = earlier.use.code == nullptr && later.use.code == nullptr;
  return earlier.word_first != later.word_first || earlier.word_end != later.word_end ||
         (are_kinds_known && earlier.use.kind != later.use.kind);
}

RaceDetector::Knowledge RaceDetector::before(Rank rank, const Channel& channel) const {
  const RankState& mine = ranks_[std::size_t(rank)];
  Knowledge out = mine.known;
  for (const Unfinished& one : mine.unfinished)
    if (one.fencing == Fencing::ordered && one.channel.context == channel.context &&
        one.channel.target == channel.target && one.channel.fences < channel.fences)
      out.single.emplace(rank, one.number);
  return out;
}

RaceDetector::Access RaceDetector::own_access(Rank rank, const Use& use) {
  const std::uint64_t number = ++ranks_[std::size_t(rank)].known.own[std::size_t(rank)];
  return {.use = use, .rank = rank, .number = number, .issued = number};
}

void RaceDetector::access(Rank rank, const Accesses& all) {
  const Access access = own_access(rank, all.use);
  note(access, known(rank), all.bytes);
}

RaceDetector::Knowledge RaceDetector::access(Rank rank, const Channel& channel, const Accesses& all) {
  const Access access = own_access(rank, all.use);
  Knowledge known = before(rank, channel);
  note(access, known, all.bytes);
  return known;
}

RaceDetector::Sent RaceDetector::send(Rank rank, const Channel& channel, Fencing fencing, const Accesses& remote,
                                      const Accesses* local) {
  RankState& mine = ranks_[std::size_t(rank)];
  Sent sent{.number = ++mine.transfers, .before = fencing == Fencing::ordered ? before(rank, channel) : mine.known};
  const std::uint64_t issued = ++mine.known.own[std::size_t(rank)];
  Access access{.use = remote.use,
                .rank = rank,
                .is_transfer = true,
                .fencing = fencing,
                .number = sent.number,
                .issued = issued};
  mine.unfinished.push_back({sent.number, channel, fencing});
  note(access, sent.before, remote.bytes);
  if (local) {
    // A fence does not hold back when local memory is accessed.
    access.use = local->use;
    access.fencing = Fencing::unordered;
    note(access, mine.known, local->bytes);
  }
  return sent;
}

std::uint64_t RaceDetector::begin(Rank rank, const std::vector<Accesses>& all) {
  RankState& mine = ranks_[std::size_t(rank)];
  const std::uint64_t number = ++mine.transfers;
  mine.unfinished.push_back({number, {.context = no_context}, Fencing::unordered});
  Access access{.rank = rank,
                .is_transfer = true,
                .fencing = Fencing::unordered,
                .number = number,
                .issued = ++mine.known.own[std::size_t(rank)]};
  for (const Accesses& some : all) {
    access.use = some.use;
    note(access, mine.known, some.bytes);
  }
  return number;
}

void RaceDetector::end(Rank rank, std::uint64_t number) {
  RankState& mine = ranks_[std::size_t(rank)];
  complete(mine, rank, [&](const Unfinished& one) { return one.number == number; });
  forget_known(mine);
}

void RaceDetector::complete(RankState& mine, Rank rank, FunctionRef<bool(const Unfinished&)> is_complete) {
  std::erase_if(mine.unfinished, [&](const Unfinished& one) {
    if (!is_complete(one)) return false;
    mine.known.single.emplace(rank, one.number);
    return true;
  });
  std::uint64_t& done = mine.known.transfers[std::size_t(rank)];
  done = std::max(done, mine.unfinished.empty() ? mine.transfers : mine.unfinished.front().number - 1);
  mine.known.prune();
}

void RaceDetector::forget_known(RankState& mine) {
  mine.own.erase_if([&](const Cell& cell) {
    return std::all_of(cell.begin(), cell.end(), [&](const Access& one) { return knows(mine.known, one); });
  });
}

void RaceDetector::quiet(Rank rank, int context, std::optional<Rank> target, CallSite where) {
  RankState& mine = ranks_[std::size_t(rank)];
  complete(mine, rank, [&](const Unfinished& one) {
    return one.channel.context == context && (!target || one.channel.target == *target);
  });
  std::erase_if(mine.fetched, [&](const auto& fetched) {
    const auto& [of_context, of_target] = fetched.first;
    if (of_context != context || (target && of_target != *target)) return false;
    mine.known.join(fetched.second);
    return true;
  });
  release_sources(rank, &where);
  forget_known(mine);
}

void RaceDetector::watch(Rank rank, Source source) {
  ranks_[std::size_t(rank)].sources.push_back(std::move(source));
}

void RaceDetector::release_sources(Rank rank, const CallSite* quiet) {
  RankState& mine = ranks_[std::size_t(rank)];
  std::erase_if(mine.sources, [&](const Source& one) {
    if (!knows(mine.known, {.rank = rank, .is_transfer = true, .number = one.transfer})) return false;
    // What is known to have written it has been compared with the transfer by then.
    if (mine.changed_source || one.held->is_unchanged() || !is_unwritten_since(rank, one)) return true;
    mine.changed_source =
        make_error(ErrorCode::race,
                   "the source of {} by rank {} ({}) is no longer what it was when rank {} {}: it "
                   "may be written after that only",
                   one.read.use.name, rank, short_name(one.read.use.where), rank,
                   quiet ? fmt::format("calls quiet ({})", short_name(*quiet)) : "learns that it has been read");
    mine.changed_source->rank = mine.changed_source->peer = rank;
    return true;
  });
}

bool RaceDetector::is_unwritten_since(Rank rank, const Source& source) const {
  for (const Bytes& bytes : source.read.bytes) {
    if (bytes.memory == Bytes::Memory::own) continue;  // no other rank writes it
    std::size_t seen = 0;
    heaps_[std::size_t(bytes.owner)].look(
        bytes.first, bytes.end, [&](std::size_t first, std::size_t end, const Cell& cell) {
          const auto read = std::find_if(cell.begin(), cell.end(), [&](const Access& a) {
            return a.is_transfer && a.rank == rank && a.number == source.transfer;
          });
          if (read != cell.end() && std::all_of(read, cell.end(), [](const Access& a) {
                return a.use.what == What::read || a.use.what == What::fetch;
              }))
            seen += end - first;
        });
    if (seen != bytes.end - bytes.first) return false;
  }
  return true;
}

void RaceDetector::release(const Bytes& bytes, const Told& what, Release how) {
  Words& words = words_[std::size_t(bytes.owner)];
  if (how == Release::replaces) return words.assign(bytes.first, bytes.end, what);
  words.visit(bytes.first, bytes.end, [&](std::size_t first, std::size_t end, Told& told) {
    if (!told.known) return void(told = what);
    auto joined = std::make_shared<Knowledge>(*told.known);
    if (told.put.bytes > 0) joined->see(told.put, first, end);
    joined->join(*what.known);
    told = {std::move(joined)};
  });
}

std::optional<RaceDetector::Knowledge> RaceDetector::told_by(const Bytes& bytes) const {
  std::optional<Knowledge> out;
  words_[std::size_t(bytes.owner)].look(bytes.first, bytes.end,
                                        [&](std::size_t first, std::size_t end, const Told& told) {
                                          if (!told.known) return;
                                          if (out)
                                            out->join(*told.known);
                                          else
                                            out = *told.known;
                                          if (told.put.bytes > 0) out->see(told.put, first, end);
                                        });
  return out;
}

void RaceDetector::learn(Rank rank, const Knowledge& what) {
  RankState& mine = ranks_[std::size_t(rank)];
  mine.known.join(what);
  // A program that never calls quiet can learn from its peers that its transfers are over.
  const std::uint64_t over = mine.known.transfers[std::size_t(rank)];
  const auto open = std::find_if(mine.unfinished.begin(), mine.unfinished.end(),
                                 [&](const Unfinished& one) { return one.number > over; });
  mine.unfinished.erase(mine.unfinished.begin(), open);
  release_sources(rank);
}

void RaceDetector::acquire(Rank rank, const Bytes& bytes) {
  if (const auto told = told_by(bytes)) learn(rank, *told);
}

void RaceDetector::acquire_at_quiet(Rank rank, int context, const Bytes& bytes) {
  auto told = told_by(bytes);
  if (!told) return;
  const auto [fetched, is_first] = ranks_[std::size_t(rank)].fetched.try_emplace({context, bytes.owner}, *told);
  if (!is_first) fetched->second.join(*told);
}

void RaceDetector::compare(const Cell& cell, const Access& access, const Knowledge& known, const Bytes& bytes) const {
  for (const Access& earlier : cell) {
    const bool is_same =
        earlier.is_transfer && access.is_transfer && earlier.rank == access.rank && earlier.number == access.number;
    if (is_same || !conflict(earlier, access)) continue;
    if (earlier.use.what == What::free || !knows(known, earlier, bytes)) refuse(earlier, access, known, bytes);
  }
}

void RaceDetector::note(Access access, const Knowledge& known, const std::vector<Bytes>& all) {
  for (const Bytes& bytes : all) {
    if (bytes.first == bytes.end) continue;
    access.word_first = bytes.first;
    access.word_end = bytes.end;
    const bool is_own = bytes.memory == Bytes::Memory::own;
    auto& cells = is_own ? ranks_[std::size_t(bytes.owner)].own : heaps_[std::size_t(bytes.owner)];
    const auto in = [&](std::size_t first, std::size_t end) { return Bytes{bytes.owner, first, end, bytes.memory}; };
    if (is_own && !access.is_transfer) {  // its rank knows it, and it alone can
      cells.look(bytes.first, bytes.end, [&](std::size_t first, std::size_t end, const Cell& cell) {
        compare(cell, access, known, in(first, end));
      });
      continue;
    }
    cells.visit(bytes.first, bytes.end, [&](std::size_t first, std::size_t end, Cell& cell) {
      compare(cell, access, known, in(first, end));
      if (access.use.what == What::write || access.use.what == What::free)
        cell.clear();
      else  // the last one of a rank stands for all that it knows
        std::erase_if(cell, [&](const Access& earlier) {
          return earlier.use.what == access.use.what && earlier.rank == access.rank &&
                 earlier.is_transfer == access.is_transfer && !conflict(earlier, access) &&
                 knows(known, earlier, in(first, end));
        });
      cell.push_back(access);
    });
  }
}

void RaceDetector::forget(const Bytes& bytes) {
  heaps_[std::size_t(bytes.owner)].erase(bytes.first, bytes.end);
  words_[std::size_t(bytes.owner)].erase(bytes.first, bytes.end);
}

void RaceDetector::refuse(const Access& earlier, const Access& later, const Knowledge& known,
                          const Bytes& bytes) const {
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
  else if (earlier.is_transfer && known.own[std::size_t(earlier.rank)] >= earlier.issued)
    missing = fmt::format(
        "rank {} knows of it, but not that it is complete: {} is missing at rank {}", later.rank,
        earlier.use.completion ? earlier.use.completion : "a quiet, a fence or a signal that is put with it",
        earlier.rank);
  else
    missing = fmt::format("rank {} has not waited for it", later.rank);
  if (is_atomic(earlier) && is_atomic(later))
    missing += fmt::format("; {} and {} are not atomic with each other", word(earlier), word(later));
  const std::string place =
      bytes.memory == Bytes::Memory::own
          ? fmt::format("bytes [{:#x}, {:#x}) of memory of rank {}", bytes.first, bytes.end, bytes.owner)
          : fmt::format("bytes [{}, {}) of the symmetric heap of rank {}", bytes.first, bytes.end, bytes.owner);
  Error error =
      make_error(ErrorCode::race, "{}: {} and {} are not ordered: {}", place, text(earlier), text(later), missing);
  error.rank = later.rank;
  error.peer = earlier.rank;
  throw error;
}

}  // namespace tranship
