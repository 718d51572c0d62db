// What kernels look at and wait for, one variable and several, and atomics that fetch without waiting.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <support/kernels_on_ranks.hpp>

#include <tranship/base/sync.hpp>

namespace tranship {
namespace {

using test::at_each_scope;
using test::error_of_rank;
using test::next;
using test::On;
using test::previous;
using test::require;
using test::require_says;

class KernelWaits : public test::BlockOnRanks {};
TRANSHIP_KERNELS_ON_RANKS(KernelWaits);

void expect(bool holds, const char* what) {
  if (!holds) throw make_error(ErrorCode::internal, "test: {}", what);
}

/// `f(block, variables, places)` on a block of 5 lanes of one rank, with `values` in the variables.
template <class F>
void look_at(std::vector<int> values, F&& f) {
  test::run_on(On::threads, 1, [&](World& world) {
    const auto variables = world.allocate<int>(16);
    const auto places = world.allocate<long>(16);
    std::copy(values.begin(), values.end(), variables.local());
    run_block(world, {.lanes = 5}, [&](const CpuLane& lane) {
      f(heap_view(world), lane.block(), Span(variables.local(), Index(values.size())), Span(places.local(), 16));
    });
  });
}

/// Whether a wait would not return now.
bool waits_forever(Index count, bool all, const std::vector<int>& values, const std::vector<int>& skip) {
  Index open = 0, come = 0;
  for (Index i = 0; i < count; ++i) {
    if (std::size_t(i) < skip.size() && skip[std::size_t(i)]) continue;
    ++open;
    come += values[std::size_t(i)] == 1;
  }
  return all ? come < open : open > 0 && come == 0;
}

TEST(KernelTests, of_several_agree_with_a_loop) {
  // All values 0 or 1 of up to four variables, under all masks, some of which are shorter.
  for (int count = 0; count <= 4; ++count)
    for (int bits = 0; bits < 1 << count; ++bits)
      for (int mask = 0; mask < 1 << count; ++mask)
        for (const int masked : {count, count / 2}) {
          std::vector<int> values(static_cast<std::size_t>(count)), skip(static_cast<std::size_t>(masked));
          for (int i = 0; i < count; ++i) values[std::size_t(i)] = bits >> i & 1;
          for (int i = 0; i < masked; ++i) skip[std::size_t(i)] = mask >> i & 1;
          std::vector<long> wanted;
          bool all = true;
          for (int i = 0; i < count; ++i) {
            if (i < masked && skip[std::size_t(i)]) continue;
            if (values[std::size_t(i)] == 1) wanted.push_back(i);
            all &= values[std::size_t(i)] == 1;
          }
          look_at(values, [&](const HeapView& heap, const auto& block, Span<int> variables, Span<long> places) {
            const Span<const int> left_out(skip.data(), masked);
            const auto equal = Comparison::equal;
            expect(heap.test_all(block, variables, equal, 1, left_out) == all, "test_all");
            const long long first = wanted.empty() ? -1 : wanted.front();
            expect(heap.test_any(block, variables, equal, 1, left_out) == first, "test_any");
            const auto has_places = [&](long long some) {
              return some == Index(wanted.size()) && std::equal(wanted.begin(), wanted.end(), places.data);
            };
            expect(has_places(heap.test_some(block, variables, places, equal, 1, left_out)), "test_some");
            if (!waits_forever(count, true, values, skip)) heap.wait_until_all(block, variables, equal, 1, left_out);
            if (waits_forever(count, false, values, skip)) return;
            expect(heap.wait_until_any(block, variables, equal, 1, left_out) == first, "wait_until_any");
            block.sync();
            std::fill(places.data, places.data + 16, -1);
            expect(has_places(heap.wait_until_some(block, variables, places, equal, 1, left_out)), "wait_until_some");
          });
        }
}

TEST(KernelTests, compare_in_every_way) {
  look_at({-3, 4}, [](const HeapView& heap, const auto& block, Span<int> v, Span<long>) {
    const auto is = [&](int at, Comparison comparison, int value) {
      return heap.test(block, v.data + at, comparison, value);
    };
    expect(is(0, Comparison::equal, -3) && !is(0, Comparison::equal, 3), "equal");
    expect(is(0, Comparison::not_equal, 3) && !is(0, Comparison::not_equal, -3), "not_equal");
    expect(is(1, Comparison::greater, 3) && !is(0, Comparison::greater, -3), "greater");
    expect(is(0, Comparison::less, 0) && !is(0, Comparison::less, -3), "less, signed");
    expect(is(0, Comparison::less_equal, -3) && !is(1, Comparison::less_equal, 3), "less_equal");
    expect(is(1, Comparison::greater_equal, 4) && !is(0, Comparison::greater_equal, -2), "greater_equal");
  });
}

TEST(KernelTests, refuse_what_lies_elsewhere_and_too_little_room) {
  int elsewhere[4] = {};
  const auto refused = [&](auto&& look, std::initializer_list<const char*> parts) {
    require_says(error_of_rank([&] { look_at({1, 2, 3}, look); }), ErrorCode::invalid_use, parts);
  };
  refused(
      [&](const HeapView& heap, const auto& block, auto, auto) { heap.test(block, elsewhere, Comparison::equal, 0); },
      {"test(variable 0x", "outside the symmetric heap", "kernel_waits_test.cpp:"});
  refused([&](const HeapView& heap, const auto& block, auto,
              auto) { heap.wait_until_any(block, Span(elsewhere, 4), Comparison::equal, 0); },
          {"wait_until_any(variables 0x", "count 4", "the variables lie outside"});
  refused([&](const HeapView& heap, const auto& block, Span<int> v,
              auto) { heap.test_all(block, Span(v.data, -1), Comparison::equal, 0); },
          {"test_all(", "count -1", "the variables lie outside"});
  refused([&](const HeapView& heap, const auto& block, Span<int> v,
              Span<long> places) { heap.wait_until_some(block, v, Span(places.data, 2), Comparison::equal, 0); },
          {"wait_until_some(", "count 3", "room 2", "room for fewer places"});
  refused([&](const HeapView& heap, const auto& block, Span<int> v,
              Span<long> places) { heap.test_some(block, v, Span(places.data, 2), Comparison::equal, 0); },
          {"test_some(", "room 2"});
}

TEST(KernelTests, name_lanes_that_bring_other_arguments) {
  const auto diverges = [&](auto&& look, std::initializer_list<const char*> parts) {
    require_says(error_of_rank([&] { look_at({1, 1}, look); }), ErrorCode::invalid_use, parts);
  };
  diverges([](const HeapView& heap, const auto& block, Span<int> v,
              auto) { heap.test(block, v.data + block.lane() / 4, Comparison::equal, 1); },
           {"lanes 0 and 4 of block 0 call test (", "different arguments: variable 0x"});
  diverges([](const HeapView& heap, const auto& block, Span<int> v,
              auto) { heap.wait_until_all(block, v, Comparison::equal, block.lane()); },
           {"call wait_until_all (", "value 0 and value 1"});
  // Room of a lane's own is not the same memory for all.
  diverges(
      [](const HeapView& heap, const auto& block, Span<int> v, auto) {
        long places[2];
        heap.test_some(block, v, Span(places, 2), Comparison::equal, 1);
      },
      {"call test_some (", "different arguments: places 0x"});
  diverges(
      [](const HeapView& heap, const auto& block, Span<int> v, auto) {
        if (block.lane() == 0)
          heap.test_any(block, v, Comparison::equal, 1);
        else
          heap.test_all(block, v, Comparison::equal, 1);
      },
      {"lane 0 is at test_any (", "lane 1 at test_all ("});
}

TEST_P(KernelWaits, wait_for_all_any_and_some_that_peers_put) {
  run([](World& world, const HeapView& heap) {
    constexpr Index count = 6;
    const auto flags = world.allocate<unsigned short>(count);
    const auto places = world.allocate<long long>(count);
    for (int round = 1; round <= 3; ++round) {
      run_block(world, {.lanes = 33}, [&](const CpuLane& lane) {
        const auto block = lane.block();
        const auto value = static_cast<unsigned short>(round);
        const Span<unsigned short> all(flags.local(), count);
        // Each lane of some waits for what another lane of the previous rank puts.
        if (lane.index() < count) heap.p(lane.thread(), &flags[(lane.index() * 5 + round) % count], value, next(world));
        std::vector<int> skip(count);
        const Span<const int> left_out(block.lane() == 0 ? skip.data() : skip.data(), count);
        const long long any = heap.wait_until_any(lane.thread(), all, Comparison::equal, value, left_out);
        expect(any >= 0 && flags[any] == value, "one has come");
        heap.wait_until_all(block, all, Comparison::equal, value);
        expect(heap.test_all(block, all, Comparison::greater_equal, value), "all have come");
        expect(heap.wait_until_some(block, all, Span(places.local(), count), Comparison::equal, value) == count,
               "all are some");
        for (Index i = 0; i < count; ++i) expect(places[i] == i, "their places");
      });
      world.barrier();
    }
  });
}

TEST_P(KernelWaits, loops_that_test_see_what_comes) {
  run([](World& world, const HeapView& heap) {
    const auto flags = world.allocate<std::uint64_t>(4);
    const auto data = world.allocate<int>(8), source = world.allocate<int>(8);
    std::fill_n(source.local(), 8, 7 + world.rank());
    run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
      const auto block = lane.block();
      heap.put_signal(block, span_of(data), Span<const int>(source.local(), 8), flags.local(), 5, SignalOp::set,
                      next(world));
      while (heap.signal_fetch(block, flags.local()) != 5) RealSync::pause();
      expect(data[3] == 7 + previous(world), "the data has come with its signal");
      // For what another lane of the block does later.
      if (lane.index() == 2) heap.signal(lane.thread(), &flags[1], 1, SignalOp::add, world.rank());
      while (!heap.test(lane.thread(), &flags[1], Comparison::equal, 1)) RealSync::pause();
      while (heap.test_any(lane.warp(), Span(flags.local(), 2), Comparison::greater, 4) != 0) RealSync::pause();
      heap.quiet(block);
    });
    world.barrier();
  });
}

