// Private: A picture, an SVG or a page, written as all files are: complete or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tranship::cli {

/// What of that which stands there a command may write over.
enum class Replace : std::uint8_t { own_files, any_file };

/// What a picture is, and so how the name of its file ends, if it has an ending.
enum class PictureForm : std::uint8_t { svg, html };

/// Throws `invalid_use` where something else than a picture of ours is at `path`, and is not to be replaced, and
/// UsageError for a name that ends as that of another form.
void check_replaceable_picture(const std::string& path, PictureForm form, Replace replace);
/// Throws UsageError where a picture at `path` would replace something of the array at `source`: a file, the archive of
/// a member, or a file in a directory, by whatever name.
void check_not_source(const std::string& path, const std::string& source);
/// The same checks as check_replaceable_picture, then the picture. Throws `io`.
void write_picture(const std::string& path, std::string_view picture, Replace replace);

}  // namespace tranship::cli
