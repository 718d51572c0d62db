// Buffer: one array of cells on many devices, copied only when a stale copy is read.
//
// A buffer has at most one copy in each memory, made when it is first needed. For every region it knows which copies
// hold its last value. Access is by leases: a lease names a memory, an intent and a region; opening one makes the
// copies that the intent needs and no others; closing one commits what was written.
//
//              host        fake:0      fake:1          read(fake:1, whole) copies [4,8) from fake:0, because
//   [0,4)      valid       stale       valid           fake:1 is stale there since a write on fake:0, and
//   [4,8)      stale       valid       stale           nothing else
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/combine.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/fake_devices.hpp>
#include <tranship/memory/intent.hpp>
#include <tranship/memory/region.hpp>

namespace tranship {

/// When a copy leaves a device.
enum class Residency : std::uint8_t {
  keep,     ///< when it is dropped or evicted by name, or a memory is full and it is clean and the least recently used
  release,  ///< when the innermost Offload scope in which it was used on that device ends
};

/// What is looked for beyond leases that conflict. Everything but `none` waits for devices at every lease.
enum class Checks : std::uint8_t {
  by_environment,  ///< as the variable TRANSHIP_CHECKS says: none, poison, checksums, guard; none without it
  none,
  poison,  ///< stale copies, and what a write lease has opened, hold NaNs or 0xdead; what stays so was never written,
           ///< which integers of 1 and 2 bytes do not tell
  checksums,  ///< the same, and copies are compared: writes without a lease, and writes under a lease to read
  /// The same, and host code that touches a copy on the host without a lease, or writes one under leases to read, is
  /// told on stderr which leases are broken, and ends by SIGSEGV. For that the copy has pages of its own, and its
  /// leases open and close all of them, whatever their regions. Foreign memory is not guarded. The first such buffer
  /// installs a handler that passes on what is not its own; one that is installed later must do so, too.
  guard,
};

struct BufferOptions {
  std::string name = "buffer";
  Contents contents = Contents::zeros;
  Residency residency = Residency::keep;
  Checks checks = Checks::by_environment;
  Devices* devices = nullptr;  ///< must outlive the buffer; null is Devices::standard()
};

/// How much of a region a memory holds.
enum class CopyState : std::uint8_t {
  unallocated,  ///< it has no copy
  stale,        ///< nothing of it has the last value
  partly_valid,
  valid,
};
const char* name_of(CopyState state);

/// The device of the innermost Offload of this thread; the host without one.
Device current_device() noexcept;

/// std::optional, with a constructor that keeps GCC from clearing all of an Access first, which would take as long as
/// half a lease.
template <class T>
struct Optional : std::optional<T> {
  using std::optional<T>::optional;
  Optional() noexcept {}  // NOLINT(modernize-use-equals-default)
  Optional(std::optional<T> value) : std::optional<T>(std::move(value)) {}
};

/// Where and what; what is not named is the stream's device or the current one, its own stream, and the whole buffer.
struct Access {
  /// On which kernels will use the lease; of a device with that memory, and of the buffer's Devices. Null: the device's
  /// own.
  Stream* stream = nullptr;
  Device device = stream ? stream->device() : current_device();
  /// What the ledger says of the copies that it makes, and of later ones of what it writes. Empty: first touch or
  /// stale.
  Optional<Cause> cause;
  Optional<Region> region;  // last: else it is cleared

  static Access whole() {
    Access here;  // not Access(), which is cleared first
    return here;
  }
};

class Buffer;
namespace detail {
struct BufferState;
enum class Constness : bool { changeable, constant };
}  // namespace detail

/// Access to a region of a buffer in one memory, while it lives. Opened by Buffer; moves, does not copy. Closing (or
/// destroying) it commits the version of what was written; it takes about as long as opening a lease that copies
/// nothing, copies nothing, does not wait (except with Checks) and never throws. A lease that an exception destroys is
/// abandoned instead. A lease keeps its buffer. It may be used and closed by any one thread at a time.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  /// Whether it is open.
  explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Ends the access: what its stream has been given until now is what the commit covers. Again: nothing happens.
  void close() noexcept;
  /// Ends the access without a commit: what it would have written has no value from now on, in no memory, and needing
  /// it is an error that names this lease, until it is written again. A lease to read is closed.
  void abandon() noexcept;

