// .npy headers: against files that NumPy wrote (fixtures/, made by make_fixtures.py), by hand, and hostile ones.
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/file/format/npy.hpp>

#include "file/temporary_folder.hpp"
#include "support/paths.hpp"

namespace tranship::npy_test {
namespace {

using nlohmann::json;

std::string fixture(const std::string& name) {
  return test::test_path("file/fixtures/" + std::string(name));
}

const json& expected() {
  static const json out = json::parse(testing::read_text(fixture("expected.json")));
  return out;
}

Indices extents_of(const json& entry) {
  const auto values = entry["extents"].get<std::vector<Index>>();
  return Indices(std::span<const Index>(values));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A version 1.0 header around `dictionary`.
std::string header_around(const std::string& dictionary) {
  const std::size_t size = dictionary.size();
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(size & 0xff) + static_cast<char>(size >> 8) + dictionary;
}

/// Parses `dictionary` for a file with `data_bytes` bytes of elements.
Result<NpyHeader> parse(const std::string& dictionary, Index data_bytes) {
  const std::string head = header_around(dictionary);
  return parse_npy_header(bytes_of(head), static_cast<Index>(head.size()) + data_bytes);
}

/// The error of a dictionary, as "code: message".
std::string refusal(const std::string& dictionary, Index data_bytes = 8) {
  const Result<NpyHeader> header = parse(dictionary, data_bytes);
  if (header) return "accepted";
  return std::string(name_of(header.error().code())) + ": " + header.error().message();
}

std::string with_descr(const std::string& descr) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }";
}
std::string with_shape(const std::string& shape) {
  return "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
}

// --- files that NumPy wrote

TEST(NpyFixture, EveryFileIsReadAsNumPyWroteIt) {
  ASSERT_EQ(expected()["files"].size(), 60u);
  for (const json& entry : expected()["files"]) {
    SCOPED_TRACE(entry.dump());
    const NpyFile npy = open_npy(fixture(entry["file"])).value();
    EXPECT_EQ(name_of(npy.header.type), entry["type"].get<std::string>());
    EXPECT_EQ(npy.header.count, entry.value("count", Index(1)));
    EXPECT_EQ(std::string(1, npy.header.byte_order), entry["byte_order"].get<std::string>());
    EXPECT_EQ(npy.header.descr, entry["descr"].get<std::string>());
    EXPECT_EQ(npy.header.order, entry["order"] == "fortran" ? NpyOrder::fortran : NpyOrder::c);
    EXPECT_EQ(npy.header.extents, extents_of(entry));
    EXPECT_EQ(npy.header.data_bytes(), entry["data_bytes"].get<Index>());
    EXPECT_EQ(static_cast<int>(npy.file.bytes()[6]), entry["version"].get<int>());
  }
}

TEST(NpyFixture, HeadersOfVersionOneAreWrittenByteForByteAsNumPyDoes) {
  for (const json& entry : expected()["files"]) {
    SCOPED_TRACE(entry.dump());
    const std::string file = testing::read_text(fixture(entry["file"]));
    const NpyHeader header = parse_npy_header(bytes_of(file), static_cast<Index>(file.size())).value();
    const std::string written = format_npy_header(header);
    if (entry["version"] == 1 || entry["file"].get<std::string>().starts_with("opaque")) {
      EXPECT_EQ(written, file.substr(0, static_cast<std::size_t>(header.header_bytes)));
    } else {
      // The same text behind a longer front: read back, it is the same array.
      NpyHeader same = header;
      same.header_bytes = static_cast<Index>(written.size());
      EXPECT_EQ(parse_npy_header(bytes_of(written), same.header_bytes + same.data_bytes()).value(), same);
    }
  }
}

TEST(NpyFixture, HeadersOfManyShapesAreWrittenByteForByteAsNumPyDoes) {
  ASSERT_EQ(expected()["headers"].size(), 52u);
  std::set<std::size_t> lengths;
  for (const json& entry : expected()["headers"]) {
    SCOPED_TRACE(entry.dump());
    std::string theirs = header_around(entry["text"]);
    theirs.resize(entry["header_bytes"].get<std::size_t>() - 1, ' ');
    theirs += '\n';
    theirs[8] = static_cast<char>(theirs.size() - 10);
    lengths.insert(theirs.size());
    Index data_bytes = std::accumulate(entry["extents"].begin(), entry["extents"].end(), Index{1},
                                       [](Index product, const json& extent) { return product * extent.get<Index>(); });
    const std::string descr = entry["descr"];
    const std::string kind = descr == "bfloat16" ? "V2" : descr.substr(descr.find_first_not_of("<>|="));
    data_bytes *= size_bytes(element_type_of_numpy(kind).value());
    const Index file_bytes = static_cast<Index>(theirs.size()) + data_bytes;
    EXPECT_EQ(format_npy_header(parse_npy_header(bytes_of(theirs), file_bytes).value()), theirs);
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{128, 192}));
}

