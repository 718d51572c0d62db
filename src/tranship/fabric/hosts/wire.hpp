// Private: Wire, carries messages between the ranks of one job that do not share memory. It is all that a back-end for
// several machines must bring: transfers, meetings and failures go through it as messages (engine.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// One rank's end. Used by one thread at a time, but for wait(). Messages from one rank to another arrive whole, and
/// are received in the order in which they were sent. A message is a head, of at most `head_bytes_max`, and a body.
class Wire {
 public:
  static constexpr std::size_t head_bytes_max = 128;

  virtual ~Wire() = default;

  /// Takes the messages of a wire.
  class Receiver {
   public:
    /// The place where the wire writes a body.
    struct Place {
      std::byte* at = nullptr;  ///< nullptr: the wire keeps it until received()
      /// Not before all that was sent before has been received.
      bool in_order = true;
    };
    /// May be asked once for a message that is long, when its head has come. The place is the wire's until received().
    virtual Place place(Rank from, std::span<const std::byte> head, std::size_t body_bytes) = 0;
    /// A message has come, its body to the place that was said, if one was. May send.
    virtual void received(Rank from, std::span<const std::byte> head, std::span<const std::byte> body) = 0;
    /// No message can be exchanged with that rank any more. Said once.
    virtual void lost(Rank peer) = 0;

   protected:
    ~Receiver() = default;
  };

  /// A body that the sender does not touch until it has left.
  struct Lent {
    std::atomic<bool> has_left = false;
    std::vector<std::byte> own = {};         ///< what may hold it
    std::shared_ptr<const void> owner = {};  ///< of what holds it otherwise
  };

  /// Returns when both may be used again, or, where the body is lent, at once, and keeps `lent` until it has left.
  /// Never waits for the peer. Messages to a rank that is lost vanish.
  virtual void send(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                    const std::shared_ptr<Lent>& lent = nullptr) = 0;
  /// From how many bytes on a body that is lent is not copied.
  virtual std::size_t lent_bytes_min() const { return std::numeric_limits<std::size_t>::max(); }

  /// Moves what can be moved now. True where anything came.
  virtual bool progress(Receiver& receiver) = 0;
  /// This rank has nothing more to say: what it sends from now on vanishes, and what peers have sent still comes.
  virtual void part() {}
  /// Returns true when all that was sent has left this rank, and, once it has parted, all that its peers have sent has
  /// come. A peer is a rank that has been sent something, or that something has come from.
  virtual bool is_idle() const = 0;
  /// Bytes that were sent to a peer and cannot leave until it has received more.
  virtual std::size_t waiting_bytes(Rank) const { return 0; }
  /// Bytes that wait for all peers together.
  virtual std::size_t waiting_bytes() const { return 0; }
  /// Returns when something may have come or can leave, and after so long. Any thread, beside the one that uses it.
  virtual void wait(std::int64_t at_most_ns) = 0;
  /// wait() returns soon.
  virtual void wake() noexcept = 0;
};

}  // namespace tranship
