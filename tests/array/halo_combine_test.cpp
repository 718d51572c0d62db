// Adjoints of halos by every combination, on ranks, against an oracle of cells: who reads whom is asked of the oracle
// of halos (support/oracle.hpp), and what the readers hold is combined in a loop.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/layout/text.hpp>
#include <tranship/plan/plan_json.hpp>
#include <tranship/tranship.hpp>

#include "support/elements.hpp"
#include "support/error_of.hpp"
#include "support/oracle.hpp"
#include "support/random_layouts.hpp"

namespace tranship::test::halo_combine {
namespace {

constexpr std::array combines = {Combine::sum, Combine::product, Combine::minimum, Combine::maximum};

bool has_combination(ElementType type, Combine combine) {
  if (type == ElementType::bool8) return combine != Combine::sum;
  return !is_complex(type) || combine == Combine::sum;
}

/// Small numbers, exact in every type in whatever order they are combined.
Index random_value(Random& random, ElementType type, Combine combine) {
  if (type == ElementType::bool8) return random.below(2);
  if (combine == Combine::product) return random.one_in(10) ? 2 : 1;
  return random.between(0, 5);
}

/// Depths that the overlap of an array has, by one number or for each side, and a stencil.
HaloOptions random_halo(Random& random, const Distribution& array) {
  HaloOptions out;
  const auto overlap = [&](int d) -> const Overlap& { return array.axis(d).partition().overlap; };
  if (random.one_in(3)) {
    Index least = 100;
    for (int d = 0; d < array.dims(); ++d)
      for (const OverlapSide& side : {overlap(d).left, overlap(d).right})
        if (side.width > 0) least = std::min(least, side.width);
    out.depth = random.between(0, least == 100 ? 0 : least);
  }
  for (int d = 0; d < array.dims() && random.one_in(2); ++d) {
    if (d == 0) out.depth_low = out.depth_high = Indices::filled(array.dims(), 0);
    out.depth_low[d] = random.between(0, overlap(d).left.width);
    out.depth_high[d] = random.between(0, overlap(d).right.width);
  }
  const Index stencil = random.below(3);
  if (stencil == 1) out.stencil.kind = StencilKind::star;
  if (stencil == 2) {
    HaloOptions offsets = out;
    offsets.stencil.kind = StencilKind::offsets;
    if (may_want_more(array, offsets)) return out;  // the oracle leaves open which cells are filled
    for (Index n = random.between(1, 3); n > 0; --n) {
      Indices& offset = offsets.stencil.offsets.emplace_back();
      for (int d = 0; d < array.dims(); ++d)
        offset.push_back(random.between(-overlap(d).left.width, overlap(d).right.width));
    }
    return offsets;
  }
  return out;
}

/// With the one depth written out for each side that stores any.
HaloOptions by_sides(HaloOptions halo, const Distribution& array) {
  if (!halo.depth) return halo;
  const bool is_low = halo.depth_low.empty(), is_high = halo.depth_high.empty();
  for (int d = 0; d < array.dims(); ++d) {
    const Overlap& overlap = array.axis(d).partition().overlap;
    if (is_low) halo.depth_low.push_back(std::min(*halo.depth, overlap.left.width));
    if (is_high) halo.depth_high.push_back(std::min(*halo.depth, overlap.right.width));
  }
  return halo;
}

struct Field {
  ArraySpec spec;
  HaloOptions halo;
  std::vector<Cells> before, after;  // of each rank
};

/// Gives every stored cell a value, and says what it is afterwards.
void fill(Field& field, Rank ranks, Combine combine, Random& random) {
  const Distribution& array = field.spec.distribution;
  const Global numbers(array);
  std::map<Index, Index*> owners;  // by the number of a cell; of a shared interface, each part's
  std::vector<LocalPoints> points;
  for (Rank r = 0; r < ranks; ++r) {
    points.emplace_back(array, r);
    Cells& cells = field.before.emplace_back();
    for (Index i = checked_product(array.local_extents(r)); i > 0; --i)
      cells.push_back(random_value(random, field.spec.type, combine));
  }
  field.after = field.before;
  const auto for_each_cell = [&](auto&& f) {
    for (Rank r = 0; r < ranks; ++r) {
      Index i = 0;
      for_each_coordinate(array.local_extents(r),
                          [&](const Indices& local) { f(r, i++, local, array.cell_of(r, local)); });
    }
  };
  for_each_cell([&](Rank r, Index i, const Indices& local, const Distribution::Cell& cell) {
    if (cell.owned) owners[points[r].own(local, cell, numbers)] = &field.after[r][i];
  });
  const HaloOptions halo = by_sides(field.halo, array);
  for_each_cell([&](Rank r, Index i, const Indices& local, const Distribution::Cell& cell) {
    if (cell.owned || !wanted_by(halo, points[r], local)) return;
    const auto [kind, number] = points[r].read_from(array, numbers, local);
    if (kind == Resolved::left_alone) return;
    if (kind == Resolved::value) {
      Index& owner = *owners.at(number);
      owner = combined(combine, owner, field.before[r][i]);
    }
    field.after[r][i] = identity(combine);
  });
}

/// Ways to say the same.
enum class Way { options, fields, plan };

std::string fault_of(Way way, std::vector<Field>& fields, Combine combine, Schedule schedule, Random& random) {
  std::vector<ArraySpec> specs;
  for (const Field& field : fields) specs.push_back(field.spec);
  const Rank ranks = world_of(specs);
  for (Field& field : fields) fill(field, ranks, combine, random);
  std::vector<std::string> faults(std::size_t(ranks), "");
  launch(ranks, [&](World& world) {
    const Rank rank = world.rank();
    std::vector<ArrayRef> arrays;
    std::vector<HaloField> halos;
    const auto for_each_cell = [&](auto&& f) {
      for (std::size_t n = 0; n < fields.size(); ++n) {
        Index i = 0;
        for_each_coordinate(arrays[n].view.extents, [&](const Indices& local) { f(n, i++, local); });
      }
    };
    for (const Field& field : fields) {
      arrays.push_back(allocate_array(world, field.spec));
      halos.push_back({arrays.back(), field.halo});
    }
    for_each_cell([&](std::size_t n, Index i, const Indices& local) {
      write_element(arrays[n].view, local, element_of(fields[n].spec.type, fields[n].before[rank][i]));
    });
    const ExchangeOptions options{.schedule = schedule};
    if (way == Way::options) {
      HaloExchange(arrays, fields[0].halo, combine, options)();
    } else if (way == Way::fields) {
      HaloExchange(halos, combine, options)();
    } else {
      const std::string text = save_plan(HaloExchange(halos, combine, options).plan());
      HaloExchange(arrays, load_plan(text), options)();
    }
    for_each_cell([&](std::size_t n, Index i, const Indices& local) {
      const Index value = fields[n].after[rank][i];
      if (faults[rank].empty() && !has_element(arrays[n].view, local, element_of(fields[n].spec.type, value)))
        faults[rank] = fmt::format("rank {} field {} local [{}] does not hold {}", rank, n, to_string(local), value);
    });
  });
  for (std::string fault : faults) {
    if (fault.empty()) continue;
    fault += fmt::format("\n  {} by way {}", name_of(combine), int(way));
    for (const Field& field : fields) fault += "\n  " + to_text(field.spec) + "\n  " + text_of(field.halo);
    return fault;
  }
  return "";
}

TEST(HaloCombine, IsWhatALoopOverCellsSays) {
  EXPECT_EQ(first_fault(1,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Combine combine = combines[std::size_t(random.below(Index(combines.size())))];
                          const auto type = [&] {
                            for (;;)
                              if (const auto one = static_cast<ElementType>(random.below(int(ElementType::c256) + 1));
                                  has_combination(one, combine))
                                return one;
                          };
                          const auto way = static_cast<Way>(random.below(3));
                          std::vector<Field> fields;
                          for (Index n = random.between(1, 3); n > 0; --n) {
                            const Indices extents = random_extents(random, int(random.between(1, 3)));
                            const Distribution array =
                                way == Way::options && !fields.empty()
                                    ? fields[0].spec.distribution
                                    : random_distribution(random, extents,
                                                          {.ranks_max = 6, .world = 7, .replicas = false});
                            const HaloOptions halo =
                                way == Way::options && !fields.empty() ? fields[0].halo : random_halo(random, array);
                            fields.push_back({{type(), array}, halo, {}, {}});
                          }
                          const auto schedule = random.one_in(2) ? Schedule::direct : Schedule::staged;
                          return fault_of(way, fields, combine, schedule, random);
                        }),
            "");
}

TEST(HaloCombine, OnATorusOfTilesAndOfAllGhosts) {
  const Tiling torus = doubly_periodic(4, 6);
  const Partition open = block().with_overlap(1, 1, EdgePolicy::open);
  const Partition ring = block().with_overlap(1, 1, EdgePolicy::toroidal);
  const Distribution tile({4, 6}, grid(1, 2), {open, open}), whole({4, 6}, grid(1, 2), {ring, ring});
  for (const Combine combine : combines)
    for (const bool is_star : {false, true})
      launch(2, [&](World& world) {
        const HaloOptions halo{.stencil = {is_star ? StencilKind::star : StencilKind::box}};
        TiledHaloOptions tiled;
        tiled.stencil = halo.stencil;
        const Array<double> u(world, tile), v(world, whole), w(world, whole);
        for_each_coordinate(u.extents(), [&](const Indices& at) {
          for (const Array<double>& a : {u, v, w}) a.put(at, double(1 + (3 * at[0] + 5 * at[1] + world.rank()) % 4));
        });
        HaloExchange(torus, {{.tiles = {u}, .tile_dims = {0, 1}}}, tiled, combine)();
        HaloExchange({v}, halo, combine)();
        if (!is_star) HaloExchange({w}, {}, combine)();
        for_each_coordinate(u.extents(), [&](const Indices& at) {
          EXPECT_EQ(u.get(at), v.get(at)) << name_of(combine) << " [" << to_string(at) << "] of rank " << world.rank();
          if (!is_star) {
            EXPECT_EQ(w.get(at), v.get(at)) << name_of(combine);
          }
        });
      });
}

TEST(HaloCombine, AnAdjointIsASum) {
  EXPECT_EQ(HaloOperation(HaloDirection::adjoint).combine(), Combine::sum);
  EXPECT_EQ(HaloOperation(Combine::minimum).combine(), Combine::minimum);
  EXPECT_EQ(HaloOperation().combine(), std::nullopt);
}

struct Pair {
  double first, second;
};

TEST(HaloCombine, RefusesElementsWithoutThatCombination) {
  launch(1, [](World& world) {
    const Distribution ring({6}, grid(1), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    const Array<bool> bools(world, ring);
    const Array<std::complex<double>> complex(world, ring);
    const Array<Pair> pairs(world, ring);
    const auto refusal = [](const ArrayRef& array, HaloOperation operation) {
      return error_of([&] { HaloExchange({array}, {}, operation); });
    };
    EXPECT_TRUE(refusal(bools, Combine::sum).starts_with("invalid_use")) << refusal(bools, Combine::sum);
    EXPECT_TRUE(refusal(complex, Combine::maximum).starts_with("unsupported")) << refusal(complex, Combine::maximum);
    for (const Combine combine : combines)
      EXPECT_TRUE(refusal(pairs, combine).starts_with("invalid_use")) << refusal(pairs, combine);
    // A plan does not combine the bytes of structs either.
    const ArraySpec& inside = *ArrayRef(pairs).spec;
    const TransferPlan plan = adjoint(plan_halo({&inside, 1}, 0), Combine::maximum);
    const std::string said = error_of([&] { HaloExchange({pairs}, plan); });
    EXPECT_TRUE(said.starts_with("invalid_use") && said.find("moved as bytes") != std::string::npos) << said;
  });
}

TEST(HaloCombine, SavedPlansAreRunForTheirLayoutsOnly) {
  launch(2, [](World& world) {
    const Partition cut = block().with_overlap(1, 1, EdgePolicy::toroidal);
    const Distribution ring({8}, grid(2), {cut}), others({8}, grid(2), {cyclic(4).with_overlap(1, 1)});
    const Array<double> a(world, ring), b(world, ring), c(world, others);
    const Array<float> d(world, ring);
    const auto value = [](const Indices& cell) { return 1.0 + double(cell[0]); };
    // The plan has one slot for both arrays of one layout.
    const TransferPlan plan = HaloExchange({a, b}).plan();
    ASSERT_EQ(plan.slots.size(), 1u);
    for (const Array<double>& array : {a, b}) array.fill_owned(value);
    HaloExchange again({a, b}, plan);
    again();
    EXPECT_EQ(a.count_wrong(value) + b.count_wrong(value), 0);
    const auto refusal = [&](const std::vector<ArrayRef>& arrays, const TransferPlan& of) {
      std::string said = error_of([&] { HaloExchange(arrays, of); });
      return said.starts_with("mismatch: ") ? said : "";
    };
    EXPECT_NE(refusal({c}, plan).find("the plan was made for"), std::string::npos) << refusal({c}, plan);
    EXPECT_NE(refusal({a, d}, plan).find("the plan was made for"), std::string::npos) << refusal({a, d}, plan);
    const ArraySpec specs[] = {*ArrayRef(a).spec, *ArrayRef(d).spec, *ArrayRef(d).spec};
    const TransferPlan three = plan_halo(specs, world.rank());
    EXPECT_NE(refusal({a, d}, three).find("has the layout of number 2"), std::string::npos) << refusal({a, d}, three);
    EXPECT_NE(refusal({c, d}, three).find("the plan has 3 arrays, and none has this layout"), std::string::npos)
        << refusal({c, d}, three);
    const TransferPlan turn = plan_redistribution(specs[0], {ElementType::f64, others}, world.rank());
    EXPECT_NE(refusal({a}, turn).find("the plan is of kind redistribution, expected halo"), std::string::npos)
        << refusal({a}, turn);
  });
}

TEST(HaloCombine, SavedPlansOfSeveralPairsAndOfAdjoints) {
  launch(2, [](World& world) {
    const Distribution rows({6, 4}, grid(2, 1), {block(), whole()}), columns({6, 4}, grid(1, 2), {whole(), block()});
    const Array<double> a(world, rows), b(world, rows), to_a(world, columns), to_b(world, columns);
    const Array<int> c(world, rows), to_c(world, columns);
    const auto value = [](const Indices& cell) { return 1 + int(10 * cell[0] + cell[1]); };
    a.fill_owned(value);
    b.fill_owned([&](const Indices& cell) { return -value(cell); });
    c.fill_owned(value);
    const std::vector<ArrayPair> pairs = {{a, to_a}, {c, to_c}, {b, to_b}};
    const TransferPlan plan = load_plan(save_plan(Redistribution(pairs).plan()));
    ASSERT_EQ(plan.slots.size(), 4u);
    Redistribution(pairs, plan)();
    EXPECT_EQ(to_a.count_wrong(value) + to_c.count_wrong(value), 0);
    EXPECT_EQ(to_b.count_wrong([&](const Indices& cell) { return -value(cell); }), 0);
    const TransferPlan back = load_plan(save_plan(RedistributionAdjoint(a, to_a).plan()));
    RedistributionAdjoint(a, to_a, back)();
    EXPECT_EQ(a.count_wrong([&](const Indices& cell) { return 2 * value(cell); }), 0);
    EXPECT_TRUE(error_of([&] { RedistributionAdjoint(a, to_a, plan); }).starts_with("mismatch"));
    EXPECT_TRUE(error_of([&] { Redistribution(a, to_a, back); }).starts_with("mismatch"));
  });
}

}  // namespace
}  // namespace tranship::test::halo_combine
