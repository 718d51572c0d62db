// Arrays on devices: which ghosts are exchanged, when, and what it costs.
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include <tranship/tranship.hpp>

#include "support/error_of.hpp"

namespace tranship::test::coherence_test {
namespace {

constexpr Device gpu = Device::fake(0);
constexpr Device other_gpu = Device::fake(1);

using tranship::Cells;
using Value = std::function<double(const Indices& cell)>;
using Layout = Array<double>;

Index offset_of(const StridedView& view, const Indices& at) {
  Index out = 0;
  for (int d = 0; d < at.size(); ++d) out += at[d] * view.strides[d];
  return out;
}

/// Gives the cells of a lease their values, by a kernel on its device.
void set(const Layout& array, const Lease& lease, const Region& local, const Value& value, bool add = false) {
  const StridedView view = lease.view();
  auto* data = lease.data<double>();
  const Distribution& distribution = array.distribution();
  const Rank rank = array.world().rank();
  run_on(lease.stream(), [=] {
    for (const Box& box : local.boxes())
      for_each_coordinate(box.extents(), [&](Indices at) {
        for (int d = 0; d < at.size(); ++d) at[d] += box.lower[d];
        double& to = data[offset_of(view, at)];
        const double what = value(distribution.cell_of(rank, at).at);
        to = add ? to + what : what;
      });
  });
}

/// What an array's copy on a device holds, by local index.
std::vector<double> values(const Layout& array, const ArrayAccess& access) {
  const Lease lease = array.read(access);
  const StridedView view = lease.view();
  std::vector<double> out;
  const auto* data = lease.data<const double>();
  run_on(lease.stream(), [&] {
    for_each_coordinate(view.extents, [&](const Indices& at) { out.push_back(data[offset_of(view, at)]); });
  });
  finish(lease.stream().event(), Deadline::after_seconds(10));
  return out;
}

void write(const Layout& array, Device device, const Value& value, Cells which = Cells::owned,
           Index depth = all_depths) {
  const Lease lease = array.write({.cells = which, .depth = depth, .device = device});
  set(array, lease, array.local_region({.cells = which, .depth = depth}), value);
}

class CoherenceOn : public ::testing::TestWithParam<FakeTiming> {
 protected:
  Devices devices_{{.kinds = {FakeDevices{.count = 2, .timing = GetParam()}}}};
  Layout array(World& world, const Distribution& distribution, const char* name = "u") {
    return {world, distribution, BufferOptions{.name = name, .devices = &devices_}};
  }
};

INSTANTIATE_TEST_SUITE_P(Timing, CoherenceOn, ::testing::Values(FakeTiming::eager, FakeTiming::threaded),
                         [](const auto& info) { return info.param == FakeTiming::eager ? "eager" : "threaded"; });

const Distribution ring({12}, grid(2), {block().with_overlap(2, 2, EdgePolicy::toroidal)});

TEST_P(CoherenceOn, a_read_of_ghosts_on_a_device_exchanges_and_copies_what_is_stale) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, gpu, [](const Indices& cell) { return double(cell[0]); });
    world.barrier();
    if (world.rank() == 0) devices_.ledger().clear();
    world.barrier();
    const std::vector<double> expected = world.rank() == 0 ? std::vector<double>{10, 11, 0, 1, 2, 3, 4, 5, 6, 7}
                                                           : std::vector<double>{4, 5, 6, 7, 8, 9, 10, 11, 0, 1};
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}), expected);
    world.barrier();
    if (world.rank() == 0) {
      // Each of two ranks: 4 of its cells to the host, 4 ghosts to the device.
      EXPECT_EQ(devices_.ledger().sums().bytes, 2 * (4 + 4) * 8);
      EXPECT_EQ(devices_.ledger().sums(Cause::halo).bytes, 2 * (4 + 4) * 8);
    }
    EXPECT_EQ(u.ghost_counts().exchanges, 1);
    EXPECT_EQ(u.ghost_counts().cells_received, 4);
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}), expected);
    EXPECT_EQ(u.ghost_counts().exchanges, 1) << "the ghosts are fresh";
  });
}

