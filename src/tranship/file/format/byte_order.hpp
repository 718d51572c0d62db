// Private: conversions of the byte order of elements between two spellings (descrs) of an array.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <string>

#include <tranship/base/index.hpp>

namespace tranship {

/// This machine's byte order, as descrs spell it.
inline constexpr char native_order = std::endian::native == std::endian::little ? '<' : '>';

/// Returns the width of the numbers whose bytes are reversed when elements of `from_descr` become elements of
/// `to_descr`; 0 if bytes are kept. Both descrs spell the same elements, of .npy files or of safetensors files (which
/// have no byte order). Throws `unsupported` for records, whose fields differ in width.
Index swapped_bytes(const std::string& from_descr, const std::string& to_descr);

/// Returns the descr of the same elements in this machine's byte order.
std::string native_descr(const std::string& descr);

/// Reverses each group of `width` bytes; does nothing for a width of 0.
void reverse_each(std::span<std::byte> bytes, Index width) noexcept;

}  // namespace tranship
