// Makes random lists of moves in two arenas, and computes their result by a plain loop: cell by cell, from the
// definition of a CopyBlock, with nothing in common with piece_list.hpp. Bytes between and around what a list writes
// must stay. host.cpp runs such lists on CPU lanes, checks.cu on a card.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <tranship/base/random.hpp>
#include <tranship/kernels/host/piece_list.hpp>

namespace tranship::device {

using namespace packing;

/// Describes a range of the arena of sources, or of the arena of targets. Base i of a list is buffer i.
struct Buffer {
  bool is_target = false;
  long long start = 0;
  long long bytes = 0;
};

struct RandomList {
  std::vector<BlockMove> moves;
  std::vector<Buffer> buffers;
  long long arena_bytes = 0;  ///< size of either arena
  const char* name = "";

  /// Returns the alignments of the bases where both arenas lie at multiples of 16.
  std::vector<int> alignments() const {
    std::vector<int> out;
    for (const Buffer& buffer : buffers)
      out.push_back(buffer.start % 16 == 0 ? 16 : static_cast<int>(buffer.start & -buffer.start));
    return out;
  }
  Bases bases(unsigned char* sources, unsigned char* targets, std::vector<unsigned char*>& many) const {
    many.clear();
    for (const Buffer& buffer : buffers) many.push_back((buffer.is_target ? targets : sources) + buffer.start);
    Bases out;
    for (std::size_t i = 0; i < many.size() && i < Bases::few_max; ++i) out.few[i] = many[i];
    return out;
  }
};

inline void plain_move(const BlockMove& move, const unsigned char* source, unsigned char* target) {
  const CopyBlock& block = move.block;
  long long at[block_dims_max] = {};
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] <= 0) return;
  for (;;) {
    long long from = move.source_offset, to = move.target_offset;
    for (int d = 0; d < block.dims; ++d) {
      from += at[d] * block.source_strides[d];
      to += at[d] * block.target_strides[d];
    }
    std::memcpy(target + to, source + from, static_cast<std::size_t>(move.width));
    int d = block.dims - 1;
    while (d >= 0 && ++at[d] == block.extents[d]) at[d--] = 0;
    if (d < 0) return;
  }
}
inline void plain_moves(const RandomList& list, const unsigned char* sources, unsigned char* targets) {
  for (const BlockMove& move : list.moves)
    plain_move(move, sources + list.buffers[move.source_base].start, targets + list.buffers[move.target_base].start);
}

struct RandomMovesOptions {
  int moves_max = 8;
  long long cells_max = 20000;
};

class RandomMoves {
 public:
  RandomMoves(std::uint64_t seed, const RandomMovesOptions& options) : random_(seed), options_(options) {}

  SplitMix64& random() { return random_; }

  RandomList next() {
    enum { pack, unpack, direct } const shape = static_cast<decltype(pack)>(random_.below(3));
    RandomList list;
    list.name = shape == pack ? "pack" : shape == unpack ? "unpack" : "direct";
    const auto sources = static_cast<unsigned>(shape == unpack ? 1 : 1 + random_.below(3));
    const auto targets = static_cast<unsigned>(shape == pack ? 1 : 1 + random_.below(3));
    list.buffers.resize(sources + targets);
    for (unsigned i = 0; i < targets; ++i) list.buffers[sources + i].is_target = true;
    const auto count = one_in(40) ? 0 : 1 + random_.below(static_cast<std::uint64_t>(options_.moves_max));
    const bool is_tight = one_in(2);
    const bool is_narrow = one_in(8);  // words can move these transposes
    if (is_narrow) list.name = "narrow transposes";
    for (std::uint64_t i = 0; i < count; ++i) {
      BlockMove move = is_narrow ? narrow_transpose() : random_block();
      CopyBlock& block = move.block;
      if (is_narrow)
        for (Buffer& buffer : list.buffers) buffer.bytes = (buffer.bytes + 3) / 4 * 4;
      else
        place_strides(block, move.width, shape == unpack, shape == pack);
      move.source_base = static_cast<unsigned>(random_.below(sources));
      move.target_base = sources + static_cast<unsigned>(random_.below(targets));
      const bool is_placed_tight = is_tight || is_narrow;
      move.source_offset =
          place(list.buffers[move.source_base], block, block.source_strides, move.width, is_placed_tight);
      move.target_offset =
          place(list.buffers[move.target_base], block, block.target_strides, move.width, is_placed_tight);
      list.moves.push_back(move);
    }
    long long ends[2] = {guard_bytes, guard_bytes};
    for (Buffer& buffer : list.buffers) {
      long long& end = ends[buffer.is_target];
      end = (end + 15) / 16 * 16;
      if (!is_narrow && one_in(2)) end += static_cast<long long>(random_.below(17));
      buffer.start = end;
      end += buffer.bytes + guard_bytes;
    }
    list.arena_bytes = std::max(ends[0], ends[1]);
    return list;
  }

