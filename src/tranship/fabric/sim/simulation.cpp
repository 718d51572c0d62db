#include "tranship/fabric/sim/simulation.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/seam/run_rank.hpp>
#include <tranship/fabric/sim/sim_fabric.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship {
namespace {

constexpr int looks_max = 16;
/// After this many looks of all ranks without a change, nothing more can happen. Ranks may count while they look.
constexpr int vain_looks_max = 100'000;

}  // namespace

Simulation::Simulation(const SimulationOptions& options, std::shared_ptr<SharedWorld> shared)
    : options_(options),
      shared_(std::move(shared)),
      random_(options.seed),
      ranks_(std::size_t(options.ranks)),
      report_(options.so_far ? *options.so_far : own_report_) {
  if (options.ranks_per_host > 0) {
    host_memory_ = std::make_shared<HostMemory>(*shared_, options.ranks_per_host);
    for (Rank first = 0; first < options.ranks; first += options.ranks_per_host) {
      boards_.push_back(std::make_unique<Board>(options.ranks));
      boards_.back()->connect(host_of(first), *this);
    }
  } else if (options.order == OrderChecks::on)
    watch_order();
  const int sharing = options.peers == PeerKind::messaged ? 1 : options.ranks_per_host;
  for (Rank rank = 0; rank < options.ranks; ++rank) sharing_of_.push_back(sharing == 0 ? 0 : rank / sharing);
  // Some seeds deliver at once, some only when no rank can run.
  constexpr int chances[] = {0, 1, 4, 8, 14};
  delivery_chance_ = chances[random_.below(std::size(chances))];
  switch_chance_ = chances[random_.below(std::size(chances))];
}

void Simulation::watch_order() {
  race_detector_ = std::make_shared<RaceDetector>(options_.ranks);
  if (!detail::race_hooks.are_there) return;
  if (detail::race_hooks.obstacle)
    throw_error(ErrorCode::unsupported,
                "this program is compiled with tranship::race_hooks and linked with the run-time library of {}, which "
                "answers the same calls: build it with one of the two",
                detail::race_hooks.obstacle);
  for (Rank rank = 0; rank < options_.ranks; ++rank)
    logs_.push_back(std::make_unique<RankLog>(*this, *race_detector_, rank, shared_->heap_of(0),
                                              shared_->stride_bytes() * std::size_t(options_.ranks)));
}

std::byte* Simulation::heap_of(Rank rank) const noexcept {
  if (host_memory_) return host_memory_->heap_of(rank);
  return shared_->heap_of(rank);
}

Members Simulation::host_of(Rank rank) const noexcept {
  if (options_.ranks_per_host == 0) return {.count = options_.ranks};
  const Rank first = rank - rank % options_.ranks_per_host;
  return {.first = first, .count = std::min(options_.ranks_per_host, options_.ranks - first)};
}

Members Simulation::sharing(Rank rank) const noexcept {
  return options_.peers == PeerKind::messaged ? Members{.first = rank} : host_of(rank);
}

RaceDetector::Bytes Simulation::bytes_at(Rank rank, const void* first, std::size_t size_bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(first);
  const std::uintptr_t offset = at - reinterpret_cast<std::uintptr_t>(shared_->heap_of(0));
  if (offset < shared_->stride_bytes() * std::size_t(options_.ranks)) {
    const std::size_t in_heap = offset % shared_->stride_bytes();
    return {Rank(offset / shared_->stride_bytes()), in_heap, in_heap + size_bytes};
  }
  for (const Joined& one : joined_)
    if (one.rank == rank && at - one.first < one.size_bytes && !one.memory.expired()) {
      const std::size_t in_heap = one.offset_bytes + (at - one.first);
      return {rank, in_heap, in_heap + size_bytes};
    }
  return {rank, at, at + size_bytes, RaceDetector::Bytes::Memory::own};
}

