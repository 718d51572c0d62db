#include "support/program_explorer.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tranship/base/random.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::test {
namespace {

using Number = std::uint64_t;
constexpr int no_flag = -1;
constexpr std::size_t operations_max = 20'000;
constexpr int places_max = 20'000;
constexpr Index tokens_max = 100;

struct Unsupported {
  std::string why;
};

/// Which write of each place has been seen, and which is known to have been executed: numbers of writes.
struct View {
  std::vector<std::uint16_t> seen, executed;
};
using ViewPointer = std::shared_ptr<const View>;

struct Message {
  std::uint16_t number = 0;
  int flag = no_flag;  ///< of packets: the launch
  Number value = 0;
  ViewPointer begun;     ///< of packets: what the writer had seen when its launch began
  ViewPointer executed;  ///< of packets: what its thread knew
  ViewPointer linked;    ///< of packets: what the same units of the steps have written that led to them
};

enum class Act { begin, share, end, meet, arrive, issue, take, read, write, push, flush };

struct Access {
  int place;
  OperandFormat format;
};

struct Op {
  Act act;
  Rank rank = 0;
  int block = -1;  ///< of all ranks and launches
  int launch = 0;
  int thread = -1;
  int counter = -1;
  int from = -1;  ///< of a write, the read; of what a proxy does first, the push
  bool is_relaxed = false;
  Reduction reduction = Reduction::sum;
  Index step = -1;
  std::vector<Access> accesses;
  std::vector<int> before;  ///< operations that come first
};

/// All operations of all launches, and what comes before what.
class Machine {
 public:
  Machine(const Program& program, const ProgramExploreOptions& options) : program_(program), options_(options) {
    lay_out();
    connect();
    std::vector<int> ends;
    for (int launch = 0; launch < options.launches; ++launch) {
      std::vector<int> begins, next;
      for (Rank rank = 0; rank < size(); ++rank)
        begins.push_back(add({.act = Act::begin, .rank = rank, .launch = launch},
                             launch == 0 ? std::vector<int>{} : std::vector<int>{ends[std::size_t(rank)]}));
      for (Rank rank = 0; rank < size(); ++rank) {
        int begin = begins[std::size_t(rank)];
        if (options.between == BetweenLaunches::all_ranks_meet)
          begin = add({.act = Act::share, .rank = rank, .launch = launch}, begins);
        next.push_back(build_launch(rank, launch, begin));
      }
      if (options.between == BetweenLaunches::all_ranks_meet) {
        std::vector<int> all;
        for (const int end : next) all.insert(all.end(), op(end).before.begin(), op(end).before.end());
        for (const int end : next) op(end).before = all;
      }
      ends = std::move(next);
    }
    index();
  }

  Rank size() const { return Rank(program_.ranks.size()); }
  const RankProgram& of(Rank rank) const { return program_.ranks[std::size_t(rank)]; }

  // --- Places ------------------------------------------------------------------------------------------------------

  /// In place, the input of an allgather is slice r of the output, the output of a reducescatter is slice r of the
  /// input.
  std::pair<int, Index> base_of(Rank rank, BufferKind buffer) const {
    const auto& chunks = of(rank).chunks;
    if (buffer == BufferKind::scratch) return {2, 0};
    if (!program_.in_place) return {int(buffer), 0};
    if (program_.collective == "allgather" && buffer == BufferKind::input && chunks[1] >= chunks[0] * (rank + 1))
      return {0, rank * chunks[0]};
    if (program_.collective == "reducescatter" && buffer == BufferKind::output && chunks[0] >= chunks[1] * (rank + 1))
      return {0, rank * chunks[1]};
    return {0, 0};
  }
  Index chunks_of(Rank rank, BufferKind buffer) const {
    const Index own = of(rank).chunks[int(buffer)];
    if (buffer != BufferKind::output || own > 0 || !program_.in_place) return own;
    return program_.collective == "reducescatter" ? of(rank).chunks[0] / size() : of(rank).chunks[0];
  }
  int place(Rank rank, BufferKind buffer, Index unit, int launch) const {
    const auto [memory, first] = base_of(rank, buffer);
    Index at = first * options_.units + unit;
    if (memory == 2 && program_.double_scratch && launch % 2 == 1) at += of(rank).chunks[2] * options_.units;
    return first_place_[std::size_t(rank) * 3 + std::size_t(memory)] + int(at);
  }

  const Program& program_;
  const ProgramExploreOptions& options_;
  std::vector<Op> ops_;
  std::vector<std::vector<int>> readers_, writers_;  ///< of each place
  std::vector<std::vector<int>> issuers_, takers_;   ///< of each counter
  std::vector<Index> initial_;                       ///< of each counter
  std::vector<std::vector<int>> threads_of_block_;
  int places_ = 0, threads_ = 0, counters_ = 0;
  std::vector<int> block_rank_;
  std::map<std::pair<Rank, int>, std::vector<int>> blocks_of_launch_;
  std::map<std::pair<Rank, std::int32_t>, int> proxy_threads_;

