// Several arrays in one exchange, boxes of arrays, const sources, structs, other libraries' views, shared interfaces:
// on every back-end, against loops over cells.
#include <gtest/gtest.h>

#include <tranship/tranship.hpp>

#include "support/error_of.hpp"
#include "support/random_layouts.hpp"
#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test::many_arrays_test {
namespace {

class ManyArrays : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, ManyArrays,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt),
                                            ::testing::ValuesIn(sizes_up_to(5, {1, 2, 3, 5, 8}))),
                         OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnSub, ManyArrays,
                         ::testing::Combine(::testing::Values(On::sub, On::sub_messaged, On::sub_hosts, On::listed,
                                                              On::listed_hosts),
                                            ::testing::Values(1, 3)),
                         OnRanks::name);

double value_of(const Indices& cell, int field = 0) {
  double out = 1 + field;
  for (const Index i : cell) out = out * 1009 + double(i);
  return out;
}

/// Two numbers and a flag, with padding between them.
struct Particle {
  double mass;
  std::int32_t id;
  char tag;
  friend bool operator==(const Particle& a, const Particle& b) {
    return a.mass == b.mass && a.id == b.id && a.tag == b.tag;
  }
};
struct Rgb {
  unsigned char r, g, b;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};
Particle particle_of(const Indices& cell) {
  return {value_of(cell), std::int32_t(7 * cell[0] + 1), char('a' + cell[0] % 26)};
}
Rgb colour_of(const Indices& cell) {
  const auto v = static_cast<unsigned>(value_of(cell));
  return {static_cast<unsigned char>(v), static_cast<unsigned char>(v >> 8), static_cast<unsigned char>(v >> 3)};
}

TEST_P(ManyArrays, halos_of_equal_and_of_other_layouts_in_one_exchange) {
  run([](World& world) {
    const int n = world.size();
    const Partition ring = block().with_overlap(2, 1, EdgePolicy::toroidal);
    const Distribution cells({13, 6}, grid(n, 1), {ring, whole()});
    const Distribution line({11}, grid(n), {ring});
    for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged}) {
      std::vector<Array<double>> fields;
      for (int f = 0; f < 5; ++f) fields.emplace_back(world, cells);
      // One of them lies in other strides, on one rank only.
      std::vector<double> memory(4000, -1);
      const Indices local = cells.local_extents(world.rank());
      fields.emplace_back(
          world, cells,
          StridedView{.data = memory.data(),
                      .type = ElementType::f64,
                      .extents = local,
                      .strides = world.rank() == n - 1 ? Indices{1, local[0]} : Indices{local[1] + 1, 1}});
      const Array<float> t(world, cells);
      const Array<double> u(world, line);
      std::vector<ArrayRef> all(fields.begin(), fields.end());
      all.insert(all.begin() + 2, {t, u});
      HaloExchange halo(all, {}, HaloDirection::update, {.schedule = schedule});
      HaloExchange vectors(fields, {}, HaloDirection::update, {.schedule = schedule});
      for (int turn = 0; turn < 2; ++turn) {
        for (int f = 0; f < int(fields.size()); ++f)
          fields[std::size_t(f)].fill_owned([&](const Indices& cell) { return value_of(cell, f + 10 * turn); });
        t.fill_owned([](const Indices& cell) { return float(cell[0] * 16 + cell[1]); });
        u.fill_owned([&](const Indices& cell) { return value_of(cell, turn); });
        turn == 0 ? halo() : vectors();
        for (int f = 0; f < int(fields.size()); ++f)
          require(fields[std::size_t(f)].count_wrong(
                      [&](const Indices& cell) { return value_of(cell, f + 10 * turn); }) == 0,
                  "field {} in turn {}", f, turn);
        if (turn > 0) continue;
        require(t.count_wrong([](const Indices& cell) { return float(cell[0] * 16 + cell[1]); }) == 0, "t");
        require(u.count_wrong([&](const Indices& cell) { return value_of(cell, turn); }) == 0, "u");
      }
    }
  });
}

