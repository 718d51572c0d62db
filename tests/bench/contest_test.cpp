#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <harness/contest.hpp>
#include <harness/contest_case.hpp>
#include <harness/contest_row.hpp>
#include <harness/league.hpp>

#include <tranship/base/error.hpp>
#include <tranship/base/fail.hpp>

namespace tranship::bench {
namespace {

using contest::Freshness;

/// Time that passes only when a contender says so.
std::int64_t fake_now_ns = 0;
std::int64_t fake_clock_ns() {
  return fake_now_ns;
}

struct Call {
  std::string who;
  int ops;
};

class FakeContender final : public Contender {
 public:
  FakeContender(std::string name, std::vector<MethodResult> methods, double op_ns, std::vector<Call>& calls)
      : name_(std::move(name)), methods_(std::move(methods)), op_ns_(op_ns), calls_(calls) {}

  const std::string& name() const override { return name_; }
  std::vector<MethodResult> open(const contest::Work&) override { return methods_; }
  std::vector<double> run(int method, Freshness, int ops) override {
    if (runs_left_-- <= 0) throw_error(ErrorCode::io, "{}: the program has ended", name_);
    calls_.push_back({name_ + methods_[method].name, ops});
    fake_now_ns += std::int64_t(op_ns_) * ops;
    return std::vector<double>(ops, op_ns_);
  }
  void close() override { closed = true; }

  bool closed = false;
  int runs_left_ = 1'000'000;

