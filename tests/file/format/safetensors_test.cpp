// Safetensors files and their indices: against files that the package wrote (fixtures/, made by make_safetensors.py),
// by hand, and hostile ones.
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/format/safetensors_index.hpp>

#include "file/format/json_mutations.hpp"
#include "file/temporary_folder.hpp"
#include "fuzz/safetensors_check.hpp"
#include "support/paths.hpp"
#include "support/random_layouts.hpp"

namespace tranship::safetensors_test {
namespace {

using testing::read_text;
using testing::Tally;

const auto front = testing::safetensors_front;

std::string fixture(const std::string& name) {
  return test::test_path("file/fixtures/" + name);
}

Result<SafetensorsHeader> parse(const std::string& json, Index data_bytes) {
  const std::string head = front(json);
  return parse_safetensors_header(std::as_bytes(std::span(head)), static_cast<Index>(head.size()) + data_bytes);
}

template <class T>
std::string refusal_of(const Result<T>& result) {
  return result ? "accepted" : std::string(name_of(result.error().code())) + ": " + result.error().message();
}

/// The error of a header, as "code: message".
std::string refusal(const std::string& json, Index data_bytes = 8) {
  return refusal_of(parse(json, data_bytes));
}

/// A header of one tensor "a" with 8 bytes; an empty part is left out.
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets = "[0,8]") {
  std::string out;
  for (const auto& [key, value] :
       {std::pair("dtype", dtype), std::pair("shape", shape), std::pair("data_offsets", offsets)})
    if (!value.empty()) out += (out.empty() ? "" : ",") + ("\"" + std::string(key) + "\":" + value);
  return "{\"a\":{" + out + "}}";
}

template <class F>
std::string code_of(F&& call) {
  return refusal_of(attempt(call));
}

// --- files that the package wrote

TEST(SafetensorsFixture, ThePackagesFileIsRead) {
  const SafetensorsFile file = open_safetensors(fixture("package.safetensors")).value();
  struct Expected {
    std::string dtype;
    ElementType type;
    Indices extents;
  };
  const std::map<std::string, Expected> expected = {
      {"a.bool", {"BOOL", ElementType::bool8, {3}}},
      {"a.u8", {"U8", ElementType::u8, {5}}},
      {"a.i8", {"I8", ElementType::i8, {5}}},
      {"b.e4m3", {"F8_E4M3", ElementType::u8, {2, 3}}},
      {"b.e5m2", {"F8_E5M2", ElementType::u8, {7}}},
      {"c.i16", {"I16", ElementType::i16, {3, 3}}},
      {"c.f16", {"F16", ElementType::f16, {9}}},
      {"c.bf16", {"BF16", ElementType::bf16, {4, 2}}},
      {"caf\xc3\xa9 \"quoted\"\n", {"U16", ElementType::u16, {1}}},
      {"d.i32", {"I32", ElementType::i32, {1, 2, 3}}},
      {"d.u32", {"U32", ElementType::u32, {2}}},
      {"d.f32", {"F32", ElementType::f32, {300}}},
      {"e.i64", {"I64", ElementType::i64, {2, 2}}},
      {"e.u64", {"U64", ElementType::u64, {1}}},
      {"e.f64", {"F64", ElementType::f64, {3}}},
      {"e.c64", {"C64", ElementType::c64, {2}}},
      {"f.scalar", {"F32", ElementType::f32, {}}},
      {"f.empty", {"F32", ElementType::f32, {4, 0}}},
  };
  ASSERT_EQ(file.header.tensors.size(), expected.size());
  for (const SafetensorsEntry& tensor : file.header.tensors) {
    SCOPED_TRACE(tensor.name);
    ASSERT_TRUE(expected.count(tensor.name));
    const Expected& wanted = expected.at(tensor.name);
    EXPECT_EQ(tensor.dtype, wanted.dtype);
    EXPECT_EQ(tensor.type, wanted.type);
    EXPECT_EQ(tensor.extents, wanted.extents);
    const auto bytes = file.bytes_of(tensor);
    ASSERT_EQ(static_cast<Index>(bytes.size()), checked_product(wanted.extents) * size_bytes(wanted.type));
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(std::to_integer<std::size_t>(bytes[i]), i % 251);
  }
  ASSERT_EQ(file.header.metadata.size(), 1u);
  EXPECT_EQ(file.header.metadata[0], std::pair(std::string("made by"), std::string("make_safetensors.py")));
}

TEST(SafetensorsFixture, HeadersAreWrittenByteForByteAsThePackageDoes) {
  for (const char* name : {"package.safetensors", "package_empty.safetensors"}) {
    const SafetensorsHeader header = open_safetensors(fixture(name)).value().header;
    EXPECT_EQ(format_safetensors_header(header),
              read_text(fixture(name)).substr(0, static_cast<std::size_t>(header.header_bytes)));
  }
}

// --- reading

TEST(Safetensors, TensorsComeInTheOrderOfTheHeader) {
  const SafetensorsHeader header =
      parse(R"({"b":{"data_offsets":[4,6],"shape":[2],"dtype":"U8"},"none":{"dtype":"F64","shape":[0,9],)"
            R"("data_offsets":[4,4]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
            6)
          .value();
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[0].offset_bytes, 4);
  EXPECT_EQ(header.tensors[1].name, "none");
  EXPECT_EQ(header.tensors[1].size_bytes, 0);
  EXPECT_EQ(header.tensors[2].name, "a");
  EXPECT_EQ(header.tensors[2].extents, Indices{});
  EXPECT_EQ(header.data_bytes(), 6);
}