  Device device() const noexcept { return device_; }
  Intent intent() const noexcept { return intent_; }
  /// Where kernels that use the lease belong. On the host, work is over when it has been given.
  Stream& stream() const noexcept { return *stream_; }
  /// The copy as a whole: of the buffer's extents and strides. Only the region may be touched, and only as the intent
  /// says. A device's memory may be touched by work on stream() alone, the host's at once.
  StridedView view() const;
  /// First element of the whole copy. Throws `mismatch` when T is not the buffer's type, `invalid_use` for a T that is
  /// not const when the intent is read.
  template <class T>
  T* data() const {
    return static_cast<T*>(data_as(element_type_of<std::remove_const_t<T>>,
                                   std::is_const_v<T> ? detail::Constness::constant : detail::Constness::changeable));
  }

  /// Says that pointers into this memory's copy will outlive the lease, in code that cannot be told to drop them. From
  /// its end on, the copy is compared at every use of the buffer, as by Checks::checksums: what is written through them
  /// is an error of that use. Each comparison reads the copy.
  void note_pointers();
  /// Says that none of the pointers are left that have been noted for any copy of the buffer.
  void forget_pointers() noexcept;

 private:
  friend class Buffer;
  friend struct detail::BufferState;
  void* data_as(ElementType type, detail::Constness constness) const;

  detail::BufferState* state_ = nullptr;  // which stays as long as a lease is open
  void* data_ = nullptr;
  Stream* stream_ = nullptr;
  Device device_;
  Intent intent_ = Intent::read;
  std::int8_t exceptions_ = 0;  // that were on their way when it was opened
  int slot_ = -1;               // of the open leases of the buffer
};

/// A handle: copies of it are the same buffer. Thread-safe: accesses of several threads are leases like any others.
/// Everything here is of one process; nothing is collective.
///
/// Costs: a buffer allocates its copy in a memory when the first lease there opens, from a pool. A lease that copies
/// nothing takes some 40 to 60 ns plus about the logarithm of the number of regions in different states, and allocates
/// nothing. A lease that copies gives the copies to streams, each with an entry in the ledger. A lease on the host
/// waits for these copies, and for work of devices on what it reads, up to 60 s; one on a device does not wait: its
/// stream does. What predict() says is what opening copies.
///
/// Devices (BufferOptions::devices) must outlive it. A failed call changes nothing but the copies that it had made.
class Buffer {
 public:
  /// Row-major. Allocates nothing. Throws `invalid_use` for a negative extent, `overflow`.
  Buffer(ElementType type, const Indices& extents, const BufferOptions& options = {});
  /// Takes foreign memory as the copy in the memory of `view.device`, valid as it is. It must stay until the buffer is
  /// gone; `owner` is kept until then. Copies in other memories lie there as it does: a stride that leaves gaps leaves
  /// them there, too. Throws `unsupported` for split complex views.
  static Buffer import(const StridedView& view, const BufferOptions& options = {},
                       std::shared_ptr<void> owner = nullptr);
  /// The same of memory that holds zeros. As in a buffer that has not been written, other memories get zeros of their
  /// own, and none are copied.
  static Buffer import_zeros(const StridedView& view, const BufferOptions& options = {},
                             std::shared_ptr<void> owner = nullptr);

  ElementType type() const noexcept;
  const Indices& extents() const noexcept;
  const Indices& strides() const noexcept;
  const std::string& name() const noexcept;
  Devices& devices() const noexcept;

