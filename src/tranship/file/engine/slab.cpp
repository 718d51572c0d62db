#include "tranship/file/engine/slab.hpp"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/store/strided_source.hpp>

namespace tranship {
namespace {

// Size of a piece that one thread reads: long enough for a call, short enough that threads end together.
constexpr Index load_bytes = Index(1) << 20;

}  // namespace

// Uses mmap, because the allocator would keep memory that is freed.
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
    // A chunk in two pieces would be read twice.
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
  own->read_runs(piece.part, cells_of(piece.box), target, scratch);
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
  const StoredPart dense{.order = array_->parts[part].order, .extents = box.box.extents()};
  const SlotLayout layout = layout_of(view_of(dense, target.type, from));
  // With lists, boxes are consecutive rows of their parts.
  Index first = 0;
  for (int d = 0; d < box.box.dims() - trailing.dims(); ++d)
    first = first * array_->parts[part].extents[d] + box.box.lower[d];
  IndexedTransfer moved;
  if (first > 0) {
    moved = cells;
    for (Index& cell : moved.source_cells) cell -= first;
  }
  scratch.moves.clear();
  lower_indexed(first > 0 ? moved : cells, target.type, narrowed(layout, trailing), layout_of(target), scratch.moves);
  route(scratch.moves, Hop::direct);
  for (const LoweredMove& move : scratch.moves) move.run(scratch.way, from, static_cast<std::byte*>(target.data));
}

}  // namespace tranship
