// rma: the cost of puts, gets and atomics on the memory of another rank, of signals and of barriers; beside the same by
// hand in the same memory (the limit), MPI and OpenSHMEM. Ours are measured twice: with ranks that are threads of a
// process, and with ranks that are processes, like the ranks of all peers.
//
// "message": the sender rewrites its bytes and puts them with a signal, the receiver waits for it and reads them; the
// time is half of a round trip. "kernel": the cost to start and end one. Large transfers are followed by a quiet; their
// limit is one memcpy, and the limit of a copy by both ranks ("together") is a memcpy of one half by each.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <harness/contest_case.hpp>
#include <sched.h>

#include <tranship/base/deadline.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/lanes/cpu_lanes.hpp>
#include <tranship/fabric/launch.hpp>

namespace {

using namespace tranship;
using bench::GoalRule;
using bench::Rivals;
using contest::Freshness;
using contest::Transfer;

struct Case {
  std::string name;
  Transfer transfer;
  std::int64_t bytes = 8;
  std::int64_t repeats = 1;
  std::vector<GoalRule> goals = {};
  std::optional<double> target_ns = std::nullopt;
  int ranks = 2;
  std::vector<Freshness> states = {Freshness::warm};
};

/// The distance of two cores may change during a measurement on a virtual machine, so there are many short turns: the
/// change affects all contestants alike.
bench::ContestOptions options_of(const bench::Report& report, const Case& c) {
  bench::ContestOptions options = report.contest_options();
  if (c.bytes <= 1 << 20 && c.ranks == 2) {
    options.rounds = report.is_quick() ? 27 : 61;
    options.turn_ns /= 8;
  }
  return options;
}

void measure(bench::Report& report, const Case& c) {
  contest::Work work;
  work.task = contest::Task::one_sided;
  work.ranks = c.ranks;
  work.transfer = c.transfer;
  work.bytes = c.bytes;
  work.repeats = c.repeats;
  // A message or signal goes there and back.
  const bool is_half = c.transfer == Transfer::message || c.transfer == Transfer::signal;
  const bool is_large = c.repeats == 1;
  measure(report, bench::ContestCase{.name = c.name,
                                     .work = work,
                                     .states = c.states,
                                     .goals = c.goals,
                                     .game = bench::Game::one_sided,
                                     .bytes = is_large ? double(c.bytes) : 0,
                                     .steps = double(is_half ? 2 * c.repeats : c.repeats),
                                     .target = c.target_ns,
                                     .threads_suffix = ", threads",
                                     .options = options_of(report, c)});
}

std::string text_of(std::int64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20)
         : bytes >= 1024  ? fmt::format("{} KiB", bytes >> 10)
                          : fmt::format("{} B", bytes);
}

// Goals: at most a tenth slower than by hand in the same memory, or than others who do it by hand; ahead of every call.
constexpr double at_most_a_tenth_more = 0.91;
constexpr GoalRule beside_limit = {Rivals::limit, at_most_a_tenth_more};
constexpr GoalRule beside_windows = {Rivals::windows, at_most_a_tenth_more};
constexpr GoalRule ahead_of_calls = {Rivals::by_call, 1};

/// Repeats that make the clock and the meeting before an operation negligible.
constexpr std::int64_t many = 20'000;

/// By hand these are one instruction or one memcpy; a call may cost some nanoseconds more.
void measure_small(bench::Report& report) {
  measure(report, {"put of 8 B", Transfer::put, 8, many, {ahead_of_calls}, 5});
  measure(report, {"put and quiet, 8 B", Transfer::put_quiet, 8, many, {ahead_of_calls}, 12});
  measure(report, {"get of 8 B", Transfer::get, 8, many, {ahead_of_calls}});
  measure(report, {"atomic fetch_add", Transfer::fetch_add, 8, many, {ahead_of_calls}, 20});
  measure(report, {"put and quiet, 4 KiB", Transfer::put_quiet, 4096, 1000, {beside_limit, ahead_of_calls}});
  if (report.is_quick()) return;
  measure(report, {"get of 4 KiB", Transfer::get, 4096, 1000, {beside_limit, ahead_of_calls}});
  measure(report, {"atomic add", Transfer::add, 8, many, {ahead_of_calls}, 20});
  measure(report, {"puts of 8 B one after the other", Transfer::put_along, 8, many, {ahead_of_calls}});
}

void measure_messages(bench::Report& report) {
  measure(report, {"signal", Transfer::signal, 8, 1000, {beside_limit, ahead_of_calls, beside_windows}});
  for (const std::int64_t bytes : {8, 48, 1 << 10, 4 << 10, 64 << 10, 1 << 20}) {
    if (report.is_quick() && bytes != 48 && bytes != 4 << 10) continue;
    std::vector<GoalRule> goals = {beside_limit, ahead_of_calls, beside_windows};
    if (bytes <= 48) goals.push_back({Rivals::mpi_calls, 2.2});
    measure(report, {.name = "message of " + text_of(bytes),
                     .transfer = Transfer::message,
                     .bytes = bytes,
                     .repeats = std::clamp<std::int64_t>((2 << 20) / bytes, 2, 500),
                     .goals = goals,
                     .states = {Freshness::fresh}});
  }
}

void measure_barriers(bench::Report& report) {
  measure(report, {"barrier of 2 ranks", Transfer::barrier, 8, 1000, {beside_limit, ahead_of_calls, beside_windows}});
}

