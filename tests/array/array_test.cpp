// Arrays as their users hold them: memory, views, and what is refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include <tranship/array/local_array.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/tranship.hpp>

#include "support/error_of.hpp"

namespace tranship::test {
namespace {

TEST(Array, IsZeroedAlignedAndShared) {
  launch(2, [](World& world) {
    const Array<float> a(world,
                         distribution({5, 3}, grid(2, 1), {block().with_overlap(1, 0, EdgePolicy::zero), whole()}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
    EXPECT_EQ(a.extents(), (Indices{world.rank() == 0 ? 4 : 3, 3}));
    for_each_coordinate(a.extents(), [&](const Indices& local) { EXPECT_EQ(a.get(local), 0); });
    const Array<float> same = a;
    same(1, 2) = 7;
    EXPECT_EQ(a.get({1, 2}), 7);
    a.put({1, 2}, 8);
    EXPECT_EQ(same.data()[5], 8);
  });
}

TEST(Array, CountsWhatDiffersFromItsCells) {
  launch(3, [](World& world) {
    const Array<std::int64_t> a(world, distribution({10}, grid(3), {cyclic(2)}));
    auto number = [](const Indices& cell) { return 100 + cell[0]; };
    a.fill_owned(number);
    EXPECT_EQ(a.count_wrong(number), 0);
    a.put({1}, -1);
    EXPECT_EQ(a.count_wrong(number), 1);
  });
}

TEST(Array, CountsWhatDiffersBeyondToroidalEdges) {
  launch(2, [](World& world) {
    for (const EdgePolicy edge : {EdgePolicy::toroidal, EdgePolicy::zero}) {
      const Array<double> a(world, distribution({6, 4}, grid(2, 1), {block().with_overlap(4, 4, edge), whole()}));
      auto number = [](const Indices& cell) { return double(1 + cell[0] * 10 + cell[1]); };
      a.fill_owned(number);
      const bool wraps = edge == EdgePolicy::toroidal;
      EXPECT_EQ(a.count_wrong(number), wraps ? 8 * 4 : 3 * 4);
      HaloExchange({a})();
      EXPECT_EQ(a.count_wrong(number), 0);
      a.put({0, 0}, -1);
      EXPECT_EQ(a.count_wrong(number), wraps ? 1 : 0);  // else it lies beyond the edge
    }
  });
}

TEST(Array, CountsInterfacesBeyondToroidalEdges) {
  launch(2, [](World& world) {
    // Of 6 cells: each rank owns 4 interfaces, and its ghosts go around the ring.
    const Partition ring = block().with_interfaces().with_overlap(8, 8, EdgePolicy::toroidal);
    const Array<double> a(world, distribution({7}, grid(2), {ring}));
    auto number = [](const Indices& cell) { return double(1 + cell[0]); };
    a.fill_owned(number);
    EXPECT_EQ(a.count_wrong(number), 16);
    HaloExchange({a})();
    EXPECT_EQ(a.count_wrong(number), 0);
    a.put({0}, -1);
    a.put({19}, -1);
    EXPECT_EQ(a.count_wrong(number), 2);
  });
}

TEST(Array, SplitComplexNumbersLieInTwoPlanes) {
  const Distribution ring({6}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)},
                          {.offset = 2, .parts = ComplexParts::split});
  auto number = [](const Indices& cell) { return std::complex<double>(double(cell[0]), -double(cell[0])); };
  launch(2, [&](World& world) {
    const Array<std::complex<double>> own(world, ring);
    std::vector<double> real(7), imaginary(7);
    const Array<std::complex<double>> wrapped(
        world, ring,
        {.data = &real[2], .type = ElementType::c128, .extents = {5}, .strides = {1}, .imaginary = &imaginary[2]});
    own.fill_owned(number);
    wrapped.fill_owned(number);
    HaloExchange({own, wrapped})();
    for (int i = 0; i < 5; ++i) {
      const double cell = (world.rank() * 3 + i + 5) % 6;
      EXPECT_EQ(own.get({i}), std::complex<double>(cell, -cell));
      EXPECT_EQ(real[2 + i], cell);
      EXPECT_EQ(imaginary[2 + i], -cell);
    }
    EXPECT_EQ(real[0] + real[1] + imaginary[0] + imaginary[1], 0);
  });
}

TEST(Array, HoldsNothingOutsideItsGrid) {
  launch(5, [](World& world) {
    // The source on ranks 1 and 3, the target on 3 and 0; ranks 2 and 4 have no part and still take part.
    const Distribution source({7, 4}, Grid({2, 1}, {.first = 1, .stride = 2}), {block(), whole()});
    const Distribution target({7, 4}, Grid({1, 2}, {.ranks = {3, 0}}), {whole(), block()});
    const Array<short> a(world, source), b(world, target);
    if (world.rank() == 2 || world.rank() == 4) {
      EXPECT_EQ(a.data(), nullptr);
      EXPECT_EQ(b.extents(), (Indices{0, 0}));
    }
    auto number = [](const Indices& cell) { return short(10 * cell[0] + cell[1]); };
    a.fill_owned(number);
    for (const Schedule schedule : {Schedule::direct, Schedule::staged}) {
      if (b.data()) std::fill_n(b.data(), 14, short(-1));
      Redistribution move(a, b, {.schedule = schedule});
      for (int repeat = 0; repeat < 2; ++repeat) {
        move();
        EXPECT_EQ(b.count_wrong(number), 0);
      }
    }
  });
}

TEST(Array, MayBeEmptyAndHaveEmptyParts) {
  launch(4, [](World& world) {
    auto number = [](const Indices& cell) { return double(cell[0]); };
    for (const Index cells : {0, 1, 3}) {
      const Array<double> a(world, distribution({cells}, grid(4), {block()}));
      const Array<double> b(world,
                            distribution({cells}, grid(4), {cyclic(2).with_overlap(1, 1, EdgePolicy::truncate)}));
      a.fill_owned(number);
      for (const Schedule schedule : {Schedule::direct, Schedule::staged}) {
        Redistribution(a, b, {.schedule = schedule})();
        EXPECT_EQ(b.count_wrong(number), 0);
        HaloExchange({b}, {}, HaloDirection::update, {.schedule = schedule})();
        EXPECT_EQ(b.count_wrong(number), 0);
      }
    }
  });
}

TEST(Array, RefusesWhatDoesNotFit) {
  launch(2, [](World& world) {
    const Distribution rows({8, 3}, grid(2, 1), {block(), whole()});
    std::vector<double> memory(24);
    auto refused = [&](const StridedView& view) { return error_of([&] { Array<double>(world, rows, view); }); };
    const StridedView view{.data = memory.data(), .type = ElementType::f64, .extents = {4, 3}, .strides = {3, 1}};
    EXPECT_EQ(refused(view), "");
    StridedView wrong = view;
    wrong.extents = {4, 2};
    EXPECT_NE(refused(wrong).find("mismatch: the view has extents [4, 2], the part has local extents [4, 3]"),
              std::string::npos);
    wrong = view;
    wrong.type = ElementType::f32;
    EXPECT_NE(refused(wrong).find("mismatch: the view has elements f32, the array f64"), std::string::npos);
    wrong = view;
    wrong.strides = {3};
    EXPECT_NE(refused(wrong).find("2 extents and 1 stride"), std::string::npos);
    wrong = view;
    wrong.data = nullptr;
    EXPECT_NE(refused(wrong).find("the view of 12 elements has null memory"), std::string::npos);
    wrong = view;
    wrong.imaginary = memory.data();
    EXPECT_NE(refused(wrong).find("imaginary plane"), std::string::npos);

    double* none = nullptr;
    EXPECT_NE(error_of([&] { Array<double>(world, rows, none); }).find("a part of 12 elements"), std::string::npos);
    std::complex<double> one[12];
    const Distribution split({8, 3}, grid(2, 1), {block(), whole()}, {.parts = ComplexParts::split});
    EXPECT_NE(
        error_of([&] { Array<std::complex<double>>(world, split, one); }).find("1 plane; split complex numbers need 2"),
        std::string::npos);
    EXPECT_NE(error_of([&] {
                Array<double>(world, distribution({8}, grid(3), {block()}));
              }).find("invalid_use: the grid needs 3 ranks, the world has 2"),
              std::string::npos);

    const Array<double> a(world, rows);
    const Array<float> f(world, rows);
    EXPECT_NE(error_of([&] { Redistribution(a, f); }).find("mismatch"), std::string::npos);
    EXPECT_NE(error_of([&] { Redistribution(a, a); }).find("share memory"), std::string::npos);
    EXPECT_NE(error_of([&] { HaloExchange(std::vector<ArrayRef>{}); }).find("0 arrays"), std::string::npos);
    EXPECT_NE(error_of([&] {
                HaloExchange({a, ArrayRef{}});
              }).find("array 1 of 2 has not been made"),
              std::string::npos);
    world.barrier();
  });
}

// A buffer of a channel may be large and be used in part, or late: nothing is written before the program does.
TEST(Array, MemoryOfALargeArrayIsZeroAndComesWhenItIsTouched) {
  launch(1, [](World& world) {
    const Index bytes = Index(96) << 20;
    const ArraySpec spec{ElementType::u8, distribution({bytes}, grid(1), {block()})};
    const Index before = resident_memory_bytes();
    const ArrayRef array = allocate_array(world, spec);
    const Index after = resident_memory_bytes();
    EXPECT_LT(after - before, bytes / 2);
    const auto* cells = static_cast<const std::byte*>(array.view.data);
    for (Index at = 0; at < bytes; at += 4099) ASSERT_EQ(cells[at], std::byte(0));
  });
}

TEST(Array, MemoryThatIsUsedAgainIsZero) {
  for (const Index bytes : {Index(3000), Index(40) << 20})
    launch(1, [&](World& world) {
      for (int round = 0; round < 2; ++round) {
        const std::shared_ptr<void> memory = world.local_memory(std::size_t(bytes), MemoryContent::zeros);
        ASSERT_TRUE(memory);
        auto* const cells = static_cast<std::byte*>(memory.get());
        ASSERT_EQ(std::count(cells, cells + bytes, std::byte(0)), bytes) << round;
        std::fill(cells, cells + bytes, std::byte(7));
      }
    });
}

}  // namespace
}  // namespace tranship::test
