#include "tranship/program/replay.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {
namespace {

constexpr double never_ns = std::numeric_limits<double>::infinity();

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

/// Something that comes from elsewhere, and what it took since the event that sent it had ended.
struct Arrival {
  double at_ns = 0;
  std::int32_t event = -1;
  double latency_ns = 0, bandwidth_ns = 0, queued_ns = 0;

  bool operator>(const Arrival& other) const { return std::tie(at_ns, event) > std::tie(other.at_ns, other.event); }
};

/// Signals of one direction of a channel, or releases of a semaphore.
struct Counter {
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  Index initial = 0;         ///< that are there from the beginning
  std::vector<int> waiting;  ///< blocks
};

/// Stretches of a memory by what has written them.
class Written {
 public:
  struct Cell {
    Index end = 0;
    Arrival arrival;
    std::int32_t step = -1;
  };

  void write(Index begin, Index end, const Arrival& arrival, std::int32_t step) {
    if (begin >= end) return;
    cut(begin);
    cut(end);
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cells_.emplace(begin, Cell{.end = end, .arrival = arrival, .step = step});
  }
  /// Calls f(cell) for what has been written in [begin, end), as far as nothing is missing; whether nothing is.
  template <class F>
  bool read_whole(Index begin, Index end, F&& f) const {
    auto at = cells_.upper_bound(begin);
    if (at != cells_.begin()) --at;
    Index known = begin;
    for (; at != cells_.end() && at->first < end; ++at) {
      if (at->second.end <= begin) continue;
      if (at->first > known) return false;
      known = at->second.end;
      f(at->second);
    }
    return known >= end;
  }
  /// Calls f(begin of the cell, cell) for all that has been written in [begin, end).
  template <class F>
  void read(Index begin, Index end, F&& f) const {
    auto at = cells_.upper_bound(begin);
    if (at != cells_.begin()) --at;
    for (; at != cells_.end() && at->first < end; ++at)
      if (at->second.end > begin) f(at->first, at->second);
  }

 private:
  void cut(Index at) {
    auto found = cells_.upper_bound(at);
    if (found == cells_.begin()) return;
    --found;
    if (found->first == at || found->second.end <= at) return;
    Cell rest = found->second;
    found->second.end = at;
    cells_.emplace(at, std::move(rest));
  }

  std::map<Index, Cell> cells_;
};

struct Block {
  Rank rank = 0;
  std::int32_t index = 0;
  int worker = 0;
  const std::vector<Step>* steps = nullptr;
  std::int32_t id = 0;  ///< of the step at which it stands
  std::size_t at = 0, inner = 0;
  Index iteration = 0;
  bool is_done = false;
  // Of the step at which it stands:
  std::size_t taken = 0;          ///< signals or releases
  std::optional<Arrival> latest;  ///< of what it needs
  bool has_arrived = false;       ///< at its barrier
};

struct Barrier {
  std::vector<int> waiting;  ///< blocks
  int arrived = 0;
};

struct Worker {
  Rank rank = 0;
  std::vector<int> blocks;  ///< that have not ended
  std::size_t current = 0;
  double wakes_ns = never_ns;
  double free_ns = 0;
  std::int32_t last_event = -1;
  int core = -1;
  bool has_begun = false;
  bool is_in_queue = false;  ///< for a core
};

struct Core {
  double free_ns = 0;
  int last_worker = -1;
  bool is_busy = false;
};

struct Host {
  std::vector<Core> cores;
  std::vector<int> waiting;  ///< workers, in the order in which they came; those before `first` have gone on
  std::size_t first = 0;
  double sends_ns = 0, receives_ns = 0;  ///< until when its link is taken
};

struct RankState {
  double sends_ns = 0, receives_ns = 0;
  double begin_ns = 0, end_ns = 0;
  std::int32_t last_event = -1;
  std::size_t running = 0;  ///< blocks
};

/// Requests of one rank to another one that something else carries out in order.
struct Proxy {
  double free_ns = 0;
  double bandwidth_ns = 0, queued_ns = 0;  ///< of what it does, since the last event that asked for something
};

class Replayer {
 public:
  Replayer(const Program& program, const MachineModel& machine, const ReplayOptions& options)
      : program_(program), machine_(machine), options_(options) {
    check_structure(program);
    if (options.input_bytes < 0 || options.input_bytes > replayed_bytes_max)
      throw_error(ErrorCode::invalid_use, "inputs of {} bytes; at most {} are replayed", options.input_bytes,
                  replayed_bytes_max);
    out_.steps = places_of_steps(program);
    chunk_bytes_ = bytes_of_chunks(program, options.input_bytes);
    set_up();
  }

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
  bool finds_arrows() const { return options_.arrows == ReplayOptions::Arrows::find; }
  Index host_of(Rank rank) const { return rank / machine_.ranks_per_host; }

  // --- Set-up ------------------------------------------------------------------------------------------------------

