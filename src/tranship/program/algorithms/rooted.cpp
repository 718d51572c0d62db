#include <tranship/program/algorithms/mesh.hpp>

namespace tranship::algorithms_detail {
namespace {

/// A binomial tree with root 0. A place is a rank relative to the root of the program.
Rank parent_of(Rank place) {
  return place & (place - 1);
}
std::vector<Rank> children_of(Rank place, Rank ranks) {
  std::vector<Rank> out;
  for (Rank bit = 1; (place & bit) == 0 && place + bit < ranks; bit *= 2) out.push_back(place + bit);
  return out;
}
Rank rank_at(Rank place, const AlgorithmOptions& options) {
  return (place + options.root) % options.ranks;
}

}  // namespace

// All others read from the root at the same time.
Program broadcast_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, root = options.root;
  lang::CollectiveProgram program("broadcast_all_pairs", lang::broadcast(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  const std::vector<Rank> peers = others(root, ranks);
  const lang::Chunk source = program.input(root).all();
  for (const Rank peer : peers) {
    say_ready(channels(root, peer));
    lang::MemoryChannel& channel = channels(peer, root);
    await_ready(channel);
    channel.get(program.output(peer).all(), source, block);
    publish(channel);
  }
  copy_own(program, options, program.output(root).all(), source);
  for (const Rank peer : peers) await_data(channels(root, peer));
  return program.lower();
}

Program broadcast_tree(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("broadcast_tree", lang::broadcast(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  for (Rank place = 0; place < ranks; ++place) {
    const Rank rank = rank_at(place, options);
    const lang::Chunk output = program.output(rank).all();
    if (place != 0) {
      lang::MemoryChannel& up = channels(rank, rank_at(parent_of(place), options));
      say_ready(up);
      await_data(up);
    }
    const std::vector<Rank> children = children_of(place, ranks);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      const Rank to = rank_at(*child, options);
      lang::MemoryChannel& down = channels(rank, to);
      await_ready(down);
      down.put(program.output(to).all(), place == 0 ? program.input(rank).all() : output, block);
      publish(down);
    }
    if (place == 0) copy_own(program, options, output, program.input(rank).all());
  }
  return program.lower();
}

Program broadcast_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, root = options.root;
  // The root receives nothing, so alternating halves of the scratch cannot keep it from running ahead of a slow rank;
  // it waits for a signal instead.
  lang::Options packets = packet_options(options);
  lang::CollectiveProgram program("broadcast_packets", lang::broadcast(ranks, {.in_place = options.in_place}), packets);
  Memory channels(program);
  const std::vector<lang::Buffer> inbox = scratch_of_each(program, ranks, 1);
  for (const Rank peer : others(root, ranks)) {
    channels(root, peer).wait(block, {.data_sync = lang::DataSync::none, .relaxed = true});
    channels(root, peer).put_packets(inbox[std::size_t(peer)].all(), program.input(root).all(), block);
    say_ready(channels(peer, root));
    program.unpack_packets(program.output(peer).all(), inbox[std::size_t(peer)].all(), block);
  }
  copy_own(program, options, program.output(root).all(), program.input(root).all());
  return program.lower();
}

Program reduce_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, root = options.root;
  lang::CollectiveProgram program("reduce_all_pairs", lang::reduce(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  const std::vector<Rank> peers = others(root, ranks);
  for (const Rank peer : peers) {
    say_ready(channels(peer, root));
    channels(peer, root).wait(block, {.data_sync = lang::DataSync::none});
  }
  const lang::Chunk sum = program.output(root).all();
  const lang::Chunk own = program.input(root).all();
  for (const Rank peer : peers) await_ready(channels(root, peer));
  if (peers.empty()) copy_own(program, options, sum, own);
  reduce_in_turn(channels, root, peers, sum, own, [&](Rank peer) { return program.input(peer).all(); });
  for (const Rank peer : peers) publish(channels(root, peer));
  return program.lower();
}

Program reduce_tree(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks;
  lang::CollectiveProgram program("reduce_tree", lang::reduce(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  std::vector<lang::Buffer> arrived;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank place = (rank - options.root + ranks) % ranks;
    arrived.push_back(program.scratch(rank, Index(children_of(place, ranks).size())));
  }
  for (Rank place = 0; place < ranks; ++place) {
    const Rank rank = rank_at(place, options);
    const std::vector<Rank> children = children_of(place, ranks);
    for (const Rank child : children) say_ready(channels(rank, rank_at(child, options)));
    const lang::Chunk sum = program.output(rank).all();
    lang::Chunk partial = program.input(rank).all();
    if (children.empty() && place == 0) copy_own(program, options, sum, partial);
    for (std::size_t i = 0; i < children.size(); ++i) {
      await_data(channels(rank, rank_at(children[i], options)));
      program.reduce(partial, {one(arrived[std::size_t(rank)], Index(i))}, block, {.target = &sum});
      partial = sum;
    }
    if (place == 0) continue;
    const Rank parent = parent_of(place), up = rank_at(parent, options);
    Index number = 0;
    for (const Rank sibling : children_of(parent, ranks)) number += sibling < place ? 1 : 0;
    await_ready(channels(rank, up));
    channels(rank, up).put(one(arrived[std::size_t(up)], number), partial, block);
    publish(channels(rank, up));
  }
  return program.lower();
}

}  // namespace tranship::algorithms_detail
