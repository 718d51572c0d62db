// Checks the packing kernel on CPU lanes: random lists against the plain loop, the division by multiplication, and
// pieces larger than any memory here. Also counts how many sectors the lanes of a warp touch together, which is what
// coalescing means.
//
//   device_packing_host [--lists N] [--seed N] [--break]
//
// --break moves one piece of each list by one vector: the check of the lists must then report lists that are wrong.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tranship/base/random.hpp>
#include <tranship/fabric/lanes/cpu_lanes.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/kernels/host/piece_list.hpp>
#include <tranship/kernels/move_pieces.hpp>

#include "packing/random_moves.hpp"
#include "support/findings.hpp"

namespace tranship::device {
namespace {

struct Options {
  int lists = 1200;
  std::uint64_t seed = 1;
  bool is_broken = false;
};

long long wrong_total = 0;

void report(const std::string& name, long long cases, long long wrong, const std::string& note = {}) {
  check(name, cases, wrong, note);
  wrong_total += wrong;
}

/// Counts accesses that are not aligned to their vectors, which fail on a card, and bytes that are stored again, which
/// results do not show.
struct HostMemory {
  mutable long long misaligned = 0, stored_bytes = 0;

  template <class V>
  V load(const unsigned char* from) const {
    misaligned += reinterpret_cast<std::uintptr_t>(from) % sizeof(V) != 0;
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <class V>
  void store(unsigned char* to, const V& value) const {
    misaligned += reinterpret_cast<std::uintptr_t>(to) % sizeof(V) != 0;
    std::memcpy(to, &value, sizeof value);
    stored_bytes += sizeof value;
  }
};

/// Owns zeroed memory from an address that is a multiple of 256.
class Arena {
 public:
  explicit Arena(std::size_t bytes) : room_(bytes + 256) {}
  unsigned char* data() { return room_.data() + (256 - reinterpret_cast<std::uintptr_t>(room_.data()) % 256) % 256; }

