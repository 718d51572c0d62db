// A switch between test hosts with a rate per port and direction and a one-way delay, in user space: many kernels lack
// netem. It makes one tap per port in the network namespace that it runs in, prints "ready", and forwards frames until
// it is killed. A line "cut 2" or "heal 2" on its standard input unplugs port 2 or plugs it in again.
//
// A frame of up to 64 KiB passes whole, because the taps offer segmentation to the kernel. Its time on the line is that
// of the Ethernet frames that a network card would make of it. Invariant: frames of one port leave in the order in
// which they came, none before its time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t frame_bytes_max = std::size_t{1} << 17;
constexpr std::size_t tap_header_bytes = 10;  // struct virtio_net_hdr, before each frame
constexpr std::size_t address_bytes = 6;
constexpr std::size_t ethernet_header_bytes = 14;
constexpr std::size_t segment_header_bytes = 66;     // Ethernet, IPv4 and TCP with time stamps
constexpr std::size_t segment_payload_bytes = 1448;  // what these leave of 1514 bytes
constexpr std::size_t line_overhead_bytes = 24;      // preamble, checksum and gap of each Ethernet frame
// A card's ring holds frames for about this long; then the sender's kernel waits, as it does for a real card.
constexpr std::int64_t ring_ns = 1'000'000;
// A receiving port whose queue is longer than this drops frames.
constexpr std::int64_t queue_ns_max = 20'000'000;
// Sleeping takes longer than this, so shorter pauses are spent in the loop.
constexpr std::int64_t nap_ns_min = 3'000;
constexpr int frames_per_turn = 4;

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

using Bytes = std::unique_ptr<char[]>;

struct Frame {
  std::int64_t due_ns = 0;
  std::size_t bytes = 0;  // with the header of the tap
  Bytes data;

  bool is_for_all() const { return (data[tap_header_bytes] & 1) != 0; }
  std::uint64_t address_at(std::size_t offset) const {
    std::uint64_t address = 0;
    std::memcpy(&address, data.get() + tap_header_bytes + offset, address_bytes);
    return address;
  }
  std::uint64_t target() const { return address_at(0); }
  std::uint64_t source() const { return address_at(address_bytes); }
};

struct Port {
  int tap = -1;
  std::uint64_t address = 0;     // that of the last frame that came from it
  std::int64_t sent_ns = 0;      // when the line from the host is free
  std::int64_t received_ns = 0;  // when the line to the host is free
  bool is_cut = false;
  std::deque<Frame> under_way{};
};

int open_tap(int number) {
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (tap < 0) {
    fail("wire: /dev/net/tun");
  }
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "wire%d", number);
  if (ioctl(tap, TUNSETIFF, &request) < 0) {
    fail("wire: TUNSETIFF");
  }
  if (ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0) {
    fail("wire: TUNSETOFFLOAD");
  }
  return tap;
}

