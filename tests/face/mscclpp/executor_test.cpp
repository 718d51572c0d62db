// Plans executed on memory of the caller, one executor for all of them.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/launch.hpp>
#include <tranship/face/mscclpp/executor.hpp>
#include <tranship/program/algorithms.hpp>

#include "support/custom_programs.hpp"
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

TEST(Executor, makes_anew_what_a_reset_has_released) {
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
    EXPECT_NE(refused(66, 66).find("66 bytes is not a whole number of elements of f32"), std::string::npos);
    EXPECT_NE(refused(128, 64).find("gives 128 bytes; the output has 64"), std::string::npos);
    EXPECT_EQ(refused(128, 128), "");
    const ExecutionPlan large(make_program("allreduce/all_pairs", {.ranks = 3}));
    EXPECT_NE(error_of([&] {
                executor.execute(large, input.data(), 96, output.data(), 96, ElementType::f32);
              }).find("the program is for 3 ranks, the world has 2"),
              std::string::npos);
  });
}

TEST(Executor, takes_of_each_rank_what_its_own_chunks_hold) {
  const ExecutionPlan gather(gather_to(0, 3)), scatter(scatter_from(1, 3));
  launch(3, [&](World& world) {
    Executor executor(world);
    const auto run = [&](const ExecutionPlan& plan, const std::vector<float>& input, std::vector<float>& output) {
      executor.execute(plan, input.data(), bytes_of(input), output.data(), bytes_of(output), ElementType::f32);
    };
    const auto each = [](std::size_t of) { return std::vector<float>(of); };
    for (int round = 0; round < 2; ++round)
      for (const std::size_t count : {std::size_t(5), std::size_t(64)}) {
        std::vector<float> mine(count), all = each(world.rank() == 0 ? 3 * count : 0);
        std::iota(mine.begin(), mine.end(), 100.0f * float(world.rank()));
        run(gather, mine, all);
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], float(100 * (i / count) + i % count));
        std::vector<float> dealt = each(world.rank() == 1 ? 3 * count : 0), part = each(count);
        std::iota(dealt.begin(), dealt.end(), 0.0f);
        run(scatter, dealt, part);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(part[i], float(std::size_t(world.rank()) * count + i));
      }
  });
}

TEST(Executor, says_what_does_not_fit_the_chunks_of_a_rank) {
  const ExecutionPlan gather(gather_to(0, 2));
  launch(2, [&](World& world) {
    Executor executor(world);
    std::vector<float> input(8), output(8);
    const auto refused = [&](Index input_bytes, Index output_bytes) {
      return error_of(
          [&] { executor.execute(gather, input.data(), input_bytes, output.data(), output_bytes, ElementType::f32); });
    };
    const bool is_root = world.rank() == 0;
    EXPECT_EQ(refused(16, is_root ? 32 : 0), "");
    EXPECT_NE(refused(16, 16).find(is_root ? "gives 32 bytes; the output has 16" : "gives 0 bytes; the output has 16"),
              std::string::npos);
  });
  Program idle = gather_to(0, 2);
  RankProgram& third = idle.ranks.emplace_back();
  third.chunks[2] = 1;
  const ExecutionPlan plan(idle);
  launch(3, [&](World& world) {
    Executor executor(world);
    std::vector<float> data(8);
    EXPECT_NE(error_of([&] {
                executor.execute(plan, data.data(), 16, data.data(), 32, ElementType::f32);
              }).find("rank 2 has neither input nor output"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace tranship::test
