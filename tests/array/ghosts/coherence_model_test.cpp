// Sequences of accesses to arrays with ghosts, on devices, against one global array of values.
//
// All sequences of a few operations up to a length, and random ones that are longer. Every rank chooses its device by
// its own draw; after each operation that reads, every cell that the lease may read has the one right value.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <sched.h>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/tranship.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test {
namespace {

struct Operation {
  enum Kind { read, write, change, add, broadcast, overlapped, reduce, halo } kind;
  Cells cells = Cells::owned;
  Index depth = all_depths;
  bool is_partial = false;
  int device = 0;  ///< of rank 0: the host or a fake device; rank r uses the one that many further
};

std::string to_string(const Operation& o) {
  static const char* const names[] = {"read", "write", "change", "add", "broadcast", "overlapped", "reduce", "halo"};
  return fmt::format("{} {} {}{} on {}", names[o.kind], name_of(o.cells), o.depth, o.is_partial ? " partial" : "",
                     o.device);
}

using Sequence = std::vector<Operation>;
std::string to_string(const Sequence& sequence) {
  std::string out;
  for (const Operation& o : sequence) out += to_string(o) + "; ";
  return out;
}

/// The few that tell most apart.
const Sequence few = {
    {Operation::read, Cells::stored},
    {Operation::read, Cells::ghosts, 1},
    {Operation::read, Cells::owned},
    {Operation::write, Cells::owned},
    {Operation::write, Cells::interior},
    {Operation::write, Cells::owned, 1, true},
    {Operation::add, Cells::stored},
    {Operation::add, Cells::owned},
    {Operation::change, Cells::stored, 1},
    {Operation::read, Cells::stored, 1, true},
    {Operation::overlapped},
};

Sequence all_operations() {
  Sequence out;
  for (const auto kind : {Operation::read, Operation::write, Operation::change, Operation::add})
    for (const Cells cells : {Cells::owned, Cells::interior, Cells::boundary, Cells::ghosts, Cells::stored})
      for (const Index depth : {Index(1), all_depths})
        for (const bool is_partial : {false, true}) out.push_back({kind, cells, depth, is_partial});
  for (const auto kind : {Operation::broadcast, Operation::overlapped, Operation::reduce, Operation::halo}) {
    out.push_back({kind});
    out.push_back({kind, Cells::owned, 1, true});
  }
  return out;
}

/// One rank's part of a run. All ranks go through the same operations.
class Run {
 public:
  Run(World& world, const Distribution& distribution, Devices& devices)
      : world_(world),
        distribution_(distribution),
        spec_{ElementType::f64, distribution},
        array_(world, distribution, BufferOptions{.name = "u", .devices = &devices}),
        ghosts_({array_}) {
    for (Rank rank = 0; rank < world.size(); ++rank) ranks_.emplace_back(spec_, rank);
    const Box whole = ranks_[0].whole();
    partial_ = whole;
    partial_.lower[0] = whole.upper[0] / 4;
    partial_.upper[0] = whole.upper[0] / 2 + 1;
    const Lease lease = array_.write({.device = Device::host()});
    set(lease, array_.local_region(), [](Index id, double) { return double(id); });
    for_each_coordinate(distribution.extents(), [&](const Indices& at) { true_[id_of(at)] = double(id_of(at)); });
  }

