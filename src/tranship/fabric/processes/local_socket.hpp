// Private: sockets between processes of one machine and one user. They have names in no file system, carry whole
// messages, of which one may bring a descriptor, and show at once when the other process is gone.
//
// Invariant: a process that is forked does not have them, so that no child hides the end of its parent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/types.h>

namespace tranship {

/// A descriptor that children of this process do not have, be they forked or executed. Closed when it goes.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(int descriptor);
  OwnDescriptor(OwnDescriptor&& other) noexcept;
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept;
  ~OwnDescriptor();

  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
  pid_t process_ = -1;
};

/// What no other process can guess.
using SocketName = std::array<std::uint8_t, 16>;
/// Throws `io`.
SocketName random_socket_name();

class LocalSocket {
 public:
  /// Takes connections under `name`, also before accept() is called. Throws `io`.
  static LocalSocket listening(const SocketName& name);

  struct Connection;
  /// Connects to what listens under `name`; where too many wait there to be accepted, it waits for so long, and 10 ms
  /// or so at least.
  static Connection connect(const SocketName& name, std::int64_t wait_ns);

  /// The next connection of a process of this user; those of others are closed. Does not wait.
  std::optional<LocalSocket> accept() const;

  int descriptor() const noexcept { return descriptor_.get(); }
  /// Of the process at the other end, when it connected or began to listen; 0 where it cannot be seen from here.
  pid_t process() const noexcept { return process_; }

  /// Does not wait. Returns 0, or the errno for which nothing was sent.
  int send(std::span<const std::byte> message, int descriptor = -1) const noexcept;

  struct Incoming;
  /// The next message. Does not wait.
  Incoming receive() const;

 private:
  explicit LocalSocket(int descriptor) : descriptor_(descriptor) {}

  OwnDescriptor descriptor_;
  pid_t process_ = 0;
};

struct LocalSocket::Connection {
  /// Empty with the errno: ECONNREFUSED where no process listens, EAGAIN where too many wait, EPERM where the process
  /// is one of another user.
  std::optional<LocalSocket> socket;
  int error = 0;
  /// With EPERM.
  uid_t user = 0;
};

struct LocalSocket::Incoming {
  enum class State : std::uint8_t { nothing, message, closed } state = State::nothing;
  std::vector<std::byte> bytes;
  /// What came with it, or -1; the caller closes it. Programs that this one starts do not have it.
  int descriptor = -1;
};

}  // namespace tranship
