// Devices that are lost in the middle of a piece of work: nobody waits for them, half a copy is no copy, and what only
// they held is an error and never a wrong value. Fakes are lost after a number of pieces. A card is lost by a kernel
// that accesses memory that is not there, in a process of its own, because the driver works no more in that process.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "memory/device_kinds.hpp"

namespace tranship {
namespace {

constexpr Device gpu = Device::fake(0);
constexpr Device other_gpu = Device::fake(1);

/// The message of the `device_lost` that f throws.
template <class F>
std::string loss_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.message();
    return error.message();
  }
  return "nothing was thrown";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DeviceLoss : public ::testing::TestWithParam<FakeTiming> {
 protected:
  /// A wait that would hang hangs.
  static void finish_all(Stream& stream) { finish(stream.event(), Deadline::never()); }
};

INSTANTIATE_TEST_SUITE_P(Timing, DeviceLoss,
                         ::testing::Values(FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded),
                         [](const auto& info) {
                           return info.param == FakeTiming::eager      ? "eager"
                                  : info.param == FakeTiming::deferred ? "deferred"
                                                                       : "threaded";
                         });

TEST_P(DeviceLoss, half_of_a_copy_arrives_and_everything_after_it_fails_at_once) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .timing = GetParam(), .lost_after = {2}}}});
  Stream& stream = devices.stream(gpu);
  std::vector<unsigned char> source(100, 7), target(100, 0);
  const CopyBlock block{.dims = 1, .extents = {100}, .source_strides = {1}, .target_strides = {1}};
  int runs = 0;
  run_on(stream, [&] { ++runs; });
  run_on(stream, [&] { ++runs; });
  const Event early = stream.event();
  finish(early, Deadline::never());
  EXPECT_EQ(devices.losses(), 0);
  std::string loss = loss_of([&] {
    stream.copy(block, 1, source.data(), target.data());
    run_on(stream, [&] { ++runs; });
    finish_all(stream);
  });
  EXPECT_TRUE(has(loss, "fake:0") && has(loss, "piece 3")) << loss;
  EXPECT_EQ(std::count(target.begin(), target.end(), 7), 50);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(devices.losses(), 1);
  EXPECT_EQ(devices.driver(devices.memory_of(gpu)).loss(), loss);
  EXPECT_EQ(devices.driver(devices.memory_of(other_gpu)).loss(), "");

  EXPECT_NO_THROW(finish(early, Deadline::never())) << "that was over";
  EXPECT_TRUE(is_over(early));
  const auto lent = devices.make_stream(gpu);
  for (Stream* each : {&stream, &devices.copy_stream(devices.memory_of(gpu)), lent.get()}) {
    EXPECT_EQ(loss_of([&] { run_on(*each, [&] { ++runs; }); }), loss);
    EXPECT_EQ(loss_of([&] { each->copy(block, 1, source.data(), target.data()); }), loss);
    EXPECT_EQ(loss_of([&] { each->fill(block, 1, nullptr, target.data()); }), loss);
    EXPECT_EQ(loss_of([&] { each->wait({}); }), loss);
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(std::count(target.begin(), target.end(), 7), 50);
}

TEST_P(DeviceLoss, who_waits_for_lost_work_is_lost_and_nobody_else) {
  if (GetParam() == FakeTiming::eager) GTEST_SKIP() << "nothing is left to wait for";
  Devices devices({.kinds = {FakeDevices{.count = 3, .timing = GetParam(), .lost_after = {0}}}});
  Stream &first = devices.stream(gpu), &second = devices.stream(other_gpu), &third = devices.stream(Device::fake(2));
  bool has_run = false;
  run_on(second, [] {});
  run_on(third, [] {});
  const Event before = second.event();
  // All is given before the loss, or is refused after it.
  const std::string loss = loss_of([&] {
    run_on(first, [&] { has_run = true; });
    second.wait(first.event());
    run_on(second, [&] { has_run = true; });
    third.wait(second.event());
    run_on(third, [&] { has_run = true; });
    finish_all(third);
  });
  EXPECT_TRUE(has(loss, "fake:0 was lost in the middle of piece 1")) << loss;
  EXPECT_NO_THROW(finish(before, Deadline::never()));
  EXPECT_FALSE(has_run);
  // The devices that are still there go on with other streams.
  for (const Device device : {other_gpu, Device::fake(2)}) {
    Stream& fresh = devices.stream(device);
    int runs = 0;
    run_on(fresh, [&] { ++runs; });
    finish_all(fresh);
    EXPECT_EQ(runs, 1);
  }
}

