#include "tranship/layout/distribution.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/extent_limits.hpp>
#include <tranship/layout/layout_error.hpp>

namespace tranship {

struct Distribution::IndexLists {
  int dims = 1;
  std::vector<IndexedPart> parts;
  Index ids = 0;
  // If few of the ids are listed, a slot is the position of an id in `listed`, which is sorted; otherwise it is the id
  // itself.
  bool is_sparse = false;
  std::vector<Index> listed;
  std::vector<IdPlace> places;  // by slot
  // Ghosts by slot: slot i has ghosts[first_ghost[i]] up to, but without, ghosts[first_ghost[i + 1]].
  std::vector<Index> first_ghost;
  std::vector<IdPlace> ghosts;

  /// Returns -1 for an id that no part lists.
  Index slot_of(Index id) const {
    if (!is_sparse) return id;
    const auto at = std::lower_bound(listed.begin(), listed.end(), id);
    return at != listed.end() && *at == id ? at - listed.begin() : -1;
  }
};

namespace {

/// Checks a memory layout and clears default values, so that equality is by content.
MemoryLayout checked(MemoryLayout memory, int dims) {
  auto check_count = [&](LayoutValue value, const Indices& values, const char* what) {
    if (!values.empty() && values.size() != dims)
      fail_value(value, dims, "memory {} has {} for {}", what, amount(values.size(), "entry", "entries"),
                 amount(dims, "dimension"));
  };
  check_count(LayoutValue::order, memory.order, "order");
  check_count(LayoutValue::strides, memory.strides, "strides");
  check_count(LayoutValue::spacing, memory.spacing, "spacing");
  unsigned seen = 0;
  for (int k = 0; k < memory.order.size(); ++k) {
    const Index d = memory.order[k];
    if (d < 0 || d >= dims || (seen >> d & 1))
      fail_value(LayoutValue::order, k, "memory order [{}] is not a permutation of {}", to_string(memory.order),
                 amount(dims, "dimension"));
    seen |= 1u << d;
  }
  for (int d = 0; d < memory.strides.size(); ++d)
    if (memory.strides[d] < 1) fail_value(LayoutValue::strides, d, "memory stride {} is below 1", memory.strides[d]);
  for (int d = 0; d < memory.spacing.size(); ++d)
    if (memory.spacing[d] < 1) fail_value(LayoutValue::spacing, d, "memory spacing {} is below 1", memory.spacing[d]);
  if (!memory.strides.empty() && (!memory.spacing.empty() || memory.align != 1 || !memory.order.empty()))
    throw_error(ErrorCode::invalid_use, "explicit strides [{}] leave no room for order, spacing or align",
                to_string(memory.strides));
  if (memory.align < 1)
    fail_value(LayoutValue::align, 0, "memory alignment of {} is below 1", amount(memory.align, "element"));
  if (memory.offset < 0)
    throw_error(ErrorCode::invalid_use, "memory offset of {} is negative", amount(memory.offset, "element"));
  bool row_major = true, dense = true;
  for (int k = 0; k < memory.order.size(); ++k) row_major &= memory.order[k] == k;
  for (Index spacing : memory.spacing) dense &= spacing == 1;
  if (row_major) memory.order = {};
  if (dense) memory.spacing = {};
  return memory;
}

/// Returns extents that are the largest of any part in every dimension. Strides that keep the cells of such a part
/// apart do so for all parts. It looks at a limited number of parts; Distribution::storage checks each of the others
/// when asked.
Indices largest_extents(const std::vector<AxisParts>& axes) {
  constexpr Index parts_max = Index(1) << 20;
  Indices out;
  for (const AxisParts& axis : axes) {
    Index most = 0;
    for (Index part = 0; part < std::min(axis.parts(), parts_max); ++part)
      most = std::max(most, axis.local_extent(part));
    out.push_back(most);
  }
  return out;
}

Storage storage_of(const MemoryLayout& memory, const Indices& extents) {
  const int dims = extents.size();
  Storage out{.extents = extents, .strides = memory.strides, .offset = memory.offset};
  if (memory.strides.empty()) {
    Indices order = memory.order;
    for (int d = order.size(); d < dims; ++d) order.push_back(d);
    out.strides = Indices::filled(dims, 1);
    Index space = 1;
    for (int k = dims - 1; k >= 0; --k) {
      const int d = static_cast<int>(order[k]);
      if (k < dims - 1) space = checked_multiply(ceil_divide(space, memory.align), memory.align);
      out.strides[d] = checked_multiply(space, memory.spacing.empty() ? 1 : memory.spacing[d]);
      space = checked_multiply(out.strides[d], std::max<Index>(1, extents[d]));
    }
  } else {
    // In increasing order, each stride must step over everything that the smaller strides reach.
    std::vector<int> by_stride(dims);
    for (int d = 0; d < dims; ++d) by_stride[d] = d;
    std::stable_sort(by_stride.begin(), by_stride.end(), [&](int a, int b) { return out.strides[a] < out.strides[b]; });
    Index reach = 0;
    for (int d : by_stride) {
      if (extents[d] <= 1) continue;
      if (out.strides[d] <= reach)
        fail_value(LayoutValue::strides, d,
                   "stride {} of dimension {} makes cells overlap: the faster dimensions reach over {}", out.strides[d],
                   d, amount(reach + 1, "element"));
      reach = checked_add(reach, checked_multiply(out.strides[d], extents[d] - 1));
    }
  }
  if (checked_product(extents) > 0) {
    Index last = memory.offset;
    for (int d = 0; d < dims; ++d) last = checked_add(last, checked_multiply(out.strides[d], extents[d] - 1));
    out.elements = checked_add(last, 1);
  }
  return out;
}

}  // namespace

Distribution::Distribution(const Indices& extents, Grid grid, std::vector<Partition> partitions, MemoryLayout memory)
    : extents_(extents), grid_(std::move(grid)), memory_(std::move(memory)) {
  const int dims = extents.size();
  if (dims < 1) throw_error(ErrorCode::invalid_use, "an array needs 1 to {} dimensions, has {}", dims_max, dims);
  if (grid_.dims() != dims)
    throw_error(ErrorCode::invalid_use, "the array has {}, its grid {}", amount(dims, "dimension"), grid_.dims());
  if (int(partitions.size()) != dims)
    throw_error(ErrorCode::invalid_use, "the array has {}, {} are partitioned", amount(dims, "dimension"),
                partitions.size());
  check_extents(extents);
  memory_ = checked(std::move(memory_), dims);
  for (int d = 0; d < dims; ++d) axes_.emplace_back(extents[d], grid_.extents()[d], std::move(partitions[d]));
  Index stored = grid_.replicas();
  bool fits = true;
  for (const AxisParts& axis : axes_)
    fits = fits && !__builtin_mul_overflow(stored, std::max<Index>(1, axis.stored_bound()), &stored);
  if (!fits)
    throw_error(ErrorCode::overflow, "extents [{}]: the cells that all {} store together do not fit in 63 bits",
                to_string(extents), amount(grid_.size(), "rank"));
  if (memory_.strides.empty()) return;
  // A layout that is only too large for this machine is not wrong.
  try {
    storage_of(memory_, largest_extents(axes_));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_use) throw;
  }
}

