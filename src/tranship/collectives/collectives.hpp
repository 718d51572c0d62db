// Detail: Collective operations on symmetric memory. All members of the team call them, in the same order and with the
// same arguments; each brings the same places of its symmetric heap.
//
//   auto partial = world.allocate<double>(3), total = world.allocate<double>(3);
//   ...
//   all_reduce<double>(world.team(), total, partial, Reduction::sum);
//
// A call begins when all members have come and returns when the target holds the result and the peers have read the
// source: both may be used at once. What members stored before the call is seen; what has been put into a source must
// have been completed, or seen by a wait, as for a sync. Values are combined in the order of the members, so that the
// results of floating-point sums are the same on all members and in every run.
//
// Source and target must not overlap, but for the places that are named below. All calls throw `mismatch` on every
// member when the calls differ; `invalid_use` for memory outside the symmetric heap, counts that do not fit, or a type
// that has no such reduction, before anything happens; `timeout` and `peer_lost` as Team does.
#pragma once

#include <tranship/base/call_site.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

/// Complex numbers have sums only; only integers and bools have bits.
bool can_reduce(Reduction reduction, ElementType type) noexcept;

/// Elements of a type that is known at run time, side by side in the symmetric heap of every rank.
struct SymmetricSpan {
  void* local = nullptr;
  ElementType type = ElementType::u8;
  Index count = 0;

  SymmetricSpan() = default;
  SymmetricSpan(void* first, ElementType of, Index elements) : local(first), type(of), count(elements) {}
  /// Structs are bytes.
  template <Transferable T>
  SymmetricSpan(Symmetric<T> array)
      : local(const_cast<std::remove_const_t<T>*>(array.local())),
        type(element_type_of<std::remove_const_t<T>>),
        count(has_element_type<std::remove_const_t<T>> ? array.size() : array.size_bytes()) {}
};

/// Collective. Element i of `target` becomes the combination of element i of every member's `source`. The two may be
/// the same. Every member combines one part of the elements and reads the other parts from those who have combined
/// them: each element of a source is read once.
void all_reduce(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction,
                CallSite where = CallSite::here());
/// Collective. Element i of the `target` of member `root` becomes the combination of element i of every member's
/// `source`. The targets of the others hold some of these elements afterwards. The two may be the same.
void reduce(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction, int root,
            CallSite where = CallSite::here());
/// Collective. `source` has as many elements for each member as `target` has: member m gets the combination of the m-th
/// part of all sources. The target may be the member's own part of the source.
void reduce_scatter(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction,
                    CallSite where = CallSite::here());
/// Collective. The sources of all members in their order, in the `target` of every member. The source may be the
/// member's own part of the target. OpenSHMEM's fcollect.
void all_gather(Team& team, const SymmetricSpan& target, const SymmetricSpan& source,
                CallSite where = CallSite::here());
/// Collective. Part s of the target is part m of the source of member s, where m is the caller: source and target have
/// as many parts as there are members.
void all_to_all(Team& team, const SymmetricSpan& target, const SymmetricSpan& source,
                CallSite where = CallSite::here());
/// Collective. The source of member `root` in the `target` of every member, its own too. The two may be the same.
void broadcast(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, int root,
               CallSite where = CallSite::here());

}  // namespace tranship
