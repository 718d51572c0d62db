// Distributions as JSON: everything that a layout text can say, and the id lists of indexed distributions.
//
//   {"type": "f64", "extents": [8192, 8192], "grid": {"extents": [4, 1]},
//    "partitions": [{"kind": "block"}, {"kind": "whole"}]}
//
// Keys and words: docs/layout-text.md. Reading is strict: a missing, unknown or repeated key, or a value of the wrong
// type, is an error that names the key.
#pragma once

#include <string>
#include <string_view>

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Returns one line that leaves out default values. distribution_from_json(to_json(x)) == x.
std::string to_json(const Distribution& distribution);
/// Also writes the key "type". array_spec_from_json(to_json(x)) == x.
std::string to_json(const ArraySpec& spec);

/// Read a document. They fail with `bad_text` where the text is not JSON (with its `column`) or has a wrong key or
/// type, and with the error of the constructor where the values make no sense; the message names the key. The calls
/// without `try_` throw the Error.
Result<Distribution> try_distribution_from_json(std::string_view text);
Result<ArraySpec> try_array_spec_from_json(std::string_view text);
Distribution distribution_from_json(std::string_view text);
ArraySpec array_spec_from_json(std::string_view text);

}  // namespace tranship
