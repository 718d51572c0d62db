// Detail: Devices: all devices of a process with their memories, pools and streams. Buffers belong to one of these.
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

/// The devices of one kind that a Devices is to have: the name under which the kind is registered (driver.hpp), and its
/// options, a struct that has that name as its member `kind`. FakeDevices (fake_devices.hpp) is one.
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
  /// Beside the host, in the order in which they are listed.
  std::vector<DevicesOfKind> kinds = {};
  /// The timeout of waits that no caller gives a deadline: those of streams where work is over when it has been given,
  /// of pools, and of destructors.
  std::int64_t wait_timeout_ns = 30'000'000'000;
};

class Devices {
 public:
  /// Throws `invalid_use` for options that contradict each other, for a kind that this build does not have, and for
  /// more than 64 memories.
  explicit Devices(const DevicesOptions& options = {});
  /// Finishes the work of all streams first, but for what is lost. Work that hangs keeps what it may use, for good.
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  /// The process's own: the host, and what this process has of each kind: as many fake devices as the environment
  /// variable TRANSHIP_FAKE_DEVICES says. Never destroyed. Throws `bad_text` when that is not a number.
  static Devices& standard();

  /// Adds devices; buffers that were made before can be on them, too. Thread-safe. Throws what the constructor throws,
  /// and `invalid_use` for a device that is there; then nothing is added.
  void add(const DevicesOfKind& devices);

  int memory_count() const noexcept;
  /// Where the work of a device belongs. Throws `invalid_use` for a device that is not there, naming those that are.
  struct Place {
    MemoryId memory = 0;
    Stream* stream = nullptr;  ///< see stream()
  };
  Place place(Device device) const;
  MemoryId memory_of(Device device) const { return place(device).memory; }
  /// The device by which a memory is called.
  Device device_of(MemoryId memory) const noexcept;
  std::vector<Device> list() const;

  /// The kind of device whose memory this is: "host", "fake".
  std::string_view kind_of(MemoryId memory) const noexcept;

  Driver& driver(MemoryId memory) const noexcept;
  Pool& pool(MemoryId memory) const noexcept;
  /// Memory of the host that this memory's devices copy from and to at full speed.
  Pool& pinned_pool(MemoryId memory) const noexcept;
  /// The stream of a device that is used when none is named, and the one on which buffers copy. The host's are one, on
  /// which work is over when it has been given. Another one after it has been lost with another device.
  Stream& stream(Device device) const { return *place(device).stream; }
  Stream& copy_stream(MemoryId memory) const;
  /// One of its own, to be destroyed before this. Its events stay valid after it; what did the work is used again.
  std::unique_ptr<Stream> make_stream(Device device) const;
  /// False for a stream of other Devices, whose devices may have the same names. True for one that was made without
  /// any.
  bool has(const Stream& stream) const noexcept { return !stream.home() || stream.home() == state_.get(); }

  /// The ledger of all copies of all buffers that belong here.
  CopyLedger& ledger() const noexcept;
  /// All buffers that belong here.
  Residents& residents() const noexcept;

  /// How many devices have been lost until now, see Driver::loss.
  const std::atomic<int>& losses() const noexcept;

  /// Of `deferred` fakes: runs up to `count` pieces of work that may run, drawn from the seed. Returns how many ran.
  int steps(int count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
