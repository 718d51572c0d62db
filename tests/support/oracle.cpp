#include "support/oracle.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace tranship::test {

Index Global::operator()(const Indices& cell, unsigned uppers) const {
  Index id = 0;
  for (int d = 0; d < cell.size(); ++d) id = id * extents_[d] + cell[d];
  return 1 + (id << cell.size()) + Index(uppers) + number_ * 100'000'007;
}

Index AxisPoint::beyond() const {
  return cell < owned.lower ? cell - owned.lower : cell >= owned.upper ? cell - owned.upper + 1 : 0;
}

std::vector<AxisPoint> axis_points(const AxisParts& axis, Index part) {
  std::vector<AxisPoint> out;
  for (const SliceFamily& f : axis.stretches(part))
    for (Index k = 0; k < f.count; ++k) {
      const Index start = f.start + k * f.period;
      for (Index x = start - f.left; x < start + f.length + f.right; ++x) out.push_back({x, {start, start + f.length}});
    }
  return out;
}

bool is_shared(const AxisParts& axis, Index point) {
  if (axis.partition().points != Points::interfaces || point == 0) return false;
  for (Index part = 0; part < axis.parts(); ++part)
    for (const SliceFamily& f : axis.slices(part))
      if (f.start == point) return true;
  return false;
}

unsigned shared_dims(const Distribution& array, const Indices& cell) {
  unsigned out = 0;
  for (int d = 0; d < cell.size() && !array.is_indexed(); ++d) out |= unsigned(is_shared(array.axis(d), cell[d])) << d;
  return out;
}

bool reads_upper(const AxisPoint& point) {
  if (point.cell < point.owned.lower) return true;
  if (point.cell >= point.owned.upper) return false;
  const bool ends_here = point.cell == point.owned.upper - 1, begins_here = point.cell == point.owned.lower;
  return begins_here || !ends_here;
}

Resolved resolve(const AxisParts& axis, const AxisPoint& point) {
  const Index x = point.cell, extent = axis.extent();
  const bool upper = reads_upper(point);
  if (x >= 0 && x < extent) return {Resolved::value, x, upper};
  const bool low = x < 0;
  switch (low ? axis.partition().overlap.left.edge : axis.partition().overlap.right.edge) {
    case EdgePolicy::toroidal: {
      // Interface 0 and the last one are the same: the next ones are reached by going on from the end that is left.
      const bool interfaces = axis.partition().points == Points::interfaces;
      const Index period = interfaces ? extent - 1 : extent, first = interfaces && !low ? 1 : 0;
      return {Resolved::value, first + floor_modulo(x - first, period), upper};
    }
    case EdgePolicy::zero:
      return {Resolved::zero, 0};
    case EdgePolicy::replicate:
      return {Resolved::value, low ? 0 : extent - 1, upper};
    case EdgePolicy::replicate_local: {
      const Index end = low ? point.owned.lower : point.owned.upper - 1;
      return {Resolved::value, end, reads_upper({end, point.owned})};
    }
    case EdgePolicy::truncate:
    case EdgePolicy::open:
      return {Resolved::left_alone, 0};
  }
  return {Resolved::left_alone, 0};
}

LocalPoints::LocalPoints(const Distribution& array, Rank rank) : array_(array), extents_(array.local_extents(rank)) {
  if (array.is_indexed()) return;
  if (const auto place = array.grid().place_of(rank))
    for (int d = 0; d < array.dims(); ++d) points_.push_back(axis_points(array.axis(d), place->coordinates[d]));
}

Resolved::Kind LocalPoints::resolve_at(const Indices& local, Indices& cell, unsigned& uppers) const {
  bool alone = false, zero = false;
  uppers = 0;
  cell = Indices::filled(local.size(), 0);
  for (int d = 0; d < local.size(); ++d) {
    const Resolved r = resolve(array_.axis(d), points_[d][local[d]]);
    alone |= r.kind == Resolved::left_alone;
    zero |= r.kind == Resolved::zero;
    cell[d] = r.cell;
    uppers |= unsigned(r.upper) << d;
  }
  return alone ? Resolved::left_alone : zero ? Resolved::zero : Resolved::value;
}

