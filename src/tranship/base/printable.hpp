// Private: makes untrusted text printable: cut and on one line for messages, or whole and as people read it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include <tranship/base/amounts.hpp>

namespace tranship {

/// Names of tensors and members may be quoted at greater length than other text, because they tell the most.
inline constexpr std::size_t name_chars_max = 160;

/// Returns at most `length_max` bytes of `text`; writes bytes that are not printable ASCII as \x and two digits.
inline std::string printable(std::string_view text, std::size_t length_max = 40) {
  std::string out;
  for (const char c : text.substr(0, length_max)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (text.size() > length_max) out += fmt::format("... ({})", amount(text.size(), "byte"));
  return out;
}

/// Returns the whole text, with '?' for each invisible character, such as one that moves the cursor or reverses the
/// order of the text: Unicode's control and format characters. Bytes that are not UTF-8 are kept.
std::string one_line(std::string_view text);

}  // namespace tranship
