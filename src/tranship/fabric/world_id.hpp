// Detail: WorldId: the name of a world to be, under which processes that were started apart find each other
// (RankScope::join).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tranship {

/// One process makes it, and the program brings its bytes to all ranks: by a broadcast of MPI, a file, a pipe, an
/// argument. It is good for one world of ranks on one machine. A value without pointers; copies are equal.
struct WorldId {
  static constexpr std::size_t size_bytes = 64;

  std::array<std::uint8_t, size_bytes> bytes{};

  /// Opens a socket without a name in any file system, at which this process takes ranks of the same user when it joins
  /// by this id itself. The socket stays open until then, or until the process ends; children that are forked do not
  /// have it. Costs a few system calls. Throws `io` where the system opens no socket.
  static WorldId make();

  friend bool operator==(const WorldId&, const WorldId&) = default;
};

/// 128 hexadecimal digits.
std::string to_string(const WorldId& id);
/// The id of such a text. Throws `bad_text` for another one.
WorldId parse_world_id(std::string_view text);

}  // namespace tranship
