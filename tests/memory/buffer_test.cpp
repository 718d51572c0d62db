// The defects that lazily assigned buffers have elsewhere, each as a test, and what leases promise.
#include <array>
#include <complex>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include <tranship/memory/buffer.hpp>
#include <tranship/memory/buffer/buffer_state.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "memory/device_kinds.hpp"
#include "memory/manual_stream.hpp"

namespace tranship {
namespace {

constexpr Device gpu = Device::fake(0);
constexpr Device other_gpu = Device::fake(1);
constexpr Index n = 100;
constexpr std::int64_t whole_bytes = n * 8;

using test::DeviceCase;
using test::run_kernel;

class BufferOn : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    if (GetParam() != DeviceCase::card) return;
    if (const std::string why = test::why_no_card(); !why.empty()) GTEST_SKIP() << why;
  }
  const Device gpu = test::device_of(GetParam(), 0);
  const Device other_gpu = test::device_of(GetParam(), 1);
  Devices devices_{test::options_of(GetParam())};
  CopyLedger& ledger_ = devices_.ledger();

  Buffer buffer(BufferOptions options = {}) {
    options.devices = &devices_;
    return {ElementType::f64, {n}, options};
  }
  /// Gives every cell of a region the value, by a kernel of the lease's device.
  static void set(Lease& lease, Index lower, Index upper, double value) {
    run_kernel<double>(lease, lower, upper, [=](double* data) { std::fill(data + lower, data + upper, value); });
  }
  static void fill(Buffer& buffer, Device device, double value) {
    Lease lease = buffer.write({.device = device});
    set(lease, 0, n, value);
  }
  static std::vector<double> values(const Buffer& buffer, Device device) {
    const Lease lease = buffer.read({.device = device});
    std::vector<double> out(n);
    run_kernel<const double>(lease, 0, n, [&out](const double* data) { std::copy_n(data, n, out.begin()); });
    finish(lease.stream().event(), Deadline::after_seconds(10));
    return out;
  }
  static std::vector<double> all(double value) { return std::vector<double>(n, value); }
};

INSTANTIATE_TEST_SUITE_P(, BufferOn,
                         ::testing::Values(DeviceCase::eager, DeviceCase::deferred, DeviceCase::threaded,
                                           DeviceCase::card),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(BufferOn, zeros_that_nobody_has_written_are_filled_and_never_copied) {
  const Buffer b = buffer();
  EXPECT_EQ(values(b, gpu), all(0));
  EXPECT_TRUE(b.predict(Intent::read).empty());
  EXPECT_EQ(values(b, Device::host()), all(0));
  EXPECT_EQ(values(b, other_gpu), all(0));
  EXPECT_EQ(ledger_.sums().copies, 0);
  EXPECT_EQ(ledger_.fills().copies, 3);
  EXPECT_EQ(ledger_.fills().bytes, 3 * whole_bytes);
  // What somebody has written is copied, though it be zeros; the rest is filled.
  Buffer c = buffer();
  EXPECT_EQ(values(c, gpu), all(0));
  {
    Lease lease = c.write({.device = gpu, .region = Region::interval(10, 20)});
    set(lease, 10, 20, 0);
  }
  ledger_.clear();
  EXPECT_EQ(values(c, other_gpu), all(0));
  EXPECT_EQ(ledger_.sums().bytes, 10 * 8);
  EXPECT_EQ(ledger_.fills().bytes, whole_bytes - 10 * 8);
}

// The table of defects.

TEST_P(BufferOn, a_host_write_reaches_a_device_that_had_a_copy_and_then_writes) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  fill(b, Device::host(), 2);
  {
    Lease lease = b.read_write({.device = gpu});
    run_kernel<double>(lease, 0, n, [](double* data) { data[0] += 1; });
  }
  std::vector<double> expected = all(2);
  expected[0] = 3;
  EXPECT_EQ(values(b, Device::host()), expected);
  EXPECT_EQ(values(b, other_gpu), expected);
}

TEST_P(BufferOn, partial_values_of_the_widest_elements_are_merged) {
  using Value = std::complex<long double>;
  Buffer b(ElementType::c256, {3, 5}, {.devices = &devices_});
  for (const Device device : {Device::host(), gpu, other_gpu}) {
    const Lease lease = b.accumulate(Combine::sum, {.device = device});
    run_kernel<Value>(lease, 0, 15, [](Value* data) {
      for (int i = 0; i < 15; ++i) data[i] += Value(i, 1);
    });
  }
  const Lease lease = b.read();
  for (int i = 0; i < 15; ++i) EXPECT_EQ(lease.data<const Value>()[i], Value(3 * i, 3)) << i;
}

TEST_P(BufferOn, views_say_where_they_lie) {
  const Buffer b = buffer();
  EXPECT_EQ(b.read().view().device, Device::host());
  EXPECT_EQ(b.read({.device = gpu}).view().device, gpu);
}

TEST_P(BufferOn, the_first_touch_of_a_device_may_be_a_write) {
  Buffer b = buffer();
  fill(b, gpu, 4);
  EXPECT_EQ(values(b, Device::host()), all(4));
}

