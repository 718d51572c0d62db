#include "support/ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sub_world.hpp>

#include "support/hosts.hpp"
#include "support/job.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

/// Acts as the other ranks while some ranks are a sub-world: they form a sub-world too, and make similar calls.
void be_others(Team& team) {
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
/// Some ranks of a world, as a sub-world.
void run_as_sub_world(On on, World& whole, int ranks, std::size_t heap_bytes, FunctionRef<void(World&)> f) {
  std::vector<int> named, rest;
  for (Rank member = 0; member < ranks; ++member) named.push_back(rank_around(on, member));
  for (Rank rank = 0; rank < whole.size(); ++rank)
    if (std::find(named.begin(), named.end(), rank) == named.end()) rest.push_back(rank);
  std::optional<Team> members = whole.team().split_listed(named);
  std::optional<Team> others = whole.team().split_listed(rest);
  if (others) return be_others(*others);
  const SubWorld sub(*members, {.heap_bytes = heap_bytes});
  f(sub.world());
}

void run_as_whole_world(On on, const LaunchOptions& options, std::uint64_t seed, FunctionRef<void(World&)> f) {
  if (on == On::threads) return launch(options, f);
  if (on == On::processes) return launch_processes(options, f);
  if (are_apart(on)) {
    HostsOptions hosts{.heap_bytes = *options.heap_bytes};
    for (Rank rank = 0; rank < options.ranks; ++rank)
      hosts.host_of.push_back(on == On::dealt ? rank % 2 : rank >= (options.ranks + 1) / 2 ? 1 : 0);
    if (options.timeout_ns) hosts.timeout_ns = *options.timeout_ns;
    if (!is_in_job()) return launch_hosts(hosts, f);
    if (options.ranks > job_size())
      GTEST_SKIP() << "it needs " << options.ranks << " ranks, and the job has " << job_size() << " processes";
    return run_in_job(hosts, f);
  }
  simulate({.ranks = options.ranks,
            .seed = seed,
            .peers = on == On::messaged ? PeerKind::messaged : PeerKind::reachable,
            .ranks_per_host = on == On::hosts ? (options.ranks + 1) / 2 : 0,
            .heap_bytes = *options.heap_bytes},
           f);
}

class JobEnd : public ::testing::Environment {
 public:
  void TearDown() override { end_job(::testing::UnitTest::GetInstance()->Failed()); }
};
[[maybe_unused]] const auto* const job_end = is_in_job() ? ::testing::AddGlobalTestEnvironment(new JobEnd) : nullptr;

}  // namespace

bool share_machine(On on, int ranks, Rank one, Rank other) {
  if (is_sub(on)) return share_machine(around(on), 2 * ranks + 1, rank_around(on, one), rank_around(on, other));
  if (are_apart(on) && is_in_job() && !share_host_of_job(one, other)) return false;
  if (on == On::dealt) return one % 2 == other % 2;
  const int on_first = on == On::hosts || on == On::apart ? (ranks + 1) / 2 : ranks;
  return (one < on_first) == (other < on_first);
}

std::size_t named_memory() {
  std::size_t out = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find("tranship") != std::string::npos && !name.starts_with("tranship-test-")) ++out;
  }
  return out;
}

std::uint64_t seeds_per_test(On on) {
  if (!is_simulated(on)) return 1;
  if (is_brief()) return around(on) == On::hosts ? 1 : 2;
  const int share = around(on) == On::hosts ? 3 : 1;
  return (std::getenv("TRANSHIP_TEST_LONG") ? 18 : 6) / share;
}

void run_once(On on, LaunchOptions options, std::uint64_t seed, FunctionRef<void(World&)> f) {
  const std::size_t heap_bytes = options.heap_bytes.value_or(std::size_t(64) << 20);
  options.heap_bytes = heap_bytes;
  if (!is_sub(on)) return run_as_whole_world(on, options, seed, f);
  const int ranks = std::exchange(options.ranks, 2 * options.ranks + 1);
  options.heap_bytes = heap_bytes + (std::size_t(4) << 20);
  run_as_whole_world(around(on), options, seed,
                     [&](World& whole) { run_as_sub_world(on, whole, ranks, heap_bytes, f); });
}
void run_on(On on, const LaunchOptions& options, FunctionRef<void(World&)> f) {
  for (std::uint64_t seed = 1; seed <= seeds_per_test(on); ++seed) run_once(on, options, seed, f);
}
void run_on(On on, int ranks, FunctionRef<void(World&)> f) {
  run_on(on, LaunchOptions{.ranks = ranks}, f);
}

void throw_found(fmt::string_view format, fmt::format_args args) {
  throw make_error(ErrorCode::internal, "test: {}", fmt::vformat(format, args));
}

Error error_of_rank(FunctionRef<void()> f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  throw Error(ErrorCode::internal, "test: nothing was thrown");
}
void require_says(const Error& error, ErrorCode code, std::initializer_list<const char*> parts) {
  require(error.code() == code, "code {} is not {}: {}", int(error.code()), int(code), error.message());
  for (const char* part : parts)
    require(error.message().find(part) != std::string::npos, "'{}' is missing in: {}", part, error.message());
}

}  // namespace tranship::test
