#include "tranship/file/engine/slab.hpp"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/store/strided_source.hpp>

namespace tranship {
namespace {

// Of a piece that one thread reads: long enough for a call, short enough that threads end together.
constexpr Index load_bytes = Index(1) << 20;

}  // namespace

// Not from the allocator, which would keep what it is given back.
Slab::Slab(Index capacity_bytes) : capacity_bytes_(std::max<Index>(1, capacity_bytes)) {
  const auto bytes = static_cast<std::size_t>(capacity_bytes_);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  ::madvise(memory_, bytes, MADV_HUGEPAGE);  // a hint
}

Slab::~Slab() {
  ::munmap(memory_, static_cast<std::size_t>(capacity_bytes_));
}

std::vector<Slab::Piece> Slab::begin(const BlockPlan& plan, Index round) {
  array_ = plan.job().source;
  boxes_ = plan.slab(round);
  std::vector<Piece> out;
  const Index width = size_bytes(array_->spec.type);
  for (const BlockPlan::SlabBox& box : boxes_) {
    TRANSHIP_ASSERT(box.offset_bytes + box.box.count() * width <= capacity_bytes_);
    const Indices order = dimension_order(array_->parts[box.part].order, box.box.dims());
    Index cells_max = std::max<Index>(1, load_bytes / width);
    // A chunk that two pieces meet would be read twice.
    if (const PartSource* const own = array_->source.get())
      cells_max = std::max(cells_max, box.box.count() / box.box[static_cast<int>(order[0])].length() *
                                          own->grain(box.part)[static_cast<int>(order[0])]);
    for_each_piece(box.box, order, cells_max, [&](const Box& piece, Index first) {
      out.push_back({box.part, piece, box.offset_bytes + first * width});
    });
  }
  std::sort(boxes_.begin(), boxes_.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  return out;
}

Index Slab::load(const Piece& piece, ReadScratch& scratch) {
  const StoredPart dense{.order = array_->parts[piece.part].order, .extents = piece.box.extents()};
  const StridedView target = view_of(dense, array_->spec.type, memory_ + piece.offset_bytes);
  const Index bytes = piece.box.count() * size_bytes(array_->spec.type);
  scratch.way = copy_method(static_cast<long long>(bytes));
  const PartSource* const own = array_->source.get();
  if (!own) {
    StridedSource(*array_).read(piece.part, piece.box, target, scratch);
    return bytes;
  }
  // Chunk by chunk.
  const Indices grain = own->grain(piece.part);
  Indices first = grain, counts = grain;
  for (int d = 0; d < grain.size(); ++d) {
    first[d] = piece.box.lower[d] / grain[d];
    counts[d] = ceil_divide(piece.box.upper[d], grain[d]) - first[d];
  }
  for_each_coordinate(counts, [&](const Indices& at) {
    Box box = piece.box;
    StridedView here = target;
    Index offset = 0;
    for (int d = 0; d < at.size(); ++d) {
      box.lower[d] = std::max(box.lower[d], (first[d] + at[d]) * grain[d]);
      box.upper[d] = std::min(box.upper[d], (first[d] + at[d] + 1) * grain[d]);
      offset += (box.lower[d] - piece.box.lower[d]) * target.strides[d];
    }
    here.extents = box.extents();
    here.data = static_cast<std::byte*>(target.data) + offset * size_bytes(target.type);
    own->read(piece.part, box, here, scratch);
  });
  return bytes;
}

void Slab::read(Index part, const Box& box, const StridedView& target, ReadScratch& scratch) const {
  read_runs(part, cells_of(box), target, scratch);
}

const BlockPlan::SlabBox& Slab::held(Index part) const {
  const auto found = std::lower_bound(boxes_.begin(), boxes_.end(), part,
                                      [](const BlockPlan::SlabBox& box, Index p) { return box.part < p; });
  TRANSHIP_ASSERT(found != boxes_.end() && found->part == part);
  return *found;
}

void Slab::read_runs(Index part, const TransferGroup& cells, const StridedView& target, ReadScratch& scratch) const {
  const BlockPlan::SlabBox& box = held(part);
  TransferGroup& moved = scratch.cells;
  moved = cells;
  for (std::size_t k = 0; k < moved.axes.size(); ++k)
    for (Run& run : moved.axes[k].front().runs) run.source -= box.box.lower[moved.source_dims[k]];
  const StoredPart dense{.order = array_->parts[part].order, .extents = box.box.extents()};
  std::byte* const from = memory_ + box.offset_bytes;
  scratch.moves.clear();
  lower_transfer({&moved, 0, Indices::filled(static_cast<int>(moved.axes.size()), 0)}, target.type,
                 layout_of(view_of(dense, target.type, from)), layout_of(target), scratch.moves);
  route(scratch.moves, Hop::direct);
  for (const LoweredMove& move : scratch.moves) move.run(scratch.way, from, static_cast<std::byte*>(target.data));
}

void Slab::read_listed(Index part, const IndexedTransfer& cells, const Box& trailing, const StridedView& target,
                       ReadScratch& scratch) const {
  const BlockPlan::SlabBox& box = held(part);
  std::byte* const from = memory_ + box.offset_bytes;
  SlotLayout layout = layout_of(view_of(array_->parts[part], target.type, from));
  for (int d = 0; d < trailing.dims(); ++d) {
    const int source_d = layout.dims - trailing.dims() + d;
    layout.offset_bytes += trailing.lower[d] * layout.strides_bytes[source_d];
    layout.local_extents[source_d] = trailing[d].length();
  }
  scratch.moves.clear();
  lower_indexed(cells, target.type, layout, layout_of(target), scratch.moves);
  route(scratch.moves, Hop::direct);
  for (const LoweredMove& move : scratch.moves) move.run(scratch.way, from, static_cast<std::byte*>(target.data));
}

}  // namespace tranship