Distribution Distribution::indexed(const Indices& extents, int indexed_dims, Grid grid, std::vector<IndexedPart> parts,
                                   MemoryLayout memory) {
  if (indexed_dims < 1 || indexed_dims > extents.size())
    throw_error(ErrorCode::invalid_use, "{}, but an array of {} has 1 to {}", amount(indexed_dims, "indexed dimension"),
                amount(extents.size(), "dimension"), extents.size());
  if (grid.dims() != 1 || grid.replicas() != 1)
    throw_error(ErrorCode::invalid_use,
                "an indexed distribution needs a grid of 1 dimension without replicas, has {} and {}", grid.dims(),
                amount(grid.replicas(), "replica"));
  if (Index(parts.size()) != grid.size())
    throw_error(ErrorCode::invalid_use, "{} for {}: give one for each part", amount(parts.size(), "index list"),
                amount(grid.size(), "part"));
  check_extents(extents);

  Distribution out;
  out.extents_ = extents;
  out.grid_ = std::move(grid);
  out.memory_ = checked(std::move(memory), extents.size() - indexed_dims + 1);
  auto lists = std::make_shared<IndexLists>();
  lists->dims = indexed_dims;
  lists->ids = 1;
  for (int d = 0; d < indexed_dims; ++d) lists->ids = checked_multiply(lists->ids, extents[d]);
  const Index ids = lists->ids;
  std::vector<Index> listed;
  for (Index p = 0; p < Index(parts.size()); ++p) {
    for (const Index id : parts[p].owned)
      if (id < 0 || id >= ids)
        throw_error(ErrorCode::invalid_use, "part {} owns id {}, ids go from 0 to {}", p, id, ids - 1);
    for (const Index id : parts[p].ghosts)
      if (id < 0 || id >= ids)
        throw_error(ErrorCode::invalid_use, "part {} has ghost id {}, ids go from 0 to {}", p, id, ids - 1);
    listed.insert(listed.end(), parts[p].owned.begin(), parts[p].owned.end());
  }
  // Every ghost is owned by some part, so the owned ids are all ids that need a slot.
  Index slots = ids;
  lists->is_sparse = ids / 4 > Index(listed.size());
  if (lists->is_sparse) {
    std::sort(listed.begin(), listed.end());
    listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
    slots = Index(listed.size());
    lists->listed = std::move(listed);
  }
  lists->places.resize(slots);
  for (Index p = 0; p < Index(parts.size()); ++p)
    for (Index i = 0; i < Index(parts[p].owned.size()); ++i) {
      const Index id = parts[p].owned[i];
      IdPlace& place = lists->places[lists->slot_of(id)];
      if (place.ordinal >= 0)
        throw_error(ErrorCode::invalid_use, "id {} is owned by part {} and by part {}", id, place.ordinal, p);
      place = {p, i};
    }
  lists->first_ghost.resize(slots + 1, 0);
  for (Index p = 0; p < Index(parts.size()); ++p)
    for (const Index id : parts[p].ghosts) {
      const Index slot = lists->slot_of(id);
      if (slot < 0 || lists->places[slot].ordinal < 0)
        throw_error(ErrorCode::invalid_use, "part {} has ghost id {}, which no part owns", p, id);
      ++lists->first_ghost[slot + 1];
    }
  for (Index slot = 0; slot < slots; ++slot) lists->first_ghost[slot + 1] += lists->first_ghost[slot];
  lists->ghosts.resize(lists->first_ghost[slots]);
  std::vector<Index> next(lists->first_ghost.begin(), lists->first_ghost.end() - 1);
  for (Index p = 0; p < Index(parts.size()); ++p)
    for (Index i = 0; i < Index(parts[p].ghosts.size()); ++i)
      lists->ghosts[next[lists->slot_of(parts[p].ghosts[i])]++] = {p, Index(parts[p].owned.size()) + i};
  lists->parts = std::move(parts);
  out.index_ = std::move(lists);
  if (!out.memory_.strides.empty())
    for (const Rank rank : out.grid_.ranks()) out.storage(rank);
  return out;
}