TEST_P(CoherenceOn, owned_cells_are_read_without_an_exchange) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, gpu, [](const Indices& cell) { return double(cell[0]); });
    values(u, {.device = other_gpu});
    values(u, {.cells = Cells::interior, .device = gpu});
    values(u, {.cells = Cells::boundary, .device = gpu});
    EXPECT_EQ(u.ghost_counts().exchanges, 0);
    EXPECT_NE(error_of([&] { u.buffer().read(); }).find("not here since the write at"), std::string::npos)
        << "stale ghosts cannot be read past the array";
  });
}

TEST_P(CoherenceOn, ghosts_that_a_halo_by_hand_has_filled_are_not_readable_after_the_next_write) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, gpu, [](const Indices& cell) { return double(cell[0]); });
    HaloExchange halo(std::vector<ArrayRef>{u});
    halo();
    const Region ghosts = u.local_region({.cells = Cells::ghosts});
    EXPECT_NO_THROW((void)u.buffer().read({.device = Device::host(), .region = ghosts}));
    write(u, gpu, [](const Indices& cell) { return -double(cell[0]); });
    EXPECT_NE(error_of([&] { (void)u.buffer().read({.device = Device::host(), .region = ghosts}); }), "");
  });
}

TEST_P(CoherenceOn, an_exchange_of_some_ghosts_cleans_these_alone) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    write(u, gpu, number);
    values(u, {.cells = Cells::ghosts, .depth = 1, .device = gpu});
    EXPECT_EQ(u.ghost_counts().cells_received, 2);
    values(u, {.cells = Cells::ghosts, .depth = 1, .device = gpu});
    EXPECT_EQ(u.ghost_counts().exchanges, 1);
    values(u, {.cells = Cells::ghosts, .device = gpu});
    EXPECT_EQ(u.ghost_counts().exchanges, 2);
    // By region: cells 0 and 1 are two ghosts of rank 1.
    write(u, gpu, number);
    values(u, {.cells = Cells::ghosts, .region = Region::interval(0, 2), .device = gpu});
    EXPECT_EQ(u.ghost_counts().cells_received, 2 + 4 + (world.rank() == 1 ? 2 : 0));
    values(u, {.cells = Cells::ghosts, .region = Region::interval(0, 2), .device = gpu});
    EXPECT_EQ(u.ghost_counts().exchanges, 3);
    values(u, {.cells = Cells::ghosts, .device = gpu});
    EXPECT_EQ(u.ghost_counts().cells_received, 2 + 4 + 4);
  });
}

TEST_P(CoherenceOn, writes_make_stale_what_stands_for_them) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    const auto exchanges = [&](auto change) {
      values(u, {.cells = Cells::stored, .device = gpu});
      change();
      const GhostCounts before = u.ghost_counts();
      values(u, {.cells = Cells::stored, .device = gpu});
      return u.ghost_counts().cells_received - before.cells_received;
    };
    write(u, gpu, number);
    EXPECT_EQ(exchanges([&] { write(u, gpu, number, Cells::interior); }), 0);
    EXPECT_EQ(exchanges([&] { write(u, gpu, number, Cells::interior, 1); }), 4) << "those of depth 2 are stale";
    EXPECT_EQ(exchanges([&] { write(u, gpu, number, Cells::boundary); }), 4);
    EXPECT_EQ(exchanges([&] { write(u, gpu, number, Cells::stored); }), 0)
        << "every rank has written its ghosts itself";
    EXPECT_EQ(exchanges([&] { write(u, gpu, number, Cells::stored, 1); }), 4);
    EXPECT_EQ(exchanges([&] {
                const Region some = Region::interval(2, 5);  // 4 is a ghost of rank 1
                const Lease lease = u.write({.region = some, .device = gpu});
                set(u, lease, u.local_region({.region = some}), number);
              }),
              world.rank() == 1 ? 1 : 0);
  });
}

