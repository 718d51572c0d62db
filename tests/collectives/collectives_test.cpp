// Collective operations against loops over all members, on every back-end.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

class Collectives : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Collectives,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt, On::sub,
                                                              On::sub_messaged, On::listed, On::listed_messaged),
                                            ::testing::Values(1, 2, 5)),
                         &OnRanks::name);

/// What member `member` brings as element i.
template <class T>
T brought(int member, Index i) {
  const std::uint64_t bits = splitmix64(std::uint64_t(member) * 1'000'003 + std::uint64_t(i));
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits);
  else
    return T(double(std::int64_t(bits) >> 40) / 1024);  // sums of these depend on their order
}
template <class T>
void bring(World& world, Team& team, Symmetric<T> array) {
  for (Index i = 0; i < array.size(); ++i) array[i] = brought<T>(team.rank(), i);
  world.context().writes(array);
}
/// Integers wrap.
template <class T, class Op>
T wrapped(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(op(std::uint64_t(a), std::uint64_t(b)));
  else
    return op(a, b);
}
template <class T>
T combined(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::sum:
      return wrapped<T>(a, b, std::plus<>());
    case Reduction::product:
      return wrapped<T>(a, b, std::multiplies<>());
    case Reduction::minimum:
      return std::min(a, b);
    case Reduction::maximum:
      return std::max(a, b);
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (reduction == Reduction::bit_and) return static_cast<T>(a & b);
    if (reduction == Reduction::bit_or) return static_cast<T>(a | b);
    return static_cast<T>(a ^ b);
  }
  return {};
}
template <class T>
T combined_of_all(Reduction reduction, const Team& team, Index i) {
  T all = brought<T>(0, i);
  for (int member = 1; member < team.size(); ++member) all = combined(reduction, all, brought<T>(member, i));
  return all;
}
template <class T>
void require_element(const char* what, Symmetric<T> array, Index i, T expected) {
  require(array[i] == expected, "{}: element {} of {} is {}, not {}", what, i, array.size(), double(array[i]),
          double(expected));
}

template <class T>
void check_all(World& world, Team& team, std::initializer_list<Reduction> reductions) {
  for (const Index count : {0, 1, 7, 64, 1000}) {
    const Index n = team.size();
    const auto source = world.allocate<T>(count), gathered = world.allocate<T>(n * count),
               scattered = world.allocate<T>(count), parts = world.allocate<T>(n * count),
               reduced = world.allocate<T>(count);
    for (const Reduction reduction : reductions) {
      bring<T>(world, team, source);
      all_reduce(team, reduced, source, reduction);
      world.context().reads(Symmetric<T>(reduced));
      for (Index i = 0; i < count; ++i)
        require_element<T>("all_reduce", reduced, i, combined_of_all<T>(reduction, team, i));
      all_reduce(team, source, source, reduction);
      for (Index i = 0; i < count; ++i)
        require_element<T>("all_reduce in place", source, i, combined_of_all<T>(reduction, team, i));

      for (const int root : {0, team.size() - 1}) {
        bring<T>(world, team, source);
        reduce(team, reduced, source, reduction, root);
        world.context().reads(Symmetric<T>(reduced));
        for (Index i = 0; i < count && team.rank() == root; ++i)
          require_element<T>("reduce", reduced, i, combined_of_all<T>(reduction, team, i));
      }

      bring<T>(world, team, parts);
      reduce_scatter(team, scattered, parts, reduction);
      const auto own = [&](Index i) { return combined_of_all<T>(reduction, team, team.rank() * count + i); };
      for (Index i = 0; i < count; ++i) require_element<T>("reduce_scatter", scattered, i, own(i));
      reduce_scatter(team, parts.slice(team.rank() * count, count), parts, reduction);
      for (Index i = 0; i < count; ++i)
        require_element<T>("reduce_scatter in place", parts, team.rank() * count + i, own(i));
    }
    bring<T>(world, team, source);
    all_gather(team, gathered, source);
    for (Index i = 0; i < n * count; ++i)
      require_element<T>("all_gather", gathered, i, brought<T>(int(i / count), i % count));
    for (Index i = 0; i < n * count; ++i) gathered[i] = brought<T>(team.rank() + 77, i);
    world.context().writes(Symmetric<T>(gathered));
    all_gather(team, gathered, gathered.slice(team.rank() * count, count));
    for (Index i = 0; i < n * count; ++i)
      require_element<T>("all_gather in place", gathered, i, brought<T>(int(i / count) + 77, i));

    bring<T>(world, team, parts);
    all_to_all(team, gathered, parts);
    for (Index i = 0; i < n * count; ++i)
      require_element<T>("all_to_all", gathered, i, brought<T>(int(i / count), team.rank() * count + i % count));

    for (const int root : {0, team.size() - 1}) {
      bring<T>(world, team, source);
      broadcast(team, scattered, source, root);
      for (Index i = 0; i < count; ++i) require_element<T>("broadcast", scattered, i, brought<T>(root, i));
      bring<T>(world, team, source);
      broadcast(team, source, source, root);
      for (Index i = 0; i < count; ++i) require_element<T>("broadcast in place", source, i, brought<T>(root, i));
    }
  }
}

