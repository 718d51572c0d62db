#include "tranship/fabric/mpi/mpi_world.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/hosts/hosts_fabric.hpp>
#include <tranship/fabric/mpi/keep_for_ever.hpp>
#include <tranship/fabric/mpi/mpi_library.hpp>
#include <tranship/fabric/mpi/mpi_process.hpp>
#include <tranship/fabric/mpi/mpi_wire.hpp>
#include <tranship/fabric/processes/local_socket.hpp>
#include <tranship/fabric/processes/machine_identity.hpp>
#include <tranship/fabric/processes/other_launcher.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>
#include <tranship/fabric/sim/simulate_program.hpp>

namespace tranship {
namespace {

/// The message that each process sends to all others.
struct Hello {
  char build[192] = {};
  char host[64] = {};  ///< that it says it is on
  std::array<std::uint8_t, 16> machine{};
  std::uint64_t network = 0;
  std::uint64_t user = 0;
  SocketName door{};
  std::uint64_t heap_bytes = 0;
  std::uint64_t says_heap_bytes = 0;
  std::int64_t process = 0;

  bool may_share_memory_with(const Hello& other) const {
    return machine == other.machine && network == other.network && user == other.user &&
           std::memcmp(host, other.host, sizeof host) == 0;
  }
};

/// Four numbers, for what is not measured yet, and for tests, which want messages cut small.
MpiWire::Sizes sizes_of_environment() {
  MpiWire::Sizes sizes;
  const char* const text = std::getenv(mpi_sizes_variable);
  if (text == nullptr || *text == '\0') return sizes;
  constexpr std::size_t short_bytes_min = MpiWire::Sizes::short_bytes_min;
  char behind = 0;
  if (std::sscanf(text, "%zu,%zu,%zu,%d%c", &sizes.short_bytes, &sizes.window_bytes, &sizes.piece_bytes,
                  &sizes.receives, &behind) != 4 ||
      sizes.short_bytes < short_bytes_min || sizes.short_bytes > std::size_t(INT_MAX) ||
      sizes.window_bytes / 2 < sizes.short_bytes || sizes.piece_bytes < 1 || sizes.piece_bytes > std::size_t(INT_MAX) ||
      sizes.receives < 1)
    throw_error(
        ErrorCode::bad_text,
        "{} is '{}': give four numbers as in \"16384,262144,1073741824,16\": bytes of a short message (at least {}), "
        "of all on their way to one peer (at least twice that), of a piece of a long message, and the posted receives",
        mpi_sizes_variable, printable(text), short_bytes_min);
  return sizes;
}

/// How far a process has come, so that all fail where one does.
struct Step {
  std::int32_t code = 0;  ///< an ErrorCode, 0 where all is well
  char text[252] = {};
};

/// All that a rank of such a world has besides its world.
struct MpiPart {
  const MpiModule& mpi;
  MpiHandle comm = 0;
  std::shared_ptr<SharedWorld> shared = {};
  std::unique_ptr<MpiWire> wire = {};
  std::unique_ptr<HostsEngine> engine = {};
  std::optional<int> finalise_key = {};
  bool is_refused_by_all = false;

  explicit MpiPart(const MpiModule& m) : mpi(m) {}
  MpiPart(const MpiPart&) = delete;
  MpiPart& operator=(const MpiPart&) = delete;
  ~MpiPart() { leave_mpi(); }
  /// Ends the parts of the world that need MPI; the world itself may still exist when MPI is finalised.
  static void at_finalise(void* with) {
    MpiPart& self = *static_cast<MpiPart*>(with);
    self.finalise_key.reset();
    Board& board = self.shared->board();
    if (self.engine && !board.ended(self.engine->rank())) board.post_finished(self.engine->rank());
    self.leave_mpi();
  }

