// Adjoints by dot products: <A x, y> == <x, A^T y> for every x and y, exact because all values are small integers.
// Other combinations by who reads whom: the forward plan carries the number of every cell to its readers.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using namespace test;

ArraySpec array_of(Distribution distribution) {
  return {ElementType::i64, std::move(distribution)};
}

constexpr Combine combines[] = {Combine::sum, Combine::product, Combine::minimum, Combine::maximum};

Plans adjoints(const Plans& plans, Combine combine = Combine::sum) {
  Plans out;
  for (const TransferPlan& plan : plans) out.push_back(adjoint(plan, combine));
  return out;
}

Memory random_memory_for(const Plans& plans, Random& random) {
  Memory out = memory_for(plans, 0);
  for (auto& slots : out)
    for (Cells& cells : slots)
      for (Index& cell : cells) cell = random.between(-50, 50);
  return out;
}

Index dot(const Memory& a, const Memory& b, int slot) {
  Index out = 0;
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t i = 0; i < a[r][slot].size(); ++i) out += a[r][slot][i] * b[r][slot][i];
  return out;
}

/// Runs forward and reverse plans on random values: every cell must hold what it held, combined with all that read it.
/// The readers of a halo must hold what changes nothing, so that a second run changes nothing; the target of a
/// redistribution, slot 1, does not matter.
std::string combination_fault(const Plans& plans, Random& random) {
  const PlanInterpreter forward(plans);
  if (!forward.fault().empty()) return forward.fault();
  const bool is_halo = plans[0].kind == PlanKind::halo;
  Memory owners = memory_for(plans, 0);
  std::vector<Index*> cells;  // by their number, from 1 on
  Memory expected = random_memory_for(plans, random);
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::size_t slot = 0; slot < owners[r].size(); ++slot)
      for (std::size_t i = 0; i < owners[r][slot].size(); ++i) {
        cells.push_back(&expected[r][slot][i]);
        owners[r][slot][i] = Index(cells.size());
      }
  forward.apply(owners);
  const Memory before = expected;
  for (const Combine combine : combines) {
    expected = before;
    const Plans back = adjoints(plans, combine);
    const PlanInterpreter backward(back);
    if (!backward.fault().empty()) return backward.fault();
    const auto for_each_reader = [&](auto&& f) {
      for (Rank r = 0; r < Rank(plans.size()); ++r)
        for (int slot = 0; slot < int(before[r].size()); ++slot)
          for (std::size_t i = 0; i < before[r][slot].size(); ++i)
            if (forward.writes(r, slot)[i] > 0) f(r, slot, i);
    };
    for_each_reader([&](Rank r, int slot, std::size_t i) {
      if (const Index owner = owners[r][slot][i]; owner > 0) {
        Index& cell = *cells[owner - 1];
        cell = combined(combine, cell, before[r][slot][i]);
      }
    });
    if (is_halo) for_each_reader([&](Rank r, int slot, std::size_t i) { expected[r][slot][i] = identity(combine); });
    const auto differs = [&](const Memory& found) {
      for (std::size_t r = 0; r < found.size(); ++r)
        if (is_halo ? found[r] != expected[r] : found[r][0] != expected[r][0]) return true;
      return false;
    };
    Memory found = before;
    backward.apply(found);
    if (differs(found)) return fmt::format("the reverse by {} leaves other values", name_of(combine));
    if (is_halo) backward.apply(found);
    if (differs(found)) return fmt::format("a second reverse by {} changes something", name_of(combine));
  }
  return "";
}

/// A takes slot 0 to slot 1, which starts as zeros; its adjoint takes slot 1 to slot 0, which starts as zeros.
std::string redistribution_adjoint_fault(const ArraySpec& source, const ArraySpec& target, Random& random) {
  const Plans plans = redistribution_plans(source, target);
  const Plans back = adjoints(plans);
  const PlanInterpreter forward(plans), backward(back);
  if (!forward.fault().empty() || !backward.fault().empty()) return forward.fault() + backward.fault();
  const Memory x = random_memory_for(plans, random), y = random_memory_for(plans, random);
  Memory ax = x, ay = y;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    ax[r][1].assign(ax[r][1].size(), 0);
    ay[r][0].assign(ay[r][0].size(), 0);
  }
  forward.apply(ax);
  backward.apply(ay);
  const Index there = dot(ax, y, 1), again = dot(x, ay, 0);
  if (there == again) {
    const std::string fault = combination_fault(plans, random);
    return fault.empty() ? "" : fmt::format("{}\n  {}\n  {}", fault, to_text(source), to_text(target));
  }
  return fmt::format("<A x, y> = {}, <x, A^T y> = {}\n  {}\n  {}", there, again, to_text(source), to_text(target));
}

