// Private: combining arrays element by element, as collective operations and programs do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tranship/base/element_type.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/kernels/host/peer_writes.hpp>

namespace tranship::detail {

/// Complex numbers have sums only; only integers and bools have bits.
bool can_reduce(Reduction reduction, ElementType type) noexcept;

/// Each element of `to` becomes itself combined with that of `from`. Which one comes first matters for no reduction.
void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, Reduction reduction, ElementType type);

/// Arrays of `bytes` each, whole elements. A target may be one of the sources; apart from that, targets overlap
/// nothing.
struct CombinedArrays {
  const std::byte* const* sources = nullptr;
  std::size_t source_count = 0;
  std::byte* const* targets = nullptr;
  std::size_t target_count = 0;
  std::size_t bytes = 0;
};

/// Plain data and packets (packets.hpp) of as much data, whole units of them. The target may be the plain data.
struct CombinedPackets {
  const std::byte* plain = nullptr;
  const std::byte* packets = nullptr;
  std::byte* target = nullptr;
  std::size_t bytes = 0;
  std::uint32_t flag = 0;
  bool packets_come_first = false;  ///< in the order in which is combined
  int looks = 1;                    ///< at a unit that has not come, before it is left for later
};

/// Combines any number of arrays, in their order, to the bit as reduce_into does one after the other, and stores the
/// result to all targets. At least two sources. Those of numbers that the processor computes with in vectors are read
/// once.
class Combiner {
 public:
  Combiner() = default;
  Combiner(Reduction reduction, ElementType type) noexcept;

  void operator()(const CombinedArrays& arrays) const {
    if (vectors_)
      vectors_(arrays);
    else
      one_by_one(arrays);
  }

  /// Whether the next function may be called.
  bool takes_packets() const noexcept { return packets_ != nullptr; }
  /// Combines units until one keeps another flag, to the bit as the operator does, and returns the bytes of data that
  /// it has combined. Acquire.
  std::size_t with_packets(const CombinedPackets& pair) const { return packets_(pair); }

 private:
  void one_by_one(const CombinedArrays& arrays) const;

  void (*vectors_)(const CombinedArrays&) = nullptr;
  std::size_t (*packets_)(const CombinedPackets&) = nullptr;
  Reduction reduction_ = Reduction::sum;
  ElementType type_{};
};

/// The same where peers have some of the targets and may have read them: written there as write_to_peer() does.
struct CombinedForPeers {
  std::span<const std::byte*> sources;  ///< moved on as they are read
  std::span<std::byte*> targets;        ///< moved on as they are written
  FunctionRef<bool(std::size_t)> is_of_peer;
  std::size_t bytes = 0;
};
void combine_for_peers(const Combiner& combine, const CombinedForPeers& arrays, WriteChoice& choice);

}  // namespace tranship::detail
