// Private: Values of symbolic execution: which inputs have been combined, and how.
//
// The value at place x of a memory is a table entry and a displacement d: the entry says which ranks' inputs are
// combined at place x + d of each. Entries are compared by 128-bit sums of random numbers, one for each input, so that
// combining two of them costs the same however many inputs they hold; two different entries are taken for equal with a
// probability of 2^-100.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
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

  /// Whether both combine the same inputs at the same places. Minima and maxima do not count how often.
  bool are_equal(const Value& a, const Value& b);
  /// Such as "sum of input[3] of ranks 0, 1 and 2 (launch 1)", for place `at`, which a chunk of `units` places holds.
  std::string text(const Value& value, Index at, Index units) const;

 private:
  struct Hash {
    std::uint64_t low = 0, high = 0;
    friend bool operator==(const Hash&, const Hash&) = default;
  };
  struct Entry {
    Hash hash;
    Reduction reduction = Reduction::sum;
    Index inputs = 0;  ///< 1: an input itself, or a combination by another reduction
    // Of an input:
    Rank rank = -1;
    int launch = 0;
    // Of a combination: b is displaced against a.
    std::int32_t a = 0, b = 0;
    Index between = 0;
  };
  /// An input with its displacement; of a combination by another reduction, that entry.
  using Leaf = std::tuple<std::int32_t, Index>;

  void collect(std::int32_t entry, Index displacement, Reduction reduction, std::vector<Leaf>& out) const;
  Hash hash_of(std::int32_t entry, Reduction reduction, Index displacement) const;
  bool is_of(const Entry& entry, Reduction reduction) const {
    return entry.inputs == 1 || entry.reduction == reduction;
  }

  std::vector<Entry> entries_;
  std::map<std::pair<Rank, int>, std::int32_t> inputs_;
  std::map<std::tuple<Reduction, std::int32_t, std::int32_t, Index>, std::int32_t> combined_;
  std::map<std::tuple<Reduction, Rank, int>, std::int32_t> all_;
};

}  // namespace tranship
