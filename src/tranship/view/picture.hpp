// Private: Pictures of who owns what: characters for a terminal, or an SVG.
//
// A picture shows one or two dimensions. Of more dimensions, it shows the first two that the grid cuts, at one cell of
// the others, which it names: cell 0, or a cell of the rank whose overlap is shown. It is made of blocks, never of
// cells, so its size does not depend on the extents; if there are more blocks than fit, it shows the leading ones and
// says so. A block that several ranks hold (replicas, whole dimensions cut in several) has the colour of the first. An
// interface that two ranks own has half of each colour, and in text a character of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tranship/layout/distribution.hpp>

namespace tranship {

enum class PictureColors : std::uint8_t { plain, ansi };

struct PictureOptions {
  /// The size of the map itself; labels need extra space.
  int max_columns = 64;
  int max_rows = 24;
  PictureColors colors = PictureColors::plain;
};

/// Returns lines with the layout text, the map, and a legend of ranks with their cells. A character stands for a piece
/// of one block and is its rank's symbol: 0-9, a-z, A-Z, or '+' for a shared interface. If a rank above 61 is shown,
/// each piece is the number of its rank, right-aligned. Throws `unsupported` for an indexed distribution and
/// `invalid_use` for a map without columns or rows.
std::string picture_text(const ArraySpec& spec, const PictureOptions& options = {});

/// Every SVG of picture_svg contains this text near its beginning.
inline constexpr std::string_view picture_mark = "Drawn by tranship";

struct SvgOptions {
  /// The rank whose overlap is hatched; the picture shows cells that it owns. By default, a rank in the middle. A rank
  /// without a part of the array has no overlap.
  std::optional<Rank> rank = std::nullopt;
};

/// Returns the same picture as an SVG document, with the overlap of one rank hatched. Throws `unsupported` for an
/// indexed distribution.
std::string picture_svg(const ArraySpec& spec, const SvgOptions& options = {});
/// Draws a distribution without an element type.
std::string picture_svg(const Distribution& distribution, const SvgOptions& options = {});

}  // namespace tranship
