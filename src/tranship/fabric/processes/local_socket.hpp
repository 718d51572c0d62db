// Private: sockets between processes of one machine and one user. They have no names in any file system, carry whole
// messages, one of which may bring a descriptor, and report at once that the other process is gone.
//
// Invariant: a forked process does not inherit them, so no child hides the end of its parent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/types.h>

namespace tranship {

/// A descriptor that children of this process do not inherit, whether forked or executed. Closed by the destructor.
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

/// A name that no other process can guess.
using SocketName = std::array<std::uint8_t, 16>;
/// Makes a new random name. Throws `io`.
SocketName random_socket_name();

class LocalSocket {
 public:
  /// Makes a socket that takes connections under `name`, even before accept() is called. Throws `io`.
  static LocalSocket listening(const SocketName& name);

  struct Connection;
  /// Connects to the socket that listens under `name`. If too many connections wait there to be accepted, waits for
  /// `wait_ns`, at most 1 s and at least a tick of the system (10 ms or less).
  static Connection connect(const SocketName& name, std::int64_t wait_ns);

  /// Returns the next connection of a process of this user, and closes connections of other users. Does not wait.
  std::optional<LocalSocket> accept() const;

  int descriptor() const noexcept { return descriptor_.get(); }
  /// Process number of the other end when it connected or began to listen; 0 if it is not visible from here.
  pid_t process() const noexcept { return process_; }

  /// Sends a message without waiting. Returns 0, or the errno for which it was not sent.
  int send(std::span<const std::byte> message, int descriptor = -1) const noexcept;

  struct Incoming;
  /// Returns the next message, if there is one. Does not wait.
  Incoming receive() const;

 private:
  explicit LocalSocket(int descriptor) : descriptor_(descriptor) {}

  OwnDescriptor descriptor_;
  pid_t process_ = 0;
};

struct LocalSocket::Connection {
  /// Without a socket, `error` is the errno: ECONNREFUSED if no process listens, EAGAIN if too many connections wait,
  /// EPERM if the process belongs to another user.
  std::optional<LocalSocket> socket;
  int error = 0;
  /// The other user, with EPERM.
  uid_t user = 0;
};

struct LocalSocket::Incoming {
  enum class State : std::uint8_t { nothing, message, closed } state = State::nothing;
  std::vector<std::byte> bytes;
  /// The descriptor that came with the message, or -1; the caller closes it. Programs that this process starts do not
  /// inherit it.
  int descriptor = -1;
};

}  // namespace tranship
