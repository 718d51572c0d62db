// Detail: Devices, the devices of a process with their memories, pools and streams. Each buffer belongs to one Devices.
#pragma once

#include <any>
#include <atomic>
#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tranship/base/device.hpp>
#include <tranship/memory/device/stream.hpp>
#include <tranship/memory/ledger.hpp>

namespace tranship {

class Driver;
class Pool;
class Residents;

/// A request for the devices of one kind. `Options` is the kind's own struct, whose member `kind` is the name under
/// which the kind is registered (driver.hpp); FakeDevices (fake_devices.hpp) is one.
class DevicesOfKind {
 public:
  template <class Options>
  requires(!std::same_as<std::remove_cvref_t<Options>, DevicesOfKind> &&
           std::convertible_to<decltype(std::remove_cvref_t<Options>::kind), std::string_view>)
      DevicesOfKind(Options&& options)
      : kind_(std::remove_cvref_t<Options>::kind), options_(std::forward<Options>(options)) {}

  std::string_view kind() const noexcept { return kind_; }
  const std::any& options() const noexcept { return options_; }

 private:
  std::string_view kind_;
  std::any options_;
};

struct DevicesOptions {
  /// The devices beside the host, in this order.
  std::vector<DevicesOfKind> kinds = {};
  /// Timeout of waits for which no caller gives a deadline: those of pools, of destructors, and of streams that run
  /// work inside the call that enqueues it.
  std::int64_t wait_timeout_ns = 30'000'000'000;
};

class Devices {
 public:
  /// Throws `invalid_use` for options that contradict each other, for a kind that this build lacks, and for more than
  /// 64 memories.
  explicit Devices(const DevicesOptions& options = {});
  /// Finishes the work of all streams, except lost work. When work hangs until the timeout, everything that it may use
  /// is leaked.
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  /// The process-wide Devices: the host, and all devices of each registered kind. The environment variable
  /// TRANSHIP_FAKE_DEVICES gives the number of fake devices. Never destroyed. Throws `bad_text` when the variable
  /// is not a number.
  static Devices& standard();

  /// Adds devices; existing buffers can use them, too. Thread-safe. Throws what the constructor throws, and
  /// `invalid_use` for a device that is already there; a failed call adds nothing.
  void add(const DevicesOfKind& devices);

  int memory_count() const noexcept;
  /// The memory and the stream of a device. Throws `invalid_use`, with a list of the devices, for one that is not
  /// there.
  struct Place {
    MemoryId memory = 0;
    Stream* stream = nullptr;  ///< see stream()
  };
  Place place(Device device) const;
  MemoryId memory_of(Device device) const { return place(device).memory; }
  /// The device that names a memory: the first of those that share it.
  Device device_of(MemoryId memory) const noexcept;
  std::vector<Device> list() const;

  /// The kind of device that has this memory: "host", "fake", ...
  std::string_view kind_of(MemoryId memory) const noexcept;

  Driver& driver(MemoryId memory) const noexcept;
  Pool& pool(MemoryId memory) const noexcept;
  /// Host memory that the devices of this memory copy from and to at full speed.
  Pool& pinned_pool(MemoryId memory) const noexcept;
  /// stream() is used where a caller names none; copy_stream() is where buffers copy. On the host, work on either has
  /// completed when the call that enqueues it returns. A stream that was lost with another device is replaced by a new
  /// one.
  Stream& stream(Device device) const { return *place(device).stream; }
  Stream& copy_stream(MemoryId memory) const;
  /// A stream for the caller alone, who must destroy it before this Devices. Its events stay valid after it; the stream
  /// behind it is lent again.
  std::unique_ptr<Stream> make_stream(Device device) const;
  /// Returns false for a stream of another Devices, whose devices may have equal names. Returns true for a stream that
  /// was made without any Devices.
  bool has(const Stream& stream) const noexcept { return !stream.home() || stream.home() == state_.get(); }

  /// Records the copies of all buffers of this Devices.
  CopyLedger& ledger() const noexcept;
  /// All buffers of this Devices, for eviction.
  Residents& residents() const noexcept;

  /// Number of devices lost so far, see Driver::loss.
  const std::atomic<int>& losses() const noexcept;

  /// For fake devices with FakeTiming::deferred: runs up to `count` pieces of work that are ready, in an order drawn
  /// from the seed. Returns how many ran.
  int steps(int count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
