#include "tranship/file/engine/row_blocks.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <tranship/base/fail.hpp>
#include <tranship/file/store/part_source.hpp>
#include <tranship/plan/clip.hpp>
#include <tranship/plan/indexed_redistribution.hpp>

namespace tranship {
namespace {

// Costs of a stretch that is read, one that is written, and a block, in bytes as in round_shape.cpp.
constexpr double read_stretch_bytes = 2.0 * 4096;
constexpr double write_stretch_bytes = 3.0 * 4096;
constexpr double block_cost_bytes = 8192;
// Memory that a row of a block takes in lists while it is assembled.
constexpr Index listed_row_bytes = 64;
// Blocks that are read in place go in rounds of this many pieces.
constexpr Index pieces_in_round = 256;
// Up to this many slabs, slabs are halved so that two can be in flight at once.
constexpr Index halved_slabs_max = 64;

Indices leading_of(const Indices& extents, int trailing_dims) {
  Indices out;
  for (int d = 0; d < extents.size() - trailing_dims; ++d) out.push_back(extents[d]);
  return out;
}

Index rows_of(const StoredPart& part, int trailing_dims) {
  return checked_product(part.extents) == 0 ? 0 : checked_product(leading_of(part.extents, trailing_dims));
}

/// Returns the bytes of a slab of an array of `array_bytes`.
Index slab_room(Index array_bytes, Index memory_bytes) {
  const Index most = BlockPlan::slabs_bytes_max(memory_bytes);
  return array_bytes <= most || array_bytes > halved_slabs_max * (most / 2) ? most : most / 2;
}

Indices row_major(int dims) {
  Indices out;
  for (int d = 0; d < dims; ++d) out.push_back(d);
  return out;
}

/// Returns a box of the leading dimensions, with all cells of the others.
Box with_trailing(const Box& leading, const Indices& extents) {
  Box out = leading;
  for (int d = leading.dims(); d < extents.size(); ++d) {
    out.lower.push_back(0);
    out.upper.push_back(extents[d]);
  }
  return out;
}

Index flat(const Indices& at, const Indices& extents) {
  Index out = 0;
  for (int d = 0; d < at.size(); ++d) out = out * extents[d] + at[d];
  return out;
}

/// Calls `f(row in the part)` for the rows of a box of its leading dimensions, row-major.
template <class F>
void for_each_row(const Box& leading, const Indices& extents, F&& f) {
  if (leading.dims() == 1) {
    for (Index row = leading.lower[0]; row < leading.upper[0]; ++row) f(row);
    return;
  }
  Indices cell = leading.lower;
  for_each_coordinate(leading.extents(), [&](const Indices& at) {
    for (int d = 0; d < at.size(); ++d) cell[d] = leading.lower[d] + at[d];
    f(flat(cell, extents));
  });
}

Box leading_box(const Box& box, int trailing_dims) {
  return {leading_of(box.lower, trailing_dims), leading_of(box.upper, trailing_dims)};
}

/// Cuts an interval of rows of a part into boxes of consecutive rows, each of at most `rows_max`. The interval begins
/// and ends at an index of the first dimension. If possible, boxes begin at multiples of `grain` in the first
/// dimension.
void cut_rows(const StoredPart& part, int trailing_dims, Index rows_max, Index grain, Interval rows,
              FunctionRef<void(const Box&, Interval)> f) {
  const Indices leading = leading_of(part.extents, trailing_dims);
  const Index rest = checked_product(leading) / leading[0];
  Box box = Box::of_extents(leading);
  Index each = rows_max / rest;
  if (each >= grain) each = each / grain * grain;
  const Index end = rows.upper / rest;
  for (Index at = rows.lower / rest; at < end;) {
    const Index next = each == 0 ? at + 1 : std::min(end, each >= grain ? (at / grain * grain) + each : at + each);
    box.lower[0] = at;
    box.upper[0] = next;
    if (each > 0)
      f(with_trailing(box, part.extents), {at * rest, next * rest});
    else
      for_each_piece(box, row_major(box.dims()), rows_max, [&](const Box& piece, Index first) {
        f(with_trailing(piece, part.extents), {at * rest + first, at * rest + first + piece.count()});
      });
    at = next;
  }
}

/// Returns true if the elements of rows lie in row order: no dimension is behind them, or the last ones are fastest.
bool rows_are_whole(const StoredPart& part, int trailing_dims) {
  const Indices order = dimension_order(part.order, part.extents.size());
  for (int k = part.extents.size() - trailing_dims; k < part.extents.size(); ++k)
    if (order[k] != k) return false;
  return true;
}

}  // namespace

RowNumbers::RowNumbers(const StoredParts& array, int trailing_dims) {
  first_.reserve(array.parts.size() + 1);
  for (const StoredPart& part : array.parts) first_.push_back(checked_add(first_.back(), rows_of(part, trailing_dims)));
}

Index RowNumbers::part_of(Index row) const {
  return std::upper_bound(first_.begin(), first_.end(), row) - first_.begin() - 1;
}

RowMoves::RowMoves(const BlockJob& job) {
  const Distribution &of_source = job.source->spec.distribution, &of_wanted = job.wanted->spec.distribution;
  const int leading = dims_counted(of_source, of_wanted);
  trailing_dims = of_wanted.dims() - leading;
  for (int d = leading; d < of_wanted.dims(); ++d) inner = checked_multiply(inner, of_wanted.extents()[d]);
  const PartPlanner planner(job.source->spec, job.wanted->spec);
  source = RowNumbers(*job.source, trailing_dims);
  wanted = RowNumbers(*job.wanted, trailing_dims);
  from.assign(static_cast<std::size_t>(wanted.count()), none);
  for (Index part = 0; part < static_cast<Index>(job.wanted->parts.size()); ++part) {
    const Index first = wanted.first(part);
    const PartPlan plan = planner.plan(part);
    for (const IndexedTransfer& list : plan.moves.indexed_receives)
      for (std::size_t i = 0; i < list.target_cells.size(); ++i)
        from[first + list.target_cells[i]] = source.first(list.peer) + list.source_cells[i];
  }
}

Index RowBlocks::Piece::blocks() const {
  Index out = 1;
  for (int d = 0; d < shape.size(); ++d) out = checked_multiply(out, ceil_divide(box[d].length(), shape[d]));
  return out;
}

RowBlocks::RowBlocks(const BlockJob& job, std::shared_ptr<const RowMoves> moves, Index memory_bytes,
                     const Options& options)
    : BlockPlan(job, memory_bytes), moves_(std::move(moves)), row_bytes_(checked_multiply(width_, moves_->inner)) {
  const auto has_whole_rows = [&](const StoredParts& array) {
    return std::all_of(array.parts.begin(), array.parts.end(),
                       [&](const StoredPart& part) { return rows_are_whole(part, moves_->trailing_dims); });
  };
  if (!has_whole_rows(*job.source)) apart_ = moves_->inner;
  const bool whole_rows = has_whole_rows(*job.wanted);
  // A block that has a part of each row may have as many rows as cells.
  const Index cell_bytes = whole_rows ? width_ + ceil_divide(listed_row_bytes, std::max<Index>(1, moves_->inner))
                                      : width_ + listed_row_bytes;
  block_cells_max_ = std::max<Index>(1, block_cells_max_ * width_ / cell_bytes);
  part_pieces_.assign(job.wanted->parts.size() + 1, 0);
  if (moves_->inner == 0 || moves_->wanted.count() == 0) return;

  const std::vector<Index>& from = moves_->from;
  for (std::size_t row = 0; row < from.size(); ++row)
    stretches_ += from[row] != RowMoves::none && (row == 0 || from[row] != from[row - 1] + 1);
  std::vector<RowBox> cuts = options.cuts;
  for (Index part = 0; options.cuts.empty() && part < static_cast<Index>(job.wanted->parts.size()); ++part)
    if (const StoredPart& file = job.wanted->parts[part]; checked_product(file.extents) > 0)
      cuts.push_back(
          {part, Box::of_extents(file.extents), {moves_->wanted.first(part), moves_->wanted.first(part + 1)}});

  std::vector<Piece> in_place = pieces_in_place(cuts);
  cost_bytes_ = read_cost() + write_cost(in_place);
  const Index slab_bytes = options.slab_bytes > 0 ? options.slab_bytes : slab_room(job.source->bytes(), memory_bytes);
  if (row_bytes_ <= slab_bytes) {
    slabs_ = cut_source(slab_bytes);
    double slabs_cost = 0;
    for (const RowBox& box : slabs_.boxes)
      slabs_cost += static_cast<double>(box.box.count() * width_) +
                    read_stretch_bytes * static_cast<double>(stretch_count(job.source->parts[box.part], box.box));
    // Each piece costs a block and a stretch of the target; if that is too much, an intermediate is used.
    const double worth =
        std::min(cost_bytes_ - slabs_cost, 4.0 * static_cast<double>(moves_->wanted.count() * row_bytes_));
    const double pieces_max = static_cast<double>(cuts.size()) + worth / (block_cost_bytes + write_stretch_bytes);
    if (slabs_cost < cost_bytes_)
      if (auto pieces = pieces_of(slabs_, cuts, static_cast<std::size_t>(pieces_max)))
        if (slabs_cost += write_cost(*pieces); slabs_cost < cost_bytes_) {
          gathers_ = true;
          cost_bytes_ = slabs_cost;
          use(std::move(*pieces));
          return;
        }
  }
  slabs_ = {};
  use(std::move(in_place));
}

double RowBlocks::read_cost() const {
  double each = read_stretch_bytes;
  if (const PartSource* own = job_.source->source.get())  // a chunk
    each += static_cast<double>(checked_product(own->grain(0)) * width_);
  return static_cast<double>(moves_->wanted.count() * row_bytes_) + each * static_cast<double>(stretches_ * apart_);
}

double RowBlocks::write_cost(const std::vector<Piece>& pieces) const {
  double out = 0;
  for (const Piece& piece : pieces)
    out += block_cost_bytes * static_cast<double>(piece.blocks()) +
           write_stretch_bytes * static_cast<double>(stretch_count(job_.wanted->parts[piece.part], piece.box));
  return out;
}

/// Returns the boxes of the source from which rows are taken, in slabs.
RowBlocks::Slabs RowBlocks::cut_source(Index slab_bytes) const {
  const StoredParts& source = *job_.source;
  const RowNumbers& numbers = moves_->source;
  std::vector<Interval> needed(source.parts.size());
  Index part = 0;
  for (const Index row : moves_->from) {
    if (row == RowMoves::none) continue;
    if (row < numbers.first(part) || row >= numbers.first(part + 1)) part = numbers.part_of(row);
    const Index in_part = row - numbers.first(part);
    needed[part] = joined(needed[part], Interval{in_part, in_part + 1});
  }
  Slabs out;
  Index room = 0;
  const Index rows_max = slab_bytes / row_bytes_;
  for (part = 0; part < static_cast<Index>(source.parts.size()); ++part) {
    if (needed[part].empty()) continue;
    const StoredPart& file = source.parts[part];
    const Indices leading = leading_of(file.extents, moves_->trailing_dims);
    const Index rest = checked_product(leading) / leading[0];
    const Index grain = source.source ? std::max<Index>(1, source.source->grain(part)[0]) : 1;
    Interval rows{needed[part].lower / rest / grain * grain * rest,
                  std::min(leading[0], ceil_divide(ceil_divide(needed[part].upper, rest), grain) * grain) * rest};
    const bool fits = rows.length() <= rows_max;
    cut_rows(file, moves_->trailing_dims, fits ? rows.length() : rows_max, fits ? 1 : grain, rows,
             [&](const Box& box, Interval of_box) {
               const Interval numbered{numbers.first(part) + of_box.lower, numbers.first(part) + of_box.upper};
               if (out.ends.empty() || numbered.length() > room) {
                 out.first_rows.push_back(numbered.lower);
                 out.ends.push_back(out.boxes.size());
                 room = rows_max;
               }
               room = fits ? room - numbered.length() : 0;  // boxes that are cut fill slabs of their own
               out.boxes.push_back({part, box, numbered});
               out.ends.back() = out.boxes.size();
             });
  }
  return out;
}

/// Returns the pieces of the target, each of which takes its rows from one slab. Empty if a cut takes its rows from
/// several slabs and cannot be cut further, or if there are more than `pieces_max`.
std::optional<std::vector<RowBlocks::Piece>> RowBlocks::pieces_of(const Slabs& slabs, const std::vector<RowBox>& cuts,
                                                                  std::size_t pieces_max) const {
  std::vector<Piece> out;
  const auto slab_of = [&](Index row) {
    return std::upper_bound(slabs.first_rows.begin(), slabs.first_rows.end(), row) - slabs.first_rows.begin() - 1;
  };
  for (const RowBox& cut : cuts) {
    const bool divides = cut.box.dims() - moves_->trailing_dims == 1;
    const Index first = moves_->wanted.first(cut.part);
    Index begin = cut.rows.lower, slab = -1;
    const auto close = [&](Index end) {
      Piece piece{.part = cut.part, .round = std::max<Index>(0, slab), .box = cut.box};
      if (divides) {
        piece.box.lower[0] = begin - first;
        piece.box.upper[0] = end - first;
      }
      shape_blocks(piece);
      out.push_back(std::move(piece));
      begin = end;
    };
    for (Index row = cut.rows.lower; row < cut.rows.upper; ++row) {
      const Index from = moves_->from[row];
      if (from == RowMoves::none) continue;
      if (slab >= 0 && from >= slabs.first_rows[slab] &&
          (slab + 1 == static_cast<Index>(slabs.first_rows.size()) || from < slabs.first_rows[slab + 1]))
        continue;
      if (slab >= 0) {
        if (!divides || out.size() >= pieces_max) return std::nullopt;
        close(row);
      }
      slab = slab_of(from);
    }
    close(cut.rows.upper);
  }
  return out;
}

std::vector<RowBlocks::Piece> RowBlocks::pieces_in_place(const std::vector<RowBox>& cuts) const {
  std::vector<Piece> out;
  const StoredOrder order = job_.source->order();
  for (const RowBox& cut : cuts) {
    Piece piece{.part = cut.part, .round = static_cast<Index>(out.size()) / pieces_in_round, .box = cut.box};
    shape_blocks(piece);
    const StoredPart& file = job_.wanted->parts[cut.part];
    const int dims = cut.box.dims();
    const Indices extents = cut.box.extents(), target_order = dimension_order(file.order, dims);
    // Blocks are long in both orders. The leading dimensions of the two sides differ.
    if (const Indices source_order = dimension_order(order, job_.source->parts.front().extents.size());
        source_order.size() == dims && source_order != target_order) {
      const StoredSide from{source_order, extents, Indices::filled(dims, 1), Indices::filled(dims, 0)},
          to{target_order, extents, from.parts, from.dealt};
      piece.shape = round_shape(
          {.extents = extents, .source = from, .target = to, .width = width_, .cells_max = block_cells_max_});
    }
    out.push_back(std::move(piece));
  }
  return out;
}

void RowBlocks::shape_blocks(Piece& piece) const {
  const Indices order = dimension_order(job_.wanted->parts[piece.part].order, piece.box.dims());
  piece.shape = dense_box(piece.box.extents(), order, block_cells_max_);
}

void RowBlocks::use(std::vector<Piece> pieces) {
  pieces_ = std::move(pieces);
  Index rounds = 0;
  for (const Piece& piece : pieces_) rounds = std::max(rounds, piece.round + 1);
  round_pieces_.resize(static_cast<std::size_t>(rounds));
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    piece.first_block =
        i > 0 && pieces_[i - 1].part == piece.part ? pieces_[i - 1].first_block + pieces_[i - 1].blocks() : 0;
    part_pieces_[piece.part + 1] = i + 1;
    round_pieces_[piece.round].push_back(i);
  }
  for (std::size_t part = 1; part < part_pieces_.size(); ++part)
    part_pieces_[part] = std::max(part_pieces_[part], part_pieces_[part - 1]);
  round_count_ = rounds;
  if (!gathers_) return;
  for (Index round = 0; round < rounds; ++round) {
    Index bytes = 0;
    for (const SlabBox& box : slab(round)) bytes += box.box.count() * width_;
    slab_bytes_max_ = std::max(slab_bytes_max_, bytes);
  }
}

