#include "tranship/fabric/processes/rendezvous.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/processes/file_limit.hpp>
#include <tranship/fabric/processes/join_messages.hpp>
#include <tranship/fabric/processes/local_socket.hpp>
#include <tranship/fabric/processes/machine_identity.hpp>
#include <tranship/fabric/processes/peer_watch.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>
#include <tranship/fabric/seam/run_rank.hpp>

namespace tranship {
namespace {

using namespace join_messages;

// Ids.

struct IdContent {
  char magic[8];
  std::array<std::uint8_t, 16> machine;  // one start of the machine
  std::uint64_t network;                 // the namespace in which the names of its sockets are valid
  SocketName entrance;
  std::int64_t process;
  std::uint64_t check;  // a hash of everything before it

  static constexpr char magic_here[8] = {'t', 'r', 'a', 'n', 's', 'h', 'i', 'p'};

  std::uint64_t check_here() const noexcept {
    std::array<std::uint64_t, 8> words;
    static_assert(sizeof words == sizeof(IdContent));
    std::memcpy(words.data(), this, sizeof words);
    std::uint64_t mixed = 0;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) mixed = splitmix64(mixed + words[i] + 0x9e3779b97f4a7c15u);
    return mixed;
  }
};
static_assert(sizeof(IdContent) == WorldId::size_bytes);

std::string short_text(const std::array<std::uint8_t, 16>& bytes) {
  return fmt::format("{:02x}{:02x}{:02x}{:02x}", bytes[0], bytes[1], bytes[2], bytes[3]);
}

/// The ids that this process has made and not used, and those by which it has joined.
class Ids {
 public:
  static Ids& all() {
    static auto* const ids = new Ids();
    return *ids;
  }
  void add(const SocketName& name, LocalSocket entrance) {
    const std::lock_guard lock(mutex_);
    forget_those_of_a_parent();
    made_.emplace_back(name, std::move(entrance));
  }
  /// Returns the entrance if this process has made the id. Throws `invalid_use` for an id that was used.
  std::optional<LocalSocket> use(const SocketName& name) {
    const std::lock_guard lock(mutex_);
    forget_those_of_a_parent();
    if (std::find(used_.begin(), used_.end(), name) != used_.end())
      throw_error(ErrorCode::invalid_use,
                  "process {} has joined a world by this id before, or tried to: an id is used once", getpid());
    used_.push_back(name);
    const auto made = std::find_if(made_.begin(), made_.end(), [&](const auto& one) { return one.first == name; });
    if (made == made_.end()) return std::nullopt;
    LocalSocket entrance = std::move(made->second);
    made_.erase(made);
    return entrance;
  }

 private:
  Ids() {
    const auto unlock = [] { all().mutex_.unlock(); };
    pthread_atfork([] { all().mutex_.lock(); }, unlock, unlock);
  }
  /// A forked child is another process.
  void forget_those_of_a_parent() {
    if (std::exchange(process_, getpid()) == process_) return;
    made_.clear();
    used_.clear();
  }

  std::mutex mutex_;
  pid_t process_ = getpid();
  std::vector<std::pair<SocketName, LocalSocket>> made_;
  std::vector<SocketName> used_;
};

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

/// Waits until a descriptor is readable or `deadline_ns` has passed, or for about 10 ms if there is an interrupt to
/// check.
void wait_for(std::vector<pollfd>& polled, std::int64_t deadline_ns, World::InterruptCheck check) {
  if (check != nullptr) check();
  constexpr std::int64_t look_ms = 10, longest_ms = 1'000'000;
  const std::int64_t left_ms = std::max<std::int64_t>(0, deadline_ns - now_ns()) / 1'000'000 + 1;
  poll(polled.data(), polled.size(), static_cast<int>(std::min(left_ms, check != nullptr ? look_ms : longest_ms)));
}

/// The state of a process when all have joined.
struct Joined {
  std::shared_ptr<SharedWorld> shared;
  std::vector<PeerWatch::Peer> peers;
  std::optional<PeerWatch::Entrance> entrance;
};

void turn_away(const LocalSocket& guest, int size) {
  send(guest, Refusal(make_error(ErrorCode::invalid_use,
                                 "the world of this id has its {} already (process {} has made it): an id is "
                                 "used once",
                                 amount(size, "rank"), getpid())));
}

// The process that has made the id.

class Host {
 public:
  Host(LocalSocket entrance, const Hello& own, World::InterruptCheck check)
      : entrance_(std::move(entrance)),
        own_(own),
        check_(check),
        size_(own.size),
        deadline_ns_(own.deadline_ns),
        timeout_ns_(own.timeout_ns) {}