TEST_P(CoherenceOn, regions_of_staggered_arrays_exchange_what_stands_for_them) {
  // Rank 0 owns points 0 to 4 and has ghosts of 6, 7 and 5, 6; rank 1 owns 4 to 8 and has ghosts of 2, 3 and 1, 2.
  const Distribution faces({9}, grid(2), {block().with_interfaces().with_overlap(2, 2, EdgePolicy::toroidal)});
  launch(2, [&](World& world) {
    const Layout u = array(world, faces);
    const Rank me = world.rank();
    const auto number = [me](const Indices& point) { return double(10 * point[0] + me); };
    write(u, gpu, number);
    const auto received = [&](const Region& written) {
      values(u, {.cells = Cells::stored, .device = gpu});
      {
        const Lease lease = u.write({.region = written, .device = gpu});
        set(u, lease, u.local_region({.region = written}), number);
      }
      const GhostCounts before = u.ghost_counts();
      const std::vector<double> got = values(u, {.cells = Cells::stored, .device = gpu});
      EXPECT_EQ(got, me == 0 ? (std::vector<double>{61, 71, 0, 10, 20, 30, 40, 51, 61})
                             : (std::vector<double>{20, 30, 41, 51, 61, 71, 81, 10, 20}));
      return u.ghost_counts().cells_received - before.cells_received;
    };
    EXPECT_EQ(received(Region::interval(2, 4)), me == 0 ? 0 : 3);
    EXPECT_EQ(received(Region::interval(4, 5)), 0) << "both ranks own it";
    EXPECT_EQ(received(Region::interval(4, 7)), me == 0 ? 3 : 0);
    EXPECT_EQ(received(Region::interval(8, 9)), 0) << "the ghosts across the edge begin beside it";
    // What the ghosts accumulate for a region goes to the part that they read from.
    const ArrayAccess some{.cells = Cells::stored, .region = Region::interval(2, 5), .device = gpu};
    {
      const Lease lease = u.accumulate(Combine::sum, some);
      set(
          u, lease, u.local_region(some), [](const Indices&) { return 1000; }, true);
    }
    const std::vector<double> got = values(u, {.device = Device::host()});
    EXPECT_EQ(std::vector<double>(got.begin() + 2, got.end() - 2),
              me == 0 ? (std::vector<double>{0, 10, 3020, 2030, 1040}) : (std::vector<double>{1041, 51, 61, 71, 81}));
  });
}

TEST_P(CoherenceOn, what_accumulates_in_ghosts_and_on_devices_is_merged_by_one_read) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, Device::host(), [](const Indices&) { return 100; });
    // Each device of each rank adds 1 to every cell that the rank stores.
    for (const Device device : {gpu, other_gpu}) {
      const Lease lease = u.accumulate(Combine::sum, {.cells = Cells::stored, .device = device});
      set(
          u, lease, u.local_region({.cells = Cells::stored}), [](const Indices&) { return 1; }, true);
    }
    EXPECT_EQ(u.ghost_counts().exchanges, 0);
    // Cells within 2 of a border of the parts are stored by both ranks.
    const std::vector<double> part = {104, 104, 102, 102, 104, 104};
    const auto check = [&](Device device) {
      std::vector<double> expected{104, 104};
      expected.insert(expected.end(), part.begin(), part.end());
      expected.insert(expected.end(), {104, 104});
      EXPECT_EQ(values(u, {.cells = Cells::stored, .device = device}), expected);
    };
    check(gpu);
    EXPECT_EQ(u.ghost_counts().exchanges, 2) << "one to the owners, one back";
    check(Device::host());
    EXPECT_EQ(u.ghost_counts().exchanges, 2);
  });
}

