// Collective operations on the memory of the program's own, for all ranks of a world, behind one selector: short
// messages go as packets, long ones by the programs that suit the ranks (program/algorithms.hpp). What is done only
// once goes directly (collectives.hpp), and so does everything in worlds of more than 32 ranks that share memory.
//
//   WorldCollectives together(world);
//   together.all_reduce(total, partial);  // vectors of double
//   std::cout << together.explain();
//
// All ranks make all calls, in the same order and with the same arguments but for the memory. A call returns when its
// target is complete and its source may change. Target and source are the same memory or do not overlap. Sums
// of floating-point numbers are the same on all ranks, bit by bit, and in all runs of one algorithm; algorithms differ
// in the order of their sums. Calls throw `invalid_use` for sizes that do not fit and types that have no such
// reduction; `mismatch` on every rank where a program is made for calls that differ; `timeout` and `peer_lost` as waits
// do.
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

/// Elements of a type that is known at run time, anywhere in the memory of the calling rank.
struct Elements {
  const void* data = nullptr;
  ElementType type = ElementType::u8;
  Index count = 0;

  Elements() = default;
  Elements(const void* first, ElementType of, Index elements) : data(first), type(of), count(elements) {}
  /// Anything that is a span of elements: a vector, an array.
  template <class Range>
  requires requires(const Range& range) { std::span(range.data(), range.size()); }
  Elements(const Range& range) : Elements(std::span(range.data(), range.size())) {}
  template <class T>
  Elements(std::span<T> values)
      : data(values.data()), type(element_type_of<std::remove_const_t<T>>), count(Index(values.size())) {}
};
/// The same, to be written.
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
  /// Collective only in its calls: making one is not. The world must outlive it.
  explicit WorldCollectives(World& world);
  ~WorldCollectives();
  WorldCollectives(WorldCollectives&&) noexcept;
  WorldCollectives& operator=(WorldCollectives&&) noexcept;

  /// Element i of the target is the combination of element i of all sources.
  void all_reduce(const MutableElements& target, const Elements& source, Reduction reduction = Reduction::sum,
                  CallSite where = CallSite::here());
  /// The source has as many elements for each rank as the target has: rank r gets the combination of the r-th parts.
  void reduce_scatter(const MutableElements& target, const Elements& source, Reduction reduction = Reduction::sum,
                      CallSite where = CallSite::here());
  /// The sources of all ranks in their order.
  void all_gather(const MutableElements& target, const Elements& source, CallSite where = CallSite::here());
  /// Part s of the target is part r of the source of rank s, where r is the caller.
  void all_to_all(const MutableElements& target, const Elements& source, CallSite where = CallSite::here());
  /// The source of rank `root` on all ranks. Other ranks' sources are not read, and may be null.
  void broadcast(const MutableElements& target, const Elements& source, Rank root, CallSite where = CallSite::here());
  /// The combination of all sources on rank `root`. Other ranks' targets are not written, and may be null.
  void reduce(const MutableElements& target, const Elements& source, Rank root, Reduction reduction = Reduction::sum,
              CallSite where = CallSite::here());

  /// Uses one algorithm for its collective, instead of choosing: a name of algorithms(), or that of a collective with
  /// "/direct". All ranks say the same. `bytes_max` limits it to messages of so many bytes; later calls go before
  /// earlier ones. The environment variable TRANSHIP_COLLECTIVES ("allreduce/ring allgather/packets<=4096") says the
  /// same for every WorldCollectives. Throws `invalid_use` for names that there are not.
  void use(std::string_view algorithm, Index bytes_max = std::numeric_limits<Index>::max());
  /// Collective: times all algorithms on messages of several sizes, and chooses by that from then on. Takes up to
  /// about a second.
  void measure(CallSite where = CallSite::here());

  /// The algorithm for a message: the bytes of a source, or for an allgather those of a target.
  std::string_view algorithm_for(std::string_view collective, Index bytes) const;
  /// Which algorithm is for which messages, and why; one line each.
  std::string explain() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
