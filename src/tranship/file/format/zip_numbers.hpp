// Private: numbers of zip archives that readers and writers need. Format: PKWARE's APPNOTE, 6.3.
#pragma once

#include <cstdint>

namespace tranship {

/// Of a field of 16 or 32 bits: the largest value, which stands for one that zip64 has elsewhere.
inline constexpr std::uint32_t zip_max16 = 0xffff, zip_max32 = 0xffffffff;
/// The extra field of zip64.
inline constexpr std::uint16_t zip_extra64_id = 1;

}  // namespace tranship
