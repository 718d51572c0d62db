// Private: combines arrays element by element, for collective operations and programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tranship/base/element_type.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/kernels/host/peer_writes.hpp>

namespace tranship::detail {

/// Returns true if a type has this reduction: complex numbers have only sums, and only integers and bools have bitwise
/// ones.
bool can_reduce(Reduction reduction, ElementType type) noexcept;

/// Combines each element of `from` into the element of `to`. All reductions are commutative.
void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, Reduction reduction, ElementType type);

/// Arrays of `bytes` each, in whole elements. A target may be one of the sources; otherwise targets must not overlap
/// anything.
struct CombinedArrays {
  const std::byte* const* sources = nullptr;
  std::size_t source_count = 0;
  std::byte* const* targets = nullptr;
  std::size_t target_count = 0;
  std::size_t bytes = 0;
};

/// Plain data, and packets (packets.hpp) of the same amount of data in whole units. The target may be the plain data.
struct CombinedPackets {
  const std::byte* plain = nullptr;
  const std::byte* packets = nullptr;
  std::byte* target = nullptr;
  std::size_t bytes = 0;
  std::uint32_t flag = 0;
  bool packets_come_first = false;  ///< order of the operands
  int looks = 1;                    ///< attempts for a unit that has not arrived, before it is left for later
};

/// Combines any number of arrays (at least two) in their order and stores the result to all targets. The result equals
/// that of reduce_into() one after the other. If the processor has vectors for the numbers, each source is read once.
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

  /// Returns true if with_packets() may be called.
  bool takes_packets() const noexcept { return packets_ != nullptr; }
  /// Combines units until one has another flag, and returns the bytes of data combined. The result equals that of the
  /// operator. Acquires.
  std::size_t with_packets(const CombinedPackets& pair) const { return packets_(pair); }

 private:
  void one_by_one(const CombinedArrays& arrays) const;

  void (*vectors_)(const CombinedArrays&) = nullptr;
  std::size_t (*packets_)(const CombinedPackets&) = nullptr;
  Reduction reduction_ = Reduction::sum;
  ElementType type_{};
};

/// Arrays whose targets partly belong to peers, which may have read them: those are written by write_to_peer().
struct CombinedForPeers {
  std::span<const std::byte*> sources;  ///< advanced as they are read
  std::span<std::byte*> targets;        ///< advanced as they are written
  FunctionRef<bool(std::size_t)> is_of_peer;
  std::size_t bytes = 0;
};
void combine_for_peers(const Combiner& combine, const CombinedForPeers& arrays, WriteChoice& choice);

}  // namespace tranship::detail
