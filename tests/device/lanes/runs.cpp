#include "lanes/runs.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <tranship/base/random.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>

#include "lanes/array_cases.hpp"

namespace tranship::device {
namespace {

const char* name_of(Scope scope) {
  return scope == Scope::thread ? "thread" : scope == Scope::warp ? "warp" : "block";
}
const char* name_of(TeamKind team) {
  constexpr const char* names[] = {"world", "every other", "reversed", "listed", "single"};
  return names[int(team)];
}
const char* section_of(long long offset) {
  return offset < lists_at      ? "words"
         : offset < signals_at  ? "lists"
         : offset < counters_at ? "signals"
         : offset < results_at  ? "counters"
         : offset < source_at   ? "results"
         : offset < target_at   ? "source"
                                : "target";
}

constexpr int block_sizes[] = {1, 32, 40, 96, 256};

int groups_of(const CaseFacts& facts, const Run& run) {
  const int in_block = facts.scope == Scope::thread ? run.lanes
                       : facts.scope == Scope::warp ? (run.lanes + 31) / 32
                                                    : 1;
  return in_block * run.args.blocks;
}

int below(SplitMix64& random, int count) {
  return int(random.below(std::uint64_t(count)));
}

/// Chooses dense strides of dimensions in a random order, with gaps and signs, and the first element's place in the
/// range that the strides span. Returns the number of elements in that range.
long long lay_out(SplitMix64& random, const Shape& shape, long long* strides, long long& first) {
  const int dims = int(shape.dims);
  std::vector<int> order(static_cast<std::size_t>(dims));
  std::iota(order.begin(), order.end(), 0);
  for (int d = dims - 1; d > 0; --d) std::swap(order[std::size_t(d)], order[std::size_t(below(random, d + 1))]);
  if (below(random, 2)) std::sort(order.begin(), order.end(), std::greater<>());
  long long stride = 1, reach = 1;
  first = 0;
  for (const int d : order) {
    if (below(random, 3) == 0) stride += below(random, 3);
    const bool is_back = below(random, 4) == 0;
    strides[d] = is_back ? -stride : stride;
    const long long steps = std::max(shape.extents[d], 1ll) - 1;
    if (is_back) first += steps * stride;
    reach += steps * stride;
    stride *= std::max(shape.extents[d], 1ll);
    stride = std::max(stride, reach);
  }
  return reach;
}

/// Writes shapes that lie one behind the other, each in the same number of elements.
void write_shapes(SplitMix64& random, Shape* shapes, long long room) {
  for (int i = 0; i < shapes_count; ++i) {
    Shape shape;
    do {
      shape = {};
      shape.dims = below(random, 8);
      const int most = int(std::min<long long>(room, shape.dims <= 2 ? 60 : shape.dims <= 4 ? 8 : 3));
      for (int d = 0; d < shape.dims; ++d) shape.extents[d] = below(random, 25) == 0 ? 0 : 1 + below(random, most);
      const long long target_reach = lay_out(random, shape, shape.target_strides, shape.target_at);
      long long source_reach = lay_out(random, shape, shape.source_strides, shape.source_at);
      if (below(random, 3) == 0) {
        // Some elements are read more than once.
        source_reach = 1;
        shape.source_at = 0;
        for (int d = 0; d < shape.dims; ++d) {
          shape.source_strides[d] = below(random, 2) ? 0 : below(random, 5) - 2;
          const long long steps = std::max(shape.extents[d], 1ll) - 1;
          if (shape.source_strides[d] < 0) shape.source_at -= steps * shape.source_strides[d];
          source_reach += steps * std::abs(shape.source_strides[d]);
        }
      }
      if (target_reach <= room && source_reach <= room) break;
    } while (true);
    shape.target_at += i * room;
    shape.source_at += i * room;
    shapes[i] = shape;
  }
}

}  // namespace

std::string name_of(const CaseFacts& facts) {
  return std::string(facts.name) + " of " + facts.type + " by " + name_of(facts.scope);
}
std::string name_of(const Run& run) {
  return "variant " + std::to_string(run.args.variant) + ", " + std::to_string(run.args.ranks) + " ranks of " +
         std::to_string(run.args.blocks) + " x " + std::to_string(run.lanes) + " lanes, team " +
         name_of(run.args.team) + (run.args.has_places ? ", places" : "") +
         (run.args.is_on_one_device ? ", one device" : "") + ", seed " + std::to_string(run.seed);
}

std::vector<Run> runs_of(const CaseFacts& facts, int ranks, Extent extent) {
  std::vector<Run> runs;
  const int sizes = int(std::size(block_sizes));
  for (int variant = 0; variant < facts.variants; ++variant) {
    const int blocks_tried = extent == Extent::small ? 1 : ranks == 2 ? sizes : 2;
    for (int i = 0; i < blocks_tried; ++i) {
      Run run;
      run.seed = std::uint64_t(runs.size() + 1) * 64 + std::uint64_t(ranks);
      SplitMix64 random(run.seed * 0x10001 + std::uint64_t(facts.name[0]) * 256 + std::uint64_t(facts.scope));
      run.lanes = block_sizes[(i + (blocks_tried == sizes ? 0 : below(random, sizes))) % sizes];
      if (extent == Extent::small) run.lanes = facts.scope == Scope::warp ? 64 : 96;
      run.args.ranks = ranks;
      run.args.variant = variant;
      run.args.blocks = below(random, 4) == 0 ? 2 : 1;
      run.args.has_places = below(random, 3) == 0;
      run.args.is_on_one_device = below(random, 2) == 0;
      run.args.team = facts.uses_team ? TeamKind((i + below(random, team_kinds)) % team_kinds) : TeamKind::world;
      // Runs of more than 2 ranks replace a team of one by the world.
      if (run.args.team == TeamKind::single && ranks > 2) run.args.team = TeamKind::world;
      if (extent == Extent::small) run.args.rounds = 12;
      runs.push_back(run);
    }
  }
  return runs;
}

void forget_words(unsigned char* arena) {
  for (int team = 0; team < team_kinds; ++team) {
    unsigned char* const words = arena + words_at + team * words_bytes;
    std::uint64_t meetings = 0;
    std::memcpy(&meetings, words, sizeof meetings);
    std::memset(words, 0, words_bytes);
    words[0] = meetings != 0;
  }
}

std::vector<Bytes> arenas_before(const CaseFacts& facts, const Run& run) {
  const int n = run.args.ranks;
  SplitMix64 random(run.seed);
  Lists lists = {};
  std::iota(lists.places, lists.places + n, 0);
  std::iota(lists.members, lists.members + n, 0);
  for (int i = n - 1; i > 0; --i) {
    std::swap(lists.places[i], lists.places[below(random, i + 1)]);
    std::swap(lists.members[i], lists.members[below(random, i + 1)]);
  }
  lists.members_count = n <= 2 ? n : 2 + below(random, n - 1);
  for (int i = 0; i < 8; ++i) {
    lists.skips[0][i] = i != 4;
    lists.skips[1][i] = i != 1 && i != 3 && i != 4;
    lists.skips[2][i] = i >= 6;
  }
  Shape shapes[shapes_count] = {};
  if (facts.shape_width > 0) write_shapes(random, shapes, shape_room(groups_of(facts, run), facts.shape_width));

  std::vector<Bytes> arenas;
  for (int rank = 0; rank < n; ++rank) {
    Bytes bytes(arena_bytes);
    SplitMix64 noise(run.seed * 1000 + std::uint64_t(rank));
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      const std::uint64_t some = noise.next();
      std::memcpy(&bytes[at], &some, 8);
    }
    std::memset(&bytes[words_at], 0, lists_at - words_at);
    std::memset(&bytes[signals_at], 0, results_at - signals_at);
    std::memcpy(&bytes[lists_at], &lists, sizeof lists);
    std::memcpy(&bytes[shapes_at], shapes, sizeof shapes);
    arenas.push_back(std::move(bytes));
  }
  return arenas;
}

