#include "tranship/program/replay/scheduler.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/replay/arrows.hpp>
#include <tranship/program/replay/channels.hpp>
#include <tranship/program/replay/cores.hpp>
#include <tranship/program/replay/cost.hpp>
#include <tranship/program/replay/links.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::replays {
namespace {

struct Block {
  Rank rank = 0;
  std::int32_t index = 0;
  int worker = 0;
  const std::vector<Step>* steps = nullptr;
  std::int32_t id = 0;  ///< number of its current step
  std::size_t at = 0, inner = 0;
  Index iteration = 0;
  bool is_done = false;
  // State of the current step:
  std::size_t taken = 0;          ///< signals or releases taken so far
  std::optional<Arrival> latest;  ///< the last arrival that it needs
  bool has_arrived = false;       ///< it has arrived at its barrier
};

struct Barrier {
  std::vector<int> waiting;  ///< blocks that wait here
  int arrived = 0;
};

struct Worker {
  Rank rank = 0;
  std::vector<int> blocks;  ///< blocks that have not ended
  std::size_t current = 0;
  double wakes_ns = never_ns;
  double free_ns = 0;
  std::int32_t last_event = -1;
  bool has_begun = false;
};

struct RankState {
  double begin_ns = 0, end_ns = 0;
  std::int32_t last_event = -1;
  std::size_t running = 0;  ///< number of blocks that have not ended
};

Replay with_steps(const Program& program) {
  Replay out;
  out.steps = places_of_steps(program);
  return out;
}

class Scheduler {
 public:
  Scheduler(const Program& program, const MachineModel& machine, const ReplayOptions& options)
      : program_(program),
        machine_(machine),
        options_(options),
        out_(with_steps(program)),
        chunk_bytes_(bytes_of_chunks(program, options.input_bytes)),
        data_(program, machine, out_.steps, chunk_bytes_),
        costs_(program, machine, data_, chunk_bytes_, options.input_bytes),
        links_(machine, size()),
        arrows_(options, data_, out_),
        channels_(program),
        ranks_(program.ranks.size()),
        waiting_for_packets_(program.ranks.size()),
        barriers_(program.ranks.size()) {
    list_blocks();
    cores_.emplace(machine, host_of(size() - 1) + 1, workers_.size());
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) wake(static_cast<int>(worker), 0);
  }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Replay run() {
    while (!queue_.empty()) {
      const auto [time_ns, worker] = queue_.top();
      queue_.pop();
      if (workers_[std::size_t(worker)].wakes_ns != time_ns) continue;
      workers_[std::size_t(worker)].wakes_ns = never_ns;
      act(worker, time_ns);
    }
    finish();
    return std::move(out_);
  }

 private:
  Rank size() const { return static_cast<Rank>(program_.ranks.size()); }
  const RankProgram& of(Rank rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }
  bool in_turn() const { return machine_.blocks == MachineModel::Blocks::in_turn; }
  Index host_of(Rank rank) const { return rank / machine_.ranks_per_host; }

  void list_blocks() {
    std::int32_t id = 0;
    for (Rank rank = 0; rank < size(); ++rank) {
      ranks_[std::size_t(rank)].running = of(rank).blocks.size();
      for (std::size_t index = 0; index < of(rank).blocks.size(); ++index) {
        Block& block = blocks_.emplace_back();
        block.rank = rank;
        block.index = static_cast<std::int32_t>(index);
        block.steps = &of(rank).blocks[index].steps;
        block.id = id;
        for (const Step& step : *block.steps)
          id += 1 + (step.pipeline ? static_cast<std::int32_t>(step.pipeline->steps.size()) : 0);
        if (!in_turn() || index == 0) workers_.push_back({.rank = rank, .blocks = {}});
        block.worker = static_cast<int>(workers_.size()) - 1;
        workers_.back().blocks.push_back(static_cast<int>(blocks_.size()) - 1);
      }
    }
  }

  // --- Workers -----------------------------------------------------------------------------------------------------

  void wake(int id, double at_ns) {
    Worker& worker = workers_[std::size_t(id)];
    at_ns = std::max(at_ns, worker.free_ns);
    if (at_ns >= worker.wakes_ns) return;
    worker.wakes_ns = at_ns;
    queue_.push({at_ns, id});
  }
  void wake_block(int block, double at_ns) { wake(blocks_[std::size_t(block)].worker, at_ns); }

