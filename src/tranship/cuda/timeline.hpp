// Private: Timeline, the points of one stream of a card: which of them are over, and which never will be. Points are
// numbers. A CUevent is recorded when a caller asks for a point, and whether a point is over is asked of the events
// that follow it.
//
// When a card fails, streams of other cards that wait for it may go on as if their waits had ended well; no document
// says whether they do. So the events of a stream do not suffice: a point is over where the work before it has
// completed, and where the events of all other cards that it waits for have been seen to complete by calls that found
// those cards working. A timeline knows what it waits for by way of any streams, so that looking there is one step.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <tranship/base/device.hpp>
#include <tranship/cuda/card.hpp>

namespace tranship::cuda {

/// Thread-safe. Other timelines hold it for as long as they wait for points of it.
class Timeline {
 public:
  Timeline(Card& card, Device device) : card_(card), device_(device) {}
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// The last point: pieces of work that have been given to the stream.
  std::uint64_t given() const noexcept { return given_.load(std::memory_order_acquire); }
  std::uint64_t give() noexcept { return given_.fetch_add(1, std::memory_order_acq_rel) + 1; }

  /// Records an event for a point, or for a later one. Returns false where there is one. `stream` is the timeline's.
  bool record(CUstream stream, std::uint64_t point);

  /// Asks the events whether the stream's own work before a point has completed, while the card worked.
  bool has_passed(std::uint64_t point);
  /// The last point that is known to be over.
  std::uint64_t over() const noexcept { return over_.load(std::memory_order_acquire); }
  /// Asks the events, those of the other cards among them.
  bool is_over(std::uint64_t point);
  /// The device because of whose loss a point is never over, though the own card works.
  std::optional<Device> lost_wait(std::uint64_t point);

  /// Lets `stream` of the card `waiting` wait for a point, for which an event has been recorded. Returns false where
  /// there is none.
  bool hold_back(Card& waiting, CUstream stream, std::uint64_t point);
  /// From the next point on, the work of this timeline comes after a point of another one.
  void follow(const std::shared_ptr<Timeline>& other, std::uint64_t point);
  /// The stream is gone: no caller will ask what it waits for.
  void end();

 private:
  struct Record {
    std::uint64_t point;
    CUevent event;
  };
  /// Points from `from` on are not over before `point` of another timeline is.
  struct Wait {
    std::uint64_t from;
    std::uint64_t point;
  };
  /// The waits for the stream of another card. Both numbers rise.
  struct Followed {
    std::shared_ptr<Timeline> on;
    std::deque<Wait> waits;
  };
  struct Open {
    std::shared_ptr<Timeline> on;
    Wait wait;
  };

  std::unique_lock<std::mutex> locked();
  void ask();
  void forget_passed();
  std::optional<std::vector<Open>> open_waits(std::uint64_t point);

  Card& card_;
  Device device_;
  std::atomic<std::uint64_t> given_ = 0, over_ = 0;
  /// The last point before which the stream's own work has completed.
  std::atomic<std::uint64_t> passed_ = 0;

  std::mutex mutex_;  // of what follows
  std::deque<Record> records_;
  std::vector<CUevent> free_events_;
  std::vector<Followed> followed_;
};

}  // namespace tranship::cuda