  void gather(Joined& out) {
    try {
      const RaisedFileLimit files(size_);
      members_.resize(static_cast<std::size_t>(size_));
      enter(own_, getpid(), nullptr);
      while (!is_complete()) step("joined");
      out.shared = SharedWorld::make({.ranks = size_, .heap_bytes = heap_bytes(), .cores = CPU_COUNT(&cores_)},
                                     SharedWorld::Kind::processes);
      for (const Member& member : members_) out.peers.push_back(member.peer);
      welcome_all(out);
      while (count(&Member::has_mapped) < size_) step("mapped the shared memory");
      for (const Guest& guest : guests_)
        if (guest.rank >= 0) send(guest.socket, Head(Kind::begun));
      out.entrance = PeerWatch::Entrance{std::move(entrance_), &turn_away};
    } catch (const Error& error) {
      take_guests();
      for (const Guest& guest : guests_) send(guest.socket, Refusal(error));
      throw;
    }
  }

 private:
  struct Guest {
    LocalSocket socket;
    Rank rank = -1;
    bool is_gone = false;
  };
  struct Member {
    PeerWatch::Peer peer;
    std::optional<std::uint64_t> heap_bytes;
    bool is_here = false;
    bool has_mapped = false;
  };

  int count(bool Member::*what) const {
    return static_cast<int>(std::count_if(members_.begin(), members_.end(), [&](const Member& m) { return m.*what; }));
  }
  Member& member(Rank rank) { return members_[static_cast<std::size_t>(rank)]; }
  bool is_complete() const { return count(&Member::is_here) == size_; }

  std::optional<std::size_t> heap_bytes() const {
    for (const Member& member : members_)
      if (member.heap_bytes) return static_cast<std::size_t>(*member.heap_bytes);
    return std::nullopt;
  }

  /// Waits for an event and handles it.
  void step(const char* what) {
    if (now_ns() >= deadline_ns_) fail_late(what);  // earlier messages have been read
    std::vector<pollfd> polled = {{.fd = entrance_.descriptor(), .events = POLLIN}};
    for (const Guest& guest : guests_) polled.push_back({.fd = guest.socket.descriptor(), .events = POLLIN});
    wait_for(polled, deadline_ns_, check_);
    const std::size_t known = guests_.size();
    if (polled[0].revents != 0) take_guests();
    for (std::size_t i = 0; i < known; ++i)
      if (polled[1 + i].revents != 0) listen_to(guests_[i]);
    std::erase_if(guests_, [](const Guest& guest) { return guest.is_gone; });
  }

  void take_guests() {
    while (std::optional<LocalSocket> socket = entrance_.accept()) guests_.push_back({std::move(*socket)});
  }

  /// Takes one message only, so that no guest keeps the others waiting.
  void listen_to(Guest& guest) {
    const LocalSocket::Incoming incoming = guest.socket.receive();
    if (incoming.descriptor >= 0) close(incoming.descriptor);
    if (incoming.state == LocalSocket::Incoming::State::message) return answer(guest, incoming.bytes);
    if (incoming.state == LocalSocket::Incoming::State::nothing) return;
    guest.is_gone = true;
    if (guest.rank >= 0)
      throw_error(ErrorCode::peer_lost, "rank {} (process {}) has ended or given up before all {} had joined",
                  guest.rank, guest.socket.process(), amount(size_, "rank"));
  }

  void answer(Guest& guest, const std::vector<std::byte>& bytes) {
    const std::optional<Head> head = head_of(bytes);
    const std::optional<Hello> hello = read_as<Hello>(bytes);
    const bool is_of_this_version = head && head->version == Head::version_here;
    if (!head || (is_of_this_version && head->kind == Kind::hello && !hello)) {
      guest.is_gone = true;  // not a process of tranship
      return;
    }
    if (!is_of_this_version)
      throw_error(ErrorCode::mismatch,
                  "process {} joins by version {} of the protocol, process {} by version {}: they were built "
                  "differently",
                  guest.socket.process(), head->version, getpid(), Head::version_here);
    switch (head->kind) {
      case Kind::hello:
        return greet(guest, *hello);
      case Kind::mapped:
        if (guest.rank < 0) break;
        member(guest.rank).has_mapped = true;
        return;
      case Kind::refused: {
        const std::optional<Refusal> refusal = read_as<Refusal>(bytes);
        if (guest.rank < 0 || !refusal) break;
        const Error error = refusal->error();
        throw_error(error.code(), "rank {} (process {}): {}", guest.rank, guest.socket.process(), error.message());
      }
      default:
        break;
    }
    guest.is_gone = true;
  }

