// A rank that waits in a collective call or in a program moves on what it has started, for a peer may wait for just
// that before it comes there, too.
#include <functional>
#include <string>
#include <vector>

#include <tranship/collectives/world_collectives.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/run/program_executor.hpp>
#include <tranship/tranship.hpp>

#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

/// Under more seeds than other suites where ranks are simulated: that is quick, and orders are all that is tried here.
class UnderWayWhile : public OnRanks {
 public:
  void run(FunctionRef<void(World&)> f) const {
    constexpr std::uint64_t seeds = 25;
    if (!is_simulated(on()) || around(on()) == On::hosts) return OnRanks::run(f);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) run_once(on(), {.ranks = ranks()}, seed, f);
  }
};
INSTANTIATE_TEST_SUITE_P(On, UnderWayWhile,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt),
                                            ::testing::ValuesIn(sizes_up_to(3, {2, 3, 5}))),
                         OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnSub, UnderWayWhile,
                         ::testing::Combine(::testing::Values(On::sub, On::listed_messaged), ::testing::Values(3)),
                         OnRanks::name);

double half_of(const Indices& cell) {
  return 0.5 + double(cell[0]);
}

/// In each round, even ranks start exchanges and meet before they finish them; odd ranks start theirs once all of these
/// have done so, and finish them before they meet. They wait for even ranks, which wait for them to come: only targets
/// make sums, and a sender whose buffer is full has to wait until its receiver has read it, in whatever it waits.
class Crossing {
 public:
  explicit Crossing(World& world)
      : world_(world),
        ring_(world,
              distribution({6 * world.size()}, grid(world.size()), {block().with_overlap(1, 1, EdgePolicy::toroidal)})),
        sent_(world, on_rank(0)),
        received_(world, on_rank(1)),
        fill_({ring_}),
        back_({ring_}, {}, HaloDirection::adjoint),
        over_(sent_, received_, {.schedule = Schedule::staged}),
        started_(world.allocate<std::uint64_t>(1)) {}

  template <class Meet>
  void cross(const std::string& name, Meet&& meet) {
    ++round_;
    ring_.fill_owned(half_of);
    sent_.fill_owned(half_of);
    fill_();
    world_.barrier();
    Context& rma = world_.context();
    if (world_.rank() % 2 == 0) {
      back_.start();
      over_();
      over_.start();
      for (Rank peer = 1; peer < world_.size(); peer += 2) rma.signal(started_, 1, SignalOp::add, peer);
      meet();
      over_.finish();
      back_.finish();
    } else {
      rma.signal_wait(started_, Comparison::greater_equal, round_ * std::uint64_t((world_.size() + 1) / 2));
      back_.start();
      over_();
      over_();
      back_.finish();
      meet();
    }
    require(received_.count_wrong(half_of) == 0, "{}: what was sent", name);
    // Cells at the borders of the ranks have got themselves once more, from their ghost.
    for_each_owned(ring_.distribution(), world_.rank(), [&](const Indices& local, const Indices& cell) {
      const double times = cell[0] % 6 == 0 || cell[0] % 6 == 5 ? 2 : 1;
      require(ring_.get(local) == times * half_of(cell), "{}: cell {}", name, cell[0]);
    });
  }

 private:
  static Distribution on_rank(Rank rank) { return distribution({40}, Grid({1}, {.first = rank}), {block()}); }

  World& world_;
  Array<double> ring_, sent_, received_;
  HaloExchange fill_, back_;
  Redistribution over_;
  SymmetricArray<std::uint64_t> started_;
  std::uint64_t round_ = 0;
};

TEST_P(UnderWayWhile, ranks_meet) {
  run([](World& world) {
    Crossing crossing(world);
    crossing.cross("barrier", [&] { world.barrier(); });
    crossing.cross("sync", [&] { world.sync(); });
    crossing.cross("all_gather",
                   [&] { require(world.all_gather(world.rank()).back() == world.size() - 1, "gathered"); });
    crossing.cross("broadcast", [&] {
      int value = world.rank() == 1 ? 7 : 0;
      world.broadcast(&value, sizeof value, 1);
      require(value == 7, "{} was broadcast", value);
    });
    crossing.cross("allocate", [&] { world.allocate<int>(5); });
    crossing.cross("split", [&] {
      require(world.team().split_listed({0, world.size() - 1}).has_value() == (world.rank() % (world.size() - 1) == 0),
              "team");
    });
  });
}

