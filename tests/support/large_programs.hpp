// Programs of any size, whose proofs are timed: allreduces of many ranks, and one that only has many steps.
#pragma once

#include <vector>

#include "support/program_builder.hpp"

namespace tranship::test {

inline std::vector<Rank> all_but(Rank ranks, Rank one) {
  std::vector<Rank> out;
  for (Rank i = 1; i < ranks; ++i) out.push_back((one + i) % ranks);
  return out;
}

/// In place, in two phases: each rank combines its chunks of all ranks, and gives them to all. Each of the blocks has
/// chunks of its own.
inline Program all_pairs_allreduce(Rank ranks, int blocks) {
  const Index chunks = Index(ranks) * blocks;
  ProgramBuilder builder("allreduce", ranks, {chunks, chunks, 0});
  builder.program().in_place = true;
  for (Rank rank = 0; rank < ranks; ++rank)
    for (int block = 0; block < blocks; ++block) {
      const std::vector<Rank> peers = all_but(ranks, rank);
      const auto own_chunk = [&](Rank at) { return Chunks{at, BufferKind::input, Index(rank) * blocks + block, 1}; };
      std::vector<Chunks> sources = {own_chunk(rank)}, targets = {own_chunk(rank)};
      for (const Rank peer : peers) sources.push_back(own_chunk(peer)), targets.push_back(own_chunk(peer));
      const auto which = static_cast<Index>(block);
      builder.at(rank, std::size_t(block))
          .signal(StepKind::relaxed_signal, peers, ChannelKind::memory, which)
          .signal(StepKind::relaxed_wait, peers, ChannelKind::memory, which)
          .nop()
          .move(StepKind::read_reduce_put, sources, targets)
          .nop()
          .signal(StepKind::signal, peers, ChannelKind::memory, which)
          .signal(StepKind::wait, peers, ChannelKind::memory, which)
          .nop();
    }
  return std::move(builder.program());
}

/// In place, around a ring: each chunk travels once to be combined, and once to be told, through a place of its own for
/// each of its hops.
inline Program ring_allreduce(Rank ranks) {
  ProgramBuilder builder("allreduce", ranks, {ranks, ranks, ranks});
  builder.program().in_place = true;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    const auto chunk = [&](Rank at, BufferKind buffer, Rank hop) {
      return Chunks{at, buffer, Index((rank + 2 * ranks - hop) % ranks), 1};
    };
    builder.at(rank).signal(StepKind::relaxed_signal, {before}).signal(StepKind::relaxed_wait, {next}).nop();
    for (Rank hop = 0; hop + 1 < ranks; ++hop) {
      const Chunks mine = chunk(rank, BufferKind::input, hop);
      if (hop == 0)
        builder.move(StepKind::put, {mine}, {chunk(next, BufferKind::scratch, hop)});
      else
        builder.signal(StepKind::wait, {before})
            .nop()
            .move(StepKind::reduce_put, {mine, chunk(rank, BufferKind::scratch, hop)},
                  {mine, chunk(next, BufferKind::scratch, hop)});
      builder.nop().signal(StepKind::signal, {next});
    }
    const Rank last = ranks - 1;
    const Chunks whole = chunk(rank, BufferKind::input, last);
    builder.signal(StepKind::wait, {before})
        .nop()
        .move(StepKind::reduce, {whole, chunk(rank, BufferKind::scratch, last)}, {whole})
        .nop();
    for (Rank hop = last; hop < last + ranks - 1; ++hop) {
      if (hop > last) builder.signal(StepKind::wait, {before}).nop();
      builder.move(StepKind::put, {chunk(rank, BufferKind::input, hop)}, {chunk(next, BufferKind::input, hop)})
          .nop()
          .signal(StepKind::signal, {next});
    }
    builder.signal(StepKind::wait, {before}).nop();
  }
  return std::move(builder.program());
}

/// In place, by packets in double scratch: each rank sends each its chunks, combines what has come, and sends that.
inline Program packets_allreduce(Rank ranks) {
  const Index n = ranks;
  ProgramBuilder builder("allreduce", ranks, {n, n, 2 * n});
  builder.program().in_place = builder.program().double_scratch = true;
  builder.program().protocol = "LL";
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = all_but(ranks, rank);
    std::vector<Chunks> mine, theirs, come = {{rank, BufferKind::input, rank, 1}};
    std::vector<Chunks> results = {{rank, BufferKind::input, rank, 1}};
    for (const Rank peer : peers) {
      mine.push_back({rank, BufferKind::input, peer, 1});
      theirs.push_back({peer, BufferKind::scratch, rank, 1});
      come.push_back({rank, BufferKind::scratch, peer, 1});
      results.push_back({peer, BufferKind::scratch, n + rank, 1});
    }
    builder.at(rank).move(StepKind::put_packets, mine, theirs).move(StepKind::reduce_put_packets, come, results);
    for (const Rank peer : peers)
      builder.move(StepKind::unpack_packets, {{rank, BufferKind::scratch, n + peer, 1}},
                   {{rank, BufferKind::input, peer, 1}});
  }
  return std::move(builder.program());
}

/// About `steps` steps on `ranks` ranks, which pass chunks around a ring again and again.
inline Program long_ring(Rank ranks, Index steps) {
  const Index chunks = 64;
  ProgramBuilder builder("test", ranks, {chunks, chunks, 2 * chunks});
  const Index rounds = std::max<Index>(1, steps / ranks / 6);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    builder.at(rank).signal(StepKind::relaxed_signal, {before}).signal(StepKind::relaxed_wait, {next}).nop();
    for (Index round = 0; round < rounds; ++round) {
      const Index at = round % chunks;
      const bool fills = round / chunks % 2 == 0;
      const auto half = [&](Rank of, bool first) {
        return Chunks{of, BufferKind::scratch, first ? at : chunks + at, 1};
      };
      if (round < chunks)
        builder.move(StepKind::put, {{rank, BufferKind::input, at, 1}}, {half(next, true)});
      else
        builder.move(StepKind::put, {half(rank, !fills)}, {half(next, fills)});
      // Signals forward, then back: what was sent may be overwritten one round later.
      builder.nop().signal(StepKind::signal, {next, before}).signal(StepKind::wait, {before, next}).nop();
    }
    builder.move(StepKind::copy, {{rank, BufferKind::input, 0, chunks}}, {{rank, BufferKind::output, 0, chunks}});
  }
  return std::move(builder.program());
}

}  // namespace tranship::test
