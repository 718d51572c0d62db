// A collective operation orders what it moves, and nothing else: under a simulation, a put to other memory is no more
// complete after it than before. Each wrong program stands beside the right one.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/collectives/world_collectives.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/run/program_executor.hpp>
#include <tranship/tranship.hpp>

namespace tranship::test {
namespace {

constexpr CallSite first{"first.cpp", 1}, second{"second.cpp", 2};
constexpr int ranks = 2;

struct Rig {
  explicit Rig(World& w) : world(w), rma(w.context()), all(w) {}

  World& world;
  Context& rma;
  SymmetricArray<int> source = world.allocate<int>(8);
  SymmetricArray<int> target = world.allocate<int>(8);
  SymmetricArray<int> other = world.allocate<int>(8);
  std::vector<int> own = std::vector<int>(8), result = std::vector<int>(16);
  WorldCollectives all;
};

struct Collective {
  const char* name;
  std::function<void(Rig&)> call;
};

std::vector<Collective> collectives() {
  const auto at = [](Rig& r, const SymmetricArray<int>& array, Index count) { return array.slice(0, count); };
  std::vector<Collective> out = {
      {"all_reduce",
       [=](Rig& r) { all_reduce(r.world.team(), at(r, r.target, 4), at(r, r.source, 4), Reduction::sum, first); }},
      {"reduce",
       [=](Rig& r) { reduce(r.world.team(), at(r, r.target, 4), at(r, r.source, 4), Reduction::sum, 0, first); }},
      {"reduce_scatter",
       [=](Rig& r) { reduce_scatter(r.world.team(), at(r, r.target, 4), at(r, r.source, 8), Reduction::sum, first); }},
      {"all_gather", [=](Rig& r) { all_gather(r.world.team(), at(r, r.target, 8), at(r, r.source, 4), first); }},
      {"all_to_all", [=](Rig& r) { all_to_all(r.world.team(), at(r, r.target, 8), at(r, r.source, 8), first); }},
      {"broadcast", [=](Rig& r) { broadcast(r.world.team(), at(r, r.target, 4), at(r, r.source, 4), 0, first); }},
  };
  for (const char* algorithm : {"allreduce/direct", "allreduce/ring", "allreduce/packets"})
    out.push_back({algorithm, [algorithm](Rig& r) {
                     r.all.use(algorithm);
                     r.all.all_reduce(std::span(r.result).first(4), std::span(r.own).first(4), Reduction::sum, first);
                   }});
  return out;
}

struct Case {
  std::string name;
  bool is_race;
  std::function<void(Rig&)> program;
};

std::string fault_of(const Case& one) {
  constexpr std::uint64_t seeds = 10;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    try {
      simulate({.ranks = ranks, .seed = seed, .heap_bytes = std::size_t(1) << 20}, [&](World& world) {
        Rig rig(world);
        one.program(rig);
        world.barrier();
      });
    } catch (const Error& error) {
      if (one.is_race && error.code() == ErrorCode::race && error.message().find("second.cpp:2") != std::string::npos)
        continue;
      return one.name + ": " + error.message() + "\n";
    }
    if (one.is_race) return one.name + ": not found under seed " + std::to_string(seed) + "\n";
  }
  return "";
}

void expect(const std::vector<Case>& cases) {
  std::string faults;
  for (const Case& one : cases) faults += fault_of(one);
  EXPECT_EQ(faults, "");
}

TEST(CollectiveRaces, a_put_to_other_memory_is_not_complete_after_a_collective) {
  std::vector<Case> cases;
  for (const Collective& one : collectives())
    for (const bool completes : {false, true})
      cases.push_back({std::string(one.name) + (completes ? ", completed" : ""), !completes, [=](Rig& r) {
                         one.call(r);  // sets up what later calls need
                         r.world.barrier();
                         if (r.world.rank() == 0) r.rma.put(r.other.slice(0, 4), std::span(r.own).first(4), 1, first);
                         if (completes) r.rma.quiet();
                         one.call(r);
                         if (r.world.rank() == 1) r.rma.reads(r.other.slice(0, 4), second);
                       }});
  expect(cases);
}

TEST(CollectiveRaces, transfers_under_way_in_the_target_of_a_collective) {
  std::vector<Case> cases;
  for (const Collective& one : collectives()) {
    if (std::string(one.name).find('/') != std::string::npos) continue;
    for (const bool completes : {false, true}) {
      cases.push_back({std::string("a get into the target of ") + one.name + (completes ? ", completed" : ""),
                       !completes, [=](Rig& r) {
                         r.world.barrier();
                         // On both ranks, since some collectives write the target of one alone.
                         r.rma.get_nbi(std::span(r.target.local(), 4), r.other.slice(0, 4), 1 - r.world.rank(), second);
                         if (completes) r.rma.quiet();
                         one.call(r);
                       }});
      cases.push_back({std::string("a put from the target of ") + one.name + (completes ? ", completed" : ""),
                       !completes, [=](Rig& r) {
                         r.world.barrier();
                         r.rma.put_nbi(r.other.slice(0, 4), std::span<const int>(r.target.local(), 4),
                                       1 - r.world.rank(), second);
                         if (completes) r.rma.quiet();
                         one.call(r);
                       }});
    }
  }
  expect(cases);
}

TEST(CollectiveRaces, collectives_on_what_an_exchange_moves) {
  std::vector<Case> cases;
  // One rank's array moves to the other; its target, or its source, is a result of a collective meanwhile.
  const auto during = [](bool finishes, bool is_target, const char* algorithm) {
    return [=](Rig& r) {
      const auto on = [](Rank rank) { return Distribution({8}, Grid({1}, {.first = rank}), {whole()}); };
      std::vector<float> mine(8, 1.0f);
      Array<float> source(r.world, on(0), r.world.rank() == 0 ? mine.data() : nullptr);
      Array<float> target(r.world, on(1), r.world.rank() == 1 ? mine.data() : nullptr);
      Redistribution moves(source, target);
      std::vector<float> spare(8);
      r.all.use(algorithm);
      r.world.barrier();
      moves.start(first);
      if (finishes) moves.finish();
      std::vector<float>& result = (r.world.rank() == 1) == is_target ? mine : spare;
      r.all.all_reduce(result, spare, Reduction::maximum, second);
      moves.finish();
    };
  };
  for (const char* algorithm : {"allreduce/direct", "allreduce/ring"})
    for (const bool is_target : {false, true})
      for (const bool finishes : {false, true})
        cases.push_back({std::string(algorithm) + (is_target ? " into a target" : " into a source") +
                             (finishes ? " after finish" : ""),
                         !finishes, during(finishes, is_target, algorithm)});
  expect(cases);
}

TEST(CollectiveRaces, a_put_to_other_memory_is_not_complete_after_an_exchange) {
  std::vector<Case> cases;
  for (const bool completes : {false, true})
    cases.push_back({completes ? "completed" : "under way", !completes, [=](Rig& r) {
                       const Distribution ring({8}, grid(ranks), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
                       Array<double> array(r.world, ring);
                       HaloExchange halo({array});
                       r.world.barrier();
                       if (r.world.rank() == 0) r.rma.put(r.other.slice(0, 4), std::span(r.own).first(4), 1, first);
                       if (completes) r.rma.quiet();
                       for (int i = 0; i < 3; ++i) halo();
                       if (r.world.rank() == 1) r.rma.reads(r.other.slice(0, 4), second);
                     }});
  expect(cases);
}

}  // namespace
}  // namespace tranship::test