TEST_P(DeviceLoss, memory_that_lost_work_uses_is_given_back_without_waiting) {
  Devices devices(
      {.kinds = {FakeDevices{.count = 2, .timing = GetParam(), .lost_after = {0}}}, .wait_timeout_ns = INT64_MAX});
  Pool& pool = devices.pool(devices.memory_of(gpu));
  const PoolBlock block = pool.allocate(1000);
  Stream& stream = devices.stream(gpu);
  try {
    run_on(stream, [] {});
  } catch (const Error&) {
  }
  const Event use = stream.event();
  pool.free(block, std::span(&use, 1));
  pool.limit(std::int64_t(Pool::class_bytes(1000)));
  const PoolBlock again = pool.allocate(1000);
  EXPECT_EQ(again.memory, block.memory) << "there is room for one";
  pool.free(again, std::span(&use, 1));
}

// Buffers.

constexpr Index n = 8;
using Values = std::vector<double>;

/// A buffer, what it should hold, and where that is beyond loss. A loss may turn any other access into an error.
class Scene {
 public:
  Scene(FakeTiming timing, std::vector<std::int64_t> lost_after, Checks checks)
      : Scene({.kinds = {FakeDevices{.count = 2, .timing = timing, .lost_after = std::move(lost_after)}}},
              "fake:", checks) {}
  /// `kind` begins the names of the devices that are lost.
  Scene(DevicesOptions options, std::string kind, Checks checks)
      : devices_(std::move(options)),
        kind_(std::move(kind)),
        u_(ElementType::f64, {n}, {.name = "u", .checks = checks, .devices = &devices_}) {}

  void write(Device device, Index lower, Index upper, double value) {
    change(
        device, lower, upper, true, [&](const Access& access) { return u_.write(access); }, value);
  }
  void add(Device device, double value) {
    change(
        device, 0, n, false, [&](const Access& access) { return u_.accumulate(Combine::sum, access); }, value);
  }
  void add_one_to_each(Device device, Index lower, Index upper) {
    change(
        device, lower, upper, false, [&](const Access& access) { return u_.read_write(access); }, 1);
  }
  void read(Device device, Index lower = 0, Index upper = n) {
    Values seen(n);
    const bool must_be_right =
        device.is_host() && std::all_of(&on_host_[lower], &on_host_[upper], [](bool on_host) { return on_host; });
    const bool is_right = tolerate([&] {
      const Lease lease = u_.read({.device = device, .region = Region::interval(lower, upper)});
      test::run_kernel<const double>(lease, lower, upper, [lower, upper, &seen](const double* data) {
        std::copy(data + lower, data + upper, seen.begin() + lower);
      });
      finish(lease.stream().event(), Deadline::never());
    });
    EXPECT_TRUE(is_right || !must_be_right) << "the host has it";
    if (!is_right) return;
    for (Index i = lower; i < upper; ++i) EXPECT_EQ(seen[i], expected_[i]) << "cell " << i << to_string(device);
    if (device.is_host()) std::fill(&on_host_[lower], &on_host_[upper], true);
  }
  /// What the devices that are left have been given is over, or lost.
  void drain(std::initializer_list<Device> all = {gpu, other_gpu}) {
    devices_.steps(1 << 20);
    for (const Device device : all)
      for (Stream* stream : {&devices_.stream(device), &devices_.copy_stream(devices_.memory_of(device))})
        settle(stream->event(), Deadline::never());
  }
  bool is_lost(Device device) const { return !devices_.driver(devices_.memory_of(device)).loss().empty(); }
  int losses() const { return devices_.losses(); }
  Devices& devices() { return devices_; }
  int errors = 0;

