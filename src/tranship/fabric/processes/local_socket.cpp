#include "tranship/fabric/processes/local_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// The descriptors of this process; a forked child closes them before anything else.
class OwnDescriptors {
 public:
  static OwnDescriptors& all() {
    static auto* const descriptors = new OwnDescriptors();  // used even while static variables are destroyed
    return *descriptors;
  }
  void add(int descriptor) {
    const std::lock_guard lock(mutex_);
    open_.push_back(descriptor);
  }
  void close_one(int descriptor) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(open_, descriptor);
    close(descriptor);
  }

 private:
  OwnDescriptors() {
    pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                   [] {
                     for (const int descriptor : all().open_) close(descriptor);
                     all().open_.clear();
                     all().mutex_.unlock();
                   });
  }

  std::mutex mutex_;
  std::vector<int> open_;
};

struct Address {
  sockaddr_un text{};
  socklen_t size_bytes = 0;

  explicit Address(const SocketName& name) {
    constexpr std::string_view prefix = "tranship-";
    text.sun_family = AF_UNIX;
    // A leading zero: the name lies in no file system.
    char* end = std::copy(prefix.begin(), prefix.end(), text.sun_path + 1);
    for (const std::uint8_t byte : name)
      for (const int digit : {byte >> 4, byte & 15}) *end++ = "0123456789abcdef"[digit];
    size_bytes = static_cast<socklen_t>(end - reinterpret_cast<char*>(&text));
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&text); }
};

int new_socket() {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

ucred peer_of(int descriptor) noexcept {
  ucred peer{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
  socklen_t bytes = sizeof peer;
  getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
  return peer;
}

}  // namespace

OwnDescriptor::OwnDescriptor(int descriptor) : descriptor_(descriptor), process_(getpid()) {
  OwnDescriptors::all().add(descriptor);
}
OwnDescriptor::OwnDescriptor(OwnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), process_(other.process_) {}
OwnDescriptor& OwnDescriptor::operator=(OwnDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(process_, other.process_);
  return *this;
}
OwnDescriptor::~OwnDescriptor() {
  // In a child, the number may belong to another file by now.
  if (descriptor_ >= 0 && process_ == getpid()) OwnDescriptors::all().close_one(descriptor_);
}

SocketName random_socket_name() {
  SocketName name{};
  if (getrandom(name.data(), name.size(), 0) != static_cast<ssize_t>(name.size()))
    throw_error(ErrorCode::io, "cannot get {}: {}", amount(name.size(), "random byte"), std::strerror(errno));
  return name;
}

LocalSocket LocalSocket::listening(const SocketName& name) {
  const int descriptor = new_socket();
  if (descriptor < 0) throw_error(ErrorCode::io, "cannot open a local socket: {}", std::strerror(errno));
  LocalSocket made(descriptor);
  const Address address(name);
  if (bind(descriptor, address.get(), address.size_bytes) != 0 || listen(descriptor, SOMAXCONN) != 0)
    throw_error(ErrorCode::io, "cannot listen at a local socket: {}", std::strerror(errno));
  return made;
}

LocalSocket::Connection LocalSocket::connect(const SocketName& name, std::int64_t wait_ns) {
  const int descriptor = new_socket();
  if (descriptor < 0) return {.socket = {}, .error = errno};
  LocalSocket made(descriptor);
  // A timeout of zero would mean none.
  const std::int64_t wait_us = std::clamp<std::int64_t>(wait_ns / 1000, 1, 1'000'000);
  const timeval wait{.tv_sec = wait_us / 1'000'000, .tv_usec = wait_us % 1'000'000};
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  const Address address(name);
  if (::connect(descriptor, address.get(), address.size_bytes) != 0) return {.socket = {}, .error = errno};
  const ucred peer = peer_of(descriptor);
  if (peer.uid != geteuid()) return {.socket = {}, .error = EPERM, .user = peer.uid};
  made.process_ = peer.pid;
  return {.socket = std::move(made)};
}

std::optional<LocalSocket> LocalSocket::accept() const {
  for (;;) {
    // The listening socket blocks: a connection may have been closed meanwhile, but accept() still returns it.
    pollfd polled{.fd = descriptor(), .events = POLLIN};
    if (poll(&polled, 1, 0) <= 0) return std::nullopt;
    const int accepted = accept4(descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0 && errno == EINTR) continue;
    if (accepted < 0) return std::nullopt;
    LocalSocket made(accepted);
    const ucred peer = peer_of(accepted);
    if (peer.uid != geteuid()) continue;
    made.process_ = peer.pid;
    // A message about thousands of ranks exceeds the usual buffer; the system may grant less than this.
    const int buffer_bytes = 1 << 20;
    setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
    return made;
  }
}

int LocalSocket::send(std::span<const std::byte> message, int descriptor) const noexcept {
  iovec bytes{.iov_base = const_cast<std::byte*>(message.data()), .iov_len = message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr& first = *CMSG_FIRSTHDR(&header);
    first.cmsg_level = SOL_SOCKET;
    first.cmsg_type = SCM_RIGHTS;
    first.cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(&first), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do {
    sent = sendmsg(this->descriptor(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

LocalSocket::Incoming LocalSocket::receive() const {
  // Messages that a process sent before its end can be received after its end is seen. If messages are unread, Linux
  // reports the end once, as a reset, to the first call. It also looks for a message before it looks for the end, so a
  // message and an end that arrive between the two look like an end.
  int resets = 0, ends = 0;
  const auto is_to_repeat = [&](ssize_t returned) {
    if (returned == 0) return ends++ == 0;
    return returned < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0));
  };
  Incoming out;
  ssize_t size_bytes;
  do {
    size_bytes = recv(descriptor(), nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  } while (is_to_repeat(size_bytes));
  if (size_bytes < 0 && errno == EAGAIN) return out;
  constexpr ssize_t message_bytes_max = ssize_t(1) << 22;
  if (size_bytes <= 0 || size_bytes > message_bytes_max) {
    out.state = Incoming::State::closed;
    return out;
  }

  out.bytes.resize(static_cast<std::size_t>(size_bytes));
  iovec bytes{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  do {
    size_bytes = recvmsg(descriptor(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (is_to_repeat(size_bytes));
  out.state = size_bytes > 0 ? Incoming::State::message : Incoming::State::closed;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one))
    if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS)
      std::memcpy(&out.descriptor, CMSG_DATA(one), sizeof out.descriptor);
  return out;
}

}  // namespace tranship
