// Measures rates of the packing kernel by shape, as fractions of what a device copy of the same run moves. The bound of
// a shape is the 32-byte sectors that it touches on both sides, not its payload: rows of 24 bytes read 32 or 64 for 24.
// Memory itself moves granules of 64 bytes, and first reads those that are written in part. A note has the fraction of
// that, which on an H200 explains most of the time of rows shorter than a granule. Each result is checked after its
// times.
#include <array>
#include <map>

#include "packing/card_pattern.hpp"
#include "packing/pack.hpp"
#include "packing/packing.hpp"

namespace tranship::device {
namespace {

constexpr int rounds = 11;
constexpr long long sector_bytes = 32, granule_bytes = 64;

/// Returns the bytes of the aligned units that rows touch. Each unit counts once, because rows do not come back.
long long touched_bytes(long long rows, long long pitch_bytes, long long row_bytes, long long unit_bytes) {
  if (pitch_bytes % unit_bytes == 0) return rows * ((row_bytes + unit_bytes - 1) / unit_bytes) * unit_bytes;
  long long units = 0, last = -1;
  for (long long row = 0; row < rows; ++row) {
    const long long first = std::max(last + 1, row * pitch_bytes / unit_bytes);
    const long long end = (row * pitch_bytes + row_bytes - 1) / unit_bytes;
    if (end >= first) units += end - first + 1;
    last = std::max(last, end);
  }
  return units * unit_bytes;
}

/// Returns the bytes of the granules that rows write only in part, and which memory with error correction therefore
/// reads first.
long long partly_written_bytes(long long rows, long long pitch_bytes, long long row_bytes) {
  long long partly = 0, granule = -1, covered = 0;
  const auto close = [&] { partly += granule >= 0 && covered < granule_bytes; };
  for (long long row = 0; row < rows; ++row)
    for (long long at = row * pitch_bytes, end = at + row_bytes; at < end;) {
      if (at / granule_bytes != granule) {
        close();
        granule = at / granule_bytes;
        covered = 0;
      }
      const long long next = std::min(end, (granule + 1) * granule_bytes);
      covered += next - at;
      at = next;
    }
  close();
  return partly * granule_bytes;
}

struct Shape {
  std::string name;
  std::vector<BlockMove> moves;  ///< from base 0 to base 1
  long long payload_bytes = 0;
  long long sectors_bytes = 0;  ///< on both sides
  long long moved_bytes = 0;    ///< by memory, according to the model

  /// Takes all bytes of both sides as payload.
  void set_payload(long long bytes) {
    payload_bytes = bytes;
    sectors_bytes = moved_bytes = 2 * bytes;
  }
};

CopyBlock block_of(std::initializer_list<std::array<long long, 3>> loops) {
  CopyBlock block;
  for (const auto& [extent, source, target] : loops) {
    block.extents[block.dims] = extent;
    block.source_strides[block.dims] = source;
    block.target_strides[block.dims++] = target;
  }
  return block;
}

Shape dense(const std::string& name, const CopyBlock& block, int width) {
  Shape shape{.name = name, .moves = {{.target_base = 1, .block = block, .width = width}}};
  shape.set_payload(element_count(block) * width);
  return shape;
}

Shape contiguous(long long bytes) {
  return dense("contiguous, " + std::to_string(bytes >> 20) + " MiB", block_of({{bytes / 8, 8, 8}}), 8);
}

enum class Direction { pack, unpack };

Shape rows_of(long long count, long long row_bytes, long long pitch_bytes, Direction direction) {
  const bool is_pack = direction == Direction::pack;
  const int width = row_bytes % 8 ? 4 : 8;
  Shape shape{.name = std::string(is_pack ? "pack" : "unpack") + " rows of " + std::to_string(row_bytes) +
                      " bytes at pitch " + std::to_string(pitch_bytes)};
  shape.moves.push_back(
      {.target_base = 1,
       .block = block_of({{count, is_pack ? pitch_bytes : row_bytes, is_pack ? row_bytes : pitch_bytes},
                          {row_bytes / width, width, width}}),
       .width = width});
  shape.payload_bytes = count * row_bytes;
  shape.sectors_bytes = shape.payload_bytes + touched_bytes(count, pitch_bytes, row_bytes, sector_bytes);
  shape.moved_bytes = shape.payload_bytes + touched_bytes(count, pitch_bytes, row_bytes, granule_bytes);
  if (!is_pack) shape.moved_bytes += partly_written_bytes(count, pitch_bytes, row_bytes);
  return shape;
}

Shape pieces_of(long long count, long long piece_bytes) {
  Shape shape{.name = std::to_string(count) + " pieces of " + std::to_string(piece_bytes) + " bytes"};
  for (long long i = 0; i < count; ++i)
    shape.moves.push_back({.source_offset = i * (piece_bytes + 64),
                           .target_base = 1,
                           .target_offset = i * piece_bytes,
                           .block = block_of({{piece_bytes / 8, 8, 8}}),
                           .width = 8});
  shape.set_payload(count * piece_bytes);
  return shape;
}

/// Transposes: columns lie side by side in the source, and rows in the target.
Shape transpose_of(long long rows, long long columns, int width) {
  return dense("transpose of " + std::to_string(rows) + " x " + std::to_string(columns) + " elements of " +
                   std::to_string(width) + " bytes",
               block_of({{rows, columns * width, width}, {columns, width, rows * width}}), width);
}

/// Holds what differs from the defaults in the list's layout and in its launch.
struct Variant {
  std::string name = {};
  Order order = Order::strided;
  unsigned groups_a_block = 1;  ///< 0: a grid that fills the card once
  unsigned lane_vectors = 0;
  PackGrid::Hints hints = PackGrid::Hints::plain;
  bool searches = false;
};

class Bench {
 public:
  Bench(const CardArenas& arenas, cudaStream_t stream) : arenas_(arenas), stream_(stream) {
    bases_.few[0] = arenas.sources;
    bases_.few[1] = arenas.targets;
  }