  void greet(Guest& guest, const Hello& hello) {
    if (guest.rank >= 0 || is_complete()) {
      turn_away(guest.socket, size_);
      guest.is_gone = guest.rank < 0;
      return;
    }
    enter(hello, guest.socket.process(), &guest);
    send(guest.socket, Head(Kind::heard));
  }

  void enter(const Hello& hello, pid_t process, Guest* guest) {
    const std::string build = SharedWorld::build();
    if (build_of(hello) != build)
      throw_error(ErrorCode::mismatch, "process {} was built with \"{}\", process {} with \"{}\"", process,
                  printable(build_of(hello), name_chars_max), getpid(), build);
    if (hello.size != size_)
      throw_error(ErrorCode::mismatch, "process {} joins as rank {} of {}, process {} a world of {}", process,
                  hello.rank, hello.size, getpid(), amount(size_, "rank"));
    if (hello.rank < 0 || hello.rank >= size_)
      throw_error(ErrorCode::mismatch, "process {} joins as rank {} of {}", process, hello.rank, hello.size);
    Member& its = member(hello.rank);
    if (its.is_here)
      throw_error(ErrorCode::mismatch, "two processes join as rank {} of {}: process {} and process {}", hello.rank,
                  size_, its.peer.process, process);
    if (hello.says_heap_bytes != 0)
      for (const Member& other : members_)
        if (other.heap_bytes && *other.heap_bytes != hello.heap_bytes)
          throw_error(ErrorCode::mismatch, "rank {} (process {}) asks for symmetric heaps of {}, process {} for {}",
                      hello.rank, process, amount(hello.heap_bytes, "byte"), other.peer.process,
                      amount(*other.heap_bytes, "byte"));
    its = {.peer = {.process = process, .door = hello.door}, .is_here = true, .has_mapped = guest == nullptr};
    if (hello.says_heap_bytes != 0) its.heap_bytes = hello.heap_bytes;
    CPU_OR(&cores_, &cores_, &hello.cores);
    if (guest != nullptr) guest->rank = hello.rank;
    if (hello.deadline_ns < deadline_ns_) {
      deadline_ns_ = hello.deadline_ns;
      timeout_ns_ = hello.timeout_ns;
    }
  }

  void welcome_all(const Joined& joined) {
    std::vector<std::byte> message(sizeof(Head) + joined.peers.size() * sizeof(PeerWatch::Peer));
    const Head head(Kind::welcome, joined.peers.size());
    std::memcpy(message.data(), &head, sizeof head);
    std::memcpy(message.data() + sizeof head, joined.peers.data(), joined.peers.size() * sizeof(PeerWatch::Peer));
    for (const Guest& guest : guests_) {
      if (guest.rank < 0) continue;
      const int refused = guest.socket.send(message, joined.shared->descriptor());
      // A guest that is gone is reported when its end is read.
      if (refused != 0 && refused != EPIPE && refused != ECONNRESET)
        throw_error(ErrorCode::io, "cannot send {} about {} to rank {} (process {}): {}",
                    amount(message.size(), "byte"), amount(size_, "rank"), guest.rank, guest.socket.process(),
                    std::strerror(refused));
    }
  }

  [[noreturn]] void fail_late(const char* what) {
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < size_; ++rank)
      if (!(is_complete() ? member(rank).has_mapped : member(rank).is_here)) missing.push_back(rank);
    constexpr std::size_t named_max = 16;
    const std::size_t count = missing.size();
    std::string ranks;
    for (std::size_t i = 0; i < std::min(count, named_max); ++i)
      ranks += fmt::format("{}{}", i == 0 ? "" : i + 1 == count ? " and " : ", ", missing[i]);
    if (count > named_max) ranks += " and " + amount(count - named_max, "other");
    throw_error(ErrorCode::timeout, "{} {} of {} {} not {} within {:.3g} s", plural(Index(count), "rank"), ranks, size_,
                plural(Index(count), "has", "have"), what, seconds(timeout_ns_));
  }

