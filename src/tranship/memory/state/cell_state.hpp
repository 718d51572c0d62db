// Private: CellState, what a buffer knows of the cells of one region, and what an access needs and changes. Values
// only: which memory holds what, never the bytes. buffer/carry_out.cpp carries it out.
//
// The value of a cell is the one that the `valid` memories hold, combined with what the `partial` memories hold, in the
// order of their numbers. Invariant: a memory is in at most one of the two sets; where one is partial another is valid,
// be it with the zero of cells that have not been written.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/combine.hpp>
#include <tranship/base/device.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/memory/device/stream.hpp>
#include <tranship/memory/intent.hpp>
#include <tranship/memory/ledger.hpp>
#include <tranship/memory/region.hpp>
#include <tranship/memory/state/few.hpp>
#include <tranship/memory/state/region_map.hpp>

namespace tranship::detail {

/// A set of memories of one Devices; at most 64.
class MemorySet {
 public:
  constexpr MemorySet() = default;
  static constexpr MemorySet of(MemoryId memory) { return MemorySet(std::uint64_t(1) << memory); }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(MemoryId memory) const { return (bits_ >> memory & 1) != 0; }
  constexpr bool is_only(MemoryId memory) const { return bits_ == of(memory).bits_; }
  constexpr void add(MemoryId memory) { bits_ |= of(memory).bits_; }
  constexpr void remove(MemoryId memory) { bits_ &= ~of(memory).bits_; }
  /// In ascending order.
  template <class F>
  constexpr void for_each(F&& f) const {
    for (std::uint64_t rest = bits_; rest != 0; rest &= rest - 1) f(MemoryId(std::countr_zero(rest)));
  }
  friend constexpr bool operator==(MemorySet, MemorySet) = default;

 private:
  explicit constexpr MemorySet(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

/// Work that touches a region of one memory's copy and may not be over.
struct Use {
  MemoryId memory = 0;
  Event event;
  Intent intent = Intent::read;  ///< read, or anything that writes
  friend bool operator==(const Use&, const Use&) = default;
};

/// Why no memory holds the value of a cell that has been written.
enum class Absence : std::uint8_t {
  none,
  elsewhere,  ///< it is not in this buffer
  abandoned,  ///< its last write was left half done
};

struct CellValue {
  std::uint64_t version = 0;  ///< the buffer's count at the last write; 0: it has not been written
  MemorySet valid;
  MemorySet partial;
  MemorySet added;                 ///< of the partial ones, those that have been added to
  MemorySet touched;               ///< that have held some value of it since they have a copy
  Combine combine = Combine::sum;  ///< of the partial ones
  CallSite writer{"", 0};
  std::optional<Cause> cause;  ///< of copies of it; empty: first touch or stale
  Absence absence = Absence::none;
  std::optional<Device> lost_with;  ///< its value is nowhere, since this device is lost
};

struct CellState : CellValue {
  std::vector<Use> uses;

  friend bool operator==(const CellState& a, const CellState& b);
};

using CellStates = RegionMap<CellState>;

/// One thing that must happen before a lease may be opened.
struct Step {
  enum class Kind : std::uint8_t {
    zero,      ///< the memory gets zeros, since no value has been written; they then are valid there, too
    copy,      ///< the memory gets what `source` holds, which then is valid there, too
    identity,  ///< the memory becomes partial, with the value that changes nothing
    merge,     ///< the memory gets the value combined with all partial ones, which then is valid there alone
    take,      ///< the memory gets what `source` holds and is partial in its place
    fold,      ///< what `source` holds is combined into what the memory holds, and no longer counts there
  };
  Kind kind{};
  Box box;
  MemoryId source = 0;  ///< of copy, and of merge when the memory itself is not valid
  CellValue before;     ///< of the box
};

/// Adds what `intent` on `memory` needs in `region`, in no order that matters. `nearest(set, memory)` chooses from
/// where to copy. Throws `invalid_use` where cells that have not been written would be read and `contents` is
/// undefined.
void add_steps(const CellStates& cells, Intent intent, Combine combine, MemoryId memory, const Region& region,
               Contents contents, FunctionRef<MemoryId(MemorySet, MemoryId)> nearest, Few<Step>& steps);
/// Adds what must move to `memory` before the copy of `leaving` is given back, and no more: its part of each value.
void add_eviction_steps(const CellStates& cells, MemoryId leaving, MemoryId memory, const Region& region,
                        Few<Step>& steps);
/// Whether a value would be lost with a memory's copy.
bool is_needed(const CellState& cell, MemoryId memory);
/// Whether there are none: the fast answer.
bool is_ready(const CellState& cell, Intent intent, Combine combine, MemoryId memory);

/// A step has been given to its stream.
void apply(const Step& step, MemoryId memory, Combine combine, CellState& cell);
/// A memory's copy is given back.
void forget(MemoryId memory, CellState& cell);
/// A lease that accumulates has been opened: other memories no longer hold the same, and begin with nothing.
void claim(MemoryId memory, CellState& cell);
/// Whether that changes nothing.
bool is_claimed(const CellState& cell, MemoryId memory);
/// A lease that writes has been closed.
void commit(Intent intent, MemoryId memory, std::uint64_t version, CallSite where, CellState& cell);
/// Its value has been written where the buffer does not see it, or half: no memory holds it.
void expire(Absence absence, std::uint64_t version, CallSite where, CellState& cell);

/// Memories whose device is lost hold nothing, nor do those whose writing is never over.
void lose(MemorySet lost_memories, FunctionRef<Device(MemoryId)> device_of, CellState& cell);

/// Adds a use unless it is over, dropping those that it comes after and those that are over.
void add_use(const Use& use, std::vector<Use>& uses);

}  // namespace tranship::detail
