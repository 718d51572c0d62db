// Private: MpiWire, a wire of two-sided messages of MPI on a communicator of its own. One-sided calls of MPI are not
// used: no MPI makes progress with them while the target computes.
//
// Short messages go to a ring of receives that each rank has posted, and are taken in the order in which these were
// posted, which is the order in which MPI has matched them. A message of medium length is several of them, since MPI
// makes a longer one wait until the receiver has asked for it. A long message sends its head so, and its body under a
// tag of its own, which is received where it belongs. What comes from the same rank meanwhile waits for it. A rank
// sends another one up to `window_bytes` of short messages that have not been received there. A rank that has
// parted says so to each peer behind all that it has sent there. That is its last message, so it gives no credit for
// what still comes, which the peer then sends at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <tranship/fabric/hosts/wire.hpp>
#include <tranship/fabric/mpi/mpi_module.hpp>

namespace tranship {

class MpiWire final : public Wire {
 public:
  /// The sizes of messages, equal on all ranks.
  struct Sizes {
    static constexpr std::size_t short_bytes_min = 16 + head_bytes_max;

    std::size_t short_bytes = 16384;  ///< of a frame with all that it carries
    /// Limit of short messages on their way to one peer; at least twice the above. A message that fits into half of it
    /// is sent as several short ones.
    std::size_t window_bytes = 262144;
    std::size_t piece_bytes = std::size_t(1) << 30;  ///< of a body
    int receives = 16;
  };

  /// Makes the wire of a communicator that nothing else uses and that outlives this object.
  MpiWire(const MpiModule& mpi, MpiHandle comm, const Sizes& sizes);
  /// Withdraws what it has posted. What has not left by then may never leave. What MPI may still read or write stays:
  /// for ever, where it is this object's own.
  ~MpiWire() override;

  void send(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
            const std::shared_ptr<Lent>& lent) override;
  std::size_t lent_bytes_min() const override { return sizes_.short_bytes; }
  bool progress(Receiver& receiver) override;
  void part() override;
  bool is_idle() const override;
  std::size_t waiting_bytes(Rank peer) const override;
  std::size_t waiting_bytes() const override { return waiting_bytes_; }
  void wait(std::int64_t at_most_ns) override;
  void wake() noexcept override;

 private:
  struct Frame;
  struct Outgoing;
  struct Incoming;
  struct Peer;
  struct Leaving {
    MpiHandle request = 0;
    std::shared_ptr<const void> kept;
  };

  Peer& peer(Rank rank);
  void start(Rank to, Peer& peer, Outgoing& message);
  void post(Rank to, int tag, const void* data, std::size_t size_bytes, std::shared_ptr<const void> kept);
  void post_receive(std::size_t at);
  void withdraw_all() noexcept;
  void take(Rank from, std::span<const std::byte> bytes, Receiver& receiver);
  void receive_body(Rank from, Incoming& message);
  bool has_body(Incoming& message);
  /// Gives what is complete and first; true where there was some.
  bool deliver(Rank from, Peer& peer, Receiver& receiver);
  void consumed(Rank from, Peer& peer, std::size_t size_bytes);
  void start_waiting(Rank to, Peer& peer);
  void part_from(Rank rank, Peer& peer);
  /// Sends a frame that does not count in the window.
  void tell(Rank to, const Frame& frame);

  const MpiModule& mpi_;
  MpiHandle comm_;
  Sizes sizes_;
  int highest_tag_ = 0;
  struct Receive {
    MpiHandle request = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Receive> receives_;
  std::size_t next_ = 0;  // receive to complete
  std::map<Rank, std::unique_ptr<Peer>> peers_;
  std::list<Leaving> leaving_;
  std::size_t waiting_messages_ = 0, waiting_bytes_ = 0;
  bool has_parted_ = false;

  std::mutex nap_mutex_;
  std::condition_variable woken_;
  std::uint64_t wakes_ = 0;
};

}  // namespace tranship
