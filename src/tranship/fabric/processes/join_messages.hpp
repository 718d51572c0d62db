// Private: the messages between processes that join a world by an id. Every message begins with a head, which never
// changes; the rest may change with the version of the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sched.h>

#include <tranship/base/error.hpp>
#include <tranship/fabric/processes/local_socket.hpp>

namespace tranship::join_messages {

enum class Kind : std::uint32_t {
  hello,    // guest: its rank and its terms
  heard,    // host: the hello has been read and is answered by its deadline
  refused,  // either: the reason why there is no world
  welcome,  // host: the memory, and all peers
  mapped,   // guest: it has mapped the memory
  begun,    // host: all guests have mapped it
};

struct Head {
  char magic[15];
  char version;
  Kind kind;
  std::uint32_t count;

  static constexpr char magic_here[15] = "tranship join ";
  static constexpr char version_here = '1';

  explicit Head(Kind of, std::size_t elements = 0)
      : version(version_here), kind(of), count(static_cast<std::uint32_t>(elements)) {
    std::memcpy(magic, magic_here, sizeof magic);
  }
};

struct Hello {
  Head head{Kind::hello};
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t says_heap_bytes = 0;
  std::int64_t timeout_ns = 0;
  std::int64_t deadline_ns = 0;  // by the monotonic clock, which all processes of a machine share
  cpu_set_t cores{};
  SocketName door{};
  char build[128] = {};
};

struct Refusal {
  Head head{Kind::refused};
  std::int32_t code = 0;
  char text[1020] = {};

  explicit Refusal(const Error& error) : code(static_cast<std::int32_t>(error.code())) {
    error.message().copy(text, sizeof text - 1);
  }
  Refusal() = default;
  Error error() const { return {static_cast<ErrorCode>(code), std::string(text, strnlen(text, sizeof text))}; }
};

template <class Message>
int send(const LocalSocket& to, const Message& message) {
  return to.send(std::as_bytes(std::span(&message, 1)));
}

/// Returns nothing for bytes that no version of tranship sends.
inline std::optional<Head> head_of(const std::vector<std::byte>& bytes) {
  Head head(Kind::hello);
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
  if (std::memcmp(head.magic, Head::magic_here, sizeof head.magic) != 0) return std::nullopt;
  return head;
}
/// Returns nothing if the sizes differ.
template <class Message>
std::optional<Message> read_as(const std::vector<std::byte>& bytes) {
  Message message;
  if (bytes.size() != sizeof message) return std::nullopt;
  std::memcpy(static_cast<void*>(&message), bytes.data(), sizeof message);
  return message;
}

inline std::string build_of(const Hello& hello) {
  return {hello.build, strnlen(hello.build, sizeof hello.build)};
}

}  // namespace tranship::join_messages
