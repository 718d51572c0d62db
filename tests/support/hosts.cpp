#include "support/hosts.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/hosts/hosts_fabric.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/backends.hpp>
#include <tranship/fabric/seam/run_rank.hpp>

namespace tranship::test {
namespace {

[[noreturn]] void fail_here(const char* what) {
  throw_error(ErrorCode::io, "test: cannot {}: {}", what, std::strerror(errno));
}

/// A stream of a socket for each peer: two lengths, then as many bytes.
class SocketWire final : public Wire {
 public:
  /// One for each rank, -1 where there is none. They are closed with this object.
  explicit SocketWire(const std::vector<int>& sockets) : wakes_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    for (const int socket : sockets) {
      auto& peer = *peers_.emplace_back(std::make_unique<Peer>());
      peer.socket = socket;
      if (socket >= 0) fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    }
  }
  ~SocketWire() override {
    for (const auto& peer : peers_)
      if (peer->socket >= 0) close(peer->socket);
    close(wakes_);
  }

  void send(Rank to, std::span<const std::byte> head, std::span<const std::byte> body,
            const std::shared_ptr<Lent>& lent) override {
    Peer& peer = *peers_[static_cast<std::size_t>(to)];
    if (peer.socket < 0 || peer.is_lost) return;
    const Lengths lengths{head.size(), body.size()};
    for (const auto part : {std::as_bytes(std::span(&lengths, 1)), head, body})
      peer.leaving.insert(peer.leaving.end(), part.begin(), part.end());
    if (lent) lent->has_left = true;  // it has been copied
    write(peer);
  }

  bool progress(Receiver& receiver) override {
    bool any = false;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = *peers_[i];
      if (peer.socket < 0 || peer.is_lost) continue;
      read(peer);
      std::size_t at = 0;
      for (Lengths lengths; peer.came.size() - at >= sizeof lengths; any = true) {
        std::memcpy(&lengths, peer.came.data() + at, sizeof lengths);
        const std::size_t all = sizeof lengths + lengths.head + lengths.body;
        if (peer.came.size() - at < all) break;
        const std::span message = std::span(peer.came).subspan(at + sizeof lengths, lengths.head + lengths.body);
        receiver.received(static_cast<Rank>(i), message.first(lengths.head), message.subspan(lengths.head));
        at += all;
      }
      peer.came.erase(peer.came.begin(), peer.came.begin() + std::ptrdiff_t(at));
      write(peer);
      if (peer.is_lost) receiver.lost(static_cast<Rank>(i));
    }
    return any;
  }

  bool is_idle() const override {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const auto& peer) { return peer->is_lost || peer->leaving.empty(); });
  }

  void wait(std::int64_t at_most_ns) override {
    std::vector<pollfd> polled{{.fd = wakes_, .events = POLLIN}};
    for (const auto& peer : peers_)
      if (peer->socket >= 0 && !peer->is_lost)
        polled.push_back({.fd = peer->socket, .events = short(peer->has_more ? POLLIN | POLLOUT : POLLIN)});
    const timespec most{at_most_ns / 1'000'000'000, at_most_ns % 1'000'000'000};
    ppoll(polled.data(), polled.size(), &most, nullptr);
  }
  void wake() noexcept override {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wakes_, &one, sizeof one));
  }

 private:
  struct Lengths {
    std::uint64_t head = 0, body = 0;
  };
  struct Peer {
    int socket = -1;
    std::atomic<bool> is_lost = false;
    std::atomic<bool> has_more = false;  // to leave
    std::vector<std::byte> leaving;
    std::vector<std::byte> came;
  };

  static void write(Peer& peer) {
    std::size_t at = 0;
    while (at < peer.leaving.size()) {
      const ssize_t some = ::send(peer.socket, peer.leaving.data() + at, peer.leaving.size() - at, MSG_NOSIGNAL);
      if (some > 0) at += std::size_t(some);
      if (some < 0 && errno == EINTR) continue;
      if (some < 0 && errno != EAGAIN) at = peer.leaving.size();  // what was read before counts, and then the end
      if (some <= 0) break;
    }
    peer.leaving.erase(peer.leaving.begin(), peer.leaving.begin() + std::ptrdiff_t(at));
    peer.has_more = !peer.leaving.empty();
  }
  static void read(Peer& peer) {
    std::array<std::byte, 65536> room;
    for (;;) {
      const ssize_t some = ::recv(peer.socket, room.data(), room.size(), 0);
      if (some > 0) {
        peer.came.insert(peer.came.end(), room.begin(), room.begin() + some);
        continue;
      }
      if (some < 0 && errno == EINTR) continue;
      if (some == 0 || errno != EAGAIN) peer.is_lost = true;
      return;
    }
  }

  int wakes_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

