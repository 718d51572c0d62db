#include "tranship/file/engine/verify.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/engine/block_run.hpp>
#include <tranship/file/format/byte_order.hpp>
#include <tranship/file/store/strided_source.hpp>

namespace tranship {
namespace {

// Bytes that are compared at a time.
constexpr Index piece_bytes = Index(1) << 16;
// For rows of a piece that are read together with the gaps between them.
constexpr Index window_bytes = 4 * piece_bytes;

/// Bytes as hexadecimal digits, in the order of the file.
std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(b));
  return out;
}

/// `where` names the origin of the bytes that are needed.
[[noreturn]] void fail(const char* where, const std::string& path, const Indices& local, std::span<const std::byte> has,
                       std::span<const std::byte> needed) {
  throw_error(ErrorCode::internal, "verification failed: '{}' holds {} in element [{}], {} gives {}", path, hex(has),
              to_string(local), where, hex(needed));
}

/// Returns the element at `number` of a part, counted in the order of its file.
Indices local_at(const StoredPart& part, Index number) {
  const int dims = part.extents.size();
  const Indices order = dimension_order(part.order, dims);
  Indices out = Indices::filled(dims, 0);
  for (int k = dims - 1; k >= 0; --k) {
    const int d = order[k];
    out[d] = number % part.extents[d];
    number /= part.extents[d];
  }
  return out;
}

constexpr std::size_t element_bytes_max = 32;

/// Reads a box of a part, dense in the order of the part.
void read_box(const PartSource& source, const StoredParts& array, Index ordinal, const Box& box,
              std::span<std::byte> bytes, ReadScratch& scratch) {
  const StoredPart dense{.order = array.parts[ordinal].order, .extents = box.extents()};
  scratch.way = copy_method(static_cast<long long>(bytes.size()));
  source.read(ordinal, box, view_of(dense, array.spec.type, bytes.data()), scratch);
}

/// Returns true if a part of the source that owns an interface has these bytes there. Parts that share an interface may
/// differ in it, and a reader takes it from the nearest part.
bool some_owner_has(const StoredParts& source, const Indices& cell, std::span<const std::byte> bytes, Index swap) {
  const Distribution& d = source.spec.distribution;
  bool has_interfaces = false;
  for (int axis = 0; axis < d.dims() && !d.is_indexed(); ++axis)
    has_interfaces |= d.axis(axis).partition().points == Points::interfaces;
  if (!has_interfaces) return false;
  std::array<std::byte, element_bytes_max> room = {};
  const auto there = std::span(room).first(bytes.size());
  const SourceOf reader(source);
  ReadScratch scratch(window_bytes);
  for (const Rank owner : d.owners(cell)) {
    const Index ordinal = *d.grid().ordinal_of(owner);
    const Indices local = *d.local_of(owner, cell);
    Box element{local, local};
    for (Index& upper : element.upper) ++upper;
    read_box(*reader, source, ordinal, element, there, scratch);
    reverse_each(there, swap);
    if (std::memcmp(there.data(), bytes.data(), bytes.size()) == 0) return true;
  }
  return false;
}

/// Returns the place in the part of an element of a box, which is counted in the order of the box.
Indices local_in(const Box& box, StoredOrder order, Index number) {
  Indices out = local_at({.order = order, .extents = box.extents()}, number);
  for (int d = 0; d < out.size(); ++d) out[d] += box.lower[d];
  return out;
}

