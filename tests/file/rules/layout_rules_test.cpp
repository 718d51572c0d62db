// Patterns over names, against a matcher that tries everything, and layout rules: what they give and where errors
// point.
#include <gtest/gtest.h>

#include <tranship/file/rules/layout_rules.hpp>
#include <tranship/file/rules/name_pattern.hpp>
#include <tranship/layout/text.hpp>

#include "fuzz/layout_rules_check.hpp"
#include "support/random_layouts.hpp"

namespace tranship {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  return NamePattern::parse(pattern).value().matches(name);
}

template <class T>
std::string refusal_of(const Result<T>& result) {
  if (result) return "accepted";
  return std::string(name_of(result.error().code())) + ": " + result.error().message();
}

// --- patterns

TEST(NamePattern, StarsStayWithinAComponentAndDoubleStarsDoNot) {
  EXPECT_TRUE(matches("model.layers.*.q_proj.weight", "model.layers.31.q_proj.weight"));
  EXPECT_FALSE(matches("model.layers.*.q_proj.weight", "model.layers.31.self_attn.q_proj.weight"));
  EXPECT_TRUE(matches("model.**.q_proj.weight", "model.layers.31.self_attn.q_proj.weight"));
  EXPECT_FALSE(matches("model.**.weight", "model.weight"));
  EXPECT_TRUE(matches("model.**weight", "model.weight"));
  EXPECT_TRUE(matches("**", ""));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("*", "a.b"));
  EXPECT_TRUE(matches("**", "a.b"));
  EXPECT_FALSE(matches("model", "model.weight"));
  EXPECT_FALSE(matches("weight", "model.weight"));
}

TEST(NamePattern, QuestionMarksStandForOneCharacter) {
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_FALSE(matches("a?c", "a.c"));
  EXPECT_FALSE(matches("a?c", "ac"));
  EXPECT_TRUE(matches("caf?", "caf\xc3\xa9"));
  EXPECT_FALSE(matches("caf??", "caf\xc3\xa9"));
}

TEST(NamePattern, BracesGiveAlternativesAndRanges) {
  for (const char* name : {"q.weight", "kv.weight", ".weight"}) EXPECT_TRUE(matches("{q,kv,}.weight", name)) << name;
  EXPECT_FALSE(matches("{q,kv,}.weight", "v.weight"));
  EXPECT_FALSE(matches("{q,kv}.weight", ".weight"));
  EXPECT_TRUE(matches("{a*,**.b}x", "abcx"));
  EXPECT_TRUE(matches("{a*,**.b}x", "1.2.bx"));
  EXPECT_TRUE(matches("a{}b", "ab"));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(matches("layers.{8..15}.*", "layers." + std::to_string(i) + ".w"), i >= 8 && i <= 15) << i;
  EXPECT_TRUE(matches("{7..7}", "7"));
  EXPECT_FALSE(matches("{7..9}", "7..9"));
  EXPECT_TRUE(matches("{a..c}", "a..c"));
  EXPECT_TRUE(matches("a,b", "a,b"));
}

TEST(NamePattern, BackslashesTakeTheMeaning) {
  EXPECT_TRUE(matches("\\*\\?\\{\\}\\\\\\[", "*?{}\\["));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_TRUE(matches("{a\\,b,c\\}}", "a,b"));
  EXPECT_TRUE(matches("{a\\,b,c\\}}", "c}"));
}

TEST(NamePattern, ErrorsPointAtTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "bad_text: column 1: found the end; expected a pattern"},
      {"a}", "bad_text: column 2: found '}'; expected '{' before it"},
      {"a{b,c", "bad_text: column 6: found the end; expected '}' for '{' of column 2"},
      {"a{b,{c}}", "bad_text: column 5: found '{' inside braces; they do not nest"},
      {"a[bc]", "bad_text: column 2: found '['; sets of characters are not known, write {a,b} or '\\['"},
      {"a]", "bad_text: column 2: found ']'; sets of characters are not known, write {a,b} or '\\]'"},
      {"ab\\", "bad_text: column 4: found the end; expected a character after '\\'"},
      {"a{3..1}", "bad_text: column 2: the range goes down from 3 to 1"},
      {"a{0..999999999999}b", "unsupported: column 3: a pattern of more than 65536 characters, its ranges written out"},
  };
  for (const auto& [pattern, expected] : cases) {
    const Result<NamePattern> parsed = NamePattern::parse(pattern);
    EXPECT_EQ(refusal_of(parsed), expected);
    EXPECT_GE(parsed.error().column, 1);
  }
}

