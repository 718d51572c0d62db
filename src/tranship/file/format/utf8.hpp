// Private: UTF-8, and its conversion to and from Latin-1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tranship {

/// Returns true if all of the text is valid UTF-8: shortest forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);
std::string utf8_of_latin1(std::string_view text);
/// Returns nothing if `text`, which is UTF-8, has a character beyond U+00FF.
std::optional<std::string> latin1_of_utf8(std::string_view text);

}  // namespace tranship
