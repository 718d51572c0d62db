// Private: Call, what a rank states in a collective call, so that ranks that make different ones learn it.
#pragma once

#include <cstdint>
#include <string>

#include <tranship/base/random.hpp>

namespace tranship {

enum class CallKind : std::uint8_t {
  none,
  barrier,
  sync,
  all_gather,
  broadcast,
  allocate,
  release,
  shared_flags,
  registration,
  split,
  sub_world,
  kernel_team,
  agreement,
  // Of symmetric memory (collectives/).
  all_reduce,
  reduce,
  reduce_scatter,
  gather_symmetric,
  all_to_all,
  broadcast_symmetric
};

const char* name_of(CallKind kind) noexcept;

/// What all ranks must say alike. What else they must agree on (an alignment, a root, a label) goes into `detail`.
struct Call {
  CallKind kind = CallKind::none;
  std::uint8_t type = 0;  ///< an ElementType, where it matters
  std::uint64_t size_bytes = 0;
  std::uint64_t detail = 0;
  friend bool operator==(const Call&, const Call&) = default;
};

/// 16 bits that differ where calls differ, but for one in 65,536.
constexpr std::uint16_t fingerprint_of(const Call& call) noexcept {
  const std::uint64_t kind = static_cast<std::uint64_t>(call.kind) + std::uint64_t{256} * call.type + 1;
  if (call.size_bytes == 0 && call.detail == 0) return static_cast<std::uint16_t>(kind * 0x9e37u);  // barriers, at once
  return static_cast<std::uint16_t>(splitmix64(kind + splitmix64(call.size_bytes + splitmix64(call.detail))));
}
/// "all_gather of 16 bytes".
std::string to_string(const Call& call);

}  // namespace tranship
