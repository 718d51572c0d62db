#include "tranship/file/store/strided_source.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <tranship/base/fail.hpp>
#include <tranship/plan/clip.hpp>

namespace tranship {
namespace {

/// From this length on, a row is read straight to its target. Below it, a system call costs more than the second copy
/// of rows that are read together.
constexpr Index direct_row_bytes = 4096;
/// Shorter pieces do not repay a system call: they are copied from a mapping of a stretch of the file.
constexpr Index piece_bytes_min = 1024;
/// A row of a window is read including its gaps if they are at most this many times the bytes needed.
constexpr Index gap_ratio_max = 3;

/// Limit on the stretches that are listed before they are read: a list of very short ones would outgrow their content.
constexpr std::size_t stretches_max = 4096;

/// Returns the layout of a part in its file: the slot is the file, from its first byte on.
SlotLayout layout_in_file(const StoredPart& part, ElementType type) {
  SlotLayout out = layout_of(view_of(part, type, nullptr));
  out.offset_bytes = part.offset_bytes;
  return out;
}

/// Calls `f(source bytes, target bytes)`, with offsets in the two slots, for the rows of a block whose last dimension
/// is contiguous on both sides.
template <class F>
void for_each_row(const LoweredMove& move, F&& f) {
  const CopyBlock& block = move.block;
  long long at[block_dims_max] = {};
  Index source = move.source.offset_bytes, target = move.target.offset_bytes;
  const int row = block.dims - 1;
  for (;;) {
    f(source, target);
    int d = row - 1;
    for (; d >= 0 && ++at[d] == block.extents[d]; --d) {
      source -= (block.extents[d] - 1) * block.source_strides[d];
      target -= (block.extents[d] - 1) * block.target_strides[d];
      at[d] = 0;
    }
    if (d < 0) return;
    source += block.source_strides[d];
    target += block.target_strides[d];
  }
}

bool has_rows(const LoweredMove& move) {
  const CopyBlock& block = move.block;
  if (move.move != ElementMap::copy || block.dims == 0) return false;
  const int row = block.dims - 1;
  return block.source_strides[row] == move.width && block.target_strides[row] == move.width;
}

/// Reads pieces of a file, one after the other, into memory, and joins pieces that are consecutive in the file.
class PieceReader {
 public:
  PieceReader(const FileSet& files, Index file, std::byte* to) : files_(files), file_(file), to_(to) {}

  void add(Index offset_bytes, Index size_bytes) {
    if (offset_bytes != begin_ + size_) {
      flush();
      begin_ = offset_bytes;
    }
    size_ += size_bytes;
  }
  void flush() {
    files_.read(file_, begin_, {to_, static_cast<std::size_t>(size_)});
    to_ += size_;
    begin_ += size_;
    size_ = 0;
  }

 private:
  const FileSet& files_;
  Index file_;
  std::byte* to_;
  Index begin_ = 0;
  Index size_ = 0;
};

Interval source_hull_of(const std::vector<Run>& runs) {
  Interval out;
  for (const Run& run : runs) out = joined(out, source_hull(run));
  return out;
}

Index cells_of(const std::vector<Run>& runs) {
  Index out = 0;
  for (const Run& run : runs) out += run.cells();
  return out;
}

/// Returns true if elements are consecutive without a gap, with the last dimension of the order fastest.
bool is_dense(const StridedView& view, const Indices& order) {
  Index next = 1;
  for (int k = order.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(order[k]);
    if (view.extents[d] > 1 && view.strides[d] != next) return false;
    next *= view.extents[d];
  }
  return true;
}

/// One read of one part into memory.
class PartRead {
 public:
  PartRead(const StoredParts& array, Index part, const StridedView& target, ReadScratch& scratch)
      : files_(*array.files),
        part_(array.parts[part]),
        type_(array.spec.type),
        in_file_(layout_in_file(part_, type_)),
        target_(layout_of(target)),
        base_(static_cast<std::byte*>(target.data)),
        scratch_(scratch) {}

  void read_runs(const TransferGroup& cells) {
    lower(cells, in_file_);
    if (read_rows() || read_through_window(cells)) return;
    for (const LoweredMove& move : scratch_.moves) move_mapped(move);
  }
  void read_listed(const IndexedTransfer& cells, const Box& trailing);

 private:
  /// Leaves the moves of a group of one combination in the scratch.
  void lower(const TransferGroup& cells, const SlotLayout& source) {
    scratch_.moves.clear();
    lower_transfer({&cells, 0, Indices::filled(static_cast<int>(cells.axes.size()), 0)}, type_, source, target_,
                   scratch_.moves);
    route(scratch_.moves, Hop::direct);
  }
  void move_mapped(const LoweredMove& move);
  bool read_rows();
  bool read_through_window(const TransferGroup& cells);
  void read_listed_rows(const LoweredMove& move);

