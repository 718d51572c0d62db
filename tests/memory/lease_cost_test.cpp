#include <algorithm>

#include <gtest/gtest.h>
#include <memory/allocations.hpp>

#include <tranship/memory/buffer.hpp>
#include <tranship/memory/pool/pool.hpp>
#include <tranship/memory/state/box_tree.hpp>

#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using test::allocations_of_thread;

Lease open(Buffer& buffer, Intent intent, const Access& access) {
  switch (intent) {
    case Intent::read:
      return buffer.read(access);
    case Intent::write:
      return buffer.write(access);
    case Intent::read_write:
      return buffer.read_write(access);
    case Intent::accumulate:
      break;
  }
  return buffer.accumulate(Combine::sum, access);
}

struct Leases {
  FakeTiming timing;
  int count;
};

class LeaseCost : public testing::TestWithParam<Leases> {};

TEST_P(LeaseCost, leases_that_copy_nothing_allocate_nothing) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = GetParam().timing}}});
  // Of each kind, on each device, of the whole and of a box.
  const int each = GetParam().count / 16;
  for (const Device device : {Device::host(), Device::fake(0)})
    for (const Intent intent : {Intent::read, Intent::write, Intent::read_write, Intent::accumulate})
      for (const bool is_whole : {true, false}) {
        Buffer buffer(ElementType::f64, {40, 50}, {.checks = Checks::none, .devices = &devices});
        const Access access{
            .device = device,
            .region = is_whole ? Region::whole(buffer.extents()) : Region(Box{{10, 0}, {20, 25}}),
        };
        // The first make the copy, and cut the buffer into the regions that stay.
        { const Lease first = buffer.write({.device = device}); }
        { const Lease first = open(buffer, intent, access); }
        finish(devices.stream(device).event(), Deadline::after_seconds(10));
        finish(devices.copy_stream(devices.memory_of(device)).event(), Deadline::after_seconds(10));
        { const Lease first = open(buffer, intent, access); }
        const Index copies = devices.ledger().sums().copies;
        const long long before = allocations_of_thread();
        for (int i = 0; i < each; ++i) const Lease lease = open(buffer, intent, access);
        EXPECT_EQ(allocations_of_thread() - before, 0)
            << name_of(intent) << " on " << to_string(device) << ", whole: " << is_whole;
        EXPECT_EQ(devices.ledger().sums().copies, copies);
      }
}

INSTANTIATE_TEST_SUITE_P(timings, LeaseCost,
                         testing::Values(Leases{FakeTiming::eager, 1'000'000}, Leases{FakeTiming::deferred, 16'000},
                                         Leases{FakeTiming::threaded, 16'000}));

TEST(Lease, a_copy_of_one_region_allocates_nothing_once_the_ledger_is_full) {
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
  Buffer buffer(ElementType::f64, {40, 50}, {.checks = Checks::none, .devices = &devices});
  const auto refresh = [&] {
    { const Lease lease = buffer.write(); }
    const Lease lease = buffer.read({.device = Device::fake(0)});
  };
  for (std::size_t i = 0; i < CopyLedger::records_max; ++i) refresh();
  const long long before = allocations_of_thread();
  for (int i = 0; i < 1000; ++i) refresh();
  EXPECT_EQ(allocations_of_thread() - before, 0);
  EXPECT_EQ(devices.ledger().sums().copies, Index(CopyLedger::records_max) + 1000);
}

struct Cost {
  double steps = 0, allocations = 0;  ///< for each region
};

/// What it costs to write boxes of two cells along each dimension on a device, one by one in random order, and to read
/// all of them on the host.
Cost cost_of_gathering(int dims, Index count, FakeTiming timing) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = timing}}});
  Buffer buffer(ElementType::i64, Indices::filled(dims, 2 * count), {.checks = Checks::none, .devices = &devices});
  std::vector<Box> boxes;
  for_each_coordinate(Indices::filled(dims, count), [&](const Indices& at) {
    Box& box = boxes.emplace_back(Box{at, at});
    for (int d = 0; d < dims; ++d) {
      box.lower[d] *= 2;
      box.upper[d] = box.lower[d] + 2;
    }
  });
  test::Random(1).shuffle(boxes);
  const auto write = [&](const Box& box, Index value) {
    const Lease lease = buffer.write({.device = Device::fake(0), .region = Region(box)});
    run_on(lease.stream(), [data = lease.data<Index>(), strides = buffer.strides(), box, value] {
      for_each_coordinate(box.extents(), [&](const Indices& at) {
        Index offset = 0;
        for (int d = 0; d < at.size(); ++d) offset += (box.lower[d] + at[d]) * strides[d];
        data[offset] = value;
      });
    });
  };
  const std::uint64_t steps_before = detail::box_steps;
  const long long before = allocations_of_thread();
  Index number = 0;
  for (const Box& box : boxes) write(box, ++number);
  const Lease lease = buffer.read();
  Cost cost{double(detail::box_steps - steps_before), double(allocations_of_thread() - before)};
  EXPECT_EQ(devices.ledger().sums().copies, 1);
  EXPECT_EQ(devices.ledger().sums().bytes, Region::whole(buffer.extents()).count() * 8);
  number = 0;
  for (const Box& box : boxes) {
    Index offset = 0;
    for (int d = 0; d < dims; ++d) offset += box.lower[d] * buffer.strides()[d];
    ++number;
    if (lease.data<const Index>()[offset] == number) continue;
    ADD_FAILURE() << "cell " << offset << " has " << lease.data<const Index>()[offset] << " for " << number;
    break;
  }
  cost.steps /= double(boxes.size());
  cost.allocations /= double(boxes.size());
  return cost;
}

TEST(Lease, gathering_ten_thousand_regions_costs_about_their_number) {
  struct Case {
    int dims;
    Index few, many;  // along each dimension
  };
  test::Thinned thinned(2);
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred})
    for (const Case& c : {Case{1, 625, 10'000}, Case{2, 25, 100}, Case{3, 9, 22}}) {
      if (!thinned.takes_next()) continue;
      const Cost few = cost_of_gathering(c.dims, c.few, timing), many = cost_of_gathering(c.dims, c.many, timing);
      EXPECT_LE(many.steps, 2.5 * few.steps) << c.dims << " dimensions";
      EXPECT_LE(many.allocations, 1.25 * few.allocations) << c.dims << " dimensions";
    }
}

TEST(Lease, keeps_the_buffer_that_its_handles_have_left) {
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
  Lease first, second;
  {
    Buffer buffer(ElementType::f64, {100}, {.devices = &devices});
    std::fill_n(buffer.write().data<double>(), 100, 1.0);
    first = buffer.read();
    second = buffer.read({.device = Device::fake(0)});
  }
  EXPECT_GT(devices.pool(0).counts().in_use_bytes, 0);
  first.close();
  EXPECT_EQ(second.view().extents, Indices({100}));
  EXPECT_GT(devices.pool(0).counts().in_use_bytes, 0);
  second.close();
  EXPECT_EQ(devices.pool(0).counts().in_use_bytes, 0);
}

}  // namespace
}  // namespace tranship
