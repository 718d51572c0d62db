// Private: The byte order of elements on their way from one spelling of an array to another.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <string>

#include <tranship/base/index.hpp>

namespace tranship {

/// This machine's, as descrs spell it.
inline constexpr char native_order = std::endian::native == std::endian::little ? '<' : '>';

/// The width of the numbers whose bytes are reversed when elements that the one descr spells become what the other
/// spells; 0 where bytes are kept. Both spell the same elements, of .npy files or (always without a byte order) of
/// safetensors files. Throws `unsupported` for records, whose fields differ in width.
Index swapped_bytes(const std::string& from_descr, const std::string& to_descr);

/// The descr of the same elements in this machine's byte order.
std::string native_descr(const std::string& descr);

/// Reverses the bytes of each `width` of them; nothing for a width of 0.
void reverse_each(std::span<std::byte> bytes, Index width) noexcept;

}  // namespace tranship
