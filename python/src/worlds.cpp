// Ranks: launching them, their worlds and teams.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/mpi/join_mpi.hpp>
#include <tranship/fabric/mpi/mpi_library.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sim/simulate_program.hpp>
#include <tranship/fabric/sub_world.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/fabric/world_id.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "rank_handle.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

/// Ctrl-C in a process whose ranks are threads: its main thread sees the signal, and the waits and loops of its ranks
/// must end.
std::atomic<bool> interrupted = false;

void check_interrupted() {
  if (interrupted.load(std::memory_order_relaxed)) throw Interrupt();
}

/// Raises an exception of a type in threads. Call it with the interpreter's lock.
void raise_in(const std::vector<unsigned long>& threads, nb::handle type) {
  for (const unsigned long id : threads) PyThreadState_SetAsyncExc(id, type.ptr());
}

/// The threads of the ranks of a launch that has not ended. The interpreter's lock guards it.
struct Launched {
  std::vector<unsigned long> threads;

  Launched() { all().push_back(this); }
  ~Launched() { std::erase(all(), this); }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  static std::vector<Launched*>& all() {
    static auto& launched = *new std::vector<Launched*>;
    return launched;
  }
};

/// Checks for signals in a rank that runs on the main thread of its process, and throws what their handlers raise.
void check_signals() {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// The exceptions of ranks, which their launcher raises again unchanged. The interpreter's lock guards it.
using Raised = std::map<Rank, nb::object>;

/// Calls `f(world)` in a rank that has the interpreter's lock.
void call_rank(World& world, const nb::callable& f, Raised* raised) {
  const RankOfThread here(world.rank());
  const auto handle = std::make_shared<RankHandle>(world);
  struct Leaving {
    RankHandle& handle;
    ~Leaving() { handle.close(); }
  } leaving{*handle};
  try {
    f(handle);
  } catch (const nb::python_error& exception) {
    world.set_failing();  // before anything that it has is released
    if (raised) (*raised)[world.rank()] = nb::borrow(exception.value());
    Error error = error_of(exception);
    error.rank = world.rank();
    throw Error(error);
  }
}

/// Runs ranks as threads while the calling thread checks for signals.
void launch_threads(const LaunchOptions& options, const nb::callable& f, Raised& raised) {
  PyInterpreterState* const interpreter = PyInterpreterState_Get();
  std::mutex mutex;
  std::condition_variable ended;
  bool is_over = false;
  std::exception_ptr thrown;
  Launched launched;
  std::vector<unsigned long>& thread_ids = launched.threads;
  std::thread launcher([&] {
    try {
      launch(options, [&](World& world) {
        const RankState state(interpreter);
        thread_ids.push_back(state.thread_id());  // the lock of the interpreter guards it
        world.set_interrupt_check(&check_interrupted);
        call_rank(world, f, &raised);
      });
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    is_over = true;
    ended.notify_one();
  });

  bool is_interrupted = false;
  std::optional<nb::python_error> interrupt;
  for (bool over = false; !over;) {
    {
      const nb::gil_scoped_release release;
      std::unique_lock lock(mutex);
      over = ended.wait_for(lock, std::chrono::milliseconds(20), [&] { return is_over; });
    }
    if (over || is_interrupted || PyErr_CheckSignals() == 0) continue;
    interrupt.emplace();
    is_interrupted = true;
    interrupted = true;
    raise_in(thread_ids, PyExc_KeyboardInterrupt);
  }
  launcher.join();
  if (is_interrupted) {
    interrupted = false;
    throw nb::python_error(*interrupt);
  }
  if (thrown) std::rethrow_exception(thrown);
}

/// Interrupts of a rank that is a process. A terminal sends Ctrl-C to all processes of a group, and the launcher passes
/// its interrupts on, because other senders reach the launcher alone. One Ctrl-C is one exception: an interrupt from
/// the launcher soon after another one is dropped.
class InterruptsOfRank {
 public:
  static void install() {
    struct sigaction now {};
    sigaction(SIGINT, nullptr, &now);
    const bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &handle;
    if (is_ours || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
    before_ = now;
    now.sa_flags |= SA_SIGINFO;
    now.sa_sigaction = &handle;
    sigaction(SIGINT, &now, nullptr);
  }

 private:
  static constexpr std::int64_t soon_ns = 1'000'000'000;

  static void handle(int number, siginfo_t* from, void* registers) {
    const std::int64_t at_ns = now_ns();
    const bool is_passed_on = from->si_code == SI_QUEUE && from->si_pid == getppid();
    if (is_passed_on && last_ns_ != 0 && at_ns - last_ns_ < soon_ns) return;
    last_ns_ = at_ns;
    if ((before_.sa_flags & SA_SIGINFO) != 0)
      before_.sa_sigaction(number, from, registers);
    else
      before_.sa_handler(number);
  }

  static inline struct sigaction before_ {};
  static inline std::int64_t last_ns_ = 0;
};

void launch_forked(LaunchOptions options, const nb::callable& f) {
  // This thread keeps the lock until all ranks have ended: no other thread may run Python between two forks.
  PyOS_BeforeFork();
  struct Parent {
    ~Parent() { PyOS_AfterFork_Parent(); }
  };
  const auto flush = [] {
    for (const char* name : {"stdout", "stderr"})
      if (PyObject* stream = PySys_GetObject(name); stream && stream != Py_None) {
        PyObject* done = PyObject_CallMethod(stream, "flush", nullptr);
        if (done == nullptr) PyErr_Clear();
        Py_XDECREF(done);
      }
  };
  flush();
  const Parent parent;
  options.interrupt_check = &check_signals;
  launch_processes(options, [&](World& world) {
    PyOS_AfterFork_Child();
    InterruptsOfRank::install();
    world.set_interrupt_check(&check_signals);
    struct Flush {
      decltype(flush)& f;
      ~Flush() { f(); }
    } at_end{flush};
    call_rank(world, f, nullptr);
  });
}

/// The threads of simulated ranks, and how often they were interrupted. The interpreter's lock guards it.
struct Simulated {
  std::vector<unsigned long> threads;
  int interrupts = 0;

  static Simulated& all() {
    static auto& simulated = *new Simulated;
    return simulated;
  }
};
/// Raises the exception of a signal handler in all simulated ranks. Returns true when a handler has raised one.
bool interrupt_simulated() {
  if (PyErr_CheckSignals() == 0) return false;
  const nb::python_error raised;
  ++Simulated::all().interrupts;
  raise_in(Simulated::all().threads, raised.type());
  return true;
}
void check_simulated() {
  check_interrupted();
  const nb::gil_scoped_acquire acquire;
  if (interrupt_simulated()) throw Interrupt();
}

/// `start` runs its argument as simulated ranks.
template <class Start>
void run_simulated(Start&& start, const nb::callable& f, Raised& raised) {
  PyInterpreterState* const interpreter = PyInterpreterState_Get();
  const int before = Simulated::all().interrupts;
  const auto run = [&](World& world) {
    world.set_interrupt_check(&check_simulated);
    const auto body = [&] {
      const RankState state(interpreter);
      struct Known {
        unsigned long id;
        explicit Known(unsigned long thread) : id(thread) { Simulated::all().threads.push_back(id); }
        ~Known() { std::erase(Simulated::all().threads, id); }
      } const known(state.thread_id());
      // A rank that begins after the others were interrupted is interrupted as well.
      if (Simulated::all().interrupts != before) PyThreadState_SetAsyncExc(known.id, PyExc_KeyboardInterrupt);
      call_rank(world, f, &raised);
    };
    const auto look = [] {
      const nb::gil_scoped_acquire acquire;
      interrupt_simulated();
    };
    FiberThread::run(body, look);
  };
  without_gil([&] { start(run); });
}

/// Called when the interpreter ends while other threads of the program run ranks: interrupts these threads, and waits a
/// few seconds for their end. A thread that uses the interpreter after its end would terminate the process.
void end_launches() {
  constexpr int patience = 500;  // times 10 ms
  Simulated& simulated = Simulated::all();
  for (int round = 0; round < patience && (!Launched::all().empty() || !simulated.threads.empty()); ++round) {
    if (round == 0) {
      interrupted = true;
      ++simulated.interrupts;
      for (const Launched* launched : Launched::all()) raise_in(launched->threads, PyExc_KeyboardInterrupt);
      raise_in(simulated.threads, PyExc_KeyboardInterrupt);
    }
    const nb::gil_scoped_release release;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Raises the exception of the rank that failed first, as that rank raised it.
template <class F>
void raising(const Raised& raised, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    const auto own = raised.find(error.rank);
    if (own == raised.end()) throw;
    PyErr_SetObject(own->second.type().ptr(), own->second.ptr());
    throw nb::python_error();
  }
}

std::int64_t in_ns(double seconds) {
  return seconds < 9e9 ? std::int64_t(seconds * 1e9) : INT64_MAX;
}

/// Throws when this process cannot join a world.
JoinOptions join_options(std::optional<double> timeout, std::optional<std::size_t> heap_bytes) {
  if (std::getenv(simulation_variable) != nullptr)
    throw_error(ErrorCode::unsupported,
                "a simulation runs a function once for each rank, but this interpreter runs its program only once: "
                "launch(f) can be simulated");
  JoinOptions options{.heap_bytes = heap_bytes, .interrupt_check = &check_signals};
  if (timeout) options.timeout_ns = in_ns(*timeout);
  return options;
}

std::shared_ptr<RankHandle> joined(FunctionRef<RankScope()> join, const JoinOptions& options) {
  auto out = without_gil([&] {
    auto handle = std::make_shared<RankHandle>(join());
    handle->world().set_interrupt_check(options.interrupt_check);
    if (options.timeout_ns) handle->world().set_timeout_ns(*options.timeout_ns);
    return handle;
  });
  RankOfThread::set(out->world().rank());
  return out;
}

WorldId world_id_of(const nb::bytes& bytes) {
  WorldId id;
  if (bytes.size() != id.bytes.size())
    throw_error(ErrorCode::invalid_use, "a world id has {}, got {}", amount(id.bytes.size(), "byte"), bytes.size());
  std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  return id;
}

}  // namespace

void bind_worlds(nb::module_& module) {
  nb::class_<RankHandle>(
      module, "World",
      "One rank's view of all ranks that run together. It ends with the function that launch() runs, or "
      "when the rank leaves.")
      .def_prop_ro("rank", [](const RankHandle& self) { return self.world().rank(); })
      .def_prop_ro("launched_rank",
                   [](const RankHandle& self) { return self.world().launched_rank(self.world().rank()); })
      .def_prop_ro("size", [](const RankHandle& self) { return self.world().size(); })
      .def_prop_rw(
          "timeout", [](const RankHandle& self) { return double(self.world().timeout_ns()) / 1e9; },
          [](RankHandle& self, double seconds) { self.world().set_timeout_ns(in_ns(seconds)); },
          "Seconds that a wait may take; math.inf is never.")
      .def(
          "barrier",
          [](RankHandle& self) {
            const CallSite where = python_call_site();
            without_gil([&] { self.world().barrier(where); });
            self.release();
          },
          "Collective. Completes this rank's transfers and waits for all ranks.")
      .def(
          "sync",
          [](RankHandle& self) {
            const CallSite where = python_call_site();
            without_gil([&] { self.world().sync(where); });
          },
          "Collective. Waits for all ranks; puts may still be on their way.")
      .def(
          "all_gather_bytes",
          [](RankHandle& self, const nb::bytes& mine) {
            const CallSite where = python_call_site();
            World& world = self.world();
            // The lengths go first: they may differ, and a gather needs one length.
            std::vector<std::uint64_t> sizes;
            std::vector<std::byte> padded, all;
            std::uint64_t longest = 0;
            without_gil([&] {
              sizes = world.all_gather<std::uint64_t>(mine.size(), where);
              for (const std::uint64_t size : sizes) longest = std::max(longest, size);
              padded.resize(longest);
              std::memcpy(padded.data(), mine.data(), mine.size());
              all.resize(longest * sizes.size());
              world.all_gather(padded.data(), longest, all.data(), where);
            });
            nb::list out;
            for (std::size_t i = 0; i < sizes.size(); ++i)
              out.append(nb::bytes(reinterpret_cast<const char*>(all.data()) + i * longest, sizes[i]));
            return out;
          },
          "mine"_a)
      .def(
          "reachable_bytes",
          [](const RankHandle& self, std::size_t count) {
            auto memory =
                std::make_unique<std::shared_ptr<void>>(self.world().local_memory(std::max(count, std::size_t(1))));
            if (!*memory)
              throw_error(ErrorCode::no_memory, "rank {} cannot get {} of memory that its peers reach",
                          self.world().rank(), amount(count, "byte"));
            void* const data = memory->get();
            const nb::capsule owner(memory.release(),
                                    [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
            return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(data, {count}, owner);
          },
          "count"_a, "Memory that peers reach, of any content.")
      .def(
          "activity_of", [](const RankHandle& self, Rank peer) { return self.world().activity_of(peer); }, "peer"_a,
          "The current activity of a rank, as failures report it.")
      .def(
          "global_exit", [](const RankHandle& self, int status) { self.world().global_exit(status); }, "status"_a)
      .def(
          "has_ended", [](const RankHandle& self, Rank peer) { return self.world().has_ended(peer); }, "peer"_a)
      .def(
          "is_reachable",
          [](const RankHandle& self, Rank peer) { return self.world().peer_kind(peer) == PeerKind::reachable; },
          "peer"_a, "True when this rank can load and store the memory of a peer.")
      .def(
          "split",
          [](const std::shared_ptr<RankHandle>& self, int first, int stride, int count,
             std::optional<std::size_t> heap_bytes) -> std::shared_ptr<RankHandle> {
            const CallSite where = python_call_site();
            return without_gil([&]() -> std::shared_ptr<RankHandle> {
              std::optional<Team> team =
                  self->world().team().split_strided({.first = first, .stride = stride, .count = count}, where);
              if (!team) return nullptr;
              auto sub = std::make_shared<RankHandle>(self, SubWorld(*team, {.heap_bytes = heap_bytes}, where));
              self->add(sub);
              return sub;
            });
          },
          "first"_a, "stride"_a, "count"_a, "heap_bytes"_a = nb::none(),
          "Collective: a world of the ranks first, first + stride, ...; None on the others.");

  module.def(
      "rank_of_thread",
      []() -> std::optional<int> {
        if (RankOfThread::current() < 0) return std::nullopt;
        return RankOfThread::current();
      },
      "The rank that the calling thread is.");
  module.def("world_id", [] {
    const WorldId id = WorldId::make();
    return nb::bytes(id.bytes.data(), id.bytes.size());
  });
  module.def(
      "join",
      [](const std::optional<nb::bytes>& id, Rank rank, int size, std::optional<double> timeout,
         std::optional<std::size_t> heap_bytes) {
        const JoinOptions options = join_options(timeout, heap_bytes);
        std::optional<WorldId> name;
        if (id) name = world_id_of(*id);
        return joined([&] { return name ? RankScope::join(*name, rank, size, options) : RankScope::join(); }, options);
      },
      "id"_a.none(), "rank"_a, "size"_a, "timeout"_a.none(), "heap_bytes"_a.none(),
      "Joins the world of an id, or the one that this process was started for.");
  module.def(
      "join_mpi",
      [](std::uint64_t comm, std::optional<double> timeout, std::optional<std::size_t> heap_bytes) {
        const Result<MpiLibrary>& library = mpi_library();
        if (!library) throw library.error();
        const JoinOptions options = join_options(timeout, heap_bytes);
        return joined([&] { return join_mpi(*library.value().mpi, comm, options); }, options);
      },
      "comm"_a, "timeout"_a.none(), "heap_bytes"_a.none(),
      "Collective: joins the world of a communicator, by its bits.");
  module.def(
      "leave",
      [](RankHandle& self, nb::handle exception, int rank_of_thread) {
        if (exception.is_none())
          self.close();
        else
          self.close(error_of(exception));
        RankOfThread::set(rank_of_thread);
      },
      "world"_a, "exception"_a.none(), "rank_of_thread"_a,
      "Ends all that lives in a world that was joined, and the rank's part in it.");
  module.def(
      "launch_ranks",
      [](int ranks, const nb::callable& f, const std::string& kind, std::optional<double> timeout,
         std::optional<std::size_t> heap_bytes, std::optional<int> teams_max, std::uint64_t seed, bool messaged,
         int ranks_per_host) {
        LaunchOptions options{.ranks = ranks, .heap_bytes = heap_bytes, .teams_max = teams_max};
        if (timeout) options.timeout_ns = in_ns(*timeout);
        Raised raised;
        if (kind == "threads")
          raising(raised, [&] { launch_threads(options, f, raised); });
        else if (kind == "processes")
          launch_forked(options, f);
        else if (kind == "sim") {
          SimulationOptions simulation{.ranks = ranks,
                                       .seed = seed,
                                       .peers = messaged ? PeerKind::messaged : PeerKind::reachable,
                                       .ranks_per_host = ranks_per_host};
          if (timeout) simulation.timeout_ns = in_ns(*timeout);
          if (heap_bytes) simulation.heap_bytes = heap_bytes;
          raising(raised, [&] { run_simulated([&](const auto& run) { simulate(simulation, run); }, f, raised); });
        } else
          throw Error(ErrorCode::invalid_use, "ranks='" + kind + "': needs 'threads', 'processes' or 'sim'");
      },
      "ranks"_a, "f"_a, "kind"_a, "timeout"_a, "heap_bytes"_a, "teams_max"_a, "seed"_a, "messaged"_a,
      "ranks_per_host"_a);
  module.def("end_launches", &end_launches);
  module.def("launch_this", [](const nb::callable& f) {
    Raised raised;
    raising(raised, [&] {
      if (std::getenv(simulation_variable) != nullptr) {
        run_simulated([&](const auto& run) { launch(run); }, f, raised);
        return;
      }
      launch([&](World& world) {
        world.set_interrupt_check(&check_signals);
        call_rank(world, f, &raised);
      });
    });
  });
}

}  // namespace tranship::python
