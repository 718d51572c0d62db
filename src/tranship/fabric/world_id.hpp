// Detail: WorldId: the name of a future world, by which separately started processes find each other (RankScope::join).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tranship {

/// One process makes the id, and the program brings its bytes to all ranks: by a broadcast of MPI, a file, a pipe or an
/// argument. It serves for one world of ranks on one machine. A plain value; copies are equal.
struct WorldId {
  static constexpr std::size_t size_bytes = 64;

  std::array<std::uint8_t, size_bytes> bytes{};

  /// Opens a socket without a name in any file system. When this process itself joins by the id, it accepts ranks of
  /// the same user at this socket. The socket stays open until then, or until the process ends; forked children do not
  /// inherit it. Costs a few system calls. Throws `io` if the system opens no socket, and `unsupported` if no back-end
  /// of this build has ids.
  static WorldId make();

  friend bool operator==(const WorldId&, const WorldId&) = default;
};

/// Returns 128 hexadecimal digits.
std::string to_string(const WorldId& id);
/// Parses such a text. Throws `bad_text` for any other text.
WorldId parse_world_id(std::string_view text);

}  // namespace tranship