TEST(Safetensors, EveryDtypeIsReadAndWrittenAsItIsSpelled) {
  for (const auto& [dtype, type] :
       {std::pair("BOOL", ElementType::bool8), std::pair("U8", ElementType::u8), std::pair("I8", ElementType::i8),
        std::pair("F8_E5M2", ElementType::u8), std::pair("F8_E4M3", ElementType::u8),
        std::pair("F8_E8M0", ElementType::u8), std::pair("F8_E4M3FNUZ", ElementType::u8),
        std::pair("F8_E5M2FNUZ", ElementType::u8), std::pair("I16", ElementType::i16),
        std::pair("U16", ElementType::u16), std::pair("F16", ElementType::f16), std::pair("BF16", ElementType::bf16),
        std::pair("I32", ElementType::i32), std::pair("U32", ElementType::u32), std::pair("F32", ElementType::f32),
        std::pair("C64", ElementType::c64), std::pair("F64", ElementType::f64), std::pair("I64", ElementType::i64),
        std::pair("U64", ElementType::u64)}) {
    EXPECT_EQ(tensor_form(dtype, {}).value().type, type);
    const SafetensorsTensor tensor{.name = "a", .dtype = dtype, .extents = {3}};
    const SafetensorsHeader header = make_safetensors_header({&tensor, 1});
    EXPECT_EQ(header.tensors[0].type, type);
    EXPECT_NE(format_safetensors_header(header).find("\"" + std::string(dtype) + "\""), std::string::npos);
  }
}

TEST(Safetensors, WhatCannotBeCutCountsAsBytes) {
  struct Case {
    const char* dtype;
    std::vector<Index> shape;
    Index bytes;
  };
  for (const Case& c : {Case{"F4", {16}, 8}, Case{"F4", {3, 2, 0}, 0}, Case{"F6_E2M3", {4, 3}, 9},
                        Case{"F6_E3M2", {4}, 3}, Case{"BF16", {1, 1, 1, 1, 2, 1, 3, 1, 1}, 12}}) {
    const SafetensorsTensor tensor{.name = "a", .dtype = c.dtype, .extents = {c.bytes}, .opaque_shape = c.shape};
    const SafetensorsHeader header = make_safetensors_header({&tensor, 1});
    const std::string text = format_safetensors_header(header);
    const SafetensorsEntry again =
        parse_safetensors_header(std::as_bytes(std::span(text)), static_cast<Index>(text.size()) + c.bytes)
            .value()
            .tensors.at(0);
    EXPECT_EQ(again, header.tensors[0]) << c.dtype;
    EXPECT_EQ(again.type, ElementType::u8);
    EXPECT_EQ(again.extents, Indices{c.bytes});
    EXPECT_EQ(again.opaque_shape, c.shape);
    EXPECT_EQ(again.size_bytes, c.bytes);
  }
}