  /// Measures with a block a group, and with grids that fill the card once in both orders.
  void measure_orders(const Shape& shape) {
    measure(shape);
    measure(shape, {.name = ", full grid, shares", .order = Order::shares, .groups_a_block = 0});
    measure(shape, {.name = ", full grid, strided", .groups_a_block = 0});
  }

  void measure(const Shape& shape, const Variant& variant = {}) {
    long long source_end = 0, target_end = 0;
    for (const BlockMove& move : shape.moves) {
      long long from = move.source_offset + move.width, to = move.target_offset + move.width;
      for (int d = 0; d < move.block.dims; ++d) {
        from += (move.block.extents[d] - 1) * move.block.source_strides[d];
        to += (move.block.extents[d] - 1) * move.block.target_strides[d];
      }
      source_end = std::max(source_end, from);
      target_end = std::max(target_end, to);
    }
    const std::string name = "packing: " + shape.name + variant.name;
    if (std::max(source_end, target_end) > arenas_.bytes) return answer(name, "no memory");

    const double copied = copy_bytes_a_us(shape.payload_bytes);  // first, because it writes to the targets
    PieceList made({16, 16});
    for (const BlockMove& move : shape.moves) made.add(move);
    made.lay_out(pack_groups_min(), variant.lane_vectors);
    UploadedList list;
    list.upload(made);
    if (variant.searches) list.forget_starts();
    PackGrid grid{.order = variant.order, .hints = variant.hints};
    grid.blocks_max = variant.groups_a_block ? (made.groups() + variant.groups_a_block - 1) / variant.groups_a_block
                                             : pack_blocks(list);
    TRANSHIP_CUDA(cudaMemsetAsync(arenas_.targets, 0xee, static_cast<std::size_t>(target_end), stream_));
    const int repeats = repeats_for(shape.payload_bytes);
    const Samples microseconds = card_us(stream_, rounds, [&] {
                                   for (int i = 0; i < repeats; ++i) pack(list, bases_, stream_, grid);
                                 }).mapped([&](double us) { return us / repeats; });
    const auto sectors = static_cast<double>(shape.sectors_bytes), moved = static_cast<double>(shape.moved_bytes);
    const auto payload = static_cast<double>(shape.payload_bytes);
    char note[240];
    std::snprintf(note, sizeof note,
                  "%.1f MB, %.1f us, %zu pieces, %u groups, %u vectors a lane, %u blocks; payload read and written "
                  "%.0f GB/s; by what memory moves %.3f",
                  payload / 1e6, microseconds.median(), made.pieces().size(), made.groups(), made.lane_vectors(),
                  std::min(grid.blocks_max, made.groups()), 2 * payload / microseconds.median() / 1e3,
                  moved / microseconds.median() / copied);
    figure(name + ", of the device copy by sectors",
           microseconds.mapped([&](double us) { return sectors / us / copied; }), "ratio", note);

    // The check looks at some of very many moves.
    const std::size_t step = shape.moves.size() / 16 + 1;
    for (std::size_t i = 0; i < shape.moves.size(); i += step) {
      const BlockMove& move = shape.moves[i];
      const long long wrong =
          wrong_cells(move.block, move.width, move.source_offset, arenas_.targets + move.target_offset, stream_);
      ++checked_;
      if (wrong && wrong_++ == 0) first_wrong_ = name + ": " + std::to_string(wrong) + " cells";
    }
  }
  void report_checks() { check("packing: results of the measured shapes", checked_, wrong_, first_wrong_); }

