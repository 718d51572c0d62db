// Kernels on the CPU: every operation at every scope, by few lanes and many, through memory and through a context.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <support/kernels_on_ranks.hpp>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/lanes/cpu_lanes.hpp>

namespace tranship {
namespace {

using test::at_each_scope;
using test::BlockOnRanks;
using test::error_of_rank;
using test::next;
using test::On;
using test::previous;
using test::require;
using test::require_says;

constexpr int lane_counts[] = {1, 31, 32, 33, 64, 256};

unsigned char pattern(long long i, int seed) {
  return static_cast<unsigned char>(i * 7 + seed * 31 + i / 251);
}

// How lanes share a copy.

TEST(BlockCopy, moves_every_byte) {
  constexpr std::size_t room = 4200;
  std::vector<unsigned char> source(room), target(room), expected(room);
  for (std::size_t i = 0; i < room; ++i) source[i] = pattern(static_cast<long long>(i), 1);
  for (const int lanes : {1, 2, 7, 32, 33, 256})
    for (const auto copy : {detail::copy_interleaved, detail::copy_in_runs})
      for (const std::size_t bytes : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257, 1000, 4099})
        for (const std::size_t to : {0, 1, 2, 4, 6, 8, 15, 16})
          for (const std::size_t from : {0, 1, 2, 4, 7, 8, 12, 16}) {
            std::fill(target.begin(), target.end(), 0xee);
            expected = target;
            std::memcpy(expected.data() + to, source.data() + from, bytes);
            for (int lane = 0; lane < lanes; ++lane) copy(lane, lanes, target.data() + to, source.data() + from, bytes);
            ASSERT_EQ(target, expected) << lanes << " lanes, " << bytes << " bytes, to " << to << ", from " << from;
          }
}

TEST(BlockCopy, moves_no_byte_twice) {
  constexpr std::size_t room = 300;
  std::vector<unsigned char> source(room, 1), target(room);
  for (const int lanes : {2, 5, 32})
    for (const auto copy : {detail::copy_interleaved, detail::copy_in_runs})
      for (const std::size_t bytes : {1, 15, 17, 33, 100, 257})
        for (const std::size_t to : {0, 1, 4, 8, 15})
          for (const std::size_t from : {0, 1, 4, 12}) {
            std::size_t moved = 0;
            for (int lane = 0; lane < lanes; ++lane) {
              std::fill(target.begin(), target.end(), 0);
              copy(lane, lanes, target.data() + to, source.data() + from, bytes);
              moved += std::size_t(std::count(target.begin(), target.end(), 1));
            }
            ASSERT_EQ(moved, bytes) << lanes << " lanes, to " << to << ", from " << from;
          }
}

// Operations, on ranks.

class KernelBlocks : public BlockOnRanks {};
TRANSHIP_KERNELS_ON_RANKS(KernelBlocks);

TEST_P(KernelBlocks, a_block_stores_to_all_members_and_combines_them) {
  run([](World& world, const HeapView& heap) {
    const auto array = world.allocate<float>(1000), sums = world.allocate<float>(1000);
    for (const auto& team : {std::array{0, 1, 0}, {0, 0, 2}, {0, 65536, 65537}, {-1, 1, 1}}) {
      const Error error = error_of_rank([&] {
        run_block(world, {.lanes = 1}, [&](const CpuLane& lane) {
          heap.multicast_array(lane.block(), Span(array.local(), 1000), team[0], team[1], team[2]);
        });
      });
      require_says(error, ErrorCode::invalid_use, {"multicast_array", "no such"});
    }
    if (!heap.heaps.is_complete && world.size() > 1) {
      const Error error = error_of_rank([&] {
        run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
          heap.multicast_array(lane.block(), Span(array.local(), 1000), 0, 1, world.size());
        });
      });
      return require_says(error, ErrorCode::invalid_use, {"multicast_array", "not reachable"});
    }
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), float(world.rank()));
    for (const int lanes : {1, 7, 64}) {
      std::copy(values.begin(), values.end(), array.local());
      world.barrier();
      run_block(world, {.lanes = lanes}, [&](const CpuLane& lane) {
        const auto block = lane.block();
        const auto all = heap.multicast_array(block, Span(array.local(), 1000), 0, 1, world.size());
        all.load_reduce(
            Span(sums.local(), 1000), 0, [](float a, float b) { return a + b; }, block.lane(), block.lanes());
      });
      world.barrier();
      for (Index i = 0; i < 1000; ++i)
        require(sums[i] == float(i * world.size() + world.size() * (world.size() - 1) / 2), "{} at {}", sums[i], i);
      if (world.rank() == world.size() - 1)
        run_block(world, {.lanes = lanes}, [&](const CpuLane& lane) {
          const auto block = lane.block();
          const auto all = heap.multicast_array(block, Span(array.local(), 1000), 0, 1, world.size());
          all.store(1, Span<const float>(values.data(), 999), block.lane(), block.lanes());
        });
      world.barrier();
      for (Index i = 0; i < 1000; ++i)
        require(array[i] == (i == 0 ? float(world.rank()) : float(i - 1 + world.size() - 1)), "{} at {}", array[i], i);
      world.barrier();
    }
  });
}