  void set_up() {
    std::int32_t id = 0;
    for (Rank rank = 0; rank < size(); ++rank) {
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
    ranks_.resize(std::size_t(size()));
    launch_copies_ = launch_copies_of(program_);
    touched_bytes_ = bytes_touched_by_hosts(program_, machine_, options_.input_bytes);
    hosts_.resize(static_cast<std::size_t>(host_of(size() - 1) + 1));
    for (Host& host : hosts_) host.cores.resize(static_cast<std::size_t>(machine_.cores_per_host));
    for (Rank rank = 0; rank < size(); ++rank) {
      ranks_[std::size_t(rank)].running = of(rank).blocks.size();
    }
    written_.resize(std::size_t(size()) * buffer_kinds * 2);
    waiting_for_packets_.resize(std::size_t(size()));
    barriers_.resize(std::size_t(size()));
    proxies_.resize(std::size_t(size()));
    set_up_channels();
    find_what_peers_read();
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) wake(static_cast<int>(worker), 0);
  }

  /// The k-th channel from r to p and the k-th one from p to r are two ends: what one sends the other takes.
  void set_up_channels() {
    for (int kind = 0; kind < 2; ++kind) {
      std::map<std::tuple<Rank, Rank, Index>, int> inbound;  // of rank, from peer, number among those
      for (Rank rank = 0; rank < size(); ++rank) {
        std::map<Rank, Index> seen;
        first_channel_[kind].push_back(channel_in_[kind].size());
        for (const Rank peer : of(rank).peers[kind]) {
          inbound[{rank, peer, seen[peer]++}] = static_cast<int>(counters_.size());
          channel_in_[kind].push_back(static_cast<int>(counters_.size()));
          counters_.emplace_back();
        }
      }
      for (Rank rank = 0; rank < size(); ++rank) {
        std::map<Rank, Index> seen;
        for (const Rank peer : of(rank).peers[kind]) {
          const auto added = inbound.emplace(std::tuple(peer, rank, seen[peer]++), static_cast<int>(counters_.size()));
          if (added.second) counters_.emplace_back();  // no channel leads back
          channel_out_[kind].push_back(added.first->second);
        }
      }
    }
    for (Rank rank = 0; rank < size(); ++rank) {
      first_semaphore_.push_back(counters_.size());
      for (const Index value : of(rank).semaphores) counters_.emplace_back().initial = value;
    }
  }

  Counter& counter_of(const std::vector<int> (&channels)[2], Rank rank, ChannelKind kind, std::int32_t id) {
    const auto k = static_cast<std::size_t>(kind);
    return counters_[std::size_t(channels[k][first_channel_[k][std::size_t(rank)] + std::size_t(id)])];
  }
  Counter& semaphore(Rank rank, std::int32_t id) {
    return counters_[first_semaphore_[std::size_t(rank)] + std::size_t(id)];
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
    event.queued_ns = now_ns;  // for a core
    event.latency_ns = machine_.launch_ns;
    event.bandwidth_ns = copied_ns(worker.rank, launch_copies_[std::size_t(worker.rank)].input_chunks);
    event.end_ns = now_ns + event.latency_ns + event.bandwidth_ns;
    if (event.end_ns > 0 || in_turn()) worker.last_event = add(event);
    worker.free_ns = event.end_ns;
    end_empty_blocks(id);
    if (!worker.blocks.empty()) wake(id, worker.free_ns);
  }

  double copied_ns(Rank rank, Index chunks) const {
    return double(chunks) * double(chunk_bytes_) *
           machine_.launch_copy.ns_per_byte(touched_bytes_[std::size_t(host_of(rank))]);
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
    const double bandwidth_ns = copied_ns(worker.rank, launch_copies_[std::size_t(worker.rank)].output_chunks);
    if (bandwidth_ns == 0) return;
    StepEvent event{.step = StepEvent::end_of_launch, .rank = worker.rank, .cause = rank.last_event};
    event.begin_ns = rank.end_ns;
    event.bandwidth_ns = bandwidth_ns;
    event.end_ns = worker.free_ns = rank.end_ns = event.begin_ns + bandwidth_ns;
    rank.last_event = worker.last_event = add(event);
  }