  void leave_mpi() noexcept {
    if (engine) engine->close();  // nothing else calls MPI from here on
    wire.reset();
    const bool is_running = mpi.state() == MpiModule::State::running;
    if (finalise_key && is_running) mpi.not_at_finalise(*finalise_key);
    finalise_key.reset();
    if (comm == 0) return;
    // MPI may wait for the others when a communicator is freed, which a rank that has failed does not expect of them.
    // It gives the number of one that was freed to the next one, which would get what still comes.
    const bool all_have_left = !engine || engine->is_over();
    const bool all_come_here = is_refused_by_all || (all_have_left && shared && !shared->board().has_failed());
    if (!all_come_here)
      leave_mpi_running();
    else if (is_running)
      mpi.free(comm);
    comm = 0;
  }
};

/// The worlds that this process has left while ranks of other machines have not. The thread of each serves these; what
/// is left to do when all have ended is done by a rank's thread, because MPI_Finalize, which does it at the latest, may
/// not meet a call of another thread. Never destroyed: it may outlive MPI.
class LeftWorlds {
 public:
  static LeftWorlds& of_process() {
    static auto* const worlds = new LeftWorlds();
    return *worlds;
  }
  void add(std::shared_ptr<MpiPart> part) {
    const std::lock_guard lock(mutex_);
    parts_.push_back(std::move(part));
  }
  /// Frees those that all ranks have left by now.
  void free_some() {
    std::vector<std::shared_ptr<MpiPart>> over;
    const std::lock_guard lock(mutex_);
    const auto first =
        std::partition(parts_.begin(), parts_.end(), [](const auto& part) { return !part->engine->is_over(); });
    std::move(first, parts_.end(), std::back_inserter(over));
    parts_.erase(first, parts_.end());
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<MpiPart>> parts_;
};

/// Waits for no one where a thread can do that.
void leave_world(const std::shared_ptr<MpiPart>& part) {
  LeftWorlds::of_process().free_some();
  const bool has_thread = part->engine && part->engine->has_thread();
  if (!has_thread || part->mpi.state() != MpiModule::State::running || part->shared->board().has_failed())
    return part->leave_mpi();
  part->engine->linger();
  LeftWorlds::of_process().add(part);
}

class SetUp {
 public:
  SetUp(const MpiModule& mpi, const JoinOptions& options)
      : mpi_(mpi),
        options_(options),
        timeout_ns_(options.timeout_ns ? *options.timeout_ns : default_timeout_ns()),
        deadline_(Deadline::after_ns(timeout_ns_)),
        part_(std::make_shared<MpiPart>(mpi)) {}

  /// Says if a leaving rank waits for ranks of other machines. If tranship has initialised MPI, the end of the process
  /// waits for them.
  enum class Leaving : std::uint8_t { with_others, at_once };

  RankScope join(MpiHandle user_comm, Leaving leaving) {
    duplicate(user_comm);
    const LocalSocket door = greet();
    compare();
    find_hosts(door);
    share_memory();
    const Members here = Members::of(here_);
    const int hosts = *std::max_element(hosts_.begin(), hosts_.end()) + 1;
    SharedWorld& shared = *part_->shared;
    int key = 0;
    check_mpi(mpi_, mpi_.at_finalise(&MpiPart::at_finalise, part_.get(), &key), "keep what is called at its end");
    part_->finalise_key = key;
    if (hosts == 1)
      return RankScope(part_, shared.board(), rank_, timeout_ns_,
                       [&] { return std::make_unique<ProcessesFabric>(part_->shared, rank_); });
    part_->wire = std::make_unique<MpiWire>(mpi_, part_->comm, sizes_);
    const auto serving =
        mpi_.threads() == MpiThreads::multiple ? HostsEngine::Serving::by_thread : HostsEngine::Serving::by_caller;
    part_->engine = std::make_unique<HostsEngine>(*part_->wire, shared.board(), rank_, here,
                                                  shared.heap_of(here.member_of(rank_)), serving);
    std::shared_ptr<void> owner = part_;
    if (leaving == Leaving::at_once)
      owner = std::shared_ptr<void>(part_.get(), [part = part_](void*) { leave_world(part); });
    return RankScope(std::move(owner), shared.board(), rank_, timeout_ns_,
                     [&] { return std::make_unique<HostsFabric>(part_->shared, *part_->engine, hosts_); });
  }

