// Arrays with strides that kernels put and get: against a loop over elements, however they lie.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <support/kernels_on_ranks.hpp>

#include <tranship/base/random.hpp>

#include "support/thinned.hpp"

namespace tranship {
namespace {

using test::error_of_rank;
using test::next;
using test::On;
using test::previous;
using test::require;
using test::require_says;

struct Odd {
  unsigned char parts[3];
  friend bool operator==(const Odd&, const Odd&) = default;
};
struct Wide {
  std::uint64_t parts[2];
  friend bool operator==(const Wide&, const Wide&) = default;
};
struct Large {
  std::uint32_t parts[9];
  friend bool operator==(const Large&, const Large&) = default;
};

template <class T>
T value_of(Index i, int seed) {
  T value;
  unsigned char bytes[sizeof(T)];
  for (std::size_t b = 0; b < sizeof(T); ++b)
    bytes[b] = static_cast<unsigned char>((i * 31 + Index(b) * 7 + seed * 13 + i / 97 + 1) % 200);
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Calls `f(offset in one, offset in other)` for all elements.
template <class T, class F>
void for_each_element(const StridedSpan<T>& one, const StridedSpan<T>& other, F&& f) {
  Indices extents;
  for (int d = 0; d < one.dims; ++d) extents.push_back(one.extents[d]);
  for_each_coordinate(extents, [&](const Indices& at) {
    Index first = 0, second = 0;
    for (int d = 0; d < one.dims; ++d) {
      first += at[d] * one.strides[d];
      second += at[d] * other.strides[d];
    }
    f(first, second);
  });
}

/// Dimensions in any order with gaps and either direction, no two elements in one place; `room` elements from `first`.
template <class T>
StridedSpan<T> random_array(SplitMix64& random, const std::vector<Index>& extents, T* first, Index room) {
  StridedSpan<T> out;
  out.dims = static_cast<int>(extents.size());
  std::vector<int> order(extents.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  Index stride = 1 + Index(random.below(2)), back = 0;
  for (int d : order) {
    const bool is_back = random.below(3) == 0;
    out.extents[d] = extents[std::size_t(d)];
    out.strides[d] = is_back ? -stride : stride;
    if (is_back) back += stride * std::max<Index>(0, extents[std::size_t(d)] - 1);
    stride = stride * std::max<Index>(1, extents[std::size_t(d)]) + Index(random.below(2));
  }
  require(stride <= room, "test: {} elements of {}", stride, room);
  out.data = first + back;
  return out;
}

// How lanes share an array.

template <class T>
void expect_moved_once(SplitMix64& random, const std::vector<Index>& extents) {
  constexpr Index room = 3000;
  std::vector<T> source(room), target(room), wanted(room);
  for (Index i = 0; i < room; ++i) source[std::size_t(i)] = value_of<T>(i, 1);
  const StridedSpan<T> from = random_array(random, extents, source.data(), room),
                       to = random_array(random, extents, target.data(), room);
  std::memset(static_cast<void*>(wanted.data()), 0xee, room * sizeof(T));
  for_each_element(to, from, [&](Index there, Index here) {
    wanted[std::size_t(to.data - target.data() + there)] = from.data[here];
  });
  const CopyBlock block = detail::block_of<T>(to, from);
  constexpr int width = detail::strided_width<T>;
  for (const int lanes : {1, 2, 7, 32, 100})
    for (const bool side_by_side : {false, true}) {
      std::memset(static_cast<void*>(target.data()), 0xee, room * sizeof(T));
      std::size_t changed = 0;
      for (int lane = 0; element_count(block) > 0 && lane < lanes; ++lane) {
        std::vector<T> before = target;
        auto* there = reinterpret_cast<unsigned char*>(to.data);
        const auto* here = reinterpret_cast<const unsigned char*>(from.data);
        detail::StridedBlock of_lane = detail::strided_block_of<T>(to, from);
        ASSERT_EQ(of_lane.count() * Index(sizeof(T)), element_count(block) * width);
        if (side_by_side)
          detail::copy_strided_interleaved(lane, lanes, of_lane, sizeof(T), there, here);
        else
          detail::copy_strided_in_rows<width>(lane, lanes, block, there, here);
        changed += std::size_t(std::inner_product(before.begin(), before.end(), target.begin(), 0, std::plus<>(),
                                                  [](const T& a, const T& b) { return a == b ? 0 : 1; }));
      }
      ASSERT_TRUE(target == wanted) << lanes << " lanes";
      if (width == sizeof(T)) {
        ASSERT_EQ(changed, std::size_t(element_count(block))) << lanes << " lanes";
      }
    }
}

TEST(StridedCopyByLanes, moves_every_element_once) {
  SplitMix64 random(7);
  for (int i = 0; i < (test::is_brief() ? 10 : 60); ++i) {
    std::vector<Index> extents(random.below(5));
    for (Index& extent : extents) extent = Index(random.below(6));
    if (extents.size() == 1) extents[0] *= 40;
    expect_moved_once<unsigned char>(random, extents);
    expect_moved_once<short>(random, extents);
    expect_moved_once<int>(random, extents);
    expect_moved_once<Wide>(random, extents);
    expect_moved_once<Odd>(random, extents);
    expect_moved_once<Large>(random, extents);
  }
}

TEST(StridedReach, is_exact_and_never_overflows) {
  using Span2 = StridedSpan<int>;
  const auto reach = [](const Span2& span, unsigned long long bytes) {
    const auto [first, count] = detail::reach_of(span, bytes);
    return std::array{first, count};
  };
  using Two = std::array<long long, 2>;
  EXPECT_EQ(reach({.dims = 0}, 4), (Two{0, 4}));
  EXPECT_EQ(reach({.dims = 0}, 3), (Two{0, -1}));
  EXPECT_EQ(reach({.dims = 2, .extents = {3, 4}, .strides = {-10, 2}}, 1000), (Two{-80, 80 + 24 + 4}));
  EXPECT_EQ(reach({.dims = 2, .extents = {3, 4}, .strides = {-10, 2}}, 108), (Two{-80, 108}));
  EXPECT_EQ(reach({.dims = 2, .extents = {3, 4}, .strides = {-10, 2}}, 107), (Two{0, -1}));
  EXPECT_EQ(reach({.dims = 2, .extents = {0, 1ll << 62}, .strides = {1, 1}}, 4), (Two{0, 0}));
  EXPECT_EQ(reach({.dims = 1, .extents = {1}, .strides = {INT64_MIN}}, 4), (Two{0, 4}));
  EXPECT_EQ(reach({.dims = 1, .extents = {1ll << 62}, .strides = {0}}, 4), (Two{0, 4}));
  for (const Index stride : {INT64_MIN, INT64_MAX, Index(1) << 61, -(Index(1) << 61)})
    for (const Index extent : {Index(2), Index(1) << 32, INT64_MAX})
      EXPECT_EQ(reach({.dims = 2, .extents = {extent, extent}, .strides = {stride, stride}}, ~0ull), (Two{0, -1}));
  EXPECT_EQ(reach({.dims = 1, .extents = {-1}, .strides = {1}}, 100), (Two{0, -1}));
  EXPECT_EQ(reach({.dims = 8}, 100), (Two{0, -1}));
  EXPECT_EQ(reach({.dims = -1}, 100), (Two{0, -1}));
}

// Transfers.

class KernelArrays : public test::BlockOnRanks {};
TRANSHIP_KERNELS_ON_RANKS(KernelArrays);

enum class Form { put, put_nbi, get, get_nbi, put_signal, put_signal_nbi };

template <class T>
void move_random_arrays(World& world, const HeapView& heap, SplitMix64& random, Form form) {
  constexpr Index room = 1200;
  const auto source = world.allocate<T>(room), target = world.allocate<T>(room);
  const auto flag = world.allocate<std::uint64_t>(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<Index> extents(random.below(5));
    for (Index& extent : extents) extent = Index(random.below(5));
    // The same on all ranks, for all have the same numbers.
    const StridedSpan<T> from = random_array(random, extents, source.local(), room),
                         to = random_array(random, extents, target.local(), room);
    for (Index i = 0; i < room; ++i) source[i] = value_of<T>(i, world.rank() + round);
    std::memset(static_cast<void*>(target.local()), 0xee, std::size_t(target.size_bytes()));
    world.barrier();
    const bool is_get = form == Form::get || form == Form::get_nbi;
    const auto lanes = static_cast<int>(1 + random.below(70));
    run_block(world, {.lanes = lanes}, [&](const CpuLane& lane) {
      const auto block = lane.block();
      switch (form) {
        case Form::put:
          return heap.put(block, to, from, next(world));
        case Form::put_nbi:
          heap.put_nbi(block, to, from, next(world));
          return heap.quiet(block);
        case Form::get:
          return heap.get(lane.warp(), to, from, next(world));
        case Form::get_nbi:
          heap.get_nbi(block, to, from, next(world));
          return heap.quiet(block);
        case Form::put_signal:
          heap.put_signal(block, to, from, flag.local(), 1, SignalOp::add, next(world));
          heap.signal_wait(block, flag.local(), Comparison::equal, std::uint64_t(round + 1));
          return;
        case Form::put_signal_nbi: {
          // In turn by one thread, by the first warp, and by the block.
          const auto put_by = [&](const auto& group) {
            heap.put_signal_nbi(group, to, from, flag.local(), 1, SignalOp::add, next(world));
            heap.signal_wait(group, flag.local(), Comparison::equal, std::uint64_t(round + 1));
            heap.quiet(group);
          };
          if (round == 0 && lane.index() == 0) put_by(lane.thread());
          if (round == 1 && lane.index() < 32) put_by(lane.warp());
          if (round == 2) put_by(block);
        }
      }
    });
    if (form != Form::put_signal && form != Form::put_signal_nbi) world.barrier();
    const int of = is_get ? next(world) : previous(world);
    std::vector<T> wanted(room);
    std::memset(static_cast<void*>(wanted.data()), 0xee, room * sizeof(T));
    for_each_element(to, from, [&](Index there, Index here) {
      wanted[std::size_t(to.data - target.local() + there)] =
          value_of<T>(from.data - source.local() + here, of + round);
    });
    for (Index i = 0; i < room; ++i)
      require(target[i] == wanted[std::size_t(i)], "form {}, round {}, {} lanes: element {} of {} bytes", int(form),
              round, lanes, i, sizeof(T));
    world.barrier();
  }
}

TEST_P(KernelArrays, are_moved_as_a_loop_moves_them) {
  run([](World& world, const HeapView& heap) {
    SplitMix64 random(3);
    for (const Form form :
         {Form::put, Form::put_nbi, Form::get, Form::get_nbi, Form::put_signal, Form::put_signal_nbi}) {
      move_random_arrays<signed char>(world, heap, random, form);
      move_random_arrays<int>(world, heap, random, form);
      move_random_arrays<Wide>(world, heap, random, form);
      move_random_arrays<Odd>(world, heap, random, form);
    }
  });
}

TEST_P(KernelArrays, of_seven_dimensions_and_columns) {
  run([](World& world, const HeapView& heap) {
    const auto source = world.allocate<Odd>(600), target = world.allocate<Odd>(600);
    for (Index i = 0; i < 600; ++i) source[i] = value_of<Odd>(i, world.rank());
    world.barrier();
    const StridedSpan<Odd> seven{
        .data = source.local(), .dims = 7, .extents = {2, 1, 2, 3, 1, 2, 2}, .strides = {100, 0, 50, 15, 7, 6, 3}};
    StridedSpan<Odd> there = seven;
    there.data = target.local();
    // Columns of a matrix, to rows.
    const StridedSpan<Odd> columns{.data = source.local() + 300, .dims = 2, .extents = {3, 20}, .strides = {1, 10}};
    const StridedSpan<Odd> rows{.data = target.local() + 300, .dims = 2, .extents = {3, 20}, .strides = {20, 1}};
    run_block(world, {.lanes = 9}, [&](const CpuLane& lane) {
      heap.put(lane.block(), there, seven, next(world));
      heap.put(lane.block(), rows, columns, next(world));
      heap.quiet(lane.block());
    });
    world.barrier();
    for_each_element(seven, there, [&](Index here, Index) {
      require(target[here] == value_of<Odd>(here, previous(world)), "element {}", here);
    });
    for (Index i = 0; i < 60; ++i)
      require(target[300 + i] == value_of<Odd>(300 + i % 20 * 10 + i / 20, previous(world)), "row element {}", i);
  });
}

TEST_P(KernelArrays, that_cannot_be_moved_are_refused) {
  run([](World& world, const HeapView& heap) {
    const auto array = world.allocate<int>(100);
    std::vector<int> local(100);
    const StridedSpan<int> good{.data = array.local(), .dims = 2, .extents = {4, 5}, .strides = {10, 2}};
    const auto refused = [&](const StridedSpan<int>& target, const StridedSpan<int>& source,
                             std::initializer_list<const char*> parts) {
      const Error error = error_of_rank([&] {
        run_block(world, {.lanes = 3},
                  [&](const CpuLane& lane) { heap.put(lane.block(), target, source, next(world)); });
      });
      require_says(error, ErrorCode::invalid_use, parts);
      require_says(error, ErrorCode::invalid_use, {"put(", "kernel_arrays_test.cpp:", "lane 0 of block 0"});
    };
    StridedSpan<int> other = good;
    other.extents[1] = 6;
    refused(good, other, {"target extent 5, source extent 6", "another shape"});
    other.dims = 1;
    refused(good, other, {"target dimensions 2, source dimensions 1"});
    other = good;
    other.dims = 8;
    refused(other, other, {"0 to 7 dimensions"});
    other = good;
    other.extents[0] = -4;
    refused(other, other, {"larger than memory"});
    // Far from the heap in one direction or the other.
    const auto far = static_cast<Index>(heap.heaps.size_bytes / sizeof(int));
    for (const Index stride : {far, -far, INT64_MAX, INT64_MIN}) {
      other = good;
      other.strides[1] = stride;
      refused(other, good, {"the target lies outside the symmetric heap"});
    }
    other = good;
    other.data = local.data();
    refused(other, good, {"the target lies outside the symmetric heap"});
    world.barrier();
    for (const int value : array.span()) require(value == 0, "{} was put", value);
    // Where nothing is moved nothing is refused, and a signal is one.
    const auto flag = world.allocate<std::uint64_t>(1);
    const StridedSpan<int> none{.dims = 3, .extents = {INT64_MAX, 3, 0}, .strides = {INT64_MAX, INT64_MIN, 7}};
    const StridedSpan<int> one{.data = array.local(), .dims = 2, .extents = {1, 1}, .strides = {INT64_MAX, INT64_MIN}};
    StridedSpan<int> from = one;
    from.data = local.data();
    run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
      heap.put(lane.block(), one, from, next(world));
      heap.get(lane.block(), none, none, next(world));
      heap.put_signal(lane.block(), none, none, flag.local(), 3, SignalOp::set, next(world));
      heap.signal_wait(lane.block(), flag.local(), Comparison::equal, 3);
    });
    world.barrier();
    run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
      heap.put_signal_nbi(lane.block(), none, none, flag.local(), 4, SignalOp::set, next(world));
      heap.signal_wait(lane.block(), flag.local(), Comparison::equal, 4);
    });
    std::uint64_t outside = 0;
    const Error error = error_of_rank([&] {
      run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
        heap.put_signal_nbi(lane.block(), good, good, &outside, 1, SignalOp::set, next(world));
      });
    });
    require_says(error, ErrorCode::invalid_use, {"put_signal_nbi(", "the signal lies outside the symmetric heap"});
    world.barrier();
  });
}

TEST(KernelArrayLanes, that_bring_other_shapes_are_named) {
  test::run_on(On::threads, 1, [](World& world) {
    const auto array = world.allocate<int>(100);
    const HeapView heap = heap_view(world);
    const Error error = error_of_rank([&] {
      run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
        const StridedSpan<int> mine{
            .data = array.local(), .dims = 1, .extents = {5}, .strides = {1 + lane.index() / 3}};
        const StridedSpan<int> same{.data = &array[50], .dims = 1, .extents = {5}, .strides = {1}};
        heap.put(lane.block(), mine, same, 0);
      });
    });
    require_says(error, ErrorCode::invalid_use,
                 {"lanes 0 and 3 of block 0 call put (kernel_arrays_test.cpp:", "target shape "});
  });
}

}  // namespace
}  // namespace tranship
