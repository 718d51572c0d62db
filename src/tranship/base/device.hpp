// Detail: Device, the name of a processor with memory. A value: two devices that name one memory are one device.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <tranship/base/result.hpp>

namespace tranship {

/// Further kinds get the next numbers when they are first named, see device_kind().
enum class DeviceKind : std::uint8_t {
  host,
  fake,  ///< memory of the host that only its own streams may touch: for tests, without a GPU
  cuda,
};
/// The kind of a name: a lower-case letter, then more of them, digits and underscores, at most 32. A name that is new
/// to the process becomes a kind, which lasts as long as the process; there can be 64. Thread-safe. Throws
/// `invalid_use` for other names, and for one kind too many.
DeviceKind device_kind(std::string_view name);
/// Its name.
std::string_view name_of(DeviceKind kind);

/// `host` has no ordinals: every `Device` of kind host is the same one.
class Device {
 public:
  constexpr Device() = default;
  static constexpr Device host() noexcept { return {}; }
  static constexpr Device fake(int ordinal) noexcept { return Device(DeviceKind::fake, ordinal); }
  static constexpr Device cuda(int ordinal) noexcept { return Device(DeviceKind::cuda, ordinal); }
  /// The device of a kind that has such a number; that of the host has none.
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
/// The reverse, of the kinds that the process knows; `bad_text` with the column of the first wrong character.
Result<Device> parse_device(std::string_view text);

/// The number of a memory within Devices (memory/device/devices.hpp); the host's is 0.
using MemoryId = int;

}  // namespace tranship