TEST_P(BufferOn, a_write_copies_nothing_before) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  fill(b, gpu, 2);
  EXPECT_EQ(ledger_.sums().bytes, 0);
  EXPECT_EQ(values(b, Device::host()), all(2));
  EXPECT_EQ(ledger_.sums().bytes, whole_bytes);
}

TEST_P(BufferOn, a_partial_write_keeps_the_rest) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  {
    Lease lease = b.write({.device = gpu, .region = Region::interval(10, 20)});
    set(lease, 10, 20, 5);
  }
  std::vector<double> expected = all(1);
  std::fill(expected.begin() + 10, expected.begin() + 20, 5);
  EXPECT_EQ(values(b, Device::host()), expected);
  EXPECT_EQ(ledger_.sums().bytes, 10 * 8) << "only what was stale";
  EXPECT_EQ(values(b, gpu), expected);
  EXPECT_EQ(ledger_.sums().bytes, n * 8) << "only what the device had not written itself";
}

TEST_P(BufferOn, a_duplicate_on_a_device_shares_nothing_that_is_written) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  Buffer c = b.duplicate();
  fill(c, gpu, 2);
  EXPECT_EQ(values(b, gpu), all(1));
  EXPECT_EQ(values(c, gpu), all(2));
  fill(b, gpu, 3);
  EXPECT_EQ(values(b, Device::host()), all(3));
  EXPECT_EQ(values(c, Device::host()), all(2));
}

TEST_P(BufferOn, a_duplicate_copies_only_what_the_first_write_leaves) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  Buffer c = b.duplicate();
  EXPECT_EQ(ledger_.sums().bytes, 0);
  {
    Lease lease = c.write({.device = gpu, .region = Region::interval(0, 60)});
    set(lease, 0, 60, 2);
  }
  EXPECT_EQ(ledger_.sums(Cause::duplicate).bytes, 40 * 8);
  std::vector<double> expected = all(1);
  std::fill_n(expected.begin(), 60, 2);
  EXPECT_EQ(values(c, gpu), expected);
  EXPECT_EQ(values(b, gpu), all(1));
}

TEST_P(BufferOn, a_duplicate_that_is_written_keeps_what_its_memory_held) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  values(b, gpu);
  const std::int64_t before = ledger_.sums().bytes;
  for (Buffer c : {b.duplicate(), b}) {
    Buffer other = c.duplicate();
    {
      Lease lease = c.write({.device = gpu, .region = Region::interval(0, 60)});
      set(lease, 0, 60, 2);
    }
    EXPECT_EQ(c.state(gpu), CopyState::valid) << "a write makes other memories stale, never its own";
    values(c, gpu);
  }
  EXPECT_EQ(ledger_.sums().bytes - before, ledger_.sums(Cause::duplicate).bytes) << "nothing comes from elsewhere";
}

TEST_P(BufferOn, a_lease_reads_on_while_its_buffer_gets_a_copy_of_its_own) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  std::optional<Buffer> other = b.duplicate();
  Lease kept = b.read({.device = gpu, .region = Region::interval(50, n)});
  {
    Lease lease = b.write({.device = gpu, .region = Region::interval(0, 50)});
    set(lease, 0, 50, 2);
  }
  fill(*other, gpu, 3);
  other.reset();
  Buffer next = buffer();
  fill(next, gpu, 4);
  std::vector<double> seen(n / 2);
  run_kernel<const double>(kept, 0, n, [&seen](const double* data) { std::copy_n(data + 50, n / 2, seen.begin()); });
  kept.close();
  fill(next, gpu, 5);
  values(b, gpu);
  values(next, gpu);
  EXPECT_EQ(seen, std::vector<double>(n / 2, 1.0));
}

TEST_P(BufferOn, a_lease_that_is_kept_makes_a_conflicting_write_an_error_and_not_a_lost_one) {
  Buffer b = buffer();
  Lease kept = b.read_write({.device = Device::host()});
  const int line = __LINE__ - 1;
  try {
    const Lease lease = b.write({.device = gpu});
    FAIL() << "the write was let in";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(error.message().find("buffer_test.cpp:" + std::to_string(line)), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("buffer_test.cpp:" + std::to_string(line + 3)), std::string::npos);
  }
  kept.data<double>()[7] = 7;
  kept.close();
  EXPECT_EQ(values(b, gpu)[7], 7);
}

TEST_P(BufferOn, a_frozen_buffer_is_replicated_and_written_nowhere) {
  Buffer b = buffer();
  fill(b, Device::host(), 9);
  b.freeze();
  for (const Device device : {Device::host(), gpu, other_gpu}) {
    EXPECT_EQ(values(b, device), all(9));
    EXPECT_THROW(b.write({.device = device}), Error);
    EXPECT_THROW(b.read_write({.device = device}), Error);
    EXPECT_THROW(b.accumulate(Combine::sum, {.device = device}), Error);
    const Lease lease = b.read({.device = device});
    EXPECT_THROW(lease.data<double>(), Error) << "only a pointer to const is given";
  }
  EXPECT_EQ(b.state(Device::host()), CopyState::valid);
  EXPECT_EQ(b.state(other_gpu), CopyState::valid);
  Buffer c = b.duplicate();
  fill(c, gpu, 1);
  EXPECT_EQ(values(b, gpu), all(9));
}