TEST_P(CoherenceOn, minima_and_products_go_to_their_owners_too) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    const Region stored = u.local_region({.cells = Cells::stored});
    const auto combine_everywhere = [&](Combine combine, auto apply) {
      const Lease lease = u.accumulate(combine, {.cells = Cells::stored, .device = gpu});
      run_on(lease.stream(), [&, data = lease.data<double>(), n = lease.view().extents[0]] {
        for (Index i = 0; i < n; ++i) apply(data[i]);
      });
      finish(lease.stream().event(), Deadline::after_seconds(10));
    };
    write(u, gpu, [](const Indices& cell) { return double(cell[0]); });
    const double mine = world.rank() == 0 ? 4 : 6;
    combine_everywhere(Combine::minimum, [&](double& cell) { cell = std::min(cell, mine); });
    // Rank 0 stores cells 10, 11, 0 to 7; rank 1 cells 4 to 11, 0, 1.
    const std::vector<double> lowest = {4, 4, 0, 1, 2, 3, 4, 4, 4, 4}, lowest_1 = {4, 4, 4, 4, 6, 6, 4, 4, 0, 1};
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = other_gpu}), world.rank() == 0 ? lowest : lowest_1);
    // A product straight after a sum: the owners get the sum before.
    combine_everywhere(Combine::sum, [](double& cell) { cell += 1; });
    combine_everywhere(Combine::product, [](double& cell) { cell *= 2; });
    std::vector<double> expected;
    for (const double cell : world.rank() == 0 ? lowest : lowest_1) expected.push_back(cell);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // Only the cells in the middle of each part are stored by one rank alone.
      const bool is_alone = i == 4 || i == 5;
      expected[i] = is_alone ? (expected[i] + 1) * 2 : (expected[i] + 2) * 4;
    }
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}), expected);
  });
}

TEST_P(CoherenceOn, a_write_of_all_owned_cells_drops_what_ghosts_held) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, gpu, [](const Indices&) { return 0; });
    {
      const Lease lease = u.accumulate(Combine::sum, {.cells = Cells::stored, .device = gpu});
      set(
          u, lease, u.local_region({.cells = Cells::stored}), [](const Indices&) { return 1; }, true);
    }
    write(u, gpu, [](const Indices&) { return 7; });
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}), std::vector<double>(10, 7));
    EXPECT_EQ(u.ghost_counts().exchanges, 1);
  });
}

TEST_P(CoherenceOn, ghosts_of_several_arrays_go_together_and_are_guarded_in_flight) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring, "u"), v = array(world, ring, "v");
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    write(u, gpu, number);
    write(v, other_gpu, number);
    Ghosts ghosts({u, v});
    ghosts.begin_broadcast();
    // Interior cells are free; ghosts and what they stand for are not.
    write(u, gpu, number, Cells::interior);
    const std::string conflict = error_of([&] { u.buffer().read({.device = gpu}); });
    EXPECT_NE(conflict.find("conflicts with the open write"), std::string::npos) << conflict;
    EXPECT_NE(error_of([&] { ghosts.begin_broadcast(); }).find("in flight since"), std::string::npos);
    ghosts.end();
    EXPECT_EQ(ghosts.counts().exchanges, 1);
    EXPECT_EQ(ghosts.counts().cells_received, 8);
    values(u, {.cells = Cells::stored, .device = gpu});
    values(v, {.cells = Cells::stored, .device = gpu});
    EXPECT_EQ(u.ghost_counts().exchanges + v.ghost_counts().exchanges, 0);
  });
}