  const FileSet& files_;
  const StoredPart& part_;
  ElementType type_;
  SlotLayout in_file_;
  SlotLayout target_;
  std::byte* base_;  // of the target
  ReadScratch& scratch_;
};

/// Runs a move whose source is the file, in pieces that fit in a window.
void PartRead::move_mapped(const LoweredMove& move) {
  const CopyBlock& block = move.block;
  Index before = 0, after = move.width;  // bytes before the first element, and to the end of the last
  int widest = -1;
  Index widest_bytes = 0;
  for (int d = 0; d < block.dims; ++d) {
    const Index reach = (block.extents[d] - 1) * block.source_strides[d];
    (reach < 0 ? before : after) += reach;
    if (std::abs(reach) > widest_bytes) {
      widest = d;
      widest_bytes = std::abs(reach);
    }
  }
  LoweredMove piece = move;
  if (after - before <= FileSet::window_bytes || widest < 0) {
    const std::byte* const stretch =
        scratch_.mapped(files_, part_.file, move.source.offset_bytes + before, after - before);
    piece.source.offset_bytes = -before;  // in the stretch
    piece.run(scratch_.way, stretch, base_);
    return scratch_.check_mapped();
  }
  const Index stride = block.source_strides[widest];
  const Index room = FileSet::window_bytes - (after - before - widest_bytes);
  const Index step = std::clamp<Index>(room / std::abs(stride) + 1, 1, block.extents[widest] - 1);
  for (Index at = 0; at < block.extents[widest]; at += step) {
    piece.block.extents[widest] = std::min<Index>(step, block.extents[widest] - at);
    piece.source.offset_bytes = move.source.offset_bytes + at * stride;
    piece.target.offset_bytes = move.target.offset_bytes + at * block.target_strides[widest];
    move_mapped(piece);
  }
}

/// Reads rows directly if the rows of all moves are long on both sides; otherwise returns false.
bool PartRead::read_rows() {
  Index bytes = 0, rows = 0;
  for (const LoweredMove& move : scratch_.moves) {
    if (!has_rows(move)) return false;
    bytes += move.bytes();
    rows += move.bytes() / row_bytes_of(move.block, move.width);
  }
  if (bytes < rows * direct_row_bytes) return false;
  for (const LoweredMove& move : scratch_.moves) {
    const auto row_bytes = static_cast<std::size_t>(row_bytes_of(move.block, move.width));
    for_each_row(move, [&](Index source_bytes, Index target_bytes) {
      files_.read(part_.file, source_bytes, {base_ + target_bytes, row_bytes});
    });
  }
  return true;
}

/// For other orders or short rows: reads the source's rows together into a window, densely, and moves them from there.
/// Returns false if that does not pay.
bool PartRead::read_through_window(const TransferGroup& cells) {
  const int dims = static_cast<int>(cells.axes.size());
  const Index width = size_bytes(type_);
  const Indices order = dimension_order(part_.order, part_.extents.size());
  // Table k runs along dimension k of both sides in every redistribution.
  std::vector<std::vector<Run>> tables;
  for (const auto& axis : cells.axes) tables.push_back(axis.front().runs);
  const int fastest = order[dims - 1];
  Interval row = source_hull_of(tables[fastest]);
  if (row.length() > (1 + gap_ratio_max) * cells_of(tables[fastest])) return false;
  if (2 * row.length() >= part_.extents[fastest]) row = {0, part_.extents[fastest]};

  // Reads one combination of outer runs at a time; along these, the window holds only cells that are needed.
  Index row_cells_max = row.length(), outer_cells_max = 1;
  bool joins = row.length() == part_.extents[fastest];
  Index piece_bytes = row.length() * width;
  for (int k = dims - 2; k >= 0; --k) {
    Index longest = 0, stretch = 0;
    for (const Run& run : tables[order[k]]) {
      longest = std::max(longest, run.cells());
      if (run.source_step == 1) stretch = std::max(stretch, run.length);
    }
    outer_cells_max = checked_multiply(outer_cells_max, longest);
    if (joins) piece_bytes *= std::max<Index>(1, stretch);
    joins = joins && stretch == part_.extents[order[k]];
  }
  const Index needed_bytes = checked_multiply(checked_multiply(row_cells_max, outer_cells_max), width);
  const Index part_bytes = checked_multiply(checked_product(part_.extents), width);
  if (needed_bytes > scratch_.window_bytes() || piece_bytes < std::min(piece_bytes_min, part_bytes)) return false;

  TransferGroup& in_window = scratch_.cells;
  in_window = cells;
  for (Run& run : in_window.axes[fastest].front().runs) run.source -= row.lower;
  Indices counts;
  for (int k = 0; k < dims - 1; ++k) counts.push_back(static_cast<Index>(tables[order[k]].size()));
  for_each_coordinate(counts, [&](const Indices& at) {
    Indices cells_along;
    for (int k = 0; k < dims - 1; ++k) cells_along.push_back(tables[order[k]][at[k]].cells());
    PieceReader pieces(files_, part_.file, scratch_.window());
    for_each_coordinate(cells_along, [&](const Indices& cell) {
      Index offset = in_file_.offset_bytes + row.lower * width;
      for (int k = 0; k < dims - 1; ++k) {
        const Run& run = tables[order[k]][at[k]];
        offset += (run.source + cell[k] / run.length * run.source_pitch + cell[k] % run.length * run.source_step) *
                  in_file_.strides_bytes[order[k]];
      }
      pieces.add(offset, row.length() * width);
    });
    pieces.flush();

    SlotLayout window{.dims = dims, .part_stride_bytes = in_file_.part_stride_bytes};
    window.strides_bytes[fastest] = width;
    Index stride = row.length() * width;
    for (int k = dims - 2; k >= 0; --k) {
      Run run = tables[order[k]][at[k]];
      run.source = 0;
      run.source_step = 1;
      run.source_pitch = run.length;
      in_window.axes[order[k]].front().runs.assign(1, run);
      window.strides_bytes[order[k]] = stride;
      stride *= run.cells();
    }
    lower(in_window, window);
    for (const LoweredMove& move : scratch_.moves) move.run(scratch_.way, scratch_.window(), base_);
  });
  return true;
}

/// Reads the rows of a move whose source is the file straight to their targets, in the order of the file.
void PartRead::read_listed_rows(const LoweredMove& move) {
  const std::vector<long long>&from = *move.source_rows, &to = *move.target_rows;
  const Index row_bytes = move.indexed.row_length * move.width;
  std::vector<std::size_t> order(from.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return from[a] < from[b]; });
  for (const std::size_t row : order) {
    std::byte* const here = base_ + move.target.offset_bytes + to[row];
    const Index offset = move.source.offset_bytes + from[row];
    if (row_bytes >= piece_bytes_min)
      files_.read(part_.file, offset, {here, static_cast<std::size_t>(row_bytes)});
    else
      std::memcpy(here, scratch_.mapped(files_, part_.file, offset, row_bytes), static_cast<std::size_t>(row_bytes));
  }
  scratch_.check_mapped();
}

void PartRead::read_listed(const IndexedTransfer& cells, const Box& trailing) {
  scratch_.moves.clear();
  lower_indexed(cells, type_, narrowed(in_file_, trailing), target_, scratch_.moves);
  for (const LoweredMove& move : scratch_.moves) {
    TRANSHIP_ASSERT(move.is_indexed && move.move == ElementMap::copy);
    read_listed_rows(move);
  }
}

}  // namespace

