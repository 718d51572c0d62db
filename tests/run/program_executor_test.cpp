// Programs on ranks: the plans that MSCCL++ wrote give what their collectives promise, for messages of every size,
// launch after launch, on every back-end; where the data lies; several programs in one world; and what happens when a
// rank does not come.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/run/channel_ends.hpp>
#include <tranship/run/program_executor.hpp>
#include <tranship/run/program_trial.hpp>
#include <tranship/run/program_verdict.hpp>
#include <tranship/run/shared_program.hpp>

#include "support/custom_programs.hpp"
#include "support/mscclpp_plans.hpp"
#include "support/program_builder.hpp"
#include "support/program_mutants.hpp"
#include "support/random_channel_programs.hpp"
#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

using Element = std::int32_t;

Element brought(Rank rank, Index i, int launch) {
  return static_cast<Element>(
      splitmix64(std::uint64_t(rank) * 1'000'003 + std::uint64_t(i) * 31 + std::uint64_t(launch)));
}

Element combined(Reduction reduction, Element a, Element b) {
  switch (reduction) {
    case Reduction::sum:
      return static_cast<Element>(std::uint32_t(a) + std::uint32_t(b));
    case Reduction::minimum:
      return std::min(a, b);
    case Reduction::maximum:
      return std::max(a, b);
    default:
      return static_cast<Element>(std::uint32_t(a) * std::uint32_t(b));
  }
}

enum class Promise { allreduce, reducescatter, allgather, alltoall, sendrecv };

Promise promise_of(const std::string& collective) {
  const std::array<const char*, 5> names = {"allreduce", "reducescatter", "allgather", "alltoall", "sendrecv"};
  const auto found = std::find(names.begin(), names.end(), collective);
  require(found != names.end(), "no collective {} is known here", collective);
  return Promise(found - names.begin());
}

/// Element `i` of the output of `rank`, from the words of the collective.
Element promised(Promise collective, Rank ranks, Rank rank, Index i, Index elements, int launch, Reduction reduction) {
  const auto sum_of = [&](Index at) {
    Element sum = brought(0, at, launch);
    for (Rank peer = 1; peer < ranks; ++peer) sum = combined(reduction, sum, brought(peer, at, launch));
    return sum;
  };
  if (collective == Promise::allreduce) return sum_of(i);
  if (collective == Promise::reducescatter) return sum_of(rank * (elements / ranks) + i);
  if (collective == Promise::allgather) return brought(static_cast<Rank>(i / elements), i % elements, launch);
  const Index block = elements / ranks;
  return brought(static_cast<Rank>(i / block), rank * block + i % block, launch);
}

/// Where the data of a launch lies.
enum class Data { apart, in_one_place, of_the_executor };

/// One program, launched again and again, each time with other data in another place.
class Launched {
 public:
  Launched(World& world, const Program& program, Index elements, Reduction reduction)
      : world_(world),
        program_(program),
        promise_(promise_of(program.collective)),
        elements_(elements),
        reduction_(reduction),
        executor_(world, program, elements, {.type = ElementType::i32, .reduction = reduction}),
        input_(std::size_t(elements)),
        // Neither begins with a whole 16 bytes.
        output_(std::size_t(std::max(elements, executor_.output_elements())) + 2, guard) {}

  Index steps() const { return executor_.steps(); }

  void operator()(Data where) {
    const int launch = launch_++;
    const Element* read = output_.data() + 1;
    std::fill(output_.begin(), output_.end(), guard);
    if (where == Data::apart) {
      fill(input_.data(), launch);
      executor_.run(input_.data(), output_.data() + 1);
      for (Index i = 0; i < elements_; ++i)
        require(input_[std::size_t(i)] == brought(world_.rank(), i, launch), "the input of {}", program_.name);
    } else if (where == Data::in_one_place) {
      fill(output_.data() + 1, launch);
      executor_.run(output_.data() + 1, output_.data() + 1);
    } else {
      require(Index(executor_.input().size()) == elements_ * Index(sizeof(Element)), "the size of input()");
      fill(reinterpret_cast<Element*>(executor_.input().data()), launch);
      executor_.run();
      read = reinterpret_cast<const Element*>(executor_.output().data());
    }
    require(output_.front() == guard && output_.back() == guard, "beside the output of {}", program_.name);
    if (promise_ == Promise::sendrecv && source_ < 0 && elements_ > 0)
      for (Rank rank = 0; rank < world_.size(); ++rank)
        if (brought(rank, 0, launch) == read[0]) source_ = rank;
    for (Index i = 0; i < executor_.output_elements(); ++i) {
      const Element wanted = promise_ == Promise::sendrecv
                                 ? brought(source_, i, launch)
                                 : promised(promise_, world_.size(), world_.rank(), i, elements_, launch, reduction_);
      require(read[i] == wanted, "{}: element {} of {} in launch {} is {}, not {}", program_.name, i, elements_, launch,
              read[i], wanted);
    }
  }

