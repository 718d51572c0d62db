// Private: Values of symbolic execution: which inputs have been combined, and how.
//
// The value at place x of a memory is a table entry and a displacement d: the entry says which ranks' inputs are
// combined at place x + d of each. Entries are compared by polynomials modulo a prime, with a random coefficient for
// each input and the displacement as the power, at two random points: combining and displacing cost the same however
// many inputs there are, and two different entries are taken for equal with a probability of about 2^-100.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/base/reduction.hpp>

namespace tranship {

struct Value {
  std::int32_t entry = 0;  ///< 0: what nothing has written
  Index displacement = 0;

  bool is_undefined() const noexcept { return entry == 0; }
  friend bool operator==(const Value&, const Value&) = default;
};

class ValueTable {
 public:
  ValueTable();

  /// The input of `rank` in `launch`, at its own places.
  std::int32_t input(Rank rank, int launch);
  Value combine(Reduction reduction, const Value& a, const Value& b);
  /// All inputs of so many ranks in `launch`, combined.
  std::int32_t all_inputs(Reduction reduction, Rank ranks, int launch);

  /// Whether both combine the same inputs at the same places. Minima and maxima do not count how often; where that
  /// takes more than `leaves_max` inputs to see, they are taken for different.
  bool are_equal(const Value& a, const Value& b) const;
  /// Such as "sum of input[3] of ranks 0, 1 and 2 (launch 1)", for place `at`, which a chunk of `units` places holds.
  std::string text(const Value& value, Index at, Index units, int launch) const;

  static constexpr std::size_t leaves_max = 1 << 16;

 private:
  struct Hash {
    std::uint64_t first = 0, second = 0;
    friend bool operator==(const Hash&, const Hash&) = default;
  };
  struct Entry {
    Hash hash;  ///< as what it is combined with has it, where it is a combination by the same reduction
    Reduction reduction = Reduction::sum;
    Index inputs = 0;  ///< as many as inputs_max, or more; 1: an input itself
    // Of an input:
    Rank rank = -1;
    int launch = 0;
    // Of a combination: b is displaced against a.
    std::int32_t a = 0, b = 0;
    Index between = 0;
  };
  /// An input with its displacement; of a combination by another reduction, that entry.
  using Leaf = std::pair<std::int32_t, Index>;
  struct Combination {
    Reduction reduction;
    std::int32_t a, b;
    Index between;
    friend bool operator==(const Combination&, const Combination&) = default;
  };
  struct CombinationHash {
    std::size_t operator()(const Combination& one) const noexcept;
  };

  const Entry& of(std::int32_t entry) const { return entries_[static_cast<std::size_t>(entry)]; }
  bool is_leaf(std::int32_t entry, Reduction reduction) const {
    return of(entry).inputs <= 1 || of(entry).reduction != reduction;
  }
  Hash hash_of(std::int32_t entry, Reduction reduction, Index displacement) const;
  /// Different leaves, the first ones where there are more than `count_max`.
  std::vector<Leaf> leaves_of(const Value& value, Reduction reduction, std::size_t count_max) const;

  std::vector<Entry> entries_;
  std::map<std::pair<Rank, int>, std::int32_t> inputs_;
  std::unordered_map<Combination, std::int32_t, CombinationHash> combined_;
  std::map<std::tuple<Reduction, Rank, int>, std::int32_t> all_;
};

}  // namespace tranship
