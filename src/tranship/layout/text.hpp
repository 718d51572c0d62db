// Layout texts: a distribution in one line, as people write it on a command line.
//
//   f64[8192,8192] @ 4x1 : block, whole
//   c128[64,20] @ 1x5 : whole, cyclic(2)+overlap(1,1,toroidal) | order(1,0) split
//
// The grammar and every word: docs/layout-text.md. Texts are untrusted: any bytes give a value or an Error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// A longer text is refused; a layout that needs one is given as JSON (layout/json.hpp).
inline constexpr std::size_t layout_text_bytes_max = std::size_t(1) << 20;
/// Ranks that a list in a layout text may name, except as one range.
inline constexpr Index layout_text_ranks_max = Index(1) << 24;

/// Reads a layout. Every error has its 1-based `column` (in bytes) and says so in its message: `bad_text` where the
/// text leaves the grammar; `invalid_use`, `overflow` or `unsupported` where what it describes makes no sense.
Result<ArraySpec> try_parse_layout(std::string_view text);
/// The same; throws the Error.
ArraySpec parse_layout(std::string_view text);

/// Reads what stands in a layout text behind type and extents ("@ 4x1 : block, whole") as the layout of an array that
/// is known from elsewhere. Columns count from the front of `text`.
Result<ArraySpec> try_parse_placement(std::string_view text, ElementType type, const Indices& extents);
/// Reads the same without an array: only what is wrong for every array is found. Gives the grid, whose dimensions are
/// those that an array must have.
Result<Grid> try_parse_placement_grid(std::string_view text);

/// The canonical text, defaults left out: parse_layout(to_text(x)) == x. For an indexed distribution it is a summary
/// that cannot be read back.
std::string to_text(const ArraySpec& spec);

/// Two lines without a last newline: the text (of a long one a piece around the column) and a caret below the column.
/// What is not printable ASCII is shown as '?'.
std::string caret(std::string_view text, std::int64_t column);

}  // namespace tranship