TEST_P(ManyArrays, adjoints_of_equal_layouts_add_each_to_its_own) {
  run([](World& world) {
    const Distribution ring({17}, grid(world.size()), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    std::vector<Array<std::int64_t>> fields;
    for (int f = 0; f < 4; ++f) fields.emplace_back(world, ring);
    HaloExchange back(fields, {}, HaloDirection::adjoint);
    for (int f = 0; f < 4; ++f)
      for (Index i = 0; i < fields[std::size_t(f)].extents()[0]; ++i) fields[std::size_t(f)](i) = 1 + f;
    back();
    for (int f = 0; f < 4; ++f)
      for_each_owned(ring, world.rank(), [&](const Indices& local, const Indices& cell) {
        Index copies = 1;
        for (Rank r = 0; r < world.size(); ++r) {
          const Index count = ring.local_extents(r)[0] - 2;
          Index first = 0;
          for (Rank q = 0; q < r; ++q) first += ring.local_extents(q)[0] - 2;
          copies += floor_modulo(first - 1, 17) == cell[0];
          copies += floor_modulo(first + count, 17) == cell[0];
        }
        require(fields[std::size_t(f)].get(local) == (1 + f) * copies, "field {} cell {}: {} is not {}", f, cell[0],
                fields[std::size_t(f)].get(local), (1 + f) * copies);
      });
  });
}

TEST_P(ManyArrays, fields_have_halos_of_their_own_depth) {
  run([](World& world) {
    const Partition deep = block().with_overlap(3, 3, EdgePolicy::toroidal);
    const Distribution plane({24, 4}, grid(world.size(), 1), {deep, whole()});
    const Distribution line({24}, grid(world.size()), {deep});
    const Array<double> u(world, plane), v(world, line);
    const auto check = [&](const auto& array, Index depth, const char* what) {
      for_each_stored(array.distribution(), world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
        const Index count = array.extents()[0] - 6, first = cell.at[0] - local[0] + 3;
        const bool is_filled = cell.at[0] >= first - depth && cell.at[0] < first + count + depth;
        Indices at = cell.at;
        at[0] = floor_modulo(at[0], 24);
        const double expected = is_filled ? value_of(at) : -1;
        require(array.get(local) == expected, "{} at {}: {} is not {}", what, cell.at[0], array.get(local), expected);
      });
    };
    const auto reset = [&] {
      for_each_stored(plane, world.rank(), [&](const Indices& local, const auto&) { u.put(local, -1); });
      for_each_stored(line, world.rank(), [&](const Indices& local, const auto&) { v.put(local, -1); });
      u.fill_owned([](const Indices& cell) { return value_of(cell); });
      v.fill_owned([](const Indices& cell) { return value_of(cell); });
    };
    HaloExchange two({u, v}, {.depth = 2});
    reset();
    two();
    check(u, 2, "u to 2");
    check(v, 2, "v to 2");
    HaloExchange each(std::vector<HaloField>{{u, {.depth = 1}}, {v, {.depth_low = {3}, .depth_high = {3}}}});
    reset();
    each();
    check(u, 1, "u to 1");
    check(v, 3, "v to 3");
  });
}

TEST_P(ManyArrays, several_redistributions_in_one_and_const_sources) {
  run([](World& world) {
    const int n = world.size();
    const Distribution rows({11, 7}, grid(n, 1), {block(), whole()}),
        columns({11, 7}, grid(1, n), {whole(), cyclic(2)}), line({19}, grid(n), {block()}),
        dealt({19}, grid(n), {cyclic(3).with_overlap(1, 1, EdgePolicy::toroidal)});
    Array<double> a(world, rows), b(world, rows), c(world, columns), d(world, columns), e(world, columns);
    Array<std::int16_t> f(world, line), g(world, dealt);
    a.fill_owned([](const Indices& cell) { return value_of(cell, 1); });
    b.fill_owned([](const Indices& cell) { return value_of(cell, 2); });
    f.fill_owned([](const Indices& cell) { return std::int16_t(cell[0]); });
    // The same memory, as somebody who may not write it.
    const Array<const double> read_only(world, rows, a.view());
    for (const Schedule schedule : {Schedule::automatic, Schedule::staged}) {
      Redistribution all({{a, c}, {f, g}, {b, d}, {read_only, e}}, {.schedule = schedule});
      for (int repeat = 0; repeat < 2; ++repeat) {
        all();
        require(c.count_wrong([](const Indices& cell) { return value_of(cell, 1); }) == 0, "c");
        require(d.count_wrong([](const Indices& cell) { return value_of(cell, 2); }) == 0, "d");
        require(e.count_wrong([](const Indices& cell) { return value_of(cell, 1); }) == 0, "e");
        require(g.count_wrong([](const Indices& cell) { return std::int16_t(cell[0]); }) == 0, "g");
        for (Array<double>* target : {&c, &d, &e})
          for_each_stored(columns, world.rank(), [&](const Indices& local, const auto&) { target->put(local, -1); });
      }
    }
    static_assert(std::is_same_v<decltype(read_only(0, 0)), const double&>);
    require_says(error_of_rank([&] { Redistribution(c, read_only); }), ErrorCode::invalid_use, {"target is const"});
  });
}