/// A works on all local cells in place: ghosts are overwritten, the rest stays.
std::string halo_adjoint_fault(const Plans& plans, Random& random) {
  const Plans back = adjoints(plans);
  const PlanInterpreter forward(plans), backward(back);
  if (!forward.fault().empty() || !backward.fault().empty()) return forward.fault() + backward.fault();
  const Memory x = random_memory_for(plans, random), y = random_memory_for(plans, random);
  Memory ax = x, ay = y;
  forward.apply(ax);
  backward.apply(ay);
  Index there = 0, again = 0;
  for (int slot = 0; slot < int(plans[0].slots.size()); ++slot) {
    there += dot(ax, y, slot);
    again += dot(x, ay, slot);
    for (Rank r = 0; r < Rank(plans.size()); ++r)
      for (std::size_t i = 0; i < ay[r][slot].size(); ++i)
        if (forward.writes(r, slot)[i] > 0 && ay[r][slot][i] != 0)
          return fmt::format("rank {} slot {} cell {} is a ghost and holds {} after the adjoint", r, slot, i,
                             ay[r][slot][i]);
  }
  return there == again ? "" : fmt::format("<A x, y> = {}, <x, A^T y> = {}", there, again);
}

std::string halo_adjoint_fault(std::span<const ArraySpec> fields, const HaloOptions& options, Random& random) {
  Plans plans;
  for (Rank r = 0; r < world_of(fields); ++r) plans.push_back(plan_halo(fields, r, options));
  std::string fault = halo_adjoint_fault(plans, random) + combination_fault(plans, random);
  if (!fault.empty())
    for (const ArraySpec& field : fields) fault += "\n  " + to_text(field);
  return fault;
}

TEST(Adjoint, OfRedistributions) {
  EXPECT_EQ(first_fault(0.5,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const Indices extents = random_extents(random, int(random.between(1, 3)));
                          const ArraySpec source = array_of(random_distribution(random, extents));
                          const ArraySpec target = array_of(random_distribution(random, extents));
                          return redistribution_adjoint_fault(source, target, random);
                        }),
            "");
}

TEST(Adjoint, OfIndexedRedistributions) {
  EXPECT_EQ(first_fault(0.1,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const Indices extents = random_extents(random, 2);
                          const ArraySpec a = array_of(random_indexed(random, extents, 1, 3, {4, 0, 2}));
                          const ArraySpec b = array_of(random_indexed(random, extents, 1, 2, {0, 1}));
                          return redistribution_adjoint_fault(a, b, random);
                        }),
            "");
}

TEST(Adjoint, OfHalos) {
  EXPECT_EQ(first_fault(0.5,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          const ArraySpec field =
                              array_of(random_distribution(random, random_extents(random, dims), {.overlap_max = 4}));
                          if (field.distribution.replicated()) return "";
                          HaloOptions options;
                          if (random.one_in(2)) options.stencil.kind = StencilKind::star;
                          if (random.one_in(3)) options.depth_low = Indices::filled(dims, 0);
                          return halo_adjoint_fault({&field, 1}, options, random);
                        }),
            "");
}

TEST(Adjoint, OfOverlapsThatGoAroundATorusManyTimes) {
  Random random(6);
  for (const Partition& cut : {block(), cyclic(1), cyclic(2)}) {
    const ArraySpec wide = array_of({{5}, grid(2), {cut.with_overlap(17, 11, EdgePolicy::toroidal)}});
    EXPECT_EQ(halo_adjoint_fault({&wide, 1}, {}, random), "");
    for (const Partition& from : {block(), cyclic(1)})
      EXPECT_EQ(redistribution_adjoint_fault(array_of({{5}, grid(3), {from}}), wide, random), "");
  }
}

TEST(Adjoint, OfLattices) {
  Random random(7);
  const ArraySpec source = array_of({{2003}, grid(2), {cyclic(19)}});
  for (const EdgePolicy edge : {EdgePolicy::toroidal, EdgePolicy::replicate}) {
    const ArraySpec target = array_of({{2003}, grid(3), {cyclic(23).with_overlap(4, 3, edge)}});
    ASSERT_FALSE(plan_redistribution(source, target, 0).receives[0].axes[0][0].lattices.empty());
    EXPECT_EQ(redistribution_adjoint_fault(source, target, random), "");
  }
}

