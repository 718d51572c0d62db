// Private: what the collective operations share: their checks, their meetings, and how the elements of a member are
// read.
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
  /// Local. Throws `invalid_use` where source or target lie outside the symmetric heap or their types differ. The
  /// `variant` (an operation, a root) is part of what all members must say alike.
  MemberCall(Team& team, CallKind kind, const SymmetricSpan& target, const SymmetricSpan& source, CallSite where,
             int variant = 0);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::byte* target() const noexcept { return target_; }
  std::byte* source() const noexcept { return source_; }
  std::size_t target_bytes() const noexcept { return target_bytes_; }
  std::size_t source_bytes() const noexcept { return source_bytes_; }
  int width() const noexcept { return width_; }

  /// Throws `invalid_use` unless the sizes are such: parts are as many as there are members.
  void require_equal() const { require_parts(1, 1); }
  void require_parts(int target_parts, int source_parts) const;
  /// Throws `invalid_use` where source and target overlap, unless they are the same memory at `target + at_target` and
  /// `source + at_source`, with the size of the shorter one.
  void require_apart() const { check_apart(false, 0, 0); }
  void require_apart_or_same(std::size_t at_target = 0, std::size_t at_source = 0) const {
    check_apart(true, at_target, at_source);
  }
  void require_reduction(Reduction reduction) const;
  static void require_root(const Team& team, int root, CallSite where);

  /// Collective: waits for all members, who must have made the same call. What they stored before is seen. From then on
  /// the target and so many bytes of this member's source are in use, until the call ends.
  void begin(std::size_t source_bytes);
  void begin() { begin(source_bytes_); }
  /// Collective: waits for all members. No promise of the call's is that what others have done is seen then.
  void meet();

  /// Has `bytes` from `local` of a member copied to this rank's `to`; they are there after complete().
  void fetch(int member, std::byte* to, const std::byte* local, std::size_t bytes);
  void complete();
  /// Combines `bytes` from `local` of all members, in their order, into `to`: no target, or one at which no member's
  /// source lies but for this member's own.
  void combine(std::byte* to, const std::byte* local, std::size_t bytes, Reduction reduction);

 private:
  void check_apart(bool may_be_same, std::size_t at_target, std::size_t at_source) const;
  /// Where this rank can load what a member has at `local`; nullptr where it is to be fetched.
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
