// Private: parse_manifest_text, the frame that all manifests share: one JSON object with a version, of bounded length.
#pragma once

#include <string_view>

#include <tranship/base/function_ref.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship {

/// Parses the text of a manifest: one object, whose key `version_key` must be `version`. `read` takes all other keys.
/// Fails with `unsupported` for another version and for a text of more than manifest_bytes_max bytes, and with the
/// errors of `read`, of which `bad_text` and `invalid_use` become `bad_file`: a senseless layout is misuse if a caller
/// gives it, but here the file is wrong.
Result<void> parse_manifest_text(std::string_view text, const char* version_key, Index version,
                                 FunctionRef<void(JsonObject&)> read);

}  // namespace tranship