 private:
  static constexpr Element guard = 77;

  void fill(Element* to, int launch) const {
    for (Index i = 0; i < elements_; ++i) to[i] = brought(world_.rank(), i, launch);
  }

  World& world_;
  const Program program_;
  const Promise promise_;
  const Index elements_;
  const Reduction reduction_;
  ProgramExecutor executor_;
  std::vector<Element> input_, output_;
  Rank source_ = -1;  // of a sendrecv
  int launch_ = 0;
};

void launch_and_compare(World& world, const Program& program, Index elements, Reduction reduction) {
  Launched launched(world, program, elements, reduction);
  for (const Data where : {Data::apart, Data::of_the_executor, Data::of_the_executor, Data::in_one_place, Data::apart,
                           Data::of_the_executor})
    launched(where);
}

Program plan(const std::string& name) {
  return read_program(read_text(mscclpp_plan(name)));
}

class Plans : public ::testing::TestWithParam<On> {};
INSTANTIATE_TEST_SUITE_P(On, Plans,
                         ::testing::Values(On::threads, On::processes, On::sim, On::messaged, On::hosts, On::apart,
                                           On::dealt),
                         [](const auto& info) { return name_of(info.param); });

/// More ranks take minutes where each access is looked at.
int ranks_max(On on) {
#if defined(TRANSHIP_TSAN)
  return on == On::threads ? 4 : 2;
#else
  return is_simulated(on) || are_apart(on) ? 4 : 16;
#endif
}

TEST_P(Plans, give_what_they_promise) {
  auto cases = mscclpp_plans();
  for (const PlanCase& one : old_mscclpp_plans()) cases.push_back(one);
  int ran = 0;
  Thinned thinned(is_simulated(GetParam()) || are_processes(GetParam()) ? 5 : 2);
  int offered = 0;  // on hosts, each message takes tens of microseconds: every fourth plan is enough
  for (const PlanCase& one : cases) {
    const Program program = read_program(read_text(one.path));
    const auto ranks = static_cast<int>(program.ranks.size());
    if (ranks > ranks_max(GetParam()) || !thinned.takes_next()) continue;
    if (are_apart(GetParam()) && !is_thinned() && ++offered % 4 != 0) continue;
    const Verification verified = verify(program);
    if (!verified.is_right() || !verified.knows_result) continue;
    const Reduction reductions[] = {Reduction::sum, Reduction::minimum, Reduction::maximum, Reduction::product};
    // Of 16 elements, no chunk of these plans is padded.
    const Index few[] = {0, 1, 16, 5}, more[] = {130, 1, 1024, 4099};
    for (int i = 0; i < 2; ++i) {
      const Index each = (is_simulated(GetParam()) || are_apart(GetParam()) ? few : more)[(ran + i) % 4];
      const Reduction reduction = reductions[ran++ % 4];
      const auto body = [&](World& world) { launch_and_compare(world, program, each * ranks, reduction); };
      if (is_simulated(GetParam()))
        run_once(GetParam(), {.ranks = ranks}, std::uint64_t(ran), body);
      else
        run_on(GetParam(), ranks, body);
    }
  }
  EXPECT_GT(ran, is_thinned() || are_apart(GetParam()) ? 4 : 20);
}