// An exchange in flight guards its cells, whether or not the array had a lease before it started.
TEST_P(CoherenceOn, the_first_lease_finds_the_exchange_in_flight) {
  launch(2, [&](World& world) {
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    struct First {
      const char* name;
      std::function<Lease(const Layout&)> open;
      bool is_refused;
      int stale = 0;  // ghosts of the 4, after the exchange
    };
    const std::vector<First> all = {
        {"the buffer", [](const Layout& u) { return u.buffer().read(); }, true},
        {"the buffer, on a device", [](const Layout& u) { return u.buffer().read({.device = gpu}); }, true},
        {"the buffer, to write", [](const Layout& u) { return Buffer(u.buffer()).write(); }, true},
        {"ghosts", [](const Layout& u) { return u.read({.cells = Cells::stored}); }, true},
        {"ghosts, on a device", [](const Layout& u) { return u.read({.cells = Cells::ghosts, .device = gpu}); }, true},
        {"owned cells, to write", [](const Layout& u) { return u.write(); }, true},
        {"owned cells", [](const Layout& u) { return u.read(); }, false},
        {"owned cells, on a device", [](const Layout& u) { return u.read({.device = gpu}); }, false},
    };
    for (const First& first : all)
      for (const bool had_one : {false, true}) {
        const Layout u = array(world, ring);
        u.fill_owned(number);
        if (had_one) (void)u.buffer().read({.region = u.local_region({.cells = Cells::owned})});
        HaloExchange halo({u});
        halo.start();
        const std::string fault = error_of([&] { (void)first.open(u); });
        EXPECT_EQ(fault.find("conflicts with the open") != std::string::npos, first.is_refused)
            << first.name << (had_one ? ", after another lease: " : ": ") << fault;
        EXPECT_EQ(fault.empty(), !first.is_refused) << first.name << ": " << fault;
        halo.finish();
        EXPECT_EQ(u.count_wrong(number), 0) << first.name;
        EXPECT_EQ(error_of([&] { (void)u.buffer().read(); }), "") << first.name;
        // What the exchange has filled is not taken for fresh after the next write.
        write(u, gpu, [](const Indices& cell) { return -double(cell[0]); });
        EXPECT_NE(error_of([&] { (void)u.buffer().read(); }), "") << first.name;
      }
  });
}

TEST_P(CoherenceOn, the_first_lease_finds_sums_and_sources_in_flight) {
  launch(2, [&](World& world) {
    const auto one = [](const Indices&) { return 1.0; };
    const Layout u = array(world, ring, "u"), a = array(world, ring, "a"),
                 b = array(world, {{12}, grid(2), {block()}}, "b");
    for (const Layout& array : {u, a}) array.fill_owned(one);
    HaloExchange fill({u}), back({u}, {}, HaloDirection::adjoint);
    fill();
    back.start();
    EXPECT_NE(error_of([&] { (void)u.read(); }).find("conflicts with the open"), std::string::npos);
    back.finish();
    const std::vector<double> sums = values(u, {.cells = Cells::owned});
    EXPECT_EQ(std::vector(sums.begin() + 2, sums.begin() + 8), (std::vector<double>{2, 2, 1, 1, 2, 2}));
    Redistribution copy(a, b);
    copy.start();
    EXPECT_EQ(error_of([&] { (void)a.read(); }), "") << "a source is only read";
    EXPECT_NE(error_of([&] { (void)a.write(); }).find("conflicts with the open read"), std::string::npos);
    EXPECT_NE(error_of([&] { (void)b.read(); }).find("conflicts with the open write"), std::string::npos);
    copy.finish();
    EXPECT_EQ(values(b, {.device = gpu}), std::vector<double>(6, 1));
  });
}

TEST_P(CoherenceOn, what_is_withdrawn_after_the_first_lease_has_no_value) {
  const Distribution alone({6}, grid(1), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(1, [&](World& world) {
    const Layout u = array(world, alone);
    u.fill_owned([](const Indices& cell) { return double(cell[0]); });
    {
      HaloExchange halo({u});
      halo.start();
      EXPECT_EQ(error_of([&] { (void)u.buffer().read({.region = u.local_region({.cells = Cells::owned})}); }), "");
    }
    EXPECT_NE(error_of([&] { (void)u.buffer().read(); }), "");
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}), (std::vector<double>{5, 0, 1, 2, 3, 4, 5, 0}));
  });
}

TEST_P(CoherenceOn, what_is_withdrawn_in_flight_is_stale) {
  const Distribution alone({6}, grid(1), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(1, [&](World& world) {
    const Layout u = array(world, alone);
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    write(u, gpu, number);
    { Ghosts({u}).begin_broadcast(); }
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}), (std::vector<double>{5, 0, 1, 2, 3, 4, 5, 0}));
    EXPECT_EQ(u.ghost_counts().exchanges, 1);
  });
}

