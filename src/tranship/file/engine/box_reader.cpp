#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <tranship/base/fail.hpp>
#include <tranship/file/engine/box_reader.hpp>
#include <tranship/plan/clip.hpp>

namespace tranship {
namespace {

/// From this length on, a row is read straight to where it belongs; below it, a system call costs more than the second
/// copy of rows that are read together.
constexpr Index direct_row_bytes = 4096;
/// Pieces that are shorter are not worth a system call: they are taken from a mapping of a stretch of the file.
constexpr Index piece_bytes_min = 1024;
/// A row of a window is read with the gaps in it when they are at most so many times what is needed.
constexpr Index gap_ratio_max = 3;

/// The source in addresses that are never read: byte n of the file stands at `origin` + n.
SlotAddress file_address(const StoredPart& part, ElementType type, std::byte* origin) {
  return address_of(view_of(part, type, origin + part.offset_bytes));
}

/// Goes through the rows of a block whose last dimension is contiguous on both sides: `f(source bytes, target bytes)`,
/// offsets from the two bases.
template <class F>
void for_each_row(const CopyBlock& block, F&& f) {
  long long at[block_dims_max] = {};
  long long source = 0, target = 0;
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
  if (move.move != Move::copy || block.dims == 0) return false;
  const int row = block.dims - 1;
  return block.source_strides[row] == move.width && block.target_strides[row] == move.width;
}

/// Reads pieces of a file one after the other into memory, joining those that follow each other in the file.
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

/// The runs that may write to an interval.
std::span<const Run> touching(const std::vector<Run>& runs, const EntryReach& reach, const Interval& within) {
  if (!reach.ascending) return runs;
  const auto first = std::partition_point(runs.begin(), runs.end(),
                                          [&](const Run& r) { return target_hull(r).upper <= within.lower; });
  const auto end =
      std::partition_point(first, runs.end(), [&](const Run& r) { return target_hull(r).lower < within.upper; });
  return {first, end};
}

Interval source_hull_of(const std::vector<Run>& runs) {
  Interval out = source_hull(runs.front());
  for (const Run& run : runs) {
    const Interval hull = source_hull(run);
    out = {std::min(out.lower, hull.lower), std::max(out.upper, hull.upper)};
  }
  return out;
}

Index cells_of(const std::vector<Run>& runs) {
  Index out = 0;
  for (const Run& run : runs) out += run.cells();
  return out;
}

}  // namespace

Index BoxReader::read(const StoredParts& source, const PartPlan& plan, const Box& box, const StridedView& target,
                      std::span<std::byte> bytes) {
  const SlotAddress to = address_of(target);
  way_ = copy_method(static_cast<long long>(bytes.size()));
  // A part is given by one group, or by lists; what is not given is zero.
  if (plan.moves.receives.empty()) {
    std::memset(bytes.data(), 0, bytes.size());
    Index given_bytes = 0;
    for (const IndexedTransfer& list : plan.moves.indexed_receives)
      given_bytes += read_indexed(source, plan, list, box, to);
    return given_bytes;
  }
  const TransferGroup& group = plan.moves.receives.front();
  const Index given_cells = clip_group(group, plan.reaches, box);
  if (given_cells < box.count()) std::memset(bytes.data(), 0, bytes.size());
  if (given_cells > 0) read_group(source, plan.moves, group, to);
  return given_cells * size_bytes(target.type);
}

/// Leaves in clipped_ what touches the box, counted from its corner. Returns the cells of all combinations.
Index BoxReader::clip_group(const TransferGroup& group, const std::vector<std::vector<EntryReach>>& reaches,
                            const Box& box) {
  Index cells = 1;
  clipped_.resize(group.axes.size());
  for (std::size_t k = 0; k < group.axes.size(); ++k) {
    const Interval within = box[group.target_dims[k]];
    std::vector<AxisEntry>& out = clipped_[k];
    out.clear();
    Index cells_along = 0;
    for (std::size_t e = 0; e < group.axes[k].size(); ++e) {
      if (intersect(reaches[k][e].hull, within).empty()) continue;
      AxisEntry entry{group.axes[k][e].peer, {}};
      for (const Run& run : touching(group.axes[k][e].runs, reaches[k][e], within)) clip(run, within, entry.runs);
      if (entry.runs.empty()) continue;
      for (Run& run : entry.runs) run.target -= within.lower;
      cells_along += entry.cells();
      out.push_back(std::move(entry));
    }
    cells *= cells_along;
  }
  return cells;
}

void BoxReader::read_group(const StoredParts& source, const TransferPlan& plan, const TransferGroup& group,
                           const SlotAddress& target) {
  one_.source_dims = group.source_dims;
  one_.target_dims = group.target_dims;
  one_.axes.resize(clipped_.size());
  Indices counts;
  for (const auto& entries : clipped_) counts.push_back(static_cast<Index>(entries.size()));
  for_each_coordinate(counts, [&](const Indices& at) {
    Place place{.coordinates = {}, .replica = group.peer_replica};
    for (int k = 0; k < at.size(); ++k) {
      const AxisEntry& entry = clipped_[k][at[k]];
      place.coordinates.push_back(entry.peer);
      one_.axes[k].assign(1, entry);
    }
    const Rank ordinal = plan.peer_grids[group.peer_grid].rank_of(place);
    read_transfer(*source.files, source.parts[ordinal], source.spec.type, target);
  });
}

/// Leaves in moves_ the moves of the combination that one_ holds.
void BoxReader::lower(const SlotAddress& source, const SlotAddress& target, ElementType type) {
  std::byte* no_staging = nullptr;
  const Transfer transfer{&one_, 0, Indices::filled(static_cast<int>(one_.axes.size()), 0)};
  lower_transfer(transfer, type, source, target, Hop::direct, no_staging, moves_);
}

void BoxReader::run_moves() {
  for (const LoweredMove& move : moves_) move.run(way_);
  moves_.clear();
}

void BoxReader::read_transfer(const FileSet& files, const StoredPart& part, ElementType type,
                              const SlotAddress& target) {
  if (read_rows(files, part, type, target) || read_through_window(files, part, type, target)) return;
  // Any address that is not null: only distances from it count.
  std::byte* const origin = target.data;
  lower(file_address(part, type, origin), target, type);
  for (const LoweredMove& move : moves_) move_mapped(files, part.file, move, move.source - origin);
  moves_.clear();
}

/// Bytes of the file from `offset_bytes` on, which are no more than a window holds.
std::byte* BoxReader::mapped(const FileSet& files, Index file, Index offset_bytes, Index size_bytes) {
  if (mapped_set_ != &files || mapped_file_ != file || !mapped_->covers(offset_bytes, size_bytes)) {
    mapped_set_ = nullptr;
    mapped_ = files.map(file, offset_bytes);
    mapped_set_ = &files;
    mapped_file_ = file;
    TRANSHIP_ASSERT(mapped_->covers(offset_bytes, size_bytes));
  }
  return const_cast<std::byte*>(mapped_->at(offset_bytes));
}

/// Makes a move whose source is the file, its first element at `base_bytes`, in pieces that a window holds.
void BoxReader::move_mapped(const FileSet& files, Index file, const LoweredMove& move, Index base_bytes) {
  const CopyBlock& block = move.block;
  Index before = 0, after = move.width;  // of the first element, and to the end of the last
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
  if (after - before <= FileSet::window_bytes || widest < 0) {
    LoweredMove piece = move;
    piece.source = mapped(files, file, base_bytes + before, after - before) - before;
    piece.run(way_);
    return mapped_->check();
  }
  const Index stride = block.source_strides[widest];
  const Index room = FileSet::window_bytes - (after - before - widest_bytes);
  const Index step = std::clamp<Index>(room / std::abs(stride) + 1, 1, block.extents[widest] - 1);
  LoweredMove piece = move;
  for (Index at = 0; at < block.extents[widest]; at += step) {
    piece.block.extents[widest] = std::min<Index>(step, block.extents[widest] - at);
    piece.target = move.target + at * block.target_strides[widest];
    move_mapped(files, file, piece, base_bytes + at * stride);
  }
}

/// Where rows are long on both sides.
bool BoxReader::read_rows(const FileSet& files, const StoredPart& part, ElementType type, const SlotAddress& target) {
  // Any address that is not null: only distances from it count.
  std::byte* const origin = target.data;
  lower(file_address(part, type, origin), target, type);
  Index bytes = 0, rows = 0;
  bool all_rows = true;
  for (const LoweredMove& move : moves_) {
    all_rows = all_rows && has_rows(move);
    if (!all_rows) break;
    bytes += move.bytes();
    rows += move.bytes() / (move.block.extents[move.block.dims - 1] * move.width);
  }
  const bool worth_it = all_rows && bytes >= rows * direct_row_bytes;
  if (worth_it)
    for (const LoweredMove& move : moves_) {
      const auto row_bytes = static_cast<std::size_t>(move.block.extents[move.block.dims - 1] * move.width);
      const Index first = move.source - origin;
      for_each_row(move.block, [&](long long source_bytes, long long target_bytes) {
        files.read(part.file, first + source_bytes, {move.target + target_bytes, row_bytes});
      });
    }
  moves_.clear();
  return worth_it;
}

/// Where orders differ or rows are short: the source's rows are read together into a window, densely, and moved from
/// there.
bool BoxReader::read_through_window(const FileSet& files, const StoredPart& part, ElementType type,
                                    const SlotAddress& target) {
  const int dims = static_cast<int>(one_.axes.size());
  const Index width = size_bytes(type);
  const Indices order = dimension_order(part.order, part.extents.size());
  // Table k runs along dimension k of both sides in every redistribution.
  std::vector<std::vector<Run>> tables;
  for (const auto& axis : one_.axes) tables.push_back(axis.front().runs);
  const int fastest = order[dims - 1];
  Interval row = source_hull_of(tables[fastest]);
  if (row.length() > (1 + gap_ratio_max) * cells_of(tables[fastest])) return false;
  if (2 * row.length() >= part.extents[fastest]) row = {0, part.extents[fastest]};

  // One combination of outer runs at a time; along them the window holds what is needed and nothing else.
  Index row_cells_max = row.length(), outer_cells_max = 1;
  bool joins = row.length() == part.extents[fastest];
  Index piece_bytes = row.length() * width;
  for (int k = dims - 2; k >= 0; --k) {
    Index longest = 0, stretch = 0;
    for (const Run& run : tables[order[k]]) {
      longest = std::max(longest, run.cells());
      if (run.source_step == 1) stretch = std::max(stretch, run.length);
    }
    outer_cells_max = checked_multiply(outer_cells_max, longest);
    if (joins) piece_bytes *= std::max<Index>(1, stretch);
    joins = joins && stretch == part.extents[order[k]];
  }
  const Index needed_bytes = checked_multiply(checked_multiply(row_cells_max, outer_cells_max), width);
  const Index part_bytes = checked_multiply(checked_product(part.extents), width);
  if (needed_bytes > window_bytes_ || piece_bytes < std::min(piece_bytes_min, part_bytes)) return false;
  if (!window_) window_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(window_bytes_));