TEST(NpyFixture, HeadersOfWhatCannotMoveAreRefused) {
  const std::vector<std::string> beginnings = {
      "unsupported: unsupported element type 'O': it is a Python object",
      "unsupported: unsupported element type 'O': it is a Python object",
      "unsupported: the array has 9 dimensions, at most 8 are supported",
  };
  ASSERT_EQ(expected()["refused"].size(), beginnings.size());
  for (std::size_t i = 0; i < beginnings.size(); ++i)
    EXPECT_EQ(refusal(expected()["refused"][i]).substr(0, beginnings[i].size()), beginnings[i]);
}

template <class T>
void expect_counting(const NpyFile& npy) {
  const StridedView view = npy.view();
  Index count = 0;
  for_each_coordinate(view.extents, [&](const Indices& at) {
    Index offset = 0;
    for (int d = 0; d < at.size(); ++d) offset += at[d] * view.strides[d];
    EXPECT_EQ(static_cast<const T*>(view.data)[offset], static_cast<T>(count)) << to_string(at);
    ++count;
  });
  EXPECT_EQ(count, checked_product(npy.header.extents));
}

TEST(NpyFixture, ViewsFindEveryElementInBothOrders) {
  for (const std::string version : {"1", "2", "3"}) {
    for (const std::string order : {"c", "f"}) {
      SCOPED_TRACE(version + order);
      expect_counting<std::int32_t>(open_npy(fixture("version" + version + "_" + order + ".npy")).value());
    }
    const NpyFile scalar = open_npy(fixture("version" + version + "_zero_dims.npy")).value();
    EXPECT_EQ(scalar.view().dims(), 0);
    EXPECT_EQ(*static_cast<const double*>(scalar.view().data), 0.0);
    EXPECT_EQ(open_npy(fixture("version" + version + "_empty.npy")).value().header.data_bytes(), 0);
  }
  expect_counting<std::int16_t>(open_npy(fixture("eight_dims.npy")).value());
}

TEST(NpyFixture, BigEndianElementsKeepTheirBytes) {
  const NpyFile npy = open_npy(fixture("big_u16.npy")).value();
  const auto elements = npy.file.bytes().subspan(static_cast<std::size_t>(npy.header.header_bytes));
  const std::byte expected_bytes[] = {std::byte{0}, std::byte{0}, std::byte{0},
                                      std::byte{1}, std::byte{0}, std::byte{2}};
  EXPECT_EQ(std::memcmp(elements.data(), expected_bytes, sizeof expected_bytes), 0);
  EXPECT_EQ(elements.size(), sizeof expected_bytes);
}

// --- texts that NumPy reads, though it does not write them today

TEST(NpyParse, AcceptsAnyOrderSpacingAndQuotes) {
  const NpyHeader plain = parse("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", 48).value();
  for (const std::string& text : {
           std::string("{'shape': (2, 3), 'fortran_order': True, 'descr': '<f8'}"),
           std::string("{\"descr\":\"<f8\",\"fortran_order\":True,\"shape\":(2,3)}"),
           std::string(" {\t'descr' : '<f8' ,\n'fortran_order'  :True, 'shape' : ( 2 , 3 , ) , } \n"),
           std::string("{'descr': '<f8', 'fortran_order': True, 'shape': (2L, 3L), }"),
       }) {
    NpyHeader header = parse(text, 48).value();
    header.header_bytes = plain.header_bytes;
    EXPECT_EQ(header, plain) << text;
  }
}