Resolved::Kind LocalPoints::resolve_at(const Indices& local, Indices& cell) const {
  unsigned uppers = 0;
  return resolve_at(local, cell, uppers);
}

std::pair<Resolved::Kind, Index> LocalPoints::read_from(const Distribution& source, const Global& values,
                                                        const Indices& local) const {
  Indices cell;
  unsigned uppers = 0;
  const Resolved::Kind kind = resolve_at(local, cell, uppers);
  if (kind != Resolved::value) return {kind, 0};
  return {kind, values(cell, uppers & shared_dims(source, cell))};
}

Index LocalPoints::own(const Indices& local, const Distribution::Cell& cell, const Global& values) const {
  unsigned uppers = 0;
  for (int d = 0; d < Index(points_.size()); ++d) {
    const AxisPoint& point = points_[d][local[d]];
    if (point.cell == point.owned.lower && is_shared(array_.axis(d), point.cell)) uppers |= 1u << d;
  }
  return values(cell.at, uppers);
}

Rank world_of(std::span<const ArraySpec> arrays) {
  Rank out = 0;
  for (const ArraySpec& array : arrays) out = std::max(out, array.distribution.grid().world_size_min());
  return out;
}

void fill_owned(const Distribution& array, const Global& values, int slot, Index unowned, Memory& memory,
                Shared shared) {
  for (Rank r = 0; r < Rank(memory.size()); ++r) {
    const LocalPoints points(array, r);
    Index i = 0;
    for_each_coordinate(array.local_extents(r), [&](const Indices& local) {
      const Distribution::Cell cell = array.cell_of(r, local);
      Index& value = memory[r][slot][i++];
      value = !cell.owned ? unowned : shared == Shared::alike ? values(cell.at) : points.own(local, cell, values);
    });
  }
}

std::string compare_cell(const PlanInterpreter& plans, const Memory& memory, Rank rank, int slot, Index i,
                         const Indices& local, const Expected& expected) {
  const Index got = memory[rank][slot][i];
  const int writes = plans.writes(rank, slot)[i];
  if (got == expected.value && writes == int(expected.written)) return "";
  if (expected.may_be_left && got == untouched && writes == 0) return "";
  return fmt::format("rank {} slot {} local [{}] holds {}, expected {}; written {} times, expected {}", rank, slot,
                     to_string(local), got, expected.value, writes, int(expected.written));
}

Plans redistribution_plans(const ArraySpec& source, const ArraySpec& target, const RedistributionOptions& options) {
  const ArraySpec both[] = {source, target};
  Plans plans;
  for (Rank r = 0; r < world_of(both); ++r) plans.push_back(plan_redistribution(source, target, r, options));
  return plans;
}

std::string redistribution_fault(const ArraySpec& source, const ArraySpec& target, const Plans& plans) {
  const Distribution &from = source.distribution, &to = target.distribution;
  const Rank world = Rank(plans.size());
  auto named = [&](const std::string& fault) {
    return fmt::format("{}\n  from {}\n  to   {}", fault, to_text(source), to_text(target));
  };
  const PlanInterpreter interpreter(plans);
  if (!interpreter.fault().empty()) return named(interpreter.fault());

  Memory memory = memory_for(plans, untouched);
  const Global values(to);
  fill_owned(from, values, 0, unreadable, memory);
  const Memory before = memory;
  interpreter.apply(memory);

  for (Rank r = 0; r < world; ++r) {
    if (memory[r][0] != before[r][0]) return named(fmt::format("the source on rank {} has changed", r));
    const LocalPoints points(to, r);
    std::string fault;
    Index i = 0;
    for_each_coordinate(points.extents(), [&](const Indices& local) {
      const Distribution::Cell cell = to.cell_of(r, local);
      Expected expected;
      if (to.is_indexed()) {
        // Index lists have no place: the owner is read, which is the upper part.
        expected = {values(cell.at, shared_dims(from, cell.at)), true};
      } else {
        for (int d = 0; d < local.size(); ++d)
          if (points.point(d, local[d]).cell != cell.at[d]) fault = "slices() and cell_of() disagree";
        const auto [kind, value] = points.read_from(from, values, local);
        if (kind != Resolved::left_alone) expected = {value, true};
      }
      if (fault.empty()) fault = compare_cell(interpreter, memory, r, 1, i, local, expected);
      ++i;
    });
    if (!fault.empty()) return named(fault);
  }
  return "";
}

