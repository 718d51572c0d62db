// Arrays on every back-end: what is reachable is copied straight, all else by way of buffers or of puts with signals.
#include <atomic>

#include <tranship/tranship.hpp>

#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

class Everywhere : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Everywhere,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt),
                                            ::testing::ValuesIn(sizes_up_to(4, {1, 2, 4, 6}))),
                         OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnSub, Everywhere,
                         ::testing::Combine(::testing::Values(On::sub, On::sub_messaged, On::sub_hosts, On::listed,
                                                              On::listed_messaged),
                                            ::testing::Values(1, 3)),
                         OnRanks::name);

double value_of(const Indices& cell) {
  double out = 1;
  for (const Index i : cell) out = out * 1009 + double(i);
  return out;
}

TEST_P(Everywhere, arrays_are_redistributed_in_every_schedule) {
  run([](World& world) {
    const int n = world.size();
    const auto rows = distribution({37, 23}, grid(n, 1), {block(), whole()});
    const auto tiles =
        distribution({37, 23}, grid(1, n), {whole(), cyclic(3).with_overlap(1, 2, EdgePolicy::toroidal)});
    Array<double> a(world, rows), b(world, tiles), c(world, rows);
    a.fill_owned(value_of);
    for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged, Schedule::measured}) {
      Redistribution there(a, b, {.schedule = schedule}), back(b, c, {.schedule = schedule});
      for (int repeat = 0; repeat < 3; ++repeat) {
        there();
        require(b.count_wrong(value_of) == 0, "there");
        back();
        require(c.count_wrong(value_of) == 0, "back");
      }
    }
  });
}

