#include <tranship/program/algorithms/mesh.hpp>

namespace tranship::algorithms_detail {

Program all_gather_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("allgather_all_pairs", lang::all_gather(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    const lang::Chunk input = program.input(rank).all();
    begin_with(channels, rank, peers);
    for (const Rank peer : peers) channels(rank, peer).put(one(program.output(peer), rank), input, block);
    copy_own(program, options, one(program.output(rank), rank), input);
    end_with(channels, rank, peers);
  }
  return program.lower();
}

Program all_gather_ring(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  if (ranks == 1) return all_gather_all_pairs(options);
  lang::CollectiveProgram program("allgather_ring", lang::all_gather(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    lang::MemoryChannel &to_right = channels(rank, right), &to_left = channels(rank, left);
    const lang::Buffer output = program.output(rank), next = program.output(right);
    say_ready(to_left);
    await_ready(to_right);
    to_right.put(one(next, rank), program.input(rank).all(), block);
    publish(to_right);
    copy_own(program, options, one(output, rank), program.input(rank).all());
    for (Rank step = 1; step < ranks; ++step) {
      const Index part = (rank - step + ranks) % ranks;
      await_data(to_left);
      if (step == ranks - 1) break;
      to_right.put(one(next, part), one(output, part), block);
      publish(to_right);
    }
  }
  return program.lower();
}

Program all_gather_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("allgather_packets", lang::all_gather(ranks, {.in_place = options.in_place}),
                                  packet_options(options));
  Memory channels(program);
  const std::vector<lang::Buffer> inbox = scratch_of_each(program, ranks, ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    const lang::Chunk input = program.input(rank).all();
    for (const Rank peer : peers) channels(rank, peer).put_packets(one(inbox[std::size_t(peer)], rank), input, block);
    copy_own(program, options, one(program.output(rank), rank), input);
    for (const Rank peer : peers)
      program.unpack_packets(one(program.output(rank), peer), one(inbox[std::size_t(rank)], peer), block);
  }
  return program.lower();
}

Program reduce_scatter_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("reducescatter_all_pairs",
                                  lang::reduce_scatter(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    const lang::Chunk sum = program.output(rank).all();
    const lang::Chunk own = one(program.input(rank), rank);
    begin_with(channels, rank, peers);
    if (peers.empty()) copy_own(program, options, sum, own);
    reduce_in_turn(channels, rank, peers, sum, own, [&](Rank peer) { return one(program.input(peer), rank); });
    end_with(channels, rank, peers);
  }
  return program.lower();
}

// Every part travels once around to the rank that keeps it, and each rank combines its own share into it.
Program reduce_scatter_ring(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  if (ranks == 1) return reduce_scatter_all_pairs(options);
  lang::CollectiveProgram program("reducescatter_ring", lang::reduce_scatter(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  std::vector<lang::Buffer> arrived, partial;
  for (Rank rank = 0; rank < ranks; ++rank) {
    arrived.push_back(program.scratch(rank, ranks - 1));
    partial.push_back(program.scratch(rank, ranks - 1));
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    lang::MemoryChannel &to_right = channels(rank, right), &to_left = channels(rank, left);
    const lang::Buffer input = program.input(rank);
    const lang::Buffer &here = arrived[std::size_t(rank)], &there = arrived[std::size_t(right)];
    const auto part = [&](Rank step) { return Index((rank - step - 1 + 2 * ranks) % ranks); };
    say_ready(to_left);
    await_ready(to_right);
    to_right.put(one(there, 0), one(input, part(0)), block);
    publish(to_right);
    for (Rank step = 1; step < ranks; ++step) {
      await_data(to_left);
      const bool is_mine = step == ranks - 1;
      const lang::Chunk sum = is_mine ? program.output(rank).all() : one(partial[std::size_t(rank)], step - 1);
      program.reduce(one(input, part(step)), {one(here, step - 1)}, block, {.target = &sum});
      if (is_mine) break;
      to_right.put(one(there, step), sum, block);
      publish(to_right);
    }
  }
  return program.lower();
}

Program reduce_scatter_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("reducescatter_packets", lang::reduce_scatter(ranks, {.in_place = options.in_place}),
                                  packet_options(options));
  Memory channels(program);
  const std::vector<lang::Buffer> inbox = scratch_of_each(program, ranks, ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const lang::Buffer input = program.input(rank);
    const lang::Chunk sum = program.output(rank).all();
    for (const Rank peer : others(rank, ranks))
      channels(rank, peer).put_packets(one(inbox[std::size_t(peer)], rank), one(input, peer), block);
    std::vector<lang::Chunk> arrived;
    for (Rank from = 0; from < ranks; ++from)
      if (from != rank) arrived.push_back(one(inbox[std::size_t(rank)], from));
    if (arrived.empty())
      copy_own(program, options, sum, one(input, rank));
    else
      program.reduce_packets(one(input, rank), arrived, block, {.target = &sum});
  }
  return program.lower();
}

Program all_to_all_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("alltoall_all_pairs", lang::all_to_all(ranks), language_options(options));
  Memory channels(program);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    begin_with(channels, rank, peers);
    for (const Rank peer : peers)
      channels(rank, peer).put(one(program.output(peer), rank), one(program.input(rank), peer), block);
    program.copy(one(program.output(rank), rank), one(program.input(rank), rank), block);
    end_with(channels, rank, peers);
  }
  return program.lower();
}

// All parts arrive as packets in scratch before any is unpacked, so input and output may be the same memory.
Program all_to_all_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("alltoall_packets", lang::all_to_all(ranks, {.in_place = options.in_place}),
                                  packet_options(options));
  Memory channels(program);
  const std::vector<lang::Buffer> inbox = scratch_of_each(program, ranks, ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    for (const Rank peer : peers)
      channels(rank, peer).put_packets(one(inbox[std::size_t(peer)], rank), one(program.input(rank), peer), block);
    copy_own(program, options, one(program.output(rank), rank), one(program.input(rank), rank));
    for (const Rank peer : peers)
      program.unpack_packets(one(program.output(rank), peer), one(inbox[std::size_t(rank)], peer), block);
  }
  return program.lower();
}

}  // namespace tranship::algorithms_detail