 private:
  template <class F>
  bool tolerate(F f) {
    try {
      f();
      return true;
    } catch (const Error& error) {
      ++errors;
      EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.message();
      EXPECT_GT(devices_.losses(), 0) << error.message();
      EXPECT_NE(error.message().find(kind_), std::string::npos) << error.message();
      return false;
    }
  }
  void change(Device device, Index lower, Index upper, bool is_write, const std::function<Lease(Access)>& open,
              double value) {
    tolerate([&] {
      Lease lease = open({.device = device, .region = Region::interval(lower, upper)});
      for (Index i = lower; i < upper; ++i) {
        expected_[i] = is_write ? value + double(i) : expected_[i] + value;
        on_host_[i] = device.is_host() && (is_write || on_host_[i]);
      }
      test::run_kernel<double>(lease, lower, upper, [lower, upper, is_write, value](double* data) {
        for (Index i = lower; i < upper; ++i) data[i] = is_write ? value + double(i) : data[i] + value;
      });
    });
  }

  Devices devices_;
  std::string kind_;
  Buffer u_;
  double expected_[n] = {};
  bool on_host_[n] = {};
};

using Act = std::function<void(Scene&)>;

/// Runs a sequence with a device lost at every position, until the sequence ends before it.
void expect_no_wrong_value(const std::vector<Act>& acts, FakeTiming timing, Checks checks) {
  for (const Device lost : {gpu, other_gpu}) {
    int errors = 0;
    for (std::int64_t after = 0;; ++after) {
      SCOPED_TRACE(to_string(lost) + " is lost after " + std::to_string(after));
      Scene scene(timing, lost == gpu ? std::vector<std::int64_t>{after} : std::vector<std::int64_t>{-1, after},
                  checks);
      for (const Act& act : acts) act(scene);
      for (const Device device : {Device::host(), gpu, other_gpu}) scene.read(device);
      scene.drain();
      for (const Device device : {Device::host(), gpu, other_gpu}) scene.read(device);
      EXPECT_EQ(scene.losses() > 0, scene.is_lost(lost));
      errors += scene.errors;
      if (!scene.is_lost(lost)) break;
      // What is written anew is there for everybody who is left.
      scene.write(Device::host(), 0, n, 1000);
      const int before = scene.errors;
      for (const Device device : {Device::host(), gpu, other_gpu}) scene.read(device);
      EXPECT_EQ(scene.errors - before, 1) << "only the device that is lost";
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(errors, 0) << to_string(lost);
  }
}

/// Writes, reads and combinations on three devices, of which each needs some of what the others have.
std::vector<Act> acts_on(Device first, Device second) {
  return {
      [=](Scene& s) { s.write(Device::host(), 0, n, 100); },
      [=](Scene& s) { s.read(first); },
      [=](Scene& s) { s.write(first, 2, 5, 200); },
      [=](Scene& s) { s.read(second); },
      [=](Scene& s) { s.add_one_to_each(second, 4, 7); },
      [=](Scene& s) { s.read(Device::host(), 0, 3); },
      [=](Scene& s) { s.add(first, 10); },
      [=](Scene& s) { s.add(second, 20); },
      [=](Scene& s) { s.add(Device::host(), 40); },
      [=](Scene& s) { s.read(second, 0, 4); },
      [=](Scene& s) { s.read(Device::host()); },
      [=](Scene& s) { s.write(second, 0, n, 300); },
  };
}

TEST_P(DeviceLoss, at_every_position_of_a_sequence_values_are_right_or_errors) {
  for (const Checks checks : {Checks::none, Checks::checksums, Checks::guard})
    expect_no_wrong_value(acts_on(gpu, other_gpu), GetParam(), checks);
}

TEST_P(DeviceLoss, all_short_sequences_are_right_or_errors) {
  const std::vector<Act> alphabet = {
      [](Scene& s) { s.write(Device::host(), 0, n, 100); },
      [](Scene& s) { s.write(gpu, 2, 5, 200); },
      [](Scene& s) { s.read(gpu); },
      [](Scene& s) { s.read(other_gpu, 0, 4); },
      [](Scene& s) { s.add_one_to_each(other_gpu, 1, 7); },
      [](Scene& s) { s.read(Device::host()); },
      [](Scene& s) { s.add(gpu, 10); },
      [](Scene& s) { s.add(other_gpu, 20); },
  };
  const int count = int(alphabet.size());
  // Threads take their time: of them every eleventh, which has all pairs.
  for (int sequence = 0; sequence < count * count * count; sequence += GetParam() == FakeTiming::threaded ? 11 : 1) {
    const int first = sequence / count / count, second = sequence / count % count, third = sequence % count;
    SCOPED_TRACE("acts " + std::to_string(first) + ", " + std::to_string(second) + ", " + std::to_string(third));
    expect_no_wrong_value({alphabet[first], alphabet[second], alphabet[third]}, GetParam(), Checks::none);
    if (HasFailure()) return;
  }
}

TEST_P(DeviceLoss, a_lost_value_is_named_with_its_device_and_its_writer) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .timing = GetParam(), .lost_after = {1}}}});
  Buffer u(ElementType::f64, {n}, {.name = "u", .checks = Checks::none, .devices = &devices});
  {
    Lease lease = u.write({}, CallSite{"model.cpp", 1});
    std::fill_n(lease.data<double>(), n, 1.0);
  }
  {
    Lease lease = u.write({.device = gpu, .region = Region::interval(0, 4)}, CallSite{"model.cpp", 2});
    run_on(lease.stream(), [data = lease.data<double>()] { std::fill_n(data, 4, 2.0); });
  }
  loss_of([&] { u.read(); });
  const std::string loss = loss_of([&] { u.read(); });
  EXPECT_TRUE(has(loss, "[0, 4)") && has(loss, "model.cpp:2") && has(loss, "fake:0")) << loss;
  const std::string there = loss_of([&] { u.read({.device = gpu}, CallSite{"model.cpp", 3}); });
  EXPECT_TRUE(has(there, "'u'") && has(there, "model.cpp:3") && has(there, "fake:0 was lost")) << there;
  EXPECT_EQ(u.state(gpu), CopyState::stale);
  EXPECT_EQ(u.read({.region = Region::interval(4, n)}).data<const double>()[4], 1);
  EXPECT_NO_THROW(u.drop(gpu));
}