// --- refused

TEST(SafetensorsRefuse, TensorsThatAreWrong) {
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]")), "accepted");
  EXPECT_EQ(refusal(tensor("\"F4\"", "[16]")), "accepted");
  EXPECT_EQ(refusal(tensor("\"F4\"", "[15]")),
            "bad_file: tensor 'a': 15 elements of F4 of 4 bits each: the last of 8 bytes is not full");
  EXPECT_EQ(refusal(tensor("\"F4\"", "[]")),
            "bad_file: tensor 'a': 1 element of F4 of 4 bits each: the last of 1 byte is not full");
  EXPECT_EQ(refusal(tensor("\"f64\"", "[1]")),
            "unsupported: tensor 'a': dtype 'f64' is not known: supported are BOOL, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, "
            "F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64, F4, F6_E2M3, F6_E3M2");
  EXPECT_EQ(refusal(tensor("7", "[1]")), "bad_file: tensor 'a': dtype: expected a string, found 7");
  EXPECT_EQ(refusal(tensor("[7]", "[1]")), "bad_file: tensor 'a': dtype: expected a string, found an array");
  EXPECT_EQ(refusal(tensor("\"F64\"", "1")), "bad_file: tensor 'a': shape: expected an array, found 1");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[-1]")),
            "bad_file: tensor 'a': shape: expected a whole number of 0 or more, found -1");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1.0]")),
            "bad_file: tensor 'a': shape: expected a whole number of 0 or more, found 1.0");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[[1]]")),
            "bad_file: tensor 'a': shape: expected a whole number of 0 or more, found an array");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[9223372036854775808]")),
            "overflow: tensor 'a': shape: 9223372036854775808 does not fit in 63 bits");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[99999999999999999999]")),
            "bad_file: tensor 'a': shape: expected a whole number of 0 or more, found 99999999999999999999");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[4294967296,4294967296]")).substr(0, 22), "overflow: tensor 'a': ");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[4294967296,0,4294967296]", "[0,0]"), 0).substr(0, 22),
            "overflow: tensor 'a': ");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1,1,1,1,1,1,1,1,1]")), "accepted");
  std::string many = "[1";
  for (int i = 1; i < 64; ++i) many += ",1";
  EXPECT_EQ(refusal(tensor("\"F64\"", many + "]")), "accepted");
  EXPECT_EQ(refusal(tensor("\"F64\"", many + ",1]")), "unsupported: tensor 'a': shape: more than 64 dimensions");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]", "[0,8,8]")), "bad_file: tensor 'a': data_offsets: more than 2 numbers");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]", "[8]")), "bad_file: tensor 'a': data_offsets has 1 number, 2 are needed");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]", "[8,0]")),
            "bad_file: tensor 'a': data_offsets [8, 0] do not hold F64 elements [1] of 8 bytes");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[2]")),
            "bad_file: tensor 'a': data_offsets [0, 8] do not hold F64 elements [2] of 16 bytes");
  EXPECT_EQ(refusal(tensor("", "[1]")), "bad_file: tensor 'a': dtype is missing");
  EXPECT_EQ(refusal(tensor("\"F64\"", "")), "bad_file: tensor 'a': shape is missing");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]", "")), "bad_file: tensor 'a': data_offsets is missing");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]", "[0,8],\"strides\":[1]")),
            "unsupported: tensor 'a': unknown key 'strides', its keys are dtype, shape and data_offsets");
  EXPECT_EQ(refusal(tensor("\"F64\"", "[1]", "[0,8],\"shape\":[1]")), "bad_file: tensor 'a': shape is given twice");
}

std::string two(const std::string& first, const std::string& second, const std::string& name = "b") {
  return "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" + first + "]},\"" + name +
         "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" + second + "]}}";
}

