#include <algorithm>

#include <gtest/gtest.h>
#include <memory/allocations.hpp>

#include <tranship/memory/buffer.hpp>

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
  Devices devices({.fake = {.count = 1, .timing = GetParam().timing}});
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
  Devices devices({.fake = {.count = 1}});
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

TEST(Lease, keeps_the_buffer_that_its_handles_have_left) {
  Devices devices({.fake = {.count = 1}});
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
