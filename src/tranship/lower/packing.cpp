#include "tranship/lower/packing.hpp"

#include <algorithm>
#include <array>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/element_moves.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace tranship {
namespace {

/// Up to this many ends are bound without an allocation.
constexpr std::size_t few_ends = 32;

void check(const PackedBlock& block, std::span<const PackedArray> arrays) {
  if (block.array < 0 || std::size_t(block.array) >= arrays.size())
    throw_error(ErrorCode::invalid_use, "the block names array {}, but there are {}", block.array, arrays.size());
  const PackedArray& array = arrays[std::size_t(block.array)];
  if (block.extents.size() != array.layout.dims || block.cells.dims() != array.layout.dims)
    throw_error(ErrorCode::invalid_use, "the block has {}, but its array has {}",
                amount(block.extents.size(), "dimension"), array.layout.dims);
  if (block.map != ElementMap::copy && block.map != ElementMap::negate)
    throw_error(ErrorCode::invalid_use, "a message copies or negates elements; it does not combine them");
  if (!can_map(block.map, array.type))
    throw_error(ErrorCode::invalid_use, "elements of type {} cannot be negated", name_of(array.type));
  for (int d = 0; d < block.extents.size(); ++d) {
    if (block.extents[d] <= 0) continue;
    const int along = block.cells.image_dim(d);
    for (const Index x : {Index(0), block.extents[d] - 1})
      if (const Index at = block.cells.apply(d, x, Points::cells); at < 0 || at >= array.layout.local_extents[along])
        throw_error(ErrorCode::invalid_use, "cell {} of dimension {} lies outside of an array of extent {}", at, along,
                    array.layout.local_extents[along]);
  }
}

/// If these bytes do not fit in the caches, a program that goes through its arrays between two exchanges evicts all
/// lines that were unpacked.
double total_bytes(std::span<const PackedArray> arrays) {
  double total = 0;
  for (const PackedArray& array : arrays) {
    double bytes = size_bytes(array.type);
    for (int d = 0; d < array.layout.dims; ++d) bytes *= double(array.layout.local_extents[d]);
    total += bytes;
  }
  return total;
}

}  // namespace

PackedBlock turned_block(int array, const Box& box, const IndexMap& turn, const Indices& turned_dims) {
  if (turn.dims() != turned_dims.size())
    throw_error(ErrorCode::invalid_use, "the turn has {}, but {} are turned", amount(turn.dims(), "dimension"),
                turned_dims.size());
  const int dims = box.dims();
  Indices image_dims, signs = Indices::filled(dims, 1), offsets = signs, extents = signs;
  for (int d = 0; d < dims; ++d) image_dims.push_back(d);
  for (int k = 0; k < turned_dims.size(); ++k) {
    const Index d = turned_dims[k];
    if (d < 0 || d >= dims)
      throw_error(ErrorCode::invalid_use, "turned dimension {} does not exist: the box has {}", d,
                  amount(dims, "dimension"));
    image_dims[int(d)] = turned_dims[turn.image_dim(k)];
    signs[int(d)] = turn.sign(k);
  }
  for (int d = 0; d < dims; ++d) {
    const Interval along = box[int(image_dims[d])];
    extents[d] = along.length();
    offsets[d] = checked_multiply(2, signs[d] > 0 ? along.lower : along.upper);
  }
  return {.array = array, .extents = extents, .cells = IndexMap(image_dims, signs, offsets)};
}

Packing::Packing(PackDirection direction, std::span<const PackedArray> arrays, std::span<const PackedBlock> blocks)
    : arrays_(arrays.size()) {
  std::vector<LoweredMove> moves;
  moves.reserve(blocks.size());
  for (const PackedBlock& block : blocks) {
    check(block, arrays);
    const PackedArray& array = arrays[std::size_t(block.array)];
    const bool in_parts = is_complex(array.type) && (block.map != ElementMap::copy || !array.layout.parts_together ||
                                                     size_bytes(array.type) > 16);
    const int width = size_bytes(array.type) / (in_parts ? 2 : 1);
    const MovePlace message{staging_slot, bytes_};
    bytes_ = checked_add(bytes_, checked_multiply(checked_product(block.extents), size_bytes(array.type)));
    LoweredMove& move = moves.emplace_back();
    move.width = width;
    if (block.map == ElementMap::negate) {
      move.move = ElementMap::negate;
      move.arithmetic = detail::arithmetic_of(array.type);
    }
    MovePlace place{block.array, array.layout.offset_bytes};
    CopyBlock& loops = move.block;
    const bool packs = direction == PackDirection::pack;
    long long* const strides = packs ? loops.source_strides : loops.target_strides;
    for (int d = 0; d < block.extents.size(); ++d) {
      const Index stride = array.layout.strides_bytes[block.cells.image_dim(d)];
      loops.extents[loops.dims] = block.extents[d];
      if (block.extents[d] > 1) strides[loops.dims] = block.cells.sign(d) * stride;
      if (block.extents[d] > 0) place.offset_bytes += block.cells.apply(d, 0, Points::cells) * stride;
      ++loops.dims;
    }
    if (in_parts) {
      loops.extents[loops.dims] = 2;
      strides[loops.dims++] = array.layout.part_stride_bytes;
    }
    detail::dense_strides(loops, width, packs ? loops.target_strides : loops.source_strides);
    canonicalise(loops, width);
    (packs ? move.source : move.target) = place;
    (packs ? move.target : move.source) = message;
  }
  const bool is_cold = direction == PackDirection::unpack && total_bytes(arrays) > 2.0 * double(large_traffic_min());
  const Index traffic = is_cold ? std::max(bytes_, Index(large_traffic_min())) : bytes_;
  moves_ = MoveList(std::move(moves), MoveOrder::any, copy_method(traffic));
  std::vector<std::byte*> none;
  moves_.bind(
      [&](MoveSide, int slot, int) -> std::byte* {
        ends_.push_back(slot);
        return nullptr;
      },
      0, none);
}

void Packing::run(std::span<std::byte* const> arrays, std::byte* message) const {
  TRANSHIP_ASSERT(arrays.size() == arrays_);
  std::array<std::byte*, few_ends> few;
  std::vector<std::byte*> many;
  std::byte** bases = few.data();
  if (ends_.size() > few_ends) {
    many.resize(ends_.size());
    bases = many.data();
  }
  for (std::size_t i = 0; i < ends_.size(); ++i)
    bases[i] = ends_[i] == staging_slot ? message : arrays[std::size_t(ends_[i])];
  moves_.run(std::span<std::byte* const>(bases, ends_.size()));
}

}  // namespace tranship