  /// Whether the worker may run now; else it is woken when a core is free for it.
  bool take_core(int id, double now_ns) {
    Worker& worker = workers_[std::size_t(id)];
    if (machine_.cores_per_host == 0 || worker.core >= 0) return true;
    Host& host = hosts_[std::size_t(host_of(worker.rank))];
    int found = -1;
    double free_ns = never_ns;
    for (std::size_t i = 0; i < host.cores.size(); ++i) {
      const Core& core = host.cores[i];
      if (core.is_busy) continue;
      free_ns = std::min(free_ns, core.free_ns);
      if (core.free_ns <= now_ns && (found < 0 || core.last_worker == id)) found = static_cast<int>(i);
    }
    if (found < 0 && free_ns < never_ns) {
      wake(id, free_ns);
      return false;
    }
    if (found < 0) {
      if (!std::exchange(worker.is_in_queue, true)) host.waiting.push_back(id);
      return false;
    }
    return occupy(id, found, now_ns);
  }
  /// Whether the worker goes on at once, since the core has had no other one.
  bool occupy(int id, int core_id, double now_ns) {
    Worker& worker = workers_[std::size_t(id)];
    Core& core = hosts_[std::size_t(host_of(worker.rank))].cores[std::size_t(core_id)];
    const bool switches = core.last_worker >= 0 && core.last_worker != id && machine_.core_switch_ns > 0;
    core.is_busy = true;
    core.last_worker = id;
    worker.core = core_id;
    if (!switches) return true;
    worker.free_ns = std::max(worker.free_ns, now_ns + machine_.core_switch_ns);
    wake(id, worker.free_ns);
    return false;
  }
  void leave_core(int id, double now_ns) {
    Worker& worker = workers_[std::size_t(id)];
    if (worker.core < 0) return;
    Host& host = hosts_[std::size_t(host_of(worker.rank))];
    const int core = std::exchange(worker.core, -1);
    host.cores[std::size_t(core)].is_busy = false;
    host.cores[std::size_t(core)].free_ns = now_ns;
    if (host.first == host.waiting.size()) return;
    const int next = host.waiting[host.first++];
    workers_[std::size_t(next)].is_in_queue = false;
    if (host.first == host.waiting.size()) host.waiting.clear(), host.first = 0;
    if (occupy(next, core, now_ns)) wake(next, now_ns);
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

  static constexpr Index bytes_max = Index(1) << 61;  // of what a loop goes over: more makes too many events anyway
  static Index unit_of(const Pipeline& loop) { return round_up(std::min(loop.unit_bytes, bytes_max), cut_unit_bytes); }
  Index iterations_of(const Pipeline& loop) const {
    const Index bytes = std::min(loop.chunks, bytes_max / chunk_bytes_) * chunk_bytes_;
    return std::min(std::max<Index>(1, (bytes + unit_of(loop) - 1) / unit_of(loop)), options_.iterations_max);
  }

  /// Executes the step at which the block stands, if that is possible now. When it may be tried again: `now_ns` if it
  /// was executed.
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
      if (++block.iteration < iterations_of(*outer.pipeline)) return now_ns;
      block.iteration = 0;
    }
    block.id += 1 + (outer.pipeline ? static_cast<std::int32_t>(outer.pipeline->steps.size()) : 0);
    block.is_done = ++block.at == block.steps->size();
    return now_ns;
  }

