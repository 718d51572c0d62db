#include "tranship/array/halo_exchange.hpp"

#include <algorithm>

#include <tranship/array/adjoint.hpp>
#include <tranship/array/array_plan.hpp>
#include <tranship/array/planned_slots.hpp>
#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/plan/joined.hpp>
#include <tranship/run/located.hpp>

namespace tranship {
namespace {

/// How ghosts are combined into their owners; empty for an update.
using Direction = std::optional<Combine>;

TransferPlan directed(TransferPlan plan, Direction direction) {
  return direction ? adjoint(plan, *direction) : std::move(plan);
}

ArrayChange change_of(Direction direction) {
  return {direction ? ChangeKind::reduced : ChangeKind::halo};
}

/// Extends the options by the inner dimensions of the elements, which are always taken whole.
HaloOptions options_of(const HaloField& field) {
  HaloOptions out = field.halo;
  const Distribution& array = field.array.spec->distribution;
  for (int d = array.dims() - field.array.inner_dims; d < array.dims(); ++d) {
    if (!out.depth_low.empty()) out.depth_low.push_back(0);
    if (!out.depth_high.empty()) out.depth_high.push_back(0);
    for (Indices& offset : out.stencil.offsets) offset.push_back(0);
    if (array.is_indexed()) continue;  // the cells are ids and have no inner dimensions
    for (std::vector<Box>& boxes : out.cells)
      for (Box& box : boxes) {
        box.lower.push_back(0);
        box.upper.push_back(array.extents()[d]);
      }
  }
  return out;
}

bool is_alike(const HaloOptions& a, const HaloOptions& b) {
  return a.stencil.kind == b.stencil.kind && a.stencil.offsets == b.stencil.offsets && a.depth == b.depth &&
         a.depth_low == b.depth_low && a.depth_high == b.depth_high && a.cells == b.cells;
}

/// Makes one plan for all arrays of one layout.
ArrayPlan plan_of(const std::vector<HaloField>& fields, Direction direction) {
  std::vector<ArrayRef> arrays;
  for (const HaloField& field : fields) arrays.push_back(field.array);
  const Rank rank = common_world(arrays).rank();
  struct Kind {
    const ArraySpec* spec;
    HaloOptions halo;
  };
  std::vector<Kind> kinds;
  ArrayPlan out;
  std::vector<TransferPlan> plans;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    NamedArray field{fields[i].array, fmt::format("array {}", i)};
    if (direction) check_can_combine(field, *direction);
    const ArraySpec& spec = *field.array.spec;
    HaloOptions halo = options_of(fields[i]);
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return (kind.spec == &spec || *kind.spec == spec) && is_alike(kind.halo, halo);
    });
    if (known != kinds.end()) {
      out.slots[std::size_t(known - kinds.begin())].arrays.push_back(std::move(field));
      continue;
    }
    try {
      plans.push_back(plan_halo({&spec, 1}, rank, halo));
    } catch (const Error& error) {
      if (fields.size() == 1) throw;
      throw error.with_message(field.name + ": " + error.message());
    }
    kinds.push_back({&spec, std::move(halo)});
    out.slots.push_back({change_of(direction), {std::move(field)}});
  }
  out.plan = directed(joined(std::move(plans)), direction);
  return out;
}

std::vector<HaloField> fields_of(const std::vector<ArrayRef>& arrays, const HaloOptions& halo) {
  if (!halo.cells.empty() && halo.cells.size() != arrays.size())
    throw_error(ErrorCode::invalid_use, "cells are given for {}, but the halo has {}",
                amount(halo.cells.size(), "array"), arrays.size());
  std::vector<HaloField> out;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    out.push_back({arrays[i], halo});
    if (!halo.cells.empty()) out.back().halo.cells = {halo.cells[i]};
  }
  return out;
}

ArrayPlan plan_of(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo,
                  Direction direction) {
  ArrayPlan out;
  std::vector<TiledField> specs;
  std::vector<ArrayRef> arrays;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    TiledField& spec = specs.emplace_back();
    spec.tile_dims = fields[f].tile_dims;
    for (std::size_t t = 0; t < fields[f].tiles.size(); ++t) {
      NamedArray tile{fields[f].tiles[t], fmt::format("field {} on tile {}", f, t)};
      arrays.push_back(tile.array);
      common_world(arrays);  // throws for an array without memory or of another world
      if (direction) check_can_combine(tile, *direction);
      spec.tiles.push_back(*tile.array.spec);
      out.slots.push_back({change_of(direction), {std::move(tile)}});
    }
  }
  out.plan = directed(plan_halo(tiling, specs, common_world(arrays).rank(), halo), direction);
  return out;
}

/// Returns how a plan combines what it receives; empty when its rank receives nothing.
Direction combination_of(const TransferPlan& plan) {
  for (const TransferGroup& group : plan.receives)
    if (const Direction combine = combine_of(group.map)) return combine;
  for (const IndexedTransfer& list : plan.indexed_receives)
    if (const Direction combine = combine_of(list.map)) return combine;
  return std::nullopt;
}

ArrayPlan plan_of(TransferPlan plan, const std::vector<ArrayRef>& arrays) {
  const Rank rank = common_world(arrays).rank();
  const bool is_adjoint = plan.kind == PlanKind::halo_adjoint;
  if (!is_adjoint && plan.kind != PlanKind::halo)
    throw_error(ErrorCode::mismatch, "the plan is of kind {}, expected {} or {} (rank {})", name_of(plan.kind),
                name_of(PlanKind::halo), name_of(PlanKind::halo_adjoint), rank);
  // Elements that are moved as bytes cannot be combined, so any Combine makes the check below refuse them.
  const Direction direction =
      is_adjoint ? Direction(combination_of(plan).value_or(Combine::maximum)) : Direction(std::nullopt);
  ArrayPlan out{std::move(plan), {}};
  out.slots.resize(out.plan.slots.size(), {change_of(direction), {}});
  const std::vector<std::size_t> slots = slots_of(out.plan, arrays, 1);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    NamedArray field{arrays[i], fmt::format("array {}", i)};
    if (direction) check_can_combine(field, *direction);
    out.slots[slots[i]].arrays.push_back(std::move(field));
  }
  return out;
}

}  // namespace

HaloExchange::HaloExchange(const std::vector<ArrayRef>& arrays, const HaloOptions& halo, HaloOperation operation,
                           ExchangeOptions options, CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(fields_of(arrays, halo), operation.combine()); }), options,
                    where) {}

HaloExchange::HaloExchange(const std::vector<HaloField>& fields, HaloOperation operation, ExchangeOptions options,
                           CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(fields, operation.combine()); }), options, where) {}

HaloExchange::HaloExchange(Planned planned, const std::vector<ArrayRef>& arrays, ExchangeOptions options,
                           CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(std::move(planned.plan), arrays); }), options, where) {}

HaloExchange::HaloExchange(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo,
                           HaloOperation operation, ExchangeOptions options, CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(tiling, fields, halo, operation.combine()); }), options,
                    where) {}

}  // namespace tranship
