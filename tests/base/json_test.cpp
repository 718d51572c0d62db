// JSON values and texts, held against the library below them as an independent reader and writer.
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <support/error_of.hpp>
#include <support/random_layouts.hpp>

#include <tranship/base/error.hpp>
#include <tranship/base/json.hpp>

namespace tranship {
namespace {

using Oracle = nlohmann::ordered_json;
using Handler = Oracle::error_handler_t;
using test::error_of;
using test::Random;

/// One value twice.
struct Twins {
  Json ours;
  Oracle theirs;
};

std::string random_text(Random& random) {
  // The edges of each length of UTF-8 and of what is escaped.
  const std::vector<unsigned> points = {0x00,   0x01,   0x08,   0x09,   0x0a,    0x1f,    0x20,  0x22,
                                        0x2f,   0x5c,   0x7e,   0x7f,   0x80,    0x7ff,   0x800, 0x2028,
                                        0xd7ff, 0xe000, 0xfffd, 0xffff, 0x10000, 0x10ffff};
  std::string out;
  for (Index n = random.below(12); n > 0; --n) {
    const unsigned point = random.one_in(2) ? unsigned(random.between(0x20, 0x7e)) : random.pick(points);
    if (point < 0x80) {
      out += char(point);
    } else if (point < 0x800) {
      out += {char(0xc0 | point >> 6), char(0x80 | (point & 0x3f))};
    } else if (point < 0x10000) {
      out += {char(0xe0 | point >> 12), char(0x80 | (point >> 6 & 0x3f)), char(0x80 | (point & 0x3f))};
    } else {
      out += {char(0xf0 | point >> 18), char(0x80 | (point >> 12 & 0x3f)), char(0x80 | (point >> 6 & 0x3f)),
              char(0x80 | (point & 0x3f))};
    }
  }
  return out;
}

double random_finite(Random& random) {
  if (random.one_in(3)) return double(random.between(-1000, 1000)) / double(random.between(1, 100));
  if (random.one_in(3)) return std::ldexp(double(random.between(-100, 100)), int(random.between(-80, 80)));
  const std::uint64_t bits = random.bits();
  double out = 0;
  std::memcpy(&out, &bits, sizeof out);
  return std::isfinite(out) ? out : 0.5;
}

Twins random_value(Random& random, int depth) {
  const auto twins = [](const auto& value) { return Twins{value, value}; };
  switch (random.below(depth > 0 ? 9 : 7)) {
    case 0:
      return twins(nullptr);
    case 1:
      return twins(random.one_in(2));
    case 2:
      return twins(std::int64_t(random.bits()) >> random.below(64));
    case 3:
      return twins(random.bits() >> random.below(64));
    case 4:
      return twins(random_finite(random));
    case 5:
    case 6:
      return twins(random_text(random));
    case 7: {
      Twins out{Json::array(), Oracle::array()};
      for (Index n = random.below(5); n > 0; --n) {
        const Twins item = random_value(random, depth - 1);
        out.ours.push_back(item.ours);
        out.theirs.push_back(item.theirs);
      }
      return out;
    }
    default: {
      Twins out{Json::object(), Oracle::object()};
      for (Index n = random.below(5); n > 0; --n) {
        const Twins member = random_value(random, depth - 1);
        const std::string key = random_text(random);
        out.ours[key] = member.ours;
        out.theirs[key] = member.theirs;
      }
      return out;
    }
  }
}

/// What the oracle says of a text: its value as text, or where it is wrong.
std::string verdict_of_oracle(const std::string& text) {
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    return fmt::format("not JSON at {}", zero + 1);
  try {
    return Oracle::parse(text).dump();
  } catch (const Oracle::parse_error& error) {
    return fmt::format("not JSON at {}", error.byte);
  } catch (const Oracle::out_of_range&) {
    return "a number of the JSON text is too large";
  }
}

std::string verdict_of(const std::string& text) {
  try {
    return parse_json(text).dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_text);
    if (error.column < 0) return error.message();
    const char found = text[std::min(std::size_t(error.column), text.size()) - (text.empty() ? 0 : 1)];
    EXPECT_NE(error.message().find(std::size_t(error.column) > text.size() ? std::string("not JSON: found the end")
                                   : found > ' ' && found <= '~'           ? fmt::format("not JSON: found '{}'", found)
                                                                           : std::string("not JSON: found byte 0x")),
              std::string::npos)
        << error.message();
    return fmt::format("not JSON at {}", error.column);
  }
}

// --- Values ---------------------------------------------------------------------------------------------------------

TEST(Json, IsMadeOfValues) {
  EXPECT_TRUE(Json().is_null());
  EXPECT_TRUE(Json(nullptr).is_null());
  EXPECT_TRUE(Json(true).is_boolean());
  EXPECT_TRUE(Json(7).is_integer());
  EXPECT_TRUE(Json(7U).is_integer());
  EXPECT_FALSE(Json(7.0).is_integer());
  EXPECT_TRUE(Json(7.0F).is_number());
  EXPECT_TRUE(Json("text").is_string());
  EXPECT_TRUE(Json(std::string_view("text")).is_string());
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::max()).type(), JsonType::integer);
  EXPECT_EQ(Json(std::uint64_t(std::numeric_limits<std::int64_t>::max())).type(), JsonType::integer);
  EXPECT_EQ(Json(std::uint64_t(1) << 63).type(), JsonType::large_integer);
  EXPECT_EQ(Json(std::vector<int>{3, 1, 2}).dump(), "[3,1,2]");
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::vector<int>{}).dump(), "[]");
}

