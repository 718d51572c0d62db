// Arrays on every back-end: what is reachable is copied straight, all else by way of buffers or of puts with signals.
#include <tranship/tranship.hpp>

#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

class Everywhere : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Everywhere,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts),
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
    const char* way = on == On::processes ? "schedule: staged (" : is_simulated(on) ? "posted" : "schedule: direct (";
    require(n == 1 || said.find(way) != std::string::npos, "{}", said);
  });
}

TEST_P(Everywhere, ghosts_of_arrays_on_devices_are_coherent) {
  run([](World& world) {
    Devices devices({.fake = {.count = 1, .timing = FakeTiming::eager}});
    const auto ring = distribution({24}, grid(world.size()), {block().with_overlap(2, 2, EdgePolicy::toroidal)});
    Array<double> u(world, ring, BufferOptions{.name = "u", .devices = &devices});
    for (int step = 1; step <= 3; ++step) {
      {
        const Lease lease = u.write({.device = Device::host()});
        for_each_owned(u.distribution(), world.rank(), [&](const Indices& local, const Indices& cell) {
          lease.data<double>()[local[0]] = step * value_of(cell);
        });
      }
      const Lease lease = u.read({.cells = Cells::stored, .device = Device::fake(0)});
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
