#include "tranship/layout/partition.hpp"

#include <algorithm>
#include <numeric>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/layout_error.hpp>

namespace tranship {
namespace {

// A slice whose overlap reaches an edge is a family of its own. More of them per part than this is taken for a mistake.
constexpr Index edge_slices_max = Index(1) << 20;

/// Returns the sum of max(0, first - k * step) over all k with 0 <= k < count.
Index sum_of_positive(Index first, Index step, Index count) {
  if (first <= 0) return 0;
  const Index terms = step > 0 ? std::min(count, ceil_divide(first, step)) : count;
  const Index ends = 2 * first - (terms - 1) * step;  // the first term plus the last
  return terms % 2 == 0 ? terms / 2 * ends : terms * (ends / 2);
}

/// Returns the numbers of [first, end).
std::vector<Index> consecutive(Index first, Index end) {
  std::vector<Index> out(static_cast<std::size_t>(end - first));
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace

Partition Partition::with_overlap(Index left, Index right, EdgePolicy edge) const {
  return with_overlap(OverlapSide{left, edge}, OverlapSide{right, edge});
}

Partition Partition::with_overlap(OverlapSide left, OverlapSide right) const {
  Partition out = *this;
  out.overlap = {left, right};
  return out;
}

Partition Partition::with_minimum(Index cells) const {
  Partition out = *this;
  out.minimum = cells;
  return out;
}

Partition Partition::with_modulo(Index cells) const {
  Partition out = *this;
  out.modulo = cells;
  return out;
}

Partition Partition::with_interfaces() const {
  Partition out = *this;
  out.points = Points::interfaces;
  return out;
}

Partition whole() {
  return {};
}

Partition block(Remainder remainder) {
  return {.kind = PartitionKind::block, .remainder = remainder};
}

Partition cyclic(Index block_size) {
  return {.kind = PartitionKind::cyclic, .block_size = block_size};
}

Partition irregular(std::vector<Index> bounds) {
  return {.kind = PartitionKind::irregular, .bounds = std::move(bounds)};
}

const char* name_of(PartitionKind kind) noexcept {
  switch (kind) {
    case PartitionKind::whole:
      return "whole";
    case PartitionKind::block:
      return "block";
    case PartitionKind::cyclic:
      return "cyclic";
    case PartitionKind::irregular:
      return "irregular";
  }
  return "unknown";
}

const char* name_of(Remainder remainder) noexcept {
  switch (remainder) {
    case Remainder::low:
      return "low";
    case Remainder::high:
      return "high";
    case Remainder::ceil:
      return "ceil";
  }
  return "unknown";
}

const char* name_of(EdgePolicy policy) noexcept {
  switch (policy) {
    case EdgePolicy::truncate:
      return "truncate";
    case EdgePolicy::toroidal:
      return "toroidal";
    case EdgePolicy::zero:
      return "zero";
    case EdgePolicy::replicate:
      return "replicate";
    case EdgePolicy::replicate_local:
      return "replicate_local";
    case EdgePolicy::open:
      return "open";
  }
  return "unknown";
}

AxisParts::AxisParts(Index extent, Index parts, Partition partition)
    : extent_(extent), parts_(parts), partition_(std::move(partition)) {
  const Partition& p = partition_;
  if (extent < 0) throw_error(ErrorCode::invalid_use, "extent {} is negative", extent);
  if (extent > extent_max) throw_error(ErrorCode::overflow, "extent {}; at most {} is possible", extent, extent_max);
  if (parts < 1)
    throw_error(ErrorCode::invalid_use, "a dimension is cut into {}; at least 1 is needed", amount(parts, "part"));
  for (const OverlapSide& side : {p.overlap.left, p.overlap.right})
    if (side.width < 0) throw_error(ErrorCode::invalid_use, "overlap of {} is negative", amount(side.width, "cell"));
  if (p.minimum < 0) throw_error(ErrorCode::invalid_use, "minimum of {} is negative", amount(p.minimum, "cell"));
  if (p.modulo < 1) fail_value(LayoutValue::modulo, 0, "modulo {} is less than 1", p.modulo);
  if ((p.minimum != 0 || p.modulo != 1) && p.kind != PartitionKind::block && p.kind != PartitionKind::cyclic)
    fail_value(p.minimum != 0 ? LayoutValue::minimum : LayoutValue::modulo, 0,
               "minimum {} and modulo {} apply to block and cyclic partitions only", p.minimum, p.modulo);
  // Values that the rule does not use, and the edge of a side without overlap, are cleared: equality is by content.
  if (p.kind != PartitionKind::block) partition_.remainder = Remainder::low;
  if (p.kind != PartitionKind::cyclic) partition_.block_size = 0;
  if (p.kind != PartitionKind::irregular) partition_.bounds.clear();
  for (OverlapSide* side : {&partition_.overlap.left, &partition_.overlap.right})
    if (side->width == 0) side->edge = EdgePolicy::truncate;
  cells_ = extent;
  if (p.points == Points::interfaces) {
    if (p.kind == PartitionKind::cyclic)
      throw_error(ErrorCode::unsupported, "a cyclic({}) partition of interfaces is not defined", p.block_size);
    if (extent < 1)
      throw_error(ErrorCode::invalid_use, "a dimension of interfaces has extent {}, needs at least 1", extent);
    cells_ = extent - 1;
    for (const OverlapSide& side : {p.overlap.left, p.overlap.right})
      if (side.edge == EdgePolicy::toroidal && side.width > 0 && cells_ == 0)
        throw_error(ErrorCode::invalid_use, "a toroidal dimension of interfaces has extent {}, needs at least 2",
                    extent);
  }
  switch (p.kind) {
    case PartitionKind::whole:
      break;
    case PartitionKind::block: {
      units_ = ceil_divide(cells_, p.modulo);
      const Index unit_minimum = std::max<Index>(1, ceil_divide(p.minimum, p.modulo));
      sharing_ = p.minimum == 0 ? parts : std::clamp<Index>(units_ / unit_minimum, 1, parts);
      // A block with more cells than the dimension is as good as one with all of them.
      if (__builtin_mul_overflow(std::max(ceil_divide(units_, parts), unit_minimum), p.modulo, &ceil_block_))
        ceil_block_ = std::max<Index>(1, cells_);
      break;
    }
    case PartitionKind::cyclic:
      if (p.block_size < 1)
        fail_value(LayoutValue::block_size, 0, "cyclic block of {}; at least 1 is needed",
                   amount(p.block_size, "cell"));
      if (p.block_size % p.modulo != 0)
        fail_value(LayoutValue::block_size, 0, "cyclic block of {} is not a multiple of modulo {}",
                   amount(p.block_size, "cell"), p.modulo);
      if (p.block_size < p.minimum)
        fail_value(LayoutValue::block_size, 0, "cyclic block of {} is below the minimum of {}",
                   amount(p.block_size, "cell"), p.minimum);
      if (Index turn; __builtin_mul_overflow(p.block_size, parts, &turn))
        throw LayoutError(
            make_error(ErrorCode::overflow, "cyclic blocks of {}: one for each of {} do not fit in 63 bits",
                       amount(p.block_size, "cell"), amount(parts, "part")),
            LayoutValue::block_size, 0);
      break;
    case PartitionKind::irregular: {
      if (Index(p.bounds.size()) != parts + 1)
        fail_value(LayoutValue::bounds, parts + 1, "irregular partition into {} needs {}, has {}",
                   amount(parts, "part"), amount(parts + 1, "bound"), p.bounds.size());
      if (p.bounds.front() != 0 || p.bounds.back() != cells_)
        fail_value(LayoutValue::bounds, p.bounds.front() != 0 ? 0 : p.bounds.size() - 1,
                   "irregular bounds go from {} to {}, must go from 0 to {}", p.bounds.front(), p.bounds.back(),
                   cells_);
      for (std::size_t i = 1; i < p.bounds.size(); ++i)
        if (p.bounds[i] < p.bounds[i - 1])
          fail_value(LayoutValue::bounds, i, "irregular bounds decrease from {} to {}", p.bounds[i - 1], p.bounds[i]);
      break;
    }
  }
  // Upper bound on what all parts store, including interfaces between two parts and the overlap of every slice.
  using Wide = __int128;
  const Wide widths = Wide(p.overlap.left.width) + p.overlap.right.width;
  const bool is_dealt = p.kind == PartitionKind::cyclic, is_whole = p.kind == PartitionKind::whole;
  const Wide slices = is_dealt ? ceil_divide(extent, p.block_size) : parts;
  const Wide stored = (is_whole ? slices * extent : Wide(extent)) + slices * widths +
                      (p.points == Points::interfaces && !is_whole ? slices - 1 : 0);
  if (stored > extent_max)
    throw_error(ErrorCode::overflow,
                "extent {} in {} with an overlap of {} and {}: together they may store more than {}", extent,
                amount(parts, "part"), p.overlap.left.width, amount(p.overlap.right.width, "cell"),
                amount(extent_max, "cell"));
  stored_bound_ = static_cast<Index>(stored);
}

Index AxisParts::lower_bound(Index part) const {
  const Index modulo = partition_.modulo;
  switch (partition_.kind) {
    case PartitionKind::irregular:
      return partition_.bounds[part];
    case PartitionKind::block: {
      if (partition_.remainder == Remainder::ceil)
        return part > cells_ / ceil_block_ ? cells_ : std::min(cells_, part * ceil_block_);
      const Index p = std::min(part, sharing_);
      const Index base = units_ / sharing_, rest = units_ % sharing_;
      const Index extra =
          partition_.remainder == Remainder::low ? std::min(p, rest) : std::max<Index>(0, p - (sharing_ - rest));
      const Index unit = p * base + extra;
      return unit >= units_ ? cells_ : unit * modulo;
    }
    default:
      return part > 0 ? cells_ : 0;
  }
}

Interval AxisParts::block_of(Index part) const {
  if (partition_.kind == PartitionKind::whole) return {0, extent_};
  Interval cells{lower_bound(part), lower_bound(part + 1)};
  if (partition_.points == Points::cells) return cells;
  if (cells_ == 0) return part == 0 ? Interval{0, 1} : Interval{1, 1};
  if (!cells.empty()) ++cells.upper;
  return cells;
}

Index AxisParts::block_owner(Index cell) const {
  if (cells_ == 0) return 0;
  // The last interface belongs to the part that owns the last cell.
  const Index c = std::min(cell, cells_ - 1);
  if (partition_.kind == PartitionKind::irregular) {
    const auto& bounds = partition_.bounds;
    return std::clamp<Index>(std::upper_bound(bounds.begin(), bounds.end(), c) - bounds.begin() - 1, 0, parts_ - 1);
  }
  if (partition_.remainder == Remainder::ceil) return c / ceil_block_;
  const Index unit = c / partition_.modulo, base = units_ / sharing_, rest = units_ % sharing_;
  if (partition_.remainder == Remainder::low) {
    const Index with_more = rest * (base + 1);
    return unit < with_more ? unit / (base + 1) : rest + (unit - with_more) / std::max<Index>(1, base);
  }
  const Index with_less = (sharing_ - rest) * base;
  return unit < with_less ? unit / std::max<Index>(1, base) : sharing_ - rest + (unit - with_less) / (base + 1);
}

std::vector<SliceFamily> AxisParts::slices(Index part) const {
  const Overlap& overlap = partition_.overlap;
  const Index a = overlap.left.width, b = overlap.right.width;
  std::vector<SliceFamily> out;
  Index number = 0, local = 0;

  auto append = [&](Index start, Index length, Index period, Index count) {
    SliceFamily f{.number = number,
                  .start = start,
                  .length = length,
                  .period = period,
                  .count = count,
                  .left = a,
                  .right = b,
                  .local = local};
    // Only a slice in a family of its own can reach an edge.
    if (overlap.left.edge == EdgePolicy::truncate) f.left = std::min(a, start);
    if (overlap.right.edge == EdgePolicy::truncate)
      f.right = std::min(b, extent_ - (start + (count - 1) * period + length));
    f.pitch = f.stored();
    out.push_back(f);
    number += count;
    local += count * f.pitch;
  };

  if (partition_.kind != PartitionKind::cyclic) {
    const Interval owned = block_of(part);
    if (!owned.empty()) append(owned.lower, owned.length(), 0, 1);
    return out;
  }

  const Index size = partition_.block_size, period = size * parts_;
  const Index count = slice_count(part);
  if (count == 0) return out;
  const Index first = part * size;
  // Slices [low, high) have full length, and their overlap stays inside the array; each other slice is its own family.
  const Index low = a > first ? std::min(count, ceil_divide(a - first, period)) : 0;
  const Index after_first = extent_ - first;
  const Index room = size > after_first ? -1 : after_first - size - b;
  const Index high = std::max(low, room < 0 ? 0 : std::min(count, room / period + 1));
  if (low + (count - high) > edge_slices_max)
    throw_error(ErrorCode::unsupported,
                "an overlap of {} and {} makes {} of one part reach over the edge, at most {} may", a,
                amount(b, "cell"), amount(low + (count - high), "slice"), edge_slices_max);
  auto append_alone = [&](Index k) {
    const Index start = first + k * period;
    append(start, std::min(size, extent_ - start), period, 1);
  };
  for (Index k = 0; k < low; ++k) append_alone(k);
  if (high > low) append(first + low * period, size, period, high - low);
  for (Index k = high; k < count; ++k) append_alone(k);
  return out;
}

Index AxisParts::slice_count(Index part) const {
  if (partition_.kind != PartitionKind::cyclic) return block_of(part).empty() ? 0 : 1;
  const Index blocks = ceil_divide(extent_, partition_.block_size);
  return part < blocks ? (blocks - part - 1) / parts_ + 1 : 0;
}

std::vector<SliceFamily> AxisParts::stretches(Index part) const {
  std::vector<SliceFamily> out;
  for (SliceFamily f : slices(part)) {
    const bool bare = f.left == 0 && f.right == 0;
    if (bare && f.count > 1 && f.period == f.length) {
      f.length *= f.count;
      f.pitch = f.length;
      f.period = 0;
      f.count = 1;
    }
    if (!out.empty() && bare && f.count == 1)
      if (SliceFamily& last = out.back(); last.count == 1 && last.left == 0 && last.right == 0 &&
                                          last.start + last.length == f.start && last.local + last.length == f.local) {
        last.length += f.length;
        last.pitch = last.length;
        continue;
      }
    out.push_back(f);
  }
  return out;
}

Index AxisParts::local_extent(Index part) const {
  const Index count = slice_count(part);
  if (count == 0) return 0;
  const bool dealt = partition_.kind == PartitionKind::cyclic;
  const Index size = dealt ? partition_.block_size : block_of(part).length();
  const Index period = dealt ? size * parts_ : 0;
  const Index first = dealt ? part * size : block_of(part).lower;
  const Index last = first + (count - 1) * period;
  const auto& [left, right] = partition_.overlap;
  Index out = owned_count(part) + left.width * count + right.width * count;
  // Subtracts what truncation removes: for each slice, the overlap that does not fit before and behind it.
  if (left.edge == EdgePolicy::truncate) out -= sum_of_positive(left.width - first, period, count);
  if (right.edge == EdgePolicy::truncate) {
    const Index behind = std::max<Index>(0, extent_ - last - size);  // the last slice may be short
    out -= std::max<Index>(0, right.width - behind);
    if (count > 1) out -= sum_of_positive(right.width - (extent_ - last - size + period), period, count - 1);
  }
  return out;
}

Index AxisParts::owned_count(Index part) const {
  if (partition_.kind != PartitionKind::cyclic) return block_of(part).length();
  const Index count = slice_count(part), size = partition_.block_size;
  if (count == 0) return 0;
  const Index before_last = (count - 1) * size;
  return before_last + std::min(size, extent_ - part * size - before_last * parts_);
}

Index AxisParts::owner(Index cell) const {
  if (cell < 0 || cell >= extent_)
    throw_error(ErrorCode::invalid_use, "cell {} is outside the extent {}", cell, extent_);
  switch (partition_.kind) {
    case PartitionKind::whole:
      return 0;
    case PartitionKind::cyclic:
      return cell / partition_.block_size % parts_;
    default:
      return block_owner(cell);
  }
}

bool AxisParts::owns(Index part, Index cell) const {
  return local_of(part, cell).has_value();
}

std::optional<Index> AxisParts::local_of(Index part, Index cell) const {
  for (const SliceFamily& f : slices(part)) {
    if (cell < f.start) continue;
    const Index k = f.count > 1 ? std::min((cell - f.start) / f.period, f.count - 1) : 0;
    const Index offset = cell - f.start - k * f.period;
    if (offset < f.length) return f.local + k * f.pitch + f.left + offset;
  }
  return std::nullopt;
}

LocalCell AxisParts::cell_of(Index part, Index local) const {
  for (const SliceFamily& f : slices(part)) {
    if (local < f.local || local >= f.local + f.count * f.pitch) continue;
    const Index k = (local - f.local) / f.pitch;
    const Index offset = local - f.local - k * f.pitch - f.left;
    return {f.start + k * f.period + offset, offset >= 0 && offset < f.length};
  }
  throw_error(ErrorCode::invalid_use, "local index {} is outside the local extent {} of part {}", local,
              local_extent(part), part);
}

std::vector<Index> AxisParts::parts_touching(Interval within) const {
  within = intersect(within, {0, extent_});
  if (within.empty()) return {};
  if (partition_.kind == PartitionKind::whole) return consecutive(0, parts_);
  if (partition_.kind == PartitionKind::cyclic) return parts_dealt(within);
  // Both neighbours of an interface own it.
  const Index slack = partition_.points == Points::interfaces ? 1 : 0;
  return consecutive(block_owner(std::max<Index>(0, within.lower - slack)), block_owner(within.upper - 1) + 1);
}

std::vector<Index> AxisParts::parts_touching(Interval first, Index period, Index count) const {
  if (count == 1 || period == 0) return parts_touching(first);
  const bool dealt = partition_.kind == PartitionKind::cyclic;
  if (dealt) {
    // The parts repeat after this many intervals. Intervals cut by the edges touch fewer parts, so the edges are
    // ignored.
    const Index round = partition_.block_size * parts_;
    count = std::min(count, round / std::gcd(round, period));
  }
  std::vector<Index> out;
  // Block partitions have no cells outside the array, where most of very many intervals may lie.
  const Index lower = period > 0 ? first.lower : first.lower + (count - 1) * period, step = std::abs(period);
  const Index begin = dealt ? 0 : std::clamp<Index>(floor_divide(-(lower + first.length()), step) + 1, 0, count);
  const Index end = dealt ? count : std::clamp<Index>(floor_divide(extent_ - 1 - lower, step) + 1, begin, count);
  for (Index k = begin; k < end; ++k) {
    const Interval one{lower + k * step, lower + k * step + first.length()};
    const std::vector<Index> touching = dealt ? parts_dealt(one) : parts_touching(one);
    out.insert(out.end(), touching.begin(), touching.end());
    if (Index(out.size()) > parts_) return consecutive(0, parts_);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Returns the parts as if the cyclic partition had no edges.
std::vector<Index> AxisParts::parts_dealt(Interval cells) const {
  const Index first = floor_divide(cells.lower, partition_.block_size);
  const Index blocks = floor_divide(cells.upper - 1, partition_.block_size) - first + 1;
  if (blocks >= parts_) return consecutive(0, parts_);
  std::vector<Index> out;
  for (Index k = 0; k < blocks; ++k) out.push_back(floor_modulo(first + k, parts_));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tranship
