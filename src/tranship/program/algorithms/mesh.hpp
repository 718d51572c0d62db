// Private: parts that the ready programs share: channels between all ranks or within a group, and the handshakes at the
// beginning and the end of a program.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <tranship/program/algorithms.hpp>
#include <tranship/program/language.hpp>

namespace tranship::algorithms_detail {

namespace lang = tranship::language;

/// The thread block that does everything. Machines with many blocks use Options::instances.
inline constexpr int block = 0;

inline lang::Options language_options(const AlgorithmOptions& options) {
  lang::Options out;
  out.instances = options.instances;
  return out;
}
inline lang::Options packet_options(const AlgorithmOptions& options) {
  lang::Options out = language_options(options);
  out.protocol = "LL";
  out.double_scratch = true;
  return out;
}

/// Channels between ranks, made on first use in both directions together. So the k-th channel from `to` to `from` is
/// the other end of the k-th one from `from` to `to`.
template <class Channel>
class Channels {
 public:
  explicit Channels(lang::CollectiveProgram& program) : program_(program) {}
  Channel& operator()(Rank from, Rank to) {
    if (!channels_.contains({from, to})) {
      channels_.emplace(std::pair(from, to), Channel(program_, {.target = to, .source = from}));
      channels_.emplace(std::pair(to, from), Channel(program_, {.target = from, .source = to}));
    }
    return channels_.at({from, to});
  }

 private:
  lang::CollectiveProgram& program_;
  std::map<std::pair<Rank, Rank>, Channel> channels_;
};
using Memory = Channels<lang::MemoryChannel>;
using Ports = Channels<lang::PortChannel>;

/// Tells the peer that it may use this rank's buffers. Publishes no data.
inline void say_ready(lang::MemoryChannel& channel) {
  channel.signal(block, {.data_sync = lang::DataSync::none, .relaxed = true});
}
/// Waits until the peer's buffers may be used.
inline void await_ready(lang::MemoryChannel& channel) {
  channel.wait(block, {.data_sync = lang::DataSync::after, .relaxed = true});
}
/// Tells the peer that this rank's reads and writes so far are complete, and publishes the writes.
inline void publish(lang::MemoryChannel& channel) {
  channel.signal(block, {.data_sync = lang::DataSync::before});
}
/// Waits for the peer's publish(); afterwards this rank sees what the peer wrote.
inline void await_data(lang::MemoryChannel& channel) {
  channel.wait(block, {.data_sync = lang::DataSync::after});
}

/// Tells `peers` that this rank has begun its launch, and waits for theirs. Afterwards the peers' buffers may be used.
inline void begin_with(Memory& channels, Rank rank, const std::vector<Rank>& peers) {
  for (const Rank peer : peers) say_ready(channels(rank, peer));
  for (const Rank peer : peers) await_ready(channels(rank, peer));
}
/// Tells `peers` that this rank is done with their buffers, and waits for theirs. Afterwards they are done with this
/// rank's buffers, and it sees what they wrote there.
inline void end_with(Memory& channels, Rank rank, const std::vector<Rank>& peers) {
  for (const Rank peer : peers) publish(channels(rank, peer));
  for (const Rank peer : peers) await_data(channels(rank, peer));
}

/// All ranks but one, beginning with its right neighbour, so that ranks do not all begin with the same peer.
inline std::vector<Rank> others(Rank rank, Rank ranks, Rank first = 0) {
  std::vector<Rank> out;
  for (Rank i = 1; i < ranks; ++i) out.push_back(first + (rank - first + i) % ranks);
  return out;
}

inline lang::Chunk one(const lang::Buffer& buffer, Index chunk) {
  return buffer[{chunk, chunk + 1}];
}

/// A buffer of `chunks` chunks in the scratch of each rank.
inline std::vector<lang::Buffer> scratch_of_each(lang::CollectiveProgram& program, Rank ranks, Index chunks) {
  std::vector<lang::Buffer> out;
  for (Rank rank = 0; rank < ranks; ++rank) out.push_back(program.scratch(rank, chunks));
  return out;
}

/// Copies the rank's own part to the output, unless the program is in place and it is there already.
inline void copy_own(lang::CollectiveProgram& program, const AlgorithmOptions& options, const lang::Chunk& target,
                     const lang::Chunk& source) {
  if (!options.in_place) program.copy(target, source, block);
}

/// Makes `sum` the combination of `own` with `chunk_of(peer)` of each peer in turn. Without peers, writes nothing.
template <class ChunkOf>
void reduce_in_turn(Memory& channels, Rank rank, const std::vector<Rank>& peers, const lang::Chunk& sum,
                    const lang::Chunk& own, ChunkOf&& chunk_of) {
  lang::Chunk partial = own;
  for (const Rank peer : peers) {
    channels(rank, peer).reduce(partial, {chunk_of(peer)}, block, {.target = &sum});
    partial = sum;
  }
}

Program all_reduce_reading(const AlgorithmOptions& options);
Program all_reduce_copies(const AlgorithmOptions& options);
Program all_gather_reading(const AlgorithmOptions& options);
Program all_gather_copies(const AlgorithmOptions& options);
Program reduce_scatter_copies(const AlgorithmOptions& options);
Program all_to_all_reading(const AlgorithmOptions& options);
Program all_to_all_copies(const AlgorithmOptions& options);
Program all_reduce_all_pairs(const AlgorithmOptions& options);
Program all_reduce_ring(const AlgorithmOptions& options);
Program all_reduce_halving_doubling(const AlgorithmOptions& options);
Program all_reduce_hierarchical(const AlgorithmOptions& options);
Program all_reduce_packets(const AlgorithmOptions& options);
Program all_reduce_two_phase_packets(const AlgorithmOptions& options);
Program all_gather_all_pairs(const AlgorithmOptions& options);
Program all_gather_ring(const AlgorithmOptions& options);
Program all_gather_packets(const AlgorithmOptions& options);
Program reduce_scatter_all_pairs(const AlgorithmOptions& options);
Program reduce_scatter_ring(const AlgorithmOptions& options);
Program reduce_scatter_packets(const AlgorithmOptions& options);
Program all_to_all_all_pairs(const AlgorithmOptions& options);
Program all_to_all_packets(const AlgorithmOptions& options);
Program broadcast_all_pairs(const AlgorithmOptions& options);
Program broadcast_tree(const AlgorithmOptions& options);
Program broadcast_packets(const AlgorithmOptions& options);
Program reduce_all_pairs(const AlgorithmOptions& options);
Program reduce_tree(const AlgorithmOptions& options);

}  // namespace tranship::algorithms_detail