 private:
  /// Where the wait fails, MPI may still write what is `kept`, as soon as those come who are late.
  template <class Memory>
  void wait_for(MpiHandle* request, const char* what, const std::shared_ptr<Memory>& kept) {
    try {
      for (int round = 0;; ++round) {
        bool is_complete = false;
        check_mpi(mpi_, mpi_.test(request, &is_complete, nullptr), what);
        if (is_complete) return;
        idle(round, what);
      }
    } catch (...) {
      keep_for_ever(kept);
      throw;
    }
  }
  void idle(int round, const char* what) {
    if (options_.interrupt_check != nullptr) options_.interrupt_check();
    if (deadline_.passed())
      throw_error(
          ErrorCode::timeout,
          "rank {} of {} has waited {} s for the other processes of its communicator to {}: some have not done so",
          rank_, size_, double(timeout_ns_) * 1e-9, what);
    clock_.idle(round);
  }

  void duplicate(MpiHandle user_comm) {
    if (mpi_.is_null(user_comm))
      throw_error(ErrorCode::invalid_use, "cannot join a world by MPI_COMM_NULL: give a communicator of its ranks");
    bool is_inter = false;
    check_mpi(mpi_, mpi_.is_inter(user_comm, &is_inter), "tell whether this is an intercommunicator");
    if (is_inter)
      throw_error(
          ErrorCode::invalid_use,
          "cannot join a world by an intercommunicator: give an intracommunicator (MPI_Intercomm_merge makes one)");
    check_mpi(mpi_, mpi_.rank(user_comm, &rank_), "tell the rank of this process");
    check_mpi(mpi_, mpi_.size(user_comm, &size_), "tell how many processes there are");
    MpiHandle request = 0;
    check_mpi(mpi_, mpi_.duplicate(user_comm, &part_->comm, &request), "duplicate a communicator");
    wait_for(&request, "join", part_);
    check_mpi(mpi_, mpi_.return_errors(part_->comm), "return errors");
  }

  template <class T>
  std::vector<T> gather(const T& mine, const char* what) {
    const auto all = std::make_shared<std::vector<T>>(static_cast<std::size_t>(size_) + 1);
    all->back() = mine;
    MpiHandle request = 0;
    check_mpi(mpi_, mpi_.all_gather(&all->back(), int(sizeof mine), all->data(), part_->comm, &request), what);
    wait_for(&request, what, all);
    all->pop_back();
    return std::move(*all);
  }

  /// Runs `f` on each process, and throws on all what it has thrown on the first one where it has.
  template <class F>
  void together(const char* what, F&& f) {
    Step mine;
    if (const Result<void> done = attempt([&] { f(); }); !done) {
      mine.code = std::int32_t(done.error().code()) + 1;
      done.error().message().copy(mine.text, sizeof mine.text - 1);
    }
    const std::vector<Step> all = gather(mine, what);
    for (Rank rank = 0; rank < size_; ++rank)
      if (const Step& step = all[std::size_t(rank)]; step.code != 0)
        refuse(Error(static_cast<ErrorCode>(step.code - 1), fmt::format("rank {} of {}: {}", rank, size_, step.text)));
  }

  /// Throws the error that all processes throw.
  [[noreturn]] void refuse(const Error& error) {
    part_->is_refused_by_all = true;
    throw Error(error);
  }

  LocalSocket greet() {
    Hello mine{.machine = this_start_of_the_machine(), .network = this_network(), .user = getuid()};
    std::optional<LocalSocket> door;
    mine.door = random_socket_name();
    together("read their settings", [&] {
      sizes_ = sizes_of_environment();
      door.emplace(LocalSocket::listening(mine.door));
    });
    fmt::format("{}; messages {} {} {}", SharedWorld::build(), sizes_.short_bytes, sizes_.window_bytes,
                sizes_.piece_bytes)
        .copy(mine.build, sizeof mine.build - 1);
    if (const char* const host = std::getenv(host_variable))
      std::string_view(host).copy(mine.host, sizeof mine.host - 1);
    mine.heap_bytes = options_.heap_bytes.value_or(0);
    mine.says_heap_bytes = options_.heap_bytes ? 1 : 0;
    mine.process = getpid();
    hellos_ = gather(mine, "say who they are");
    return std::move(*door);
  }

