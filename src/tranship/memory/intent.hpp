// Detail: Intent, what an access to a buffer does: it decides what is copied before and what is stale after it.
#pragma once

#include <cstdint>

namespace tranship {

enum class Intent : std::uint8_t {
  read,
  write,  ///< every cell of the region will be written: its old value is not copied, and is lost
  read_write,
  accumulate,  ///< cells are combined with what is there; memories may do it apart, and are merged by the next read
};
const char* name_of(Intent intent);

/// What cells hold that have not been written.
enum class Contents : std::uint8_t {
  zeros,
  undefined,  ///< reading them is an error
};

}  // namespace tranship
