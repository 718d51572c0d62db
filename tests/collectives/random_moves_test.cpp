// Random programs of exchanges, collectives, a pipe and one-sided transfers under a simulation, judged by an oracle
// that knows the documents alone: what happens before what, as a graph, and who accesses which cells from when to when.
// A program whose accesses the documents order is never accused. One with a pair that no order of the library's can
// hold apart always is.
//
// Between the two are programs that are right only because a call waits for more than it promises: they are not judged.
#include <array>
#include <bitset>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/collectives/world_collectives.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/tranship.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test::moves {
namespace {

constexpr int ranks_max = 3;
constexpr Index owned = 4;  // cells of a rank, with a ghost on either side

/// Symmetric memory of each rank, in elements.
enum Memory : int { ring_a, ring_b, gathered, sources, targets, sent_frames, got_frames, words, memories };
constexpr Index words_max = 64;
constexpr Index count_of(int memory) {
  constexpr Index counts[] = {owned + 2, owned + 2, owned * ranks_max, owned * ranks_max, owned * ranks_max,
                              owned,     owned,     words_max};
  return counts[memory];
}

struct Step {
  enum class Kind : std::uint8_t {
    load,
    store,
    put,
    get,
    quiet,
    signal,
    wait,  // of one rank
    barrier,
    sync,
    start,
    finish,
    on_symmetric,
    on_own,  // of all
    take_sent,
    give_sent,
    take_got,
    give_got,  // of the ends of the pipe
  } kind{};
  Rank rank = 0, peer = 0;
  int memory = 0, cell = 0;            ///< of the rank itself
  int peer_memory = 0, peer_cell = 0;  ///< of its peer
  bool blocks = true;
  int number = 0;  ///< of the exchange, the collective, or the word of a signal
  bool is_of_all() const { return kind >= Kind::barrier && kind <= Kind::on_own; }
};
using Kind = Step::Kind;
enum Exchanges : int { halo_a, halo_b, adjoint_a, gather_a, scatter_a, copy_ab, exchanges };
enum Collectives : int { reduce_all, gather_all, spread, collectives };

struct Program {
  int ranks = 2;
  std::vector<Step> steps;
};

// ---- the oracle ---------------------------------------------------------------------------------------------------

/// Cells [first, first + count) of a memory of a rank, from one node of the graph to another.
struct Access {
  Rank owner;
  int memory;
  Index first, count;
  bool writes;
  int begin, end, step;
};

/// How much order there is: what the documents promise, or all that calls could wait for.
enum class Order { promised, possible };

class Graph {
 public:
  Graph(const Program& program, Order order) : program_(program), order_(order) {
    for (Rank r = 0; r < program.ranks; ++r) last_.push_back(node());
    open_.resize(std::size_t(program.ranks));
    signalled_.resize(words_max, -1);
    started_.fill(nowhere());
    filling_ = last_[1];
    for (int s = 0; s < int(program.steps.size()); ++s) add(s, program.steps[std::size_t(s)]);
    for (int one = 0; one < exchanges; ++one)
      for (Rank r = 0; r < program.ranks; ++r)
        if (const int began = started_[std::size_t(one)][std::size_t(r)]; began >= 0)
          moves(start_steps_[std::size_t(one)], one, r, began, node({began}));
    if (reading_ >= 0) access(step_of_reading_, 0, sent_frames, 0, owned, false, reading_, node({reading_}));
    if (filling_ >= 0) access(step_of_filling_, 1, got_frames, 0, owned, true, filling_, node({filling_}));
  }

  /// Two accesses that conflict and are not ordered: the steps that make them, in their order.
  std::optional<std::pair<int, int>> race() const {
    for (std::size_t b = 0; b < accesses_.size(); ++b)
      for (std::size_t a = 0; a < accesses_.size(); ++a) {
        const Access &x = accesses_[a], &y = accesses_[b];
        if (x.step >= y.step || x.owner != y.owner || x.memory != y.memory || (!x.writes && !y.writes)) continue;
        if (x.first >= y.first + y.count || y.first >= x.first + x.count) continue;
        if (!is_before(x.end, y.begin) && !is_before(y.end, x.begin)) return std::pair(x.step, y.step);
      }
    return std::nullopt;
  }

 private:
  static constexpr int nodes_max = 512;

