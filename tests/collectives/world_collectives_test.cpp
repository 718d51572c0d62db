// Collectives on any memory: every algorithm on every back-end against loops over all ranks, and what is chosen.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/collectives/world_collectives.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/run/program_verdict.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

class WorldCollectivesOn : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, WorldCollectivesOn,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt, On::sub, On::listed,
                                                              On::listed_hosts),
                                            ::testing::Values(1, 2, 3)),
                         &OnRanks::name);

using Element = std::int32_t;
Element brought(Rank rank, Index i) {
  return static_cast<Element>(splitmix64(std::uint64_t(rank) * 1'000'003 + std::uint64_t(i)) % 1000) - 500;
}
std::vector<Element> input_of(Rank rank, Index elements) {
  std::vector<Element> out(static_cast<std::size_t>(elements));
  for (Index i = 0; i < elements; ++i) out[std::size_t(i)] = brought(rank, i);
  return out;
}
Element sum_at(Rank ranks, Index i) {
  Element sum = 0;
  for (Rank rank = 0; rank < ranks; ++rank) sum += brought(rank, i);
  return sum;
}

/// Does `collective` once, in place where it can be, and compares.
void expect_right(WorldCollectives& together, World& world, std::string_view collective, Index part, Rank root,
                  bool in_place) {
  const Rank ranks = world.size(), rank = world.rank();
  const bool has_parts = collective == "reducescatter" || collective == "alltoall";
  const bool joins = collective == "allgather" || collective == "alltoall";
  const Index elements = has_parts ? part * ranks : part;
  std::vector<Element> source = input_of(rank, elements);
  std::vector<Element> target(static_cast<std::size_t>(joins ? part * ranks : part) + 1, 7);
  MutableElements to(target.data(), ElementType::i32, Index(target.size()) - 1);
  if (in_place) to.data = source.data();
  if (collective == "allreduce") together.all_reduce(to, source);
  if (collective == "reducescatter") together.reduce_scatter(to, source);
  if (collective == "allgather") together.all_gather(to, source);
  if (collective == "alltoall") together.all_to_all(to, source);
  if (collective == "broadcast") together.broadcast(to, rank == root ? Elements(source) : Elements(), root);
  if (collective == "reduce") together.reduce(rank == root ? to : MutableElements(), source, root);
  ASSERT_EQ(target.back(), 7);
  if (collective == "reduce" && rank != root) return;
  const auto* const got = static_cast<const Element*>(to.data);
  for (Index i = 0; i < to.count; ++i) {
    Element wanted = 0;
    if (collective == "allreduce" || collective == "reduce") wanted = sum_at(ranks, i);
    if (collective == "reducescatter") wanted = sum_at(ranks, rank * part + i);
    if (collective == "allgather") wanted = brought(static_cast<Rank>(i / part), i % part);
    if (collective == "alltoall") wanted = brought(static_cast<Rank>(i / part), rank * part + i % part);
    if (collective == "broadcast") wanted = brought(root, i);
    ASSERT_EQ(got[i], wanted) << collective << " of " << part << ", element " << i << " of rank " << rank;
  }
}

constexpr std::string_view names[] = {"allreduce", "reducescatter", "allgather", "alltoall", "broadcast", "reduce"};

/// A packet is a message where ranks are simulated: few of them are enough there.
Index largest(On on, Index elements) {
  const bool is_simulated = on == On::sim || on == On::messaged || on == On::hosts;
  return is_simulated ? std::min<Index>(elements, 40) : elements;
}

TEST_P(WorldCollectivesOn, every_algorithm_is_right) {
  const Index long_part = largest(std::get<0>(GetParam()), 2000);
  run([&](World& world) {
    WorldCollectives together(world);
    for (const Algorithm& algorithm : algorithms()) {
      together.use(algorithm.name);
      EXPECT_EQ(together.algorithm_for(algorithm.collective, 100), algorithm.name);
      for (const Index part : {Index(0), Index(1), Index(13), long_part})
        expect_right(together, world, algorithm.collective, part, world.size() - 1, false);
    }
    for (const std::string_view collective : names) {
      together.use(std::string(collective) + "/direct");
      for (const Index part : {Index(0), Index(1), Index(13), long_part})
        expect_right(together, world, collective, part, world.size() - 1, false);
    }
  });
}

TEST_P(WorldCollectivesOn, what_is_chosen_is_right) {
  const Index long_part = largest(std::get<0>(GetParam()), 3000),
              longest_part = largest(std::get<0>(GetParam()), 20000);
  run([&](World& world) {
    WorldCollectives together(world);
    for (int time = 0; time < 3; ++time)  // directly at first
      for (const std::string_view collective : names) {
        const bool can_be_in_place = collective == "allreduce" || collective == "alltoall";
        for (const Index part : {Index(1), Index(5), long_part, longest_part})
          expect_right(together, world, collective, part, time % world.size(), can_be_in_place && time == 2);
      }
  });
}

