// Private: UTF-8, and Latin-1 beside it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tranship {

/// Whether all of it is: shortest forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);
std::string utf8_of_latin1(std::string_view text);
/// Empty where `text`, which is UTF-8, has a character beyond U+00FF.
std::optional<std::string> latin1_of_utf8(std::string_view text);

}  // namespace tranship