  void act(int id, double now_ns) {
    Worker& worker = workers_[std::size_t(id)];
    if (worker.blocks.empty()) return;
    if (!take_core(id, now_ns)) return;
    if (!worker.has_begun) return begin_launch(id, now_ns);
    double retry_ns = never_ns;
    for (std::size_t k = 0; k < worker.blocks.size(); ++k) {
      const std::size_t i = (worker.current + k) % worker.blocks.size();
      const int block = worker.blocks[i];
      const double when_ns = attempt(block, now_ns);
      if (when_ns > now_ns) {
        retry_ns = std::min(retry_ns, when_ns);
        continue;
      }
      worker.current = i;
      if (blocks_[std::size_t(block)].is_done) end_block(id, i);
      if (!worker.blocks.empty()) return wake(id, worker.free_ns);
      return leave_core(id, worker.free_ns);
    }
    leave_core(id, now_ns);
    if (retry_ns < never_ns) wake(id, retry_ns);
  }

  void begin_launch(int id, double now_ns) {
    Worker& worker = workers_[std::size_t(id)];
    RankState& rank = ranks_[std::size_t(worker.rank)];
    worker.has_begun = true;
    rank.begin_ns = now_ns;
    StepEvent event{.step = StepEvent::launch, .rank = worker.rank, .begin_ns = now_ns};
    event.queued_ns = now_ns;  // waiting for a core
    event.latency_ns = machine_.launch_ns;
    event.bandwidth_ns = costs_.copy_in_ns(worker.rank);
    event.end_ns = now_ns + event.latency_ns + event.bandwidth_ns;
    if (event.end_ns > 0 || in_turn()) worker.last_event = add(event);
    worker.free_ns = event.end_ns;
    end_empty_blocks(id);
    if (!worker.blocks.empty()) wake(id, worker.free_ns);
  }

  void end_empty_blocks(int id) {
    Worker& worker = workers_[std::size_t(id)];
    for (std::size_t i = worker.blocks.size(); i-- > 0;)
      if (blocks_[std::size_t(worker.blocks[i])].steps->empty()) end_block(id, i);
    if (worker.blocks.empty()) leave_core(id, worker.free_ns);
  }

  void end_block(int id, std::size_t i) {
    Worker& worker = workers_[std::size_t(id)];
    RankState& rank = ranks_[std::size_t(worker.rank)];
    blocks_[std::size_t(worker.blocks[i])].is_done = true;
    worker.blocks.erase(worker.blocks.begin() + static_cast<std::ptrdiff_t>(i));
    if (worker.current > i || worker.current >= worker.blocks.size()) worker.current = 0;
    if (worker.free_ns >= rank.end_ns) {
      rank.end_ns = worker.free_ns;
      rank.last_event = worker.last_event;
    }
    if (--rank.running > 0) return;
    const double bandwidth_ns = costs_.copy_out_ns(worker.rank);
    if (bandwidth_ns == 0) return;
    StepEvent event{.step = StepEvent::end_of_launch, .rank = worker.rank, .cause = rank.last_event};
    event.begin_ns = rank.end_ns;
    event.bandwidth_ns = bandwidth_ns;
    event.end_ns = worker.free_ns = rank.end_ns = event.begin_ns + bandwidth_ns;
    rank.last_event = worker.last_event = add(event);
  }

  /// Returns true when the worker may run now; otherwise it is woken when it gets a core.
  bool take_core(int id, double now_ns) {
    const ReplayCores::Turn turn = cores_->take(id, host_of(workers_[std::size_t(id)].rank), now_ns);
    return runs_now(id, turn, now_ns);
  }
  void leave_core(int id, double now_ns) {
    const auto next = cores_->leave(id, host_of(workers_[std::size_t(id)].rank), now_ns);
    if (next && runs_now(next->worker, next->turn, now_ns)) wake(next->worker, now_ns);
  }
  bool runs_now(int id, const ReplayCores::Turn& turn, double now_ns) {
    Worker& worker = workers_[std::size_t(id)];
    if (turn.is_switching) worker.free_ns = std::max(worker.free_ns, turn.at_ns);
    if (!turn.is_switching && turn.at_ns <= now_ns) return true;
    if (turn.at_ns < never_ns) wake(id, turn.at_ns);
    return false;
  }

  // --- Steps -------------------------------------------------------------------------------------------------------

