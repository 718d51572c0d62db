#include "tranship/face/ndsl/halo_spec.hpp"

#include <string_view>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/halo_interval.hpp>

namespace tranship::ndsl {

HorizontalDims horizontal_dims(const QuantityHaloSpec& specification) {
  HorizontalDims out;
  const auto& dims = specification.dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::string_view name = dims[d];
    const bool is_j = name == "j" || name == "j_interface", is_i = name == "i" || name == "i_interface";
    if (!is_j && !is_i) continue;
    int& along = is_j ? out.j : out.i;
    if (along >= 0)
      throw_error(ErrorCode::invalid_use, "dims [{}] have two dimensions along {}", join_text(dims, ", "),
                  is_j ? "j" : "i");
    along = int(d);
  }
  if (out.i < 0 || out.j < 0)
    throw_error(ErrorCode::invalid_use,
                "dims [{}] have no {} dimension: a halo update would overwrite the compute domain",
                join_text(dims, ", "), out.i < 0 ? "i" : "j");
  return out;
}

HaloExchangeSpec exchange_at(const QuantityHaloSpec& specification, BoundaryDirection direction,
                             int pack_clockwise_rotation) {
  const HorizontalDims along = horizontal_dims(specification);
  for (const int step : {direction.j, direction.i})
    if (step < -1 || step > 1 || (direction.j == 0 && direction.i == 0))
      throw_error(ErrorCode::invalid_use, "a boundary in direction ({}, {}): needs -1, 0 or 1, and not 0 in both",
                  direction.j, direction.i);
  const Index n_points = specification.n_points;
  if (n_points < 1)
    throw_error(ErrorCode::invalid_use, "cannot perform a halo update on {}; at least 1",
                amount(n_points, "halo point"));
  const int dims = int(specification.dims.size());
  if (specification.origin.size() != dims || specification.extent.size() != dims || specification.shape.size() != dims)
    throw_error(ErrorCode::invalid_use, "origin, extent and shape have {}, {} and {} for {}",
                specification.origin.size(), specification.extent.size(),
                amount(specification.shape.size(), "entry", "entries"), amount(dims, "dim"));
  HaloExchangeSpec out{.specification = specification, .pack_clockwise_rotation = pack_clockwise_rotation};
  for (int d = 0; d < dims; ++d) {
    const Index origin = specification.origin[d];
    const Interval domain{origin, checked_add(origin, specification.extent[d])};
    Interval sent = domain, received = domain;
    if (const int step = d == along.j ? direction.j : d == along.i ? direction.i : 0; step != 0) {
      const bool staggered = specification.dims[std::size_t(d)].ends_with("_interface");
      const Side side = step < 0 ? Side::low : Side::high;
      sent = send_interval(domain, n_points, side, staggered ? Points::interfaces : Points::cells);
      received = receive_interval(domain, n_points, side);
      if (received.lower < 0 || received.upper > specification.shape[d])
        throw_error(ErrorCode::invalid_use, "{} of dim {} reach [{}, {}), which leaves an array of {}",
                    amount(n_points, "halo point"), specification.dims[std::size_t(d)], received.lower, received.upper,
                    specification.shape[d]);
    }
    for (const auto& [box, slice] : {std::pair{&out.pack_slices, sent}, std::pair{&out.unpack_slices, received}}) {
      box->lower.push_back(slice.lower);
      box->upper.push_back(slice.upper);
    }
  }
  return out;
}

}  // namespace tranship::ndsl
