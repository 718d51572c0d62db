#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/element_moves.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {
namespace {

Move move_of(ElementMap map) {
  switch (map) {
    case ElementMap::copy:
      return Move::copy;
    case ElementMap::negate:
      return Move::negate;
    case ElementMap::accumulate:
      return Move::accumulate;
    case ElementMap::accumulate_negated:
      return Move::accumulate_negated;
    case ElementMap::multiply:
      return Move::multiply;
    case ElementMap::minimum:
      return Move::minimum;
    case ElementMap::maximum:
      return Move::maximum;
  }
  return Move::copy;
}

/// The unit that the kernels move: a whole element, or one part of a complex number.
struct Unit {
  int width;
  bool in_parts;
  Move move;
  Arithmetic arithmetic;
};

Unit unit_of(ElementType type, ElementMap map, const SlotAddress& source, const SlotAddress& target) {
  TRANSHIP_ASSERT(can_map(map, type));
  Unit unit{size_bytes(type), false, move_of(map), Arithmetic::none};
  if (is_complex(type) &&
      (map != ElementMap::copy || !source.parts_together || !target.parts_together || unit.width > 16)) {
    unit.in_parts = true;
    unit.width /= 2;
  }
  if (map != ElementMap::copy) unit.arithmetic = detail::arithmetic_of(type);
  return unit;
}

/// The moves towards a staging buffer copy; arithmetic happens where the target is.
Unit staged(Unit unit, Hop hop) {
  if (hop == Hop::pack) {
    unit.move = Move::copy;
    unit.arithmetic = Arithmetic::none;
  }
  return unit;
}

void append_dimension(CopyBlock& block, Index extent, Index source_stride, Index target_stride) {
  block.extents[block.dims] = extent;
  block.source_strides[block.dims] = source_stride;
  block.target_strides[block.dims] = target_stride;
  ++block.dims;
}

/// Goes through all combinations of one run per table.
template <class F>
void for_each_product(const std::vector<const std::vector<Run>*>& tables, F&& f) {
  Indices counts;
  for (const auto* table : tables) counts.push_back(Index(table->size()));
  for_each_coordinate(counts, f);
}

void lower_product(const std::vector<const std::vector<Run>*>& tables, const std::vector<int>& source_dims,
                   const std::vector<int>& target_dims, const Unit& unit, const SlotAddress& source, int source_slot,
                   const SlotAddress& target, int target_slot, Hop hop, std::byte*& staging,
                   std::vector<LoweredMove>& moves) {
  for_each_product(tables, [&](const Indices& at) {
    LoweredMove out{.move = unit.move,
                    .arithmetic = unit.arithmetic,
                    .width = unit.width,
                    .source = source.data,
                    .target = target.data};
    for (int k = 0; k < int(tables.size()); ++k) {
      const Run& run = (*tables[k])[at[k]];
      const Index s = source.strides_bytes[source_dims[k]], t = target.strides_bytes[target_dims[k]];
      append_dimension(out.block, run.count, run.source_pitch * s, run.target_pitch * t);
      append_dimension(out.block, run.length, run.source_step * s, run.target_step * t);
      out.source += run.source * s;
      out.target += run.target * t;
    }
    out.place = {target_slot, out.target - target.data};
    if (unit.in_parts) append_dimension(out.block, 2, source.part_stride_bytes, target.part_stride_bytes);
    const Index bytes = element_count(out.block) * unit.width;
    if (hop == Hop::pack) {
      out.block = with_dense_target(out.block, unit.width);
      out.target = staging;
      out.place = {source_slot, out.source - source.data};
      out.place_is_source = true;
    } else if (hop == Hop::unpack) {
      out.block = with_dense_source(out.block, unit.width);
      out.source = staging;
    }
    if (hop != Hop::direct) staging += bytes;
    canonicalise(out.block, unit.width);
    moves.push_back(std::move(out));
  });
}

/// Byte offset of every element that a list of cells names: the leading dimensions counted through row-major, then the
/// `inner` elements of the trailing ones.
std::vector<Index> element_offsets(const std::vector<Index>& cells, Index inner, const SlotAddress& slot) {
  // The trailing dimensions are those whose product is `inner`, counted from the last.
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

/// Joins elements that follow each other on both sides into rows of equal length, when that goes for all of them.
Index common_row_length(const std::vector<Index>& source, const std::vector<Index>& target, Index inner, Index width) {
  if (inner <= 1) return 1;
  for (std::size_t i = 0; i < source.size(); i += inner)
    for (Index k = 1; k < inner; ++k)
      if (source[i + k] != source[i] + k * width || target[i + k] != target[i] + k * width) return 1;
  return inner;
}

std::vector<long long> every(const std::vector<Index>& list, Index step) {
  std::vector<long long> out;
  out.reserve(list.size() / step);
  for (std::size_t i = 0; i < list.size(); i += step) out.push_back(list[i]);
  return out;
}

}  // namespace

SlotAddress address_of(const StridedView& view) {
  SlotAddress out{.data = static_cast<std::byte*>(view.data), .dims = view.dims()};
  const bool split = view.imaginary != nullptr;
  const Index unit = split ? size_bytes(part_of(view.type)) : size_bytes(view.type);
  for (int d = 0; d < view.dims(); ++d) {
    out.strides_bytes[d] = checked_multiply(view.strides[d], unit);
    out.local_extents[d] = view.extents[d];
  }
  if (is_complex(view.type)) {
    out.part_stride_bytes = split ? static_cast<std::byte*>(view.imaginary) - out.data : unit / 2;
    out.parts_together = !split;
  }
  return out;
}

long long LoweredMove::outermost() const {
  if (is_indexed) return indexed.count;
  return block.dims > 0 ? block.extents[0] : 1;
}

void LoweredMove::run(long long lower, long long upper, CopyMethod way, MoveShift shift) const {
  const std::byte* from = source + shift.source_bytes;
  std::byte* to = target + shift.target_bytes;
  if (is_indexed) {
    IndexedBlock rows = indexed;
    rows.count = upper - lower;
    rows.source_rows = source_rows ? source_rows->data() + lower : nullptr;
    rows.target_rows = target_rows ? target_rows->data() + lower : nullptr;
    move_indexed(rows, move, arithmetic, width, from + (source_rows ? 0 : lower * rows.source_row_stride),
                 to + (target_rows ? 0 : lower * rows.target_row_stride));
    return;
  }
  CopyBlock part = block;
  if (block.dims > 0) part.extents[0] = upper - lower;
  move_on_host(part, move, arithmetic, width, way, from + lower * part.source_strides[0],
               to + lower * part.target_strides[0]);
}

Index LoweredMove::bytes() const {
  return (is_indexed ? indexed.count * indexed.row_length : element_count(block)) * width;
}

void lower_transfer(const Transfer& transfer, ElementType type, const SlotAddress& source, const SlotAddress& target,
                    Hop hop, std::byte*& staging, std::vector<LoweredMove>& moves) {
  const TransferGroup& group = *transfer.group;
  std::vector<const std::vector<Run>*> tables;
  for (int k = 0; k < int(group.axes.size()); ++k) tables.push_back(&transfer.runs(k));
  const Unit unit = staged(unit_of(type, group.map, source, target), hop);
  lower_product(tables, group.source_dims, group.target_dims, unit, source, group.source_slot, target,
                group.target_slot, hop, staging, moves);
}

void lower_indexed(const IndexedTransfer& transfer, ElementType type, const SlotAddress& source,
                   const SlotAddress& target, Hop hop, std::byte*& staging, std::vector<LoweredMove>& moves) {
  const Unit unit = staged(unit_of(type, transfer.map, source, target), hop);
  const std::vector<Index> from = element_offsets(transfer.source_cells, transfer.inner, source);
  const std::vector<Index> to = element_offsets(transfer.target_cells, transfer.inner, target);
  const Index row = unit.in_parts ? 1 : common_row_length(from, to, transfer.inner, unit.width);
  const auto source_rows = std::make_shared<const std::vector<long long>>(every(from, row));
  const auto target_rows = std::make_shared<const std::vector<long long>>(every(to, row));
  // Rows are named by their byte offset: a row stride of one byte. In a staging buffer rows lie one after the other,
  // the parts of complex numbers in two planes.
  for (int part = 0; part < (unit.in_parts ? 2 : 1); ++part) {
    LoweredMove out{.move = unit.move,
                    .arithmetic = unit.arithmetic,
                    .width = unit.width,
                    .source = source.data,
                    .target = target.data};
    out.is_indexed = true;
    out.source += part * source.part_stride_bytes;
    out.target += part * target.part_stride_bytes;
    out.place = {transfer.target_slot, to.empty() ? 0 : to.front()};
    out.indexed = {
        .count = Index(source_rows->size()), .row_length = row, .source_row_stride = 1, .target_row_stride = 1};
    out.source_rows = source_rows;
    out.target_rows = target_rows;
    if (hop == Hop::pack) {
      out.target = staging;
      out.place = {transfer.source_slot, from.empty() ? 0 : from.front()};
      out.place_is_source = true;
      out.target_rows = nullptr;
      out.indexed.target_row_stride = row * unit.width;
    } else if (hop == Hop::unpack) {
      out.source = staging;
      out.source_rows = nullptr;
      out.indexed.source_row_stride = row * unit.width;
    }
    if (hop != Hop::direct) staging += out.bytes();
    moves.push_back(std::move(out));
  }
}

void lower_fill(const LocalFill& fill, ElementType type, const SlotAddress& slot, std::vector<LoweredMove>& moves) {
  const ElementMap map = fill.kind == LocalFillKind::accumulate ? map_of(fill.combine) : ElementMap::copy;
  const Unit unit = unit_of(type, map, slot, slot);
  std::vector<const std::vector<Run>*> tables;
  std::vector<int> dims;
  for (const auto& axis : fill.axes) {
    dims.push_back(int(tables.size()));
    tables.push_back(&axis);
  }
  std::byte* staging = nullptr;
  const std::size_t first = moves.size();
  lower_product(tables, dims, dims, unit, slot, fill.slot, slot, fill.slot, Hop::direct, staging, moves);
  if (fill.kind != LocalFillKind::zero) return;
  // Complex numbers have sums only: whole or in parts, they become zeros.
  const void* identity = detail::identity_of(fill.combine, part_of(type));
  for (std::size_t i = first; i < moves.size(); ++i) {
    moves[i].source = static_cast<std::byte*>(const_cast<void*>(identity));
    for (int d = 0; d < moves[i].block.dims; ++d) moves[i].block.source_strides[d] = 0;
  }
}

Index staged_bytes(const Transfer& transfer, ElementType type) {
  return checked_multiply(transfer.cells(), size_bytes(type));
}

Index staged_bytes(const IndexedTransfer& transfer, ElementType type) {
  return checked_multiply(checked_multiply(Index(transfer.source_cells.size()), transfer.inner), size_bytes(type));
}

}  // namespace tranship