void StridedSource::read(Index part, const Box& box, const StridedView& target, ReadScratch& scratch) const {
  if (box.empty()) return;
  const StoredPart& from = array_.parts[part];
  if (!is_dense(target, dimension_order(from.order, box.dims())))
    return read_runs(part, cells_of(box), target, scratch);
  std::vector<FileSet::Stretch> stretches;
  const std::span<std::byte> bytes(static_cast<std::byte*>(target.data),
                                   static_cast<std::size_t>(box.count() * size_bytes(target.type)));
  for_each_stretch(from, size_bytes(target.type), box, [&](Index offset, Index in_box, Index size) {
    stretches.push_back({offset, bytes.subspan(static_cast<std::size_t>(in_box), static_cast<std::size_t>(size))});
    if (stretches.size() < stretches_max) return;
    array_.files->read(from.file, stretches);
    stretches.clear();
  });
  array_.files->read(from.file, stretches);
}

void StridedSource::read_runs(Index part, const TransferGroup& cells, const StridedView& target,
                              ReadScratch& scratch) const {
  PartRead(array_, part, target, scratch).read_runs(cells);
}

void StridedSource::read_listed(Index part, const IndexedTransfer& cells, const Box& trailing,
                                const StridedView& target, ReadScratch& scratch) const {
  PartRead(array_, part, target, scratch).read_listed(cells, trailing);
}

}  // namespace tranship