class Wire {
 public:
  Wire(double rate_mbit, double delay_us, int ports) : ns_per_byte_(8000.0 / rate_mbit), delay_ns_(delay_us * 1000) {
    for (int number = 1; number <= ports; ++number) {
      ports_.push_back({.tap = open_tap(number)});
    }
    // A writer of its own keeps the pipe from reporting its end when the process that started the wire is gone.
    if (open("/proc/self/fd/0", O_RDWR) < 0 || fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) < 0) {
      fail("wire: standard input");
    }
  }

  [[noreturn]] void forward() {
    for (;;) {
      obey();
      wake_ns_ = never;
      bool moved = deliver();
      for (Port& port : ports_) {
        moved |= receive(port);
      }
      if (!moved) {
        sleep();
      }
    }
  }

 private:
  void obey() {
    char text[256];
    const ssize_t bytes = read(STDIN_FILENO, text, sizeof text);
    if (bytes > 0) {
      commands_.append(text, static_cast<std::size_t>(bytes));
    }
    for (std::size_t end; (end = commands_.find('\n')) != std::string::npos; commands_.erase(0, end + 1)) {
      const bool cut = commands_.starts_with("cut ");
      const std::size_t number = std::strtoul(commands_.c_str() + commands_.find(' ') + 1, nullptr, 10);
      if (number >= 1 && number <= ports_.size()) {
        ports_[number - 1].is_cut = cut;
      }
    }
  }

  bool deliver() {
    bool moved = false;
    for (Port& port : ports_) {
      const std::int64_t now = now_ns();
      for (; !port.under_way.empty() && port.under_way.front().due_ns <= now; port.under_way.pop_front()) {
        Frame& frame = port.under_way.front();
        // A tap whose interface is down refuses frames, as an unplugged line loses them.
        [[maybe_unused]] const ssize_t written = write(port.tap, frame.data.get(), frame.bytes);
        spare_.push_back(std::move(frame.data));
        moved = true;
      }
      if (!port.under_way.empty()) {
        wake_ns_ = std::min(wake_ns_, port.under_way.front().due_ns);
      }
    }
    return moved;
  }

  bool receive(Port& from) {
    for (int taken = 0; taken < frames_per_turn; ++taken) {
      const std::int64_t now = now_ns();
      if (from.sent_ns - now > ring_ns) {
        wake_ns_ = std::min(wake_ns_, from.sent_ns - ring_ns);
        return taken > 0;
      }
      Frame frame{.data = take_bytes()};
      const ssize_t bytes = read(from.tap, frame.data.get(), frame_bytes_max);
      if (bytes < static_cast<ssize_t>(tap_header_bytes + ethernet_header_bytes)) {
        spare_.push_back(std::move(frame.data));
        return taken > 0;
      }
      frame.bytes = static_cast<std::size_t>(bytes);
      const std::int64_t cost_ns = time_on_line_ns(frame.bytes - tap_header_bytes);
      from.address = frame.source();
      from.sent_ns = std::max(from.sent_ns, now) + cost_ns;
      if (!from.is_cut) {
        route(from, std::move(frame), cost_ns);
      }
    }
    return true;
  }

  void route(const Port& from, Frame frame, std::int64_t cost_ns) {
    const std::uint64_t target = frame.target();
    const auto known = frame.is_for_all() ? ports_.end()
                                          : std::find_if(ports_.begin(), ports_.end(),
                                                         [&](const Port& to) { return to.address == target; });
    if (known != ports_.end()) {
      if (&*known != &from) {
        send(from, *known, std::move(frame), cost_ns);
      }
      return;
    }
    for (Port& to : ports_) {
      if (&to != &from) {
        Frame copy{.bytes = frame.bytes, .data = take_bytes()};
        std::memcpy(copy.data.get(), frame.data.get(), frame.bytes);
        send(from, to, std::move(copy), cost_ns);
      }
    }
    spare_.push_back(std::move(frame.data));
  }

  // Frames are cut through: the line to the receiver starts when the line from the sender does, unless it is busy.
  void send(const Port& from, Port& to, Frame frame, std::int64_t cost_ns) {
    const std::int64_t begin_ns = std::max(from.sent_ns - cost_ns, to.received_ns);
    if (to.is_cut || begin_ns - (from.sent_ns - cost_ns) > queue_ns_max) {
      spare_.push_back(std::move(frame.data));
      return;
    }
    to.received_ns = begin_ns + cost_ns;
    frame.due_ns = to.received_ns + delay_ns_;
    wake_ns_ = std::min(wake_ns_, frame.due_ns);
    to.under_way.push_back(std::move(frame));
  }

  void sleep() {
    const std::int64_t now = now_ns();
    if (wake_ns_ != never && wake_ns_ - now < nap_ns_min) {
      return;
    }
    std::vector<pollfd> polled{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    for (const Port& port : ports_) {
      const bool is_full = port.sent_ns - now > ring_ns;
      polled.push_back({.fd = port.tap, .events = static_cast<short>(is_full ? 0 : POLLIN), .revents = 0});
    }
    const std::int64_t nap_ns = wake_ns_ == never ? 1'000'000'000 : wake_ns_ - now;
    const timespec nap{.tv_sec = nap_ns / 1'000'000'000, .tv_nsec = nap_ns % 1'000'000'000};
    ppoll(polled.data(), polled.size(), &nap, nullptr);
  }

  std::int64_t time_on_line_ns(std::size_t bytes) const {
    const std::size_t payload = bytes > segment_header_bytes ? bytes - segment_header_bytes : 0;
    const std::size_t segments =
        std::max<std::size_t>(1, (payload + segment_payload_bytes - 1) / segment_payload_bytes);
    const std::size_t on_line = bytes + (segments - 1) * segment_header_bytes + segments * line_overhead_bytes;
    return static_cast<std::int64_t>(static_cast<double>(on_line) * ns_per_byte_);
  }

  Bytes take_bytes() {
    if (spare_.empty()) {
      return std::make_unique_for_overwrite<char[]>(frame_bytes_max);
    }
    Bytes bytes = std::move(spare_.back());
    spare_.pop_back();
    return bytes;
  }

  double ns_per_byte_;
  std::int64_t delay_ns_;
  std::int64_t wake_ns_ = never;
  std::deque<Port> ports_;
  std::vector<Bytes> spare_;
  std::string commands_;
};

}  // namespace

int main(int count, char** words) {
  const double rate_mbit = count == 4 ? std::atof(words[1]) : 0;
  const double delay_us = count == 4 ? std::atof(words[2]) : -1;
  const int ports = count == 4 ? std::atoi(words[3]) : 0;
  if (rate_mbit <= 0 || delay_us < 0 || ports < 1) {
    std::fprintf(stderr, "usage: wire RATE_MBIT DELAY_US PORTS\n");
    return 2;
  }
  Wire wire(rate_mbit, delay_us, ports);
  // Both make times exact; where the system allows neither, frames are late more often.
  const sched_param priority{.sched_priority = 10};
  sched_setscheduler(0, SCHED_FIFO, &priority);
  prctl(PR_SET_TIMERSLACK, 1);
  std::puts("ready");
  std::fflush(stdout);
  wire.forward();
}