SimulationReport Simulation::run(FunctionRef<void(World&)> body) {
  constexpr std::size_t stack_bytes = std::size_t(1) << 20;  // unused parts cost addresses only
  for (Rank r = 0; r < options_.ranks; ++r) {
    const auto run = [this, r, body] {
      const auto make = [&] { return std::make_unique<SimFabric>(*this, shared_, r); };
      const auto whole = [&](World& world) {
        try {
          body(world);
        } catch (const RankDies&) {
          throw;
        } catch (...) {
          // The program may have failed because of a race that no call of it has thrown yet.
          detail::settle_accesses();
          throw_noted_race(r);
          throw;
        }
        // Otherwise pending operations would complete with the world, where their errors would be lost.
        world.context().quiet({"the end of the rank", 0});
      };
      ranks_[std::size_t(r)].thrown = run_rank(board_of(r), r, options_.timeout_ns, make, whole);
      changed();
      something_happened();
    };
    ranks_[std::size_t(r)].fiber = std::make_unique<Fiber>(run, stack_bytes);
  }

  is_held_.resize(ranks_.size());
  for (Rank r = 0; r < options_.ranks; ++r) {
    drowsy_.push_back(r);
    update_held(r);
  }
  std::vector<Rank> ready;
  for (;;) {
    if (vain_looks_ >= vain_looks_max) {
      vain_looks_ = 0;
      expire_one();
    }
    if (looks_ >= looks_max) {
      looks_ = 0;
      deliver_any();
    }
    if (random_.below(16) < std::uint64_t(delivery_chance_) && deliver_any()) continue;
    ready.clear();
    for (Rank r = 0; r < options_.ranks; ++r)
      if (is_held_[std::size_t(r)] == 0) ready.push_back(r);
    if (!ready.empty())
      resume(ready[random_.below(ready.size())]);
    else if (!deliver_any() && !wake_those_not_told() && !resume_polls() && !look_again() && !expire_one())
      break;
  }
  if (host_memory_) host_memory_->enter(HostMemory::everywhere);
  return report_;
}

void Simulation::tell(Rank rank) noexcept {
  if (Board& own = board_of(rank); first_failed_ < 0 && own.ended(rank) && !own.finished(rank)) first_failed_ = rank;
  for (const auto& board : boards_)
    if (board.get() != &board_of(rank)) news_.push_back({rank, board.get(), board_of(rank).entry_of(rank)});
}

void Simulation::ask(Rank rank) noexcept {
  if (!board_of(rank).ended(rank)) board_of(running_).show(rank, board_of(rank).entry_of(rank));
}

bool Simulation::deliver_news() {
  if (news_.empty()) return false;
  // News from one machine to another arrives in order.
  const News& any = news_[random_.below(news_.size())];
  const auto at = std::find_if(news_.begin(), news_.end(), [&](const News& other) {
    return other.to == any.to && host_of(other.of) == host_of(any.of);
  });
  const News one = *at;
  news_.erase(at);
  one.to->show(one.of, one.entry);
  changed();
  something_happened();
  return true;
}

void Simulation::resume(Rank rank) {
  running_ = rank;
  if (host_memory_) host_memory_->enter(rank / options_.ranks_per_host);
  AccessLog* const log = logs_.empty() ? nullptr : logs_[std::size_t(rank)].get();
  AccessLog* const log_before = std::exchange(detail::access_log, log);
  ranks_[std::size_t(rank)].fiber->resume();
  detail::settle_accesses();
  detail::access_log = log_before;
  update_held(rank);
}

void Simulation::something_happened() {
  looks_again_ = 0;
  wake_all();
}

void Simulation::wake_all() {
  for (const Rank rank : drowsy_) {
    RankState& one = ranks_[std::size_t(rank)];
    one.waits = one.polls = one.is_drowsy = false;
    one.has_news = true;
    update_held(rank);
  }
  drowsy_.clear();
  some_are_not_told_ = false;
}

void Simulation::wake(Rank rank) {
  looks_again_ = 0;
  RankState& one = ranks_[std::size_t(rank)];
  one.waits = one.polls = false;
  one.has_news = true;
  update_held(rank);
  some_are_not_told_ = true;
}

bool Simulation::wake_those_not_told() {
  const bool any = some_are_not_told_;
  if (any) something_happened();
  return any;
}

bool Simulation::resume_polls() {
  const bool any = std::any_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.polls; });
  // Other ranks may wait for values that these have stored meanwhile.
  if (any) something_happened();
  return any;
}

/// Operations under way store words that no call here sees, while their rank waits: others may have gone to sleep just
/// before. Each such store can let one more rank go on.
bool Simulation::look_again() {
  if (looks_again_ == 2 * options_.ranks + 8) return false;
  ++looks_again_;
  wake_all();
  return true;
}