TEST_P(BufferOn, a_buffer_without_data_is_zero_or_says_that_nobody_has_written_it) {
  const Buffer zeros = buffer();
  for (const Device device : {Device::host(), gpu}) EXPECT_EQ(zeros.state(device), CopyState::unallocated);
  EXPECT_EQ(values(zeros, gpu), all(0));
  EXPECT_EQ(zeros.state(Device::host()), CopyState::unallocated) << "asking changes nothing";
  EXPECT_EQ(ledger_.sums().bytes, 0);

  Buffer undefined = buffer({.contents = Contents::undefined});
  EXPECT_THROW(undefined.read({.device = gpu}), Error);
  fill(undefined, gpu, 1);
  EXPECT_EQ(values(undefined, Device::host()), all(1));
}

TEST_P(BufferOn, a_read_elsewhere_changes_no_version) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  const std::uint64_t version = b.version();
  values(b, gpu);
  EXPECT_EQ(b.version(), version);
  fill(b, gpu, 2);
  EXPECT_GT(b.version(), version);
}

TEST_P(BufferOn, accumulating_changes_the_version_once_wherever_it_is_merged) {
  for (const Device device : {Device::host(), gpu, other_gpu}) {
    Buffer b = buffer();
    fill(b, Device::host(), 1);
    const std::uint64_t version = b.version();
    b.accumulate(Combine::sum, {.device = gpu}).close();
    EXPECT_EQ(b.version(), version + 1);
    EXPECT_EQ(values(b, device), all(1));
    EXPECT_EQ(b.version(), version + 1);
  }
}

// Leases.

TEST_P(BufferOn, many_read_and_one_writes_a_region) {
  Buffer b = buffer();
  const Lease a = b.read({.device = gpu}), c = b.read({.device = Device::host()});
  EXPECT_THROW(b.write({.device = gpu}), Error);
  EXPECT_THROW(b.accumulate(Combine::sum, {.device = other_gpu}), Error);
  Buffer d = buffer();
  const Lease left = d.write({.device = gpu, .region = Region::interval(0, 50)});
  const Lease right = d.write({.device = other_gpu, .region = Region::interval(50, n)});
  EXPECT_THROW(d.read({.device = gpu, .region = Region::interval(40, 45)}), Error);
  EXPECT_THROW(d.read({.device = gpu, .region = Region::interval(60, 61)}), Error);
}

TEST_P(BufferOn, memories_accumulate_apart_and_one_read_merges_them) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  {
    Lease first = b.accumulate(Combine::sum, {.device = gpu}),
          second = b.accumulate(Combine::sum, {.device = other_gpu});
    for (auto* lease : {&first, &second})
      run_kernel<double>(*lease, 0, n, [by = lease == &first ? 10.0 : 100.0](double* data) {
        for (Index i = 0; i < n; ++i) data[i] += by;
      });
    EXPECT_THROW(b.accumulate(Combine::sum, {.device = gpu}), Error);
    EXPECT_THROW(b.accumulate(Combine::minimum, {.device = Device::host()}), Error);
  }
  EXPECT_EQ(ledger_.sums().bytes, 0) << "nothing moves until somebody reads";
  EXPECT_EQ(values(b, gpu), all(111));
  EXPECT_EQ(ledger_.sums(Cause::merge).bytes, 2 * whole_bytes);
  EXPECT_EQ(values(b, Device::host()), all(111));
}

TEST_P(BufferOn, memories_that_hold_the_same_value_accumulate_apart) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  values(b, other_gpu);
  {
    Lease first = b.accumulate(Combine::sum, {.device = gpu}),
          second = b.accumulate(Combine::sum, {.device = other_gpu});
    for (auto* lease : {&first, &second})
      run_kernel<double>(*lease, 0, n, [](double* data) {
        for (Index i = 0; i < n; ++i) data[i] += 10;
      });
  }
  EXPECT_EQ(values(b, gpu), all(21));
}

TEST_P(BufferOn, zeros_stay_beneath_what_is_added_to_them_elsewhere) {
  Buffer b = buffer();
  values(b, Device::host());
  Lease lease = b.accumulate(Combine::sum, {.device = gpu});
  EXPECT_THROW(b.drop(Device::host()), Error);
  set(lease, 0, n, 1);
  lease.close();
  EXPECT_EQ(values(b, gpu), all(1));
}

TEST_P(BufferOn, minima_and_products_merge_too) {
  for (const auto& [combine, expected] :
       {std::pair{Combine::minimum, 2.0}, {Combine::maximum, 6.0}, {Combine::product, 60.0}}) {
    Buffer b = buffer();
    fill(b, Device::host(), 5);
    for (const auto& [device, value] : {std::pair{gpu, 2.0}, {other_gpu, 6.0}}) {
      Lease lease = b.accumulate(combine, {.device = device});
      run_kernel<double>(lease, 0, n, [value = value, combine = combine](double* data) {
        for (Index i = 0; i < n; ++i)
          data[i] = combine == Combine::minimum   ? std::min(data[i], value)
                    : combine == Combine::maximum ? std::max(data[i], value)
                                                  : data[i] * value;
      });
    }
    EXPECT_EQ(values(b, Device::host()), all(expected));
  }
}

