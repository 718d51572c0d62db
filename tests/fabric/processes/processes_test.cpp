// Ranks that are processes: how they die, what the others learn of it, and that nothing is left of them.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

#include "support/paths.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

constexpr LaunchOptions four{.ranks = 4, .timeout_ns = 20'000'000'000};

/// What launch_processes throws.
template <class F>
Error failure(const LaunchOptions& options, F&& f) {
  return error_of_rank([&] { run_on(On::processes, options, f); });
}

void expect_says(const Error& error, ErrorCode code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(error.code(), code) << error.message();
  for (const char* part : parts)
    EXPECT_NE(error.message().find(part), std::string::npos) << part << " in " << error.message();
}

// Systems that refuse something.

/// Runs `f` in a process of its own, which may limit itself; what it throws is a failure.
template <class F>
::testing::AssertionResult in_a_process(F&& f) {
  const pid_t pid = fork();
  if (pid == 0) {
    unsetenv("TRANSHIP_HEAP");
    try {
      f();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (status == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "it has ended with status " << status;
}
void limit(decltype(RLIMIT_AS) what, std::size_t bytes) {
  const rlimit limits{bytes, bytes};
  require(setrlimit(what, &limits) == 0, "no limit of {}", bytes);
}

TEST(Processes, are_processes) {
  const pid_t parent = getpid();
  run_on(On::processes, 3, [&](World& world) {
    require(getppid() == parent, "not a child");
    const auto pids = world.all_gather(getpid());
    require(pids[0] != pids[1] && pids[1] != pids[2], "not processes");
  });
}

TEST(Processes, pass_on_what_a_rank_throws_with_its_code) {
  const Error error = failure(four, [](World& world) {
    if (world.rank() == 2) throw Error(ErrorCode::bad_file, "part 7 is short");
    const Error seen = error_of_rank([&] { world.barrier(); });
    require_says(seen, ErrorCode::peer_lost, {"rank 2 failed: part 7 is short"});
    throw seen;
  });
  expect_says(error, ErrorCode::bad_file, {"part 7 is short"});
  EXPECT_EQ(error.rank, 2);
}

// The deadlines are generous: what waits for one fails for another reason than the one that is asked for.

TEST(Processes, that_are_killed_are_named) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    const Error error = failure(four, [&](World& world) {
      world.barrier();
      if (world.rank() == 1) {
        std::signal(signal, SIG_DFL);
        raise(signal);
      }
      const Error seen = error_of_rank([&] { world.barrier(); });
      require_says(seen, ErrorCode::peer_lost, {"rank 1 failed: process ", " was killed by signal "});
      require(seen.peer == 1, "peer {}", seen.peer);
      throw seen;
    });
    expect_says(error, ErrorCode::peer_lost, {" (rank 1) was killed by signal ", strsignal(signal)});
    EXPECT_EQ(error.rank, 1);
  }
}

TEST(Processes, that_end_in_the_middle_are_named) {
  struct End {
    void (*end)();
    ErrorCode code;
    const char* says;
  };
  for (const End& how :
       {End{[] { _exit(7); }, ErrorCode::peer_lost, "ended with exit code 7 without reporting an error"},
        End{[] { std::exit(3); }, ErrorCode::peer_lost, "ended with exit code 3 without reporting an error"},
        End{[] { _exit(0); }, ErrorCode::peer_lost, "ended with exit code 0 without reporting an error"},
        End{[] { throw std::out_of_range("index 9 of 4"); }, ErrorCode::user_exception,
            "std::out_of_range: index 9 of 4"},
        End{[] { throw 42; }, ErrorCode::user_exception, "an exception of type int"}}) {
    const Error error = failure(four, [&](World& world) {
      world.barrier();
      if (world.rank() == 3) how.end();
      const Error seen = error_of_rank([&] { world.barrier(); });
      require_says(seen, ErrorCode::peer_lost, {"rank 3 failed: ", how.says});
      throw seen;
    });
    expect_says(error, how.code, {how.says});
    EXPECT_EQ(error.rank, 3);
  }
}

TEST(Processes, that_are_killed_end_waits_without_a_deadline) {
  const Error error = failure({.ranks = 4, .timeout_ns = INT64_MAX}, [](World& world) {
    const auto signal = world.allocate<std::uint64_t>(1);
    const SharedFlags words = world.shared_flags(1, "steps");
    const auto is_waiting = [&](Rank r) { return world.activity_of(r).rfind("waiting for ", 0) == 0; };
    if (world.rank() == 3) {
      world.wait_until([&] { return is_waiting(0) && is_waiting(1) && is_waiting(2); }, "the others");
      raise(SIGKILL);
    }
    const Error seen = error_of_rank([&] {
      if (world.rank() == 0) world.context().signal_wait(signal, Comparison::equal, 1);
      if (world.rank() == 1) world.wait(words, 1, 0, 1, "a step");
      world.barrier();
    });
    require_says(seen, ErrorCode::peer_lost, {"rank 3 failed: process ", " was killed by signal 9"});
    throw seen;
  });
  EXPECT_EQ(error.rank, 3);
}

TEST(Processes, may_be_killed_in_a_barrier) {
  const Error error = failure({.ranks = 3, .timeout_ns = INT64_MAX}, [](World& world) {
    const auto pids = world.all_gather(getpid());
    if (world.rank() < 2) {
      world.wait_until([&] { return world.activity_of(2).rfind("waiting for barrier", 0) == 0; }, "rank 2");
      if (world.rank() == 0) kill(pids[2], SIGKILL);
    }
    const Error seen = error_of_rank([&] {
      world.barrier();  // to this one it has come
      world.barrier();
    });
    require_says(seen, ErrorCode::peer_lost, {"rank 2 failed: process ", " was killed by signal 9"});
    throw seen;
  });
  EXPECT_EQ(error.rank, 2);
}

TEST(Processes, may_be_killed_when_half_of_a_put_is_there) {
  const Error error = failure({.ranks = 3, .timeout_ns = INT64_MAX}, [](World& world) {
    Context& rma = world.context();
    const auto data = world.allocate<std::uint64_t>(1 << 20);
    const auto pids = world.all_gather(getpid());
    if (world.rank() == 0) {
      std::vector<std::uint64_t> source(std::size_t(data.size()));
      for (std::uint64_t i = 1;; ++i) {
        std::fill(source.begin(), source.end(), i);
        rma.put(data, source, 1);
      }
    }
    if (world.rank() == 1) {
      const auto word = [&](Index i) { return detail::load_word(data.local() + i); };
      world.wait_until([&] { return word(0) != word(data.size() / 2); }, "half of a put");
      kill(pids[0], SIGKILL);
    }
    const Error seen = error_of_rank([&] { world.barrier(); });
    require_says(seen, ErrorCode::peer_lost, {"rank 0 failed: process ", " was killed by signal 9"});
    throw seen;
  });
  EXPECT_EQ(error.rank, 0);
}

TEST(Processes, may_be_killed_in_the_middle_of_a_put) {
  // At some point between the first byte and the last of many puts; what matters is that the others learn of it, and
  // that what has been signalled is whole.
  for (int round = 0; round < 5; ++round) {
    const Error error = failure({.ranks = 2, .timeout_ns = 20'000'000'000}, [round](World& world) {
      Context& rma = world.context();
      const auto data = world.allocate<std::uint64_t>(1 << 16);
      const auto signal = world.allocate<std::uint64_t>(1);
      if (world.rank() == 0) {
        std::vector<std::uint64_t> source(std::size_t(data.size()));
        const pid_t killer = fork();
        if (killer == 0) {
          const timespec nap = {0, 2'000'000 + 700'000 * round};
          nanosleep(&nap, nullptr);
          kill(getppid(), SIGKILL);
          _exit(0);
        }
        for (std::uint64_t i = 1;; ++i) {
          std::fill(source.begin(), source.end(), i);
          rma.put_signal(data, source, signal, i, SignalOp::set, 1);
        }
      }
      std::uint64_t seen = 0;
      for (;;) {
        seen = rma.signal_wait(signal, Comparison::greater, seen, 0);
        for (Index i = 0; i < data.size(); i += 4096) require(data[i] >= seen, "{} of {}", data[i], seen);
      }
    });
    expect_says(error, ErrorCode::peer_lost, {"was killed by signal 9"});
    EXPECT_EQ(error.rank, 0);
  }
}

TEST(Processes, that_poll_learn_who_was_killed) {
  const Error error = failure({.ranks = 4, .timeout_ns = INT64_MAX}, [](World& world) {
    const auto flag = world.allocate<std::uint64_t>(1);
    Context& rma = world.context();
    world.barrier();
    if (world.rank() == 3) raise(SIGKILL);
    const Error seen = error_of_rank([&] {
      while (world.rank() == 0 && !rma.test(flag, Comparison::equal, 1)) RealSync::pause();
      while (world.rank() == 1 && rma.g(flag, 3) == 0) RealSync::pause();
      while (world.rank() == 2 && rma.compare_swap(flag, 1, 2, 3) != 1) RealSync::pause();
    });
    require_says(seen, ErrorCode::peer_lost, {"rank 3 failed: process ", " was killed by signal 9", " polls "});
    throw seen;
  });
  EXPECT_EQ(error.rank, 3);
}

TEST(Processes, that_are_stopped_are_named_and_ended_when_the_others_have_failed) {
  const Error error = failure({.ranks = 3, .grace_ns = 50'000'000}, [](World& world) {
    world.barrier();
    world.set_timeout_ns(100'000'000);  // for the second barrier only: the first waits for ranks that start
    if (world.rank() == 1) raise(SIGSTOP);
    world.barrier();
  });
  expect_says(error, ErrorCode::timeout,
              {"waited ", "; rank 1 (process ",
               ", stopped by a signal): not ended within "
               "0.05 s of that, and killed"});
  // So are others that go on by themselves.
  const Error busy = failure({.ranks = 2, .grace_ns = 50'000'000}, [](World& world) {
    world.barrier();
    if (world.rank() == 0) throw Error(ErrorCode::io, "disk gone");
    for (;;) RealSync::pause();
  });
  expect_says(busy, ErrorCode::io,
              {"disk gone; rank 1 (running since barrier (collective call 1)): not ended within "});
}

TEST(Processes, are_interrupted_with_their_launcher_and_killed_when_they_stay) {
  struct Shown {
    std::atomic<int> ready = 0, interrupts = 0, signal_code = 0;
  };
  static Shown* shown = nullptr;
  void* const memory = mmap(nullptr, sizeof(Shown), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  shown = new (memory) Shown;
  const auto body = [](World& world) {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* from, void*) {
      shown->signal_code = from->si_code;
      _exit(3);
    };
    if (world.rank() == 0) sigaction(SIGINT, &action, nullptr);
    if (world.rank() == 1) signal(SIGINT, SIG_IGN);
    ++shown->ready;
    for (;;) ::pause();  // which handlers interrupt under any sanitizer
  };
  const auto launched = [&](std::int64_t grace_ns, World::InterruptCheck check) {
    shown->ready = shown->interrupts = shown->signal_code = 0;
    const LaunchOptions options{.ranks = 2, .grace_ns = grace_ns, .interrupt_check = check};
    expect_says(error_of_rank([&] { launch_processes(options, body); }), ErrorCode::user_exception, {"interrupt 1"});
  };
  launched(50'000'000, [] {
    if (shown->ready == 2 && shown->interrupts == 0)
      throw_error(ErrorCode::user_exception, "interrupt {}", ++shown->interrupts);
  });
  EXPECT_EQ(shown->interrupts, 1);
  // A second interrupt does not wait for those that stay, which here would be for ever.
  launched(Deadline::never().remaining_ns(), [] {
    const bool is_due = shown->interrupts == 0 ? shown->ready == 2 : shown->signal_code != 0;
    if (is_due) throw_error(ErrorCode::user_exception, "interrupt {}", ++shown->interrupts);
  });
  EXPECT_GE(shown->interrupts, 2);
  EXPECT_EQ(shown->signal_code, SI_QUEUE);
  munmap(memory, sizeof(Shown));
}

TEST(Processes, are_refused_where_the_system_allows_too_few_of_them_with_both_numbers) {
  EXPECT_TRUE(in_a_process([] {
    limit(RLIMIT_NOFILE, 100);
    require_says(error_of_rank([] { launch_processes(50, [](World&) {}); }), ErrorCode::no_memory,
                 {"50 ranks that are processes need 114 open files; this process may have 100"});
    const rlimit soft{80, 100};
    require(setrlimit(RLIMIT_NOFILE, &soft) == 0, "no limit");
    launch_processes(30, [](World& world) {
      rlimit files{};
      require(getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur == 80, "{} files", files.rlim_cur);
      world.barrier();
    });
    rlimit files{};
    require(getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur == 80, "{} files", files.rlim_cur);
  }));
}

TEST(Processes, have_no_files_of_each_other) {
  launch_processes(8, [](World& world) {
    std::int64_t files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) ++files;
    const std::vector<std::int64_t> all = world.all_gather(files);
    for (const std::int64_t one : all) require(one == all[0], "{} files on rank 0, {} on another one", all[0], one);
  });
}

TEST(Processes, leave_nothing_behind) {
  const auto count = [](const char* folder) {
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++files;
    return files;
  };
  const std::size_t named = named_memory(), descriptors = count("/proc/self/fd");
  (void)failure(four, [](World& world) {
    const auto data = world.allocate<int>(1000);
    world.barrier();
    if (world.rank() == 1) raise(SIGKILL);
    world.barrier();
  });
  EXPECT_EQ(named_memory(), named);
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

/// `start(pipe_end)` starts ranks that keep the pipe open, write a byte into it, and never end.
template <class F>
void expect_death_with_the_launcher(F&& start) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    close(pipe_ends[0]);
    start(pipe_ends[1]);
    _exit(0);
  }
  close(pipe_ends[1]);
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  // The other end of the pipe is closed when the last of them is gone.
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0);
  close(pipe_ends[0]);
}

