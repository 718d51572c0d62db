// BareStream: bytes through a bare TCP connection between two ranks, which shows what the network itself can do.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tranship/fabric/team.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship::bench {

class BareStream {
 public:
  /// Collective over two ranks.
  explicit BareStream(World& world) : rank_(world.rank()) {
    sockaddr_in address = own_address();
    int listening = -1;
    if (rank_ == 0) {
      listening = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
      check(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
      check(listen(listening, 1), "listen");
      socklen_t size = sizeof address;
      check(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    }
    sockaddr_in all[2];
    world.all_gather(&address, sizeof address, all);
    if (rank_ == 0) {
      socket_ = check(accept(listening, nullptr, nullptr), "accept");
      close(listening);
    } else {
      socket_ = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
      check(connect(socket_, reinterpret_cast<sockaddr*>(&all[0]), sizeof all[0]), "connect");
    }
    const int yes = 1;
    check(setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "setsockopt");
    check(fcntl(socket_, F_SETFL, O_NONBLOCK), "fcntl");
  }
  ~BareStream() { close(socket_); }
  BareStream(const BareStream&) = delete;
  BareStream& operator=(const BareStream&) = delete;

  void both_ways(std::size_t bytes) { move(bytes, bytes); }
  void there_and_back(std::size_t bytes) {
    if (rank_ == 0) move(bytes, 0);
    move(0, bytes);
    if (rank_ == 1) move(bytes, 0);
  }

 private:
  static int check(int result, const char* what) {
    if (result < 0) throw Error(ErrorCode::io, std::string(what) + ": " + std::strerror(errno));
    return result;
  }

  static sockaddr_in own_address() {
    ifaddrs* first = nullptr;
    check(getifaddrs(&first), "getifaddrs");
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
      if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_LOOPBACK) == 0) {
        sockaddr_in out;
        std::memcpy(&out, one->ifa_addr, sizeof out);
        return out;
      }
    throw Error(ErrorCode::io, "this host has no interface to others");
  }

  void move(std::size_t out_bytes, std::size_t in_bytes) {
    if (buffer_.size() < std::size_t(1) << 20) buffer_.resize(std::size_t(1) << 20);
    if (source_.size() < out_bytes) source_.resize(out_bytes);
    std::size_t sent = 0, received = 0;
    while (sent < out_bytes || received < in_bytes) {
      bool any = false;
      const auto moved = [&](ssize_t now, std::size_t& to) {
        if (now < 0 && errno != EAGAIN) check(-1, "stream");
        if (now > 0) to += std::size_t(now), any = true;
      };
      if (sent < out_bytes) moved(send(socket_, source_.data() + sent, out_bytes - sent, MSG_NOSIGNAL), sent);
      if (received < in_bytes)
        moved(recv(socket_, buffer_.data(), std::min(buffer_.size(), in_bytes - received), 0), received);
      if (any) continue;
      pollfd waited{.fd = socket_,
                    .events = short((sent < out_bytes ? POLLOUT : 0) | (received < in_bytes ? POLLIN : 0))};
      poll(&waited, 1, 1000);
    }
  }

  int rank_;
  int socket_ = -1;
  std::vector<std::byte> buffer_, source_;
};

}  // namespace tranship::bench
