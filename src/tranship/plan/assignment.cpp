#include "tranship/plan/assignment.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace tranship {
namespace {

/// Looks at rows, per row of the matrix, before bidding for prices begins.
constexpr Index looks_before_bidding = 12;
/// Bids, per row of the matrix, in one round of bidding. If ties make a round longer than this, paths are faster.
constexpr Index bids_of_round_max = 16;
/// Each round of bidding uses a step that is smaller by this factor.
constexpr Index round_ratio = 7;

/// Columns have prices and rows have profits. The slack of a place, profit + price - weight, is never negative, and
/// assigned places have slack 0; so no other assignment of these rows has a larger sum. Rows join one by one along the
/// shortest path of slack to a free column (Kuhn 1955; Jonker and Volgenant 1987), or many at once while many paths
/// have the same length (Hopcroft and Karp 1973). If nearly all places are alike, bad prices make the paths long: then
/// the rows first bid for prices in ever smaller steps (Bertsekas 1988).
///
/// The weight of a place is the pair (gain, is on the diagonal), stored as one number of two digits.
template <class Weight>
class Assignment {
 public:
  Assignment(const std::vector<Index>& gains, Index rows)
      : gains_(gains),
        n_(static_cast<std::size_t>(rows)),
        price_(n_, 0),
        profit_(n_, 0),
        column_of_(n_, none),
        row_of_(n_, none),
        order_(n_),
        distance_(n_),
        from_(n_) {}

