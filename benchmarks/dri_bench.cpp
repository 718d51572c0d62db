// dri: a corner turn in a stream of frames: every rank writes its rows of a frame, all exchange, every rank reads its
// columns. Ours goes through a channel with two buffers on each side; the peers do the same work frame by frame. GB/s
// count the bytes of each frame once, over the time that writing, moving and reading it takes.
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <harness/contest_case.hpp>

namespace {

using namespace tranship;
using bench::GoalRule;
using bench::Rivals;
using contest::Freshness;
using contest::Work;

}  // namespace

TRANSHIP_BENCH(dri, "corner turns in a stream of frames, through double-buffered channels, against MPI and FFTW") {
  std::vector<std::int64_t> sizes = {512};
  if (!report.is_quick()) sizes = {512, 2048};
  for (const int ranks : {2, 4})
    for (const std::int64_t n : sizes)
      for (const contest::Order order : {contest::Order::same, contest::Order::transposed}) {
        Work work;
        work.task = contest::Task::stream;
        work.ranks = ranks;
        work.dims = 2;
        work.axes[0] = {n, {ranks, 0}, {1, 0}};
        work.axes[1] = {n, {1, 0}, {ranks, 0}};
        work.order = order;
        work.repeats = 8;
        const bool transposes = order == contest::Order::transposed;
        std::vector<GoalRule> goals = {{Rivals::everybody, 1.0}};
        if (transposes) goals.push_back({Rivals::fftw, 2.5});
        measure(report, bench::ContestCase{.name = fmt::format("corner turn{}, {}x{}, {} ranks",
                                                               transposes ? ", transposed" : "", n, n, ranks),
                                           .work = work,
                                           .states = {Freshness::warm},
                                           .goals = std::move(goals),
                                           .bytes = double(n) * double(n) * sizeof(double) * double(work.repeats)});
      }
}