  int node(std::initializer_list<int> before = {}) {
    require(int(before_.size()) < nodes_max, "more than {} nodes", nodes_max);
    std::bitset<nodes_max> all;
    for (const int one : before) all |= before_[std::size_t(one)];
    all.set(before_.size());
    before_.push_back(all);
    return int(before_.size()) - 1;
  }
  bool is_before(int a, int b) const { return before_[std::size_t(b)].test(std::size_t(a)); }
  void order(int a, int b) { before_[std::size_t(b)] |= before_[std::size_t(a)]; }
  /// The next node in the order of a rank's program.
  int next(Rank rank) { return last_[std::size_t(rank)] = node({last_[std::size_t(rank)]}); }
  void access(int step, Rank owner, int memory, Index first, Index count, bool writes, int begin, int end) {
    accesses_.push_back({owner, memory, first, count, writes, begin, end, step});
  }
  /// All that the rank has under way is over at a node that nothing comes after yet.
  void complete(Rank rank, int at) {
    for (const int end : open_[std::size_t(rank)]) order(end, at);
    open_[std::size_t(rank)].clear();
  }
  /// A transfer is over some time after it was made: at a node that nothing comes after until it is completed.
  int transfer(int step, Rank rank, Rank owner, int memory, Index cell, bool writes, int begin, bool is_over) {
    const int end = is_over ? begin : node({begin});
    access(step, owner, memory, cell, 1, writes, begin, end);
    if (!is_over) open_[std::size_t(rank)].push_back(end);
    return end;
  }

  void add(int s, const Step& step) {
    const Rank r = step.rank;
    switch (step.kind) {
      case Kind::load:
      case Kind::store: {
        const int at = next(r);
        return access(s, r, step.memory, step.cell, 1, step.kind == Kind::store, at, at);
      }
      case Kind::put:
      case Kind::signal: {
        const int at = next(r);
        const int read = transfer(s, r, r, step.memory, step.cell, false, at, step.blocks);
        const int end = transfer(s, r, step.peer, step.peer_memory, step.peer_cell, true, at, false);
        if (order_ == Order::possible) order(read, end);  // who has seen the whole knows that it was read
        if (step.kind == Kind::signal) signalled_[std::size_t(step.number)] = end;
        return;
      }
      case Kind::get: {
        const int at = next(r);
        transfer(s, r, step.peer, step.peer_memory, step.peer_cell, false, at, step.blocks);
        transfer(s, r, r, step.memory, step.cell, true, at, step.blocks);
        return;
      }
      case Kind::quiet:
        return complete(r, moves_on(r));
      case Kind::wait:
        return order(signalled_[std::size_t(step.number)], moves_on(r));
      case Kind::barrier:
      case Kind::sync: {
        if (step.kind == Kind::barrier)
          for (Rank rank = 0; rank < program_.ranks; ++rank) complete(rank, next(rank));
        meet();
        return;
      }
      case Kind::start: {
        start_steps_[std::size_t(step.number)] = s;
        started_[std::size_t(step.number)] = tell();
        for (Rank rank = 0; rank < program_.ranks; ++rank) moves_on(rank);
        return;
      }
      case Kind::finish: {
        tell();
        const std::vector<int> began = std::exchange(started_[std::size_t(step.number)], nowhere());
        for (Rank rank = 0; rank < program_.ranks; ++rank)
          moves(start_steps_[std::size_t(step.number)], step.number, rank, began[std::size_t(rank)], moves_on(rank));
        return;
      }
      case Kind::on_symmetric: {
        meet();
        const std::vector<int> began = last_;
        for (Rank rank = 0; rank < program_.ranks; ++rank)
          collects(s, step.number, rank, began[std::size_t(rank)], next(rank));
        return;
      }
      case Kind::on_own: {
        const std::vector<int> began = tell();
        for (Rank rank = 0; rank < program_.ranks; ++rank)
          collects(s, step.number, rank, began[std::size_t(rank)], moves_on(rank));
        return;
      }
      case Kind::give_sent:
        told_.push_back(reading_ = moves_on(0));
        step_of_reading_ = s;
        return;
      case Kind::take_sent: {
        const int at = moves_on(0);
        if (reading_ >= 0) access(step_of_reading_, 0, sent_frames, 0, owned, false, reading_, at);
        reading_ = -1;
        return;
      }
      case Kind::take_got: {
        const int at = moves_on(1);
        access(step_of_filling_, 1, got_frames, 0, owned, true, filling_, at);
        filling_ = -1;
        return;
      }
      case Kind::give_got:
        told_.push_back(filling_ = moves_on(1));
        step_of_filling_ = s;
        return;
    }
  }
  std::vector<int> nowhere() const { return std::vector<int>(std::size_t(program_.ranks), -1); }
  /// All ranks begin something that others may hear of.
  std::vector<int> tell() {
    std::vector<int> out;
    for (Rank rank = 0; rank < program_.ranks; ++rank) out.push_back(next(rank));
    told_.insert(told_.end(), out.begin(), out.end());
    return out;
  }
  /// A call in which a rank may hear of it.
  int moves_on(Rank rank) {
    const int at = next(rank);
    if (order_ == Order::possible)
      for (const int one : told_) order(one, at);
    return at;
  }
  void meet() {
    const int all = node();
    for (Rank rank = 0; rank < program_.ranks; ++rank) order(last_[std::size_t(rank)], all);
    for (Rank rank = 0; rank < program_.ranks; ++rank) {
      const int at = next(rank);
      order(all, at);
    }
  }
  void moves(int s, int exchange, Rank r, int begin, int end) {
    const auto at = [&](int memory, Index first, Index count, bool writes) {
      access(s, r, memory, first, count, writes, begin, end);
    };
    const int ring = exchange == halo_b ? ring_b : ring_a;
    switch (exchange) {
      case halo_a:
      case halo_b:
        at(ring, 1, 1, false);
        at(ring, owned, 1, false);
        at(ring, 0, 1, true);
        at(ring, owned + 1, 1, true);
        return;
      case adjoint_a:  // adds ghosts to the cells that they are of, and clears them
        at(ring, 0, 2, true);
        at(ring, owned, 2, true);
        return;
      case gather_a:
        at(ring_a, 1, owned, false);
        if (r == 0) at(gathered, 0, owned * program_.ranks, true);
        return;
      case scatter_a:
        at(ring_a, 0, owned + 2, true);  // every stored cell of a target
        if (r == 0) at(gathered, 0, owned * program_.ranks, false);
        return;
      case copy_ab:
        at(ring_a, 1, owned, false);
        at(ring_b, 0, owned + 2, true);
        return;
    }
  }
  void collects(int s, int collective, Rank r, int begin, int end) {
    const auto at = [&](int memory, Index count, bool writes) { access(s, r, memory, 0, count, writes, begin, end); };
    switch (collective) {
      case reduce_all:
        at(sources, owned, false);
        return at(targets, owned, true);
      case gather_all:
        at(sources, owned, false);
        return at(targets, owned * program_.ranks, true);
      case spread:
        if (r == 0) at(sources, owned, false);
        return at(targets, owned, true);
    }
  }

