// Private: Writes pictures, as SVG or HTML. Like all files, they are written completely or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tranship::cli {

/// Selects which existing files a command may overwrite.
enum class Replace : std::uint8_t { own_files, any_file };

/// The form of a picture, which decides the ending of its file's name, if the name has one.
enum class PictureForm : std::uint8_t { svg, html };

/// Throws `invalid_use` if `path` holds something that is not a picture of tranship and may not be replaced. Throws
/// UsageError for a name with the ending of another form.
void check_replaceable_picture(const std::string& path, PictureForm form, Replace replace);
/// Throws UsageError if a picture at `path` would replace part of the array at `source`: its file, the archive of a
/// member, or a file in its directory, under any name.
void check_not_source(const std::string& path, const std::string& source);
/// Makes the checks of check_replaceable_picture() and writes the picture. Throws `io`.
void write_picture(const std::string& path, std::string_view picture, Replace replace);

}  // namespace tranship::cli
