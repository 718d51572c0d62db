// Copies and memsets. A copy whose source is pageable takes its bytes at the call, or waits for the stream; a seed
// chooses where the documents permit both. One to pageable memory, and one between two places of the host, waits. All
// others read and write when the stream comes to them.
#include <algorithm>
#include <cstring>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {
namespace {

/// Rows of a copy of up to three dimensions.
struct Rows {
  Address source = 0, target = 0;
  std::size_t bytes = 0, rows = 1, planes = 1;
  std::size_t source_row = 0, target_row = 0, source_plane = 0, target_plane = 0;
};

enum class Side : unsigned char { card, pinned, pageable };

Side side_of(const State& all, Address address) {
  const auto range = all.memory.find(address);
  if (!range) return Side::pageable;
  return range->is_of_host() ? Side::pinned : Side::card;
}

/// The parts of a copy as the driver reaches them; empty where it may not be made.
struct Parts {
  std::deque<CopyPart> all;
  std::vector<std::shared_ptr<Physical>> owners;
};
bool add_row(const State& all, Parts& parts, Address target, Address source, std::size_t bytes) {
  std::vector<Stretch> from = all.memory.stretches(source, bytes, false),
                       to = all.memory.stretches(target, bytes, true);
  if (from.empty() || to.empty()) return false;
  std::size_t i = 0, j = 0;
  while (i < from.size()) {
    const std::size_t part = std::min(from[i].bytes, to[j].bytes);
    parts.all.push_back({to[j].first, from[i].first, part});
    for (const Stretch& stretch : {from[i], to[j]})
      if (stretch.owner) parts.owners.push_back(stretch.owner);
    from[i].first += part, to[j].first += part;
    if ((from[i].bytes -= part) == 0) ++i;
    if ((to[j].bytes -= part) == 0) ++j;
  }
  return true;
}

OpRef copy_of(State& all, Card& card, Parts parts, bool takes_source) {
  auto op = std::make_shared<CopyOp>(card);
  op->owners = std::move(parts.owners);
  op->parts = std::move(parts.all);
  op->from_behind = !all.options.is_punctual && all.random.below(2);
  if (!takes_source) return op;
  std::size_t bytes = 0;
  for (const CopyPart& part : op->parts) bytes += part.bytes;
  op->staged.resize(bytes);
  unsigned char* at = op->staged.data();
  for (CopyPart& part : op->parts) {
    std::memcpy(at, part.source, part.bytes);
    part.source = at;
    at += part.bytes;
  }
  return op;
}

enum class Returns { early, when_over };

CUresult copy(State& all, Stream& stream, Lock& lock, const Rows& rows, Returns returns) {
  if (rows.bytes == 0 || rows.rows == 0 || rows.planes == 0) return CUDA_SUCCESS;
  Parts parts;
  for (std::size_t plane = 0; plane < rows.planes; ++plane)
    for (std::size_t row = 0; row < rows.rows; ++row)
      if (!add_row(all, parts, rows.target + plane * rows.target_plane + row * rows.target_row,
                   rows.source + plane * rows.source_plane + row * rows.source_row, rows.bytes))
        return CUDA_ERROR_INVALID_VALUE;
  const Side from = side_of(all, rows.source), to = side_of(all, rows.target);
  const std::size_t bytes = rows.bytes * rows.rows * rows.planes;
  const bool is_of_host = from != Side::card && to != Side::card;
  bool waits = to == Side::pageable || is_of_host;
  bool takes_source = from == Side::pageable && !waits;
  if (takes_source &&
      (bytes > std::size_t(1) << 20 || (!all.options.is_punctual && all.random.below(4) == 0 && !stream.capture))) {
    waits = true;  // it reads the source until it returns
    takes_source = false;
  }
  if (returns == Returns::when_over) {
    // Between two places of a card it does not wait for the bytes, and from pageable memory it need not.
    if (from == Side::card && to == Side::card)
      waits = false;
    else if (from == Side::pinned || to != Side::card)
      waits = true;
  }
  const OpRef op = all.submit(
      stream,
      Node{[&all, parts, takes_source](Card& card) { return copy_of(all, card, parts, takes_source); }, {}, waits});
  if (!op || !waits) return CUDA_SUCCESS;
  return all.wait(lock, *stream.card, [&] { return is_over(op); });
}

CUresult fill(CUstream handle, CUdeviceptr address, std::size_t count, unsigned value, unsigned width) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock& lock) -> CUresult {
    if (count == 0) return CUDA_SUCCESS;
    const auto range = all.memory.find(address);
    if (!range || address % width != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto target = all.memory.stretches(address, count * width, true);
    if (target.empty()) return CUDA_ERROR_INVALID_VALUE;
    (void)lock;
    all.submit(stream, [=](Card& card) {
      auto op = std::make_shared<FillOp>(card);
      op->target = target;
      op->value = value;
      op->width = width;
      return op;
    });
    return CUDA_SUCCESS;
  });
}

