// Private: Call: a rank's description of its collective call, by which ranks whose calls differ find this out.
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
  // Collective operations on symmetric memory (collectives/).
  all_reduce,
  reduce,
  reduce_scatter,
  gather_symmetric,
  all_to_all,
  broadcast_symmetric
};

const char* name_of(CallKind kind) noexcept;

/// Properties of a call that all ranks must give alike. Further ones (an alignment, a root, a label) go into `detail`.
struct Call {
  CallKind kind = CallKind::none;
  std::uint8_t type = 0;  ///< an ElementType, if it matters
  std::uint64_t size_bytes = 0;
  std::uint64_t detail = 0;
  friend bool operator==(const Call&, const Call&) = default;
};

/// Returns 16 bits that differ for different calls, except with a probability of 1 in 65,536.
constexpr std::uint16_t fingerprint_of(const Call& call) noexcept {
  const std::uint64_t kind = static_cast<std::uint64_t>(call.kind) + std::uint64_t{256} * call.type + 1;
  if (call.size_bytes == 0 && call.detail == 0) return static_cast<std::uint16_t>(kind * 0x9e37u);  // barriers
  return static_cast<std::uint16_t>(splitmix64(kind + splitmix64(call.size_bytes + splitmix64(call.detail))));
}
/// Returns a text such as "all_gather of 16 bytes".
std::string to_string(const Call& call);

}  // namespace tranship