  const Program& program_;
  Order order_;
  std::vector<std::bitset<nodes_max>> before_;
  std::vector<int> last_;  // by rank
  std::vector<Access> accesses_;
  std::vector<std::vector<int>> open_;  // by rank: the ends of its transfers
  std::vector<int> signalled_;
  std::array<std::vector<int>, exchanges> started_;  // by rank: the nodes; -1 where it is not in flight
  std::array<int, exchanges> start_steps_{};
  std::vector<int> told_;
  int reading_ = -1, filling_ = -1, step_of_reading_ = -1, step_of_filling_ = -1;
};

// ---- random programs ----------------------------------------------------------------------------------------------

/// What a step may not do to those before it: exchanges that are in flight, words that were set, frames of the pipe.
/// It knows nothing of races.
struct Situation {
  std::array<bool, exchanges> in_flight{};
  std::array<bool, words_max> is_set{}, is_waited_for{};
  std::array<Rank, words_max> waiter{};
  int words_used = 0;
  int sent = 0, got = 0;  // frames
  bool holds_sent = false, holds_got = false;

  bool allows(const Step& step) const {
    const auto number = std::size_t(step.number);
    switch (step.kind) {
      case Kind::start:
        return !in_flight[number];
      case Kind::finish:
        return in_flight[number];
      case Kind::signal:
        return words_used < int(words_max);
      case Kind::wait:
        return is_set[number] && !is_waited_for[number];
      // One buffer on each side: a frame is on its way, or held, or both sides are empty.
      case Kind::take_sent:
        return !holds_sent && sent == got && !holds_got;
      case Kind::give_sent:
        return holds_sent;
      case Kind::take_got:
        return !holds_got && got < sent;
      case Kind::give_got:
        return holds_got;
      default:
        return true;
    }
  }
  void made(const Step& step) {
    const auto number = std::size_t(step.number);
    switch (step.kind) {
      case Kind::start:
        in_flight[number] = true;
        return;
      case Kind::finish:
        in_flight[number] = false;
        return;
      case Kind::signal:
        is_set[number] = true;
        waiter[number] = step.peer;
        words_used = step.number + 1;
        return;
      case Kind::wait:
        is_waited_for[number] = true;
        return;
      case Kind::take_sent:
        holds_sent = true;
        return;
      case Kind::give_sent:
        holds_sent = false;
        ++sent;
        return;
      case Kind::take_got:
        holds_got = true;
        ++got;
        return;
      case Kind::give_got:
        holds_got = false;
        return;
      default:
        return;
    }
  }
};

bool is_possible(const Program& program) {
  Situation now;
  for (const Step& step : program.steps) {
    if (!now.allows(step)) return false;
    now.made(step);
  }
  return now.in_flight == std::array<bool, exchanges>{};
}

Step random_step(SplitMix64& random, int ranks, const Situation& now) {
  const auto below = [&](Index n) { return int(random.below(std::uint64_t(n))); };
  for (;;) {
    Step step;
    step.rank = below(ranks);
    step.peer = below(ranks);
    const auto place = [&](int& memory, int& cell) {
      memory = below(words);
      cell = below(count_of(memory));
    };
    place(step.memory, step.cell);
    place(step.peer_memory, step.peer_cell);
    step.blocks = below(2) == 0;
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
        step.kind = Kind::load;
        break;
      case 3:
      case 4:
      case 5:
        step.kind = Kind::store;
        break;
      case 6:
      case 7:
        step.kind = Kind::put;
        break;
      case 8:
      case 9:
        step.kind = Kind::get;
        break;
      case 10:
        step.kind = Kind::quiet;
        break;
      case 11:
      case 12:
        step.kind = Kind::signal;
        step.number = now.words_used;
        break;
      case 13:
        step.kind = Kind::wait;
        step.number = below(words_max);
        step.rank = now.waiter[std::size_t(step.number)];
        break;
      case 14:
      case 15:
        step.kind = Kind::start;
        step.number = below(exchanges);
        break;
      case 16:
        step.kind = Kind::finish;
        step.number = below(exchanges);
        break;
      case 17:
        step.kind = Kind::on_symmetric;
        step.number = below(collectives);
        break;
      case 18:
        step.kind = Kind::on_own;
        step.number = below(collectives);
        break;
      case 19: {
        constexpr Kind ends[] = {Kind::take_sent, Kind::give_sent, Kind::take_got, Kind::give_got};
        step.kind = ends[below(4)];
        step.rank = step.kind == Kind::take_sent || step.kind == Kind::give_sent ? 0 : 1;
        break;
      }
    }
    // A transfer onto itself moves nothing.
    const bool is_onto_itself =
        step.rank == step.peer && step.memory == step.peer_memory && step.cell == step.peer_cell;
    if (!is_onto_itself && now.allows(step)) return step;
  }
}

