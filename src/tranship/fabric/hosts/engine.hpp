// Private: HostsEngine, what one rank does for the ranks of other machines: it carries out their puts, gets and atomics
// on the rank's own heap, keeps what they bring to meetings, and shows them what its machine's ranks are doing.
//
// Everything is a message of a Wire. A rank's messages to another one are carried out in the order in which it sent
// them, so a fence costs nothing, and an answer to the last one answers for all. Atomics are done by the target with
// the processor's own, so they are atomic with those of ranks that share its memory. A thread of the process carries
// out what comes while the rank computes; a rank that waits does so itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tranship/fabric/hosts/mail.hpp>
#include <tranship/fabric/hosts/wire.hpp>
#include <tranship/fabric/seam/board.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship {

/// An answer that a rank waits for. The rank owns it; the engine keeps it until the answer has come.
struct Awaited {
  std::atomic<bool> is_here = false;
  void* target = nullptr;
  CopyBlock block = {};  ///< of the target, from dense bytes
  int width = 1;
};

class HostsEngine final : public BoardLink, public Mail, private Wire::Receiver {
 public:
  /// Who serves the other machines while the rank computes.
  enum class Serving : std::uint8_t {
    by_thread,  ///< the HostsServer of the process
    by_caller   ///< who else calls progress(), and the rank in its waits
  };
  /// The arguments outlive the engine. The board, of this machine, has a slot for every rank
  /// of the job; `here` are the ranks of this machine. `heap` is this rank's own.
  HostsEngine(Wire& wire, Board& board, Rank rank, const Members& here, std::byte* heap,
              Serving serving = Serving::by_thread);
  /// Calls close().
  ~HostsEngine() override;
  /// Serves the ranks of other machines until all of them have ended, for a minute at most. The wire is not used any
  /// more afterwards, and requests throw `invalid_use`.
  void close() noexcept;
  /// The rank has ended: its thread, which it needs, serves the others until is_over(). close() comes later.
  void linger() noexcept { is_lingering_.store(true, std::memory_order_release); }
  /// Returns true when all others have ended and nothing of theirs is on its way here. If false after close(), some
  /// of them were late.
  bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }

  Rank rank() const noexcept { return rank_; }
  const Members& here() const noexcept { return here_; }
  bool has_thread() const noexcept { return has_thread_; }

  // Requests, by the thread of the rank.

  /// Returns an object that reads `source` until the data has left, or nullptr if nothing reads it any more. `owner`
  /// may keep the source alive.
  std::shared_ptr<Wire::Lent> put(Transport::Remote target, const CopyBlock& block, int width, const void* source,
                                  const Transport::Signal* signal, const std::shared_ptr<const void>& owner = {});
  std::shared_ptr<Awaited> get(void* target, const CopyBlock& block, int width, Transport::Remote source);
  /// nullptr where nothing is asked for.
  std::shared_ptr<Awaited> atomic(Transport::Remote at, int width, AtomicOp op, std::uint64_t operand,
                                  std::uint64_t compare, void* before);
  /// Their targets are not written any more.
  void drop(std::span<const std::shared_ptr<Awaited>> awaited) noexcept;
  /// Orders puts to `peer`: those from now on come after those before.
  void order(Rank peer);
  /// Returns true when more bytes than the limit wait to leave for `peer`: their sender should wait, too.
  bool is_congested(Rank peer);
  /// Answered when all that this rank has sent to `peer` before is done.
  std::shared_ptr<Awaited> flush(Rank peer);

  void bring(Rank peer, Key meeting, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> take(Rank peer, Key meeting) override;

  /// Moves what can be moved now, unless another thread does. For a rank that waits.
  bool progress();
  /// How often a look of the rank or of the thread has found something.
  std::uint64_t arrivals() const noexcept { return arrivals_.load(std::memory_order_relaxed); }

  // For the HostsServer.

  /// Carries out one message. False where none has come.
  bool serve_one();
  /// How often progress() has been called.
  std::uint64_t looks() const noexcept { return looks_.load(std::memory_order_relaxed); }
  /// Returns when something may have come, and after so long.
  void wait(std::int64_t at_most_ns) { wire_.wait(at_most_ns); }
  /// wait() returns soon.
  void wake() noexcept { wire_.wake(); }

  void tell(Rank rank) noexcept override;
  void ask(Rank rank) noexcept override;
  void tell_at_end(Rank rank) noexcept override;
  bool has_heard_end(Rank rank) const noexcept override {
    return heard_ends_[std::size_t(rank)].load(std::memory_order_acquire);
  }

 private:
  struct Head;
  void send(Rank peer, const Head& head, std::span<const std::byte> body = {},
            const std::shared_ptr<Wire::Lent>& lent = nullptr);
  std::shared_ptr<Awaited> request(Rank peer, Head& head, std::shared_ptr<Awaited> awaited,
                                   std::span<const std::byte> body = {});
  // The next ones with the lock.
  void check_open() const;
  void send_locked(Rank peer, const Head& head, std::span<const std::byte> body = {},
                   const std::shared_ptr<Wire::Lent>& lent = nullptr);
  bool progress_locked();
  Place place(Rank from, std::span<const std::byte> head, std::size_t body_bytes) override;
  void received(Rank from, std::span<const std::byte> head, std::span<const std::byte> body) override;
  void lost(Rank peer) override;
  void answer_get(Rank from, const Head& head, const CopyBlock& block);
  void answered(const Head& head, std::span<const std::byte> body);
  /// Sends a message that no rank waits for; it is dropped if the wire has failed.
  void notify(Rank peer, const Head& head, std::span<const std::byte> body) noexcept;
  void send_end(Rank rank) noexcept;
  bool all_have_ended() const noexcept;
  /// With the lock. Parts from the others once all have ended; true when they have parted, too.
  bool end_locked() noexcept;
  void part_locked() noexcept;

  Wire& wire_;  // until it is closed
  std::size_t lent_bytes_min_;
  Board& board_;
  Rank rank_;
  Members here_;
  std::byte* heap_;
  std::unordered_set<Rank> ordered_;  // peers, for the next put; used by the thread of the rank
  std::mutex mutex_;                  // guards the wire and what follows
  std::uint64_t next_id_ = 1;
  bool is_broken_ = false;  // the wire has failed
  bool is_closed_ = false;
  bool has_parted_ = false;
  std::unordered_map<std::uint64_t, std::shared_ptr<Awaited>> awaited_;
  std::map<std::tuple<int, std::uint64_t, Rank>, std::vector<std::byte>> brought_;
  std::vector<std::atomic<bool>> heard_ends_;  // by rank
  std::atomic<std::uint64_t> shown_ = 0;       // entries that were asked for and have come
  std::atomic<std::uint64_t> looks_ = 0;
  std::atomic<std::uint64_t> arrivals_ = 0;
  std::atomic<std::size_t> waiting_bytes_ = 0;  // to all peers, as the wire last said
  bool has_thread_ = false;
  std::atomic<bool> is_lingering_ = false;
  std::atomic<bool> is_over_ = false;
};

}  // namespace tranship