 private:
  void lay_out() {
    for (Rank rank = 0; rank < size(); ++rank) {
      Index units[3] = {0, 0, 0};
      for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch}) {
        const auto [memory, first] = base_of(rank, buffer);
        units[memory] = std::max(units[memory], (first + chunks_of(rank, buffer)) * options_.units);
      }
      if (program_.double_scratch) units[2] *= 2;
      for (const Index count : units) {
        first_place_.push_back(places_);
        places_ += int(count);
        if (places_ > places_max) throw Unsupported{"too many places"};
      }
    }
  }

  void connect() {
    std::map<std::tuple<int, Rank, Rank, Index>, int> ids;  // kind, from, to, number
    const auto id_of = [&](int kind, Rank from, Rank to, Index number) {
      const auto [at, is_new] = ids.emplace(std::tuple(kind, from, to, number), counters_);
      if (is_new) ++counters_, initial_.push_back(0);
      return at->second;
    };
    for (Rank rank = 0; rank < size(); ++rank)
      for (int kind = 0; kind < 2; ++kind) {
        std::map<Rank, Index> seen;
        for (std::size_t i = 0; i < of(rank).peers[kind].size(); ++i) {
          const Rank peer = of(rank).peers[kind][i];
          const Index number = seen[peer]++;
          out_[{rank, kind, int(i)}] = id_of(kind, rank, peer, number);
          in_[{rank, kind, int(i)}] = id_of(kind, peer, rank, number);
        }
      }
    for (Rank rank = 0; rank < size(); ++rank)
      for (std::size_t i = 0; i < of(rank).semaphores.size(); ++i) {
        semaphores_[{rank, int(i)}] = counters_++;
        initial_.push_back(of(rank).semaphores[i]);
        if (initial_.back() > tokens_max) throw Unsupported{"a semaphore that begins too high"};
      }
  }

  // --- Loops -------------------------------------------------------------------------------------------------------

  static Index divided_up(Index a, Index b) { return (a + b - 1) / b; }
  /// The first loop of the program takes `iterations` turns, and others what that makes theirs.
  Index turn_units(const Pipeline& loop) const {
    const Pipeline* first = nullptr;
    for (const RankProgram& rank : program_.ranks)
      for (const ThreadBlock& block : rank.blocks)
        for (const Step& step : block.steps)
          if (!first) first = step.pipeline.get();
    const Index units = divided_up(first->chunks * options_.units, options_.iterations);
    return std::max<Index>(1, units * loop.unit_bytes / first->unit_bytes);
  }
  Index turns_of(const Pipeline& loop) const {
    return std::max<Index>(1, divided_up(loop.chunks * options_.units, turn_units(loop)));
  }

  // --- Operations --------------------------------------------------------------------------------------------------

  Op& op(int id) { return ops_[std::size_t(id)]; }
  int add(Op op, std::vector<int> before) {
    if (ops_.size() >= operations_max) throw Unsupported{"too many operations"};
    op.before = std::move(before);
    ops_.push_back(std::move(op));
    return int(ops_.size()) - 1;
  }

  struct Building {
    Rank rank;
    int launch, block;
    std::vector<int> threads, tails;  ///< data threads, then those that synchronise
    std::size_t data_threads = 0;
    int plain_steps = 0;
    Index step = 0;
    std::map<std::int32_t, int> rounds;  ///< of barriers
  };

  int build_launch(Rank rank, int launch, int begin) {
    std::vector<int> last = {begin};
    arrivals_.clear();
    resumes_.clear();
    const auto& blocks = of(rank).blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      Building building{.rank = rank, .launch = launch, .block = int(threads_of_block_.size())};
      Index data = 1;
      std::size_t sync = 1;
      const auto look = [&](const Step& step) {
        if (!step.operands.empty()) data = std::max(data, step.operands[0].count * options_.units);
        sync = std::max(sync, step.ids.size());
      };
      for (const Step& step : blocks[b].steps) {
        look(step);
        if (step.pipeline)
          for (const Step& inner : step.pipeline->steps) look(inner);
      }
      if (data > places_max) throw Unsupported{"too many units"};
      building.data_threads = std::size_t(data);
      for (std::size_t i = 0; i < std::size_t(data) + sync; ++i) building.threads.push_back(threads_++);
      building.tails.assign(building.threads.size(), begin);
      threads_of_block_.push_back(building.threads);
      block_rank_.push_back(rank);
      blocks_of_launch_[{rank, launch}].push_back(building.block);
      for (const Step& step : blocks[b].steps) {
        if (step.pipeline) {
          for (Index i = 0; i < turns_of(*step.pipeline); ++i)
            for (const Step& inner : step.pipeline->steps) build(building, inner, step.pipeline.get(), i);
        } else {
          build(building, step, nullptr, 0);
        }
        ++building.step;
      }
      last.insert(last.end(), building.tails.begin(), building.tails.end());
    }
    for (const auto& [barrier, all] : arrivals_) {
      for (const auto& [resume, participants] : resumes_[barrier]) {
        if (int(all.size()) > participants) throw Unsupported{"more blocks at a barrier than it has"};
        auto& needs = ops_[std::size_t(resume)].before;
        needs.insert(needs.end(), all.begin(), all.end());
        if (int(all.size()) < participants) ops_[std::size_t(resume)].counter = never_;
      }
    }
    for (const auto& [channel, tail] : proxy_tails_)
      if (channel.first == rank && options_.between != BetweenLaunches::as_mscclpp) last.push_back(tail);
    std::sort(last.begin(), last.end());
    last.erase(std::unique(last.begin(), last.end()), last.end());
    return add({.act = Act::end, .rank = rank, .launch = launch}, last);
  }

  std::vector<int> all_tails(const Building& b) const {
    std::vector<int> out = b.tails;
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  Op op_of(const Building& b, Act act, int thread = -1) const {
    return {.act = act, .rank = b.rank, .block = b.block, .launch = b.launch, .thread = thread, .step = b.step};
  }
  int& sync_tail(Building& b, std::size_t i) { return b.tails[b.data_threads + i]; }
  int sync_thread(const Building& b, std::size_t i) const { return b.threads[b.data_threads + i]; }

  int push(Building& b, std::int32_t channel, std::vector<int> also = {}) {
    const auto key = std::pair(b.rank, channel);
    const auto [user, is_first] = proxy_users_.emplace(key, b.block - blocks_of_launch_[{b.rank, b.launch}][0]);
    if (!is_first && user->second != b.block - blocks_of_launch_[{b.rank, b.launch}][0])
      throw Unsupported{"a port channel of several blocks"};
    if (!proxy_threads_.contains(key)) proxy_threads_[key] = threads_++;
    also.push_back(sync_tail(b, 0));
    return sync_tail(b, 0) = add(op_of(b, Act::push, sync_thread(b, 0)), std::move(also));
  }
  /// Something that a proxy does after it was asked to.
  int by_proxy(Building& b, std::int32_t channel, Op op, int push) {
    const auto key = std::pair(b.rank, channel);
    op.thread = proxy_threads_[key];
    std::vector<int> before = {push};
    if (const auto tail = proxy_tails_.find(key); tail != proxy_tails_.end()) before.push_back(tail->second);
    if (op.act != Act::write) op.from = push;
    return proxy_tails_[key] = add(std::move(op), std::move(before));
  }

  void build(Building& b, const Step& step, const Pipeline* loop, Index iteration) {
    switch (step.kind) {
      case StepKind::pipeline:
        return;
      case StepKind::nop:
        return meet(b);
      case StepKind::barrier: {
        meet(b, Act::arrive);
        const std::pair<std::int32_t, int> key{step.ids[0], b.rounds[step.ids[0]]++};
        arrivals_[key].push_back(b.tails[0]);
        meet(b);
        resumes_[key].emplace_back(b.tails[0], step.participants);
        return;
      }
      case StepKind::signal:
      case StepKind::relaxed_signal:
        for (std::size_t i = 0; i < step.ids.size(); ++i) {
          Op op = op_of(b, Act::issue, sync_thread(b, i));
          op.counter = out_.at({b.rank, int(step.channel), step.ids[i]});
          op.is_relaxed = step.kind == StepKind::relaxed_signal;
          if (step.channel == ChannelKind::port)
            by_proxy(b, step.ids[i], op, push(b, step.ids[i]));
          else
            sync_tail(b, i) = add(op, {sync_tail(b, i)});
        }
        return;
      case StepKind::wait:
      case StepKind::relaxed_wait:
      case StepKind::acquire:
      case StepKind::release:
        for (std::size_t i = 0; i < step.ids.size(); ++i) {
          Op op = op_of(b, step.kind == StepKind::release ? Act::issue : Act::take, sync_thread(b, i));
          const bool is_semaphore = step.kind == StepKind::acquire || step.kind == StepKind::release;
          op.counter =
              is_semaphore ? semaphores_.at({b.rank, step.ids[i]}) : in_.at({b.rank, int(step.channel), step.ids[i]});
          op.is_relaxed = step.kind == StepKind::relaxed_wait;
          sync_tail(b, i) = add(op, {sync_tail(b, i)});
        }
        return;
      case StepKind::flush:
        if (options_.between == BetweenLaunches::as_mscclpp) return;
        for (const std::int32_t channel : step.ids) flush(b, channel);
        return;
      default:
        return move(b, step, loop, iteration);
    }
  }

  void meet(Building& b, Act act = Act::meet) {
    const int op = add(op_of(b, act), all_tails(b));
    std::fill(b.tails.begin(), b.tails.end(), op);
    b.plain_steps = 0;
  }
  void flush(Building& b, std::int32_t channel) {
    const auto key = std::pair(b.rank, channel);
    if (!proxy_tails_.contains(key)) return;
    Op op = op_of(b, Act::flush, sync_thread(b, 0));
    op.from = proxy_threads_[key];
    sync_tail(b, 0) = add(op, {sync_tail(b, 0), proxy_tails_[key]});
  }

  std::vector<Access> accesses_of(const Building& b, const Operand& operand, OperandShape shape, Index unit) const {
    std::vector<Access> out;
    const Index at = operand.first * options_.units + unit;
    const auto one = [&](Rank rank) { out.push_back({place(rank, operand.buffer, at, b.launch), shape.format}); };
    if (shape.where == Where::here) one(b.rank);
    if (shape.where == Where::peer) one(of(b.rank).remote_buffers[std::size_t(operand.via)].rank);
    if (shape.where == Where::group)
      for (const Rank rank : of(b.rank).switches[std::size_t(operand.via)].ranks) one(rank);
    return out;
  }

  void move(Building& b, const Step& step, const Pipeline* loop, Index iteration) {
    const StepShape& shape = shape_of(step.kind);
    const std::size_t sources = std::size_t(step.sources), targets = step.operands.size() - sources;
    Index begin = 0, end = (step.operands.empty() ? 0 : step.operands[0].count) * options_.units;
    if (loop) {
      const Index unit = turn_units(*loop);
      begin = std::min(end, iteration * unit);
      end = std::min(end, begin + unit);
    }
    if (step.shares > 0) {  // the first shares take what is left over
      const Index each = (end - begin) / step.shares, more = (end - begin) % step.shares;
      begin += step.share * each + std::min<Index>(step.share, more);
      end = begin + each + (step.share < more ? 1 : 0);
    }
    const Index units = end - begin;
    if (units <= 0 && step.kind != StepKind::put_signal && step.kind != StepKind::put_signal_flush) return;
    const bool by_packets =
        (std::string(shape.sources) + std::string(shape.targets)).find_first_of("PQT") != std::string::npos;
    const Index turn = by_packets || units < 2 ? 0 : 1 + (b.plain_steps++ + b.rank) % (units - 1);
    const bool is_port = step.channel == ChannelKind::port && shape.takes(ChannelKind::port);
    const bool is_pairs = shape.pairing == Pairing::pairs;

    const auto read_op = [&](std::size_t first, std::size_t last, Index unit, int thread) {
      Op op = op_of(b, Act::read, thread);
      op.reduction = step.reduction;
      for (std::size_t i = first; i < last; ++i)
        for (const Access& one : accesses_of(b, step.operands[i], shape_of_source(shape, i), begin + unit))
          op.accesses.push_back(one);
      return op;
    };
    const auto write_op = [&](std::size_t first, std::size_t last, Index unit, int thread) {
      Op op = op_of(b, Act::write, thread);
      for (std::size_t i = first; i < last; ++i)
        for (const Access& one : accesses_of(b, step.operands[sources + i], shape_of_target(shape, i), begin + unit))
          op.accesses.push_back(one);
      return op;
    };
    const auto channel_of = [&](std::size_t target) {
      if (!step.ids.empty()) return step.ids[std::min(target, step.ids.size() - 1)];
      const Rank peer = of(b.rank).remote_buffers[std::size_t(step.operands[sources + target].via)].rank;
      const auto& peers = of(b.rank).peers[1];
      const auto found = std::find(peers.begin(), peers.end(), peer);
      if (found == peers.end()) throw Unsupported{"a port put without a channel"};
      return std::int32_t(found - peers.begin());
    };

    if (is_port) {
      std::vector<int> have_come;  // what the block waits for itself
      if (!is_pairs)
        for (Index unit = 0; unit < units; ++unit) {
          int& tail = b.tails[std::size_t(unit)];
          tail = add(read_op(0, sources, unit, b.threads[std::size_t(unit)]), {tail});
          have_come.push_back(tail);
        }
      for (std::size_t i = 0; i < targets; ++i) {
        const std::int32_t channel = channel_of(i);
        const int asked = push(b, channel, have_come);
        for (Index unit = 0; unit < units; ++unit) {
          Op read = is_pairs ? read_op(i, i + 1, unit, -1) : read_op(0, sources, unit, -1);
          for (Access& access : read.accesses)
            if (access.format == OperandFormat::packets) access.format = OperandFormat::raw_packets;
          const int from = by_proxy(b, channel, std::move(read), asked);
          Op write = write_op(i, i + 1, unit, -1);
          write.from = from;
          by_proxy(b, channel, std::move(write), asked);
        }
        if (step.kind == StepKind::put_signal || step.kind == StepKind::put_signal_flush) {
          Op op = op_of(b, Act::issue);
          op.counter = out_.at({b.rank, 1, channel});
          by_proxy(b, channel, op, asked);
        }
        if (step.kind == StepKind::put_signal_flush) flush(b, channel);
      }
      return;
    }
    for (std::size_t i = 0; i < (is_pairs ? targets : 1); ++i)
      for (Index unit = 0; unit < units; ++unit) {
        const auto t = std::size_t((unit + turn) % units);
        int& tail = b.tails[t];
        tail = add(is_pairs ? read_op(i, i + 1, unit, b.threads[t]) : read_op(0, sources, unit, b.threads[t]), {tail});
        Op write = is_pairs ? write_op(i, i + 1, unit, b.threads[t]) : write_op(0, targets, unit, b.threads[t]);
        write.from = tail;
        tail = add(std::move(write), {tail});
      }
  }

  void index() {
    readers_.resize(std::size_t(places_));
    writers_.resize(std::size_t(places_));
    issuers_.resize(std::size_t(counters_));
    takers_.resize(std::size_t(counters_));
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      Op& op = ops_[i];
      if (op.act == Act::begin) {
        const Index units = of(op.rank).chunks[0] * options_.units;
        for (Index u = 0; u < units; ++u)
          op.accesses.push_back({place(op.rank, BufferKind::input, u, 0), OperandFormat::plain});
      }
      if (op.act == Act::end) {
        const Index units = chunks_of(op.rank, BufferKind::output) * options_.units;
        for (Index u = 0; u < units; ++u)
          op.accesses.push_back({place(op.rank, BufferKind::output, u, 0), OperandFormat::plain});
      }
      const bool writes = op.act == Act::write || op.act == Act::begin;
      for (const Access& access : op.accesses)
        (writes ? writers_ : readers_)[std::size_t(access.place)].push_back(int(i));
      if (op.act == Act::issue) issuers_[std::size_t(op.counter)].push_back(int(i));
      if (op.act == Act::take) takers_[std::size_t(op.counter)].push_back(int(i));
    }
    order();
  }

  /// Computes the operations that come after each operation.
  void order() {
    const std::size_t count = ops_.size();
    std::vector<std::vector<int>> next(count);
    std::vector<int> left(count), open;
    for (std::size_t i = 0; i < count; ++i) {
      left[i] = int(ops_[i].before.size());
      if (left[i] == 0) open.push_back(int(i));
      for (const int before : ops_[i].before) next[std::size_t(before)].push_back(int(i));
    }
    std::vector<int> sorted;
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      sorted.push_back(id);
      for (const int after : next[std::size_t(id)])
        if (--left[std::size_t(after)] == 0) open.push_back(after);
    }
    words_ = (count + 63) / 64;
    after_.assign(count * words_, 0);
    for (auto at = sorted.rbegin(); at != sorted.rend(); ++at)
      for (const int after : next[std::size_t(*at)]) {
        Number* const mine = &after_[std::size_t(*at) * words_];
        mine[std::size_t(after) / 64] |= Number(1) << (after % 64);
        for (std::size_t w = 0; w < words_; ++w) mine[w] |= after_[std::size_t(after) * words_ + w];
      }
  }
  std::size_t words_ = 0;
  std::vector<Number> after_;

  std::vector<int> first_place_;
  std::map<std::tuple<Rank, int, int>, int> out_, in_;
  std::map<std::pair<Rank, int>, int> semaphores_;
  std::map<std::pair<Rank, std::int32_t>, int> proxy_tails_, proxy_users_;
  std::map<std::pair<std::int32_t, int>, std::vector<int>> arrivals_;
  std::map<std::pair<std::int32_t, int>, std::vector<std::pair<int, int>>> resumes_;

 public:
  static constexpr int never_ = 1 << 30;
  bool comes_before(int one, int other) const {
    return (after_[std::size_t(one) * words_ + std::size_t(other) / 64] >> (other % 64)) & 1;
  }
};

