// Back-ends under test: one body, run as ranks of each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sub_world.hpp>

namespace tranship::test {

/// `hosts` is simulated, too: ranks on two machines. `apart` and `dealt` are processes on two hosts that share nothing
/// (hosts.hpp): the first ranks on the one and the others on the other, and ranks dealt to them in turn. Those of `sub`
/// and what follows are ranks of a sub-world: every other one of about twice as many, while the ranks between them do
/// something else. Those of `listed` and what follows lie at no equal steps, where they are more than two.
enum class On {
  threads,
  processes,
  sim,
  messaged,
  hosts,
  apart,
  dealt,
  sub,
  sub_messaged,
  sub_hosts,
  listed,
  listed_messaged,
  listed_hosts
};

inline const char* name_of(On on) {
  constexpr const char* names[] = {"threads", "processes",       "sim",         "messaged",     "hosts",
                                   "apart",   "dealt",           "sub",         "sub_messaged", "sub_hosts",
                                   "listed",  "listed_messaged", "listed_hosts"};
  return names[int(on)];
}
inline void PrintTo(On on, std::ostream* out) {
  *out << name_of(on);
}

inline bool is_simulated(On on) {
  return on == On::sim || on == On::messaged || on == On::hosts || (on >= On::sub_messaged && on != On::listed);
}
inline bool are_apart(On on) {
  return on == On::apart || on == On::dealt;
}
inline bool are_processes(On on) {
  return on == On::processes || are_apart(on);
}
inline bool is_sub(On on) {
  return on >= On::sub;
}
/// Returns the kind of the whole world around a sub-world.
inline On around(On on) {
  if (!is_sub(on)) return on;
  if (on == On::sub || on == On::listed) return On::threads;
  return on == On::sub_messaged || on == On::listed_messaged ? On::messaged : On::hosts;
}
/// The rank there of a member of the sub-world.
inline Rank rank_around(On on, Rank member) {
  return on >= On::listed ? member + member / 2 : 2 * member + 1;
}

/// Return true when two of `ranks` ranks are on one machine, or share memory. The hosts of an MPI job separate ranks
/// that are told to be on one host.
bool share_machine(On on, int ranks, Rank one, Rank other);
inline bool share_memory(On on, int ranks, Rank one, Rank other) {
  if (on == On::sim || around(on) == On::messaged) return one == other;
  return share_machine(on, ranks, one, other);
}

/// Returns the number of runs of a test: several for simulated ranks, each with its own order of events. Simulated
/// machines get fewer seeds, because their messages take system calls.
std::uint64_t seeds_per_test(On on);
/// Shared memory that this library has left under a name. Folders of other tests, and what other programs have there
/// meanwhile, do not count.
std::size_t named_memory();

/// Runs `f` as ranks; throws what launch throws. In a rank of its own process what f changes is its own. The seed is
/// for those that are simulated.
void run_once(On on, LaunchOptions options, std::uint64_t seed, FunctionRef<void(World&)> f);
/// Calls run_once() for every seed of a test.
void run_on(On on, const LaunchOptions& options, FunctionRef<void(World&)> f);
void run_on(On on, int ranks, FunctionRef<void(World&)> f);

// A rank throws the faults that it finds, so that the others do not wait for it, and the fault leaves its process.
[[noreturn]] void throw_found(fmt::string_view format, fmt::format_args args);
template <class... Args>
void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw_found(format, fmt::make_format_args(args...));
}

/// The Error that `f` throws.
Error error_of_rank(FunctionRef<void()> f);
void require_says(const Error& error, ErrorCode code, std::initializer_list<const char*> parts);

/// Suites over back-ends and sizes: TEST_P(Suite, ...) with ranks() and run(f).
class OnRanks : public ::testing::TestWithParam<std::tuple<On, int>> {
 public:
  On on() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  void run(FunctionRef<void(World&)> f) const { run_on(on(), ranks(), f); }
  static std::string name(const ::testing::TestParamInfo<std::tuple<On, int>>& info) {
    return fmt::format("{}_{}", test::name_of(std::get<0>(info.param)), std::get<1>(info.param));
  }
};

}  // namespace tranship::test
