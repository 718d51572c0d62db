#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/verify/execution.hpp>

namespace tranship::verification {
namespace {
const char* verb(bool writes) {
  return writes ? "writes" : "reads";
}
}  // namespace

void Execution::found(Finding::Kind kind, Rank rank, int block, Index step, std::string text,
                      Finding::Missing missing) {
  if (!said_.insert({kind, rank, block, step, missing}).second) return;
  ++out_.found;
  if (out_.findings.size() < options_.findings_max)
    out_.findings.push_back(
        {.kind = kind, .rank = rank, .block = block, .step = step, .text = std::move(text), .missing = missing});
}

std::string Execution::name(const Block& block, Index step) const {
  const auto& steps = *block.steps;
  if (step < 0 || static_cast<std::size_t>(step) >= steps.size())
    return fmt::format("rank {}, block {}, at its end", block.rank, block.index);
  const Step& one = steps[static_cast<std::size_t>(step)];
  const std::string line = one.line >= 0 ? fmt::format(", line {}", one.line) : "";
  return fmt::format("rank {}, block {}, step {} ({}{})", block.rank, block.index, step, shape_of(one.kind).word, line);
}
std::string Execution::name(const Stamp& stamp) const {
  if (stamp.block < 0) return fmt::format("the host of rank {}", stamp.timeline - first_host_);
  const Block& block = block_of(stamp.block);
  std::string text = name(block, stamp.step);
  if (stamp.timeline != block.timeline) text += ", carried out by its port channel";
  return text;
}
std::string Execution::place_text(Rank rank, int memory, Index begin, Index end) const {
  const char* const names[] = {program_.in_place ? "data" : "input", "output", "scratch"};
  const Index units = cut_.units;
  const Index first = begin / units;
  return fmt::format("{} of rank {}", chunks_text(names[memory], first, (end - 1) / units + 1 - first), rank);
}

/// Returns the promise that would have ordered the two accesses. A host reads the output of a launch under the number
/// of the next one.
Finding::Missing Execution::missing_for(const Actor& actor, bool writes, const Stamp& before, bool wrote) const {
  using enum Finding::Missing;
  const Stamp& now = actor.stamp;
  if (actor.knowledge->knows_weakly(before.timeline, before.time)) return publication;
  const auto is_by_proxy = [&](const Stamp& one) {
    return one.block >= 0 && one.timeline != block_of(one.block).timeline;
  };
  if (is_by_proxy(before)) return port_completion;
  const auto launch_of = [](const Stamp& one, bool is_write) {
    return one.block < 0 && !is_write ? one.launch - 1 : one.launch;
  };
  if (launch_of(now, writes) != launch_of(before, wrote)) return meeting;
  const Stamp* const host = now.block < 0 ? &now : before.block < 0 ? &before : nullptr;
  if (!host) return none;
  return (host == &now ? writes : wrote) ? meeting : end_of_launch;
}

void Execution::report_race(const Actor& actor, bool writes, const Stamp& before, bool wrote, Rank rank, int memory,
                            Index begin, Index end) {
  const Stamp& now = actor.stamp;
  const bool same_block = now.timeline == before.timeline;
  const Finding::Kind kind = same_block ? Finding::Kind::missing_meeting : Finding::Kind::race;
  // A host has no step, so the finding names the other one.
  const Stamp& named = now.block >= 0 ? now : before;
  Rank at = rank;
  int block = -1;
  if (named.block >= 0) at = block_of(named.block).rank, block = block_of(named.block).index;
  const Finding::Missing missing = same_block ? Finding::Missing::none : missing_for(actor, writes, before, wrote);
  if (is_said(kind, at, block, named.step, missing)) return;
  const std::string launches =
      now.launch == before.launch ? "" : fmt::format(" (launches {} and {})", before.launch, now.launch);
  found(kind, at, block, named.step,
        fmt::format("{} {} {}, which {} {}: {}{}", name(now), verb(writes), place_text(rank, memory, begin, end),
                    name(before), verb(wrote),
                    same_block ? "the threads of the block do not meet in between"
                    : missing == Finding::Missing::publication
                        ? "the two come in this order, but nothing publishes the first"
                        : "nothing orders the two",
                    launches),
        missing);
}

// --- What does not end -----------------------------------------------------------------------------------------------

const Step& Execution::step_of(const Block& block) const {
  const Step& step = (*block.steps)[block.at];
  return step.pipeline && !step.pipeline->steps.empty() ? step.pipeline->steps[block.inner] : step;
}

Execution::Stuck Execution::stuck(int id) {
  const Block& block = block_of(id);
  const std::string who = name(block, static_cast<Index>(block.at));
  if (block.is_done || block.at == block.steps->size()) return {};
  const Step& step = step_of(block);
  if (step.kind == StepKind::barrier) {
    Stuck out{fmt::format("{} waits at barrier {} with {} of {}", who, step.ids[0],
                          barriers_[static_cast<std::size_t>(block.rank)][step.ids[0]].arrived.size(),
                          amount(step.participants, "block")),
              {}};
    for (int i = first_block(block.rank); i < first_block(block.rank + 1); ++i)
      if (!block_of(i).is_done && !block_of(i).has_arrived) out.producers.push_back(i);
    spend(static_cast<Index>(of(block.rank).blocks.size()));
    return out;
  }
  if (waits(step.kind) || step.kind == StepKind::acquire) {
    const bool is_semaphore = step.kind == StepKind::acquire;
    const std::int32_t number = step.ids[block.waited];
    Counter& from =
        counter(is_semaphore ? wiring_.semaphore(block.rank, number) : wiring_.in(block.rank, step.channel, number));
    Stuck out;
    for (const auto& [source, each] : from.sources())
      if (!block_of(source).is_done) out.producers.push_back(source);
    spend(static_cast<Index>(from.source_count()));
    if (is_semaphore)
      out.text = fmt::format("{} waits for release {} of semaphore {}; {} have come", who, from.taken() + 1, number,
                             from.issued());
    else
      out.text = fmt::format(
          "{} waits for signal {} from rank {} on {} channel {}; {} have come, {} are sent in each launch", who,
          from.taken() + 1, of(block.rank).peers[static_cast<std::size_t>(step.channel)][std::size_t(number)],
          name_of(step.channel), number, from.issued(), from.each_launch());
    return out;
  }
  Stuck out{fmt::format("{} waits for packets", who), {}};
  const StepShape& shape = shape_of(step.kind);
  const Step& outer = (*block.steps)[block.at];
  const Part part = part_of(block, step, &step == &outer ? nullptr : outer.pipeline.get());
  bool is_named = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(step.sources); ++i)
    for_each_range(block.rank, step.operands[i], shape_of_source(shape, i), part, block.launch,
                   [&](const Range& range) {
                     if (is_named || range.format != OperandFormat::packets || have_come(range, block.launch)) return;
                     is_named = true;
                     out.text = fmt::format("{} waits for packets in {}", who,
                                            place_text(range.rank, range.memory, range.begin, range.end));
                     memory_of(range.rank, range.memory).visit(range.begin, range.end, [&](Index, Cell& cell) {
                       if (out.are_lost || cell.packets_of <= block.launch) return;
                       out.are_lost = true;
                       out.text += fmt::format(" in launch {}, which {} has overwritten in launch {}", block.launch,
                                               name(cell.writer), cell.packets_of);
                     });
                     const auto& promises = promises_[static_cast<std::size_t>(range.rank)];
                     spend(static_cast<Index>(promises.size()));
                     for (const Promise& promise : promises)
                       if (promise.launch <= block.launch && promise.memory == range.memory &&
                           promise.begin < range.end && range.begin < promise.end)
                         out.producers.push_back(promise.block);
                   });
  return out;
}