bool Distribution::replicated() const noexcept {
  if (grid_.replicas() > 1) return true;
  for (const AxisParts& axis : axes_)
    if (axis.replicated()) return true;
  return false;
}

Distribution Distribution::on_ranks(std::vector<Rank> ranks) const {
  Distribution out = *this;
  out.grid_ = grid_.on_ranks(std::move(ranks));
  return out;
}

Indices Distribution::local_extents(Rank rank) const {
  Indices out;
  if (index_) {
    const std::optional<Index> ordinal = grid_.ordinal_of(rank);
    out.push_back(ordinal ? Index(indexed_part(*ordinal).owned.size() + indexed_part(*ordinal).ghosts.size()) : 0);
    for (int d = index_->dims; d < dims(); ++d) out.push_back(ordinal ? extents_[d] : 0);
    return out;
  }
  const std::optional<Place> place = grid_.place_of(rank);
  for (int d = 0; d < dims(); ++d) out.push_back(place ? axes_[d].local_extent(place->coordinates[d]) : 0);
  return out;
}

Storage Distribution::storage(Rank rank) const {
  const Indices local = local_extents(rank);
  try {
    return storage_of(memory_, local);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::overflow) throw;
    throw_error(ErrorCode::overflow,
                "extents [{}]: the local array of rank {}, of extents [{}], takes more elements than fit in 63 bits",
                to_string(extents_), rank, to_string(local));
  }
}

