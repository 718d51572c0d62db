// Assignments against all permutations, and against a plain implementation of the Hungarian method, on gains of the
// kinds that make one or the other way of the solver the right one.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/plan/assignment.hpp>

#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using namespace test;
using Wide = __int128;

/// (The sum of the gains, rows in their own column), as one number of two digits.
Wide value_of(const std::vector<Index>& gains, const std::vector<Index>& columns) {
  const Index rows = Index(columns.size());
  Wide out = 0;
  for (Index row = 0; row < rows; ++row)
    out += Wide(gains[std::size_t(row * rows + columns[std::size_t(row)])]) * (rows + 1) +
           (columns[std::size_t(row)] == row);
  return out;
}

bool is_permutation(std::vector<Index> columns) {
  std::sort(columns.begin(), columns.end());
  for (Index i = 0; i < Index(columns.size()); ++i)
    if (columns[std::size_t(i)] != i) return false;
  return true;
}

Wide best_of_all(const std::vector<Index>& gains, Index rows) {
  std::vector<Index> columns(static_cast<std::size_t>(rows));
  std::iota(columns.begin(), columns.end(), Index(0));
  Wide best = 0;
  do best = std::max(best, value_of(gains, columns));
  while (std::next_permutation(columns.begin(), columns.end()));
  return best;
}

/// Rows join one by one along shortest paths, every step over all columns (Kuhn 1955).
Wide best_by_kuhn(const std::vector<Index>& gains, Index rows) {
  const std::size_t n = std::size_t(rows), none = n + 1;
  const auto cost = [&](std::size_t row, std::size_t k) {
    return -(Wide(gains[row * n + k]) * (rows + 1) + (row == k));
  };
  const Wide far = std::numeric_limits<std::int64_t>::max() * Wide(1 << 30);
  std::vector<Wide> of_row(n, 0), of_column(n + 1, 0);
  std::vector<std::size_t> row_of(n + 1, none), from(n + 1);
  for (std::size_t row = 0; row < n; ++row) {
    std::vector<Wide> distance(n + 1, far);
    std::vector<char> reached(n + 1, 0);
    row_of[n] = row;
    std::size_t column = n;
    while (row_of[column] != none) {
      reached[column] = 1;
      const std::size_t at = row_of[column];
      std::size_t nearest = none;
      for (std::size_t k = 0; k < n; ++k) {
        if (reached[k]) continue;
        const Wide reduced = cost(at, k) - of_row[at] - of_column[k];
        if (reduced < distance[k]) distance[k] = reduced, from[k] = column;
        if (nearest == none || distance[k] < distance[nearest]) nearest = k;
      }
      const Wide step = distance[nearest];
      for (std::size_t k = 0; k <= n; ++k) {
        if (reached[k]) {
          of_row[row_of[k]] += step;
          of_column[k] -= step;
        } else {
          distance[k] -= step;
        }
      }
      column = nearest;
    }
    for (; column != n; column = from[column]) row_of[column] = row_of[from[column]];
  }
  std::vector<Index> columns(n);
  for (std::size_t k = 0; k < n; ++k) columns[row_of[k]] = Index(k);
  return value_of(gains, columns);
}

/// Gains of one of several kinds: all different, many alike, few above zero, products of one number for each row and
/// column, columns that too many rows want, and numbers that need more than 64 bits.
std::vector<Index> random_gains(Random& random, Index rows) {
  const std::size_t n = std::size_t(rows);
  std::vector<Index> out(n * n), of_row(n), of_column(n);
  const Index kind = random.below(7), most = random.pick<Index>({2, 10, 1000, 1'000'000'007});
  for (Index& x : of_row) x = random.below(most);
  for (Index& x : of_column) x = random.below(most);
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t k = 0; k < n; ++k) {
      Index& gain = out[row * n + k];
      switch (kind) {
        case 0:
          gain = random.below(most);
          break;
        case 1:
          gain = random.below(3) * most;
          break;
        case 2:
          gain = random.one_in(4) ? random.below(most) : 0;
          break;
        case 3:
          gain = of_row[row] * of_column[k];
          break;
        case 4:
          gain = of_row[row] / 7 * of_column[k] + random.below(2);
          break;
        case 5:
          gain = k < n / 3 ? most : random.below(2);
          break;
        default:
          gain = random.between(0, (Index(1) << 61) + 12345);
      }
    }
  return out;
}

TEST(Assignment, IsAsGoodAsTheBestOfAllPermutations) {
  EXPECT_EQ(first_fault(0.5,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Index rows = random.between(0, 6);
                          const std::vector<Index> gains = random_gains(random, rows);
                          const std::vector<Index> columns = best_assignment(gains, rows);
                          if (Index(columns.size()) != rows || !is_permutation(columns)) return "no permutation";
                          return value_of(gains, columns) == best_of_all(gains, rows) ? "" : "not the best";
                        }),
            "");
}

TEST(Assignment, IsAsGoodAsTheHungarianMethod) {
  EXPECT_EQ(first_fault(0.3,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Index rows = random.between(7, is_thinned() ? 60 : 150);
                          const std::vector<Index> gains = random_gains(random, rows);
                          const std::vector<Index> columns = best_assignment(gains, rows);
                          if (!is_permutation(columns)) return "no permutation";
                          return value_of(gains, columns) == best_by_kuhn(gains, rows) ? "" : "not the best";
                        }),
            "");
}

}  // namespace
}  // namespace tranship