TEST_P(KernelBlocks, put_and_get_bytes_at_every_scope) {
  run([](World& world, const HeapView& heap) {
    constexpr Index slot = 1100, guard = 16;
    const auto source = world.allocate<unsigned char>(slot * 256), target = world.allocate<unsigned char>(slot * 256);
    std::vector<unsigned char> back(std::size_t(slot) * 256);
    struct Case {
      Index bytes, to, from;
    };
    for (const int lanes : lane_counts)
      for (const Case c : {Case{0, 0, 0}, {1, 3, 0}, {16, 0, 0}, {17, 5, 5}, {100, 1, 2}, {1000, 8, 0}, {1001, 3, 7}}) {
        std::memset(target.local(), 0xee, std::size_t(target.size()));
        std::fill(back.begin(), back.end(), 0xee);
        world.barrier();
        run_block(world, {.lanes = lanes}, [&](const CpuLane& lane) {
          at_each_scope(lane, [&](const auto& group, int number, int count) {
            unsigned char* from = source.local() + number * slot + guard + c.from;
            unsigned char* to = target.local() + number * slot + guard + c.to;
            unsigned char* here = back.data() + number * slot + guard + c.to;
            // Each lane writes some of what the group puts.
            for (Index i = group.lane(); i < c.bytes; i += group.lanes()) from[i] = pattern(i, number + count);
            heap.put(group, Span(to, c.bytes), Span<const unsigned char>(from, c.bytes), next(world));
            heap.quiet(group);
            heap.get(group, Span(here, c.bytes), Span<const unsigned char>(to, c.bytes), next(world));
            for (Index i = -guard; i < c.bytes + guard; ++i)
              if (const unsigned char wanted = i < 0 || i >= c.bytes ? 0xee : pattern(i, number + count);
                  here[i] != wanted)
                throw make_error(ErrorCode::internal, "got {} for {} at {}", here[i], wanted, i);
            heap.put_nbi(group, Span(to, c.bytes), Span<const unsigned char>(from, c.bytes), next(world));
            heap.quiet(group);
            heap.get_nbi(group, Span(here, c.bytes), Span<const unsigned char>(to, c.bytes), next(world));
            heap.quiet(group);
          });
        });
        world.barrier();
        // What the block put stays in the first slot.
        for (Index i = -guard; i < c.bytes + guard; ++i) {
          const unsigned char wanted = i < 0 || i >= c.bytes ? 0xee : pattern(i, 1);
          require(target[guard + c.to + i] == wanted, "{} lanes: {} for {} at {}", lanes, target[guard + c.to + i],
                  wanted, i);
        }
        world.barrier();
      }
  });
}

TEST_P(KernelBlocks, put_more_than_all_lanes_take_at_a_time) {
  run([](World& world, const HeapView& heap) {
    constexpr Index count = (Index(1) << 18) + 5;
    const auto source = world.allocate<int>(count), target = world.allocate<int>(count);
    std::iota(source.local(), source.local() + count, world.rank() << 20);
    world.barrier();
    run_block(world, {.lanes = 33},
              [&](const CpuLane& lane) { heap.put(lane.block(), span_of(target), span_of(source), next(world)); });
    world.barrier();
    for (Index i = 0; i < count; ++i) require(target[i] == (previous(world) << 20) + i, "{} at {}", target[i], i);
  });
}

TEST_P(KernelBlocks, the_smaller_size_wins) {
  run([](World& world, const HeapView& heap) {
    const auto a = world.allocate<short>(10), b = world.allocate<short>(10);
    std::iota(a.local(), a.local() + 10, short(1));
    world.barrier();
    run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
      heap.put(lane.block(), Span(b.local(), 4), span_of(a), next(world));
      heap.put(lane.block(), Span(b.local() + 5, 5), Span(a.local(), 2), next(world));
    });
    world.barrier();
    const short wanted[] = {1, 2, 3, 4, 0, 1, 2, 0, 0, 0};
    require(std::equal(wanted, wanted + 10, b.local()), "{}", join_text(b.span(), " "));
  });
}

