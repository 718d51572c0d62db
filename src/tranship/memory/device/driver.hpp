// Private: Driver, the seam for one kind of device. A new kind implements Driver, Stream (stream.hpp) and DeviceSet,
// and calls register_devices; nothing else changes. host_device.hpp and fake_device.hpp are the models.
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

class Pool;

/// Counts for tests and measurements. A driver that does not count returns 0.
struct DriverCounts {
  std::int64_t launches = 0;          ///< pieces of work enqueued on its streams
  std::int64_t pinned_bytes = 0;      ///< allocated now
  std::int64_t registered_bytes = 0;  ///< registered now
};

/// An array that a device has made itself, see Driver::make_array.
struct DeviceArray {
  void* lowest = nullptr;       ///< address of the lowest element, for streams of the device
  std::shared_ptr<void> owner;  ///< keeps the array alive
};

/// Allocates host memory that a device copies from and to at full speed. Thread-safe.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  /// Same contract as Driver::allocate.
  virtual void* allocate_pinned(std::size_t size_bytes) = 0;
  virtual void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept = 0;
};

/// One memory. Thread-safe.
class Driver : public PinnedMemory {
 public:
  /// The device of this memory; the first one, where several share it.
  virtual Device device() const noexcept = 0;
  /// Returns memory that is at least 256-byte aligned, with arbitrary contents; null when there is no room.
  /// `size_bytes` > 0. Throws `device_lost`.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void deallocate(void* memory, std::size_t size_bytes) noexcept = 0;
  /// A pool that keeps memory of this driver comes or goes. Drivers whose memory others use as well may trim it.
  virtual void add(Pool&) {}
  virtual void remove(Pool&) noexcept {}
  /// Makes an array of `count` consecutive elements as the copy of a buffer, on devices whose arrays are more than
  /// bytes. Returns nothing on devices whose copies come from a pool, through allocate(). Throws `no_memory` when there
  /// is no room.
  virtual std::optional<DeviceArray> make_array([[maybe_unused]] ElementType type, [[maybe_unused]] Index count) {
    return {};
  }
  /// By default plain host memory, for devices that copy from all of it at full speed.
  void* allocate_pinned(std::size_t size_bytes) override;
  void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept override;
  /// Pins host memory that others have allocated, until the returned owner goes, which must be before the memory does.
  /// Returns null where there is nothing to do or the system refuses, because copies work without.
  virtual std::shared_ptr<void> register_foreign([[maybe_unused]] void* first,
                                                 [[maybe_unused]] std::size_t size_bytes) {
    return {};
  }
  /// Says why memory that others have allocated is none of this device's; empty where it is, as far as the device
  /// knows.
  virtual std::string why_not_foreign([[maybe_unused]] const void* first,
                                      [[maybe_unused]] std::size_t size_bytes) const {
    return {};
  }
  /// Returns true when an address is of this device's memory and host code must not use it, as far as the device knows.
  virtual bool has_memory_at([[maybe_unused]] const void* address) const noexcept { return false; }
  /// Limit of the sum of all allocations; INT64_MAX where it is not known.
  virtual std::int64_t capacity_bytes() const noexcept { return INT64_MAX; }
  /// Says, for people, what memory the device has left, which other programs use as well; empty where it is not known.
  virtual std::string memory_left() const { return {}; }
  /// Events of the stream are invalid after it is destroyed; those of a stream from Devices::make_stream stay valid.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Returns true when a stream of this device may copy from and to the memory of `other`. Every device reaches the
  /// host.
  virtual bool reaches(Device other) const noexcept = 0;
  /// Returns true when host code may load and store in this memory by its address.
  virtual bool is_host_memory() const noexcept = 0;
  /// Returns true when host functions on its streams (Stream::run) may load and store in this memory.
  virtual bool runs_host_functions() const noexcept { return true; }
  virtual DriverCounts counts() const noexcept { return {}; }
  /// Why the device is lost: it does no more work and its memory is gone. Empty while it works.
  virtual std::string loss() const { return {}; }
};

/// Presents pinned memory as a Driver, for a Pool. It has no streams.
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

/// The part of a Devices (devices.hpp) that its DeviceSets use. The Devices outlives them.
struct DeviceSetOptions {
  std::int64_t wait_timeout_ns;  ///< DevicesOptions::wait_timeout_ns
  /// The set adds 1, with release order, for each device that is lost, before its streams report the loss.
  std::atomic<int>& losses;
};

/// All devices of one kind in one Devices. It outlives their drivers and streams.
class DeviceSet {
 public:
  virtual ~DeviceSet() = default;
  virtual int count() const noexcept = 0;
  virtual Device device(int ordinal) const noexcept = 0;
  /// Makes the driver of one device. Drivers of devices that share a memory share the count of what is allocated.
  virtual std::unique_ptr<Driver> make_driver(int ordinal) = 0;
  /// The ordinal of the device whose memory this device uses: itself, or an earlier one.
  virtual int memory_of(int ordinal) const noexcept { return ordinal; }
  /// Stops the threads that run streams. Their work has completed or is lost; until this call they may look at each
  /// other.
  virtual void stop() noexcept {}
  /// See Devices::steps.
  virtual int steps([[maybe_unused]] int count) { return 0; }
};

/// A description, for people, of what this process has of a kind.
struct DeviceFamilyState {
  int count = 0;
  std::string note;  ///< one line: the names of the devices, or why there are none
};

/// A registered kind of device.
struct DeviceFamily {
  std::string_view kind;
  /// Makes the devices that the options ask for. Throws `invalid_use` where options contradict each other.
  std::unique_ptr<DeviceSet> (*make)(const std::any& kind_options, const DeviceSetOptions& options) = nullptr;
  /// Returns options for all devices of the kind in this process, for Devices::standard(); nothing where there are
  /// none. Throws `bad_text` for an invalid environment variable.
  std::optional<DevicesOfKind> (*standard)() = nullptr;
  /// Null where there is nothing to say. Throws what standard() throws.
  DeviceFamilyState (*state)() = nullptr;
};
/// Call before any other thread runs, for instance in the initialiser of a static variable. Throws `invalid_use` for a
/// kind that is already registered and for one that lacks a function.
void register_devices(const DeviceFamily& family);
/// All registered kinds, in the order of their registration.
std::span<const DeviceFamily> device_families();

}  // namespace tranship