/// Compares a rebuilt block of a part of the source to the source, in the cells that the part owns: its overlap may
/// hold anything.
void compare_block(const StoredParts& source, const FileBlock& block) {
  const StoredPart& part = source.parts[block.at.part];
  const Distribution& distribution = source.spec.distribution;
  const Rank rank = distribution.grid().rank_at(block.at.part);
  const auto width = static_cast<std::size_t>(size_bytes(source.spec.type));
  const SourceOf reader(source);
  ReadScratch scratch(window_bytes);
  std::vector<std::byte> buffer(std::min(block.bytes.size(), static_cast<std::size_t>(piece_bytes)));
  const auto compare = [&](const Box& piece, Index first) {
    const auto found =
        block.bytes.subspan(static_cast<std::size_t>(first) * width, static_cast<std::size_t>(piece.count()) * width);
    const auto expected = std::span(buffer).first(found.size());
    read_box(*reader, source, block.at.part, piece, expected, scratch);
    if (std::memcmp(expected.data(), found.data(), found.size()) == 0) return;
    for (std::size_t at = 0; at < found.size(); at += width) {
      if (std::memcmp(expected.data() + at, found.data() + at, width) == 0) continue;
      const Indices local = local_in(piece, part.order, static_cast<Index>(at / width));
      const auto cell = distribution.cell_of(rank, local);
      if (cell.owned && !some_owner_has(source, cell.at, found.subspan(at, width), 0))
        fail("the target", source.path_of(block.at.part), local, expected.subspan(at, width), found.subspan(at, width));
    }
  };
  for_each_piece(block.box, dimension_order(part.order, block.box.dims()), piece_bytes / static_cast<Index>(width),
                 compare);
}

/// Throws if the target leaves out cells, because these cannot be rebuilt from it.
void check_all_owned(const Distribution& target) {
  if (!target.is_indexed()) return;
  Index owned = 0;
  for (Index i = 0; i < target.grid().size(); ++i) owned += static_cast<Index>(target.indexed_part(i).owned.size());
  if (owned != target.id_count())
    throw_error(ErrorCode::unsupported, "cannot verify a layout whose parts own {} of {}", owned,
                amount(target.id_count(), "id"));
}

void verify_own_cells(const StoredParts& source, const StoredParts& target, const VerifyPartsOptions& options) {
  const auto plan = plan_blocks({.source = &target, .wanted = &source}, options.memory_bytes);
  const auto none = [](const BlockAddress&) { return false; };
  const auto compare = [&](const FileBlock& block) { compare_block(source, block); };
  const auto watch = [&] {
    if (options.watch) (*options.watch)();
  };
  run_blocks({&plan, 1}, {.memory_bytes = options.memory_bytes,
                          .threads = options.threads,
                          .skip = none,
                          .sink = compare,
                          .watch = watch});
}

/// Returns the ordinal of a part's first replica.
Index first_copy_of(const Distribution& d, Index ordinal) {
  if (!d.replicated()) return ordinal;
  Place place = d.grid().place_at(ordinal);
  place.replica = 0;
  for (int axis = 0; axis < d.dims(); ++axis)
    if (d.axis(axis).replicated()) place.coordinates[axis] = 0;
  return d.grid().ordinal_of(place);
}

void compare_copy(const StoredParts& target, Index first, Index copy) {
  const StoredPart& part = target.parts[copy];
  const Index width = size_bytes(target.spec.type);
  const auto room = static_cast<std::size_t>(std::min(target.part_bytes(copy), piece_bytes));
  std::vector<std::byte> expected(room), found(room);
  const SourceOf reader(target);
  ReadScratch scratch(window_bytes);
  const auto compare = [&](const Box& piece, Index) {
    const auto bytes = static_cast<std::size_t>(piece.count() * width);
    read_box(*reader, target, first, piece, std::span(expected).first(bytes), scratch);
    read_box(*reader, target, copy, piece, std::span(found).first(bytes), scratch);
    if (std::memcmp(expected.data(), found.data(), bytes) == 0) return;
    const auto differs = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    const Index number = differs / width;
    const auto element = [&](const std::vector<std::byte>& bytes_of) {
      return std::span(bytes_of).subspan(static_cast<std::size_t>(number * width), static_cast<std::size_t>(width));
    };
    fail("the first copy", target.path_of(copy), local_in(piece, part.order, number), element(found),
         element(expected));
  };
  for_each_piece(Box::of_extents(part.extents), dimension_order(part.order, part.extents.size()), piece_bytes / width,
                 compare);
}

/// Compares replicas. Returns the ordinals of the first ones.
std::vector<Index> verify_replicas(const StoredParts& target) {
  std::vector<Index> first_copies;
  for (Index i = 0; i < static_cast<Index>(target.parts.size()); ++i) {
    const Index first = first_copy_of(target.spec.distribution, i);
    if (first == i)
      first_copies.push_back(i);
    else
      compare_copy(target, first, i);
  }
  return first_copies;
}

