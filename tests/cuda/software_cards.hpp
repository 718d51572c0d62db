// The software cards of a test process.
#pragma once

#include <tranship/cuda/software/software_card.hpp>

namespace tranship::test {

/// Two cards of 64 MiB each, with a context of the first one current. Chooses what happens by `seed` from now on.
inline const cuda::software::AllCalls& software_calls(std::uint64_t seed) {
  static const cuda::software::AllCalls all = [] {
    cuda::software::AllCalls table;
    cuda::software::fill_calls(table, {.count = 2, .capacity_bytes = std::size_t(64) << 20});
    return table;
  }();
  cuda::software::begin_anew(seed);
  return all;
}

}  // namespace tranship::test