TEST_P(UnderWayWhile, ranks_are_in_a_collective) {
  run([](World& world) {
    Crossing crossing(world);
    const int n = world.size();
    const auto source = world.allocate<double>(n), target = world.allocate<double>(n);
    for (double& value : std::span(source.local(), std::size_t(n))) value = world.rank() + 1;
    const double sum = n * (n + 1) / 2.0;
    crossing.cross("all_reduce", [&] {
      all_reduce(world.team(), Symmetric<double>(target), Symmetric<double>(source), Reduction::sum);
      require(target[0] == sum && target[n - 1] == sum, "all_reduce");
    });
    crossing.cross("reduce_scatter", [&] {
      reduce_scatter(world.team(), target.slice(0, 1), Symmetric<double>(source), Reduction::sum);
      require(target[0] == sum, "reduce_scatter");
    });
    crossing.cross("all_to_all", [&] {
      all_to_all(world.team(), Symmetric<double>(target), Symmetric<double>(source));
      require(target[n - 1] == n, "all_to_all");
    });
    WorldCollectives together(world);
    std::vector<double> mine(std::size_t(2 * n), world.rank() + 1), all(mine.size());
    std::vector<std::string> names{"allreduce/direct"};
    for (const Algorithm& one : algorithms())
      if (one.collective == "allreduce" && !one.has_nodes) names.emplace_back(one.name);
    for (const std::string& name : names) {
      together.use(name);
      for (int call = 0; call < 2; ++call)  // the first one sets up
        crossing.cross(name, [&] {
          together.all_reduce(all, mine);
          require(all.front() == sum && all.back() == sum, "{}", name);
        });
    }
  });
}

TEST_P(UnderWayWhile, ranks_run_a_program) {
  run([](World& world) {
    Crossing crossing(world);
    const int n = world.size();
    for (const char* name : {"allgather/ring", "allgather/packets", "alltoall/all_pairs"}) {
      const Program program = make_program(name, {.ranks = n});
      ProgramExecutor executor(world, program, program.collective == "alltoall" ? 4 * n : 4,
                               {.type = ElementType::f32});
      std::vector<float> in(std::size_t(executor.input_elements()), float(world.rank() + 1)),
          out(std::size_t(executor.output_elements()));
      for (int launch = 0; launch < 3; ++launch) {
        std::fill(out.begin(), out.end(), 0.0F);
        crossing.cross(name, [&] {
          executor.run(in.data(), out.data());
          require(out.front() == 1 && out.back() == float(n), "{}", name);
        });
      }
    }
  });
}

// The sender runs ahead until no buffer of its messages is free, and meets; the receiver gets all frames before it
// meets.
TEST_P(UnderWayWhile, frames_of_a_pipe_move_while_the_sender_meets) {
  run([](World& world) {
    const auto on_rank = [](Rank rank) {
      return ArraySpec{ElementType::f64, distribution({50}, Grid({1}, {.first = rank}), {block()})};
    };
    constexpr int frames = 3;
    Pipe pipe(world, on_rank(0), on_rank(1), {.from = {.count = 2}, .to = {.count = 1}, .schedule = Schedule::staged});
    WorldCollectives together(world);
    const auto sent = world.allocate<std::uint64_t>(1);
    const std::vector<double> own{1.0};
    std::vector<double> sum{0.0};
    const std::vector<std::function<void()>> meetings{[&] { world.barrier(); }, [&] { together.all_reduce(sum, own); }};
    std::uint64_t round = 0;
    for (const auto& meet : meetings) {
      ++round;
      if (pipe.sends()) {
        for (int frame = 0; frame < frames; ++frame) {
          const PipeBuffer out = pipe.sender().get();
          static_cast<double*>(out.view.data)[49] = 1 + double(out.frame);
          pipe.sender().put();
        }
        world.context().signal(sent, 1, SignalOp::add, 1);
      }
      if (pipe.receives()) {
        world.context().signal_wait(sent, Comparison::greater_equal, round);
        for (int frame = 0; frame < frames; ++frame) {
          const PipeBuffer in = pipe.receiver().get();
          require(static_cast<double*>(in.view.data)[49] == 1 + double(in.frame), "frame {}", in.frame);
          pipe.receiver().put();
        }
      }
      meet();
    }
    if (pipe.sends()) pipe.sender().drain();
  });
}

}  // namespace
}  // namespace tranship::test