struct Token {
  ViewPointer known, begun;
};

/// The result of a read, for its write.
struct Taken {
  Number value = 0;
  int flag = no_flag;
  ViewPointer linked;
};

struct State {
  std::vector<bool> done;
  std::vector<std::vector<Message>> places;
  std::vector<ViewPointer> threads, met;  ///< met: of blocks
  std::vector<ViewPointer> begun;         ///< of ranks: what they knew when their launch began
  std::vector<std::vector<Token>> tokens;
  std::vector<Index> taken;
  std::map<int, ViewPointer> asked;  ///< by a push
  std::map<int, Taken> read;         ///< by an operation
  Number outcome = 0;                ///< of all ends, where the collective promises nothing
  std::uint16_t writes = 0;
};

class Explorer {
 public:
  Explorer(const Program& program, const ProgramExploreOptions& options)
      : program_(program), options_(options), machine_(program, options) {}

  ProgramExploration run() {
    State first;
    first.done.assign(machine_.ops_.size(), false);
    first.places.resize(std::size_t(machine_.places_));
    auto view = std::make_shared<View>();
    view->seen.assign(first.places.size(), 0);
    view->executed = view->seen;
    for (std::size_t i = 0; i < first.places.size(); ++i)
      first.places[i].push_back({.value = splitmix64(0xdead0000 + i)});  // what was there before
    nothing_ = view;
    first.threads.assign(std::size_t(machine_.threads_), view);
    first.met.assign(machine_.threads_of_block_.size(), view);
    first.begun.assign(program_.ranks.size(), view);
    first.tokens.resize(std::size_t(machine_.counters_));
    for (std::size_t i = 0; i < first.tokens.size(); ++i)
      first.tokens[i].assign(std::size_t(machine_.initial_[i]), {view, view});
    first.taken.assign(first.tokens.size(), 0);
    open_.push_back(std::move(first));
    while (!open_.empty() && out_.outcome == ProgramExploration::Outcome::right) {
      State state = std::move(open_.back());
      open_.pop_back();
      first_open_ = 0;
      go_on(std::move(state));
    }
    return out_;
  }

