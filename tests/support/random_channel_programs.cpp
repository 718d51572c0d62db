#include "support/random_channel_programs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tranship/base/random.hpp>

#include "support/program_builder.hpp"

namespace tranship::test {
namespace {

enum class By { put, get, packets, port_put, port_put_signal };

/// Edges are added in one order, in which each block does what it has to: so nothing waits for what comes later.
class Generator {
 public:
  Generator(std::uint64_t seed, Rank ranks_max)
      : random_(seed),
        ranks_(2 + Rank(random_.below(std::uint64_t(ranks_max - 1)))),
        collective_(choose<const char*>({"allreduce", "reducescatter", "allgather", "alltoall"})),
        is_in_place_(collective_ != "alltoall" && chance(2)),
        uses_packets_(chance(2)),
        chunks_(1 + Index(random_.below(2))),
        blocks_(1 + std::size_t(random_.below(3))),
        builder_(collective_, ranks_, {of_input(), of_output(), 0}) {
    Program& program = builder_.program();
    program.name = fmt::format("random {} {}", collective_, seed);
    program.in_place = is_in_place_;
    if (uses_packets_) program.protocol = "LL", program.double_scratch = chance(2);
    reduction_ = choose<Reduction>({Reduction::sum, Reduction::minimum, Reduction::maximum});
    for (Rank rank = 0; rank < ranks_; ++rank)
      for (std::size_t block = 0; block < blocks_; ++block) builder_.at(rank, block);
  }

  Program generate() {
    if (collective_ == "allreduce")
      for (Index c = 0; c < of_input(); ++c) all_reduce(c);
    if (collective_ == "reducescatter")
      for (Index c = 0; c < of_input(); ++c) reduce_to_owner(c);
    if (collective_ == "allgather")
      for (Index c = 0; c < of_output(); ++c) gather(c);
    if (collective_ == "alltoall")
      for (Rank from = 0; from < ranks_; ++from)
        for (Index c = 0; c < of_input(); ++c) send(from, c);
    finish();
    return std::move(builder_.program());
  }

 private:
  bool chance(std::uint64_t of) { return random_.below(of) == 0; }
  template <class T>
  T choose(std::vector<T> from) {
    return from[std::size_t(random_.below(from.size()))];
  }
  Index of_input() const { return collective_ == "allgather" ? chunks_ : chunks_ * ranks_; }
  Index of_output() const { return collective_ == "reducescatter" ? chunks_ : chunks_ * ranks_; }

  // --- Places ------------------------------------------------------------------------------------------------------

  Chunks slot(Rank rank) { return {rank, BufferKind::scratch, slots_[rank]++, 1}; }
  static Chunks input(Rank rank, Index chunk) { return {rank, BufferKind::input, chunk, 1}; }
  static Chunks output(Rank rank, Index chunk) { return {rank, BufferKind::output, chunk, 1}; }

  // --- Collectives -------------------------------------------------------------------------------------------------

  std::vector<Rank> shuffled() {
    std::vector<Rank> out;
    for (Rank rank = 0; rank < ranks_; ++rank)
      out.insert(out.begin() + std::ptrdiff_t(random_.below(out.size() + 1)), rank);
    return out;
  }

  /// The place of each rank is combined into that of the root, along a tree.
  void reduce(Rank root, const std::vector<Chunks>& places) {
    std::vector<Rank> order = shuffled();
    std::erase(order, root);
    order.insert(order.begin(), root);
    for (std::size_t i = order.size(); --i > 0;)
      edge(places[std::size_t(order[i])], places[std::size_t(order[std::size_t(random_.below(i))])], true);
  }
  void broadcast(Rank root, const std::vector<Chunks>& places) {
    std::vector<Rank> order = shuffled();
    std::erase(order, root);
    order.insert(order.begin(), root);
    for (std::size_t i = 1; i < order.size(); ++i)
      edge(places[std::size_t(order[std::size_t(random_.below(i))])], places[std::size_t(order[i])], false);
  }

