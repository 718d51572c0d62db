// What Checks find: pointers that are kept, cells that a write leaves out, writes under a lease to read.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <tranship/memory/buffer.hpp>

namespace tranship {
namespace {

constexpr Device gpu = Device::fake(0);
constexpr Index n = 64;

class BufferChecks : public ::testing::TestWithParam<FakeTiming> {
 protected:
  Devices devices_{{.fake = {.count = 2, .timing = GetParam()}}};

  Buffer buffer(Checks checks, ElementType type = ElementType::f64) {
    return {type, {n}, {.name = "u", .checks = checks, .devices = &devices_}};
  }
  static void fill(Buffer& buffer, Device device, Index lower, Index upper) {
    Lease lease = buffer.write({.device = device});
    run_on(lease.stream(), [data = lease.data<double>(), lower, upper] { std::fill(data + lower, data + upper, 1.0); });
  }
  /// The message of the error that f throws.
  template <class F>
  static std::string message_of(F f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      return error.message();
    }
    return "";
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
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

TEST(BufferPoison, every_type_has_one_and_floats_have_nans) {
  Devices devices;
  for (const ElementType type :
       {ElementType::bool8, ElementType::i8, ElementType::f16, ElementType::bf16, ElementType::i32, ElementType::f32,
        ElementType::f64, ElementType::f128, ElementType::c64, ElementType::c128, ElementType::c256}) {
    Buffer b(type, {4}, {.checks = Checks::poison, .devices = &devices});
    { const Lease lease = b.write(); }
    EXPECT_THROW(b.check(), Error) << name_of(type);
  }
  Buffer f32(ElementType::f32, {1}, {.checks = Checks::poison, .devices = &devices});
  Buffer f128(ElementType::f128, {1}, {.checks = Checks::poison, .devices = &devices});
  EXPECT_TRUE(std::isnan(f32.write().data<float>()[0]));
  EXPECT_TRUE(std::isnan(f128.write().data<long double>()[0]));
}

}  // namespace
}  // namespace tranship
