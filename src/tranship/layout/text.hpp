// Layout texts: a distribution in one line that people can type on a command line.
//
//   f64[8192,8192] @ 4x1 : block, whole
//   c128[64,20] @ 1x5 : whole, cyclic(2)+overlap(1,1,toroidal) | order(1,0) split
//
// docs/layout-text.md defines the grammar and every word. Texts are untrusted: any bytes give a value or an Error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// A longer text is refused; pass such a layout as JSON (layout/json.hpp).
inline constexpr std::size_t layout_text_bytes_max = std::size_t(1) << 20;
/// Limit on the ranks that a list in a layout text names. A single range is not limited.
inline constexpr Index layout_text_ranks_max = Index(1) << 24;

/// Parses a layout. Every error has a 1-based `column` (in bytes) and names it in the message. Fails with `bad_text`
/// where the text leaves the grammar, and with `invalid_use`, `overflow` or `unsupported` where the described layout
/// makes no sense.
Result<ArraySpec> try_parse_layout(std::string_view text);
/// Parses a layout; throws the Error of try_parse_layout().
ArraySpec parse_layout(std::string_view text);

/// Parses the end of a layout text, after type and extents ("@ 4x1 : block, whole"), for an array that is known from
/// elsewhere. Columns count from the start of `text`.
Result<ArraySpec> try_parse_placement(std::string_view text, ElementType type, const Indices& extents);
/// Parses such a text without an array, so it finds only errors that apply to every array. Returns the grid; the array
/// must have as many dimensions as the grid.
Result<Grid> try_parse_placement_grid(std::string_view text);

/// Returns the canonical text without default values: parse_layout(to_text(x)) == x. For an indexed distribution it
/// returns a summary that cannot be parsed.
std::string to_text(const ArraySpec& spec);

/// Returns two lines without a final newline: the text (or the part of a long text around the column) and a caret below
/// the column. Characters that are not printable ASCII become '?'.
std::string caret(std::string_view text, std::int64_t column);

}  // namespace tranship
