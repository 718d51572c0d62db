#include <algorithm>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/fake_devices.hpp>
#include <tranship/memory/device/host_device.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "memory/device_kinds.hpp"

namespace tranship {
namespace {

std::string fault_of(auto&& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.message();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Devices, without_options_there_is_the_host_alone) {
  Devices devices;
  EXPECT_EQ(devices.memory_count(), 1);
  EXPECT_EQ(devices.list(), std::vector<Device>{Device::host()});
  EXPECT_EQ(devices.memory_of(Device::host()), 0);
  EXPECT_TRUE(devices.driver(0).is_host_memory());
  EXPECT_EQ(devices.stream(Device::host()).event(), Event());
  EXPECT_EQ(devices.steps(10), 0);
}

TEST(Devices, every_device_has_a_memory_and_streams_by_its_name) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded}) {
    Devices devices({.kinds = {FakeDevices{.count = 2, .timing = timing}}});
    ASSERT_EQ(devices.memory_count(), 3);
    for (const Device device : devices.list()) {
      const MemoryId memory = devices.memory_of(device);
      EXPECT_EQ(devices.device_of(memory), device);
      EXPECT_EQ(devices.driver(memory).device(), device);
      EXPECT_EQ(&devices.pool(memory).driver(), &devices.driver(memory));
      EXPECT_EQ(devices.driver(memory).is_host_memory(), device.is_host());
      EXPECT_EQ(devices.stream(device).device(), device);
      EXPECT_EQ(devices.copy_stream(memory).device(), device);
      EXPECT_EQ(devices.make_stream(device)->device(), device);
      EXPECT_TRUE(devices.driver(memory).reaches(Device::host()));
    }
    for (MemoryId memory = 0; memory < devices.memory_count(); ++memory) {
      EXPECT_TRUE(devices.pinned_pool(memory).driver().is_host_memory());
      EXPECT_NE(&devices.pinned_pool(memory), &devices.pool(0));
    }
  }
}

TEST(Devices, devices_that_share_a_memory_are_called_by_the_first) {
  Devices devices({.kinds = {FakeDevices{.count = 5, .reach_each_other = false, .memory_of = {-1, 0, -1, 1}}}});
  EXPECT_EQ(devices.memory_count(), 4);
  EXPECT_EQ(devices.list().size(), 6U);
  const MemoryId first = devices.memory_of(Device::fake(0));
  EXPECT_EQ(devices.memory_of(Device::fake(1)), first);
  EXPECT_EQ(devices.memory_of(Device::fake(3)), first);
  EXPECT_NE(devices.memory_of(Device::fake(2)), first);
  EXPECT_NE(devices.memory_of(Device::fake(4)), devices.memory_of(Device::fake(2)));
  EXPECT_EQ(devices.device_of(first), Device::fake(0));
  EXPECT_EQ(devices.device_of(devices.memory_of(Device::fake(4))), Device::fake(4));
  // They are still processors of their own.
  EXPECT_EQ(devices.stream(Device::fake(3)).device(), Device::fake(3));
  EXPECT_NE(&devices.stream(Device::fake(3)), &devices.stream(Device::fake(0)));
  EXPECT_TRUE(devices.driver(first).reaches(Device::fake(3)));
  EXPECT_FALSE(devices.driver(first).reaches(Device::fake(2)));
  EXPECT_FALSE(devices.driver(first).reaches(Device::fake(5)));
  EXPECT_FALSE(devices.driver(first).reaches(Device::cuda(0)));
}

TEST(Devices, a_device_that_is_not_there_is_refused_with_those_that_are) {
  Devices devices({.kinds = {FakeDevices{.count = 2}}});
  for (const auto& f :
       {+[](Devices& d) { d.memory_of(Device::fake(2)); }, +[](Devices& d) { d.stream(Device::fake(2)); },
        +[](Devices& d) { d.make_stream(Device::fake(2)); }}) {
    const std::string fault = fault_of([&] { f(devices); }, ErrorCode::invalid_use);
    EXPECT_TRUE(contains(fault, "fake:2") && contains(fault, "3 devices") && contains(fault, "host, fake:0, fake:1"))
        << fault;
  }
  EXPECT_TRUE(contains(fault_of([&] { devices.memory_of(Device::cuda(0)); }, ErrorCode::invalid_use), "cuda:0"));
}

