// Detail: Device, the name of a processor with memory. It is a value: two equal devices name the same memory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <tranship/base/result.hpp>

namespace tranship {

/// Other kinds get the next numbers when device_kind() first sees their names.
enum class DeviceKind : std::uint8_t {
  host,
  fake,  ///< memory of the host that only the fake device's streams may touch, for tests without a GPU
  cuda,
};
/// Returns the kind with this name. A name is a lower-case letter, followed by lower-case letters, digits and
/// underscores, at most 32 characters in all. A new name becomes a new kind, which exists until the process ends; a
/// process can have 64 kinds. Thread-safe. Throws `invalid_use` for a malformed name and for the 65th kind.
DeviceKind device_kind(std::string_view name);
/// Returns the name of a kind, or "?" for a number that names none.
std::string_view name_of(DeviceKind kind);

/// All devices of kind `host` are equal, with ordinal 0.
class Device {
 public:
  constexpr Device() = default;
  static constexpr Device host() noexcept { return {}; }
  static constexpr Device fake(int ordinal) noexcept { return Device(DeviceKind::fake, ordinal); }
  static constexpr Device cuda(int ordinal) noexcept { return Device(DeviceKind::cuda, ordinal); }
  /// Returns the device of a kind and number; for `host` the number is ignored.
  static constexpr Device of(DeviceKind kind, int ordinal) noexcept {
    return kind == DeviceKind::host ? host() : Device(kind, ordinal);
  }

  constexpr DeviceKind kind() const noexcept { return kind_; }
  constexpr int ordinal() const noexcept { return ordinal_; }
  constexpr bool is_host() const noexcept { return kind_ == DeviceKind::host; }
  friend constexpr auto operator<=>(const Device&, const Device&) = default;  // NOLINT(modernize-use-nullptr)

 private:
  constexpr Device(DeviceKind kind, int ordinal) noexcept : kind_(kind), ordinal_(ordinal) {}
  DeviceKind kind_ = DeviceKind::host;
  int ordinal_ = 0;
};

/// "host", "fake:1", "cuda:0".
std::string to_string(Device device);
/// The reverse of to_string(), for the kinds that the process knows. Fails with `bad_text` and the column of the first
/// wrong character.
Result<Device> parse_device(std::string_view text);

/// Index of a memory in Devices (memory/device/devices.hpp); the host's is 0.
using MemoryId = int;

}  // namespace tranship
