#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/happens_before.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/program/symbolic_value.hpp>
#include <tranship/program/verify.hpp>

namespace tranship {
namespace {

/// How chunks are cut for one execution: into so many units, and loops into so many iterations.
struct Cut {
  Index units = 1;
  Index iterations = 1;
};

/// Whether a rank launches again at once, or all ranks meet before.
enum class Relaunch : std::uint8_t { at_once, together };

/// Who did something, and where it stands in the program.
struct Stamp {
  Timeline timeline = -1;
  Time time = 0;
  int block = -1;  ///< the block that asked for it: of all ranks, or -1 for the host
  Index step = -1;
  int launch = 0;
  // Of an access: where its first unit lies, of how many, and whether each thread takes a packet at a time.
  Index first = 0, units = 0;
  bool by_packets = false;
};

/// A step whose unit e + `between` has been executed before unit e of what has the link: packets have led from one to
/// the other, unit by unit.
struct Link {
  Timeline timeline;
  Time time;
  Index between;
  bool operator<(const Link& other) const {
    return std::tie(timeline, time, between) < std::tie(other.timeline, other.time, other.between);
  }
};
using Links = std::shared_ptr<const std::vector<Link>>;

/// A write of packets, as their readers learn of it.
struct PacketWrite {
  Snapshot of_all;   ///< learned with all of its packets
  Snapshot of_each;  ///< learned with any of them: that the launch of the writer has begun
  Index units = 0;
};

/// Some units of a memory, which have been accessed alike.
struct Cell {
  Index end = 0;
  Stamp writer;
  std::vector<Stamp> reads;  ///< since it was written, one for each timeline
  Value value;
  std::vector<Stamp> twins;  ///< those that have written the same again
  int packets_of = -1;       ///< the launch of the packets that it holds
  std::shared_ptr<const PacketWrite> packets;
  Links links;
};

class Memory {
 public:
  explicit Memory(Index units) {
    if (units > 0) cells_.emplace(0, Cell{.end = units});
  }
  /// Calls f(begin, cell) for what lies in [begin, end), cut at both.
  template <class F>
  void visit(Index begin, Index end, F&& f) {
    if (begin >= end) return;
    auto at = cut(begin);
    cut(end);
    for (; at != cells_.end() && at->first < end; ++at) f(at->first, at->second);
  }
  template <class F>
  bool all(Index begin, Index end, F&& f) const {
    auto at = cells_.upper_bound(begin);
    for (at = at == cells_.begin() ? at : std::prev(at); at != cells_.end() && at->first < end; ++at)
      if (at->second.end > begin && !f(at->second)) return false;
    return true;
  }

 private:
  std::map<Index, Cell>::iterator cut(Index at) {
    auto found = cells_.upper_bound(at);
    if (found == cells_.begin()) return found;
    --found;
    if (found->first == at) return found;
    if (found->second.end <= at) return std::next(found);
    Cell rest = found->second;
    found->second.end = at;
    return cells_.emplace(at, std::move(rest)).first;
  }

  std::map<Index, Cell> cells_;
};

/// Signals of one direction of a channel, or releases of a semaphore.
class Counter {
 public:
  /// So many a launch by this block.
  void expect(int block) { ++source_of(block).each_launch, ++each_launch_; }
  void begin_at(Index initial) { issued_ = initial_ = initial; }
  void issue(int block, Snapshot snapshot) {
    source_of(block).sent.push_back(std::move(snapshot));
    ++issued_;
  }
  Index issued() const { return issued_; }
  Index taken() const { return taken_; }
  bool has_next() const { return issued_ > taken_; }

  /// Takes the next one and calls learn(snapshot) for what must have been sent by then, whatever the order of the
  /// senders.
  template <class F>
  void take(F&& learn) {
    const Index wanted = ++taken_ - initial_;
    if (wanted <= 0 || each_launch_ == 0) return;
    const Index launches = (wanted + each_launch_ - 1) / each_launch_;
    for (Source& source : sources_) {
      const Index others = (each_launch_ - source.each_launch) * launches;
      const Index sure = wanted - others;
      if (sure <= source.learned) continue;
      const auto last = static_cast<std::size_t>(sure - source.learned - 1);
      if (last >= source.sent.size()) continue;
      learn(source.sent[last]);
      source.sent.erase(source.sent.begin(), source.sent.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      source.learned = sure;
    }
  }
  /// The blocks that issue, and how often in each launch.
  std::vector<std::pair<int, Index>> sources() const {
    std::vector<std::pair<int, Index>> out;
    for (const Source& source : sources_) out.emplace_back(source.block, source.each_launch);
    return out;
  }
  Index each_launch() const { return each_launch_; }

  std::optional<Stamp> last_taker;
  std::vector<int> waiting;  ///< blocks

 private:
  struct Source {
    int block;
    Index each_launch = 0;
    Index learned = 0;
    std::deque<Snapshot> sent;  ///< since `learned`
  };
  Source& source_of(int block) {
    for (Source& source : sources_)
      if (source.block == block) return source;
    return sources_.emplace_back(Source{.block = block});
  }

  std::vector<Source> sources_;
  Index each_launch_ = 0, initial_ = 0, issued_ = 0, taken_ = 0;
};

struct Barrier {
  std::vector<int> arrived;
  Index rounds = 0;
};

struct Block {
  Rank rank = 0;
  int index = 0;
  Timeline timeline = 0;
  const std::vector<Step>* steps = nullptr;
  std::size_t at = 0, inner = 0;
  Index iteration = 0;
  int launch = 0;
  bool is_done = false, is_queued = false, has_arrived = false;
  Time time = 0;        ///< actions so far
  Time met = 0;         ///< those before its threads met last
  Index units_max = 0;  ///< of the steps since then, the largest
  Knowledge knowledge{nullptr};
  std::size_t waited = 0;  ///< how many ids of its step it has waited for
};

struct Proxy {
  Timeline timeline = 0;
  Time time = 0;
  Knowledge knowledge{nullptr};
};

class Execution {
 public:
  Execution(const Program& program, const VerifyOptions& options, const CollectiveMeaning& meaning, Cut cut,
            Relaunch relaunch, Verification& out)
      : program_(program), options_(options), meaning_(meaning), cut_(cut), relaunch_(relaunch), out_(out) {
    set_up();
  }

  void run() {
    for (Rank rank = 0; rank < size(); ++rank) act_between_launches(rank, 0);
    if (relaunch_ == Relaunch::together) share_all();
    for (Rank rank = 0; rank < size(); ++rank) begin_launch(rank, 0);
    while (!queue_.empty()) {
      const int block = queue_.front();
      queue_.pop_front();
      blocks_[std::size_t(block)].is_queued = false;
      advance(block);
    }
    for (const Block& block : blocks_)
      if (!block.is_done) return report_deadlock();
    report_unpaired();
  }

 private:
  // --- Set-up ------------------------------------------------------------------------------------------------------

