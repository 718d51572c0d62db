// Back-ends under test: one body, run as ranks of each.
#pragma once

#include <cstdlib>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sub_world.hpp>

namespace tranship::test {

/// `hosts` is simulated, too: ranks on two machines. Those of `sub` and what follows are ranks of a sub-world: every
/// other one of about twice as many, while the ranks between them do something else.
enum class On { threads, processes, sim, messaged, hosts, sub, sub_messaged, sub_hosts };

inline const char* name_of(On on) {
  constexpr const char* names[] = {"threads", "processes", "sim",          "messaged",
                                   "hosts",   "sub",       "sub_messaged", "sub_hosts"};
  return names[int(on)];
}
inline void PrintTo(On on, std::ostream* out) {
  *out << name_of(on);
}

inline bool is_simulated(On on) {
  return on != On::threads && on != On::processes && on != On::sub;
}
inline bool is_sub(On on) {
  return on >= On::sub;
}
/// What the whole world is that a sub-world is part of.
inline On around(On on) {
  return on == On::sub ? On::threads : on == On::sub_messaged ? On::messaged : on == On::sub_hosts ? On::hosts : on;
}

/// Whether two of so many ranks are on one machine; whether they share memory.
inline bool share_machine(On on, int ranks, Rank one, Rank other) {
  if (is_sub(on)) return share_machine(around(on), 2 * ranks + 1, 2 * one + 1, 2 * other + 1);
  const int on_first = on == On::hosts ? (ranks + 1) / 2 : ranks;
  return (one < on_first) == (other < on_first);
}
inline bool share_memory(On on, int ranks, Rank one, Rank other) {
  if (on == On::sim || around(on) == On::messaged) return one == other;
  return share_machine(on, ranks, one, other);
}

/// Of a test that runs simulated, each with its own order of everything. Several machines take system calls.
inline std::uint64_t seeds_per_test(On on) {
  if (!is_simulated(on)) return 1;
  const int share = around(on) == On::hosts ? 3 : 1;
  return (std::getenv("TRANSHIP_TEST_LONG") ? 18 : 6) / share;
}

/// What the others do while some ranks are a sub-world: as much as they like, and the same calls.
inline void be_others(Team& team) {
  SubWorld others(team, {.heap_bytes = std::size_t(1) << 20});
  World& world = others.world();
  const Rank next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  std::vector<SymmetricArray<int>> kept;
  for (int i = 0; i < 3; ++i) {
    kept.push_back(world.allocate<int>(100 * (i + 1)));
    world.context().p(kept.back(), world.rank(), next);
    world.barrier();
    if (kept.back()[0] != before) throw Error(ErrorCode::internal, "test: the others have got a wrong value");
  }
}
/// Every other rank of a world, as a sub-world.
template <class F>
void run_as_sub_world(World& whole, int ranks, std::size_t heap_bytes, F&& f) {
  std::optional<Team> members = whole.team().split_strided({.first = 1, .stride = 2, .count = ranks});
  std::optional<Team> others = whole.team().split_strided({.first = 0, .stride = 2, .count = ranks + 1});
  if (others) return be_others(*others);
  const SubWorld sub(*members, {.heap_bytes = heap_bytes});
  f(sub.world());
}

template <class F>
void run_as_whole_world(On on, const LaunchOptions& options, std::uint64_t seed, F&& f) {
  if (on == On::threads) return launch(options, f);
  if (on == On::processes) return launch_processes(options, f);
  simulate({.ranks = options.ranks,
            .seed = seed,
            .peers = on == On::messaged ? PeerKind::messaged : PeerKind::reachable,
            .ranks_per_host = on == On::hosts ? (options.ranks + 1) / 2 : 0,
            .heap_bytes = *options.heap_bytes},
           f);
}

/// Runs `f(World&)` as ranks; throws what launch throws. In a rank of its own process what f changes is its own. The
/// seed is for those that are simulated.
template <class F>
void run_once(On on, LaunchOptions options, std::uint64_t seed, F&& f) {
  const std::size_t heap_bytes = options.heap_bytes.value_or(std::size_t(64) << 20);
  options.heap_bytes = heap_bytes;
  if (!is_sub(on)) return run_as_whole_world(on, options, seed, f);
  const int ranks = std::exchange(options.ranks, 2 * options.ranks + 1);
  options.heap_bytes = heap_bytes + (std::size_t(4) << 20);
  run_as_whole_world(around(on), options, seed, [&](World& whole) { run_as_sub_world(whole, ranks, heap_bytes, f); });
}
/// The same under every seed that a test is run with.
template <class F>
void run_on(On on, const LaunchOptions& options, F&& f) {
  for (std::uint64_t seed = 1; seed <= seeds_per_test(on); ++seed) run_once(on, options, seed, f);
}
template <class F>
void run_on(On on, int ranks, F&& f) {
  run_on(on, LaunchOptions{.ranks = ranks}, f);
}

// What ranks find wrong is thrown, so that the others do not wait for them, and so that it leaves its process.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw make_error(ErrorCode::internal, "test: {}", fmt::format(format, std::forward<Args>(args)...));
}

/// The Error that `f` throws.
template <class F>
Error error_of_rank(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  throw Error(ErrorCode::internal, "test: nothing was thrown");
}
inline void require_says(const Error& error, ErrorCode code, std::initializer_list<const char*> parts) {
  require(error.code() == code, "code {} is not {}: {}", int(error.code()), int(code), error.message());
  for (const char* part : parts)
    require(error.message().find(part) != std::string::npos, "'{}' is missing in: {}", part, error.message());
}

/// Suites over back-ends and sizes: TEST_P(Suite, ...) with ranks() and run(f).
class OnRanks : public ::testing::TestWithParam<std::tuple<On, int>> {
 public:
  On on() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  template <class F>
  void run(F&& f) const {
    run_on(on(), ranks(), f);
  }
  static std::string name(const ::testing::TestParamInfo<std::tuple<On, int>>& info) {
    return fmt::format("{}_{}", test::name_of(std::get<0>(info.param)), std::get<1>(info.param));
  }
};

}  // namespace tranship::test
