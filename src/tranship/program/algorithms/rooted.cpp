#include <tranship/program/algorithms/mesh.hpp>

namespace tranship::algorithms_detail {
namespace {

/// A binomial tree whose root is 0: places are ranks relative to the root of the program.
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

// All others read from the root, each for itself.
Program broadcast_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, root = options.root;
  lang::CollectiveProgram program("broadcast_all_pairs", lang::broadcast(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  const std::vector<Rank> peers = others(root, ranks);
  const lang::Chunk source = program.input(root).all();
  for (const Rank peer : peers) {
    channels(root, peer).signal(block, {.data_sync = lang::DataSync::none, .relaxed = true});
    lang::MemoryChannel& channel = channels(peer, root);
    channel.wait(block, {.data_sync = lang::DataSync::after, .relaxed = true});
    channel.get(program.output(peer).all(), source, block);
    channel.signal(block, {.data_sync = lang::DataSync::before});
  }
  if (!options.in_place) program.copy(program.output(root).all(), source, block);
  for (const Rank peer : peers) channels(root, peer).wait(block, {.data_sync = lang::DataSync::after});
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
      up.signal(block, {.data_sync = lang::DataSync::none, .relaxed = true});
      up.wait(block, {.data_sync = lang::DataSync::after});
    }
    const std::vector<Rank> children = children_of(place, ranks);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      const Rank to = rank_at(*child, options);
      lang::MemoryChannel& down = channels(rank, to);
      down.wait(block, {.data_sync = lang::DataSync::after, .relaxed = true});
      down.put(program.output(to).all(), place == 0 ? program.input(rank).all() : output, block);
      down.signal(block, {.data_sync = lang::DataSync::before});
    }
    if (place == 0 && !options.in_place) program.copy(output, program.input(rank).all(), block);
  }
  return program.lower();
}

Program broadcast_packets(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, root = options.root;
  // The root hears nothing: two halves are not enough to keep it from running ahead of a rank that is slow.
  lang::Options packets = packet_options(options);
  lang::CollectiveProgram program("broadcast_packets", lang::broadcast(ranks, {.in_place = options.in_place}), packets);
  Memory channels(program);
  std::vector<lang::Buffer> inbox;
  for (Rank rank = 0; rank < ranks; ++rank) inbox.push_back(program.scratch(rank, 1));
  for (const Rank peer : others(root, ranks)) {
    channels(root, peer).wait(block, {.data_sync = lang::DataSync::none, .relaxed = true});
    channels(root, peer).put_packets(inbox[std::size_t(peer)].all(), program.input(root).all(), block);
    channels(peer, root).signal(block, {.data_sync = lang::DataSync::none, .relaxed = true});
    program.unpack_packets(program.output(peer).all(), inbox[std::size_t(peer)].all(), block);
  }
  if (!options.in_place) program.copy(program.output(root).all(), program.input(root).all(), block);
  return program.lower();
}

Program reduce_all_pairs(const AlgorithmOptions& options) {
  const Rank ranks = options.ranks, root = options.root;
  lang::CollectiveProgram program("reduce_all_pairs", lang::reduce(ranks, {.in_place = options.in_place}),
                                  language_options(options));
  Memory channels(program);
  const std::vector<Rank> peers = others(root, ranks);
  for (const Rank peer : peers) {
    channels(peer, root).signal(block, {.data_sync = lang::DataSync::none, .relaxed = true});
    channels(peer, root).wait(block, {.data_sync = lang::DataSync::none});
  }
  const lang::Chunk sum = program.output(root).all();
  lang::Chunk partial = program.input(root).all();
  for (const Rank peer : peers) channels(root, peer).wait(block, {.data_sync = lang::DataSync::after, .relaxed = true});
  if (peers.empty() && !options.in_place) program.copy(sum, partial, block);
  for (const Rank peer : peers) {
    channels(root, peer).reduce(partial, {program.input(peer).all()}, block, {.target = &sum});
    partial = sum;
  }
  for (const Rank peer : peers) channels(root, peer).signal(block, {.data_sync = lang::DataSync::before});
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
    for (const Rank child : children)
      channels(rank, rank_at(child, options)).signal(block, {.data_sync = lang::DataSync::none, .relaxed = true});
    const lang::Chunk sum = program.output(rank).all();
    lang::Chunk partial = program.input(rank).all();
    if (children.empty() && place == 0 && !options.in_place) program.copy(sum, partial, block);
    for (std::size_t i = 0; i < children.size(); ++i) {
      channels(rank, rank_at(children[i], options)).wait(block, {.data_sync = lang::DataSync::after});
      program.reduce(partial, {one(arrived[std::size_t(rank)], Index(i))}, block, {.target = &sum});
      partial = sum;
    }
    if (place == 0) continue;
    const Rank parent = parent_of(place), up = rank_at(parent, options);
    Index number = 0;
    for (const Rank sibling : children_of(parent, ranks)) number += sibling < place ? 1 : 0;
    channels(rank, up).wait(block, {.data_sync = lang::DataSync::after, .relaxed = true});
    channels(rank, up).put(one(arrived[std::size_t(up)], number), partial, block);
    channels(rank, up).signal(block, {.data_sync = lang::DataSync::before});
  }
  return program.lower();
}

}  // namespace tranship::algorithms_detail
