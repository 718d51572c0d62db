// Private: Pictures of who owns what: characters for a terminal, or an SVG.
//
// A picture shows one or two dimensions: of more, the first two that the grid cuts, at cell 0 of the others. It is made
// of blocks, never of cells, so its size does not depend on the extents; of more blocks than fit it shows the leading
// ones and says so. A block held by several ranks (replicas, whole dimensions cut in several) has the first one's
// colour.
#pragma once

#include <string>
#include <string_view>

#include <tranship/layout/distribution.hpp>

namespace tranship {

enum class PictureColors : std::uint8_t { plain, ansi };

struct PictureOptions {
  /// The size of the map itself; labels come on top.
  int max_columns = 64;
  int max_rows = 24;
  PictureColors colors = PictureColors::plain;
};

/// Lines with the layout text, the map and a legend of ranks with their cells. A character stands for a piece of one
/// block and is its rank's symbol: 0-9, a-z, A-Z, again from 0 after 62 ranks. Throws `unsupported` for an indexed
/// distribution and `invalid_use` for a map without columns or rows.
std::string picture_text(const ArraySpec& spec, const PictureOptions& options = {});

/// What every SVG of picture_svg says of itself near its beginning.
inline constexpr std::string_view picture_mark = "Drawn by tranship";

/// An SVG document with the same, and with the overlap of one rank hatched. Throws `unsupported` for an indexed
/// distribution.
std::string picture_svg(const ArraySpec& spec);
/// The same without an element type.
std::string picture_svg(const Distribution& distribution);

}  // namespace tranship