TEST_P(BufferOn, a_merge_that_finds_no_room_changes_nothing) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  for (const Device device : {Device::host(), other_gpu}) {
    Lease lease = b.accumulate(Combine::sum, {.device = device});
    run_kernel<double>(lease, 0, n, [](double* data) {
      for (Index i = 0; i < n; ++i) data[i] += 10;
    });
  }
  Pool& pool = devices_.pool(devices_.memory_of(gpu));
  pool.trim();
  pool.limit(pool.counts().in_use_bytes + std::int64_t(Pool::class_bytes(whole_bytes)));
  EXPECT_THROW(b.read({.device = gpu}), Error) << "there is room for one of two partial values";
  pool.limit(INT64_MAX);
  EXPECT_EQ(values(b, gpu), all(21));
}

TEST_P(BufferOn, a_device_scope_nests_restores_and_moves_nothing) {
  EXPECT_EQ(current_device(), Device::host());
  Buffer b = buffer();
  fill(b, Device::host(), 3);
  {
    const Offload outer(gpu);
    EXPECT_EQ(current_device(), gpu);
    {
      const Offload inner(other_gpu);
      EXPECT_EQ(b.read().device(), other_gpu);
    }
    EXPECT_EQ(current_device(), gpu);
    EXPECT_EQ(b.state(gpu), CopyState::unallocated);
    EXPECT_EQ(b.read().device(), gpu);
    std::thread([] { EXPECT_EQ(current_device(), Device::host()) << "each thread has its own"; }).join();
  }
  EXPECT_EQ(current_device(), Device::host());
  EXPECT_EQ(b.state(gpu), CopyState::valid) << "leaving frees nothing";
}

TEST_P(BufferOn, a_prediction_is_what_happens_and_changes_nothing) {
  Buffer b = buffer({.name = "u"});
  fill(b, Device::host(), 1);
  const auto before = b.explain(Intent::read, {.device = gpu});
  EXPECT_NE(before.find("host -> " + to_string(gpu)), std::string::npos) << before;
  const std::vector<CopyRecord> copies = b.predict(Intent::read, {.device = gpu});
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].bytes, whole_bytes);
  EXPECT_EQ(copies[0].cause, Cause::first_touch);
  EXPECT_EQ(b.state(gpu), CopyState::unallocated);
  EXPECT_TRUE(b.predict(Intent::write, {.device = gpu}).empty());
  values(b, gpu);
  EXPECT_EQ(ledger_.sums().bytes, whole_bytes);
  fill(b, Device::host(), 2);
  const int line = __LINE__;
  const auto stale = b.predict(Intent::read, {.device = gpu});
  ASSERT_EQ(stale.size(), 1u);
  EXPECT_EQ(stale[0].cause, Cause::stale);
  EXPECT_GT(stale[0].writer.line, 0);
  EXPECT_LT(stale[0].writer.line, line);
}

TEST_P(BufferOn, a_prediction_counts_what_a_duplicate_needs) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  Buffer c = b.duplicate();
  EXPECT_TRUE(c.predict(Intent::read, {.device = gpu}).empty());
  const Access part{.device = gpu, .region = Region::interval(0, 60)};
  const std::vector<CopyRecord> copies = c.predict(Intent::write, part);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].cause, Cause::duplicate);
  EXPECT_EQ(copies[0].region, Region::interval(60, n));
  EXPECT_EQ(copies[0].bytes, 40 * 8);
}

TEST_P(BufferOn, a_scope_forbids_copies_that_nobody_asked_for) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  {
    const NoImplicitCopies none;
    EXPECT_THROW(b.read({.device = gpu}), Error);
    EXPECT_EQ(b.state(gpu), CopyState::unallocated);
    b.prefetch({.device = gpu});
    const Lease lease = b.read({.device = gpu});
  }
  fill(b, Device::host(), 2);
  ByteBudget budget(whole_bytes);
  values(b, gpu);
  EXPECT_EQ(budget.spent_bytes(), whole_bytes);
  EXPECT_THROW(b.read({.device = other_gpu}), Error);
}

TEST_P(BufferOn, a_budget_counts_all_copies_of_a_lease_together) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  Buffer c = b.duplicate();
  {
    Lease lease = c.write({.region = Region::interval(0, 50)});
    set(lease, 0, 50, 2);
  }
  const std::int64_t before = ledger_.sums().bytes;
  {
    // 50 cells come from the host, and 50 go to a copy of its own.
    const ByteBudget budget(60 * 8);
    EXPECT_THROW(c.read({.device = gpu}), Error);
    EXPECT_EQ(budget.spent_bytes(), 0);
  }
  EXPECT_EQ(ledger_.sums().bytes, before);
  const ByteBudget budget(n * 8);
  EXPECT_EQ(values(c, gpu)[0], 2);
  EXPECT_EQ(budget.spent_bytes(), n * 8);
}

