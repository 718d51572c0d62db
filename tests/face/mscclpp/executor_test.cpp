// Plans executed on memory of the caller, one executor for all of them.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/launch.hpp>
#include <tranship/face/mscclpp/executor.hpp>
#include <tranship/program/algorithms.hpp>

#include "support/error_of.hpp"
#include "support/mscclpp_plans.hpp"

namespace tranship::test {
namespace {

template <class T>
Index bytes_of(const std::vector<T>& data) {
  return static_cast<Index>(data.size() * sizeof(T));
}

TEST(Executor, takes_several_plans_sizes_types_and_reductions) {
  for (const Rank ranks : {1, 2, 4})
    launch(ranks, [&](World& world) {
      Executor executor(world);
      const ExecutionPlan sums(make_program("allreduce/all_pairs", {.ranks = ranks}));
      const ExecutionPlan gathers(make_program("allgather/ring", {.ranks = ranks}));
      for (int round = 0; round < 3; ++round)
        for (const std::size_t elements : {std::size_t(1), std::size_t(17), std::size_t(4096)}) {
          std::vector<std::int32_t> numbers(elements, world.rank() + 1), out(elements);
          executor.execute(sums, numbers.data(), bytes_of(numbers), out.data(), bytes_of(out), ElementType::i32);
          ASSERT_EQ(out, std::vector(elements, ranks * (ranks + 1) / 2));
          executor.execute(sums, numbers.data(), bytes_of(numbers), out.data(), bytes_of(out), ElementType::i32,
                           Reduction::maximum);
          ASSERT_EQ(out, std::vector(elements, ranks));
          std::vector<double> wide(elements, 0.5), sum(elements);
          executor.execute(sums, wide.data(), bytes_of(wide), sum.data(), bytes_of(sum), ElementType::f64);
          ASSERT_EQ(sum, std::vector(elements, 0.5 * ranks));
          std::vector<std::int32_t> all(elements * std::size_t(ranks));
          executor.execute(gathers, numbers.data(), bytes_of(numbers), all.data(), bytes_of(all), ElementType::i32);
          for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], int(i / elements) + 1);
        }
    });
}

TEST(Executor, makes_anew_what_a_reset_has_let_go) {
  launch(2, [](World& world) {
    Executor executor(world);
    const ExecutionPlan plan(make_program("allreduce/packets", {.ranks = 2}));
    for (int round = 0; round < 3; ++round) {
      std::vector<float> data(100, 1.5f);
      executor.execute(plan, data.data(), bytes_of(data), data.data(), bytes_of(data), ElementType::f32);
      ASSERT_EQ(data, std::vector<float>(100, 3.0f));
      executor.reset();
    }
  });
}

TEST(Executor, reads_plan_files) {
  const std::string path = mscclpp_plan("sn_allreduce_naivy_2r");
  launch(2, [&](World& world) {
    const ExecutionPlan plan = ExecutionPlan::read(path);
    EXPECT_EQ(plan.collective(), "allreduce");
    Executor executor(world);
    std::vector<float> data(1000, 1.5f);  // in place
    executor.execute(plan, data.data(), bytes_of(data), data.data(), bytes_of(data), ElementType::f32);
    EXPECT_EQ(data, std::vector<float>(1000, 3.0f));
  });
  EXPECT_NE(error_of([] { ExecutionPlan::read("/nowhere/plan.json"); }).find("/nowhere/plan.json"), std::string::npos);
}

TEST(Executor, says_what_does_not_fit) {
  launch(2, [](World& world) {
    Executor executor(world);
    Program program = make_program("allreduce/all_pairs", {.ranks = 2});
    program.message_bytes_min = 64;
    program.message_bytes_max = 4096;
    const ExecutionPlan plan(program);
    std::vector<std::byte> input(8192), output(8192);
    const auto refused = [&](Index input_bytes, Index output_bytes) {
      return error_of(
          [&] { executor.execute(plan, input.data(), input_bytes, output.data(), output_bytes, ElementType::f32); });
    };
    EXPECT_NE(refused(60, 60).find("is for messages of 64 to 4096 bytes, not 60"), std::string::npos);
    EXPECT_NE(refused(4100, 4100).find("not 4100"), std::string::npos);
    EXPECT_NE(refused(66, 66).find("66 bytes are no whole elements of f32"), std::string::npos);
    EXPECT_NE(refused(128, 64).find("gives 128 bytes; the output has 64"), std::string::npos);
    EXPECT_EQ(refused(128, 128), "");
    const ExecutionPlan large(make_program("allreduce/all_pairs", {.ranks = 3}));
    EXPECT_NE(error_of([&] {
                executor.execute(large, input.data(), 96, output.data(), 96, ElementType::f32);
              }).find("3 ranks in a world of 2"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace tranship::test