TEST_P(ManyArrays, boxes_move_to_boxes_elsewhere) {
  const int ranks = this->ranks();
  run([&](World& world) {
    Random random(11);
    for (int i = 0; i < 6; ++i) {
      const Distribution from({random.between(5, 14), random.between(5, 12)}, grid(ranks, 1),
                              {random.one_in(2) ? block() : cyclic(random.between(1, 3)), whole()});
      const Index wrap = random.between(0, 2);
      const Distribution to({random.between(5, 14), random.between(5, 12)}, grid(1, ranks),
                            {block().with_overlap(wrap, 1, EdgePolicy::toroidal),
                             cyclic(random.between(1, 4)).with_overlap(1, 1, EdgePolicy::truncate)});
      SubArray part;
      for (int d = 0; d < 2; ++d) {
        const Index length = random.between(0, std::min(from.extents()[d], to.extents()[d]));
        part.extents.push_back(length);
        part.source.push_back(random.between(0, from.extents()[d] - length));
        part.target.push_back(random.between(0, to.extents()[d] - length));
      }
      Array<double> a(world, from), b(world, to);
      a.fill_owned([](const Indices& cell) { return value_of(cell); });
      for_each_stored(to, world.rank(), [&](const Indices& local, const auto&) { b.put(local, -1); });
      Redistribution move(a, b, {.part = part});
      move();
      for_each_stored(to, world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
        Indices at = cell.at, in_source = cell.at;
        bool inside = true;
        for (int d = 0; d < 2; ++d) {
          if (d == 0) at[d] = floor_modulo(at[d], to.extents()[d]);
          inside &= at[d] >= part.target[d] && at[d] < part.target[d] + part.extents[d];
          in_source[d] = at[d] - part.target[d] + part.source[d];
        }
        const double expected = inside ? value_of(in_source) : -1;
        require(b.get(local) == expected, "case {}: cell [{}] is {}, not {}", i, to_string(cell.at), b.get(local),
                expected);
      });
    }
    const Distribution small({4}, grid(1), {block()});
    const Array<double> a(world, small), b(world, small);
    require_says(error_of_rank([&] {
                   Redistribution(a, b, {.part = SubArray{{2}, {0}, {3}}});
                 }),
                 ErrorCode::invalid_use, {"the box from [2] of extents [3] leaves the source of extents [4]"});
  });
}

TEST_P(ManyArrays, structs_are_moved_as_bytes) {
  run([](World& world) {
    const int n = world.size();
    const Partition ring = block().with_overlap(1, 2, EdgePolicy::toroidal);
    const Distribution rows({9, 5}, grid(n, 1), {ring, whole()}, {.order = {1, 0}, .offset = 3});
    const Distribution columns({9, 5}, grid(1, n), {whole(), cyclic(2)});
    Array<Particle> a(world, rows), b(world, columns);
    Array<Rgb> c(world, rows), d(world, columns);
    b.fill_owned(particle_of);
    d.fill_owned(colour_of);
    for (const Schedule schedule : {Schedule::automatic, Schedule::staged}) {
      for_each_stored(rows, world.rank(), [&](const Indices& local, const auto&) {
        a.put(local, {});
        c.put(local, {});
      });
      Redistribution({{b, a}, {d, c}}, {.schedule = schedule})();
      require(a.count_wrong(particle_of) == 0, "particles");
      require(c.count_wrong(colour_of) == 0, "colours");
      for_each_stored(rows, world.rank(), [&](const Indices& local, const auto& cell) {
        if (!cell.owned) a.put(local, {});
      });
      HaloExchange({a, c}, {.depth_low = {1, 0}, .depth_high = {2, 0}}, HaloDirection::update,
                   {.schedule = schedule})();
      require(a.count_wrong(particle_of) == 0, "ghosts");
      const Array<Particle> target(world, columns);
      Redistribution(a, target, {.part = SubArray{{2, 1}, {0, 0}, {6, 3}}}, {.schedule = schedule})();
      require(target.count_wrong([](const Indices& cell) {
        if (cell[0] >= 6 || cell[1] >= 3) return Particle{};
        return particle_of({cell[0] + 2, cell[1] + 1});
      }) == 0,
              "box");
    }
    require(a.extents() == rows.local_extents(world.rank()), "extents");
    require_says(error_of_rank([&] { RedistributionAdjoint(a, b); }), ErrorCode::invalid_use,
                 {"elements that are moved as bytes cannot be combined by sum"});
  });
}