/// A program whose accesses the documents order.
Program right_program(std::uint64_t seed) {
  SplitMix64 random(seed);
  Program program{.ranks = 2 + int(random.below(2)), .steps = {}};
  Situation now;
  const auto add = [&](const Step& step) {
    program.steps.push_back(step);
    now.made(step);
  };
  const auto is_right = [&] { return !Graph(program, Order::promised).race(); };
  const int wanted = 8 + int(random.below(20));
  for (int tries = 0; int(program.steps.size()) < wanted && tries < 200; ++tries) {
    const Program before = program;
    const Situation was = now;
    const Step step = random_step(random, program.ranks, now);
    add(step);
    if (is_right()) continue;
    // Some order before it mends most of them.
    program = before;
    now = was;
    switch (random.below(4)) {
      case 0:
        add({.kind = Kind::barrier});
        break;
      case 1:
        add({.kind = Kind::sync});
        break;
      case 2:
        add({.kind = Kind::quiet, .rank = step.rank});
        break;
      case 3:
        for (int word = 0; word < now.words_used; ++word)
          if (const Step wait{.kind = Kind::wait, .rank = now.waiter[std::size_t(word)], .number = word};
              now.allows(wait))
            add(wait);
        break;
    }
    if (!now.allows(step)) continue;
    add(step);
    if (is_right()) continue;
    program = before;
    now = was;
  }
  for (int one = 0; one < exchanges; ++one)
    if (now.in_flight[std::size_t(one)]) add({.kind = Kind::finish, .number = one});
  return program;
}