bool Simulation::expire_one() {
  RankState* first = nullptr;
  for (RankState& rank : ranks_)
    if (!rank.fiber->ended() && !rank.expired && (!first || rank.deadline.at_ns() < first->deadline.at_ns()))
      first = &rank;
  if (!first) return false;
  first->expired = true;
  expired_.push_back(Rank(first - ranks_.data()));
  update_held(expired_.back());
  return true;
}

void Simulation::come(Rank rank, int slot, const Members& members, std::uint64_t meeting) {
  changed();
  if (!race_detector()) return;
  meetings_[{slot, members.first, meeting}].known.join(race_detector_->known(rank));
}

void Simulation::go(Rank rank, int slot, const Members& members, std::uint64_t meeting) {
  if (!race_detector_) return;
  const auto state = meetings_.find({slot, members.first, meeting});
  if (RaceDetector* const detector = race_detector_for(rank)) detector->learn(rank, state->second.known);
  if (++state->second.gone == members.count) meetings_.erase(state);
  fail_late(rank);
}

void Simulation::bring(Rank from, Rank to, Mail::Key meeting, std::span<const std::byte> bytes) {
  if (ranks_[std::size_t(from)].dying) return;
  count_message(from, to, bytes.size());
  letters_.emplace(std::tuple(to, from, meeting.slot, meeting.number),
                   std::vector<std::byte>(bytes.begin(), bytes.end()));
  changed();
  something_happened();
}

std::optional<std::vector<std::byte>> Simulation::take(Rank to, Rank from, Mail::Key meeting) {
  auto letter = letters_.extract({to, from, meeting.slot, meeting.number});
  if (letter.empty()) return std::nullopt;
  return std::move(letter.mapped());
}

void Simulation::count_message(Rank from, Rank to, std::size_t bytes) noexcept {
  constexpr std::int64_t head_bytes = 64;
  if (sharing_of_[std::size_t(from)] == sharing_of_[std::size_t(to)] && options_.peers == PeerKind::reachable) return;
  RankState& rank = ranks_[std::size_t(from)];
  report_.messages_max = std::max(report_.messages_max, ++rank.messages_sent);
  report_.bytes_max = std::max(report_.bytes_max, rank.bytes_sent += head_bytes + std::int64_t(bytes));
}

void Simulation::throw_noted_race(Rank rank) const {
  if (!logs_.empty() && logs_[std::size_t(rank)]->race()) throw Error(*logs_[std::size_t(rank)]->race());
}

void Simulation::fail_late(Rank rank) const {
  // A rank that unwinds fails already.
  if (!race_detector_ || std::uncaught_exceptions() > 0) return;
  throw_noted_race(rank);
  if (const std::optional<Error>& error = race_detector_->late_error(rank)) throw Error(*error);
}

void Simulation::count_step(Rank rank) {
  RankState& mine = ranks_[std::size_t(rank)];
  ++mine.steps;
  detail::settle_accesses();
  if (options_.death && options_.death->rank == rank && mine.steps >= options_.death->step) {
    mine.dying = true;
    board_of(rank).post_failed(rank, ErrorCode::peer_lost, "the simulation has ended it");
    something_happened();
    throw RankDies();
  }
  fail_late(rank);
  if (++report_.steps > options_.steps_max)
    throw_error(ErrorCode::timeout, "the simulation takes more than {} (rank {})", amount(options_.steps_max, "step"),
                rank);
}

void Simulation::step(Rank rank) {
  if (ranks_[std::size_t(rank)].dying) return;
  count_step(rank);
  ranks_[std::size_t(rank)].acted = true;
  // Other ranks may wait for a value that this one has stored. With many ranks, waking all after every step of any rank
  // would take most of the time.
  const auto one_in = std::uint64_t(std::max(1, options_.ranks / 4));
  if (one_in == 1 || random_.below(one_in) == 0)
    something_happened();
  else
    some_are_not_told_ = true;
  if (random_.below(16) < std::uint64_t(switch_chance_)) Fiber::suspend();
}

void Simulation::look(Rank rank) {
  step(rank);
  ++vain_looks_;
  if (++looks_ >= looks_max && !ranks_[std::size_t(rank)].dying) Fiber::suspend();
}

void Simulation::looks_at(Rank rank, Rank peer, std::size_t offset_bytes) {
  constexpr std::size_t places_max = 4096;
  auto& places = ranks_[std::size_t(rank)].places;
  if (places.size() == places_max) places.clear();
  if (places.emplace(peer, offset_bytes).second) vain_looks_ = 0;
}