/// What std::mdspan has, for compilers whose library lacks it.
template <class T, std::size_t dims, bool strided>
class Span {
 public:
  struct extents_type {
    using index_type = int;
    std::array<int, dims> values;
    explicit extents_type(const std::array<int, dims>& v) : values(v) {}
  };
  struct mapping_type {
    extents_type extents;
    std::array<int, dims> strides{};
    explicit mapping_type(const extents_type& e) requires(!strided) : extents(e) {
      int step = 1;
      for (std::size_t d = dims; d-- > 0; step *= extents.values[d]) strides[d] = step;
    }
    mapping_type(const extents_type& e, const std::array<int, dims>& s) requires strided : extents(e), strides(s) {}
  };
  Span(T* data, const mapping_type& mapping) : data_(data), mapping_(mapping) {}
  static constexpr std::size_t rank() { return dims; }
  int extent(std::size_t d) const { return mapping_.extents.values[d]; }
  int stride(std::size_t d) const { return mapping_.strides[d]; }
  T* data_handle() const { return data_; }
  T& at(int i, int j) const { return data_[i * stride(0) + j * stride(1)]; }

 private:
  T* data_;
  mapping_type mapping_;
};

TEST_P(ManyArrays, views_like_mdspan_go_both_ways) {
  run([](World& world) {
    const int n = world.size();
    const Distribution columns_first({7, 4}, grid(n, 1), {block(), whole()}, {.order = {1, 0}});
    const Distribution rows_first({7, 4}, grid(n, 1), {block(), whole()});
    Array<double> a(world, columns_first);
    a.fill_owned([](const Indices& cell) { return value_of(cell); });
    const auto view = a.as<Span<double, 2, true>>();
    const int rows = view.extent(0);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < 4; ++j) require(&view.at(i, j) == &a(i, j), "element {} {}", i, j);
    std::vector<Particle> memory(std::size_t(7 * 9));
    using Mapping = Span<Particle, 2, true>::mapping_type;
    const Span<Particle, 2, true> theirs(memory.data(),
                                         Mapping(Span<Particle, 2, true>::extents_type({rows, 4}), {9, 2}));
    const Array<Particle> b(world, rows_first, theirs), c(world, rows_first);
    c.fill_owned(particle_of);
    Redistribution(c, b)();
    require(b.count_wrong(particle_of) == 0, "particles");
    if (rows > 0) require(&b(rows - 1, 3) == &theirs.at(rows - 1, 3), "the last element");
    require(c.as<Span<Particle, 2, false>>().stride(0) == 4, "rows");
    if (rows > 1)
      require_says(error_of_rank([&] { a.as<Span<double, 2, false>>(); }), ErrorCode::invalid_use, {"stride 4"});
    require_says(error_of_rank([&] { a.as<Span<double, 3, true>>(); }), ErrorCode::invalid_use, {"3 dimensions"});
  });
}

