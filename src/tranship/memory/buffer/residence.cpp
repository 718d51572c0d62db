#include "tranship/memory/buffer/residence.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>

namespace tranship::detail {

Residence::Residence(const BufferShape& shape, const Resident& self)
    : cells(Box::of_extents(shape.extents), CellState()),
      copies(std::size_t(shape.devices.memory_count())),
      shape_(shape),
      self_(self),
      residents_(shape.devices.residents()),
      losses_(shape.devices.losses()) {}

Region Residence::needed(MemoryId memory) const {
  return cells_where(shape_.whole, [&](const CellState& cell) { return is_needed(cell, memory); });
}

std::optional<Region> Residence::own_copy_of(const Request& request) const {
  const MemoryId memory = request.memory;
  if (!copies[memory] || copies[memory].use_count() == 1) return std::nullopt;
  const Region held = cells_where(shape_.whole, [&](const CellState& cell) { return holds(memory, cell); });
  if (request.intent != Intent::write) return held;
  return held - (request.region ? *request.region : shape_.whole);
}

void Residence::check_lost(const Request& request) const {
  if (const std::string loss = shape_.devices.driver(request.memory).loss(); !loss.empty())
    throw_error(ErrorCode::device_lost, "buffer '{}': {} on {} at {}: {}", shape_.options.name, name_of(request.intent),
                tranship::to_string(request.device), to_string(request.where), loss);
}

std::shared_ptr<Storage> Residence::take_copy(MemoryId memory) {
  cells.update(shape_.whole, [&](const Box&, CellState& cell) { forget(memory, cell); });
  return std::move(copies[memory]);
}

template <class F>
auto Residence::with_room(MemoryId memory, F f) {
  for (;;) {
    try {
      return f();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory) throw;
      if (residents_.release_one(memory, &self_)) continue;
      throw_error(ErrorCode::no_memory, "buffer '{}': {}; no other buffer has a copy there that can be dropped{}",
                  shape_.options.name, error.message(),
                  memory == 0 ? "" : ", and evict() moves values to the host that only this device has");
    }
  }
}

PoolBlock Residence::allocate(MemoryId memory, std::size_t bytes) {
  return with_room(memory, [&] { return shape_.devices.pool(memory).allocate(bytes); });
}

std::optional<DeviceArray> Residence::make_array(MemoryId memory) {
  Driver& driver = shape_.devices.driver(memory);
  const Index count = shape_.size_bytes == 0 ? 0 : shape_.span_bytes / shape_.element_bytes();
  return with_room(memory, [&] { return driver.make_array(shape_.type, count); });
}

void Residence::forget_lost() {
  MemorySet lost;
  for (MemoryId memory = 0; memory < MemoryId(copies.size()); ++memory)
    if (!shape_.devices.driver(memory).loss().empty()) lost.add(memory);
  cells.update(shape_.whole, [&](const Box&, CellState& cell) {
    lose(
        lost, [&](MemoryId memory) { return shape_.devices.device_of(memory); }, cell);
  });
}

std::shared_ptr<Storage> Residence::new_storage(MemoryId memory, bool is_guarded) {
  auto storage = std::make_shared<Storage>();
  storage->last_use = residents_.now();
  if (const std::optional<DeviceArray> array = make_array(memory)) {
    storage->data = static_cast<std::byte*>(array->lowest) - shape_.lowest_bytes;
    storage->owner = array->owner;
    return storage;
  }
  if (shape_.size_bytes == 0) return storage;
  Pool& pool = shape_.devices.pool(memory);
  const auto bytes = std::size_t(shape_.span_bytes);
  storage->block = allocate(memory, is_guarded ? Guard::room_bytes(bytes) : bytes);
  storage->pool = &pool;
  void* lowest = storage->block.memory;
  if (is_guarded) {
    storage->guard = std::make_unique<Guard>(lowest, bytes, shape_.element_bytes(), shape_.options.name,
                                             shape_.devices.device_of(memory));
    lowest = storage->guard->data();
  }
  storage->data = static_cast<std::byte*>(lowest) - shape_.lowest_bytes;
  return storage;
}

void Residence::register_foreign(MemoryId source, MemoryId target) {
  for (const auto& [memory, other] : {std::pair(source, target), std::pair(target, source)})
    if (memory != other && copies[memory] && copies[memory]->is_foreign && shape_.span_bytes > 0)
      copies[memory]->register_with(other, shape_.devices.driver(other),
                                    static_cast<std::byte*>(copies[memory]->data) + shape_.lowest_bytes,
                                    std::size_t(shape_.span_bytes));
}

void come_after(Stream* stream, const Before& before) {
  const Deadline deadline = Deadline::after_ns(device_timeout_ns);
  if (before.only_orders && (!stream || lost_with(before.event))) return settle(before.event, deadline);
  if (stream)
    stream->wait(before.event);
  else
    finish(before.event, deadline);
}

std::vector<Before> Residence::work_before(MemoryId memory, Intent intent, std::span<const Box> boxes) const {
  std::vector<Before> all;  // one for each stream, the latest
  const auto add = [&](const Box&, const CellState& cell) {
    for (const Use& use : cell.uses) {
      if (use.memory != memory || (!writes(intent) && !writes(use.intent))) continue;
      const bool only_orders = !writes(use.intent);
      const auto same =
          std::find_if(all.begin(), all.end(), [&](const Before& old) { return old.event.stream == use.event.stream; });
      if (same == all.end()) {
        all.push_back({use.event, only_orders});
        continue;
      }
      same->event.number = std::max(same->event.number, use.event.number);
      same->only_orders &= only_orders;
    }
  };
  if (const CellState* const only = cells.only(boxes); !only || !only->uses.empty())
    for (const Box& box : boxes) cells.for_each(box, add);
  if (writes(intent) && copies[memory] && copies[memory]->was_shared.load(std::memory_order_relaxed))
    for (const Event& event : copies[memory]->uses())
      if (!is_at_rest(event)) all.push_back({event});
  return all;
}

void Residence::remember(const Use& use, std::span<const Box> boxes) {
  bool changes = !is_over(use.event);
  if (!changes)
    for (const Box& box : boxes)
      cells.for_each(box, [&](const Box&, const CellState& cell) { changes |= !cell.uses.empty(); });
  if (!changes) return;
  copies[use.memory]->note(use.event);
  for (const Box& box : boxes) cells.update(box, [&](const Box&, CellState& cell) { add_use(use, cell.uses); });
}

}  // namespace tranship::detail
