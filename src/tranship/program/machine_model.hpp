// Private: What a machine takes for the steps of programs: latencies, rates, and what ranks share. A model is a JSON
// file, machines/*.json or what `tranship measure` writes; docs/machines.md explains its members.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// Bytes by time, which may depend on how much memory a host touches in one launch: caches are faster than memory.
class Rate {
 public:
  struct Point {
    double bytes = 0;  ///< that the host touches
    double gb_per_s = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };

  /// Takes no time.
  Rate() = default;
  explicit Rate(double gb_per_s) : points_{{.bytes = 0, .gb_per_s = gb_per_s}} {}
  /// In increasing order of bytes.
  explicit Rate(std::vector<Point> points) : points_(std::move(points)) {}

  /// Between two points by the logarithm of bytes; beyond them as at the nearest.
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
  double latency_ns = 0;  ///< from the end of a signal, or of a request to read, until it is there
  double message_ns = 0;  ///< of the block, for each transfer or signal that it begins
  Rate put, get;
  Index long_put_bytes = 0;  ///< puts of fewer bytes are as fast as `short_put` says
  Rate short_put;
  Rate packets;      ///< bytes of data, written as packets
  Rate read_reduce;  ///< bytes that are read at the peer and combined with what is here
  Rate reduce_put;   ///< bytes that a step which combines writes to the peer
  Rate take_back;    ///< bytes written here that the peer has read since they were written before
  /// A proxy carries out what blocks ask for, in order; without it the block itself moves the bytes.
  bool has_proxy = false;

  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

struct SwitchModel {
  double latency_ns = 0;
  Rate put, get;  ///< of one multicast; of one reduction in the switch
  /// Whether the switch exists: without it, each rank of a channel is written or read by itself, over memory channels.
  bool is_present = false;

  friend bool operator==(const SwitchModel&, const SwitchModel&) = default;
};

struct MachineModel {
  enum class Blocks : std::uint8_t {
    together,  ///< each thread block runs by itself, as on a GPU
    in_turn,   ///< one thread steps all blocks of a rank, as ProgramExecutor does
  };

  std::string name;
  Blocks blocks = Blocks::together;
  Index ranks_per_host = 1;
  Index cores_per_host = 0;   ///< that ranks share; 0: each rank has what it needs
  double core_switch_ns = 0;  ///< until a core goes on with another rank
  double launch_ns = 0;       ///< before the first step
  Rate launch_copy;           ///< of the input before the first step, and of the output after the last one
  double step_ns = 0;         ///< of every step
  Rate copy, reduce;          ///< of one block
  Rate pack, unpack;          ///< bytes of data into and out of packets
  Rate reduce_packets;        ///< bytes of data in packets that are combined with plain data
  double rank_gb_per_s = 0;   ///< what all blocks of a rank send, and receive, at most; 0: no limit
  double host_gb_per_s = 0;   ///< the same of all ranks of a host, to and from other hosts
  LinkModel memory, port;     ///< on one host
  LinkModel far_port;         ///< between hosts
  LinkModel far_memory;
  bool has_far_memory = false;  ///< whether memory channels lead to other hosts
  SwitchModel multicast;

  friend bool operator==(const MachineModel&, const MachineModel&) = default;
};

/// Throws `bad_text` with the path of what does not belong there.
MachineModel read_machine(std::string_view text);
std::string write_machine(const MachineModel& machine);

}  // namespace tranship