TEST_P(KernelBlocks, p_and_g_one_element) {
  run([](World& world, const HeapView& heap) {
    const auto wide = world.allocate<double>(256);
    const auto narrow = world.allocate<signed char>(256);
    for (const int lanes : lane_counts) {
      run_block(world, {.lanes = lanes}, [&](const CpuLane& lane) {
        at_each_scope(lane, [&](const auto& group, int number, int count) {
          heap.p(group, &wide[number], number + 0.5 * count, next(world));
          heap.p(group, &narrow[number], static_cast<signed char>(-number), next(world));
          heap.quiet(group);
          if (heap.g(group, &wide[number], next(world)) != number + 0.5 * count ||
              heap.g(group, &narrow[number], next(world)) != static_cast<signed char>(-number))
            throw Error(ErrorCode::internal, "another value came back");
        });
      });
      world.barrier();
    }
  });
}

TEST_P(KernelBlocks, a_signal_comes_after_its_data) {
  run([](World& world, const HeapView& heap) {
    constexpr Index count = 1000;
    const auto source = world.allocate<int>(count), target = world.allocate<int>(count);
    const auto signal = world.allocate<std::uint64_t>(1);
    const auto read = world.allocate<std::int64_t>(1);
    for (int round = 1; round <= 20; ++round)
      run_block(world, {.lanes = 64}, [&](const CpuLane& lane) {
        const auto block = lane.block();
        for (Index i = lane.index(); i < count; i += lane.lanes()) source[i] = int(i) * round + world.rank();
        if (round % 2)
          heap.put_signal(block, span_of(target), span_of(source), signal.local(), 1, SignalOp::add, next(world));
        else
          heap.put_signal_nbi(block, span_of(target), span_of(source), signal.local(), std::uint64_t(round),
                              SignalOp::set, next(world));
        const std::uint64_t seen =
            heap.signal_wait(block, signal.local(), Comparison::greater_equal, std::uint64_t(round));
        if (seen != std::uint64_t(round)) throw make_error(ErrorCode::internal, "saw {} in round {}", seen, round);
        for (Index i = 0; i < count; ++i)
          if (target[i] != int(i) * round + previous(world)) throw Error(ErrorCode::internal, "data came after");
        block.sync();
        // The previous rank may put again, and this one write its source.
        heap.signal(block, read.local(), round, SignalOp::set, previous(world));
        heap.wait_until(block, read.local(), Comparison::equal, std::int64_t(round));
        heap.quiet(block);
      });
  });
}

TEST_P(KernelBlocks, a_signal_of_each_warp) {
  run([](World& world, const HeapView& heap) {
    const auto source = world.allocate<long>(100), target = world.allocate<long>(100);
    const auto signal = world.allocate<std::uint64_t>(1);
    std::iota(source.local(), source.local() + 100, 1000 * world.rank());
    run_block(world, {.lanes = 100}, [&](const CpuLane& lane) {
      const int first = lane.index() / 32 * 32;
      heap.put_signal(lane.warp(), Span(&target[first], lane.warp().lanes()),
                      Span<const long>(&source[first], lane.warp().lanes()), signal.local(), 1, SignalOp::add,
                      next(world));
      // Lane by lane: each waits.
      heap.signal_wait(lane.thread(), signal.local(), Comparison::equal, 4);
      if (target[lane.index()] != 1000 * previous(world) + lane.index()) throw Error(ErrorCode::internal, "wrong");
    });
    world.barrier();
  });
}

TEST_P(KernelBlocks, nothing_still_signals) {
  run([](World& world, const HeapView& heap) {
    const auto signal = world.allocate<std::uint64_t>(1);
    run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
      heap.put_signal(lane.block(), Span<int>(), Span<const int>(), signal.local(), 9, SignalOp::set, next(world));
      heap.signal_wait(lane.block(), signal.local(), Comparison::equal, 9);
    });
    world.barrier();
  });
}

