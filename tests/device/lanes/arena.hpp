// Each case of device_lanes works in this memory, which is the same on the card and on the CPU. Each rank has an arena
// of sections at fixed places, and a case finds all that it needs from the address of the arena. So the bytes of all
// arenas before a run determine those after it. Next: the cases, from transfer_cases.hpp on.
#pragma once

#include <tranship/lanes/collectives.hpp>
#include <tranship/lanes/rma.hpp>

namespace tranship::device {

// These are the sections of an arena, by their first byte. Words, signals and counters are zero before a run; runs.cpp
// writes lists and shapes; the rest is random.

inline constexpr int ranks_max = 13;
inline constexpr int team_kinds = 5;
/// This many groups have their own part of signals and regions; further groups do nothing.
inline constexpr int parts_max = 64;
/// A rank has at most this many lanes in all its blocks.
inline constexpr int lanes_max = 512;
inline constexpr int row_words = 8;
inline constexpr int shapes_count = 6;

/// Describes an array of a strided case: strides and places count elements.
struct Shape {
  long long dims;
  long long extents[7];
  long long target_strides[7];
  long long source_strides[7];
  long long target_at;
  long long source_at;
};

/// Holds what the ranks of a run have in common; each arena has a copy.
struct Lists {
  int places[ranks_max];   ///< places of the heaps, a permutation
  int members[ranks_max];  ///< members of the listed team
  int members_count;
  int skips[3][8];  ///< the masks leave only variable 4; 1, 3 and 4; 0 to 5
};

inline constexpr long long words_at = 0;
inline constexpr long long words_bytes = TeamView::words_count * 8;
inline constexpr long long lists_at = words_at + team_kinds * words_bytes;
inline constexpr long long shapes_at = lists_at + 512;
inline constexpr long long signals_at = shapes_at + 2048;
inline constexpr long long counters_at = signals_at + parts_max * 64;
inline constexpr long long results_at = counters_at + 512;
inline constexpr long long source_at = results_at + lanes_max * row_words * 8;
inline constexpr long long region_bytes = 72 << 10;
inline constexpr long long target_at = source_at + region_bytes;
inline constexpr long long arena_bytes = target_at + region_bytes;
/// A heap has random bytes on both sides of its arena, which no rank may touch.
inline constexpr long long guard_bytes = 256;
inline constexpr long long heap_bytes = arena_bytes + 2 * guard_bytes;
static_assert(sizeof(Lists) <= 512 && sizeof(Shape) * shapes_count <= 2048);
static_assert(arena_bytes % 256 == 0 && source_at % 256 == 0 && target_at % 256 == 0 && lists_at % 256 == 0);

enum class TeamKind : int { world, every_other, reversed, listed, single };

/// Describes a run to a kernel.
struct RunArgs {
  unsigned char* const* heaps = nullptr;  ///< by rank
  long long spacing_bytes = 0;            ///< see HeapTable
  int ranks = 0;
  int first_rank = 0;  ///< first rank of this launch
  int blocks = 1;      ///< blocks of each rank
  int has_places = 0;
  TeamKind team = TeamKind::world;
  int variant = 0;
  int rounds = 100;  ///< rounds of a ring
  bool is_on_one_device = false;
  WaitGuard* guard = nullptr;
};

/// Describes a run to a case.
struct CaseArgs {
  HeapView heap;
  TeamView team;
  bool is_member = true;
  unsigned char* base = nullptr;  ///< this rank's arena
  int variant = 0;
  int rounds = 0;

  template <class T>
  TRANSHIP_SHARED T* at(long long offset_bytes) const {
    return reinterpret_cast<T*>(base + offset_bytes);
  }
  TRANSHIP_SHARED const Lists& lists() const { return *at<const Lists>(lists_at); }
  TRANSHIP_SHARED int next() const { return (heap.rank + 1) % heap.size; }
  TRANSHIP_SHARED int previous() const { return (heap.rank + heap.size - 1) % heap.size; }
};

/// Numbers a group among those of its scope, in all blocks of the rank.
struct Part {
  int number = 0;
  int count = 1;
  int lane = 0;            ///< lane of the rank
  bool is_chosen = false;  ///< true in the one group of a rank that runs a single-group case