  Rank size() const { return static_cast<Rank>(program_.ranks.size()); }
  const RankProgram& of(Rank rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }

  void set_up() {
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
    timelines += size();
    initial_ = std::make_shared<Clock>(static_cast<std::size_t>(timelines));
    for (Proxy& proxy : proxies_) proxy.knowledge.reset(initial_);
    hosts_.assign(std::size_t(size()), {.time = 0, .clock = initial_});

    for (Rank rank = 0; rank < size(); ++rank)
      for (int memory = 0; memory < buffer_kinds; ++memory) {
        Index units = memory_chunks(program_, rank, memory) * cut_.units;
        if (memory == memory_of_scratch && program_.double_scratch) units *= 2;
        memories_.emplace_back(units);
      }
    uses_of_scratch_.assign(std::size_t(size()), 0);
    set_up_channels();
    waiting_for_packets_.resize(std::size_t(size()));
    barriers_.resize(std::size_t(size()));
    for (std::size_t block = 0; block < blocks_.size(); ++block)
      for (const Step& step : *blocks_[block].steps) count_signals(static_cast<int>(block), step, 1);
    check_barriers();
  }

  /// The k-th channel from r to p and the k-th one from p to r are two ends: what one sends the other takes.
  void set_up_channels() {
    for (int kind = 0; kind < 2; ++kind) {
      std::map<std::tuple<Rank, Rank, Index>, int> inbound;  // of rank, from peer, number among those
      for (Rank rank = 0; rank < size(); ++rank) {
        std::map<Rank, Index> seen;
        first_channel_[kind].push_back(static_cast<int>(channel_in_[kind].size()));
        for (const Rank peer : of(rank).peers[kind]) {
          inbound[{rank, peer, seen[peer]++}] = static_cast<int>(counters_.size());
          channel_in_[kind].push_back(static_cast<int>(counters_.size()));
          counters_.emplace_back();
        }
      }
      for (Rank rank = 0; rank < size(); ++rank) {
        std::map<Rank, Index> seen;
        for (const Rank peer : of(rank).peers[kind]) {
          const auto at =
              inbound.emplace(std::tuple(peer, rank, seen[peer]++), static_cast<int>(counters_.size())).first;
          if (at->second == static_cast<int>(counters_.size())) counters_.emplace_back();  // no channel leads back
          channel_out_[kind].push_back(at->second);
        }
      }
    }
    for (Rank rank = 0; rank < size(); ++rank) {
      first_semaphore_.push_back(static_cast<int>(counters_.size()));
      for (const Index value : of(rank).semaphores) counters_.emplace_back().begin_at(value);
    }
  }

  int counter_out(Rank rank, ChannelKind kind, std::int32_t id) const {
    const auto k = static_cast<std::size_t>(kind);
    return channel_out_[k][static_cast<std::size_t>(first_channel_[k][std::size_t(rank)]) + std::size_t(id)];
  }
  int counter_in(Rank rank, ChannelKind kind, std::int32_t id) const {
    const auto k = static_cast<std::size_t>(kind);
    return channel_in_[k][static_cast<std::size_t>(first_channel_[k][std::size_t(rank)]) + std::size_t(id)];
  }
  int semaphore(Rank rank, std::int32_t id) const { return first_semaphore_[std::size_t(rank)] + id; }
  Counter& counter(int id) { return counters_[std::size_t(id)]; }

  void count_signals(int block, const Step& step, Index times) {
    const Rank rank = blocks_[std::size_t(block)].rank;
    if (step.pipeline)
      for (const Step& inner : step.pipeline->steps) count_signals(block, inner, cut_.iterations);
    for (Index i = 0; i < times; ++i) {
      if (signals(step.kind))
        for (const std::int32_t id : step.ids) counter(counter_out(rank, step.channel, id)).expect(block);
      if (step.kind == StepKind::release)
        for (const std::int32_t id : step.ids) counter(semaphore(rank, id)).expect(block);
    }
  }

  void check_barriers() {
    for (Rank rank = 0; rank < size(); ++rank) {
      std::map<int, std::map<int, std::set<int>>> users;  // of a barrier, by the number of blocks that it names
      const auto add = [&](int block, const Step& step) {
        if (step.kind == StepKind::barrier) users[step.ids[0]][step.participants].insert(block);
      };
      const RankProgram& program = of(rank);
      for (std::size_t block = 0; block < program.blocks.size(); ++block)
        for (const Step& step : program.blocks[block].steps) {
          add(static_cast<int>(block), step);
          if (step.pipeline)
            for (const Step& inner : step.pipeline->steps) add(static_cast<int>(block), inner);
        }
      for (const auto& [id, by_size] : users) {
        std::set<int> all;
        for (const auto& [participants, blocks] : by_size) all.insert(blocks.begin(), blocks.end());
        if (by_size.size() > 1 || static_cast<int>(all.size()) != by_size.begin()->first)
          found(Finding::Kind::unproved, rank, -1, -1,
                fmt::format("barrier {} is one of {} blocks, and {} blocks come to it", id, by_size.begin()->first,
                            all.size()));
      }
    }
  }

  // --- Reports -----------------------------------------------------------------------------------------------------

  void found(Finding::Kind kind, Rank rank, int block, Index step, std::string text) {
    if (!said_.insert({kind, rank, block, step}).second) return;
    ++out_.found;
    if (out_.findings.size() < options_.findings_max)
      out_.findings.push_back({.kind = kind, .rank = rank, .block = block, .step = step, .text = std::move(text)});
  }

  std::string name(const Block& block, Index step) const {
    const auto& steps = *block.steps;
    if (step < 0 || static_cast<std::size_t>(step) >= steps.size())
      return fmt::format("rank {}, block {}, at its end", block.rank, block.index);
    const Step& one = steps[std::size_t(step)];
    const std::string line = one.line >= 0 ? fmt::format(", line {}", one.line) : "";
    return fmt::format("rank {}, block {}, step {} ({}{})", block.rank, block.index, step, shape_of(one.kind).word,
                       line);
  }
  std::string name(const Stamp& stamp) const {
    if (stamp.block < 0) return fmt::format("the host of rank {}", stamp.timeline - first_host_);
    const Block& block = blocks_[std::size_t(stamp.block)];
    std::string text = name(block, stamp.step);
    if (stamp.timeline != block.timeline) text += ", carried out by its port channel";
    return text;
  }
  std::string place_text(Rank rank, int memory, Index begin, Index end) const {
    const char* const names[] = {program_.in_place ? "data" : "input", "output", "scratch"};
    const Index units = cut_.units;
    return fmt::format("chunk {}{} of the {} of rank {}", begin / units,
                       (end - 1) / units == begin / units ? "" : fmt::format(" to {}", (end - 1) / units),
                       names[memory], rank);
  }

  static const char* verb(bool writes) { return writes ? "writes" : "reads"; }