TEST_P(KernelBlocks, atomics) {
  run([](World& world, const HeapView& heap) {
    const auto tickets = world.allocate<int>(1);
    const auto taken = world.allocate<int>(256 * 4);
    const auto words = world.allocate<std::uint64_t>(8);
    run_block(world, {.lanes = 256}, [&](const CpuLane& lane) {
      const int ticket = heap.fetch_add(lane.thread(), tickets.local(), 1, 0);
      heap.inc(lane.thread(), &taken[ticket], 0);
      heap.add(lane.warp(), &words[0], 5, 0);
      heap.inc(lane.block(), &words[1], 0);
      heap.bit_or(lane.thread(), &words[2], std::uint64_t(1) << lane.index() % 64, 0);
      heap.bit_xor(lane.thread(), &words[3], 3, 0);
      const std::uint64_t before = heap.fetch_inc(lane.block(), &words[4], 0);
      if (heap.fetch(lane.warp(), &words[4], 0) <= before) throw Error(ErrorCode::internal, "an atomic was lost");
    });
    world.barrier();
    const auto ranks = std::uint64_t(world.size());
    if (world.rank() == 0) {
      for (Index i = 0; i < 256 * world.size(); ++i) require(taken[i] == 1, "ticket {} taken {} times", i, taken[i]);
      require(words[0] == 40 * ranks && words[1] == ranks && words[2] == ~std::uint64_t(0) && words[3] == 0,
              "{} {} {} {}", words[0], words[1], words[2], words[3]);
    }
    world.barrier();
    const auto own = world.allocate<std::int64_t>(1);
    const auto real = world.allocate<float>(1);
    run_block(world, {.lanes = 5}, [&](const CpuLane& lane) {
      const auto block = lane.block();
      std::vector<std::int64_t> seen;
      heap.set(block, own.local(), 12, next(world));
      heap.fence(block);
      seen.push_back(heap.swap(block, own.local(), 10, next(world)));
      seen.push_back(heap.compare_swap(block, own.local(), 11, 99, next(world)));
      seen.push_back(heap.compare_swap(block, own.local(), 10, 6, next(world)));
      seen.push_back(heap.fetch_bit_and(block, own.local(), 3, next(world)));
      seen.push_back(heap.fetch_bit_or(block, own.local(), 4, next(world)));
      seen.push_back(heap.fetch_bit_xor(block, own.local(), 5, next(world)));
      heap.bit_and(block, own.local(), 1, next(world));
      heap.fence(block);
      seen.push_back(heap.fetch(block, own.local(), next(world)));
      if (seen != std::vector<std::int64_t>{12, 10, 10, 6, 2, 6, 1})
        throw make_error(ErrorCode::internal, "{}", join_text(seen, " "));
      heap.set(block, real.local(), 1.5f, next(world));
      heap.fence(block);
      if (heap.swap(block, real.local(), 2.5f, next(world)) != 1.5f) throw Error(ErrorCode::internal, "a float");
    });
    world.barrier();
  });
}

TEST_P(KernelBlocks, blocks_wait_for_each_other) {
  run([](World& world, const HeapView& heap) {
    const auto signals = world.allocate<std::uint64_t>(5);
    std::vector<int> order;
    run_grid(world, {.blocks = 5, .block = {.lanes = 3}}, [&](const CpuLane& lane) {
      // Each waits for the one behind it, and the last one for another rank.
      const int at = lane.block_index();
      if (at == lane.blocks() - 1) heap.signal(lane.block(), &signals[at], 1, SignalOp::set, next(world));
      heap.signal_wait(lane.block(), &signals[at], Comparison::equal, 1);
      if (lane.index() == 0) order.push_back(at);
      if (at > 0) heap.signal(lane.block(), &signals[at - 1], 1, SignalOp::set, world.rank());
    });
    require(order == std::vector<int>{4, 3, 2, 1, 0}, "{}", join_text(order, " "));
    world.barrier();
  });
}

TEST_P(KernelBlocks, blocks_poll_for_what_those_behind_them_store) {
  run([](World& world, const HeapView& heap) {
    const auto flags = world.allocate<std::uint64_t>(3);
    world.set_timeout_ns(5'000'000'000);
    run_grid(world, {.blocks = 3, .block = {.lanes = 2}}, [&](const CpuLane& lane) {
      const int at = lane.block_index();
      if (at < 2)
        while (heap.fetch(lane.thread(), &flags[at], world.rank()) == 0) RealSync::pause();
      if (at > 0 && lane.index() == 0) heap.set(lane.thread(), &flags[at - 1], std::uint64_t(1), world.rank());
    });
    world.set_timeout_ns(default_timeout_ns());
    world.barrier();
  });
}

TEST(KernelGets, let_others_put_what_they_wait_for) {
  launch(1, [](World& world) {
    const HeapView heap = heap_view(world);
    const auto data = world.allocate<int>(2);
    run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
      int seen[2] = {};
      const Span<const int> here(data.local(), 2);
      while (lane.index() == 0 && seen[0] + seen[1] < 3) heap.get(lane.thread(), Span(seen, 2), here, 0);
      while (lane.index() == 1 && seen[0] == 0) {
        heap.get_nbi(lane.thread(), Span(seen, 2), here, 0);
        heap.quiet(lane.thread());
      }
      if (lane.index() > 0) heap.p(lane.thread(), &data[2 - lane.index()], lane.index(), 0);
    });
  });
}