  /// What is wrong after it; empty: nothing.
  std::string apply(const Operation& o) {
    const double tag = ++count_ * 1000;
    ArrayAccess access{.cells = o.cells, .depth = o.depth, .region = {}, .device = device(o, 0)};
    if (o.is_partial) access.region = partial_;
    const Region local = array_.local_region(access);
    switch (o.kind) {
      case Operation::read:
        return check(access, local);
      case Operation::write: {
        if (o.cells == Cells::ghosts) break;  // it would have to write what owners hold
        const auto value = [&](Index id, double) { return tag + double(id); };
        set(array_.write(access), local, value);
        for_each_touched(access, [&](Index id) { true_[id] = value(id, 0); });
        break;
      }
      case Operation::change: {
        if (o.cells == Cells::ghosts) break;
        set(array_.read_write(access), local, [](Index, double before) { return before + 3; });
        std::map<Index, bool> seen;
        for_each_touched(access, [&](Index id) {
          if (!std::exchange(seen[id], true)) true_[id] += 3;
        });
        break;
      }
      case Operation::add:
        // Two devices at once, where one adds to what it has and the other begins anew.
        for (int i = 0; i < 2; ++i) {
          access.device = device(o, i);
          set(array_.accumulate(Combine::sum, access), local, [&](Index, double before) { return before + tag; });
          for_each_touched(access, [&](Index id) { true_[id] += tag; });
        }
        break;
      case Operation::broadcast:
        ghosts_.broadcast(o.depth, access.region);
        break;
      case Operation::overlapped: {
        ghosts_.begin_broadcast(o.depth, access.region);
        ArrayAccess inner{.cells = Cells::interior, .depth = all_depths, .region = {}, .device = device(o, 0)};
        const auto value = [&](Index id, double) { return tag + double(id); };
        set(array_.write(inner), array_.local_region(inner), value);
        for_each_touched(inner, [&](Index id) { true_[id] = value(id, 0); });
        ghosts_.end();
        break;
      }
      case Operation::reduce:
        ghosts_.reduce(access.region);
        break;
      case Operation::halo:
        if (!halo_) halo_ = std::make_unique<HaloExchange>(std::vector<ArrayRef>{array_});
        (*halo_)();
        break;
    }
    return "";
  }

  /// Ghosts that are stale are valid nowhere, so that no way around the array reads them.
  std::string check_stale() {
    Coherence& coherence = *array_.ref().coherence;
    for (Index depth = 1; depth <= ranks_[0].depth_max(); ++depth) {
      Region cells = coherence.stale(coherence.scope_of({}, depth));
      for (const Coherence::Pending& one : coherence.pending(ranks_[0].whole(), depth - 1)) cells = cells - one.cells;
      if (cells.empty()) continue;
      const auto ghosts = [&](Index to) {
        return array_.local_region({.cells = Cells::ghosts, .depth = to, .region = cells});
      };
      const Region stale = ghosts(depth) - ghosts(depth - 1);
      for (const Device device : {Device::host(), Device::fake(0), Device::fake(1)})
        if (const Region valid = array_.buffer().valid(device) & stale; !valid.empty())
          return fmt::format("rank {} stale ghosts {} are valid on {}", world_.rank(), tranship::to_string(valid),
                             tranship::to_string(device));
    }
    return "";
  }

  std::string check_all() {
    return check({.cells = Cells::stored, .device = Device::host()}, array_.local_region({.cells = Cells::stored}));
  }

  /// All that may tell how it goes on, on all ranks. Cell by cell: in which pieces it is kept, and what the ledger
  /// would say, changes no value.
  std::uint64_t state() {
    Coherence& coherence = *array_.ref().coherence;
    std::vector<std::uint32_t> text(true_.size() + std::size_t(checked_product(array_.extents())));
    const auto mark = [&](const Region& region, int bit, auto place_of) {
      for_each_index(region, [&](const Indices& at) { text[std::size_t(place_of(at))] |= std::uint32_t(1) << bit; });
    };
    const auto global = [&](const Indices& cell) { return id_of(cell); };
    const auto local = [&](const Indices& at) { return Index(true_.size()) + offset_of(at); };

    for (Index depth = 1; depth <= ranks_[0].depth_max(); ++depth)
      mark(coherence.stale(coherence.scope_of({}, depth)), int(depth), global);
    Region readable = array_.local_region();
    for (const Coherence::Pending& one : coherence.pending(ranks_[0].whole())) {
      mark(one.cells, 16 + int(one.state.pending), global);
      readable =
          readable | array_.local_region({.cells = Cells::ghosts, .depth = one.state.pending, .region = one.cells});
    }
    const Device memories[] = {Device::host(), Device::fake(0), Device::fake(1)};
    for (int target = 0; target < 3; ++target) {
      mark(array_.buffer().valid(memories[target]), target, local);
      for (const CopyRecord& copy :
           array_.buffer().predict(Intent::read, {.device = memories[target], .region = readable})) {
        const auto source = std::find(memories, memories + 3, copy.source) - memories;
        mark(copy.region, 3 + 6 * target + 2 * int(source) + int(copy.cause == Cause::merge), local);
      }
    }
    std::uint64_t all = 0;
    const std::string_view bytes(reinterpret_cast<const char*>(text.data()), text.size() * sizeof text[0]);
    for (const std::uint64_t one : world_.all_gather(std::uint64_t(std::hash<std::string_view>()(bytes))))
      all = all * 0x100000001b3 + one;
    return all;
  }

