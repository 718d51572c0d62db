// Private: numbers of the zip format that both readers and writers need. Format: PKWARE's APPNOTE, 6.3.
#pragma once

#include <cstdint>

namespace tranship {

/// The largest value of a field of 16 or 32 bits: it says that zip64 has the value elsewhere.
inline constexpr std::uint32_t zip_max16 = 0xffff, zip_max32 = 0xffffffff;
/// The extra field of zip64.
inline constexpr std::uint16_t zip_extra64_id = 1;

}  // namespace tranship
