// Private: MemberCall, which the collective operations share: the checks, the meetings of the members, and the reads of
// a peer's elements. Each operation is one file beside this one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/library_calls.hpp>
#include <tranship/fabric/memory_use.hpp>
#include <tranship/fabric/seam/call.hpp>

namespace tranship {

/// One collective call on one member.
class MemberCall {
 public:
  /// Local. Throws `invalid_use` when source or target lie outside the symmetric heap or when their types differ. All
  /// members must pass the same `variant` (an operation or a root).
  MemberCall(Team& team, CallKind kind, const SymmetricSpan& target, const SymmetricSpan& source, CallSite where,
             int variant = 0);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::byte* target() const noexcept { return target_; }
  std::byte* source() const noexcept { return source_; }
  std::size_t target_bytes() const noexcept { return target_bytes_; }
  std::size_t source_bytes() const noexcept { return source_bytes_; }
  int width() const noexcept { return width_; }

  /// Throw `invalid_use` unless target and source consist of these numbers of parts, of equal size, in whole elements.
  void require_equal() const { require_parts(1, 1); }
  void require_parts(int target_parts, int source_parts) const;
  /// Throw `invalid_use` when source and target overlap. The second form allows them to be the same memory: the shorter
  /// one then lies at `target + at_target`, which equals `source + at_source`.
  void require_apart() const { check_apart(false, 0, 0); }
  void require_apart_or_same(std::size_t at_target = 0, std::size_t at_source = 0) const {
    check_apart(true, at_target, at_source);
  }
  void require_reduction(Reduction reduction) const;
  static void require_root(const Team& team, int root, CallSite where);

  /// Collective: waits for all members, which must have made the same call, and orders their earlier stores before this
  /// member's reads. From then until the call ends, the target and `source_bytes` of this member's source are in use.
  void begin(std::size_t source_bytes);
  void begin() { begin(source_bytes_); }
  /// Collective: waits for all members. The call promises its user nothing about what this meeting orders.
  void meet();

  /// Copies `bytes` at `local` of a member to this rank's `to`. They have arrived after complete().
  void fetch(int member, std::byte* to, const std::byte* local, std::size_t bytes);
  void complete();
  /// Combines `bytes` at `local` of all members, in their order, into `to`, which may lie in this member's own
  /// source but not in another member's.
  void combine(std::byte* to, const std::byte* local, std::size_t bytes, Reduction reduction);

 private:
  void check_apart(bool may_be_same, std::size_t at_target, std::size_t at_source) const;
  /// Returns the address at which this rank can load a member's bytes at `local`, or nullptr if they must be fetched.
  const std::byte* loadable(int member, const std::byte* local, std::size_t bytes) const;

  Team& team_;
  Context& context_;
  detail::LibraryCalls in_library_;
  Call call_;
  CallSite where_;
  int rank_;
  int size_;
  ElementType type_;
  int width_;
  std::byte* target_;
  std::byte* source_;
  std::size_t target_bytes_;
  std::size_t source_bytes_;
  detail::MemoryUse use_;
  std::optional<detail::CoveredCalls> covered_;
};

}  // namespace tranship