  void report_race(const Stamp& now, bool writes, const Stamp& before, bool wrote, Rank rank, int memory, Index begin,
                   Index end) {
    const bool same_block = now.timeline == before.timeline;
    Rank at = rank;
    int block = -1;
    if (now.block >= 0) at = blocks_[std::size_t(now.block)].rank, block = blocks_[std::size_t(now.block)].index;
    const std::string launches =
        now.launch == before.launch ? "" : fmt::format(" (launches {} and {})", before.launch, now.launch);
    found(same_block ? Finding::Kind::missing_meeting : Finding::Kind::race, at, block, now.step,
          fmt::format("{} {} {}, which {} {}: {}{}", name(now), verb(writes), place_text(rank, memory, begin, end),
                      name(before), verb(wrote),
                      same_block ? "the threads of the block do not meet in between" : "nothing orders the two",
                      launches));
  }

  // --- Knowledge ---------------------------------------------------------------------------------------------------

  struct Actor {
    Stamp stamp;
    const Knowledge* knowledge;
    Time met;  ///< own actions before this one are over
  };

  bool follows(const Actor& actor, const Stamp& before, bool strongly, const Links& links = nullptr) const {
    if (before.timeline < 0) return true;
    const Stamp& now = actor.stamp;
    if (before.timeline == now.timeline) {
      if (before.time < actor.met || before.time == now.time) return true;
      // Each thread takes the same packets in both.
      if (before.by_packets && now.by_packets && before.first == now.first && before.units == now.units) return true;
    }
    if (links &&
        std::binary_search(links->begin(), links->end(), Link{before.timeline, before.time, now.first - before.first}))
      return true;
    return strongly ? actor.knowledge->knows_strongly(before.timeline, before.time)
                    : actor.knowledge->knows_weakly(before.timeline, before.time);
  }

  static Snapshot published_by(const Block& block) {
    return {.strong_of = block.knowledge.clock(),
            .weak_of = block.knowledge.clock(),
            .timeline = block.timeline,
            .strong_time = block.met,
            .weak_time = block.met};
  }
  /// What a relaxed signal publishes: what its rank knew when the launch began.
  Snapshot executed_by(const Block& block) const {
    const Host& host = hosts_[std::size_t(block.rank)];
    return {.strong_of = host.clock,
            .weak_of = block.knowledge.clock(),
            .timeline = block.timeline,
            .strong_time = 0,
            .weak_time = block.met};
  }
  Snapshot known_by(const Proxy& proxy) const {
    return {.strong_of = proxy.knowledge.clock(),
            .weak_of = proxy.knowledge.clock(),
            .timeline = proxy.timeline,
            .strong_time = proxy.time,
            .weak_time = proxy.time};
  }
  Proxy& proxy_of(Rank rank, std::int32_t channel) {
    return proxies_[std::size_t(first_proxy_[std::size_t(rank)]) + std::size_t(channel)];
  }

  static void meet(Block& block) {
    block.knowledge.learn();
    block.met = block.time;
    block.units_max = 0;
  }

  // --- Launches ----------------------------------------------------------------------------------------------------

  struct Host {
    Time time = 0;
    ClockPointer clock;  ///< what all blocks knew at the beginning of the launch
  };

  void queue(int block) {
    Block& one = blocks_[std::size_t(block)];
    if (one.is_queued || one.is_done) return;
    one.is_queued = true;
    queue_.push_back(block);
  }

  /// A launch begins after the one before has ended on this rank, with fences that make all known.
  void act_between_launches(Rank rank, int launch) {
    Host& host = hosts_[std::size_t(rank)];
    const int first = first_block_[std::size_t(rank)], last = first_block_[std::size_t(rank) + 1];
    auto clock = std::make_shared<Clock>(*host.clock);
    for (int i = first; i < last; ++i) {
      Block& block = blocks_[std::size_t(i)];
      meet(block);
      Knowledge::join(*clock, published_by(block));
    }
    for (std::size_t i = 0; i < of(rank).peers[1].size(); ++i)
      Knowledge::join(*clock, known_by(proxy_of(rank, static_cast<std::int32_t>(i))));
    clock->strong = clock->weak;
    const Knowledge knowledge(clock);
    const Actor actor{.stamp = {.timeline = first_host_ + rank, .time = host.time, .launch = launch},
                      .knowledge = &knowledge,
                      .met = host.time};
    if (launch > 0) read_outputs(rank, launch - 1, actor);
    if (launch < options_.launches) write_inputs(rank, launch, actor);
    ++host.time;
    clock->strong[std::size_t(actor.stamp.timeline)] = clock->weak[std::size_t(actor.stamp.timeline)] = host.time;
    host.clock = clock;
  }

  void begin_launch(Rank rank, int launch) {
    const ClockPointer& clock = hosts_[std::size_t(rank)].clock;
    const int first = first_block_[std::size_t(rank)], last = first_block_[std::size_t(rank) + 1];
    const bool is_over = launch == options_.launches;
    for (int i = first; i < last; ++i) {
      Block& block = blocks_[std::size_t(i)];
      block.knowledge.reset(clock);
      block.at = block.inner = block.waited = 0;
      block.iteration = 0;
      block.launch = launch;
      block.is_done = is_over;
      if (!is_over) queue(i);
    }
    running_.resize(std::size_t(size()));
    running_[std::size_t(rank)] = last - first;
    if (!is_over && first == last) end_launch(rank, launch);
  }

