// Compares random lists on a card with the plain loop on the host, and checks very many small pieces and moves of more
// than 2^31 bytes.
#include <chrono>
#include <cstring>
#include <memory>

#include "packing/card_pattern.hpp"
#include "packing/pack.hpp"
#include "packing/packing.hpp"
#include "packing/random_moves.hpp"

namespace tranship::device {
namespace {

/// Owns memory of the card that grows to the size of the largest list.
class GrowingArray {
 public:
  unsigned char* at_least(std::size_t bytes) {
    if (!array_ || array_->size() < bytes) {
      array_.reset();
      array_ = std::make_unique<CardArray<unsigned char>>(bytes + bytes / 2);
    }
    return array_->data();
  }

 private:
  std::unique_ptr<CardArray<unsigned char>> array_;
};

struct Addresses {
  GrowingArray memory;

  /// Uploads the addresses, for lists with more bases than fit in the arguments.
  unsigned char* const* upload(const std::vector<unsigned char*>& many) {
    const std::size_t bytes = many.size() * sizeof(unsigned char*);
    unsigned char* const at = memory.at_least(std::max<std::size_t>(bytes, 8));
    TRANSHIP_CUDA(cudaMemcpy(at, many.data(), bytes, cudaMemcpyHostToDevice));
    TRANSHIP_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
    return reinterpret_cast<unsigned char* const*>(at);
  }
};

/// Runs a list on the card for each pair of arenas, and compares all bytes of the targets.
class ListRunner {
 public:
  explicit ListRunner(cudaStream_t stream) : stream_(stream), groups_min_(pack_groups_min()) {}

  /// Returns true when all bytes are right. The list is uploaded once and serves `rounds` pairs of arenas.
  bool run(const RandomList& list, RandomMoves& moves, int rounds, bool is_broken) {
    const auto bytes = static_cast<std::size_t>(list.arena_bytes);
    std::vector<unsigned char> sources(bytes), targets(bytes), got(bytes);
    moves.fill(sources);
    moves.fill(targets);
    std::vector<unsigned char> expected = targets;
    plain_moves(list, sources.data(), expected.data());

    PieceList made(list.alignments());
    for (const BlockMove& move : list.moves) made.add(move);
    // The grid has a block a group, few blocks with many groups each, or as many blocks as the card holds.
    SplitMix64& random = moves.random();
    made.lay_out(groups_min_, static_cast<unsigned>(random.below(lane_vectors_max + 1)));
    PackGrid grid;
    if (random.below(2)) grid.order = Order::shares;
    if (random.below(2)) grid.hints = PackGrid::Hints::streaming;
    if (const auto choice = random.below(3); choice > 0)
      grid.blocks_max = choice == 1 ? 1 + static_cast<unsigned>(random.below(6)) : 4 * groups_min_;
    pieces += static_cast<long long>(made.pieces().size());
    if (is_broken && !made.pieces().empty()) made.pieces()[0].source_offset += 1 << made.pieces()[0].width_log2;
    uploaded_.upload(made);
    bool is_right = true;
    for (int round = 0; round < rounds; ++round) {
      unsigned char* const from = arenas_[round][0].at_least(bytes);
      unsigned char* const to = arenas_[round][1].at_least(bytes);
      TRANSHIP_CUDA(cudaMemcpyAsync(from, sources.data(), bytes, cudaMemcpyHostToDevice, stream_));
      TRANSHIP_CUDA(cudaMemcpyAsync(to, targets.data(), bytes, cudaMemcpyHostToDevice, stream_));
      std::vector<unsigned char*> many;
      Bases bases = list.bases(from, to, many);
      if (round == 1) {
        uploaded_.forget_starts();
        bases.many = addresses_.upload(many);
      }
      pack(uploaded_, bases, stream_, grid);
      TRANSHIP_CUDA(cudaMemcpyAsync(got.data(), to, bytes, cudaMemcpyDeviceToHost, stream_));
      TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
      is_right &= got == expected;
    }
    return is_right;
  }

  long long pieces = 0;

