// Private: Meeting, how the members of one team agree and exchange few bytes while they set things up. A back-end makes
// one for each team (Fabric::meeting).
#pragma once

#include <cstddef>
#include <cstdint>

#include <tranship/base/call_site.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/seam/call.hpp>

namespace tranship {

class World;

/// How the ranks of one team meet. One object per rank and team.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// Returns when all members have called it. What any of them wrote before is seen by all after it. Throws `mismatch`
  /// on every member when their calls differ.
  virtual void meet(World& world, const Call& call, CallSite where) = 0;
  /// As meet(), with `size_bytes` from each member, in their order, to `all` of each. All members get all data, so this
  /// is for those who need it; the messages of one machine grow with the logarithm of how many there are.
  virtual void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                      CallSite where) = 0;
  /// As meet(), with `size_bytes` from one member to `data` of all others. Each of them reads that member alone.
  virtual void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
                      CallSite where) = 0;
  /// As meet(), with the records of all members combined in `record` of each, which has the same bytes on all of them.
  /// `combine(into, from)` is associative and commutative, and throws nothing. Messages and bytes of one machine grow
  /// with the logarithm of how many there are.
  using Combine = FunctionRef<void(void* into, const void* from)>;
  static constexpr std::size_t record_bytes_max = 256;
  virtual void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
                      CallSite where) = 0;
  /// Calls that this rank has made in this slot; it may have served other teams before. All members must begin with the
  /// same number, which is not less than any of theirs, and meet in a larger team before they meet here.
  virtual std::uint64_t calls() const noexcept = 0;
  virtual void begin_at(std::uint64_t calls) = 0;
};

}  // namespace tranship
