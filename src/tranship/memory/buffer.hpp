// Buffer: one array of cells that many devices share. A copy between memories happens only when a stale copy is read.
//
// A buffer has at most one copy in each memory, which it allocates when the first lease there opens. It tracks, region
// by region, which copies hold the last value. All access is by leases: a lease names a memory, an intent and a region.
// Opening it makes the copies that the intent needs and no others; closing it commits what was written. The glossary is
// docs/concepts.md, the implementation is in buffer/.
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

/// When a buffer gives back its copy on a device.
enum class Residency : std::uint8_t {
  keep,     ///< on drop() or evict(), or when the memory is full and the copy is clean and the least recently used
  release,  ///< also at the end of the innermost Offload scope in which the buffer was used on that device
};

/// Debugging checks beyond conflicting leases, which are always detected. Every level but `none` waits for devices at
/// every lease.
enum class Checks : std::uint8_t {
  by_environment,  ///< the variable TRANSHIP_CHECKS: none, poison, checksums or guard; `none` where it is not set
  none,
  poison,  ///< fills stale copies, and regions that a write lease opens, with NaNs or 0xdead, and reports cells that a
           ///< write lease leaves unwritten (not for integers of 1 and 2 bytes, which have no spare value)
  checksums,  ///< also compares copies, to find writes without a lease and writes under a read lease
  /// Also stops host code that touches a copy on the host without a lease, or writes one under read leases: it reports
  /// the broken rule on stderr and ends by SIGSEGV. The copy has pages of its own, and a lease opens and closes all of
  /// them, whatever its region. Foreign memory is not guarded. The first such buffer installs a signal handler that
  /// passes on faults that are not its own; a handler that the program installs later must do so, too.
  guard,
};

struct BufferOptions {
  std::string name = "buffer";
  Contents contents = Contents::zeros;
  Residency residency = Residency::keep;
  Checks checks = Checks::by_environment;
  Devices* devices = nullptr;  ///< must outlive the buffer; null: Devices::standard()
};

/// How much of a region is valid in a memory.
enum class CopyState : std::uint8_t {
  unallocated,  ///< the memory has no copy
  stale,        ///< no cell of the region holds its last value
  partly_valid,
  valid,
};
const char* name_of(CopyState state);

/// The device of this thread's innermost Offload; the host where there is none.
Device current_device() noexcept;

/// A std::optional whose default constructor leaves the value uninitialised. Without it, GCC clears all of an Access
/// first, which takes as long as half a lease.
template <class T>
struct Optional : std::optional<T> {
  using std::optional<T>::optional;
  Optional() noexcept {}  // NOLINT(modernize-use-equals-default)
  Optional(std::optional<T> value) : std::optional<T>(std::move(value)) {}
};

/// The memory, stream, cause and region of an access. A default Access uses the stream's device or else
/// current_device(), that device's own stream, and the whole buffer.
struct Access {
  /// The stream on which kernels will use the lease. It must belong to a device with that memory and to the buffer's
  /// Devices, else opening throws `invalid_use`. Null: the device's own stream.
  Stream* stream = nullptr;
  Device device = stream ? stream->device() : current_device();
  /// The cause that the ledger records for the copies of this access, and for later copies of what it writes. Empty:
  /// first touch or stale.
  Optional<Cause> cause;
  Optional<Region> region;  // last, because GCC would clear it elsewhere

  static Access whole() {
    Access here;  // Access() would clear all members first
    return here;
  }
};

class Buffer;
namespace detail {
struct BufferState;
enum class Constness : bool { changeable, constant };
}  // namespace detail

