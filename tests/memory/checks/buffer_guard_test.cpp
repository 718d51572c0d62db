// Pointers that are kept after their lease: what the report says, and that nothing else ends a program.
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tranship/base/sanitizers.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/pool/pool.hpp>

namespace tranship::buffer_guard_test {
namespace {

constexpr Device gpu = Device::fake(0);
constexpr Index n = 64;

#if defined(__x86_64__)
#define READ_WORD "was read"
#define WRITE_WORD "was written"
#define LAST_LEASE_TO_WRITE "model.cpp:30"
#else
#define READ_WORD "was touched"
#define WRITE_WORD "was touched"
#define LAST_LEASE_TO_WRITE "model.cpp:31"
#endif

/// What each test's child does anew: a fork would have none of the threads of devices made before.
struct Scene {
  explicit Scene(FakeTiming timing) : devices({.kinds = {FakeDevices{.count = 2, .timing = timing}}}) {}

  void write(Device device, double value, CallSite where, Region region = Region::interval(0, n)) {
    Lease lease = u.write({.device = device, .region = region}, where);
    run_on(lease.stream(), [data = lease.data<double>(), region, value] {
      for (const Box& box : region.boxes()) std::fill(data + box.lower[0], data + box.upper[0], value);
    });
  }
  /// The pointer of a lease that is closed.
  const volatile double* kept_from_read(CallSite where) {
    return u.read({.device = Device::host()}, where).data<const double>();
  }
  volatile double* kept_from_write(CallSite where) {
    Lease lease = u.write({.device = Device::host()}, where);
    std::fill_n(lease.data<double>(), n, 1.0);
    return lease.data<double>();
  }