TEST(Adjoint, OfHalosWithReplicatedEdges) {
  Random random(3);
  for (const EdgePolicy edge : {EdgePolicy::replicate, EdgePolicy::replicate_local})
    for (const Index width : {1, 2, 5}) {
      const Partition cut = block().with_overlap(width, width, edge);
      const ArraySpec field = array_of({{4, 5}, grid(2, 2), {cut, cut}});
      EXPECT_EQ(halo_adjoint_fault({&field, 1}, {}, random), "");
      if (width >= 2) {
        EXPECT_EQ(halo_adjoint_fault({&field, 1}, {.stencil = {StencilKind::offsets, {{1, 2}, {-2, -1}}}}, random), "");
      }
    }
}

TEST(Adjoint, OfStarForests) {
  Random random(4);
  for (int times = 0; times < 50; ++times) {
    const ArraySpec fields[] = {array_of(random_indexed(random, {random.between(0, 12), 2}, 1, 4, {3, 0, 2, 1})),
                                array_of(random_indexed(random, {9}, 1, 2, {1, 3}))};
    EXPECT_EQ(halo_adjoint_fault(fields, {}, random), "");
  }
}

TEST(Adjoint, OfTiledHalosWithVectors) {
  Random random(5);
  for (const Index n : {1, 4})
    for (const Index layout : {1, 2})
      for (const Index width : {1, 3}) {
        const Tiling tiling = cubed_sphere(n);
        std::vector<TiledField> fields(3);
        const Points points[3][2] = {
            {Points::cells, Points::cells}, {Points::interfaces, Points::cells}, {Points::cells, Points::interfaces}};
        for (int f = 0; f < 3; ++f) {
          fields[f].tile_dims = {0, 1};
          for (int t = 0; t < 6; ++t) {
            Indices extents;
            std::vector<Partition> partitions;
            for (const Points p : points[f]) {
              extents.push_back(n + (p == Points::interfaces));
              partitions.push_back(block().with_overlap(width, width, EdgePolicy::open));
              partitions.back().points = p;
            }
            // A third dimension whose edges replicate.
            extents.push_back(2);
            partitions.push_back(whole().with_overlap(1, 1, EdgePolicy::replicate));
            const Rank first = Rank(t * layout * layout);
            fields[f].tiles.push_back(
                array_of({extents, Grid({layout, layout, 1}, {.first = first}), std::move(partitions)}));
          }
        }
        const Plans plans = tiled_plans(tiling, fields, {.vectors = {vector_of({1, 2})}});
        EXPECT_EQ(halo_adjoint_fault(plans, random), "") << "n " << n << " layout " << layout << " width " << width;
        const Plans scalars = tiled_plans(tiling, std::span(fields).first(1), {});
        EXPECT_EQ(combination_fault(scalars, random), "") << "n " << n << " layout " << layout << " width " << width;
      }
}

TEST(Adjoint, OfAnAdjointIsNotDefined) {
  const ArraySpec array = array_of({{4}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)}});
  const TransferPlan back = adjoint(plan_halo({&array, 1}, 0));
  try {
    adjoint(back);
    FAIL() << "the adjoint of an adjoint was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

std::string refusal(const TransferPlan& plan, Combine combine) {
  try {
    adjoint(plan, combine);
  } catch (const Error& error) {
    return fmt::format("{}: {}", name_of(error.code()), error.what());
  }
  return "";
}

TEST(Adjoint, RefusesWhatHasNoMeaning) {
  const Partition cut = block().with_overlap(1, 1, EdgePolicy::toroidal);
  const ArraySpec complex{ElementType::c128, {{4}, grid(2), {cut}}};
  const TransferPlan complex_plan = plan_halo({&complex, 1}, 0);
  EXPECT_EQ(refusal(complex_plan, Combine::sum), "");
  for (const Combine combine : {Combine::product, Combine::minimum, Combine::maximum})
    EXPECT_NE(refusal(complex_plan, combine)
                  .find(fmt::format("unsupported: plans do not combine elements c128 by {}", name_of(combine))),
              std::string::npos)
        << refusal(complex_plan, combine);

  const ArraySpec real = array_of({{4}, grid(2), {cut}});
  TransferPlan turned = plan_halo({&real, 1}, 0);
  for (auto* groups : {&turned.receives, &turned.sends})
    for (TransferGroup& group : *groups) group.map = ElementMap::negate;
  EXPECT_EQ(refusal(turned, Combine::sum), "");
  for (const Combine combine : {Combine::product, Combine::minimum, Combine::maximum})
    EXPECT_NE(refusal(turned, combine)
                  .find(fmt::format("the reverse of the element map negate by {} is not defined", name_of(combine))),
              std::string::npos)
        << refusal(turned, combine);
}

}  // namespace
}  // namespace tranship
