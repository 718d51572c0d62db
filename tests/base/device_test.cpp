#include <gtest/gtest.h>

#include <tranship/base/device.hpp>

namespace tranship {
namespace {

TEST(Device, devices_that_name_one_memory_are_one) {
  EXPECT_EQ(Device::host(), Device());
  EXPECT_EQ(Device::fake(1), Device::fake(1));
  EXPECT_NE(Device::fake(1), Device::fake(0));
  EXPECT_NE(Device::fake(0), Device::cuda(0));
  EXPECT_TRUE(Device::host().is_host());
  EXPECT_FALSE(Device::fake(0).is_host());
}

TEST(Device, the_name_of_a_device_names_it) {
  EXPECT_EQ(to_string(Device::host()), "host");
  EXPECT_EQ(to_string(Device::fake(12)), "fake:12");
  EXPECT_EQ(to_string(Device::cuda(0)), "cuda:0");
  for (const Device device : {Device::host(), Device::fake(0), Device::fake(2147483647), Device::cuda(7)})
    EXPECT_EQ(parse_device(to_string(device)).value(), device);
}

TEST(Device, a_text_that_names_none_is_refused_with_the_column_of_its_first_wrong_character) {
  const struct {
    const char* text;
    int column;
  } cases[] = {
      {"", 1},         {"x", 1},       {"Host", 1},    {"hos", 4},
      {"hosts", 5},    {"host:0", 5},  {"fake", 5},    {"fake:", 6},
      {"fake:x", 6},   {"fake:-1", 6}, {"fake:+1", 6}, {"fake:1x", 7},
      {"fake:12 ", 8}, {"cuda;0", 5},  {"fuda:0", 2},  {"fake:2147483648", 6},
  };
  for (const auto& [text, column] : cases) {
    const Result<Device> parsed = parse_device(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::bad_text) << text;
    EXPECT_EQ(parsed.error().column, column) << text;
    EXPECT_NE(parsed.error().message().find("column " + std::to_string(column)), std::string::npos);
  }
}

TEST(Device, a_kind_is_known_once_it_has_been_named) {
  EXPECT_FALSE(parse_device("drum:3").ok());
  const DeviceKind drum = device_kind("drum");
  EXPECT_EQ(device_kind("drum"), drum);
  EXPECT_EQ(name_of(drum), "drum");
  EXPECT_EQ(parse_device("drum:3").value(), Device::of(drum, 3));
  EXPECT_EQ(to_string(Device::of(drum, 3)), "drum:3");
  EXPECT_EQ(device_kind("fake"), DeviceKind::fake);
  EXPECT_EQ(Device::of(DeviceKind::host, 3), Device::host());
  for (const char* wrong : {"", "Drum", "3d", "a:b", "a b", "abcdefghijklmnopqrstuvwxyzabcdefg"})
    EXPECT_THROW(device_kind(wrong), Error) << wrong;
}

}  // namespace
}  // namespace tranship