  /// Goes on with the next launch, at once, or when all ranks have come so far; the hosts act in between.
  void end_launch(Rank rank, int launch) {
    if (relaunch_ == Relaunch::at_once) {
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

  /// All ranks meet.
  void share_all() {
    auto all = std::make_shared<Clock>(*initial_);
    for (const Host& host : hosts_)
      Knowledge::join(*all, {.strong_of = host.clock, .weak_of = host.clock, .timeline = first_host_});
    for (Block& block : blocks_) {
      meet(block);
      Knowledge::join(*all, published_by(block));
    }
    for (const Proxy& proxy : proxies_) Knowledge::join(*all, known_by(proxy));
    all->strong = all->weak;
    for (Host& host : hosts_) host.clock = all;
  }

  Memory& memory_of(Rank rank, int memory) { return memories_[std::size_t(rank) * buffer_kinds + std::size_t(memory)]; }

  void write_inputs(Rank rank, int launch, const Actor& actor) {
    const BufferPlace place = place_of(program_, rank, BufferKind::input);
    const Index begin = place.first_chunk * cut_.units, count = of(rank).chunks[0] * cut_.units;
    write_plain(rank, place.memory, begin, begin + count, actor,
                [&](Index) { return Value{.entry = values_.input(rank, launch), .displacement = -begin}; });
  }

  void read_outputs(Rank rank, int launch, const Actor& actor) {
    const BufferPlace place = place_of(program_, rank, BufferKind::output);
    const Index promised = meaning_.promised_chunks(rank);
    const Index chunks = std::max(promised, of(rank).chunks[1]);
    const Index begin = place.first_chunk * cut_.units;
    memory_of(rank, place.memory).visit(begin, begin + chunks * cut_.units, [&](Index from, Cell& cell) {
      check_read(rank, place.memory, from, cell, actor);
    });
    if (meaning_.is_known() && !is_wrong_already(rank)) check_result(rank, launch, place.memory, begin, promised);
  }

  bool is_wrong_already(Rank rank) const { return said_.contains({Finding::Kind::wrong_result, rank, -1, -1}); }

  void check_result(Rank rank, int launch, int memory, Index begin, Index promised) {
    const Index units = cut_.units;
    Memory& cells = memory_of(rank, memory);
    Rank source = 0;
    if (meaning_.chooses_source() && promised > 0)
      cells.visit(begin, begin + 1, [&](Index from, Cell& cell) {
        for (Rank peer = 0; peer < size(); ++peer)
          if (values_.are_equal(cell.value, {.entry = values_.input(peer, launch), .displacement = -from}))
            source = peer;
      });
    std::string wrong;
    cells.visit(begin, begin + promised * units, [&](Index from, Cell& cell) {
      for (Index at = from; at < cell.end && wrong.empty();) {
        const Index chunk = (at - begin) / units, end = std::min(cell.end, begin + (chunk + 1) * units);
        const std::vector<InputChunk> inputs = meaning_.inputs_of(rank, chunk, source);
        Value expected;
        const Index displacement = inputs[0].chunk * units - (begin + chunk * units);
        if (inputs.size() == 1)
          expected = {.entry = values_.input(inputs[0].rank, launch), .displacement = displacement};
        else
          expected = {.entry = values_.all_inputs(reduction_, size(), launch), .displacement = displacement};
        if (!values_.are_equal(cell.value, expected))
          wrong = fmt::format("chunk {} of the output of rank {} is {}; {} makes it {} (launch {})", chunk, rank,
                              values_.text(cell.value, at, units), program_.collective,
                              values_.text(expected, at, units), launch);
        at = end;
      }
    });
    if (wrong.empty()) {
      if (meaning_.one_rank_suffices()) right_.insert({launch, rank});
      return;
    }
    if (meaning_.one_rank_suffices() && ++wrong_[launch] < size()) return;
    found(Finding::Kind::wrong_result, rank, -1, -1, std::move(wrong));
  }

  // --- Steps -------------------------------------------------------------------------------------------------------

  void advance(int id) {
    Block& block = blocks_[std::size_t(id)];
    while (!block.is_done) {
      if (block.at == block.steps->size()) {
        block.is_done = true;
        if (--running_[std::size_t(block.rank)] == 0) end_launch(block.rank, block.launch);
        return;
      }
      const Step& step = (*block.steps)[block.at];
      if (step.pipeline && !step.pipeline->steps.empty()) {
        if (!execute(id, step.pipeline->steps[block.inner], step.pipeline.get())) return;
        block.waited = 0;
        if (++block.inner < step.pipeline->steps.size()) continue;
        block.inner = 0;
        if (++block.iteration < cut_.iterations) continue;
        block.iteration = 0;
      } else if (!execute(id, step, nullptr)) {
        return;
      }
      block.waited = 0;
      ++block.at;
    }
  }

  /// Whether the step was done; else the block has been noted where it waits.
  bool execute(int id, const Step& step, const Pipeline* loop) {
    Block& block = blocks_[std::size_t(id)];
    ++out_.steps;
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
          issue(id, counter_out(block.rank, step.channel, channel), std::move(snapshot));
        }
        ++block.time;
        return true;
      case StepKind::wait:
      case StepKind::relaxed_wait:
        return wait_for(id, step, [&](std::int32_t channel) { return counter_in(block.rank, step.channel, channel); });
      case StepKind::acquire:
        return wait_for(id, step, [&](std::int32_t number) { return semaphore(block.rank, number); });
      case StepKind::release:
        for (const std::int32_t number : step.ids) issue(id, semaphore(block.rank, number), published_by(block));
        ++block.time;
        return true;
      case StepKind::flush:
        for (const std::int32_t channel : step.ids)
          block.knowledge.learn_later(known_by(proxy_of(block.rank, channel)));
        ++block.time;
        return true;
      default:
        return move(id, step, loop);
    }
  }

  void issue(int block, int id, Snapshot snapshot) {
    Counter& to = counter(id);
    to.issue(block, std::move(snapshot));
    for (const int waiting : std::exchange(to.waiting, {})) queue(waiting);
  }

  template <class CounterOf>
  bool wait_for(int id, const Step& step, CounterOf&& counter_of) {
    Block& block = blocks_[std::size_t(id)];
    for (; block.waited < step.ids.size(); ++block.waited) {
      Counter& from = counter(counter_of(step.ids[block.waited]));
      if (!from.has_next()) {
        from.waiting.push_back(id);
        return false;
      }
      const Actor actor = actor_of(id, block);
      if (from.last_taker && !follows_taker(actor, *from.last_taker))
        found(Finding::Kind::unproved, block.rank, block.index, static_cast<Index>(block.at),
              fmt::format("{} and {} take from one {}, and nothing says which is first", name(actor.stamp),
                          name(*from.last_taker), step.kind == StepKind::acquire ? "semaphore" : "channel"));
      from.last_taker = actor.stamp;
      from.take([&](Snapshot snapshot) {
        if (step.kind == StepKind::relaxed_wait) {
          // What the launch of the sender began with is known, see executed_by; of a signal that publishes more, too.
          snapshot.strong_time = 0;
          const Host& sender = hosts_[std::size_t(rank_of(snapshot.timeline))];
          snapshot.strong_of = sender.clock;
        }
        block.knowledge.learn_later(std::move(snapshot));
      });
    }
    ++block.time;
    return true;
  }
  bool follows_taker(const Actor& actor, const Stamp& before) const {
    return before.timeline == actor.stamp.timeline || actor.knowledge->knows_weakly(before.timeline, before.time);
  }
  Rank rank_of(Timeline timeline) const {
    if (timeline >= first_host_) return timeline - first_host_;
    if (static_cast<std::size_t>(timeline) < blocks_.size()) return blocks_[std::size_t(timeline)].rank;
    const int proxy = timeline - static_cast<Timeline>(blocks_.size());
    return static_cast<Rank>(std::upper_bound(first_proxy_.begin(), first_proxy_.end(), proxy) - first_proxy_.begin()) -
           1;
  }

  Actor actor_of(int id, const Block& block) const {
    return {.stamp = {.timeline = block.timeline,
                      .time = block.time,
                      .block = id,
                      .step = static_cast<Index>(block.at),
                      .launch = block.launch},
            .knowledge = &block.knowledge,
            .met = block.met};
  }