TEST(Processes, die_with_the_one_that_has_started_them) {
  expect_death_with_the_launcher([](int pipe_end) {
    run_on(On::processes, {.ranks = 3, .timeout_ns = INT64_MAX}, [&](World& world) {
      world.barrier();
      if (world.rank() == 0) (void)!write(pipe_end, "x", 1);
      world.wait_until([] { return false; }, "nothing", Deadline::never());
    });
  });
}

TEST(Processes, do_not_reach_private_memory) {
  run_on(On::processes, 2, [](World& world) {
    int mine = 3;
    require(!world.is_exposed(&mine), "offered");
    const auto pointers = world.all_gather(&mine);
    require(world.reach(1 - world.rank(), pointers[std::size_t(1 - world.rank())]) == nullptr, "reached");
    const std::shared_ptr<void> memory = world.local_memory(1000);
    require(world.is_exposed(memory.get()), "not offered");
    *static_cast<int*>(memory.get()) = 40 + world.rank();
    const auto shared = world.all_gather(memory.get());
    const Rank peer = 1 - world.rank();
    const auto* theirs = static_cast<const int*>(world.reach(peer, shared[std::size_t(peer)]));
    require(theirs && *theirs == 40 + peer, "not reached");
    world.barrier();
  });
}

TEST(Processes, local_memory_can_run_out_and_comes_back) {
  run_on(On::processes, {.ranks = 2, .heap_bytes = std::size_t(16) << 20}, [](World& world) {
    for (int round = 0; round < 3; ++round) {
      const auto large = world.local_memory(std::size_t(12) << 20);
      require(large != nullptr, "round {}", round);
      require(world.local_memory(std::size_t(12) << 20) == nullptr, "too much");
    }
  });
}