  const Step& step_of(const Block& block) const {
    const Step& step = (*block.steps)[block.at];
    return is_looping(step) ? step.pipeline->steps[block.inner] : step;
  }
  static bool is_looping(const Step& step) { return step.pipeline && !step.pipeline->steps.empty(); }
  std::int32_t id_of_step(const Block& block) const {
    return block.id + (is_looping((*block.steps)[block.at]) ? 1 + static_cast<std::int32_t>(block.inner) : 0);
  }

  /// Executes the block's current step if that is possible now. Returns `now_ns` when it did, else when to try again.
  double attempt(int id, double now_ns) {
    Block& block = blocks_[std::size_t(id)];
    const Step& step = step_of(block);
    const double when_ns = needs(id, step, now_ns);
    if (when_ns > now_ns) return when_ns;
    execute(id, step, now_ns);
    block.taken = 0;
    block.latest.reset();
    block.has_arrived = false;
    const Step& outer = (*block.steps)[block.at];
    if (is_looping(outer)) {
      if (++block.inner < outer.pipeline->steps.size()) return now_ns;
      block.inner = 0;
      if (++block.iteration < data_.iterations_of(*outer.pipeline, options_.iterations_max)) return now_ns;
      block.iteration = 0;
    }
    block.id += 1 + (outer.pipeline ? static_cast<std::int32_t>(outer.pipeline->steps.size()) : 0);
    block.is_done = ++block.at == block.steps->size();
    return now_ns;
  }

  /// Returns when everything that the step needs has arrived, as far as known; the block is woken when more is known.
  double needs(int id, const Step& step, double now_ns) {
    Block& block = blocks_[std::size_t(id)];
    if (waits(step.kind))
      return take(id, now_ns, StepArrow::Kind::signal,
                  [&](std::int32_t channel) -> Counter& { return channels_.in(block.rank, step.channel, channel); });
    if (step.kind == StepKind::acquire)
      return take(id, now_ns, StepArrow::Kind::release,
                  [&](std::int32_t number) -> Counter& { return channels_.semaphore(block.rank, number); });
    if (step.kind == StepKind::barrier) return come_to_barrier(id, step, now_ns);
    if (shape_of(step.kind).moves()) return see_packets(id, step);
    return now_ns;
  }

  template <class CounterOf>
  double take(int id, double now_ns, StepArrow::Kind kind, CounterOf&& counter_of) {
    Block& block = blocks_[std::size_t(id)];
    const Step& step = step_of(block);
    for (; block.taken < step.ids.size(); ++block.taken) {
      Counter& counter = counter_of(step.ids[block.taken]);
      if (counter.initial > 0) {
        --counter.initial;
        continue;
      }
      if (counter.arrivals.empty() || counter.arrivals.top().at_ns > now_ns) {
        add_once(counter.waiting, id);
        return counter.arrivals.empty() ? never_ns : counter.arrivals.top().at_ns;
      }
      const Arrival arrival = counter.arrivals.top();
      counter.arrivals.pop();
      arrows_.draw(out_.events[std::size_t(arrival.event)].step, id_of_step(block), kind);
      need(block, arrival);
    }
    return now_ns;
  }
  static void add_once(std::vector<int>& list, int id) {
    if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
  }
  static void need(Block& block, const Arrival& arrival) {
    if (!block.latest || block.latest->at_ns < arrival.at_ns) block.latest = arrival;
  }
  void issue(Counter& counter, const Arrival& arrival) {
    counter.arrivals.push(arrival);
    for (const int waiting : std::exchange(counter.waiting, {})) wake_block(waiting, arrival.at_ns);
  }

  double come_to_barrier(int id, const Step& step, double now_ns) {
    Block& block = blocks_[std::size_t(id)];
    if (block.latest) return block.latest->at_ns;
    Barrier& barrier = barriers_[std::size_t(block.rank)][step.ids[0]];
    if (!block.has_arrived) {
      block.has_arrived = true;
      if (++barrier.arrived == step.participants) {
        barrier.arrived = 0;
        // The waiting blocks continue after the last one has come, so their cause is its event.
        const Arrival opens{.at_ns = now_ns, .event = workers_[std::size_t(block.worker)].last_event};
        for (const int waiting : std::exchange(barrier.waiting, {})) {
          blocks_[std::size_t(waiting)].latest = opens;
          wake_block(waiting, now_ns);
        }
        return now_ns;
      }
      barrier.waiting.push_back(id);
    }
    return never_ns;
  }