  bool come_to_barrier(int id, const Step& step) {
    Block& block = blocks_[std::size_t(id)];
    if (block.has_arrived) return false;
    auto& barrier = barriers_[std::size_t(block.rank)][step.ids[0]];
    ++block.time;
    meet(block);
    block.has_arrived = true;
    barrier.arrived.push_back(id);
    if (static_cast<int>(barrier.arrived.size()) < step.participants) return false;
    auto clock = std::make_shared<Clock>(*block.knowledge.clock());
    for (const int other : barrier.arrived) Knowledge::join(*clock, published_by(blocks_[std::size_t(other)]));
    for (const int other : std::exchange(barrier.arrived, {})) {
      Block& one = blocks_[std::size_t(other)];
      one.knowledge.reset(clock);
      one.has_arrived = false;
      if (other == id) continue;
      step_over(one);
      queue(other);
    }
    return true;
  }
  /// The barrier that a block has come to is behind it.
  void step_over(Block& block) {
    const Step& step = (*block.steps)[block.at];
    block.waited = 0;
    if (step.pipeline) {
      if (++block.inner < step.pipeline->steps.size()) return;
      block.inner = 0;
      if (++block.iteration < cut_.iterations) return;
      block.iteration = 0;
    }
    ++block.at;
  }

  /// Gives the proxy of a port channel something to do after all that the block has done before its threads met.
  Proxy& ask(const Block& block, std::int32_t channel) {
    Proxy& proxy = proxy_of(block.rank, channel);
    proxy.knowledge.learn_later(published_by(block));
    proxy.knowledge.learn();
    ++proxy.time;
    return proxy;
  }

  // --- Data --------------------------------------------------------------------------------------------------------

  static constexpr int memory_of_scratch = 2;

  struct Range {
    Rank rank;
    int memory;
    Index begin, end;
    Format format;
  };

  /// The units of its operands that a step works on: all have as many.
  std::pair<Index, Index> part_of(const Block& block, const Step& step, const Pipeline* loop) {
    const Index chunks = step.operands.empty() ? 0 : step.operands[0].count;
    Index begin = 0, end = chunks * cut_.units;
    if (loop) {
      if (chunks != loop->chunks)
        found(Finding::Kind::mismatch, block.rank, block.index, static_cast<Index>(block.at),
              fmt::format("{}: a step on {} chunks in a loop over {}", name(block, static_cast<Index>(block.at)),
                          chunks, loop->chunks));
      const Index unit = (end + cut_.iterations - 1) / cut_.iterations;
      begin = std::min(end, block.iteration * unit);
      end = std::min(end, begin + unit);
    }
    if (step.shares > 0) {
      const Index total = end - begin, each = total / step.shares, more = total % step.shares;
      const Index before = step.share * each + std::min<Index>(step.share, more);
      const Index length = each + (step.share < more ? 1 : 0);
      begin += before;
      end = begin + length;
    }
    return {begin, end};
  }

  Range range_of(Rank own, const Operand& operand, OperandShape shape, Rank rank, std::pair<Index, Index> part,
                 int launch) {
    const Rank at = shape.where == Where::here ? own : rank;
    const BufferPlace place = place_of(program_, at, operand.buffer);
    Index base = (place.first_chunk + operand.first) * cut_.units;
    if (place.memory == memory_of_scratch && program_.double_scratch && launch % 2 == 1)
      base += of(at).chunks[2] * cut_.units;
    return {at, place.memory, base + part.first, base + part.second, shape.format};
  }
  std::vector<Range> ranges_of(Rank own, const Operand& operand, OperandShape shape, std::pair<Index, Index> part,
                               int launch) {
    std::vector<Range> out;
    if (shape.where == Where::group) {
      for (const Rank rank : of(own).switches[std::size_t(operand.via)].ranks)
        out.push_back(range_of(own, operand, shape, rank, part, launch));
    } else {
      const Rank rank = shape.where == Where::peer ? of(own).remote_buffers[std::size_t(operand.via)].rank : own;
      out.push_back(range_of(own, operand, shape, rank, part, launch));
    }
    return out;
  }

  /// A stretch of what is moved, from `begin` to the next one.
  struct Piece {
    Index end;
    Value value;  ///< as if the first unit of the operand lay at place 0
    Links links;
  };
  using Pieces = std::map<Index, Piece>;

  bool move(int id, const Step& step, const Pipeline* loop) {
    Block& block = blocks_[std::size_t(id)];
    const StepShape& shape = shape_of(step.kind);
    const auto part = part_of(block, step, loop);
    const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
    // Packets first: the step begins when they have come.
    for (std::size_t i = 0; i < sources; ++i)
      for (const Range& range : ranges_of(block.rank, step.operands[i], shape_of_source(shape, i), part, block.launch))
        if (range.format == Format::packets && !have_come(range, block.launch)) {
          waiting_for_packets_[std::size_t(range.rank)].push_back(id);
          return false;
        }

    const bool by_proxy = shape.takes(ChannelKind::port) && step.channel == ChannelKind::port;
    block.units_max = std::max(block.units_max, part.second - part.first);
    if (shape.pairing == Pairing::pairs) {
      for (std::size_t i = 0; i < targets; ++i) {
        const auto channel = channel_of_target(block.rank, step, i, sources);
        const Actor actor = by_proxy ? actor_of_proxy(id, block, channel) : actor_of(id, block);
        Pieces pieces;
        read(step, shape, i, part, block, actor, pieces);
        write(step, shape, i, part, block, actor, pieces);
        if (step.kind == StepKind::put_signal || step.kind == StepKind::put_signal_flush)
          issue(id, counter_out(block.rank, ChannelKind::port, step.ids[i]), known_by(ask(block, step.ids[i])));
        if (step.kind == StepKind::put_signal_flush)
          block.knowledge.learn_later(known_by(proxy_of(block.rank, step.ids[i])));
      }
    } else {
      const Actor reader = actor_of(id, block);
      Pieces sum;
      for (std::size_t i = 0; i < sources; ++i) read(step, shape, i, part, block, reader, sum);
      check_targets(step, shape, part, block, sources);
      for (std::size_t i = 0; i < targets; ++i) {
        const Actor actor =
            by_proxy ? actor_of_proxy(id, block, channel_of_target(block.rank, step, i, sources)) : reader;
        write(step, shape, i, part, block, actor, sum);
      }
    }
    ++block.time;
    return true;
  }