// Blocks without a common factor: each pair of parts meets in a lattice, of rows and of single elements. The messages
// of few ranks are large enough to be cut into parts.
TEST_P(Everywhere, dealt_arrays_are_redistributed_in_every_schedule) {
  run([](World& world) {
    const int n = world.size();
    if (n == 1) return;
    const auto line = distribution({400'011}, grid(n), {cyclic(2003)});
    const auto other_line = distribution({400'011}, grid(2), {cyclic(2011).with_overlap(3, 2, EdgePolicy::toroidal)});
    const auto rows = distribution({20'011, 6}, grid(n, 1), {cyclic(97), whole()});
    const auto tiles =
        distribution({20'011, 6}, grid(2, n / 2), {cyclic(101).with_overlap(3, 2, EdgePolicy::toroidal), block()});
    for (const auto& [from, to] : {std::pair(&line, &other_line), {&rows, &tiles}}) {
      const TransferPlan plan = plan_redistribution({ElementType::f64, *from}, {ElementType::f64, *to}, 0);
      require(!plan.receives.at(0).axes[0][0].lattices.empty(), "a lattice");
    }
    Array<double> a(world, line), b(world, other_line), c(world, rows), d(world, tiles), back(world, rows);
    a.fill_owned(value_of);
    c.fill_owned(value_of);
    for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged}) {
      Redistribution lines(a, b, {.schedule = schedule}), there(c, d, {.schedule = schedule}),
          home(d, back, {.schedule = schedule});
      for (int repeat = 0; repeat < (is_brief() ? 1 : 2); ++repeat) {
        lines();
        require(b.count_wrong(value_of) == 0, "lines");
        there();
        require(d.count_wrong(value_of) == 0, "there");
        home();
        require(back.count_wrong(value_of) == 0, "home");
      }
    }
  });
}

TEST_P(Everywhere, foreign_memory_takes_part) {
  const On on = this->on();
  run([on](World& world) {
    const int n = world.size();
    const auto rows = distribution({40, 30}, grid(n, 1), {block(), whole()});
    const auto columns =
        distribution({40, 30}, grid(1, n), {whole(), block().with_overlap(1, 1, EdgePolicy::toroidal)});
    std::vector<double> memory(std::size_t(columns.storage(world.rank()).elements), -1);
    Array<double> a(world, rows);
    const Array<double> b(world, columns, memory.data());
    a.fill_owned(value_of);
    Redistribution turn(a, b);
    HaloExchange halo(std::vector<ArrayRef>{b});
    for (int repeat = 0; repeat < 3; ++repeat) {
      turn();
      halo();
    }
    require(b.count_wrong(value_of) == 0, "turned");
    const std::string said = turn.explain();
    const char* way = is_simulated(on) || are_apart(on) ? "posted"
                      : on == On::processes             ? "schedule: staged ("
                                                        : "schedule: direct (";
    require(n == 1 || said.find(way) != std::string::npos, "{}", said);
  });
}

/// Fields of an exchange that takes a snapshot, and the same fields again for one that does not.
struct Twice {
  std::vector<Array<double>> kept, moved;

  /// Cells of these layouts, each with a value that no other one has in this round.
  void fill(Rank rank, int round) {
    for (std::vector<Array<double>>* fields : {&kept, &moved}) {
      double value = 1 + 1e6 * rank + 1e3 * round;
      for (const Array<double>& field : *fields)
        for_each_coordinate(field.view().extents, [&](const Indices& local) { field.put(local, value += 1); });
    }
  }
};

/// Runs `moved` in place and `kept` with a snapshot, round after round: while that is in flight each rank writes all
/// its cells. Whatever the exchange in place changes must then hold what that left there, and everything else what was
/// written. Ranks that are quick are two exchanges ahead of those that are slow.
void check_snapshot(World& world, Twice& fields, ArrayExchange& in_place, ArrayExchange& snapshot, std::uint64_t seed) {
  constexpr int rounds = 6;
  struct Cell {
    double expected;
    bool is_received;
  };
  std::vector<std::vector<Cell>> expected(rounds);
  for (int round = 0; round < rounds; ++round) {
    fields.fill(world.rank(), round);
    in_place();
    for (std::size_t f = 0; f < fields.kept.size(); ++f)
      for_each_coordinate(fields.kept[f].view().extents, [&](const Indices& local) {
        const double after = fields.moved[f].get(local);
        expected[std::size_t(round)].push_back({after, after != fields.kept[f].get(local)});
      });
  }
  Random random(seed * 100 + std::uint64_t(world.rank()));
  for (int round = 0; round < rounds; ++round) {
    fields.fill(world.rank(), round);
    snapshot.start();
    double written = -1e9;
    for (const Array<double>& field : fields.kept)
      for_each_coordinate(field.view().extents, [&](const Indices& local) { field.put(local, written -= 1); });
    while (random.one_in(2)) {
      if (snapshot.test()) break;
      double seen = -1e9;
      for (const Array<double>& field : fields.kept)
        for_each_coordinate(field.view().extents, [&](const Indices& local) {
          require(field.get(local) == (seen -= 1), "a test that is not done touches cells");
        });
    }
    snapshot.finish();
    written = -1e9;
    std::size_t i = 0;
    for (const Array<double>& field : fields.kept)
      for_each_coordinate(field.view().extents, [&](const Indices& local) {
        written -= 1;
        const Cell& cell = expected[std::size_t(round)][i++];
        require(field.get(local) == (cell.is_received ? cell.expected : written), "round {}, local [{}]: {} for {}",
                round, to_string(local), field.get(local), cell.is_received ? cell.expected : written);
      });
  }
  world.barrier();
}

TEST_P(Everywhere, a_snapshot_is_what_cells_held_at_the_start) {
  std::atomic<std::uint64_t> turns = 0;
  run([&](World& world) {
    const std::uint64_t seed = ++turns;
    const int n = world.size();
    const auto fields_of = [&](const std::vector<Distribution>& layouts) {
      Twice out;
      for (std::vector<Array<double>>* fields : {&out.kept, &out.moved})
        for (const Distribution& layout : layouts) fields->emplace_back(world, layout);
      return out;
    };
    const auto refs = [](const std::vector<Array<double>>& fields) {
      return std::vector<ArrayRef>(fields.begin(), fields.end());
    };
    const ExchangeOptions keeps{.sources = Sources::snapshot};
    {
      // What lies beyond a replicated edge comes from cells of a rank's own, and from ghosts.
      const auto ring = block().with_overlap(2, 1, EdgePolicy::toroidal),
                 edge = block().with_overlap(1, 2, EdgePolicy::replicate),
                 zeros = cyclic(2).with_overlap(1, 1, EdgePolicy::zero);
      Twice fields =
          fields_of({distribution({7, 8}, grid(n, 1), {edge, edge}), distribution({9, 6}, grid(1, n), {ring, edge}),
                     distribution({8, 7}, grid(n, 1), {zeros, ring})});
      HaloExchange in_place(refs(fields.moved)), snapshot(refs(fields.kept), {}, HaloDirection::update, keeps);
      check_snapshot(world, fields, in_place, snapshot, seed);
      HaloExchange star(refs(fields.moved), {.stencil = {StencilKind::star}}),
          star_kept(refs(fields.kept), {.stencil = {StencilKind::star}}, HaloDirection::update, keeps);
      check_snapshot(world, fields, star, star_kept, seed);
    }
    {
      // Shared points: the upper part of two gives, and the lower one only takes.
      const auto staggered = block().with_interfaces().with_overlap(1, 1, EdgePolicy::toroidal);
      Twice fields = fields_of({distribution({2 * n + 1, 3}, grid(n, 1), {staggered, whole()})});
      InterfaceExchange in_place(refs(fields.moved)), snapshot(refs(fields.kept), keeps);
      check_snapshot(world, fields, in_place, snapshot, seed);
    }
    {
      // A wind on the six tiles of a cube, whose components turn into each other.
      const auto open = block().with_overlap(2, 2, EdgePolicy::open);
      std::vector<Distribution> tiles;
      for (int field = 0; field < 2; ++field)
        for (int t = 0; t < 6; ++t)
          tiles.push_back(Distribution({4, 4}, Grid({1, 1}, {.first = Rank(t % n)}), {open, open}));
      Twice fields = fields_of(tiles);
      const auto tiled = [&](const std::vector<Array<double>>& all) {
        const std::vector<ArrayRef> arrays = refs(all);
        return std::vector<TiledArray>{{{arrays.begin(), arrays.begin() + 6}, {0, 1}},
                                       {{arrays.begin() + 6, arrays.end()}, {0, 1}}};
      };
      TiledHaloOptions winds;
      winds.vectors = {{{.field = 0, .along = 1}, {.field = 1, .along = 0}}};
      HaloExchange in_place(cubed_sphere(4), tiled(fields.moved), winds),
          snapshot(cubed_sphere(4), tiled(fields.kept), winds, HaloDirection::update, keeps);
      check_snapshot(world, fields, in_place, snapshot, seed);
    }
    {
      const auto rows = distribution({6, 5}, grid(n, 1), {block(), whole()});
      const auto columns =
          distribution({6, 5}, grid(1, n), {whole(), block().with_overlap(1, 1, EdgePolicy::replicate)});
      Twice fields = fields_of({rows, columns});
      Redistribution in_place(fields.moved[0], fields.moved[1]), snapshot(fields.kept[0], fields.kept[1], keeps);
      check_snapshot(world, fields, in_place, snapshot, seed);
    }
  });
}

// Ranks that started several exchanges finish them in opposite orders: each waits for what the other one has started,
// and has to move on meanwhile. A staged message that finds its buffer full leaves its rank in some wait, or never.
TEST_P(Everywhere, exchanges_are_finished_in_any_order) {
  run([](World& world) {
    const int n = world.size();
    const auto rows = distribution({12, 13}, grid(n, 1), {block(), whole()});
    const auto columns = distribution({12, 13}, grid(1, n), {whole(), block()});
    const auto ring = distribution({24}, grid(n), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    Array<double> a(world, rows), b(world, columns), c(world, rows), d(world, columns), h(world, ring), g(world, ring),
        k(world, ring);
    for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged}) {
      Redistribution first(a, b, {.schedule = schedule}), second(c, d, {.schedule = schedule});
      HaloExchange third({h}, {}, HaloDirection::update, {.schedule = schedule});
      HaloExchange back({g}, {}, HaloDirection::adjoint, {.schedule = schedule});
      HaloExchange also_back({k}, {}, HaloDirection::adjoint, {.schedule = schedule});
      for (int epoch = 0; epoch < 4; ++epoch) {
        const auto value = [&](const Indices& cell) { return value_of(cell) + epoch; };
        for (Array<double>* array : {&a, &c, &h, &g, &k}) array->fill_owned(value);
        if (epoch % 2 == 1) world.barrier();
        first.start();
        second.start();
        third.start();
        back.start();
        also_back.start();
        if (epoch == 3) world.barrier();
        if (world.rank() % 2 == 0) {
          first.finish();
          second.finish();
          back.finish();
          also_back.finish();
          third.finish();
        } else {
          third.finish();
          also_back.finish();
          back.finish();
          second.finish();
          while (!first.test()) {
          }
        }
        require(b.count_wrong(value) == 0 && d.count_wrong(value) == 0 && h.count_wrong(value) == 0, "epoch {}", epoch);
      }
    }
  });
}

TEST_P(Everywhere, ghosts_of_arrays_on_devices_are_coherent) {
  run([](World& world) {
    Devices devices({.kinds = {FakeDevices{.count = 1, .timing = FakeTiming::eager}}});
    const auto ring = distribution({24}, grid(world.size()), {block().with_overlap(2, 2, EdgePolicy::toroidal)});
    Array<double> u(world, ring, BufferOptions{.name = "u", .devices = &devices});
    for (int step = 1; step <= 3; ++step) {
      {
        const Lease lease = u.write({.device = Device::host()});
        for_each_owned(u.distribution(), world.rank(), [&](const Indices& local, const Indices& cell) {
          lease.data<double>()[local[0]] = step * value_of(cell);
        });
      }
      const Lease lease = u.read({.cells = tranship::Cells::stored, .device = Device::fake(0)});
      finish(lease.stream().event(), Deadline::after_seconds(10));
      for_each_stored(u.distribution(), world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
        const Index at = (cell.at[0] + 24) % 24;
        require(lease.data<const double>()[local[0]] == step * value_of({at}), "cell {} in step {}", at, step);
      });
      world.barrier();
    }
  });
}

}  // namespace
}  // namespace tranship::test