  LocalSocket entrance_;
  Hello own_;
  World::InterruptCheck check_;
  int size_;
  std::int64_t deadline_ns_;  // the earliest of all that have joined, and the timeout behind it
  std::int64_t timeout_ns_;
  cpu_set_t cores_{};
  std::vector<Member> members_;
  std::vector<Guest> guests_;
};

// The processes that have not made it.

class Visit {
 public:
  Visit(const IdContent& id, const Hello& hello, World::InterruptCheck check)
      : id_(id), hello_(hello), check_(check), host_(connected()) {}

  void join(Joined& joined) {
    // A host that has refused before reading this may be gone; its refusal can still be received.
    send(host_, hello_);
    // The host, which knows the missing ranks, answers a hello that it has read at the deadline.
    constexpr std::int64_t grace_ns = 2'000'000'000;
    bool is_heard = false;
    for (;;) {
      const LocalSocket::Incoming incoming = host_.receive();
      OwnDescriptor memory;
      if (incoming.descriptor >= 0) memory = OwnDescriptor(incoming.descriptor);
      switch (incoming.state) {
        case LocalSocket::Incoming::State::message:
          break;
        case LocalSocket::Incoming::State::closed:
          throw_error(ErrorCode::peer_lost,
                      "process {}, which has made this world id, has ended or given up before all {} had joined",
                      id_.process, amount(hello_.size, "rank"));
        case LocalSocket::Incoming::State::nothing:
          if (const std::int64_t late_ns = now_ns() - hello_.deadline_ns; late_ns >= (is_heard ? grace_ns : 0))
            throw_error(ErrorCode::timeout,
                        "process {}, which has made this world id, {} within {:.3g} s: rank {} of {} waits for it",
                        id_.process, is_heard ? "has not answered" : "has not joined itself",
                        seconds(hello_.timeout_ns + (is_heard ? grace_ns : 0)), hello_.rank, hello_.size);
          std::vector<pollfd> polled = {{.fd = host_.descriptor(), .events = POLLIN}};
          wait_for(polled, hello_.deadline_ns + (is_heard && hello_.deadline_ns < INT64_MAX - grace_ns ? grace_ns : 0),
                   check_);
          continue;
      }
      const std::optional<Head> head = head_of(incoming.bytes);
      if (!head) throw_strange(incoming.bytes.size());
      switch (head->kind) {
        case Kind::heard:
          is_heard = true;
          break;
        case Kind::refused:
          if (const std::optional<Refusal> refusal = read_as<Refusal>(incoming.bytes)) throw refusal->error();
          throw_strange(incoming.bytes.size());
        case Kind::welcome:
          map(*head, incoming.bytes, memory, joined);
          send(host_, Head(Kind::mapped));
          break;
        case Kind::begun:
          if (!joined.shared) throw_strange(incoming.bytes.size());
          return;
        default:
          throw_strange(incoming.bytes.size());
      }
    }
  }

 private:
  LocalSocket connected() const {
    for (;;) {
      constexpr std::int64_t look_ns = 10'000'000;
      LocalSocket::Connection connection = LocalSocket::connect(id_.entrance, look_ns);
      if (connection.socket) return std::move(*connection.socket);
      switch (connection.error) {
        case ECONNREFUSED:
          throw_gone();
        case EPERM:
          throw_error(ErrorCode::mismatch, "this world id was made by a process of user {}, this process is one of {}",
                      connection.user, geteuid());
        case EAGAIN:  // many ranks connect at once
        case EINTR:
          break;
        default:
          throw_error(ErrorCode::io, "cannot reach process {}, which has made this world id: {}", id_.process,
                      std::strerror(connection.error));
      }
      if (check_ != nullptr) check_();
      if (now_ns() >= hello_.deadline_ns)
        throw_error(ErrorCode::timeout,
                    "process {}, which has made this world id, has not let rank {} of {} in within {:.3g} s",
                    id_.process, hello_.rank, hello_.size, seconds(hello_.timeout_ns));
    }
  }

  [[noreturn]] void throw_gone() const {
    const bool runs = kill(static_cast<pid_t>(id_.process), 0) == 0 || errno == EPERM;
    if (!runs)
      throw_error(ErrorCode::peer_lost, "process {}, which has made this world id, has ended (rank {} of {} joins)",
                  id_.process, hello_.rank, hello_.size);
    throw_error(ErrorCode::invalid_use,
                "process {}, which has made this world id, takes no ranks under it any more (rank {} of {} joins): its "
                "world has begun, or could not begin; an id is used once",
                id_.process, hello_.rank, hello_.size);
  }

