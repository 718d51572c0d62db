// Detail: Stream, work on a device in the order in which it was given, and Event, a point in it. The seam between the
// coherence of buffers and the devices: everything above it is the same for a host, a fake device and a GPU.
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
#include <tranship/kernels/copy_block.hpp>

namespace tranship {

class Stream;

/// All work that was given to a stream before. A value: copies name the same point. The default one is always over.
/// It may be used as long as the Devices (devices.hpp) that the stream came from, even when the stream is destroyed.
struct Event {
  Stream* stream = nullptr;
  std::uint64_t number = 0;  ///< how many pieces of work the stream had been given
  friend bool operator==(const Event&, const Event&) = default;
};

/// A function that a software device runs as a kernel, and what it captures; the stream frees it after it has run, and
/// before it counts as over. An exception in it terminates the program. It may ask whether events are over, but give
/// streams no work and wait for none.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run() = 0;
};

/// One element of a list that Stream::copy_list takes: what Stream::copy takes.
struct StreamCopy {
  CopyBlock block;
  int width = 1;
  const void* source = nullptr;
  void* target = nullptr;
};

/// One order of work. Any thread may give work, one at a time. Destroying a stream finishes its work first.
///
/// When its device is lost, or it comes to a wait for work that is never over, then what it has not done is never over,
/// but touches no memory any more, and all calls that give it work or wait for that throw `device_lost`.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const noexcept = 0;
  /// Which Devices (devices.hpp) it belongs to, as Devices::has() asks; null where it was made without them.
  const void* home() const noexcept { return home_; }

  /// The point after all work given so far. Costs nothing. It may name another Stream object that does the work, and
  /// where work is over when it has been given it is the default event.
  virtual Event event() = 0;
  /// What is given from now on begins after `event`, of any stream of the same Devices. Does not block the caller, but
  /// where work is over when it has been given.
  virtual void wait(Event event) = 0;
  /// Moves the elements of `block`, `width` bytes each, between memories that this stream's device reaches. Does not
  /// wait for the bytes.
  virtual void copy(const CopyBlock& block, int width, const void* source, void* target) = 0;
  /// All of these copies, of which none writes what another one reads or writes, as one piece of work where the device
  /// can do that. The list may go when the call returns.
  virtual void copy_list(std::span<const StreamCopy> copies) {
    for (const StreamCopy& one : copies) copy(one.block, one.width, one.source, one.target);
  }
  /// Writes one element (null: zeros) wherever `block` has a target.
  virtual void fill(const CopyBlock& block, int width, const void* element, void* target) = 0;
  /// target = how(target, source) for each element of `block`, whose strides are those of whole elements of that type.
  /// No two of them overlap. Throws `invalid_use` where elements of the type cannot be combined so.
  virtual void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) = 0;
  /// Runs a function on the host in the order of the stream. Where Driver::runs_host_functions() it may touch the
  /// memory of the device. Elsewhere, as with cards, it may touch memory of the host alone: what lies on the device is
  /// brought there by copy() first, and host code that loads or stores it ends the process by SIGSEGV.
  virtual void run(std::unique_ptr<Kernel> kernel) = 0;

  /// The device's own name of this stream, for libraries that give it work themselves. Of a card it is a CUstream of
  /// the card's primary context, and null once the card is lost. What they give it counts for event() from the next
  /// call on, in the order of the stream. Of a fake device it is an address that tells its streams apart; of the host,
  /// and of devices that are written in Python, it is null. It is valid as long as this Stream, and not to be
  /// destroyed; later another Stream may have it.
  virtual void* native_handle() noexcept { return nullptr; }

  /// Whether the work before point `number` of this stream is over. Acquire: its bytes are seen.
  virtual bool is_over(std::uint64_t number) = 0;
  /// Blocks the caller until then. Throws `timeout` with both numbers when the deadline passes first, and `device_lost`
  /// at once when it will never be.
  virtual void finish(std::uint64_t number, Deadline deadline) = 0;
  /// The device without which the work before point `number` is never over; empty while there is hope.
  virtual std::optional<Device> lost_with(std::uint64_t) { return {}; }

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

/// Whether nothing before the event touches memory any more: it is over, or never will be.
inline bool is_at_rest(Event event) {
  return is_over(event) || lost_with(event);
}
/// Blocks the caller until then. Throws `timeout`.
inline void settle(Event event, Deadline deadline) {
  try {
    finish(event, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_lost) throw;
  }
}

/// `f()` as a kernel.
template <class F>
std::unique_ptr<Kernel> kernel_of(F f) {
  struct Holder final : Kernel {
    explicit Holder(F g) : function(static_cast<F&&>(g)) {}
    void run() override { function(); }
    F function;
  };
  return std::make_unique<Holder>(static_cast<F&&>(f));
}

/// Gives `f()` to a stream.
template <class F>
void run_on(Stream& stream, F f) {
  stream.run(kernel_of(static_cast<F&&>(f)));
}

}  // namespace tranship
