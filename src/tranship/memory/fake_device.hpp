// Private: devices without hardware, for tests. Their memory is the host's, but counted apart, and a stream refuses to
// copy from or to the memory of a device that it does not reach. When work happens is one of FakeTiming.
#pragma once

#include <atomic>
#include <memory>

#include <tranship/memory/devices.hpp>
#include <tranship/memory/driver.hpp>

namespace tranship {

/// All fake devices of one Devices. Outlives their drivers and streams.
class FakeMachine {
 public:
  /// Throws `invalid_use` for options that contradict each other.
  FakeMachine(const FakeDevices& options, std::int64_t wait_timeout_ns);
  ~FakeMachine();
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  /// One for each device; those of devices that share a memory share what is counted.
  std::unique_ptr<Driver> make_driver(int ordinal);
  /// The device whose memory this device has.
  int memory_of(int ordinal) const noexcept;
  /// Ends all threads of streams, whose work must be over or lost: they may look at each other's streams until then.
  void stop() noexcept;
  /// See Devices::losses.
  const std::atomic<int>& losses() const noexcept;
  /// See Devices::steps.
  int steps(int count);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tranship
