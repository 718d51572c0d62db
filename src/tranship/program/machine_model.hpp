// Private: MachineModel, the costs of a machine for the steps of programs: latencies, rates, and shared resources. A
// model is a JSON file, one of machines/*.json or the output of `tranship measure`; docs/machines.md explains its
// members.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// Bytes per time. A rate may depend on the memory that a host touches in one launch, because caches are faster.
class Rate {
 public:
  struct Point {
    double bytes = 0;  ///< bytes that the host touches
    double gb_per_s = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };

  /// Takes no time.
  Rate() = default;
  explicit Rate(double gb_per_s) : points_{{.bytes = 0, .gb_per_s = gb_per_s}} {}
  /// Points in increasing order of bytes.
  explicit Rate(std::vector<Point> points) : points_(std::move(points)) {}

  /// Interpolates between two points by the logarithm of bytes; outside them, the nearest point counts.
  double ns_per_byte(double bytes_touched) const;
  bool is_given() const noexcept { return !points_.empty(); }
  const std::vector<Point>& points() const noexcept { return points_; }
  Rate times(double factor) const;

  friend bool operator==(const Rate&, const Rate&) = default;

 private:
  std::vector<Point> points_;
};

/// One kind of channel between two ranks.
struct LinkModel {
  double latency_ns = 0;  ///< from the end of a signal, or of a read request, to its arrival
  double message_ns = 0;  ///< time of the block for each transfer or signal that it begins
  Rate put, get;
  Index long_put_bytes = 0;  ///< shorter puts have the rate `short_put`
  Rate short_put;
  Rate packets;      ///< bytes of data, written as packets
  Rate read_reduce;  ///< bytes that are read at the peer and combined with local data
  Rate reduce_put;   ///< bytes that a combining step writes to the peer
  Rate take_back;    ///< bytes written here that the peer has read since they were last written
  /// True: a proxy carries out the requests of blocks, in order. False: the block itself moves the bytes.
  bool has_proxy = false;

  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

struct SwitchModel {
  double latency_ns = 0;
  Rate put, get;  ///< rates of one multicast, and of one reduction in the switch
  /// True: the switch exists. False: the ranks of a channel are accessed one by one, over memory channels.
  bool is_present = false;

  friend bool operator==(const SwitchModel&, const SwitchModel&) = default;
};

struct MachineModel {
  enum class Blocks : std::uint8_t {
    together,  ///< each thread block runs independently, as on a GPU
    in_turn,   ///< one thread steps all blocks of a rank, as in ProgramExecutor
  };

  std::string name;
  Blocks blocks = Blocks::together;
  Index ranks_per_host = 1;
  Index cores_per_host = 0;   ///< shared by the ranks; 0: each rank has all that it needs
  double core_switch_ns = 0;  ///< delay when a core changes to another rank
  double launch_ns = 0;       ///< time before the first step
  Rate launch_copy;           ///< rate of copying the input before the first step, and the output after the last one
  double step_ns = 0;         ///< fixed time of every step
  Rate copy, reduce;          ///< rates of one block
  Rate pack, unpack;          ///< bytes of data into and out of packets
  Rate reduce_packets;        ///< bytes of data in packets that are combined with plain data
  double rank_gb_per_s = 0;   ///< limit of what all blocks of a rank send, and of what they receive; 0: none
  double host_gb_per_s = 0;   ///< the same limit for all ranks of a host, to and from other hosts
  LinkModel memory, port;     ///< links inside one host
  LinkModel far_port;         ///< ports between hosts
  LinkModel far_memory;
  bool has_far_memory = false;  ///< true: memory channels lead to other hosts, too
  SwitchModel multicast;

  friend bool operator==(const MachineModel&, const MachineModel&) = default;
};

/// Throws `bad_text` with the path of the invalid member.
MachineModel read_machine(std::string_view text);
std::string write_machine(const MachineModel& machine);

}  // namespace tranship
