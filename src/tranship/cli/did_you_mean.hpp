// Private: Suggestions for words that are not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tranship::cli {

/// "; did you mean 'reshard'?" where one of the words is `word` but for a few letters; empty where none is.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace tranship::cli