TEST(NamePattern, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "**a*";
  EXPECT_FALSE(matches(pattern + "b", std::string(2000, 'a')));
}

/// Tries everything; patterns of `*`, `**`, `?` and characters.
bool matches_slowly(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  const bool across = pattern.starts_with("**");
  if (pattern[0] == '*') {
    const std::string_view rest = pattern.substr(across ? 2 : 1);
    return matches_slowly(rest, name) ||
           (!name.empty() && (across || name[0] != '.') && matches_slowly(pattern, name.substr(1)));
  }
  if (name.empty()) return false;
  if (pattern[0] == '?') return name[0] != '.' && matches_slowly(pattern.substr(1), name.substr(1));
  return pattern[0] == name[0] && matches_slowly(pattern.substr(1), name.substr(1));
}

TEST(NamePattern, AgreesWithTryingEverything) {
  test::Random random(11);
  const auto text = [&](std::string_view letters, Index length_max) {
    std::string out;
    for (Index length = random.between(0, length_max); length-- > 0;)
      out += letters[random.below(Index(letters.size()))];
    return out;
  };
  int matched = 0;
  for (int i = 0; i < 20'000; ++i) {
    // An alternation is tried as its patterns one by one.
    const std::string front = text("ab.*?", 3), back = text("ab.*?", 3);
    std::vector<std::string> choices;
    for (Index count = random.between(1, 3); count-- > 0;) choices.push_back(text("ab.*?", 3));
    std::string pattern = front + "{";
    for (const std::string& choice : choices) pattern += (&choice == &choices[0] ? "" : ",") + choice;
    pattern += "}" + back;
    const std::string name = text("ab.", 7);
    bool expected = false;
    // A lone '*' beside another is two stars in the pattern written out, and still one after the other in braces.
    bool ambiguous = false;
    for (const std::string& choice : choices) {
      const std::string whole = front + choice + back;
      ambiguous |= (front.ends_with('*') && (choice + back).starts_with('*')) ||
                   (choice.ends_with('*') && back.starts_with('*'));
      expected |= matches_slowly(whole, name);
    }
    if (ambiguous) continue;
    ASSERT_EQ(matches(pattern, name), expected) << pattern << " and " << name;
    matched += expected;
  }
  EXPECT_GT(matched, 500);
}

// --- rules

const char* const checkpoint = R"(
# attention by heads
model.layers.*.self_attn.o_proj.weight = @ 1x4 : whole, block
**_proj.weight = @ 4x1 : block, whole   ; **.embed.weight = @ 2x2 : cyclic(2), block | order(1,0)
   ** = replicated
)";

std::string layout_text(const LayoutRules& rules, const char* tensor, ElementType type, const Indices& extents) {
  const Result<ArraySpec> spec = rules.layout_of(tensor, type, extents);
  return spec ? to_text(spec.value()) : refusal_of(spec);
}

