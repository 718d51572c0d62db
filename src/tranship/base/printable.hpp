// Private: untrusted text, in messages cut and on one printable line, and as people read it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include <tranship/base/amounts.hpp>

namespace tranship {

/// Names of tensors and members are longer than other quotations, and tell the most.
inline constexpr std::size_t name_chars_max = 160;

/// At most `length_max` bytes of `text`; what is not printable ASCII as \x and two digits.
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

/// All of it, with '?' for each character that is not seen, such as one that moves the cursor or turns the order of
/// those that follow: control and format characters of UTF-8. Bytes that are no UTF-8 stay.
std::string one_line(std::string_view text);

}  // namespace tranship
