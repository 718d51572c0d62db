// Private: Mail, what ranks of several machines send each other for their meetings. The engine of a rank carries it by
// its Wire, the simulator in its own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// One rank's end, for the thread of the rank.
class Mail {
 public:
  virtual ~Mail() = default;

  /// A meeting has the same number and slot on all ranks that take part in it. A rank sends each peer at most one
  /// letter of a meeting.
  struct Key {
    int slot = 0;
    std::uint64_t number = 0;
  };
  virtual void bring(Rank peer, Key meeting, std::span<const std::byte> bytes) = 0;
  /// Returns what `peer` has brought to this rank, once; nothing until it has come. Moves what can be moved now.
  virtual std::optional<std::vector<std::byte>> take(Rank peer, Key meeting) = 0;
};

}  // namespace tranship
