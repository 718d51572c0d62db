// What a machine takes for the steps of programs: that there is something of each kind, and that all ranks say the
// same.
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/sanitizers.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/run/machine_trial.hpp>

namespace tranship {
namespace {

#if defined(TRANSHIP_TSAN)
constexpr bool is_slow = true;  // a minute for each where a core has two ranks
#else
constexpr bool is_slow = false;
#endif

TEST(MachineTrial, all_ranks_measure_one_machine) {
  for (const int ranks : {2, 3}) {
    if (is_slow && ranks > 2) continue;
    std::vector<MachineModel> machines(static_cast<std::size_t>(ranks));
    launch(ranks, [&](World& world) {
      machines[static_cast<std::size_t>(world.rank())] =
          measure_machine(world, {.input_bytes_max = 16384, .launches = 1, .passes = 1}).model;
    });
    const MachineModel& machine = machines[0];
    EXPECT_EQ(machine.blocks, MachineModel::Blocks::in_turn);
    const LinkModel& link = machine.memory;
    for (const Rate* rate :
         {&machine.copy, &machine.reduce, &machine.pack, &machine.unpack, &machine.reduce_packets, &link.put, &link.get,
          &link.packets, &link.read_reduce, &link.short_put, &link.reduce_put, &link.take_back}) {
      ASSERT_EQ(rate->points().size(), 2u);
      EXPECT_GT(rate->points()[0].gb_per_s, 0);
      EXPECT_GT(rate->points()[1].gb_per_s, 0);
    }
    for (const Rate* rate : {&machine.copy, &machine.reduce, &machine.pack, &machine.unpack, &machine.reduce_packets})
      EXPECT_GE(rate->points()[0].gb_per_s, rate->points()[1].gb_per_s) << "more of its own memory is never faster";
    EXPECT_TRUE(read_machine(write_machine(machine)) == machine);
    for (const MachineModel& other : machines) EXPECT_TRUE(other == machine);
  }
}

TEST(MachineTrial, compares_its_predictions_with_all_algorithms) {
  if (is_slow) GTEST_SKIP() << "thousands of launches";
  constexpr Index bytes = 64 << 10;
  // Three ranks divide no such input.
  for (const int ranks : {2, 3}) {
    std::vector<std::vector<PredictionCheck>> checks(static_cast<std::size_t>(ranks));
    launch(ranks, [&](World& world) {
      const MeasuredMachine measured =
          measure_machine(world, {.input_bytes_max = bytes, .launches = 1, .passes = 1}, MachineChecks::make);
      EXPECT_GT(measured.timed, std::ssize(measured.checks));
      EXPECT_LE(measured.unusual, measured.timed);
      checks[static_cast<std::size_t>(world.rank())] = measured.checks;
    });
    ASSERT_EQ(checks[0].size(), algorithms().size()) << "one size each";
    for (std::size_t i = 0; i < checks[0].size(); ++i) {
      const PredictionCheck &one = checks[0][i], &other = checks[1][i];
      EXPECT_EQ(one.algorithm, algorithms()[i].name);
      EXPECT_EQ(one.input_bytes, bytes);
      EXPECT_GT(one.predicted_ns, 0) << one.algorithm;
      EXPECT_GT(one.measured_ns, 0) << one.algorithm;
      EXPECT_EQ(one.predicted_ns, other.predicted_ns) << one.algorithm;
      EXPECT_EQ(one.measured_ns, other.measured_ns) << one.algorithm;
      EXPECT_EQ(one.is_comparable, other.is_comparable) << one.algorithm;
    }
  }
}

TEST(MachineTrial, needs_two_ranks) {
  launch(1, [](World& world) { EXPECT_THROW(measure_machine(world), Error); });
}

}  // namespace
}  // namespace tranship