TEST(SafetensorsRefuse, ElementsThatDoNotFillTheFile) {
  EXPECT_EQ(refusal(two("0,4", "4,8")), "accepted");
  EXPECT_EQ(refusal(two("4,8", "0,4")), "accepted");
  EXPECT_EQ(refusal(two("0,4", "0,4")),
            "bad_file: tensor 'b' begins at 0, the tensor before it ends at 4: they overlap");
  EXPECT_EQ(refusal(two("0,4", "3,7")),
            "bad_file: tensor 'b' begins at 3, the tensor before it ends at 4: they overlap");
  EXPECT_EQ(refusal(two("0,4", "5,9")),
            "bad_file: tensor 'b' begins at 5, the tensor before it ends at 4: there is a hole");
  EXPECT_EQ(refusal(two("1,5", "5,9")),
            "bad_file: tensor 'a' begins at 1, the tensor before it ends at 0: there is a hole");
  EXPECT_EQ(refusal(two("0,4", "4,8"), 7), "bad_file: the tensors have 8 bytes, the file has 7 after its header");
  EXPECT_EQ(refusal(two("0,4", "4,8"), 9), "bad_file: the tensors have 8 bytes, the file has 9 after its header");
  EXPECT_EQ(refusal(two("0,4", "4,8", "a")), "bad_file: tensor 'a' is given twice");
}