TEST(Devices, a_kind_that_is_not_there_says_why) {
  const Devices plain;
  const std::string fake = fault_of([&] { (void)plain.memory_of(Device::fake(0)); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(fake, "there is no fake:0; the only device is host: for tests")) << fake;
  EXPECT_TRUE(contains(fake, "TRANSHIP_FAKE_DEVICES")) << fake;
  const std::string cuda = fault_of([&] { (void)plain.memory_of(Device::cuda(0)); }, ErrorCode::invalid_use);
  const std::string why = test::why_no_card();
  EXPECT_TRUE(contains(cuda, why.empty() ? "and these were made without" : why.c_str())) << cuda;
  const Devices with({.kinds = {FakeDevices{.count = 1}}});
  const std::string other = fault_of([&] { (void)with.memory_of(Device::fake(1)); }, ErrorCode::invalid_use);
  EXPECT_TRUE(other.ends_with("the 2 devices are host, fake:0")) << other;
}

TEST(Devices, a_stream_of_others_is_refused_by_name) {
  Devices mine({.kinds = {FakeDevices{.count = 1}}}), others({.kinds = {FakeDevices{.count = 1}}});
  Buffer x(ElementType::f64, {4}, {.name = "x", .devices = &mine});
  const auto made = others.make_stream(Device::fake(0)), own = mine.make_stream(Device::fake(0));
  for (Stream* stream : {made.get(), &others.stream(Device::fake(0)), &others.stream(Device::host())}) {
    const std::string fault = fault_of([&] { (void)x.write({.stream = stream}); }, ErrorCode::invalid_use);
    EXPECT_TRUE(contains(fault, "buffer 'x': ") && contains(fault, "that belongs to other Devices")) << fault;
  }
  EXPECT_TRUE(x.write({.stream = own.get()}));
  EXPECT_TRUE(x.read({.stream = &mine.stream(Device::fake(0))}));
}

TEST(Devices, options_that_contradict_each_other_are_refused) {
  const auto fault = [](const FakeDevices& fake) {
    return fault_of([&] { Devices devices({.kinds = {fake}}); }, ErrorCode::invalid_use);
  };
  EXPECT_TRUE(contains(fault({.count = -1}), "-1"));
  EXPECT_TRUE(contains(fault({.count = 2, .memory_of = {-1, 1}}), "fake:1"));
  EXPECT_TRUE(contains(fault({.count = 2, .memory_of = {1}}), "fake:0"));
  EXPECT_TRUE(contains(fault({.count = 2, .memory_of = {-2}}), "-2"));
  EXPECT_TRUE(contains(fault({.count = 1, .memory_of = {-1, 0}}), "lists 2 devices, but count is 1"));
  EXPECT_TRUE(contains(fault({.count = 1, .delay_ns = -5}), "-5"));
  EXPECT_TRUE(contains(fault({.count = 1, .capacity_bytes = -7}), "-7"));
}

TEST(Devices, a_fake_memory_has_its_capacity_whoever_of_its_devices_is_named) {
  Devices devices({.kinds = {FakeDevices{.count = 3, .capacity_bytes = 4096, .memory_of = {-1, 0}}}});
  Driver& shared = devices.driver(devices.memory_of(Device::fake(1)));
  Driver& other = devices.driver(devices.memory_of(Device::fake(2)));
  void* most = shared.allocate(4000);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(most) % 256, 0U);
  EXPECT_EQ(shared.allocate(97), nullptr);
  void* all = other.allocate(4096);
  EXPECT_NE(all, nullptr);
  shared.deallocate(most, 4000);
  void* again = shared.allocate(4096);
  EXPECT_NE(again, nullptr);
  shared.deallocate(again, 4096);
  other.deallocate(all, 4096);
}