TEST_P(ManyArrays, shared_interfaces_get_the_value_of_their_owner) {
  const int ranks = this->ranks();
  run([&](World& world) {
    struct Case {
      Indices extents, grid;
      std::vector<Partition> partitions;
    };
    const Partition points = block().with_interfaces();
    const auto across = Indices{ranks % 2 == 0 ? ranks / 2 : ranks, ranks % 2 == 0 ? 2 : 1};
    const std::vector<Case> cases = {
        {{9}, {ranks}, {points}},
        {{3}, {ranks}, {points.with_overlap(1, 1, EdgePolicy::open)}},
        {{10, 6}, across, {points, points.with_overlap(1, 2, EdgePolicy::open)}},
        {{10, 6}, across, {points.with_overlap(1, 1, EdgePolicy::toroidal), block().with_overlap(1, 1)}},
        {{7, 5, 4}, {across[0], 1, across[1]}, {points, cyclic(2), points.with_overlap(1, 1, EdgePolicy::toroidal)}},
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Distribution shared(cases[i].extents, Grid(cases[i].grid), cases[i].partitions);
      for (const Schedule schedule : {Schedule::automatic, Schedule::staged}) {
        Array<double> u(world, shared), v(world, shared);
        // Every rank has values of its own, overlap included.
        const auto value = [](const Indices& cell, Rank rank, int field) { return value_of(cell, field) * 16 + rank; };
        const auto reset = [&] {
          for_each_stored(shared, world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
            u.put(local, value(cell.at, world.rank(), 0));
            v.put(local, value(cell.at, world.rank(), 1));
          });
        };
        InterfaceExchange synchronise({u, v}, {.schedule = schedule});
        for (int repeat = 0; repeat < 2; ++repeat) {
          reset();
          synchronise();
          for_each_stored(shared, world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
            Indices at = cell.at;
            Rank from = world.rank();
            if (cell.owned) {
              for (int d = 0; d < at.size(); ++d)
                if (const Partition& p = cases[i].partitions[std::size_t(d)];
                    p.points == Points::interfaces && p.overlap.left.edge == EdgePolicy::toroidal &&
                    p.overlap.left.width > 0 && at[d] == shared.extents()[d] - 1)
                  at[d] = 0;
              from = shared.owner(at);
            }
            require(u.get(local) == value(at, from, 0) && v.get(local) == value(at, from, 1),
                    "case {}: point [{}] of rank {} has {}, not that of rank {}, {}", i, to_string(cell.at),
                    world.rank(), u.get(local), from, value(at, from, 0));
          });
          world.barrier();
        }
      }
    }
    const Array<double> cells(world, Distribution({9}, grid(ranks), {block()}));
    require_says(error_of_rank([&] { InterfaceExchange({cells}); }), ErrorCode::invalid_use,
                 {"counts interfaces in 0 of them"});
  });
}

TEST_P(ManyArrays, leases_know_what_boxes_and_interfaces_change) {
  run([](World& world) {
    const int n = world.size();
    const auto write_owned = [&](const Array<double>& array, auto&& value) {
      const Lease lease = array.write();
      for_each_owned(array.distribution(), world.rank(), [&](const Indices& local, const Indices& cell) {
        lease.data<double>()[local[0]] = value(cell[0]);
      });
    };
    const auto check = [&](const Array<double>& array, auto&& value) {
      const Lease lease = array.read({.cells = tranship::Cells::stored});
      const Index extent = array.distribution().extents()[0];
      for_each_stored(array.distribution(), world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
        const double seen = lease.data<const double>()[local[0]];
        const bool is_open = array.distribution().axis(0).partition().overlap.left.edge == EdgePolicy::open;
        if (is_open && (cell.at[0] < 0 || cell.at[0] >= extent)) return;
        const double expected = value(floor_modulo(cell.at[0], extent));
        require(seen == expected, "cell {} is {}, not {}", cell.at[0], seen, expected);
      });
    };
    const Distribution ring({12}, grid(n), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    const Array<double> from(world, Distribution({12}, grid(n), {cyclic(2)})), u(world, ring);
    from.fill_owned([](const Indices& cell) { return 100.0 + double(cell[0]); });
    write_owned(u, [](Index cell) { return double(cell); });
    check(u, [](Index cell) { return double(cell); });
    Redistribution cut(from, u, {.part = SubArray{.source = {3}, .target = {5}, .extents = {4}}});
    for (int repeat = 0; repeat < 2; ++repeat) {
      cut();
      check(u, [](Index cell) { return cell >= 5 && cell < 9 ? 98.0 + double(cell) : double(cell); });
    }

    const Distribution points({9}, grid(n), {block().with_interfaces().with_overlap(1, 1, EdgePolicy::open)});
    const Array<double> flux(world, points);
    const Rank me = world.rank();
    write_owned(flux, [&](Index point) { return double(100 * point + me); });
    InterfaceExchange({flux})();
    check(flux, [&](Index point) { return double(100 * point + points.owner({point})); });
  });
}

}  // namespace
}  // namespace tranship::test::many_arrays_test