/// Access to a region of a buffer in one memory, for as long as the lease is open. Buffer opens leases; they can be
/// moved but not copied. Closing (or destroying) a lease commits what was written. A close costs about as much as
/// opening a lease that copies nothing; it copies nothing, does not wait (except with Checks) and never throws. A lease
/// that an exception destroys is abandoned instead. A lease keeps its buffer alive. Any thread may use and close it,
/// one at a time.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  /// Returns true while the lease is open.
  explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Ends the access. The commit covers all work that the lease's stream has been given so far. A second call does
  /// nothing.
  void close() noexcept;
  /// Ends the access without a commit. Cells that it may have written have no value in any memory until they are
  /// written again; reading them throws an error that names this lease. A read lease is just closed.
  void abandon() noexcept;

  Device device() const noexcept { return device_; }
  Intent intent() const noexcept { return intent_; }
  /// The stream for kernels that use the lease. On the host, work has completed when the call that enqueues it returns.
  Stream& stream() const noexcept { return *stream_; }
  /// The whole copy, with the buffer's extents and strides. The caller may touch only the region, and only as the
  /// intent allows. Only work on stream() may touch a device's memory; the host's may be touched at once. Throws
  /// `invalid_use` when the lease is closed.
  StridedView view() const;
  /// Pointer to the first element of the whole copy. Throws `mismatch` when T is not the buffer's type, and
  /// `invalid_use` when the lease is closed or a read lease is asked for a T that is not const.
  template <class T>
  T* data() const {
    return static_cast<T*>(data_as(element_type_of<std::remove_const_t<T>>,
                                   std::is_const_v<T> ? detail::Constness::constant : detail::Constness::changeable));
  }

  /// Announces that pointers into this memory's copy will outlive the lease, in code that cannot be told to drop them.
  /// After the lease ends, every use of the buffer compares the copy, as with Checks::checksums, and throws when it was
  /// written through such a pointer. Each comparison reads the whole copy. Throws `invalid_use` when the lease is
  /// closed.
  void note_pointers();
  /// Announces that all pointers noted for any copy of the buffer are gone.
  void forget_pointers() noexcept;

 private:
  friend class Buffer;
  friend struct detail::BufferState;
  void* data_as(ElementType type, detail::Constness constness) const;

  detail::BufferState* state_ = nullptr;  // lives as long as a lease is open
  void* data_ = nullptr;
  Stream* stream_ = nullptr;
  Device device_;
  Intent intent_ = Intent::read;
  std::int8_t exceptions_ = 0;  // uncaught exceptions when the lease was opened
  int slot_ = -1;               // index among the buffer's open leases
};

/// A handle: its copies refer to one buffer. Thread-safe: accesses of several threads are leases like any others. All
/// calls are local to the process; none is collective.
///
/// Costs: a buffer allocates its copy in a memory, from a pool, when the first lease there opens. A lease that copies
/// nothing takes some 40 to 60 ns plus about the logarithm of the number of regions in different states, and allocates
/// nothing. A lease that copies enqueues the copies on streams, with one ledger entry each; predict() lists them. A
/// lease on the host waits for these copies, and for devices that still work on the cells, for up to 60 s. A lease on a
/// device does not wait: its stream does.
///
/// Devices (BufferOptions::devices) must outlive the buffer. A failed call has no effect except for copies already
/// made.
class Buffer {
 public:
  /// A row-major buffer. Allocates no memory for cells. Throws `invalid_use` for a negative extent, and `overflow`.
  Buffer(ElementType type, const Indices& extents, const BufferOptions& options = {});
  /// Adopts foreign memory as the copy in the memory of `view.device`, valid as it is. The memory must stay until the
  /// buffer and all duplicates that share it are gone; `owner` is kept until then. Copies in other memories have the
  /// same strides, gaps included. Throws `unsupported` for split complex views, and `invalid_use` for null data, a
  /// device that is not there, and memory that the driver of a card says is not of `view.device`.
  static Buffer import(const StridedView& view, const BufferOptions& options = {},
                       std::shared_ptr<void> owner = nullptr);
  /// Like import(), for memory that holds zeros. As in a buffer that has never been written, other memories are filled
  /// with zeros of their own, without copies.
  static Buffer import_zeros(const StridedView& view, const BufferOptions& options = {},
                             std::shared_ptr<void> owner = nullptr);

  ElementType type() const noexcept;
  const Indices& extents() const noexcept;
  const Indices& strides() const noexcept;
  const std::string& name() const noexcept;
  Devices& devices() const noexcept;