 private:
  const Op& op(int id) const { return machine_.ops_[std::size_t(id)]; }

  std::string name(const Op& one) const {
    if (one.block < 0) return fmt::format("the host of rank {} (launch {})", one.rank, one.launch);
    return fmt::format("rank {}, block {}, step {} (launch {})", one.rank,
                       one.block - machine_.blocks_of_launch_.at({one.rank, one.launch})[0], one.step, one.launch);
  }
  void wrong(std::string text) {
    if (out_.outcome == ProgramExploration::Outcome::wrong) return;
    out_.outcome = ProgramExploration::Outcome::wrong;
    out_.text = std::move(text);
  }

  // --- Schedules ---------------------------------------------------------------------------------------------------

  void go_on(State state) {
    while (out_.outcome == ProgramExploration::Outcome::right) {
      const std::vector<int> choice = choose(state);
      if (choice.empty()) return finish(state);
      std::vector<State> next;
      for (const int id : choice) {
        if (choice.size() == 1 && options_of(state, id) == 1) {
          execute(state, id, 0);
          continue;
        }
        const int count = options_of(state, id);
        for (int option = 0; option < count; ++option) {
          State copy = state;
          execute(copy, id, option);
          next.push_back(std::move(copy));
        }
      }
      if (next.empty()) continue;
      for (State& one : next) {
        if (!seen_.insert(hash(one)).second) continue;
        if (++out_.states > options_.states_max) {
          if (out_.outcome == ProgramExploration::Outcome::right) out_.outcome = ProgramExploration::Outcome::undecided;
          return;
        }
        open_.push_back(std::move(one));
      }
      return;
    }
  }