TEST(NpyParse, ReadsEverySpellingOfAnElement) {
  const char native = std::endian::native == std::endian::little ? '<' : '>';
  const struct {
    const char* descr;
    ElementType type;
    char byte_order;
  } cases[] = {
      {"<f8", ElementType::f64, '<'},   {">f8", ElementType::f64, '>'},    {"=f8", ElementType::f64, native},
      {"f8", ElementType::f64, native}, {"|f8", ElementType::f64, native}, {"<b1", ElementType::bool8, '|'},
      {"u1", ElementType::u8, '|'},     {"|V2", ElementType::bf16, '|'},   {"<V2", ElementType::bf16, '<'},
      {">V2", ElementType::bf16, '>'},  {"V2", ElementType::bf16, '|'},    {"bfloat16", ElementType::bf16, native},
      {">c32", ElementType::c256, '>'}};
  for (const auto& entry : cases) {
    const NpyHeader header = parse(with_descr(std::string("'") + entry.descr + "'"), size_bytes(entry.type)).value();
    EXPECT_EQ(header.type, entry.type) << entry.descr;
    EXPECT_EQ(header.byte_order, entry.byte_order) << entry.descr;
    EXPECT_EQ(header.descr, entry.descr);
  }
}

TEST(NpyParse, AnArrayOfNoDimensionsHasOneElement) {
  const NpyHeader header = parse(with_shape("()"), 8).value();
  EXPECT_TRUE(header.extents.empty());
  EXPECT_EQ(header.data_bytes(), 8);
}

// --- hostile texts

TEST(NpyParse, ReadsElementsThatMoveAsBytes) {
  const struct {
    const char* descr;
    ElementType type;
    Index count;
    char byte_order;
    Index swap_bytes;
  } cases[] = {{"<M8[ns]", ElementType::u64, 1, '<', 8},
               {">m8[25s]", ElementType::u64, 1, '>', 8},
               {"M8", ElementType::u64, 1, '<', 8},
               {"|S3", ElementType::u8, 3, '|', 1},
               {">U5", ElementType::u32, 5, '>', 4},
               {"<U4", ElementType::u64, 2, '<', 4},
               {"|V12", ElementType::u32, 3, '|', 1},
               {"V1", ElementType::u8, 1, '|', 1},
               {"<f1", ElementType::u8, 1, '|', 1},
               {"[('x', '<f4'), ('y', '<i8')]", ElementType::u32, 3, '<', 0},
               {"[('x', '|u1'), ('', '|V1')]", ElementType::u16, 1, '|', 0},
               {"[('x', '>f4', (2, 3)), ('y', [('z', '<i2')])]", ElementType::u16, 13, '>', 0},
               {"[(('title', 'name'), \"<f8\",)]", ElementType::u64, 1, '<', 0}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.descr);
    const NpyElement element = parse_npy_descr(c.descr).value();
    EXPECT_EQ(element.type, c.type);
    EXPECT_EQ(element.count, c.count);
    EXPECT_EQ(element.byte_order, c.byte_order);
    EXPECT_EQ(element.swap_bytes, c.swap_bytes);
    const std::string quote = c.descr[0] == '[' ? "" : "'";
    const NpyHeader header = parse(with_descr(quote + c.descr + quote), c.count * size_bytes(c.type)).value();
    EXPECT_EQ(header.descr, c.descr);
    EXPECT_EQ(header.count, c.count);
  }
}

TEST(NpyRefuse, ElementsThatCannotMove) {
  constexpr const char* supported =
      "; supported are b1, i1 to i8, u1 to u8, f2 to f16, c8 to c32, V2 (bfloat16), and, moved as bytes, f1, S, U, V, "
      "M8, "
      "m8 and records of these";
  const std::string prefix = "unsupported: unsupported element type ";
  EXPECT_EQ(refusal(with_descr("'|O'")), prefix + "'O': it is a Python object" + supported);
  EXPECT_EQ(refusal(with_descr("'<q7'")), prefix + "'<q7': it is not known" + supported);
  for (const char* text : {"", "<", "M4", "M8[", "M8[]", "M8[n s]", "M8x", "S", "Sx", "S-1", "f3", "V 2", "U1x"})
    EXPECT_EQ(refusal(with_descr("'" + std::string(text) + "'")),
              prefix + "'" + text + "': it is not known" + supported);
  for (const char* text : {"S0", "U0", "|V0"})
    EXPECT_EQ(refusal(with_descr("'" + std::string(text) + "'")),
              prefix + "'" + text + "': it has no bytes" + supported);
  EXPECT_EQ(refusal(with_descr("[]")), prefix + "'[]': it has no bytes" + supported);
  EXPECT_EQ(refusal(with_descr("('<f8', (2,))")),
            "unsupported: unsupported element type: an array within an element, not one number");
}

