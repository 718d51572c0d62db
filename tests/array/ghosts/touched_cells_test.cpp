// What a plan touches, against a list of the cells that it names one by one.
#include "tranship/array/ghosts/touched_cells.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/random_plans.hpp"

namespace tranship {
namespace {

using namespace test;

/// Cell by cell, whether a slot is touched by lists: read or written.
std::vector<std::vector<bool>> listed(const TransferPlan& plan, bool reads) {
  std::vector<std::vector<bool>> out;
  for (const Slot& slot : plan.slots) out.emplace_back(std::size_t(checked_product(slot.local_extents)), false);
  for (const IndexedTransfer& list : reads ? plan.indexed_sends : plan.indexed_receives)
    for (const Index cell : reads ? list.source_cells : list.target_cells)
      for (Index i = 0; i < list.inner; ++i)
        out[std::size_t(reads ? list.source_slot : list.target_slot)][std::size_t(cell * list.inner + i)] = true;
  return out;
}

TEST(TouchedCells, OfListsAreThoseThatTheyName) {
  Index touched = 0;
  EXPECT_EQ(first_fault(0.5,
                        [&](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Indices extents = random_extents(random, int(random.between(1, 3)));
                          const auto indexed = [&] {
                            const Index parts = random.between(1, 3);
                            return random_indexed(random, extents, int(random.between(1, extents.size())), parts,
                                                  first_ranks(parts));
                          };
                          const auto plain = [&] {
                            Indices parts = Indices::filled(extents.size(), 1);
                            std::vector<Partition> cuts;
                            for (int d = 0; d < extents.size(); ++d) {
                              parts[d] = random.between(1, 2);
                              cuts.push_back(random_partition(random, extents[d], parts[d],
                                                              {.overlap_max = 0, .replicas = false}));
                            }
                            return Distribution(extents, Grid(parts), std::move(cuts));
                          };
                          const bool to_lists = random.one_in(2);
                          const ArraySpec source{ElementType::u8, to_lists ? plain() : indexed()};
                          const ArraySpec target{ElementType::u8, to_lists ? indexed() : plain()};
                          const TransferPlan plan = plan_redistribution(source, target, Rank(random.below(4)));
                          const std::vector<TouchedCells> found = touched_cells(plan);
                          const auto reads = listed(plan, true), writes = listed(plan, false);
                          for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
                            std::size_t i = 0;
                            std::string fault;
                            for_each_coordinate(plan.slots[slot].local_extents, [&](const Indices& at) {
                              if (found[slot].read.contains(at) != reads[slot][i] ||
                                  found[slot].written.contains(at) != writes[slot][i])
                                fault = fmt::format("slot {} cell [{}]", slot, to_string(at));
                              touched += reads[slot][i] || writes[slot][i];
                              ++i;
                            });
                            if (!fault.empty()) return fault;
                          }
                          return "";
                        }),
            "");
  EXPECT_GT(touched, 500);
}

}  // namespace
}  // namespace tranship