  /// The channel that carries a target: that of the step, or the first one that leads to its rank.
  std::int32_t channel_of_target(Rank rank, const Step& step, std::size_t target, std::size_t sources) const {
    if (step.channel != ChannelKind::port || step.ids.empty()) return first_port_to(rank, step, target, sources);
    if (target < step.ids.size()) return step.ids[target];
    return step.ids.back();
  }
  std::int32_t first_port_to(Rank rank, const Step& step, std::size_t target, std::size_t sources) const {
    if (step.channel != ChannelKind::port) return -1;
    const Rank peer = of(rank).remote_buffers[std::size_t(step.operands[sources + target].via)].rank;
    const auto& peers = of(rank).peers[1];
    return static_cast<std::int32_t>(std::find(peers.begin(), peers.end(), peer) - peers.begin());
  }
  Actor actor_of_proxy(int id, const Block& block, std::int32_t channel) {
    if (channel < 0 || static_cast<std::size_t>(channel) >= of(block.rank).peers[1].size()) return actor_of(id, block);
    Proxy& proxy = ask(block, channel);
    Actor actor = actor_of(id, block);
    actor.stamp.timeline = proxy.timeline;
    actor.stamp.time = proxy.time - 1;
    actor.knowledge = &proxy.knowledge;
    actor.met = proxy.time - 1;
    return actor;
  }

  /// Threads work on units in turn, so that a target may be a source, but not beside one.
  void check_targets(const Step& step, const StepShape& shape, std::pair<Index, Index> part, const Block& block,
                     std::size_t sources) {
    for (std::size_t t = sources; t < step.operands.size(); ++t)
      for (const Range& target :
           ranges_of(block.rank, step.operands[t], shape_of_target(shape, t - sources), part, block.launch))
        for (std::size_t s = 0; s < t; ++s) {
          const bool is_source = s < sources;
          const OperandShape what = is_source ? shape_of_source(shape, s) : shape_of_target(shape, s - sources);
          for (const Range& other : ranges_of(block.rank, step.operands[s], what, part, block.launch))
            if (other.rank == target.rank && other.memory == target.memory && other.begin < target.end &&
                target.begin < other.end && (other.begin != target.begin || !is_source))
              found(Finding::Kind::race, block.rank, block.index, static_cast<Index>(block.at),
                    fmt::format("{}: operands {} and {} overlap in part", name(block, static_cast<Index>(block.at)), s,
                                t));
        }
  }

  bool have_come(const Range& range, int launch) const {
    return memories_[std::size_t(range.rank) * buffer_kinds + std::size_t(range.memory)].all(
        range.begin, range.end, [&](const Cell& cell) { return cell.packets_of == launch; });
  }

  void read(const Step& step, const StepShape& shape, std::size_t source, std::pair<Index, Index> part, Block& block,
            const Actor& actor, Pieces& sum) {
    for (const Range& range :
         ranges_of(block.rank, step.operands[source], shape_of_source(shape, source), part, block.launch)) {
      if (range.memory == memory_of_scratch) use_scratch(range, block);
      Pieces pieces;
      std::map<const PacketWrite*, std::pair<Index, std::shared_ptr<const PacketWrite>>> packets;
      const Actor reader = accessing(actor, range, shape);
      memory_of(range.rank, range.memory).visit(range.begin, range.end, [&](Index from, Cell& cell) {
        Links links;
        if (range.format == Format::packets && cell.packets) {
          auto& [units, write] = packets[cell.packets.get()];
          units += cell.end - from;
          write = cell.packets;
          note_read(cell, reader.stamp);
          links = followed(cell, range.begin - cell.writer.first);
        } else {
          check_read(range.rank, range.memory, from, cell, reader);
        }
        Value value = cell.value;
        value.displacement += range.begin;
        pieces.emplace(from - range.begin, Piece{cell.end - range.begin, value, std::move(links)});
      });
      // Who has all packets of a step knows that it has run.
      for (const auto& [write, seen] : packets)
        block.knowledge.learn_now(seen.first == write->units ? write->of_all : write->of_each);
      combine(sum, std::move(pieces), step);
    }
  }

  static Actor accessing(Actor actor, const Range& range, const StepShape& shape) {
    constexpr std::string_view packet_letters = "PQT";
    actor.stamp.first = range.begin;
    actor.stamp.units = range.end - range.begin;
    actor.stamp.by_packets = shape.sources.find_first_of(packet_letters) != std::string_view::npos ||
                             shape.targets.find_first_of(packet_letters) != std::string_view::npos;
    return actor;
  }

  /// What has been executed when these packets have come: what has written them, and what that has followed.
  static Links followed(const Cell& cell, Index between) {
    constexpr std::size_t links_max = 4096;
    std::vector<Link> out = {{cell.writer.timeline, cell.writer.time, between}};
    if (cell.links && cell.links->size() < links_max)
      for (const Link& link : *cell.links) out.push_back({link.timeline, link.time, link.between + between});
    std::sort(out.begin(), out.end());
    return std::make_shared<const std::vector<Link>>(std::move(out));
  }
  static Links joined(const Links& a, const Links& b) {
    if (!a || !b) return a ? a : b;
    std::vector<Link> out;
    std::set_union(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(out));
    return std::make_shared<const std::vector<Link>>(std::move(out));
  }

  void combine(Pieces& sum, Pieces more, const Step& step) {
    if (sum.empty()) {
      sum = std::move(more);
      return;
    }
    reduction_ = step.reduction;
    Pieces out;
    for (auto a = sum.begin(), b = more.begin(); a != sum.end() && b != more.end();) {
      const Index begin = std::max(a->first, b->first), end = std::min(a->second.end, b->second.end);
      out.emplace(begin, Piece{end, values_.combine(step.reduction, a->second.value, b->second.value),
                               joined(a->second.links, b->second.links)});
      if (a->second.end == end) ++a;
      if (b->second.end == end) ++b;
    }
    sum = std::move(out);
  }

  void write(const Step& step, const StepShape& shape, std::size_t target, std::pair<Index, Index> part, Block& block,
             const Actor& actor, const Pieces& pieces) {
    const Operand& operand = step.operands[std::size_t(step.sources) + target];
    for (const Range& range : ranges_of(block.rank, operand, shape_of_target(shape, target), part, block.launch)) {
      if (range.memory == memory_of_scratch) use_scratch(range, block);
      if (range.format == Format::packets) {
        write_packets(range, block, accessing(actor, range, shape), pieces);
        continue;
      }
      const Actor writer = accessing(actor, range, shape);
      for (const auto& [begin, piece] : pieces) {
        Value value = piece.value;
        value.displacement -= range.begin;
        write_plain(
            range.rank, range.memory, range.begin + begin, range.begin + piece.end, writer,
            [&](Index) { return value; }, piece.links);
      }
    }
  }