TEST(NpyRefuse, RecordsThatAreNone) {
  for (const char* text : {"[", "[(", "[('a',", "[('a', '<f4'", "[('a', '<f4')", "[('a', '<f4'),", "['a']", "[('a',)]",
                           "[('a', 4)]", "[('a', '<f4', 3)]", "[('a', '<f4', (3))]", "[('a' '<f4')]",
                           "[(('t', 'a', 'b'), '<f4')]", "[('a', '<f4') ('b', '<f4')]", "[('a\\'', '<f4')]"}) {
    EXPECT_EQ(refusal(with_descr(text)).substr(0, 37), "bad_file: malformed header: expected ") << text;
    EXPECT_EQ(parse_npy_descr(text).error().code(), ErrorCode::bad_file) << text;
  }
  EXPECT_EQ(refusal(with_descr("[('a', '<f4', (4294967296, 4294967296))]")).substr(0, 9), "overflow:");
  EXPECT_EQ(refusal(with_descr("[('a', '|S9223372036854775807'), ('b', '|S2')]")).substr(0, 9), "overflow:");
  EXPECT_EQ(refusal(with_descr("'<U9223372036854775807'")).substr(0, 9), "overflow:");
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "[('a', ";
  EXPECT_EQ(refusal(with_descr(deep)), "unsupported: records are nested 33 deep: at most 32 levels are supported");
}

TEST(NpyParse, LongHeadersAreOfVersion2) {
  std::string descr = "[";
  for (int i = 0; i < 4000; ++i) descr += (i > 0 ? ", ('field" : "('field") + std::to_string(i) + "', '|u1')";
  NpyHeader header{.type = ElementType::u64, .count = 500, .extents = {3}};
  header.descr = descr + "]";
  const std::string written = format_npy_header(header);
  EXPECT_EQ(written[6], 2);
  EXPECT_EQ(written.size() % 64, 0u);
  NpyHeader expected_header = header;
  expected_header.header_bytes = static_cast<Index>(written.size());
  EXPECT_EQ(parse_npy_header(bytes_of(written), expected_header.header_bytes + 12000).value(), expected_header);
}