  /// All have the same words before them, and so come to the same result.
  void compare() {
    const auto text = [](const Hello& hello) {
      return std::string(hello.build, strnlen(hello.build, sizeof hello.build));
    };
    for (Rank rank = 0; rank < size_; ++rank) {
      const Hello& hello = hellos_[std::size_t(rank)];
      if (text(hello) != text(hellos_[0]))
        refuse(make_error(ErrorCode::mismatch, "rank 0 is \"{}\", rank {} is \"{}\": builds and {} must be the same",
                          printable(text(hellos_[0]), name_chars_max), rank, printable(text(hello), name_chars_max),
                          mpi_sizes_variable));
      if (hello.says_heap_bytes == 0) continue;
      if (heap_bytes_ && *heap_bytes_ != hello.heap_bytes)
        refuse(make_error(ErrorCode::mismatch, "rank {} asks for symmetric heaps of {}, rank {} for {}", heap_rank_,
                          amount(*heap_bytes_, "byte"), rank, amount(hello.heap_bytes, "byte")));
      if (!heap_bytes_) heap_rank_ = rank;
      heap_bytes_ = hello.heap_bytes;
    }
  }

  /// The first rank that may share memory with this one keeps open what connects to it.
  void find_hosts(const LocalSocket& door) {
    const Hello& mine = hellos_[std::size_t(rank_)];
    leader_ = 0;
    while (!mine.may_share_memory_with(hellos_[std::size_t(leader_)])) ++leader_;
    bool is_connected = true;
    if (leader_ != rank_) {
      LocalSocket::Connection connection =
          LocalSocket::connect(hellos_[std::size_t(leader_)].door, deadline_.remaining_ns());
      // Where it cannot be reached, this rank is on a host of its own.
      is_connected = connection.socket && connection.socket->send(std::as_bytes(std::span(&rank_, 1))) == 0;
      if (is_connected) to_leader_ = std::move(connection.socket);
    }
    const std::vector<Rank> leaders = gather(is_connected ? leader_ : rank_, "say which host they are on");
    leader_ = leaders[std::size_t(rank_)];
    hosts_.assign(std::size_t(size_), -1);
    int hosts = 0;
    for (Rank rank = 0; rank < size_; ++rank) {
      // A leader comes before those whom it leads.
      const Rank leader = leaders[std::size_t(rank)];
      hosts_[std::size_t(rank)] = leader == rank ? hosts++ : hosts_[std::size_t(leader)];
      if (leader == leader_) here_.push_back(rank);
    }
    if (leader_ != rank_) return;
    while (from_members_.size() + 1 < here_.size()) {
      std::optional<LocalSocket> member = door.accept();
      if (!member) {
        pollfd polled{.fd = door.descriptor(), .events = POLLIN};
        poll(&polled, 1, 10);
        idle(0, "connect");
        continue;
      }
      from_members_.push_back(std::move(*member));
    }
  }