/// Of one unit of packets, whose addresses are known before a launch.
TEST_P(Plans, of_few_elements_wait_for_whoever_comes_late) {
  for (const Rank ranks : {2, 3})
    for (const char* name : {"allreduce/packets", "allgather/packets", "alltoall/packets", "reducescatter/packets"}) {
      const auto body = [&](World& world) {
        const Program program = make_program(name, {.ranks = ranks});
        const std::string_view collective = program.collective;
        const Index parts = collective == "alltoall" || collective == "reducescatter" ? ranks : 1;
        Launched launched(world, program, (16 / Index(sizeof(Element))) * parts, Reduction::sum);
        const int launches = is_simulated(GetParam()) ? 6 : 60;
        volatile int lateness = 0;
        for (int launch = 0; launch < launches; ++launch) {
          if (launch % 4 == world.rank())
            for (int i = 0; i < 50'000; ++i) lateness = i;
          launched(launch % 3 == 0 ? Data::apart : launch % 3 == 1 ? Data::in_one_place : Data::of_the_executor);
        }
        std::size_t steps = 0;
        for (const ThreadBlock& block : program.ranks[std::size_t(world.rank())].blocks) steps += block.steps.size();
        require(launched.steps() == launches * Index(steps), "{}: {} steps, not {} times {}", name, launched.steps(),
                launches, steps);
      };
      if (is_simulated(GetParam()))
        run_once(GetParam(), {.ranks = ranks}, std::uint64_t(ranks), body);
      else
        run_on(GetParam(), ranks, body);
    }
}

TEST_P(Plans, take_turns_in_one_world) {
  const auto body = [&](World& world) {
    std::vector<std::unique_ptr<Launched>> all;
    for (const char* name : {"sn_allreduce_naivy_2r", "sn_allgather_pkt_rppkt_2r", "sn_alltoall_2r"})
      for (const Index elements : {4, 46})
        all.push_back(std::make_unique<Launched>(world, plan(name), elements, Reduction::sum));
    for (int turn = 0; turn < (is_simulated(GetParam()) ? 3 : 50); ++turn)
      for (std::size_t i = 0; i < all.size(); ++i)
        (*all[(i * 5) % all.size()])(turn % 2 == 0 ? Data::of_the_executor : Data::apart);
  };
  run_on(GetParam(), 2, body);
}

/// Two ranks; each moves both chunks of an input to the one chunk of an output, the second one last.
Program two_to_one_place(StepKind kind, bool in_one_step) {
  ProgramBuilder out("two to one place", 2, {2, 1, 0});
  for (const Rank rank : {0, 1}) {
    const Rank peer = 1 - rank;
    const bool gets = kind == StepKind::get;
    const auto from = [&](Index chunk) { return Chunks{gets ? peer : rank, BufferKind::input, chunk}; };
    const Chunks to{gets ? rank : peer, BufferKind::output};
    out.at(rank).signal(StepKind::relaxed_signal, {peer}).signal(StepKind::relaxed_wait, {peer}).nop();
    if (in_one_step)
      out.move(kind, {from(0), from(1)}, {to, to});
    else
      out.move(kind, {from(0)}, {to}).nop().move(kind, {from(1)}, {to});
    out.nop().signal(StepKind::signal, {peer}).signal(StepKind::wait, {peer}).nop();
  }
  return out.program();
}

TEST_P(Plans, transfers_of_a_block_to_one_place_keep_their_order) {
  for (const StepKind kind : {StepKind::get, StepKind::put})
    for (const bool in_one_step : {true, false}) {
      const Program program = two_to_one_place(kind, in_one_step);
      SCOPED_TRACE(fmt::format("{}, in one step: {}", kind == StepKind::get ? "get" : "put", in_one_step));
      EXPECT_TRUE(verify(program).is_right()) << verify(program).text();
      run_on(GetParam(), 2, [&](World& world) {
        ProgramExecutor executor(world, program, 8, {.type = ElementType::i32});
        for (int launch = 0; launch < 3; ++launch) {
          auto* const input = reinterpret_cast<Element*>(executor.input().data());
          for (Index i = 0; i < 8; ++i) input[i] = brought(world.rank(), i, launch);
          executor.run();
          const auto* const output = reinterpret_cast<const Element*>(executor.output().data());
          for (Index i = 0; i < 4; ++i)
            require(output[i] == brought(1 - world.rank(), 4 + i, launch), "element {} in launch {} is {}", i, launch,
                    output[i]);
          world.barrier();
        }
      });
    }
}

/// Each rank gets from its peer what it has just put there.
Program read_back() {
  ProgramBuilder out("read back", 2, {1, 1, 1});
  for (const Rank rank : {0, 1})
    out.at(rank)
        .move(StepKind::put, {{rank, BufferKind::input}}, {{1 - rank, BufferKind::scratch}})
        .nop()
        .move(StepKind::get, {{1 - rank, BufferKind::scratch}}, {{rank, BufferKind::output}});
  return out.program();
}

TEST_P(Plans, a_block_gets_what_it_has_put) {
  const Program program = read_back();
  EXPECT_TRUE(verify(program).is_right()) << verify(program).text();
  run_on(GetParam(), 2, [&](World& world) {
    ProgramExecutor executor(world, program, 4, {.type = ElementType::i32});
    auto* const input = reinterpret_cast<Element*>(executor.input().data());
    for (Index i = 0; i < 4; ++i) input[i] = brought(world.rank(), i, 0);
    executor.run();
    const auto* const output = reinterpret_cast<const Element*>(executor.output().data());
    for (Index i = 0; i < 4; ++i) require(output[i] == brought(world.rank(), i, 0), "element {} is {}", i, output[i]);
    world.barrier();
  });
}

/// Rank 0 stores to rank 2 and tells rank 1, which tells rank 2, which copies what rank 0 has stored.
Program told_by_another_rank() {
  Program program;
  program.name = program.collective = "told";
  for (Rank rank = 0; rank < 3; ++rank) {
    RankProgram own;
    own.chunks[0] = own.chunks[1] = own.chunks[2] = 1;
    ThreadBlock block;
    const auto add = [&](StepKind kind) -> Step& {
      block.steps.push_back({.kind = kind});
      return block.steps.back();
    };
    // Channel 0 leads to the next rank, channel 1 to the one before.
    own.peers[0] = {(rank + 1) % 3, (rank + 2) % 3};
    own.remote_buffers = {{.rank = (rank + 2) % 3, .buffer = BufferKind::scratch, .access = {ChannelKind::memory}}};
    block.channels[0] = {0, 1};
    block.remote_buffers[0] = {0};
    if (rank == 0) {
      Step& put = add(StepKind::put);
      put.sources = 1;
      put.operands = {{.buffer = BufferKind::input, .count = 1},
                      {.buffer = BufferKind::scratch, .via = 0, .first = 0, .count = 1}};
      add(StepKind::nop);
    } else {
      add(StepKind::wait).ids = {1};
      add(StepKind::nop);
    }
    if (rank < 2) {
      add(StepKind::signal).ids = {0};
    } else {
      Step& copy = add(StepKind::copy);
      copy.sources = 1;
      copy.operands = {{.buffer = BufferKind::scratch, .count = 1}, {.buffer = BufferKind::output, .count = 1}};
    }
    own.blocks.push_back(std::move(block));
    program.ranks.push_back(std::move(own));
  }
  return program;
}

TEST_P(Plans, signals_publish_what_was_stored_elsewhere) {
  const Program program = told_by_another_rank();
  ASSERT_TRUE(verify(program).is_right()) << verify(program).text();
  run_on(GetParam(), 3, [&](World& world) {
    ProgramExecutor executor(world, program, 40, {.type = ElementType::i32});
    for (int launch = 0; launch < 5; ++launch) {
      auto* const input = reinterpret_cast<Element*>(executor.input().data());
      for (Index i = 0; i < 40; ++i) input[i] = brought(world.rank(), i, launch);
      executor.run();
      const auto* const output = reinterpret_cast<const Element*>(executor.output().data());
      for (Index i = 0; world.rank() == 2 && i < 40; ++i)
        require(output[i] == brought(0, i, launch), "element {} in launch {} is {}", i, launch, output[i]);
    }
  });
}

TEST(ProgramExecutor, RefusesAWrongProgramOnEveryRank) {
  // Every rank waits for a signal of the other one first.
  const Program ring = make_program("allreduce/ring", {.ranks = 2});
  Program wrong = ring;
  for (RankProgram& rank : wrong.ranks)
    for (ThreadBlock& block : rank.blocks)
      std::erase_if(block.steps, [](const Step& step) { return step.kind == StepKind::relaxed_signal; });
  for (const bool are_processes : {false, true}) {
    const auto body = [&](World& world) {
      try {
        ProgramExecutor executor(world, wrong, 64, {.type = ElementType::i32});
        require(false, "rank {} has taken it", world.rank());
      } catch (const Error& error) {
        require(error.code() == ErrorCode::invalid_use && error.message().find("is not right: ") != std::string::npos,
                "{}", error.message());
      }
      // The world goes on.
      ProgramExecutor right(world, ring, 64, {.type = ElementType::i32});
      right.run();
    };
    are_processes ? launch_processes(2, body) : launch(2, body);
  }
}

TEST(ProgramExecutor, RefusesReductionsThatDiffer) {
  const Error error = error_of_rank([&] {
    launch(2, [&](World& world) {
      ProgramExecutor executor(
          world, plan("sn_allreduce_naivy_2r"), 64,
          {.type = ElementType::i32, .reduction = world.rank() == 0 ? Reduction::sum : Reduction::maximum});
    });
  });
  require_says(error, ErrorCode::mismatch, {"another program, reduction, or number or type of elements"});
}

// The numbers that all ranks give to the counters of signals: each counter has one channel, and none lies beyond the
// end. A rank reads every end of a channel once to know them, however many ranks there are.
TEST(ProgramExecutor, NumbersTheEndsOfChannelsInOnePass) {
  for (const char* const name : {"allreduce/all_pairs", "allreduce/ring", "allreduce/hierarchical", "broadcast/tree"})
    for (const Rank ranks : {1, 2, 6, 32}) {
      Program program = make_program(name, {.ranks = ranks});
      if (ranks > 1) program.ranks[0].peers[0].insert(program.ranks[0].peers[0].begin(), 3, 1);  // several, and one way
      const ChannelEnds ends(program);
      Index all = 0;
      std::set<std::tuple<Rank, std::size_t>> used;
      std::map<std::tuple<Rank, int, Rank>, Index> longest;
      for (Rank rank = 0; rank < ranks; ++rank)
        for (int kind = 0; kind < 2; ++kind) {
          std::map<Rank, Index> seen;
          for (const Rank peer : program.ranks[std::size_t(rank)].peers[kind]) {
            ++all;
            const Index count = ++seen[peer];
            for (const auto& key : {std::tuple(rank, kind, peer), std::tuple(peer, kind, rank)})
              longest[key] = std::max(longest[key], count);
          }
        }
      for (const auto& [key, count] : longest)
        for (Index k = 0; k < count; ++k) {
          const auto& [at, kind, from] = key;
          const std::size_t counter = ends.counter(at, kind, from, k);
          EXPECT_LT(counter, ends.counters_max());
          EXPECT_TRUE(used.emplace(at, counter).second) << name << ": counter " << counter << " of rank " << at;
        }
      EXPECT_EQ(ends.ends_read(), all);
    }
}

TEST(ProgramExecutor, ProvesAProgramOnceInAProcess) {
  const Program program = make_program("allreduce/all_pairs", {.ranks = 4});
  const auto make = [&](Index elements) {
    launch(4, [&](World& world) { ProgramExecutor executor(world, program, elements, {.type = ElementType::i32}); });
  };
  make(64);
  const Index before = programs_verified();
  make(64);
  make(1000);
  EXPECT_EQ(programs_verified(), before);
  Program other = program;
  other.name = "another one";
  launch(4, [&](World& world) { ProgramExecutor executor(world, other, 64, {.type = ElementType::i32}); });
  EXPECT_EQ(programs_verified(), before + 1);
}

TEST(ProgramExecutor, SaysWhichStepWaitsForARankThatHasEnded) {
  const Program program = plan("sn_allreduce_naivy_2r");
  const Error error = error_of_rank([&] {
    launch(2, [&](World& world) {
      ProgramExecutor executor(world, program, 64, {.type = ElementType::i32});
      executor.run();
      if (world.rank() == 0) executor.run();
    });
  });
  require_says(error, ErrorCode::peer_lost, {"rank 1 has finished, but rank 0 waits for step ", " of block "});
}

TEST(ProgramExecutor, SaysWhichStepHasWaitedTooLong) {
  const Program program = plan("sn_allgather_pkt_rppkt_2r");
  const Error error = error_of_rank([&] {
    launch({.ranks = 2, .timeout_ns = 20'000'000'000}, [&](World& world) {
      ProgramExecutor executor(world, program, 64, {.type = ElementType::i32});
      executor.run();
      if (world.rank() == 1) world.barrier();
      world.set_timeout_ns(30'000'000);
      executor.run();
    });
  });
  require_says(error, ErrorCode::timeout, {"for step ", " of block ", "program_executor_test.cpp"});
}

TEST(ProgramExecutor, EndsWhenAPeerIsKilled) {
  const Program program = plan("sn_allgather_pkt_rppkt_2r");
  const Error error = error_of_rank([&] {
    launch_processes({.ranks = 2, .grace_ns = 5'000'000'000}, [&](World& world) {
      ProgramExecutor executor(world, program, 64, {.type = ElementType::i32});
      executor.run();
      world.set_timeout_ns(INT64_MAX);
      if (world.rank() == 1) std::raise(SIGKILL);
      for (;;) executor.run();
    });
  });
  const std::string message = error.what();
  // A rank that does not end would be named.
  EXPECT_NE(message.find("was killed by signal 9"), std::string::npos) << message;
  EXPECT_EQ(message.find("not ended"), std::string::npos) << message;
}

TEST(ProgramExecutor, KeepsItsBuffersWhereTheyAre) {
  const Program program = plan("sn_allgather_pkt_rppkt_2r");
  launch(2, [&](World& world) {
    for (const Index elements : {64, 3}) {  // in the symmetric heap, and gathered from chunks with gaps
      ProgramExecutor executor(world, program, elements, {.type = ElementType::i32});
      const auto input = executor.input(), output = executor.output();
      EXPECT_EQ(Index(input.size()), elements * 4);
      EXPECT_EQ(Index(output.size()), elements * 8);
      for (int launch = 0; launch < 3; ++launch) {
        executor.run();
        EXPECT_EQ(executor.input().data(), input.data());
        EXPECT_EQ(executor.output().data(), output.data());
      }
    }
  });
}

TEST(ProgramExecutor, CountsSteps) {
  const Program program = plan("sn_allgather_pkt_rppkt_2r");
  launch(2, [&](World& world) {
    ProgramExecutor executor(world, program, 64, {.type = ElementType::i32});
    Index own = 0;
    for (const ThreadBlock& block : program.ranks[std::size_t(world.rank())].blocks) own += Index(block.steps.size());
    for (int launch = 1; launch <= 3; ++launch) {
      executor.run();
      EXPECT_EQ(executor.steps(), launch * own);
    }
  });
}

/// So many programs, a part of them where they are simulated or each access is looked at.
std::uint64_t random_programs(On on) {
  const auto cases = static_cast<std::uint64_t>(test_cases());
  if (long_tests()) return cases / (is_simulated(on) ? 1 : 4) + 1;
  if (are_apart(on)) return cases / 50 + 1;
  return cases / (is_sanitized ? 250 : on == On::processes ? 375 : 150) + 1;
}

TEST_P(Plans, random_programs_give_what_they_promise) {
  const std::uint64_t programs = random_programs(GetParam());
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const Program program = random_channel_program(seed, std::min(4, ranks_max(GetParam())));
    const auto ranks = static_cast<int>(program.ranks.size());
    const Index sizes[] = {1, 5, 33, 260};
    const Index each = sizes[seed % (is_simulated(GetParam()) ? 3 : 4)];
    Reduction reduction = Reduction::sum;
    for (const ThreadBlock& block : program.ranks[0].blocks)
      for (const Step& step : block.steps)
        if (step.reduction != Reduction::sum) reduction = step.reduction;
    const auto body = [&](World& world) { launch_and_compare(world, program, each * ranks, reduction); };
    run_once(GetParam(), {.ranks = ranks}, seed, body);
  }
}