 private:
  std::vector<unsigned char> room_;
};

/// Holds the choices of a launch. The kernel is that of pack.cu.
struct HostGrid {
  Order order = Order::strided;
  unsigned blocks = 1;
  bool has_tiles = true;
};

template <class Memory>
void run_on_lanes(World& world, const PieceListView& list, const Bases& bases, const HostGrid& how, Arena& rooms,
                  const Memory& memory_of) {
  const LaneGrid grid{.blocks = static_cast<int>(how.blocks), .block = {.lanes = static_cast<int>(pack_lanes)}};
  run_grid(world, grid, [&](const CpuLane& lane) {
    unsigned char* const room = rooms.data() + std::size_t(lane.block_index()) * room_bytes;
    if (how.has_tiles)
      move_pieces<true, lane_vectors_max>(lane, memory_of(lane), list, bases, how.order, room);
    else if (list.lane_vectors > lean_vectors)
      move_pieces<false, lane_vectors_max>(lane, memory_of(lane), list, bases, how.order, nullptr);
    else
      move_pieces<false, lean_vectors>(lane, memory_of(lane), list, bases, how.order, nullptr);
  });
}

void divisions() {
  long long cases = 0, wrong = 0;
  std::string first;
  const auto look = [&](unsigned d, const Divisor& by, unsigned x) {
    ++cases;
    if (divide(x, by.multiplier, by.shift) == x / d) return;
    if (wrong++ == 0) first = std::to_string(x) + " / " + std::to_string(d);
  };
  constexpr unsigned top = (1u << 31) - 1;
  const auto edges = [&](unsigned d) {
    const Divisor by = divisor_of(d);
    // The error of the product grows with x, and is largest in the last element before a multiple.
    const auto excess = static_cast<__int128>(by.multiplier) * d - (static_cast<__int128>(1) << (31 + by.shift));
    ++cases;
    if (excess < 0 || excess >= static_cast<__int128>(1) << by.shift) ++wrong;
    const unsigned last = top / d * d;
    for (const unsigned x : {0u, 1u, d - 1, last - 1, last, top - 1, top}) look(d, by, x);
    if (d <= top / 2)
      for (const unsigned x : {d, d + 1, 2 * d - 1, last - d, last - d + 1}) look(d, by, x);
  };
  for (unsigned d = 1; d <= 1u << 20; ++d) edges(d);
  for (unsigned bit = 20; bit < 31; ++bit)
    for (unsigned d = (1u << bit) - 3000; d < (1u << bit) + 3000; ++d) edges(d);
  for (unsigned d = top - 5000; d < top; ++d) edges(d);
  edges(top);
  SplitMix64 random(7);
  for (int i = 0; i < 1000000; ++i) edges(1 + static_cast<unsigned>(random.below(top)));
  for (unsigned d = 1; d <= 1200; ++d) {
    const Divisor by = divisor_of(d);
    for (unsigned x = 0; x < 4096; ++x) {
      look(d, by, x);
      look(d, by, top - x);
    }
  }
  report("packing host: division by multiplication", cases, wrong, first);
}

void random_lists(World& world, const Options& options) {
  RandomMoves moves(options.seed, {});
  constexpr unsigned blocks_most = 12;
  long long wrong = 0, refused = 0, misaligned = 0, repeated = 0, bytes = 0, pieces = 0, transposed = 0, by_words = 0,
            whole = 0;
  std::string first;
  Arena rooms(blocks_most * room_bytes);
  for (int number = 0; number < options.lists; ++number) {
    const RandomList list = moves.next();
    std::vector<unsigned char> sources(static_cast<std::size_t>(list.arena_bytes)), targets(sources.size());
    moves.fill(sources);
    moves.fill(targets);
    std::vector<unsigned char> expected = targets;
    plain_moves(list, sources.data(), expected.data());

    PieceLimits limits;
    if (moves.random().below(3) == 0) {
      limits.span_bytes = 200 + static_cast<long long>(moves.random().below(20000));
      limits.vectors = 20 + static_cast<long long>(moves.random().below(2000));
      limits.transposed_min = 2;
    }
    PieceList made(list.alignments(), limits);
    for (const BlockMove& move : list.moves) {
      made.add(move);
      bytes += element_count(move.block) * move.width;
    }
    made.lay_out(1 + static_cast<unsigned>(moves.random().below(12)),
                 static_cast<unsigned>(moves.random().below(lane_vectors_max + 1)));
    pieces += static_cast<long long>(made.pieces().size());
    long long list_bytes = 0;
    for (const Piece& piece : made.pieces()) {
      list_bytes += 1ll * piece.columns * piece.rows * piece.outers << piece.width_log2;
      transposed += piece.kind == PieceKind::transposed;
      by_words += piece.kind == PieceKind::transposed_words;
    }
    if (options.is_broken && !made.pieces().empty()) made.pieces()[0].source_offset += 1 << made.pieces()[0].width_log2;

    // The list serves any buffers: a second round uses others of the same alignment, and blocks that search.
    bool is_wrong = false;
    for (int round = 0; round < (number % 8 == 0 ? 2 : 1); ++round) {
      Arena from(sources.size()), to(sources.size());
      std::memcpy(from.data(), sources.data(), sources.size());
      std::memcpy(to.data(), targets.data(), targets.size());
      std::memset(rooms.data(), 0xa5, blocks_most * room_bytes);
      std::vector<unsigned char*> many;
      Bases bases = list.bases(from.data(), to.data(), many);
      PieceListView view = made.view();
      if (round == 1) {
        view.starts = nullptr;
        bases.many = many.data();
      }
      // The grid has few blocks or a block a group, in both orders, and sometimes more blocks than groups.
      HostGrid grid{.has_tiles = made.has_transposed() || moves.random().below(4) == 0};
      if (moves.random().below(2)) grid.order = Order::shares;
      grid.blocks = 1 + static_cast<unsigned>(moves.random().below(5));
      if (view.groups > 0 && view.groups <= blocks_most && moves.random().below(2)) grid.blocks = view.groups;
      whole += grid.blocks == view.groups;
      HostMemory memory;
      run_on_lanes(world, view, bases, grid, rooms, [&](const CpuLane&) -> const HostMemory& { return memory; });
      misaligned += memory.misaligned;
      repeated += memory.stored_bytes != list_bytes;
      if (std::memcmp(to.data(), expected.data(), expected.size()) == 0) continue;
      is_wrong = true;
      if (first.empty())
        first = "list " + std::to_string(number) + " (" + list.name + "), round " + std::to_string(round);
    }
    wrong += is_wrong;
  }
  // A move that may write an element twice is refused.
  for (const long long stride : {4ll, 6ll}) {
    BlockMove move;
    move.target_base = 1;
    move.width = 8;
    move.block.dims = 1;
    move.block.extents[0] = 3;
    move.block.source_strides[0] = 8;
    move.block.target_strides[0] = stride;
    try {
      PieceList({16, 16}).add(move);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  report("packing host: random lists on CPU lanes against the plain loop", options.lists, wrong,
         first.empty() ? std::to_string(pieces) + " pieces, " + std::to_string(transposed) + " transposed, " +
                             std::to_string(by_words) + " by words, " + std::to_string(bytes / 1000000) + " MB, " +
                             std::to_string(whole) + " runs with a block a group"
                       : first);
  report("packing host: accesses aligned to their vectors", options.lists, misaligned);
  report("packing host: each vector stored once", options.lists, repeated);
  report("packing host: overlapping targets refused", 2, 2 - refused);
}

/// Nothing is moved. The test checks that the pieces of moves beyond 31 bits cover them, and that each piece keeps
/// within 31 bits.
void large_moves() {
  struct Case {
    long long extents[3], source_strides[3], target_strides[3];
    int width;
  };
  const Case all[] = {
      {{1, 1, (1ll << 35) + 5}, {0, 0, 1}, {0, 0, 1}, 1},
      {{1, 1, 3000000000ll}, {0, 0, 8}, {0, 0, 8}, 8},
      {{1, 100000, 100000}, {0, 8, 800000}, {0, 800000, 8}, 8},
      {{40, 3, 5000}, {1ll << 33, 1ll << 31, 16}, {15 * 5000 * 16, 5000 * 16, 16}, 16},
      {{2000, 3000, 3000}, {-9000000 * 4, 12000, 4}, {4, 8000, 24000000}, 4},
  };
  long long wrong = 0;
  for (const Case& one : all) {
    BlockMove move;
    move.target_base = 1;
    move.width = one.width;
    move.block.dims = 3;
    for (int d = 0; d < 3; ++d) {
      move.block.extents[d] = one.extents[d];
      move.block.source_strides[d] = one.source_strides[d];
      move.block.target_strides[d] = one.target_strides[d];
    }
    PieceList list({16, 16});
    list.add(move);
    list.lay_out(528);
    __int128 bytes = 0;
    for (const Piece& piece : list.pieces()) {
      const auto vectors = static_cast<__int128>(piece.columns) * piece.rows * piece.outers;
      bytes += vectors << piece.width_log2;
      const auto reach = [&](int column, int row, int outer) {
        return static_cast<__int128>(std::abs(1ll * column)) * (piece.columns - 1) +
               static_cast<__int128>(std::abs(1ll * row)) * (piece.rows - 1) +
               static_cast<__int128>(std::abs(1ll * outer)) * (piece.outers - 1) + (1 << piece.width_log2);
      };
      const __int128 most = 1ll << 31;
      if (vectors >= most || reach(piece.source_column, piece.source_row, piece.source_outer) >= most ||
          reach(piece.target_column, piece.target_row, piece.target_outer) >= most)
        ++wrong;
    }
    wrong += bytes != static_cast<__int128>(element_count(move.block)) * move.width;
  }
  report("packing host: pieces of large moves keep within 31 bits", std::size(all), wrong);
}

/// Records the addresses that each lane accesses, in its order.
struct Accesses {
  std::vector<std::vector<std::uintptr_t>> loads, stores;
  unsigned width_bytes = 0;
};
struct RecordingMemory {
  Accesses* accesses;
  std::size_t lane;

  template <class V>
  V load(const unsigned char* from) const {
    accesses->loads[lane].push_back(reinterpret_cast<std::uintptr_t>(from));
    accesses->width_bytes = sizeof(V);
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <class V>
  void store(unsigned char* to, const V& value) const {
    accesses->stores[lane].push_back(reinterpret_cast<std::uintptr_t>(to));
    std::memcpy(to, &value, sizeof value);
  }
};

/// Returns the 32-byte sectors that the warps touch with all accesses of one kind, as a multiple of the fewest
/// possible.
double sectors(const std::vector<std::vector<std::uintptr_t>>& of_lanes, unsigned width_bytes) {
  long long touched = 0, accesses = 0;
  for (std::size_t warp = 0; warp < of_lanes.size(); warp += 32)
    for (std::size_t k = 0; k < of_lanes[warp].size(); ++k) {
      std::set<std::uintptr_t> of_warp;
      for (std::size_t lane = warp; lane < warp + 32; ++lane)
        if (k < of_lanes[lane].size()) {
          of_warp.insert(of_lanes[lane][k] / 32);
          ++accesses;
        }
      touched += static_cast<long long>(of_warp.size());
    }
  return static_cast<double>(touched) * 32 / (static_cast<double>(accesses) * width_bytes);
}

void coalescing(World& world) {
  struct Case {
    const char* name;
    int width;
    long long extents[3], source_strides[3], target_strides[3];
    unsigned vector_bytes;
    double load_most, store_most;
  };
  const Case all[] = {
      {"contiguous", 4, {1, 1, 65536}, {0, 0, 4}, {0, 0, 4}, 16, 1, 1},
      {"rows of 256 bytes", 8, {1, 256, 32}, {0, 320, 8}, {0, 256, 8}, 16, 1, 1},
      {"rows of 24 bytes", 8, {1, 1024, 3}, {0, 96, 8}, {0, 24, 8}, 8, 1.5, 1.1},
      {"transposed, 16 bytes", 16, {1, 64, 128}, {0, 128 * 16, 16}, {0, 16, 64 * 16}, 16, 1, 1},
      {"transposed, 8 bytes", 8, {1, 64, 128}, {0, 128 * 8, 8}, {0, 8, 64 * 8}, 8, 1, 1},
      {"transposed, 4 bytes", 4, {1, 64, 128}, {0, 128 * 4, 4}, {0, 4, 64 * 4}, 4, 1, 1},
      {"transposed, 2 bytes", 2, {1, 64, 128}, {0, 128 * 2, 2}, {0, 2, 64 * 2}, 4, 1, 1},
      {"transposed, 1 byte", 1, {1, 128, 256}, {0, 256, 1}, {0, 1, 128}, 4, 1, 1},
      {"transposed, 2 bytes, odd", 2, {1, 64, 65}, {0, 65 * 2, 2}, {0, 2, 64 * 2}, 2, 1.75, 1},
      {"transposed, 1 byte, odd", 1, {1, 63, 64}, {0, 64, 1}, {0, 1, 63}, 1, 1, 2},
      {"halo of 3, i fastest to k fastest",
       8,
       {3, 192, 79},
       {8, 198 * 8, 198 * 198 * 8},
       {192 * 79 * 8, 79 * 8, 8},
       8,
       2.2,
       1.6},
  };
  long long wrong = 0;
  std::string note;
  for (const Case& one : all) {
    BlockMove move;
    move.target_base = 1;
    move.width = one.width;
    move.block.dims = 3;
    long long source_bytes = one.width, target_bytes = one.width;
    for (int d = 0; d < 3; ++d) {
      move.block.extents[d] = one.extents[d];
      source_bytes += (one.extents[d] - 1) * (move.block.source_strides[d] = one.source_strides[d]);
      target_bytes += (one.extents[d] - 1) * (move.block.target_strides[d] = one.target_strides[d]);
    }
    Arena source(static_cast<std::size_t>(source_bytes)), target(static_cast<std::size_t>(target_bytes)),
        rooms(room_bytes);
    PieceList list({16, 16});
    list.add(move);
    list.lay_out(1);
    Bases bases;
    bases.few[0] = source.data();
    bases.few[1] = target.data();
    Accesses accesses;
    accesses.loads.resize(pack_lanes);
    accesses.stores.resize(pack_lanes);
    run_on_lanes(world, list.view(), bases, {}, rooms, [&](const CpuLane& lane) {
      return RecordingMemory{&accesses, static_cast<std::size_t>(lane.index())};
    });
    const double loads = sectors(accesses.loads, accesses.width_bytes);
    const double stores = sectors(accesses.stores, accesses.width_bytes);
    if (accesses.width_bytes != one.vector_bytes || loads > one.load_most || stores > one.store_most) ++wrong;
    char text[160];
    std::snprintf(text, sizeof text, "%s%s: vectors of %u, loads %.2f, stores %.2f", note.empty() ? "" : "; ", one.name,
                  accesses.width_bytes, loads, stores);
    note += text;
  }
  report("packing host: sectors of warps over the fewest possible", std::size(all), wrong, note);
}

int run(const Options& options) {
  divisions();
  large_moves();
  launch(1, [&](World& world) {
    coalescing(world);
    random_lists(world, options);
  });
  return wrong_total == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--lists" && i + 1 < argc)
      options.lists = std::atoi(argv[++i]);
    else if (word == "--seed" && i + 1 < argc)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--break")
      options.is_broken = true;
    else {
      tranship::device::fault("packing_host: unknown option " + word);
      return 2;
    }
  }
  try {
    return tranship::device::run(options);
  } catch (const std::exception& error) {
    tranship::device::fault(std::string("packing_host: ") + error.what());
    return 3;
  }
}
