// Private: untrusted text in messages, cut and on one printable line.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

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
  if (text.size() > length_max) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

}  // namespace tranship