TEST(Processes, memory_that_the_system_has_not_is_an_error_on_every_rank_of_a_world_that_works) {
  const Index available = available_memory_bytes();
  run_on(On::processes, {.ranks = 3, .heap_bytes = std::size_t(available) * 2}, [&](World& world) {
    // More than any of them could touch.
    require_says(error_of_rank([&] { world.allocate<char>(available / 4 * 5); }), ErrorCode::no_memory,
                 {"a symmetric block of ", " bytes exceeds the memory of this machine", "are available"});
    const auto word = world.allocate<int>(1);
    world.context().p(word, world.rank(), (world.rank() + 1) % 3);
    world.barrier();
    require(word[0] == (world.rank() + 2) % 3, "{}", word[0]);
  });
}

/// The descriptor of the memory that the ranks share.
int shared_descriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry, ignored).string().rfind("/memfd:tranship", 0) == 0)
      return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST(Processes, memory_that_one_rank_is_refused_is_an_error_on_every_rank_of_a_world_that_works) {
  run_on(On::processes, 3, [](World& world) {
    const int descriptor = shared_descriptor(), kept = dup(descriptor), refuses = open("/dev/null", O_RDWR);
    require(descriptor >= 0 && kept >= 0 && refuses >= 0, "{} {} {}", descriptor, kept, refuses);
    const HeapUsage before = world.heap_usage();
    if (world.rank() == 1) dup2(refuses, descriptor);
    require_says(error_of_rank([&] { world.allocate<char>(1 << 19); }), ErrorCode::no_memory,
                 {world.rank() == 1 ? "cannot get 524288 bytes of shared memory: "
                                    : "rank 1 cannot get 524288 bytes for its symmetric heap: cannot get 524288 "
                                      "bytes of shared memory: "});
    dup2(kept, descriptor);
    const auto data = world.allocate<char>(1 << 19);
    require(world.heap_usage().used_bytes == before.used_bytes + (1 << 19), "{}", world.heap_usage().used_bytes);
    world.context().p(data, 'x', (world.rank() + 1) % 3);
    world.barrier();
    require(data[0] == 'x', "not there");
  });
}