/// Each seed is another order of everything; 100 of them in the long tests.
TEST(PlansInSim, give_what_they_promise_under_every_seed) {
  const bool is_long = std::getenv("TRANSHIP_TEST_LONG") != nullptr;
  auto cases = mscclpp_plans();
  for (const PlanCase& one : old_mscclpp_plans()) cases.push_back(one);
  for (const PlanCase& one : cases) {
    const Program program = read_program(read_text(one.path));
    const auto ranks = static_cast<int>(program.ranks.size());
    const Verification verified = verify(program);
    if (!verified.is_right() || !verified.knows_result || ranks > (is_long ? 8 : 2)) continue;
    for (std::uint64_t seed = 0; seed < (is_long ? 100u : is_sanitized ? 1u : 3u); ++seed) {
      const auto body = [&](World& world) { launch_and_compare(world, program, 3 * ranks, Reduction::sum); };
      run_once(seed % 2 == 0 ? On::sim : On::hosts, {.ranks = ranks}, seed, body);
    }
  }
}

/// Plans with a mistake that the verifier accepts give what they promise all the same.
TEST(PlansInSim, accepted_mutants_give_what_they_promise) {
  int ran = 0;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program right = read_program(read_text(one.path));
    if (!one.result.starts_with("ok") || right.ranks.size() > 2 || count_steps(right) > 44) continue;
    int accepted = 0;
    for_each_mutant(right, [&](const Program& mutant, const std::string& what) {
      const int each_max = is_brief() ? 3 : 12;
      if (accepted == each_max) return;
      try {
        const Verification said = verify(mutant);
        if (!said.is_right() || !said.knows_result) return;
      } catch (const Error&) {
        return;
      }
      ++accepted;
      const auto body = [&](World& world) {
        launch_and_compare(world, mutant, 3 * Index(mutant.ranks.size()), Reduction::sum);
      };
      SCOPED_TRACE(one.name + ": " + what);
      for (std::uint64_t seed = 0; seed < 3; ++seed, ++ran)
        EXPECT_NO_THROW(run_once(On::sim, {.ranks = static_cast<int>(mutant.ranks.size())}, seed, body));
    });
  }
  EXPECT_GT(ran, is_brief() ? 5 : 20);
}