/// A local index along one dimension: its cell, which may lie beyond the edge, and the slice that stores it.
struct AxisPoint {
  Index local = 0;
  Index cell = 0;
  Interval owned;
};

/// The local indices of one part along one dimension, numbered: those that only this part owns, then all others.
class AxisPoints {
 public:
  AxisPoints(const AxisParts& axis, Index part) : families_(axis.slices(part)) {
    for (const SliceFamily& f : families_) {
      // A part's neighbour also owns its upper interface, so this copy counts like overlap.
      const bool shared = axis.partition().points == Points::interfaces && axis.owner(f.start + f.length - 1) != part;
      sole_.push_back(f.length - (shared ? 1 : 0));
      sole_count_ += f.count * sole_.back();
      other_count_ += f.count * (f.stored() - sole_.back());
    }
  }

  Index sole_count() const { return sole_count_; }
  Index other_count() const { return other_count_; }
  Index count() const { return sole_count_ + other_count_; }

  AxisPoint operator[](Index number) const {
    const bool sole = number < sole_count_;
    if (!sole) number -= sole_count_;
    for (std::size_t i = 0;; ++i) {
      const SliceFamily& f = families_[i];
      const Index each = sole ? sole_[i] : f.stored() - sole_[i];
      if (number >= f.count * each) {
        number -= f.count * each;
        continue;
      }
      const Index slice = number / each, n = number % each;
      const Index in_slice = sole ? f.left + n : n < f.left ? n : n + sole_[i];
      const Index start = f.start + slice * f.period;
      return {f.local + slice * f.pitch + in_slice, start - f.left + in_slice, {start, start + f.length}};
    }
  }

 private:
  std::vector<SliceFamily> families_;
  std::vector<Index> sole_;  // by family: owned cells of a slice that no other part owns
  Index sole_count_ = 0;
  Index other_count_ = 0;
};

/// Returns the cell whose value a point has along one dimension; empty if the value is zero: beyond a zero edge, and
/// beyond an open edge, where nothing has been written.
std::optional<Index> resolve(const AxisParts& axis, const AxisPoint& point) {
  if (point.cell >= 0 && point.cell < axis.extent()) return point.cell;
  const Overlap& overlap = axis.partition().overlap;
  const bool low = point.cell < 0;
  switch (low ? overlap.left.edge : overlap.right.edge) {
    case EdgePolicy::toroidal: {
      // Interfaces 0 and `period` are the same point. Cells on the left count down from it, cells on the right up.
      const Index first = !low && axis.partition().points == Points::interfaces ? 1 : 0;
      return first + floor_modulo(point.cell - first, axis.period());
    }
    case EdgePolicy::replicate:
      return low ? 0 : axis.extent() - 1;
    case EdgePolicy::replicate_local:
      return low ? point.owned.lower : point.owned.upper - 1;
    case EdgePolicy::zero:
    case EdgePolicy::open:
    case EdgePolicy::truncate:
      break;
  }
  return std::nullopt;
}

/// The cells of one part that another part owns, numbered.
class OverlapCells {
 public:
  struct Cell {
    Indices local;
    std::optional<Indices> at;  ///< empty: the value is zero
  };

  OverlapCells(const Distribution& distribution, Index ordinal)
      : distribution_(distribution), rank_(distribution.grid().rank_at(ordinal)) {
    if (distribution.is_indexed()) {
      owned_ = static_cast<Index>(distribution.indexed_part(ordinal).owned.size());
      trailing_ = distribution.local_extents(rank_);
      trailing_[0] -= owned_;
      count_ = checked_product(trailing_);
      return;
    }
    const Place place = distribution.grid().place_at(ordinal);
    for (int d = 0; d < distribution.dims(); ++d) axes_.emplace_back(distribution.axis(d), place.coordinates[d]);
    for (int d = 0; d < distribution.dims(); ++d) count_ += count_from(d);
  }

  Index count() const { return count_; }

  Cell operator[](Index number) const { return distribution_.is_indexed() ? indexed(number) : structured(number); }