/// Lists the packets that steps not yet executed would write.
void Execution::note_promises() {
  promises_.assign(program_.ranks.size(), {});
  for (std::size_t id = 0; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    if (block.is_done) continue;
    const auto note = [&](const Step& step) {
      const StepShape& shape = shape_of(step.kind);
      const auto sources = static_cast<std::size_t>(step.sources);
      for (std::size_t t = sources; t < step.operands.size(); ++t) {
        const OperandShape what = shape_of_target(shape, t - sources);
        if (what.format != OperandFormat::packets) continue;
        const Part whole{0, step.operands[t].count * cut_.units};
        for_each_range(block.rank, step.operands[t], what, whole, block.launch, [&](const Range& range) {
          spend(1);
          promises_[static_cast<std::size_t>(range.rank)].push_back(
              {static_cast<int>(id), block.launch, range.memory, range.begin, range.end});
        });
      }
    };
    for (std::size_t i = block.at; i < block.steps->size(); ++i) {
      const Step& step = (*block.steps)[i];
      note(step);
      if (step.pipeline)
        for (const Step& inner : step.pipeline->steps) note(inner);
    }
  }
}

void Execution::report_deadlock() {
  note_promises();
  int first = -1;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.is_done) continue;
    const Stuck why = stuck(static_cast<int>(i));
    if (why.text.empty()) continue;
    if (first < 0) first = static_cast<int>(i);
    if (!why.producers.empty()) continue;
    found(Finding::Kind::deadlock, block.rank, block.index, static_cast<Index>(block.at),
          why.are_lost ? why.text : why.text + ": nothing will produce it",
          why.are_lost ? Finding::Missing::meeting : Finding::Missing::none);
    return;
  }
  // Every block waits for another one, so following them leads around a cycle.
  std::vector<int> way;
  std::set<int> seen;
  for (int at = first; at >= 0 && seen.insert(at).second;) {
    way.push_back(at);
    const Stuck why = stuck(at);
    at = why.producers.empty() ? -1 : why.producers.front();
    if (at >= 0 && seen.contains(at)) {
      way.erase(way.begin(), std::find(way.begin(), way.end(), at));
      break;
    }
  }
  std::string text = "the blocks wait for each other:";
  for (const int id : way) text += "\n  " + stuck(id).text;
  const Block& block = block_of(way.front());
  found(Finding::Kind::deadlock, block.rank, block.index, static_cast<Index>(block.at), std::move(text));
}