TEST_P(CoherenceOn, a_lease_that_is_open_stops_an_exchange_and_nothing_is_lost) {
  const Distribution alone({6}, grid(1), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(1, [&](World& world) {
    const Layout u = array(world, alone, "u"), v = array(world, alone, "v");
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    write(u, gpu, number);
    write(v, gpu, number);
    Ghosts ghosts({u, v});
    {
      const Lease lease = v.write({.cells = Cells::boundary, .device = gpu});
      set(v, lease, v.local_region({.cells = Cells::boundary}), number);
      const std::string fault = error_of([&] { ghosts.broadcast(); });
      EXPECT_NE(fault.find("conflicts with the open write"), std::string::npos) << fault;
    }
    ghosts.broadcast();
    for (const Layout& array : {u, v})
      EXPECT_EQ(values(array, {.cells = Cells::stored, .device = gpu}), (std::vector<double>{5, 0, 1, 2, 3, 4, 5, 0}));
  });
}

TEST_P(CoherenceOn, an_exchange_that_does_not_start_makes_no_ghosts_fresh) {
  const Distribution alone({6}, grid(1), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(1, [&](World& world) {
    const Layout a = array(world, {{6}, grid(1), {block()}}, "a"), b = array(world, alone, "b");
    const auto number = [](const Indices& cell) { return double(cell[0]); };
    Redistribution fill(a, b);
    write(b, gpu, number);
    {
      const Lease lease = b.write({.cells = Cells::boundary, .device = gpu});
      set(b, lease, b.local_region({.cells = Cells::boundary}), number);
      const std::string fault = error_of([&] { fill(); });
      EXPECT_NE(fault.find("conflicts with the open write"), std::string::npos) << fault;
    }
    EXPECT_EQ(values(b, {.cells = Cells::stored, .device = gpu}), (std::vector<double>{5, 0, 1, 2, 3, 4, 5, 0}));
    EXPECT_EQ(b.ghost_counts().exchanges, 1);
  });
}

TEST_P(CoherenceOn, as_many_rounds_as_ghosts_need_are_in_flight_at_once) {
  constexpr Index cells = 40;  // each accumulates to a depth of its own, which makes a round of its own
  const Distribution alone({cells}, grid(1), {block().with_overlap(cells, cells, EdgePolicy::toroidal)});
  launch(1, [&](World& world) {
    const Layout u = array(world, alone);
    write(u, gpu, [](const Indices&) { return 0; });
    std::vector<double> expected;
    for (Index i = 0; i < cells; ++i) {
      const ArrayAccess access{.cells = Cells::stored, .depth = i + 1, .region = Box{{i}, {i + 1}}, .device = gpu};
      const Lease lease = u.accumulate(Combine::sum, access);
      const Region local = u.local_region(access);
      set(
          u, lease, local, [](const Indices&) { return 1; }, true);
      expected.push_back(double(local.count()));
    }
    Ghosts ghosts({u});
    for (int repeat = 0; repeat < 2; ++repeat) {
      ghosts.reduce();
      EXPECT_EQ(ghosts.counts().exchanges, cells);
      const Lease lease = u.read({.device = Device::host()});
      for (Index i = 0; i < cells; ++i) EXPECT_EQ(u(i + cells), expected[std::size_t(i)]) << i;
    }
  });
}

TEST_P(CoherenceOn, exchanges_of_arrays_see_what_devices_hold) {
  launch(2, [&](World& world) {
    const auto number = [](const Indices& cell) { return double(1 + cell[0] * 5 + cell[1]); };
    const Distribution rows({6, 5}, grid(2, 1), {block(), whole()});
    const Distribution columns({6, 5}, grid(1, 2), {whole(), block().with_overlap(1, 1)});
    const Layout a = array(world, rows, "a"), b = array(world, columns, "b");
    Redistribution turn(a, b);
    write(a, gpu, number);
    write(b, gpu, [](const Indices&) { return 0; });
    turn();
    const std::vector<double> got = values(b, {.cells = Cells::stored, .device = other_gpu});
    EXPECT_EQ(b.ghost_counts().exchanges, 0) << "a redistribution fills ghosts, too";
    std::size_t i = 0;
    for_each_coordinate(b.extents(), [&](const Indices& local) {
      EXPECT_EQ(got[i++], number(b.distribution().cell_of(world.rank(), local).at));
    });
  });
}

TEST_P(CoherenceOn, elements_that_the_host_fills_and_counts_are_those_of_devices) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    const auto number = [](double by) { return [by](const Indices& cell) { return by * double(cell[0] + 1); }; };
    u.fill_owned(number(1));
    EXPECT_EQ(u.count_wrong(number(1)), 4) << "without a lease, ghosts are what they hold: zeros";
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu})[2], world.rank() == 0 ? 1 : 7);
    EXPECT_EQ(u.count_wrong(number(1)), 0);
    for (int turn = 2; turn < 5; ++turn) {
      write(u, gpu, number(turn));
      EXPECT_EQ(u.count_wrong(number(turn)), 4) << "ghosts are stale";
      HaloExchange(std::vector<ArrayRef>{u})();
      EXPECT_EQ(u.count_wrong(number(turn)), 0);
      u.fill_owned(number(-turn));
      EXPECT_EQ(u.count_wrong(number(-turn)), 4);
      EXPECT_EQ(values(u, {.cells = Cells::stored, .device = other_gpu})[3], -turn * (world.rank() == 0 ? 2 : 8));
      EXPECT_EQ(u.count_wrong(number(-turn)), 0);
    }
    {
      const Lease lease = u.accumulate(Combine::sum, {.cells = Cells::stored, .device = gpu});
      EXPECT_NE(error_of([&] { (void)u.count_wrong(number(1)); }), "");
      set(u, lease, u.local_region({.cells = Cells::stored}), number(1), true);
    }
    EXPECT_NE(error_of([&] { (void)u.count_wrong(number(1)); }).find("its ghosts hold a sum"), std::string::npos);
    u.fill_owned(number(1));
    EXPECT_EQ(u.count_wrong(number(1)), 4);
    EXPECT_THROW(u.fill_owned([](const Indices&) -> double { throw std::runtime_error("no value"); }),
                 std::runtime_error);
    EXPECT_NE(error_of([&] { (void)u.count_wrong(number(1)); }).find("abandoned"), std::string::npos);
    u.fill_owned(number(1));
    EXPECT_EQ(u.count_wrong(number(1)), 4);
  });
}