 private:
  cudaStream_t stream_;
  unsigned groups_min_;
  UploadedList uploaded_;
  GrowingArray arenas_[2][2];
  Addresses addresses_;
};

}  // namespace

void check_random_lists(const PackingOptions& options, cudaStream_t stream) {
  RandomMoves moves(options.seed, {.moves_max = 10, .cells_max = 30000});
  ListRunner runner(stream);
  const auto begin = std::chrono::steady_clock::now();
  long long cases = 0, wrong = 0;
  std::string first;
  for (; cases < options.lists; ++cases) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(7)) break;
    const RandomList list = moves.next();
    if (runner.run(list, moves, cases % 8 == 0 ? 2 : 1, options.is_broken)) continue;
    if (wrong++ == 0)
      first = "list " + std::to_string(cases) + " (" + list.name + "), seed " + std::to_string(options.seed);
  }
  check("packing: random lists against the plain loop", cases, wrong,
        first.empty() ? std::to_string(runner.pieces) + " pieces" : first);

  // The pieces have a few elements each, and are so many that each block has some; the last of these lists is empty.
  runner.pieces = 0;
  cases = wrong = 0;
  for (const int count : {10000, 3000, 100, 1, 0}) {
    RandomMoves tiny(options.seed + 1, {.moves_max = 1, .cells_max = 8});
    RandomList list;
    list.buffers.resize(2);
    list.buffers[1].is_target = true;
    list.buffers[0].start = list.buffers[1].start = 64;
    for (int i = 0; i < count; ++i) {
      BlockMove move;
      move.target_base = 1;
      move.width = 1 << tiny.random().below(5);
      move.block.dims = 1;
      move.block.extents[0] = 1 + static_cast<long long>(tiny.random().below(7));
      move.block.source_strides[0] = move.width * (1 + static_cast<long long>(tiny.random().below(2)));
      move.block.target_strides[0] = move.width;
      move.source_offset = list.buffers[0].bytes + static_cast<long long>(tiny.random().below(3));
      move.target_offset = list.buffers[1].bytes + static_cast<long long>(tiny.random().below(3));
      list.buffers[0].bytes = move.source_offset + 2 * move.width * move.block.extents[0];
      list.buffers[1].bytes = move.target_offset + move.width * move.block.extents[0];
      list.moves.push_back(move);
    }
    list.arena_bytes = 192 + std::max(list.buffers[0].bytes, list.buffers[1].bytes);
    wrong += !runner.run(list, tiny, 2, false);
    ++cases;
  }
  check("packing: lists of up to 10,000 tiny pieces", cases, wrong, std::to_string(runner.pieces) + " pieces");
}

void check_large_lists(const CardArenas& arenas, cudaStream_t stream) {
  struct Case {
    const char* name;
    int width;
    long long source_offset, target_offset;
    long long extents[3], source_strides[3], target_strides[3];
  };
  static constexpr Case all[] = {
      {"bytes that are not aligned", 1, 1, 4099, {1, 1, 3300000001}, {0, 0, 1}, {0, 0, 1}},
      {"aligned elements of 8 bytes", 8, 4096, 4096, {1, 1, 560000000}, {0, 0, 8}, {0, 0, 8}},
      {"rows of 3000 bytes", 8, 4096, 4096, {1, 900000, 375}, {0, 5000, 8}, {0, 3000, 8}},
      {"a transpose", 8, 4096, 4096, {1, 20000, 20000}, {0, 8, 160000}, {0, 160000, 8}},
      {"backwards", 8, 4096 + 8 * (400000000ll - 1), 4096, {1, 1, 400000000}, {0, 0, -8}, {0, 0, 8}},
  };
  long long cases = 0, wrong = 0;
  std::string note;
  for (const Case& one : all) {
    BlockMove move{.source_base = 0,
                   .source_offset = one.source_offset,
                   .target_base = 1,
                   .target_offset = one.target_offset,
                   .block = {},
                   .width = one.width};
    move.block.dims = 3;
    long long source_end = one.source_offset + one.width, target_end = one.target_offset + one.width;
    for (int d = 0; d < 3; ++d) {
      move.block.extents[d] = one.extents[d];
      move.block.source_strides[d] = one.source_strides[d];
      move.block.target_strides[d] = one.target_strides[d];
      source_end += (one.extents[d] - 1) * std::max(0ll, one.source_strides[d]);
      target_end += (one.extents[d] - 1) * one.target_strides[d];
    }
    const long long after = 4096;
    if (source_end > arenas.bytes || target_end + after > arenas.bytes) continue;
    PieceList made({16, 16});
    made.add(move);
    made.lay_out(pack_groups_min());
    UploadedList uploaded;
    uploaded.upload(made);
    Bases bases;
    bases.few[0] = arenas.sources;
    bases.few[1] = arenas.targets;
    TRANSHIP_CUDA(cudaMemsetAsync(arenas.targets, 0xee, static_cast<std::size_t>(target_end + after), stream));
    pack(uploaded, bases, stream);
    const long long bad =
        wrong_cells(move.block, move.width, one.source_offset, arenas.targets + one.target_offset, stream) +
        wrong_bytes(arenas.targets, one.target_offset, 0xee, stream) +
        wrong_bytes(arenas.targets + target_end, after, 0xee, stream);
    ++cases;
    wrong += bad != 0;
    if (bad) note += std::string(note.empty() ? "" : "; ") + one.name + ": " + std::to_string(bad) + " cells";
  }
  check("packing: moves of more than 2^31 bytes", cases, wrong, note);
}

}  // namespace tranship::device
