#include "tranship/fabric/sim/rank_log.hpp"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include <tranship/fabric/seam/run_rank.hpp>
#include <tranship/fabric/sim/simulation.hpp>

namespace tranship {
namespace {

using What = RaceDetector::What;
using Release = RaceDetector::Release;

RaceDetector::Use use_of(What what, const char* name, const void* code) {
  RaceDetector::Use use;
  use.what = what;
  use.name = name;
  use.code = code;
  return use;
}

}  // namespace

RankLog::RankLog(const Simulation& simulation, RaceDetector& detector, Rank rank, const void* heaps,
                 std::size_t heaps_bytes)
    : AccessLog(reinterpret_cast<Address>(heaps), heaps_bytes),
      simulation_(simulation),
      detector_(detector),
      rank_(rank) {}

RaceDetector::Bytes RankLog::bytes_at(Address first, Address end) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one
  return simulation_.bytes_at(rank_, reinterpret_cast<const void*>(first), end - first);
}

template <class F>
void RankLog::keeping_race(F&& f) noexcept {
  if (race_) return;
  try {
    f();
  } catch (...) {
    race_ = error_of_current_exception();
  }
}

void RankLog::settle() noexcept {
  if (!is_empty()) {
    enter_library();
    keeping_race([&] { tell(); });
    take([](const Run&) {});
    leave_library();
  }
  begin_period();
}

void RankLog::tell() {
  told_.clear();
  take([&](const Run& run) { told_.push_back(run); });
  const auto by_code = [](const Run& run) { return std::tuple(run.code, run.does); };
  std::sort(told_.begin(), told_.end(), [&](const Run& a, const Run& b) {
    return std::tuple(by_code(a), a.first) < std::tuple(by_code(b), b.first);
  });
  for (auto run = told_.begin(); run != told_.end();) {
    const bool loads = run->does == Does::load;
    RaceDetector::Accesses all{use_of(loads ? What::read : What::write, loads ? "loads" : "stores", run->code), {}};
    for (const auto code = by_code(*run); run != told_.end() && by_code(*run) == code;) {
      Address end = run->end;
      const Address first = run->first;
      for (++run; run != told_.end() && by_code(*run) == code && run->first <= end; ++run)
        end = std::max(end, run->end);
      all.bytes.push_back(bytes_at(first, end));
    }
    detector_.access(rank_, all);
  }
}

void RankLog::tell_atomic(Address first, std::size_t bytes, Atomic how, const void* code) noexcept {
  settle();
  enter_library();
  keeping_race([&] {
    const RaceDetector::Bytes word = bytes_at(first, first + bytes);
    const bool others_see_it = word.memory == RaceDetector::Bytes::Memory::symmetric;
    constexpr const char* names[] = {"an atomic load", "an atomic store", "an atomic update"};
    const What what = how.does == Atomic::Does::load ? What::fetch : What::update;
    detector_.access(rank_, {use_of(what, names[int(how.does)], code), {word}});
    // Acquire only now: a value that was put into the word instead of stored atomically must race.
    if (how.acquires && others_see_it) detector_.acquire(rank_, word);
    if (!others_see_it || how.does == Atomic::Does::load) return;
    const bool replaces = how.does == Atomic::Does::store;
    if (how.releases)
      detector_.release(word, detector_.told_by(rank_), replaces ? Release::replaces : Release::joins);
    else if (replaces)
      detector_.release(word, nullptr, Release::replaces);
  });
  leave_library();
  begin_period();
}

void RankLog::find_others() noexcept {
  others_.clear();
  const auto add = [&](std::size_t first, std::size_t end) { others_.push_back({first, end}); };
  detector_.for_each_in_use(rank_, add);
  simulation_.for_each_joined(rank_, add);
  std::sort(others_.begin(), others_.end(), [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  std::size_t count = 0;
  for (const Stretch& stretch : others_) {
    if (count > 0 && stretch.first <= others_[count - 1].end)
      others_[count - 1].end = std::max(others_[count - 1].end, stretch.end);
    else
      others_[count++] = stretch;
  }
  others_.resize(count);
}

}  // namespace tranship
