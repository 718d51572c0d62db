// Private: Wire, carries messages between the ranks of one job that do not share memory. It is all that a back-end for
// several machines must bring: transfers, meetings and failures go through it as messages (engine.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// One rank's end. Used by one thread at a time, but for wait(). Messages from one rank to another arrive whole and in
/// the order in which they were sent.
class Wire {
 public:
  virtual ~Wire() = default;

  /// Returns when both may be used again, which may be before anything has left. Never waits for the peer. Messages to
  /// a rank that is lost vanish.
  virtual void send(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body) = 0;

  /// Moves what can be moved now; `received` gets each message that has come, as long as its bytes, and `lost` each
  /// rank with which no message can be exchanged any more, once. `received` may send. True where anything came.
  virtual bool progress(FunctionRef<void(Rank from, std::span<const std::byte>)> received,
                        FunctionRef<void(Rank)> lost) = 0;
  /// Whether all that was sent has left this rank.
  virtual bool is_idle() const = 0;
  /// Returns when something may have come or can leave, and after so long. Any thread, beside the one that uses it.
  virtual void wait(std::int64_t at_most_ns) = 0;
  /// wait() returns soon.
  virtual void wake() noexcept = 0;
};

}  // namespace tranship