/// Of addresses, to those that it has and `bytes` more.
void limit_addresses(std::size_t bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  limit(RLIMIT_AS, pages * page_bytes() + bytes);
}
/// With heaps that are not said to be of any size.
void require_small_heaps_that_work(On on, std::size_t all_max) {
  const auto program = [&](World& world) {
    const std::size_t reserved = world.heap_usage().reserved_bytes;
    require(reserved >= (std::size_t(8) << 20) && 3 * reserved < all_max, "{} bytes are reserved", reserved);
    const auto data = world.allocate<char>(Index(1) << 20);
    world.context().p(data, 'x', (world.rank() + 1) % 3);
    world.barrier();
    require(data[0] == 'x', "not there");
  };
  if (on == On::threads)
    launch(3, program);
  else
    launch_processes(3, program);
}

constexpr std::size_t mega = std::size_t(1) << 20;

#if defined(TRANSHIP_SANITIZED)
#define TRANSHIP_NEEDS_LIMITED_ADDRESSES() GTEST_SKIP() << "sanitizers need more addresses than any limit leaves"
#else
#define TRANSHIP_NEEDS_LIMITED_ADDRESSES() static_cast<void>(0)
#endif

TEST(Reservation, becomes_smaller_where_addresses_are_limited) {
  TRANSHIP_NEEDS_LIMITED_ADDRESSES();
  for (const On on : {On::threads, On::processes})
    EXPECT_TRUE(in_a_process([&] {
      limit_addresses(512 * mega);
      require_small_heaps_that_work(on, 512 * mega);
    })) << name_of(on);
}
TEST(Reservation, becomes_smaller_where_files_are_limited) {
  EXPECT_TRUE(in_a_process([] {
    limit(RLIMIT_FSIZE, 512 * mega);
    require_small_heaps_that_work(On::processes, 512 * mega);
  }));
}
TEST(Reservation, that_was_asked_for_is_granted_or_refused_with_both_numbers) {
  TRANSHIP_NEEDS_LIMITED_ADDRESSES();
  const auto refuses = [](const LaunchOptions& options) {
    for (const On on : {On::threads, On::processes})
      require_says(
          error_of_rank([&] {
            const auto program = [](World&) {};
            on == On::threads ? launch(options, program) : launch_processes(options, program);
          }),
          ErrorCode::no_memory,
          {"cannot make symmetric heaps of 2147483648 bytes for each of 3 ranks: the system grants ", " each ("});
  };
  EXPECT_TRUE(in_a_process([&] {
    limit_addresses(512 * mega);
    refuses({.ranks = 3, .heap_bytes = 2048 * mega});
    setenv("TRANSHIP_HEAP", "2G", 1);
    refuses({.ranks = 3});
  }));
}
TEST(Reservation, that_is_too_small_to_be_of_use_is_refused) {
  TRANSHIP_NEEDS_LIMITED_ADDRESSES();
  EXPECT_TRUE(in_a_process([] {
    limit_addresses(40 * mega);
    require_says(error_of_rank([] { launch(3, [](World&) {}); }), ErrorCode::no_memory,
                 {" for each of 3 ranks: the system grants "});
  }));
}