  /// One rank of each host makes what its ranks share.
  void share_memory() {
    together("share memory", [&] {
      if (leader_ != rank_) return;
      part_->shared = SharedWorld::make({.ranks = int(here_.size()), .heap_bytes = heap_bytes_, .board_ranks = size_},
                                        SharedWorld::Kind::processes);
      for (const LocalSocket& member : from_members_)
        if (const int refused = member.send(std::as_bytes(std::span(&rank_, 1)), part_->shared->descriptor()))
          throw_error(ErrorCode::io, "cannot hand the memory of this host to process {}: {}", member.process(),
                      std::strerror(refused));
    });
    together("map the memory of their host", [&] {
      if (leader_ == rank_) return;
      for (int round = 0;; ++round) {
        LocalSocket::Incoming incoming = to_leader_->receive();
        if (incoming.state == LocalSocket::Incoming::State::closed)
          throw_error(ErrorCode::peer_lost, "rank {} (process {}) has ended before it gave memory to rank {}", leader_,
                      hellos_[std::size_t(leader_)].process, rank_);
        if (incoming.state == LocalSocket::Incoming::State::nothing) {
          idle(round, "hand out memory");
          continue;
        }
        part_->shared = std::make_shared<SharedWorld>(incoming.descriptor);
        return;
      }
    });
  }

  const MpiModule& mpi_;
  const JoinOptions& options_;
  SharedClock clock_{1, 1};
  std::int64_t timeout_ns_;
  Deadline deadline_;
  std::shared_ptr<MpiPart> part_;
  Rank rank_ = 0;
  int size_ = 0;
  MpiWire::Sizes sizes_;
  std::vector<Hello> hellos_;
  std::optional<std::size_t> heap_bytes_;
  Rank heap_rank_ = 0;
  Rank leader_ = 0;
  std::vector<int> hosts_;  // by rank
  std::vector<Rank> here_;
  std::optional<LocalSocket> to_leader_;
  std::vector<LocalSocket> from_members_;
};

/// Throws `invalid_use` on a thread that may not call MPI.
void check_thread(const MpiModule& mpi) {
  if (mpi.threads() <= MpiThreads::funneled && !mpi.is_main_thread())
    throw_error(ErrorCode::invalid_use,
                "MPI was initialised with {}, and this is not the thread that has initialised it: join a world on that "
                "thread, or initialise MPI with MPI_THREAD_MULTIPLE",
                name_of(mpi.threads()));
}

}  // namespace

std::optional<RankScope> join_mpi_job() {
  const std::optional<OtherLauncher> launcher = other_launcher();
  if (!launcher || !mpi_launcher_waits()) return std::nullopt;
  const Result<MpiLibrary>& library = mpi_library();
  if (!library)
    throw_error(ErrorCode::unsupported, "{}, but its MPI cannot be used: {}", launcher->text(),
                library.error().message());
  const MpiModule& mpi = *library.value().mpi;
  initialise_mpi(mpi);
  check_thread(mpi);
  int size = 0;
  check_mpi(mpi, mpi.size(mpi.world(), &size), "tell how many processes there are");
  if (launcher->processes > 0 && size != launcher->processes)
    throw_error(ErrorCode::mismatch,
                "{} has started {} ({}), but {} ({}) has a world of {}: launcher and library belong to different MPIs; "
                "set {} to the library of the launcher",
                launcher->name, amount(launcher->processes, "process", "processes"), launcher->variables,
                library.value().path, library.value().version, size, mpi_library_variable);
  return SetUp(mpi, {}).join(mpi.world(), SetUp::Leaving::with_others);
}

RankScope join_mpi(const MpiModule& mpi, MpiHandle comm, const JoinOptions& options) {
  detail::refuse_to_be_simulated("by a communicator of MPI");
  if (mpi.version != MpiModule::version_here)
    throw_error(ErrorCode::mismatch,
                "this program was compiled for version {} of tranship's table of MPI calls, but runs with a library "
                "that has version {}: rebuild it",
                mpi.version, MpiModule::version_here);
  if (mpi.state() != MpiModule::State::running)
    throw_error(ErrorCode::invalid_use,
                "in this process MPI {}: join a world by a communicator between MPI_Init and MPI_Finalize",
                mpi.state() == MpiModule::State::before ? "has not been initialised (a session alone does not do that)"
                                                        : "has been finalised");
  check_thread(mpi);
  LeftWorlds::of_process().free_some();
  RankScope scope = SetUp(mpi, options).join(comm, SetUp::Leaving::at_once);
  scope.world().set_interrupt_check(options.interrupt_check);
  return scope;
}

}  // namespace tranship
