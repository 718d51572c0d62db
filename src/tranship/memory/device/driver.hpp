// Private: Driver, what one kind of device must offer. A new kind implements this, Stream and DeviceSet, and registers
// itself; nothing else changes.
#pragma once

#include <any>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/stream.hpp>

namespace tranship {

/// What a driver has done, for tests and measurements. A device that does not count says 0.
struct DriverCounts {
  std::int64_t launches = 0;          ///< pieces of work that its streams have been given
  std::int64_t pinned_bytes = 0;      ///< that are allocated now
  std::int64_t registered_bytes = 0;  ///< that are registered now
};

/// An array that a device has made by itself, see Driver::make_array.
struct DeviceArray {
  void* lowest = nullptr;       ///< the address of its lowest element, to streams of the device
  std::shared_ptr<void> owner;  ///< with which it goes
};

/// Allocates memory of the host that a device copies from and to at full speed. Thread-safe.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  /// As Driver::allocate.
  virtual void* allocate_pinned(std::size_t size_bytes) = 0;
  virtual void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept = 0;
};

/// One memory. Thread-safe.
class Driver : public PinnedMemory {
 public:
  /// The device whose memory this is; of several that share it, the first.
  virtual Device device() const noexcept = 0;
  /// At least 256-byte aligned, contents arbitrary; null when there is no room. `size_bytes` > 0.
  /// Throws `device_lost`.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void deallocate(void* memory, std::size_t size_bytes) noexcept = 0;
  /// The copy of a buffer, of `count` elements one after the other, for devices whose arrays are more than bytes. Empty
  /// where copies come from a pool that calls allocate(). Throws `no_memory` when there is no room.
  virtual std::optional<DeviceArray> make_array([[maybe_unused]] ElementType type, [[maybe_unused]] Index count) {
    return {};
  }
  /// The host's own, where all of it is like that.
  void* allocate_pinned(std::size_t size_bytes) override;
  void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept override;
  /// Makes memory of the host that others have allocated like that, until what it returns goes: before the memory does.
  /// Null where there is nothing to do, or where the system refuses it, for copies from and to it work without.
  virtual std::shared_ptr<void> register_foreign([[maybe_unused]] void* first,
                                                 [[maybe_unused]] std::size_t size_bytes) {
    return {};
  }
  /// What all that is allocated may have; INT64_MAX where that is not known.
  virtual std::int64_t capacity_bytes() const noexcept { return INT64_MAX; }
  /// Events of it may not be used after it is destroyed; those of Devices::make_stream may.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Whether a stream of this device may copy from and to the memory of `other`. All reach the host.
  virtual bool reaches(Device other) const noexcept = 0;
  /// Whether host code may load and store in this memory by its address.
  virtual bool is_host_memory() const noexcept = 0;
  /// Whether host functions that run on its streams (Stream::run) may.
  virtual bool runs_host_functions() const noexcept { return true; }
  virtual DriverCounts counts() const noexcept { return {}; }
  /// Why the device does no work any more, and what its memory held is gone; empty while it works.
  virtual std::string loss() const { return {}; }
};

/// Pinned memory as a pool takes it. It has no streams.
class PinnedDriver final : public Driver {
 public:
  explicit PinnedDriver(PinnedMemory& memory) : memory_(memory) {}
  Device device() const noexcept override { return Device::host(); }
  void* allocate(std::size_t size_bytes) override { return memory_.allocate_pinned(size_bytes); }
  void deallocate(void* memory, std::size_t size_bytes) noexcept override {
    memory_.deallocate_pinned(memory, size_bytes);
  }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  bool reaches(Device other) const noexcept override { return other.is_host(); }
  bool is_host_memory() const noexcept override { return true; }

 private:
  PinnedMemory& memory_;
};

/// What a set of devices needs of the Devices (devices.hpp) that it belongs to, and outlives.
struct DeviceSetOptions {
  std::int64_t wait_timeout_ns;  ///< as DevicesOptions say
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

/// What this process has of a kind of device, for people.
struct DeviceFamilyState {
  int count = 0;
  std::string note;  ///< one line: the names of the devices, or why there is none
};

/// One kind of device, by the name of its options.
struct DeviceFamily {
  std::string_view kind;
  /// The devices that the kind's options ask for. Throws `invalid_use` where they contradict each other.
  std::unique_ptr<DeviceSet> (*make)(const std::any& kind_options, const DeviceSetOptions& options) = nullptr;
  /// The options for what this process has of the kind, for Devices::standard(); empty where it has none. May throw
  /// `bad_text` for a variable of the environment.
  std::optional<DevicesOfKind> (*standard)() = nullptr;
  /// Null where there is nothing to say. May throw as standard() does.
  DeviceFamilyState (*state)() = nullptr;
};
/// To be called before any other thread runs, as initialisers of static variables are. Throws `invalid_use`, with its
/// name, for a kind that is registered already, and for one that lacks a function.
void register_devices(const DeviceFamily& family);
/// All kinds of this build, in the order of their registration.
std::span<const DeviceFamily> device_families();

}  // namespace tranship
