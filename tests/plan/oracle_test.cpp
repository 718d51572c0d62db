// The oracle itself: plans with one thing wrong, each of which must be noticed.
#include "support/oracle.hpp"

#include <gtest/gtest.h>

namespace tranship {
namespace {

using namespace test;

class Oracle : public ::testing::Test {
 protected:
  /// The runs of the transfer from rank 0 to rank 1, at one end.
  std::vector<tranship::Run>& received() { return plans_[1].receives.at(0).axes[0].at(0).runs; }
  std::vector<tranship::Run>& sent() { return plans_[0].sends.at(0).axes[0].at(1).runs; }
  std::string fault() const { return redistribution_fault(source_, target_, plans_); }

  void expect_fault(const std::string& text) {
    EXPECT_NE(fault().find(text), std::string::npos) << "expected a fault that says '" << text << "': " << fault();
  }

  ArraySpec source_{ElementType::i64, {{12}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)}}};
  ArraySpec target_{ElementType::i64, {{12}, grid(2), {cyclic(2).with_overlap(0, 1, EdgePolicy::zero)}}};
  Plans plans_ = redistribution_plans(source_, target_);
};

TEST_F(Oracle, FindsNothingInAGoodPlan) {
  ASSERT_FALSE(received().empty());
  ASSERT_EQ(received(), sent());
  EXPECT_EQ(fault(), "");
}

TEST_F(Oracle, NoticesEndsThatDiffer) {
  --received()[0].length;
  expect_fault("which expects");
}

TEST_F(Oracle, NoticesAnotherOrderAtOneEnd) {
  const tranship::Run run{.source = received()[0].source, .target = received()[0].target, .length = 1};
  tranship::Run after = run;
  ++after.source;
  ++after.target;
  received() = {run, after};
  sent() = {after, run};
  expect_fault("differ at number 0");
}

TEST_F(Oracle, NoticesACellThatNobodyWrites) {
  received().pop_back();
  sent().pop_back();
  expect_fault("written 0 times, expected 1");
}

TEST_F(Oracle, NoticesACellWrittenTwice) {
  received().push_back(received()[0]);
  sent().push_back(sent()[0]);
  expect_fault("written 2 times, expected 1");
}

TEST_F(Oracle, NoticesAWrongValueAndOneThatNobodyOwns) {
  const Index source = received()[0].source;
  received()[0].source = sent()[0].source = source + 1;
  expect_fault("expected");
  received()[0].source = sent()[0].source = 0;
  expect_fault(std::to_string(unreadable));
}

TEST_F(Oracle, NoticesIndicesOutOfRange) {
  received()[0].source = sent()[0].source = 1000;
  expect_fault("dimension 0 index 1000 of 8");
  received()[0].source = sent()[0].source = -1;
  expect_fault("dimension 0 index -1 of 8");
}

TEST_F(Oracle, NoticesAFillThatIsMissingOrOfTheWrongKind) {
  auto& fills = plans_[1].fills_after;
  ASSERT_EQ(fills.size(), 1u);
  fills[0].kind = LocalFillKind::replicate;
  expect_fault("which a fill overwrites");
  fills.clear();
  expect_fault("written 0 times, expected 1");
}

TEST_F(Oracle, NoticesAReadOfWhatIsOverwritten) {
  const ArraySpec field{ElementType::i64, {{8}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)}}};
  Plans halos{plan_halo({&field, 1}, 0), plan_halo({&field, 1}, 1)};
  ASSERT_EQ(PlanInterpreter(halos).fault(), "");
  // Rank 1 reads a ghost of rank 0.
  for (TransferGroup& group : halos[1].receives) group.axes[0][0].runs[0].source = 0;
  for (TransferGroup& group : halos[0].sends) group.axes[0][0].runs[0].source = 0;
  EXPECT_NE(PlanInterpreter(halos).fault().find("is read and written"), std::string::npos)
      << PlanInterpreter(halos).fault();
}

}  // namespace
}  // namespace tranship