void Execution::report_unpaired() {
  for (Rank rank = 0; rank < size(); ++rank) {
    for (int k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < of(rank).peers[k].size(); ++i) {
        const auto id = static_cast<std::int32_t>(i);
        const auto kind = static_cast<ChannelKind>(k);
        const int out = wiring_.out(rank, kind, id);
        if (counter(out).issued() != counter(out).taken())
          report_left(
              out, rank,
              fmt::format("{} channel {} from rank {} to rank {}", name_of(kind), id, rank, of(rank).peers[k][i]),
              "signal", 0);
      }
    for (std::size_t i = 0; i < of(rank).semaphores.size(); ++i) {
      const int semaphore = wiring_.semaphore(rank, static_cast<std::int32_t>(i));
      if (counter(semaphore).issued() - of(rank).semaphores[i] != counter(semaphore).taken())
        report_left(semaphore, rank, fmt::format("semaphore {} of rank {}", i, rank), "release",
                    of(rank).semaphores[i]);
    }
  }
}
std::optional<std::pair<int, Index>> Execution::last_issuer(int counter) const {
  std::optional<std::pair<int, Index>> out;
  for (const auto& [id, each] : counters_[static_cast<std::size_t>(counter)].sources()) {
    const Block& block = block_of(id);
    const auto issues = [&](const Step& step) {
      return std::any_of(step.ids.begin(), step.ids.end(), [&](std::int32_t number) {
        return step.kind == StepKind::release
                   ? wiring_.semaphore(block.rank, number) == counter
                   : signals(step.kind) && wiring_.out(block.rank, step.channel, number) == counter;
      });
    };
    for (std::size_t at = 0; at < block.steps->size(); ++at) {
      const Step& step = (*block.steps)[at];
      if (issues(step) ||
          (step.pipeline && std::any_of(step.pipeline->steps.begin(), step.pipeline->steps.end(), issues)))
        out = {id, static_cast<Index>(at)};
    }
  }
  return out;
}

void Execution::report_left(int counter, Rank rank, const std::string& what, const char* of_what, Index initial) {
  const Counter& left = counters_[static_cast<std::size_t>(counter)];
  const Index issued = left.issued() - initial;
  std::optional<std::pair<int, Index>> at;
  if (issued > left.taken())
    at = last_issuer(counter);
  else if (left.last_taker)
    at = {left.last_taker->block, left.last_taker->step};
  const std::string text = fmt::format("{} has {} and {} in {}", what, counted(issued, of_what),
                                       counted(left.taken(), "wait"), counted(options_.launches, "launch", "launches"));
  if (!at) return found(Finding::Kind::unpaired, rank, -1, -1, text);
  const Block& block = block_of(at->first);
  found(Finding::Kind::unpaired, block.rank, block.index, at->second,
        fmt::format("{}: {}", name(block, at->second), text));
}

}  // namespace tranship::verification
