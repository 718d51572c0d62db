// Sequences of accesses to arrays with ghosts, on devices, against one global array of values.
//
// All sequences of a few operations up to a length, and random ones that are longer, of arrays that count cells and of
// staggered ones, in which each part has a value of its own for an interface that it shares. Every rank chooses its
// device by its own draw; after each operation that reads, every cell that the lease may read has the one right value.
// Which cells an access is about is computed here a second time, cell by cell.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <sched.h>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/tranship.hpp>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test::coherence_model_test {
namespace {

using tranship::Cells, tranship::name_of, test::name_of;  // test::Cells are values

struct Operation {
  enum Kind { read, write, change, add, broadcast, overlapped, reduce, halo } kind;
  Cells cells = Cells::owned;
  Index depth = all_depths;
  bool is_partial = false;
  int device = 0;            ///< of rank 0: the host or a fake device; rank r uses the one that many further
  std::uint64_t region = 0;  ///< where it is partial: the seed of its region; 0: a quarter of the array
};

std::string to_string(const Operation& o) {
  static const char* const names[] = {"read", "write", "change", "add", "broadcast", "overlapped", "reduce", "halo"};
  return fmt::format("{} {} {}{} on {}", names[o.kind], name_of(o.cells), o.depth,
                     o.is_partial ? fmt::format(" partial {}", o.region) : "", o.device);
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

/// What each rank stores, cell by cell.
class StoredCells {
 public:
  struct Cell {
    Indices at;             ///< in the local array
    Index id = none;        ///< of the value that it holds: a number for each cell, and of an interface for each part
    Indices global;         ///< the cell that it stands for
    Index depth = 0;        ///< of a ghost
    bool is_fixed = false;  ///< a zero beyond the edge
  };
  static constexpr Index none = -1;  ///< holds nothing that tranship knows of

  explicit StoredCells(const Distribution& array) : array_(array) {
    const Global number(array);
    const int dims = array.dims();
    for (Rank rank = 0; rank < array.grid().world_size_min(); ++rank) {
      std::vector<Cell>& cells = ranks_.emplace_back();
      const LocalPoints points(array, rank);
      for_each_coordinate(array.local_extents(rank), [&](const Indices& at) {
        Cell cell{at};
        if (array.is_indexed()) {
          const Distribution::Cell known = array.cell_of(rank, at);
          cell.id = number(known.at);
          cell.global = {known.at[0]};
          cell.depth = known.owned ? 0 : 1;
        } else {
          unsigned uppers = 0;
          const Resolved::Kind kind = points.resolve_at(at, cell.global, uppers);
          cell.is_fixed = kind == Resolved::zero;
          if (kind == Resolved::value) cell.id = number(cell.global, uppers & shared_dims(array, cell.global));
          for (int d = 0; d < dims; ++d) {
            const AxisPoint& point = points.point(d, at[d]);
            cell.depth = std::max({cell.depth, point.beyond(), -point.beyond()});
            const Resolved::Kind along = resolve(array.axis(d), point).kind;
            if (along != Resolved::value) cell.global[d] = point.cell < 0 ? 0 : array.extents()[d] - 1;
          }
        }
        cells.push_back(cell);
      });
      for (const Cell& cell : cells) depth_max_ = std::max(depth_max_, cell.depth);
    }
    if (!array.is_indexed())
      for (int d = 0; d < dims; ++d) {
        const Overlap& overlap = array.axis(d).partition().overlap;
        depth_max_ = std::max({depth_max_, overlap.left.width, overlap.right.width});
      }
  }

  const Distribution& array() const { return array_; }
  Index depth_max() const { return depth_max_; }
  Box whole() const {
    return array_.is_indexed() ? Box::of_extents({array_.id_count()}) : Box::of_extents(array_.extents());
  }
  const std::vector<Cell>& of(Rank rank) const { return ranks_[std::size_t(rank)]; }
  Rank ranks() const { return Rank(ranks_.size()); }

  /// Those of one rank that an access is about.
  std::vector<Cell> touched(Rank rank, const ArrayAccess& access) const {
    if (rank >= ranks()) return {};
    const Region region = access.region.value_or(whole());
    const Index depth = access.depth == all_depths ? depth_max_ : access.depth;
    const bool is_all = access.cells == Cells::stored && depth == depth_max_ && region == Region(whole());
    const auto is_ghost = [&](const Cell& cell) {
      return cell.depth > 0 && cell.depth <= depth && (cell.id != none || cell.is_fixed) &&
             region.contains(cell.global);
    };
    std::set<Index> read;  // by a ghost
    if (access.cells == Cells::interior || access.cells == Cells::boundary)
      for (const auto& cells : ranks_)
        for (const Cell& cell : cells)
          if (is_ghost(cell)) read.insert(cell.id);
    std::vector<Cell> out;
    for (const Cell& cell : of(rank)) {
      const bool is_owned = cell.depth == 0 && region.contains(cell.global);
      const bool is_sent = is_owned && read.count(cell.id) > 0;
      const bool is_in = access.cells == Cells::owned      ? is_owned
                         : access.cells == Cells::ghosts   ? is_ghost(cell)
                         : access.cells == Cells::stored   ? is_all || is_owned || is_ghost(cell)
                         : access.cells == Cells::boundary ? is_sent
                                                           : is_owned && !is_sent;
      if (is_in) out.push_back(cell);
    }
    return out;
  }

 private:
  const Distribution& array_;
  Index depth_max_ = 0;
  std::vector<std::vector<Cell>> ranks_;
};

/// One rank's part of a run. All ranks go through the same operations.
class Run {
 public:
  using Cell = StoredCells::Cell;

  Run(World& world, const StoredCells& stored, Devices& devices)
      : world_(world),
        stored_(stored),
        array_(world, stored.array(), BufferOptions{.name = "u", .devices = &devices}),
        ghosts_({array_}) {
    const Lease lease = array_.write({.device = Device::host()});
    set(lease, {}, [](Index id, double) { return double(id); });
    for (Rank rank = 0; rank < stored_.ranks(); ++rank)
      for (const Cell& cell : stored_.of(rank)) true_[cell.id] = double(cell.id);
  }

  /// What is wrong after it; empty: nothing.
  std::string apply(const Operation& o) {
    const double tag = ++count_ * 1000;
    const Index depth = std::min(o.depth, stored_.depth_max());
    ArrayAccess access{.cells = o.cells, .depth = depth, .region = {}, .device = device(o, 0)};
    if (o.is_partial) access.region = region_of(o);
    if (std::string fault = check_region(access); !fault.empty()) return fault;
    switch (o.kind) {
      case Operation::read:
        return check(access);
      case Operation::write: {
        if (o.cells == Cells::ghosts) break;  // it would have to write what owners hold
        const auto value = [&](Index id, double) { return tag + double(id); };
        set(array_.write(access), access, value);
        for_each_touched(access, [&](Index id) { true_[id] = value(id, 0); });
        break;
      }
      case Operation::change: {
        if (o.cells == Cells::ghosts) break;
        set(array_.read_write(access), access, [](Index, double before) { return before + 3; });
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
          set(array_.accumulate(Combine::sum, access), access, [&](Index, double before) { return before + tag; });
          for_each_touched(access, [&](Index id) { true_[id] += tag; });
        }
        break;
      case Operation::broadcast:
        ghosts_.broadcast(depth, access.region);
        break;
      case Operation::overlapped: {
        ghosts_.begin_broadcast(depth, access.region);
        ArrayAccess inner{.cells = Cells::interior, .depth = all_depths, .region = {}, .device = device(o, 0)};
        const auto value = [&](Index id, double) { return tag + double(id); };
        set(array_.write(inner), inner, value);
        for_each_touched(inner, [&](Index id) { true_[id] = value(id, 0); });
        ghosts_.end();
        break;
      }
      case Operation::reduce:
        ghosts_.reduce(access.region);
        break;
      case Operation::halo:
        if (stored_.depth_max() == 0) break;
        if (!halo_) halo_ = std::make_unique<HaloExchange>(std::vector<ArrayRef>{array_});
        (*halo_)();
        break;
    }
    return "";
  }

  /// Ghosts that are stale are valid nowhere, so that no way around the array reads them.
  std::string check_stale() {
    Coherence& coherence = *array_.ref().coherence;
    for (Index depth = 1; depth <= stored_.depth_max(); ++depth) {
      Region cells = coherence.stale(coherence.scope_of({}, depth));
      for (const Coherence::Pending& one : coherence.pending(stored_.whole(), depth - 1)) cells = cells - one.cells;
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

  std::string check_all() { return check({.cells = Cells::stored, .device = Device::host()}); }

  /// All that may tell how it goes on, on all ranks. Cell by cell: in which pieces it is kept, and what the ledger
  /// would say, changes no value.
  std::uint64_t state() {
    Coherence& coherence = *array_.ref().coherence;
    const Indices whole = stored_.whole().upper;
    const auto cells = Index(checked_product(whole));
    std::vector<std::uint32_t> text(std::size_t(cells + checked_product(array_.extents())));
    const auto mark = [&](const Region& region, int bit, auto place_of) {
      for_each_index(region, [&](const Indices& at) { text[std::size_t(place_of(at))] |= std::uint32_t(1) << bit; });
    };
    const auto global = [&](const Indices& cell) {
      Index out = 0;
      for (int d = 0; d < cell.size(); ++d) out = out * whole[d] + cell[d];
      return out;
    };
    const auto local = [&](const Indices& at) { return cells + offset_of(at); };

    for (Index depth = 1; depth <= stored_.depth_max(); ++depth)
      mark(coherence.stale(coherence.scope_of({}, depth)), int(depth), global);
    Region readable = array_.local_region();
    for (const Coherence::Pending& one : coherence.pending(stored_.whole())) {
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

  Region region_of(const Operation& o) const {
    const Box whole = stored_.whole();
    if (o.region == 0) {
      Box out = whole;
      out.lower[0] = whole.upper[0] / 4;
      out.upper[0] = whole.upper[0] / 2 + 1;
      return out;
    }
    Random random(o.region);
    std::vector<Box> boxes;
    for (Index n = random.between(1, 2); n > 0; --n) {
      Box& box = boxes.emplace_back(whole);
      for (int d = 0; d < whole.dims(); ++d) {
        box.lower[d] = random.between(0, whole.upper[d]);
        box.upper[d] = random.between(box.lower[d], whole.upper[d]);
      }
    }
    return Region::boxes(boxes);
  }

  template <class F>
  static void for_each_index(const Region& region, F&& f) {
    for (const Box& box : region.boxes())
      for_each_coordinate(box.extents(), [&](Indices at) {
        for (int d = 0; d < at.size(); ++d) at[d] += box.lower[d];
        f(at);
      });
  }
  /// Calls f(id) for each value that the access is about, once for each cell of each rank that holds it.
  template <class F>
  void for_each_touched(const ArrayAccess& access, F&& f) const {
    for (Rank rank = 0; rank < stored_.ranks(); ++rank)
      for (const Cell& cell : stored_.touched(rank, access))
        if (cell.id != StoredCells::none) f(cell.id);
  }
  std::string check_region(const ArrayAccess& access) {
    std::vector<Box> expected;
    for (const Cell& cell : stored_.touched(world_.rank(), access)) {
      Box& box = expected.emplace_back(Box{cell.at, cell.at});
      for (int d = 0; d < box.dims(); ++d) ++box.upper[d];
    }
    const Region local = array_.local_region(access), right = Region::boxes(expected);
    if (local == right) return "";
    return fmt::format("rank {} touches {}, not {}", world_.rank(), tranship::to_string(local),
                       tranship::to_string(right));
  }

  Index offset_of(const Indices& at) const {
    Index out = 0;
    for (int d = 0; d < at.size(); ++d) out += at[d] * array_.view().strides[d];
    return out;
  }
  template <class F>
  void set(const Lease& lease, const ArrayAccess& access, F value) const {
    run_on(lease.stream(),
           [this, data = lease.data<double>(), touched = stored_.touched(world_.rank(), access), value] {
             for (const Cell& cell : touched) {
               double& element = data[offset_of(cell.at)];
               element = cell.is_fixed ? 0 : value(cell.id, element);
             }
           });
    finish(lease.stream().event(), Deadline::after_seconds(60));
  }
  std::string check(const ArrayAccess& access) {
    const Lease lease = array_.read(access);
    std::string fault;
    run_on(lease.stream(), [&, data = lease.data<const double>()] {
      for (const Cell& cell : stored_.touched(world_.rank(), access)) {
        const double expected = cell.is_fixed ? 0 : true_[cell.id], got = data[offset_of(cell.at)];
        if (fault.empty() && (cell.is_fixed || cell.id != StoredCells::none) && got != expected)
          fault = fmt::format("rank {} local [{}] on {} holds {}, not {}", world_.rank(), tranship::to_string(cell.at),
                              tranship::to_string(lease.device()), got, expected);
      }
    });
    finish(lease.stream().event(), Deadline::after_seconds(60));
    return fault;
  }

  World& world_;
  const StoredCells& stored_;
  Array<double> array_;
  Ghosts ghosts_;
  std::unique_ptr<HaloExchange> halo_;
  std::map<Index, double> true_;
  double count_ = 0;
};

std::string run(World& world, const StoredCells& stored, Devices& devices, const Sequence& sequence,
                std::uint64_t* state = nullptr) {
  std::string fault;
  try {
    Run run(world, stored, devices);
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
  // Staggered: two parts share an interface, three and more parts a corner, or the two ends of a period meet.
  const auto faces = [](Partition cut) { return cut.with_interfaces(); };
  out.push_back({"faces_of_one", 1, {{6}, grid(1), {faces(torus(2))}}});
  out.push_back({"faces_ring", 2, {{9}, grid(2), {faces(torus(2))}}});
  out.push_back({"faces_line", 2, {{8}, grid(2), {faces(irregular({0, 3, 7}).with_overlap(1, 2))}}});
  out.push_back({"faces_alone", 2, {{6, 3}, grid(2, 1), {faces(block()), whole()}}});
  out.push_back({"corners", 4, {{6, 5}, grid(2, 2), {faces(torus(1)), faces(block().with_overlap(1, 1))}}});
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

/// Tries sequences up to a length, of the longest one of `of`. Returns the states that they lead to.
States explore(const Layout& layout, Index length, Sequences which, Index of = 1) {
  Devices devices({.kinds = {FakeDevices{.count = 2}}});
  const StoredCells stored(layout.distribution);
  States seen;
  launch_on_one_core(layout.ranks, [&](World& world) {
    States mine;
    std::vector<Sequence> level{{}};
    Index runs = 0, longest = 0;
    for (Index depth = 1; depth <= length; ++depth) {
      std::vector<Sequence> next;
      for (const Sequence& before : level)
        for (Operation o : few)
          for (o.device = 0; o.device < 2; ++o.device) {
            if (depth == length && longest++ % of != 0) continue;
            Sequence sequence = before;
            sequence.push_back(o);
            std::uint64_t state = 0;
            ASSERT_EQ(run(world, stored, devices, sequence, &state), "") << layout.name;
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
  explore(GetParam(), environment_number("TRANSHIP_TEST_LENGTH", length), Sequences::one_for_each_state,
          is_brief() ? 5 : 1);
}

// That nothing is left out because two states look alike but are not.
TEST_P(CoherenceModelOf, SequencesThatStandForOthers) {
  if (is_brief() && GetParam().ranks > 1) GTEST_SKIP() << "of states alone: in brief runs those of one rank";
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

/// A random sequence on the ranks of a back-end; what is wrong after it.
std::string random_fault(On on, const Layout& layout, Devices& devices, Random& random, bool random_regions) {
  static const Sequence operations = all_operations();
  const StoredCells stored(layout.distribution);
  Sequence sequence;
  for (int i = 0; i < 16; ++i) {
    sequence.push_back(random.pick(operations));
    sequence.back().device = int(random.below(3));
    if (random_regions) sequence.back().region = random.bits() | 1;
  }
  std::vector<std::string> faults(std::size_t(layout.ranks));
  run_once(on, {.ranks = layout.ranks, .heap_bytes = std::size_t(1) << 20}, random.bits(), [&](World& world) {
    std::string& fault = faults[std::size_t(world.rank())] = run(world, stored, devices, sequence);
    if (are_processes(on)) require(fault.empty(), "{}", fault);  // which it does not leave
  });
  for (const std::string& fault : faults)
    if (!fault.empty())
      return fmt::format("{} {}: {}", layout.name, to_text({ElementType::f64, layout.distribution}), fault);
  return "";
}

TEST(CoherenceModel, RandomSequences) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::threaded}) {
    Devices devices({.kinds = {FakeDevices{.count = 2, .timing = timing}}});
    for (const Layout& layout : layouts())
      EXPECT_EQ(first_fault(timing == FakeTiming::eager ? 0.01 : 0.002,
                            [&](std::uint64_t seed) {
                              Random random(seed);
                              return random_fault(On::threads, layout, devices, random, false);
                            }),
                "");
  }
}

/// Block and irregular parts of cells and interfaces, in one to three dimensions, with any overlap and edges.
Layout random_staggered(Random& random) {
  const int dims = int(random.between(1, 3));
  Indices extents, parts;
  std::vector<Partition> cuts;
  Index ranks = 1;
  for (int d = 0; d < dims; ++d) {
    parts.push_back(random.between(1, ranks > 2 ? 1 : 3));
    ranks *= parts[d];
    const Index cells = random.between(1, dims == 1 ? 14 : dims == 2 ? 7 : 4);
    const bool is_staggered = d == 0 || random.one_in(2);
    Partition cut = random.one_in(2)
                        ? irregular(random_bounds(random, cells, parts[d]))
                        : block(random.pick<Remainder>({Remainder::low, Remainder::high, Remainder::ceil}));
    if (is_staggered) cut = cut.with_interfaces();
    if (!random.one_in(4)) {
      const OverlapSide left{random.between(0, 3), random_edge(random)};
      const OverlapSide right{random.between(0, 3), random.one_in(2) ? left.edge : random_edge(random)};
      cut = cut.with_overlap(left, right);
    }
    extents.push_back(cells + is_staggered);
    cuts.push_back(cut);
  }
  return {"staggered", int(ranks), {extents, Grid(parts), cuts}};
}

/// What a read of ghosts sees after a redistribution into them, against what their owners hold then. Parts of the
/// source have different values for the interfaces that they share.
std::string redistribution_fault(Random& random, Devices& devices) {
  const Layout layout = random_staggered(random);
  const Indices& extents = layout.distribution.extents();
  std::vector<Partition> cuts;
  for (int d = 0; d < extents.size(); ++d) {
    const Partition& cut = layout.distribution.axis(d).partition();
    if (cut.points == Points::interfaces && random.one_in(4)) {
      cuts.push_back(cut);
    } else {
      const Index points = random.one_in(4) ? 0 : 1;
      cuts.push_back(irregular(random_bounds(random, extents[d] - points, layout.distribution.grid().extents()[d])));
      if (points) cuts.back() = cuts.back().with_interfaces();
    }
  }
  const Distribution source(extents, layout.distribution.grid(), cuts);
  std::optional<SubArray> part;
  if (random.one_in(3)) {
    part.emplace();
    for (int d = 0; d < extents.size(); ++d) {
      part->extents.push_back(random.between(0, extents[d]));
      part->source.push_back(random.between(0, extents[d] - part->extents[d]));
      part->target.push_back(random.between(0, extents[d] - part->extents[d]));
    }
  }
  const StoredCells from(source), stored(layout.distribution);
  const auto owns = [](const StoredCells::Cell& cell) { return cell.depth == 0; };
  std::vector<std::string> faults(std::size_t(layout.ranks));
  std::vector<std::map<Index, double>> held(std::size_t(layout.ranks));
  launch(layout.ranks, [&](World& world) {
    const auto me = std::size_t(world.rank());
    const Array<double> a(world, source, BufferOptions{.name = "a", .devices = &devices});
    const Array<double> b(world, layout.distribution, BufferOptions{.name = "b", .devices = &devices});
    const auto element = [](const Lease& lease, const StoredCells::Cell& cell) -> double& {
      Index offset = 0;
      for (int d = 0; d < cell.at.size(); ++d) offset += cell.at[d] * lease.view().strides[d];
      return lease.data<double>()[offset];
    };
    const auto write = [&](const Array<double>& array, const StoredCells& cells, double add) {
      const Lease lease = array.write({.device = Device::host()});
      for (const auto& cell : cells.of(world.rank()))
        if (owns(cell)) element(lease, cell) = add + double(cell.id);
    };
    write(a, from, 1e6);
    write(b, stored, 0);
    Redistribution(a, b, {.part = part})();
    {
      const Lease lease = b.read_write({.device = Device::host()});
      for (const auto& cell : stored.of(world.rank()))
        if (owns(cell)) held[me][cell.id] = element(lease, cell);
    }
    Redistribution(a, b, {.part = part})();
    world.barrier();
    const Lease lease = b.read({.cells = Cells::stored, .device = Device::fake(0)});
    finish(lease.stream().event(), Deadline::after_seconds(60));
    for (const auto& cell : stored.of(world.rank())) {
      double expected = 0;
      if (cell.id == StoredCells::none && !cell.is_fixed) continue;
      for (const auto& owned : held)
        if (const auto known = owned.find(cell.id); known != owned.end() && !cell.is_fixed) expected = known->second;
      Index offset = 0;
      for (int d = 0; d < cell.at.size(); ++d) offset += cell.at[d] * lease.view().strides[d];
      if (const double got = lease.data<const double>()[offset]; got != expected)
        faults[me] =
            fmt::format("rank {} local [{}] holds {}, not {}", me, tranship::to_string(cell.at), got, expected);
    }
  });
  for (const std::string& fault : faults)
    if (!fault.empty())
      return fmt::format("{}\n  from {}\n  to {}{}", fault, to_text({ElementType::f64, source}),
                         to_text({ElementType::f64, layout.distribution}), part ? "\n  a part" : "");
  return "";
}

TEST(StaggeredModel, GhostsHoldWhatOwnersHoldAfterRedistributions) {
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
  EXPECT_EQ(first_fault(0.1,
                        [&](std::uint64_t seed) {
                          Random random(seed);
                          return redistribution_fault(random, devices);
                        }),
            "");
}

class StaggeredModelOn : public ::testing::TestWithParam<On> {};
INSTANTIATE_TEST_SUITE_P(On, StaggeredModelOn,
                         ::testing::Values(On::threads, On::sim, On::messaged, On::hosts, On::apart, On::dealt),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(StaggeredModelOn, RandomLayoutsAndRegions) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::threaded}) {
    if (are_processes(GetParam()) && timing == FakeTiming::threaded) continue;  // threads do not survive a fork
    Devices devices({.kinds = {FakeDevices{.count = 2, .timing = timing}}});
    const double share = (timing == FakeTiming::eager ? 0.05 : 0.01) * (are_apart(GetParam()) ? 0.1 : 1);
    EXPECT_EQ(first_fault(share,
                          [&](std::uint64_t seed) {
                            Random random(seed);
                            const Layout layout = random_staggered(random);
                            return random_fault(GetParam(), layout, devices, random, true);
                          }),
              "");
  }
}

}  // namespace
}  // namespace tranship::test::coherence_model_test