/// MPICH without a core for each rank takes milliseconds.
void measure_crowded_barrier(bench::Report& report) {
  const int cores = contest::core_count();
  if (2 * cores > contest::ranks_max) return;
  measure(report, {.name = fmt::format("barrier of {} ranks on {} cores", 2 * cores, cores),
                   .transfer = Transfer::barrier,
                   .repeats = 100,
                   .goals = {beside_limit, ahead_of_calls},
                   .target_ns = 1500,
                   .ranks = 2 * cores});
}

void run_on_first_core() {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int core = 0;
  while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &allowed)) ++core;
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// Measures a kernel on the CPU whose lanes, which are fibers, only meet.
void measure_kernels(bench::Report& report) {
  launch(1, [&](World& world) {
    for (const auto& [lanes, target_ns] : {std::pair(1, 1000.0), {32, 15'000.0}, {256, 120'000.0}}) {
      const LaneBlock block{.lanes = lanes};
      const auto start = [&] { run_block(world, block, [](const CpuLane& lane) { lane.block().sync(); }); };
      report.add({.name = fmt::format("kernel, lanes that meet: {}", lanes),
                  .unit = "ns",
                  .ours = bench::medians_ns({{start}}, report.measure_options())[0],
                  .target = target_ns,
                  .data = "warm",
                  .our_ranks = bench::RanksAre::threads});
    }
  });
}

/// Measures two ranks on one core that assume a core each: a wait ends only after the waiting rank has yielded.
void measure_one_core(bench::Report& report) {
  using Flag = Symmetric<std::uint64_t>;
  struct Way {
    const char* name;
    double target_ns;
    void (*await)(Context&, Flag, std::uint64_t);
  };
  const Way ways[] = {
      {"signal, two ranks on one core, test", 50'000,
       [](Context& rma, Flag flag, std::uint64_t value) {
         while (!rma.test(flag, Comparison::equal, value)) {
         }
       }},
      {"signal, two ranks on one core, signal_fetch", 50'000,
       [](Context& rma, Flag flag, std::uint64_t value) {
         while (rma.signal_fetch(flag) != value) {
         }
       }},
      {"signal, two ranks on one core, get", 50'000,
       [](Context& rma, Flag flag, std::uint64_t value) {
         while (rma.g(flag, rma.world().rank()) != value) {
         }
       }},
      {"signal, two ranks on one core, wait_until", 50'000,
       [](Context& rma, Flag flag, std::uint64_t value) { rma.wait_until(flag, Comparison::equal, value); }},
      {"barrier, two ranks on one core", 10'000, nullptr},
  };
  constexpr int hops = 50;
  const int rounds = report.is_quick() ? 9 : 31;
  for (const Way& way : ways) {
    std::vector<double> each_ns;
    launch(2, [&](World& world) {
      run_on_first_core();
      const SymmetricArray<std::uint64_t> memory = world.allocate<std::uint64_t>(1);
      const Flag flag = memory;
      Context& rma = world.context();
      const Rank peer = 1 - world.rank();
      std::uint64_t value = 0;
      for (int round = 0; round < rounds; ++round) {
        world.barrier();
        const std::int64_t begin_ns = now_ns();
        for (int hop = 0; hop < hops; ++hop) {
          ++value;
          if (!way.await) {
            world.barrier();
            continue;
          }
          if (world.rank() == 0) rma.signal(flag, value, SignalOp::set, peer);
          way.await(rma, flag, value);
          if (world.rank() == 1) rma.signal(flag, value, SignalOp::set, peer);
        }
        const double steps = way.await ? 2 * hops : hops;
        if (world.rank() == 0) each_ns.push_back(double(now_ns() - begin_ns) / steps);
      }
    });
    std::nth_element(each_ns.begin(), each_ns.begin() + rounds / 2, each_ns.end());
    report.add({.name = way.name,
                .unit = "ns",
                .ours = each_ns[std::size_t(rounds / 2)],
                .target = way.target_ns,
                .data = "warm",
                .our_ranks = bench::RanksAre::threads});
  }
}

void measure_large(bench::Report& report) {
  for (const std::int64_t mebibytes : {1, 16, 64}) {
    if (report.is_quick() && mebibytes > 1) continue;
    for (const auto& [verb, transfer] : {std::pair("put", Transfer::put), std::pair("get", Transfer::get)})
      measure(report, {.name = fmt::format("{} of {}", verb, text_of(mebibytes << 20)),
                       .transfer = transfer,
                       .bytes = mebibytes << 20,
                       .goals = {{Rivals::limit, 1}, {Rivals::our_copy, 0.95}, ahead_of_calls, beside_windows},
                       .states = {Freshness::fresh, Freshness::warm}});
    measure(report, {.name = text_of(mebibytes << 20) + " together",
                     .transfer = Transfer::together,
                     .bytes = mebibytes << 20,
                     .goals = {{Rivals::limit, 0.95}, {Rivals::everybody, 1}},
                     .states = {Freshness::fresh, Freshness::warm}});
  }
}

}  // namespace

TRANSHIP_BENCH(rma, "puts, gets, atomics, signals and barriers, against MPI and OpenSHMEM") {
  measure_small(report);
  measure_messages(report);
  measure_barriers(report);
  measure_kernels(report);
  measure_one_core(report);
  measure_large(report);
  if (!report.is_quick()) measure_crowded_barrier(report);
}