  TRANSHIP_SHARED int count_at_most(int most) const { return count < most ? count : most; }
  /// Returns this lane's words for what it has found.
  TRANSHIP_SHARED unsigned long long* row(const CaseArgs& a) const {
    return a.at<unsigned long long>(results_at) + static_cast<long long>(lane) * row_words;
  }
};

TRANSHIP_SHARED inline CaseArgs case_args(const HeapView& heap, unsigned char* base, const RunArgs& run) {
  CaseArgs a;
  a.heap = heap;
  a.base = base;
  a.variant = run.variant;
  a.rounds = run.rounds;
  const int n = heap.size;
  TeamView& team = a.team;
  team.words = a.at<unsigned long long>(words_at + static_cast<int>(run.team) * words_bytes);
  team.count = n;
  if (run.team == TeamKind::every_other) {
    team.stride = 2;
    team.count = (n + 1) / 2;
  } else if (run.team == TeamKind::reversed) {
    team.first = n - 1;
    team.stride = -1;
  } else if (run.team == TeamKind::listed) {
    team.ranks = a.lists().members;
    team.count = a.lists().members_count;
  } else if (run.team == TeamKind::single) {
    team.first = n / 2;
    team.count = 1;
  }
  team.member = team.member_of(heap.rank);
  a.is_member = team.member >= 0;
  return a;
}

/// Is a lane of one rank, where a grid may have several ranks.
template <class Lane>
class RankLane : public Lane {
 public:
  TRANSHIP_SHARED RankLane(const Lane& lane, int block, int blocks) : Lane(lane), block_(block), blocks_(blocks) {}
  TRANSHIP_SHARED int block_index() const { return block_; }
  TRANSHIP_SHARED int blocks() const { return blocks_; }

 private:
  int block_;
  int blocks_;
};

/// Runs a case by the lane's group of a scope.
template <class Case, Scope scope, class Lane>
TRANSHIP_SHARED void run_case(const Lane& lane, const CaseArgs& args) {
  Part part;
  part.lane = lane.block_index() * lane.lanes() + lane.index();
  const auto set = [&](int in_block, int of_block, bool is_chosen) {
    part.number = lane.block_index() * of_block + in_block;
    part.count = lane.blocks() * of_block;
    part.is_chosen = lane.block_index() == 0 && is_chosen;
  };
  if constexpr (scope == Scope::thread) {
    set(lane.index(), lane.lanes(), lane.index() == 0);
    Case::run(lane.thread(), part, args);
  } else if constexpr (scope == Scope::warp) {
    // The last warp, which may have fewer lanes, is the chosen one.
    const int warps = (lane.lanes() + 31) / 32;
    set(lane.index() / 32, warps, lane.index() / 32 == warps - 1);
    Case::run(lane.warp(), part, args);
  } else {
    set(0, 1, true);
    Case::run(lane.block(), part, args);
  }
}

// A list of cases has an Of<a case, its scopes...> for each; kernels and their CPU twins come from the same list.

template <class Case, Scope... scopes>
struct Of {};
template <class... Ofs>
struct CaseList {};

/// Holds what the runs of a case need to know.
struct CaseFacts {
  const char* name;
  const char* type;
  Scope scope;
  int variants;
  bool uses_team;       ///< one group of each member runs it, in teams of all kinds
  bool needs_memory;    ///< the case loads and stores memory of peers, which no message can do
  int shape_width = 0;  ///< width of the elements of strided arrays, which have shapes
};
struct CaseTraits {
  static constexpr bool uses_team = false;
  static constexpr bool needs_memory = false;
  static constexpr int shape_width = 0;
};

// These are the element types, one for each width.

using Byte = unsigned char;
struct alignas(16) Wide {
  unsigned long long parts[2];
};
struct Odd {
  unsigned parts[3];
};

template <class T>
struct NameOf;
#define TRANSHIP_NAME(type, text)              \
  template <>                                  \
  struct NameOf<type> {                        \
    static constexpr const char* value = text; \
  };
TRANSHIP_NAME(signed char, "i8")
TRANSHIP_NAME(unsigned char, "u8")
TRANSHIP_NAME(short, "i16")
TRANSHIP_NAME(unsigned short, "u16")
TRANSHIP_NAME(int, "i32")
TRANSHIP_NAME(unsigned, "u32")
TRANSHIP_NAME(long long, "i64")
TRANSHIP_NAME(unsigned long long, "u64")
TRANSHIP_NAME(unsigned long, "ulong")
TRANSHIP_NAME(float, "f32")
TRANSHIP_NAME(double, "f64")
TRANSHIP_NAME(float16, "f16")
TRANSHIP_NAME(bfloat16, "bf16")
TRANSHIP_NAME(Wide, "16 bytes")
TRANSHIP_NAME(Odd, "12 bytes")
#undef TRANSHIP_NAME

template <class T>
TRANSHIP_SHARED unsigned long long word_of(T value) {
  unsigned long long word = 0;
  __builtin_memcpy(&word, &value, sizeof value < 8 ? sizeof value : 8);
  return word;
}

}  // namespace tranship::device