TEST(SafetensorsRefuse, HeadersThatAreNoHeader) {
  EXPECT_EQ(refusal("{}", 0), "accepted");
  EXPECT_EQ(refusal(" {}", 0), "bad_file: not a safetensors file: its header begins with ' {}', not with '{'");
  EXPECT_EQ(refusal("", 0), "bad_file: not a safetensors file: its header begins with '', not with '{'");
  EXPECT_EQ(refusal("\xef\xbb\xbf{}", 0).substr(0, 32), "bad_file: not a safetensors file");
  for (const char* json : {"{", "{]", "{}x", "{\"a\"}", "{\"a\":", "{'a':1}", "{\"\xff\":{}}", "{\"\\ud800\":{}}"})
    EXPECT_EQ(refusal(json, 0).substr(0, 26), "bad_file: not JSON at byte") << json;
  EXPECT_EQ(refusal(std::string("{}\0", 3), 0).substr(0, 26), "bad_file: not JSON at byte");
  EXPECT_EQ(refusal("{\"a\":1}", 0), "bad_file: 'a': expected an object, found 1");
  EXPECT_EQ(refusal("{\"a\":[1]}", 0), "bad_file: 'a': expected an object, found an array");
  EXPECT_EQ(refusal("{\"a\":{\"dtype\":{}}}", 0), "bad_file: tensor 'a': dtype: expected a string, found an object");
  EXPECT_EQ(refusal("{\"a\":" + std::string(100'000, '['), 0), "bad_file: 'a': expected an object, found an array");
  EXPECT_EQ(refusal("{\"__metadata__\":{\"a\":1}}", 0), "bad_file: __metadata__: 'a': expected a string, found 1");
  EXPECT_EQ(refusal("{\"__metadata__\":{\"a\":{}}}", 0),
            "bad_file: __metadata__: 'a': expected a string, found an object");
  EXPECT_EQ(refusal("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "bad_file: __metadata__ is given twice");
  EXPECT_EQ(refusal("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0), "bad_file: metadata 'a' is given twice");
}

TEST(SafetensorsRefuse, FrontsThatAreCutOrTooLong) {
  const auto refused = [](const std::string& head, Index file_size_bytes) {
    return refusal_of(parse_safetensors_header(std::as_bytes(std::span(head)), file_size_bytes));
  };
  EXPECT_EQ(refused("1234567", 7), "bad_file: truncated: a safetensors file needs 8 bytes, the file has 7");
  EXPECT_EQ(refused(front("{}"), 9), "bad_file: truncated: the header needs 10 bytes, the file has 9");
  EXPECT_EQ(refused(front("{}").substr(0, 9), 10), "invalid_use: the header needs 10 bytes, 9 were given");
  EXPECT_EQ(refused(std::string(8, '\xff') + "{}", 10),
            "bad_file: not a safetensors file: it says that its header has 18446744073709551615 bytes, at most "
            "100000000 are");
  std::string large(8, '\0');
  large[3] = 6;  // 100663296
  EXPECT_EQ(refused(large, 8).substr(0, 39), "bad_file: not a safetensors file: it sa");
  large[3] = 5;
  EXPECT_EQ(refused(large, 8), "bad_file: truncated: the header needs 83886088 bytes, the file has 8");
}

TEST(SafetensorsRefuse, EveryCutOfAFile) {
  const std::string file = read_text(fixture("package.safetensors"));
  for (std::size_t cut = 0; cut < file.size(); ++cut) {
    const auto header = parse_safetensors_header(std::as_bytes(std::span(file)).first(cut), static_cast<Index>(cut));
    ASSERT_FALSE(header.ok()) << cut;
    EXPECT_EQ(header.error().code(), ErrorCode::bad_file) << cut;
  }
}

TEST(SafetensorsRefuse, OpeningNamesThePath) {
  testing::TemporaryFolder folder;
  testing::write_text(folder.path("bad.safetensors"), "1234567");
  EXPECT_EQ(refusal_of(open_safetensors(folder.path("bad.safetensors"))),
            "bad_file: '" + folder.path("bad.safetensors") +
                "': truncated: a safetensors file needs 8 bytes, the file has 7");
  EXPECT_EQ(open_safetensors(folder.path("none")).error().code(), ErrorCode::io);
}

// --- writing

TEST(SafetensorsMake, LargerElementsComeFirstAndNamesStayInOrder) {
  const SafetensorsTensor tensors[] = {{"flag", "BOOL", {3}}, {"half", "BF16", {5}},  {"zero", "F64", {0}},
                                       {"wide", "I64", {2}},  {"one", "F8_E4M3", {}}, {"also", "F16", {1, 2}}};
  const SafetensorsHeader header = make_safetensors_header(tensors, {{"format", "pt"}});
  EXPECT_EQ(format_safetensors_header(header).substr(8),
            R"({"__metadata__":{"format":"pt"},"flag":{"dtype":"BOOL","shape":[3],"data_offsets":[30,33]},)"
            R"("half":{"dtype":"BF16","shape":[5],"data_offsets":[16,26]},)"
            R"("zero":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},)"
            R"("wide":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
            R"("one":{"dtype":"F8_E4M3","shape":[],"data_offsets":[33,34]},)"
            R"("also":{"dtype":"F16","shape":[1,2],"data_offsets":[26,30]}} )");
  const std::string written = format_safetensors_header(header);
  EXPECT_EQ(parse_safetensors_header(std::as_bytes(std::span(written)), header.header_bytes + 34).value(), header);
}

TEST(SafetensorsMake, RefusesWhatNoFileCanHold) {
  const auto make = [](std::vector<SafetensorsTensor> tensors,
                       std::vector<std::pair<std::string, std::string>> metadata = {}) {
    return code_of([&] { return make_safetensors_header(tensors, metadata); });
  };
  EXPECT_EQ(make({{"a", "U8", {1}}, {"a", "U8", {1}}}), "invalid_use: tensor 'a' is given twice");
  EXPECT_EQ(make({{"__metadata__", "U8", {1}}}), "invalid_use: __metadata__ is no name of a tensor");
  EXPECT_EQ(make({{"\xff", "U8", {1}}}), "invalid_use: '\\xff' is not UTF-8, which JSON needs");
  EXPECT_EQ(make({}, {{"a", ""}, {"a", ""}}), "invalid_use: metadata 'a' is given twice");
  EXPECT_EQ(make({{"a", "u8", {1}}}).substr(0, 60), "unsupported: dtype 'u8' is not known: supported are BOOL, U8");
  constexpr Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ(make({{"a", "U8", {most}}}).substr(0, 9), "overflow:");
  EXPECT_EQ(make({{"a", "U8", {most / 2}}, {"b", "U8", {most / 2}}}).substr(0, 9), "overflow:");
  EXPECT_EQ(make({{std::string(safetensors_header_bytes_max, 'a'), "U8", {1}}}).substr(0, 32),
            "unsupported: a safetensors heade");

  SafetensorsHeader header = parse(two("0,4", "4,8"), 8).value();
  header.tensors[1].offset_bytes = 3;
  EXPECT_EQ(code_of([&] { return format_safetensors_header(header); }),
            "invalid_use: tensor 'b' begins at 3, the tensor before it ends at 4: they overlap");
  header.tensors[1].offset_bytes = 4;
  header.tensors[0].type = ElementType::i8;
  EXPECT_EQ(code_of([&] { return format_safetensors_header(header); }),
            "invalid_use: tensor 'a': dtype 'U8' does not spell elements i8");
}

// --- the index of a sharded checkpoint

const char* const two_shards = R"({
  "metadata": {
    "total_size": 2048,
    "total_parameters": 512,
    "by": "us",
    "ratio": 0.50
  },
  "weight_map": {
    "b": "model-00002-of-00002.safetensors",
    "a": "model-00001-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors"
  }
}
)";

TEST(SafetensorsIndex, IsReadAndWritten) {
  const SafetensorsIndex index = parse_safetensors_index(two_shards).value();
  EXPECT_EQ(index.total_size_bytes, 2048);
  ASSERT_EQ(index.tensors.size(), 3u);
  EXPECT_EQ(index.tensors[1], (SafetensorsIndex::Place{"a", "model-00001-of-00002.safetensors"}));
  EXPECT_EQ(index.files(),
            (std::vector<std::string>{"model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"}));
  EXPECT_EQ(format_safetensors_index(index), two_shards);
  EXPECT_EQ(safetensors_shard_name(1, 2), "model-00002-of-00002.safetensors");
  EXPECT_THROW(safetensors_shard_name(2, 2), Error);
}

TEST(SafetensorsIndex, ReadsWhatOthersWrite) {
  EXPECT_EQ(parse_safetensors_index(R"({"metadata":{"total_size":16.0},"weight_map":{}})").value().total_size_bytes,
            16);
  EXPECT_EQ(parse_safetensors_index(R"({"weight_map":{}})").value().total_size_bytes, std::nullopt);
  EXPECT_EQ(format_safetensors_index({}), "{\n  \"metadata\": {},\n  \"weight_map\": {}\n}\n");
}

TEST(SafetensorsIndex, RefusesWhatIsWrong) {
  const auto refused = [](const std::string& text) { return refusal_of(parse_safetensors_index(text)); };
  const auto mapped = [&](const std::string& file) { return refused("{\"weight_map\":{\"a\":" + file + "}}"); };
  EXPECT_EQ(mapped("\"x y.safetensors\""), "accepted");
  for (const char* file : {"\"../x\"", "\"/x\"", "\"a/b\"", "\"a\\\\b\"", "\"..\"", "\".\"", "\".x\"", "\"\"",
                           "\"a\\u0000\"", "\"a\\n\"", "\"a..b\""})
    EXPECT_EQ(mapped(file).substr(0, 28), "bad_file: weight_map: 'a': '") << file;
  EXPECT_EQ(mapped("\"" + std::string(256, 'x') + "\"").substr(0, 28), "bad_file: weight_map: 'a': '");
  EXPECT_EQ(mapped("1"), "bad_file: weight_map: 'a': expected a string, found 1");
  EXPECT_EQ(mapped("\"x\",\"a\":\"y\""), "bad_file: tensor 'a' is given twice");
  EXPECT_EQ(mapped("{}"), "bad_file: weight_map: 'a': expected a string, found an object");
  EXPECT_EQ(refused(""), "bad_file: not JSON at byte 1");
  EXPECT_EQ(refused("[]"), "bad_file: the index: expected an object, found an array");
  EXPECT_EQ(refused("{}"), "bad_file: the index: weight_map is missing");
  EXPECT_EQ(refused("{\"weight_map\":[]}"), "bad_file: the index: 'weight_map': expected an object, found an array");
  EXPECT_EQ(refused("{\"weight_map\":{},\"weight_map\":{}}"), "bad_file: the index: weight_map is given twice");
  EXPECT_EQ(refused("{\"weights\":{}}"),
            "unsupported: the index: unknown key 'weights', its keys are metadata and weight_map");
  const auto total = [&](const std::string& value) {
    return refused("{\"weight_map\":{},\"metadata\":{\"total_size\":" + value + "}}");
  };
  EXPECT_EQ(total("1"), "accepted");
  for (const char* value : {"-1", "1.5", "1e300", "\"1\"", "null", "true"})
    EXPECT_EQ(total(value).substr(0, 71), "bad_file: metadata: 'total_size': expected a whole number of 0 or more,")
        << value;
  EXPECT_EQ(total("9223372036854775808"),
            "overflow: metadata: 'total_size': 9223372036854775808 does not fit in 63 bits");
  EXPECT_EQ(total("1,\"total_size\":1"), "bad_file: metadata: 'total_size' is given twice");
  EXPECT_EQ(total("1,\"a\":[]"),
            "bad_file: metadata: 'a': expected a string, a number, true, false or null, found an array");
}

TEST(SafetensorsIndex, RefusesToWriteWhatCannotBeRead) {
  SafetensorsIndex index;
  index.tensors = {{"a", "../x"}};
  EXPECT_EQ(code_of([&] { return format_safetensors_index(index); }).substr(0, 48),
            "invalid_use: this cannot be written as an index:");
  index.tensors = {};
  index.metadata = {{"a", "1, \"b\": 2"}};
  EXPECT_EQ(code_of([&] { return format_safetensors_index(index); }),
            "invalid_use: this cannot be written as an index: its metadata would change when it is read again");
}

// --- mutations

const std::vector<std::string> pieces = {"\"U8\"", "\"dtype\"", "__metadata__"};

Tally run_header_mutations(int count, testing::SafetensorsFormat format) {
  test::Random random(20240607);
  const std::vector<std::string> headers = {
      two("0,4", "4,8"), two("4,8", "0,4"),
      R"({"__metadata__":{"a":"b"},"layers.0.w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}} )"};
  Tally tally;
  for (int i = 0; i < count; ++i) {
    std::string json = random.pick(headers);
    testing::mutate_json(json, pieces, random);
    const std::string head = front(json);
    tally.add(testing::check_safetensors(std::as_bytes(std::span(head)), format), json);
  }
  return tally;
}

Tally run_index_mutations(int count, testing::SafetensorsIndexFormat format) {
  test::Random random(20240607);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    std::string text = two_shards;
    testing::mutate_json(text, pieces, random);
    tally.add(testing::check_safetensors_index(text, format), text);
  }
  return tally;
}

TEST(SafetensorsFuzz, MutatedHeadersAreRefusedOrKeepTheirPromises) {
  const Tally tally = run_header_mutations(40'000, format_safetensors_header);
  EXPECT_EQ(tally.violations, 0) << tally.first_violation;
  // Both sides were met often, or the mutations would prove little.
  EXPECT_GT(tally.accepted, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(SafetensorsFuzz, MutatedIndicesAreRefusedOrKeepTheirPromises) {
  const Tally tally = run_index_mutations(20'000, format_safetensors_index);
  EXPECT_EQ(tally.violations, 0) << tally.first_violation;
  EXPECT_GT(tally.accepted, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(SafetensorsFuzz, CanariesWritersThatLoseSomethingAreFound) {
  const auto without_metadata = [](const SafetensorsHeader& header) {
    SafetensorsHeader wrong = header;
    wrong.metadata.clear();
    return format_safetensors_header(wrong);
  };
  EXPECT_GT(run_header_mutations(1'000, without_metadata).violations, 0);
  const auto without_total = [](const SafetensorsIndex& index) {
    SafetensorsIndex wrong = index;
    wrong.total_size_bytes.reset();
    return format_safetensors_index(wrong);
  };
  EXPECT_GT(run_index_mutations(1'000, without_total).violations, 0);
}

}  // namespace
}  // namespace tranship::safetensors_test
