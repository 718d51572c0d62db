// Plan files: what MSCCL++ wrote is read, and written as it was; what makes no sense is refused.
#include <gtest/gtest.h>

#include <tranship/base/json.hpp>
#include <tranship/base/random.hpp>
#include <tranship/program/plan_file.hpp>

#include "support/error_of.hpp"
#include "support/mscclpp_plans.hpp"

namespace tranship::test {
namespace {

TEST(PlanFile, present_plans_are_written_as_they_were_read) {
  const auto cases = mscclpp_plans();
  ASSERT_GE(cases.size(), 16u);
  for (const PlanCase& one : cases) {
    const std::string text = text_of_file(one.path);
    const std::string written = write_program(read_program(text));
    EXPECT_EQ(write_program(read_program(written)), written) << one.name;
    if (one.name.starts_with("intermediate")) continue;
    const Json before = parse_json(text), after = parse_json(written);
    EXPECT_TRUE(before == after) << one.name << "\n"
                                 << before.dump().substr(0, 2000) << "\n"
                                 << written.substr(0, 2000);
  }
}

TEST(PlanFile, old_plans_are_written_in_the_present_format) {
  const auto cases = old_mscclpp_plans();
  ASSERT_GE(cases.size(), 4u);
  for (const PlanCase& one : cases) {
    const Program program = read_program(text_of_file(one.path));
    EXPECT_GT(count_steps(program), 0) << one.name;
    const std::string written = write_program(program);
    EXPECT_EQ(write_program(read_program(written)), written) << one.name;
  }
}

}  // namespace
}  // namespace tranship::test