  void all_reduce(Index chunk) {
    begin_item();
    std::vector<Chunks> places;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      places.push_back(is_in_place_ ? input(rank, chunk) : output(rank, chunk));
      if (!is_in_place_) local(rank, StepKind::copy, {input(rank, chunk)}, {places.back()});
    }
    const auto root = Rank(random_.below(std::uint64_t(ranks_)));
    reduce(root, places);
    broadcast(root, places);
  }
  void reduce_to_owner(Index chunk) {
    begin_item();
    const auto root = Rank(chunk / chunks_);
    std::vector<Chunks> places;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      places.push_back(input(rank, chunk));
      if (is_in_place_) continue;
      if (rank == root) {
        places.back() = output(rank, chunk % chunks_);
      } else if (!uses_packets_) {
        places.back() = slot(rank);
      } else {
        continue;  // the input itself, which a program may overwrite
      }
      local(rank, StepKind::copy, {input(rank, chunk)}, {places.back()});
    }
    reduce(root, places);
  }
  void gather(Index chunk) {
    begin_item();
    const auto root = Rank(chunk / chunks_);
    std::vector<Chunks> places;
    for (Rank rank = 0; rank < ranks_; ++rank) places.push_back(output(rank, chunk));
    if (!is_in_place_) local(root, StepKind::copy, {input(root, chunk % chunks_)}, {places[std::size_t(root)]});
    broadcast(root, places);
  }
  void send(Rank from, Index chunk) {
    begin_item();
    const auto to = Rank(chunk / chunks_);
    const Chunks source = input(from, chunk), target = output(to, from * chunks_ + chunk % chunks_);
    if (from == to) return local(from, StepKind::copy, {source}, {target});
    const auto by = Rank(random_.below(std::uint64_t(ranks_)));
    if (by == from || by == to || uses_packets_) return edge(source, target, false);
    const Chunks between = slot(by);
    edge(source, between, false);
    edge(between, target, false);
  }

  // --- Steps -------------------------------------------------------------------------------------------------------

  /// The blocks that have what is worked on now, at each rank.
  void begin_item() {
    at_.clear();
    for (Rank rank = 0; rank < ranks_; ++rank) at_.push_back(std::size_t(random_.below(blocks_)));
  }
  ProgramBuilder& block(Rank rank) { return builder_.at(rank, at_[std::size_t(rank)]); }

  /// Sometimes another block goes on with it.
  void maybe_hand_over(Rank rank) {
    if (blocks_ == 1 || !chance(3)) return;
    const auto to = std::size_t(random_.below(blocks_));
    if (chance(4)) {
      const std::int32_t id = barriers_[rank]++;
      for (std::size_t b = 0; b < blocks_; ++b) builder_.at(rank, b).barrier(id, std::int32_t(blocks_));
    } else if (to != at_[std::size_t(rank)]) {
      const std::int32_t id = semaphores_[rank]++;
      block(rank).nop().semaphore(StepKind::release, id);
      builder_.at(rank, to).semaphore(StepKind::acquire, id).nop();
    } else {
      return;
    }
    at_[std::size_t(rank)] = to;
  }

  void local(Rank rank, StepKind kind, const std::vector<Chunks>& sources, const std::vector<Chunks>& targets) {
    block(rank).move(kind, sources, targets).last().reduction = reduction_;
    block(rank).nop();
  }
  void across(Rank rank, StepKind kind, const std::vector<Chunks>& sources, const std::vector<Chunks>& targets) {
    block(rank).move(kind, sources, targets).last().reduction = reduction_;
    block(rank).nop();
  }

  /// The channel of the blocks that have it at two ranks.
  Index channel(Rank one, Rank other) {
    if (one > other) std::swap(one, other);
    const Index which = Index(at_[std::size_t(one)] * blocks_ + at_[std::size_t(other)]);
    pairs_.insert({one, other, at_[std::size_t(one)], at_[std::size_t(other)], which});
    return which;
  }
  void tell(Rank from, Rank to, StepKind kind = StepKind::signal) {
    const Index which = channel(from, to);
    block(from).nop().signal(kind, {to}, ChannelKind::memory, which);
    block(to).signal(kind == StepKind::signal ? StepKind::wait : StepKind::relaxed_wait, {from}, ChannelKind::memory,
                     which);
    block(to).nop();
  }