/// Each rank reads the inputs of all without having asked whether they are there: right where all ranks meet between
/// launches, and nowhere else.
Program hasty_allreduce(Rank ranks) {
  ProgramBuilder builder("allreduce", ranks, {1, 1, 0});
  for (Rank rank = 0; rank < ranks; ++rank) {
    std::vector<Chunks> sources;
    for (Rank i = 0; i < ranks; ++i) sources.push_back({(rank + i) % ranks, BufferKind::input, 0, 1});
    builder.at(rank).move(StepKind::read_reduce, sources, {{rank, BufferKind::output, 0, 1}});
  }
  return std::move(builder.program());
}

TEST_P(Plans, of_ranks_that_must_meet_between_launches) {
  const Program program = hasty_allreduce(2);
  ASSERT_TRUE(verify(program).needs_meeting);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto body = [&](World& world) { launch_and_compare(world, program, 5, Reduction::sum); };
    run_once(GetParam(), {.ranks = 2}, seed, body);
  }
}

/// What is combined or copied for peers is written in one of two ways, which samples choose between.
TEST(ProgramExecutor, WritesLongPartsToPeersThatReadThem) {
  constexpr Index least = (64 << 10) / Index(sizeof(Element));
  for (const On on : {On::threads, On::processes})
    for (const Rank ranks : {2, 3})
      for (const char* name : {"allreduce/all_pairs", "allreduce/copies", "allreduce/halving_doubling"}) {
        const Program program = make_program(name, {.ranks = ranks});
        for (const Index each : {least, least + 1, 3 * least - 2, 20 * least + 3})
          if (!is_sanitized || (each < 2 * least && on == On::threads))
            run_on(on, ranks, [&](World& world) { launch_and_compare(world, program, each * ranks, Reduction::sum); });
      }
}

