// Layout texts: what they mean, that the canonical text reads back, and where errors point.
#include <fmt/core.h>
#include <fuzz/layout_text_check.hpp>
#include <gtest/gtest.h>
#include <layout/random_layout.hpp>

#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

void expect_equal(const ArraySpec& spec, ElementType type, const Distribution& distribution) {
  EXPECT_EQ(spec.type, type);
  EXPECT_TRUE(spec.distribution == distribution) << to_text(spec);
}

TEST(LayoutText, MeansWhatItSays) {
  expect_equal(parse_layout("f64[8192,8192] @ 4x1 : block, whole"), ElementType::f64,
               distribution({8192, 8192}, grid(4, 1), {block(), whole()}));
  expect_equal(parse_layout("f64[517,389] @ 2x3 : cyclic(7), cyclic(5)"), ElementType::f64,
               distribution({517, 389}, grid(2, 3), {cyclic(7), cyclic(5)}));
  expect_equal(parse_layout("c128[64,20] @ 1x5 : whole, cyclic(2)+overlap(1,1,toroidal)"), ElementType::c128,
               distribution({64, 20}, grid(1, 5), {whole(), cyclic(2).with_overlap(1, 1, EdgePolicy::toroidal)}));
  expect_equal(parse_layout("f32[1000000000000] @ 16 : cyclic(64)"), ElementType::f32,
               distribution({1'000'000'000'000}, grid(16), {cyclic(64)}));
}

TEST(LayoutText, KnowsEveryWord) {
  expect_equal(parse_layout("i8[9] @ 3 : block(low)"), ElementType::i8, distribution({9}, grid(3), {block()}));
  expect_equal(parse_layout("i8[9] @ 3 : block(high)+min(2)+mod(3)"), ElementType::i8,
               distribution({9}, grid(3), {block(Remainder::high).with_minimum(2).with_modulo(3)}));
  expect_equal(parse_layout("i8[9] @ 3 : block(ceil)+interfaces"), ElementType::i8,
               distribution({9}, grid(3), {block(Remainder::ceil).with_interfaces()}));
  expect_equal(parse_layout("i8[9] @ 3 : cyclic"), ElementType::i8, distribution({9}, grid(3), {cyclic(1)}));
  expect_equal(parse_layout("i8[9] @ 3 : irregular(0, 2, 2, 9)"), ElementType::i8,
               distribution({9}, grid(3), {irregular({0, 2, 2, 9})}));
  const std::pair<const char*, EdgePolicy> edges[] = {{"truncate", EdgePolicy::truncate},
                                                      {"toroidal", EdgePolicy::toroidal},
                                                      {"zero", EdgePolicy::zero},
                                                      {"replicate", EdgePolicy::replicate},
                                                      {"replicate_local", EdgePolicy::replicate_local},
                                                      {"open", EdgePolicy::open}};
  for (const auto& [word, edge] : edges) {
    expect_equal(parse_layout(fmt::format("i8[9] @ 3 : block+overlap(1,2,{})", word)), ElementType::i8,
                 distribution({9}, grid(3), {block().with_overlap(1, 2, edge)}));
    expect_equal(parse_layout(fmt::format("i8[9] @ 3 : block+overlap(1,2,zero,{})", word)), ElementType::i8,
                 distribution({9}, grid(3), {block().with_overlap({1, EdgePolicy::zero}, {2, edge})}));
  }
  expect_equal(parse_layout("i8[9] @ 3 : block+overlap(1,2)"), ElementType::i8,
               distribution({9}, grid(3), {block().with_overlap(1, 2)}));
}

