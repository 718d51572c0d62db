#include "tranship/base/printable.hpp"

#include <algorithm>
#include <iterator>

namespace tranship {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

/// Returns the first character of a text that is not empty. A byte that is not UTF-8 counts as the character U+FFFD,
/// which is not hidden.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {.code = lead};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  char32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (i >= text.size() || (byte(i) & 0xc0) != 0x80) return {.code = 0xfffd};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return bytes == 1 ? Character{.code = 0xfffd} : Character{.code = code, .bytes = bytes};
}

/// Returns true for control characters, and for format characters, which show nothing and may reorder the text
/// (Unicode's Cc, Cf, Zl and Zp).
bool is_hidden(char32_t code) {
  constexpr struct {
    char32_t first, last;
  } hidden[] = {
      {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},   {0x200b, 0x200f},
      {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
  };
  return std::any_of(std::begin(hidden), std::end(hidden),
                     [&](const auto& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character next = first_of(text);
    if (is_hidden(next.code))
      out += '?';
    else
      out += text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace tranship