Address address_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<Address>(host) : Address(device);
}

/// Handles the common part of copies in two and three dimensions; `add_planes` handles the rest.
template <class Description, class AddPlanes>
CUresult copy_rows(const Description* what, CUstream handle, const AddPlanes& add_planes) {
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  return on_stream(handle, [&](State& all, Stream& stream, Lock& lock) -> CUresult {
    if (what->srcMemoryType == CU_MEMORYTYPE_ARRAY || what->dstMemoryType == CU_MEMORYTYPE_ARRAY)
      return CUDA_ERROR_NOT_SUPPORTED;
    Rows rows;
    rows.bytes = what->WidthInBytes;
    rows.rows = what->Height;
    rows.source_row = what->srcPitch ? what->srcPitch : what->WidthInBytes;
    rows.target_row = what->dstPitch ? what->dstPitch : what->WidthInBytes;
    if (rows.source_row < rows.bytes || rows.target_row < rows.bytes) return CUDA_ERROR_INVALID_VALUE;
    rows.source = address_of(what->srcMemoryType, what->srcHost, what->srcDevice) + what->srcY * rows.source_row +
                  what->srcXInBytes;
    rows.target = address_of(what->dstMemoryType, what->dstHost, what->dstDevice) + what->dstY * rows.target_row +
                  what->dstXInBytes;
    add_planes(rows);
    return copy(all, stream, lock, rows, Returns::early);
  });
}

}  // namespace

namespace calls {

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream handle) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock& lock) {
    Rows rows;
    rows.source = source;
    rows.target = target;
    rows.bytes = bytes;
    return copy(all, stream, lock, rows, Returns::early);
  });
}
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
  return on_stream(nullptr, [&](State& all, Stream& stream, Lock& lock) {
    Rows rows;
    rows.source = source;
    rows.target = target;
    rows.bytes = bytes;
    return copy(all, stream, lock, rows, Returns::when_over);
  });
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* what, CUstream handle) {
  return copy_rows(what, handle, [](Rows&) {});
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* what, CUstream handle) {
  return copy_rows(what, handle, [&](Rows& rows) {
    rows.planes = what->Depth;
    rows.source_plane = rows.source_row * (what->srcHeight ? what->srcHeight : what->Height);
    rows.target_plane = rows.target_row * (what->dstHeight ? what->dstHeight : what->Height);
    rows.source += what->srcZ * rows.source_plane;
    rows.target += what->dstZ * rows.target_plane;
  });
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t count, CUstream handle) {
  return fill(handle, address, count, value, 1);
}
CUresult cuMemsetD16Async(CUdeviceptr address, unsigned short value, std::size_t count, CUstream handle) {
  return fill(handle, address, count, value, 2);
}
CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, std::size_t count, CUstream handle) {
  return fill(handle, address, count, value, 4);
}

}  // namespace calls
}  // namespace tranship::cuda::software
