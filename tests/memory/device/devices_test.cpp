#include <cstdlib>

#include <gtest/gtest.h>

#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/pool/pool.hpp>

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
    Devices devices({.fake = {.count = 2, .timing = timing}});
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
    EXPECT_TRUE(devices.pinned_pool().driver().is_host_memory());
    EXPECT_NE(&devices.pinned_pool(), &devices.pool(0));
  }
}

TEST(Devices, devices_that_share_a_memory_are_called_by_the_first) {
  Devices devices({.fake = {.count = 5, .reach_each_other = false, .memory_of = {-1, 0, -1, 1}}});
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
  Devices devices({.fake = {.count = 2}});
  for (const auto& f :
       {+[](Devices& d) { d.memory_of(Device::fake(2)); }, +[](Devices& d) { d.stream(Device::fake(2)); },
        +[](Devices& d) { d.make_stream(Device::fake(2)); }}) {
    const std::string fault = fault_of([&] { f(devices); }, ErrorCode::invalid_use);
    EXPECT_TRUE(contains(fault, "fake:2") && contains(fault, "3 devices") && contains(fault, "host, fake:0, fake:1"))
        << fault;
  }
  EXPECT_TRUE(contains(fault_of([&] { devices.memory_of(Device::cuda(0)); }, ErrorCode::invalid_use), "cuda:0"));
}

TEST(Devices, options_that_contradict_each_other_are_refused) {
  const auto fault = [](const FakeDevices& fake) {
    return fault_of([&] { Devices devices({.fake = fake}); }, ErrorCode::invalid_use);
  };
  EXPECT_TRUE(contains(fault({.count = -1}), "-1"));
  EXPECT_TRUE(contains(fault({.count = 2, .memory_of = {-1, 1}}), "fake:1"));
  EXPECT_TRUE(contains(fault({.count = 2, .memory_of = {1}}), "fake:0"));
  EXPECT_TRUE(contains(fault({.count = 2, .memory_of = {-2}}), "-2"));
  EXPECT_TRUE(contains(fault({.count = 1, .memory_of = {-1, 0}}), "2 fake devices"));
  EXPECT_TRUE(contains(fault({.count = 1, .delay_ns = -5}), "-5"));
  EXPECT_TRUE(contains(fault({.count = 1, .capacity_bytes = -7}), "-7"));
}

TEST(Devices, a_fake_memory_has_its_capacity_whoever_of_its_devices_is_named) {
  Devices devices({.fake = {.count = 3, .capacity_bytes = 4096, .memory_of = {-1, 0}}});
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
      Devices devices({.fake = {.count = 2, .timing = timing}});
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
    EXPECT_TRUE(contains(fault, text) && contains(fault, "0 to 64")) << fault;
  }
  ASSERT_EQ(setenv("TRANSHIP_FAKE_DEVICES", "2", 1), 0);
  EXPECT_EQ(Devices::standard().memory_count(), 3);
  EXPECT_EQ(&Devices::standard(), &Devices::standard());
  unsetenv("TRANSHIP_FAKE_DEVICES");
}

}  // namespace
}  // namespace tranship