  /// When all is there that the step needs, as far as is known; the block is woken when more is known.
  double needs(int id, const Step& step, double now_ns) {
    Block& block = blocks_[std::size_t(id)];
    if (waits(step.kind))
      return take(id, now_ns, StepArrow::Kind::signal, [&](std::int32_t channel) -> Counter& {
        return counter_of(channel_in_, block.rank, step.channel, channel);
      });
    if (step.kind == StepKind::acquire)
      return take(id, now_ns, StepArrow::Kind::release,
                  [&](std::int32_t number) -> Counter& { return semaphore(block.rank, number); });
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
      draw(out_.events[std::size_t(arrival.event)].step, id_of_step(block), kind);
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
        // Those that wait go on after the last one has come: its event follows.
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

  struct Part {
    Index begin, end;
  };
  Part part_of(const Block& block, const Step& step) const {
    Index begin = 0, end = (step.operands.empty() ? 0 : step.operands[0].count) * chunk_bytes_;
    const Step& outer = (*block.steps)[block.at];
    if (is_looping(outer)) {
      const Index unit = unit_of(*outer.pipeline);
      begin = block.iteration < end / unit + 1 ? std::min(end, block.iteration * unit) : end;
      end = end - begin < unit ? end : begin + unit;
    }
    if (step.shares > 0) {
      const UnitRange own = share_of((end - begin) / cut_unit_bytes, step.share, step.shares);
      begin += own.first * cut_unit_bytes;
      end = begin + own.count * cut_unit_bytes;
    }
    return {begin, end};
  }

  struct Range {
    Rank rank;
    Index begin, end;
    Written& written;
  };
  Range range_of(Rank rank, const Operand& operand, OperandFormat format, Part part) {
    const BufferPlace at = place_of(program_, rank, operand.buffer);
    const Index first = (at.first_chunk + operand.first) * chunk_bytes_;
    const std::size_t packets = format == OperandFormat::plain ? 0 : 1;
    return {rank, first + part.begin, first + part.end,
            written_[(std::size_t(rank) * buffer_kinds + std::size_t(at.memory)) * 2 + packets]};
  }
  template <class F>
  void for_each_range(Rank own, const Operand& operand, OperandShape shape, Part part, F&& f) {
    switch (shape.where) {
      case Where::here:
        return f(range_of(own, operand, shape.format, part));
      case Where::peer:
        return f(range_of(of(own).remote_buffers[std::size_t(operand.via)].rank, operand, shape.format, part));
      case Where::group:
        for (const Rank rank : of(own).switches[std::size_t(operand.via)].ranks)
          f(range_of(rank, operand, shape.format, part));
    }
  }

  double see_packets(int id, const Step& step) {
    Block& block = blocks_[std::size_t(id)];
    const StepShape& shape = shape_of(step.kind);
    const Part part = part_of(block, step);
    std::optional<Arrival> latest = Arrival{.at_ns = 0, .event = -1};
    for (std::size_t i = 0; i < std::size_t(step.sources); ++i) {
      const OperandShape what = shape_of_source(shape, i);
      if (what.format != OperandFormat::packets) continue;
      for_each_range(block.rank, step.operands[i], what, part, [&](const Range& range) {
        const bool have_come = range.written.read_whole(range.begin, range.end, [&](const Written::Cell& cell) {
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

  void draw(std::int32_t from, std::int32_t to, StepArrow::Kind kind) {
    if (!finds_arrows() || from < 0 || from == to) return;
    const StepArrow arrow{.from = from, .to = to, .kind = kind};
    if (!out_.arrows.empty() && out_.arrows.back() == arrow) return;
    if (Index(out_.arrows.size()) < options_.arrows_max)
      out_.arrows.push_back(arrow);
    else
      ++out_.arrows_dropped;
  }
  void draw_sources(const Block& block, const Step& step, Part part) {
    const StepShape& shape = shape_of(step.kind);
    for (std::size_t i = 0; i < std::size_t(step.sources); ++i) {
      const OperandShape what = shape_of_source(shape, i);
      for_each_range(block.rank, step.operands[i], what, part, [&](const Range& range) {
        const auto draw_cell = [&](Index, const Written::Cell& cell) {
          if (what.format == OperandFormat::plain && out_.steps[std::size_t(cell.step)].rank == block.rank) return;
          draw(cell.step, id_of_step(block),
               what.format == OperandFormat::plain ? StepArrow::Kind::data : StepArrow::Kind::packets);
        };
        range.written.read(range.begin, range.end, draw_cell);
      });
    }
  }

  // --- Costs -------------------------------------------------------------------------------------------------------

  struct Cost {
    double latency_ns = 0;
    double bandwidth_ns = 0;
    double done_ns = 0;  ///< when the links have carried it; 0: at once
  };

  const LinkModel& link(ChannelKind kind, Rank from, Rank to) const {
    const bool is_near = host_of(from) == host_of(to);
    if (kind == ChannelKind::port) return is_near ? machine_.port : machine_.far_port;
    if (is_near) return machine_.memory;
    if (!machine_.has_far_memory)
      throw_error(ErrorCode::unsupported,
                  "\"{}\" has no memory channels between hosts: ranks {} and {} are on hosts {} and {} ({} each)",
                  printable(machine_.name, name_chars_max), from, to, host_of(from), host_of(to),
                  amount(machine_.ranks_per_host, "rank"));
    return machine_.far_memory;
  }

  double touched(Rank rank) const { return touched_bytes_[std::size_t(host_of(rank))]; }

  static void reserve(double& free_ns, double begin_ns, double bytes, double gb_per_s, double& done_ns) {
    if (gb_per_s <= 0) return;
    free_ns = std::max(free_ns, begin_ns) + bytes / gb_per_s;
    done_ns = std::max(done_ns, free_ns);
  }
  /// Takes the links between two ranks for so many bytes. When they have been carried, as far as these limit it.
  double carry(Rank from, Rank to, double bytes, double begin_ns) {
    double done_ns = 0;
    if (from == to) return done_ns;
    reserve(ranks_[std::size_t(from)].sends_ns, begin_ns, bytes, machine_.rank_gb_per_s, done_ns);
    reserve(ranks_[std::size_t(to)].receives_ns, begin_ns, bytes, machine_.rank_gb_per_s, done_ns);
    const Index from_host = host_of(from), to_host = host_of(to);
    if (from_host == to_host) return done_ns;
    reserve(hosts_[std::size_t(from_host)].sends_ns, begin_ns, bytes, machine_.host_gb_per_s, done_ns);
    reserve(hosts_[std::size_t(to_host)].receives_ns, begin_ns, bytes, machine_.host_gb_per_s, done_ns);
    return done_ns;
  }

  Rank rank_of(Rank own, const Operand& operand, Where where) const {
    return where == Where::peer ? of(own).remote_buffers[std::size_t(operand.via)].rank : own;
  }

  /// How many bytes of plain data here another rank of this host has written last: they are in its cache, and a CPU
  /// reads them as slowly as if they were at that rank.
  double bytes_of_peers(Rank own, const Operand& operand, OperandShape what, Part part) {
    Index out = 0;
    if (!in_turn() || what.where != Where::here || what.format != OperandFormat::plain) return 0;
    const Range range = range_of(own, operand, what.format, part);
    range.written.read(range.begin, range.end, [&](Index begin, const Written::Cell& cell) {
      const Rank writer = out_.steps[std::size_t(cell.step)].rank;
      if (writer != own && host_of(writer) == host_of(own))
        out += std::min(cell.end, range.end) - std::max(begin, range.begin);
    });
    return static_cast<double>(out);
  }

  /// What other ranks of the host read of each memory in a launch.
  void find_what_peers_read() {
    if (!in_turn()) return;
    read_by_peers_.resize(written_.size() / 2);
    for (const StepPlace& place : out_.steps) {
      const Step& step = *place.what;
      const StepShape& shape = shape_of(step.kind);
      for (std::size_t i = 0; shape.moves() && i < std::size_t(step.sources); ++i) {
        const OperandShape what = shape_of_source(shape, i);
        if (what.where == Where::here || what.format != OperandFormat::plain) continue;
        const Part whole{0, step.operands[i].count * chunk_bytes_};
        for_each_range(place.rank, step.operands[i], what, whole, [&](const Range& range) {
          if (range.rank == place.rank || host_of(range.rank) != host_of(place.rank)) return;
          const auto memory = static_cast<std::size_t>(&range.written - written_.data()) / 2;
          read_by_peers_[memory].write(range.begin, range.end, {}, -1);
        });
      }
    }
  }
  /// How many bytes of plain data here another rank of this host has read since this one wrote there, be it in the
  /// launch before: they are in its cache, too, and a CPU takes them back before it writes, as if they were there.
  double bytes_to_take_back(Rank own, const Operand& operand, Part part) {
    if (!in_turn()) return 0;
    const Range range = range_of(own, operand, OperandFormat::plain, part);
    Index out = 0;
    const auto within = [&](Index begin, const Written::Cell& cell) {
      return std::max<Index>(0, std::min(cell.end, range.end) - std::max(begin, range.begin));
    };
    read_by_peers_[static_cast<std::size_t>(&range.written - written_.data()) / 2].read(
        range.begin, range.end, [&](Index begin, const Written::Cell& cell) { out += within(begin, cell); });
    range.written.read(range.begin, range.end, [&](Index begin, const Written::Cell& cell) {
      if (out_.steps[std::size_t(cell.step)].rank == own) out -= within(begin, cell);
    });
    return static_cast<double>(std::max<Index>(0, out));
  }

  /// Reading one more source and combining it with what has been read.
  void add_source(Rank own, const Operand& operand, OperandShape what, Part part, double begin_ns, Cost& cost) {
    const double memory = touched(own);
    const auto bytes = static_cast<double>(part.end - part.begin);
    if (what.where == Where::here) {
      const Rate& rate = what.format == OperandFormat::plain ? machine_.reduce : machine_.reduce_packets;
      const double far_bytes = bytes_of_peers(own, operand, what, part);
      cost.bandwidth_ns += (bytes - far_bytes) * rate.ns_per_byte(memory);
      cost.bandwidth_ns += far_bytes * machine_.memory.read_reduce.ns_per_byte(memory);
      return;
    }
    const auto add = [&](Rank peer) {
      if (peer == own) {
        cost.bandwidth_ns += bytes * machine_.reduce.ns_per_byte(memory);
        return;
      }
      const LinkModel& from = link(ChannelKind::memory, own, peer);
      cost.latency_ns += from.latency_ns;
      cost.bandwidth_ns += bytes * from.read_reduce.ns_per_byte(memory);
      cost.done_ns = std::max(cost.done_ns, carry(peer, own, bytes, begin_ns));
    };
    if (what.where == Where::peer) return add(rank_of(own, operand, what.where));
    for (const Rank peer : of(own).switches[std::size_t(operand.via)].ranks) add(peer);
  }

  /// Reading the only or the first source. What is written in the same step costs by the target alone.
  void first_source(const Block& block, const Step& step, const Operand& operand, OperandShape what, Part part,
                    double begin_ns, Cost& cost) {
    const Rank own = block.rank;
    const double memory = touched(own);
    const auto bytes = static_cast<double>(part.end - part.begin);
    if (what.where == Where::here) {
      const double more_ns = machine_.memory.get.ns_per_byte(memory) - machine_.copy.ns_per_byte(memory);
      cost.bandwidth_ns += bytes_of_peers(own, operand, what, part) * std::max(0.0, more_ns);
    } else if (what.where == Where::peer) {
      const Rank peer = rank_of(own, operand, what.where);
      const LinkModel& from = link(step.channel, own, peer);
      cost.latency_ns += from.latency_ns;
      cost.bandwidth_ns += bytes * from.get.ns_per_byte(memory);
      cost.done_ns = std::max(cost.done_ns, carry(peer, own, bytes, begin_ns));
    } else if (what.where == Where::group) {
      if (machine_.multicast.is_present) {
        cost.latency_ns += machine_.multicast.latency_ns;
        cost.bandwidth_ns += bytes * machine_.multicast.get.ns_per_byte(memory);
        cost.done_ns = std::max(cost.done_ns, carry(-1, own, bytes, begin_ns, Multicast{}));
      } else {
        add_source(own, operand, what, part, begin_ns, cost);
      }
    }
  }

  struct Multicast {};
  /// The switch reads or writes at all ranks at once; what limits is the link of the rank that asks for it.
  double carry(Rank from, Rank to, double bytes, double begin_ns, Multicast) {
    double done_ns = 0;
    if (from >= 0) reserve(ranks_[std::size_t(from)].sends_ns, begin_ns, bytes, machine_.rank_gb_per_s, done_ns);
    if (to >= 0) reserve(ranks_[std::size_t(to)].receives_ns, begin_ns, bytes, machine_.rank_gb_per_s, done_ns);
    return done_ns;
  }

  /// Writing one target. `source` says how the data was: it costs nothing more to read it, if that was local.
  void add_target(const Block& block, const Step& step, const Operand& operand, OperandShape what, OperandFormat source,
                  Part part, double begin_ns, Cost& cost) {
    const auto bytes = static_cast<double>(part.end - part.begin);
    const Rank own = block.rank;
    const double memory = touched(own);
    const auto put = [&](Rank peer) {
      if (peer == own) {
        const Rate& rate = what.format != OperandFormat::plain ? machine_.pack
                           : source != OperandFormat::plain    ? machine_.unpack
                                                               : machine_.copy;
        cost.bandwidth_ns += bytes * rate.ns_per_byte(memory);
        if (what.format != OperandFormat::plain || what.where != Where::here) return;
        const double more_ns = machine_.memory.take_back.ns_per_byte(memory) - machine_.copy.ns_per_byte(memory);
        cost.bandwidth_ns += bytes_to_take_back(own, operand, part) * std::max(0.0, more_ns);
        return;
      }
      const ChannelKind kind = step.channel == ChannelKind::switched ? ChannelKind::memory : step.channel;
      const LinkModel& to = link(kind, own, peer);
      cost.latency_ns += to.message_ns;
      const double sent = what.format == OperandFormat::plain ? bytes : 2 * bytes;
      const Rate& rate = what.format != OperandFormat::plain         ? to.packets
                         : step.sources > 1                          ? to.reduce_put
                         : part.end - part.begin < to.long_put_bytes ? to.short_put
                                                                     : to.put;
      const double bandwidth_ns = bytes * rate.ns_per_byte(memory);
      if (!to.has_proxy) {
        cost.bandwidth_ns += bandwidth_ns;
        cost.done_ns = std::max(cost.done_ns, carry(own, peer, sent, begin_ns));
        return;
      }
      Proxy& proxy = proxies_[std::size_t(own)][peer];
      const double start_ns = std::max(proxy.free_ns, begin_ns);
      const double alone_ns = start_ns + bandwidth_ns;
      proxy.free_ns = std::max(alone_ns, carry(own, peer, sent, start_ns));
    };
    if (what.where == Where::group) {
      if (machine_.multicast.is_present) {
        cost.latency_ns += machine_.multicast.latency_ns;
        const double sent = what.format == OperandFormat::plain ? bytes : 2 * bytes;
        cost.bandwidth_ns += sent * machine_.multicast.put.ns_per_byte(memory);
        cost.done_ns = std::max(cost.done_ns, carry(own, -1, sent, begin_ns, Multicast{}));
        return;
      }
      for (const Rank peer : of(own).switches[std::size_t(operand.via)].ranks) put(peer);
      return;
    }
    put(rank_of(own, operand, what.where));
  }

  /// What a CPU has just read, wherever it lies, is in its cache: writing there costs no more than a copy.
  static bool has_read(const Step& step, const Operand& target) {
    const auto begin = step.operands.begin();
    return target.via >= 0 && std::find(begin, begin + step.sources, target) != begin + step.sources;
  }
  std::size_t group_of(Rank own, const Operand& operand) const {
    return of(own).switches[std::size_t(operand.via)].ranks.size();
  }

  Cost cost_of_move(const Block& block, const Step& step, Part part, double begin_ns) {
    const StepShape& shape = shape_of(step.kind);
    const auto bytes = static_cast<double>(part.end - part.begin);
    const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
    Cost cost;
    for (std::size_t i = 0; i < sources; ++i) {
      const OperandShape what = shape_of_source(shape, i);
      if (i == 0 || shape.pairing == Pairing::pairs)
        first_source(block, step, step.operands[i], what, part, begin_ns, cost);
      else
        add_source(block.rank, step.operands[i], what, part, begin_ns, cost);
    }
    for (std::size_t i = 0; i < targets; ++i) {
      const OperandShape from = sources == 0 ? OperandShape{} : shape_of_source(shape, std::min(i, sources - 1));
      const OperandShape what = shape_of_target(shape, i);
      // What one `get` reads at a peer and writes here is one copy.
      if (from.where == Where::peer && what.where == Where::here && sources == targets) continue;
      if (in_turn() && has_read(step, step.operands[sources + i])) {
        const double places = what.where == Where::group ? double(group_of(block.rank, step.operands[sources + i])) : 1;
        cost.bandwidth_ns += places * bytes * machine_.copy.ns_per_byte(touched(block.rank));
        continue;
      }
      add_target(block, step, step.operands[sources + i], what, sources == 1 ? from.format : OperandFormat::plain, part,
                 begin_ns, cost);
    }
    return cost;
  }

  // --- Effects -----------------------------------------------------------------------------------------------------

  std::int32_t add(const StepEvent& event) {
    if (Index(out_.events.size()) >= options_.events_max)
      throw_error(ErrorCode::invalid_use, "a launch of more than {} steps, those of loops counted each time",
                  options_.events_max);
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
      const Cost cost = cost_of_move(block, step, part, now_ns);
      event.latency_ns += cost.latency_ns;
      event.bandwidth_ns += cost.bandwidth_ns;
      end_ns += cost.latency_ns + cost.bandwidth_ns;
      if (cost.done_ns > end_ns) event.queued_ns += cost.done_ns - std::exchange(end_ns, cost.done_ns);
    }
    if (step.kind == StepKind::flush || step.kind == StepKind::put_signal_flush) flush(block, step, event, end_ns);
    if (signals(step.kind))
      for (const std::int32_t channel : step.ids) {
        const double message_ns =
            link(step.channel, block.rank, of(block.rank).peers[std::size_t(step.channel)][std::size_t(channel)])
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
        issue(counter_of(channel_out_, block.rank, step.channel, channel),
              sent(block.rank, of(block.rank).peers[std::size_t(step.channel)][std::size_t(channel)], step.channel,
                   number));
    if (step.kind == StepKind::release)
      for (const std::int32_t semaphore_id : step.ids)
        issue(semaphore(block.rank, semaphore_id), {.at_ns = end_ns, .event = number});
  }

  /// What an event sends arrives after all that the proxy has been asked for.
  Arrival sent(Rank from, Rank to, ChannelKind kind, std::int32_t number) {
    const LinkModel& by = link(kind, from, to);
    const double end_ns = out_.events[std::size_t(number)].end_ns;
    Arrival arrival{.at_ns = end_ns + by.latency_ns, .event = number, .latency_ns = by.latency_ns};
    if (!by.has_proxy) return arrival;
    const double carried_ns = std::max(end_ns, proxies_[std::size_t(from)][to].free_ns);
    arrival.bandwidth_ns = carried_ns - end_ns;
    arrival.at_ns += arrival.bandwidth_ns;
    return arrival;
  }

  void flush(const Block& block, const Step& step, StepEvent& event, double& end_ns) {
    for (const std::int32_t channel : step.ids) {
      const Rank peer = of(block.rank).peers[std::size_t(step.channel)][std::size_t(channel)];
      const LinkModel& by = link(step.channel, block.rank, peer);
      if (!by.has_proxy) continue;
      const double carried_ns = proxies_[std::size_t(block.rank)][peer].free_ns;
      if (carried_ns > end_ns) event.bandwidth_ns += carried_ns - std::exchange(end_ns, carried_ns);
      event.latency_ns += by.latency_ns;
      end_ns += by.latency_ns;
    }
  }

  void write_targets(const Block& block, const Step& step, Part part, std::int32_t number) {
    const StepShape& shape = shape_of(step.kind);
    const auto sources = static_cast<std::size_t>(step.sources);
    const std::int32_t id = out_.events[std::size_t(number)].step;
    if (finds_arrows()) draw_sources(block, step, part);
    for (std::size_t i = sources; i < step.operands.size(); ++i) {
      const OperandShape what = shape_of_target(shape, i - sources);
      if (what.format == OperandFormat::plain && !finds_arrows() && !in_turn()) continue;
      for_each_range(block.rank, step.operands[i], what, part, [&](const Range& range) {
        Arrival arrival{.at_ns = out_.events[std::size_t(number)].end_ns, .event = number};
        if (range.rank != block.rank) {
          const ChannelKind kind = step.channel == ChannelKind::switched ? ChannelKind::memory : step.channel;
          if (step.channel == ChannelKind::switched && machine_.multicast.is_present)
            arrival.at_ns += arrival.latency_ns = machine_.multicast.latency_ns;
          else
            arrival = sent(block.rank, range.rank, kind, number);
        }
        range.written.write(range.begin, range.end, arrival, id);
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
    std::sort(out_.arrows.begin(), out_.arrows.end());
    out_.arrows.erase(std::unique(out_.arrows.begin(), out_.arrows.end()), out_.arrows.end());
  }

  const Program& program_;
  const MachineModel& machine_;
  const ReplayOptions& options_;
  Replay out_;
  Index chunk_bytes_ = 0;
  std::vector<double> touched_bytes_;  ///< by host
  std::vector<LaunchCopies> launch_copies_;
  std::vector<Block> blocks_;
  std::vector<Worker> workers_;
  std::vector<RankState> ranks_;
  std::vector<Host> hosts_;
  std::vector<Counter> counters_;
  std::vector<int> channel_in_[2], channel_out_[2];
  std::vector<std::size_t> first_channel_[2], first_semaphore_;
  std::vector<Written> written_;        ///< by rank, memory, and whether it is packets
  std::vector<Written> read_by_peers_;  ///< by rank and memory
  std::vector<std::vector<int>> waiting_for_packets_;
  std::vector<std::map<int, Barrier>> barriers_;
  std::vector<std::map<Rank, Proxy>> proxies_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> queue_;
};

}  // namespace

const char* name_of(StepArrow::Kind kind) noexcept {
  switch (kind) {
    case StepArrow::Kind::signal:
      return "signal";
    case StepArrow::Kind::packets:
      return "packets";
    case StepArrow::Kind::data:
      return "data";
    case StepArrow::Kind::release:
      return "release";
  }
  return "?";
}

std::vector<StepPlace> places_of_steps(const Program& program) {
  std::vector<StepPlace> out;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (std::size_t block = 0; block < program.ranks[rank].blocks.size(); ++block) {
      const std::vector<Step>& steps = program.ranks[rank].blocks[block].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        StepPlace place{.rank = static_cast<Rank>(rank),
                        .block = static_cast<std::int32_t>(block),
                        .step = static_cast<std::int32_t>(i),
                        .what = &steps[i]};
        out.push_back(place);
        if (!steps[i].pipeline) continue;
        for (const Step& inner : steps[i].pipeline->steps) {
          ++place.inner;
          place.what = &inner;
          out.push_back(place);
        }
      }
    }
  return out;
}

Index bytes_of_chunks(const Program& program, Index input_bytes) {
  const auto ranks = static_cast<Index>(program.ranks.size());
  const bool cuts_input = program.collective == "alltoall" || program.collective == "reducescatter";
  const Index segments = cuts_input ? ranks : 1;
  const Index chunks = std::max<Index>(1, input_chunks_max(program) / segments);
  const Index per_segment = (input_bytes + segments - 1) / segments;
  return std::max(cut_unit_bytes, round_up((per_segment + chunks - 1) / chunks, cut_unit_bytes));
}

std::vector<LaunchCopies> launch_copies_of(const Program& program) {
  const std::size_t size = program.ranks.size();
  struct Touched {
    bool by_peers = false, is_written = false;
  };
  std::vector<Touched> touched(size * buffer_kinds);
  for (const StepPlace& place : places_of_steps(program)) {
    const Step& step = *place.what;
    const StepShape& shape = shape_of(step.kind);
    const RankProgram& own = program.ranks[static_cast<std::size_t>(place.rank)];
    const auto sources = static_cast<std::size_t>(step.sources);
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const Operand& operand = step.operands[i];
      const bool writes = i >= sources;
      const OperandShape what = writes ? shape_of_target(shape, i - sources) : shape_of_source(shape, i);
      const auto touch = [&](Rank at) {
        Touched& one = touched[static_cast<std::size_t>(at) * buffer_kinds + static_cast<std::size_t>(operand.buffer)];
        if (at != place.rank) one.by_peers = true;
        if (at == place.rank && writes) one.is_written = true;
      };
      if (what.where == Where::here) touch(place.rank);
      if (what.where == Where::peer) touch(own.remote_buffers[static_cast<std::size_t>(operand.via)].rank);
      if (what.where == Where::group)
        for (const Rank at : own.switches[static_cast<std::size_t>(operand.via)].ranks) touch(at);
    }
  }
  std::vector<LaunchCopies> out(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    const Touched &input = touched[rank * buffer_kinds], &output = touched[rank * buffer_kinds + 1];
    const auto& chunks = program.ranks[rank].chunks;
    if (program.in_place || input.by_peers || input.is_written) out[rank].input_chunks = chunks[0];
    if (program.in_place || output.by_peers) out[rank].output_chunks = chunks[1];
  }
  return out;
}

std::vector<double> bytes_touched_by_hosts(const Program& program, const MachineModel& machine, Index input_bytes) {
  const auto size = static_cast<Rank>(program.ranks.size());
  std::vector<double> out(static_cast<std::size_t>((size - 1) / machine.ranks_per_host + 1));
  const auto chunk_bytes = static_cast<double>(bytes_of_chunks(program, input_bytes));
  const std::vector<LaunchCopies> copies = launch_copies_of(program);
  for (Rank rank = 0; rank < size; ++rank) {
    Index chunks = 0;
    for (int memory = 0; memory < buffer_kinds; ++memory) chunks += memory_chunks(program, rank, memory);
    if (machine.launch_copy.is_given())
      chunks +=
          copies[static_cast<std::size_t>(rank)].input_chunks + copies[static_cast<std::size_t>(rank)].output_chunks;
    out[static_cast<std::size_t>(rank / machine.ranks_per_host)] += static_cast<double>(chunks) * chunk_bytes;
  }
  return out;
}

MachineModel step_by_step() {
  MachineModel machine{.name = "step by step", .step_ns = 1, .has_far_memory = true};
  machine.ranks_per_host = 1 << 20;
  machine.multicast.is_present = true;
  return machine;
}

Replay replay(const Program& program, const MachineModel& machine, const ReplayOptions& options) {
  return Replayer(program, machine, options).run();
}

}  // namespace tranship