TEST(LayoutText, PutsPartsOnRanks) {
  const std::vector<Partition> parts = {block(), block()};
  auto on = [&](GridOptions options) { return Distribution({8, 8}, Grid({2, 3}, std::move(options)), parts); };
  auto read = [](const char* grid_text) {
    return parse_layout(fmt::format("f64[8,8] @ {} : block, block", grid_text)).distribution;
  };
  EXPECT_TRUE(read("2x3*2") == on({.replicas = 2}));
  EXPECT_TRUE(read("2x3 order(1,0)") == on({.order = {1, 0}}));
  EXPECT_TRUE(read("2x3*2 order(1,r,0)") == on({.replicas = 2, .order = {1, 2, 0}}));
  EXPECT_TRUE(read("2x3 ranks(4-9)") == on({.first = 4}));
  EXPECT_TRUE(read("2x3 ranks(4-14:2)") == on({.first = 4, .stride = 2}));
  EXPECT_TRUE(read("2x3 ranks(0-2, 8, 16-30:14) order(1,0)") == on({.order = {1, 0}, .ranks = {0, 1, 2, 8, 16, 30}}));
  EXPECT_TRUE(read("2x3 ranks(5,4,3,2,1,0)") == on({.ranks = {5, 4, 3, 2, 1, 0}}));
  EXPECT_TRUE(parse_layout("u8[3] @ 1 ranks(7) : whole").distribution.grid() == Grid({1}, {.first = 7}));
  // One range names many ranks without a list.
  EXPECT_EQ(parse_layout("u8[3] @ 2000000000 ranks(5-2000000004) : block").distribution.grid().rank_at(1'999'999'999),
            2'000'000'004);
}

TEST(LayoutText, LaysMemoryOut) {
  auto read = [](const char* memory_text) {
    return parse_layout(fmt::format("c64[6,8] @ 1x2 : whole, block | {}", memory_text)).distribution.memory();
  };
  EXPECT_EQ(read("order(1,0)"), (MemoryLayout{.order = {1, 0}}));
  EXPECT_EQ(read("strides(16,2) offset(3)"), (MemoryLayout{.strides = {16, 2}, .offset = 3}));
  EXPECT_EQ(read("spacing(1,2) align(64) split order(1,0)"),
            (MemoryLayout{.order = {1, 0}, .spacing = {1, 2}, .align = 64, .parts = ComplexParts::split}));
}

TEST(LayoutText, IsFreeOfWhiteSpaceAndAllowsUnderscores) {
  const ArraySpec tight =
      parse_layout("c128[64,20]@1x5*2order(r,0,1)ranks(0-9):whole,cyclic(2)+overlap(1,1,zero)|split");
  const ArraySpec loose = parse_layout(
      "\t c128 [ 6_4 , 20 ] @ 1 x 5 * 2 order ( r , 0 , 1 ) ranks ( 0 - 9 ) : whole , cyclic ( 2 )\n + overlap "
      "( 1 , 1 , zero ) | split ");
  EXPECT_TRUE(tight == loose);
  EXPECT_EQ(parse_layout("u8[1_000_000_000] @ 1 : whole").distribution.extents(), (Indices{1'000'000'000}));
}

TEST(LayoutText, CanonicalTextLeavesOutWhatIsDefault) {
  const std::pair<const char*, const char*> cases[] = {
      {"f64[8,9]@2x3*1 order(r,0,1) ranks(0-5):block(low)+min(0)+mod(1)+overlap(0,0,zero),whole|order(0,1) align(1)",
       "f64[8,9] @ 2x3 : block, whole"},
      {"f64[8,9]@2x3 ranks(3,4,5,6,7,8) order(1,0):cyclic(1), cyclic(4)",
       "f64[8,9] @ 2x3 order(1,0) ranks(3-8) : cyclic, cyclic(4)"},
      {"f64[8,9]@1x3 order(1,0):whole, block", "f64[8,9] @ 1x3 : whole, block"},
      {"f64[8]@4*2 order(0,r):block+overlap(1,0,zero,open)", "f64[8] @ 4*2 order(0,r) : block+overlap(1,0,zero)"},
      {"f64[8]@4 ranks(9,1,2,3):block+overlap(1,2,truncate,open)",
       "f64[8] @ 4 ranks(9,1-3) : block+overlap(1,2,truncate,open)"},
      {"bool[8]@7 ranks(0,10,20,30,2,1,5):block", "bool8[8] @ 7 ranks(0-30:10,2,1,5) : block"},
      {"c64[8,2]@1x1:whole,whole|split spacing(1,1) offset(5) order(1,0)",
       "c64[8,2] @ 1x1 : whole, whole | order(1,0) offset(5) split"},
      {"f64[8]@1 ranks(9):whole+interfaces+overlap(2,2)", "f64[8] @ 1 ranks(9) : whole+interfaces+overlap(2,2)"}};
  for (const auto& [text, canonical] : cases) EXPECT_EQ(to_text(parse_layout(text)), canonical);
}

TEST(LayoutText, CanonicalTextReadsBack) {
  const std::string fault = test::first_fault(0.2, [](std::uint64_t seed) -> std::string {
    const ArraySpec spec = test::random_spec(seed);
    const testing::LayoutVerdict verdict = testing::check_layout(to_text(spec), to_text);
    if (!verdict.accepted || !verdict.violation.empty()) return to_text(spec) + ": " + verdict.violation;
    return parse_layout(to_text(spec)) == spec ? "" : to_text(spec) + " says something else";
  });
  EXPECT_EQ(fault, "");
}

// The check of the fuzzer notices writers that go wrong.
TEST(LayoutText, TypesMayBeWhatNumPyCallsThem) {
  const std::pair<const char*, ElementType> cases[] = {{"f8", ElementType::f64},
                                                       {"<f8", ElementType::f64},
                                                       {"=f8", ElementType::f64},
                                                       {"float64", ElementType::f64},
                                                       {"f2", ElementType::f16},
                                                       {"<f16", ElementType::f128},
                                                       {"float128", ElementType::f128},
                                                       {"c16", ElementType::c128},
                                                       {"complex64", ElementType::c64},
                                                       {"i4", ElementType::i32},
                                                       {"int32", ElementType::i32},
                                                       {"<i8", ElementType::i64},
                                                       {"int8", ElementType::i8},
                                                       {"<u8", ElementType::u64},
                                                       {"uint8", ElementType::u8},
                                                       {"|b1", ElementType::bool8},
                                                       {"bool", ElementType::bool8},
                                                       {">i1", ElementType::i8},
                                                       {"< u2", ElementType::u16},
                                                       {"bfloat16", ElementType::bf16},
                                                       // Names of this library come first.
                                                       {"i8", ElementType::i8},
                                                       {"u8", ElementType::u8},
                                                       {"f16", ElementType::f16},
                                                       {"f128", ElementType::f128},
                                                       {"c64", ElementType::c64},
                                                       {"c256", ElementType::c256}};
  for (const auto& [name, type] : cases) {
    const Result<ArraySpec> spec = try_parse_layout(std::string(name) + "[4] @ 2 : block");
    ASSERT_TRUE(spec) << name << ": " << spec.error().what();
    EXPECT_EQ(spec.value().type, type) << name;
    EXPECT_EQ(to_text(spec.value()), std::string(name_of(type)) + "[4] @ 2 : block");
  }
}

TEST(LayoutText, TheCheckNoticesAWrongWriter) {
  const std::string text = "f64[8,9] @ 2x3 order(1,0) : block, cyclic(2)";
  EXPECT_EQ(testing::check_layout(text, to_text).violation, "");
  auto violation = [&](testing::LayoutWriter writer) { return testing::check_layout(text, writer).violation; };
  EXPECT_EQ(violation([](const ArraySpec& spec) { return to_text(spec) + "!"; }),
            "the written text is refused: column 45: found '!'; expected '+', ',', '|' or the end");
  EXPECT_EQ(violation([](const ArraySpec&) -> std::string { return "f64[8,9] @ 2x3 : block, cyclic(2)"; }),
            "the written text says something else");
  static int calls = 0;
  EXPECT_EQ(violation([](const ArraySpec& spec) { return to_text(spec) + std::string(calls++ % 2, ' '); }),
            "the written text is not canonical");
}

TEST(LayoutText, OfAnIndexedDistributionIsASummary) {
  const ArraySpec mesh{ElementType::f64,
                       Distribution::indexed({6, 4}, 1, grid(2), {{{0, 1, 2}, {3}}, {{3, 4, 5}, {}}})};
  EXPECT_EQ(to_text(mesh), "f64[6,4] @ 2 : indexed, whole");
  const ArraySpec plane{ElementType::f64, Distribution::indexed({2, 2}, 2, grid(1), {{{0, 1, 2}, {}}}, {.offset = 4})};
  EXPECT_EQ(to_text(plane), "f64[2,2] @ 1 : indexed(2) | offset(4)");
  const Result<ArraySpec> again = try_parse_layout("f64[6] @ 2 : indexed");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().column, 14);
  EXPECT_NE(again.error().message().find("JSON"), std::string::npos);
}

struct BadText {
  const char* text;
  ErrorCode code;
  const char* message;  // the whole of it, so the column too
};

TEST(LayoutText, ErrorsPointAtTheColumn) {
  const BadText cases[] = {
      {"", ErrorCode::bad_text, "column 1: found the end; expected an element type such as f64"},
      {"[8]", ErrorCode::bad_text, "column 1: found '['; expected an element type such as f64"},
      {"f65[8] @ 1 : whole", ErrorCode::bad_text,
       "column 1: unknown element type 'f65': one of bool8, i8 to i64, u8 to u64, f16, bf16, f32, f64, f128, c64, "
       "c128, c256, or NumPy's f8, <f8, float64 and the like"},
      {" >f8[8] @ 1 : whole", ErrorCode::unsupported,
       "column 2: element type '>f8' is in another byte order than this machine's; an array holds f64"},
      {"<[8] @ 1 : whole", ErrorCode::bad_text, "column 2: found '['; expected an element type such as f64"},
      {"f64 8", ErrorCode::bad_text, "column 5: found '8'; expected '[' and the extents"},
      {"f64[]", ErrorCode::bad_text, "column 5: found ']'; expected a number of 0 or more"},
      {"f64[-1]", ErrorCode::bad_text, "column 5: found '-'; expected a number of 0 or more"},
      {"f64[8 8]", ErrorCode::bad_text, "column 7: found '8'; expected ',' or ']'"},
      {"f64[8__0]", ErrorCode::bad_text, "column 7: found '_0'; expected a digit after '_'"},
      {"f64[8_]", ErrorCode::bad_text, "column 7: found ']'; expected a digit after '_'"},
      {"f64[1,2,3,4,5,6,7,8,9]", ErrorCode::unsupported, "column 21: an array has at most 8 dimensions, got more"},
      {"f64[9223372036854775808]", ErrorCode::overflow,
       "column 5: 9223372036854775808 does not fit in 63 bits; at most 9223372036854775807 does"},
      {"f64[123456789012345678901234567890123456789]", ErrorCode::overflow,
       "column 5: 12345678901234567890123456789012... does not fit in 63 bits; at most 9223372036854775807 does"},
      {"f64[ 4000000000,4000000000 ] @ 1x1 : whole, whole", ErrorCode::overflow,
       "column 6: the product of extents [4000000000, 4000000000] does not fit in 63 bits"},
      {"f64[8] 4", ErrorCode::bad_text, "column 8: found '4'; expected '@' and the grid"},
      {"f64[8] @ : whole", ErrorCode::bad_text, "column 10: found ':'; expected a number of 0 or more"},
      {"f64[8] @ 0 : whole", ErrorCode::invalid_use, "column 10: grid extent 0 of dimension 0 is below 1"},
      {"f64[8] @ 2x2 : whole", ErrorCode::invalid_use, "column 10: the array has 1 dimension, its grid 2"},
      {"f64[8,8] @ 2 : whole", ErrorCode::invalid_use, "column 12: the array has 2 dimensions, its grid 1"},
      {"f64[8] @ 2*0 : whole", ErrorCode::invalid_use, "column 12: the grid has 0 replicas; at least 1 is needed"},
      {"f64[8] @ 3000000000 : block", ErrorCode::overflow,
       "column 10: rank 2999999999 is above the largest rank 2147483646"},
      {"f64[8] @ 2 whole", ErrorCode::bad_text,
       "column 12: found 'whole'; expected 'x', '*', order(...), ranks(...) or ':' and the partitions"},
      {"f64[8,8] @ 2x2 order(0) : block, block", ErrorCode::invalid_use,
       "column 22: grid order [0] is not a permutation of the axes 0 to 2"},
      {"f64[8,8] @ 2x2 order(0,2) : block, block", ErrorCode::invalid_use,
       "column 24: there is no axis 2: the grid has 2 dimensions"},
      {"f64[8] @ 2 order(q)", ErrorCode::bad_text,
       "column 18: found 'q'; expected the number of an axis, or r for the replicas"},
      {"f64[8] @ 2 order(0,r,0", ErrorCode::bad_text, "column 22: more than 2 axes in the order of a grid of 1"},
      {"f64[8] @ 2 order(0) order(0)", ErrorCode::bad_text, "column 21: a second order; at most one is expected"},
      {"f64[8] @ 2 ranks(3-1)", ErrorCode::bad_text, "column 20: the range of ranks goes down from 3 to 1"},
      {"f64[8] @ 2 ranks(1-3:0)", ErrorCode::bad_text, "column 22: step 0 of a range of ranks; at least 1 is needed"},
      {"f64[8] @ 2 ranks(0-2)", ErrorCode::invalid_use, "column 18: a grid of 2 parts is given 3 ranks"},
      {"f64[8] @ 3 ranks(0,1)", ErrorCode::invalid_use, "column 18: a grid of 3 parts is given 2 ranks"},
      {"f64[8] @ 2 ranks(0,0-2000000000)", ErrorCode::invalid_use,
       "column 20: a grid of 2 parts is given a list of 2000000002 ranks or more; at most 2 may be listed"},
      {"f64[8] @ 2 ranks(4,4)", ErrorCode::invalid_use, "column 20: rank 4 holds two parts, 0 and 1"},
      {"f64[8] @ 1 ranks(2147483647)", ErrorCode::overflow,
       "column 18: rank 2147483647 is above the largest rank 2147483646"},
      {"f64[8] @ 4 : blok", ErrorCode::bad_text, "column 14: found 'blok'; expected whole, block, cyclic or irregular"},
      {"f64[8] @ 4 : blockwise", ErrorCode::bad_text,
       "column 14: found 'blockwise'; expected whole, block, cyclic or irregular"},
      {"f64[8] @ 4 : block(mid)", ErrorCode::bad_text, "column 20: found 'mid'; expected low, high or ceil"},
      {"f64[64] @ 4   : cyclic(0)", ErrorCode::invalid_use, "column 24: cyclic block of 0 cells; at least 1 is needed"},
      {"f64[8,8] @ 4x1 : block, irregular(0,9)", ErrorCode::invalid_use,
       "column 37: irregular bounds go from 0 to 9, must go from 0 to 8"},
      {"f64[9] @ 2 : irregular(0,9,8)", ErrorCode::invalid_use,
       "column 28: irregular bounds go from 0 to 8, must go from 0 to 9"},
      {"f64[8] @ 3 : irregular(0, 5, 4, 8)", ErrorCode::invalid_use,
       "column 30: irregular bounds decrease from 5 to 4"},
      {"f64[8] @ 2 : irregular(1,5,8)", ErrorCode::invalid_use,
       "column 24: irregular bounds go from 1 to 8, must go from 0 to 8"},
      {"f64[8] @ 1 : irregular(0,5,8)", ErrorCode::invalid_use,
       "column 28: irregular partition into 1 part needs 2 bounds, has 3"},
      {"f64[8,8] @ 2x0 : block, whole", ErrorCode::invalid_use, "column 14: grid extent 0 of dimension 1 is below 1"},
      {"f64[8,8] @ 2x2 : block, cyclic(5)+mod(2)", ErrorCode::invalid_use,
       "column 32: cyclic block of 5 cells is not a multiple of modulo 2"},
      {"f64[8,8] @ 2x2 : whole+min(3), block", ErrorCode::invalid_use,
       "column 28: minimum 3 and modulo 1 apply to block and cyclic partitions only"},
      {"f64[8,8] @ 1x1 : whole, whole | order(1,1)", ErrorCode::invalid_use,
       "column 41: memory order [1, 1] is not a permutation of 2 dimensions"},
      {"f64[8,8] @ 1x1 : whole, whole | strides(4,1)", ErrorCode::invalid_use,
       "column 41: stride 4 of dimension 0 makes cells overlap: the faster dimensions reach over 8 elements"},
      {"f64[8] @ 4 : cyclic(2)+interfaces", ErrorCode::unsupported,
       "column 14: a cyclic(2) partition of interfaces is not defined"},
      {"f64[8] @ 4 : block+overlap(9223372036854775807,1)", ErrorCode::overflow,
       "column 14: extent 8 in 4 parts with an overlap of 9223372036854775807 and 1 cell: together they may store "
       "more "
       "than 4611686018427387903 cells"},
      {"u8[4611686018427387904] @ 2 : block", ErrorCode::overflow,
       "column 4: extent 4611686018427387904 of dimension 0; at most 4611686018427387903 is possible"},
      {"u8[8, 9223372036854775807] @ 1x2 : whole, block", ErrorCode::overflow,
       "column 7: extent 9223372036854775807 of dimension 1; at most 4611686018427387903 is possible"},
      {"f64[4611686018427387903] @ 2 : block", ErrorCode::overflow,
       "column 4: the bytes of f64[4611686018427387903], 8 for each element, do not fit in 63 bits"},
      {"f64[8] @ 4 : block+overlap(1,1,round)", ErrorCode::bad_text,
       "column 32: found 'round'; expected truncate, toroidal, zero, replicate, replicate_local or open"},
      {"f64[8] @ 4 : block+overlap(1)", ErrorCode::bad_text,
       "column 29: found ')'; expected ',' and the overlap on the right"},
      {"f64[8] @ 4 : block+min(1)+min(2)", ErrorCode::bad_text, "column 27: a second min; at most one is expected"},
      {"f64[8] @ 4 : block+halo(1)", ErrorCode::bad_text,
       "column 20: found 'halo'; expected overlap, min, mod or interfaces"},
      {"f64[8,8] @ 4x1 : block", ErrorCode::bad_text,
       "column 23: found the end; expected ',' and the partition of dimension 1 of 2"},
      {"f64[8] @ 4 : block, whole", ErrorCode::bad_text,
       "column 19: found ','; expected '|' or the end after the partition of 1 dimension"},
      {"f64[8] @ 4 : block split", ErrorCode::bad_text, "column 20: found 'split'; expected '+', ',', '|' or the end"},
      {"f64[8] @ 4 : block |", ErrorCode::bad_text,
       "column 21: found the end; expected order, strides, spacing, align, offset or split"},
      {"f64[8] @ 4 : block | split", ErrorCode::invalid_use,
       "column 22: split needs a complex element type, found f64"},
      {"f64[8] @ 4 : block | offset(1) align(0)", ErrorCode::invalid_use,
       "column 38: memory alignment of 0 elements is below 1"},
      {"f64[8,8] @ 4x1 : block, whole | offset(1) order(0)", ErrorCode::invalid_use,
       "column 49: memory order has 1 entry for 2 dimensions"},
      {"f64[8,8] @ 4x1 : block, whole | strides(9,1) align(2)", ErrorCode::invalid_use,
       "column 46: explicit strides [9, 1] leave no room for order, spacing or align"},
      {"f64[8] @ 4 : block\x01", ErrorCode::bad_text, "column 19: found byte 0x01; expected '+', ',', '|' or the end"},
      {"f64[8] @ 4 : \xc3\xa9", ErrorCode::bad_text,
       "column 14: found byte 0xc3; expected whole, block, cyclic or irregular"},
  };
  for (const BadText& bad : cases) {
    const Result<ArraySpec> result = try_parse_layout(bad.text);
    ASSERT_FALSE(result) << bad.text;
    const Error& error = result.error();
    EXPECT_EQ(error.message(), bad.message) << bad.text;
    EXPECT_EQ(error.code(), bad.code) << bad.text;
    EXPECT_TRUE(error.message().starts_with(fmt::format("column {}: ", error.column))) << bad.text;
    EXPECT_THROW(parse_layout(bad.text), Error);
  }
}

TEST(LayoutText, APlacementIsALayoutWithoutItsArray) {
  const std::string fault = test::first_fault(0.1, [](std::uint64_t seed) -> std::string {
    const ArraySpec spec = test::random_spec(seed);
    const std::string text = to_text(spec);
    const std::string placement = text.substr(text.find('@'));
    const Result<ArraySpec> placed = try_parse_placement(placement, spec.type, spec.distribution.extents());
    if (!placed) return placement + ": " + placed.error().message();
    const Result<Grid> grid = try_parse_placement_grid(placement);
    if (!grid) return placement + ": " + grid.error().message();
    return placed.value() == spec && grid.value() == spec.distribution.grid() ? "" : text + " says something else";
  });
  EXPECT_EQ(fault, "");
}

TEST(LayoutText, ErrorsOfAPlacementPointAtTheColumn) {
  const auto placed = [](const char* text, ElementType type, const Indices& extents) {
    const Result<ArraySpec> result = try_parse_placement(text, type, extents);
    return result ? std::string("accepted") : result.error().message();
  };
  const auto grid = [](const char* text) {
    const Result<Grid> result = try_parse_placement_grid(text);
    return result ? std::string("accepted") : result.error().message();
  };
  // What is wrong for every array, and what is wrong for this one alone.
  const char* const always = "column 15: found 'x'; expected '+', ',', '|' or the end";
  EXPECT_EQ(placed("@ 4 : block(x)", ElementType::f64, {8}), "column 13: found 'x'; expected low, high or ceil");
  EXPECT_EQ(grid("@ 4 : block(x)"), "column 13: found 'x'; expected low, high or ceil");
  EXPECT_EQ(placed(" @ 4 : block   x", ElementType::f64, {8}).substr(10), std::string(always).substr(10));
  EXPECT_EQ(grid("@ 4 : block   x"), always);
  EXPECT_EQ(grid("f64[8] @ 4 : block"), "column 1: found 'f64'; expected '@' and the grid");
  EXPECT_EQ(grid("@ 4 : block, whole"),
            "column 12: found ','; expected '|' or the end after the partition of 1 dimension");
  EXPECT_EQ(placed("@ 4 : block", ElementType::f64, {8, 8}), "column 3: the array has 2 dimensions, its grid 1");
  EXPECT_EQ(placed("@ 4 : block", ElementType::f64, {}), "column 3: the array has 0 dimensions, its grid 1");
  const char* const bounds = "@ 4x1 : block, irregular(0,9)";
  EXPECT_EQ(placed(bounds, ElementType::f64, {8, 8}),
            "column 28: irregular bounds go from 0 to 9, must go from 0 to 8");
  EXPECT_EQ(placed(bounds, ElementType::f64, {8, 9}), "accepted");
  EXPECT_EQ(grid(bounds), "accepted");
  EXPECT_EQ(placed("@ 4 : block | split", ElementType::f64, {8}),
            "column 15: split needs a complex element type, found f64");
  EXPECT_EQ(grid("@ 4 : block | split"), "accepted");
  EXPECT_EQ(placed("@ 1x1x1 : whole, whole, whole", ElementType::f64, {1 << 30, 1 << 30, 1 << 30}).substr(0, 10),
            "column 1: ");
}

TEST(LayoutText, RefusesEndlessTexts) {
  const Result<ArraySpec> result = try_parse_layout(std::string(layout_text_bytes_max + 1, ' '));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "column 1048577: a layout text of 1048577 bytes; at most 1048576 are read");
  const Result<ArraySpec> named = try_parse_layout(std::string(1000, 'a'));
  ASSERT_FALSE(named);
  EXPECT_LT(named.error().message().size(), 200u);
}

// Whatever is cut off or replaced, the text means something or the error points into it.
TEST(LayoutText, EveryDamageIsFoundOrHarmless) {
  const std::string text =
      "c128[64,20] @ 1x5*2 order(r,1,0) ranks(0-3,5,8-16:2) : whole, cyclic(2)+overlap(1,1,zero,open)+min(1) | "
      "order(1,0) "
      "align(4) split";
  ASSERT_TRUE(try_parse_layout(text));
  auto check = [](const std::string& damaged) {
    EXPECT_EQ(testing::check_layout(damaged, to_text).violation, "") << damaged;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    check(text.substr(0, i));
    check(text.substr(i));
    check(text.substr(0, i) + text.substr(i + 1));
    for (const char c : std::string_view("0,)(x-:|+r \0\xff", 13)) {
      std::string damaged = text;
      damaged[i] = c;
      check(damaged);
    }
  }
}

TEST(LayoutText, CaretShowsTheColumn) {
  EXPECT_EQ(caret("f64[8] @ x", 10), "f64[8] @ x\n         ^");
  EXPECT_EQ(caret("f64", 4), "f64\n   ^");
  EXPECT_EQ(caret("a\tb\x01", 3), "a b?\n  ^");
  EXPECT_EQ(caret("", 1), "\n^");
  // Columns outside the text show its end or its beginning.
  EXPECT_EQ(caret("abc", 100), "abc\n   ^");
  EXPECT_EQ(caret("abc", -1), "abc\n^");
  std::string digits;
  for (int i = 0; i < 300; ++i) digits += char('0' + i % 10);
  const std::string shown = caret(digits, 154);
  const std::size_t line = shown.find('\n');
  EXPECT_EQ(shown.substr(0, line), "..." + digits.substr(93, 100) + "...");
  EXPECT_EQ(shown[shown.size() - 1 - line - 1], digits[153]);
}

}  // namespace
}  // namespace tranship