  void finish(const State& state) {
    for (std::size_t i = 0; i < state.done.size(); ++i)
      if (!state.done[i] && std::all_of(op(int(i)).before.begin(), op(int(i)).before.end(),
                                        [&](int p) { return state.done[std::size_t(p)]; }))
        return wrong("it hangs: " + name(op(int(i))));
    if (!outcome_)
      outcome_ = state.outcome;
    else if (*outcome_ != state.outcome)
      wrong("two schedules give different outputs");
  }

  const Message* packet_at(const State& state, const Op& one, const Access& access) const {
    const auto& history = state.places[std::size_t(access.place)];
    const View& view = *state.threads[std::size_t(one.thread)];
    for (std::size_t i = position(history, view.seen[std::size_t(access.place)]); i < history.size(); ++i)
      if (history[i].flag == one.launch) return &history[i];
    return nullptr;
  }

  bool is_enabled(const State& state, int id) const {
    const Op& one = op(id);
    for (const int before : one.before)
      if (!state.done[std::size_t(before)]) return false;
    if (one.counter == Machine::never_) return false;
    if (one.act == Act::take)
      return Index(state.tokens[std::size_t(one.counter)].size()) > state.taken[std::size_t(one.counter)];
    if (one.act == Act::read)
      for (const Access& access : one.accesses)
        if (access.format == OperandFormat::packets && !packet_at(state, one, access)) return false;
    return true;
  }

  /// Operations of which one at least is the next one, whatever else happens: empty where nothing can happen.
  std::vector<int> choose(const State& state) {
    std::vector<int> best;
    while (first_open_ < int(state.done.size()) && state.done[std::size_t(first_open_)]) ++first_open_;
    for (int id = first_open_; id < int(state.done.size()); ++id) {
      if (state.done[std::size_t(id)] || !is_enabled(state, id)) continue;
      std::vector<int> choice = closure(state, id);
      if (choice.size() == 1) return choice;
      if (best.empty() || choice.size() < best.size()) best = std::move(choice);
    }
    return best;
  }

  /// Calls f(operations) with alternatives, each of operations of which one at least must happen before this one can,
  /// until it says that it has enough.
  template <class F>
  void for_each_need(const State& state, int id, F&& f) const {
    const Op& one = op(id);
    if (one.act == Act::take) {
      const auto counter = std::size_t(one.counter);
      Index wanted = state.taken[counter];
      for (const int other : machine_.takers_[counter])
        if (!state.done[std::size_t(other)] && machine_.comes_before(other, id)) ++wanted;
      if (Index(state.tokens[counter].size()) <= wanted && f(machine_.issuers_[counter])) return;
    }
    if (one.act == Act::read)
      for (const Access& access : one.accesses)
        if (access.format == OperandFormat::packets && !packet_at(state, one, access) &&
            f(machine_.writers_[std::size_t(access.place)]))
          return;
    for (const int before : one.before)
      if (!state.done[std::size_t(before)] && f({before})) return;
  }

  /// Returns true when an operation seems possible only after the seed.
  bool is_blocked(const State& state, int seed, int id, std::map<int, bool>& known) const {
    if (id == seed || machine_.comes_before(seed, id)) return true;
    const auto [at, is_new] = known.emplace(id, true);
    if (!is_new) return at->second;
    bool result = false;
    for_each_need(state, id,
                  [&](const std::vector<int>& need) { return result = are_blocked(state, seed, need, known); });
    return known[id] = result;
  }
  bool are_blocked(const State& state, int seed, const std::vector<int>& need, std::map<int, bool>& known) const {
    return std::all_of(need.begin(), need.end(), [&](int other) {
      return state.done[std::size_t(other)] || is_blocked(state, seed, other, known);
    });
  }