TEST_P(BufferOn, foreign_memory_is_taken_as_it_is) {
  std::vector<double> mine(n);
  std::iota(mine.begin(), mine.end(), 0.0);
  auto owner = std::make_shared<int>(1);
  {
    Buffer b = Buffer::import({.data = mine.data(), .type = ElementType::f64, .extents = {n}, .strides = {1}},
                              {.devices = &devices_}, owner);
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(values(b, gpu), mine);
    fill(b, gpu, 1);
    EXPECT_EQ(b.read().data<const double>(), mine.data());
    EXPECT_EQ(mine, all(1));
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_P(BufferOn, foreign_memory_is_kept_until_no_stream_uses_it) {
  for (int i = 0; i < 100; ++i) {
    std::vector<double> mine(n, 3);
    Buffer b = Buffer::import(
        {.data = mine.data(), .type = ElementType::f64, .extents = {n}, .strides = {1}}, {.devices = &devices_},
        std::shared_ptr<void>(mine.data(), [&](void*) { std::fill(mine.begin(), mine.end(), -1); }));
    b.prefetch({.device = gpu});
    b.drop(Device::host());
    EXPECT_EQ(mine, all(-1));
    EXPECT_EQ(values(b, gpu), all(3));
  }
}

TEST_P(BufferOn, a_buffer_of_foreign_memory_may_go_in_a_kernel) {
  std::vector<double> mine(n, 3);
  std::atomic<int> released = 0;
  {
    auto b = std::make_shared<Buffer>(
        Buffer::import({.data = mine.data(), .type = ElementType::f64, .extents = {n}, .strides = {1}},
                       {.devices = &devices_}, std::shared_ptr<void>(mine.data(), [&](void*) { ++released; })));
    b->prefetch({.device = gpu});
    run_on(devices_.stream(gpu), [kept = std::move(b)] {});
  }
  finish(devices_.stream(gpu).event(), Deadline::after_seconds(10));
  finish(devices_.copy_stream(devices_.memory_of(gpu)).event(), Deadline::after_seconds(10));
  const Buffer next = buffer();
  EXPECT_EQ(released, 1);
}

TEST_P(BufferOn, foreign_memory_may_have_gaps_and_run_backward) {
  // Two rows of three, the second one first, 8 apart.
  std::vector<double> mine(11, -1);
  for (int i = 0; i < 3; ++i) mine[8 + i] = i, mine[i] = 10 + i;
  Buffer b = Buffer::import({.data = mine.data() + 8, .type = ElementType::f64, .extents = {2, 3}, .strides = {-8, 1}},
                            {.devices = &devices_});
  EXPECT_EQ(b.strides(), Indices({-8, 1}));
  {
    const Lease lease = b.read_write({.device = gpu, .region = Region(Box{{0, 1}, {2, 3}})});
    run_kernel<double>(lease, 1, 2, [](double* data) { data[1] += 100; });
    run_kernel<double>(lease, -8 + 2, -8 + 3, [](double* data) { data[-8 + 2] += 200; });
  }
  EXPECT_EQ(ledger_.sums(Device::host(), gpu).bytes, 4 * 8);
  const Lease lease = b.read();
  EXPECT_EQ(mine, (std::vector<double>{10, 11, 212, -1, -1, -1, -1, -1, 0, 101, 2}));
}

TEST_P(BufferOn, what_was_written_elsewhere_is_not_read) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  values(b, Device::host());
  const Region part = Region::interval(2, 5);
  {
    const Lease lease = b.read({.region = part});
    EXPECT_THROW(b.invalidate(part), Error);
  }
  const std::uint64_t version = b.version();
  b.invalidate(part);
  EXPECT_GT(b.version(), version);
  for (const Device device : {Device::host(), gpu, other_gpu}) {
    EXPECT_THROW(b.read({.device = device}), Error);
    EXPECT_THROW(b.read_write({.device = device, .region = part}), Error);
    EXPECT_THROW(b.accumulate(Combine::sum, {.device = device, .region = part}), Error);
  }
  { const Lease lease = b.read({.device = gpu, .region = Region::interval(5, n)}); }
  const std::int64_t bytes = ledger_.sums().bytes;
  {
    Lease lease = b.write({.region = part});
    set(lease, 2, 5, 1);
  }
  EXPECT_EQ(ledger_.sums().bytes, bytes);
  values(b, gpu);
  EXPECT_EQ(ledger_.sums().bytes - bytes, 3 * 8);
}

TEST_P(BufferOn, the_cause_of_a_copy_can_be_given) {
  Buffer b = buffer();
  {
    Lease lease = b.write({.cause = Cause::halo});
    set(lease, 0, n, 1);
  }
  values(b, gpu);
  EXPECT_EQ(ledger_.sums(Cause::halo).bytes, whole_bytes);
  const Lease lease = b.read({.device = other_gpu, .cause = Cause::export_});
  EXPECT_EQ(ledger_.sums(Cause::export_).bytes, whole_bytes);
}

TEST_P(BufferOn, dropping_loses_nothing_and_evicting_saves) {
  Buffer b = buffer();
  fill(b, gpu, 1);
  EXPECT_THROW(b.drop(gpu), Error);
  b.evict(gpu);
  EXPECT_EQ(b.state(gpu), CopyState::unallocated);
  EXPECT_EQ(ledger_.sums(Cause::eviction).bytes, whole_bytes);
  EXPECT_EQ(values(b, Device::host()), all(1));
  values(b, gpu);
  b.drop(gpu);
  {
    const Lease lease = b.read({.device = gpu});
    EXPECT_THROW(b.drop(gpu), Error);
  }
  {
    fill(b, gpu, 1);
    const Lease lease = b.read({.device = gpu});
    EXPECT_THROW(b.evict(gpu), Error);
    EXPECT_EQ(b.state(Device::host()), CopyState::stale) << "what fails copies nothing";
  }
  fill(b, Device::host(), 2);
  EXPECT_THROW(b.evict(Device::host()), Error) << "there is nowhere to go";
}

TEST_P(BufferOn, boxes_of_many_dimensions_move_alone) {
  Buffer b(ElementType::c256, {4, 6, 5}, {.devices = &devices_});
  using Number = std::complex<long double>;
  {
    Lease lease = b.write({.device = Device::host()});
    for (int i = 0; i < 120; ++i) lease.data<Number>()[i] = Number(i, -i);
  }
  const Region box = Box{{1, 2, 0}, {3, 5, 5}};
  const Lease lease = b.read({.device = gpu, .region = box});
  EXPECT_EQ(ledger_.sums().bytes, 2 * 3 * 5 * 32);
  EXPECT_EQ(b.state(gpu, box), CopyState::valid);
  EXPECT_EQ(b.state(gpu), CopyState::partly_valid);
  std::vector<Number> seen(120);
  for (int z = 1; z < 3; ++z)
    for (int y = 2; y < 5; ++y) {
      const int row = (z * 6 + y) * 5;
      run_kernel<const Number>(lease, row, row + 5,
                               [row, &seen](const Number* data) { std::copy_n(data + row, 5, seen.begin() + row); });
    }
  finish(lease.stream().event(), Deadline::after_seconds(10));
  for (int z = 1; z < 3; ++z)
    for (int y = 2; y < 5; ++y)
      for (int x = 0; x < 5; ++x) {
        const int i = (z * 6 + y) * 5 + x;
        ASSERT_EQ(seen[std::size_t(i)], Number(i, -i));
      }
}

TEST_P(BufferOn, wrong_requests_name_both_sides) {
  Buffer b = buffer();
  EXPECT_THROW(b.read({.device = Device::fake(7)}), Error);
  EXPECT_THROW(b.read({.region = Region::interval(0, n + 1)}), Error);
  EXPECT_THROW(b.read({.region = Box{{0, 0}, {1, 1}}}), Error);
  EXPECT_THROW(b.read({.stream = &devices_.stream(other_gpu), .device = gpu}), Error);
  const Lease lease = b.read();
  EXPECT_THROW(lease.data<const float>(), Error);
  Buffer complex(ElementType::c64, {2}, {.devices = &devices_});
  EXPECT_THROW(complex.accumulate(Combine::minimum), Error);
}

TEST(Buffer, an_import_has_a_stride_for_each_extent) {
  std::vector<double> mine(12);
  try {
    Buffer::import({.data = mine.data(), .type = ElementType::f64, .extents = {3, 4}, .strides = {4}}, {.name = "x"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_EQ(error.message(), "buffer 'x': the view has 2 extents and 1 stride");
  }
}

TEST(Buffer, a_copy_between_devices_that_do_not_reach_each_other_goes_through_the_host_once) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .reach_each_other = false}}});
  Buffer b(ElementType::i32, {1000}, {.devices = &devices});
  {
    Lease lease = b.write({.device = gpu});
    run_on(lease.stream(), [data = lease.data<int>()] { std::iota(data, data + 1000, 0); });
  }
  const Lease lease = b.read({.device = other_gpu});
  const std::vector<CopyRecord> records = devices.ledger().records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].route, Route::through_host);
  EXPECT_EQ(b.state(Device::host()), CopyState::unallocated);
  run_on(lease.stream(), [data = lease.data<const int>()] { EXPECT_EQ(data[999], 999); });
}

