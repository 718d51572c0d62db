#include <bit>
#include <numeric>

#include <tranship/program/algorithms/mesh.hpp>

namespace tranship::algorithms_detail {

// Rank r combines part r of all inputs and writes the result to all outputs.
Program all_reduce_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("allreduce_all_pairs", lang::all_reduce(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    begin_with(channels, rank, peers);
    const lang::Chunk sum = one(program.output(rank), rank);
    const lang::Chunk own = one(program.input(rank), rank);
    if (peers.empty()) program.copy(sum, own, block);
    reduce_in_turn(channels, rank, peers, sum, own, [&](Rank peer) { return one(program.input(peer), rank); });
    for (const Rank peer : peers) channels(rank, peer).put(one(program.output(peer), rank), sum, block);
    end_with(channels, rank, peers);
  }
  return program.lower();
}

// The ring of Baidu's allreduce (Patarasuk and Yuan, 2009). In n - 1 steps every part travels once around, and each
// rank combines its own share into it; in n - 1 more steps the results travel around.
Program all_reduce_ring(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("allreduce_ring", lang::all_reduce(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  if (ranks == 1) return all_reduce_all_pairs(options);
  Memory channels(program);
  // One scratch chunk for each step, so that no rank waits until a chunk is free again.
  const std::vector<lang::Buffer> arrived = scratch_of_each(program, ranks, ranks - 1);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    lang::MemoryChannel &to_right = channels(rank, right), &to_left = channels(rank, left);
    say_ready(to_left);
    await_ready(to_right);
    const auto part = [&](Rank step) { return Index((rank - step + 2 * ranks) % ranks); };
    const lang::Buffer input = program.input(rank), output = program.output(rank);
    const lang::Buffer &here = arrived[std::size_t(rank)], &there = arrived[std::size_t(right)];
    to_right.put(one(there, 0), one(input, part(0)), block);
    publish(to_right);
    for (Rank step = 1; step < ranks; ++step) {
      await_data(to_left);
      const lang::Chunk sum = one(output, part(step));
      program.reduce(one(input, part(step)), {one(here, step - 1)}, block, {.target = &sum});
      if (step < ranks - 1)
        to_right.put(one(there, step), sum, block);
      else  // the part is complete
        to_right.put(one(program.output(right), part(step)), sum, block);
      publish(to_right);
    }
    for (Rank step = 0; step < ranks - 1; ++step) {
      await_data(to_left);
      if (step == ranks - 2) break;
      to_right.put(one(program.output(right), part(step)), one(output, part(step)), block);
      publish(to_right);
    }
  }
  return program.lower();
}

// Rabenseifner's algorithm: ranks exchange and combine halves, quarters, ... with ranks at half, a quarter, ... of the
// distance, and return the results on the same way. Ranks beyond a power of two give their input to one of the others.
Program all_reduce_halving_doubling(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  const auto core = static_cast<Rank>(std::bit_floor(static_cast<unsigned>(ranks)));
  if (core == 1) return all_reduce_all_pairs(options);
  const Index factor = core / std::gcd(Index(ranks), Index(core));
  lang::CollectiveProgram program("allreduce_halving_doubling",
                                  lang::all_reduce(ranks, {.chunk_factor = factor, .in_place = options.in_place}),
                                  language_options(options));
  const Index chunks = ranks * factor, part = chunks / core;
  Memory channels(program);
  std::vector<lang::Buffer> folded, arrived;
  for (Rank rank = 0; rank < core; ++rank) {
    folded.push_back(program.scratch(rank, rank + core < ranks ? chunks : 0));
    arrived.push_back(program.scratch(rank, chunks - part));
  }
  for (Rank rank = core; rank < ranks; ++rank) {
    lang::MemoryChannel& channel = channels(rank, rank - core);
    await_ready(channel);
    channel.put(folded[std::size_t(rank - core)].all(), program.input(rank).all(), block);
    publish(channel);
    await_data(channel);
  }
  for (Rank rank = 0; rank < core; ++rank) {
    const bool has_guest = rank + core < ranks;
    std::vector<Rank> peers;
    for (Rank distance = core / 2; distance > 0; distance /= 2) peers.push_back(rank ^ distance);
    if (has_guest) say_ready(channels(rank, rank + core));
    begin_with(channels, rank, peers);
    const lang::Buffer input = program.input(rank), output = program.output(rank);
    lang::Buffer partial = input;
    if (has_guest) {
      await_data(channels(rank, rank + core));
      const lang::Chunk sum = output.all();
      program.reduce(input.all(), {folded[std::size_t(rank)].all()}, block, {.target = &sum});
      partial = output;
    }
    Index begin = 0, end = chunks, used = 0;
    for (const Rank peer : peers) {
      const Index middle = (begin + end) / 2, half = middle - begin;
      const bool keeps_low = rank < peer;
      const lang::Buffer::Range kept =
          keeps_low ? lang::Buffer::Range{begin, middle} : lang::Buffer::Range{middle, end};
      const lang::Buffer::Range sent =
          keeps_low ? lang::Buffer::Range{middle, end} : lang::Buffer::Range{begin, middle};
      lang::MemoryChannel& channel = channels(rank, peer);
      channel.put(arrived[std::size_t(peer)][{used, used + half}], partial[sent], block);
      publish(channel);
      await_data(channel);
      const lang::Chunk sum = output[kept];
      program.reduce(partial[kept], {arrived[std::size_t(rank)][{used, used + half}]}, block, {.target = &sum});
      partial = output;
      used += half;
      begin = kept.begin;
      end = kept.end;
    }
    for (auto peer = peers.rbegin(); peer != peers.rend(); ++peer) {
      lang::MemoryChannel& channel = channels(rank, *peer);
      channel.put(program.output(*peer)[{begin, end}], output[{begin, end}], block);
      publish(channel);
      await_data(channel);
      if (rank < *peer)
        end += end - begin;
      else
        begin -= end - begin;
    }
    if (has_guest) {
      channels(rank, rank + core).put(program.output(rank + core).all(), output.all(), block);
      publish(channels(rank, rank + core));
    }
  }
  return program.lower();
}

// Within each node, rank l combines part l. The ranks l of all nodes combine these over ports, and each node
// distributes the results.
Program all_reduce_hierarchical(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, width = options.ranks_per_node, nodes = ranks / width;
  lang::CollectiveProgram program("allreduce_hierarchical", lang::all_reduce(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  Ports ports(program);
  const std::vector<lang::Buffer> arrived = scratch_of_each(program, ranks, nodes - 1);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank node = rank / width, local = rank % width;
    const std::vector<Rank> peers = others(rank, width, node * width);
    const lang::Buffer input = program.input(rank), output = program.output(rank);
    // Part l has one chunk for each node.
    const Index begin = Index(local) * nodes, end = begin + nodes;
    const lang::Chunk sum = output[{begin, end}];
    begin_with(channels, rank, peers);
    // Ports write to other nodes, so the partners there must have begun, too.
    std::vector<Rank> partners;
    for (Rank step = 1; step < nodes; ++step) partners.push_back((node + step) % nodes * width + local);
    for (const Rank partner : partners) ports(rank, partner).signal(block, lang::DataSync::none);
    for (const Rank partner : partners) ports(rank, partner).wait(block, lang::DataSync::after);

    const lang::Chunk own = input[{begin, end}];
    if (peers.empty()) program.copy(sum, own, block);
    reduce_in_turn(channels, rank, peers, sum, own, [&](Rank peer) { return program.input(peer)[{begin, end}]; });
    // The chunk in the scratch of `to` that `from` writes: one for each of the other nodes.
    const auto place = [&](Rank from, Rank to) { return Index((from / width - to / width + nodes - 1) % nodes); };
    if (!partners.empty()) program.barrier(rank, {block});
    for (const Rank partner : partners)
      ports(rank, partner)
          .put_with_signal(one(arrived[std::size_t(partner)], place(rank, partner)),
                           one(output, begin + partner / width), block);
    const lang::Chunk mine = one(output, begin + node);
    for (const Rank partner : partners) {
      ports(rank, partner).wait(block, lang::DataSync::after);
      program.reduce(mine, {one(arrived[std::size_t(rank)], place(partner, rank))}, block);
    }
    if (!partners.empty()) program.barrier(rank, {block});
    for (const Rank partner : partners)
      ports(rank, partner).put_with_signal(one(program.output(partner), begin + node), mine, block);
    for (const Rank partner : partners) ports(rank, partner).wait(block, lang::DataSync::after);
    for (const Rank peer : peers) channels(rank, peer).put(program.output(peer)[{begin, end}], sum, block);
    end_with(channels, rank, peers);
  }
  return program.lower();
}

// Each rank sends its input to all others, with flags in the data, and combines what it receives: one latency. An input
// is one chunk, since nothing is cut. Each sender leaves a chunk free behind its own, so that no two senders of very
// short messages write to one cache line.
Program all_reduce_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  const std::vector<Index> whole(static_cast<std::size_t>(ranks), 1);
  lang::CollectiveProgram program(
      "allreduce_packets",
      {.name = "allreduce", .input_chunks = whole, .output_chunks = whole, .in_place = options.in_place},
      packet_options(options));
  Memory channels(program);
  std::vector<std::vector<lang::Chunk>> inbox(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank)
    for (Rank from = 0; from < ranks; ++from)
      inbox[std::size_t(rank)].push_back(from == rank ? lang::Chunk{} : one(program.scratch(rank, 2), 0));
  for (Rank rank = 0; rank < ranks; ++rank) {
    const lang::Chunk input = program.input(rank).all(), output = program.output(rank).all();
    for (const Rank peer : others(rank, ranks))
      channels(rank, peer).put_packets(inbox[std::size_t(peer)][std::size_t(rank)], input, block);
    if (ranks == 1) program.copy(output, input, block);
    // In the order of ranks. Sums of floating-point numbers still differ slightly between ranks, because each begins
    // with its own input.
    std::vector<lang::Chunk> arrived;
    for (Rank from = 0; from < ranks; ++from)
      if (from != rank) arrived.push_back(inbox[std::size_t(rank)][std::size_t(from)]);
    if (ranks > 1) program.reduce_packets(input, arrived, block, {.target = &output});
  }
  return program.lower();
}

// Rank r combines part r, with flags in the data in both directions: two latencies, and 2/n of the bytes.
Program all_reduce_two_phase_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  if (ranks == 1) return all_reduce_packets(options);
  lang::CollectiveProgram program("allreduce_two_phase_packets",
                                  lang::all_reduce(ranks, {.in_place = options.in_place}), packet_options(options));
  Memory channels(program);
  std::vector<lang::Buffer> partials, sums;
  for (Rank rank = 0; rank < ranks; ++rank) {
    partials.push_back(program.scratch(rank, ranks));
    sums.push_back(program.scratch(rank, ranks));
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const lang::Buffer input = program.input(rank), output = program.output(rank);
    const auto at = static_cast<std::size_t>(rank);
    const std::vector<Rank> peers = others(rank, ranks);
    for (const Rank peer : peers)
      channels(rank, peer).put_packets(one(partials[std::size_t(peer)], rank), one(input, peer), block);
    std::vector<lang::Chunk> arrived;
    for (Rank from = 0; from < ranks; ++from)
      if (from != rank) arrived.push_back(one(partials[at], from));
    const lang::Chunk sum = one(output, rank);
    program.reduce_packets(one(input, rank), arrived, block, {.target = &sum});
    for (const Rank peer : peers) channels(rank, peer).put_packets(one(sums[std::size_t(peer)], rank), sum, block);
    for (const Rank peer : peers) program.unpack_packets(one(output, peer), one(sums[at], peer), block);
  }
  return program.lower();
}

}  // namespace tranship::algorithms_detail