std::vector<std::vector<Bytes>> arenas_after(const HostCase& of, const std::vector<Run>& runs,
                                             const std::vector<std::vector<Bytes>>& before, Route route) {
  std::vector<std::vector<Bytes>> after = before;
  if (runs.empty()) return after;
  const auto body = [&](World& world) {
    const auto memory = world.allocate<unsigned char>(arena_bytes, {.bytes = 256});
    const auto rank = std::size_t(world.rank());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Run& run = runs[i];
      std::memcpy(memory.local(), before[i][rank].data(), arena_bytes);
      world.barrier();
      HeapView heap = heap_view(world);
      if (route == Route::context || route == Route::simulated) heap.heaps.count = 0, heap.heaps.is_complete = false;
      const CaseArgs args = case_args(heap, memory.local(), run.args);
      run_grid(world, {.blocks = run.args.blocks, .block = {.lanes = run.lanes}},
               [&](const CpuLane& lane) { (route == Route::side_by_side ? of.run_side_by_side : of.run)(lane, args); });
      world.barrier();
      forget_words(memory.local());
      std::memcpy(after[i][rank].data(), memory.local(), arena_bytes);
      world.barrier();
    }
  };
  const int ranks = runs.front().args.ranks;
  if (route == Route::simulated)
    simulate({.ranks = ranks, .seed = runs.front().seed, .peers = PeerKind::messaged, .steps_max = 1'000'000'000},
             body);
  else
    launch(LaunchOptions{.ranks = ranks, .pinning = Pinning::none}, body);
  return after;
}

