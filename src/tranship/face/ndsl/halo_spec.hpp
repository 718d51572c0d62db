// Detail: NDSL's halo specs: how a quantity lies in memory, and which boxes of it one exchange sends and receives.
#pragma once

#include <string>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/device.hpp>
#include <tranship/base/element_type.hpp>

namespace tranship::ndsl {

/// A quantity in memory. `strides`, `shape`, `origin`, `extent` and `dims` have one entry per dimension.
struct QuantityHaloSpec {
  Index n_points = 0;             ///< depth of the halo that is exchanged
  Indices strides;                ///< bytes, multiples of `itemsize`, of either sign
  Index itemsize = 0;             ///< bytes
  Indices shape;                  ///< elements in memory, halo included
  Indices origin;                 ///< first cell of the compute domain
  Indices extent;                 ///< cells of the compute domain
  std::vector<std::string> dims;  ///< "i", "i_interface", "j", "j_interface", and any others
  ElementType dtype = ElementType::f64;
  Device device = {};  ///< whose memory it is, as NDSL's array module says
};

/// One boundary of one quantity.
struct HaloExchangeSpec {
  QuantityHaloSpec specification;
  Box pack_slices;                  ///< cells that are sent, counted from the first element in memory
  int pack_clockwise_rotation = 0;  ///< quarter turns before packing, modulo 4
  Box unpack_slices;                ///< cells that are received
};

/// The numbers of the dimensions along j and along i. Throws `invalid_use` unless there is exactly one of each: along a
/// second one a halo update would overwrite the compute domain.
struct HorizontalDims {
  int j = -1;
  int i = -1;
  friend bool operator==(const HorizontalDims& a, const HorizontalDims& b) { return a.j == b.j && a.i == b.i; }
};
HorizontalDims horizontal_dims(const QuantityHaloSpec& specification);

/// The side on which a boundary lies: -1, 0 or 1 along j (north is 1) and along i (east is 1), not both 0.
struct BoundaryDirection {
  int j = 0;
  int i = 0;
};

/// Returns the exchange of a quantity at one of its boundaries, with the slices that NDSL's boundaries cut. Points that
/// two ranks share on an interface dimension are neither sent nor received. Throws `invalid_use` for dims without an i
/// or a j dimension, and for slices that leave the array or would send cells of the halo.
HaloExchangeSpec exchange_at(const QuantityHaloSpec& specification, BoundaryDirection direction,
                             int pack_clockwise_rotation);

}  // namespace tranship::ndsl