TEST_P(DeviceLoss, a_lease_that_cannot_be_opened_leaves_all_as_it_was) {
  if (GetParam() != FakeTiming::deferred) GTEST_SKIP() << "there may be nothing to wait for";
  Devices devices({.kinds = {FakeDevices{.count = 2, .timing = GetParam(), .lost_after = {-1, 0}}}});
  Buffer u(ElementType::f64, {n}, {.checks = Checks::none, .devices = &devices});
  std::fill_n(u.write().data<double>(), n, 3.0);
  const auto stream = devices.make_stream(gpu);
  loss_of([&] {
    run_on(devices.stream(other_gpu), [] {});
    stream->wait(devices.stream(other_gpu).event());
    finish_all(*stream);
  });
  u.prefetch({.device = gpu});
  const std::uint64_t version = u.version();
  const std::string loss = loss_of([&] { u.accumulate(Combine::sum, {.stream = stream.get()}); });
  EXPECT_TRUE(has(loss, "fake:1 was lost")) << loss;
  EXPECT_EQ(u.version(), version);
  EXPECT_EQ(u.state(gpu), CopyState::valid);
  EXPECT_EQ(u.state(Device::host()), CopyState::valid);
  EXPECT_NO_THROW(u.drop(gpu));
  EXPECT_EQ(u.read().data<const double>()[0], 3);
}

