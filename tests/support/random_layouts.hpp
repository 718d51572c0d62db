// Random layouts from a seed: the same on every machine, and replayed by TRANSHIP_TEST_SEED.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/random.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship::test {

/// Specified to the bit, which the distributions of <random> are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : numbers_(seed) {}

  std::uint64_t bits() { return numbers_.next(); }
  /// 0 <= result < count.
  Index below(Index count) { return Index(bits() % std::uint64_t(count)); }
  /// Both ends included.
  Index between(Index low, Index high) { return low + below(high - low + 1); }
  bool one_in(Index count) { return below(count) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(Index(from.size()))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (Index i = Index(values.size()) - 1; i > 0; --i) std::swap(values[i], values[below(i + 1)]);
  }

 private:
  SplitMix64 numbers_;
};

Index environment_number(const char* name, Index otherwise);
/// Returns true when TRANSHIP_TEST_LONG asks for long tests.
bool long_tests();

/// TRANSHIP_TEST_CASES: 1500, or under a sanitizer 250, unless it is set.
Index test_cases();

/// Runs `fault_of(seed)` for many seeds, or for TRANSHIP_TEST_SEED alone. Returns the first fault with its seed.
/// `share` says how much of test_cases() this test takes, from TRANSHIP_TEST_FIRST (default 0) on.
std::string first_fault(double share, FunctionRef<std::string(std::uint64_t)> fault_of);

EdgePolicy random_edge(Random& random);
std::vector<Index> random_bounds(Random& random, Index extent, Index parts);

struct LayoutChoices {
  int ranks_max = 8;      ///< of the grid
  int world = 10;         ///< ranks to choose from
  Index overlap_max = 3;  ///< per side; 0: none
  bool replicas = true;   ///< replica axes, and whole dimensions on several ranks
  bool interfaces = true;
};

Partition random_partition(Random& random, Index extent, Index parts, const LayoutChoices& choices);

Indices random_extents(Random& random, int dims);

/// A grid of any axis order, with or without replicas, on any ranks of the world.
Grid random_grid(Random& random, int dims, const LayoutChoices& choices);

MemoryLayout random_memory(Random& random, int dims);

Distribution random_distribution(Random& random, const Indices& extents, const LayoutChoices& choices = {});

/// One part that has all cells in their order, under any name.
Partition random_whole(Random& random, Index extent);

/// A layout of the leading dimensions and of the one dimension by which `extents` may be longer, which is whole or cut.
Distribution with_rest(Random& random, const Distribution& leading, const Indices& extents);

/// Ids dealt at random, in random order, with random ghosts. Every id has an owner.
Distribution random_indexed(Random& random, const Indices& extents, int indexed_dims, Index parts,
                            const std::vector<Rank>& ranks);

}  // namespace tranship::test