  const SlotAddress in_file = file_address(part, type, target.data);
  for (Run& run : one_.axes[fastest].front().runs) run.source -= row.lower;
  Indices counts;
  for (int k = 0; k < dims - 1; ++k) counts.push_back(static_cast<Index>(tables[order[k]].size()));
  for_each_coordinate(counts, [&](const Indices& at) {
    Indices cells;
    for (int k = 0; k < dims - 1; ++k) cells.push_back(tables[order[k]][at[k]].cells());
    PieceReader pieces(files, part.file, window_.get());
    for_each_coordinate(cells, [&](const Indices& cell) {
      Index offset = part.offset_bytes + row.lower * width;
      for (int k = 0; k < dims - 1; ++k) {
        const Run& run = tables[order[k]][at[k]];
        offset += (run.source + cell[k] / run.length * run.source_pitch + cell[k] % run.length * run.source_step) *
                  in_file.strides_bytes[order[k]];
      }
      pieces.add(offset, row.length() * width);
    });
    pieces.flush();

    SlotAddress window{.data = window_.get(), .dims = dims, .part_stride_bytes = in_file.part_stride_bytes};
    window.strides_bytes[fastest] = width;
    Index stride = row.length() * width;
    for (int k = dims - 2; k >= 0; --k) {
      Run run = tables[order[k]][at[k]];
      run.source = 0;
      run.source_step = 1;
      run.source_pitch = run.length;
      one_.axes[order[k]].front().runs.assign(1, run);
      window.strides_bytes[order[k]] = stride;
      stride *= run.cells();
    }
    lower(window, target, type);
    run_moves();
  });
  return true;
}

