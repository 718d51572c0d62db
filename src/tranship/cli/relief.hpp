// Private: A raster of heights for the demo: read from a file or generated, smoothed, and shown as a relief of
// characters.
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

/// Reads the elements of a file of real numbers in two dimensions. Throws `unsupported` for any other file, and for
/// values that are not finite or too large to be added up.
Raster read_raster(const NpyFile& file);
/// Writes generated hills, `i16`, to a new .npy file.
void write_hills(const std::string& path, const Indices& extents);

/// A cell and its neighbours to the north, south, west and east.
struct Star {
  float centre, north, south, west, east;
};
/// Return one step of smoothing, and the light that falls on a slope from the north-west. They are separate functions,
/// so that one rank and many ranks compute the same bits.
float smoothed(const Star& star);
float lit(const Star& star);

/// Computes on a single rank: `steps` of smoothing, then the light. Beyond the edge lies a copy of the edge.
Raster shaded_alone(Raster raster, int steps);

/// Returns the picture, `columns` characters wide, with each line indented by `indent` spaces.
std::string relief_text(const Raster& light, int columns, int indent);

}  // namespace tranship::cli