  // --- Data --------------------------------------------------------------------------------------------------------

  Part part_of(const Block& block, const Step& step) const {
    const Step& outer = (*block.steps)[block.at];
    return data_.part_of(step, is_looping(outer) ? &*outer.pipeline : nullptr, block.iteration);
  }

  double see_packets(int id, const Step& step) {
    Block& block = blocks_[std::size_t(id)];
    const StepShape& shape = shape_of(step.kind);
    const Part part = part_of(block, step);
    std::optional<Arrival> latest = Arrival{.at_ns = 0, .event = -1};
    for (std::size_t i = 0; i < std::size_t(step.sources); ++i) {
      const OperandShape what = shape_of_source(shape, i);
      if (what.format != OperandFormat::packets) continue;
      data_.for_each_range(block.rank, step.operands[i], what, part, [&](const ReplayData::Range& range) {
        const bool have_come = data_.written(range).read_whole(range.begin, range.end, [&](const Written::Cell& cell) {
          if (latest && cell.arrival.at_ns > latest->at_ns) latest = cell.arrival;
        });
        if (!have_come) latest.reset();
      });
      if (!latest) {
        add_once(waiting_for_packets_[std::size_t(block.rank)], id);
        return never_ns;
      }
    }
    if (latest->event >= 0) block.latest = latest;
    return latest->at_ns;
  }

  // --- Effects -----------------------------------------------------------------------------------------------------

  std::int32_t add(const StepEvent& event) {
    if (Index(out_.events.size()) >= options_.events_max)
      throw_error(ErrorCode::invalid_use, "one launch runs more than {}, counting every pass of a loop",
                  amount(options_.events_max, "step"));
    out_.events.push_back(event);
    return static_cast<std::int32_t>(out_.events.size()) - 1;
  }

  void execute(int id, const Step& step, double now_ns) {
    Block& block = blocks_[std::size_t(id)];
    Worker& worker = workers_[std::size_t(block.worker)];
    StepEvent event{.step = id_of_step(block), .rank = block.rank, .begin_ns = now_ns};
    event.cause = worker.last_event;
    const double ended_ns = worker.last_event < 0 ? 0 : out_.events[std::size_t(worker.last_event)].end_ns;
    event.queued_ns = now_ns - ended_ns;
    if (block.latest && block.latest->event >= 0 && block.latest->at_ns > ended_ns) {
      event.cause = block.latest->event;
      event.latency_ns = block.latest->latency_ns;
      event.bandwidth_ns = block.latest->bandwidth_ns;
      event.queued_ns = block.latest->queued_ns + (now_ns - block.latest->at_ns);
    }
    double end_ns = now_ns + machine_.step_ns;
    event.latency_ns += machine_.step_ns;
    const Part part = part_of(block, step);
    if (shape_of(step.kind).moves()) {
      costs_.cost_of_move(block.rank, step, part, cost_);
      event.latency_ns += cost_.latency_ns;
      event.bandwidth_ns += cost_.bandwidth_ns;
      end_ns += cost_.latency_ns + cost_.bandwidth_ns;
      const double carried_ns = links_.take(cost_.loads, now_ns);
      if (carried_ns > end_ns) event.queued_ns += carried_ns - std::exchange(end_ns, carried_ns);
    }
    if (step.kind == StepKind::flush || step.kind == StepKind::put_signal_flush) flush(block, step, event, end_ns);
    if (signals(step.kind))
      for (const std::int32_t channel : step.ids) {
        const double message_ns =
            costs_.link(step.channel, block.rank, of(block.rank).peers[std::size_t(step.channel)][std::size_t(channel)])
                .message_ns;
        event.latency_ns += message_ns;
        end_ns += message_ns;
      }
    event.end_ns = end_ns;
    const std::int32_t number = add(event);
    worker.free_ns = end_ns;
    worker.last_event = number;
    if (shape_of(step.kind).moves()) write_targets(block, step, part, number);
    if (signals(step.kind))
      for (const std::int32_t channel : step.ids)
        issue(channels_.out(block.rank, step.channel, channel),
              sent(block.rank, of(block.rank).peers[std::size_t(step.channel)][std::size_t(channel)], step.channel,
                   number));
    if (step.kind == StepKind::release)
      for (const std::int32_t semaphore_id : step.ids)
        issue(channels_.semaphore(block.rank, semaphore_id), {.at_ns = end_ns, .event = number});
  }

