// What must hold for any text that is taken for a plan. Used by the libFuzzer program and by the seeded mutations of
// tests/plan. The cells of an accepted plan are walked one by one here, which the library never does.
#pragma once

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/plan/plan_json.hpp>

namespace tranship::testing {

struct PlanVerdict {
  bool accepted = false;
  /// Empty when all is well.
  std::string violation;
};

inline constexpr Index cells_walked_max = 20'000;

/// Local indices of one end of some runs, in order.
enum class RunEnd { source, target };
inline std::vector<Index> cells_of(const std::vector<Run>& runs, RunEnd end) {
  std::vector<Index> out;
  for (const Run& run : runs)
    for (Index k = 0; k < run.count; ++k)
      for (Index i = 0; i < run.length; ++i)
        out.push_back(end == RunEnd::source ? run.source + k * run.source_pitch + i * run.source_step
                                            : run.target + k * run.target_pitch + i * run.target_step);
  return out;
}

/// Row-major numbers, in an array of `extents`, of the cells of one end of a transfer; -1 for one that is outside.
inline std::vector<Index> cells_of(const Transfer& transfer, RunEnd end, const Indices& extents) {
  const std::vector<int>& dims = end == RunEnd::source ? transfer.group->source_dims : transfer.group->target_dims;
  std::vector<std::vector<Index>> along(dims.size());
  Indices counts = Indices::filled(int(dims.size()), 0);
  for (std::size_t k = 0; k < dims.size(); ++k) {
    std::vector<Run> runs = transfer.entry(int(k)).runs;
    for (const RunLattice& lattice : transfer.entry(int(k)).lattices)
      for (LatticeWalk walk(lattice); !walk.is_over(); walk.next()) runs.push_back(walk.run());
    along[dims[k]] = cells_of(runs, end);
    counts[dims[k]] = Index(along[dims[k]].size());
  }
  std::vector<Index> out;
  for_each_coordinate(counts, [&](const Indices& at) {
    Index cell = 0;
    for (int d = 0; d < at.size(); ++d) {
      const Index i = along[d][at[d]];
      cell = cell < 0 || i < 0 || i >= extents[d] ? -1 : cell * extents[d] + i;
    }
    out.push_back(cell);
  });
  return out;
}

/// Walks a plan whose cells are few enough.
inline std::string violation_of(const TransferPlan& plan) {
  const PlanSummary summary = summarise(plan);
  if (explain_text(summary).empty() || explain_json(summary).empty()) return "explained by nothing";
  for (const Amount& amount : {summary.received, summary.sent, summary.local, summary.filled})
    if (amount.cells > cells_walked_max) return "";
  std::string out;
  std::set<std::pair<int, Index>> written;
  const bool overwrites = plan.kind == PlanKind::redistribution || plan.kind == PlanKind::halo;
  Index remote = 0;
  auto write = [&](int slot, Index cell) {
    if (!written.emplace(slot, cell).second && overwrites) out = "a cell is written twice";
  };
  plan.for_each_receive([&](const Transfer& transfer) {
    const int slot = transfer.group->target_slot;
    const std::vector<Index> cells = cells_of(transfer, RunEnd::target, plan.slots[slot].local_extents);
    if (transfer.peer != plan.rank) remote += Index(cells.size());
    for (const Index cell : cells) {
      if (cell < 0) out = "a received cell is outside";
      write(slot, cell);
    }
    if (transfer.peer != plan.rank) return;
    const Indices& extents = plan.slots[transfer.group->source_slot].local_extents;
    for (const Index cell : cells_of(transfer, RunEnd::source, extents))
      if (cell < 0) out = "a cell that the rank gives itself is outside";
  });
  plan.for_each_send([&](const Transfer& transfer) {
    const Indices& extents = plan.slots[transfer.group->source_slot].local_extents;
    for (const Index cell : cells_of(transfer, RunEnd::source, extents))
      if (cell < 0) out = "a sent cell is outside";
  });
  auto outside = [&](Index cell, Index inner, int slot) {
    return cell < 0 || (cell + 1) * inner > checked_product(plan.slots[slot].local_extents);
  };
  for (const IndexedTransfer& list : plan.indexed_receives) {
    if (list.peer != plan.rank) remote += Index(list.target_cells.size()) * list.inner;
    for (const Index cell : list.target_cells) {
      if (outside(cell, list.inner, list.target_slot)) out = "a received cell of a list is outside";
      if (list.inner > 0) write(list.target_slot, cell * list.inner);
    }
  }
  for (const IndexedTransfer& list : plan.indexed_sends)
    for (const Index cell : list.source_cells)
      if (outside(cell, list.inner, list.source_slot)) out = "a sent cell of a list is outside";
  for (const auto* fills : {&plan.fills_before, &plan.fills_after})
    for (const LocalFill& fill : *fills)
      for (std::size_t d = 0; d < fill.axes.size(); ++d) {
        const Index extent = plan.slots[fill.slot].local_extents[int(d)];
        for (const RunEnd end : {RunEnd::source, RunEnd::target}) {
          if (end == RunEnd::source && fill.kind == LocalFillKind::zero) continue;
          Index cells = 0;
          for (const Run& run : fill.axes[d]) cells += run.cells();
          if (cells > cells_walked_max) continue;  // possible when another dimension has none
          for (const Index cell : cells_of(fill.axes[d], end))
            if (cell < 0 || cell >= extent) out = "a filled cell is outside";
        }
      }
  if (out.empty() && remote != summary.received.cells) out = "the summary counts other cells than there are";
  return out;
}

/// `save` is a parameter so that a test can show that the check notices a wrong one.
inline PlanVerdict check_plan_text(std::string_view text, std::string (*save)(const TransferPlan&) = save_plan) {
  const Result<TransferPlan> plan = try_load_plan(text);
  if (!plan) {
    const ErrorCode code = plan.error().code();
    if (code != ErrorCode::bad_text && code != ErrorCode::bad_file)
      return {false, "refused with code " + std::string(name_of(code))};
    const std::string& message = plan.error().message();
    if (message.empty()) return {false, "refused without a word"};
    if (!std::all_of(message.begin(), message.end(), [](unsigned char c) { return std::isprint(c) != 0; }))
      return {false, "a message that is not one printable line"};
    return {};
  }
  if (!check_plan(plan.value()).ok()) return {true, "a loaded plan does not pass its check"};
  const Result<TransferPlan> again = try_load_plan(save(plan.value()));
  if (!again) return {true, "saved, it is refused: " + again.error().message()};
  if (!(again.value() == plan.value()))
    return {true, "saved, it is another: " + diff_plans(plan.value(), again.value())};
  return {true, violation_of(plan.value())};
}

}  // namespace tranship::testing