  /// These four open a lease: they make the copies that it needs, and return when the host, or the lease's stream, may
  /// use it. Readers may share a region; a writer needs it alone; several memories may accumulate in it, one lease
  /// each, with the same combination. Throws
  /// - `invalid_use` when an open lease conflicts (with both call sites), when the region leaves the buffer, for a
  ///   write to a frozen buffer, for a read of cells that have no value, and for copies that an open NoImplicitCopies
  ///   or ByteBudget forbids;
  /// - `no_memory` when the device is full and no copy can leave it;
  /// - `timeout` when the host has waited too long;
  /// - `device_lost` when the device is lost, or a value that only a lost device held is needed.
  Lease read(const Access& access = Access::whole(), CallSite where = CallSite::here()) const;
  Lease write(const Access& access = Access::whole(), CallSite where = CallSite::here());
  Lease read_write(const Access& access = Access::whole(), CallSite where = CallSite::here());
  Lease accumulate(Combine combine, const Access& access = Access::whole(), CallSite where = CallSite::here());

  /// Enqueues the copies that a read would make and does not wait for them. Their cause is `prefetch`. Throws what
  /// opening a lease throws.
  void prefetch(const Access& access = Access::whole(), CallSite where = CallSite::here()) const;
  /// Lists the copies that opening such a lease would make now. Changes nothing; allocates the list. Throws where
  /// opening would refuse the request, but does not ask NoImplicitCopies and ByteBudget.
  std::vector<CopyRecord> predict(Intent intent, const Access& access = Access::whole(),
                                  CallSite where = CallSite::here()) const;
  /// Describes in words the state of every memory and what predict() says, an error included.
  std::string explain(Intent intent = Intent::read, const Access& access = Access::whole(),
                      CallSite where = CallSite::here()) const;

  /// The state of the whole buffer, or of a region, in the memory of a device. Changes nothing. Throws `invalid_use`
  /// for a device that is not there.
  CopyState state(Device device) const;
  CopyState state(Device device, const Region& region) const;
  Region valid(Device device) const;
  /// A number that grows exactly when the values may have changed: when a lease that writes, reads and writes, or
  /// accumulates is closed, and with invalidate(). Copies, and merges of what was accumulated, do not change it.
  std::uint64_t version() const;

  /// Announces that these cells have changed where the buffer cannot see it: on another rank, in a file. No copy of
  /// them stays valid, and reading them throws `invalid_use` until they are written. Throws `invalid_use` while a lease
  /// on some of them is open, and when the buffer is frozen.
  void invalidate(const Region& region, CallSite where = CallSite::here());

  /// Forbids all further writes: leases that would write throw `invalid_use`. Throws `invalid_use` while such a lease
  /// is open.
  void freeze(CallSite where = CallSite::here());
  bool is_frozen() const;

  /// A buffer with the same values, not frozen. It shares all copies until one of the two buffers changes its copy in a
  /// memory. Then that memory makes a copy of its own, without the cells that are overwritten, so that no value has to
  /// come from another memory again. Throws `invalid_use` while a lease that writes is open.
  Buffer duplicate(CallSite where = CallSite::here()) const;
  /// A buffer of the same shape, strides, type and options that has never been written.
  Buffer duplicate_empty() const;

  /// Throws `invalid_use` for what Checks have found: at the close of a lease, and in copies that were changed without
  /// one. Each finding is thrown once, by check() or by the next access.
  void check(CallSite where = CallSite::here()) const;

  /// Returns the copy in a device's memory to its pool. drop() throws `invalid_use` when that would lose a value;
  /// evict() first copies such values to the host, and throws `invalid_use` for the host's own copy. Both throw
  /// `invalid_use` while a lease is open there. Both do nothing where there is no copy.
  void drop(Device device, CallSite where = CallSite::here());
  void evict(Device device, CallSite where = CallSite::here());

 private:
  explicit Buffer(std::shared_ptr<detail::BufferState> state) : state_(std::move(state)) {}
  static Buffer import_as(std::uint64_t version, const StridedView& view, const BufferOptions& options,
                          std::shared_ptr<void> owner);
  std::shared_ptr<detail::BufferState> state_;
};

/// While an Offload lives, accesses of this thread that name no device use this one. Scopes nest and restore the outer
/// device; they copy nothing themselves. The end of a scope evicts copies of buffers with Residency::release. The
/// thread that made it must destroy it.
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
  std::vector<std::weak_ptr<detail::BufferState>> used_;  // on this device, with Residency::release
};

}  // namespace tranship
