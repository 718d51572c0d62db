// Detail: Stream, a queue of work on a device, and Event, a point in it. This is the seam between the coherence of
// buffers and the devices: all code above it is the same for the host, a fake device and a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <tranship/base/combine.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/device.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/error.hpp>
#include <tranship/kernels/block_move.hpp>

namespace tranship {

class Stream;

/// A point in a stream: all work that was enqueued before it. A plain value. The default event has always completed. An
/// event stays valid as long as the Devices (devices.hpp) of its stream, even when the stream is destroyed.
struct Event {
  Stream* stream = nullptr;
  std::uint64_t number = 0;  ///< pieces of work that had been enqueued
  friend bool operator==(const Event&, const Event&) = default;
};

/// A host function with its captures, which a stream runs as one piece of work. The stream destroys it after it has run
/// and before it counts as completed. An exception in it terminates the program. It may ask whether events have
/// completed, but must not enqueue work or wait.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run() = 0;
};

/// One element of Stream::copy_list, with the arguments of Stream::copy.
struct StreamCopy {
  CopyBlock block;
  int width = 1;
  const void* source = nullptr;
  void* target = nullptr;
};

/// A list of moves that a device has made ready; see Stream::prepare. The Devices of the stream must outlive it.
class PreparedMoves {
 public:
  virtual ~PreparedMoves() = default;
};

/// Work that runs in the order in which it was enqueued. Threads that enqueue at the same time take turns. The
/// destructor finishes the work first.
///
/// When its device is lost, or the stream waits for work that will never complete, all remaining work never completes.
/// Calls that enqueue work or wait for it then throw `device_lost`. Its memory may be used for something else once
/// is_at_rest() says so.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const noexcept = 0;
  /// Identifies the Devices (devices.hpp) of the stream for Devices::has(); null for a stream that was made without
  /// one.
  const void* home() const noexcept { return home_; }

  /// The point after all work enqueued so far. Costs nothing. Its `stream` may be another object that does the work. It
  /// is the default event on streams whose work completes inside the call.
  virtual Event event() = 0;
  /// Work enqueued from now on begins after `event`, which may be of any stream of the same Devices. Does not block the
  /// caller, except on streams whose work completes inside the call.
  virtual void wait(Event event) = 0;
  /// Moves the elements of `block`, `width` bytes each (1, 2, 4, 8 or 16), between memories that the stream's device
  /// reaches. Does not wait for the bytes.
  virtual void copy(const CopyBlock& block, int width, const void* source, void* target) = 0;
  /// Enqueues all these copies, as one piece of work where the device can do that. No copy may write bytes that another
  /// one reads or writes. The list may be destroyed when the call returns.
  virtual void copy_list(std::span<const StreamCopy> copies) {
    for (const StreamCopy& one : copies) copy(one.block, one.width, one.source, one.target);
  }
  /// Makes a list of moves ready to be run many times by streams of this device. No move may write bytes that another
  /// one reads or writes. `alignments[i]` is the power of two that the address of base i usually is a multiple of, at
  /// most 16; on a card, a run with other addresses builds its list anew. A copy has elements of 1, 2, 4, 8 or 16
  /// bytes. A card holds the list in its own memory, or in pinned memory if it is full. Throws `invalid_use` for a base
  /// that has no alignment, and for elements that cannot be mapped so.
  virtual std::shared_ptr<const PreparedMoves> prepare(std::span<const BlockMove> moves,
                                                       std::span<const int> alignments);
  /// Runs such a list with these addresses, one for each base: on a card as one launch for the copies and the maps of
  /// one type of numbers, and one for each further type. A card must reach every base: pageable memory of the host
  /// throws `invalid_use`, as do a list of another device and a wrong number of bases.
  ///
  /// While a stream of a card is captured into a CUDA graph by its native handle, each launch becomes a node of the
  /// graph instead, with these addresses. The graph holds the list; the Devices must outlive the graph. All other calls
  /// that enqueue work throw `invalid_use` on such a stream.
  virtual void move_list(const std::shared_ptr<const PreparedMoves>& moves, std::span<std::byte* const> bases);
  /// Writes one element (null: zeros) to every target position of `block`.
  virtual void fill(const CopyBlock& block, int width, const void* element, void* target) = 0;
  /// target = how(target, source) for each element of `block`, whose strides count bytes and whose elements are whole
  /// ones of `type`. Elements must not overlap. Throws `invalid_use` when elements of the type have no such
  /// combination.
  virtual void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) = 0;
  /// Runs a function on the host, in stream order. It may touch the device's memory only where
  /// Driver::runs_host_functions() is true. Elsewhere, as with GPUs, it may touch only host memory: bring data there
  /// with copy() first; a load or store of device memory ends the process by SIGSEGV.
  virtual void run(std::unique_ptr<Kernel> kernel) = 0;

  /// The device's own handle of this stream, for libraries that enqueue work themselves. For a GPU it is a CUstream of
  /// the card's primary context, and null once the card is lost; event() covers such work from its next call on, in
  /// stream order. For a fake device it is an address that differs between streams; for the host and for devices
  /// written in Python it is null. It is valid as long as this Stream, the caller must not destroy it, and a later
  /// Stream may have it again.
  virtual void* native_handle() noexcept { return nullptr; }

  /// Returns true when all work up to point `number` has completed. Acquire: the caller then sees its bytes.
  virtual bool is_over(std::uint64_t number) = 0;
  /// Blocks the caller until is_over(number). Throws `timeout`, with both numbers, when the deadline passes first, and
  /// `device_lost` when the work can never complete, once it has stopped or the deadline has passed.
  virtual void finish(std::uint64_t number, Deadline deadline) = 0;
  /// The lost device because of which work up to point `number` will never complete; empty otherwise.
  virtual std::optional<Device> lost_with(std::uint64_t) { return {}; }
  /// Returns true when no work up to point `number` touches memory any more: it has completed, or is lost and has
  /// stopped.
  virtual bool is_at_rest(std::uint64_t number) { return is_over(number) || lost_with(number); }

 private:
  friend class Devices;
  const void* home_ = nullptr;
};

inline bool is_over(Event event) {
  return event.stream == nullptr || event.stream->is_over(event.number);
}
inline void finish(Event event, Deadline deadline) {
  if (event.stream) event.stream->finish(event.number, deadline);
}
inline std::optional<Device> lost_with(Event event) {
  return event.stream ? event.stream->lost_with(event.number) : std::nullopt;
}

inline bool is_at_rest(Event event) {
  return event.stream == nullptr || event.stream->is_at_rest(event.number);
}
/// Blocks the caller until is_at_rest(event). Throws `timeout`.
void settle(Event event, Deadline deadline);

/// Wraps `f` as a kernel.
template <class F>
std::unique_ptr<Kernel> kernel_of(F f) {
  struct Holder final : Kernel {
    explicit Holder(F g) : function(static_cast<F&&>(g)) {}
    void run() override { function(); }
    F function;
  };
  return std::make_unique<Holder>(static_cast<F&&>(f));
}

/// Enqueues `f()` on a stream as a host function, see Stream::run.
template <class F>
void run_on(Stream& stream, F f) {
  stream.run(kernel_of(static_cast<F&&>(f)));
}

}  // namespace tranship