Index RowBlocks::block_count(Index part) const {
  const std::size_t end = part_pieces_[part + 1];
  return end == part_pieces_[part] ? 0 : pieces_[end - 1].first_block + pieces_[end - 1].blocks();
}

Box RowBlocks::box(Index part, Index number) const {
  const auto first = pieces_.begin() + static_cast<std::ptrdiff_t>(part_pieces_[part]),
             end = pieces_.begin() + static_cast<std::ptrdiff_t>(part_pieces_[part + 1]);
  const Piece& piece =
      *std::prev(std::upper_bound(first, end, number, [](Index n, const Piece& p) { return n < p.first_block; }));
  Index rest = number - piece.first_block;
  Box out = piece.box;
  for (int d = out.dims() - 1; d >= 0; --d) {
    const Index each = piece.shape[d], count = ceil_divide(piece.box[d].length(), each);
    out.lower[d] = piece.box.lower[d] + rest % count * each;
    out.upper[d] = std::min(piece.box.upper[d], out.lower[d] + each);
    rest /= count;
  }
  return out;
}

std::optional<PartPlan> RowBlocks::moves_of(Index part, const Box& block) const {
  PartPlan out{
      .moves = {.slots = {{.type = job_.wanted->spec.type, .local_extents = job_.wanted->parts[part].extents}}},
      .reaches = {},
      .trailing_dims = moves_->trailing_dims};
  std::map<Index, IndexedTransfer> lists;
  Index peer = -1;
  IndexedTransfer* list = nullptr;
  const RowNumbers& numbers = moves_->source;
  const Indices leading = leading_of(job_.wanted->parts[part].extents, moves_->trailing_dims);
  for_each_row(leading_box(block, moves_->trailing_dims), leading, [&](Index row) {
    const Index from = moves_->from[moves_->wanted.first(part) + row];
    if (from == RowMoves::none) return;
    if (peer < 0 || from < numbers.first(peer) || from >= numbers.first(peer + 1)) {
      peer = numbers.part_of(from);
      list = &lists.try_emplace(peer, IndexedTransfer{.peer = static_cast<Rank>(peer), .inner = moves_->inner})
                  .first->second;
    }
    list->source_cells.push_back(from - numbers.first(peer));
    list->target_cells.push_back(row);
  });
  for (auto& [from, cells] : lists) out.moves.indexed_receives.push_back(std::move(cells));
  return out;
}