 private:
  /// Returns the number of cells whose first dimension in which another part owns them is `first`.
  Index count_from(int first) const {
    Index out = axes_[first].other_count();
    for (int d = 0; d < static_cast<int>(axes_.size()); ++d)
      if (d != first) out *= d < first ? axes_[d].sole_count() : axes_[d].count();
    return out;
  }

  Cell structured(Index number) const {
    int first = 0;
    for (; number >= count_from(first); ++first) number -= count_from(first);
    const int dims = distribution_.dims();
    Cell out{.local = Indices::filled(dims, 0), .at = Indices::filled(dims, 0)};
    for (int d = dims - 1; d >= 0; --d) {
      const AxisPoints& axis = axes_[d];
      const Index choices = d < first ? axis.sole_count() : d == first ? axis.other_count() : axis.count();
      const AxisPoint point = axis[number % choices + (d == first ? axis.sole_count() : 0)];
      number /= choices;
      out.local[d] = point.local;
      const std::optional<Index> cell = resolve(distribution_.axis(d), point);
      if (!cell) out.at.reset();
      if (out.at) (*out.at)[d] = *cell;
    }
    return out;
  }

  Cell indexed(Index number) const {
    Indices local = trailing_;
    for (int d = local.size() - 1; d >= 0; --d) {
      local[d] = number % trailing_[d];
      number /= trailing_[d];
    }
    local[0] += owned_;
    return {local, distribution_.cell_of(rank_, local).at};
  }

  const Distribution& distribution_;
  Rank rank_;
  std::vector<AxisPoints> axes_;
  Index owned_ = 0;   // cells of an indexed part
  Indices trailing_;  // trailing extents of the ghosts of an indexed part
  Index count_ = 0;
};

/// Looks up single elements, in boxes of the parts that it keeps for a while.
class ElementReader {
 public:
  explicit ElementReader(const StoredParts& array) : array_(array), source_(array) {}
  ElementReader(const ElementReader&) = delete;
  ElementReader& operator=(const ElementReader&) = delete;

  /// Returns the bytes of an element, valid until the next call.
  std::span<const std::byte> operator()(Index ordinal, const Indices& local) {
    // Lookups go through a part cell by cell, so most find the tile of the one before.
    if (last_->ordinal != ordinal || !last_->box.contains(local)) last_ = &tile_at(ordinal, local);
    Index number = 0;
    for (int d = 0; d < local.size(); ++d) number += (local[d] - last_->box.lower[d]) * last_->strides[d];
    const auto width = static_cast<std::size_t>(size_bytes(array_.spec.type));
    return std::span(last_->bytes).subspan(static_cast<std::size_t>(number) * width, width);
  }

 private:
  static constexpr Index tile_bytes = 4096;
  static constexpr std::size_t tiles_kept = 128;

  struct Tile {
    Index ordinal = -1;
    Box box;
    Indices strides;
    std::vector<std::byte> bytes;
  };

  /// Tiles lie at multiples of their extents. They have as many whole dimensions, from the fastest on, as fit in
  /// tile_bytes.
  Tile& tile_at(Index ordinal, const Indices& local) {
    const Indices& extents = array_.parts[ordinal].extents;
    const Index width = size_bytes(array_.spec.type);
    if (shape_of_ != ordinal) {
      shape_of_ = ordinal;
      order_ = dimension_order(array_.parts[ordinal].order, extents.size());
      shape_ = extents;
      Index cells = tile_bytes / width;
      for (int k = extents.size() - 1; k >= 0; --k) {
        const int d = static_cast<int>(order_[k]);
        // A dimension of up to two tiles is one tile, because a row is often looked up at both ends.
        shape_[d] = extents[d] <= 2 * cells ? extents[d] : std::max<Index>(1, cells);
        cells = shape_[d] == extents[d] ? cells / extents[d] : 0;
      }
    }
    Indices corner = local;
    auto hash = static_cast<std::uint64_t>(ordinal);
    for (int d = 0; d < local.size(); ++d) {
      const Index number = local[d] / shape_[d];
      corner[d] = number * shape_[d];
      hash = hash * 31 + static_cast<std::uint64_t>(number);
    }
    Tile& tile = tiles_[hash % tiles_kept];
    if (tile.ordinal == ordinal && tile.box.lower == corner) return tile;
    tile.ordinal = -1;  // until it is read
    tile.box = {corner, corner};
    for (int d = 0; d < local.size(); ++d) tile.box.upper[d] = std::min(extents[d], corner[d] + shape_[d]);
    tile.strides = dense_strides(tile.box.extents(), order_);
    tile.bytes.resize(static_cast<std::size_t>(tile.box.count() * width));
    read_box(*source_, array_, ordinal, tile.box, tile.bytes, scratch_);
    tile.ordinal = ordinal;
    return tile;
  }