  /// Opens a lease. Makes the copies that it needs, and returns when the host, or the lease's stream, may use it.
  /// Throws `invalid_use`, with both call sites, when an open lease forbids it (several may read a region, or one write
  /// it; and several memories may accumulate in it, each once), for a region outside, for a write to a frozen buffer,
  /// for a read of cells that have no value, and for copies that an open NoImplicitCopies or ByteBudget forbids;
  /// `no_memory` when the device is full and nothing can leave it; `timeout` where the host has waited too long;
  /// `device_lost` for a device that is lost, and for a value that only it held.
  Lease read(const Access& access = Access::whole(), CallSite where = CallSite::here()) const;
  Lease write(const Access& access = Access::whole(), CallSite where = CallSite::here());
  Lease read_write(const Access& access = Access::whole(), CallSite where = CallSite::here());
  Lease accumulate(Combine combine, const Access& access = Access::whole(), CallSite where = CallSite::here());

  /// Makes the copies that a read would make, without waiting for them; asked for by name. Throws what opening a lease
  /// throws.
  void prefetch(const Access& access = Access::whole(), CallSite where = CallSite::here()) const;
  /// What opening such a lease would copy now. Changes nothing; allocates the list.
  std::vector<CopyRecord> predict(Intent intent, const Access& access = Access::whole(),
                                  CallSite where = CallSite::here()) const;
  /// The same in words, and the state of every memory. Where opening it would throw, the words say what.
  std::string explain(Intent intent = Intent::read, const Access& access = Access::whole(),
                      CallSite where = CallSite::here()) const;

  /// The state of a whole buffer, or of a region, in the memory of a device. Changes nothing.
  CopyState state(Device device) const;
  CopyState state(Device device, const Region& region) const;
  Region valid(Device device) const;
  /// A number that grows exactly when the values may have changed: with every lease that writes, reads and writes, or
  /// accumulates, when it is closed, and with invalidate(). Merging what was accumulated, and copying, change none.
  std::uint64_t version() const;

  /// Says that the value of these cells has changed where this buffer does not see it: on another rank, in a file. No
  /// copy of them is valid, and needing one is an error, until they are written. Throws `invalid_use` while a lease
  /// on some of them is open.
  void invalidate(const Region& region, CallSite where = CallSite::here());

  /// From now on it may not be written: `invalid_use` for leases that would. Open leases that write: `invalid_use`.
  void freeze(CallSite where = CallSite::here());
  bool is_frozen() const;

  /// A buffer with the same values, not frozen. Nothing is copied until one of the two changes its copy in a memory:
  /// then all that it holds there is copied within that memory, but for what is overwritten, so that nothing need come
  /// from another memory again. Leases that write must be closed.
  Buffer duplicate(CallSite where = CallSite::here()) const;
  /// A buffer of the same shape, type and options that has not been written.
  Buffer duplicate_empty() const;

  /// Throws `invalid_use` for what Checks find: at the close of a lease, and in copies that were changed without one.
  /// Every later access does, too, once.
  void check(CallSite where = CallSite::here()) const;

  /// Gives the copy of a device's memory back to its pool. drop() throws `invalid_use` when a value would be lost,
  /// evict() has it copied to the host before. Both throw `invalid_use` when a lease is open there.
  /// Nothing happens where there is no copy.
  void drop(Device device, CallSite where = CallSite::here());
  void evict(Device device, CallSite where = CallSite::here());

 private:
  explicit Buffer(std::shared_ptr<detail::BufferState> state) : state_(std::move(state)) {}
  static Buffer import_as(std::uint64_t version, const StridedView& view, const BufferOptions& options,
                          std::shared_ptr<void> owner);
  std::shared_ptr<detail::BufferState> state_;
};

/// While one exists, accesses of this thread that name no device are on this one. Nests, restores, moves nothing
/// itself; its end releases copies of buffers with Residency::release. To be destroyed by the thread that made it.
class Offload {
 public:
  explicit Offload(Device device);
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

 private:
  friend Device current_device() noexcept;
  friend struct detail::BufferState;
  static void note(const std::shared_ptr<detail::BufferState>& used, Device device);

  Offload* outer_;
  Device device_;
  std::vector<std::weak_ptr<detail::BufferState>> used_;  // on this device, and to be released
};

}  // namespace tranship