TEST_P(BufferOn, what_is_to_be_released_leaves_with_its_scope) {
  Buffer released = buffer({.residency = Residency::release}), kept = buffer();
  fill(released, Device::host(), 1);
  {
    const Offload outer(gpu);
    {
      const Offload inner(other_gpu);
      Lease lease = released.read_write();
      set(lease, 0, 1, 7);
    }
    EXPECT_EQ(released.state(other_gpu), CopyState::unallocated);
    EXPECT_EQ(released.state(Device::host()), CopyState::valid) << "its value was saved";
    { const Lease lease = released.read(); }
    { const Lease lease = kept.read(); }
    EXPECT_EQ(released.state(gpu), CopyState::valid);
  }
  EXPECT_EQ(released.state(gpu), CopyState::unallocated);
  EXPECT_EQ(kept.state(gpu), CopyState::valid);
  EXPECT_EQ(values(released, gpu)[0], 7);
  {
    Lease escaped;
    {
      const Offload scope(gpu);
      escaped = released.read();
    }
    EXPECT_EQ(released.state(gpu), CopyState::valid) << "somebody still reads it";
  }
}

TEST_P(BufferOn, a_full_memory_loses_the_clean_copy_that_was_used_longest_ago) {
  Buffer a = buffer(), b = buffer(), c = buffer(), dirty = buffer();
  for (Buffer* each : {&a, &b, &c}) fill(*each, Device::host(), 1);
  fill(dirty, gpu, 2);
  values(a, gpu);
  values(b, gpu);
  values(a, gpu);
  Pool& pool = devices_.pool(devices_.memory_of(gpu));
  pool.trim();
  pool.limit(pool.counts().in_use_bytes);
  values(c, gpu);
  EXPECT_EQ(b.state(gpu), CopyState::unallocated) << "a was used after it";
  EXPECT_EQ(a.state(gpu), CopyState::valid);
  EXPECT_EQ(dirty.state(gpu), CopyState::valid) << "its value is nowhere else";
  const Lease la = a.read({.device = gpu}), lc = c.read({.device = gpu});
  EXPECT_THROW(b.read({.device = gpu}), Error);
  EXPECT_EQ(values(b, Device::host()), all(1)) << "a failure loses nothing";
}

