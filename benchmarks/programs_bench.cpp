// programs: the cost of collective operations that are programs of channel steps, beside the same operations by hand in
// the same memory (the limit), a memcpy of as many bytes, and MPI. Ours are measured twice: with ranks that are threads
// of a process, and with ranks that are processes. One case measures the executor with steps that do little.
//
// "8 B" and the like are the bytes of the larger of a rank's input and output. Inputs are rewritten before and outputs
// read after each operation; for small operations, which are repeated for one timing, the time includes this.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <harness/contest_case.hpp>

#include <tranship/fabric/launch.hpp>
#include <tranship/run/program_executor.hpp>

namespace {

using namespace tranship;
using bench::GoalRule;
using bench::Rivals;
using contest::Collective;

std::string text_of(std::int64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20)
         : bytes >= 1024  ? fmt::format("{} KiB", bytes >> 10)
                          : fmt::format("{} B", bytes);
}

constexpr std::pair<Collective, const char*> collectives[] = {{Collective::all_reduce, "allreduce"},
                                                              {Collective::all_gather, "allgather"},
                                                              {Collective::reduce_scatter, "reduce_scatter"},
                                                              {Collective::all_to_all, "alltoall"}};

/// The goal as a multiple of MPI's speed: prototypes reached it with two ranks on cores of their own.
double ahead_of_mpi(Collective collective, std::int64_t bytes, int ranks) {
  if (collective != Collective::all_reduce || ranks > 2) return 1;
  if (bytes <= 8) return 2;
  if (bytes == 64 << 10) return 2.3;
  return bytes == 1 << 20 ? 2.7 : 1;
}

void measure(bench::Report& report, Collective collective, const char* name, std::int64_t bytes, int ranks) {
  const bool is_crowded = ranks > contest::core_count();
  contest::Work work;
  work.task = contest::Task::collective;
  work.ranks = ranks;
  work.collective = collective;
  // Operations that cut their data need an element from every rank for every other one.
  work.bytes = collective == Collective::all_reduce ? bytes : std::max<std::int64_t>(bytes, 8 * ranks);
  // Without a core for each rank, some take milliseconds.
  work.repeats = bytes > 4096 ? 1 : is_crowded ? 8 : bytes <= 64 ? 500 : 100;
  bench::ContestOptions options = report.contest_options();
  // Many short turns, so that changes of the machine affect all contestants alike.
  if (bytes <= 1 << 20 && !is_crowded) {
    options.rounds = report.is_quick() ? 9 : 31;
    options.turn_ns /= 8;
    options.ops_min = bytes <= 4096 ? 5 : 15;
  }
  constexpr double at_most_a_tenth_more = 0.91;
  measure(report, bench::ContestCase{.name = fmt::format("{} {}, {} ranks", name, text_of(work.bytes), ranks),
                                     .work = work,
                                     .states = {contest::Freshness::fresh},
                                     .goals = {{Rivals::limit, at_most_a_tenth_more},
                                               {Rivals::mpi_calls, ahead_of_mpi(collective, bytes, ranks)}},
                                     .game = bench::Game::collective,
                                     .steps = double(work.repeats),
                                     .threads_suffix = ", threads",
                                     .options = options});
}

/// One rank of one block: a copy of 16 bytes, a release, an acquire and a meeting of the block, again and again.
Program small_steps(int rounds) {
  ThreadBlock block;
  const auto add = [&](StepKind kind) -> Step& {
    block.steps.push_back({.kind = kind});
    return block.steps.back();
  };
  for (int i = 0; i < rounds; ++i) {
    Step& copy = add(StepKind::copy);
    copy.sources = 1;
    copy.operands = {{.buffer = BufferKind::input, .count = 1}, {.buffer = BufferKind::output, .count = 1}};
    add(StepKind::release).ids = {0};
    add(StepKind::acquire).ids = {0};
    add(StepKind::nop);
  }
  RankProgram rank;
  rank.chunks[0] = rank.chunks[1] = 1;
  rank.semaphores = {0};
  rank.blocks.push_back(std::move(block));
  Program program;
  program.name = program.collective = "small steps";
  program.ranks.push_back(std::move(rank));
  return program;
}

void measure_steps(bench::Report& report) {
  constexpr const char* name = "one small step";
  if (!report.wants(name)) return;
  report.announce(name);
  double ns = 0;
  launch(1, [&](World& world) {
    constexpr int rounds = 250;
    ProgramExecutor executor(world, small_steps(rounds), 4, {.type = ElementType::f32});
    executor.run();
    const auto times = bench::medians_ns({{[&] { executor.run(); }}}, report.measure_options());
    ns = times[0] / (4.0 * rounds);
  });
  report.add({.name = name, .unit = "ns", .ours = ns, .target = 30});
}

}  // namespace

TRANSHIP_BENCH(programs, "collective operations as programs of channel steps, against MPI") {
  measure_steps(report);
  for (const int ranks : {2, 8}) {
    for (const auto& [collective, name] : collectives) {
      if (report.is_quick() && (ranks > 2 || collective != Collective::all_reduce)) continue;
      for (const std::int64_t bytes : {8LL, 4LL << 10, 64LL << 10, 1LL << 20, 16LL << 20, 64LL << 20}) {
        if (report.is_quick() && bytes != 8 && bytes != 64 << 10) continue;
        // The buffers of all contestants exist at the same time.
        if (ranks > 2 && bytes > 16 << 20) continue;
        measure(report, collective, name, bytes, ranks);
      }
    }
  }
}