TEST(Devices, host_memory_is_aligned_at_every_size) {
  Devices devices;
  Driver& host = devices.driver(0);
  for (const std::size_t bytes : {1, 255, 257, 100'000, 4 << 20, (4 << 20) + 1}) {
    auto* memory = static_cast<unsigned char*>(host.allocate(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
    memory[0] = memory[bytes - 1] = 1;
    host.deallocate(memory, bytes);
  }
  EXPECT_EQ(host.allocate(SIZE_MAX), nullptr);
}

TEST(Devices, work_that_nobody_waited_for_is_done_when_they_are_destroyed) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded}) {
    int runs = 0;
    {
      Devices devices({.kinds = {FakeDevices{.count = 2, .timing = timing}}});
      Stream& first = devices.stream(Device::fake(0));
      Stream& copies = devices.copy_stream(devices.memory_of(Device::fake(1)));
      // The streams wait for each other, so neither can be destroyed first.
      for (int turn = 0; turn < 5; ++turn) {
        run_on(first, [&] { ++runs; });
        copies.wait(first.event());
        run_on(copies, [&] { ++runs; });
        first.wait(copies.event());
      }
    }
    EXPECT_EQ(runs, 10) << int(timing);
  }
}

TEST(Devices, those_of_the_process_are_as_many_as_the_environment_says) {
  for (const char* text : {"two", "-1", "2x", "1000", " 1"}) {
    ASSERT_EQ(setenv("TRANSHIP_FAKE_DEVICES", text, 1), 0);
    const std::string fault = fault_of([] { Devices::standard(); }, ErrorCode::bad_text);
    EXPECT_TRUE(contains(fault, text) && contains(fault, "0 to 63")) << fault;
  }
  ASSERT_EQ(setenv("TRANSHIP_FAKE_DEVICES", "2", 1), 0);
  EXPECT_EQ(Devices::standard().memory_count(), 3);
  EXPECT_EQ(&Devices::standard(), &Devices::standard());
  unsetenv("TRANSHIP_FAKE_DEVICES");
}

/// Devices of a kind of the tests' own, which are as the host is.
struct TwinDevices {
  static constexpr std::string_view kind = "twin";
  int count = 1;
};

class TwinSet final : public DeviceSet {
 public:
  explicit TwinSet(int count) : count_(count) {}
  int count() const noexcept override { return count_; }
  Device device(int ordinal) const noexcept override { return Device::of(device_kind("twin"), ordinal); }
  std::unique_ptr<Driver> make_driver(int ordinal) override {
    struct TwinDriver final : Driver {
      explicit TwinDriver(Device d) : name(d) {}
      Device device() const noexcept override { return name; }
      void* allocate(std::size_t size_bytes) override { return allocate_on_host(size_bytes); }
      void deallocate(void* memory, std::size_t) noexcept override { free_on_host(memory); }
      std::unique_ptr<Stream> make_stream() override { return std::make_unique<EagerStream>(name, 0); }
      bool reaches(Device other) const noexcept override { return other.is_host(); }
      bool is_host_memory() const noexcept override { return false; }
      Device name;
    };
    return std::make_unique<TwinDriver>(device(ordinal));
  }

 private:
  int count_;
};

constexpr DeviceFamily twin_devices{
    .kind = TwinDevices::kind,
    .make = [](const std::any& kind_options, const DeviceSetOptions&) -> std::unique_ptr<DeviceSet> {
      return std::make_unique<TwinSet>(std::any_cast<const TwinDevices&>(kind_options).count);
    },
    .standard = []() -> std::optional<DevicesOfKind> { return {}; },
};
const bool twins_are_registered = (register_devices(twin_devices), true);