  void write_packets(const Range& range, Block& block, const Actor& actor, const Pieces& pieces) {
    auto packets = std::make_shared<PacketWrite>();
    packets->units = range.end - range.begin;
    const bool by_proxy = actor.stamp.timeline != block.timeline;
    // All threads that had a part in this step are behind those before it, unless one of those was larger.
    const Time known = by_proxy || block.units_max <= range.end - range.begin ? actor.stamp.time + 1 : actor.met;
    const ClockPointer& begun = hosts_[std::size_t(block.rank)].clock;
    packets->of_each = {.strong_of = begun, .weak_of = begun, .timeline = actor.stamp.timeline};
    packets->of_all = packets->of_each;
    packets->of_all.weak_of = actor.knowledge->clock();
    packets->of_all.weak_time = known;
    for (const auto& of_pieces : pieces) {
      const Index begin = of_pieces.first;
      const Piece& piece = of_pieces.second;
      memory_of(range.rank, range.memory)
          .visit(range.begin + begin, range.begin + piece.end, [&](Index from, Cell& cell) {
            Value value = piece.value;
            value.displacement -= range.begin;
            // Equal packets may be written again, by a multicast that reaches its own rank, or by several blocks.
            if (cell.packets_of == block.launch && cell.value == value) {
              cell.twins.push_back(actor.stamp);
              return;
            }
            if (cell.packets_of == block.launch)
              found(Finding::Kind::packets, block.rank, block.index, static_cast<Index>(block.at),
                    fmt::format("{} writes packets to {}, which {} has written in the same launch", name(actor.stamp),
                                place_text(range.rank, range.memory, from, cell.end), name(cell.writer)));
            check_write(range.rank, range.memory, from, cell, actor, cell.packets_of < 0, piece.links);
            cell.writer = actor.stamp;
            cell.links = piece.links;
            cell.twins.clear();
            cell.reads.clear();
            cell.value = value;
            cell.packets_of = block.launch;
            cell.packets = packets;
          });
    }
    for (const int waiting : std::exchange(waiting_for_packets_[std::size_t(range.rank)], {})) queue(waiting);
  }

  template <class ValueAt>
  void write_plain(Rank rank, int memory, Index begin, Index end, const Actor& actor, ValueAt&& value_at,
                   const Links& links = nullptr) {
    memory_of(rank, memory).visit(begin, end, [&](Index from, Cell& cell) {
      check_write(rank, memory, from, cell, actor, true, links);
      cell.writer = actor.stamp;
      cell.links = nullptr;
      cell.twins.clear();
      cell.reads.clear();
      cell.value = value_at(from);
      cell.packets_of = -1;
      cell.packets = nullptr;
    });
  }

  void check_read(Rank rank, int memory, Index from, Cell& cell, const Actor& actor) {
    const bool is_seen =
        follows(actor, cell.writer, true) || std::any_of(cell.twins.begin(), cell.twins.end(),
                                                         [&](const Stamp& twin) { return follows(actor, twin, true); });
    if (!is_seen) report_race(actor.stamp, false, cell.writer, true, rank, memory, from, cell.end);
    note_read(cell, actor.stamp);
  }
  static void note_read(Cell& cell, const Stamp& stamp) {
    for (Stamp& read : cell.reads)
      if (read.timeline == stamp.timeline) {
        read = stamp;
        return;
      }
    cell.reads.push_back(stamp);
  }
  void check_write(Rank rank, int memory, Index from, const Cell& cell, const Actor& actor, bool strongly,
                   const Links& links) {
    for (const Stamp& read : cell.reads)
      if (!follows(actor, read, false, links))
        report_race(actor.stamp, true, read, false, rank, memory, from, cell.end);
    for (const Stamp& twin : cell.twins)
      if (!follows(actor, twin, strongly, links))
        report_race(actor.stamp, true, twin, true, rank, memory, from, cell.end);
    if (!follows(actor, cell.writer, strongly, links))
      report_race(actor.stamp, true, cell.writer, true, rank, memory, from, cell.end);
  }

  /// Packets have twice the bytes, so that their places are not those of plain chunks.
  void use_scratch(const Range& range, const Block& block) {
    if (range.begin == range.end) return;
    auto& uses = uses_of_scratch_[std::size_t(range.rank)];
    uses |= range.format == Format::plain ? 1 : 2;
    if (uses == 3)
      found(Finding::Kind::packets, block.rank, block.index, static_cast<Index>(block.at),
            fmt::format("{}: the scratch of rank {} holds packets and plain data, which lie at different bytes",
                        name(block, static_cast<Index>(block.at)), range.rank));
  }

  // --- The end -----------------------------------------------------------------------------------------------------

  /// What a block that does not end waits for, and the blocks that could end that.
  struct Stuck {
    std::string text;
    std::vector<int> producers;
  };

  const Step& step_of(const Block& block) const {
    const Step& step = (*block.steps)[block.at];
    return step.pipeline ? step.pipeline->steps[block.inner] : step;
  }

  Stuck stuck(int id) {
    const Block& block = blocks_[std::size_t(id)];
    const std::string who = name(block, static_cast<Index>(block.at));
    if (block.is_done || block.at == block.steps->size()) return {};
    const Step& step = step_of(block);
    if (step.kind == StepKind::barrier) {
      Stuck out{fmt::format("{} waits at barrier {} with {} of {} blocks", who, step.ids[0],
                            barriers_[std::size_t(block.rank)][step.ids[0]].arrived.size(), step.participants),
                {}};
      for (int i = first_block_[std::size_t(block.rank)]; i < first_block_[std::size_t(block.rank) + 1]; ++i)
        if (!blocks_[std::size_t(i)].is_done && !blocks_[std::size_t(i)].has_arrived) out.producers.push_back(i);
      return out;
    }
    if (waits(step.kind) || step.kind == StepKind::acquire) {
      const bool is_semaphore = step.kind == StepKind::acquire;
      const std::int32_t number = step.ids[block.waited];
      Counter& from =
          counter(is_semaphore ? semaphore(block.rank, number) : counter_in(block.rank, step.channel, number));
      Stuck out;
      for (const auto& [source, each] : from.sources())
        if (!blocks_[std::size_t(source)].is_done) out.producers.push_back(source);
      out.text = is_semaphore
                     ? fmt::format("{} waits for release {} of semaphore {}; {} have come", who, from.taken() + 1,
                                   number, from.issued())
                     : fmt::format(
                           "{} waits for signal {} from rank {} on {} channel {}; {} have come, {} are sent in each "
                           "launch",
                           who, from.taken() + 1, of(block.rank).peers[std::size_t(step.channel)][std::size_t(number)],
                           name_of(step.channel), number, from.issued(), from.each_launch());
      return out;
    }
    Stuck out{fmt::format("{} waits for packets", who), {}};
    const StepShape& shape = shape_of(step.kind);
    const auto part = part_of(block, step, nullptr);
    for (std::size_t i = 0; i < std::size_t(step.sources); ++i)
      for (const Range& range : ranges_of(block.rank, step.operands[i], shape_of_source(shape, i), part, block.launch))
        if (range.format == Format::packets && !have_come(range, block.launch)) {
          out.text = fmt::format("{} waits for packets in {}", who,
                                 place_text(range.rank, range.memory, range.begin, range.end));
          for (std::size_t other = 0; other < blocks_.size(); ++other)
            if (!blocks_[other].is_done && will_write(static_cast<int>(other), range, block.launch))
              out.producers.push_back(static_cast<int>(other));
          return out;
        }
    return out;
  }