TEST_P(DeviceLoss, leases_that_are_open_there_can_be_closed) {
  for (const Checks checks : {Checks::none, Checks::guard}) {
    Devices devices({.kinds = {FakeDevices{.count = 2, .timing = GetParam(), .lost_after = {20}}}});
    const BufferOptions options{.checks = checks, .devices = &devices};
    Buffer a(ElementType::f64, {n}, options), b(ElementType::f64, {n}, options), c(ElementType::f64, {n}, options);
    std::fill_n(c.write().data<double>(), n, 3.0);
    {
      Lease write = a.write({.device = gpu}), add = b.accumulate(Combine::sum, {.device = gpu});
      const Lease read = c.read({.device = gpu});
      loss_of([&] {
        for (int i = 0; i < 21; ++i) run_on(write.stream(), [] {});
        finish_all(write.stream());
      });
      EXPECT_EQ(devices.losses(), 1);
    }
    loss_of([&] { a.read(); });
    loss_of([&] { b.read(); });
    EXPECT_EQ(c.read().data<const double>()[0], 3);
  }
}

// Cards.

constexpr Device card = Device::cuda(0), other_card = Device::cuda(1);

/// Ends a process of a test's own, which prints here what is wrong.
[[noreturn]] void end_alone() {
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i)
    if (result.GetTestPartResult(i).failed())
      std::fprintf(stderr, "line %d: %s\n", result.GetTestPartResult(i).line_number(),
                   result.GetTestPartResult(i).message());
  std::_Exit(result.Failed() ? 1 : 0);
}
#define TRANSHIP_EXPECT_GOOD_ALONE(body) EXPECT_EXIT((body(), end_alone()), testing::ExitedWithCode(0), "")

class CardLossOfBuffers : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_card(); !why.empty()) GTEST_SKIP() << why;
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
  static bool has_two() { return test::cards_here().count > 1; }
  /// Waits that do not end at once do not end in time, which is another error.
  static DevicesOptions options() {
    DevicesOptions out = test::options_of(test::DeviceCase::card);
    out.wait_timeout_ns = std::int64_t(60) * 1'000'000'000;
    return out;
  }
  static void lose(Devices& devices, Device device, test::Stray stray = test::Stray::copy) {
    loss_of([&] { test::give_stray_kernel(devices.stream(device), devices.driver(devices.memory_of(device)), stray); });
  }
  static void set(Buffer& buffer, Device device, Index upper, double value, CallSite site = CallSite::here()) {
    const Lease lease = buffer.write({.device = device, .region = Region::interval(0, upper)}, site);
    test::run_kernel<double>(lease, 0, upper, [=](double* data) { std::fill_n(data, upper, value); });
  }
  static double first_of(Buffer& buffer, Device device) {
    double out = 0;
    const Lease lease = buffer.read({.device = device});
    test::run_kernel<const double>(lease, 0, 1, [&](const double* data) { out = data[0]; });
    finish(lease.stream().event(), Deadline::after_seconds(60));
    return out;
  }
  /// Loses the card before each of these acts, each time in a process of its own. What is read afterwards is right or
  /// an error.
  static void lose_at_every_position(const std::vector<Act>& acts) {
    for (std::size_t position = 0; position <= acts.size(); ++position) {
      const auto body = [&] {
        Scene scene(options(), "cuda:", position % 2 == 0 ? Checks::none : Checks::guard);
        const auto read_all = [&] {
          for (const Device device : {Device::host(), card, other_card}) scene.read(device);
        };
        for (std::size_t i = 0; i < acts.size(); ++i) {
          if (i == position) lose(scene.devices(), card);
          acts[i](scene);
        }
        if (position == acts.size()) lose(scene.devices(), card);
        read_all();
        scene.drain({card, other_card});
        read_all();
        EXPECT_TRUE(scene.is_lost(card));
        scene.write(Device::host(), 0, n, 1000);
        const int before = scene.errors;
        read_all();
        EXPECT_EQ(scene.errors - before, scene.losses()) << "only devices that are lost";
        if (has_two()) EXPECT_EQ(scene.losses(), 1);
      };
      SCOPED_TRACE("the card is lost before act " + std::to_string(position));
      TRANSHIP_EXPECT_GOOD_ALONE(body);
      if (HasFailure()) return;
    }
  }
};