// --- Programs that promise nothing, whose callers know where chunks begin
// ----------------------------------------------

/// Where element `i` of an output comes from.
struct Origin {
  Rank rank = 0;
  Index element = 0;
};

/// Launches it on memory of the caller, in and out of place, and on that of the executor. `each` is what a chunk has.
template <class OriginOf>
void launch_and_compare_chunks(World& world, const Program& program, Index elements, Index each,
                               const OriginOf& origin_of) {
  constexpr Element guard = 77;
  ProgramExecutor executor(world, program, elements, {.type = ElementType::i32});
  const RankProgram& own = program.ranks[std::size_t(world.rank())];
  const Index brings = own.chunks[0] * each, takes = own.chunks[1] * each;
  require(executor.input_elements() == brings, "an input of {}, not {}", executor.input_elements(), brings);
  require(executor.output_elements() == takes, "an output of {}, not {}", executor.output_elements(), takes);
  require(Index(executor.input().size()) == brings * 4 && Index(executor.output().size()) == takes * 4,
          "buffers of {} and {} bytes", executor.input().size(), executor.output().size());
  std::vector<Element> input(std::size_t(brings) + 2, guard), output(std::size_t(std::max(brings, takes)) + 2, guard);
  int launch = 0;
  for (const Data where : {Data::apart, Data::of_the_executor, Data::in_one_place, Data::apart, Data::of_the_executor,
                           Data::of_the_executor}) {
    std::fill(output.begin(), output.end(), guard);
    const bool is_own = where == Data::of_the_executor;
    Element* const from = is_own                        ? reinterpret_cast<Element*>(executor.input().data())
                          : where == Data::in_one_place ? output.data() + 1
                                                        : input.data() + 1;
    const Element* const to = is_own ? reinterpret_cast<const Element*>(executor.output().data()) : output.data() + 1;
    for (Index i = 0; i < brings; ++i) from[i] = brought(world.rank(), i, launch);
    if (is_own)
      executor.run();
    else
      executor.run(from, output.data() + 1);
    for (Index i = 0; i < takes; ++i) {
      const Origin origin = origin_of(world.rank(), i);
      require(to[i] == brought(origin.rank, origin.element, launch), "element {} of rank {} in launch {} is {}", i,
              world.rank(), launch, to[i]);
    }
    require(output.front() == guard && output.back() == guard && input.back() == guard, "beside what rank {} has",
            world.rank());
    ++launch;
  }
}