TEST_P(BufferOn, a_full_memory_loses_what_was_prefetched_too) {
  Buffer a = buffer(), b = buffer();
  for (Buffer* each : {&a, &b}) fill(*each, Device::host(), 1);
  a.prefetch({.device = gpu});
  Pool& pool = devices_.pool(devices_.memory_of(gpu));
  pool.trim();
  pool.limit(pool.counts().in_use_bytes);
  EXPECT_EQ(values(b, gpu), all(1));
  EXPECT_EQ(a.state(gpu), CopyState::unallocated);
}

TEST(Buffer, what_was_copied_before_a_failure_is_in_the_ledger_and_in_the_budget) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .lost_after = {1}}}});
  Buffer b(ElementType::f64, {n}, {.checks = Checks::none, .devices = &devices});
  { const Lease lease = b.write({.region = Region::interval(0, 40)}); }
  { const Lease lease = b.write({.device = other_gpu, .region = Region::interval(40, n)}); }
  const ByteBudget budget(n * 8);
  EXPECT_THROW(b.read({.device = gpu}), Error) << "it is lost in the second of two copies";
  const std::vector<CopyRecord> records = devices.ledger().records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].region, Region::interval(0, 40));
  EXPECT_EQ(budget.spent_bytes(), 40 * 8);
}

TEST(Buffer, a_copy_ends_in_the_ledger_when_it_is_over) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = FakeTiming::deferred}}});
  for (const auto& [source, target] : {std::pair(Device::host(), gpu), std::pair(gpu, Device::host())}) {
    Buffer b(ElementType::f64, {n}, {.checks = Checks::none, .devices = &devices});
    { const Lease lease = b.write({.device = source}); }
    b.prefetch({.device = target});
    EXPECT_EQ(devices.ledger().records().back().end_ns, 0) << to_string(source);
    devices.steps(1 << 20);
    const CopyRecord record = devices.ledger().records().back();
    EXPECT_GE(record.end_ns, record.begin_ns) << to_string(source);
  }
}

TEST(Buffer, those_of_one_name_are_told_apart_where_copies_go_back_and_forth) {
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
  const BufferOptions options{.name = "u", .checks = Checks::none, .devices = &devices};
  Buffer there(ElementType::f64, {n}, options), back(ElementType::f64, {n}, options);
  for (int turn = 0; turn < 5; ++turn) {
    { const Lease lease = there.write(); }
    { const Lease lease = there.read({.device = gpu}); }
    { const Lease lease = back.write({.device = gpu}); }
    { const Lease lease = back.read(); }
  }
  EXPECT_TRUE(devices.ledger().ping_pongs().empty());
}

TEST_P(BufferOn, an_eviction_moves_the_part_of_the_value_that_leaves) {
  struct Case {
    Device base;                 // holds the value
    std::vector<Device> adding;  // to it, without having it
  };
  const std::vector<Case> cases = {
      {Device::host(), {gpu}}, {Device::host(), {gpu, other_gpu}},
      {other_gpu, {gpu}},      {other_gpu, {gpu, Device::host()}},
      {gpu, {other_gpu}},      {gpu, {other_gpu, Device::host()}},
  };
  for (const Case& one : cases) {
    Buffer b = buffer();
    fill(b, one.base, 1);
    double expected = 1;
    for (const Device device : one.adding) {
      Lease lease = b.accumulate(Combine::sum, {.device = device});
      run_kernel<double>(lease, 0, n, [](double* data) {
        for (Index i = 0; i < n; ++i) data[i] += 2;
      });
      expected += 2;
    }
    ledger_.clear();
    b.evict(gpu);
    EXPECT_EQ(ledger_.sums().bytes, whole_bytes);
    for (const CopyRecord& record : ledger_.records()) EXPECT_EQ(record.cause, Cause::eviction);
    EXPECT_EQ(b.state(gpu), CopyState::unallocated);
    EXPECT_EQ(values(b, other_gpu), all(expected));
    EXPECT_EQ(values(b, gpu), all(expected));
  }
}

TEST_P(BufferOn, memory_that_holds_zeros_is_not_copied) {
  std::vector<double> zeros(n);
  Buffer b = Buffer::import_zeros({.data = zeros.data(), .type = ElementType::f64, .extents = {n}, .strides = {1}},
                                  {.devices = &devices_});
  EXPECT_EQ(values(b, gpu), all(0));
  EXPECT_EQ(ledger_.sums().bytes, 0);
  EXPECT_EQ(b.version(), 0u);
  b.write({.region = Region::interval(10, 11)}).data<double>()[10] = 3;
  EXPECT_EQ(zeros[10], 3) << "it is the copy on the host";
  std::vector<double> expected = all(0);
  expected[10] = 3;
  EXPECT_EQ(values(b, gpu), expected);
  EXPECT_EQ(ledger_.sums().bytes, 8);
}

