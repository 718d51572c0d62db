// Detail: FakeDevices, the options of devices without hardware: for tests, and for machines that have no other. Their
// memory is the host's, but counted apart, and only their own streams may touch it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tranship {

/// When the work of a fake device happens.
enum class FakeTiming : std::uint8_t {
  eager,     ///< at once, in the calling thread
  deferred,  ///< only when it is waited for, or at steps(): as late as is legal, in an order drawn from the seed
  threaded,  ///< in a thread for each stream
};

/// An element of DevicesOptions::kinds.
struct FakeDevices {
  static constexpr std::string_view kind = "fake";
  int count = 0;
  FakeTiming timing = FakeTiming::eager;
  std::uint64_t seed = 1;  ///< of `deferred`
  /// Of `threaded`: each piece of work begins this much later.
  std::int64_t delay_ns = 0;
  /// Whether fake devices may copy from each other; without, they go through pinned memory of the host.
  bool reach_each_other = true;
  std::int64_t capacity_bytes = INT64_MAX;  ///< of each
  /// By device: after so many pieces of work, on all its streams, it is lost in the middle of the next one. After a
  /// copy or a fill half of the elements have been written then, and a kernel has not run. -1 or missing: never.
  std::vector<std::int64_t> lost_after = {};
  /// Devices (ordinal, of an earlier one) that have no memory of their own; -1 or missing: its own.
  std::vector<int> memory_of = {};
};

}  // namespace tranship
