// Declares the kernels of the questions about CUDA's semantics, so that the questions themselves are plain C++, which
// compiles once and not for each architecture. Each kernel that waits gives up by itself. Read next: tools.hpp, for the
// ways to launch them.
#pragma once

#include "facts/options.hpp"

#if defined(__CUDACC__)
#define TRANSHIP_KERNEL __global__
#else
#define TRANSHIP_KERNEL
#endif

namespace tranship::device {

using Word = unsigned long long;

// ---- kernels.cu ----

/// Host and card share these words while a kernel holds a stream. `ended` is 1 when the kernel was told to stop, and 2
/// when it gave up. Each word has a line of its own.
struct Levers {
  Word started[16];
  Word stop[16];
  Word ended[16];
};
TRANSHIP_KERNEL void hold(Levers* levers, Word limit_ns);

TRANSHIP_KERNEL void put_word(Word* at, Word value);
struct PutParameters {
  Word* at;
  Word value;
  Word filler[6];
};
TRANSHIP_KERNEL void put_by_parameters(PutParameters parameters);
/// Sets word i to value + i.
TRANSHIP_KERNEL void put_words(Word* at, unsigned words, Word value);
TRANSHIP_KERNEL void count_other_words(const Word* at, unsigned words, Word value, Word* others);
/// Raises `started`, then reads over and over for `for_ns`.
TRANSHIP_KERNEL void keep_reading(const Word* at, unsigned words, Word for_ns, Word* started, Word* sum);

/// Runs as one block. For each round it waits for the flag to reach the round, counts the words that do not belong to
/// the round, and acknowledges. `acquires` is 0 for a wait that only loads.
TRANSHIP_KERNEL void watch_rounds(const Word* flag, const Word* data, unsigned words, int rounds, int acquires,
                                  Word limit_ns, Word* acknowledged, Word* others);
/// Counts how many of these kernels or blocks are present at once. Each stays for `stay_ns`.
TRANSHIP_KERNEL void count_present(Word* present, Word* most, Word stay_ns);
/// Counts for each multiprocessor too; `most_of` and `present_of` have 1024 words each.
TRANSHIP_KERNEL void count_resident(Word* present, Word* most, Word* present_of, Word* most_of, Word stay_ns);
/// Blocks wait for one another: how many are present, how many gave up, and the fewest that one of these saw.
struct Gathering {
  Word present[16];
  Word abort[16];
  Word gave_up[16];
  Word fewest_seen[16];
};
TRANSHIP_KERNEL void gather(Gathering* gathering, Word wanted, Word limit_ns);
struct Span {
  Word first_begin_ns;
  Word last_end_ns;
};
TRANSHIP_KERNEL void stay(Span* span, Word stay_ns);
TRANSHIP_KERNEL void note_multiprocessors(unsigned* of_block);

/// Lane `setter` of the only warp sets the word that lane 1 - `setter` waits for; `in_shared` selects the memory. `out`
/// is 1 where the wait ended well, and 2 where it gave up.
TRANSHIP_KERNEL void lane_waits_for_lane(int setter, int in_shared, Word* word, Word limit_ns, Word* out);
/// All warps except `setter` wait for that warp.
TRANSHIP_KERNEL void warps_wait_for_warp(int setter, Word* word, Word limit_ns, Word* out);
enum class Spinning : int { not_at_all, on_the_card, on_the_card_sleeping, in_shared, in_shared_sleeping };
enum class Working : int { computing, loading };
/// Warp 0 works for `steps`, and the others of its block spin until it is done. `out` receives the clocks of the work.
TRANSHIP_KERNEL void work_beside_spinners(Spinning how, Working what, int steps, const Word* chain, Word* stop,
                                          Word limit_ns, Word* out);

/// Makes the driver load all kernels of kernels.cu, so that no first launch waits for a kernel that runs.
void load_kernels();

// ---- faulty_kernels.cu ----

TRANSHIP_KERNEL void store_at(Word* at, Word value);
TRANSHIP_KERNEL void load_from(const Word* at, Word* to);
TRANSHIP_KERNEL void store_misaligned(Word* at, unsigned offset_bytes);
TRANSHIP_KERNEL void store_beyond_shared(unsigned offset_bytes, Word* out);
TRANSHIP_KERNEL void trap();
TRANSHIP_KERNEL void fail_assertion(int value);
TRANSHIP_KERNEL void divide(int dividend, int divisor, int* out);
TRANSHIP_KERNEL void recurse(Word depth, Word* out);
TRANSHIP_KERNEL void print_lines(unsigned lines);

}  // namespace tranship::device