  void fill(std::vector<unsigned char>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t word = random_.next();
      std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
    }
  }

 private:
  static constexpr long long guard_bytes = 64;

  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }

  void place_strides(CopyBlock& block, int width, bool has_dense_source, bool has_dense_target) {
    if (has_dense_source)
      block = with_dense_source(block, width);
    else
      stride(block, block.source_strides, width, true);
    if (has_dense_target)
      block = with_dense_target(block, width);
    else
      stride(block, block.target_strides, width, false);
  }

  BlockMove random_block() {
    static constexpr int widths[] = {1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 4, 8, 8, 3, 12, 24};
    static constexpr long long extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 24, 31, 32, 33, 40, 63, 64, 65, 79, 100};
    BlockMove move;
    move.width = widths[random_.below(std::size(widths))];
    move.block.dims = static_cast<int>(random_.below(6));
    long long room = 1ll << random_.below(1 + 63 - static_cast<unsigned>(__builtin_clzll(options_.cells_max)));
    if (one_in(4)) room = options_.cells_max;
    for (int d = 0; d < move.block.dims; ++d) {
      long long extent =
          one_in(6) ? 1 + static_cast<long long>(random_.below(3000)) : extents[random_.below(std::size(extents))];
      extent = std::max(1ll, std::min(extent, room));
      room /= extent;
      move.block.extents[d] = one_in(150) ? 0 : extent;
    }
    return move;
  }

  /// Makes a transpose of elements of 1 or 2 bytes, whose extents and strides are multiples of 4 bytes.
  BlockMove narrow_transpose() {
    BlockMove move;
    move.width = 1 << random_.below(2);
    const auto multiple = [&](std::uint64_t most) { return 4 * static_cast<long long>(1 + random_.below(most)); };
    const auto gap = [&] { return one_in(2) ? 0 : multiple(5); };
    const long long outers = 1 + static_cast<long long>(random_.below(3)), rows = multiple(36), columns = multiple(36);
    CopyBlock& block = move.block;
    block.dims = 3;
    const long long source_row = columns * move.width + gap(), target_column = rows * move.width + gap();
    const long long extents[] = {outers, rows, columns};
    const long long source[] = {rows * source_row + gap(), source_row, move.width};
    const long long target[] = {columns * target_column + gap(), move.width, target_column};
    for (int d = 0; d < 3; ++d) {
      block.extents[d] = extents[d];
      block.source_strides[d] = source[d];
      block.target_strides[d] = target[d];
    }
    return move;
  }

  /// Orders the dimensions randomly, with random gaps and signs, so that elements do not overlap; some strides are
  /// zero.
  void stride(const CopyBlock& block, long long* strides, int width, bool is_source) {
    int order[block_dims_max];
    for (int d = 0; d < block.dims; ++d) order[d] = block.dims - 1 - d;
    if (one_in(4)) std::reverse(order, order + block.dims);
    if (one_in(3))
      for (int d = block.dims - 1; d > 0; --d) std::swap(order[d], order[random_.below(static_cast<unsigned>(d) + 1)]);
    const bool has_gaps = one_in(2), has_signs = one_in(4), has_odd_gaps = one_in(5);
    long long reach = width;
    for (int k = 0; k < block.dims; ++k) {
      const int d = order[k];
      long long gap = 0;
      if (has_gaps && (k > 0 || one_in(4))) gap = static_cast<long long>(random_.below(4)) * (one_in(3) ? 16 : width);
      if (has_odd_gaps && (k > 0 || one_in(4))) gap += static_cast<long long>(random_.below(8));
      if (one_in(is_source ? 20 : 60)) {
        strides[d] = 0;
        continue;
      }
      const long long step = reach + gap;
      strides[d] = has_signs && one_in(2) ? -step : step;
      reach += step * (std::max(1ll, block.extents[d]) - 1);
    }
  }

  /// Returns the offset at which these elements begin, behind all earlier ones of the buffer.
  long long place(Buffer& buffer, const CopyBlock& block, const long long* strides, int width, bool is_tight) {
    long long before = 0, after = width;
    for (int d = 0; d < block.dims; ++d) {
      const long long reach = (std::max(1ll, block.extents[d]) - 1) * strides[d];
      (reach < 0 ? before : after) += std::abs(reach);
    }
    if (!is_tight)
      buffer.bytes = (buffer.bytes + 15) / 16 * 16 + (one_in(2) ? 16 : static_cast<long long>(random_.below(24)));
    const long long offset = buffer.bytes + before;
    buffer.bytes += before + after;
    return offset;
  }

  SplitMix64 random_;
  RandomMovesOptions options_;
};

}  // namespace tranship::device
