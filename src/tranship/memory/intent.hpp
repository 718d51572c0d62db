// Detail: Intent, the kind of an access to a buffer. It decides which copies precede the access and which become stale.
#pragma once

#include <cstdint>

namespace tranship {

enum class Intent : std::uint8_t {
  read,
  write,  ///< every cell of the region will be written: old values are not copied, and are lost
  read_write,
  accumulate,  ///< cells are combined with their values; memories may do so separately, and the next read merges them
};
const char* name_of(Intent intent);

/// The value of cells before they are first written.
enum class Contents : std::uint8_t {
  zeros,
  undefined,  ///< reading them throws `invalid_use`
};

}  // namespace tranship