std::string redistribution_fault(const ArraySpec& source, const ArraySpec& target,
                                 const RedistributionOptions& options) {
  return redistribution_fault(source, target, redistribution_plans(source, target, options));
}

bool stencil_wants(const HaloOptions& options, const Indices& beyond,
                   const std::function<bool(const Indices& offset)>& owned) {
  int outside = 0;
  for (int d = 0; d < beyond.size(); ++d) {
    outside += beyond[d] != 0;
    if (!options.depth_low.empty() && -beyond[d] > options.depth_low[d]) return false;
    if (!options.depth_high.empty() && beyond[d] > options.depth_high[d]) return false;
  }
  if (outside == 0) return false;
  switch (options.stencil.kind) {
    case StencilKind::box:
      return true;
    case StencilKind::star:
      return outside == 1;
    case StencilKind::offsets:
      return std::any_of(options.stencil.offsets.begin(), options.stencil.offsets.end(), owned);
  }
  return false;
}

bool wanted_by(const HaloOptions& options, const LocalPoints& points, const Indices& local) {
  Indices beyond;
  for (int d = 0; d < local.size(); ++d) beyond.push_back(points.point(d, local[d]).beyond());
  return stencil_wants(options, beyond, [&](const Indices& offset) {
    for (int d = 0; d < local.size(); ++d) {
      const AxisPoint& point = points.point(d, local[d]);
      if (!point.owned.contains(point.cell - offset[d])) return false;
    }
    return true;
  });
}

bool may_want_more(const Distribution& array, const HaloOptions& options) {
  bool replicates = false;
  for (int d = 0; d < array.dims(); ++d) {
    const Overlap& overlap = array.axis(d).partition().overlap;
    for (const EdgePolicy edge : {overlap.left.edge, overlap.right.edge})
      replicates |= edge == EdgePolicy::replicate || edge == EdgePolicy::replicate_local;
  }
  return replicates && options.stencil.kind == StencilKind::offsets;
}

bool is_asked(const HaloOptions& options, int field, const Distribution& array, const LocalPoints& points,
              const Indices& local, const Indices& id) {
  if (options.cells.empty()) return true;
  Indices at = id;
  if (!array.is_indexed())
    for (int d = 0; d < local.size(); ++d) {
      const AxisPoint& point = points.point(d, local[d]);
      const Resolved r = resolve(array.axis(d), point);
      at[d] = r.kind == Resolved::value ? r.cell : point.cell < 0 ? 0 : array.extents()[d] - 1;
    }
  return std::any_of(options.cells[field].begin(), options.cells[field].end(),
                     [&](const Box& box) { return box.contains(at); });
}

std::string text_of(const HaloOptions& options) {
  std::string out = fmt::format("stencil {} depths [{}] [{}]", int(options.stencil.kind), to_string(options.depth_low),
                                to_string(options.depth_high));
  for (const Indices& offset : options.stencil.offsets) out += " [" + to_string(offset) + "]";
  for (const std::vector<Box>& cells : options.cells) {
    out += " cells";
    for (const Box& box : cells) out += " " + to_string(box);
  }
  return out;
}

Index id_of(const Distribution& array, const Indices& cell) {
  Index id = 0;
  for (int d = 0; d < array.indexed_dims(); ++d) id = id * array.extents()[d] + cell[d];
  return id;
}

