#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>

#include <tranship/base/error.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/machine.hpp>

namespace tranship {
namespace {

int allowed_cpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : -1;
}

class Environment {
 public:
  explicit Environment(const char* value) { setenv("TRANSHIP_PIN", value, 1); }
  ~Environment() { unsetenv("TRANSHIP_PIN"); }
};

TEST(Machine, has_what_every_machine_has) {
  EXPECT_GE(this_machine().cores, 1);
  EXPECT_GE(this_machine().processing_units, this_machine().cores);
  EXPECT_GE(this_machine().memory_nodes, 1);
}

TEST(Machine, ranks_pinned_to_cores_have_a_core_each) {
  const int before = allowed_cpus();
  const int per_core = this_machine().processing_units / this_machine().cores;
  launch({.ranks = 3, .pinning = Pinning::core}, [&](World&) { EXPECT_LE(allowed_cpus(), std::max(1, per_core)); });
  launch({.ranks = 3, .pinning = Pinning::none}, [&](World&) { EXPECT_EQ(allowed_cpus(), before); });
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Machine, the_environment_has_its_say_where_the_program_has_none) {
  for (const char* name : {"none", "node", "core"}) {
    const Environment environment(name);
    EXPECT_STREQ(name_of(resolved(Pinning::automatic)), name);
    EXPECT_EQ(resolved(Pinning::core), Pinning::core);
  }
}

TEST(Machine, a_pinning_that_does_not_exist_is_refused_before_any_rank_runs) {
  const Environment environment("everywhere");
  try {
    launch(2, [](World&) { ADD_FAILURE() << "a rank ran"; });
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(std::string(error.what()).find("'everywhere'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tranship
