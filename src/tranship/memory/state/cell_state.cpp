#include "tranship/memory/state/cell_state.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>

namespace tranship::detail {
namespace {

bool reads(Intent intent) {
  return intent == Intent::read || intent == Intent::read_write;
}

/// The kind of step that makes a cell ready which is not.
Step::Kind kind_of_step(const CellState& cell, Intent intent, Combine combine) {
  const bool other_partials = !cell.partial.empty() && cell.combine != combine;
  if (reads(intent) ? !cell.partial.empty() : other_partials) return Step::Kind::merge;
  // Zeros that were never written are filled, not copied.
  if (cell.partial.empty() && (cell.valid.empty() || (reads(intent) && cell.version == 0))) return Step::Kind::zero;
  return intent == Intent::accumulate ? Step::Kind::identity : Step::Kind::copy;
}

}  // namespace

bool is_ready(const CellState& cell, Intent intent, Combine combine, MemoryId memory) {
  if (intent == Intent::write) return true;
  if (reads(intent)) return cell.partial.empty() && cell.valid.has(memory);
  if (!cell.partial.empty() && cell.combine != combine) return false;
  return cell.valid.has(memory) || cell.partial.has(memory);
}

bool operator==(const CellState& a, const CellState& b) {
  return a.version == b.version && a.valid == b.valid && a.partial == b.partial && a.added == b.added &&
         a.touched == b.touched && (a.partial.empty() || a.combine == b.combine) && a.cause == b.cause &&
         a.absence == b.absence && a.lost_with == b.lost_with && a.writer.file == b.writer.file &&
         a.writer.line == b.writer.line && a.uses == b.uses;
}

void add_steps(const CellStates& cells, std::string_view buffer, Intent intent, Combine combine, MemoryId memory,
               const Region& region, Contents contents, FunctionRef<MemoryId(MemorySet, MemoryId)> nearest,
               Few<Step>& steps) {
  cells.for_each(region, [&](const Box& box, const CellState& cell) {
    if (is_ready(cell, intent, combine, memory)) return;
    if (cell.version == 0 && contents == Contents::undefined && cell.valid.empty())
      throw_error(ErrorCode::invalid_use, "buffer '{}': {} wants cells {} that have not been written", buffer,
                  name_of(intent), to_string(box));
    if (cell.absence == Absence::elsewhere)
      throw_error(ErrorCode::invalid_use,
                  "buffer '{}': {} wants cells {} whose value is not here since the write at {}", buffer,
                  name_of(intent), to_string(box), to_string(cell.writer));
    if (cell.absence == Absence::abandoned)
      throw_error(ErrorCode::invalid_use,
                  "buffer '{}': {} wants cells {}, whose last write, at {}, was abandoned: they must be written again",
                  buffer, name_of(intent), to_string(box), to_string(cell.writer));
    if (cell.lost_with)
      throw_error(ErrorCode::device_lost,
                  "buffer '{}': {} wants cells {}, whose last value, of the write at {}, was lost with {}", buffer,
                  name_of(intent), to_string(box), to_string(cell.writer), to_string(*cell.lost_with));
    Step& step = steps.add();
    step.kind = kind_of_step(cell, intent, combine);
    step.box = box;
    step.source = cell.valid.empty() ? -1 : cell.valid.has(memory) ? memory : nearest(cell.valid, memory);
    step.before = cell;
  });
}

bool is_needed(const CellState& cell, MemoryId memory) {
  if (cell.partial.has(memory)) return cell.added.has(memory);
  // Zeros that were never written can be filled again, unless other memories hold partial values to add to them.
  return cell.valid.is_only(memory) && (cell.version > 0 || !cell.partial.empty());
}

void add_eviction_steps(const CellStates& cells, MemoryId leaving, MemoryId memory, const Region& region,
                        Few<Step>& steps) {
  cells.for_each(region, [&](const Box& box, const CellState& cell) {
    if (!is_needed(cell, leaving)) return;
    const bool is_partial = cell.partial.has(leaving);
    const bool folds = cell.partial.has(memory) || (is_partial && cell.valid.has(memory));
    Step& step = steps.add();
    step.kind = folds ? Step::Kind::fold : is_partial ? Step::Kind::take : Step::Kind::copy;
    step.box = box;
    step.source = leaving;
    step.before = cell;
  });
}

void apply(const Step& step, MemoryId memory, Combine combine, CellState& cell) {
  cell.touched.add(memory);
  switch (step.kind) {
    case Step::Kind::zero:
    case Step::Kind::copy:
      cell.valid.add(memory);
      return;
    case Step::Kind::identity:
      cell.partial.add(memory);
      cell.combine = combine;
      return;
    case Step::Kind::merge:
      cell.partial = cell.added = {};
      cell.valid = MemorySet::of(memory);
      return;
    case Step::Kind::take:
      cell.partial.remove(step.source);
      cell.added.remove(step.source);
      cell.partial.add(memory);
      cell.added.add(memory);
      return;
    case Step::Kind::fold:
      if (cell.partial.has(step.source) && cell.partial.has(memory)) {
        cell.added.add(memory);
      } else {
        cell.partial.remove(memory);
        cell.added.remove(memory);
        cell.valid = MemorySet::of(memory);
      }
      cell.partial.remove(step.source);
      cell.added.remove(step.source);
      return;
  }
}

void forget(MemoryId memory, CellState& cell) {
  cell.valid.remove(memory);
  cell.partial.remove(memory);
  cell.added.remove(memory);
  cell.touched.remove(memory);
  std::erase_if(cell.uses, [&](const Use& use) { return use.memory == memory; });
}

void claim(MemoryId memory, CellState& cell) {
  if (cell.valid.has(memory)) cell.valid = MemorySet::of(memory);
}

bool is_claimed(const CellState& cell, MemoryId memory) {
  return !cell.valid.has(memory) || cell.valid.is_only(memory);
}

void commit(Intent intent, MemoryId memory, std::uint64_t version, CallSite where, CellState& cell) {
  if (intent == Intent::read) return;
  cell.version = version;
  cell.cause = {};
  cell.touched.add(memory);
  // Other intents keep parts of the old value, so they cannot restore what was lost, or abandoned by another memory's
  // lease.
  if (intent == Intent::write) {
    cell.absence = Absence::none;
    cell.lost_with = {};
  }
  if (cell.absence != Absence::none) return;
  cell.writer = where;
  if (cell.lost_with) return;
  if (intent == Intent::accumulate) {
    if (cell.partial.has(memory))
      cell.added.add(memory);
    else
      cell.valid = MemorySet::of(memory);
    return;
  }
  cell.valid = MemorySet::of(memory);
  cell.partial = cell.added = {};
}

void expire(Absence absence, std::uint64_t version, CallSite where, CellState& cell) {
  cell.version = version;
  cell.writer = where;
  cell.cause = {};
  cell.absence = absence;
  cell.lost_with = {};
  cell.valid = cell.partial = cell.added = {};
}

void lose(MemorySet lost_memories, FunctionRef<Device(MemoryId)> device_of, CellState& cell) {
  std::optional<Device> without;
  const bool had_value = !cell.valid.empty();
  bool is_partial_lost = false;
  const auto take = [&](MemoryId memory, Device device) {
    if (!cell.valid.has(memory) && !cell.partial.has(memory)) return;
    is_partial_lost |= cell.added.has(memory);
    cell.valid.remove(memory);
    cell.partial.remove(memory);
    without = device;
  };
  lost_memories.for_each([&](MemoryId memory) { take(memory, device_of(memory)); });
  for (Use& use : cell.uses)
    if (const std::optional<Device> device = lost_with(use.event); device && use.intent != Intent::read) {
      take(use.memory, *device);
      use.intent = Intent::read;  // It writes no value any more, but may still touch the memory.
    }
  std::erase_if(cell.uses, [&](const Use& use) { return lost_with(use.event) && is_at_rest(use.event); });
  const bool is_value_lost = had_value && cell.valid.empty();
  if (!is_partial_lost && !is_value_lost) return;
  // Zeros that were never written can be filled again.
  if (cell.version > 0) cell.lost_with = without;
  cell.valid = cell.partial = cell.added = {};
}

void add_use(const Use& use, std::vector<Use>& uses) {
  std::erase_if(uses, [&](const Use& old) {
    if (is_over(old.event)) return true;
    if (old.memory != use.memory) return false;
    // A write has waited for all earlier work. A read comes after older reads of its own stream.
    return use.intent != Intent::read || (old.intent == Intent::read && old.event.stream == use.event.stream);
  });
  if (!is_over(use.event)) uses.push_back(use);
}

}  // namespace tranship::detail