  /// Returns the bytes that a device copy reads and writes in a microsecond; each size is measured once.
  double copy_bytes_a_us(long long payload_bytes) {
    const long long bytes = payload_bytes <= 100'000'000 ? 64ll << 20 : 512ll << 20;
    if (const auto known = copies_.find(bytes); known != copies_.end()) return known->second;
    const int repeats = repeats_for(bytes);
    const Samples rate =
        card_us(stream_, rounds, [&] {
          for (int i = 0; i < repeats; ++i)
            TRANSHIP_CUDA(cudaMemcpyAsync(arenas_.targets, arenas_.sources, static_cast<std::size_t>(bytes),
                                          cudaMemcpyDeviceToDevice, stream_));
        }).mapped([&](double us) { return 2e-3 * static_cast<double>(bytes) * repeats / us; });
    figure("packing: cudaMemcpyAsync of " + std::to_string(bytes >> 20) + " MiB, read and written", rate, "GB/s");
    return copies_[bytes] = rate.median() * 1e3;
  }

 private:
  /// Repeats make a sample last much longer than a launch takes.
  static int repeats_for(long long payload_bytes) { return payload_bytes < 200'000'000 ? 5 : 1; }

  CardArenas arenas_;
  cudaStream_t stream_;
  Bases bases_;
  std::map<long long, double> copies_;
  long long checked_ = 0, wrong_ = 0;
  std::string first_wrong_;
};

}  // namespace

void measure_shapes(const CardArenas& arenas, cudaStream_t stream) {
  Bench bench(arenas, stream);
  constexpr long long mib = 1 << 20;
  const auto vectors = [](unsigned count) {
    return Variant{.name = ", " + std::to_string(count) + " vectors a lane", .lane_vectors = count};
  };
  bench.measure_orders(contiguous(64 * mib));
  bench.measure_orders(contiguous(512 * mib));
  bench.measure(contiguous(512 * mib), {.name = ", 4 groups a block", .order = Order::shares, .groups_a_block = 4});
  for (const unsigned count : {1u, 2u}) bench.measure(contiguous(512 * mib), vectors(count));
  bench.measure(contiguous(512 * mib), {.name = ", the deep kernel", .lane_vectors = lane_vectors_max});
  bench.measure(contiguous(512 * mib), {.name = ", streaming hints", .hints = PackGrid::Hints::streaming});
  for (const long long head : {8, 4, 1}) {
    Shape shape = dense("contiguous, 512 MiB, source off by " + std::to_string(head), block_of({{512 * mib, 1, 1}}), 1);
    shape.moves[0].source_offset = head;
    bench.measure(shape);
  }

  for (const long long row : {256, 1024, 4096})
    bench.measure_orders(rows_of(512 * mib / row, row, row + 64, Direction::pack));
  bench.measure(rows_of(512 * mib / 65536, 65536, 65600, Direction::pack));
  bench.measure(rows_of(64 * mib / 256, 256, 320, Direction::pack));
  for (const unsigned count : {8u, 4u})
    bench.measure(rows_of(512 * mib / 264, 264, 272, Direction::pack), vectors(count));
  for (const long long row : {256, 1024}) bench.measure(rows_of(512 * mib / row, row, row + 64, Direction::unpack));

  bench.measure_orders(pieces_of(1000, 262144));
  bench.measure_orders(pieces_of(10000, 26176));
  bench.measure_orders(pieces_of(100000, 2560));
  bench.measure(pieces_of(100000, 2560), {.name = ", warps search", .searches = true});

  bench.measure_orders(transpose_of(8192, 8192, 8));
  bench.measure_orders(transpose_of(7001, 9001, 8));
  bench.measure(transpose_of(2880, 2912, 8));
  bench.measure(transpose_of(8192, 16384, 4));
  bench.measure(transpose_of(8192, 4096, 16));
  for (const int width : {2, 1}) {
    bench.measure(transpose_of(16384, 16384, width));
    bench.measure(transpose_of(16383, 16385, width));  // these strides do not fit words
  }
  bench.measure(dense("512 transposes of 128 x 1024 elements of 8 bytes",
                      block_of({{512, 1 << 20, 1 << 20}, {128, 8192, 8}, {1024, 8, 1024}}), 8));

  constexpr long long short_rows = 8 << 20;
  struct Pitch {
    long long row, near;
  };
  for (const auto& [row, near] : {Pitch{8, 64}, Pitch{24, 96}, Pitch{40, 96}, Pitch{64, 128}}) {
    bench.measure(rows_of(short_rows, row, near, Direction::pack));
    bench.measure(rows_of(short_rows, row, 256, Direction::pack));
  }
  bench.measure(rows_of(2 << 20, 24, 1584, Direction::pack));
  for (const long long row : {8, 24, 64}) bench.measure(rows_of(short_rows, row, 128, Direction::unpack));
  bench.report_checks();
}

}  // namespace tranship::device
