// Reductions of meetings on every back-end, and errors that become those of all ranks.
#include "tranship/fabric/agreement.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/fabric/sim/simulate.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

using ::testing::Combine;
using ::testing::Values;

class Agreements : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Agreements,
                         Combine(Values(On::threads, On::sim, On::messaged, On::hosts), Values(1, 2, 3, 5, 6, 7, 12)),
                         OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnApart, Agreements,
                         Combine(Values(On::processes, On::apart, On::dealt, On::sub_messaged, On::listed_hosts),
                                 Values(5)),
                         OnRanks::name);

constexpr Call agreement{.kind = CallKind::agreement};

/// Sums count each member once; the list shows in which order its parts were joined, and that all have one.
void reduce_and_spread(World& world) {
  struct Record {
    std::int64_t sum, least, most;
    std::array<std::uint64_t, 4> some;
  };
  Team& team = world.team();
  const std::int64_t ranks = world.size(), mine = world.rank();
  Record record{.sum = mine + 1, .least = mine, .most = mine, .some = {}};
  record.some[std::size_t(mine % 4)] = std::uint64_t(mine) * 7 + 1;
  for (int round = 0; round < 3; ++round) {
    const Record all = team.reduce(record, [](Record a, const Record& b) {
      a.sum += b.sum;
      a.least = std::min(a.least, b.least);
      a.most = std::max(a.most, b.most);
      for (int i = 0; i < 4; ++i) a.some[std::size_t(i)] += b.some[std::size_t(i)];
      return a;
    });
    require(all.sum == ranks * (ranks + 1) / 2, "a sum of {}", all.sum);
    require(all.least == 0 && all.most == ranks - 1, "from {} to {}", all.least, all.most);
    const std::uint64_t some = std::accumulate(all.some.begin(), all.some.end(), std::uint64_t(0));
    require(some == std::uint64_t(7 * ranks * (ranks - 1) / 2 + ranks), "{} in all", some);
    for (Rank root = 0; root < world.size(); root += std::max(1, world.size() / 3))
      for (const std::size_t bytes : {std::size_t(0), std::size_t(9), std::size_t(5000)}) {
        std::vector<std::uint8_t> data(bytes, std::uint8_t(mine + 1));
        world.broadcast(data.data(), bytes, root);
        require(std::count(data.begin(), data.end(), std::uint8_t(root + 1)) == std::ptrdiff_t(bytes), "of rank {}",
                root);
      }
    for (const std::size_t bytes : {std::size_t(1), std::size_t(3000)}) {
      std::vector<std::uint8_t> own(bytes, std::uint8_t(mine + 3)), gathered(bytes * std::size_t(ranks));
      world.all_gather(own.data(), bytes, gathered.data());
      for (std::size_t i = 0; i < gathered.size(); ++i)
        require(gathered[i] == std::uint8_t(i / bytes + 3), "byte {} of {} is {}", i, bytes, gathered[i]);
    }
  }
}

TEST_P(Agreements, all_members_have_what_all_bring) {
  run([](World& world) { reduce_and_spread(world); });
}

TEST(ManyRanks, more_than_read_each_other_agree) {
  simulate({.ranks = 300, .order = OrderChecks::off, .heap_bytes = std::size_t(1) << 20}, reduce_and_spread);
}

TEST_P(Agreements, an_error_of_one_rank_is_that_of_all_and_all_go_on) {
  run([](World& world) {
    const auto fails = [&](Rank rank) { return rank % 3 == 1; };  // the others have no error of their own
    const std::string text = fmt::format("disk {} is gone {}", world.rank(), std::string(1500, 'x'));
    const Result<void> mine =
        fails(world.rank()) ? Result<void>(make_error(ErrorCode::io, "{}", text)) : Result<void>();
    for (int round = 0; round < 2 && world.size() > 1; ++round) {
      const Error seen = error_of_rank([&] { agree(world.team(), agreement, mine, "cannot go on", CallSite::here()); });
      if (fails(world.rank())) {
        require_says(seen, ErrorCode::io, {text.c_str()});
      } else {
        require_says(seen, ErrorCode::io, {"rank 1 cannot go on: disk 1 is gone xxx", "x (rank ", "agreement_test"});
        require(seen.peer == 1, "{}", seen.peer);
      }
      const Error as_it_is = error_of_rank([&] { agree(world.team(), agreement, mine, "", CallSite::here()); });
      if (!fails(world.rank())) require(as_it_is.message().find("disk 1 is gone") == 0, "{}", as_it_is.message());
    }
    const int most = agree(
        world.team(), agreement, {}, world.rank(), [](int a, int b) { return std::max(a, b); }, "", CallSite::here());
    require(most == world.size() - 1, "{}", most);
  });
}

TEST_P(Agreements, reductions_that_differ_are_named) {
  run([](World& world) {
    if (world.size() == 1) return;
    const Rank other = world.size() - 1;
    const Error seen = error_of_rank([&] {
      if (world.rank() == other)
        world.team().reduce(std::uint64_t(1), [](std::uint64_t a, std::uint64_t b) { return a + b; });
      else
        world.team().reduce(std::uint8_t(1), [](std::uint8_t a, std::uint8_t b) { return std::uint8_t(a + b); });
    });
    require_says(seen, ErrorCode::mismatch,
                 {"agreement of 1 byte", "agreement of 8 bytes", fmt::format("rank {}", other).c_str()});
  });
}

// In whatever order they are joined, the first one and the first that differs from it are named.
TEST(Alike, names_the_same_members_in_any_order) {
  SplitMix64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int members = 1 + int(random.below(6));
    std::vector<Alike<int>> all;
    int first = -1, other = -1;
    std::vector<int> values;
    for (int member = 0; member < members; ++member) {
      const int value = int(random.below(4));  // 3: none
      values.push_back(value);
      all.push_back(value == 3 ? Alike<int>{} : Alike<int>::of(member, value));
      if (value == 3) continue;
      if (first < 0) first = member;
      if (other < 0 && value != values[std::size_t(first)]) other = member;
    }
    while (all.size() > 1) {
      const std::size_t a = random.below(all.size());
      const Alike<int> one = all[a];
      all.erase(all.begin() + std::ptrdiff_t(a));
      Alike<int>& with = all[random.below(all.size())];
      with = joined(one, with);
    }
    ASSERT_EQ(all[0].first_member, first);
    ASSERT_EQ(all[0].other_member, other);
    if (first >= 0) ASSERT_EQ(all[0].first, values[std::size_t(first)]);
    if (other >= 0) ASSERT_EQ(all[0].other, values[std::size_t(other)]);
  }
}

}  // namespace
}  // namespace tranship::test
