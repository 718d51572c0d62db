// What exchanges of arrays refuse, and what they say then: both sides of what is wrong, layouts as their texts, and the
// call of the program.
#include <gtest/gtest.h>

#include <tranship/tranship.hpp>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

void expect_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

StridedView view_of(double* first, const Indices& extents, const Indices& strides) {
  return {.data = first, .type = ElementType::f64, .extents = extents, .strides = strides};
}

TEST(Refusals, MemoryThatOverlapsInPart) {
  launch(1, [](World& world) {
    const Distribution cells({4, 3}, grid(1, 1), {block(), block()});
    std::vector<double> memory(40);
    const Array<double> a(world, cells, memory.data()), b(world, cells, memory.data() + 11),
        after(world, cells, memory.data() + 12);
    const std::string message = error_of([&] { Redistribution(a, b); });
    expect_says(message, {"invalid_use: ", "source (", ") and target (", "share memory", "writes target",
                          fmt::format("{:#x} to {:#x}", std::uintptr_t(&memory[0]), std::uintptr_t(&memory[12]) - 1),
                          fmt::format("{:#x} to ", std::uintptr_t(&memory[11])), "refusals_test.cpp:"});
    EXPECT_EQ(error_of([&] { Redistribution(a, after); }), "");
    // Columns of one table share its memory, and no element.
    const Array<double> even(world, cells, view_of(&memory[0], {4, 3}, {6, 2})),
        odd(world, cells, view_of(&memory[1], {4, 3}, {6, 2})),
        shifted(world, cells, view_of(&memory[2], {4, 3}, {6, 2}));
    EXPECT_EQ(error_of([&] { Redistribution(even, odd); }), "");
    expect_says(error_of([&] { Redistribution(even, shifted); }), {"share memory"});
    // What is only read may be the same.
    const Array<double> c(world, cells), d(world, cells);
    EXPECT_EQ(error_of([&] { Redistribution({{a, c}, {b, d}}); }), "");
    expect_says(error_of([&] { Redistribution({{c, a}, {d, b}}); }), {"target 0 (", "target 1 (", "writes both"});
  });
}

TEST(Refusals, TargetsWhoseElementsOverlap) {
  launch(1, [](World& world) {
    const Distribution cells({4, 3}, grid(1, 1), {block(), block()});
    std::vector<double> memory(40, 7);
    const Array<double> plain(world, cells), one(world, cells, view_of(&memory[0], {4, 3}, {0, 1})),
        meeting(world, cells, view_of(&memory[0], {4, 3}, {2, 3})),
        apart(world, cells, view_of(&memory[0], {4, 3}, {3, 1}));
    expect_says(error_of([&] { Redistribution(plain, one); }),
                {"invalid_use: target is written", "strides [0, 1]", "extents [4, 3]", "0x"});
    expect_says(error_of([&] { Redistribution(plain, meeting); }), {"strides [2, 3]"});
    EXPECT_EQ(error_of([&] { Redistribution(plain, apart); }), "");
    // To read one row four times is no fault.
    plain.fill_owned([](const Indices&) { return 1.0; });
    Redistribution(one, plain)();
    EXPECT_EQ(plain.count_wrong([](const Indices&) { return 7.0; }), 0);
    expect_says(error_of([&] { RedistributionAdjoint(one, plain); }), {"source is written", "strides [0, 1]"});
  });
}

TEST(Refusals, MemoryOfDevices) {
  launch(1, [](World& world) {
    const Distribution cells({4, 3}, grid(1, 1), {block(), block()});
    std::vector<double> memory(12);
    StridedView view = view_of(&memory[0], {4, 3}, {3, 1});
    view.device = Device::fake(1);
    expect_says(error_of([&] { Array<double>(world, cells, view); }), {"unsupported: the view shows memory of fake:1"});
  });
}