/// Reads the rows of a move whose source is the file, straight to where they belong, in the order of the file.
void BoxReader::read_listed_rows(const FileSet& files, Index file, const LoweredMove& move, Index base_bytes) {
  const std::vector<long long>&from = *move.source_rows, &to = *move.target_rows;
  const Index row_bytes = move.indexed.row_length * move.width;
  std::vector<std::size_t> order(from.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return from[a] < from[b]; });
  for (const std::size_t row : order) {
    std::byte* const target = move.target + to[row];
    const Index offset = base_bytes + from[row];
    if (row_bytes >= piece_bytes_min)
      files.read(file, offset, {target, static_cast<std::size_t>(row_bytes)});
    else
      std::memcpy(target, mapped(files, file, offset, row_bytes), static_cast<std::size_t>(row_bytes));
  }
  if (mapped_) mapped_->check();
}

/// Moves what a list of cells gives to a box. Returns its bytes.
Index BoxReader::read_indexed(const StoredParts& source, const PartPlan& plan, const IndexedTransfer& list,
                              const Box& box, const SlotAddress& target) {
  const StoredPart& part = source.parts[list.peer];
  const Indices& extents = plan.moves.slots[list.target_slot].local_extents;
  const int leading = box.dims() - plan.trailing_dims;
  const auto flat = [&](const Indices& at) {
    Index out = 0;
    for (int d = 0; d < leading; ++d) out = out * extents[d] + at[d];
    return out;
  };
  Indices last = box.upper;
  for (Index& i : last) --i;
  const auto first_at = std::lower_bound(list.target_cells.begin(), list.target_cells.end(), flat(box.lower));
  const auto end_at = std::upper_bound(first_at, list.target_cells.end(), flat(last));

  IndexedTransfer here{.inner = 1};
  for (auto at = first_at; at != end_at; ++at) {
    Index rest = *at, cell = 0, size = 1;
    bool inside = true;
    for (int d = leading - 1; d >= 0; --d) {
      const Index i = rest % extents[d];
      rest /= extents[d];
      inside = inside && box[d].contains(i);
      cell += (i - box.lower[d]) * size;
      size *= box[d].length();
    }
    if (!inside) continue;
    here.source_cells.push_back(list.source_cells[at - list.target_cells.begin()]);
    here.target_cells.push_back(cell);
  }
  if (here.source_cells.empty()) return 0;

  std::byte* const origin = target.data;  // as above
  SlotAddress from = file_address(part, source.spec.type, origin);
  for (int k = 1; k <= plan.trailing_dims; ++k) {
    const int d = box.dims() - k, source_d = from.dims - k;
    here.inner *= box[d].length();
    from.data += box.lower[d] * from.strides_bytes[source_d];
    from.local_extents[source_d] = box[d].length();
  }
  std::byte* no_staging = nullptr;
  lower_indexed(here, source.spec.type, from, target, Hop::direct, no_staging, moves_);
  Index bytes = 0;
  for (const LoweredMove& move : moves_) {
    TRANSHIP_ASSERT(move.is_indexed && move.move == Move::copy);
    read_listed_rows(*source.files, part.file, move, move.source - origin);
    bytes += move.bytes();
  }
  moves_.clear();
  return bytes;
}

}  // namespace tranship
