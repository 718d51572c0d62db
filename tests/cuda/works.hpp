// Works for cards, which tests count and the device benchmark measures: lists of moves between bases, and the sectors
// of memory that they touch.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tranship/kernels/block_move.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship::test {

/// Moves between bases, of which base i has `base_bytes[i]` bytes.
struct Work {
  std::string name;
  std::vector<BlockMove> moves;
  std::vector<long long> base_bytes;
  long long payload_bytes = 0;
  /// Its lanes have one or two vectors each, so that a software card spends its time on the lanes.
  bool is_bound_by_lanes = false;
  /// The goal for a run that is a node of a graph, on a real card.
  std::optional<double> graph_us_max = {};
};

inline CopyBlock block_of(std::initializer_list<std::array<long long, 3>> loops) {
  CopyBlock out;
  for (const auto& [extent, source, target] : loops) {
    out.extents[out.dims] = extent;
    out.source_strides[out.dims] = source;
    out.target_strides[out.dims++] = target;
  }
  return out;
}

/// Quantities of 192 x 192 x 79 doubles with a halo of 3: the regions for four edges and four corners, packed for the
/// neighbours, or unpacked from them.
inline Work ndsl(bool is_k_fastest, int quantities, bool unpacks) {
  struct Region {
    long long i, j, i_count, j_count;
  };
  constexpr long long halo = 3, along = 192, all = along + 2 * halo, levels = 79;
  const long long strides[3] = {is_k_fastest ? all * levels * 8 : 8, is_k_fastest ? levels * 8 : all * 8,
                                is_k_fastest ? 8 : all * all * 8};
  const auto at = [&](long long edge) { return unpacks ? (edge < 0 ? 0 : along + halo) : (edge < 0 ? halo : along); };
  Work out{.name = fmt::format("NDSL {}, {} fastest, {} quantit{}", unpacks ? "unpack" : "pack",
                               is_k_fastest ? "k" : "i", quantities, quantities == 1 ? "y" : "ies")};
  if (quantities == 1) out.graph_us_max = 6;
  out.base_bytes.assign(std::size_t(quantities), all * all * levels * 8);
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j) {
      if (i == 0 && j == 0) continue;
      const Region region{i == 0 ? halo : at(i), j == 0 ? halo : at(j), i == 0 ? along : halo, j == 0 ? along : halo};
      const long long bytes = region.i_count * region.j_count * levels * 8;
      for (int q = 0; q < quantities; ++q) {
        BlockMove move{
            .source_base = unsigned(q),
            .source_offset = region.i * strides[0] + region.j * strides[1],
            .target_base = unsigned(out.base_bytes.size()),
            .target_offset = q * bytes,
            .block = with_dense_target(
                block_of({{region.i_count, strides[0], 0}, {region.j_count, strides[1], 0}, {levels, strides[2], 0}}),
                8),
            .width = 8};
        if (unpacks) {
          std::swap(move.source_base, move.target_base);
          std::swap(move.source_offset, move.target_offset);
          for (int d = 0; d < 3; ++d) std::swap(move.block.source_strides[d], move.block.target_strides[d]);
        }
        out.moves.push_back(move);
        out.payload_bytes += bytes;
      }
      out.base_bytes.push_back(quantities * bytes);
    }
  return out;
}

inline Work one_move(std::string name, const CopyBlock& block, int width) {
  const long long bytes = element_count(block) * width;
  return {.name = std::move(name),
          .moves = {{.source_base = 0, .target_base = 1, .block = block, .width = width}},
          .base_bytes = {bytes, bytes},
          .payload_bytes = bytes};
}

/// Calls f(source offset, target offset) for each row of a block: its last dimension.
template <class F>
void for_each_row(const CopyBlock& block, const F& f) {
  std::array<long long, block_dims_max> at{};
  const int outer = block.dims - 1;
  for (;;) {
    long long source = 0, target = 0;
    for (int d = 0; d < outer; ++d)
      source += at[d] * block.source_strides[d], target += at[d] * block.target_strides[d];
    f(source, target);
    int d = outer - 1;
    while (d >= 0 && ++at[d] == block.extents[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

/// Returns how many sectors of 32 bytes a work reads and writes, each counted once, where bases begin at one.
inline long long sectors_touched(const Work& work) {
  constexpr long long sector = 32;
  std::vector<std::vector<bool>> read, written;
  for (const long long bytes : work.base_bytes)
    for (auto* side : {&read, &written}) side->emplace_back(std::size_t((bytes + sector - 1) / sector));
  for (const BlockMove& move : work.moves) {
    const int last = move.block.dims - 1;
    const auto touch = [&](std::vector<bool>& sectors, long long first, long long stride) {
      for (long long i = 0; i < move.block.extents[last]; ++i)
        for (long long at = first + i * stride; at < first + i * stride + move.width; at += sector - at % sector)
          sectors[std::size_t(at / sector)] = true;
    };
    for_each_row(move.block, [&](long long source, long long target) {
      touch(read[move.source_base], move.source_offset + source, move.block.source_strides[last]);
      touch(written[move.target_base], move.target_offset + target, move.block.target_strides[last]);
    });
  }
  long long count = 0;
  for (const auto* side : {&read, &written})
    for (const std::vector<bool>& sectors : *side)
      for (const bool is_touched : sectors) count += is_touched;
  return count;
}

}  // namespace tranship::test
