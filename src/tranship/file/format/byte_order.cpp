#include "tranship/file/format/byte_order.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/npy.hpp>

namespace tranship {
namespace {

bool is_ordered(char byte_order) {
  return byte_order == '<' || byte_order == '>';
}

// Uses shifts, which compilers turn into one instruction per word and into vector code.
template <class Word>
void reverse_words(std::span<std::byte> bytes) noexcept {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word, reversed = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    for (std::size_t i = 0; i < sizeof word; ++i)
      reversed = static_cast<Word>(reversed << 8 | (word >> 8 * i & Word(0xff)));
    std::memcpy(bytes.data() + at, &reversed, sizeof reversed);
  }
}

}  // namespace

Index swapped_bytes(const std::string& from_descr, const std::string& to_descr) {
  if (from_descr == to_descr) return 0;
  const NpyElement from = parse_npy_descr(from_descr).value(), to = parse_npy_descr(to_descr).value();
  if (from.byte_order == to.byte_order || !is_ordered(from.byte_order) || !is_ordered(to.byte_order)) return 0;
  if (from.swap_bytes == 0)
    throw_error(ErrorCode::unsupported,
                "elements {} have byte order '{}'; the byte order of records cannot be changed to '{}'",
                printable(from_descr), from.byte_order, to.byte_order);
  return from.swap_bytes;
}

std::string native_descr(const std::string& descr) {
  const NpyElement element = parse_npy_descr(descr).value();
  if (!is_ordered(element.byte_order) || element.byte_order == native_order) return descr;
  if (element.swap_bytes == 0)
    throw_error(ErrorCode::unsupported,
                "elements {} have byte order '{}'; the byte order of records cannot be changed to this machine's, '{}'",
                printable(descr), element.byte_order, native_order);
  return native_order + descr.substr(1);
}

void reverse_each(std::span<std::byte> bytes, Index width) noexcept {
  switch (width) {
    case 0:
    case 1:
      return;
    case 2:
      return reverse_words<std::uint16_t>(bytes);
    case 4:
      return reverse_words<std::uint32_t>(bytes);
    case 8:
      return reverse_words<std::uint64_t>(bytes);
    default:
      for (auto at = bytes.begin(); bytes.end() - at >= width; at += width) std::reverse(at, at + width);
  }
}

}  // namespace tranship