void RowBlocks::for_each_block(Index round, FunctionRef<void(Index, Index)> f) const {
  for (const std::size_t i : round_pieces_[round])
    for (Index n = 0; n < pieces_[i].blocks(); ++n) f(pieces_[i].part, pieces_[i].first_block + n);
}

std::vector<BlockPlan::SlabBox> RowBlocks::slab(Index round) const {
  std::vector<SlabBox> out;
  if (slabs_.ends.empty() || round_pieces_[round].empty()) return out;
  Index offset = 0;
  for (std::size_t i = round == 0 ? 0 : slabs_.ends[round - 1]; i < slabs_.ends[round]; ++i) {
    out.push_back({slabs_.boxes[i].part, slabs_.boxes[i].box, offset});
    offset += slabs_.boxes[i].box.count() * width_;
  }
  return out;
}

Index RowBlocks::bytes_read() const {
  if (gathers_) return slab_bytes_read();
  // A block reads each page that it needs once, so never more than the whole source.
  const Index source_bytes =
      checked_add(job_.source->bytes(), 2 * page_bytes * static_cast<Index>(job_.source->parts.size()));
  Index out = 0;
  for (const Piece& piece : pieces_) {
    const Box leading = leading_box(piece.box, moves_->trailing_dims);
    const Index first = moves_->wanted.first(piece.part), rows = leading.count();
    // The stretches that a block takes, of one row and of consecutive rows.
    Index stretches = leading.dims() == 1 ? 0 : rows, blocks_behind = 1;
    for (Index row = leading.lower[0]; leading.dims() == 1 && row < leading.upper[0]; ++row)
      stretches += row == leading.lower[0] || moves_->from[first + row] != moves_->from[first + row - 1] + 1;
    for (int d = leading.dims(); d < piece.box.dims(); ++d)
      blocks_behind = checked_multiply(blocks_behind, ceil_divide(piece.box[d].length(), piece.shape[d]));
    stretches = checked_multiply(checked_add(stretches, piece.blocks()), checked_multiply(blocks_behind, apart_));
    out = checked_add(out, std::min(checked_add(rows * row_bytes_, checked_multiply(stretches, 2 * page_bytes)),
                                    checked_multiply(piece.blocks(), source_bytes)));
  }
  return out;
}

