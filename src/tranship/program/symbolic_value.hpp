// Private: values of symbolic execution: which inputs have been combined, and how.
//
// The value at place x of a memory is a table entry and a displacement d: the entry names the ranks whose inputs, at
// place x + d of each, are combined. Entries are compared by polynomials modulo a prime, with a random coefficient for
// each input and the displacement as the exponent, at two random points. So combining and displacing cost the same for
// any number of inputs, and two different entries compare equal with a probability of about 2^-100.
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
  std::int32_t entry = 0;  ///< 0: never written
  Index displacement = 0;

  bool is_undefined() const noexcept { return entry == 0; }
  friend bool operator==(const Value&, const Value&) = default;
};

class ValueTable {
 public:
  ValueTable();

  /// The input of `rank` in `launch`, without displacement.
  std::int32_t input(Rank rank, int launch);
  Value combine(Reduction reduction, const Value& a, const Value& b);
  /// The inputs of all `ranks` ranks in `launch`, combined.
  std::int32_t all_inputs(Reduction reduction, Rank ranks, int launch);

  /// Returns true when both combine the same inputs at the same places. For minima and maxima repetition does not
  /// matter; when that takes more than `leaves_max` inputs to see, it returns false.
  bool are_equal(const Value& a, const Value& b) const;
  /// Describes a value, for example "the sum of input[3] of rank 0, input[3] of rank 1", at place `at`; a chunk has
  /// `units` places.
  std::string text(const Value& value, Index at, Index units, int launch) const;

  static constexpr std::size_t leaves_max = 1 << 16;

 private:
  struct Hash {
    std::uint64_t first = 0, second = 0;
    friend bool operator==(const Hash&, const Hash&) = default;
  };
  struct Entry {
    Hash hash;  ///< as a part of a combination by its own reduction
    Reduction reduction = Reduction::sum;
    Index inputs = 0;  ///< number of inputs, at most inputs_max; 1: an input itself
    // For an input:
    Rank rank = -1;
    int launch = 0;
    // For a combination; b is displaced against a:
    std::int32_t a = 0, b = 0;
    Index between = 0;
  };
  /// An input with its displacement, or an entry of another reduction with its own.
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
  /// The distinct leaves, at most `count_max` of them.
  std::vector<Leaf> leaves_of(const Value& value, Reduction reduction, std::size_t count_max) const;

  std::vector<Entry> entries_;
  std::map<std::pair<Rank, int>, std::int32_t> inputs_;
  std::unordered_map<Combination, std::int32_t, CombinationHash> combined_;
  std::map<std::tuple<Reduction, Rank, int>, std::int32_t> all_;
};

}  // namespace tranship
