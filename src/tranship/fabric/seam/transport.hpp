// Private: Transport, carries the transfers of one context to peers whose memory cannot simply be loaded and stored.
// What each call promises is written in context.hpp, which checks all arguments before it calls this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/atomic.hpp>
#include <tranship/kernels/copy_block.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

class Transport {
 public:
  virtual ~Transport() = default;

  /// For people: who answers the peers while this rank computes; empty where nothing needs an answer.
  virtual std::string_view progress() const noexcept { return {}; }

  /// A place in the heap of a peer.
  struct Remote {
    Rank peer = 0;
    std::size_t offset_bytes = 0;
  };
  struct Signal {
    std::size_t offset_bytes = 0;
    std::uint64_t value = 0;
    SignalOp op = SignalOp::set;
  };

  /// Element by element as `block` says, from `source` here to `target` there, and then, if there is one, the signal.
  virtual void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                   Completion completion, CallSite where) = 0;
  /// As a put that blocks, of bytes that lie side by side, but may return before they have left. What is returned is
  /// true when they have; nullptr: they have. `owner` keeps them until then.
  using Departure = std::shared_ptr<const std::atomic<bool>>;
  virtual Departure put_departing(Remote target, std::span<const std::byte> source,
                                  const std::shared_ptr<const void>& /*owner*/, const Signal& signal, CallSite where) {
    put(target, row_of(source.size(), 1), 1, source.data(), &signal, Completion::blocking, where);
    return nullptr;
  }
  /// From `source` there to `target` here.
  virtual void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                   CallSite where) = 0;
  /// On an element of `width` bytes, 4 or 8, of which operands have their first ones. What it held before goes to
  /// `before`, unless that is nullptr.
  virtual void atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
                      void* before, Completion completion, CallSite where) = 0;
  /// For the transfers to, and from, one peer, or those of all peers.
  virtual void fence(std::optional<Rank> peer, CallSite where) = 0;
  virtual void quiet(std::optional<Rank> peer, CallSite where) = 0;
  /// This rank has looked at what peers write there, in its own heap.
  virtual void seen(const void* first, std::size_t size_bytes) = 0;
  /// This rank touches these bytes of its own, in its heap or elsewhere; `name` says by what.
  virtual void touches(const void* first, std::size_t size_bytes, Touch touch, const char* name, CallSite where) = 0;
  /// An operation of this library that touches memory of this rank from begin_use() to end_use(), to which it gives the
  /// number that it was given. Only what looks for races wants to know; `completion` is the call that ends it.
  struct Use {
    const void* first = nullptr;
    std::size_t size_bytes = 0;
    Touch touch = Touch::loads;
    /// What the bytes are of, for people, as long as the call; null: nothing that has a name.
    const char* of = nullptr;
    const void* of_first = nullptr;  ///< where that begins
  };
  virtual bool watches_uses() const noexcept { return false; }
  virtual std::uint64_t begin_use(std::span<const Use>, const char* /*name*/, const char* /*completion*/, CallSite) {
    return 0;
  }
  virtual void end_use(std::uint64_t) noexcept {}
  /// Calls from enter_library() to leave_library(), which nest, are made by an operation of this library. What it
  /// fences and completes are its own transfers, as far as the program may know; a simulation holds to that.
  virtual void enter_library() noexcept {}
  virtual void leave_library() noexcept {}
  /// From now on, what the rank does is covered by a use that has begun, or no longer is: a simulation takes it for no
  /// access of its own, and what peers tell by it remains unknown to the program. Returns what was so before.
  virtual bool set_covered(bool /*is*/) noexcept { return false; }
  /// This rank looks whether something has come, or has looked so often already; others may go on first.
  virtual void poll(std::int64_t polls = 1) = 0;
  /// The rank fails: nothing of its memory is read or written any more.
  virtual void abandon() noexcept = 0;
};

}  // namespace tranship