  [[noreturn]] void throw_strange(std::size_t size_bytes) const {
    throw_error(ErrorCode::mismatch, "process {} has sent {} that this build does not understand: \"{}\"", id_.process,
                amount(size_bytes, "byte"), printable(build_of(hello_), name_chars_max));
  }

  void map(const Head& head, const std::vector<std::byte>& bytes, const OwnDescriptor& memory, Joined& joined) const {
    const auto size = static_cast<std::size_t>(hello_.size);
    if (joined.shared || head.count != size || bytes.size() != sizeof head + size * sizeof(PeerWatch::Peer))
      throw_strange(bytes.size());
    joined.peers.resize(size);
    std::memcpy(joined.peers.data(), bytes.data() + sizeof head, size * sizeof(PeerWatch::Peer));
    try {
      joined.shared = std::make_shared<SharedWorld>(fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
    } catch (const Error& error) {
      send(host_, Refusal(error));
      throw;
    }
    if (joined.shared->shape().ranks != hello_.size) throw_strange(bytes.size());
  }

  IdContent id_;
  Hello hello_;
  World::InterruptCheck check_;
  LocalSocket host_;
};

IdContent content_of(const WorldId& id) {
  IdContent content;
  std::memcpy(&content, id.bytes.data(), sizeof content);
  return content;
}

void check_place(const IdContent& id) {
  if (const auto here = this_start_of_the_machine(); id.machine != here)
    throw_error(ErrorCode::mismatch,
                "this world id was made on another machine, or before this one was started again (start {}..., here "
                "{}...): ranks of one world that join by an id share the memory of one machine",
                short_text(id.machine), short_text(here));
  if (const std::uint64_t here = this_network(); id.network != here)
    throw_error(ErrorCode::mismatch,
                "this world id was made in another container of this machine (network namespace {}, here {}): its "
                "socket cannot be reached from here",
                id.network, here);
}

}  // namespace

WorldId make_world_id() {
  IdContent content{.machine = this_start_of_the_machine(),
                    .network = this_network(),
                    .entrance = random_socket_name(),
                    .process = getpid()};
  std::memcpy(content.magic, IdContent::magic_here, sizeof content.magic);
  content.check = content.check_here();
  Ids::all().add(content.entrance, LocalSocket::listening(content.entrance));
  WorldId id;
  std::memcpy(id.bytes.data(), &content, sizeof content);
  return id;
}

std::optional<RankScope> join_world(const WorldId& id, Rank rank, int size, const JoinOptions& options) {
  const IdContent content = content_of(id);
  if (std::memcmp(content.magic, IdContent::magic_here, sizeof content.magic) != 0 ||
      content.check != content.check_here())
    return std::nullopt;
  check_place(content);

  const SocketName door_name = random_socket_name();
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  hello.heap_bytes = options.heap_bytes.value_or(0);
  hello.says_heap_bytes = options.heap_bytes ? 1 : 0;
  hello.timeout_ns = options.timeout_ns ? *options.timeout_ns : default_timeout_ns();
  hello.deadline_ns = Deadline::after_ns(hello.timeout_ns).at_ns();
  sched_getaffinity(0, sizeof hello.cores, &hello.cores);
  hello.door = door_name;
  SharedWorld::build().copy(hello.build, sizeof hello.build - 1);

  std::optional<LocalSocket> entrance = Ids::all().use(content.entrance);
  LocalSocket door = LocalSocket::listening(door_name);
  Joined joined;
  std::shared_ptr<void> watch;
  try {
    if (entrance)
      Host(std::move(*entrance), hello, options.interrupt_check).gather(joined);
    else
      Visit(content, hello, options.interrupt_check).join(joined);
    watch = std::make_shared<PeerWatch>(joined.shared, rank, std::move(joined.peers), std::move(door),
                                        std::move(joined.entrance));
  } catch (...) {
    if (joined.shared) {  // others may have begun
      const Error error = error_of_current_exception();
      joined.shared->board().post_failed(rank, error.code(), error.message());
    }
    throw;
  }
  return RankScope(std::move(watch), joined.shared->board(), rank, hello.timeout_ns,
                   [&] { return std::make_unique<ProcessesFabric>(joined.shared, rank); });
}

}  // namespace tranship
