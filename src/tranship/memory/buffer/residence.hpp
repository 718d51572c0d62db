// Private: Residence, what each memory holds of a buffer: the copies, the states of the cells, and the work on them
// that may still be running.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tranship/memory/buffer/admission.hpp>
#include <tranship/memory/buffer/shape.hpp>
#include <tranship/memory/buffer/storage.hpp>
#include <tranship/memory/pool/residents.hpp>
#include <tranship/memory/state/cell_state.hpp>

namespace tranship::detail {

/// Work on the same memory that other work comes after.
struct Before {
  Event event;
  bool only_orders = true;  ///< it writes no value that the other work needs
};
/// Lets what is enqueued next on a stream come after earlier work; blocks the host where `stream` is null. Throws
/// `device_lost` where a value that is needed was lost.
void come_after(Stream* stream, const Before& before);

class Residence {
 public:
  /// `self` is the buffer's entry in Residents; a full memory never evicts the copy that it makes room for.
  Residence(const BufferShape& shape, const Resident& self);

  CellStates cells;
  std::vector<std::shared_ptr<Storage>> copies;  // by memory; null: no copy

  bool has_copy(MemoryId memory) const { return std::size_t(memory) < copies.size() && copies[memory]; }
  /// Makes room for the copy in a memory that was added after the buffer was made. Returns true when it was needed.
  bool know(MemoryId memory) {
    if (std::size_t(memory) < copies.size()) return false;
    copies.resize(std::size_t(memory) + 1);
    return true;
  }

  /// Returns true when `is_so(state)` holds for all cells of a region; `only` is cells.only() of that region.
  template <class F>
  bool all_of(const CellState* only, const Region& region, F&& is_so) const {
    if (only) return is_so(*only);
    bool all = true;
    cells.for_each(region, [&](const Box&, const CellState& cell) { all = all && is_so(cell); });
    return all;
  }
  /// Returns the cells of a region for whose state `is_wanted(state)` is true.
  template <class F>
  Region cells_where(const Region& region, F&& is_wanted) const {
    std::vector<Box> boxes;
    cells.for_each(region, [&](const Box& box, const CellState& cell) {
      if (is_wanted(cell)) boxes.push_back(box);
    });
    return Region::boxes(boxes);
  }
  /// Cells whose value would be lost with this memory's copy.
  Region needed(MemoryId memory) const;
  /// When a duplicate shares the copy that the request would change: the cells to copy into a copy of the buffer's own,
  /// which are all that the memory holds without those that the request overwrites. Else nothing.
  std::optional<Region> own_copy_of(const Request& request) const;

  /// Removes values that were lost with devices.
  void note_losses() {
    if (losses_.load(std::memory_order_acquire) > 0) forget_lost();
  }
  /// Throws `device_lost` when the device of a request is lost.
  void check_device(const Request& request) const {
    if (losses_.load(std::memory_order_acquire) > 0) check_lost(request);
  }
  /// Returns the copy, whose end may wait for streams.
  [[nodiscard]] std::shared_ptr<Storage> take_copy(MemoryId memory);

  /// Allocates from the pool of a memory; when it is full, copies of other buffers are released first.
  PoolBlock allocate(MemoryId memory, std::size_t bytes);
  std::shared_ptr<Storage> new_storage(MemoryId memory, bool is_guarded);
  /// Registers foreign memory among these two with the device that will copy from or to it.
  void register_foreign(MemoryId source, MemoryId target);

  std::vector<Before> work_before(MemoryId memory, Intent intent, std::span<const Box> boxes) const;
  void add_uses(const Use& use, std::span<const Box> boxes) {
    if (use.event.stream) remember(use, boxes);
  }

 private:
  void remember(const Use& use, std::span<const Box> boxes);
  void forget_lost();
  void check_lost(const Request& request) const;
  /// Calls `f`, which allocates in a memory, and releases other copies until it finds room.
  template <class F>
  auto with_room(MemoryId memory, F f);
  /// The array that a device makes by itself; empty where copies come from the pool.
  std::optional<DeviceArray> make_array(MemoryId memory);

  const BufferShape& shape_;
  const Resident& self_;
  Residents& residents_;
  const std::atomic<int>& losses_;  ///< number of lost devices
};

inline bool holds(MemoryId memory, const CellState& cell) {
  return cell.valid.has(memory) || cell.partial.has(memory);
}

}  // namespace tranship::detail
