// Layouts as JSON: a full round trip, and errors that name the key.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <layout/random_layout.hpp>

#include <tranship/layout/json.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship {
namespace {

TEST(LayoutJson, IsReadable) {
  const ArraySpec plain{ElementType::f64, distribution({8192, 8192}, grid(4, 1), {block(), whole()})};
  EXPECT_EQ(to_json(plain), R"({"type":"f64","extents":[8192,8192],"grid":{"extents":[4,1]},)"
                            R"("partitions":[{"kind":"block"},{"kind":"whole"}]})");
  const ArraySpec full{
      ElementType::c128,
      Distribution(
          {64, 20, 9}, Grid({1, 5, 2}, {.replicas = 2, .order = {2, 3, 1, 0}, .first = 3, .stride = 2}),
          {whole().with_overlap(0, 2, EdgePolicy::zero), cyclic(4).with_overlap(1, 3).with_modulo(2),
           irregular({0, 3, 8}).with_interfaces()},
          {.order = {1, 0, 2}, .spacing = {1, 2, 1}, .align = 8, .offset = 512, .parts = ComplexParts::split})};
  EXPECT_EQ(to_json(full), R"({"type":"c128","extents":[64,20,9],)"
                           R"("grid":{"extents":[1,5,2],"replicas":2,"order":[2,"r",1,0],"first":3,"step":2},)"
                           R"("partitions":[{"kind":"whole","overlap":{"left":0,"right":2,"right_edge":"zero"}},)"
                           R"({"kind":"cyclic","block_size":4,"mod":2,"overlap":{"left":1,"right":3}},)"
                           R"({"kind":"irregular","bounds":[0,3,8],"interfaces":true}],)"
                           R"("memory":{"order":[1,0,2],"spacing":[1,2,1],"align":8,"offset":512,"split":true}})");
  EXPECT_TRUE(array_spec_from_json(to_json(full)) == full);
  EXPECT_TRUE(distribution_from_json(to_json(full.distribution)) == full.distribution);
}

TEST(LayoutJson, RoundTripsStructuredLayouts) {
  const std::string fault = test::first_fault(0.2, [](std::uint64_t seed) -> std::string {
    const ArraySpec spec = test::random_spec(seed);
    const std::string text = to_json(spec);
    if (!(array_spec_from_json(text) == spec)) return text + " says something else";
    return to_json(array_spec_from_json(text)) == text ? "" : text + " is not canonical";
  });
  EXPECT_EQ(fault, "");
}

TEST(LayoutJson, RoundTripsIndexedLayouts) {
  const Distribution mesh =
      Distribution::indexed({3, 4, 5}, 2, Grid({3}, {.ranks = {7, 0, 2}}),
                            {{{0, 2, 4}, {11, 9}}, {{}, {}}, {{11, 9, 1}, {0}}}, {.order = {1, 0}, .offset = 2});
  EXPECT_EQ(to_json(mesh),
            R"({"extents":[3,4,5],"grid":{"extents":[3],"ranks":[7,0,2]},"indexed":{"dims":2,)"
            R"("parts":[{"owned":[0,2,4],"ghosts":[11,9]},{"owned":[]},{"owned":[11,9,1],"ghosts":[0]}]},)"
            R"("memory":{"order":[1,0],"offset":2}})");
  EXPECT_TRUE(distribution_from_json(to_json(mesh)) == mesh);
  const ArraySpec spec{ElementType::i32, mesh};
  EXPECT_TRUE(array_spec_from_json(to_json(spec)) == spec);
}

TEST(LayoutJson, AcceptsDefaultsThatAreSpelledOut) {
  const Distribution spelled = distribution_from_json(
      R"({"memory": {"order": [0, 1], "align": 1, "split": false, "offset": 0},
          "partitions": [{"remainder": "low", "kind": "block", "min": 0, "mod": 1, "interfaces": false},
                         {"kind": "whole", "overlap": {"left": 0, "right": 0, "left_edge": "zero"}}],
          "grid": {"replicas": 1, "order": ["r", 0, 1], "first": 0, "step": 1, "extents": [4, 1]},
          "extents": [8, 9]})");
  EXPECT_TRUE(spelled == distribution({8, 9}, grid(4, 1), {block(), whole()}));
}

struct BadJson {
  const char* text;
  ErrorCode code;
  const char* message;
};