  Devices devices;
  Buffer u{ElementType::f64, {n}, {.name = "u", .checks = Checks::guard, .devices = &devices}};
};

constexpr CallSite at(int line) {
  return {"model.cpp", line};
}

class BufferGuardDeathTest : public ::testing::TestWithParam<FakeTiming> {
 protected:
  // In a program of its own, where nobody has installed a handler yet.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

INSTANTIATE_TEST_SUITE_P(Timing, BufferGuardDeathTest,
                         ::testing::Values(FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded),
                         [](const auto& info) {
                           return info.param == FakeTiming::eager      ? "eager"
                                  : info.param == FakeTiming::deferred ? "deferred"
                                                                       : "threaded";
                         });

TEST_P(BufferGuardDeathTest, a_read_after_the_lease_is_reported) {
  EXPECT_DEATH(
      {
        Scene scene(GetParam());
        scene.write(Device::host(), 1, at(10));
        const volatile double* kept = scene.kept_from_read(at(20));
        std::_Exit(kept[5] == 1 ? 0 : 1);
      },
      "buffer 'u' on host " READ_WORD
      " through a pointer that no lease covers\n"
      "  at 0x[0-9a-f]+, byte 40, element 5, of 512 bytes\n"
      "  no lease is open there\n"
      "  it was last legal under the lease of model.cpp:20; the buffer has not been written elsewhere since\n");
}

TEST_P(BufferGuardDeathTest, a_write_after_the_lease_is_reported) {
  EXPECT_DEATH(
      {
        Scene scene(GetParam());
        volatile double* kept = scene.kept_from_write(at(30));
        scene.kept_from_read(at(31));
        kept[63] = 2;
        std::_Exit(0);
      },
      "buffer 'u' on host " WRITE_WORD
      " through a pointer that no lease covers\n"
      "  at 0x[0-9a-f]+, byte 504, element 63, of 512 bytes\n"
      "  no lease is open there\n"
      "  it was last legal under the lease of " LAST_LEASE_TO_WRITE "; the buffer has not been written elsewhere");
}

TEST_P(BufferGuardDeathTest, a_write_under_a_lease_to_read_is_reported) {
  EXPECT_DEATH(
      {
        Scene scene(GetParam());
        scene.write(gpu, 1, at(40));
        const Lease lease = scene.u.read({.device = Device::host()}, at(41));
        auto* data = const_cast<volatile double*>(lease.data<const double>());
        if (data[0] != 1) std::_Exit(1);
        data[0] = 2;
        std::_Exit(0);
      },
      "buffer 'u' on host " WRITE_WORD
      " through a pointer that no lease covers\n"
      "  at 0x[0-9a-f]+, byte 0, element 0, of 512 bytes\n"
      "  only a lease to read is open there, from model.cpp:41\n"
      "  no lease has allowed it to be written yet\n");
}

TEST_P(BufferGuardDeathTest, a_pointer_that_is_kept_across_the_write_of_a_device_is_reported_with_both_places) {
  EXPECT_DEATH(
      {
        Scene scene(GetParam());
        volatile double* kept = scene.kept_from_write(at(50));
        scene.write(gpu, 2, at(51), Region::interval(0, 8));
        kept[9] = 3;
        std::_Exit(0);
      },
      "buffer 'u' on host " WRITE_WORD
      " through [^\n]*\n"
      "[^\n]*\n"
      "  no lease is open there\n"
      "  it was last legal under the lease of model.cpp:50; since then the buffer has been written on fake:0 at "
      "model.cpp:51\n");
}

TEST_P(BufferGuardDeathTest, the_copy_of_a_duplicate_is_closed_as_long_as_neither_has_a_lease) {
  EXPECT_DEATH(
      {
        Scene scene(GetParam());
        scene.write(Device::host(), 1, at(60));
        Buffer v = scene.u.duplicate();
        const Lease lease = v.read({.device = Device::host()}, at(61));
        const volatile double* data = lease.data<const double>();
        {
          Lease own = scene.u.write({.device = Device::host()}, at(62));  // elsewhere: v still reads the old copy
          std::fill_n(own.data<double>(), n, 2.0);
        }
        if (data[0] != 1) std::_Exit(1);
        const volatile double* mine = scene.kept_from_read(at(63));
        std::_Exit(mine[0] == 2 ? 0 : 1);
      },
      "buffer 'u' on host " READ_WORD " [^\n]*\n[^\n]*\n  no lease is open there\n[^\n]*model.cpp:63");
}

TEST_P(BufferGuardDeathTest, a_program_without_a_handler_ends_by_the_signal) {
#if defined(TRANSHIP_SANITIZED)
  GTEST_SKIP() << "sanitizers have a handler of their own";
#endif
  EXPECT_EXIT(
      {
        Scene scene(GetParam());
        const volatile double* kept = scene.kept_from_read(at(1));
        std::_Exit(int(kept[0]));
      },
      testing::KilledBySignal(SIGSEGV), "no lease");
  EXPECT_EXIT(
      {
        Scene scene(GetParam());
        scene.kept_from_read(at(1));
        std::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT(
      {
        Scene scene(GetParam());
        scene.kept_from_read(at(1));
        auto* page = static_cast<volatile char*>(::mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        std::_Exit(page[0]);
      },
      testing::KilledBySignal(SIGSEGV), "^$");
}

// A handler that was there before: it sees all faults, and may go on after those that are not of guards.

void* page_of_test = nullptr;

void open_page_of_test(int, siginfo_t* fault, void*) {
  if (fault->si_addr != page_of_test) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, "not mine\n", 9);
    std::_Exit(3);
  }
  ::mprotect(page_of_test, 1, PROT_READ | PROT_WRITE);
}

void install_handler_of_test() {
  page_of_test = ::mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {};
  action.sa_sigaction = &open_page_of_test;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

TEST_P(BufferGuardDeathTest, a_fault_elsewhere_is_left_to_the_handler_that_was_there_before) {
  EXPECT_EXIT(
      {
        install_handler_of_test();
        Scene scene(GetParam());
        scene.write(Device::host(), 1, at(1));
        *static_cast<volatile char*>(page_of_test) = 7;
        std::_Exit(*static_cast<volatile char*>(page_of_test) + 10);
      },
      testing::ExitedWithCode(17), "^$");
}

TEST_P(BufferGuardDeathTest, the_handler_that_was_there_before_comes_after_the_report) {
  EXPECT_EXIT(
      {
        install_handler_of_test();
        Scene scene(GetParam());
        const volatile double* kept = scene.kept_from_read(at(1));
        std::_Exit(int(kept[0]));
      },
      testing::ExitedWithCode(3), "model.cpp:1[^\n]*\nnot mine");
}

class BufferGuard : public ::testing::TestWithParam<FakeTiming> {};

INSTANTIATE_TEST_SUITE_P(Timing, BufferGuard,
                         ::testing::Values(FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded),
                         [](const auto& info) {
                           return info.param == FakeTiming::eager      ? "eager"
                                  : info.param == FakeTiming::deferred ? "deferred"
                                                                       : "threaded";
                         });

TEST_P(BufferGuard, what_leases_allow_is_not_disturbed) {
  Scene scene(GetParam());
  Buffer& u = scene.u;
  scene.write(Device::host(), 1, at(1));
  scene.write(gpu, 2, at(2), Region::interval(0, 8));
  const Lease left = u.read({.device = Device::host(), .region = Region::interval(0, 8)});
  EXPECT_EQ(left.data<const double>()[7], 2) << "the library has written the pages";
  {
    Lease right = u.read_write({.device = Device::host(), .region = Region::interval(32, n)});
    right.data<double>()[40] = 5;
    EXPECT_EQ(left.data<const double>()[0], 2);
  }
  EXPECT_EQ(left.data<const double>()[0], 2) << "another lease has been closed";
  {
    Lease there = u.accumulate(Combine::sum, {.device = Device::fake(1), .region = Region::interval(32, n)});
    run_on(there.stream(), [data = there.data<double>()] { data[40] += 1; });
  }
  EXPECT_EQ(u.read({.device = Device::host()}).data<const double>()[40], 6) << "merged there";
  u.prefetch({.device = gpu});
  scene.devices.steps(100);
  u.evict(gpu);
  EXPECT_NO_THROW(u.check());
}

TEST_P(BufferGuard, memory_that_was_guarded_can_be_used_again) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = GetParam()}}});
  const BufferOptions guarded{.checks = Checks::guard, .devices = &devices};
  for (int round = 0; round < 3; ++round) {
    {
      Buffer a(ElementType::u8, {12'345}, guarded);
      std::memset(a.write().data<unsigned char>(), round, 12'345);
    }
    Buffer b(ElementType::u8, {12'345 + 4096}, {.checks = Checks::none, .devices = &devices});
    std::memset(b.write().data<unsigned char>(), 17, 12'345);
  }
  EXPECT_GT(devices.pool(0).counts().reuses, 0);
}

TEST_P(BufferGuard, foreign_memory_is_left_as_it_is) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = GetParam()}}});
  std::vector<double> mine(n, 1.0);
  Buffer b = Buffer::import({.data = mine.data(), .type = ElementType::f64, .extents = {n}, .strides = {1}},
                            {.checks = Checks::guard, .devices = &devices});
  {
    Lease lease = b.write({.device = gpu});
    run_on(lease.stream(), [data = lease.data<double>()] { std::fill_n(data, n, 2.0); });
  }
  EXPECT_EQ(b.read().data<const double>()[3], 2);
  EXPECT_EQ(mine[3], 2);
}

}  // namespace
}  // namespace tranship::buffer_guard_test