  std::vector<Index> solve() {
    if (!complete(std::size_t(looks_before_bidding) * n_)) {
      bid();
      complete(std::numeric_limits<std::size_t>::max());
    }
    return {column_of_.begin(), column_of_.end()};
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  Weight weight(std::size_t row, std::size_t column) const {
    return Weight(gains_[row * n_ + column]) * Weight(n_ + 1) + Weight(row == column);
  }
  Weight slack(std::size_t row, std::size_t column) const {
    return profit_[row] + price_[column] - weight(row, column);
  }

  /// Assigns all rows under the present prices. Returns false if it needs more than `looks_max` looks at a row.
  bool complete(std::size_t looks_max) {
    std::fill(column_of_.begin(), column_of_.end(), none);
    std::fill(row_of_.begin(), row_of_.end(), none);
    for (std::size_t row = 0; row < n_; ++row) {
      profit_[row] = weight(row, 0) - price_[0];
      for (std::size_t k = 1; k < n_; ++k) profit_[row] = std::max(profit_[row], weight(row, k) - price_[k]);
    }
    looks_ = 0;
    std::size_t free = n_ - take_without_slack(looks_max);
    // Continues while each search from all free rows finds many paths.
    for (std::size_t found = n_; free > 0 && found * 48 >= n_; free -= found) {
      if (looks_ > looks_max) return false;
      search_from_all();
      found = take_without_slack(looks_max);
    }
    for (std::size_t row = 0; row < n_ && free > 0; ++row) {
      if (column_of_[row] != none) continue;
      if (looks_ > looks_max) return false;
      search_from(row);
      --free;
    }
    return true;
  }

  /// Assigns along paths without slack, from free rows to free columns, until no path is left or the looks are used up.
  /// Each pass takes a maximal set of disjoint shortest paths. Returns the number of rows that it assigned.
  std::size_t take_without_slack(std::size_t looks_max) {
    std::size_t all = 0;
    for (std::size_t found = 1; found > 0 && looks_ <= looks_max; all += found) {
      found = 0;
      std::vector<std::size_t> layer(n_, none), next(n_, 0), rows, behind;
      for (std::size_t row = 0; row < n_; ++row)
        if (column_of_[row] == none) rows.push_back(row);
      bool ends = false;
      for (std::size_t depth = 0; !ends && !rows.empty(); ++depth, rows.swap(behind)) {
        behind.clear();
        looks_ += rows.size();
        for (const std::size_t row : rows)
          for (std::size_t k = 0; k < n_; ++k) {
            if (layer[k] != none || slack(row, k) != 0) continue;
            layer[k] = depth;
            if (row_of_[k] == none)
              ends = true;
            else
              behind.push_back(row_of_[k]);
          }
      }
      for (std::size_t root = 0; root < n_ && ends; ++root) {
        if (column_of_[root] != none) continue;
        rows.assign(1, root);
        std::size_t end = none;
        while (!rows.empty() && end == none) {
          const std::size_t row = rows.back(), depth = rows.size() - 1;
          std::size_t& k = next[row];
          while (k < n_ && (layer[k] != depth || slack(row, k) != 0)) ++k;
          if (k == n_) {
            rows.pop_back();
            continue;
          }
          layer[k] = none;
          from_[k] = row;
          if (row_of_[k] == none)
            end = k;
          else
            rows.push_back(row_of_[k]);
        }
        if (end == none) continue;
        take_path(root, end);
        ++found;
      }
    }
    return all;
  }

  void take_path(std::size_t root, std::size_t end) {
    for (std::size_t column = end;;) {
      const std::size_t row = from_[column], left = column_of_[row];
      row_of_[column] = row;
      column_of_[row] = column;
      if (row == root) return;
      column = left;
    }
  }

  /// Changes prices and profits such that some path from a free row to a free column has no slack.
  void search_from_all() {
    std::fill(distance_.begin(), distance_.end(), std::numeric_limits<Weight>::max());
    std::vector<char> done(n_, 0);
    std::vector<std::pair<std::size_t, Weight>> rows;
    const auto look = [&](std::size_t row, Weight at) {
      ++looks_;
      rows.emplace_back(row, at);
      for (std::size_t k = 0; k < n_; ++k) distance_[k] = std::min(distance_[k], at + slack(row, k));
    };
    for (std::size_t row = 0; row < n_; ++row)
      if (column_of_[row] == none) look(row, 0);
    Weight nearest = 0;
    for (;;) {
      std::size_t column = none;
      for (std::size_t k = 0; k < n_; ++k)
        if (!done[k] && (column == none || distance_[k] < distance_[column] ||
                         (distance_[k] == distance_[column] && row_of_[k] == none)))
          column = k;
      nearest = distance_[column];
      if (row_of_[column] == none) break;
      done[column] = 1;
      look(row_of_[column], nearest);
    }
    for (const auto& [row, at] : rows) profit_[row] -= nearest - at;
    for (std::size_t k = 0; k < n_; ++k)
      if (done[k]) price_[k] += nearest - distance_[k];
  }

  /// Assigns a free row along its shortest path to a free column.
  void search_from(std::size_t root) {
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    for (std::size_t k = 0; k < n_; ++k) {
      distance_[k] = slack(root, k);
      from_[k] = root;
    }
    std::vector<std::pair<std::size_t, Weight>> rows{{root, Weight(0)}};
    ++looks_;
    // Columns in the order of `order_`: [0, low) are done; [low, up) have the smallest distance of the others.
    std::size_t low = 0, up = 0, end = none;
    Weight nearest = 0;
    while (end == none) {
      if (low == up) {
        nearest = std::numeric_limits<Weight>::max();
        for (std::size_t k = low; k < n_; ++k) {
          const std::size_t column = order_[k];
          if (distance_[column] > nearest) continue;
          if (distance_[column] < nearest) up = low;
          nearest = distance_[column];
          std::swap(order_[k], order_[up++]);
        }
        for (std::size_t k = low; k < up && end == none; ++k)
          if (row_of_[order_[k]] == none) end = order_[k];
        if (end != none) break;
      }
      const std::size_t row = row_of_[order_[low++]];
      ++looks_;
      rows.emplace_back(row, nearest);
      for (std::size_t k = up; k < n_; ++k) {
        const std::size_t column = order_[k];
        const Weight at = nearest + slack(row, column);
        if (at >= distance_[column]) continue;
        distance_[column] = at;
        from_[column] = row;
        if (at > nearest) continue;
        if (row_of_[column] == none) {
          end = column;
          break;
        }
        std::swap(order_[k], order_[up++]);
      }
    }
    for (const auto& [row, at] : rows) profit_[row] -= nearest - at;
    for (std::size_t k = 0; k < low; ++k) price_[order_[k]] += nearest - distance_[order_[k]];
    take_path(root, end);
  }

  /// Finds prices under which every row can get a place that is nearly its best.
  void bid() {
    std::fill(price_.begin(), price_.end(), 0);
    Weight step = 1;
    for (std::size_t row = 0; row < n_; ++row)
      for (std::size_t k = 0; k < n_; ++k) step = std::max(step, weight(row, k) / 8);
    std::vector<std::size_t> waiting;
    for (;; step = std::max<Weight>(1, step / round_ratio)) {
      std::fill(row_of_.begin(), row_of_.end(), none);
      waiting.resize(n_);
      std::iota(waiting.rbegin(), waiting.rend(), std::size_t(0));
      for (std::size_t bids = 0; !waiting.empty() && bids < std::size_t(bids_of_round_max) * n_; ++bids) {
        const std::size_t row = waiting.back();
        waiting.pop_back();
        std::size_t column = 0;
        Weight best = weight(row, 0) - price_[0], second = std::numeric_limits<Weight>::min();
        for (std::size_t k = 1; k < n_; ++k) {
          const Weight gain = weight(row, k) - price_[k];
          if (gain <= second) continue;
          second = std::min(gain, best);
          if (gain <= best) continue;
          best = gain;
          column = k;
        }
        price_[column] += (n_ > 1 ? best - second : Weight(0)) + step;
        if (row_of_[column] != none) waiting.push_back(row_of_[column]);
        row_of_[column] = row;
      }
      if (step == 1) return;
    }
  }

  const std::vector<Index>& gains_;
  std::size_t n_;
  std::vector<Weight> price_, profit_;
  std::vector<std::size_t> column_of_, row_of_;
  std::size_t looks_ = 0;
  // State of a search:
  std::vector<std::size_t> order_;
  std::vector<Weight> distance_;
  std::vector<std::size_t> from_;
};

}  // namespace

std::vector<Index> best_assignment(const std::vector<Index>& gains, Index rows) {
  // Prices and distances are sums of a few weights per row.
  using Wide = __int128;
  const auto fits = [&](Index most) {
    return (Wide(most) * (rows + 1) + 1) * 4 * (rows + 1) < std::numeric_limits<Index>::max();
  };
  const Index most = gains.empty() ? 0 : *std::max_element(gains.begin(), gains.end());
  if (fits(most)) return Assignment<Index>(gains, rows).solve();
  Index common = 0;
  for (std::size_t i = 0; i < gains.size() && common != 1; ++i) common = std::gcd(common, gains[i]);
  if (!fits(most / common)) return Assignment<Wide>(gains, rows).solve();
  std::vector<Index> reduced = gains;
  for (Index& gain : reduced) gain /= common;
  return Assignment<Index>(reduced, rows).solve();
}

}  // namespace tranship