// Every case is the same good layout with one thing wrong.
TEST(LayoutJson, ErrorsNameTheKey) {
  const BadJson cases[] = {
      {R"([1])", ErrorCode::bad_text, "the document: expected an object, found an array of 1"},
      {R"({})", ErrorCode::bad_text, "type is missing"},
      {R"({"type":"f64"})", ErrorCode::bad_text, "extents is missing"},
      {R"({"type":"f64","extents":[8]})", ErrorCode::bad_text, "grid is missing"},
      {R"({"type":"f64","extents":[8],"grid":{}})", ErrorCode::bad_text, "grid.extents is missing"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]}})", ErrorCode::bad_text, "partitions is missing"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{}]})", ErrorCode::bad_text,
       "partitions[0].kind is missing"},
      {R"({"type":"f65","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})", ErrorCode::bad_text,
       "type: unknown element type 'f65': one of bool8, i8 to i64, u8 to u64, f16, bf16, f32, f64, f128, c64, c128, "
       "c256, or NumPy's f8, <f8, float64 and the like"},
      {R"({"type":8,"extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})", ErrorCode::bad_text,
       "type: expected a string, found 8"},
      {R"({"type":"f64","extents":8,"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})", ErrorCode::bad_text,
       "extents: expected an array, found 8"},
      {R"({"type":"f64","extents":[8.5],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})", ErrorCode::bad_text,
       "extents[0]: expected an integer, found 8.5"},
      {R"({"type":"f64","extents":[18446744073709551615],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})",
       ErrorCode::overflow,
       "extents[0]: 18446744073709551615 does not fit in 63 bits; at most 9223372036854775807 does"},
      {R"({"type":"f64","extents":[-8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})",
       ErrorCode::invalid_use, "extents: extent -8 of dimension 0 is negative"},
      {R"({"type":"f64","extents":[1,2,3,4,5,6,7,8,9],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})",
       ErrorCode::unsupported, "extents: an array has at most 8 dimensions, got more"},
      {R"({"type":"f64","extents":[],"grid":{"extents":[]},"partitions":[]})", ErrorCode::invalid_use,
       "an array needs 1 to 8 dimensions, has 0"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[0]},"partitions":[{"kind":"block"}]})", ErrorCode::invalid_use,
       "grid: grid extent 0 of dimension 0 is below 1"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2],"order":[1]},"partitions":[{"kind":"block"}]})",
       ErrorCode::bad_text, "grid.order[0]: expected the number of an axis or \"r\", found 1"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2],"ranks":[]},"partitions":[{"kind":"block"}]})",
       ErrorCode::bad_text, "grid.ranks: expected at least one rank, found an array of 0"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2],"ranks":[0,-1]},"partitions":[{"kind":"block"}]})",
       ErrorCode::invalid_use, "grid.ranks[1]: rank -1 is not between 0 and 2147483646"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2],"ranks":[0,1],"step":2},"partitions":[{"kind":"block"}]})",
       ErrorCode::bad_text, "grid.step: expected no such key beside ranks, found 2"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2],"size":2},"partitions":[{"kind":"block"}]})",
       ErrorCode::bad_text, "grid.\"size\" is unknown; the keys here are extents, first, order, ranks, replicas, step"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"blok"}]})", ErrorCode::bad_text,
       "partitions[0].kind: expected whole, block, cyclic or irregular, found \"blok\""},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"cyclic"}]})", ErrorCode::bad_text,
       "partitions[0].block_size is missing"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"cyclic","block_size":0}]})",
       ErrorCode::invalid_use, "partitions[0]: cyclic block of 0 cells; at least 1 is needed"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"whole","block_size":3}]})",
       ErrorCode::bad_text,
       "partitions[0].\"block_size\" is unknown; the keys here are interfaces, kind, min, mod, overlap"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block","interfaces":1}]})",
       ErrorCode::bad_text, "partitions[0].interfaces: expected true or false, found 1"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block","overlap":{"left":1}}]})",
       ErrorCode::bad_text, "partitions[0].overlap.right is missing"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"},{"kind":"whole"}]})",
       ErrorCode::invalid_use, "the array has 1 dimension, 2 are partitioned"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}],"memory":{"align":0}})",
       ErrorCode::invalid_use, "memory: memory alignment of 0 elements is below 1"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}],"memory":{"split":true}})",
       ErrorCode::invalid_use, "memory.split: split needs a complex element type, found f64"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}],"name":"x"})",
       ErrorCode::bad_text, "\"name\" is unknown; the keys here are extents, grid, indexed, memory, partitions, type"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[1]},"indexed":{"dims":1,"parts":[{"owned":[8]}]}})",
       ErrorCode::invalid_use, "indexed: part 0 owns id 8, ids go from 0 to 7"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[1]},"indexed":{"dims":2,"parts":[{"owned":[]}]}})",
       ErrorCode::invalid_use, "indexed.dims: 2 indexed dimensions, but an array of 1 dimension has 1 to 1"},
      {R"({"type":"f64","extents":[8],"grid":{"extents":[1]},"indexed":{"dims":1,"parts":[{"owned":["a"]}]}})",
       ErrorCode::bad_text, "indexed.parts[0].owned[0]: expected an integer, found \"a\""},
      {R"({"type":"f64","extents":[4000000000],"grid":{"extents":[1]},"indexed":{"dims":1,"parts":[{"owned":[1]}]}})",
       ErrorCode::invalid_use,
       "indexed: 4000000000 ids, of which 1 are owned: there may be at most 64 times as many ids as owned ones"},
      {R"({"extents":[8],"extents":[9]})", ErrorCode::bad_text, "key \"extents\" is given twice"},
      {R"({"type":})", ErrorCode::bad_text, "column 9: not JSON: found '}'"},
      {R"({"type":)", ErrorCode::bad_text, "column 9: not JSON: found the end"},
      {R"({"type":1e999})", ErrorCode::bad_text, "a number of the JSON text is too large"},
  };
  for (const BadJson& bad : cases) {
    const Result<ArraySpec> result = try_array_spec_from_json(bad.text);
    ASSERT_FALSE(result) << bad.text;
    EXPECT_EQ(result.error().message(), bad.message) << bad.text;
    EXPECT_EQ(result.error().code(), bad.code) << bad.text;
    EXPECT_THROW(array_spec_from_json(bad.text), Error);
  }
  EXPECT_EQ(try_array_spec_from_json(R"({"type":})").error().column, 9);
  EXPECT_EQ(try_array_spec_from_json("{\n  \"type\": nothing\n}").error().message(),
            "line 2, column 12: not JSON: found 'o'");
  // Nothing may hide behind a zero byte.
  const std::string good = R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})";
  EXPECT_TRUE(try_array_spec_from_json(good));
  const Result<ArraySpec> zero = try_array_spec_from_json(good + '\0' + good);
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.error().message(), "column 84: not JSON: found byte 0x00");
  // A distribution alone has no type.
  const Result<Distribution> typed = try_distribution_from_json(
      R"({"type":"f64","extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"block"}]})");
  ASSERT_FALSE(typed);
  EXPECT_EQ(typed.error().message(),
            "\"type\" is unknown; the keys here are extents, grid, indexed, memory, partitions");
}