TEST_P(KernelBlocks, misuse_is_found_before_anything_happens) {
  run([](World& world, const HeapView& heap) {
    const auto data = world.allocate<int>(4);
    int local[4] = {};
    const auto refused = [&](auto&& operation, std::initializer_list<const char*> parts) {
      require_says(
          error_of_rank([&] { run_block(world, {.lanes = 4}, [&](const CpuLane& lane) { operation(lane.block()); }); }),
          ErrorCode::invalid_use, parts);
    };
    refused(
        [&](const auto& block) { heap.put(block, span_of(data), Span<const int>(local, 4), world.size()); },
        {"put(target 0x", "elements 4, peer ", "there is no such peer", "cpu_lanes_test.cpp:", "lane 0 of block 0"});
    refused([&](const auto& block) { heap.put(block, Span(local, 4), span_of(data), 0); },
            {"the target lies outside the symmetric heap"});
    refused([&](const auto& block) { heap.get(block, Span(local, 4), Span<const int>(local, 4), 0); },
            {"the source lies outside"});
    refused([&](const auto& block) { heap.inc(block, local, 0); }, {"inc(", "the variable lies outside"});
    refused([&](const auto& block) { heap.wait_until(block, local, Comparison::equal, 1); }, {"wait_until("});
    if (heap.is_direct(next(world)))
      run_block(world, {}, [&](const CpuLane& lane) {
        heap.peer_array(lane.thread(), span_of(data), next(world))[3] = world.rank() + 1;
      });
    else if (world.size() > 1)
      refused([&](const auto& block) { heap.peer_array(block, span_of(data), next(world)); }, {"is not reachable"});
    world.barrier();
    require(data[0] == 0 && data[3] == (heap.is_direct(previous(world)) ? previous(world) + 1 : 0), "{}", data[3]);
  });
}

// What the executor sees, on one rank.

template <class Kernel>
void run_alone(const LaneBlock& shape, Kernel&& kernel, std::int64_t timeout_ns = 30'000'000'000) {
  test::run_on(On::threads, {.ranks = 1, .timeout_ns = timeout_ns}, [&](World& world) {
    const auto data = world.allocate<int>(1000);
    run_block(world, shape, [&](const CpuLane& lane) { kernel(lane, heap_view(world), data.local()); });
  });
}
template <class Kernel>
void expect_error(ErrorCode code, std::initializer_list<const char*> parts, const LaneBlock& shape, Kernel&& kernel,
                  std::int64_t timeout_ns = 30'000'000'000) {
  require_says(error_of_rank([&] { run_alone(shape, kernel, timeout_ns); }), code, parts);
}

std::string line(int number) {
  return fmt::format("cpu_lanes_test.cpp:{}", number);
}

TEST(BlockLanes, have_places) {
  for (const int lanes : {1, 31, 33, 100}) {
    std::vector<int> seen;
    run_alone({.lanes = lanes}, [&](const CpuLane& lane, const HeapView&, int*) {
      seen.push_back(lane.index());
      EXPECT_EQ(lane.lanes(), lanes);
      EXPECT_EQ(lane.block().lane(), lane.index());
      EXPECT_EQ(lane.block().lanes(), lanes);
      EXPECT_EQ(lane.warp().lane(), lane.index() % 32);
      EXPECT_EQ(lane.warp().lanes(), std::min(32, lanes - lane.index() / 32 * 32));
      EXPECT_EQ(lane.thread().lanes(), 1);
      EXPECT_EQ(lane.block_index(), 0);
      EXPECT_EQ(lane.blocks(), 1);
    });
    std::vector<int> all(static_cast<std::size_t>(lanes));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  }
}

TEST(BlockLanes, meet) {
  for (const int lanes : lane_counts) {
    int arrived = 0;
    std::vector<int> of_warps(8);
    run_alone({.lanes = lanes}, [&](const CpuLane& lane, const HeapView&, int*) {
      for (int round = 1; round <= 3; ++round) {
        ++of_warps[std::size_t(lane.index() / 32)];
        lane.warp().sync();
        EXPECT_EQ(of_warps[std::size_t(lane.index() / 32)], round * lane.warp().lanes());
        lane.warp().sync();
        ++arrived;
        lane.block().sync();
        EXPECT_EQ(arrived, round * lanes);
        lane.block().sync();
      }
    });
  }
}