// Whose bits depend on the order of the sum.
TEST(WorldCollectives, all_ranks_have_the_same_bits) {
  launch(5, [](World& world) {
    WorldCollectives together(world);
    std::vector<std::string> names{"allreduce/direct"};
    for (const Algorithm& one : algorithms())
      if (one.collective == "allreduce" && !one.has_nodes) names.emplace_back(one.name);
    for (const std::string& name : names) {
      together.use(name);
      std::vector<float> source(300), sum(300);
      for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = float(brought(world.rank(), Index(i))) * 1.1f + 1e-4f * float(i % 7);
      together.all_reduce(sum, source);
      for (std::size_t i = 0; i < sum.size(); ++i)
        for (const float other : world.all_gather<float>(sum[i])) ASSERT_EQ(other, sum[i]) << name << ", element " << i;
    }
  });
}

TEST(WorldCollectives, measures_and_says_what_it_chose) {
  launch(2, [](World& world) {
    WorldCollectives together(world);
    EXPECT_NE(together.explain().find("allreduce from 513 bytes on: allreduce/copies"), std::string::npos)
        << together.explain();
    together.measure();
    const std::string explained = together.explain();
    EXPECT_NE(explained.find("measured: "), std::string::npos) << explained;
    for (const std::string_view collective : names) expect_right(together, world, collective, 50, 0, false);
    // All ranks have chosen alike.
    for (const std::string_view collective : names)
      for (const Index bytes : {1, 1000, 100000}) {
        const auto all =
            world.all_gather<std::uint64_t>(std::hash<std::string_view>()(together.algorithm_for(collective, bytes)));
        EXPECT_EQ(all[0], all[1]);
      }
    const std::string measured(together.algorithm_for("allreduce", 1001));
    for (const char* const other : {"allreduce/ring", "allreduce/direct"}) {
      together.use(other, 1000);
      EXPECT_EQ(together.algorithm_for("allreduce", 1000), other);
      EXPECT_EQ(together.algorithm_for("allreduce", 1001), measured);
    }
    together.use("allreduce/direct");
    EXPECT_EQ(together.algorithm_for("allreduce", 10), "allreduce/direct");
    expect_right(together, world, "allreduce", 50, 0, false);
  });
}

// Neither the first call of a size nor the later ones make a program there, whose size is that of all pairs of ranks.
TEST(WorldCollectives, many_ranks_build_no_programs) {
  constexpr int ranks = 40;
  const Index before = programs_verified();
  launch(ranks, [](World& world) {
    WorldCollectives together(world);
    for (const std::string_view collective : names) {
      for (const Index bytes : {1, 10000, 10000000})
        EXPECT_EQ(together.algorithm_for(collective, bytes), std::string(collective) + "/direct");
      for (int time = 0; time < 3; ++time) expect_right(together, world, collective, 5, 3, false);
    }
  });
  EXPECT_EQ(programs_verified(), before);
}

TEST(WorldCollectives, keeps_as_many_programs_as_it_says) {
  launch(2, [](World& world) {
    WorldCollectives together(world);
    together.use("allreduce/all_pairs");
    const auto before = world.heap_usage();
    for (Index part = 1; part < 200; ++part) expect_right(together, world, "allreduce", part, 0, false);
    for (Index part = 1; part < 200; ++part) expect_right(together, world, "allreduce", part, 0, false);
    EXPECT_LT(world.heap_usage().used_bytes - before.used_bytes, 64 * 16 * 1024);
  });
}

void expect_refused(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(WorldCollectives, refuses_what_does_not_fit) {
  launch(2, [](World& world) {
    WorldCollectives together(world);
    std::vector<float> three(3), four(4);
    std::vector<double> doubles(3);
    std::vector<std::complex<float>> numbers(3);
    expect_refused([&] { together.all_reduce(four, three); }, "the source has 3 elements, the target 4");
    expect_refused([&] { together.all_reduce(doubles, three); }, "the source has elements f32, the target f64");
    expect_refused([&] { together.all_reduce(numbers, numbers, Reduction::maximum); }, "no max");
    expect_refused([&] { together.all_to_all(three, three); }, "2 equal parts");
    expect_refused([&] { together.reduce_scatter(four, four); }, "they must be as 2 to 1");
    expect_refused([&] { together.broadcast(three, three, 2); }, "root 2 does not exist: there are 2 ranks");
    expect_refused([&] { together.use("allreduce/star"); }, "allreduce/ring");
    expect_refused([&] { together.use("reduce/star"); }, "reduce/tree");
    expect_refused([&] { together.use("allreduce/ring", -1); }, "-1 bytes");
    expect_refused([&] { (void)together.algorithm_for("gossip", 1); }, "gossip");
  });
}

TEST(WorldCollectives, the_environment_names_algorithms) {
  launch(1, [](World& world) {
    ASSERT_EQ(setenv("TRANSHIP_COLLECTIVES", "allreduce/ring allgather/packets<=64", 1), 0);
    EXPECT_EQ(WorldCollectives(world).algorithm_for("allreduce", 1 << 20), "allreduce/ring");
    EXPECT_EQ(WorldCollectives(world).algorithm_for("allgather", 64), "allgather/packets");
    ASSERT_EQ(setenv("TRANSHIP_COLLECTIVES", "allreduce/ring<=many", 1), 0);
    expect_refused([&] { WorldCollectives{world}; }, "many");
    unsetenv("TRANSHIP_COLLECTIVES");
  });
}

}  // namespace
}  // namespace tranship::test
