#include "tranship/program/verify/execution.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship::verification {

Execution::Execution(const Program& program, const VerifyOptions& options, const CollectiveMeaning& meaning, Cut cut,
                     Relaunch relaunch, Verification& out)
    : program_(program),
      options_(options),
      meaning_(meaning),
      cut_(cut),
      relaunch_(relaunch),
      out_(out),
      wiring_(program) {
  set_up();
}

void Execution::run() {
  for (Rank rank = 0; rank < size(); ++rank) act_between_launches(rank, 0);
  if (relaunch_ == Relaunch::together) share_all();
  for (Rank rank = 0; rank < size(); ++rank) begin_launch(rank, 0);
  while (!queue_.empty()) {
    const int block = queue_.front();
    queue_.pop_front();
    block_of(block).is_queued = false;
    advance(block);
  }
  const bool has_ended = std::all_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.is_done; });
  if (has_ended)
    report_unpaired();
  else
    report_deadlock();
}

/// Throws `unsupported` for a program that takes too long to prove.
void Execution::spend(Index work) {
  out_.work += work;
  if (stamps_ > options_.accesses_max)
    throw_error(ErrorCode::unsupported, "verification keeps at most {} at a time; this program of {} and {} needs more",
                amount(options_.accesses_max, "access", "accesses"), amount(size(), "rank"),
                amount(count_steps(program_), "step"));
  if (out_.work > options_.work_max)
    throw_error(ErrorCode::unsupported, "verification makes at most {}; this program of {} and {} needs more",
                amount(options_.work_max, "comparison"), amount(size(), "rank"), amount(count_steps(program_), "step"));
}

// --- Set-up ----------------------------------------------------------------------------------------------------------

void Execution::set_up() {
  Timeline timelines = 0;
  for (Rank rank = 0; rank < size(); ++rank) {
    first_block_.push_back(static_cast<int>(blocks_.size()));
    for (const ThreadBlock& block : of(rank).blocks) {
      Block& one = blocks_.emplace_back();
      one.rank = rank;
      one.index = static_cast<int>(blocks_.size()) - 1 - first_block_.back();
      one.timeline = timelines++;
      one.steps = &block.steps;
    }
  }
  first_block_.push_back(static_cast<int>(blocks_.size()));
  for (Rank rank = 0; rank < size(); ++rank) {
    first_proxy_.push_back(static_cast<int>(proxies_.size()));
    for (std::size_t i = 0; i < of(rank).peers[1].size(); ++i) proxies_.emplace_back().timeline = timelines++;
  }
  first_host_ = timelines;
  hosts_.resize(program_.ranks.size());

  for (Rank rank = 0; rank < size(); ++rank) {
    for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch})
      places_.push_back(place_of(program_, rank, buffer));
    for (int memory = 0; memory < buffer_kinds; ++memory) {
      Index units = memory_chunks(program_, rank, memory) * cut_.units;
      if (memory == scratch_memory && program_.double_scratch) units *= 2;
      memories_.emplace_back(units, stamps_);
    }
  }
  uses_of_scratch_.assign(program_.ranks.size(), 0);
  waiting_for_packets_.resize(program_.ranks.size());
  barriers_.resize(program_.ranks.size());
  running_.resize(program_.ranks.size());

  counters_.resize(static_cast<std::size_t>(wiring_.counters()));
  for (Rank rank = 0; rank < size(); ++rank)
    for (std::size_t i = 0; i < of(rank).semaphores.size(); ++i)
      counter(wiring_.semaphore(rank, static_cast<std::int32_t>(i))).begin_at(of(rank).semaphores[i]);
  for (std::size_t block = 0; block < blocks_.size(); ++block)
    for (const Step& step : *blocks_[block].steps) count_signals(static_cast<int>(block), step, 1);
  check_barriers();
  check_loops();
  check_reductions();
}