  std::vector<int> closure(const State& state, int seed) const {
    std::vector<int> open = {seed}, enabled;
    std::vector<bool> in(state.done.size(), false);
    std::map<int, bool> blocked;
    in[std::size_t(seed)] = true;
    const auto include = [&](const std::vector<int>& more) {
      for (const int id : more)
        if (!state.done[std::size_t(id)] && !in[std::size_t(id)]) {
          in[std::size_t(id)] = true;
          open.push_back(id);
        }
    };
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      const Op& one = op(id);
      if (is_enabled(state, id)) {
        enabled.push_back(id);
        const bool writes = one.act == Act::write || one.act == Act::begin;
        for (const Access& access : one.accesses) {
          include(machine_.writers_[std::size_t(access.place)]);
          if (writes) include(machine_.readers_[std::size_t(access.place)]);
        }
        if (one.act == Act::issue) include(machine_.issuers_[std::size_t(one.counter)]);
        if (one.act == Act::take) include(machine_.takers_[std::size_t(one.counter)]);
        continue;
      }
      if (machine_.comes_before(seed, id) || one.counter == Machine::never_) continue;
      // One of its needs is enough; best one that cannot be met before the seed.
      std::vector<int> wanted;
      for_each_need(state, id, [&](const std::vector<int>& need) {
        const bool is_best = are_blocked(state, seed, need, blocked);
        if (wanted.empty() || is_best) wanted = need;
        return is_best;
      });
      include(wanted);
    }
    return enabled;
  }

  // --- What operations do ------------------------------------------------------------------------------------------

  static std::size_t position(const std::vector<Message>& history, std::uint16_t number) {
    for (std::size_t i = history.size(); i-- > 0;)
      if (history[i].number == number) return i;
    return 0;
  }
  ViewPointer joined(const State& state, const ViewPointer& a, const std::vector<std::uint16_t>* seen,
                     const std::vector<std::uint16_t>* executed) const {
    std::shared_ptr<View> out;
    for (std::size_t i = 0; i < state.places.size(); ++i) {
      const auto later = [&](std::uint16_t mine, std::uint16_t other) {
        return mine != other && position(state.places[i], other) > position(state.places[i], mine);
      };
      if (seen && later((out ? *out : *a).seen[i], (*seen)[i])) {
        if (!out) out = std::make_shared<View>(*a);
        out->seen[i] = (*seen)[i];
      }
      if (executed && later((out ? *out : *a).executed[i], (*executed)[i])) {
        if (!out) out = std::make_shared<View>(*a);
        out->executed[i] = (*executed)[i];
      }
    }
    return out ? ViewPointer(out) : a;
  }
  ViewPointer joined(const State& state, const ViewPointer& a, const ViewPointer& b) const {
    return a == b ? a : joined(state, a, &b->seen, &b->executed);
  }

  /// Writes among which a read may choose, oldest first, each value once.
  std::vector<const Message*> readable(const State& state, const Op& one, const Access& access) const {
    std::vector<const Message*> out;
    const auto& history = state.places[std::size_t(access.place)];
    const View& view = *state.threads[std::size_t(one.thread)];
    for (std::size_t i = position(history, view.seen[std::size_t(access.place)]); i < history.size(); ++i) {
      if (access.format == OperandFormat::packets && history[i].flag != one.launch) continue;
      if (std::none_of(out.begin(), out.end(), [&](const Message* other) {
            return other->value == history[i].value && other->flag == history[i].flag;
          }))
        out.push_back(&history[i]);
    }
    return out;
  }
  /// Where in the history a write may come to stand: at these distances from the end.
  std::size_t writable(const State& state, const View& view, const Access& access, const View* linked) const {
    const auto& history = state.places[std::size_t(access.place)];
    std::size_t after = position(history, view.seen[std::size_t(access.place)]);
    if (linked) after = std::max(after, position(history, linked->executed[std::size_t(access.place)]));
    if (access.format != OperandFormat::plain)
      after = std::max(after, position(history, view.executed[std::size_t(access.place)]));
    return history.size() - after;
  }

  ViewPointer view_of(const State& state, const Op& one) const {
    if (one.act == Act::begin) return between_launches(state, one);
    return state.threads[std::size_t(one.thread)];
  }
  int options_of(const State& state, int id) const {
    const Op& one = op(id);
    int count = 1;
    if (one.act == Act::read) {
      for (const Access& access : one.accesses) count *= int(readable(state, one, access).size());
    } else if (one.act == Act::write || one.act == Act::begin) {
      const ViewPointer view = view_of(state, one);
      const View* const linked = one.act == Act::write ? state.read.at(one.from).linked.get() : nullptr;
      for (const Access& access : one.accesses)
        count *= int(std::min<std::size_t>(8, writable(state, *view, access, linked)));
    }
    return std::clamp(count, 1, 64);
  }

  void append(State& state, ViewPointer& view, const Access& access, Message message, std::size_t from_end) {
    auto& history = state.places[std::size_t(access.place)];
    message.number = ++state.writes;
    history.insert(history.end() - std::ptrdiff_t(from_end), message);
    auto next = std::make_shared<View>(*view);
    next->seen[std::size_t(access.place)] = message.number;
    if (position(history, next->executed[std::size_t(access.place)]) < history.size() - 1 - from_end)
      next->executed[std::size_t(access.place)] = message.number;
    view = std::move(next);
  }

  /// Fences: what has been executed is seen, but not where MSCCL++ launches.
  ViewPointer between_launches(const State& state, const Op& one) const {
    ViewPointer all = state.begun[std::size_t(one.rank)];
    const auto add = [&](Rank rank, int launch) {
      if (const auto blocks = machine_.blocks_of_launch_.find({rank, launch});
          blocks != machine_.blocks_of_launch_.end())
        for (const int block : blocks->second)
          for (const int thread : machine_.threads_of_block_[std::size_t(block)])
            all = joined(state, all, state.threads[std::size_t(thread)]);
      for (const auto& [channel, thread] : machine_.proxy_threads_)
        if (channel.first == rank && options_.between != BetweenLaunches::as_mscclpp)
          all = joined(state, all, state.threads[std::size_t(thread)]);
    };
    const int over = one.act == Act::end ? one.launch : one.launch - 1;
    if (options_.between == BetweenLaunches::all_ranks_meet)
      for (Rank rank = 0; rank < machine_.size(); ++rank) {
        all = joined(state, all, state.begun[std::size_t(rank)]);
        add(rank, over);
      }
    else
      add(one.rank, over);
    auto fenced = std::make_shared<View>(*all);
    if (options_.between == BetweenLaunches::as_mscclpp) {
      for (std::size_t i = 0; i < fenced->seen.size(); ++i)
        if (position(state.places[i], fenced->seen[i]) > position(state.places[i], fenced->executed[i]))
          fenced->executed[i] = fenced->seen[i];
      return fenced;
    }
    for (std::size_t i = 0; i < fenced->seen.size(); ++i)
      if (position(state.places[i], fenced->executed[i]) > position(state.places[i], fenced->seen[i]))
        fenced->seen[i] = fenced->executed[i];
    fenced->executed = fenced->seen;
    return fenced;
  }

  void begin(State& state, const Op& one, const ViewPointer& view) const {
    state.begun[std::size_t(one.rank)] = view;
    const auto blocks = machine_.blocks_of_launch_.find({one.rank, one.launch});
    if (blocks == machine_.blocks_of_launch_.end()) return;
    for (const int block : blocks->second) {
      state.met[std::size_t(block)] = view;
      for (const int thread : machine_.threads_of_block_[std::size_t(block)]) state.threads[std::size_t(thread)] = view;
    }
  }

  void execute(State& state, int id, int option) {
    const Op& one = op(id);
    state.done[std::size_t(id)] = true;
    const auto choose_of = [&](std::size_t count) {
      const std::size_t chosen = std::size_t(option) % count;
      option /= int(count);
      return chosen;
    };
    if (one.thread >= 0 && one.from >= 0 && op(one.from).act == Act::push) {
      ViewPointer& mine = state.threads[std::size_t(one.thread)];
      if (one.act == Act::read || one.act == Act::issue) mine = joined(state, mine, state.asked.at(one.from));
    }
    switch (one.act) {
      case Act::begin: {
        ViewPointer view = between_launches(state, one);
        for (std::size_t i = 0; i < one.accesses.size(); ++i) {
          const Access& access = one.accesses[i];
          append(state, view, access, {.value = input(one.rank, one.launch, Index(i))},
                 choose_of(std::min<std::size_t>(8, writable(state, *view, access, nullptr))));
        }
        return begin(state, one, view);
      }
      case Act::share: {
        ViewPointer view = state.begun[std::size_t(one.rank)];
        for (const ViewPointer& other : state.begun) view = joined(state, view, other);
        return begin(state, one, view);
      }
      case Act::end:
        return check(state, one);
      case Act::arrive:
      case Act::meet: {
        ViewPointer view = state.met[std::size_t(one.block)];
        for (const int thread : machine_.threads_of_block_[std::size_t(one.block)])
          view = joined(state, view, state.threads[std::size_t(thread)]);
        // After a barrier, each block has what all blocks had when they arrived.
        for (const int before : one.before)
          if (op(before).act == Act::arrive) view = joined(state, view, state.met[std::size_t(op(before).block)]);
        state.met[std::size_t(one.block)] = view;
        for (const int thread : machine_.threads_of_block_[std::size_t(one.block)])
          state.threads[std::size_t(thread)] = view;
        return;
      }
      case Act::issue: {
        const bool is_proxy = one.from >= 0;
        const ViewPointer known = is_proxy ? state.threads[std::size_t(one.thread)] : state.met[std::size_t(one.block)];
        const ViewPointer begun = state.begun[std::size_t(one.rank)];
        Token token{known, begun};
        if (one.is_relaxed) {
          auto relaxed = std::make_shared<View>(*begun);
          relaxed->executed = known->executed;
          token.known = relaxed;
        }
        state.tokens[std::size_t(one.counter)].push_back(token);
        return;
      }
      case Act::take: {
        const Index number = state.taken[std::size_t(one.counter)]++;
        ViewPointer& mine = state.threads[std::size_t(one.thread)];
        for (Index i = 0; i <= number; ++i) {
          const Token& token = state.tokens[std::size_t(one.counter)][std::size_t(i)];
          mine = joined(state, mine, one.is_relaxed ? &token.begun->seen : &token.known->seen, &token.known->executed);
        }
        return;
      }
      case Act::push:
        state.asked[id] = state.met[std::size_t(one.block)];
        // A block that has waited for packets meets before it asks for them to be sent.
        for (const int before : one.before)
          if (op(before).act == Act::read)
            state.asked[id] = joined(state, state.asked[id], state.threads[std::size_t(op(before).thread)]);
        return;
      case Act::flush: {
        ViewPointer& mine = state.threads[std::size_t(one.thread)];
        mine = joined(state, mine, state.threads[std::size_t(one.from)]);
        return;
      }
      case Act::read: {
        Number sum = 0;
        int flag = no_flag;
        bool is_first = true;
        ViewPointer& mine = state.threads[std::size_t(one.thread)];
        ViewPointer linked;
        for (const Access& access : one.accesses) {
          const auto messages = readable(state, one, access);
          if (access.format == OperandFormat::packets &&
              state.places[std::size_t(access.place)].back().flag != one.launch)
            wrong("packets are overwritten before they are read: " + name(one));
          const Message message = *messages[choose_of(messages.size())];
          auto next = std::make_shared<View>(*mine);
          next->seen[std::size_t(access.place)] = message.number;
          mine = std::move(next);
          if (access.format == OperandFormat::packets)
            mine = joined(state, mine, &message.begun->seen, &message.executed->executed);
          if (access.format != OperandFormat::plain && message.linked)
            linked = linked ? joined(state, linked, nullptr, &message.linked->executed) : message.linked;
          flag = message.flag;
          if (is_first)
            sum = message.value;
          else
            sum = combined(one.reduction, sum, message.value);
          is_first = false;
        }
        state.read[id] = {sum, flag, linked};
        return;
      }
      case Act::write: {
        const Taken taken = state.read.at(one.from);
        ViewPointer& mine = state.threads[std::size_t(one.thread)];
        const ViewPointer before = mine;
        ViewPointer linked = taken.linked ? taken.linked : nothing_;
        const bool is_raw = std::any_of(op(one.from).accesses.begin(), op(one.from).accesses.end(),
                                        [](const Access& a) { return a.format == OperandFormat::raw_packets; });
        for (const Access& access : one.accesses) {
          Message message{.value = taken.value};
          if (access.format != OperandFormat::plain) {
            message.flag = is_raw ? taken.flag : one.launch;
            message.begun = state.begun[std::size_t(one.rank)];
            message.executed = before;
            message.linked = linked;
          }
          append(state, mine, access, message,
                 choose_of(std::min<std::size_t>(8, writable(state, *mine, access, taken.linked.get()))));
          auto next = std::make_shared<View>(*linked);
          next->executed[std::size_t(access.place)] = mine->seen[std::size_t(access.place)];
          linked = std::move(next);
        }
        state.read.erase(one.from);
        return;
      }
    }
  }

  // --- What comes out ----------------------------------------------------------------------------------------------

  /// In place of minima and maxima, what shows each number that is missing, and not only the extreme ones.
  static Number combined(Reduction reduction, Number a, Number b) {
    if (reduction == Reduction::minimum) return a & b;
    if (reduction == Reduction::maximum) return a | b;
    return a + b;
  }
  static Number input(Rank rank, int launch, Index unit) {
    return splitmix64(Number(rank) * 1'000'003 + Number(launch) * 7919 + Number(unit) + 17);
  }
  /// Unit `unit` of the output of a rank, from the words of the collective; none where any schedule decides.
  std::optional<Number> promised(Rank rank, int launch, Index unit, Rank source) const {
    const std::string& name = program_.collective;
    const Rank ranks = machine_.size();
    const Index units = machine_.of(0).chunks[0] * options_.units;  // of an input
    const auto of_all = [&](Index at) {
      Number sum = input(0, launch, at);
      for (Rank peer = 1; peer < ranks; ++peer) {
        const Number other = input(peer, launch, at);
        sum = combined(reduction(), sum, other);
      }
      return sum;
    };
    if (name == "allreduce") return of_all(unit);
    if (name == "reducescatter") return of_all(rank * (units / ranks) + unit);
    if (name == "allgather") return input(Rank(unit / units), launch, unit % units);
    if (name == "alltoall") {
      const Index block = units / ranks;
      return input(Rank(unit / block), launch, rank * block + unit % block);
    }
    if (name == "sendrecv" || name == "broadcast") return input(source, launch, unit);
    return std::nullopt;
  }
  Reduction reduction() const {
    for (const RankProgram& rank : program_.ranks)
      for (const ThreadBlock& block : rank.blocks)
        for (const Step& step : block.steps)
          if (shape_of(step.kind).pairing == Pairing::all && step.sources > 1) return step.reduction;
    return Reduction::sum;
  }

  void check(State& state, const Op& one) {
    const ViewPointer view = between_launches(state, one);
    Rank source = 0;
    for (std::size_t i = 0; i < one.accesses.size(); ++i) {
      const auto& history = state.places[std::size_t(one.accesses[i].place)];
      const std::size_t first = position(history, view->seen[std::size_t(one.accesses[i].place)]);
      if (i == 0)
        for (Rank rank = 0; rank < machine_.size(); ++rank)
          if (history.back().value == input(rank, one.launch, 0)) source = rank;
      const auto wanted = promised(one.rank, one.launch, Index(i), source);
      for (std::size_t k = first; k < history.size(); ++k)
        if (history[k].value != wanted.value_or(history.back().value))
          return wrong(
              fmt::format("unit {} of the output of rank {} can be wrong in launch {}", i, one.rank, one.launch));
      if (!wanted)
        state.outcome +=
            splitmix64(history.back().value + splitmix64(i * 64 + Number(one.rank) * 8 + Number(one.launch)));
    }
  }

  static std::pair<Number, Number> hash(const State& state) {
    Number a = 1, b = 2;
    const auto mix = [&](Number value) {
      a = splitmix64(a + value);
      b = splitmix64(b ^ (value * 0x9e3779b97f4a7c15u));
    };
    // The numbers of writes differ between schedules; their positions do not.
    std::map<const View*, Number> views;
    const auto view = [&](const ViewPointer& one) {
      if (!one) return;
      const auto [at, is_new] = views.emplace(one.get(), 0);
      if (is_new)
        for (std::size_t i = 0; i < state.places.size(); ++i)
          at->second = splitmix64(at->second + 64 * position(state.places[i], one->seen[i]) +
                                  position(state.places[i], one->executed[i]));
      mix(at->second);
    };
    for (const bool done : state.done) mix(done);
    for (const auto& history : state.places) {
      mix(history.size());
      for (const Message& message : history) {
        mix(message.value), mix(Number(message.flag));
        view(message.begun), view(message.executed), view(message.linked);
      }
    }
    for (const auto* const list : {&state.threads, &state.begun, &state.met})
      for (const ViewPointer& one : *list) view(one);
    for (std::size_t i = 0; i < state.tokens.size(); ++i) {
      mix(Number(state.taken[i]));
      for (const Token& token : state.tokens[i]) view(token.known), view(token.begun);
    }
    for (const auto& [id, one] : state.asked) mix(Number(id)), view(one);
    for (const auto& [id, value] : state.read) mix(Number(id)), mix(value.value), view(value.linked);
    mix(state.outcome);
    return {a, b};
  }
  struct PairHash {
    std::size_t operator()(const std::pair<Number, Number>& pair) const noexcept { return pair.first; }
  };

  const Program& program_;
  const ProgramExploreOptions& options_;
  Machine machine_;
  std::vector<State> open_;
  int first_open_ = 0;  ///< before it, all operations of the state that goes on have been done
  std::unordered_set<std::pair<Number, Number>, PairHash> seen_;
  std::optional<Number> outcome_;
  ViewPointer nothing_;
  ProgramExploration out_;
};

}  // namespace

ProgramExploration explore(const Program& program, const ProgramExploreOptions& options) {
  try {
    return Explorer(program, options).run();
  } catch (const Unsupported& why) {
    return {.outcome = ProgramExploration::Outcome::unsupported, .text = why.why};
  }
}

}  // namespace tranship::test