Index Distribution::slice_count(Rank rank) const {
  if (index_) return grid_.ordinal_of(rank) ? 1 : 0;
  const std::optional<Place> place = grid_.place_of(rank);
  if (!place) return 0;
  Index out = 1;
  for (int d = 0; d < dims(); ++d) out = checked_multiply(out, axes_[d].slice_count(place->coordinates[d]));
  return out;
}

Slice Distribution::slice(Rank rank, Index number) const {
  const Index count = slice_count(rank);
  if (number < 0 || number >= count)
    throw_error(ErrorCode::invalid_use, "slice {} does not exist: rank {} has {}", number, rank, count);
  if (index_) throw_error(ErrorCode::unsupported, "slice {} of an indexed distribution has no box", number);
  const Place place = *grid_.place_of(rank);
  const Storage local = storage(rank);
  Slice out{.owned = {extents_, extents_},
            .stored = {extents_, extents_},
            .offset = local.offset,
            .extents = extents_,
            .strides = local.strides};
  for (int d = dims() - 1; d >= 0; --d) {
    const std::vector<SliceFamily> families = axes_[d].slices(place.coordinates[d]);
    const SliceFamily& last = families.back();
    const Index slices = last.number + last.count;
    const Index n = number % slices;
    number /= slices;
    const SliceFamily& f =
        *std::find_if(families.begin(), families.end(), [&](const SliceFamily& g) { return n < g.number + g.count; });
    const Index k = n - f.number;
    out.owned.lower[d] = f.start + k * f.period;
    out.owned.upper[d] = out.owned.lower[d] + f.length;
    out.stored.lower[d] = out.owned.lower[d] - f.left;
    out.stored.upper[d] = out.owned.upper[d] + f.right;
    out.extents[d] = f.stored();
    out.offset += (f.local + k * f.pitch) * local.strides[d];
  }
  return out;
}

std::vector<Slice> Distribution::slices(Rank rank) const {
  std::vector<Slice> out;
  const Index count = slice_count(rank);
  for (Index n = 0; n < count; ++n) out.push_back(slice(rank, n));
  return out;
}

namespace {

Index id_of(const Indices& extents, int indexed_dims, const Indices& cell) {
  Index id = 0;
  for (int d = 0; d < indexed_dims; ++d) id = id * extents[d] + cell[d];
  return id;
}

void check_cell(const Indices& extents, const Indices& cell) {
  if (cell.size() != extents.size())
    throw_error(ErrorCode::invalid_use, "the cell has {}, but the array has {}", amount(cell.size(), "coordinate"),
                amount(extents.size(), "dimension"));
  for (int d = 0; d < extents.size(); ++d)
    if (cell[d] < 0 || cell[d] >= extents[d])
      throw_error(ErrorCode::invalid_use, "cell [{}] is outside the extents [{}]", to_string(cell), to_string(extents));
}

}  // namespace

Rank Distribution::owner(const Indices& cell) const {
  check_cell(extents_, cell);
  if (index_) {
    const IdPlace place = place_of_id(id_of(extents_, index_->dims, cell));
    return place.ordinal < 0 ? -1 : grid_.rank_at(place.ordinal);
  }
  Place place;
  for (int d = 0; d < dims(); ++d) place.coordinates.push_back(axes_[d].owner(cell[d]));
  return grid_.rank_of(place);
}

