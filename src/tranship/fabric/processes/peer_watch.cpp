#include "tranship/fabric/processes/peer_watch.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/machine.hpp>

namespace tranship {
namespace {

int new_event() {
  const int descriptor = eventfd(0, EFD_CLOEXEC);
  if (descriptor < 0) throw_error(ErrorCode::io, "cannot open an event: {}", std::strerror(errno));
  return descriptor;
}

/// Threads that start in this scope block all signals, which are meant for the program's own threads.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

class PeerWatch::Watcher {
 public:
  Watcher(std::shared_ptr<SharedWorld> shared, Rank rank, std::vector<Peer> peers, LocalSocket door,
          std::optional<Entrance> entrance);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  /// Number of ranks that each rank watches. With several watchers per rank, a watcher that is stopped or lacks
  /// descriptors hides no end.
  static constexpr std::size_t watched_max = 3;

  struct Watched {
    Rank rank;
    LocalSocket socket;
  };
  void run();
  /// Connects to the doors of further ranks. Returns false if the system has no descriptor for that now.
  bool watch_more();
  void post_end(Rank rank) noexcept;

  std::shared_ptr<SharedWorld> shared_;
  Rank rank_;
  std::vector<Peer> peers_;
  LocalSocket door_;
  std::optional<Entrance> entrance_;
  OwnDescriptor leaving_;  // becomes readable when the rank leaves
  std::vector<Watched> watched_;
  int passed_ = 0;  // ranks after this one that are watched or have ended
  std::thread thread_;
};

PeerWatch::Watcher::Watcher(std::shared_ptr<SharedWorld> shared, Rank rank, std::vector<Peer> peers, LocalSocket door,
                            std::optional<Entrance> entrance)
    : shared_(std::move(shared)),
      rank_(rank),
      peers_(std::move(peers)),
      door_(std::move(door)),
      entrance_(std::move(entrance)),
      leaving_(new_event()) {
  const WithoutSignals meanwhile;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw_error(ErrorCode::no_memory, "cannot start the thread that watches the peers of rank {}: {}{}", rank_,
                error.what(), limits_of_processes());
  }
  pthread_setname_np(thread_.native_handle(), "tranship-watch");
}

PeerWatch::Watcher::~Watcher() {
  const std::uint64_t one = 1;
  while (write(leaving_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

void PeerWatch::Watcher::run() {
  constexpr int again_ms = 50;
  bool is_short = false;  // of descriptors for a late guest
  for (;;) {
    const bool has_all = watch_more() && !is_short;
    std::vector<pollfd> polled = {{.fd = leaving_.get(), .events = POLLIN}};
    for (const Watched& one : watched_) polled.push_back({.fd = one.socket.descriptor(), .events = 0});
    if (entrance_) polled.push_back({.fd = is_short ? -1 : entrance_->socket.descriptor(), .events = POLLIN});
    is_short = false;
    if (poll(polled.data(), polled.size(), has_all ? -1 : again_ms) < 0) continue;  // EINTR, as by debuggers
    if (polled[0].revents != 0) return;
    for (std::size_t i = watched_.size(); i-- > 0;)
      if (polled[1 + i].revents != 0) {
        post_end(watched_[i].rank);
        watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    if (!entrance_ || polled.back().revents == 0) continue;
    if (const std::optional<LocalSocket> late = entrance_->socket.accept())
      entrance_->turn_away(*late, shared_->shape().ranks);
    else
      is_short = true;
  }
}

bool PeerWatch::Watcher::watch_more() {
  const int others = shared_->shape().ranks - 1;
  while (passed_ < others && watched_.size() < watched_max) {
    const Rank next = (rank_ + 1 + passed_) % (others + 1);
    if (!shared_->board().ended(next)) {
      LocalSocket::Connection connection = LocalSocket::connect(peers_[static_cast<std::size_t>(next)].door, 0);
      if (connection.socket)
        watched_.push_back({next, std::move(*connection.socket)});
      else if (connection.error == ECONNREFUSED || connection.error == EPERM)
        post_end(next);
      else
        return false;
    }
    ++passed_;
  }
  return true;
}

void PeerWatch::Watcher::post_end(Rank rank) noexcept {
  // Ranks that leave post it before they close their door. All that see the end of one rank post the same text.
  Board& board = shared_->board();
  if (board.ended(rank)) return;
  board.post_failed(
      rank, ErrorCode::peer_lost,
      fmt::format("process {} has ended without leaving the world", peers_[static_cast<std::size_t>(rank)].process));
}

PeerWatch::PeerWatch(std::shared_ptr<SharedWorld> shared, Rank rank, std::vector<Peer> peers, LocalSocket door,
                     std::optional<Entrance> entrance)
    : watcher_(
          std::make_unique<Watcher>(std::move(shared), rank, std::move(peers), std::move(door), std::move(entrance))) {}
PeerWatch::~PeerWatch() = default;

}  // namespace tranship
