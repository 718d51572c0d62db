// Private: Meeting: how the members of one team agree and exchange few bytes during set-up. A back-end makes one for
// each team (Fabric::meeting).
#pragma once

#include <cstddef>
#include <cstdint>

#include <tranship/base/call_site.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/seam/call.hpp>

namespace tranship {

class World;

/// One object per rank and team.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// Returns when all members have called it. Everything that any of them wrote before is then visible to all. Throws
  /// `mismatch` on every member when their calls differ.
  virtual void meet(World& world, const Call& call, CallSite where) = 0;
  /// Meets, and copies `size_bytes` from each member, in their order, to `all` on each. All members receive all data,
  /// so use it only if all need it; the number of messages per machine grows with the logarithm of the number of
  /// machines.
  virtual void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                      CallSite where) = 0;
  /// Meets, and copies `size_bytes` from one member to `data` on all others. Each of them reads that member only.
  virtual void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
                      CallSite where) = 0;
  /// Meets, and combines the records of all members into `record` on each, with the same bytes on all of them.
  /// `combine(into, from)` must be associative and commutative, and must not throw. Messages and bytes per machine grow
  /// with the logarithm of the number of machines.
  using Combine = FunctionRef<void(void* into, const void* from)>;
  static constexpr std::size_t record_bytes_max = 256;
  virtual void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
                      CallSite where) = 0;
  /// Number of calls that this rank has made in this slot, which may have served other teams before. All members must
  /// begin with the same number, not less than any of theirs, and meet in a larger team before they meet here.
  virtual std::uint64_t calls() const noexcept = 0;
  virtual void begin_at(std::uint64_t calls) = 0;
};

}  // namespace tranship
