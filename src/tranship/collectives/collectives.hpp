// Detail: Collective operations on symmetric memory. All members of the team call them, in the same order and with the
// same arguments. Each member passes the same offsets of its own symmetric heap.
//
//   auto partial = world.allocate<double>(3), total = world.allocate<double>(3);
//   ...
//   all_reduce<double>(world.team(), total, partial, Reduction::sum);
//
// A call begins when all members have entered it. It returns when the target holds the result and the peers have read
// the source, so both may be used at once. A call reads what members stored before it; puts into a source must have
// completed before, or a wait must have seen them, as for a sync. Values are combined in the order of the members, so
// the results of floating-point sums are the same on all members and in every run.
//
// Source and target must not overlap, except where a call below allows it. All calls throw `mismatch` on every member
// when the calls differ; before anything happens, `invalid_use` for memory outside the symmetric heap, for counts that
// do not fit and for a type without this reduction; `timeout` and `peer_lost` as Team does.
#pragma once

#include <tranship/base/call_site.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

/// Returns true when elements of `type` have the reduction. Complex numbers have sums only; only integers and bools
/// have bitwise reductions.
bool can_reduce(Reduction reduction, ElementType type) noexcept;

/// Consecutive elements, of a type that is known at run time, in the symmetric heap of every rank.
struct SymmetricSpan {
  void* local = nullptr;
  ElementType type = ElementType::u8;
  Index count = 0;

  SymmetricSpan() = default;
  SymmetricSpan(void* first, ElementType of, Index elements) : local(first), type(of), count(elements) {}
  /// Structs count as bytes.
  template <Transferable T>
  SymmetricSpan(Symmetric<T> array)
      : local(const_cast<std::remove_const_t<T>*>(array.local())),
        type(element_type_of<std::remove_const_t<T>>),
        count(has_element_type<std::remove_const_t<T>> ? array.size() : array.size_bytes()) {}
};

/// Collective. Sets element i of `target` to the combination of element i of every member's `source`. Target and source
/// may be the same memory. Every member combines one part of the elements and reads the other parts from the members
/// that have combined them, so each element of a source is read once.
void all_reduce(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction,
                CallSite where = CallSite::here());
/// Collective. Sets element i of the `target` of member `root` to the combination of element i of every member's
/// `source`. The targets of the other members hold some of these elements afterwards. Target and source may be the same
/// memory.
void reduce(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction, int root,
            CallSite where = CallSite::here());
/// Collective. Sets the `target` of member m to the combination of the m-th part of all sources. `source` has as many
/// elements per member as `target` has. The target may be the member's own part of the source.
void reduce_scatter(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction,
                    CallSite where = CallSite::here());
/// Collective. Copies the sources of all members, in their order, to the `target` of every member. The source may be
/// the member's own part of the target. This is OpenSHMEM's fcollect.
void all_gather(Team& team, const SymmetricSpan& target, const SymmetricSpan& source,
                CallSite where = CallSite::here());
/// Collective. Copies part m of the source of member s to part s of the target of member m. Source and target have one
/// part per member.
void all_to_all(Team& team, const SymmetricSpan& target, const SymmetricSpan& source,
                CallSite where = CallSite::here());
/// Collective. Copies the source of member `root` to the `target` of every member, including its own. Target and source
/// may be the same memory.
void broadcast(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, int root,
               CallSite where = CallSite::here());

}  // namespace tranship