int initialised = 5;
std::array<double, 3> zeros;

TEST(Processes, have_static_variables_that_can_be_made_symmetric) {
  launch_processes(3, [](World& world) {
    static Index within = 40;
    initialised += world.rank();
    Context& rma = world.context();
    const Rank next = (world.rank() + 1) % 3, before = (world.rank() + 2) % 3;
    {
      const RegisteredMemory statics = world.register_statics();
      require(initialised == 5 + world.rank(), "{}", initialised);
      const std::array<double, 2> values = {1.5, double(world.rank())};
      rma.put(statics.symmetric(zeros.data() + 1, 2), values, next);
      rma.add(statics.symmetric(&within), world.rank(), 0);
      require(rma.g(statics.symmetric(&initialised), next) == 5 + next, "what a peer had");
      world.barrier();
      require(zeros[0] == 0 && zeros[1] == 1.5 && zeros[2] == before, "{} {} {}", zeros[0], zeros[1], zeros[2]);
      require(within == (world.rank() == 0 ? 43 : 40), "{}", within);
      int automatic = 0;
      require_says(error_of_rank([&] { statics.symmetric(&automatic); }), ErrorCode::invalid_use, {"1 element of 4"});
    }
    world.barrier();
    require(zeros[2] == before, "{}", zeros[2]);
  });
  EXPECT_EQ(initialised, 5) << "this process is no rank";
  launch(1, [](World& world) {
    const RegisteredMemory alone = world.register_statics();
    world.context().add(alone.symmetric(&initialised), 1, 0);
    require(initialised == 6, "{}", initialised);
  });
  EXPECT_EQ(std::exchange(initialised, 5), 6);
  const Error error = error_of_rank([] { launch(2, [](World& world) { world.register_statics(); }); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.message();
}

TEST(Processes, of_another_build_are_refused_by_both_names) {
  SharedWorld shared({.ranks = 2, .heap_bytes = 1 << 20}, SharedWorld::Kind::processes);
  EXPECT_NO_THROW(SharedWorld{dup(shared.descriptor())});
  // The header: eight bytes that say what it is, then what has made it.
  auto* header = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared.descriptor(), 0));
  ASSERT_NE(header, MAP_FAILED);
  std::strcpy(header + 8, "tranship 9.9.9 layout 7");
  expect_says(error_of_rank([&] { SharedWorld other(dup(shared.descriptor())); }), ErrorCode::mismatch,
              {"built with \"tranship 0.1.0 layout 5\"", "started it with \"tranship 9.9.9 layout 7\""});
  header[0] = 'x';
  expect_says(error_of_rank([&] { SharedWorld other(dup(shared.descriptor())); }), ErrorCode::mismatch,
              {"is not the memory of a world"});
  munmap(header, 4096);
  expect_says(error_of_rank([&] { SharedWorld other(0); }), ErrorCode::invalid_use, {"descriptor 0"});
}

