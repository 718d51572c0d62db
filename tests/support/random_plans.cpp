#include "support/random_plans.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tranship::test {

std::vector<Rank> first_ranks(Index count) {
  std::vector<Rank> out;
  for (Index i = 0; i < count; ++i) out.push_back(Rank(i));
  return out;
}

TransferPlan random_plan(Random& random) {
  const LayoutChoices choices;
  const Rank rank = Rank(random.below(choices.world));
  const int dims = int(random.between(1, 3));
  const Indices extents = random_extents(random, dims);
  TransferPlan plan;
  switch (random.below(4)) {
    case 0:
    case 1: {
      const ArraySpec source{ElementType::f64, random_distribution(random, extents, choices)};
      const ArraySpec target{ElementType::f64, random_distribution(random, extents, choices)};
      plan = plan_redistribution(source, target, rank);
      break;
    }
    case 2: {
      LayoutChoices plain = choices;
      plain.replicas = false;
      std::vector<ArraySpec> fields;
      for (Index n = random.between(1, 2); n > 0; --n)
        fields.push_back({n == 1 ? ElementType::f32 : ElementType::c128, random_distribution(random, extents, plain)});
      HaloOptions options;
      if (random.one_in(2)) options.stencil.kind = StencilKind::star;
      plan = plan_halo(fields, rank, options);
      break;
    }
    default: {
      const Index parts = random.between(1, 4);
      const ArraySpec a{ElementType::i32, random_indexed(random, extents, 1, parts, first_ranks(parts))};
      if (random.one_in(2)) {
        plan = plan_halo(std::vector{a}, Rank(rank % 4));
      } else {
        Indices grid_extents = Indices::filled(dims, 1);
        grid_extents[0] = random.between(1, 4);
        std::vector<Partition> partitions(dims, whole());
        if (dims > 1 && random.one_in(2)) {
          grid_extents[dims - 1] = 2;
          partitions[dims - 1] = random_partition(random, extents[dims - 1], 2, {.replicas = false});
        }
        partitions[0] = cyclic(random.between(1, 3)).with_overlap(1, 1, EdgePolicy::toroidal);
        const ArraySpec b{ElementType::i32, Distribution(extents, Grid(grid_extents), partitions)};
        plan = random.one_in(2) ? plan_redistribution(a, b, Rank(rank % 4)) : plan_redistribution(b, a, Rank(rank % 4));
      }
    }
  }
  if (!random.one_in(3)) return plan;
  const Combine combine = random.pick<Combine>({Combine::sum, Combine::product, Combine::minimum, Combine::maximum});
  const bool is_possible = std::all_of(plan.slots.begin(), plan.slots.end(),
                                       [&](const Slot& slot) { return can_map(map_of(combine), slot.type); });
  return adjoint(plan, is_possible ? combine : Combine::sum);
}

}  // namespace tranship::test
