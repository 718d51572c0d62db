// Private: Transport: carries the transfers of one context to peers whose memory the rank cannot simply load and store.
// context.hpp states what each call promises, and checks all arguments before it calls this.
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

  /// For display: names who answers the peers while this rank computes; empty if no transfer needs an answer.
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

  /// Copies elements as `block` says from `source` here to `target` at the peer, then sends the signal, if there is
  /// one.
  virtual void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                   Completion completion, CallSite where) = 0;
  /// Makes a blocking put of contiguous bytes that may return before they have left. The result becomes true when they
  /// have; nullptr if they have already. `owner` keeps the bytes until then.
  using Departure = std::shared_ptr<const std::atomic<bool>>;
  virtual Departure put_departing(Remote target, std::span<const std::byte> source,
                                  const std::shared_ptr<const void>& /*owner*/, const Signal& signal, CallSite where) {
    put(target, row_of(source.size(), 1), 1, source.data(), &signal, Completion::blocking, where);
    return nullptr;
  }
  /// Copies elements from `source` at the peer to `target` here.
  virtual void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                   CallSite where) = 0;
  /// Updates an element of `width` bytes, 4 or 8; the operands hold their value in their first `width` bytes. Stores
  /// the previous value in `before`, unless that is nullptr.
  virtual void atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
                      void* before, Completion completion, CallSite where) = 0;
  /// Fence and quiet for the transfers to and from one peer, or all peers if none is given.
  virtual void fence(std::optional<Rank> peer, CallSite where) = 0;
  virtual void quiet(std::optional<Rank> peer, CallSite where) = 0;
  /// This rank has looked at these bytes of its own heap, which peers write.
  virtual void seen(const void* first, std::size_t size_bytes) = 0;
  /// This rank accesses these bytes of its own, in its heap or elsewhere; `name` is the operation.
  virtual void touches(const void* first, std::size_t size_bytes, Touch touch, const char* name, CallSite where) = 0;
  /// An operation of this library accesses memory of this rank from begin_use() until end_use() with the number that
  /// begin_use() returned. Only a detector of races watches uses; `completion` is the call that ends the use.
  struct Use {
    const void* first = nullptr;
    std::size_t size_bytes = 0;
    Touch touch = Touch::loads;
    /// Name of the memory, for messages, valid as long as the use; null if it has none.
    const char* of = nullptr;
    const void* of_first = nullptr;  ///< where that memory begins
  };
  virtual bool watches_uses() const noexcept { return false; }
  virtual std::uint64_t begin_use(std::span<const Use>, const char* /*name*/, const char* /*completion*/, CallSite) {
    return 0;
  }
  virtual void end_use(std::uint64_t) noexcept {}
  /// The calls between enter_library() and leave_library(), which nest, are made by an operation of this library. Its
  /// fences and quiets promise the program nothing about the program's own transfers; a simulation enforces this.
  virtual void enter_library() noexcept {}
  virtual void leave_library() noexcept {}
  /// Begins or ends a scope in which the rank's accesses are covered by a use that has begun: a simulation does not
  /// count them as separate accesses, and what peers tell in it remains unknown to the program. Returns the previous
  /// state.
  virtual bool set_covered(bool /*is*/) noexcept { return false; }
  /// This rank has looked, `polls` times, whether something has arrived; other ranks may run first.
  virtual void poll(std::int64_t polls = 1) = 0;
  /// The rank fails: from now on, no memory of it is read or written.
  virtual void abandon() noexcept = 0;
};

}  // namespace tranship
