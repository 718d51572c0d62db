// Distributions as JSON: everything that a layout text says, and the id lists of indexed distributions.
//
//   {"type": "f64", "extents": [8192, 8192], "grid": {"extents": [4, 1]},
//    "partitions": [{"kind": "block"}, {"kind": "whole"}]}
//
// Keys and words: docs/layout-text.md. Reading is strict: a key that is missing, unknown or given twice, or a value of
// the wrong type, is an error that names the key.
#pragma once

#include <string>
#include <string_view>

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// One line; what is the default is left out. distribution_from_json(to_json(x)) == x.
std::string to_json(const Distribution& distribution);
/// The same with the key "type". array_spec_from_json(to_json(x)) == x.
std::string to_json(const ArraySpec& spec);

/// `bad_text` (with `column` where the text is no JSON), or the Error of what is described, naming the key.
Result<Distribution> try_distribution_from_json(std::string_view text);
Result<ArraySpec> try_array_spec_from_json(std::string_view text);
Distribution distribution_from_json(std::string_view text);
ArraySpec array_spec_from_json(std::string_view text);

}  // namespace tranship