TEST(LayoutJson, SurvivesDeepAndWideTexts) {
  for (const char* open : {"[", "{\"extents\":"}) {
    std::string deep;
    for (int i = 0; i < 50'000; ++i) deep += open;
    EXPECT_FALSE(try_array_spec_from_json(deep));
  }
  const auto nested = [](std::size_t depth) {
    return try_array_spec_from_json(R"({"type":)" + std::string(depth, '[') + std::string(depth, ']') + "}")
        .error()
        .message();
  };
  EXPECT_EQ(nested(63), "type: expected a string, found an array of 1");
  EXPECT_EQ(nested(64), "the JSON text nests more than 64 values");
  EXPECT_EQ(nested(50'000), "the JSON text nests more than 64 values");
  std::string wide = "{\"a\":0";
  for (int i = 0; i < 20'000; ++i) wide += fmt::format(",\"{}\":0", i);
  EXPECT_EQ(try_array_spec_from_json(wide + "}").error().message(), "an object has more than 1024 keys");
}

TEST(LayoutJson, EveryCutIsFound) {
  const std::string text =
      to_json(ArraySpec{ElementType::c64, Distribution({9, 8}, Grid({2, 2}, {.ranks = {3, 1, 0, 9}}),
                                                       {block(), cyclic(3)}, {.offset = 2})});
  ASSERT_TRUE(try_array_spec_from_json(text));
  for (std::size_t i = 0; i < text.size(); ++i) EXPECT_FALSE(try_array_spec_from_json(text.substr(0, i))) << i;
}

TEST(LayoutJson, PathsNameValuesInsideOtherDocuments) {
  const Json document =
      parse_json(R"({"source":{"extents":[8],"grid":{"extents":[2]},"partitions":[{"kind":"blok"}]}})");
  try {
    distribution_of(document.at("source"), "source");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "source.partitions[0].kind: expected whole, block, cyclic or irregular, found \"blok\"");
  }
}

}  // namespace
}  // namespace tranship
