#include <algorithm>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/verify/execution.hpp>

namespace tranship::verification {

void Execution::advance(int id) {
  Block& block = block_of(id);
  while (!block.is_done) {
    if (block.at == block.steps->size()) {
      block.is_done = true;
      if (--running_[static_cast<std::size_t>(block.rank)] == 0) end_launch(block.rank, block.launch);
      return;
    }
    const Step& outer = (*block.steps)[block.at];
    const bool loops = outer.pipeline && !outer.pipeline->steps.empty();
    const Step& step = loops ? outer.pipeline->steps[block.inner] : outer;
    if (!execute(id, step, loops ? outer.pipeline.get() : nullptr)) return;
    ++out_.steps;
    spend(1);
    step_over(block);
  }
}

void Execution::step_over(Block& block) {
  const Step& step = (*block.steps)[block.at];
  block.waited = 0;
  if (step.pipeline && !step.pipeline->steps.empty()) {
    if (++block.inner < step.pipeline->steps.size()) return;
    block.inner = 0;
    if (++block.iteration < turns_of(*step.pipeline, cut_)) return;
    block.iteration = 0;
  }
  ++block.at;
}

/// Returns true when the step was executed; otherwise the block is registered where it waits.
bool Execution::execute(int id, const Step& step, const Pipeline* loop) {
  Block& block = block_of(id);
  switch (step.kind) {
    case StepKind::pipeline:
      return true;
    case StepKind::nop:
      ++block.time;
      meet(block);
      return true;
    case StepKind::barrier:
      return come_to_barrier(id, step);
    case StepKind::signal:
    case StepKind::relaxed_signal:
      for (const std::int32_t channel : step.ids) {
        Snapshot snapshot = step.kind == StepKind::signal ? published_by(block) : executed_by(block);
        if (step.channel == ChannelKind::port) snapshot = known_by(ask(block, channel));
        issue(id, wiring_.out(block.rank, step.channel, channel), std::move(snapshot));
      }
      ++block.time;
      return true;
    case StepKind::wait:
    case StepKind::relaxed_wait:
      return wait_for(id, step, [&](std::int32_t channel) { return wiring_.in(block.rank, step.channel, channel); });
    case StepKind::acquire:
      return wait_for(id, step, [&](std::int32_t number) { return wiring_.semaphore(block.rank, number); });
    case StepKind::release:
      for (const std::int32_t number : step.ids) issue(id, wiring_.semaphore(block.rank, number), published_by(block));
      ++block.time;
      return true;
    case StepKind::flush:
      if (relaunch_ != Relaunch::as_mscclpp)
        for (const std::int32_t channel : step.ids)
          block.knowledge.learn_later(known_by(proxy_of(block.rank, channel)));
      ++block.time;
      return true;
    default:
      return move(id, step, loop);
  }
}

// --- Synchronisation -------------------------------------------------------------------------------------------------

Snapshot Execution::published_by(const Block& block) const {
  return {
      .known = block.knowledge.clock(), .timeline = block.timeline, .strong_time = block.met, .weak_time = block.met};
}
/// The content of a relaxed signal: it publishes only what its rank knew when the launch began.
Snapshot Execution::executed_by(const Block& block) const {
  return {.known = {host_of(block.rank).clock.strong, block.knowledge.clock().weak},
          .timeline = block.timeline,
          .strong_time = 0,
          .weak_time = block.met};
}
Snapshot Execution::known_by(const Proxy& proxy) const {
  return {
      .known = proxy.knowledge.clock(), .timeline = proxy.timeline, .strong_time = proxy.time, .weak_time = proxy.time};
}

void Execution::issue(int block, int id, Snapshot snapshot) {
  Counter& to = counter(id);
  spend(static_cast<Index>(to.source_count()));
  snapshot.begun = host_of(block_of(block).rank).clock.strong;
  to.issue(block, std::move(snapshot));
  for (const int waiting : std::exchange(to.waiting, {})) queue(waiting);
}

template <class CounterOf>
bool Execution::wait_for(int id, const Step& step, CounterOf&& counter_of) {
  Block& block = block_of(id);
  for (; block.waited < step.ids.size(); ++block.waited) {
    Counter& from = counter(counter_of(step.ids[block.waited]));
    if (!from.has_next()) {
      from.waiting.push_back(id);
      return false;
    }
    const Actor actor = actor_of(id, block);
    const auto follows_taker = [&](const Stamp& before) {
      return before.timeline == block.timeline || block.knowledge.knows_weakly(before.timeline, before.time);
    };
    if (from.last_taker && !follows_taker(*from.last_taker))
      found(Finding::Kind::unproved, block.rank, block.index, static_cast<Index>(block.at),
            fmt::format("{} and {} take from one {}, and nothing says which is first", name(actor.stamp),
                        name(*from.last_taker), step.kind == StepKind::acquire ? "semaphore" : "channel"));
    from.last_taker = actor.stamp;
    spend(static_cast<Index>(from.source_count()));
    from.take([&](Snapshot snapshot) {
      if (step.kind == StepKind::relaxed_wait) {
        snapshot.strong_time = 0;
        snapshot.known.strong = snapshot.begun;
      }
      block.knowledge.learn_later(std::move(snapshot));
    });
  }
  ++block.time;
  return true;
}

bool Execution::come_to_barrier(int id, const Step& step) {
  Block& block = block_of(id);
  if (block.has_arrived) return false;
  Barrier& barrier = barriers_[static_cast<std::size_t>(block.rank)][step.ids[0]];
  ++block.time;
  meet(block);
  block.has_arrived = true;
  barrier.arrived.push_back(id);
  if (static_cast<int>(barrier.arrived.size()) < step.participants) return false;
  Index work = 0;
  const VectorClock clock = joint_clock(
      0, static_cast<Index>(barrier.arrived.size()),
      [&](Index i) {
        spend(std::exchange(work, 0));
        return published_by(block_of(barrier.arrived[static_cast<std::size_t>(i)]));
      },
      work);
  spend(work);
  for (const int other : std::exchange(barrier.arrived, {})) {
    Block& one = block_of(other);
    one.knowledge.reset(clock);
    one.has_arrived = false;
    if (other == id) continue;
    ++out_.steps;
    step_over(one);
    queue(other);
  }
  return true;
}

/// Gives the proxy of a port channel work that comes after everything that the block did before its threads last met.
Execution::Proxy& Execution::ask(const Block& block, std::int32_t channel) {
  Proxy& proxy = proxy_of(block.rank, channel);
  Index work = 1;
  proxy.knowledge.learn_now(published_by(block), work);
  spend(work);
  ++proxy.time;
  return proxy;
}

Execution::Actor Execution::actor_of(int id, const Block& block) const {
  return {.stamp = {.timeline = block.timeline,
                    .time = block.time,
                    .block = id,
                    .step = static_cast<std::int32_t>(block.at),
                    .launch = block.launch},
          .knowledge = &block.knowledge,
          .met = block.met};
}
Execution::Actor Execution::actor_of_proxy(int id, const Block& block, std::int32_t channel) {
  if (channel < 0 || static_cast<std::size_t>(channel) >= of(block.rank).peers[1].size()) return actor_of(id, block);
  Proxy& proxy = ask(block, channel);
  Actor actor = actor_of(id, block);
  actor.stamp.timeline = proxy.timeline;
  actor.stamp.time = proxy.time - 1;
  actor.knowledge = &proxy.knowledge;
  actor.met = proxy.time - 1;
  return actor;
}

// --- Data ------------------------------------------------------------------------------------------------------------

Part Execution::part_of(const Block& block, const Step& step, const Pipeline* loop) {
  const Index chunks = step.operands.empty() ? 0 : step.operands[0].count;
  if (loop && chunks != loop->chunks)
    found(Finding::Kind::mismatch, block.rank, block.index, static_cast<Index>(block.at),
          fmt::format("{}: a step on {} in a loop over {}", name(block, static_cast<Index>(block.at)),
                      amount(chunks, "chunk"), loop->chunks));
  return verification::part_of(step, loop, block.iteration, cut_);
}

/// Returns true when all packets that the step reads have come. Sources that have come are not checked again.
bool Execution::have_packets_come(int id, const Step& step, const StepShape& shape, Part part) {
  Block& block = block_of(id);
  for (; block.waited < static_cast<std::size_t>(step.sources); ++block.waited) {
    bool have_all = true;
    for_each_range(block.rank, step.operands[block.waited], shape_of_source(shape, block.waited), part, block.launch,
                   [&](const Range& range) {
                     if (range.format != OperandFormat::packets || !have_all) return;
                     spend(1);
                     have_all = have_come(range, block.launch);
                     if (!have_all) waiting_for_packets_[static_cast<std::size_t>(range.rank)].push_back({id, range});
                   });
    if (!have_all) return false;
  }
  return true;
}

bool Execution::move(int id, const Step& step, const Pipeline* loop) {
  Block& block = block_of(id);
  const StepShape& shape = shape_of(step.kind);
  const Part part = part_of(block, step, loop);
  const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
  if (!have_packets_come(id, step, shape, part)) return false;

  const bool by_proxy = shape.takes(ChannelKind::port) && step.channel == ChannelKind::port;
  block.units_max = std::max(block.units_max, part.end - part.begin);
  if (shape.pairing == Pairing::pairs) {
    for (std::size_t i = 0; i < targets; ++i) {
      const Actor actor =
          by_proxy ? actor_of_proxy(id, block, channel_of_target(block.rank, step, i)) : actor_of(id, block);
      Pieces pieces;
      read(step, shape, i, part, block, actor, pieces);
      write(step, shape, i, part, block, actor, pieces);
      if (step.kind == StepKind::put_signal || step.kind == StepKind::put_signal_flush)
        issue(id, wiring_.out(block.rank, ChannelKind::port, step.ids[i]), known_by(ask(block, step.ids[i])));
      if (step.kind == StepKind::put_signal_flush)
        block.knowledge.learn_later(known_by(proxy_of(block.rank, step.ids[i])));
    }
  } else {
    const Actor reader = actor_of(id, block);
    Pieces sum;
    for (std::size_t i = 0; i < sources; ++i) read(step, shape, i, part, block, reader, sum);
    check_targets(step, shape, part, block);
    for (std::size_t i = 0; i < targets; ++i) {
      const Actor actor = by_proxy ? actor_of_proxy(id, block, channel_of_target(block.rank, step, i)) : reader;
      write(step, shape, i, part, block, actor, sum);
    }
  }
  ++block.time;
  return true;
}

/// The channel that carries a target: the step's own, or the first one that leads to the target's rank.
std::int32_t Execution::channel_of_target(Rank rank, const Step& step, std::size_t target) {
  if (!step.ids.empty()) return step.ids[std::min(target, step.ids.size() - 1)];
  const Operand& operand = step.operands[static_cast<std::size_t>(step.sources) + target];
  const Rank peer = of(rank).remote_buffers[static_cast<std::size_t>(operand.via)].rank;
  const auto& peers = of(rank).peers[1];
  spend(static_cast<Index>(peers.size()));
  return static_cast<std::int32_t>(std::find(peers.begin(), peers.end(), peer) - peers.begin());
}

/// Threads work on units in turn, so a target may equal a source but not overlap it in part.
void Execution::check_targets(const Step& step, const StepShape& shape, Part part, const Block& block) {
  struct Other {
    Range range;
    std::size_t operand;
  };
  const auto sources = static_cast<std::size_t>(step.sources);
  std::vector<Other> ranges;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const OperandShape what = i < sources ? shape_of_source(shape, i) : shape_of_target(shape, i - sources);
    for_each_range(block.rank, step.operands[i], what, part, block.launch, [&](const Range& range) {
      if (range.begin < range.end) ranges.push_back({range, i});
    });
  }
  std::sort(ranges.begin(), ranges.end(), [](const Other& a, const Other& b) {
    return std::tie(a.range.rank, a.range.memory, a.range.begin, a.operand) <
           std::tie(b.range.rank, b.range.memory, b.range.begin, b.operand);
  });
  for (std::size_t i = 0; i < ranges.size(); ++i)
    for (std::size_t k = i + 1; k < ranges.size(); ++k) {
      const Other &a = ranges[i], &b = ranges[k];
      if (a.range.rank != b.range.rank || a.range.memory != b.range.memory || b.range.begin >= a.range.end) break;
      spend(1);
      const auto [s, t] = std::minmax(a.operand, b.operand);
      if (t < sources || s == t || (s < sources && a.range.begin == b.range.begin)) continue;
      found(Finding::Kind::race, block.rank, block.index, static_cast<Index>(block.at),
            fmt::format("{}: operands {} and {} overlap in part", name(block, static_cast<Index>(block.at)), s, t));
    }
}

}  // namespace tranship::verification