 private:
  Device device(const Operation& o, int further) const {
    const int which = (o.device + world_.rank() + further) % 3;
    return which == 0 ? Device::host() : Device::fake(which - 1);
  }

  Index id_of(const Indices& cell) const {
    Index id = 0;
    for (int d = 0; d < cell.size(); ++d) {
      const Index extent = distribution_.extents()[d];
      id = id * extent + floor_modulo(cell[d], extent);
    }
    return id;
  }
  static Index floor_modulo(Index a, Index b) { return a - floor_divide(a, b) * b; }

  template <class F>
  static void for_each_index(const Region& region, F&& f) {
    for (const Box& box : region.boxes())
      for_each_coordinate(box.extents(), [&](Indices at) {
        for (int d = 0; d < at.size(); ++d) at[d] += box.lower[d];
        f(at);
      });
  }
  template <class F>
  void for_each_cell(Rank rank, const Region& local, F&& f) const {
    for_each_index(local, [&](const Indices& at) { f(at, id_of(distribution_.cell_of(rank, at).at)); });
  }
  /// Calls f(id) for each local cell of each rank that the access is about.
  template <class F>
  void for_each_touched(const ArrayAccess& access, F&& f) {
    for (Rank rank = 0; rank < world_.size(); ++rank) {
      LocalCells& cells = ranks_[std::size_t(rank)];
      const Index depth = access.depth == all_depths ? cells.depth_max() : access.depth;
      const Region local = cells.region_of(access.cells, access.region.value_or(cells.whole()), depth);
      for_each_cell(rank, local, [&](const Indices&, Index id) { f(id); });
    }
  }

  Index offset_of(const Indices& at) const {
    Index out = 0;
    for (int d = 0; d < at.size(); ++d) out += at[d] * array_.view().strides[d];
    return out;
  }
  template <class F>
  void set(const Lease& lease, const Region& local, F value) const {
    run_on(lease.stream(), [this, data = lease.data<double>(), local, value] {
      for_each_cell(world_.rank(), local, [&](const Indices& at, Index id) {
        double& cell = data[offset_of(at)];
        cell = value(id, cell);
      });
    });
    finish(lease.stream().event(), Deadline::after_seconds(60));
  }
  std::string check(const ArrayAccess& access, const Region& local) {
    const Lease lease = array_.read(access);
    std::string fault;
    run_on(lease.stream(), [&, data = lease.data<const double>()] {
      for_each_cell(world_.rank(), local, [&](const Indices& at, Index id) {
        if (fault.empty() && data[offset_of(at)] != true_[id])
          fault = fmt::format("rank {} local [{}] on {} holds {}, not {}", world_.rank(), tranship::to_string(at),
                              tranship::to_string(lease.device()), data[offset_of(at)], true_[id]);
      });
    });
    finish(lease.stream().event(), Deadline::after_seconds(60));
    return fault;
  }

  World& world_;
  const Distribution& distribution_;
  ArraySpec spec_;
  Array<double> array_;
  Ghosts ghosts_;
  std::unique_ptr<HaloExchange> halo_;
  std::vector<LocalCells> ranks_;
  Box partial_;
  std::map<Index, double> true_;
  double count_ = 0;
};

std::string run(World& world, const Distribution& distribution, Devices& devices, const Sequence& sequence,
                std::uint64_t* state = nullptr) {
  std::string fault;
  try {
    Run run(world, distribution, devices);
    for (const Operation& o : sequence)
      if (fault.empty()) fault = run.apply(o);
    if (fault.empty() && state) fault = run.check_stale();
    if (fault.empty() && state) *state = run.state();
    if (fault.empty()) fault = run.check_all();
  } catch (const Error& error) {
    fault = fmt::format("rank {}: {}", world.rank(), error.what());
  }
  return fault.empty() ? "" : fmt::format("{}\n  {}", fault, to_string(sequence));
}

struct Layout {
  const char* name;
  int ranks;
  Distribution distribution;
};
void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.name;
}