TEST_P(Collectives, agree_with_loops_over_all_members) {
  run([](World& world) {
    using enum Reduction;
    check_all<std::int32_t>(world, world.team(), {sum, minimum, bit_xor});
    check_all<std::uint8_t>(world, world.team(), {product, bit_and, bit_or});
    check_all<double>(world, world.team(), {sum, maximum});
  });
}

TEST_P(Collectives, take_teams) {
  run([](World& world) {
    const int n = world.size();
    const auto every_other = [&](int first) {
      return world.team().split_strided({.first = first, .stride = 2, .count = (n - first + 1) / 2});
    };
    const std::optional<Team> even = every_other(0), odd = n > 1 ? every_other(1) : std::nullopt;
    // Memory is allocated by all, and used by the members.
    Team team = even ? *even : *odd;
    const auto source = world.allocate<std::int64_t>(100), target = world.allocate<std::int64_t>(100 * n);
    for (int round = 0; round < 20; ++round) {
      bring<std::int64_t>(world, team, source);
      all_gather(team, target.slice(0, 100 * team.size()), source);
      for (Index i = 0; i < 100 * team.size(); ++i)
        require_element<std::int64_t>("all_gather", target, i, brought<std::int64_t>(int(i / 100), i % 100));
      all_reduce(team, source, source, Reduction::sum);
      for (Index i = 0; i < 100; ++i)
        require_element<std::int64_t>("all_reduce", source, i, combined_of_all<std::int64_t>(Reduction::sum, team, i));
    }
  });
}

TEST_P(Collectives, sum_bools_halves_and_complex_numbers) {
  run([](World& world) {
    Team& team = world.team();
    const auto flags = world.allocate<bool>(3);
    flags[0] = false, flags[1] = true, flags[2] = world.rank() == 0;
    world.context().writes(Symmetric<bool>(flags));
    all_reduce(team, flags, flags, Reduction::sum);
    require(!flags[0] && flags[1] && flags[2], "or");
    flags[2] = world.rank() == 0;
    world.context().writes(Symmetric<bool>(flags));
    all_reduce(team, flags, flags, Reduction::bit_and);
    require(!flags[0] && flags[1] && flags[2] == (world.size() == 1), "and");
    const auto waves = world.allocate<std::complex<float>>(2);
    waves[0] = {1, float(world.rank())}, waves[1] = {-1, 0};
    world.context().writes(Symmetric<std::complex<float>>(waves));
    all_reduce(team, waves, waves, Reduction::sum);
    const float n = float(world.size());
    require(waves[0] == std::complex<float>(n, n * (n - 1) / 2) && waves[1] == std::complex<float>(-n, 0), "complex");
    const auto half = world.allocate<float16>(1);
    half[0] = {0x3c00};  // 1
    world.context().writes(Symmetric<float16>(half));
    all_reduce(team, half, half, Reduction::maximum);
    require(half[0].bits == 0x3c00, "{}", half[0].bits);
    // Structs are bytes.
    struct Pair {
      int a;
      char b;
    };
    const auto pairs = world.allocate<Pair>(1), all = world.allocate<Pair>(world.size());
    pairs[0] = {world.rank(), 'x'};
    world.context().writes(Symmetric<Pair>(pairs));
    all_gather(team, all, pairs);
    for (int i = 0; i < world.size(); ++i) require(all[i].a == i && all[i].b == 'x', "pair {}", i);
  });
}