TEST_P(CoherenceOn, structs_are_counted_as_elements) {
  struct Pair {
    int a = 0;
    double b = 0;
    bool operator==(const Pair&) const = default;
  };
  launch(2, [&](World& world) {
    const Array<Pair> u(world, ring, BufferOptions{.name = "u", .devices = &devices_});
    const auto value = [](const Indices& cell) { return Pair{int(cell[0]), 0.5}; };
    u.fill_owned(value);
    (void)u.read({.device = gpu});
    EXPECT_EQ(u.count_wrong(value), 4);
    HaloExchange(std::vector<ArrayRef>{u})();
    EXPECT_EQ(u.count_wrong(value), 0);
  });
}

TEST_P(CoherenceOn, what_one_rank_asks_alone_changes_nothing_for_the_others) {
  launch(2, [&](World& world) {
    const Layout a = array(world, ring, "a"), b = array(world, ring, "b");
    Redistribution copy(a, b);
    a.fill_owned([](const Indices& cell) { return double(cell[0]); });
    if (world.rank() == 0) {
      EXPECT_EQ(b.buffer().state(gpu), CopyState::unallocated);
      EXPECT_FALSE(b.explain().empty());
      const Lease lease = b.buffer().read({.device = gpu, .region = b.local_region()});
    }
    copy();
    EXPECT_EQ(values(b, {.cells = Cells::stored, .device = gpu}),
              world.rank() == 0 ? (std::vector<double>{10, 11, 0, 1, 2, 3, 4, 5, 6, 7})
                                : (std::vector<double>{4, 5, 6, 7, 8, 9, 10, 11, 0, 1}));
  });
}

