// WorldCollectives: collective operations on any memory of the program, for all ranks of a world. Short messages travel
// as packets, long ones by the programs that suit the ranks (program/algorithms.hpp). A call of a new size, type or
// root goes directly (collectives.hpp), because one call does not repay making a program; so do all calls in worlds of
// more than 32 ranks that share memory.
//
//   WorldCollectives together(world);
//   together.all_reduce(total, partial);  // vectors of double
//   std::cout << together.explain();
//
// All ranks make all calls, in the same order and with the same arguments except for the memory. A call returns when
// its target is complete and its source may change. Target and source are the same memory or do not overlap. Sums of
// floating-point numbers are the same on all ranks, bit by bit, and in all runs of one algorithm; algorithms differ in
// the order of their sums. Calls throw `invalid_use` for sizes that do not fit and types without this reduction;
// `mismatch` on every rank when a program is made for calls that differ; `timeout` and `peer_lost` as waits do.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tranship/base/call_site.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// Elements, of a type that is known at run time, anywhere in the memory of the calling rank.
struct Elements {
  const void* data = nullptr;
  ElementType type = ElementType::u8;
  Index count = 0;

  Elements() = default;
  Elements(const void* first, ElementType of, Index elements) : data(first), type(of), count(elements) {}
  /// Takes any range that converts to a span of elements, such as a vector or an array.
  template <class Range>
  requires requires(const Range& range) { std::span(range.data(), range.size()); }
  Elements(const Range& range) : Elements(std::span(range.data(), range.size())) {}
  template <class T>
  Elements(std::span<T> values)
      : data(values.data()), type(element_type_of<std::remove_const_t<T>>), count(Index(values.size())) {}
};
/// Elements that a call writes; otherwise like Elements.
struct MutableElements {
  void* data = nullptr;
  ElementType type = ElementType::u8;
  Index count = 0;

  MutableElements() = default;
  MutableElements(void* first, ElementType of, Index elements) : data(first), type(of), count(elements) {}
  template <class Range>
  requires requires(Range& range) { std::span(range.data(), range.size()); }
  MutableElements(Range& range) : MutableElements(std::span(range.data(), range.size())) {}
  template <class T>
  MutableElements(std::span<T> values) : data(values.data()), type(element_type_of<T>), count(Index(values.size())) {}
};

class WorldCollectives {
 public:
  /// Not collective; only the calls are. The world must outlive it.
  explicit WorldCollectives(World& world);
  ~WorldCollectives();
  WorldCollectives(WorldCollectives&&) noexcept;
  WorldCollectives& operator=(WorldCollectives&&) noexcept;

  /// Sets element i of the target to the combination of element i of all sources.
  void all_reduce(const MutableElements& target, const Elements& source, Reduction reduction = Reduction::sum,
                  CallSite where = CallSite::here());
  /// Sets the target of rank r to the combination of the r-th parts of all sources. The source has as many elements per
  /// rank as the target has.
  void reduce_scatter(const MutableElements& target, const Elements& source, Reduction reduction = Reduction::sum,
                      CallSite where = CallSite::here());
  /// Copies the sources of all ranks, in their order, to the target of every rank.
  void all_gather(const MutableElements& target, const Elements& source, CallSite where = CallSite::here());
  /// Copies part r of the source of rank s to part s of the target of rank r.
  void all_to_all(const MutableElements& target, const Elements& source, CallSite where = CallSite::here());
  /// Copies the source of rank `root` to the target of every rank. Other ranks' sources are not read, and may be null.
  void broadcast(const MutableElements& target, const Elements& source, Rank root, CallSite where = CallSite::here());
  /// Sets the target of rank `root` to the combination of all sources. Other ranks' targets are not written, and may be
  /// null.
  void reduce(const MutableElements& target, const Elements& source, Rank root, Reduction reduction = Reduction::sum,
              CallSite where = CallSite::here());

  /// Fixes the algorithm of a collective: a name of algorithms(), or the name of a collective with "/direct". All ranks
  /// must make the same call. `bytes_max` limits it to messages of at most this size; later calls override earlier
  /// ones. The environment variable TRANSHIP_COLLECTIVES ("allreduce/ring allgather/packets<=4096") has the same effect
  /// on every WorldCollectives. Throws `invalid_use` for unknown names.
  void use(std::string_view algorithm, Index bytes_max = std::numeric_limits<Index>::max());
  /// Collective: times all algorithms on messages of several sizes and from then on chooses by these times. Takes up to
  /// about a second.
  void measure(CallSite where = CallSite::here());

  /// Returns the algorithm for a message of `bytes`: the size of the source, or for an allgather that of the target.
  std::string_view algorithm_for(std::string_view collective, Index bytes) const;
  /// Describes which algorithm serves which messages, and why, one line each.
  std::string explain() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
