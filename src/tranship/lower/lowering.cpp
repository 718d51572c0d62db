#include "tranship/lower/lowering.hpp"

#include <algorithm>
#include <numeric>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/element_moves.hpp>

namespace tranship {
namespace {

/// The unit that the kernels move: a whole element, or one part of a complex number.
struct Unit {
  int width;
  bool in_parts;
  ElementMap move;
  Arithmetic arithmetic;
};

Unit unit_of(ElementType type, ElementMap map, const SlotLayout& source, const SlotLayout& target) {
  TRANSHIP_ASSERT(can_map(map, type));
  Unit unit{size_bytes(type), false, map, Arithmetic::none};
  if (is_complex(type) &&
      (map != ElementMap::copy || !source.parts_together || !target.parts_together || unit.width > 16)) {
    unit.in_parts = true;
    unit.width /= 2;
  }
  if (map != ElementMap::copy) unit.arithmetic = detail::arithmetic_of(type);
  return unit;
}

void append_dimension(CopyBlock& block, Index extent, Index source_stride, Index target_stride) {
  block.extents[block.dims] = extent;
  block.source_strides[block.dims] = source_stride;
  block.target_strides[block.dims] = target_stride;
  ++block.dims;
}

/// A loop of a block may step one stride past its last element; block arithmetic must not overflow there.
constexpr Index reach_bytes_max = Index(1) << 62;

/// Returns the distance from the lowest element to the highest.
Index reach_bytes(const SlotLayout& layout) {
  Index lower = std::min<Index>(0, layout.part_stride_bytes), upper = std::max<Index>(0, layout.part_stride_bytes);
  for (int d = 0; d < layout.dims; ++d) {
    if (layout.local_extents[d] == 0) return 0;
    const Index reach = checked_multiply(layout.strides_bytes[d], layout.local_extents[d] - 1);
    (reach < 0 ? lower : upper) = checked_add(reach < 0 ? lower : upper, reach);
  }
  return checked_add(upper, checked_multiply(lower, -1));
}

/// The moves along one dimension: first runs, then lattices.
struct Table {
  std::span<const Run> runs;
  std::span<const RunLattice> lattices;
};

/// Calls `f` for all combinations of one run or lattice per table.
template <class F>
void for_each_product(const std::vector<Table>& tables, F&& f) {
  Indices counts;
  for (const Table& table : tables) counts.push_back(Index(table.runs.size() + table.lattices.size()));
  for_each_coordinate(counts, f);
}

/// Returns the distance between the turns of a loop. A loop of one turn has none, and the value in its run may be out
/// of range.
Index stride_of(Index turns, Index cells, Index stride_bytes) {
  return turns > 1 ? cells * stride_bytes : 0;
}

/// Shorter stretches of different lengths are copied one by one as pieces: choosing a loop for each of them and
/// streaming its few lines takes longer (by two fifths, for 400 bytes each).
constexpr long long long_stretch_bytes_min = 4096;

/// Several ranks can share the stretches of a direct lattice, in at most this many parts.
constexpr long long lattice_cuts = 64;

/// At most one of the tables has lattices.
void lower_product(const std::vector<Table>& tables, const std::vector<int>& source_dims,
                   const std::vector<int>& target_dims, const Unit& unit, const SlotLayout& source, int source_slot,
                   const SlotLayout& target, int target_slot, std::vector<LoweredMove>& moves) {
  for_each_product(tables, [&](const Indices& at) {
    LoweredMove out{.move = unit.move,
                    .arithmetic = unit.arithmetic,
                    .width = unit.width,
                    .source = {source_slot, source.offset_bytes},
                    .target = {target_slot, target.offset_bytes}};
    for (int k = 0; k < int(tables.size()); ++k) {
      const Index s = source.strides_bytes[source_dims[k]], t = target.strides_bytes[target_dims[k]];
      const Index runs = Index(tables[k].runs.size());
      if (at[k] >= runs) {
        const RunLattice& lattice = tables[k].lattices[at[k] - runs];
        out.lattice = std::make_shared<const RunLattice>(lattice);
        out.lattice_dim = out.block.dims;
        out.lattice_cells = lattice.cells();
        append_dimension(out.block, std::max<Index>(1, out.lattice_cells / lattice.stretches()), s, t);
        continue;
      }
      const Run& run = tables[k].runs[at[k]];
      append_dimension(out.block, run.count, stride_of(run.count, run.source_pitch, s),
                       stride_of(run.count, run.target_pitch, t));
      append_dimension(out.block, run.length, stride_of(run.length, run.source_step, s),
                       stride_of(run.length, run.target_step, t));
      out.source.offset_bytes += run.source * s;
      out.target.offset_bytes += run.target * t;
    }
    if (unit.in_parts) append_dimension(out.block, 2, source.part_stride_bytes, target.part_stride_bytes);
    moves.push_back(std::move(out));
  });
}

/// Returns the byte offset of each element of a list of cells. Cells count the leading dimensions row-major; each has
/// the `inner` elements of the trailing dimensions.
std::vector<Index> element_offsets(const std::vector<Index>& cells, Index inner, const SlotLayout& slot) {
  // The trailing dimensions are the last ones whose product is `inner`.
  int leading = slot.dims;
  for (Index product = 1; leading > 0 && product * slot.local_extents[leading - 1] <= inner && product < inner;)
    product *= slot.local_extents[--leading];
  std::vector<Index> offsets;
  offsets.reserve(cells.size() * inner);
  for (Index cell : cells) {
    Index base = 0;
    for (int d = leading - 1; d >= 0; --d) {
      base += cell % slot.local_extents[d] * slot.strides_bytes[d];
      cell /= slot.local_extents[d];
    }
    for (Index i = 0; i < inner; ++i) {
      Index rest = i, offset = base;
      for (int d = slot.dims - 1; d >= leading; --d) {
        offset += rest % slot.local_extents[d] * slot.strides_bytes[d];
        rest /= slot.local_extents[d];
      }
      offsets.push_back(offset);
    }
  }
  return offsets;
}

/// Returns the length of the longest rows of equal length into which elements that are consecutive on both sides can be
/// joined.
Index common_row_length(const std::vector<Index>& source, const std::vector<Index>& target, Index width) {
  Index common = 0, length = 1;
  for (std::size_t i = 1; i < source.size() && common != 1; ++i) {
    if (source[i] == source[i - 1] + width && target[i] == target[i - 1] + width) {
      ++length;
      continue;
    }
    common = std::gcd(common, length);
    length = 1;
  }
  return std::gcd(common, length);
}

std::vector<long long> every(const std::vector<Index>& list, Index step) {
  std::vector<long long> out;
  out.reserve(list.size() / step);
  for (std::size_t i = 0; i < list.size(); i += step) out.push_back(list[i]);
  return out;
}

}  // namespace

bool operator==(const SlotLayout& a, const SlotLayout& b) noexcept {
  return a.offset_bytes == b.offset_bytes && a.dims == b.dims && a.part_stride_bytes == b.part_stride_bytes &&
         a.parts_together == b.parts_together &&
         std::equal(a.strides_bytes, a.strides_bytes + a.dims, b.strides_bytes) &&
         std::equal(a.local_extents, a.local_extents + a.dims, b.local_extents);
}

SlotLayout layout_of(const StridedView& view) {
  SlotLayout out{.dims = view.dims()};
  const bool split = view.imaginary != nullptr;
  const Index unit = split ? size_bytes(part_of(view.type)) : size_bytes(view.type);
  for (int d = 0; d < view.dims(); ++d) {
    out.strides_bytes[d] = checked_multiply(view.strides[d], unit);
    out.local_extents[d] = view.extents[d];
  }
  if (is_complex(view.type)) {
    out.part_stride_bytes =
        split ? static_cast<std::byte*>(view.imaginary) - static_cast<std::byte*>(view.data) : unit / 2;
    out.parts_together = !split;
  }
  if (const Index apart = reach_bytes(out); apart > reach_bytes_max - unit)
    throw_error(ErrorCode::overflow, "elements of extents [{}] with strides [{}] lie up to {} apart; the limit is {}",
                to_string(view.extents), to_string(view.strides), amount(apart, "byte"), reach_bytes_max - unit);
  return out;
}

std::span<const std::byte> constants() {
  return detail::identities();
}

CopyBlock LoweredMove::routed_block() const {
  CopyBlock out = block;
  if (lattice && packs()) out = with_dense_target(out, width);
  if (lattice && unpacks()) out = with_dense_source(out, width);
  canonicalise(out, width);
  return out;
}

long long LoweredMove::outermost() const {
  if (is_indexed) return indexed.count;
  if (lattice) return packs() || unpacks() ? 1 : lattice_cuts;
  return block.dims > 0 ? block.extents[0] : 1;
}

void LoweredMove::run(long long lower, long long upper, CopyMethod way, const std::byte* source_base,
                      std::byte* target_base) const {
  const std::byte* from = source_base + source.offset_bytes;
  std::byte* to = target_base + target.offset_bytes;
  if (is_indexed) {
    IndexedBlock rows = indexed;
    rows.count = upper - lower;
    rows.source_rows = source_rows ? source_rows->data() + lower : nullptr;
    rows.target_rows = target_rows ? target_rows->data() + lower : nullptr;
    move_indexed(rows, move, arithmetic, width, from + (source_rows ? 0 : lower * rows.source_row_stride),
                 to + (target_rows ? 0 : lower * rows.target_row_stride));
    return;
  }
  if (lattice) return run_lattice(lower, upper, way, from, to);
  CopyBlock part = block;
  if (block.dims > 0) part.extents[0] = upper - lower;
  move_on_host(part, move, arithmetic, width, way, from + lower * part.source_strides[0],
               to + lower * part.target_strides[0]);
}

void LoweredMove::run_lattice(long long lower, long long upper, CopyMethod way, const std::byte* from,
                              std::byte* to) const {
  const long long cuts = outermost();
  const auto member = [&](long long cut) {
    return static_cast<Index>(static_cast<__int128>(lattice->target.count) * cut / cuts);
  };
  const long long source_stride = block.source_strides[lattice_dim], target_stride = block.target_strides[lattice_dim];
  LoweredMove stretch = *this;
  long long& length = stretch.block.extents[lattice_dim];
  length = 2;
  const CopyBlock two = stretch.routed_block();
  const bool is_row = move == ElementMap::copy && two.dims == 1 && has_contiguous_rows(two, width);
  const long long cell_bytes = element_count(two) / 2 * width;
  Index staged = 0;
  for (LatticeWalk walk(*lattice, member(lower), member(upper)); !walk.is_over(); walk.next()) {
    length = walk.length();
    const std::byte* source_at = from + (unpacks() ? staged : walk.source() * source_stride);
    std::byte* target_at = to + (packs() ? staged : walk.target() * target_stride);
    const long long bytes = length * cell_bytes;
    if (is_row && bytes < long_stretch_bytes_min) {
      copy_piece(target_at, source_at, bytes);
    } else if (is_row) {
      row_copy(bytes, way)({.row_bytes = bytes}, source_at, target_at);
    } else {
      move_on_host(stretch.routed_block(), move, arithmetic, width, way, source_at, target_at);
    }
    staged += bytes;
  }
  order_stores(way);
}

Index LoweredMove::bytes() const {
  if (lattice) return element_count(block) / block.extents[lattice_dim] * lattice_cells * width;
  return (is_indexed ? indexed.count * indexed.row_length : element_count(block)) * width;
}

void lower_transfer(const Transfer& transfer, ElementType type, const SlotLayout& source, const SlotLayout& target,
                    std::vector<LoweredMove>& moves) {
  const TransferGroup& group = *transfer.group;
  const int dims = int(group.axes.size());
  int last = dims - 1;  // the last table that has lattices
  while (last > 0 && transfer.entry(last).lattices.empty()) --last;
  std::vector<std::vector<Run>> expanded(group.axes.size());
  std::vector<Table> tables;
  for (int k = 0; k < dims; ++k) {
    const AxisEntry& entry = transfer.entry(k);
    tables.push_back({entry.runs, entry.lattices});
    if (entry.lattices.empty() || k == last) continue;
    entry.for_each_run([&](const Run& run) { expanded[k].push_back(run); });
    tables[k] = {expanded[k], {}};
  }
  lower_product(tables, group.source_dims, group.target_dims, unit_of(type, group.map, source, target), source,
                group.source_slot, target, group.target_slot, moves);
}

void lower_indexed(const IndexedTransfer& transfer, ElementType type, const SlotLayout& source,
                   const SlotLayout& target, std::vector<LoweredMove>& moves) {
  const Unit unit = unit_of(type, transfer.map, source, target);
  const std::vector<Index> from = element_offsets(transfer.source_cells, transfer.inner, source);
  const std::vector<Index> to = element_offsets(transfer.target_cells, transfer.inner, target);
  const Index row = unit.in_parts ? 1 : common_row_length(from, to, unit.width);
  const auto source_rows = std::make_shared<const std::vector<long long>>(every(from, row));
  const auto target_rows = std::make_shared<const std::vector<long long>>(every(to, row));
  // Rows are listed by their byte offset, so the row stride is one byte. The parts of complex numbers are two planes.
  for (int part = 0; part < (unit.in_parts ? 2 : 1); ++part)
    moves.push_back({.move = unit.move,
                     .arithmetic = unit.arithmetic,
                     .width = unit.width,
                     .source = {transfer.source_slot, source.offset_bytes + part * source.part_stride_bytes},
                     .target = {transfer.target_slot, target.offset_bytes + part * target.part_stride_bytes},
                     .source_rows = source_rows,
                     .target_rows = target_rows,
                     .indexed = {.count = Index(source_rows->size()),
                                 .row_length = row,
                                 .source_row_stride = 1,
                                 .target_row_stride = 1},
                     .is_indexed = true});
}

void lower_fill(const LocalFill& fill, ElementType type, const SlotLayout& slot, std::vector<LoweredMove>& moves) {
  const ElementMap map = fill.kind == LocalFillKind::accumulate ? map_of(fill.combine) : ElementMap::copy;
  const Unit unit = unit_of(type, map, slot, slot);
  std::vector<Table> tables;
  std::vector<int> dims;
  for (const auto& axis : fill.axes) {
    dims.push_back(int(tables.size()));
    tables.push_back({axis, {}});
  }
  const std::size_t first = moves.size();
  lower_product(tables, dims, dims, unit, slot, fill.slot, slot, fill.slot, moves);
  if (fill.kind != LocalFillKind::zero) return;
  // Complex numbers have only sums, so their identity is zero, whole or in parts.
  const auto* identity = static_cast<const std::byte*>(detail::identity_of(fill.combine, part_of(type)));
  for (std::size_t i = first; i < moves.size(); ++i) {
    moves[i].source = {constants_slot, identity - constants().data()};
    std::fill_n(moves[i].block.source_strides, moves[i].block.dims, 0);
  }
}

Index route(std::vector<LoweredMove>& moves, Hop hop, Index staging_bytes) {
  for (LoweredMove& move : moves) {
    const Index bytes = move.bytes(), row_bytes = move.indexed.row_length * move.width;
    if (hop == Hop::pack) {
      // The end that has the target does the arithmetic.
      move.move = ElementMap::copy;
      move.arithmetic = Arithmetic::none;
      move.target = {staging_slot, staging_bytes};
      move.target_rows = nullptr;
      move.indexed.target_row_stride = row_bytes;
      if (!move.lattice) move.block = with_dense_target(move.block, move.width);
    } else if (hop == Hop::unpack) {
      move.source = {staging_slot, staging_bytes};
      move.source_rows = nullptr;
      move.indexed.source_row_stride = row_bytes;
      if (!move.lattice) move.block = with_dense_source(move.block, move.width);
    }
    if (hop != Hop::direct) staging_bytes += bytes;
    if (!move.lattice) canonicalise(move.block, move.width);
  }
  return staging_bytes;
}

Index run_bytes(const LoweredMove& move) {
  if (move.is_indexed) return move.indexed.row_length * move.width;
  const CopyBlock block = move.routed_block();
  const int last = block.dims - 1;
  long long run = 1;
  switch (shape_of(block, move.width)) {
    case BlockShape::rows:
      return row_bytes_of(block, move.width);
    case BlockShape::tiles:
      for (int d = 0; d < last; ++d)
        if (detail::magnitude(block.source_strides[d]) == move.width)
          run = std::min(block.extents[d], block.extents[last]);
      break;
    case BlockShape::empty:
    case BlockShape::elements:
      break;
  }
  return run * move.width;
}

Index staged_bytes(const Transfer& transfer, ElementType type) {
  return checked_multiply(transfer.cells(), size_bytes(type));
}

Index staged_bytes(const IndexedTransfer& transfer, ElementType type) {
  return checked_multiply(checked_multiply(Index(transfer.source_cells.size()), transfer.inner), size_bytes(type));
}

}  // namespace tranship