void Simulation::wait(Rank rank, int round) {
  RankState& mine = ranks_[std::size_t(rank)];
  if (mine.dying) return;
  count_step(rank);
  // Other ranks may wait for values that it stored before this wait.
  if (round == 0) something_happened();
  // The awaited value may have come while it looked at another place.
  mine.waits = !mine.has_news;
  note_drowsy(rank);
  Fiber::suspend();
  mine.has_news = false;
  note_drowsy(rank);
}

void Simulation::poll(Rank rank, std::int64_t polls) {
  RankState& mine = ranks_[std::size_t(rank)];
  if (mine.dying) return;
  count_step(rank);
  vain_looks_ += polls;
  if (std::exchange(mine.acted, false)) something_happened();
  // Sometimes there is no news: not always, since polling ranks would then prevent it from coming.
  mine.polls = random_.below(2) == 0;
  note_drowsy(rank);
  Fiber::suspend();
}

bool Simulation::passed(Rank rank, Deadline deadline) {
  RankState& mine = ranks_[std::size_t(rank)];
  mine.deadline = deadline;
  return std::exchange(mine.expired, false) || mine.dying;
}

void Simulation::send(Rank source, InFlight what) {
  RankState& mine = ranks_[std::size_t(source)];
  if (mine.dying) return;
  TRANSHIP_ASSERT_COSTLY(mine.log.empty() || mine.log.back()->serial < what.serial);
  mine.log.push_back(std::make_unique<const InFlight>(std::move(what)));
  mine.is_log_new = true;
  // Operations that are never completed do not pile up.
  constexpr std::size_t log_max = 256;
  while (mine.log.size() > log_max) deliver(source, 0);
}

const std::vector<std::size_t>& Simulation::deliverable(Rank rank) {
  RankState& mine = ranks_[std::size_t(rank)];
  if (!std::exchange(mine.is_log_new, false)) return mine.deliverable;
  const auto& log = mine.log;
  /// The lowest number of fences of the pieces passed over on one way: a piece with more comes after them.
  struct Way {
    int context;
    Rank target;
    std::uint64_t fences_min;
  };
  std::vector<Way> ways;
  mine.deliverable.clear();
  for (std::size_t i = 0; i < log.size(); ++i) {
    const InFlight& what = *log[i];
    bool is_held = false;
    if (what.after_first < what.after_end) {  // serials increase along the log
      const auto end = log.begin() + static_cast<std::ptrdiff_t>(i);
      const auto first = std::lower_bound(log.begin(), end, what.after_first,
                                          [](const auto& one, std::uint64_t at) { return one->serial < at; });
      is_held = first != end && (*first)->serial < what.after_end;
    }
    if (what.is_fenced) {
      const auto way = std::find_if(ways.begin(), ways.end(), [&](const Way& one) {
        return one.context == what.context && one.target == what.target;
      });
      if (way == ways.end()) {
        ways.push_back({what.context, what.target, what.fences});
      } else {
        is_held = is_held || way->fences_min < what.fences;
        way->fences_min = std::min(way->fences_min, what.fences);
      }
    }
    if (!is_held) mine.deliverable.push_back(i);
  }
  return mine.deliverable;
}

bool Simulation::deliver_any() {
  if (!news_.empty() && random_.below(2) == 0) return deliver_news();
  std::size_t possible = 0;
  for (Rank rank = 0; rank < options_.ranks; ++rank) possible += deliverable(rank).size();
  if (possible == 0) return deliver_news();
  std::size_t chosen = random_.below(possible);
  for (Rank rank = 0;; ++rank) {
    const std::vector<std::size_t>& of_rank = deliverable(rank);
    if (chosen < of_rank.size()) {
      deliver(rank, of_rank[chosen]);
      return true;
    }
    chosen -= of_rank.size();
  }
}

bool Simulation::deliver_one_of(Rank source, int context, std::optional<Rank> target) {
  std::vector<std::size_t> possible;
  for (const std::size_t index : deliverable(source)) {
    const InFlight& what = *ranks_[std::size_t(source)].log[index];
    if (what.context == context && (!target || what.target == *target)) possible.push_back(index);
  }
  if (possible.empty()) return false;
  deliver(source, possible[random_.below(possible.size())]);
  return true;
}

void Simulation::forget(Rank source, int context) noexcept {
  RankState& mine = ranks_[std::size_t(source)];
  std::erase_if(mine.log, [&](const auto& what) {
    return what->context == context && (what->local_target || what->before || (what->source && what->payload.empty()));
  });
  mine.is_log_new = true;
}

