// A program of MPI that makes worlds of its communicators, as users write one: compiled with their <mpi.h> and linked
// to their MPI, once for each. Each process of a job of 4 or more runs all tests; the argument is the level of threads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <mpi.h>

#include <tranship/mpi.hpp>
#include <tranship/tranship.hpp>

#include "support/error_of.hpp"
#include "support/job.hpp"

namespace tranship::test {
namespace {

constexpr int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};

int rank_in(MPI_Comm comm) {
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
int size_of(MPI_Comm comm) {
  int size = -1;
  MPI_Comm_size(comm, &size);
  return size;
}

void expect_refused(const std::string& error, const std::string& code, const std::string& part) {
  EXPECT_TRUE(error.starts_with(code) && error.find(part) != std::string::npos) << error;
}

double entry(const Indices& cell) {
  return double(cell[0]) + 1e-3 * double(cell[1]);
}

/// Says on which of so many hosts this process is: blocks of the job.
void be_on_a_host_of(int hosts) {
  const int host = rank_in(MPI_COMM_WORLD) * hosts / size_of(MPI_COMM_WORLD);
  setenv("TRANSHIP_HOST", ("host " + std::to_string(host)).c_str(), 1);
}

/// Whole redistributions, puts and atomics, which only the right world gets right.
void use(World& world) {
  const int ranks = world.size();
  Array<double> rows(world, distribution({96, 64}, grid(ranks, 1), {block(), whole()}));
  Array<double> columns(world, distribution({96, 64}, grid(1, ranks), {whole(), block()}));
  Redistribution turn(rows, columns);
  rows.fill_owned(entry);
  turn();
  EXPECT_EQ(columns.count_wrong(entry), 0);
  const auto sums = world.allocate<std::uint64_t>(1);
  for (Rank peer = 0; peer < ranks; ++peer) world.context().add<std::uint64_t>(sums, 1 + world.rank(), peer);
  world.barrier();
  EXPECT_EQ(sums[0], std::uint64_t(ranks) * (ranks + 1) / 2);
  // More than a message holds.
  std::vector<std::int32_t> mine(100'000);
  std::iota(mine.begin(), mine.end(), 7 * world.rank());
  const auto large = world.allocate<std::int32_t>(mine.size());
  world.context().put(large, std::span(mine), (world.rank() + 1) % ranks);
  world.barrier();
  EXPECT_EQ(large[99'999], 7 * ((world.rank() + ranks - 1) % ranks) + 99'999);
  world.barrier();
}

class Communicators : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { be_on_a_host_of(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Hosts, Communicators, ::testing::Values(1, 2, 3), ::testing::PrintToStringParamName());

bool has_threads() {
  int level = -1;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

TEST_P(Communicators, make_a_world_with_their_ranks) {
  RankScope scope = join_mpi(MPI_COMM_WORLD);
  EXPECT_EQ(scope.world().rank(), rank_in(MPI_COMM_WORLD));
  EXPECT_EQ(scope.world().size(), size_of(MPI_COMM_WORLD));
  const char* const by = GetParam() == 1 ? "" : has_threads() ? "a thread" : "ranks";
  EXPECT_EQ(scope.world().progress().substr(0, std::strlen(by)), by) << scope.world().progress();
  EXPECT_EQ(scope.world().progress().empty(), GetParam() == 1);
  use(scope.world());
}

TEST_P(Communicators, of_parts_of_a_job_may_be_freed_at_once) {
  // In the opposite order, so that ranks of the world are other ones than those of the job.
  const int me = rank_in(MPI_COMM_WORLD);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &part);
  const int rank = rank_in(part), size = size_of(part);
  RankScope scope = join_mpi(part);
  MPI_Comm_free(&part);
  EXPECT_EQ(scope.world().rank(), rank);
  EXPECT_EQ(scope.world().size(), size);
  use(scope.world());
}

TEST_P(Communicators, give_several_worlds_that_end_in_any_order) {
  const int me = rank_in(MPI_COMM_WORLD);
  for (const bool whole_first : {true, false}) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &part);
    std::optional<RankScope> of_all(join_mpi(MPI_COMM_WORLD)), again(join_mpi(MPI_COMM_WORLD)), of_part(join_mpi(part));
    use(of_all->world());
    use(of_part->world());
    use(again->world());
    use(of_all->world());
    (whole_first ? of_all : of_part).reset();
    use(again->world());
    use((whole_first ? of_part : of_all)->world());
    (whole_first ? of_part : of_all).reset();
    use(again->world());
    again.reset();
    MPI_Comm_free(&part);
  }
}

/// Far from the minute that a rank that leaves would give the others of other machines to leave, too.
class WithinHalfAMinute {
 public:
  ~WithinHalfAMinute() { EXPECT_LT(MPI_Wtime() - begin_, 30); }

 private:
  double begin_ = MPI_Wtime();
};

TEST_P(Communicators, give_worlds_that_each_rank_ends_in_an_order_of_its_own) {
  if (!has_threads() && GetParam() > 1) GTEST_SKIP() << "no thread serves a world that this rank has left";
  const WithinHalfAMinute limit;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::optional<RankScope>> worlds;
    for (int i = 0; i < 3; ++i) worlds.emplace_back(join_mpi(MPI_COMM_WORLD));
    for (auto& one : worlds) use(one->world());
    for (int i = 0; i < 3; ++i) worlds[std::size_t(rank_in(MPI_COMM_WORLD) + round + i) % 3].reset();
  }
}

TEST_P(Communicators, give_worlds_whose_first_leaver_waits_for_none) {
  if (!has_threads() && GetParam() > 1) GTEST_SKIP() << "no thread serves a world that this rank has left";
  const WithinHalfAMinute limit;
  const int me = rank_in(MPI_COMM_WORLD);
  std::optional<RankScope> scope(join_mpi(MPI_COMM_WORLD));
  use(scope->world());
  const auto word = scope->world().allocate<int>(1);
  word[0] = 5 + me;
  scope->world().barrier();
  // The others still read what it has left, and leave when it says so.
  if (me == 0) {
    scope.reset();
    for (int rank = 1; rank < size_of(MPI_COMM_WORLD); ++rank) MPI_Send(&me, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
  } else {
    int came = -1;
    MPI_Recv(&came, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(scope->world().context().g(word, 0), 5);
  }
  scope.reset();
  // What those of the world before still send does not come here.
  use(join_mpi(MPI_COMM_WORLD).world());
}

// Its messages and those of the world never meet, though the program takes whatever comes.
TEST_P(Communicators, stay_the_programs_own) {
  const int me = rank_in(MPI_COMM_WORLD), ranks = size_of(MPI_COMM_WORLD), next = (me + 1) % ranks;
  RankScope scope = join_mpi(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    const int sent = 1000 * round + me;
    int came = -1;
    MPI_Request requests[2];
    MPI_Irecv(&came, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    use(scope.world());
    MPI_Isend(&sent, 1, MPI_INT, next, round + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(came, 1000 * round + (me + ranks - 1) % ranks);
    int sum = 0;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sum, ranks * (ranks - 1) / 2);
  }
}

TEST_P(Communicators, are_refused_on_a_thread_that_may_not_call_mpi) {
  int level = -1;
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) GTEST_SKIP() << "every thread may call this MPI";
  const char* const named = level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE";
  const auto on_a_thread = [](auto join) {
    std::string error;
    std::thread([&] { error = error_of(join); }).join();
    return error;
  };
  expect_refused(on_a_thread([] { join_mpi(MPI_COMM_WORLD); }), "invalid_use", named);
  expect_refused(on_a_thread([] { RankScope::join(); }), "invalid_use", named);
}

TEST_P(Communicators, are_refused_where_heaps_differ) {
  const std::size_t heap_bytes = std::size_t(rank_in(MPI_COMM_WORLD) == 2 ? 8 : 4) << 20;
  expect_refused(error_of([&] { join_mpi(MPI_COMM_WORLD, {.heap_bytes = heap_bytes}); }), "mismatch", "rank 2");
}

TEST_P(Communicators, are_refused_on_all_ranks_for_the_settings_of_one) {
  if (rank_in(MPI_COMM_WORLD) == 1) setenv("TRANSHIP_MPI_SIZES", "1,2", 1);
  expect_refused(error_of([] { join_mpi(MPI_COMM_WORLD); }), "bad_text", "TRANSHIP_MPI_SIZES");
  if (rank_in(MPI_COMM_WORLD) == 1) setenv("TRANSHIP_MPI_SIZES", "8192,262144,1073741824,16", 1);
  expect_refused(error_of([] { join_mpi(MPI_COMM_WORLD); }), "mismatch", "TRANSHIP_MPI_SIZES");
  unsetenv("TRANSHIP_MPI_SIZES");
}

// MPI writes what the rank that has given up has asked for; checkers of memory see where.
TEST_P(Communicators, are_waited_for_until_the_deadline_and_then_come) {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  const int me = rank_in(own), ranks = size_of(own);
  const auto join_soon = [&] { join_mpi(own, {.timeout_ns = 100'000'000}); };
  const std::string names = "rank " + std::to_string(me) + " of " + std::to_string(ranks);
  if (me != 0) expect_refused(error_of(join_soon), "timeout", names);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) expect_refused(error_of(join_soon), "timeout", names);
  MPI_Barrier(MPI_COMM_WORLD);
  use(join_mpi(MPI_COMM_WORLD).world());
}

TEST(NoCommunicators, are_null_and_those_between_two_groups) {
  expect_refused(error_of([] { join_mpi(MPI_COMM_NULL); }), "invalid_use", "MPI_COMM_NULL");
  const int me = rank_in(MPI_COMM_WORLD);
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 5, &between);
  expect_refused(error_of([&] { join_mpi(between); }), "invalid_use", "intercommunicator");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

bool has_failed_by_now() {
  return ::testing::UnitTest::GetInstance()->Failed();
}

}  // namespace
}  // namespace tranship::test

int main(int count, char** arguments) {
  using namespace tranship;
  using namespace tranship::test;
  ::testing::InitGoogleTest(&count, arguments);
  const int wanted = count > 1 ? std::atoi(arguments[1]) : 3;
  expect_refused(error_of([] { join_mpi(MPI_COMM_WORLD); }), "invalid_use", "not been initialised");
  int level = -1;
  MPI_Init_thread(&count, &arguments, levels[wanted], &level);
  if (RUN_ALL_TESTS() != 0) std::puts("some tests have failed");

  // Two worlds that are there still when MPI ends, one that needs its messages and one that does not.
  be_on_a_host_of(2);
  RankScope apart = join_mpi(MPI_COMM_WORLD);
  be_on_a_host_of(1);
  RankScope together = join_mpi(MPI_COMM_WORLD);
  use(apart.world());
  use(together.world());
  const int me = rank_in(MPI_COMM_WORLD), ranks = size_of(MPI_COMM_WORLD);
  const auto word = apart.world().allocate<int>(1);
  tell_launcher(me, has_failed_by_now());
  MPI_Finalize();
  expect_refused(error_of([&] { apart.world().context().p(word, 1, (me + ranks / 2) % ranks); }), "invalid_use",
                 "MPI_Finalize");
  use(together.world());
  expect_refused(error_of([] { join_mpi(MPI_COMM_WORLD); }), "invalid_use", "finalised");
  const bool has_failed = has_failed_by_now();
  tell_launcher(me, has_failed);
  return has_failed ? 1 : 0;
}