  /// Whether a step that a block has not done yet writes packets there.
  bool will_write(int id, const Range& wanted, int launch) {
    const Block& block = blocks_[std::size_t(id)];
    for (std::size_t i = block.launch < launch ? 0 : block.at; i < block.steps->size(); ++i) {
      const Step& step = (*block.steps)[i];
      const StepShape& shape = shape_of(step.kind);
      const auto sources = static_cast<std::size_t>(step.sources);
      for (std::size_t t = sources; t < step.operands.size(); ++t) {
        const OperandShape what = shape_of_target(shape, t - sources);
        if (what.format != Format::packets) continue;
        const std::pair<Index, Index> whole{0, step.operands[t].count * cut_.units};
        for (const Range& range : ranges_of(block.rank, step.operands[t], what, whole, launch))
          if (range.rank == wanted.rank && range.begin < wanted.end && wanted.begin < range.end) return true;
      }
    }
    return false;
  }

  void report_deadlock() {
    int first = -1;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const Block& block = blocks_[i];
      if (block.is_done) continue;
      if (first < 0) first = static_cast<int>(i);
      const Stuck why = stuck(static_cast<int>(i));
      if (why.text.empty() || !why.producers.empty()) continue;
      found(Finding::Kind::deadlock, block.rank, block.index, static_cast<Index>(block.at),
            why.text + ": nothing will produce it");
      return;
    }
    // Every block waits for another one: following them leads around a cycle.
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
    const Block& block = blocks_[std::size_t(way.front())];
    found(Finding::Kind::deadlock, block.rank, block.index, static_cast<Index>(block.at), std::move(text));
  }

  void report_unpaired() {
    for (Rank rank = 0; rank < size(); ++rank) {
      for (int kind = 0; kind < 2; ++kind)
        for (std::size_t i = 0; i < of(rank).peers[kind].size(); ++i) {
          const auto id = static_cast<std::int32_t>(i);
          report_left(counter(counter_out(rank, static_cast<ChannelKind>(kind), id)), rank,
                      fmt::format("{} channel {} from rank {} to rank {}", name_of(static_cast<ChannelKind>(kind)), id,
                                  rank, of(rank).peers[kind][i]),
                      "signals", 0);
        }
      for (std::size_t i = 0; i < of(rank).semaphores.size(); ++i)
        report_left(counter(semaphore(rank, static_cast<std::int32_t>(i))), rank,
                    fmt::format("semaphore {} of rank {}", i, rank), "releases", of(rank).semaphores[i]);
    }
  }
  void report_left(const Counter& left, Rank rank, const std::string& what, const char* of_what, Index initial) {
    const Index given = left.issued() - initial, taken = left.taken();
    if (given == taken) return;
    found(Finding::Kind::unpaired, rank, -1, -1,
          fmt::format("{}: {} {} and {} waits in {} launches", what, given, of_what, taken, options_.launches));
  }

  const Program& program_;
  const VerifyOptions& options_;
  const CollectiveMeaning& meaning_;
  Cut cut_;
  Relaunch relaunch_;
  Rank ended_ = 0;
  Verification& out_;

  std::vector<Block> blocks_;
  std::vector<Proxy> proxies_;
  std::vector<Host> hosts_;
  std::vector<int> first_block_, first_proxy_, first_semaphore_;
  Timeline first_host_ = 0;
  ClockPointer initial_;
  std::vector<Memory> memories_;
  std::vector<int> uses_of_scratch_;
  std::vector<Counter> counters_;
  std::vector<int> channel_in_[2], channel_out_[2], first_channel_[2];
  std::vector<std::map<int, Barrier>> barriers_;
  std::vector<std::vector<int>> waiting_for_packets_;
  std::vector<int> running_;
  std::deque<int> queue_;
  ValueTable values_;
  Reduction reduction_ = Reduction::sum;
  std::set<std::tuple<Finding::Kind, Rank, int, Index>> said_;
  std::set<std::pair<int, Rank>> right_;
  std::map<int, int> wrong_;
};

/// Executions that show shares of uneven sizes and loops of more than one iteration.
std::vector<Cut> cuts_of(const Program& program) {
  Index shares = 1;
  bool has_loops = false;
  const auto look = [&](const Step& step) {
    constexpr Index units_max = 720'720;
    if (step.shares > 0) shares = std::min(units_max, std::lcm(shares, Index(step.shares)));
  };
  for (const RankProgram& rank : program.ranks)
    for (const ThreadBlock& block : rank.blocks)
      for (const Step& step : block.steps) {
        look(step);
        if (!step.pipeline) continue;
        has_loops = true;
        for (const Step& inner : step.pipeline->steps) look(inner);
      }
  std::vector<Cut> out = {{.units = shares, .iterations = 1}};
  if (has_loops) out.push_back({.units = 3 * shares - 1, .iterations = 3});
  if (shares > 1) out.push_back({.units = 2 * shares + 1, .iterations = 1});
  return out;
}

}  // namespace

const char* name_of(Finding::Kind kind) noexcept {
  switch (kind) {
    case Finding::Kind::deadlock:
      return "deadlock";
    case Finding::Kind::unpaired:
      return "unpaired";
    case Finding::Kind::race:
      return "race";
    case Finding::Kind::missing_meeting:
      return "missing meeting";
    case Finding::Kind::packets:
      return "packets";
    case Finding::Kind::wrong_result:
      return "wrong result";
    case Finding::Kind::unproved:
      return "unproved";
    case Finding::Kind::mismatch:
      return "mismatch";
  }
  return "?";
}

std::string Verification::text() const {
  std::string out;
  if (is_right()) {
    out = fmt::format("proved: it ends, no two accesses race{}\n",
                      knows_result ? ", and every output is what the collective promises" : "");
    if (needs_meeting)
      out +=
          fmt::format("launches must not follow each other before all ranks have met: {}\n", why_meeting.front().text);
    return out;
  }
  for (const Finding& finding : findings) out += fmt::format("{}: {}\n", name_of(finding.kind), finding.text);
  if (static_cast<Index>(findings.size()) < found) out += fmt::format("and {} more\n", found - Index(findings.size()));
  return out;
}

Verification verify(const Program& program, const VerifyOptions& options) {
  check_structure(program);
  const CollectiveMeaning meaning(program);
  const auto execute = [&](Relaunch relaunch) {
    Verification out;
    out.knows_result = meaning.is_known();
    for (const Cut& cut : cuts_of(program)) {
      Execution(program, options, meaning, cut, relaunch, out).run();
      if (!out.is_right()) break;
    }
    return out;
  };
  Verification out = execute(Relaunch::at_once);
  if (out.is_right() || options.launches < 2) return out;
  Verification together = execute(Relaunch::together);
  if (!together.is_right()) return together;
  together.needs_meeting = true;
  together.why_meeting = std::move(out.findings);
  return together;
}

}  // namespace tranship