TEST(Processes, without_a_launcher_are_a_world_of_one) {
  int ranks = 0;
  launch([&](World& world) { ranks = world.size(); });
  EXPECT_EQ(ranks, 1);
}

// Programs. This one, with a filter that names one of the tests below, is the program.

std::vector<std::string> this_program(const char* test) {
  return test::this_program(std::string("Program.DISABLED_") + test);
}

TEST(Program, DISABLED_rings) {
  launch([](World& world) {
    require(world.size() == 4, "{} ranks", world.size());
    const auto word = world.allocate<int>(1);
    world.context().p(word, world.rank(), (world.rank() + 1) % 4);
    world.barrier();
    require(word[0] == (world.rank() + 3) % 4, "ring");
  });
}
TEST(Program, DISABLED_rings_by_calls) {
  RankScope scope = RankScope::join();
  World& world = scope.world();
  require(world.size() == 4, "{} ranks", world.size());
  require(std::getenv(launch_variable) == nullptr, "programs that this one starts would be ranks");
  {
    const auto word = world.allocate<int>(1);
    world.context().p(word, world.rank(), (world.rank() + 1) % 4);
    world.barrier();
    require(word[0] == (world.rank() + 3) % 4, "ring");
  }
  if (std::getenv("TEST_FAILS") != nullptr) {
    if (world.rank() == 1)
      scope.fail(Error(ErrorCode::io, "by a call"));
    else
      world.barrier();
  }
  scope.finish();
}
TEST(Program, DISABLED_dies) {
  launch([](World& world) {
    world.barrier();
    if (world.rank() == 2) raise(SIGKILL);
    world.barrier();
  });
}