std::vector<Rank> Distribution::owners(const Indices& cell) const {
  if (index_) {
    const Rank rank = owner(cell);
    return rank < 0 ? std::vector<Rank>{} : std::vector<Rank>{rank};
  }
  check_cell(extents_, cell);
  // Collects the owning coordinates per dimension; the owners are their product over all replicas.
  std::vector<std::vector<Index>> coordinates(dims());
  Indices counts;
  for (int d = 0; d < dims(); ++d) {
    for (Index p : axes_[d].parts_touching({cell[d], cell[d] + 1}))
      if (axes_[d].owns(p, cell[d])) coordinates[d].push_back(p);
    counts.push_back(Index(coordinates[d].size()));
  }
  std::vector<Index> ordinals;
  for (Index replica = 0; replica < grid_.replicas(); ++replica)
    for_each_coordinate(counts, [&](const Indices& at) {
      Place place{.coordinates = {}, .replica = replica};
      for (int d = 0; d < dims(); ++d) place.coordinates.push_back(coordinates[d][at[d]]);
      ordinals.push_back(grid_.ordinal_of(place));
    });
  std::sort(ordinals.begin(), ordinals.end());
  std::vector<Rank> out;
  for (Index ordinal : ordinals) out.push_back(grid_.rank_at(ordinal));
  return out;
}

std::optional<Indices> Distribution::local_of(Rank rank, const Indices& cell) const {
  check_cell(extents_, cell);
  Indices out;
  if (index_) {
    const IdPlace place = place_of_id(id_of(extents_, index_->dims, cell));
    if (place.ordinal < 0 || grid_.rank_at(place.ordinal) != rank) return std::nullopt;
    out.push_back(place.local);
    for (int d = index_->dims; d < dims(); ++d) out.push_back(cell[d]);
    return out;
  }
  const std::optional<Place> place = grid_.place_of(rank);
  if (!place) return std::nullopt;
  for (int d = 0; d < dims(); ++d) {
    const std::optional<Index> local = axes_[d].local_of(place->coordinates[d], cell[d]);
    if (!local) return std::nullopt;
    out.push_back(*local);
  }
  return out;
}

Distribution::Cell Distribution::cell_of(Rank rank, const Indices& local) const {
  const Indices extents = local_extents(rank);
  bool inside = local.size() == extents.size();
  for (int d = 0; inside && d < extents.size(); ++d) inside = local[d] >= 0 && local[d] < extents[d];
  if (!inside)
    throw_error(ErrorCode::invalid_use, "local element [{}] is outside the local extents [{}] of rank {}",
                to_string(local), to_string(extents), rank);
  Cell out{.at = {}, .owned = true};
  if (index_) {
    const IndexedPart& part = indexed_part(*grid_.ordinal_of(rank));
    const Index owned = Index(part.owned.size());
    out.owned = local[0] < owned;
    Index id = out.owned ? part.owned[local[0]] : part.ghosts[local[0] - owned];
    out.at = Indices::filled(index_->dims, 0);
    for (int d = index_->dims - 1; d >= 0; --d) {
      out.at[d] = id % extents_[d];
      id /= extents_[d];
    }
    for (int d = 1; d < local.size(); ++d) out.at.push_back(local[d]);
    return out;
  }
  const Place place = *grid_.place_of(rank);
  for (int d = 0; d < dims(); ++d) {
    const LocalCell cell = axes_[d].cell_of(place.coordinates[d], local[d]);
    out.at.push_back(cell.cell);
    out.owned &= cell.owned;
  }
  return out;
}

int Distribution::indexed_dims() const noexcept {
  return index_ ? index_->dims : 0;
}
const IndexedPart& Distribution::indexed_part(Index ordinal) const {
  return index_->parts[ordinal];
}
Index Distribution::id_count() const {
  return index_->ids;
}
Distribution::IdPlace Distribution::place_of_id(Index id) const {
  const Index slot = index_->slot_of(id);
  return slot < 0 ? IdPlace() : index_->places[slot];
}

std::span<const Distribution::IdPlace> Distribution::ghosts_of_id(Index id) const {
  const Index slot = index_->slot_of(id);
  if (slot < 0) return {};
  return {index_->ghosts.data() + index_->first_ghost[slot], index_->ghosts.data() + index_->first_ghost[slot + 1]};
}

bool operator==(const Distribution& a, const Distribution& b) {
  if (!(a.extents_ == b.extents_) || !(a.grid_ == b.grid_) || !(a.memory_ == b.memory_) || !(a.axes_ == b.axes_))
    return false;
  if (!a.index_ != !b.index_) return false;
  return a.index_ == b.index_ || (a.index_->dims == b.index_->dims && a.index_->parts == b.index_->parts);
}

}  // namespace tranship
