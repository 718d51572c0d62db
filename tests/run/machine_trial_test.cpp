// What a machine takes for the steps of programs: that there is something of each kind, and that all ranks say the
// same.
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/launch.hpp>
#include <tranship/run/machine_trial.hpp>

namespace tranship {
namespace {

TEST(MachineTrial, all_ranks_measure_one_machine) {
  for (const int ranks : {2, 3}) {
    std::vector<MachineModel> machines(static_cast<std::size_t>(ranks));
    launch(ranks, [&](World& world) {
      machines[static_cast<std::size_t>(world.rank())] =
          measure_machine(world, {.input_bytes_max = 16384, .launches = 1, .passes = 1});
    });
    const MachineModel& machine = machines[0];
    EXPECT_EQ(machine.blocks, MachineModel::Blocks::in_turn);
    const LinkModel& link = machine.memory;
    for (const Rate* rate : {&machine.copy, &machine.reduce, &machine.pack, &machine.unpack, &machine.reduce_packets,
                             &link.put, &link.get, &link.packets, &link.read_reduce}) {
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

TEST(MachineTrial, needs_two_ranks) {
  launch(1, [](World& world) { EXPECT_THROW(measure_machine(world), Error); });
}

}  // namespace
}  // namespace tranship