std::vector<Layout> layouts() {
  const auto torus = [](Index depth) { return block().with_overlap(depth, depth, EdgePolicy::toroidal); };
  std::vector<Layout> out;
  out.push_back({"ring_of_one", 1, {{9}, grid(1), {torus(2)}}});
  out.push_back({"ring", 2, {{12}, grid(2), {torus(2)}}});
  out.push_back({"line", 2, {{13}, grid(2), {block().with_overlap(1, 2)}}});
  out.push_back({"torus", 4, {{8, 6}, grid(2, 2), {torus(2), torus(1)}}});
  out.push_back({"cyclic", 2, {{12, 3}, grid(2, 1), {cyclic(3).with_overlap(1, 1), whole()}}});
  out.push_back(
      {"forest", 2,
       Distribution::indexed({8, 2}, 1, grid(2),
                             {{.owned = {0, 1, 2, 3}, .ghosts = {4, 5}}, {.owned = {7, 6, 5, 4}, .ghosts = {3, 0}}})});
  return out;
}

/// The ranks take turns on one core: they meet so often that waiting for each other would be most of the work.
template <class F>
void launch_on_one_core(int ranks, F&& f) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const auto outcome = attempt([&] { launch({.ranks = ranks, .pinning = Pinning::none}, f); });
  sched_setaffinity(0, sizeof all, &all);
  outcome.value();
}

using States = std::set<std::uint64_t>;
enum class Sequences {
  all,
  one_for_each_state,  ///< those alone go on that lead where no shorter or earlier one has led
};

/// Tries sequences up to a length. Returns the states that they lead to.
States explore(const Layout& layout, Index length, Sequences which) {
  Devices devices({.fake = {.count = 2}});
  States seen;
  launch_on_one_core(layout.ranks, [&](World& world) {
    States mine;
    std::vector<Sequence> level{{}};
    Index runs = 0;
    for (Index depth = 1; depth <= length; ++depth) {
      std::vector<Sequence> next;
      for (const Sequence& before : level)
        for (Operation o : few)
          for (o.device = 0; o.device < 2; ++o.device) {
            Sequence sequence = before;
            sequence.push_back(o);
            std::uint64_t state = 0;
            ASSERT_EQ(run(world, layout.distribution, devices, sequence, &state), "") << layout.name;
            ++runs;
            if (mine.insert(state).second || which == Sequences::all) next.push_back(std::move(sequence));
          }
      level = std::move(next);
      if (world.rank() == 0 && long_tests())
        fmt::print("{}: {} operations, {} sequences, {} states\n", layout.name, depth, runs, mine.size());
    }
    if (world.rank() == 0) seen = std::move(mine);
  });
  return seen;
}

class CoherenceModelOf : public ::testing::TestWithParam<Layout> {};

TEST_P(CoherenceModelOf, ShortSequences) {
  const Index length = long_tests() ? 6 : GetParam().ranks == 1 ? 3 : 2;
  explore(GetParam(), environment_number("TRANSHIP_TEST_LENGTH", length), Sequences::one_for_each_state);
}

// That nothing is left out because two states look alike but are not.
TEST_P(CoherenceModelOf, SequencesThatStandForOthers) {
  const Index length = long_tests() ? 3 : 2;
  EXPECT_EQ(explore(GetParam(), length, Sequences::all), explore(GetParam(), length, Sequences::one_for_each_state));
}

std::vector<Layout> small_layouts() {
  std::vector<Layout> out = layouts();
  std::erase_if(out, [](const Layout& layout) { return layout.ranks > 2; });
  return out;
}
INSTANTIATE_TEST_SUITE_P(Layouts, CoherenceModelOf, ::testing::ValuesIn(small_layouts()),
                         ::testing::PrintToStringParamName());

TEST(CoherenceModel, RandomSequences) {
  const Sequence operations = all_operations();
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::threaded}) {
    Devices devices({.fake = {.count = 2, .timing = timing}});
    for (const Layout& layout : layouts())
      EXPECT_EQ(first_fault(timing == FakeTiming::eager ? 0.01 : 0.002,
                            [&](std::uint64_t seed) {
                              Random random(seed);
                              Sequence sequence;
                              for (int i = 0; i < 16; ++i) {
                                sequence.push_back(random.pick(operations));
                                sequence.back().device = int(random.below(3));
                              }
                              std::vector<std::string> faults(std::size_t(layout.ranks));
                              launch(layout.ranks, [&](World& world) {
                                faults[std::size_t(world.rank())] = run(world, layout.distribution, devices, sequence);
                              });
                              for (const std::string& fault : faults)
                                if (!fault.empty()) return fmt::format("{}: {}", layout.name, fault);
                              return std::string();
                            }),
                "");
  }
}

}  // namespace
}  // namespace tranship::test