std::string difference(const std::vector<Bytes>& wanted, const std::vector<Bytes>& found) {
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    const auto [a, b] = std::mismatch(wanted[rank].begin(), wanted[rank].end(), found[rank].begin());
    if (a == wanted[rank].end()) continue;
    long long bytes = 0;
    for (std::size_t i = 0; i < wanted[rank].size(); ++i) bytes += wanted[rank][i] != found[rank][i];
    const auto at = (a - wanted[rank].begin()) / 8 * 8;
    std::uint64_t want = 0, have = 0;
    std::memcpy(&want, &wanted[rank][std::size_t(at)], 8);
    std::memcpy(&have, &found[rank][std::size_t(at)], 8);
    const char* section = section_of(at);
    const long long first = at < lists_at      ? words_at
                            : at < signals_at  ? lists_at
                            : at < counters_at ? signals_at
                            : at < results_at  ? counters_at
                            : at < source_at   ? results_at
                            : at < target_at   ? source_at
                                               : target_at;
    char text[200];
    std::snprintf(text, sizeof text, "rank %zu: %lld bytes differ, the first at %s + %lld: 0x%016llx, wanted 0x%016llx",
                  rank, bytes, section, static_cast<long long>(a - wanted[rank].begin()) - first,
                  static_cast<unsigned long long>(have), static_cast<unsigned long long>(want));
    return text;
  }
  return {};
}

std::string ring_difference(const CaseFacts& facts, const Run& run, const std::vector<Bytes>& before,
                            const std::vector<Bytes>& after) {
  if (std::strcmp(facts.name, "ring") != 0 || run.args.variant != 1) return {};
  std::vector<Bytes> wanted = before;
  const int n = run.args.ranks;
  const auto values = [](Bytes& arena, long long at) { return reinterpret_cast<std::uint32_t*>(arena.data() + at); };
  for (int lap = 0; lap < run.args.rounds; ++lap)
    for (int rank = 0; rank < n; ++rank)
      for (int i = 0; i < 1024; ++i) {
        const std::uint32_t value = values(wanted[std::size_t(rank)], target_at)[i];
        const std::uint32_t changed = value * 1664525u + 1013904223u + std::uint32_t(rank);
        values(wanted[std::size_t(rank)], source_at)[i] = changed;
        values(wanted[std::size_t((rank + 1) % n)], target_at)[i] = changed;
      }
  for (int rank = 0; rank < n; ++rank)
    if (std::memcmp(&wanted[std::size_t(rank)][source_at], &after[std::size_t(rank)][source_at], 2 * region_bytes) != 0)
      return "rank " + std::to_string(rank) + " has another payload than was sent around";
  return {};
}

}  // namespace tranship::device
