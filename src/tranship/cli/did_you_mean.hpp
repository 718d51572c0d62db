// Private: Suggestions for unknown words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tranship::cli {

/// Returns "; did you mean 'reshard'?" if a known word differs from `word` by only a few letters, else "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace tranship::cli