TEST(BlockLanes, refuse_impossible_shapes) {
  const auto nothing = [](const CpuLane&, const HeapView&, int*) {};
  expect_error(ErrorCode::invalid_use, {"1 block of 0 lanes"}, {.lanes = 0}, nothing);
  expect_error(ErrorCode::invalid_use, {"at most 1024 lanes"}, {.lanes = 1025}, nothing);
  expect_error(ErrorCode::invalid_use, {"in warps of 0"}, {.lanes = 4, .warp = 0}, nothing);
  run_alone({.lanes = 1024}, [](const CpuLane& lane, const HeapView&, int*) { lane.block().sync(); });
}

TEST(BlockDivergence, a_lane_ends) {
  expect_error(ErrorCode::invalid_use,
               {"lanes 5 and 0 of block 0 have diverged: lane 5 has ended, but lane 0 is at sync (cpu_lanes_test.cpp:",
                "of its block, which all 64 lanes must call", "(rank 0)"},
               {.lanes = 64}, [](const CpuLane& lane, const HeapView&, int*) {
                 if (lane.index() != 5) lane.block().sync();
               });
  // Before the others come.
  expect_error(ErrorCode::invalid_use, {"lane 0 has ended, but lane 1 is at put (", "of its warp, which all 32 lanes"},
               {.lanes = 64}, [](const CpuLane& lane, const HeapView& heap, int* data) {
                 if (lane.index() != 0) heap.put(lane.warp(), Span(data, 4), Span<const int>(data + 8, 4), 0);
               });
}

TEST(BlockDivergence, other_operations) {
  int put_at = 0, get_at = 0;
  const Error error = error_of_rank([&] {
    run_alone({.lanes = 8}, [&](const CpuLane& lane, const HeapView& heap, int* data) {
      if (lane.index() < 3) {
        put_at = __LINE__ + 1;
        heap.put(lane.block(), Span(data, 4), Span<const int>(data + 8, 4), 0);
      } else {
        get_at = __LINE__ + 1;
        heap.get(lane.block(), Span(data, 4), Span<const int>(data + 8, 4), 0);
      }
    });
  });
  require_says(error, ErrorCode::invalid_use,
               {"lanes 0 and 3 of block 0 have diverged: at an operation of their block",
                fmt::format("lane 0 is at put ({})", line(put_at)).c_str(),
                fmt::format("lane 3 at get ({})", line(get_at)).c_str()});
}

TEST(BlockDivergence, other_places) {
  expect_error(ErrorCode::invalid_use,
               {"lanes 0 and 1 of block 0 have diverged", "lane 0 is at sync", "lane 1 at sync"}, {.lanes = 2},
               [](const CpuLane& lane, const HeapView&, int*) {
                 if (lane.index() == 0)
                   lane.block().sync();
                 else
                   lane.block().sync();
               });
}

TEST(BlockDivergence, other_arguments) {
  expect_error(ErrorCode::invalid_use,
               {"lanes 0 and 1 of block 0 call put (cpu_lanes_test.cpp:",
                "of their block with different arguments: elements 4 and elements 5"},
               {.lanes = 4}, [](const CpuLane& lane, const HeapView& heap, int* data) {
                 heap.put(lane.block(), Span(data, 8), Span<const int>(data + 8, 4 + lane.index()), 0);
               });
  expect_error(
      ErrorCode::invalid_use, {"lanes 32 and 34", "warp", "value 0 and value 1"}, {.lanes = 64},
      [](const CpuLane& lane, const HeapView& heap, int* data) { heap.p(lane.warp(), data, lane.index() == 34, 0); });
}

TEST(BlockDivergence, warp_against_block) {
  expect_error(ErrorCode::invalid_use,
               {"lanes 1 and 0 of block 0 have diverged: lane 1 is at quiet (", "of its warp", "lane 0 at sync (",
                "of its block"},
               {.lanes = 40}, [](const CpuLane& lane, const HeapView& heap, int*) {
                 if (lane.index() == 1)
                   heap.quiet(lane.warp());
                 else
                   lane.block().sync();
               });
}

TEST(BlockDivergence, of_warps_is_allowed) {
  int sum = 0;
  run_alone({.lanes = 96}, [&](const CpuLane& lane, const HeapView& heap, int* data) {
    if (lane.index() / 32 == 1) {
      heap.inc(lane.warp(), data, 0);
    } else if (lane.index() == 0) {
      heap.add(lane.thread(), data, 10, 0);
    }
    lane.block().sync();
    if (lane.index() == 95) sum = *data;
  });
  EXPECT_EQ(sum, 11);
}

