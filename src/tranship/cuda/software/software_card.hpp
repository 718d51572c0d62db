// Private: software cards, doubles of the CUDA driver in this process (TRANSHIP_CUDA=software:2). They run kernels that
// have twins (lane.hpp) on fibers and behave as adversarially as CUDA's documents allow, from a seed. Settings, after
// the number of cards and separated by colons: seed=7, memory=64M (capacity of each card), punctual (nothing is done
// late), apart (no card's kernels reach the memory of another one; the driver's copies do).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tranship/cuda/software/all_calls.hpp>
#include <tranship/cuda/software/grid.hpp>

namespace tranship::cuda::software {

struct SoftwareCards {
  int count = 1;
  std::uint64_t seed = 1;
  std::size_t capacity_bytes = std::size_t(256) << 20;
  bool is_punctual = false;
  bool is_apart = false;
  /// Work of one card that waits for work of another one never begins when that card fails. Else it goes on.
  bool is_stuck = false;
};

/// The cards that a text after "software:" asks for. Throws `bad_text`.
SoftwareCards software_cards(std::string_view text);

/// Makes the cards of this process, once, and fills a table with their calls. Later calls must ask for the same cards.
void fill_calls(AllCalls& calls, const SoftwareCards& cards);

/// Chooses what happens next from another seed, and forgets failures: tests run many cases in one process. Nothing may
/// be under way.
void begin_anew(std::uint64_t seed);
/// Counts of the launches of a kernel on a card since the process began, or since begin_anew().
KernelCounts counts_of(int card, std::string_view kernel);
/// Why a card has failed; empty while it works.
std::string failure_of(int card);

}  // namespace tranship::cuda::software