TEST_F(CardLossOfBuffers, ends_waits_and_leases_and_names_what_was_only_there) {
  for (const test::Stray stray : {test::Stray::copy, test::Stray::fill}) {
    const auto body = [&] {
      Devices devices(options());
      const auto made = [&](const char* name) {
        return Buffer(ElementType::f64, {n}, {.name = name, .checks = Checks::none, .devices = &devices});
      };
      Buffer there = made("there"), both = made("both"), opened = made("opened"), fetched = made("fetched");
      set(there, Device::host(), n, 1);
      set(there, card, 4, 2, CallSite{"model.cpp", 2});
      set(both, Device::host(), n, 3);
      EXPECT_EQ(first_of(both, card), 3);
      set(opened, Device::host(), n, 4);
      set(fetched, card, n, 5);
      EXPECT_EQ(first_of(fetched, other_card), 5);
      const auto own = devices.make_stream(card);
      {
        const Lease write = opened.write({.device = card, .region = Region::interval(0, 2)});
        const Lease add = both.accumulate(Combine::sum, {.device = card});
        lose(devices, card, stray);
        const std::string loss = loss_of([&] { finish(devices.stream(card).event(), Deadline::after_seconds(60)); });
        EXPECT_TRUE(has(loss, "cuda:0 was lost")) << loss;
        EXPECT_EQ(loss_of([&] { run_on(write.stream(), [] {}); }), loss);
        EXPECT_EQ(loss_of([&] { finish(own->event(), Deadline::after_seconds(60)), run_on(*own, [] {}); }), loss);
        if (has_two()) EXPECT_EQ(devices.losses(), 1);
      }
      const std::string only = loss_of([&] { there.read(); });
      EXPECT_TRUE(has(only, "[0, 4)") && has(only, "model.cpp:2") && has(only, "cuda:0")) << only;
      const std::string refused = loss_of([&] { both.read({.device = card}, CallSite{"model.cpp", 3}); });
      EXPECT_TRUE(has(refused, "'both'") && has(refused, "model.cpp:3") && has(refused, "cuda:0 was lost")) << refused;
      EXPECT_TRUE(has(loss_of([&] { opened.read(); }), "[0, 2)"));
      EXPECT_EQ(there.read({.region = Region::interval(4, n)}).data<const double>()[4], 1);
      EXPECT_EQ(opened.read({.region = Region::interval(2, n)}).data<const double>()[2], 4);
      loss_of([&] { both.read(); });  // the sum was in the card's memory
      set(both, Device::host(), n, 6);
      if (!has_two()) return;
      // The other card goes on, with what it has and with what it is given.
      EXPECT_EQ(first_of(fetched, other_card), 5);
      EXPECT_EQ(first_of(fetched, Device::host()), 5);
      EXPECT_EQ(first_of(both, other_card), 6);
      set(there, other_card, n, 7);
      EXPECT_EQ(first_of(there, Device::host()), 7);
      EXPECT_EQ(devices.losses(), 1);
    };
    TRANSHIP_EXPECT_GOOD_ALONE(body);
  }
}

TEST_F(CardLossOfBuffers, at_every_position_of_a_sequence_values_are_right_or_errors) {
  lose_at_every_position(acts_on(card, Device::host()));
}

TEST_F(CardLossOfBuffers, what_another_card_reads_from_a_lost_one_is_right_or_an_error) {
  if (!has_two()) GTEST_SKIP() << "there is one card";
  lose_at_every_position(acts_on(card, other_card));
}

}  // namespace
}  // namespace tranship