/// The program with one step less, or with two neighbours in the other order.
std::vector<Program> variants_of(const Program& right) {
  std::vector<Program> out;
  for (std::size_t s = 0; s < right.steps.size(); ++s) {
    const Step& step = right.steps[s];
    if (step.kind == Kind::barrier || step.kind == Kind::sync || step.kind == Kind::quiet || step.kind == Kind::wait) {
      out.push_back(right);
      out.back().steps.erase(out.back().steps.begin() + std::ptrdiff_t(s));
    }
    if (s == 0) continue;
    out.push_back(right);
    std::swap(out.back().steps[s - 1], out.back().steps[s]);
    if (!is_possible(out.back())) out.pop_back();
  }
  return out;
}

// ---- their runs ---------------------------------------------------------------------------------------------------

using Data = Symmetric<double>;

class OfRank {
 public:
  explicit OfRank(World& world) : world_(world), rma_(world.context()), own_(world) {
    for (int m = 0; m < words; ++m) memory_[std::size_t(m)] = world.allocate<double>(count_of(m));
    words_ = world.allocate<std::uint64_t>(words_max);
    const int n = world.size();
    const Distribution ring({owned * n}, grid(n), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    const Array<double> a(world, ring, local(ring_a)), b(world, ring, local(ring_b));
    const Array<double> all(world, Distribution({owned * n}, grid(1), {whole()}),
                            world.rank() == 0 ? local(gathered) : nullptr);
    exchanges_.push_back(std::make_unique<HaloExchange>(HaloExchange({a})));
    exchanges_.push_back(std::make_unique<HaloExchange>(HaloExchange({b})));
    exchanges_.push_back(std::make_unique<HaloExchange>(HaloExchange({a}, {}, HaloDirection::adjoint)));
    exchanges_.push_back(std::make_unique<Redistribution>(Redistribution(a, all)));
    exchanges_.push_back(std::make_unique<Redistribution>(Redistribution(all, a)));
    exchanges_.push_back(std::make_unique<Redistribution>(Redistribution(a, b)));
    const auto on = [](Rank rank) {
      return ArraySpec{ElementType::f64, Distribution({owned}, Grid({1}, {.first = rank}), {whole()})};
    };
    pipe_.emplace(world, on(0), on(1),
                  PipeOptions{.from = {.count = 1, .memory = {{local(sent_frames)}}},
                              .to = {.count = 1, .memory = {{local(got_frames)}}}});
    world.barrier();
  }

  void run(const Program& program) {
    for (const Step& step : program.steps) {
      if (!step.is_of_all() && step.rank != world_.rank()) continue;
      make(step);
    }
    world_.barrier();
  }

 private:
  double* local(int memory) const { return memory_[std::size_t(memory)].local(); }
  Data cell(int memory, int i) const { return memory_[std::size_t(memory)].slice(i, 1); }
  std::span<double> span(int memory, int i) const { return {local(memory) + i, 1}; }
  Symmetric<std::uint64_t> word(int number) const { return words_.slice(number, 1); }

  void make(const Step& step) {
    const Data there = cell(step.peer_memory, step.peer_cell);
    const std::span<double> here = span(step.memory, step.cell);
    switch (step.kind) {
      case Kind::load:
        return rma_.reads(cell(step.memory, step.cell));
      case Kind::store:
        return rma_.writes(cell(step.memory, step.cell));
      case Kind::put:
        return step.blocks ? rma_.put(there, here, step.peer) : rma_.put_nbi(there, here, step.peer);
      case Kind::get:
        return step.blocks ? rma_.get(here, there, step.peer) : rma_.get_nbi(here, there, step.peer);
      case Kind::quiet:
        return rma_.quiet();
      case Kind::signal:
        return step.blocks ? rma_.put_signal(there, here, word(step.number), 1, SignalOp::set, step.peer)
                           : rma_.put_signal_nbi(there, here, word(step.number), 1, SignalOp::set, step.peer);
      case Kind::wait:
        rma_.wait_until(word(step.number), Comparison::equal, std::uint64_t(1));
        return;
      case Kind::barrier:
        return world_.barrier();
      case Kind::sync:
        return world_.sync();
      case Kind::start:
        return exchanges_[std::size_t(step.number)]->start();
      case Kind::finish:
        return exchanges_[std::size_t(step.number)]->finish();
      case Kind::on_symmetric:
        return collect(step.number);
      case Kind::on_own:
        return collect_own(step.number);
      case Kind::take_sent:
        pipe_->sender().get();
        return;
      case Kind::give_sent:
        return pipe_->sender().put();
      case Kind::take_got:
        pipe_->receiver().get();
        return;
      case Kind::give_got:
        return pipe_->receiver().put();
    }
  }
  Data first_of(int memory, Index count) const { return memory_[std::size_t(memory)].slice(0, count); }
  void collect(int which) {
    const Index all = owned * world_.size();
    switch (which) {
      case reduce_all:
        return all_reduce(world_.team(), first_of(targets, owned), first_of(sources, owned), Reduction::sum);
      case gather_all:
        return all_gather(world_.team(), first_of(targets, all), first_of(sources, owned));
      case spread:
        return broadcast(world_.team(), first_of(targets, owned), first_of(sources, owned), 0);
    }
  }
  void collect_own(int which) {
    const auto of = [&](int memory, Index count) { return std::span(local(memory), std::size_t(count)); };
    switch (which) {
      case reduce_all:
        return own_.all_reduce(of(targets, owned), of(sources, owned), Reduction::sum);
      case gather_all:
        return own_.all_gather(of(targets, owned * world_.size()), of(sources, owned));
      case spread:
        return own_.broadcast(of(targets, owned), of(sources, owned), 0);
    }
  }

  World& world_;
  Context& rma_;
  WorldCollectives own_;
  std::array<SymmetricArray<double>, words> memory_;
  SymmetricArray<std::uint64_t> words_;
  std::vector<std::unique_ptr<ArrayExchange>> exchanges_;
  std::optional<Pipe> pipe_;
};

/// What a run says is wrong, or nothing.
std::optional<std::string> race_of(const Program& program, std::uint64_t seed) {
  try {
    const PeerKind peers = seed % 2 == 0 ? PeerKind::reachable : PeerKind::messaged;
    simulate({.ranks = program.ranks, .seed = seed, .peers = peers, .heap_bytes = std::size_t(1) << 20},
             [&](World& world) { OfRank(world).run(program); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::race) throw;
    return error.message();
  }
  return std::nullopt;
}

std::string text_of(const Program& program) {
  constexpr const char* names[] = {"load",   "store",     "put",       "get",      "quiet",   "signal",
                                   "wait",   "barrier",   "sync",      "start",    "finish",  "on_symmetric",
                                   "on_own", "take_sent", "give_sent", "take_got", "give_got"};
  std::string out = fmt::format("{} ranks", program.ranks);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    out += fmt::format("\n{:3}: {} by {} of {}[{}], peer {} {}[{}], number {}{}", s, names[int(step.kind)],
                       step.is_of_all() ? "all" : fmt::format("{}", step.rank), step.memory, step.cell, step.peer,
                       step.peer_memory, step.peer_cell, step.number, step.blocks ? "" : ", does not block");
  }
  return out;
}

TEST(RandomMoves, are_accused_where_the_documents_do_not_order_them) {
  constexpr std::uint64_t orders = 8;
  int right = 0, wrong = 0, unjudged = 0;
  const std::string fault = first_fault(0.25, [&](std::uint64_t seed) -> std::string {
    const Program program = right_program(seed);
    if (const auto race = race_of(program, seed)) return "a right program: " + *race + "\n" + text_of(program);
    ++right;
    for (const Program& variant : variants_of(program)) {
      const bool is_right = !Graph(variant, Order::promised).race();
      const auto race = Graph(variant, Order::possible).race();
      if (!is_right && !race) {
        ++unjudged;
        continue;
      }
      ++(is_right ? right : wrong);
      // A rank that runs ahead may tell others more than they had to hear.
      std::optional<std::string> said;
      for (std::uint64_t order = 0; order < (is_right ? 1 : orders) && !said; ++order)
        said = race_of(variant, seed + order);
      if (is_right && said) return "a right variant: " + *said + "\n" + text_of(variant);
      if (!is_right && !said)
        return fmt::format("steps {} and {} race, and nothing is said\n{}", race->first, race->second,
                           text_of(variant));
    }
    return "";
  });
  EXPECT_EQ(fault, "");
  EXPECT_GT(wrong, 20);
  EXPECT_GT(right, wrong);
  EXPECT_LT(unjudged, wrong);
}

}  // namespace
}  // namespace tranship::test::moves
