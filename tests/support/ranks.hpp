// Back-ends under test: one body, run as ranks of each.
#pragma once

#include <cstdlib>
#include <ostream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>

namespace tranship::test {

/// `hosts` is simulated, too: ranks on two machines.
enum class On { threads, processes, sim, messaged, hosts };

inline const char* name_of(On on) {
  constexpr const char* names[] = {"threads", "processes", "sim", "messaged", "hosts"};
  return names[int(on)];
}
inline void PrintTo(On on, std::ostream* out) {
  *out << name_of(on);
}

inline bool is_simulated(On on) {
  return on == On::sim || on == On::messaged || on == On::hosts;
}

/// Of a test that runs simulated, each with its own order of everything. Several machines take system calls.
inline std::uint64_t seeds_per_test(On on) {
  if (!is_simulated(on)) return 1;
  const int share = on == On::hosts ? 3 : 1;
  return (std::getenv("TRANSHIP_TEST_LONG") ? 18 : 6) / share;
}

/// Runs `f(World&)` as ranks; throws what launch throws. In a rank of its own process what f changes is its own. The
/// seed is for those that are simulated.
template <class F>
void run_once(On on, LaunchOptions options, std::uint64_t seed, F&& f) {
  if (!options.heap_bytes) options.heap_bytes = std::size_t(64) << 20;
  if (on == On::threads) return launch(options, f);
  if (on == On::processes) return launch_processes(options, f);
  simulate({.ranks = options.ranks,
            .seed = seed,
            .peers = on == On::messaged ? PeerKind::messaged : PeerKind::reachable,
            .ranks_per_host = on == On::hosts ? (options.ranks + 1) / 2 : 0,
            .heap_bytes = *options.heap_bytes},
           f);
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
