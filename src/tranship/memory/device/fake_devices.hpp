// Detail: FakeDevices, the options of devices without hardware, for tests and for machines without devices. Their
// memory is host memory that is counted per device, and only their own streams may touch it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tranship {

/// When a fake device runs its work.
enum class FakeTiming : std::uint8_t {
  eager,     ///< inside the call that enqueues it
  deferred,  ///< only in waits and Devices::steps(): as late as is legal, in an order drawn from the seed
  threaded,  ///< in one thread per stream
};

/// An element of DevicesOptions::kinds.
struct FakeDevices {
  static constexpr std::string_view kind = "fake";
  int count = 0;
  FakeTiming timing = FakeTiming::eager;
  std::uint64_t seed = 1;  ///< for `deferred`
  /// For `threaded`: delay before each piece of work.
  std::int64_t delay_ns = 0;
  /// True: fake devices copy from each other directly. False: they copy through pinned host memory.
  bool reach_each_other = true;
  std::int64_t capacity_bytes = INT64_MAX;  ///< of each memory
  /// By device: the number of pieces of work, counted over all its streams, after which it is lost in the middle of the
  /// next one. Half of the elements of a copy or fill have been written then; a kernel has not run. -1 or missing:
  /// never.
  std::vector<std::int64_t> lost_after = {};
  /// By device: the ordinal of an earlier device whose memory it shares; -1 or missing: a memory of its own.
  std::vector<int> memory_of = {};
};

}  // namespace tranship
