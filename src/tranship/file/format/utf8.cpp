#include "tranship/file/format/utf8.hpp"

namespace tranship {

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(at < text.size() ? text[at] : 0); };
    const unsigned lead = byte(i);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead >> 4 == 0xe ? 3 : 4;
    if (length == 4 && (lead < 0xf0 || lead > 0xf4)) return false;
    for (std::size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    const bool shortest = (lead != 0xe0 || byte(i + 1) >= 0xa0) && (lead != 0xf0 || byte(i + 1) >= 0x90);
    const bool in_range = (lead != 0xed || byte(i + 1) < 0xa0) && (lead != 0xf4 || byte(i + 1) < 0x90);
    if (!shortest || !in_range) return false;
    i += length;
  }
  return true;
}

std::string utf8_of_latin1(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xc0 | byte >> 6);
      out += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return out;
}

std::optional<std::string> latin1_of_utf8(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i];
    } else if (byte > 0xc3 || i + 1 == text.size()) {
      return std::nullopt;
    } else {
      out += static_cast<char>((byte & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return out;
}

}  // namespace tranship
