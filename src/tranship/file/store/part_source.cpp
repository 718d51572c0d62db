#include "tranship/file/store/part_source.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <tranship/base/fail.hpp>
#include <tranship/plan/clip.hpp>

namespace tranship {
namespace {

/// The runs of one dimension that read from one box. Their cells along it are `hull`; they count from its corner.
struct Cut {
  Interval hull;
  std::vector<Run> runs;
};

/// The pieces that are read along one dimension, by number: chunks, or pieces of each chunk if chunks are too large.
struct Pieces {
  Index chunk = 1;
  Index length = 1;

  Index per_chunk() const { return ceil_divide(chunk, length); }
  Index number_of(Index cell) const { return cell / chunk * per_chunk() + cell % chunk / length; }
  Interval operator[](Index number) const {
    const Index begin = number / per_chunk() * chunk, lower = begin + number % per_chunk() * length;
    return {lower, std::min(lower + length, begin + chunk)};
  }
};

/// Halves the slowest dimensions until at most `cells_max` cells are left.
Indices shrunk(Indices extents, Index cells_max) {
  for (Index& extent : extents) extent = std::max<Index>(1, extent);
  for (int d = 0; d < extents.size();) {
    if (checked_product(extents) <= cells_max) break;
    if (extents[d] == 1)
      ++d;
    else
      extents[d] = ceil_divide(extents[d], 2);
  }
  return extents;
}

/// Cuts the cells that runs read into pieces. Visits the repeats of a run, which are at most as many as its cells, and
/// not the gaps between them.
std::vector<Cut> cuts_of(const std::vector<Run>& runs, const Pieces& pieces) {
  std::map<Index, Cut> cuts;
  std::vector<Run> clipped;
  for (const Run& run : runs) {
    std::set<Index> touched;
    for (Index repeat = 0; repeat < run.count; ++repeat) {
      Run one = run;
      one.source += repeat * run.source_pitch;
      one.count = 1;
      const Interval hull = source_hull(one);
      for (Index n = pieces.number_of(hull.lower); n <= pieces.number_of(hull.upper - 1); ++n) touched.insert(n);
    }
    for (const Index n : touched) {
      clipped.clear();
      clip(reversed(run), pieces[n], clipped);  // clip() looks at targets
      for (const Run& part : clipped) {
        Cut& cut = cuts[n];
        cut.runs.push_back(reversed(part));
        cut.hull = joined(cut.hull, source_hull(cut.runs.back()));
      }
    }
  }
  std::vector<Cut> out;
  for (auto& [n, cut] : cuts) {
    for (Run& run : cut.runs) run.source -= cut.hull.lower;
    out.push_back(std::move(cut));
  }
  return out;
}

bool is_interval(const std::vector<Run>& runs) {
  return runs.size() == 1 && runs[0].count == 1 &&
         (runs[0].length == 1 || (runs[0].source_step == 1 && runs[0].target_step == 1));
}

StridedView window_of(ReadScratch& scratch, ElementType type, const Indices& extents) {
  TRANSHIP_ASSERT(checked_product(extents) * size_bytes(type) <= scratch.window_bytes());
  return {.data = scratch.window(), .type = type, .extents = extents, .strides = row_major_strides(extents)};
}

/// Runs the moves of the scratch, whose source is its window.
void move_from_window(ReadScratch& scratch, const StridedView& target) {
  route(scratch.moves, Hop::direct);
  for (const LoweredMove& move : scratch.moves)
    move.run(scratch.way, scratch.window(), static_cast<std::byte*>(target.data));
  scratch.moves.clear();
}

}  // namespace

TransferGroup cells_of(const Box& box) {
  TransferGroup out;
  for (int d = 0; d < box.dims(); ++d) {
    out.source_dims.push_back(d);
    out.target_dims.push_back(d);
    out.axes.push_back({{0, {{.source = box.lower[d], .target = 0, .length = box[d].length()}}}});
  }
  return out;
}

SlotLayout narrowed(SlotLayout layout, const Box& trailing) {
  for (int d = 0; d < trailing.dims(); ++d) {
    const int of_layout = layout.dims - trailing.dims() + d;
    layout.offset_bytes += trailing.lower[d] * layout.strides_bytes[of_layout];
    layout.local_extents[of_layout] = trailing[d].length();
  }
  return layout;
}

void PartSource::read_runs(Index part, const TransferGroup& cells, const StridedView& target,
                           ReadScratch& scratch) const {
  const Index width = size_bytes(target.type);
  // A single box is read straight to the target.
  const bool is_one_box = std::all_of(cells.axes.begin(), cells.axes.end(),
                                      [](const auto& axis) { return is_interval(axis.front().runs); });
  const Index cells_max = is_one_box ? std::numeric_limits<Index>::max() : scratch.window_bytes() / width;
  const Indices chunk = grain(part), length = shrunk(chunk, cells_max);
  const int dims = chunk.size();
  std::vector<std::vector<Cut>> cuts;
  Indices counts;
  for (int k = 0; k < dims; ++k) {
    const int d = cells.source_dims[k];
    cuts.push_back(cuts_of(cells.axes[k].front().runs, {std::max<Index>(1, chunk[d]), length[d]}));
    counts.push_back(static_cast<Index>(cuts.back().size()));
  }
  for_each_coordinate(counts, [&](const Indices& at) {
    Box box{chunk, chunk};
    StridedView here{.data = target.data, .type = target.type, .extents = chunk, .strides = chunk};
    bool is_box = true;
    for (int k = 0; k < dims; ++k) {
      const Cut& cut = cuts[k][at[k]];
      const int d = cells.source_dims[k];
      const Index stride = target.strides[cells.target_dims[k]];
      box.lower[d] = cut.hull.lower;
      box.upper[d] = cut.hull.upper;
      here.extents[d] = cut.hull.length();
      here.strides[d] = stride;
      here.data = static_cast<std::byte*>(here.data) + cut.runs.front().target * stride * width;
      is_box = is_box && is_interval(cut.runs);
    }
    if (is_box) return read(part, box, here, scratch);
    const StridedView window = window_of(scratch, target.type, here.extents);
    read(part, box, window, scratch);
    TransferGroup& moved = scratch.cells;
    moved.source_dims = cells.source_dims;
    moved.target_dims = cells.target_dims;
    moved.axes.resize(static_cast<std::size_t>(dims));
    for (int k = 0; k < dims; ++k) moved.axes[k].assign(1, {0, cuts[k][at[k]].runs});
    scratch.moves.clear();
    lower_transfer({&moved, 0, Indices::filled(dims, 0)}, target.type, layout_of(window), layout_of(target),
                   scratch.moves);
    move_from_window(scratch, target);
  });
}

void PartSource::read_listed(Index part, const IndexedTransfer& cells, const Box& trailing, const StridedView& target,
                             ReadScratch& scratch) const {
  const Indices all = extents(part), chunk = grain(part);
  const int leading = all.size() - trailing.dims();
  Indices length;
  for (int d = 0; d < leading; ++d) length.push_back(chunk[d]);
  length = shrunk(length, scratch.window_bytes() / (cells.inner * size_bytes(target.type)));
  const auto at_of = [&](Index cell) {
    Indices at = Indices::filled(leading, 0);
    for (int d = leading - 1; d >= 0; --d) {
      at[d] = cell % all[d];
      cell /= all[d];
    }
    return at;
  };
  struct Listed {
    Index piece = 0;
    Index source = 0;
    Index target = 0;
  };
  std::vector<Listed> listed;
  for (std::size_t i = 0; i < cells.source_cells.size(); ++i) {
    Index number = 0;
    const Indices at = at_of(cells.source_cells[i]);
    for (int d = 0; d < leading; ++d) {
      const Pieces pieces{chunk[d], length[d]};
      number = number * (pieces.number_of(all[d] - 1) + 1) + pieces.number_of(at[d]);
    }
    listed.push_back({number, cells.source_cells[i], cells.target_cells[i]});
  }
  std::stable_sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) { return a.piece < b.piece; });
  for (std::size_t first = 0, end = 0; first < listed.size(); first = end) {
    Box box{at_of(listed[first].source), at_of(listed[first].source)};
    for (end = first; end < listed.size() && listed[end].piece == listed[first].piece; ++end) {
      const Indices at = at_of(listed[end].source);
      for (int d = 0; d < leading; ++d) {
        box.lower[d] = std::min(box.lower[d], at[d]);
        box.upper[d] = std::max(box.upper[d], at[d] + 1);
      }
    }
    IndexedTransfer moved{.inner = cells.inner};
    for (std::size_t i = first; i < end; ++i) {
      const Indices at = at_of(listed[i].source);
      Index cell = 0;
      for (int d = 0; d < leading; ++d) cell = cell * box[d].length() + at[d] - box.lower[d];
      moved.source_cells.push_back(cell);
      moved.target_cells.push_back(listed[i].target);
    }
    for (int d = 0; d < trailing.dims(); ++d) {
      box.lower.push_back(trailing.lower[d]);
      box.upper.push_back(trailing.upper[d]);
    }
    const StridedView window = window_of(scratch, target.type, box.extents());
    read(part, box, window, scratch);
    scratch.moves.clear();
    lower_indexed(moved, target.type, layout_of(window), layout_of(target), scratch.moves);
    move_from_window(scratch, target);
  }
}

}  // namespace tranship
