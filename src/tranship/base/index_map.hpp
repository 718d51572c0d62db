// Detail: IndexMap, a signed permutation plus an offset, on points or on cells.
//
// A map takes a position x in one index space to a position y in another:  y[image_dim(d)] = sign(d) * x[d] +
// offset(d). It works on doubled coordinates: cell i is the odd number 2i+1 (its centre), and interface i (the lower
// face of cell i) is the even number 2i. So one map serves cells and staggered points: a reversed axis of n cells sends
// cell i to n-1-i and interface i to n-i, both by y = 2n - x.
#pragma once

#include <tranship/base/index.hpp>

namespace tranship {

/// Tells whether a dimension counts cells, or the interfaces between them (one more than cells).
enum class Points : std::uint8_t { cells, interfaces };

class IndexMap {
 public:
  IndexMap() = default;
  /// For every dimension d of the domain: the dimension of the image that it feeds, its sign (+1 or -1), and the offset
  /// in doubled coordinates. Throws `invalid_use` unless `image_dims` is a permutation and all signs are +1 or -1.
  IndexMap(const Indices& image_dims, const Indices& signs, const Indices& offsets_doubled);

  static IndexMap identity(int dims);
  /// Returns the map y = x + by, in cells.
  static IndexMap translation(const Indices& by);

  int dims() const noexcept { return image_dims_.size(); }
  /// Returns the dimension of the image that dimension d of the domain feeds.
  int image_dim(int d) const noexcept { return static_cast<int>(image_dims_[d]); }
  int sign(int d) const noexcept { return static_cast<int>(signs_[d]); }
  Index offset_doubled(int d) const noexcept { return offsets_[d]; }

  /// Returns the image of one coordinate along dimension d, which counts `points`.
  Index apply(int d, Index x, Points points) const noexcept {
    return points == Points::interfaces ? (signs_[d] * 2 * x + offsets_[d]) / 2
                                        : (signs_[d] * (2 * x + 1) + offsets_[d] - 1) / 2;
  }
  /// Returns the image of a cell.
  Indices apply(const Indices& cell) const;

  IndexMap inverse() const;
  /// Returns the map that applies this one and then `then`.
  IndexMap followed_by(const IndexMap& then) const;

  bool is_translation() const noexcept;
  friend bool operator==(const IndexMap&, const IndexMap&) = default;

 private:
  Indices image_dims_;
  Indices signs_;
  Indices offsets_;
};

std::string to_string(const IndexMap& map);

}  // namespace tranship