  /// Combines the chunks at `from` with those at `to`, or puts them there.
  void edge(const Chunks& from, const Chunks& to, bool combines) {
    const Rank a = from.rank, b = to.rank;
    maybe_hand_over(a);
    maybe_hand_over(b);
    std::vector<By> ways = {By::get};
    if (uses_packets_)
      ways.push_back(By::packets);
    else
      ways.insert(ways.end(), {By::put, By::port_put, By::port_put_signal});
    if (uses_packets_ && !combines) ways.push_back(By::put);
    const Index which = channel(a, b);
    switch (choose(ways)) {
      case By::get:
        tell(a, b);
        if (combines)
          across(b, StepKind::read_reduce, {to, from}, {to});
        else
          across(b, StepKind::get, {from}, {to});
        // Before the source may be overwritten.
        tell(b, a, chance(2) ? StepKind::signal : StepKind::relaxed_signal);
        break;
      case By::packets: {
        const Chunks place = slot(b);
        across(a, StepKind::put_packets, {from}, {place});
        if (combines)
          local(b, StepKind::reduce_packets, {to, place}, {to});
        else
          local(b, StepKind::unpack_packets, {place}, {to});
        break;
      }
      case By::put: {
        const Chunks place = combines ? slot(b) : to;
        // Packets have told that the target has been written, but not made that seen.
        if (uses_packets_) tell(b, a);
        block(a).nop();
        across(a, StepKind::put, {from}, {place});
        tell(a, b);
        if (combines) local(b, StepKind::reduce, {to, place}, {to});
        break;
      }
      case By::port_put:
      case By::port_put_signal: {
        const Chunks place = combines ? slot(b) : to;
        block(a).nop();
        if (chance(2)) {
          block(a).move(StepKind::put, {from}, {place}, ChannelKind::port, which);
          block(a).signal(StepKind::signal, {b}, ChannelKind::port, which);
        } else {
          const StepKind kind = chance(2) ? StepKind::put_signal : StepKind::put_signal_flush;
          block(a).move(kind, {from}, {place}, ChannelKind::port, which);
        }
        if (chance(3)) block(a).signal(StepKind::flush, {b}, ChannelKind::port, which);
        block(a).nop();
        block(b).signal(StepKind::wait, {a}, ChannelKind::port, which).nop();
        if (combines) local(b, StepKind::reduce, {to, place}, {to});
        break;
      }
    }
  }

  /// Blocks begin when those that they work with have begun.
  void finish() {
    for (const auto& [one, other, at_one, at_other, which] : pairs_) {
      builder_.at(one, at_one).channel_to(other, ChannelKind::memory, which);
      builder_.at(other, at_other).channel_to(one, ChannelKind::memory, which);
    }
    Program& program = builder_.program();
    for (Rank rank = 0; rank < ranks_; ++rank) {
      RankProgram& own = program.ranks[std::size_t(rank)];
      own.chunks[2] = slots_[rank];
      for (ThreadBlock& one : own.blocks) {
        const std::vector<std::int32_t> ids = one.channels[0];
        if (ids.empty()) continue;
        one.steps.insert(one.steps.begin(), {Step{.kind = StepKind::relaxed_signal, .ids = ids},
                                             Step{.kind = StepKind::relaxed_wait, .ids = ids}, Step{}});
      }
    }
  }

  SplitMix64 random_;
  Rank ranks_;
  std::string collective_;
  bool is_in_place_, uses_packets_;
  Index chunks_;
  std::size_t blocks_;
  ProgramBuilder builder_;
  Reduction reduction_ = Reduction::sum;
  std::map<Rank, Index> slots_;
  std::map<Rank, std::int32_t> barriers_, semaphores_;
  std::vector<std::size_t> at_;
  std::set<std::tuple<Rank, Rank, std::size_t, std::size_t, Index>> pairs_;
};

}  // namespace

Program random_channel_program(std::uint64_t seed, Rank ranks_max) {
  return Generator(seed, ranks_max).generate();
}

}  // namespace tranship::test