TEST(NpyParse, RecordsOfForeignLettersKeepThem) {
  // Version 1 is Latin-1, version 3 UTF-8; a descr is UTF-8 whatever its file was.
  const NpyHeader latin = parse("{'descr': [('\xe9', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4).value();
  EXPECT_EQ(latin.descr, "[('\xc3\xa9', '<f4')]");
  EXPECT_EQ(format_npy_header(latin)[6], 1);
  NpyHeader greek = latin;
  greek.descr = "[('\xcf\x80', '<f4')]";
  const std::string written = format_npy_header(greek);
  EXPECT_EQ(written[6], 3);
  EXPECT_EQ(parse_npy_header(bytes_of(written), static_cast<Index>(written.size()) + 4).value().descr, greek.descr);
  std::string broken = written;
  broken[broken.find('\x80')] = 'x';
  EXPECT_EQ(parse_npy_header(bytes_of(broken), static_cast<Index>(broken.size()) + 4).error().code(),
            ErrorCode::bad_file);
}

TEST(NpyRefuse, ExtentsThatAreNegativeHugeOrMany) {
  EXPECT_EQ(refusal(with_shape("(4, -3)")), "bad_file: extent -3 of dimension 1 is negative");
  EXPECT_EQ(refusal(with_shape("(9223372036854775808,)")),
            "overflow: extent 9223372036854775808 of dimension 0 does not fit in 63 bits");
  EXPECT_EQ(refusal(with_shape("(4294967296, 4294967296)")),
            "overflow: the file's length does not fit in 63 bits: extents [4294967296, 4294967296] of 8 bytes each");
  // The product fits, the bytes do not.
  EXPECT_EQ(refusal(with_shape("(2305843009213693952,)")).substr(0, 9), "overflow:");
  // The bytes fit, the header in front of them does not.
  EXPECT_EQ(refusal(with_shape("(1152921504606846975,)")).substr(0, 9), "overflow:");
  // Empty, but with strides that do not fit.
  EXPECT_EQ(refusal(with_shape("(0, 4294967296, 4294967296)"), 0).substr(0, 9), "overflow:");
  EXPECT_EQ(refusal(with_shape("(1,1,1,1,1,1,1,1,1,1)")),
            "unsupported: the array has 10 dimensions, at most 8 are supported");
  EXPECT_EQ(refusal(with_shape("(" + std::string(50000, '9') + ",)")),
            "overflow: extent " + std::string(40, '9') + "... (50000 bytes) of dimension 0 does not fit in 63 bits");
}

TEST(NpyRefuse, ShapesThatAreNoTuples) {
  for (const char* shape : {"3", "(3)", "[3]", "(,)", "(1,,2)", "(1 2)", "(1.0,)", "(03,)", "(+3,)", "('3',)",
                            "(True,)", "(1", "((1,),)", "(-,)", "(L,)", "None", ""})
    EXPECT_EQ(refusal(with_shape(shape)).substr(0, 37), "bad_file: malformed header: expected ") << shape;
  EXPECT_EQ(refusal(with_shape("(3)")),
            "bad_file: malformed header: expected ',' after the only extent at byte 62, found ')'");
}

TEST(NpyRefuse, KeysThatAreTwiceMissingOrUnknown) {
  EXPECT_EQ(refusal("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'descr': '<f4', }"),
            "bad_file: key 'descr' comes twice in the header");
  EXPECT_EQ(refusal("{'fortran_order': False, 'shape': (1,)}"), "bad_file: key 'descr' is missing in the header");
  EXPECT_EQ(refusal("{'descr': '<f8', 'shape': (1,)}"), "bad_file: key 'fortran_order' is missing in the header");
  EXPECT_EQ(refusal("{'descr': '<f8', 'fortran_order': False}"), "bad_file: key 'shape' is missing in the header");
  EXPECT_EQ(refusal("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}"),
            "bad_file: unknown key 'more' in the header: its keys are descr, fortran_order and shape");
}

TEST(NpyRefuse, TextsThatAreNoDictionary) {
  for (const char* text :
       {"", " ", "x", "[]", "{", "{'descr'", "{'descr':", "{'descr': '<f8", "{'descr': '<f8'", "{descr: '<f8'}",
        "{'descr': '\\x3cf8', 'fortran_order': False, 'shape': ()}", "{'descr': '<f8' 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}", "{'descr': '<f8', 'fortran_order': False, 'shape': ()} x",
        "{'descr': '<f8', 'fortran_order': Falsehood, 'shape': ()}", "{,}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ()}}", "{'descr': '<f8',, 'fortran_order': False}"})
    EXPECT_EQ(refusal(text).substr(0, 37), "bad_file: malformed header: expected ") << text;
  EXPECT_EQ(refusal(std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ()}\0", 54)),
            "bad_file: malformed header: expected nothing but spaces after the dictionary at byte 63, found '\\x00'");
  EXPECT_EQ(refusal("{'descr': " + std::string(60000, '(')),
            "unsupported: unsupported element type: an array within an element, not one number");
  EXPECT_EQ(refusal(std::string(60000, '{')),
            "bad_file: malformed header: expected a quoted string at byte 11, found '{'");
  EXPECT_EQ(refusal("{'a\x1b[31m\xff': 1}"),
            "bad_file: unknown key 'a\\x1b[31m\\xff' in the header: its keys are descr, fortran_order and shape");
}

std::string front_refusal(const std::string& head, Index file_size_bytes) {
  const Result<NpyHeader> header = parse_npy_header(bytes_of(head), file_size_bytes);
  if (header) return "accepted";
  return std::string(name_of(header.error().code())) + ": " + header.error().message();
}

TEST(NpyRefuse, FrontsThatAreWrongOrCut) {
  EXPECT_EQ(front_refusal("", 0), "bad_file: truncated: the header needs 8 bytes, the file has 0");
  EXPECT_EQ(front_refusal("\x93NUM", 4), "bad_file: truncated: the header needs 8 bytes, the file has 4");
  EXPECT_EQ(front_refusal("PK\x03\x04....", 8), "bad_file: not a .npy file: it begins with 'PK\\x03\\x04..'");
  EXPECT_EQ(front_refusal(std::string("\x93NUMPY\x04\0", 8), 8),
            "unsupported: .npy version 4.0: 1.0, 2.0 and 3.0 are read");
  EXPECT_EQ(front_refusal("\x93NUMPY\x01\x07", 8), "unsupported: .npy version 1.7: 1.0, 2.0 and 3.0 are read");
  const std::string one("\x93NUMPY\x01\0\xff\xff", 10);
  EXPECT_EQ(front_refusal(one, 10), "bad_file: truncated: the header needs 65545 bytes, the file has 10");
  EXPECT_EQ(front_refusal(one, 70000), "invalid_use: the header needs 65545 bytes, 10 were given");
  const std::string two("\x93NUMPY\x02\0\xff\xff\xff\xff", 12);
  EXPECT_EQ(front_refusal(two, 12), "bad_file: truncated: the header needs 4294967307 bytes, the file has 12");
  EXPECT_EQ(front_refusal(two, Index{1} << 40), "unsupported: a header of 4294967307 bytes: at most 131072 are read");
}

TEST(NpyRefuse, EveryCutOfAFileAndAnythingBehindIt) {
  const std::string file = testing::read_text(fixture("version2_f.npy"));
  const Index size = static_cast<Index>(file.size());
  for (Index cut = 0; cut < size; ++cut) {
    const Result<NpyHeader> header = parse_npy_header(bytes_of(file.substr(0, static_cast<std::size_t>(cut))), cut);
    ASSERT_FALSE(header.ok()) << cut;
    EXPECT_EQ(header.error().code(), ErrorCode::bad_file);
    EXPECT_EQ(header.error().message().substr(0, 11), "truncated: ") << cut;
  }
  EXPECT_EQ(front_refusal(file, 175), "bad_file: truncated: needs 176 bytes, has 175");
  EXPECT_EQ(front_refusal(file, 179), "bad_file: has 3 trailing bytes: needs 176 bytes, has 179");
}

TEST(NpyRefuse, OpeningNamesThePath) {
  testing::TemporaryFolder folder;
  testing::write_text(folder.path("bad.npy"), "not an array");
  const Result<NpyFile> bad = open_npy(folder.path("bad.npy"));
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), ErrorCode::bad_file);
  EXPECT_EQ(bad.error().message(), "'" + folder.path("bad.npy") + "': not a .npy file: it begins with 'not an'");
  EXPECT_EQ(open_npy(folder.path("none.npy")).error().code(), ErrorCode::io);
}