TEST(Refusals, AdjointsOfElementsWithoutAddition) {
  launch(2, [](World& world) {
    const Distribution rows({6}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    const Array<bool> a(world, rows), b(world, rows);
    expect_says(error_of([&] { RedistributionAdjoint(a, b); }),
                {"invalid_use: ", "source: elements of type bool8 cannot be combined by sum", "refusals_test.cpp:"});
    expect_says(error_of([&] {
                  HaloExchange({a, b}, {}, HaloDirection::adjoint);
                }),
                {"invalid_use: ", "array 0: elements of type bool8 cannot be combined by sum"});
    EXPECT_EQ(error_of([&] { HaloExchange({a, b}); }), "");
  });
}

TEST(Refusals, HalosThatReachBeyondTheOverlap) {
  launch(2, [](World& world) {
    const Distribution with({6, 4}, grid(2, 1), {block().with_overlap(1, 0), whole()});
    const Array<double> a(world, with);
    EXPECT_EQ(error_of([&] { HaloExchange({a}, {.depth_low = {1, 0}}); }), "");
    EXPECT_EQ(error_of([&] { HaloExchange({a}, {.depth = 1}); }), "");
    const Array<double> deep(world, Distribution({6}, grid(2), {block().with_overlap(3, 3)}));
    expect_says(error_of([&] {
                  HaloExchange({deep, a}, {.depth = 3});
                }),
                {"array 1: the halo reaches 3", "to the left in dimension 0", "stores 1"});
    expect_says(error_of([&] { HaloExchange({a, a}, {.depth_low = {2, 0}}); }), {"array 0: the halo reaches 2"});
  });
}

TEST(Refusals, IndicesThatAreNotThere) {
#if !defined(TRANSHIP_COSTLY_ASSERTIONS)
  GTEST_SKIP() << "elements are checked where costly assertions are on";
#endif
  launch(1, [](World& world) {
    const Array<double> a(world, Distribution({4, 3}, grid(1, 1), {block(), block()}));
    a(3, 2) = 1;
    EXPECT_EQ(a.get({3, 2}), 1);
    expect_says(error_of([&] { a(1) = 1; }), {"invalid_use: indices (1) of a local array of extents [4, 3]"});
    expect_says(error_of([&] { a(1, 3) = 1; }), {"indices (1, 3)", "out of range"});
    expect_says(error_of([&] { a(-1, 0) = 1; }), {"indices (-1, 0)"});
    expect_says(error_of([&] { a.get({4, 0}); }), {"indices (4, 0)"});
    expect_says(error_of([&] { a.put({0, 0, 0}, 1); }), {"indices (0, 0, 0)", "give one index per dimension"});
    const Array<std::complex<float>> split(world,
                                           Distribution({2}, grid(1), {block()}, {.parts = ComplexParts::split}));
    split.put({1}, 2.0f);
    expect_says(error_of([&] { split(1) = 1.0f; }), {"2 planes"});
  });
}

class RefusalsEverywhere : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, RefusalsEverywhere,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt),
                                            ::testing::Values(2, 3)),
                         OnRanks::name);

TEST_P(RefusalsEverywhere, all_ranks_hear_why_one_cannot_take_part) {
  run([](World& world) {
    const Distribution rows({7}, grid(world.size()), {block()});
    const Index local = rows.local_extents(world.rank())[0];
    std::vector<double> memory(20);
    const bool is_wrong = world.rank() == 1;
    const Array<double> a(world, rows, memory.data()), b(world, rows, memory.data() + (is_wrong ? local - 1 : local));
    const Error error = error_of_rank([&] { Redistribution(a, b); });
    require_says(error, ErrorCode::invalid_use, {"source (0x", "share memory", "rank 1", "refusals_test.cpp:"});
    require(is_wrong || error.message().find("rank 1 cannot take part") == 0, "{}", error.message());
  });
}

TEST_P(RefusalsEverywhere, layouts_that_differ_are_shown_as_texts) {
  run([](World& world) {
    const Partition cells = block().with_overlap(1, 1, world.rank() == 1 ? EdgePolicy::replicate : EdgePolicy::zero);
    const Distribution same({9}, grid(world.size()), {block().with_overlap(1, 1, EdgePolicy::zero)});
    const Array<double> a(world, same), b(world, Distribution({9}, grid(world.size()), {cells}));
    const Error error = error_of_rank([&] { HaloExchange({a, b}); });
    // Two layouts on rank 1, one on the others: there are more slots, too.
    require_says(error, ErrorCode::mismatch, {"refusals_test.cpp:"});
    const Error one = error_of_rank([&] { HaloExchange(std::vector<ArrayRef>{b}); });
    require_says(one, ErrorCode::mismatch,
                 {"array 0 has layout f64[9] @ ", "overlap(1,1,zero) on rank 0", "overlap(1,1,replicate) on rank 1"});
  });
}

}  // namespace
}  // namespace tranship::test
