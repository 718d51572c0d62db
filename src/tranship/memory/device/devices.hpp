// Detail: Devices: all devices of a process with their memories, pools and streams. Buffers belong to one of these.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <tranship/memory/device/stream.hpp>
#include <tranship/memory/ledger.hpp>
#include <tranship/memory/memory_id.hpp>

namespace tranship {

class Driver;
class Pool;
class Residents;

/// When the work of a fake device happens.
enum class FakeTiming : std::uint8_t {
  eager,     ///< at once, in the calling thread
  deferred,  ///< only when it is waited for, or at steps(): as late as is legal, in an order drawn from the seed
  threaded,  ///< in a thread for each stream
};

struct FakeDevices {
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

struct DevicesOptions {
  FakeDevices fake = {};
  /// The timeout of waits that no caller gives a deadline: those of streams where work is over when it has been given,
  /// of pools, and of destructors.
  std::int64_t wait_timeout_ns = 30'000'000'000;
};

class Devices {
 public:
  /// Throws `invalid_use` for options that contradict each other.
  explicit Devices(const DevicesOptions& options = {});
  /// Finishes the work of all streams first, but for what is lost. Work that hangs keeps what it may use, for good.
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  /// The process's own: the host, and as many fake devices as the environment variable TRANSHIP_FAKE_DEVICES says.
  /// Never destroyed. Throws `bad_text` when that is not a number.
  static Devices& standard();

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

  Driver& driver(MemoryId memory) const noexcept;
  Pool& pool(MemoryId memory) const noexcept;
  /// Memory of the host that devices copy from and to at full speed.
  Pool& pinned_pool() const noexcept;
  /// The stream of a device that is used when none is named, and the one on which buffers copy. The host's are one, on
  /// which work is over when it has been given. Another one after it has been lost with another device.
  Stream& stream(Device device) const { return *place(device).stream; }
  Stream& copy_stream(MemoryId memory) const;
  /// One of its own, to be destroyed before this. Its events stay valid after it; what did the work is used again.
  std::unique_ptr<Stream> make_stream(Device device) const;

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