TEST(LayoutRules, GiveEachTensorItsLayout) {
  const LayoutRules rules = LayoutRules::parse(checkpoint).value();
  EXPECT_EQ(rules.size(), 4u);
  EXPECT_EQ(rules.rank_count(), 4);
  EXPECT_EQ(rules.pattern_text(1), "**_proj.weight");
  EXPECT_EQ(layout_text(rules, "model.layers.3.self_attn.o_proj.weight", ElementType::bf16, {64, 64}),
            "bf16[64,64] @ 1x4 : whole, block");
  EXPECT_EQ(layout_text(rules, "model.layers.3.self_attn.q_proj.weight", ElementType::bf16, {64, 32}),
            "bf16[64,32] @ 4x1 : block, whole");
  EXPECT_EQ(layout_text(rules, "model.embed.weight", ElementType::f32, {10, 6}),
            "f32[10,6] @ 2x2 : cyclic(2), block | order(1,0)");
  EXPECT_EQ(layout_text(rules, "model.norm.weight", ElementType::f32, {64}), "f32[64] @ 1*4 : whole");
  EXPECT_EQ(layout_text(rules, "scale", ElementType::f32, {}), "f32[1] @ 1*4 : whole");
  EXPECT_EQ(layout_text(rules, "conv", ElementType::u8, {3, 0, 5}), "u8[3,0,5] @ 1x1x1*4 : whole, whole, whole");
  EXPECT_EQ(rules.rule_of("model.layers.3.self_attn.o_proj.weight"), 0u);
  EXPECT_EQ(rules.rule_of("model.layers.3.mlp.up_proj.weight"), 1u);
}

TEST(LayoutRules, CountTheirRanks) {
  const auto ranks = [](const char* text) { return LayoutRules::parse(text).value().rank_count(); };
  EXPECT_EQ(ranks("** = replicated"), 1);
  EXPECT_EQ(ranks("** = replicated ( 3 )"), 3);
  EXPECT_EQ(ranks("a = @ 2 ranks(7,5) : block; ** = replicated"), 8);
  EXPECT_EQ(layout_text(LayoutRules::parse("a = @ 2 : block; b = replicated(3); ** = replicated").value(), "c",
                        ElementType::u8, {4}),
            "u8[4] @ 1*3 : whole");
}

TEST(LayoutRules, ATensorWithoutARuleIsAnError) {
  const LayoutRules rules = LayoutRules::parse("*.weight = @ 2 : block").value();
  EXPECT_EQ(rules.rule_of("a.bias"), std::nullopt);
  EXPECT_EQ(layout_text(rules, "a.bias", ElementType::f32, {4}),
            "mismatch: tensor 'a.bias' matches none of 1 rule; a last rule '** = replicated' keeps such tensors whole "
            "on every rank");
}

TEST(LayoutRules, ErrorsOfATensorNameItAndPointAtTheColumn) {
  const char* text = "a = replicated\nb = @ 4x1 : block, irregular(0,9) | split";
  const LayoutRules rules = LayoutRules::parse(text).value();
  const auto refused = [&](ElementType type, const Indices& extents, const char* where) {
    const Result<ArraySpec> spec = rules.layout_of("b", type, extents);
    EXPECT_EQ(spec.error().column, std::int64_t(std::string_view(text).find(where)) + 1);
    return refusal_of(spec);
  };
  EXPECT_EQ(refused(ElementType::c64, {8}, "4x1"),
            "invalid_use: tensor 'b' [8]: column 22: the array has 1 dimension, its grid 2");
  EXPECT_EQ(refused(ElementType::c64, {}, "4x1"),
            "invalid_use: tensor 'b' []: column 22: the array has 1 dimension, its grid 2");
  EXPECT_EQ(refused(ElementType::c64, {8, 8}, "9)").substr(0, 41), "invalid_use: tensor 'b' [8, 8]: column 47");
  EXPECT_EQ(refused(ElementType::f32, {8, 9}, "split"),
            "invalid_use: tensor 'b' [8, 9]: column 52: split needs a complex element type, found f32");
}