 private:
  std::string name_;
  std::vector<MethodResult> methods_;
  double op_ns_;
  std::vector<Call>& calls_;
};

ContestOptions fake_options() {
  return {.rounds = 9, .turn_ns = 1000, .clock_ns = fake_clock_ns};
}

TEST(Contest, MethodsOfAllProgramsTakeTurnsAndFillTheirTurns) {
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Contender>> contenders = {
      std::make_shared<FakeContender>("a", std::vector<MethodResult>{{"1"}, {"2"}}, 100, calls), nullptr,
      std::make_shared<FakeContender>("b", std::vector<MethodResult>{{"1"}}, 5000, calls)};
  Contest contest(contenders, {}, fake_options());
  const auto scores = contest.scores(Freshness::fresh);
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_EQ(scores[1].method, "2");
  EXPECT_EQ(scores[1].median_ns, 100);
  EXPECT_EQ(scores[2].contender, "b");
  EXPECT_EQ(scores[2].median_ns, 5000);
  std::string order;
  ASSERT_EQ(calls.size(), 3u + 27);
  for (std::size_t i = 3; i < calls.size(); ++i) {
    order += calls[i].who + " ";
    EXPECT_EQ(calls[i].ops, calls[i].who == "b1" ? 1 : 10);
  }
  EXPECT_EQ(order.substr(0, 27), "a1 a2 b1 a2 b1 a1 b1 a1 a2 ");
}

TEST(Contest, WrongResultsAreReportedAndNotTimed) {
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Contender>> contenders = {
      std::make_shared<FakeContender>("a", std::vector<MethodResult>{{"1", 7}, {"2"}}, 100, calls)};
  Contest contest(contenders, {}, fake_options());
  ASSERT_EQ(contest.absences().size(), 1u);
  EXPECT_EQ(contest.absences()[0].method, "1");
  EXPECT_EQ(contest.absences()[0].reason, "wrong in 7 cells");
  EXPECT_EQ(contest.scores(Freshness::warm).size(), 1u);
  for (const Call& call : calls) EXPECT_EQ(call.who, "a2");
}

TEST(Contest, GoesOnWithoutAProgramThatDies) {
  std::vector<Call> calls;
  auto mortal = std::make_shared<FakeContender>("a", std::vector<MethodResult>{{"1"}}, 100, calls);
  mortal->runs_left_ = 4;
  auto other = std::make_shared<FakeContender>("b", std::vector<MethodResult>{{"1"}}, 100, calls);
  std::vector<std::shared_ptr<Contender>> contenders = {mortal, other};
  {
    Contest contest(contenders, {}, fake_options());
    const auto scores = contest.scores(Freshness::fresh);
    ASSERT_EQ(scores.size(), 1u);
    EXPECT_EQ(scores[0].contender, "b");
    ASSERT_EQ(contest.absences().size(), 1u);
    EXPECT_EQ(contest.absences()[0].contender, "a");
    EXPECT_EQ(contenders[0], nullptr);
  }
  EXPECT_TRUE(other->closed);
  EXPECT_FALSE(mortal->closed);
}

TEST(Contest, RefusesTooFewRounds) {
  std::vector<std::shared_ptr<Contender>> nobody;
  auto options = fake_options();
  options.rounds = 8;
  EXPECT_THROW(Contest(nobody, {}, options), Error);
}

TEST(ContestRow, GoalsAreSetAgainstTheBestOfTheirRivals) {
  const std::vector<Score> scores = {{"tranship", "tranship", 2e6},  {"tranship", "limit", 1e6},
                                     {"Open MPI", "Alltoallw", 6e6}, {"MPICH", "packed Alltoallv", 5e6},
                                     {"Open MPI", "window", 1.5e6},  {"FFTW-MPI", "", 8e6}};
  const Row row = row_of({.name = "turn",
                          .freshness = Freshness::warm,
                          .goals = {{Rivals::limit, 0.4},
                                    {Rivals::mpi_calls, 2.5},
                                    {Rivals::windows, 1},
                                    {Rivals::fftw, 4},
                                    {Rivals::scalapack, 8}}},
                         scores, {{"PETSc", "", "has ended"}});
  EXPECT_EQ(row.full_name(), "turn, warm");
  EXPECT_EQ(row.unit, "ms");
  EXPECT_EQ(row.ours, 2);
  EXPECT_EQ(row.limit, 1);
  ASSERT_EQ(row.peers.size(), 4u);
  EXPECT_EQ(row.peers[3].first, "FFTW-MPI");
  // Rivals who are not there set no goal.
  ASSERT_EQ(row.goals.size(), 4u);
  EXPECT_EQ(row.goals[1].value, 5);
  EXPECT_TRUE(row.reaches(row.goals[0]));
  EXPECT_TRUE(row.reaches(row.goals[1]));
  EXPECT_FALSE(row.reaches(row.goals[2]));
  EXPECT_TRUE(row.reaches(row.goals[3]));
  ASSERT_EQ(row.absent.size(), 1u);
  EXPECT_EQ(row.absent[0].first, "PETSc");
}

TEST(ContestRow, BytesMakeItARate) {
  const Row row = row_of({.name = "turn", .bytes = 4e9}, {{"tranship", "tranship", 2e9}}, {});
  EXPECT_EQ(row.unit, "GB/s");
  EXPECT_EQ(row.better, Better::higher);
  EXPECT_EQ(row.ours, 2);
}

TEST(ContestRow, StepsMakeItATimeOfEach) {
  const std::vector<Score> scores = {{"tranship", "tranship", 4000}, {"MPICH", "window", 3000}, {"MPICH", "RMA", 9000}};
  const Row row = row_of({.name = "turn", .steps = 1000, .goals = {{Rivals::by_call, 2}}}, scores, {});
  EXPECT_EQ(row.unit, "ns");
  EXPECT_EQ(row.better, Better::lower);
  EXPECT_EQ(row.ours, 4);
  ASSERT_EQ(row.goals.size(), 1u);
  EXPECT_EQ(row.goals[0].value, 9);
}

TEST(ContestRow, IsAboutOursInThreadsOrInProcesses) {
  const std::vector<Score> scores = {{ours_in_threads, "tranship", 2e6},
                                     {ours_in_threads, "limit", 1e6},
                                     {ours_in_threads, "lines", 1.5e6},
                                     {ours_in_processes, "tranship", 3e6},
                                     {ours_in_processes, "limit", 1.25e6},
                                     {ours_in_processes, "lines", 1.75e6},
                                     {"MPICH", "window", 4e6}};
  RowRule rule = {.name = "turn", .goals = {{Rivals::limit, 0.4}, {Rivals::everybody, 1}}};
  rule.our_ranks = RanksAre::processes;
  const Row processes = row_of(rule, scores, {{ours_in_threads, "limit", "wrong in 1 cells"}});
  EXPECT_EQ(processes.our_ranks, RanksAre::processes);
  EXPECT_EQ(processes.ours, 3);
  EXPECT_EQ(processes.limit, 1.25);
  EXPECT_EQ(processes.line_bound, 1.75);
  ASSERT_EQ(processes.peers.size(), 1u);
  ASSERT_EQ(processes.goals.size(), 2u);
  EXPECT_EQ(processes.goals[0].value, 1.25);
  EXPECT_EQ(processes.goals[1].value, 4);
  EXPECT_TRUE(processes.absent.empty());
  rule.our_ranks = RanksAre::threads;
  const Row threads = row_of(rule, scores, {});
  EXPECT_EQ(threads.ours, 2);
  EXPECT_EQ(threads.line_bound, 1.5);
  EXPECT_EQ(threads.goals[0].value, 1);
  EXPECT_THROW(row_of(rule, scores, {{ours_in_threads, "limit", "wrong in 1 cells"}}), Error);
}

TEST(ContestCase, RowsAreCalledAfterWhatOurRanksAre) {
  ContestCase c{.name = "turn"};
  EXPECT_EQ(row_name(c, RanksAre::threads), "turn");
  EXPECT_EQ(row_name(c, RanksAre::processes), "turn, processes");
  c.threads_suffix = ", threads";
  EXPECT_EQ(row_name(c, RanksAre::threads), "turn, threads");
}

TEST(ContestRow, OursMustBeThereAndRight) {
  EXPECT_THROW(row_of({.name = "turn"}, {{"MPICH", "window", 1}}, {}), Error);
  EXPECT_THROW(row_of({.name = "turn"}, {{"tranship", "tranship", 1}}, {{"tranship", "limit", "wrong in 1 cells"}}),
               Error);
}

}  // namespace
}  // namespace tranship::bench