TEST_P(CoherenceOn, a_rank_that_holds_nothing_takes_part) {
  launch(3, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, gpu, [](const Indices& cell) { return double(cell[0]); });
    EXPECT_EQ(values(u, {.cells = Cells::stored, .device = gpu}).size(), world.rank() < 2 ? 10u : 0u);
    {
      const Lease lease = u.accumulate(Combine::sum, {.cells = Cells::stored, .device = gpu});
      set(
          u, lease, u.local_region({.cells = Cells::stored}), [](const Indices&) { return 1; }, true);
    }
    const std::vector<double> got = values(u, {.device = Device::host()});
    if (world.rank() == 0)
      EXPECT_EQ(std::vector<double>(got.begin() + 2, got.end() - 2), (std::vector<double>{2, 3, 3, 4, 6, 7}));
  });
}

TEST_P(CoherenceOn, a_star_forest_is_coherent_too) {
  // A line of 8 ids cut in two, each part with the first ids of the other as ghosts; 3 values per id.
  const Distribution forest = Distribution::indexed(
      {8, 3}, 1, grid(2), {{.owned = {0, 1, 2, 3}, .ghosts = {4, 5}}, {.owned = {4, 5, 6, 7}, .ghosts = {3, 0}}});
  launch(2, [&](World& world) {
    const Layout u = array(world, forest);
    const auto number = [](const Indices& cell) { return double(cell[0] * 3 + cell[1]); };
    write(u, gpu, number);
    const std::vector<double> got = values(u, {.cells = Cells::stored, .device = gpu});
    std::size_t i = 0;
    for_each_coordinate(u.extents(), [&](const Indices& local) {
      EXPECT_EQ(got[i++], number(forest.cell_of(world.rank(), local).at));
    });
    EXPECT_EQ(u.ghost_counts().cells_received, 6);
    write(u, gpu, number, Cells::interior);
    values(u, {.cells = Cells::stored, .device = gpu});
    EXPECT_EQ(u.ghost_counts().exchanges, 1);
    {
      const Lease lease = u.accumulate(Combine::sum, {.cells = Cells::stored, .device = gpu});
      set(
          u, lease, u.local_region({.cells = Cells::stored}), [](const Indices&) { return 1000; }, true);
    }
    const std::vector<double> sums = values(u, {.device = Device::host()});
    i = 0;
    for_each_coordinate(u.extents(), [&](const Indices& local) {
      const Distribution::Cell cell = forest.cell_of(world.rank(), local);
      const bool is_shared = cell.at[0] == 0 || (cell.at[0] >= 3 && cell.at[0] <= 5);
      if (cell.owned) EXPECT_EQ(sums[i], number(cell.at) + (is_shared ? 2000 : 1000));
      ++i;
    });
  });
}

TEST_P(CoherenceOn, says_what_it_would_do_and_refuses_what_is_not_there) {
  launch(2, [&](World& world) {
    const Layout u = array(world, ring);
    write(u, gpu, [](const Indices&) { return 1; });
    const std::string plan = u.explain(Intent::read, {.cells = Cells::stored, .device = gpu});
    EXPECT_NE(plan.find("an exchange fills 4 ghosts"), std::string::npos) << plan;
    EXPECT_EQ(u.ghost_counts().exchanges, 0);
    EXPECT_NE(error_of([&] { u.read({.cells = Cells::stored, .depth = 3}); }).find("depth 3"), std::string::npos);
    EXPECT_NE(error_of([&] { u.read({.region = Region::interval(5, 13)}); }).find("[5,13)"), std::string::npos);
    EXPECT_NE(error_of([&] {
                u.read({.region = Region(Box{{0, 0}, {1, 1}})});
              }).find("2 dimensions"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace tranship::test::coherence_test