// --- writing

TEST(NpyFormat, MadeHeadersReadBackAsMade) {
  for (int number = 0; number <= static_cast<int>(ElementType::c256); ++number)
    for (const NpyOrder order : {NpyOrder::c, NpyOrder::fortran})
      for (const Indices& extents :
           {Indices{}, Indices{0}, Indices{7}, Indices{2, 3}, Indices{1, 2, 3, 4, 5, 6, 7, 8}}) {
        const NpyHeader made = make_npy_header(static_cast<ElementType>(number), extents, order);
        const std::string written = format_npy_header(made);
        EXPECT_EQ(parse_npy_header(bytes_of(written), made.header_bytes + made.data_bytes()).value(), made);
      }
}

TEST(NpyFormat, RefusesWhatNoFileCanHold) {
  const auto code = [](auto&& call) {
    const auto result = attempt(call);
    return result ? std::string("done") : std::string(name_of(result.error().code()));
  };
  constexpr Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ(code([] { return make_npy_header(ElementType::f64, Indices{-1}); }), "invalid_use");
  EXPECT_EQ(code([] { return make_npy_header(ElementType::f64, Indices{most}); }), "overflow");
  EXPECT_EQ(code([] { return make_npy_header(ElementType::u8, Indices{most}); }), "overflow");
  EXPECT_EQ(code([] { return make_npy_header(ElementType::u8, Indices{most - 128}); }), "done");
  NpyHeader header = make_npy_header(ElementType::f64, Indices{3});
  header.type = ElementType::f32;
  EXPECT_EQ(code([&] { return format_npy_header(header); }), "invalid_use");
}

}  // namespace
}  // namespace tranship::npy_test
