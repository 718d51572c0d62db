// Private: Driver, what one kind of device must offer. A new kind implements this, Stream and DeviceSet, and registers
// itself; nothing else changes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tranship/memory/device/stream.hpp>

namespace tranship {

/// One memory. Thread-safe.
class Driver {
 public:
  virtual ~Driver() = default;
  /// The device whose memory this is; of several that share it, the first.
  virtual Device device() const noexcept = 0;
  /// At least 256-byte aligned, contents arbitrary; null when there is no room. `size_bytes` > 0.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void deallocate(void* memory, std::size_t size_bytes) noexcept = 0;
  /// What all that is allocated may have; INT64_MAX where that is not known.
  virtual std::int64_t capacity_bytes() const noexcept { return INT64_MAX; }
  /// Events of it may not be used after it is destroyed; those of Devices::make_stream may.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Whether a stream of this device may copy from and to the memory of `other`. All reach the host.
  virtual bool reaches(Device other) const noexcept = 0;
  /// Whether host code may load and store in this memory by its address.
  virtual bool is_host_memory() const noexcept = 0;
  /// Why the device does no work any more, and what its memory held is gone; empty while it works.
  virtual std::string loss() const { return {}; }
};

struct DevicesOptions;

/// What a set of devices needs of the Devices (devices.hpp) that it belongs to, and outlives.
struct DeviceSetOptions {
  const DevicesOptions& all;
  /// A set adds 1 for each device that is lost, before its streams say so (release).
  std::atomic<int>& losses;
};

/// All devices of one kind, of one Devices. It outlives their drivers and streams.
class DeviceSet {
 public:
  virtual ~DeviceSet() = default;
  virtual int count() const noexcept = 0;
  virtual Device device(int ordinal) const noexcept = 0;
  /// One for each device; those of devices that share a memory share what is counted.
  virtual std::unique_ptr<Driver> make_driver(int ordinal) = 0;
  /// The device whose memory this device has: itself, or an earlier one.
  virtual int memory_of(int ordinal) const noexcept { return ordinal; }
  /// Ends what runs streams, whose work is over or lost: they may look at each other until then.
  virtual void stop() noexcept {}
  /// See Devices::steps.
  virtual int steps([[maybe_unused]] int count) { return 0; }
};

/// One kind of device.
struct DeviceFamily {
  /// The devices that the options ask for.
  std::unique_ptr<DeviceSet> (*make)(const DeviceSetOptions& options);
  /// Asks in the options of Devices::standard() for what this process has of the kind. May throw `bad_text` for a
  /// variable of the environment.
  void (*ask_for_standard)(DevicesOptions& options);
};
/// To be called before any Devices is made, as initialisers of static variables are.
void register_devices(const DeviceFamily& family);

}  // namespace tranship