void Execution::count_signals(int block, const Step& step, Index times) {
  const Rank rank = block_of(block).rank;
  if (step.pipeline)
    for (const Step& inner : step.pipeline->steps) count_signals(block, inner, turns_of(*step.pipeline, cut_));
  const auto expect = [&](int id) {
    counter(id).expect(block, times);
    spend(static_cast<Index>(counter(id).source_count()));
  };
  if (signals(step.kind))
    for (const std::int32_t id : step.ids) expect(wiring_.out(rank, step.channel, id));
  if (step.kind == StepKind::release)
    for (const std::int32_t id : step.ids) expect(wiring_.semaphore(rank, id));
}

void Execution::check_barriers() {
  for (Rank rank = 0; rank < size(); ++rank) {
    struct User {
      std::set<int> blocks;
      int block = 0;
      Index step = 0;  ///< the first one
    };
    std::map<int, std::map<int, User>> users;  // for each barrier, by the number of blocks that it names
    const auto add = [&](int block, std::size_t at, const Step& step) {
      if (step.kind != StepKind::barrier) return;
      User& user = users[step.ids[0]][step.participants];
      if (user.blocks.empty()) user.block = block, user.step = static_cast<Index>(at);
      user.blocks.insert(block);
    };
    for (int block = first_block(rank); block < first_block(rank + 1); ++block) {
      const auto& steps = *block_of(block).steps;
      for (std::size_t at = 0; at < steps.size(); ++at) {
        add(block, at, steps[at]);
        if (steps[at].pipeline)
          for (const Step& inner : steps[at].pipeline->steps) add(block, at, inner);
      }
    }
    for (const auto& [id, by_size] : users) {
      std::set<int> all;
      for (const auto& [participants, user] : by_size) all.insert(user.blocks.begin(), user.blocks.end());
      for (const auto& [participants, user] : by_size) {
        if (static_cast<int>(all.size()) == participants) continue;
        const Block& block = block_of(user.block);
        found(Finding::Kind::unproved, rank, block.index, user.step,
              fmt::format("{}: barrier {} is one of {}, and {} come to it", name(block, user.step), id,
                          counted(participants, "block"), all.size()));
        break;
      }
    }
  }
}

/// Loops that take different numbers of turns would pair differently at each size.
void Execution::check_loops() {
  const Pipeline* first = nullptr;
  std::string where;
  for (const Block& block : blocks_)
    for (std::size_t i = 0; i < block.steps->size(); ++i) {
      const Step& step = (*block.steps)[i];
      if (!step.pipeline || step.pipeline->steps.empty()) continue;
      if (!first) {
        first = step.pipeline.get();
        where = name(block, static_cast<Index>(i));
        continue;
      }
      const Pipeline& loop = *step.pipeline;
      if (checked_multiply(loop.chunks, turn_units(*first)) == checked_multiply(first->chunks, turn_units(loop)))
        continue;
      found(Finding::Kind::mismatch, block.rank, block.index, static_cast<Index>(i),
            fmt::format("{} is a loop over {} in turns of {}, and {} one over {} in turns of {}: how many turns "
                        "they take differs",
                        name(block, static_cast<Index>(i)), amount(loop.chunks, "chunk"),
                        amount(loop.unit_bytes, "byte"), where, first->chunks, first->unit_bytes));
    }
}

/// A collective combines by one operation.
void Execution::check_reductions() {
  const Step* first = nullptr;
  std::string where;
  const auto look = [&](const Block& block, std::size_t at, const Step& step) {
    if (!combines(step)) return;
    if (!first) {
      first = &step;
      where = name(block, static_cast<Index>(at));
      reduction_ = step.reduction;
    } else if (step.reduction != reduction_ && meaning_.is_known()) {
      found(Finding::Kind::wrong_result, block.rank, block.index, static_cast<Index>(at),
            fmt::format("{} combines by {}, and {} by {}: {} has one operation", name(block, static_cast<Index>(at)),
                        name_of(step.reduction), where, name_of(reduction_), with_article(program_.collective)));
    }
  };
  for (const Block& block : blocks_)
    for (std::size_t i = 0; i < block.steps->size(); ++i) {
      const Step& step = (*block.steps)[i];
      look(block, i, step);
      if (!step.pipeline) continue;
      for (const Step& inner : step.pipeline->steps) look(block, i, inner);
    }
}