TEST_P(BufferOn, an_abandoned_write_leaves_no_value) {
  for (const Intent intent : {Intent::write, Intent::read_write, Intent::accumulate}) {
    Buffer b = buffer();
    fill(b, gpu, 1);
    EXPECT_EQ(values(b, Device::host()), all(1));
    const std::uint64_t version = b.version();
    const Access access{.device = gpu, .region = Region::interval(10, 20)};
    {
      Lease lease = intent == Intent::write        ? b.write(access)
                    : intent == Intent::read_write ? b.read_write(access)
                                                   : b.accumulate(Combine::sum, access);
      set(lease, 10, 15, 2);
      lease.abandon();
      EXPECT_FALSE(lease);
      lease.abandon();
    }
    EXPECT_GT(b.version(), version);
    for (const Device device : {Device::host(), gpu, other_gpu}) {
      try {
        b.read({.device = device});
        ADD_FAILURE() << "half a write was read on " << to_string(device);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_use);
        EXPECT_NE(error.message().find("abandoned"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("buffer_test.cpp"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("[10, 20)"), std::string::npos) << error.message();
      }
      EXPECT_EQ(b.state(device, Region::interval(0, 10)) == CopyState::unallocated, device == other_gpu);
    }
    EXPECT_EQ(b.state(Device::host()), CopyState::partly_valid);
    EXPECT_THROW(b.read_write({.device = gpu}), Error);
    EXPECT_THROW(b.accumulate(Combine::sum, {.device = gpu}), Error);
    const Access rest{.device = gpu, .region = Region::interval(20, n)};
    EXPECT_NO_THROW(b.read(rest));
    fill(b, gpu, 3);
    EXPECT_EQ(values(b, Device::host()), all(3));
  }
}

TEST_P(BufferOn, a_lease_that_an_exception_destroys_is_abandoned) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  const auto half = [&] {
    Lease lease = b.write({.device = gpu});
    set(lease, 0, n / 2, 2);
    throw std::runtime_error("the kernel's input is missing");
  };
  EXPECT_THROW(half(), std::runtime_error);
  EXPECT_THROW(b.read(), Error);
  fill(b, gpu, 3);
  // One that was opened on the way out is whole.
  struct Rewrites {
    Buffer& b;
    Device device;
    ~Rewrites() { fill(b, device, 4); }
  };
  const auto leave = [&] {
    const Rewrites rewrites{b, gpu};
    const Lease reading = b.read({.device = other_gpu, .region = Region()});
    throw std::runtime_error("late");
  };
  EXPECT_THROW(leave(), std::runtime_error);
  EXPECT_EQ(values(b, Device::host()), all(4));
}

TEST_P(BufferOn, what_one_memory_abandons_no_other_gives_back) {
  Buffer b = buffer();
  fill(b, Device::host(), 1);
  {
    Lease first = b.accumulate(Combine::sum, {.device = gpu}),
          second = b.accumulate(Combine::sum, {.device = other_gpu});
    first.abandon();
  }
  for (const Device device : {Device::host(), gpu, other_gpu}) EXPECT_THROW(b.read({.device = device}), Error);
}

TEST(Buffer, threads_work_on_regions_of_their_own) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .timing = FakeTiming::threaded}}});
  constexpr Index each = 64;
  constexpr int thread_count = 4;
  Buffer b(ElementType::i64, {each * thread_count}, {.devices = &devices});
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      const Device places[] = {Device::host(), gpu, other_gpu};
      const Index lower = t * each, upper = lower + each;
      const Region mine = Region::interval(lower, upper);
      for (int round = 0; round < 100; ++round) {
        {
          Lease lease = b.write({.device = places[(t + round) % 3], .region = mine});
          run_on(lease.stream(), [data = lease.data<std::int64_t>(), lower, upper, round] {
            for (Index i = lower; i < upper; ++i) data[i] = round * 1000 + i;
          });
        }
        const Lease lease = b.read({.device = places[(t + round / 3) % 3], .region = mine});
        std::vector<std::int64_t> seen;
        run_on(lease.stream(), [data = lease.data<const std::int64_t>(), lower, upper, &seen] {
          seen.assign(data + lower, data + upper);
        });
        finish(lease.stream().event(), Deadline::after_seconds(20));
        for (Index i = 0; i < each; ++i) ASSERT_EQ(seen[std::size_t(i)], round * 1000 + lower + i);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Buffer, buffers_that_share_a_copy_note_its_last_use_in_any_order) {
  test::ManualStream stream;
  const Event first = stream.give(), second = stream.give();
  detail::Storage copy;
  copy.note(second);
  copy.note(first);
  EXPECT_EQ(copy.uses(), std::vector<Event>{second});
}

TEST(Buffer, two_devices_with_one_memory_have_one_copy) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .memory_of = {-1, 0}}}});
  Buffer b(ElementType::f64, {n}, {.devices = &devices});
  {
    Lease lease = b.write({.device = gpu});
    std::fill_n(lease.data<double>(), n, 1.0);
  }
  const Lease lease = b.read({.device = other_gpu});
  EXPECT_EQ(devices.ledger().sums().copies, 0);
}

}  // namespace
}  // namespace tranship