/// Counts those that live.
struct Counted {
  explicit Counted(int& n) : count(++n) {}
  ~Counted() { --count; }
  int& count;
};

TEST(BlockFailure, reaches_the_caller_and_unwinds_all_lanes) {
  for (const int thrower : {0, 5, 63}) {
    int living = 0, begun = 0;
    try {
      run_alone({.lanes = 64}, [&](const CpuLane& lane, const HeapView& heap, int* data) {
        const std::string held(100, 'x');
        const Counted counted(living);
        ++begun;
        if (lane.index() == thrower) throw std::runtime_error("lane " + std::to_string(thrower));
        if (lane.index() % 3 == 0)
          heap.wait_until(lane.thread(), data, Comparison::equal, 1);
        else
          lane.block().sync();
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "lane " + std::to_string(thrower));
    }
    EXPECT_EQ(living, 0);
    EXPECT_EQ(begun, thrower + 1);
  }
}

TEST(BlockFailure, in_one_block_unwinds_the_others) {
  int living = 0;
  test::run_on(On::threads, 1, [&](World& world) {
    const auto data = world.allocate<int>(1);
    const HeapView heap = heap_view(world);
    require_says(error_of_rank([&] {
                   run_grid(world, {.blocks = 4, .block = {.lanes = 3}}, [&](const CpuLane& lane) {
                     const Counted counted(living);
                     if (lane.block_index() == 2) throw Error(ErrorCode::io, "block 2");
                     heap.wait_until(lane.block(), data.local(), Comparison::equal, 1);
                   });
                 }),
                 ErrorCode::io, {"block 2"});
  });
  EXPECT_EQ(living, 0);
}

TEST(BlockFailure, a_lane_that_catches_everything_is_unwound_too) {
  expect_error(ErrorCode::io, {"lane 1"}, {.lanes = 2}, [](const CpuLane& lane, const HeapView&, int*) {
    if (lane.index() == 1) throw Error(ErrorCode::io, "lane 1");
    for (int tries = 0; tries < 3; ++tries) try {
        lane.block().sync();
      } catch (...) {
      }
  });
}

TEST(BlockFailure, a_lane_may_handle_its_own) {
  run_alone({.lanes = 4}, [](const CpuLane& lane, const HeapView& heap, int* data) {
    EXPECT_THROW(heap.p(lane.thread(), data, 1, 7), Error);
    lane.block().sync();
  });
}

TEST(BlockFailure, a_wait_has_a_deadline_and_names_its_lanes) {
  int wait_at = 0;
  const auto kernel = [&](const CpuLane& lane, const HeapView& heap, int* data) {
    wait_at = __LINE__ + 1;
    if (lane.index() >= 2) heap.wait_until(lane.thread(), data, Comparison::greater_equal, 7);
    lane.block().sync();
  };
  const Error error = error_of_rank([&] { run_alone({.lanes = 4}, kernel, 50'000'000); });
  require_says(error, ErrorCode::timeout,
               {"rank 0 waited", "wait_until of lane 2 of block 0 and 1 more", ">= 7, sees 0", line(wait_at).c_str()});
}

TEST(BlockFailure, of_another_rank_ends_a_wait) {
  for (const On on : {On::threads, On::processes}) {
    const Error error = error_of_rank([&] {
      test::run_on(on, 2, [](World& world) {
        const auto signal = world.allocate<std::uint64_t>(1);
        if (world.rank() == 1) throw Error(ErrorCode::io, "rank 1 has gone");
        run_block(world, {.lanes = 32}, [&](const CpuLane& lane) {
          heap_view(world).signal_wait(lane.block(), signal.local(), Comparison::equal, 1);
        });
      });
    });
    EXPECT_EQ(error.message(), "rank 1 has gone");
  }
}

TEST(WordsOfKernels, lie_in_their_natural_places) {
  test::run_on(On::threads, 2, [](World& world) {
    const HeapView heap = heap_view(world);
    const auto data = world.allocate<std::uint64_t>(8);
    auto* const bytes = reinterpret_cast<unsigned char*>(data.local());
    auto* const word = reinterpret_cast<std::uint64_t*>(bytes + 4);
    const std::vector<std::uint64_t> many(2, 1);
    const Span<const std::uint64_t> source(many.data(), 2);
    const Span<std::uint64_t> words(word, 2), target(data.local() + 4, 2);
    std::uint64_t before = 0;
    long long places[2];
    const auto refused = [&](auto&& operation) {
      const Error error =
          error_of_rank([&] { run_block(world, {.lanes = 2}, [&](const CpuLane& lane) { operation(lane.block()); }); });
      require_says(error, ErrorCode::invalid_use, {"is not aligned to its size", "cpu_lanes_test.cpp:"});
    };
    const int peer = next(world);
    using enum Comparison;
    refused([&](const auto& block) { heap.signal(block, word, 1, SignalOp::set, peer); });
    refused([&](const auto& block) { heap.signal_fetch(block, word); });
    refused([&](const auto& block) { heap.signal_wait(block, word, not_equal, 5); });
    refused([&](const auto& block) { heap.put_signal(block, target, source, word, 1, SignalOp::add, peer); });
    refused([&](const auto& block) { heap.put_signal_nbi(block, target, source, word, 1, SignalOp::set, peer); });
    refused([&](const auto& block) { heap.wait_until(block, word, not_equal, 5); });
    refused([&](const auto& block) { heap.test(block, word, equal, 0); });
    refused([&](const auto& block) { heap.wait_until_all(block, words, not_equal, 5); });
    refused([&](const auto& block) { heap.wait_until_any(block, words, not_equal, 5); });
    refused([&](const auto& block) { heap.test_some(block, words, Span<long long>(places, 2), equal, 0); });
    refused([&](const auto& block) { heap.inc(block, word, peer); });
    refused([&](const auto& block) { heap.fetch(block, word, peer); });
    refused([&](const auto& block) { heap.fetch_add_nbi(block, &before, word, 1, peer); });
    refused([&](const auto& block) { heap.inc(block, reinterpret_cast<std::uint32_t*>(bytes + 2), peer); });
    // A slice is looked at as a whole, not only as far as it is moved.
    const Span<std::uint64_t> endless(data.local(), INT64_MAX / 8);
    std::uint64_t here[2];
    const auto outside = [&](auto&& operation) {
      const Error error =
          error_of_rank([&] { run_block(world, {.lanes = 2}, [&](const CpuLane& lane) { operation(lane.block()); }); });
      require_says(error, ErrorCode::invalid_use, {"lies outside the symmetric heap"});
    };
    outside([&](const auto& block) { heap.put(block, endless, source, peer); });
    outside([&](const auto& block) { heap.put_signal(block, endless, source, data.local(), 1, SignalOp::set, peer); });
    outside([&](const auto& block) { heap.get(block, Span<std::uint64_t>(here, 2), endless, peer); });
    world.barrier();
    for (int i = 0; i < 8; ++i) require(data[i] == 0, "element {} is {}", i, data[i]);
    world.barrier();
  });
}

// What a rank checks, its kernels check.

TEST(BlockChecks, find_what_was_freed_and_what_runs_over) {
  setenv("TRANSHIP_HEAP_CHECKS", "blocks", 1);
  for (const On on : {On::threads, On::processes, On::sim, On::messaged, On::hosts})
    test::run_on(on, 3, [](World& world) {
      const HeapView heap = heap_view(world);
      auto gone = world.allocate<int>(16);
      const auto data = world.allocate<int>(16);
      const Span<int> freed = span_of(gone), over(data.local() + 8, 16);
      world.free(std::move(gone));
      const std::vector<int> many(16, 1);
      const Span<const int> source(many.data(), 16);
      const auto refused = [&](auto&& operation, const char* bytes) {
        const Error error = error_of_rank(
            [&] { run_block(world, {.lanes = 4}, [&](const CpuLane& lane) { operation(lane.warp()); }); });
        require_says(error, ErrorCode::invalid_use,
                     {bytes, "of the symmetric heap do not lie in one block that is allocated", "cpu_lanes_test.cpp:"});
      };
      refused([&](const auto& warp) { heap.put(warp, over, source, next(world)); }, "bytes [96, 160)");
      refused([&](const auto& warp) { heap.put(warp, freed, source, next(world)); }, "bytes [0, 64)");
      refused([&](const auto& warp) { heap.inc(warp, freed.data + 3, next(world)); }, "bytes [12, 16)");
      refused([&](const auto& warp) { heap.wait_until(warp, freed.data, Comparison::equal, 0); }, "bytes [0, 4)");
      run_block(world, {.lanes = 4},
                [&](const CpuLane& lane) { heap.put(lane.block(), span_of(data), source, next(world)); });
      world.barrier();
      require(data[15] == 1, "checked puts work");
    });
  unsetenv("TRANSHIP_HEAP_CHECKS");
}

}  // namespace
}  // namespace tranship
