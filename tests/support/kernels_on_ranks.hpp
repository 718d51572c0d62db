// Kernels under test: one body, run by lanes of the ranks of each back-end.
#pragma once

#include <algorithm>
#include <tuple>

#include <tranship/fabric/lanes/cpu_lanes.hpp>

#include "support/ranks.hpp"

namespace tranship::test {

/// How a kernel reaches its peers: by loads and stores, or by a context alone.
enum class Route { memory, context };

class BlockOnRanks : public ::testing::TestWithParam<std::tuple<On, int, Route>> {
 public:
  /// Runs `f(world, heap)` as ranks.
  void run(FunctionRef<void(World&, const HeapView&)> f) const {
    const auto [on, ranks, route] = GetParam();
    const auto body = [&, route = route](World& world) {
      HeapView heap = heap_view(world);
      if (route == Route::context) heap.heaps.count = 0, heap.heaps.is_complete = false;
      f(world, heap);
    };
    // Every lane is a fiber of a fiber there, so a few seeds have to do.
    for (std::uint64_t seed = 1; seed <= (std::max<std::uint64_t>(1, seeds_per_test(on) / 2)); ++seed)
      run_once(on, {.ranks = ranks}, seed, body);
  }
  static std::string name(const ::testing::TestParamInfo<ParamType>& info) {
    return fmt::format("{}_{}_{}", name_of(std::get<0>(info.param)), std::get<1>(info.param),
                       std::get<2>(info.param) == Route::memory ? "memory" : "context");
  }
};
/// The suite on all back-ends, through memory and through a context.
#define TRANSHIP_KERNELS_ON_RANKS(Suite)                                                                         \
  INSTANTIATE_TEST_SUITE_P(                                                                                      \
      All, Suite,                                                                                                \
      ::testing::Combine(::testing::Values(test::On::threads, test::On::processes), ::testing::Values(1, 2, 4),  \
                         ::testing::Values(test::Route::memory, test::Route::context)),                          \
      Suite::name);                                                                                              \
  INSTANTIATE_TEST_SUITE_P(Simulated, Suite,                                                                     \
                           ::testing::Combine(::testing::Values(test::On::sim, test::On::messaged),              \
                                              ::testing::Values(1, 3), ::testing::Values(test::Route::context)), \
                           Suite::name);                                                                         \
  INSTANTIATE_TEST_SUITE_P(Hosts, Suite,                                                                         \
                           ::testing::Combine(::testing::Values(test::On::hosts), ::testing::Values(3),          \
                                              ::testing::Values(test::Route::memory, test::Route::context)),     \
                           Suite::name)

/// Calls `f(group, number, count)` for the lane's group of each scope, of which the block has `count`.
template <class Lane, class F>
void at_each_scope(const Lane& lane, F&& f) {
  f(lane.thread(), lane.index(), lane.lanes());
  lane.block().sync();
  f(lane.warp(), lane.index() / 32, (lane.lanes() + 31) / 32);
  lane.block().sync();
  f(lane.block(), 0, 1);
  lane.block().sync();
}

inline int next(const World& world) {
  return (world.rank() + 1) % world.size();
}
inline int previous(const World& world) {
  return (world.rank() + world.size() - 1) % world.size();
}

}  // namespace tranship::test
