// What Checks find: pointers that are kept, cells that a write leaves out, writes under a lease to read.
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/memory/buffer.hpp>

namespace tranship {
namespace {

constexpr Device gpu = Device::fake(0);
constexpr Index n = 64;

/// The message of the error that f throws.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    return error.message();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class BufferChecks : public ::testing::TestWithParam<FakeTiming> {
 protected:
  Devices devices_{{.kinds = {FakeDevices{.count = 2, .timing = GetParam()}}}};

  Buffer buffer(Checks checks, ElementType type = ElementType::f64) {
    return {type, {n}, {.name = "u", .checks = checks, .devices = &devices_}};
  }
  static void fill(Buffer& buffer, Device device, Index lower, Index upper) {
    Lease lease = buffer.write({.device = device});
    run_on(lease.stream(), [data = lease.data<double>(), lower, upper] { std::fill(data + lower, data + upper, 1.0); });
  }
};

INSTANTIATE_TEST_SUITE_P(Timing, BufferChecks,
                         ::testing::Values(FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded),
                         [](const auto& info) {
                           return info.param == FakeTiming::eager      ? "eager"
                                  : info.param == FakeTiming::deferred ? "deferred"
                                                                       : "threaded";
                         });

TEST_P(BufferChecks, correct_use_finds_nothing) {
  for (const Checks checks : {Checks::poison, Checks::checksums, Checks::guard}) {
    Buffer b = buffer(checks);
    fill(b, Device::host(), 0, n);
    fill(b, gpu, 0, n);
    for (const Device device : {Device::host(), gpu, Device::fake(1)}) {
      const Lease lease = b.read({.device = device});
    }
    {
      Lease lease = b.read_write({.device = gpu, .region = Region::interval(3, 9)});
      run_on(lease.stream(), [data = lease.data<double>()] { data[4] += 1; });
    }
    {
      Lease lease = b.accumulate(Combine::sum, {.device = Device::fake(1)});
      run_on(lease.stream(), [data = lease.data<double>()] { data[0] += 1; });
    }
    Buffer c = b.duplicate();
    fill(c, gpu, 0, n);
    EXPECT_EQ(b.read({.device = Device::host()}).data<const double>()[0], 2);
    EXPECT_EQ(b.read({.device = Device::host()}).data<const double>()[4], 2);
    b.evict(gpu);
    EXPECT_NO_THROW(b.check());
    EXPECT_NO_THROW(c.check());
  }
}

TEST_P(BufferChecks, a_stale_copy_holds_poison) {
  Buffer b = buffer(Checks::poison);
  fill(b, Device::host(), 0, n);
  const double* kept = b.read({.device = Device::host()}).data<const double>();
  {
    Lease lease = b.write({.device = gpu, .region = Region::interval(8, 16)});
    run_on(lease.stream(), [data = lease.data<double>()] { std::fill(data + 8, data + 16, 2.0); });
  }
  EXPECT_EQ(kept[7], 1) << "that is still the value";
  EXPECT_TRUE(std::isnan(kept[8])) << "whoever still reads here notices";
}

TEST_P(BufferChecks, cells_that_a_write_leaves_out_are_named) {
  Buffer b = buffer(Checks::poison);
  fill(b, gpu, 0, n - 3);
  const std::string message = message_of([&] { b.check(); });
  EXPECT_TRUE(has(message, "3 of its 64 cells")) << message;
  EXPECT_TRUE(has(message, "buffer_checks_test.cpp")) << message;
  EXPECT_TRUE(has(message, "fake:0")) << message;
  EXPECT_NO_THROW(b.check()) << "it is told once";
  fill(b, Device::host(), 1, n);
  EXPECT_TRUE(has(message_of([&] { b.read({.device = gpu}); }), "1 of its 64 cells"));
}

TEST_P(BufferChecks, a_write_without_a_lease_is_found) {
  Buffer b = buffer(Checks::checksums);
  fill(b, Device::host(), 0, n);
  auto* kept = const_cast<double*>(b.read({.device = Device::host()}).data<const double>());
  kept[5] = 17;
  const std::string message = message_of([&] { b.read({.device = gpu}); });
  EXPECT_TRUE(has(message, "was changed after the lease")) << message;
  EXPECT_TRUE(has(message, "host")) << message;
  EXPECT_NO_THROW(b.read({.device = gpu})) << "it is told once";
}

TEST_P(BufferChecks, a_write_under_a_lease_to_read_is_found) {
  Buffer b = buffer(Checks::checksums);
  fill(b, gpu, 0, n);
  {
    const Lease lease = b.read({.device = gpu});
    run_on(lease.stream(), [data = const_cast<double*>(lease.data<const double>())] { data[2] = 0; });
  }
  const std::string message = message_of([&] { b.check(); });
  EXPECT_TRUE(has(message, "under the lease to read")) << message;
}

TEST_P(BufferChecks, a_write_while_another_device_is_written_is_found) {
  for (const Checks checks : {Checks::checksums, Checks::guard}) {
    if (checks == Checks::guard && GetParam() != FakeTiming::eager) continue;
    Buffer b = buffer(checks);
    fill(b, gpu, 0, n);
    double* kept = nullptr;
    {
      Lease lease = b.read_write({.device = gpu});
      kept = lease.data<double>();
    }
    {
      Lease lease = b.write({.device = Device::fake(1)});
      run_on(lease.stream(), [data = lease.data<double>()] { std::fill(data, data + n, 2.0); });
      kept[5] = 17;
    }
    const std::string message = message_of([&] { b.read({.device = Device::host()}); });
    EXPECT_TRUE(has(message, "was changed after the lease")) << message;
    EXPECT_TRUE(has(message, "fake:0")) << message;
  }
}

TEST_P(BufferChecks, a_write_beside_an_open_lease_is_found) {
  Buffer b = buffer(Checks::checksums);
  fill(b, Device::host(), 0, n);
  auto* kept = const_cast<double*>(b.read().data<const double>());
  {
    Lease lease = b.read_write({.region = Region::interval(0, 8)});
    lease.data<double>()[3] = 4;
    kept[9] = 17;
  }
  EXPECT_TRUE(has(message_of([&] { b.check(); }), "was changed after the lease"));
}

TEST_P(BufferChecks, a_write_before_a_copy_is_given_back_is_found) {
  for (const bool drops : {true, false}) {
    Buffer b = buffer(Checks::checksums);
    fill(b, Device::host(), 0, n);
    auto* kept = const_cast<double*>(b.read({.device = gpu}).data<const double>());
    finish(devices_.stream(gpu).event(), Deadline::after_seconds(10));
    kept[9] = 17;
    EXPECT_TRUE(has(message_of([&] { drops ? b.drop(gpu) : b.evict(gpu); }), "was changed after the lease")) << drops;
  }
}

TEST_P(BufferChecks, a_write_before_a_prefetch_is_found) {
  Buffer b = buffer(Checks::checksums);
  fill(b, gpu, 0, n);
  auto* kept = const_cast<double*>(b.read().data<const double>());
  fill(b, gpu, 0, n);
  kept[9] = 17;
  EXPECT_TRUE(has(message_of([&] { b.prefetch({.device = Device::host()}); }), "was changed after the lease"));
}

TEST_P(BufferChecks, a_pointer_that_was_noted_is_watched_without_checks) {
  Buffer b = buffer(Checks::none);
  fill(b, gpu, 0, n);
  double* kept = nullptr;
  {
    Lease lease = b.read_write({.device = Device::host()});
    kept = lease.data<double>();
    lease.note_pointers();
  }
  EXPECT_NO_THROW(fill(b, gpu, 0, n)) << "nothing was written through it";
  kept[5] = 17;
  const std::string message = message_of([&] { b.read({.device = gpu}); });
  EXPECT_TRUE(has(message, "was changed after the lease")) << message;
  EXPECT_TRUE(has(message, "host")) << message;
  EXPECT_NO_THROW(b.read({.device = gpu})) << "it is told once";
  EXPECT_EQ(b.read().data<const double>()[5], 1) << "the value of the device";
  {
    Lease lease = b.read_write();
    lease.forget_pointers();
  }
  kept[5] = 17;
  EXPECT_NO_THROW(b.read({.device = gpu})) << "it is not looked for";
}

/// Leases on three memories, and now and then a write through a pointer that was kept, into cells that no open lease
/// writes. The next use of the buffer tells of each such write, and of nothing else.
TEST(KeptPointers, are_found_whatever_happens_in_between) {
  constexpr Index cells = 8;
  constexpr int memories = 3, steps = 24;
  const auto device_of = [](int memory) { return memory == 0 ? Device::host() : Device::fake(memory - 1); };
  int strays = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    std::minstd_rand random(unsigned(seed + 1));
    const auto below = [&](int bound) { return int(random() % unsigned(bound)); };
    const Checks checks = seed % 2 == 0 ? Checks::checksums : Checks::none;
    Devices devices({.kinds = {FakeDevices{.count = memories - 1}}});
    Buffer b(ElementType::f64, {cells}, {.name = "u", .checks = checks, .devices = &devices});
    struct Open {
      Lease lease;
      int memory;
      Index lower, upper;
    };
    std::vector<Open> open;
    double* pointers[memories] = {};
    // Memories with a write that nothing has told of, and those with one that the close of a lease has found.
    std::set<int> changed, found, noted;
    double value = 1000.0 * seed;  // memory that is used again holds other ones
    const auto told = [&](const std::string& message) {
      const bool at_close = has(message, "was closed:") || has(message, "was written under");
      if (!at_close && !has(message, "was changed")) return false;
      bool is_known = false;
      for (int memory = 0; memory < memories; ++memory)
        if (has(message, "on " + to_string(device_of(memory)) + " was"))
          is_known |= (at_close ? found : changed).erase(memory) > 0;
      EXPECT_TRUE(is_known) << message;
      return true;
    };
    const auto close = [&](std::size_t number) {
      Open& one = open[number];
      if (one.lease.intent() != Intent::read)
        for (Index i = one.lower; i < one.upper; ++i) one.lease.data<double>()[i] = value += 1;
      if (checks == Checks::none && one.lease.intent() != Intent::read) {
        one.lease.note_pointers();
        noted.insert(one.memory);
      }
      below(4) == 0 && one.lease.intent() != Intent::read ? one.lease.abandon() : one.lease.close();
      open.erase(open.begin() + Index(number));
      found.merge(changed);
      changed.clear();
    };
    for (int step = 0; step < steps; ++step) {
      const int memory = below(memories), what = below(10);
      const Device device = device_of(memory);
      const Index lower = below(int(cells)), upper = lower + 1 + below(int(cells - lower));
      bool is_use = true;
      try {
        if (what < 4) {
          const Access access{.device = device, .region = Region::interval(lower, upper)};
          const int intent = below(3);
          Lease lease = intent == 0 ? b.read(access) : intent == 1 ? b.write(access) : b.read_write(access);
          pointers[memory] = static_cast<double*>(lease.view().data);
          open.push_back({std::move(lease), memory, lower, upper});
        } else if (what < 6) {
          if (!open.empty()) close(std::size_t(below(int(open.size()))));
          is_use = false;
        } else if (what == 6) {
          b.prefetch({.device = device, .region = Region::interval(lower, upper)});
        } else if (what == 7) {
          is_use = b.state(device) != CopyState::unallocated;
          b.drop(device);
          pointers[memory] = nullptr;
        } else if (what == 8) {
          b.check();
        } else {
          is_use = false;
          bool is_written = !pointers[memory] || b.state(device) == CopyState::unallocated;
          for (const Open& one : open)
            is_written |=
                one.memory == memory && one.lease.intent() != Intent::read && one.lower <= lower && lower < one.upper;
          if (!is_written && (checks == Checks::checksums || noted.count(memory) > 0)) {
            pointers[memory][lower] = value += 1;
            changed.insert(memory);
            ++strays;
          }
        }
        EXPECT_TRUE(!is_use || (changed.empty() && found.empty()))
            << "seed " << seed << " step " << step << ": nothing was said";
      } catch (const Error& error) {
        if (!told(error.message())) continue;  // a conflict, or cells without a value
      }
    }
    while (!open.empty()) close(0);
    while (!changed.empty() || !found.empty()) {
      const std::string message = message_of([&] { b.check(); });
      ASSERT_TRUE(told(message)) << "seed " << seed << ": " << message;
    }
    EXPECT_NO_THROW(b.check()) << "seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(strays, 500);
}

TEST(BufferPoison, every_type_has_one_and_floats_have_nans) {
  Devices devices;
  for (const ElementType type :
       {ElementType::bool8, ElementType::f16, ElementType::bf16, ElementType::i32, ElementType::f32, ElementType::f64,
        ElementType::f128, ElementType::c64, ElementType::c128, ElementType::c256}) {
    Buffer b(type, {4}, {.checks = Checks::poison, .devices = &devices});
    { const Lease lease = b.write(); }
    EXPECT_THROW(b.check(), Error) << name_of(type);
  }
  // Each value of a small integer is one that a program may write.
  Buffer bytes(ElementType::u8, {256}, {.checks = Checks::poison, .devices = &devices});
  Buffer shorts(ElementType::i16, {65536}, {.checks = Checks::poison, .devices = &devices});
  {
    const Lease of_bytes = bytes.write(), of_shorts = shorts.write();
    for (int i = 0; i < 256; ++i) of_bytes.data<std::uint8_t>()[i] = std::uint8_t(i);
    for (int i = 0; i < 65536; ++i) of_shorts.data<std::int16_t>()[i] = std::int16_t(i - 32768);
  }
  EXPECT_NO_THROW(bytes.check());
  EXPECT_NO_THROW(shorts.check());
  Buffer f32(ElementType::f32, {1}, {.checks = Checks::poison, .devices = &devices});
  Buffer f128(ElementType::f128, {1}, {.checks = Checks::poison, .devices = &devices});
  EXPECT_TRUE(std::isnan(f32.write().data<float>()[0]));
  EXPECT_TRUE(std::isnan(f128.write().data<long double>()[0]));
}

}  // namespace
}  // namespace tranship