/// How a host ended, as its board shows it.
struct Ending {
  Rank first_failed = -1;
  int code = 0;
  std::optional<int> exit_status = {};  ///< of all its processes, where a rank has ended all of them
  char text[1008] = {};
};

class Launch {
 public:
  Launch(const HostsOptions& options, FunctionRef<void(World&)> body)
      : options_(options), body_(body), ranks_(int(options.host_of.size())) {
    sockets_.assign(std::size_t(ranks_), std::vector<int>(std::size_t(ranks_), -1));
    for (Rank a = 0; a < ranks_; ++a)
      for (Rank b = a + 1; b < ranks_; ++b) {
        if (host_of(a) == host_of(b)) continue;
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail_here("make a pair of sockets");
        sockets_[std::size_t(a)][std::size_t(b)] = pair[0];
        sockets_[std::size_t(b)][std::size_t(a)] = pair[1];
      }
  }

  void run() {
    const int hosts = *std::max_element(options_.host_of.begin(), options_.host_of.end()) + 1;
    std::vector<pid_t> processes;
    std::vector<int> reports;
    std::fflush(nullptr);
    for (int host = 0; host < hosts; ++host) {
      int report[2];
      if (pipe2(report, O_CLOEXEC) != 0) fail_here("make a pipe");
      const pid_t parent = getpid(), process = fork();
      if (process < 0) fail_here("fork");
      if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        const Ending ending = run_host(host);
        const ssize_t written = ::write(report[1], &ending, sizeof ending);
        _exit(written == ssize_t(sizeof ending) ? 0 : 1);
      }
      close(report[1]);
      processes.push_back(process);
      reports.push_back(report[0]);
    }
    close_sockets(-1);
    std::vector<Ending> endings;
    for (std::size_t host = 0; host < processes.size(); ++host) {
      Ending ending{.first_failed = 0, .code = int(ErrorCode::internal), .text = "test: a host ended without a word"};
      if (::read(reports[host], &ending, sizeof ending) < 0) fail_here("read what a host says");
      close(reports[host]);
      waitpid(processes[host], nullptr, 0);
      endings.push_back(ending);
    }
    // The host of the rank that failed knows how.
    const Ending* said = nullptr;
    for (std::size_t host = 0; host < endings.size(); ++host) {
      const Ending& ending = endings[host];
      if (ending.first_failed < 0) continue;
      if (said == nullptr || host_of(ending.first_failed) == int(host)) said = &ending;
    }
    for (const Ending& ending : endings)
      if (ending.exit_status != endings.front().exit_status)
        throw_error(ErrorCode::internal, "test: a host ended with status {} and another one with {} (-1: none)",
                    endings.front().exit_status.value_or(-1), ending.exit_status.value_or(-1));
    if (said == nullptr || endings.front().exit_status == 0) return;
    Error error(static_cast<ErrorCode>(said->code), said->text);
    error.rank = said->first_failed;
    throw error;
  }

 private:
  int host_of(Rank rank) const { return options_.host_of[std::size_t(rank)]; }
  void close_sockets(Rank but) {
    for (Rank rank = 0; rank < ranks_; ++rank)
      for (int& socket : sockets_[std::size_t(rank)])
        if (rank != but && socket >= 0) {
          close(socket);
          socket = -1;
        }
  }

  Ending run_host(int host) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < ranks_; ++rank)
      if (host_of(rank) == host) ranks.push_back(rank);
    const auto shared =
        SharedWorld::make({.ranks = int(ranks.size()), .heap_bytes = options_.heap_bytes, .board_ranks = ranks_},
                          SharedWorld::Kind::processes);
    std::vector<pid_t> processes;
    for (const Rank rank : ranks) {
      const pid_t parent = getpid(), process = fork();
      if (process < 0) return {.first_failed = rank, .code = int(ErrorCode::no_memory), .text = "test: fork"};
      if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        const int code = run_rank_of(shared, rank, Members::of(ranks));
        std::fflush(nullptr);
        _exit(code);
      }
      processes.push_back(process);
    }
    close_sockets(-1);
    std::vector<int> codes;
    Rank killed = -1;  // others may tell what they make of it before its parent hears of it
    for (std::size_t left = processes.size(); left > 0; --left) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, 0);
      const auto at = std::find(processes.begin(), processes.end(), ended);
      const Rank rank = ranks[std::size_t(at - processes.begin())];
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
      if (WIFSIGNALED(status) && killed < 0) killed = rank;
      if (!shared->board().ended(rank))
        shared->board().post_failed(rank, ErrorCode::peer_lost,
                                    WIFSIGNALED(status)
                                        ? fmt::format("process {} (rank {}) was killed by signal {} ({})", ended, rank,
                                                      WTERMSIG(status), strsignal(WTERMSIG(status)))
                                        : fmt::format("process {} (rank {}) ended without a word", ended, rank));
    }
    Ending out{.first_failed = killed >= 0 ? killed : shared->board().first_failed()};
    if (const std::optional<int> all = shared->board().exit_status();
        all && std::count(codes.begin(), codes.end(), *all) == std::ptrdiff_t(codes.size()))
      out.exit_status = all;
    if (out.first_failed < 0) return out;
    out.code = int(shared->board().failure_code_of(out.first_failed));
    shared->board().failure_of(out.first_failed).copy(out.text, sizeof out.text - 1);
    return out;
  }

  int run_rank_of(const std::shared_ptr<SharedWorld>& shared, Rank rank, const Members& here) {
    const std::vector<int> sockets = sockets_[std::size_t(rank)];
    sockets_[std::size_t(rank)].clear();
    close_sockets(-1);
    auto wire = std::make_unique<SocketWire>(sockets);
    auto engine =
        std::make_unique<HostsEngine>(*wire, shared->board(), rank, here, shared->heap_of(here.member_of(rank)));
    const auto make = [&] { return std::make_unique<HostsFabric>(shared, *engine, options_.host_of); };
    const bool failed = run_rank(shared->board(), rank, options_.timeout_ns, make, body_) != nullptr;
    engine.reset();
    return failed ? 1 : 0;
  }

  const HostsOptions& options_;
  FunctionRef<void(World&)> body_;
  int ranks_;
  std::vector<std::vector<int>> sockets_;  // by rank, and by peer
};

}  // namespace