std::optional<RowsBetween> rows_between(const BlockJob& job, const RowMoves& moves, Index memory_bytes,
                                        Index offset_bytes) {
  const StoredParts& wanted = *job.wanted;
  const Index row_bytes = size_bytes(wanted.spec.type) * moves.inner;
  RowBlocks::Options second;
  second.slab_bytes = slab_room(wanted.bytes(), memory_bytes);
  const Index rows_max = std::max<Index>(1, second.slab_bytes / row_bytes);

  auto into = std::make_shared<RowMoves>(), out_of = std::make_shared<RowMoves>();
  into->trailing_dims = out_of->trailing_dims = moves.trailing_dims;
  into->inner = out_of->inner = moves.inner;
  into->source = moves.source;
  out_of->wanted = moves.wanted;
  out_of->from.assign(moves.from.size(), RowMoves::none);

  // Rows of the target that are collected for one part, by their position in `cuts`.
  std::vector<Index> bounds{0};
  std::size_t first_cut = 0;
  Index collected = 0;
  const auto close = [&] {
    std::vector<Index> rows;
    for (std::size_t i = first_cut; i < second.cuts.size(); ++i)
      for (Index row = second.cuts[i].rows.lower; row < second.cuts[i].rows.upper; ++row)
        if (moves.from[row] != RowMoves::none) rows.push_back(moves.from[row]);
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (std::size_t i = first_cut; i < second.cuts.size(); ++i)
      for (Index row = second.cuts[i].rows.lower; row < second.cuts[i].rows.upper; ++row)
        if (moves.from[row] != RowMoves::none)
          out_of->from[row] =
              bounds.back() + (std::lower_bound(rows.begin(), rows.end(), moves.from[row]) - rows.begin());
    into->from.insert(into->from.end(), rows.begin(), rows.end());
    if (!rows.empty()) bounds.push_back(static_cast<Index>(into->from.size()));
    first_cut = second.cuts.size();
    collected = 0;
  };
  for (Index part = 0; part < static_cast<Index>(wanted.parts.size()); ++part) {
    const Index first = moves.wanted.first(part), rows = moves.wanted.first(part + 1) - first;
    if (rows == 0) continue;
    cut_rows(wanted.parts[part], moves.trailing_dims, std::min(rows, rows_max), 1, {0, rows},
             [&](const Box& box, Interval of_box) {
               if (collected + of_box.length() > rows_max) close();
               second.cuts.push_back({part, box, {first + of_box.lower, first + of_box.upper}});
               collected += of_box.length();
             });
  }
  close();
  if (bounds.size() == 1) return std::nullopt;

  const int dims = 1 + moves.trailing_dims;
  Indices extents{bounds.back()}, grid = Indices::filled(dims, 1);
  grid[0] = static_cast<Index>(bounds.size()) - 1;
  std::vector<Partition> partitions{irregular(bounds)};
  for (int d = 1; d < dims; ++d) {
    extents.push_back(wanted.spec.distribution.extents()[wanted.spec.distribution.dims() - dims + d]);
    partitions.push_back(whole());
  }
  StoredParts parts{.spec = {wanted.spec.type, Distribution(extents, Grid(grid), std::move(partitions))},
                    .descr = job.source->descr};
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    extents[0] = bounds[i + 1] - bounds[i];
    parts.parts.push_back({.offset_bytes = offset_bytes, .order = {}, .extents = extents});
    offset_bytes = round_up_to_page(checked_add(offset_bytes, parts.part_bytes(static_cast<Index>(i))));
  }
  into->wanted = out_of->source = RowNumbers(parts, moves.trailing_dims);
  return RowsBetween{std::move(parts), std::move(into), std::move(out_of), std::move(second)};
}

}  // namespace tranship
