#include <gtest/gtest.h>

#include <tranship/program/algorithms.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

namespace tranship {
namespace {

// Every algorithm, for every number of ranks, node, root and place: proved, and the same after a round trip.
TEST(Algorithms, are_right_for_any_number_of_ranks) {
  for (const Algorithm& algorithm : algorithms())
    for (const Rank ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12})
      for (const bool in_place : {false, true}) {
        if (in_place && !algorithm.can_be_in_place) continue;
        for (const Rank width : {1, 2, 3, 4, 6, 12}) {
          if (algorithm.has_nodes ? ranks % width != 0 : width != 1) continue;
          const bool is_rooted = algorithm.collective == "broadcast" || algorithm.collective == "reduce";
          for (const Rank root : {0, ranks - 1}) {
            if (root != 0 && !is_rooted) continue;
            const Program program = make_program(algorithm.name, {.ranks = ranks,
                                                                  .ranks_per_node = algorithm.has_nodes ? width : 0,
                                                                  .root = root,
                                                                  .in_place = in_place});
            const Verification found = verify(program);
            EXPECT_TRUE(found.is_right() && found.knows_result && !found.needs_meeting)
                << algorithm.name << " of " << ranks << " ranks, " << width << " a node, root " << root
                << (in_place ? ", in place" : "") << ": " << found.text();
            EXPECT_EQ(write_program(read_program(write_program(program))), write_program(program));
          }
        }
      }
}

TEST(Algorithms, are_right_when_replicated) {
  for (const Algorithm& algorithm : algorithms()) {
    const Verification found = verify(make_program(
        algorithm.name, {.ranks = 4, .ranks_per_node = algorithm.has_nodes ? 2 : 0, .root = 1, .instances = 3}));
    EXPECT_TRUE(found.is_right()) << algorithm.name << ": " << found.text();
  }
}

std::string refusal(std::string_view name, const AlgorithmOptions& options) {
  try {
    make_program(name, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    return error.what();
  }
  return "";
}

TEST(Algorithms, refuse_what_they_cannot_do) {
  EXPECT_NE(refusal("allgather/tree", {.ranks = 2}).find("allgather/ring"), std::string::npos);
  EXPECT_NE(refusal("gossip", {.ranks = 2}).find("reduce/tree"), std::string::npos);
  EXPECT_NE(refusal("allreduce/ring", {.ranks = 0}).find("0 ranks"), std::string::npos);
  EXPECT_NE(refusal("allreduce/hierarchical", {.ranks = 6, .ranks_per_node = 4}).find("nodes of 4"), std::string::npos);
  EXPECT_NE(refusal("allreduce/ring", {.ranks = 4, .ranks_per_node = 2}).find("nodes of 2 ranks"), std::string::npos);
  EXPECT_NE(refusal("broadcast/tree", {.ranks = 3, .root = 3}).find("root 3"), std::string::npos);
  EXPECT_NE(refusal("alltoall/all_pairs", {.ranks = 3, .in_place = true}).find("in place"), std::string::npos);
}

}  // namespace
}  // namespace tranship