TEST_P(Plans, give_each_rank_what_its_own_chunks_hold) {
  const Program gather = gather_to(0, 3), gather_last = gather_to(2, 3), scatter = scatter_from(1, 3);
  for (const Program* program : {&gather, &gather_last, &scatter})
    ASSERT_TRUE(verify(*program).is_right()) << verify(*program).text();
  for (const Index each : {4, 1, 3, 0, 1000})
    run_on(GetParam(), 3, [&](World& world) {
      const auto from_all = [&](Rank, Index i) { return Origin{Rank(i / each), i % each}; };
      launch_and_compare_chunks(world, gather, each, each, from_all);
      launch_and_compare_chunks(world, gather_last, each, each, from_all);
      launch_and_compare_chunks(world, scatter, 3 * each, each, [&](Rank rank, Index i) {
        return Origin{1, rank * each + i};
      });
    });
}

/// Each rank swaps the two chunks of its input: by copies, and by what cuts chunks into smaller parts.
std::vector<Program> swaps() {
  std::vector<Program> out;
  using enum BufferKind;
  const auto add = [&](const char* name, auto&& add_steps) {
    ProgramBuilder builder("swap", 2, {2, 2, 2});
    builder.program().name = name;
    for (Rank rank = 0; rank < 2; ++rank) add_steps(builder, rank);
    out.push_back(std::move(builder.program()));
  };
  const auto copy_all = [](ProgramBuilder& builder, Rank rank) {
    for (Index i = 0; i < 2; ++i)
      builder.move(StepKind::copy, {chunk_of(rank, input, i)}, {chunk_of(rank, output, 1 - i)});
  };
  add("copies", [&](ProgramBuilder& builder, Rank rank) { copy_all(builder.at(rank), rank); });
  add("packets", [&](ProgramBuilder& builder, Rank rank) {
    builder.at(rank).move(StepKind::copy_packets, {{rank, input, 0, 2}}, {{rank, scratch, 0, 2}});
    for (Index i = 0; i < 2; ++i)
      builder.move(StepKind::unpack_packets, {chunk_of(rank, scratch, i)}, {chunk_of(rank, output, 1 - i)});
  });
  add("shares", [&](ProgramBuilder& builder, Rank rank) {
    for (int share = 0; share < 2; ++share)
      for (Index i = 0; i < 2; ++i) {
        builder.at(rank, std::size_t(share))
            .move(StepKind::copy, {chunk_of(rank, input, i)}, {chunk_of(rank, output, 1 - i)});
        builder.last().share = share;
        builder.last().shares = 2;
      }
  });
  add("a loop", [&](ProgramBuilder& builder, Rank rank) {
    copy_all(builder.at(rank), rank);
    ThreadBlock& block = builder.program().ranks[std::size_t(rank)].blocks[0];
    Step loop{.kind = StepKind::pipeline};
    loop.pipeline =
        std::make_shared<const Pipeline>(Pipeline{.unit_bytes = 64, .chunks = 1, .steps = std::move(block.steps)});
    block.steps = {std::move(loop)};
  });
  return out;
}