TEST(Json, ListsInBracesAreArraysOrObjects) {
  const Json inner = {{"one", 1}};
  EXPECT_EQ(inner.dump(), R"({"one":1})");
  const Json outer = {
      {"z", inner}, {"a", {{"b", true}, {"c", nullptr}}}, {"list", {1, "two", 2.5}}, {"pair", {"x", "y"}}};
  EXPECT_EQ(outer.dump(), R"({"z":{"one":1},"a":{"b":true,"c":null},"list":[1,"two",2.5],"pair":["x","y"]})");
  EXPECT_EQ((Json{{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ((Json{{"a", 1}, {"b", 2, 3}}).dump(), R"([["a",1],["b",2,3]])");
  Json list;
  list.push_back({{"kind", "whole"}});
  list.push_back({{"kind", "block"}, {"size", 3}});
  EXPECT_EQ(list.dump(), R"([{"kind":"whole"},{"kind":"block","size":3}])");
}

TEST(Json, MembersKeepTheirOrder) {
  Json value;
  value["z"] = 1;
  value["a"] = Json::array();
  value["a"].push_back(2);
  value["z"] = "again";
  value.update({{"b", 4}, {"a", 5}});
  EXPECT_EQ(value.dump(), R"({"z":"again","a":5,"b":4})");
  EXPECT_EQ(value.size(), 3U);
  EXPECT_EQ(value.members()[2].key, "b");
  EXPECT_EQ(value.at("b"), 4);
  EXPECT_EQ(value.find("c"), nullptr);
  EXPECT_TRUE(value.contains("z"));
  EXPECT_FALSE(value.contains("Z"));
  EXPECT_FALSE(Json("z").contains("z"));
}

TEST(Json, CopiesAreApart) {
  Json value = {{"list", {1, 2, {{"deep", "x"}}}}};
  const Json copy = value;
  value["list"][2]["deep"] = "y";
  value["list"].push_back(3);
  EXPECT_EQ(copy.dump(), R"({"list":[1,2,{"deep":"x"}]})");
  EXPECT_EQ(value.dump(), R"({"list":[1,2,{"deep":"y"},3]})");
  const Json moved = std::move(value);
  EXPECT_TRUE(value.is_null());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.at("list").size(), 4U);
  Json own = {1, 2};
  own.push_back(own);
  own = own[2];
  EXPECT_EQ(own.dump(), "[1,2]");
}

TEST(Json, PartsOfATemporaryOutliveIt) {
  std::string seen;
  for (const Json& item : parse_json(R"(["long enough to be allocated", [1]])").items()) seen += item.dump();
  for (const auto& [key, value] : parse_json(R"({"long enough to be allocated": [2]})").members())
    seen += key + value.dump();
  EXPECT_EQ(seen, R"("long enough to be allocated"[1]long enough to be allocated[2])");
}

TEST(Json, SizesAreThoseOfParts) {
  EXPECT_EQ(Json().size(), 0U);
  EXPECT_EQ(Json(5).size(), 1U);
  EXPECT_EQ(Json("text").size(), 1U);
  EXPECT_EQ(Json::array().size(), 0U);
  EXPECT_TRUE(Json::object().empty());
  EXPECT_EQ((Json{1, 2, 3}).size(), 3U);
}

TEST(Json, EqualityIsByValue) {
  const std::vector<Json> distinct = {nullptr,
                                      false,
                                      true,
                                      0,
                                      -1,
                                      1,
                                      std::numeric_limits<std::uint64_t>::max(),
                                      0.5,
                                      "",
                                      "a",
                                      Json::array(),
                                      Json{1},
                                      Json{1, 2},
                                      Json::object(),
                                      {{"a", 1}, {"b", 2}},
                                      {{"b", 2}, {"a", 1}},
                                      {{"a", 1}, {"b", 3}}};
  for (std::size_t i = 0; i < distinct.size(); ++i)
    for (std::size_t j = 0; j < distinct.size(); ++j)
      EXPECT_EQ(distinct[i] == distinct[j], i == j) << distinct[i].dump() << " " << distinct[j].dump();
  EXPECT_EQ(Json(3), Json(3U));
  EXPECT_EQ(Json(3), Json(3.0));
  EXPECT_EQ(Json(std::uint64_t(1) << 63), Json(0x1p63));
  // One apart, and one number as doubles.
  EXPECT_NE(Json(std::numeric_limits<std::int64_t>::max()), Json(std::uint64_t(1) << 63));
  EXPECT_NE(Json(std::nan("")), Json(std::nan("")));
}

TEST(Json, WrongTypesAreErrors) {
  EXPECT_EQ(error_of([] { (void)Json(1).as_string(); }), "bad_text: expected JSON string, found number");
  EXPECT_EQ(error_of([] { (void)Json("1").as_integer(); }), "bad_text: expected JSON number, found string");
  EXPECT_EQ(error_of([] { (void)Json(true).as_number(); }), "bad_text: expected JSON number, found boolean");
  EXPECT_EQ(error_of([] { (void)Json(0).as_boolean(); }), "bad_text: expected JSON boolean, found number");
  EXPECT_EQ(error_of([] { (void)Json::object().items(); }), "bad_text: expected JSON array, found object");
  EXPECT_EQ(error_of([] { (void)Json::array().members(); }), "bad_text: expected JSON object, found array");
  EXPECT_EQ(error_of([] { (void)Json().at("a"); }), "bad_text: expected JSON object, found null");
  EXPECT_EQ(error_of([] { (void)Json::object().at("a\n"); }), "bad_text: \"a\\n\" is missing");
  EXPECT_EQ(error_of([] { Json(1).push_back(2); }), "bad_text: expected JSON array, found number");
  EXPECT_EQ(error_of([] { Json(1)["a"] = 2; }), "bad_text: expected JSON object, found number");
  EXPECT_EQ(error_of([] { (void)Json(~std::uint64_t(0)).as_integer(); }),
            "overflow: 18446744073709551615 does not fit in 63 bits; at most 9223372036854775807 does");
  EXPECT_EQ(error_of([] { (void)Json(-1).as_unsigned(); }), "overflow: -1 is below 0");
  EXPECT_EQ(Json(~std::uint64_t(0)).as_unsigned(), ~std::uint64_t(0));
  EXPECT_EQ(Json(-1).as_integer(), -1);
  EXPECT_EQ(Json(3).as_number(), 3.0);
}

// --- Texts ----------------------------------------------------------------------------------------------------------

TEST(JsonText, RoundTripsRandomValues) {
  const std::string fault = test::first_fault(1, [](std::uint64_t seed) -> std::string {
    Random random(seed);
    const auto [ours, theirs] = random_value(random, 4);
    const std::string text = ours.dump();
    if (text != theirs.dump()) return text + " is " + theirs.dump();
    for (const int indent : {1, 2, 5}) {
      const std::string indented = ours.dump({.indent = indent, .invalid = InvalidUtf8::replace});
      if (indented != theirs.dump(indent, ' ', false, Handler::replace)) return indented + " is indented otherwise";
      if (!(parse_json(indented) == ours)) return indented + " is read as something else";
    }
    const std::string ascii = ours.dump({.characters = JsonCharacters::ascii});
    if (ascii != theirs.dump(-1, ' ', true)) return ascii + " is escaped otherwise";
    if (json_in_message(ours, ascii.size()) != ascii) return ascii + " is otherwise in messages";
    for (const std::string& read : {text, ascii}) {
      const Json again = parse_json(read);
      if (!(again == ours)) return read + " is read as something else: " + again.dump();
      if (again.dump() != text || Oracle::parse(read).dump() != text) return read + " is not written as it was";
    }
    const Json copy = ours;
    return copy == ours ? "" : text + " is not its copy";
  });
  EXPECT_EQ(fault, "");
}

TEST(JsonText, NumbersAtTheEdges) {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "-1",
                           "9223372036854775806",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551614",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775807",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "123456789012345678901234567890",
                           "0.0",
                           "-0.0",
                           "0.1",
                           "1.0",
                           "1e0",
                           "1E+2",
                           "2.5e-7",
                           "1e15",
                           "1e16",
                           "1e17",
                           "1e21",
                           "4.9e-324",
                           "2.2250738585072014e-308",
                           "1e-400",
                           "1.7976931348623157e308",
                           "9007199254740993",
                           "9007199254740993.0"}) {
    EXPECT_EQ(verdict_of(text), verdict_of_oracle(text)) << text;
    EXPECT_EQ(verdict_of(fmt::format("[{},{{\"a\":{}}}]", text, text)),
              verdict_of_oracle(fmt::format("[{},{{\"a\":{}}}]", text, text)));
  }
  EXPECT_EQ(parse_json("-9223372036854775808").as_integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_json("9223372036854775807").as_integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_json("9223372036854775808").as_unsigned(), std::uint64_t(1) << 63);
  EXPECT_EQ(parse_json("18446744073709551615").as_unsigned(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_json("18446744073709551616").type(), JsonType::real);
  EXPECT_EQ(parse_json("-9223372036854775809").type(), JsonType::real);
  for (const char* text : {"1e309", "-1e309", "[1, 1e999]", "{\"a\": 1e999}"})
    EXPECT_EQ(verdict_of(text), "a number of the JSON text is too large") << text;
  for (const char* text : {"01", "+1", "1.", ".5", "1e", "1e+", "-", "--1", "0x10", "NaN", "Infinity", "1 2"})
    EXPECT_TRUE(verdict_of(text).starts_with("not JSON at ")) << text;
  const Json not_finite = {std::nan(""), std::numeric_limits<double>::infinity()};
  EXPECT_EQ(not_finite.dump(), "[null,null]");
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
}

TEST(JsonText, ReadsEscapes) {
  EXPECT_EQ(parse_json(R"("\u0041\u00e9\u20ac\ud83d\ude00\"\\\/\b\f\n\r\t\u0000")").as_string(),
            std::string("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"\\/\b\f\n\r\t\0", 19));
  for (const char* text : {R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("\u12")", R"("\x41")", R"("\u12g4")",
                           "\"\n\"", "\"\x1f\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
                           "\"\xe2\x82\"", "'a'", "\"a", "\xef\xbb\xbf{}", "\xef\xbb{}", "// a\n1", "/**/1"})
    EXPECT_EQ(verdict_of(text), verdict_of_oracle(text)) << text;
}

TEST(JsonText, BytesThatAreNotUtf8) {
  int refused = 0;
  const std::string fault = test::first_fault(1, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    std::string text = random_text(random);
    for (Index n = random.below(3); n > 0; --n)
      text.insert(text.begin() + random.below(Index(text.size()) + 1), char(random.below(256)));
    if (random.one_in(2)) text.resize(std::size_t(random.below(Index(text.size()) + 1)));
    for (const bool as_key : {false, true}) {
      const Json ours = as_key ? Json{{text, 1}} : Json{text};
      const Oracle theirs = as_key ? Oracle::object({{text, 1}}) : Oracle::array({text});
      for (const auto characters : {JsonCharacters::utf8, JsonCharacters::ascii}) {
        const bool ascii = characters == JsonCharacters::ascii;
        if (ours.dump({.characters = characters, .invalid = InvalidUtf8::replace}) !=
            theirs.dump(-1, ' ', ascii, Handler::replace))
          return theirs.dump(-1, ' ', ascii, Handler::replace) + " is replaced otherwise";
        std::string expected;
        try {
          expected = theirs.dump(-1, ' ', ascii);
        } catch (const Oracle::type_error&) {
          expected = "refused";
        }
        std::string found;
        const std::string error = error_of([&] { found = ours.dump({.characters = characters}); });
        if (!error.empty() && !error.starts_with("invalid_use: '")) return error;
        refused += !error.empty();
        if ((error.empty() ? found : "refused") != expected) return expected + " is " + found + error;
      }
    }
    return "";
  });
  EXPECT_EQ(fault, "");
  EXPECT_GT(refused, 0);
  EXPECT_EQ(error_of([] { (void)json_string("a\xff\n"); }),
            R"(invalid_use: 'a\xff\x0a' is not UTF-8, which JSON needs)");
  EXPECT_EQ(json_string("a\n\xc3\xa9\"\x7f"), "\"a\\n\xc3\xa9\\\"\x7f\"");
  EXPECT_EQ(json_in_message("\xff\x7f\xc3\xa9"), R"("\ufffd\u007f\u00e9")");
  EXPECT_EQ(json_in_message(std::string(100, 'x'), 10), "\"xxxxxxxxx... (102 bytes)");
}

TEST(JsonText, AKeyGivenTwiceIsRefused) {
  EXPECT_EQ(error_of([] { parse_json(R"({"a":1,"b":2,"a":3})"); }), "bad_text: key \"a\" is given twice");
  EXPECT_EQ(error_of([] { parse_json(R"([{"x":{"\u00e9":1,"é":2}}])"); }), "bad_text: key \"\\u00e9\" is given twice");
  EXPECT_EQ(error_of([] { parse_json(R"({"a":{"b":1},"b":{"a":1},"a":{}})"); }), "bad_text: key \"a\" is given twice");
  EXPECT_EQ(parse_json(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})").dump(),
            R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})");
}

TEST(JsonText, WideObjectsAreRefused) {
  const auto wide = [](int keys) {
    std::string out = "{";
    for (int i = 0; i < keys; ++i) out += fmt::format("{}\"{}\":0", i > 0 ? "," : "", i);
    return out + "}";
  };
  EXPECT_EQ(parse_json(wide(1024)).size(), 1024U);
  EXPECT_EQ(error_of([&] { parse_json(wide(1025)); }), "bad_text: an object has more than 1024 keys");
  EXPECT_EQ(error_of([&] { parse_json(wide(100'000)); }), "bad_text: an object has more than 1024 keys");
}

TEST(JsonText, DeepTextsAreRefused) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse_json(nested(64)).dump(), nested(64));
  EXPECT_EQ(error_of([&] { parse_json(nested(65)); }), "bad_text: the JSON text nests more than 64 values");
  EXPECT_EQ(error_of([] { parse_json(std::string(100'000'000, '[')); }),
            "bad_text: the JSON text nests more than 64 values");
  std::string objects;
  for (int i = 0; i < 64; ++i) objects += R"({"a":)";
  EXPECT_EQ(parse_json(objects + "1" + std::string(64, '}')).size(), 1U);
  EXPECT_EQ(error_of([&] { parse_json(objects + "[]" + std::string(64, '}')); }),
            "bad_text: the JSON text nests more than 64 values");
}

TEST(JsonText, DeepValuesNeedNoStack) {
  constexpr int depth = 1'000'000;
  Json deep;
  for (int i = 0; i < depth; ++i) {
    Json around = i % 2 == 0 ? Json::array() : Json::object();
    if (around.is_array())
      around.push_back(std::move(deep));
    else
      around.add_member("k", std::move(deep));
    deep = std::move(around);
  }
  const std::string text = deep.dump();
  EXPECT_EQ(text.size(), depth / 2 * std::strlen("[]") + depth / 2 * std::strlen(R"({"k":})") + std::strlen("null"));
  EXPECT_TRUE(text.starts_with(R"({"k":[{"k":[)"));
  deep = nullptr;
  EXPECT_TRUE(deep.is_null());
}

TEST(JsonText, EveryCutIsFound) {
  const std::string text =
      R"({"null":null,"yes":[true,false],"n":[-12,3.5e-7,18446744073709551615],"é\ud83d\ude00":{"s":"\n"}})";
  EXPECT_EQ(verdict_of(text), verdict_of_oracle(text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string cut = text.substr(0, i);
    EXPECT_TRUE(verdict_of(cut).starts_with("not JSON at ")) << cut;
    EXPECT_EQ(verdict_of(cut), verdict_of_oracle(cut)) << cut;
  }
}

TEST(JsonText, BrokenTextsAreWrongAtOnePlace) {
  int accepted = 0, refused = 0;
  const std::string fault = test::first_fault(3, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    std::string text = random_value(random, 3).ours.dump({.indent = int(random.below(3))});
    const std::string bytes(R"({}[],:"\0129eE+-. truefalsn)"
                            "\0\n\x7f\xc3\xff",
                            27 + 5);
    for (Index n = random.between(1, 2); n > 0 && !text.empty(); --n) {
      const std::size_t at = std::size_t(random.below(Index(text.size())));
      const char byte = bytes[std::size_t(random.below(Index(bytes.size())))];
      switch (random.below(3)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1);
      }
    }
    const std::string ours = verdict_of(text);
    if (ours.ends_with("is given twice")) return "";
    const std::string theirs = verdict_of_oracle(text);
    ++(ours.starts_with("not JSON") ? refused : accepted);
    return ours == theirs ? "" : text + ": " + ours + ", the oracle says " + theirs;
  });
  EXPECT_EQ(fault, "");
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

TEST(JsonText, ErrorsNameTheLine) {
  EXPECT_EQ(error_of([] { parse_json(""); }), "bad_text: column 1: not JSON: found the end");
  EXPECT_EQ(error_of([] { parse_json("[1,]"); }), "bad_text: column 4: not JSON: found ']'");
  EXPECT_EQ(error_of([] { parse_json("{\n  \"type\": nothing\n}"); }),
            "bad_text: line 2, column 12: not JSON: found 'o'");
  EXPECT_EQ(error_of([] { parse_json(std::string("[]\0[]", 5)); }), "bad_text: column 3: not JSON: found byte 0x00");
  try {
    parse_json("[\n1,\n]");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.column, 6);
    EXPECT_STREQ(error.what(), "line 3, column 1: not JSON: found ']'");
  }
}

// --- Events ---------------------------------------------------------------------------------------------------------

struct Stop {};

/// Writes down what it is told; throws at the event of a number.
class Recorder final : public JsonReader {
 public:
  explicit Recorder(int events_max = 1000) : left_(events_max) {}

  void null() override { add("null"); }
  void boolean(bool value) override { add(value ? "true" : "false"); }
  void number_integer(std::int64_t value) override { add(fmt::format("integer {}", value)); }
  void number_unsigned(std::uint64_t value) override { add(fmt::format("unsigned {}", value)); }
  void number_float(double value, const std::string& text) override { add(fmt::format("float {} {}", value, text)); }
  void string(std::string& text) override { add("string " + std::move(text)); }
  void start_object() override { add("{"); }
  void key(std::string& name) override { add("key " + std::move(name)); }
  void end_object() override { add("}"); }
  void start_array() override { add("["); }
  void end_array() override { add("]"); }
  void not_json(std::size_t column) override {
    log += fmt::format("not JSON at {}", column);
    throw Stop();
  }

  std::string log;

 private:
  void add(const std::string& event) {
    if (left_-- == 0) throw Stop();
    log += event + "; ";
  }

  int left_;
};

TEST(JsonReader, IsToldInOrder) {
  Recorder reader;
  read_json(R"( {"a": [1, -2, -0, 2.50, 1e2, 18446744073709551616], "a": {"b\n": "\u0041", "c": null},
                 "d": [true, false, []]} )",
            reader);
  EXPECT_EQ(
      reader.log,
      "{; key a; [; unsigned 1; integer -2; integer 0; float 2.5 2.50; float 100 1e2; "
      "float 1.8446744073709552e+19 18446744073709551616; ]; key a; {; key b\n; string A; key c; null; }; key d; [; "
      "true; false; [; ]; ]; }; ");
}

TEST(JsonReader, IsToldWhereATextIsWrong) {
  for (const auto& [text, log] :
       std::vector<std::pair<std::string, std::string>>{{"", "not JSON at 1"},
                                                        {"[1,", "[; unsigned 1; not JSON at 4"},
                                                        {"[1] 2", "[; unsigned 1; ]; not JSON at 5"},
                                                        {"[1e999]", "[; not JSON at 6"},
                                                        {std::string("[1,\0]", 5), "not JSON at 4"}}) {
    Recorder reader;
    EXPECT_THROW(read_json(text, reader), Stop) << text;
    EXPECT_EQ(reader.log, log) << text;
  }
}

TEST(JsonReader, StopsWhereItThrows) {
  const std::string text(10'000'000, '[');
  for (const int events : {0, 1, 100}) {
    Recorder reader(events);
    EXPECT_THROW(read_json(text, reader), Stop);
    EXPECT_EQ(reader.log.size(), std::size_t(events) * 3);
  }
}

}  // namespace
}  // namespace tranship
