// Private: CellState, the coherence state of the cells of one region, and the steps that an access needs. Values only:
// which memory holds what, never the bytes. buffer/carry_out.cpp carries the steps out.
//
// The value of a cell is what the `valid` memories hold, combined with what the `partial` memories hold, in ascending
// order of memories. Invariant: a memory is in at most one of the two sets. Where a memory is partial, another one is
// valid, if only with the zero of a cell that was never written.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
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

/// A set of memories of one Devices, at most 64.
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

/// Work on a region of one memory's copy that may still be running.
struct Use {
  MemoryId memory = 0;
  Event event;
  Intent intent = Intent::read;  ///< read, or any intent that writes
  friend bool operator==(const Use&, const Use&) = default;
};

/// Why no memory holds the value of a cell that has been written.
enum class Absence : std::uint8_t {
  none,
  elsewhere,  ///< the value is outside the buffer, see Buffer::invalidate
  abandoned,  ///< the lease of its last write was abandoned
};

struct CellValue {
  std::uint64_t version = 0;  ///< the buffer's version at the last write; 0: never written
  MemorySet valid;
  MemorySet partial;
  MemorySet added;                 ///< the partial memories to which a lease has added
  MemorySet touched;               ///< memories that have held a value since their copy was made
  Combine combine = Combine::sum;  ///< of the partial memories
  CallSite writer{"", 0};
  std::optional<Cause> cause;  ///< of copies of it; empty: first touch or stale
  Absence absence = Absence::none;
  std::optional<Device> lost_with;  ///< the device with which the value was lost
};

struct CellState : CellValue {
  std::vector<Use> uses;

  friend bool operator==(const CellState& a, const CellState& b);
};

using CellStates = RegionMap<CellState>;

/// One action that must precede the opening of a lease.
struct Step {
  enum class Kind : std::uint8_t {
    zero,      ///< fill with zeros, because no value has been written; the memory becomes valid
    copy,      ///< copy from `source`; the memory becomes valid, too
    identity,  ///< write the identity of the combination; the memory becomes partial
    merge,     ///< combine the value with all partial values; only the memory is valid then
    take,      ///< take over what `source` holds; the memory becomes partial in its place
    fold,      ///< combine what `source` holds into what the memory holds; `source` no longer counts
  };
  Kind kind{};
  Box box;
  MemoryId source = 0;  ///< of copy, take and fold, and of merge; -1: no memory is valid
  CellValue before;     ///< state of the box before the step
};

/// Adds the steps that `intent` on `memory` needs in `region`, in unspecified order. `nearest(set, memory)` chooses the
/// source of a copy. Throws `invalid_use` for cells that have no value: never written while `contents` is undefined,
/// invalidated, or abandoned; throws `device_lost` for cells whose value was lost. Both name the buffer.
void add_steps(const CellStates& cells, std::string_view buffer, Intent intent, Combine combine, MemoryId memory,
               const Region& region, Contents contents, FunctionRef<MemoryId(MemorySet, MemoryId)> nearest,
               Few<Step>& steps);
/// Adds the steps that move to `memory` what only `leaving` holds (its part of each value), and nothing else.
void add_eviction_steps(const CellStates& cells, MemoryId leaving, MemoryId memory, const Region& region,
                        Few<Step>& steps);
/// Returns true when a value would be lost with a memory's copy.
bool is_needed(const CellState& cell, MemoryId memory);
/// Returns true when add_steps would add no step for the cell.
bool is_ready(const CellState& cell, Intent intent, Combine combine, MemoryId memory);

/// Updates the state after a step has been enqueued.
void apply(const Step& step, MemoryId memory, Combine combine, CellState& cell);
/// Updates the state when a memory's copy is given back.
void forget(MemoryId memory, CellState& cell);
/// Updates the state when a lease that accumulates opens: a valid copy in `memory` becomes the only valid one.
void claim(MemoryId memory, CellState& cell);
/// Returns true when claim() would change nothing.
bool is_claimed(const CellState& cell, MemoryId memory);
/// Updates the state when a lease is committed.
void commit(Intent intent, MemoryId memory, std::uint64_t version, CallSite where, CellState& cell);
/// The value was written where the buffer cannot see it, or only in part: no memory holds it.
void expire(Absence absence, std::uint64_t version, CallSite where, CellState& cell);

/// Removes memories whose device is lost, and memories with a write that will never complete.
void lose(MemorySet lost_memories, FunctionRef<Device(MemoryId)> device_of, CellState& cell);

/// Adds a use unless it has completed; removes uses that it follows and uses that have completed.
void add_use(const Use& use, std::vector<Use>& uses);

}  // namespace tranship::detail