TEST_P(Plans, cut_every_size_alike_whatever_their_steps_cut) {
  const std::vector<Program> all = swaps();
  for (const Program& program : all)
    ASSERT_TRUE(verify(program).is_right()) << program.name << ": " << verify(program).text();
  for (const Index each : {3, 1, 4, 0, 101})
    run_on(GetParam(), 2, [&](World& world) {
      for (const Program& program : all)
        launch_and_compare_chunks(world, program, 2 * each, each, [&](Rank rank, Index i) {
          return Origin{rank, (i + each) % (2 * each)};
        });
    });
}

TEST(ProgramExecutor, RefusesElementsThatAreNoEqualChunks) {
  for (const Program& program : swaps())
    require_says(
        error_of_rank([&] {
          launch(2, [&](World& world) { ProgramExecutor executor(world, program, 7, {.type = ElementType::i32}); });
        }),
        ErrorCode::invalid_use, {"7 elements", "2 equal parts"});
}

/// Rank r combines chunk r of all ranks where they are.
Program allreduce_by_switch(Reduction reduction) {
  ProgramBuilder builder("allreduce", 2, {2, 2, 0});
  builder.program().in_place = true;
  for (Rank rank = 0; rank < 2; ++rank) {
    builder.at(rank).nop().signal(StepKind::relaxed_signal, {1 - rank}).nop();
    builder.signal(StepKind::relaxed_wait, {1 - rank}).nop();
    RankProgram& own = builder.program().ranks[std::size_t(rank)];
    own.switches = {{.buffer = BufferKind::input, .ranks = {0, 1}}};
    own.blocks[0].channels[int(ChannelKind::switched)] = {0};
    Step step{.kind = StepKind::switch_reduce_broadcast, .channel = ChannelKind::switched, .reduction = reduction};
    step.sources = 1;
    step.operands.assign(2, {.buffer = BufferKind::input, .via = 0, .first = rank, .count = 1});
    builder.add(step).nop();
    builder.signal(StepKind::signal, {1 - rank}).nop().signal(StepKind::wait, {1 - rank}).nop();
  }
  return std::move(builder.program());
}

TEST(ProgramTrial, ComparesWithTheReductionThatASwitchMakes) {
  for (const Reduction reduction : {Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum}) {
    const Program program = allreduce_by_switch(reduction);
    ASSERT_TRUE(verify(program).is_right()) << verify(program).text();
    launch(2, [&](World& world) {
      const ProgramTrialResult result =
          try_program(world, program, {.program = {.type = ElementType::i32}, .elements = 100, .launches = 3});
      EXPECT_EQ(result.compared, 300);
    });
  }
}

TEST(ProgramTrial, ComparesWithTheReductionOfALoop) {
  Program program = hasty_allreduce(2);
  for (RankProgram& rank : program.ranks) {
    std::vector<Step>& steps = rank.blocks[0].steps;
    steps[0].reduction = Reduction::maximum;
    Step loop{.kind = StepKind::pipeline};
    loop.pipeline = std::make_shared<const Pipeline>(Pipeline{.unit_bytes = 64, .chunks = 1, .steps = steps});
    steps = {std::move(loop)};
  }
  ASSERT_TRUE(verify(program).is_right()) << verify(program).text();
  launch(2, [&](World& world) {
    const ProgramTrialResult result =
        try_program(world, program, {.program = {.type = ElementType::i32}, .elements = 100, .launches = 3});
    EXPECT_EQ(result.compared, 300);
  });
}

TEST(SharedPrograms, AreMadeOnceWhileARankHoldsThem) {
  int made = 0;
  const auto make = [&] {
    ++made;
    return hasty_allreduce(2);
  };
  {
    const std::shared_ptr<const Program> first = shared_program("of a test", make);
    EXPECT_EQ(shared_program("of a test", make), first);
    EXPECT_NE(shared_program("of another test", make), first);
    EXPECT_EQ(made, 2);
  }
  EXPECT_EQ(shared_program("of a test", make)->ranks.size(), 2u);
  EXPECT_EQ(made, 3);
}

}  // namespace
}  // namespace tranship::test