TEST_P(Collectives, refuse_what_does_not_fit) {
  run([](World& world) {
    Team& team = world.team();
    const Index n = world.size();
    const auto a = world.allocate<float>(6 * n), b = world.allocate<float>(6 * n);
    const auto ints = world.allocate<int>(6);
    const auto refused = [&](auto&& f, std::initializer_list<const char*> parts) {
      require_says(error_of_rank(f), ErrorCode::invalid_use, parts);
    };
    refused([&] { all_reduce(team, a.slice(0, 3), b.slice(0, 4), Reduction::sum); }, {"3 elements", "4"});
    refused([&] { all_reduce(team, a.slice(0, 4), a.slice(1, 4), Reduction::sum); }, {"overlap", "4 bytes after"});
    refused([&] { all_reduce(team, a.slice(0, 4), b.slice(0, 4), Reduction::bit_or); }, {"f32 has no bit_or"});
    refused([&] { all_reduce(team, a.slice(0, 6), ints, Reduction::sum); }, {"f32", "i32"});
    refused([&] { all_gather(team, a.slice(0, 2 * n + 1), b.slice(0, 2)); }, {"do not fit"});
    refused([&] { all_to_all(team, a, a); }, {"overlap"});
    refused([&] { broadcast(team, a, b, int(n)); }, {"no root", std::to_string(n).c_str()});
    refused([&] { broadcast(team, a, b, -1); }, {"no root -1"});
    float outside[4] = {};
    refused([&] { all_reduce(team, a.slice(0, 4), Symmetric<float>::at(outside, 4), Reduction::sum); },
            {"symmetric heap"});
    refused([&] { broadcast(team, Symmetric<float>::at(a.local(), -1), b, 0); }, {"-1 elements"});
    refused(
        [&] {
          all_reduce(team, {a.local(), ElementType::c64, 1}, {b.local(), ElementType::c64, 1}, Reduction::maximum);
        },
        {"c64 has no maximum"});
    // Nothing was begun: the next call is the first for all.
    bring<float>(world, team, b);
    all_reduce(team, a, b, Reduction::maximum);
  });
}

TEST_P(Collectives, name_calls_that_differ) {
  run([](World& world) {
    if (world.size() == 1) return;
    Team& team = world.team();
    const auto a = world.allocate<int>(8), b = world.allocate<int>(8);
    const auto differ = [&](auto&& f) {
      const Error error = error_of_rank(f);
      require(error.code() == ErrorCode::mismatch, "{}", error.message());
    };
    const int odd = world.rank() % 2;
    differ([&] { all_reduce(team, a, b, odd ? Reduction::sum : Reduction::minimum); });
    differ([&] { broadcast(team, a, b, odd); });
    differ([&] { broadcast(team, a.slice(0, 4), b.slice(odd, 4), 0); });
    differ([&] { odd ? broadcast(team, a, b, 0) : all_reduce(team, a, b, Reduction::sum); });
    differ([&] { all_reduce(team, a.slice(0, 2 + odd), b.slice(0, 2 + odd), Reduction::sum); });
  });
}

TEST(CollectivesOnThreads, are_right_many_times_while_sources_are_rewritten_at_once) {
  for (const On on : {On::threads, On::processes})
    run_on(on, 3, [](World& world) {
      const auto source = world.allocate<std::int64_t>(40), target = world.allocate<std::int64_t>(40);
      for (std::int64_t round = 0; round < 10'000; ++round) {
        for (Index i = 0; i < 40; ++i) source[i] = round * (world.rank() + 1) + i;
        all_reduce(world.team(), target, source, Reduction::sum);
        for (Index i = 0; i < 40; ++i) {
          source[i] = -1;
          require(target[i] == 6 * round + 3 * i, "round {}: element {} is {}", round, i, target[i]);
          target[i] = -7;
        }
        broadcast(world.team(), target, source, int(round % 3));
        require(target[39] == -1, "round {}: {}", round, target[39]);
      }
    });
}

TEST(CollectivesOnThreads, reduce_megabytes_in_a_fixed_order) {
  run_on(On::threads, 4, [](World& world) {
    const Index count = 500'003;
    const auto source = world.allocate<float>(count), target = world.allocate<float>(count);
    bring<float>(world, world.team(), source);
    all_reduce(world.team(), target, source, Reduction::sum);
    for (Index i = 0; i < count; i += 997)
      require_element<float>("sum", target, i, combined_of_all<float>(Reduction::sum, world.team(), i));
  });
}

TEST(CollectivesOnThreads, end_when_a_member_has_failed) {
  for (const On on : {On::threads, On::messaged}) {
    try {
      run_on(on, 3, [](World& world) {
        const auto a = world.allocate<int>(8);
        if (world.rank() == 2) throw Error(ErrorCode::bad_text, "enough");
        all_reduce(world.team(), a, a, Reduction::sum);
      });
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("enough"), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace tranship::test
