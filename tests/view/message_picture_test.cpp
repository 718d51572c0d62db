// Pictures of messages: every rectangle against the plans that it is of.
#include <map>

#include <gtest/gtest.h>
#include <view/svg_elements.hpp>

#include <tranship/layout/text.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/view/message_picture.hpp>

namespace tranship {
namespace {

using test::Element;
using test::elements;
using test::number;

std::vector<PlanSummary> plans_between(std::string_view from, std::string_view to, Rank ranks) {
  std::vector<PlanSummary> out;
  for (Rank rank = 0; rank < ranks; ++rank)
    out.push_back(summarise(plan_redistribution(parse_layout(from), parse_layout(to), rank)));
  return out;
}

std::vector<PlanSummary> halo_plans(std::string_view layout, Rank ranks) {
  const ArraySpec field = parse_layout(layout);
  std::vector<PlanSummary> out;
  for (Rank rank = 0; rank < ranks; ++rank) out.push_back(summarise(plan_halo({&field, 1}, rank)));
  return out;
}

// A square for each pair of ranks, at the crossing of their row and column.
TEST(MessagesSvg, TheMatrixHasASquareForEveryMessage) {
  const auto plans = plans_between("f64[24] @ 4 : block", "f64[24] @ 6 : block", 6);
  const std::string svg = messages_svg(plans);
  std::map<std::pair<int, int>, std::string> squares;
  std::vector<Element> all;
  for (const char* cls : {"message", "kept", "none"})
    for (Element& one : elements(svg, "rect", cls)) all.push_back(one);
  ASSERT_EQ(all.size(), 36u);
  double left = 1e9, top = 1e9;
  for (Element& one : all) left = std::min(left, number(one, "x")), top = std::min(top, number(one, "y"));
  for (Element& one : all) {
    const double side = number(one, "width");
    squares[{int((number(one, "y") - top) / side + 0.5), int((number(one, "x") - left) / side + 0.5)}] = one["class"];
  }
  for (const PlanSummary& plan : plans)
    for (Rank peer = 0; peer < 6; ++peer) {
      bool sends = false;
      for (const PeerAmount& amount : plan.peers) sends |= amount.peer == peer && amount.sent.bytes > 0;
      const bool keeps = peer == plan.rank && plan.local.bytes > 0;
      EXPECT_EQ((squares[{plan.rank, peer}]), sends ? "message" : keeps ? "kept" : "none") << plan.rank << " " << peer;
    }
  EXPECT_NE(svg.find("<title>redistribution, 6 ranks</title>"), std::string::npos);
  EXPECT_NE(svg.find(">144 B in 6 messages, keeps 48 B<"), std::string::npos) << svg;
}

TEST(MessagesSvg, APlanOfSomeRanksShowsWhatTheyReceiveFromOthers) {
  std::vector<PlanSummary> plans = plans_between("f64[24] @ 4 : block", "f64[24] @ 1 : whole", 4);
  const std::string all = messages_svg(plans);
  plans.resize(1);  // rank 0, which receives everything
  EXPECT_EQ(elements(messages_svg(plans), "rect", "message").size(), elements(all, "rect", "message").size());
}

TEST(MessagesSvg, OneRankHasABarForEachMessage) {
  const auto plans = halo_plans("f64[30,30] @ 3x3 : block+overlap(2,2,toroidal), block+overlap(1,1,toroidal)", 9);
  const std::string svg = messages_svg(plans[4]);
  EXPECT_EQ(elements(svg, "rect", "message").size(), 16u);  // 8 neighbours, both ways
  EXPECT_NE(svg.find("<title>halo, rank 4</title>"), std::string::npos);
  EXPECT_NE(svg.find(">receives 544 B in 8 messages, sends 544 B in 8 messages<"), std::string::npos) << svg;
  double longest = 0;
  for (Element& bar : elements(svg, "rect", "message")) longest = std::max(longest, number(bar, "width"));
  EXPECT_EQ(longest, 220);
}

TEST(MessagesSvg, NothingToSendIsSaid) {
  const auto plans = halo_plans("f64[30] @ 3 : block", 3);
  EXPECT_NE(messages_svg(plans[1]).find(">no messages<"), std::string::npos);
  EXPECT_NE(messages_svg(plans).find(">0 B in 0 messages<"), std::string::npos);
  EXPECT_TRUE(elements(messages_svg(plans), "rect", "message").empty());
}

TEST(MessagesSvg, ManyRanksStaySmallAndLoseNothing) {
  const auto plans = plans_between("f64[4000] @ 200 : block", "f64[4000] @ 200 : cyclic", 200);
  const std::string svg = messages_svg(plans);
  EXPECT_LE(elements(svg, "rect", "message").size(), 32u * 32u);
  EXPECT_LT(svg.size(), 400'000u);
  EXPECT_NE(svg.find("; a square is 7 by 7 ranks<"), std::string::npos) << svg.substr(0, 2000);
  Index bytes = 0;
  for (const PlanSummary& plan : plans) bytes += plan.sent.bytes;
  EXPECT_EQ(bytes, 4000 * 8 - 160);
  EXPECT_NE(svg.find(">31.1 KiB in 3,980 messages, keeps 160 B; "), std::string::npos);
  const std::string one = messages_svg(plans[7]);
  EXPECT_EQ(elements(one, "rect", "message").size(), 25u);
  EXPECT_NE(one.find(">14 more<"), std::string::npos) << one;
}

TEST(MessagesSvg, RefusesPlansThatDoNotBelongTogether) {
  auto plans = halo_plans("f64[30] @ 3 : block+overlap(1,1)", 3);
  const auto refused = [](std::span<const PlanSummary> some) -> std::string {
    try {
      messages_svg(some);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      return std::string(error.message());
    }
  };
  EXPECT_EQ(refused({}), "there is no plan to draw: 1 or more are needed");
  plans[2].rank = 0;
  EXPECT_EQ(refused(plans), "plans of one exchange are needed: two of 3 are of rank 0");
  plans[2].rank = 2;
  plans[2].kind = PlanKind::redistribution;
  EXPECT_EQ(refused(plans), "plans of one exchange are needed: that of rank 2 is of a redistribution, not of a halo");
}

}  // namespace
}  // namespace tranship
