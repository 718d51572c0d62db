// Plans as programs: proved, and the same bytes as the exchange of the same plan.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/layout/text.hpp>
#include <tranship/lower/plan_program.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/run/exchange.hpp>
#include <tranship/run/program_executor.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

std::vector<TransferPlan> redistribution_plans(const std::string& source, const std::string& target, Rank ranks) {
  std::vector<TransferPlan> plans;
  for (Rank rank = 0; rank < ranks; ++rank)
    plans.push_back(plan_redistribution(parse_layout(source), parse_layout(target), rank));
  return plans;
}
std::vector<TransferPlan> halo_plans(const std::vector<std::string>& fields, Rank ranks) {
  std::vector<ArraySpec> specs;
  for (const std::string& field : fields) specs.push_back(parse_layout(field));
  std::vector<TransferPlan> plans;
  for (Rank rank = 0; rank < ranks; ++rank) plans.push_back(plan_halo(specs, rank));
  return plans;
}

/// Dense arrays of the slots of a plan, filled with what says where it came from.
std::vector<std::vector<double>> arrays_of(const TransferPlan& plan) {
  std::vector<std::vector<double>> out;
  for (const Slot& slot : plan.slots) {
    auto& array = out.emplace_back(static_cast<std::size_t>(checked_product(slot.local_extents)));
    for (std::size_t i = 0; i < array.size(); ++i)
      array[i] = double(plan.rank) * 1e6 + double(out.size()) * 1e5 + double(i);
  }
  return out;
}

StridedView dense_view(double* data, const Indices& extents) {
  return {.data = data, .type = ElementType::f64, .extents = extents, .strides = row_major_strides(extents)};
}

void expect_equal(World& world, const std::vector<TransferPlan>& plans, const PlanProgram& made) {
  const TransferPlan& plan = plans[static_cast<std::size_t>(world.rank())];
  auto wanted = arrays_of(plan), got = wanted;
  std::vector<StridedView> views;
  for (std::size_t slot = 0; slot < wanted.size(); ++slot)
    views.push_back(dense_view(wanted[slot].data(), plan.slots[slot].local_extents));
  Exchange exchange(world, plan, views);
  exchange.start();
  exchange.finish();

  ProgramExecutor executor(world, made.program, made.elements, {.type = made.type});
  const auto& first = made.first_elements[static_cast<std::size_t>(world.rank())];
  std::vector<double> input(static_cast<std::size_t>(executor.input_elements())),
      output(static_cast<std::size_t>(executor.output_elements()));
  const bool in_place = made.program.in_place;
  for (std::size_t slot = 0; slot < got.size(); ++slot) {
    if (!in_place && slot % 2 == 1) continue;
    std::copy(got[slot].begin(), got[slot].end(), input.begin() + first[slot]);
  }
  for (int launch = 0; launch < 2; ++launch) executor.run(input.data(), output.data());
  for (std::size_t slot = 0; slot < got.size(); ++slot) {
    if (!in_place && slot % 2 == 0) continue;
    for (std::size_t i = 0; i < got[slot].size(); ++i)
      EXPECT_EQ(output[std::size_t(first[slot]) + i], wanted[slot][i]) << "array " << slot << ", element " << i;
  }
}

class PlanPrograms : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, PlanPrograms,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged),
                                            ::testing::Values(4)),
                         &OnRanks::name);

TEST_P(PlanPrograms, redistributions_give_the_bytes_of_their_exchange) {
  const std::pair<const char*, const char*> cases[] = {
      {"f64[8,6] @ 4x1 : block, whole", "f64[8,6] @ 1x4 : whole, block"},
      {"f64[9,7] @ 2x2 : cyclic(2), block", "f64[9,7] @ 4x1 : block, cyclic(3)"},
      {"f64[11] @ 4 : block", "f64[11] @ 4 : block+overlap(1,2)"},
      {"f64[5,4,3] @ 1x2x2 : whole, cyclic, block", "f64[5,4,3] @ 2x2x1 : block, block, whole"}};
  for (const auto& [source, target] : cases) {
    const std::vector<TransferPlan> plans = redistribution_plans(source, target, 4);
    const PlanProgram made = program_of(plans);
    EXPECT_TRUE(verify(made.program).is_right()) << verify(made.program).text();
    EXPECT_EQ(write_program(read_program(write_program(made.program))), write_program(made.program));
    run([&](World& world) {
      const TransferPlan& plan = plans[static_cast<std::size_t>(world.rank())];
      // Ghosts beyond the edge are not written by any.
      if (plan.slots[1].local_extents[0] > 0) expect_equal(world, plans, made);
    });
  }
}

TEST_P(PlanPrograms, halos_give_the_bytes_of_their_exchange) {
  const std::vector<std::string> cases[] = {
      {"f64[8,6] @ 2x2 : block+overlap(1,1,toroidal), block+overlap(1,1,toroidal)"},
      {"f64[12] @ 4 : block+overlap(2,1)", "f64[12,3] @ 4x1 : block+overlap(1,1,toroidal), whole"},
      {"f64[9,5] @ 4x1 : block+overlap(1,1,replicate), whole"}};
  for (const auto& fields : cases) {
    const std::vector<TransferPlan> plans = halo_plans(fields, 4);
    const PlanProgram made = program_of(plans);
    EXPECT_TRUE(made.program.in_place);
    EXPECT_TRUE(verify(made.program).is_right()) << verify(made.program).text();
    run([&](World& world) { expect_equal(world, plans, made); });
  }
}

std::string refusal(const std::vector<TransferPlan>& plans) {
  try {
    program_of(plans);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PlanPrograms, say_what_they_cannot_do) {
  const std::string rows = "f64[8,6] @ 2x1 : block, whole", columns = "f64[8,6] @ 1x2 : whole, block";
  std::vector<TransferPlan> plans = redistribution_plans(rows, columns, 2);
  std::swap(plans[0], plans[1]);
  EXPECT_NE(refusal(plans).find("plan 0 belongs to rank 1"), std::string::npos);
  EXPECT_NE(refusal({}).find("no plans are given"), std::string::npos);
  plans = redistribution_plans(rows, columns, 2);
  for (TransferPlan& plan : plans) plan = adjoint(plan);
  EXPECT_NE(refusal(plans).find("combine or negate elements cannot become programs"), std::string::npos);
  EXPECT_NE(refusal(halo_plans({"f64[8] @ 2 : block+overlap(1,1,zero)"}, 2)).find("zeros"), std::string::npos);
  EXPECT_NE(
      refusal(redistribution_plans("f64[4000,2000] @ 1x2 : whole, cyclic", "f64[4000,2000] @ 1x2 : whole, block", 2))
          .find("1048576"),
      std::string::npos);
}

}  // namespace
}  // namespace tranship::test
