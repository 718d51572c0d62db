#include "tranship/cuda/timeline.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <tranship/base/fail.hpp>

namespace tranship::cuda {
namespace {

void raise_to(std::atomic<std::uint64_t>& value, std::uint64_t least) {
  std::uint64_t now = value.load(std::memory_order_relaxed);
  while (now < least && !value.compare_exchange_weak(now, least, std::memory_order_acq_rel)) {
  }
}

}  // namespace

Timeline::~Timeline() {
  if (card_.is_lost()) return;
  const Current current(card_, std::nothrow);
  for (const Record& one : records_) card_.calls().cuEventDestroy(one.event);
  for (const CUevent event : free_events_) card_.calls().cuEventDestroy(event);
}

/// Who has the lock may be in a call that does not return before the host function does: there, the lock may not be
/// had.
std::unique_lock<std::mutex> Timeline::locked() {
  return is_in_host_function ? std::unique_lock(mutex_, std::try_to_lock) : std::unique_lock(mutex_);
}

/// Under the lock. Asks the events which points have passed.
void Timeline::ask() {
  if (records_.empty() || card_.is_lost()) return;
  const Current current(card_, std::nothrow);
  while (!records_.empty()) {
    const CUresult state = card_.calls().cuEventQuery(records_.front().event);
    if (state != CUDA_SUCCESS) {
      // In a host function, what is not over is not allowed to be asked for.
      if (state != CUDA_ERROR_NOT_READY && !is_in_host_function) card_.note(state, "cuEventQuery");
      return;
    }
    raise_to(passed_, records_.front().point);
    free_events_.push_back(records_.front().event);
    records_.pop_front();
  }
}

bool Timeline::record(CUstream stream, std::uint64_t point) {
  const std::lock_guard lock(mutex_);
  const bool has_event = !records_.empty() && records_.back().point >= point;
  if (has_event || point <= passed_.load(std::memory_order_acquire)) return false;
  const Current current(card_);
  ask();
  CUevent event;
  if (free_events_.empty()) {
    TRANSHIP_CUDA_CALL(card_, cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  } else {
    event = free_events_.back();
    free_events_.pop_back();
  }
  const std::uint64_t last = given();
  try {
    TRANSHIP_CUDA_CALL(card_, cuEventRecord, event, stream);
  } catch (...) {
    free_events_.push_back(event);
    throw;
  }
  records_.push_back({last, event});
  return true;
}

bool Timeline::has_passed(std::uint64_t point) {
  if (point <= passed_.load(std::memory_order_acquire)) return true;
  const std::unique_lock lock = locked();
  if (lock) ask();
  return point <= passed_.load(std::memory_order_acquire);
}

bool Timeline::is_over(std::uint64_t point) {
  if (point <= over()) return true;
  if (!has_passed(point)) return false;
  // The work that has completed by now: it may have gone on from a wait only because another card has failed.
  std::uint64_t last = passed_.load(std::memory_order_acquire);
  const std::optional<std::vector<Open>> open = open_waits(last);
  if (!open) return false;
  for (const Open& one : *open) last = std::min(last, one.wait.from - 1);
  raise_to(over_, last);
  return point <= last;
}

/// Under the lock. Forgets the waits that have passed.
void Timeline::forget_passed() {
  for (Followed& one : followed_) {
    const std::uint64_t passed = one.on->passed_.load(std::memory_order_acquire);
    while (!one.waits.empty() && one.waits.front().point <= passed) one.waits.pop_front();
  }
  std::erase_if(followed_, [](const Followed& one) { return one.waits.empty(); });
}

/// The first wait for each other timeline that has not passed, of those of points up to `point`. Nothing where the lock
/// may not be had.
std::optional<std::vector<Timeline::Open>> Timeline::open_waits(std::uint64_t point) {
  std::vector<Open> all;
  const auto collect = [&] {
    all.clear();
    const std::unique_lock lock = locked();
    if (!lock) return false;
    forget_passed();
    for (const Followed& one : followed_)
      if (one.waits.front().from <= point) all.push_back({one.on, one.waits.front()});
    return true;
  };
  if (!collect()) return {};
  // Another timeline is asked without this lock: it may be asking this one.
  bool is_newer = false;
  for (const Open& one : all) is_newer |= one.on->has_passed(one.wait.point);
  if (is_newer && !collect()) return {};
  return all;
}

std::optional<Device> Timeline::lost_wait(std::uint64_t point) {
  const std::optional<std::vector<Open>> open = open_waits(point);
  if (!open) return {};
  const auto lost = std::find_if(open->begin(), open->end(), [](const Open& one) { return one.on->card_.is_lost(); });
  return lost == open->end() ? std::nullopt : std::optional(lost->on->device_);
}

bool Timeline::hold_back(Card& waiting, CUstream stream, std::uint64_t point) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(records_.begin(), records_.end(), [&](const Record& one) { return one.point >= point; });
  if (at == records_.end()) return point <= passed_.load(std::memory_order_acquire);
  const Current current(waiting);
  const CUresult result = waiting.calls().cuStreamWaitEvent(stream, at->event, 0);
  // The error may be that of the card which is waited for.
  if (result != CUDA_SUCCESS && card_.note(card_.calls().cuEventQuery(at->event), "cuEventQuery"))
    throw_error(ErrorCode::device_lost, "{}", card_.loss());
  waiting.check(result, "cuStreamWaitEvent");
  return true;
}

void Timeline::follow(const std::shared_ptr<Timeline>& other, std::uint64_t point) {
  std::vector<std::pair<std::shared_ptr<Timeline>, std::uint64_t>> all = {{other, point}};
  {
    // The other one's own waits before the point: those for one timeline rise, so the last is enough.
    const std::lock_guard lock(other->mutex_);
    for (const Followed& one : other->followed_) {
      const auto last =
          std::find_if(one.waits.rbegin(), one.waits.rend(), [&](const Wait& wait) { return wait.from <= point; });
      if (last != one.waits.rend()) all.emplace_back(one.on, last->point);
    }
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t from = given() + 1;
  for (const auto& [on, wanted] : all) {
    if (&on->card_ == &card_) continue;  // where the own card fails, all is lost
    auto at = std::find_if(followed_.begin(), followed_.end(),
                           [&timeline = on](const Followed& one) { return one.on == timeline; });
    if (at == followed_.end()) at = followed_.insert(at, {on, {}});
    if (at->waits.empty() || at->waits.back().point < wanted) at->waits.push_back({from, wanted});
  }
  forget_passed();
}

void Timeline::end() {
  if (is_forked.load(std::memory_order_relaxed)) return;  // Another thread may have had the lock.
  const std::lock_guard lock(mutex_);
  followed_.clear();
}

}  // namespace tranship::cuda