std::vector<int> hosts_in_blocks(int ranks, int hosts) {
  std::vector<int> out;
  for (Rank rank = 0; rank < ranks; ++rank) out.push_back(rank * hosts / ranks);
  return out;
}
std::vector<int> hosts_in_turn(int ranks, int hosts) {
  std::vector<int> out;
  for (Rank rank = 0; rank < ranks; ++rank) out.push_back(rank % hosts);
  return out;
}

void launch_hosts(const HostsOptions& options, FunctionRef<void(World&)> body) {
  Launch(options, body).run();
}

namespace {

void launch_on_hosts(std::vector<int> (*place)(int, int), const LaunchOptions& options,
                     FunctionRef<void(World&)> body) {
  HostsOptions hosts{.host_of = place(options.ranks, std::min(options.ranks, 2))};
  if (options.heap_bytes) hosts.heap_bytes = *options.heap_bytes;
  if (options.timeout_ns) hosts.timeout_ns = *options.timeout_ns;
  launch_hosts(hosts, body);
}

const bool are_registered = [] {
  register_backend({.name = "hosts",
                    .state = Backend::State::present,
                    .note = "ranks are processes, in blocks, of two hosts that share nothing",
                    .launch = [](const LaunchOptions& options, FunctionRef<void(World&)> body) {
                      launch_on_hosts(&hosts_in_blocks, options, body);
                    }});
  register_backend({.name = "dealt",
                    .state = Backend::State::present,
                    .note = "ranks are processes that are dealt to two hosts that share nothing",
                    .launch = [](const LaunchOptions& options, FunctionRef<void(World&)> body) {
                      launch_on_hosts(&hosts_in_turn, options, body);
                    }});
  return true;
}();

}  // namespace

}  // namespace tranship::test