  const StoredParts& array_;
  SourceOf source_;
  ReadScratch scratch_{window_bytes};
  std::vector<Tile> tiles_{tiles_kept};
  const Tile* last_ = tiles_.data();
  // The extents and the order of dimensions of the tiles of the part that was looked up last.
  Index shape_of_ = -1;
  Indices shape_, order_;
};

/// Compares cells of overlap in both arrays.
class OverlapCheck {
 public:
  OverlapCheck(const StoredParts& source, const StoredParts& target)
      : source_(source),
        target_(target),
        swap_(swapped_bytes(source.descr, target.descr)),
        needed_(source),
        found_(target) {}

  void operator()(Index ordinal, const OverlapCells::Cell& cell) {
    const Distribution& from = source_.spec.distribution;
    const auto found = found_(ordinal, cell.local);
    std::array<std::byte, element_bytes_max> room = {};
    const auto needed = std::span(room).first(found.size());
    if (const Rank owner = cell.at ? from.owner(*cell.at) : -1; owner >= 0) {
      const auto there = needed_(*from.grid().ordinal_of(owner), *from.local_of(owner, *cell.at));
      std::copy(there.begin(), there.end(), needed.begin());
      reverse_each(needed, swap_);
    }
    if (std::memcmp(found.data(), needed.data(), found.size()) == 0) return;
    if (!cell.at || !some_owner_has(source_, *cell.at, found, swap_))
      fail("the source", target_.path_of(ordinal), cell.local, found, needed);
  }

 private:
  const StoredParts& source_;
  const StoredParts& target_;
  Index swap_;
  ElementReader needed_;
  ElementReader found_;
};

void verify_overlap(const StoredParts& source, const StoredParts& target, const std::vector<Index>& ordinals,
                    const VerifyPartsOptions& options) {
  std::vector<Index> counts;
  for (const Index i : ordinals) counts.push_back(OverlapCells(target.spec.distribution, i).count());
  const Index total = std::accumulate(counts.begin(), counts.end(), Index(0));
  // Draws one number in each of as many equal stretches of the overlap of all parts. If all cells are looked up, a
  // stretch is one cell. A list of the numbers would take memory.
  const Index looked_up = std::min(total, options.overlap_cells_max);
  std::mt19937_64 random(options.seed);
  const auto stretch_begin = [&](Index i) { return total / looked_up * i + total % looked_up * i / looked_up; };
  const auto draw = [&](Index i) {
    const Index begin = stretch_begin(i), length = stretch_begin(i + 1) - begin;
    return begin + static_cast<Index>(random() % static_cast<std::uint64_t>(length));
  };
  OverlapCheck check_cell(source, target);
  Index drawn = 0, number = looked_up > 0 ? draw(0) : 0, first = 0;
  for (std::size_t k = 0; k < ordinals.size(); first += counts[k++]) {
    const OverlapCells cells(target.spec.distribution, ordinals[k]);
    while (drawn < looked_up && number < first + counts[k]) {
      check_cell(ordinals[k], cells[number - first]);
      if (++drawn < looked_up) number = draw(drawn);
    }
  }
}

}  // namespace

void verify_parts(const StoredParts& source, const StoredParts& target, const VerifyPartsOptions& options) {
  check_all_owned(target.spec.distribution);
  verify_own_cells(source, target, options);
  verify_overlap(source, target, verify_replicas(target), options);
}

}  // namespace tranship
