// What the verifier says of plans that are known to be right, and of those that hang.
#include <gtest/gtest.h>

#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

#include "support/mscclpp_plans.hpp"

namespace tranship::test {
namespace {

// Two plans go wrong when one block is late: the shares of one step are not those of another one on other chunks, and
// nothing orders their blocks; and two ranks overwrite each other's inputs while they are sent.
bool races(const std::string& name) {
  return name == "ex_reduce_tbg.json" || name == "ut_put_fuse_test.json";
}

TEST(Verify, plans_of_mscclpp) {
  for (const PlanCase& one : mscclpp_plans()) {
    const Verification said = verify(read_program(text_of_file(one.path)));
    if (one.result.starts_with("DEADLOCK")) {
      ASSERT_FALSE(said.findings.empty()) << one.name;
      EXPECT_EQ(said.findings.back().kind, Finding::Kind::deadlock) << one.name << "\n" << said.text();
    } else if (races(one.name)) {
      ASSERT_FALSE(said.findings.empty()) << one.name;
      EXPECT_EQ(said.findings.front().kind, Finding::Kind::race) << one.name << "\n" << said.text();
    } else {
      EXPECT_TRUE(said.is_right()) << one.name << "\n" << said.text();
    }
    EXPECT_EQ(said.knows_result, one.result.starts_with("ok")) << one.name;
    EXPECT_EQ(said.needs_meeting,
              one.name == "ut_switch_broadcast_test.json" || one.name == "ut_tbg_reduce_send_test.json")
        << one.name << "\n"
        << said.text();
  }
}

TEST(Verify, plans_of_older_releases) {
  for (const PlanCase& one : old_mscclpp_plans()) {
    const Verification said = verify(read_program(text_of_file(one.path)));
    EXPECT_TRUE(said.is_right()) << one.name << "\n" << said.text();
    EXPECT_TRUE(said.knows_result) << one.name;
  }
}

}  // namespace
}  // namespace tranship::test