TEST(Devices, a_kind_is_known_by_the_name_under_which_it_is_registered) {
  ASSERT_TRUE(twins_are_registered);
  Devices devices({.kinds = {TwinDevices{.count = 2}, FakeDevices{.count = 1}}});
  const Device twin = parse_device("twin:1").value();
  EXPECT_EQ(devices.list(), (std::vector{Device::host(), Device::of(twin.kind(), 0), twin, Device::fake(0)}));
  EXPECT_EQ(devices.kind_of(0), "host");
  EXPECT_EQ(devices.kind_of(devices.memory_of(twin)), "twin");
  EXPECT_EQ(devices.kind_of(devices.memory_of(Device::fake(0))), "fake");
  Buffer x(ElementType::f64, {4}, {.name = "x", .devices = &devices});
  {
    Lease lease = x.write({.device = twin});
    std::fill_n(lease.data<double>(), 4, 7.0);
  }
  EXPECT_EQ(x.read({.device = Device::fake(0)}).data<const double>()[3], 7.0);
  EXPECT_EQ(to_string(devices.ledger().records().back().source), "twin:1");
}

struct Cards {
  static constexpr std::string_view kind = "card";
};
struct NoTwins {
  static constexpr std::string_view kind = "twin";
};

TEST(Devices, a_kind_that_is_registered_twice_or_lacks_a_function_or_is_not_there_is_refused_by_name) {
  const auto again = fault_of([] { register_devices(twin_devices); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(again, "'twin'") && contains(again, "already")) << again;
  const auto cannot_make =
      fault_of([] { register_devices({.kind = "odd", .standard = twin_devices.standard}); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(cannot_make, "'odd'") && contains(cannot_make, "makes")) << cannot_make;
  const auto cannot_find =
      fault_of([] { register_devices({.kind = "odd", .make = twin_devices.make}); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(cannot_find, "'odd'") && contains(cannot_find, "finds")) << cannot_find;
  const auto missing = fault_of([] { Devices devices({.kinds = {Cards{}}}); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(missing, "'card'") && contains(missing, "fake, twin")) << missing;
  const auto other = fault_of([] { Devices devices({.kinds = {NoTwins{}}}); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(other, "'twin'") && contains(other, "another type")) << other;
}

TEST(Devices, what_is_added_later_serves_buffers_that_were_made_before) {
  Devices devices;
  Buffer x(ElementType::i32, {8}, {.name = "x", .devices = &devices});
  std::fill_n(x.write().data<int>(), 8, 5);
  Buffer y = x.duplicate();
  devices.add(FakeDevices{.count = 1});
  EXPECT_EQ(x.state(Device::fake(0)), CopyState::unallocated);
  x.drop(Device::fake(0));
  x.evict(Device::fake(0));
  EXPECT_TRUE(x.valid(Device::fake(0)).empty());
  x.read_write({.device = Device::fake(0)}).data<int>()[0] = 6;
  EXPECT_EQ(x.read().data<const int>()[0], 6);
  EXPECT_EQ(y.read({.device = Device::fake(0)}).data<const int>()[0], 5);

  const auto again = fault_of([&] { devices.add(FakeDevices{.count = 2}); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(again, "fake:0")) << again;
  EXPECT_EQ(devices.list().size(), 2U);
  const auto many = fault_of([&] { devices.add(TwinDevices{.count = 63}); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(many, "65") && contains(many, "64")) << many;
  EXPECT_EQ(devices.list().size(), 2U);
  devices.add(TwinDevices{.count = 62});
  EXPECT_EQ(devices.memory_count(), 64);
}

TEST(Devices, a_copy_makes_room_among_buffers_that_know_less_memories) {
  Devices devices;
  Buffer x(ElementType::i8, {4096}, {.devices = &devices}), old(ElementType::i8, {4096}, {.devices = &devices});
  devices.add(FakeDevices{.count = 1, .capacity_bytes = 4096});
  Buffer y(ElementType::i8, {4096}, {.devices = &devices});
  y.read({.device = Device::fake(0)}).close();
  x.read({.device = Device::fake(0)}).close();
  EXPECT_EQ(y.state(Device::fake(0)), CopyState::unallocated);
}

TEST(Devices, copies_through_the_host_use_memory_that_the_driver_pins) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .reach_each_other = false}}});
  Buffer x(ElementType::i32, {64}, {.devices = &devices});
  std::fill_n(x.write({.device = Device::fake(1)}).data<int>(), 64, 3);
  EXPECT_EQ(x.read({.device = Device::fake(0)}).data<const int>()[63], 3);
  EXPECT_GE(devices.driver(devices.memory_of(Device::fake(1))).counts().pinned_bytes, 256);
  EXPECT_EQ(devices.driver(devices.memory_of(Device::fake(0))).counts().pinned_bytes, 0);
}

TEST(Devices, foreign_memory_is_registered_with_a_device_once_and_for_as_long_as_the_buffer_has_it) {
  Devices devices({.kinds = {FakeDevices{.count = 2}}});
  const auto registered = [&](int ordinal) {
    return devices.driver(devices.memory_of(Device::fake(ordinal))).counts().registered_bytes;
  };
  std::vector<int> mine(64, 4);
  {
    Buffer x = Buffer::import({.data = mine.data() + 63, .type = ElementType::i32, .extents = {32}, .strides = {-2}},
                              {.devices = &devices});
    EXPECT_EQ(registered(0), 0);
    EXPECT_EQ(x.read({.device = Device::fake(0)}).data<const int>()[0], 4);
    EXPECT_EQ(registered(0), 63 * 4);
    x.write().close();
    Buffer y = x.duplicate();
    x.read({.device = Device::fake(0)}).close();
    y.read({.device = Device::fake(0)}).close();
    EXPECT_EQ(registered(0), 63 * 4);
    EXPECT_EQ(registered(1), 0);
  }
  EXPECT_EQ(registered(0), 0);
}

TEST(Devices, stale_regions_of_one_memory_are_copied_by_one_launch) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded}) {
    Devices devices({.kinds = {FakeDevices{.count = 1, .timing = timing}}});
    const Driver& gpu = devices.driver(devices.memory_of(Device::fake(0)));
    Buffer x(ElementType::i32, {40, 6}, {.devices = &devices});
    std::fill_n(x.write().data<int>(), 240, 1);
    x.read({.device = Device::fake(0)}).close();
    for (int row = 0; row < 40; row += 4) {
      Lease lease = x.write({.region = Region(Box{{row, 1}, {row + 1, 5}})});
      for (int j = 1; j < 5; ++j) lease.data<int>()[6 * row + j] = row;
    }
    const std::int64_t before = gpu.counts().launches;
    x.prefetch({.device = Device::fake(0)});
    // Copies that are not over are noted in the ledger by a function that follows them.
    EXPECT_LE(gpu.counts().launches - before, timing == FakeTiming::eager ? 1 : 11);
    x.write({.device = Device::fake(0), .region = Region(Box{{39, 0}, {40, 6}})}).close();
    const Lease back = x.read({.region = Region(Box{{0, 0}, {39, 6}})});
    for (int row = 0; row < 39; ++row)
      for (int j = 0; j < 6; ++j)
        EXPECT_EQ(back.data<const int>()[6 * row + j], row % 4 == 0 && j > 0 && j < 5 ? row : 1) << row << " " << j;
  }
}

TEST(Devices, one_byte_is_a_byte) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .capacity_bytes = 1}}});
  Buffer x(ElementType::i8, {1}, {.name = "x", .devices = &devices});
  EXPECT_TRUE(contains(x.explain(), "1 byte, version")) << x.explain();
  const auto full = fault_of([&] { x.read({.device = Device::fake(0)}); }, ErrorCode::no_memory);
  EXPECT_TRUE(contains(full, "no room on fake:0 for 1 byte ") && contains(full, "the limit is 1 byte")) << full;
  x.write().close();
  const auto lost = fault_of([&] { x.drop(Device::host()); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(lost, "would lose 1 of its 1 byte, ")) << lost;
  const auto last = fault_of([&] { x.evict(Device::host()); }, ErrorCode::invalid_use);
  EXPECT_TRUE(contains(last, "1 of its 1 byte is only on the host")) << last;
}

}  // namespace
}  // namespace tranship
