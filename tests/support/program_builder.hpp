// Programs of channel operations, written in a few words: it numbers channels and remote buffers as they are used.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship::test {

/// Chunks of a buffer of a rank; as an operand of a step, a peer's where it is of another rank than the step.
struct Chunks {
  Rank rank = 0;
  BufferKind buffer = BufferKind::input;
  Index first = 0, count = 1;
};

/// How long its steps refer to it: the program that it adds to.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string collective, Rank ranks, std::initializer_list<Index> chunks) {
    program_.name = program_.collective = std::move(collective);
    program_.ranks.resize(static_cast<std::size_t>(ranks));
    for (RankProgram& rank : program_.ranks) std::copy(chunks.begin(), chunks.end(), rank.chunks);
  }

  Program& program() { return program_; }
  Rank ranks() const { return static_cast<Rank>(program_.ranks.size()); }

  /// The block of a rank to which what follows is added.
  ProgramBuilder& at(Rank rank, std::size_t block = 0) {
    rank_ = rank;
    block_ = block;
    auto& blocks = own().blocks;
    if (blocks.size() <= block) blocks.resize(block + 1);
    return *this;
  }
  ProgramBuilder& nop() { return add({.kind = StepKind::nop}); }
  ProgramBuilder& barrier(std::int32_t id, std::int32_t participants) {
    return add({.kind = StepKind::barrier, .participants = participants, .ids = {id}});
  }
  /// `which`: the channels to the same peers by the same number are pairs.
  ProgramBuilder& signal(StepKind kind, const std::vector<Rank>& peers, ChannelKind channel = ChannelKind::memory,
                         Index which = 0) {
    Step step{.kind = kind, .channel = channel};
    for (const Rank peer : peers) step.ids.push_back(channel_to(peer, channel, which));
    return add(std::move(step));
  }
  ProgramBuilder& semaphore(StepKind kind, std::int32_t id, Index initial = 0) {
    if (own().semaphores.size() <= static_cast<std::size_t>(id)) own().semaphores.resize(std::size_t(id) + 1, initial);
    return add({.kind = kind, .ids = {id}});
  }
  ProgramBuilder& move(StepKind kind, const std::vector<Chunks>& sources, const std::vector<Chunks>& targets,
                       ChannelKind channel = ChannelKind::memory, Index which = 0) {
    Step step{.kind = kind, .channel = channel, .sources = static_cast<std::int32_t>(sources.size())};
    for (const Chunks& one : sources) step.operands.push_back(operand(one, channel));
    for (const Chunks& one : targets) {
      step.operands.push_back(operand(one, channel));
      if (channel == ChannelKind::port) step.ids.push_back(channel_to(one.rank, channel, which));
    }
    return add(std::move(step));
  }
  ProgramBuilder& add(Step step) {
    own().blocks[block_].steps.push_back(std::move(step));
    return *this;
  }
  Step& last() { return own().blocks[block_].steps.back(); }
  std::vector<Step> take_last(std::size_t count) {
    auto& steps = own_block().steps;
    const auto first = steps.end() - std::ptrdiff_t(count);
    std::vector<Step> out(first, steps.end());
    steps.erase(first, steps.end());
    return out;
  }

  /// The channel of the present rank; the block has it from now on.
  std::int32_t channel_to(Rank peer, ChannelKind kind, Index which = 0) {
    auto& peers = own().peers[static_cast<std::size_t>(kind)];
    for (std::size_t i = 0; i < peers.size(); ++i)
      if (peers[i] == peer && which-- == 0) return listed(own_block().channels[std::size_t(kind)], std::int32_t(i));
    for (; which >= 0; --which) peers.push_back(peer);
    return listed(own_block().channels[std::size_t(kind)], std::int32_t(peers.size() - 1));
  }

 private:
  RankProgram& own() { return program_.ranks[static_cast<std::size_t>(rank_)]; }
  ThreadBlock& own_block() { return own().blocks[block_]; }

  static std::int32_t listed(std::vector<std::int32_t>& list, std::int32_t id) {
    if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
    return id;
  }
  Operand operand(const Chunks& one, ChannelKind channel) {
    Operand out{.buffer = one.buffer, .first = one.first, .count = one.count};
    if (one.rank == rank_) return out;
    auto& remote = own().remote_buffers;
    std::size_t i = 0;
    while (i < remote.size() && (remote[i].rank != one.rank || remote[i].buffer != one.buffer)) ++i;
    if (i == remote.size()) remote.push_back({.rank = one.rank, .buffer = one.buffer, .access = {}});
    if (std::find(remote[i].access.begin(), remote[i].access.end(), channel) == remote[i].access.end())
      remote[i].access.push_back(channel);
    out.via = listed(own_block().remote_buffers[std::size_t(channel)], static_cast<std::int32_t>(i));
    return out;
  }

  Program program_;
  Rank rank_ = 0;
  std::size_t block_ = 0;
};

}  // namespace tranship::test