// --- Launches --------------------------------------------------------------------------------------------------------

void Execution::meet(Block& block) {
  Index work = 1;
  block.knowledge.learn(work);
  spend(work);
  block.met = block.time;
  block.units_max = 0;
}

void Execution::queue(int id) {
  Block& block = block_of(id);
  if (block.is_queued || block.is_done) return;
  block.is_queued = true;
  queue_.push_back(id);
}

/// The actions of a rank's host before launch `launch`, after the previous launch has ended there. Where tranship
/// launches, fences make everything known, and the requests of port channels are complete.
void Execution::act_between_launches(Rank rank, int launch) {
  Host& host = host_of(rank);
  Index work = 1;
  const int first = first_block(rank), blocks = first_block(rank + 1) - first;
  for (int i = 0; i < blocks; ++i) meet(block_of(first + i));
  const bool completes = relaunch_ != Relaunch::as_mscclpp;
  VectorClock clock = joint_clock(
      0, blocks + (completes ? static_cast<Index>(of(rank).peers[1].size()) : 0),
      [&](Index i) {
        spend(std::exchange(work, 0));
        return i < blocks ? published_by(block_of(first + static_cast<int>(i)))
                          : known_by(proxy_of(rank, static_cast<std::int32_t>(i - blocks)));
      },
      work);
  clock.weak.join(host.clock.weak, work);
  if (completes)
    clock.strong = clock.weak;
  else
    clock.strong.join(host.clock.strong, work);
  Knowledge knowledge;
  knowledge.reset(clock);
  const Actor actor{.stamp = {.timeline = first_host_ + rank, .time = host.time, .launch = launch},
                    .knowledge = &knowledge,
                    .met = host.time};
  if (launch > 0) read_outputs(rank, launch - 1, actor);
  if (launch < options_.launches) write_inputs(rank, launch, actor);
  ++host.time;
  clock.strong.raise(actor.stamp.timeline, host.time);
  clock.weak.raise(actor.stamp.timeline, host.time);
  host.clock = std::move(clock);
  spend(work);
}

void Execution::begin_launch(Rank rank, int launch) {
  const VectorClock& clock = host_of(rank).clock;
  const int first = first_block(rank), last = first_block(rank + 1);
  const bool is_over = launch == options_.launches;
  for (int i = first; i < last; ++i) {
    Block& block = block_of(i);
    block.knowledge.reset(clock);
    block.at = block.inner = block.waited = 0;
    block.iteration = 0;
    block.launch = launch;
    block.is_done = is_over;
    if (!is_over) queue(i);
  }
  running_[static_cast<std::size_t>(rank)] = last - first;
  if (!is_over && first == last) end_launch(rank, launch);
}

/// Begins the next launch, at once or when all ranks have come so far; the hosts act in between.
void Execution::end_launch(Rank rank, int launch) {
  if (relaunch_ != Relaunch::together) {
    act_between_launches(rank, launch + 1);
    return begin_launch(rank, launch + 1);
  }
  if (++ended_ < size()) return;
  ended_ = 0;
  share_all();
  for (Rank one = 0; one < size(); ++one) act_between_launches(one, launch + 1);
  share_all();
  for (Rank one = 0; one < size(); ++one) begin_launch(one, launch + 1);
}

/// All ranks meet: each knows everything done so far.
void Execution::share_all() {
  Times all;
  for (Block& block : blocks_) {
    meet(block);
    all.raise(block.timeline, block.time);
  }
  for (const Proxy& proxy : proxies_) all.raise(proxy.timeline, proxy.time);
  for (Rank rank = 0; rank < size(); ++rank) all.raise(first_host_ + rank, host_of(rank).time);
  for (Host& host : hosts_) host.clock = {all, all};
}

