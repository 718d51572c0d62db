// Private: devices without hardware, for tests. Their memory is host memory that is counted per device; a stream
// refuses to copy from or to a memory that its device does not reach. FakeTiming says when work runs. Options:
// fake_devices.hpp.
#pragma once

#include <atomic>
#include <memory>

#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/fake_devices.hpp>

namespace tranship {

class FakeMachine final : public DeviceSet {
 public:
  /// Throws `invalid_use` for options that contradict each other.
  FakeMachine(const FakeDevices& fake, const DeviceSetOptions& options);
  ~FakeMachine() override;
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  int count() const noexcept override;
  Device device(int ordinal) const noexcept override { return Device::fake(ordinal); }
  std::unique_ptr<Driver> make_driver(int ordinal) override;
  int memory_of(int ordinal) const noexcept override;
  void stop() noexcept override;
  int steps(int count) override;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

extern const DeviceFamily fake_devices;

}  // namespace tranship