TEST(Program, DISABLED_never_joins) {
  int descriptor = -1;
  Rank rank = -1;
  ASSERT_EQ(std::sscanf(std::getenv(launch_variable), "%d %d", &descriptor, &rank), 2);
  if (rank == 1) return;
  launch([](World& world) { world.barrier(); });
}
TEST(Program, DISABLED_waits_for_ever) {
  launch([](World& world) {
    world.barrier();
    if (world.rank() == 0) (void)!write(std::stoi(std::getenv("TEST_PIPE")), "x", 1);
    world.wait_until([] { return false; }, "nothing", Deadline::never());
  });
}

TEST(Program, is_started_as_ranks) {
  const ProgramResult result = launch_program({}, {{4, this_program("rings")}});
  EXPECT_EQ(result.exit_codes, std::vector<int>(4, 0));
  EXPECT_EQ(result.failed, -1) << result.reason;
}
TEST(Program, may_begin_and_end_its_part_by_calls) {
  const ProgramResult result = launch_program({}, {{4, this_program("rings_by_calls")}});
  EXPECT_EQ(result.exit_codes, std::vector<int>(4, 0));
  EXPECT_EQ(result.failed, -1) << result.reason;
  setenv("TEST_FAILS", "1", 1);
  const ProgramResult failed = launch_program({}, {{4, this_program("rings_by_calls")}});
  unsetenv("TEST_FAILS");
  EXPECT_EQ(failed.failed, 1);
  EXPECT_EQ(failed.reason, "by a call");
}
TEST(Program, that_is_killed_makes_the_others_fail) {
  const ProgramResult result = launch_program({}, {{4, this_program("dies")}});
  EXPECT_EQ(result.failed, 2);
  EXPECT_NE(result.reason.find("was killed by signal 9"), std::string::npos) << result.reason;
  EXPECT_EQ(result.exit_codes[2], 128 + SIGKILL);
  for (const std::size_t other : {0, 1, 3}) EXPECT_EQ(result.exit_codes[other], 1);
}
TEST(Program, that_ends_without_joining_makes_the_others_fail) {
  const ProgramResult result = launch_program({}, {{3, this_program("never_joins")}});
  EXPECT_EQ(result.exit_codes, (std::vector<int>{1, 0, 1}));
  EXPECT_NE(result.reason.find("rank 1 has finished, but rank "), std::string::npos) << result.reason;
}
TEST(Program, dies_with_the_one_that_has_started_it) {
  expect_death_with_the_launcher([](int pipe_end) {
    setenv("TEST_PIPE", std::to_string(pipe_end).c_str(), 1);
    launch_program({}, {{3, this_program("waits_for_ever")}});
  });
}
TEST(Program, need_not_be_a_rank) {
  EXPECT_EQ(launch_program({}, {{3, {"true"}}}).exit_codes, std::vector<int>(3, 0));
  const ProgramResult failed = launch_program({}, {{3, {"sh", "-c", "exit 3"}}});
  EXPECT_EQ(failed.exit_codes, std::vector<int>(3, 3));
  EXPECT_GE(failed.failed, 0);
}
TEST(Program, that_stays_is_named_before_it_is_killed) {
  std::vector<std::string> notices;
  const auto notice = [&](const std::string& text) { notices.push_back(text); };
  const std::string stays = std::string("case $") + launch_variable + " in *' 1 0 3') exec sleep 60;; *) exit 3;; esac";
  const ProgramResult result = launch_program({.grace_ns = 300'000'000, .notice = notice}, {{3, {"sh", "-c", stays}}});
  EXPECT_EQ(result.exit_codes, (std::vector<int>{3, 128 + SIGKILL, 3}));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_TRUE(notices[0].starts_with("rank 1 (")) << notices[0];
  EXPECT_NE(notices[0].find("): not ended since rank "), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find(" failed; to be killed in 0."), std::string::npos) << notices[0];
  EXPECT_TRUE(result.late.ends_with("not ended within 0.3 s of that, and killed")) << result.late;
}
TEST(Program, is_not_told_of_a_signal_twice) {
  bool has_been_sent = false, came = false;
  const auto once = [&] { return std::exchange(came, true) ? PassedSignal() : PassedSignal{SIGTERM, has_been_sent}; };
  const std::vector<ProgramPart> sleeps = {{2, {"sleep", "60"}}};
  const auto launched = [&] { return launch_program({.grace_ns = 200'000'000, .signal_check = once}, sleeps); };
  EXPECT_EQ(launched().exit_codes, std::vector<int>(2, 128 + SIGTERM));
  has_been_sent = true;
  came = false;
  EXPECT_EQ(launched().exit_codes, std::vector<int>(2, 128 + SIGKILL));
}
TEST(Program, that_is_not_there_is_named) {
  const ProgramResult result = launch_program({}, {{2, {"/no/such/program"}}});
  EXPECT_EQ(result.exit_codes, std::vector<int>(2, 127));
  EXPECT_NE(result.reason.find("cannot run '/no/such/program'"), std::string::npos) << result.reason;
  EXPECT_EQ(error_of_rank([] { launch_program({}, {{2, {}}}); }).code(), ErrorCode::invalid_use);
}

}  // namespace
}  // namespace tranship::test
