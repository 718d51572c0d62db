// What must hold for any text that is taken for layout rules, or for a pattern over names. Used by the libFuzzer
// program and by tests/file.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <tranship/file/rules/layout_rules.hpp>
#include <tranship/layout/text.hpp>

namespace tranship::testing {

struct LayoutRulesVerdict {
  bool accepted = false;
  /// Empty when all is well.
  std::string violation = {};
};

/// An error is one printable line with its column in the text, or just behind it.
inline std::string violation_of(const Error& error, std::string_view text, std::string_view front) {
  if (error.column < 1 || error.column > std::int64_t(text.size()) + 1) return "a column outside the text";
  const std::string expected = std::string(front) + "column " + std::to_string(error.column) + ": ";
  if (!error.message().starts_with(expected)) return "a message without its column: " + error.message();
  for (const char c : error.message())
    if (c < ' ' || c > '~') return "a message that is not one printable line";
  return "";
}

inline LayoutRulesVerdict check_layout_rules(std::string_view text) {
  const Result<LayoutRules> rules = LayoutRules::parse(text);
  if (!rules) return {false, violation_of(rules.error(), text, "")};
  if (rules.value().size() == 0 || rules.value().rank_count() < 1) return {true, "no rule or no rank"};
  struct Array {
    ElementType type;
    Indices extents;
    std::string_view shape;
  };
  const Array arrays[] = {{ElementType::f32, {}, ""},
                          {ElementType::bf16, {16}, "16"},
                          {ElementType::c64, {8, 12}, "8, 12"},
                          {ElementType::u8, {0, 3, 5}, "0, 3, 5"}};
  for (const std::string_view name : {"model.layers.7.mlp.weight", "a", ""}) {
    const std::optional<std::size_t> rule = rules.value().rule_of(name);
    if (rule && *rule >= rules.value().size()) return {true, "a rule that there is not"};
    for (const auto& [type, extents, shape] : arrays) {
      const Result<ArraySpec> spec = rules.value().layout_of(name, type, extents);
      if (!rule) {
        if (spec || spec.error().code() != ErrorCode::mismatch) return {true, "a layout without a rule"};
      } else if (!spec) {
        const std::string front = "tensor '" + std::string(name) + "' [" + std::string(shape) + "]: ";
        if (std::string found = violation_of(spec.error(), text, front); !found.empty()) return {true, found};
      } else {
        const Indices expected = extents.empty() ? Indices{1} : extents;
        if (spec.value().type != type || !(spec.value().distribution.extents() == expected))
          return {true, "the layout of another array"};
        if (spec.value().distribution.grid().world_size_min() > rules.value().rank_count())
          return {true, "a layout with more ranks than the rules"};
      }
    }
  }
  return {true};
}

}  // namespace tranship::testing