void Simulation::deliver_fenced(Rank source, int context, Rank target, std::uint64_t fences) {
  RankState& mine = ranks_[std::size_t(source)];
  for (std::size_t i = 0; i < mine.log.size();) {
    const InFlight& what = *mine.log[i];
    const bool fenced = what.context == context && what.target == target && what.fences < fences && what.is_fenced;
    // In the order in which they were sent, which is always allowed.
    if (fenced)
      deliver(source, i);
    else
      ++i;
  }
}

void Simulation::deliver(Rank source, std::size_t index) {
  RankState& from = ranks_[std::size_t(source)];
  const std::unique_ptr<const InFlight> sent = std::move(from.log[index]);
  const InFlight& what = *sent;
  from.log.erase(from.log.begin() + std::ptrdiff_t(index));
  from.is_log_new = true;
  ++report_.deliveries;
  wake(what.kind == InFlight::Kind::get ? what.rank : what.target);
  if (what.before) wake(what.rank);

  std::byte* const there = heap_of(what.target) + what.offset_bytes;
  if (what.tells) tell(what, there);
  switch (what.kind) {
    case InFlight::Kind::put:
      changed();
      if (what.payload.empty())
        copy_on_host(what.block, what.width, open(what.source), there);
      else
        copy_on_host(with_dense_source(what.block, what.width), what.width, what.payload.data(), there);
      break;
    case InFlight::Kind::get:
      copy_on_host(what.block, what.width, there, open(what.local_target));
      break;
    case InFlight::Kind::update:
    case InFlight::Kind::signal:
      apply_atomic_noting(there, what.width, what.op, &what.operand, &what.compare, open(what.before));
      break;
  }
}

void Simulation::tell(const InFlight& what, const void* there) {
  const bool is_put = what.kind == InFlight::Kind::put;
  if (what.before)
    for (const RaceDetector::Bytes& bytes : what.written)
      race_detector_->acquire_at_quiet(what.rank, what.context, bytes);
  if (!is_put && !writes(what.op, what.width, what.compare, there)) return;
  const bool replaces = is_put || what.op == AtomicOp::set;
  for (const RaceDetector::Bytes& bytes : what.written)
    race_detector_->release(bytes, what.tells,
                            replaces ? RaceDetector::Release::replaces : RaceDetector::Release::joins);
}

bool writes(AtomicOp op, int width, std::uint64_t compare, const void* before) {
  return op != AtomicOp::fetch &&
         (op != AtomicOp::compare_swap || std::memcmp(before, &compare, std::size_t(width)) == 0);
}

void Simulation::apply_atomic_noting(void* at, int width, AtomicOp op, const void* operand, const void* expected,
                                     void* before) {
  std::uint64_t was = 0;
  std::memcpy(&was, at, std::size_t(width));
  apply_atomic(at, width, op, operand, expected, before);
  if (std::memcmp(&was, at, std::size_t(width)) != 0) changed();
}

SimulationReport detail::simulate(const SimulationOptions& options, FunctionRef<void(World&)> body) {
  if (options.ranks < 1) throw_error(ErrorCode::invalid_use, "simulate needs at least 1 rank, got {}", options.ranks);
  if (options.ranks_per_host < 0)
    throw_error(ErrorCode::invalid_use, "simulate needs at least 1 rank per host, or 0 for one host, got {}",
                options.ranks_per_host);
  // Memory that is opened and closed must be mapped twice, which is possible for memory of processes.
  const auto kind = options.ranks_per_host > 0 ? SharedWorld::Kind::processes : SharedWorld::Kind::threads;
  const auto shared = SharedWorld::make({.ranks = options.ranks, .heap_bytes = options.heap_bytes, .cores = 1}, kind);
  Simulation simulation(options, shared);
  const SimulationReport report = simulation.run(body);
  const Rank first = simulation.first_failed();
  if (first < 0) return report;
  if (simulation.board_of(first).failure_code_of(first) == ErrorCode::user_exception)
    std::rethrow_exception(simulation.thrown_by(first));
  Error error = make_error(simulation.board_of(first).failure_code_of(first), "{}; simulated with seed {}",
                           simulation.board_of(first).failure_of(first), options.seed);
  error.rank = first;
  throw error;
}

}  // namespace tranship