TEST(LayoutRules, ErrorsPointAtTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "bad_text: column 1: found the end; expected a pattern"},
      {"# only a comment; with = signs", "bad_text: column 31: found the end; expected a pattern"},
      {"a", "bad_text: column 2: found the end of a rule; expected '=' and a layout"},
      {"a;b = replicated", "bad_text: column 2: found the end of a rule; expected '=' and a layout"},
      {" = replicated", "bad_text: column 2: found the end; expected a pattern"},
      {"a = ", "bad_text: column 5: found the end of a rule; expected '@' and the grid, or replicated"},
      {"a = whole", "bad_text: column 5: found 'w'; expected '@' and the grid, or replicated"},
      {"a = replicated\n b{ = replicated", "bad_text: column 19: found the end; expected '}' for '{' of column 2"},
      {"a = replicated x", "bad_text: column 16: expected '(', ';' or the end of the rule"},
      {"a = replicated(0)", "bad_text: column 16: expected a number of ranks of 1 or more"},
      {"a = replicated(x)", "bad_text: column 16: expected a number of ranks of 1 or more"},
      {"a = replicated(2", "bad_text: column 17: expected ')'"},
      {"a = replicated(2)2", "bad_text: column 18: expected ';' or the end of the rule"},
      {"a = replicated(2147483648)", "overflow: column 16: the largest number of ranks is 2147483647"},
      {"a = @ 4x : block", "bad_text: column 10: found ':'; expected a number of 0 or more"},
      {"x = replicated\na = @ 4 : blocks",
       "bad_text: column 26: found 'blocks'; expected whole, block, cyclic or irregular"},
      {"a = @ 4 : block, whole",
       "bad_text: column 16: found ','; expected '|' or the end after the partition of 1 "
       "dimension"},
      {"a = @ 0 : block", "invalid_use: column 7: "},
      {"a = f32[4] @ 4 : block", "bad_text: column 5: found 'f'; expected '@' and the grid, or replicated"},
  };
  for (const auto& [text, expected] : cases) {
    const Result<LayoutRules> rules = LayoutRules::parse(text);
    EXPECT_EQ(refusal_of(rules).substr(0, std::string_view(expected).size()), expected) << text;
  }
  EXPECT_FALSE(LayoutRules::parse(std::string(layout_text_bytes_max + 1, '#')).ok());
}

TEST(LayoutRules, SpacesSignsAndBackslashesInPatterns) {
  const LayoutRules rules = LayoutRules::parse("a b\\=c\\;d\\  = replicated(2);\\#x = replicated(3)\r\n\t\r\n").value();
  EXPECT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules.rule_of("a b=c;d "), 0u);
  EXPECT_EQ(rules.rule_of("a b=c;d"), std::nullopt);
  EXPECT_EQ(rules.rule_of("#x"), 1u);
}

TEST(LayoutRules, ABackslashThatOneStandsBeforeLeavesTheSpaceOutside) {
  for (const char* text : {"a\\\\ = replicated(2)", "a\\\\= replicated(2)", "a\\\\\t = replicated(2)"})
    EXPECT_EQ(LayoutRules::parse(text).value().rule_of("a\\"), 0u) << text;
  EXPECT_EQ(LayoutRules::parse("a\\\\\\  = replicated(2)").value().rule_of("a\\ "), 0u);
  EXPECT_EQ(LayoutRules::parse("a\\\\\\\\  = replicated(2)").value().rule_of("a\\\\"), 0u);
}

TEST(LayoutRulesFuzz, MutatedRulesAreRefusedOrKeepTheirPromises) {
  static constexpr std::string_view meaning = "*?{},.;=@:x|()\\# \n0123456789abrw+-";
  test::Random random(20240607);
  const std::vector<std::string> seeds = {
      checkpoint, "**.weight = @ 2x1 : block, whole | split;* = @ 4 : cyclic(4);** = replicated(3)"};
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = random.pick(seeds);
    for (Index changes = random.between(1, 3); changes-- > 0;) {
      const auto at = static_cast<std::size_t>(random.below(Index(text.size())));
      const char c = meaning[random.below(Index(meaning.size()))];
      if (random.below(3) == 0)
        text.insert(at, 1, c);
      else if (random.below(2) == 0)
        text.erase(at, 1);
      else
        text[at] = c;
    }
    const testing::LayoutRulesVerdict verdict = testing::check_layout_rules(text);
    ++(verdict.accepted ? accepted : refused);
    ASSERT_EQ(verdict.violation, "") << text;
  }
  EXPECT_GT(accepted, 1'000);
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace tranship
