// Private: Pictures of who owns what: characters for a terminal, or an SVG.
//
// A picture shows one or two dimensions: of more, the first two that the grid cuts, at one cell of the others, which it
// names: cell 0, or one that the rank owns whose overlap is shown. It is made of blocks, never of cells, so its size
// does not depend on the extents; of more blocks than fit it shows the leading ones and says so. A block held by
// several ranks (replicas, whole dimensions cut in several) has the first one's colour. An interface that two ranks own
// has half of either colour, and in text a character of its own.
#pragma once

#include <cstdint>
#include <optional>
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
/// block and is its rank's symbol: 0-9, a-z, A-Z, or '+' for a shared interface. Where ranks above 61 are shown, each
/// piece is the number of its rank, right-aligned. Throws `unsupported` for an indexed
/// distribution and `invalid_use` for a map without columns or rows.
std::string picture_text(const ArraySpec& spec, const PictureOptions& options = {});

/// What every SVG of picture_svg says of itself near its beginning.
inline constexpr std::string_view picture_mark = "Drawn by tranship";

struct SvgOptions {
  /// The rank whose overlap is hatched; it owns cells of what is shown. Without it, a rank in the middle. A rank that
  /// has no part of the array has no overlap.
  std::optional<Rank> rank = std::nullopt;
};

/// An SVG document with the same, and with the overlap of one rank hatched. Throws `unsupported` for an indexed
/// distribution.
std::string picture_svg(const ArraySpec& spec, const SvgOptions& options = {});
/// The same without an element type.
std::string picture_svg(const Distribution& distribution, const SvgOptions& options = {});

}  // namespace tranship
