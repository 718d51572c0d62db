// Private: A picture, an SVG or a page, written as all files are: complete or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tranship::cli {

/// What of that which stands there a command may write over.
enum class Replace : std::uint8_t { own_files, any_file };

/// Throws `invalid_use` where something else than a picture of ours is at `path`, and is not to be replaced.
void check_replaceable_picture(const std::string& path, Replace replace);
/// The same check, then the picture. Throws `io`.
void write_picture(const std::string& path, std::string_view picture, Replace replace);

}  // namespace tranship::cli
