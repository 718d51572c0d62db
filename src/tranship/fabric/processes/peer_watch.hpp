// Private: PeerWatch, how ranks that no common parent has started learn of each other's ends.
//
// Each rank listens at a socket of its own, its door, for as long as it is in the world. A thread of each rank stays
// connected to the doors of the next ranks that have not ended: the system closes a door when its process dies, and
// those at the door post the death on the board that all share. When a watched rank has ended, the next one takes its
// place, so that every rank is watched by some other one to the end, in whatever order they leave or die.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tranship/fabric/processes/local_socket.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

class PeerWatch {
 public:
  struct Peer {
    std::int64_t process = 0;
    SocketName door{};
  };
  /// Where ranks came in before the world was complete, and what late ones are told.
  struct Entrance {
    LocalSocket socket;
    void (*turn_away)(const LocalSocket& guest, int size);
  };

  /// `door` is the one that the peers have of this rank.
  PeerWatch(std::shared_ptr<SharedWorld> shared, Rank rank, std::vector<Peer> peers, LocalSocket door,
            std::optional<Entrance> entrance);
  /// Ends the thread, then closes the door. The board must show by then how this rank has ended.
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

 private:
  class Watcher;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace tranship