std::string halo_fault(std::span<const ArraySpec> fields, const HaloOptions& options) {
  auto named = [&](std::string fault) {
    for (const ArraySpec& field : fields) fault += "\n  " + to_text(field);
    return fault + "\n  " + text_of(options);
  };
  Plans plans;
  const Rank world = world_of(fields);
  for (Rank r = 0; r < world; ++r) plans.push_back(plan_halo(fields, r, options));
  const PlanInterpreter interpreter(plans);
  if (!interpreter.fault().empty()) return named(interpreter.fault());
  Memory memory = memory_for(plans, untouched);
  for (int f = 0; f < int(fields.size()); ++f)
    fill_owned(fields[f].distribution, Global(fields[f].distribution, f), f, untouched, memory);
  interpreter.apply(memory);

  for (int f = 0; f < int(fields.size()); ++f) {
    const Distribution& array = fields[f].distribution;
    const Global values(array, f);
    for (Rank r = 0; r < world; ++r) {
      const LocalPoints points(array, r);
      std::string fault;
      Index i = 0;
      for_each_coordinate(points.extents(), [&](const Indices& local) {
        const Distribution::Cell cell = array.cell_of(r, local);
        Expected expected;
        if (cell.owned) {
          expected = {points.own(local, cell, values), false};
        } else if (Indices id{array.is_indexed() ? id_of(array, cell.at) : 0};
                   !is_asked(options, f, array, points, local, id)) {
          if (!array.is_indexed() && may_want_more(array, options)) expected.may_be_left = true;
        } else if (array.is_indexed()) {
          expected = {values(cell.at), true};
        } else if (const bool wanted = wanted_by(options, points, local); wanted || may_want_more(array, options)) {
          const auto [kind, value] = points.read_from(array, values, local);
          if (kind != Resolved::left_alone) expected = {value, true, !wanted};
        }
        if (fault.empty()) fault = compare_cell(interpreter, memory, r, f, i, local, expected);
        ++i;
      });
      if (!fault.empty()) return named(fault);
    }
  }
  return "";
}

FindPoint by_locate(const Tiling& tiling) {
  return [&tiling](int tile, const Indices& at, const std::vector<bool>& staggered) -> std::optional<TiledPoint> {
    Indices cell = at;
    for (int k = 0; k < at.size(); ++k) {
      const Index extent = tiling.extents(tile)[k];
      if (staggered[k] && at[k] >= 0) cell[k] = at[k] > extent ? at[k] - 1 : std::min(at[k], extent - 1);
    }
    const std::optional<TileCell> found = tiling.locate(tile, cell);
    if (!found) return std::nullopt;
    TiledPoint out{.tile = found->tile, .at = at, .components = {}};
    for (int k = 0; k < at.size(); ++k) {
      out.at[found->map.image_dim(k)] = found->map.apply(k, at[k], staggered[k] ? Points::interfaces : Points::cells);
      out.components.push_back(vector_component(found->map, k));
    }
    return out;
  };
}

std::vector<bool> staggering(const TiledField& field) {
  std::vector<bool> out;
  for (const int d : field.tile_dims)
    out.push_back(field.tiles[0].distribution.axis(d).partition().points == Points::interfaces);
  return out;
}

std::vector<VectorField> vector_of(const std::vector<int>& fields) {
  std::vector<VectorField> out;
  for (int k = 0; k < int(fields.size()); ++k) out.push_back({.field = fields[k], .along = k});
  return out;
}

Plans tiled_plans(const Tiling& tiling, std::span<const TiledField> fields, const TiledHaloOptions& options) {
  Rank world = 0;
  for (const TiledField& field : fields) world = std::max(world, world_of(field.tiles));
  Plans plans;
  for (Rank r = 0; r < world; ++r) plans.push_back(plan_halo(tiling, fields, r, options));
  return plans;
}