void Execution::write_inputs(Rank rank, int launch, const Actor& actor) {
  const BufferPlace& place = places_[static_cast<std::size_t>(rank) * buffer_kinds];
  const Index begin = place.first_chunk * cut_.units, count = of(rank).chunks[0] * cut_.units;
  write_plain(
      {.rank = rank, .memory = place.memory, .begin = begin, .end = begin + count, .format = OperandFormat::plain},
      actor, {.entry = values_.input(rank, launch), .displacement = -begin}, nullptr);
}

void Execution::read_outputs(Rank rank, int launch, const Actor& actor) {
  const BufferPlace& place = places_[static_cast<std::size_t>(rank) * buffer_kinds + 1];
  const Index promised = meaning_.promised_chunks(rank);
  const Index chunks = std::max(promised, of(rank).chunks[1]);
  const Index begin = place.first_chunk * cut_.units;
  memory_of(rank, place.memory).visit(begin, begin + chunks * cut_.units, [&](Index from, Cell& cell) {
    check_read(rank, place.memory, from, cell, actor);
  });
  if (meaning_.is_known() && !wrong_outputs_.contains(rank)) check_result(rank, launch, place.memory, begin, promised);
}

/// The rank whose input the output begins with: for a broadcast the same for all ranks, for a sendrecv not the rank
/// itself.
Rank Execution::source_of(Rank rank, int launch, int memory, Index begin) {
  if (const auto known = sources_.find(launch); known != sources_.end()) return known->second;
  Rank source = meaning_.has_one_source() || rank > 0 ? 0 : size() - 1;
  memory_of(rank, memory).visit(begin, begin + 1, [&](Index from, Cell& cell) {
    for (Rank peer = 0; peer < size(); ++peer)
      if ((meaning_.has_one_source() || peer != rank || size() == 1) &&
          values_.are_equal(cell.value, {.entry = values_.input(peer, launch), .displacement = -from}))
        source = peer;
    spend(size());
  });
  if (meaning_.has_one_source()) sources_.emplace(launch, source);
  return source;
}

void Execution::check_result(Rank rank, int launch, int memory, Index begin, Index promised) {
  const Index units = cut_.units;
  Memory& cells = memory_of(rank, memory);
  const Rank source = meaning_.chooses_source() && promised > 0 ? source_of(rank, launch, memory, begin) : 0;
  std::string wrong;
  Stamp writer;
  cells.visit(begin, begin + promised * units, [&](Index from, Cell& cell) {
    for (Index at = from; at < cell.end && wrong.empty();) {
      const Index chunk = (at - begin) / units;
      const InputRun inputs = meaning_.inputs_of(rank, chunk, source);
      const std::int32_t entry =
          inputs.combines_all ? values_.all_inputs(reduction_, size(), launch) : values_.input(inputs.rank, launch);
      const Value expected{.entry = entry, .displacement = inputs.first * units - (begin + chunk * units)};
      spend(1);
      if (!values_.are_equal(cell.value, expected)) {
        writer = cell.writer;
        const std::string output = place_text(rank, memory, chunk * units, (chunk + 1) * units);
        wrong = fmt::format("{} is {}; {} makes it {} in launch {}",
                            writer.block < 0 ? output : fmt::format("{} writes {}, which", name(writer), output),
                            values_.text(cell.value, at, units, launch), program_.collective,
                            values_.text(expected, at, units, launch), launch);
      }
      at = std::min(cell.end, begin + (chunk + inputs.count) * units);
    }
  });
  if (wrong.empty()) return;
  if (meaning_.one_rank_suffices() && ++wrong_[launch] < size()) return;
  wrong_outputs_.insert(rank);
  if (writer.block < 0) return found(Finding::Kind::wrong_result, rank, -1, -1, std::move(wrong));
  const Block& block = block_of(writer.block);
  found(Finding::Kind::wrong_result, block.rank, block.index, writer.step, std::move(wrong));
}

}  // namespace tranship::verification