  /// A proxy sends signals and data only after everything that it was asked to carry before.
  Arrival sent(Rank from, Rank to, ChannelKind kind, std::int32_t number) {
    const LinkModel& by = costs_.link(kind, from, to);
    const double end_ns = out_.events[std::size_t(number)].end_ns;
    Arrival arrival{.at_ns = end_ns + by.latency_ns, .event = number, .latency_ns = by.latency_ns};
    if (!by.has_proxy) return arrival;
    const double carried_ns = std::max(end_ns, links_.proxy_free_ns(from, to));
    arrival.bandwidth_ns = carried_ns - end_ns;
    arrival.at_ns += arrival.bandwidth_ns;
    return arrival;
  }

  void flush(const Block& block, const Step& step, StepEvent& event, double& end_ns) {
    for (const std::int32_t channel : step.ids) {
      const Rank peer = of(block.rank).peers[std::size_t(step.channel)][std::size_t(channel)];
      const LinkModel& by = costs_.link(step.channel, block.rank, peer);
      if (!by.has_proxy) continue;
      const double carried_ns = links_.proxy_free_ns(block.rank, peer);
      if (carried_ns > end_ns) event.bandwidth_ns += carried_ns - std::exchange(end_ns, carried_ns);
      event.latency_ns += by.latency_ns;
      end_ns += by.latency_ns;
    }
  }

  void write_targets(const Block& block, const Step& step, Part part, std::int32_t number) {
    const StepShape& shape = shape_of(step.kind);
    const auto sources = static_cast<std::size_t>(step.sources);
    const std::int32_t id = out_.events[std::size_t(number)].step;
    arrows_.draw_sources(block.rank, step, id, part);
    for (std::size_t i = sources; i < step.operands.size(); ++i) {
      const OperandShape what = shape_of_target(shape, i - sources);
      if (what.format == OperandFormat::plain && !arrows_.are_found() && !in_turn()) continue;
      data_.for_each_range(block.rank, step.operands[i], what, part, [&](const ReplayData::Range& range) {
        Arrival arrival{.at_ns = out_.events[std::size_t(number)].end_ns, .event = number};
        if (range.rank != block.rank) {
          const ChannelKind kind = step.channel == ChannelKind::switched ? ChannelKind::memory : step.channel;
          if (step.channel == ChannelKind::switched && machine_.multicast.is_present)
            arrival.at_ns += arrival.latency_ns = machine_.multicast.latency_ns;
          else
            arrival = sent(block.rank, range.rank, kind, number);
        }
        data_.write(range, arrival, id);
        if (what.format == OperandFormat::plain) return;
        for (const int waiting : std::exchange(waiting_for_packets_[std::size_t(range.rank)], {}))
          wake_block(waiting, arrival.at_ns);
      });
    }
  }

  // --- The end -----------------------------------------------------------------------------------------------------

  void finish() {
    for (const RankState& rank : ranks_)
      if (rank.last_event >= 0 && (out_.last_event < 0 || rank.end_ns - rank.begin_ns > out_.duration_ns)) {
        out_.duration_ns = rank.end_ns - rank.begin_ns;
        out_.last_event = rank.last_event;
      }
    for (const Block& block : blocks_)
      if (!block.is_done) out_.stuck.push_back(id_of_step(block));
    std::sort(out_.stuck.begin(), out_.stuck.end());
    arrows_.sort();
  }

  const Program& program_;
  const MachineModel& machine_;
  const ReplayOptions& options_;
  Replay out_;
  const Index chunk_bytes_;
  ReplayData data_;
  const CostModel costs_;
  ReplayLinks links_;
  ReplayArrows arrows_;
  ReplayChannels channels_;
  std::optional<ReplayCores> cores_;
  StepCost cost_;  ///< of the step that is being executed
  std::vector<Block> blocks_;
  std::vector<Worker> workers_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<int>> waiting_for_packets_;
  std::vector<std::map<int, Barrier>> barriers_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> queue_;
};

}  // namespace

Replay schedule(const Program& program, const MachineModel& machine, const ReplayOptions& options) {
  return Scheduler(program, machine, options).run();
}

}  // namespace tranship::replays