std::string tiled_halo_fault(const Tiling& tiling, std::span<const TiledField> fields, const FindPoint& find,
                             const TiledHaloOptions& options) {
  const int tiles = tiling.tiles();
  auto named = [&](std::string fault) {
    for (const TiledField& field : fields) fault += "\n  " + to_text(field.tiles[0]);
    return fault;
  };
  auto values_of = [&](int f, int t) { return Global(fields[f].tiles[t].distribution, f * tiles + t); };
  const Plans plans = tiled_plans(tiling, fields, options);
  const PlanInterpreter interpreter(plans);
  if (!interpreter.fault().empty()) return named(interpreter.fault());
  Memory memory = memory_for(plans, untouched);
  for (int f = 0; f < int(fields.size()); ++f)
    for (int t = 0; t < tiles; ++t)
      fill_owned(fields[f].tiles[t].distribution, values_of(f, t), f * tiles + t, untouched, memory);
  interpreter.apply(memory);

  auto others = [](const TiledField& field) {
    std::vector<int> out;
    for (int d = 0; d < field.tiles[0].distribution.dims(); ++d)
      if (std::count(field.tile_dims.begin(), field.tile_dims.end(), d) == 0) out.push_back(d);
    return out;
  };
  // The field and component of a vector that field f is; vector -1 for a scalar.
  auto component_of = [&](int f) {
    for (int v = 0; v < int(options.vectors.size()); ++v)
      for (const VectorField& component : options.vectors[v])
        if (component.field == f) return std::pair(v, component.along);
    return std::pair(-1, -1);
  };

  for (int f = 0; f < int(fields.size()); ++f)
    for (int t = 0; t < tiles; ++t) {
      const TiledField& field = fields[f];
      const Distribution& array = field.tiles[t].distribution;
      const auto place = component_of(f);
      const auto vector = place.first, component = place.second;
      for (Rank r = 0; r < Rank(plans.size()); ++r) {
        const LocalPoints points(array, r);
        std::string fault;
        Index i = 0;
        for_each_coordinate(points.extents(), [&](const Indices& local) {
          const Distribution::Cell cell = array.cell_of(r, local);
          Expected expected;
          if (cell.owned) {
            expected = {points.own(local, cell, values_of(f, t)), false};
          } else if (wanted_by(options, points, local)) {
            Indices in_tile;
            for (const int d : field.tile_dims) in_tile.push_back(cell.at[d]);
            bool alone = false, zero = false;
            std::vector<Resolved> rest;
            for (const int d : others(field)) {
              rest.push_back(resolve(array.axis(d), points.point(d, local[d])));
              alone |= rest.back().kind == Resolved::left_alone;
              zero |= rest.back().kind == Resolved::zero;
            }
            const auto found = find(t, in_tile, staggering(field));
            if (found && !alone) {
              int source = f, sign = 1;
              if (vector >= 0) {
                for (const VectorField& other : options.vectors[vector])
                  if (other.along == found->components[component].component) source = other.field;
                sign = found->components[component].sign;
              }
              const Distribution& owner = fields[source].tiles[found->tile].distribution;
              Indices at = Indices::filled(array.dims(), 0);
              unsigned uppers = 0;
              const auto read = [&](int d, Index point, bool upper) {
                at[d] = point;
                if (upper && is_shared(owner.axis(d), point)) uppers |= 1u << d;
              };
              for (int k = 0; k < tiling.dims(); ++k) {
                const auto [there, turned] = found->components[k];
                const AxisPoint& point = points.point(field.tile_dims[k], local[field.tile_dims[k]]);
                // Inside the slice the upper part is the one at the owner, whichever way the dimension runs there.
                const bool inside = point.cell > point.owned.lower && point.cell < point.owned.upper - 1;
                const bool one = point.beyond() == 0 && point.owned.length() == 1;
                const bool upper = turned > 0 || inside || one ? reads_upper(point) : !reads_upper(point);
                read(fields[source].tile_dims[there], found->at[there], upper);
              }
              const std::vector<int> source_others = others(fields[source]);
              for (std::size_t k = 0; k < rest.size(); ++k) read(source_others[k], rest[k].cell, rest[k].upper);
              expected = {zero ? 0 : sign * values_of(source, found->tile)(at, uppers), true};
            }
          }
          if (fault.empty()) fault = compare_cell(interpreter, memory, r, f * tiles + t, i, local, expected);
          ++i;
        });
        if (!fault.empty()) return named(fmt::format("tile {} field {}: {}", t, f, fault));
      }
    }
  return "";
}

}  // namespace tranship::test
