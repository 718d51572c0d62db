#include "tranship/layout/grid.hpp"

#include <algorithm>
#include <climits>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/layout_error.hpp>

namespace tranship {

Grid::Grid(const Indices& extents, GridOptions options)
    : extents_(extents),
      replicas_(options.replicas),
      order_(options.order),
      first_(options.first),
      stride_(options.stride) {
  const int dims = extents.size();
  for (int d = 0; d < dims; ++d)
    if (extents[d] < 1) fail_value(LayoutValue::parts, d, "grid extent {} of dimension {} is below 1", extents[d], d);
  if (replicas_ < 1)
    fail_value(LayoutValue::replicas, 0, "the grid has {}; at least 1 is needed", amount(replicas_, "replica"));
  size_ = checked_multiply(checked_product(extents), replicas_);

  // An order may leave out the replica axis, which is then the slowest.
  if (order_.empty())
    for (int d = 0; d < dims; ++d) order_.push_back(d);
  std::vector<int> axes = order_;
  if (int(axes.size()) == dims && std::find(axes.begin(), axes.end(), dims) == axes.end())
    axes.insert(axes.begin(), dims);
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = int(axes.size()) == dims + 1;
  for (int i = 0; permutation && i <= dims; ++i) permutation = sorted[i] == i;
  if (!permutation)
    fail_value(LayoutValue::axes, wrong_axis(order_, dims + 1),
               "grid order [{}] is not a permutation of the axes 0 to {}", join_text(order_, ", "), dims);

  strides_ = Indices::filled(dims, 0);
  Index next = 1;
  for (int k = dims; k >= 0; --k) {
    if (axes[k] == dims) {
      replica_stride_ = next;
      next *= replicas_;
    } else {
      strides_[axes[k]] = next;
      next *= extents_[axes[k]];
    }
  }
  order_.assign(axes.begin() + (axes.front() == dims), axes.end());

  if (!options.ranks.empty()) {
    if (Index(options.ranks.size()) != size_)
      throw_error(ErrorCode::invalid_use, "a grid of {} is given {}", amount(size_, "part"),
                  amount(options.ranks.size(), "rank"));
    Listed listed{std::move(options.ranks), {}};
    first_ = 0;
    stride_ = 1;
    for (Index i = 0; i < size_; ++i) {
      if (listed.by_ordinal[i] < 0)
        throw_error(ErrorCode::invalid_use, "rank {} of part {} is negative", listed.by_ordinal[i], i);
      if (listed.by_ordinal[i] == INT_MAX)
        throw_error(ErrorCode::overflow, "rank {} of part {} is above the largest rank {}", listed.by_ordinal[i], i,
                    INT_MAX - 1);
      listed.by_rank.emplace_back(listed.by_ordinal[i], i);
    }
    std::sort(listed.by_rank.begin(), listed.by_rank.end());
    for (Index i = 1; i < size_; ++i)
      if (listed.by_rank[i].first == listed.by_rank[i - 1].first)
        fail_value(LayoutValue::ranks, listed.by_rank[i].second, "rank {} holds two parts, {} and {}",
                   listed.by_rank[i].first, listed.by_rank[i - 1].second, listed.by_rank[i].second);
    world_size_min_ = listed.by_rank.back().first + 1;
    // Ranks in equal steps upward are kept as first and stride.
    const auto& list = listed.by_ordinal;
    const Rank step = size_ > 1 ? list[1] - list[0] : 1;
    bool arithmetic = step > 0;
    for (Index i = 1; arithmetic && i < size_; ++i) arithmetic = list[i] - list[i - 1] == step;
    if (arithmetic) {
      first_ = list[0];
      stride_ = step;
    } else {
      ranks_ = std::make_shared<const Listed>(std::move(listed));
    }
    return;
  }
  if (first_ < 0 || stride_ < 1)
    throw_error(ErrorCode::invalid_use, "ranks from {} in steps of {}: must start at 0 or above and go up", first_,
                stride_);
  const Index last = checked_add(first_, checked_multiply(stride_, size_ - 1));
  if (last >= INT_MAX) throw_error(ErrorCode::overflow, "rank {} is above the largest rank {}", last, INT_MAX - 1);
  world_size_min_ = static_cast<Rank>(last) + 1;
}

Rank Grid::rank_at(Index ordinal) const {
  if (ranks_) return ranks_->by_ordinal[ordinal];
  return static_cast<Rank>(first_ + stride_ * ordinal);
}

Index Grid::ordinal_of(const Place& place) const {
  Index out = place.replica * replica_stride_;
  for (int d = 0; d < dims(); ++d) out += place.coordinates[d] * strides_[d];
  return out;
}

Place Grid::place_at(Index ordinal) const {
  Place out;
  for (int d = 0; d < dims(); ++d) out.coordinates.push_back(ordinal / strides_[d] % extents_[d]);
  out.replica = ordinal / replica_stride_ % replicas_;
  return out;
}

std::optional<Index> Grid::ordinal_of(Rank rank) const {
  if (ranks_) {
    const auto& list = ranks_->by_rank;
    const auto it = std::lower_bound(list.begin(), list.end(), std::pair<Rank, Index>(rank, 0));
    if (it == list.end() || it->first != rank) return std::nullopt;
    return it->second;
  }
  if (rank < first_ || (rank - first_) % stride_ != 0) return std::nullopt;
  const Index ordinal = (rank - first_) / stride_;
  if (ordinal >= size_) return std::nullopt;
  return ordinal;
}

std::optional<Place> Grid::place_of(Rank rank) const {
  const std::optional<Index> ordinal = ordinal_of(rank);
  if (!ordinal) return std::nullopt;
  return place_at(*ordinal);
}

std::vector<Rank> Grid::ranks() const {
  std::vector<Rank> out(size_);
  for (Index i = 0; i < size_; ++i) out[i] = rank_at(i);
  return out;
}

Grid Grid::on_ranks(std::vector<Rank> ranks) const {
  Grid out(extents_, {.replicas = replicas_, .order = order_, .ranks = std::move(ranks)});
  return out;
}

bool operator==(const Grid& a, const Grid& b) {
  if (!(a.extents_ == b.extents_) || a.replicas_ != b.replicas_) return false;
  // Axes of extent 1 do not affect the numbering.
  for (int d = 0; d < a.dims(); ++d)
    if (a.extents_[d] > 1 && a.strides_[d] != b.strides_[d]) return false;
  if (a.replicas_ > 1 && a.replica_stride_ != b.replica_stride_) return false;
  if (!a.ranks_ != !b.ranks_) return false;
  if (a.ranks_) return a.ranks_->by_ordinal == b.ranks_->by_ordinal;
  return a.first_ == b.first_ && (a.stride_ == b.stride_ || a.size_ == 1);
}

}  // namespace tranship