TEST_P(KernelWaits, fetch_without_waiting) {
  run([](World& world, const HeapView& heap) {
    const auto words = world.allocate<std::int64_t>(200 * 3);
    const auto before = world.allocate<std::int64_t>(8 * 200 * 3);
    const auto real = world.allocate<double>(2);
    run_block(world, {.lanes = 40}, [&](const CpuLane& lane) {
      at_each_scope(lane, [&](const auto& group, int number, int count) {
        std::int64_t* word = &words[number];
        std::int64_t* was = &before[8 * number];
        heap.set(group, word, 12, next(world));
        // Each is the only one on its way.
        const auto made = [&](auto&& fetch) {
          heap.quiet(group);
          fetch();
          heap.quiet(group);
        };
        made([&] { heap.fetch_nbi(group, was, word, next(world)); });
        made([&] { heap.swap_nbi(group, was + 1, word, 10, next(world)); });
        made([&] { heap.compare_swap_nbi(group, was + 2, word, 10, 6, next(world)); });
        made([&] { heap.fetch_bit_and_nbi(group, was + 3, word, 3, next(world)); });
        made([&] { heap.fetch_bit_or_nbi(group, was + 4, word, 4, next(world)); });
        made([&] { heap.fetch_bit_xor_nbi(group, was + 5, word, 5, next(world)); });
        made([&] { heap.fetch_inc_nbi(group, was + 6, word, next(world)); });
        made([&] { heap.fetch_add_nbi(group, was + 7, word, -9, next(world)); });
        const std::int64_t wanted[] = {12, 12, 10, 6, 2, 6, 3, 4};
        if (!std::equal(wanted, wanted + 8, was))
          throw make_error(ErrorCode::internal, "{} (group {} of {})", join_text(std::span(was, 8), " "), number,
                           count);
        expect(heap.fetch(group, word, next(world)) == -5, "the last value");
      });
      // Many at a time, which the sum alone tells.
      std::int64_t mine[4] = {};
      for (std::int64_t& one : mine) heap.fetch_add_nbi(lane.thread(), &one, &words[599], 1, 0);
      heap.quiet(lane.thread());
      for (const std::int64_t one : mine) expect(one >= 0 && one < 160 * world.size(), "a ticket");
      heap.swap_nbi(lane.block(), &real[1], &real[0], 2.5, world.rank());
      heap.quiet(lane.block());
      expect(real[1] == 0.0, "a real number");
    });
    world.barrier();
    if (world.rank() == 0) require(words[599] == 160 * world.size(), "{}", words[599]);
    world.barrier();
  });
}

}  // namespace
}  // namespace tranship
