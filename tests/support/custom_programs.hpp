// Programs of collectives that promise nothing, in which ranks have different numbers of chunks.
#pragma once

#include <utility>
#include <vector>

#include "support/program_builder.hpp"

namespace tranship::test {

inline Chunks chunk_of(Rank rank, BufferKind buffer, Index chunk) {
  return {rank, buffer, chunk, 1};
}

/// The root takes a chunk of each rank. The other ranks have no output.
inline Program gather_to(Rank root, Rank ranks) {
  ProgramBuilder builder("collect", ranks, {1, 0, 0});
  builder.program().ranks[std::size_t(root)].chunks[1] = ranks;
  std::vector<Rank> others;
  for (Rank rank = 0; rank < ranks; ++rank)
    if (rank != root) others.push_back(rank);
  builder.at(root).move(StepKind::copy, {chunk_of(root, BufferKind::input, 0)},
                        {chunk_of(root, BufferKind::output, root)});
  builder.nop().signal(StepKind::relaxed_signal, others).nop().signal(StepKind::wait, others).nop();
  for (const Rank rank : others)
    builder.at(rank)
        .signal(StepKind::relaxed_wait, {root})
        .nop()
        .move(StepKind::put, {chunk_of(rank, BufferKind::input, 0)}, {chunk_of(root, BufferKind::output, rank)})
        .nop()
        .signal(StepKind::signal, {root});
  return std::move(builder.program());
}

/// Each rank takes a chunk of the root. The other ranks have no input.
inline Program scatter_from(Rank root, Rank ranks) {
  ProgramBuilder builder("deal", ranks, {0, 1, 0});
  builder.program().ranks[std::size_t(root)].chunks[0] = ranks;
  builder.at(root).move(StepKind::copy, {chunk_of(root, BufferKind::input, root)},
                        {chunk_of(root, BufferKind::output, 0)});
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank == root) continue;
    builder.at(root)
        .nop()
        .signal(StepKind::relaxed_wait, {rank})
        .nop()
        .move(StepKind::put, {chunk_of(root, BufferKind::input, rank)}, {chunk_of(rank, BufferKind::output, 0)})
        .nop()
        .signal(StepKind::signal, {rank});
    builder.at(rank).nop().signal(StepKind::relaxed_signal, {root}).nop().signal(StepKind::wait, {root}).nop();
  }
  return std::move(builder.program());
}

}  // namespace tranship::test
