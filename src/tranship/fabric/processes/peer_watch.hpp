// Private: PeerWatch: how ranks without a common parent process learn that one of them has ended.
//
// Each rank listens at a socket of its own, its door, while it is in the world. A thread of each rank stays connected
// to the doors of the next ranks that have not ended. When a process dies, the system closes its door, and the ranks
// connected to it post the death on the board that all share. When a watched rank has ended, its watcher turns to the
// next one, so every rank is watched by some other one to the end, in whatever order they leave or die.
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
  /// The socket at which ranks joined before the world was complete, and the answer to later ones.
  struct Entrance {
    LocalSocket socket;
    void (*turn_away)(const LocalSocket& guest, int size);
  };

  /// `door` is the socket by which the peers know this rank.
  PeerWatch(std::shared_ptr<SharedWorld> shared, Rank rank, std::vector<Peer> peers, LocalSocket door,
            std::optional<Entrance> entrance);
  /// Ends the thread, then closes the door. The board must already show how this rank has ended.
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

 private:
  class Watcher;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace tranship
