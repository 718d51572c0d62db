// Ranks that are processes: how they die, what the others learn of it, and that nothing is left of them.
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

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

TEST(Processes, that_are_killed_are_named_and_the_others_fail_within_a_second) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    const std::int64_t begin = now_ns();
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
    expect_says(error, ErrorCode::peer_lost, {" was killed by signal ", strsignal(signal)});
    EXPECT_EQ(error.rank, 1);
    EXPECT_LT(now_ns() - begin, 5'000'000'000) << "waited for its deadline";
  }
}

TEST(Processes, that_exit_in_the_middle_are_named) {
  const Error error = failure(four, [](World& world) {
    world.barrier();
    if (world.rank() == 3) _exit(7);
    world.barrier();
  });
  expect_says(error, ErrorCode::peer_lost, {"ended with exit code 7 and without a word"});
  EXPECT_EQ(error.rank, 3);
}

TEST(Processes, may_be_killed_in_the_middle_of_a_put) {
  // At some point between the first byte and the last of many puts; what matters is that the others learn of it, and
  // that what has been signalled is whole.
  for (int round = 0; round < 10; ++round) {
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

TEST(Processes, leave_nothing_behind) {
  const auto count = [](const char* folder) {
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++files;
    return files;
  };
  const std::size_t named = count("/dev/shm"), descriptors = count("/proc/self/fd");
  (void)failure(four, [](World& world) {
    const auto data = world.allocate<int>(1000);
    world.barrier();
    if (world.rank() == 1) raise(SIGKILL);
    world.barrier();
  });
  EXPECT_EQ(count("/dev/shm"), named);
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Processes, die_with_the_one_that_has_started_them) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    close(pipe_ends[0]);
    run_on(On::processes, {.ranks = 3, .timeout_ns = INT64_MAX}, [&](World& world) {
      world.barrier();
      if (world.rank() == 0) (void)!write(pipe_ends[1], "x", 1);
      world.wait_until([] { return false; }, "nothing", Deadline::never());
    });
    _exit(0);
  }
  close(pipe_ends[1]);
  char byte = 0;
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  // The other end of the pipe is closed when the last of them is gone.
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0);
  close(pipe_ends[0]);
}

TEST(Processes, do_not_reach_private_memory) {
  run_on(On::processes, 2, [](World& world) {
    int mine = 3;
    require(!world.offers(&mine), "offered");
    const auto pointers = world.all_gather(&mine);
    require(world.reach(1 - world.rank(), pointers[std::size_t(1 - world.rank())]) == nullptr, "reached");
    const std::shared_ptr<void> memory = world.local_memory(1000);
    require(world.offers(memory.get()), "not offered");
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

TEST(Processes, memory_that_the_system_has_not_is_an_error_on_every_rank) {
  // Three quarters of what there is, for each of two.
  const Index available = available_memory_bytes();
  const Error error = failure({.ranks = 2, .timeout_ns = 20'000'000'000, .heap_bytes = std::size_t(available)},
                              [&](World& world) { world.allocate<char>(available / 4 * 3); });
  expect_says(error, ErrorCode::no_memory, {"2 ranks need ", " bytes each for their symmetric heaps", "are available"});
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
      require_says(error_of_rank([&] { statics.symmetric(&automatic); }), ErrorCode::invalid_use, {"1 elements of 4"});
    }
    world.barrier();
    require(zeros[2] == before, "{}", zeros[2]);
  });
  EXPECT_EQ(initialised, 5) << "this process is no rank";
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
              {"built with \"tranship 0.1.0 layout 1\"", "started it with \"tranship 9.9.9 layout 7\""});
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

std::vector<std::string> this_program(const std::string& test) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
          "--gtest_brief=1", "--gtest_filter=Program.DISABLED_" + test};
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
TEST(Program, DISABLED_dies) {
  launch([](World& world) {
    world.barrier();
    if (world.rank() == 2) raise(SIGKILL);
    world.barrier();
  });
}

TEST(Program, is_started_as_ranks) {
  const ProgramResult result = launch_program({.ranks = 4}, this_program("rings"));
  EXPECT_EQ(result.exit_codes, std::vector<int>(4, 0));
  EXPECT_EQ(result.failed, -1) << result.reason;
}
TEST(Program, that_is_killed_makes_the_others_fail) {
  const ProgramResult result = launch_program({.ranks = 4}, this_program("dies"));
  EXPECT_EQ(result.failed, 2);
  EXPECT_NE(result.reason.find("was killed by signal 9"), std::string::npos) << result.reason;
  EXPECT_EQ(result.exit_codes[2], 128 + SIGKILL);
  for (const std::size_t other : {0, 1, 3}) EXPECT_EQ(result.exit_codes[other], 1);
}
TEST(Program, need_not_be_a_rank) {
  EXPECT_EQ(launch_program({.ranks = 3}, {"true"}).exit_codes, std::vector<int>(3, 0));
  const ProgramResult failed = launch_program({.ranks = 3}, {"sh", "-c", "exit 3"});
  EXPECT_EQ(failed.exit_codes, std::vector<int>(3, 3));
  EXPECT_GE(failed.failed, 0);
}
TEST(Program, that_is_not_there_is_named) {
  const ProgramResult result = launch_program({.ranks = 2}, {"/no/such/program"});
  EXPECT_EQ(result.exit_codes, std::vector<int>(2, 127));
  EXPECT_NE(result.reason.find("cannot run '/no/such/program'"), std::string::npos) << result.reason;
  EXPECT_EQ(error_of_rank([] { launch_program({.ranks = 2}, {}); }).code(), ErrorCode::invalid_use);
}

}  // namespace
}  // namespace tranship::test
