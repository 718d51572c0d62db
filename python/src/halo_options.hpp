// Options of halos, in the form into which the package brings a program's arguments.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/tuple.h>

#include <tranship/base/error.hpp>
#include <tranship/plan/halo.hpp>

#include "casters.hpp"

namespace tranship::python {

/// One depth or none; depths of each dimension to the left and to the right, or none; the kind of the stencil and its
/// offsets; boxes of global cells, or none.
using HaloNumbers = std::tuple<std::optional<Index>, Indices, Indices, std::string, std::vector<Indices>,
                               std::optional<std::vector<std::pair<Indices, Indices>>>>;

inline HaloOptions halo_options_of(const HaloNumbers& numbers) {
  const auto& [depth, low, high, stencil, offsets, boxes] = numbers;
  HaloOptions out{.depth = depth, .depth_low = low, .depth_high = high};
  if (stencil == "star")
    out.stencil.kind = StencilKind::star;
  else if (stencil == "offsets")
    out.stencil = {StencilKind::offsets, offsets};
  else if (stencil != "box")
    throw Error(ErrorCode::invalid_use, "stencil='" + stencil + "': needs 'box', 'star', or a list of offsets");
  if (boxes) {
    std::vector<Box>& cells = out.cells.emplace_back();
    for (const auto& [lower, upper] : *boxes) cells.push_back({lower, upper});
  }
  return out;
}

}  // namespace tranship::python
