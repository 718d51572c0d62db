// Private: A raster of heights for the demo: read from a file or made up, smoothed, shown as a relief of characters.
#pragma once

#include <string>
#include <vector>

#include <tranship/file/format/npy.hpp>

namespace tranship::cli {

struct Raster {
  Indices extents;
  std::vector<float> heights;  ///< row-major

  float at(Index y, Index x) const { return heights[static_cast<std::size_t>(y * extents[1] + x)]; }
  float& at(Index y, Index x) { return heights[static_cast<std::size_t>(y * extents[1] + x)]; }
};

/// The elements of a file of real numbers in two dimensions. Throws `unsupported` for any other, and for values that
/// are not finite or so large that adding them up is not.
Raster read_raster(const NpyFile& file);
/// Writes made-up hills, `i16`, to a new .npy file.
void write_hills(const std::string& path, const Indices& extents);

/// A cell and its neighbours to the north, south, west and east.
struct Star {
  float centre, north, south, west, east;
};
/// One step of smoothing, and the light that falls on a slope from the north-west. Both are functions of their own, so
/// that one rank and many compute the same bits.
float smoothed(const Star& star);
float lit(const Star& star);

/// What a single rank computes: `steps` of smoothing, then the light. Beyond the edge lies a copy of the edge.
Raster shaded_alone(Raster raster, int steps);

/// The picture, `columns` characters wide, each line indented by `indent` spaces.
std::string relief_text(const Raster& light, int columns, int indent);

}  // namespace tranship::cli
