// Detail: Grid, which rank holds which part. A value: extents per array dimension, replicas, a numbering, and the
// ranks.
//
// Every part has coordinates, one per array dimension, and a replica number. The numbering (row-major by default, or
// any order of the axes) turns them into an ordinal, and the list of ranks turns ordinals into ranks of the world.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// The position of a part in a grid.
struct Place {
  Indices coordinates;
  Index replica = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct GridOptions {
  /// Number of complete copies of the array, each on ranks of its own.
  Index replicas = 1;
  /// Axes from slowest to fastest; axis d is array dimension d, and axis dims() is the replica number. Empty: the
  /// replica is slowest, then row-major.
  std::vector<int> order = {};
  /// The ranks are first, first + stride, ...
  Rank first = 0;
  Rank stride = 1;
  /// Or exactly these ranks, by ordinal; then `first` and `stride` are ignored.
  std::vector<Rank> ranks = {};
};

class Grid {
 public:
  Grid() = default;
  /// Throws `invalid_use` for extents below 1, a bad order, a number of ranks that differs from the parts, or a rank
  /// named twice.
  explicit Grid(const Indices& extents, GridOptions options = {});

  int dims() const noexcept { return extents_.size(); }
  const Indices& extents() const noexcept { return extents_; }
  Index replicas() const noexcept { return replicas_; }
  /// Returns the number of ranks.
  Index size() const noexcept { return size_; }

  Rank rank_of(const Place& place) const { return rank_at(ordinal_of(place)); }
  Rank rank_at(Index ordinal) const;
  Index ordinal_of(const Place& place) const;
  Place place_at(Index ordinal) const;
  /// Returns nothing when the rank is not in the grid.
  std::optional<Place> place_of(Rank rank) const;
  std::optional<Index> ordinal_of(Rank rank) const;
  /// Returns by how much the ordinal grows when the coordinate of an axis grows by one; axis dims() is the replica
  /// number.
  Index ordinal_stride(int axis) const noexcept { return axis == dims() ? replica_stride_ : strides_[axis]; }
  /// Returns the highest rank of the grid plus one.
  Rank world_size_min() const noexcept { return world_size_min_; }
  /// Returns all ranks, by ordinal.
  std::vector<Rank> ranks() const;

  const std::vector<int>& order() const noexcept { return order_; }
  /// Returns the same parts on other ranks.
  Grid on_ranks(std::vector<Rank> ranks) const;
  bool ranks_listed() const noexcept { return ranks_ != nullptr; }
  Rank first() const noexcept { return first_; }
  Rank stride() const noexcept { return stride_; }

  /// Two grids are equal when they give every part to the same rank.
  friend bool operator==(const Grid& a, const Grid& b);

 private:
  struct Listed {
    std::vector<Rank> by_ordinal;
    std::vector<std::pair<Rank, Index>> by_rank;  // sorted
  };

  Indices extents_;
  Index replicas_ = 1;
  std::vector<int> order_;
  Indices strides_;
  Index replica_stride_ = 1;
  Index size_ = 1;
  Rank first_ = 0;
  Rank stride_ = 1;
  Rank world_size_min_ = 1;
  std::shared_ptr<const Listed> ranks_;
};

/// Makes a row-major grid over ranks 0, 1, ...
template <class... Extents>
Grid grid(Extents... extents) {
  return Grid(Indices{static_cast<Index>(extents)...});
}

}  // namespace tranship
