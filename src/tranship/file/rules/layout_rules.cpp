#include "tranship/file/rules/layout_rules.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/rules/column_error.hpp>
#include <tranship/file/rules/name_pattern.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

constexpr std::string_view replicated = "replicated";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Returns a layout that is whole on each of `ranks` ranks.
ArraySpec replicas_of(ElementType type, const Indices& extents, Rank ranks) {
  const int dims = extents.size();
  return {type, Distribution(extents, Grid(Indices::filled(dims, 1), {.replicas = ranks}),
                             std::vector<Partition>(static_cast<std::size_t>(dims), whole()))};
}

}  // namespace

struct LayoutRules::Rule {
  NamePattern pattern;
  std::string pattern_text;
  /// Empty for `replicated`.
  std::string placement;
  /// Offset of the layout from the front of the rules, in bytes.
  std::size_t offset = 0;
  /// The n of `replicated(n)`.
  std::optional<Rank> replicas;
};

class LayoutRules::Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  LayoutRules read() {
    if (text_.size() > layout_text_bytes_max)
      fail_at(layout_text_bytes_max, ErrorCode::bad_text,
              fmt::format("rules of {}; at most {} are read", amount(text_.size(), "byte"), layout_text_bytes_max));
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = end_of_rule(begin);
      rule(begin, end);
      begin = end + 1;
    }
    if (rules_.empty()) fail_at(text_.size(), ErrorCode::bad_text, "found the end; expected a pattern");
    out_.rules_ = std::make_shared<const std::vector<Rule>>(std::move(rules_));
    return std::move(out_);
  }

 private:
  /// Returns the position of the first of `stops` that is not behind a backslash, or the end.
  std::size_t find(std::size_t at, std::string_view stops) const {
    while (at < text_.size() && stops.find(text_[at]) == std::string_view::npos)
      at += text_[at] == '\\' && at + 1 < text_.size() && text_[at + 1] != '\n' ? 2 : 1;
    return std::min(at, text_.size());
  }

  std::size_t skip_space(std::size_t at, std::size_t end) const {
    while (at < end && is_space(text_[at])) ++at;
    return at;
  }

  /// A rule that is a comment extends to the end of its line.
  std::size_t end_of_rule(std::size_t begin) const {
    const std::size_t first = skip_space(begin, text_.size());
    if (first < text_.size() && text_[first] == '#') return std::min(text_.find('\n', first), text_.size());
    return find(begin, ";\n");
  }

  /// Returns true if the character at `at` is escaped: an odd number of backslashes stands before it.
  bool is_escaped(std::size_t begin, std::size_t at) const {
    std::size_t first = at;
    while (first > begin && text_[first - 1] == '\\') --first;
    return (at - first) % 2 == 1;
  }

  void rule(std::size_t begin, std::size_t end) {
    begin = skip_space(begin, end);
    if (begin == end || text_[begin] == '#') return;
    const std::size_t equals = find(begin, "=;\n");
    if (equals >= end) fail_at(end, ErrorCode::bad_text, "found the end of a rule; expected '=' and a layout");
    std::size_t pattern_end = equals;
    while (pattern_end > begin && is_space(text_[pattern_end - 1]) && !is_escaped(begin, pattern_end - 1))
      --pattern_end;
    Rule out;
    out.pattern_text = text_.substr(begin, pattern_end - begin);
    Result<NamePattern> pattern = NamePattern::parse(out.pattern_text);
    if (!pattern) fail_inside(pattern.error(), begin);
    out.pattern = std::move(pattern).value();
    out.offset = skip_space(equals + 1, end);
    const std::string_view layout = text_.substr(out.offset, end - out.offset);
    if (layout.starts_with(replicated)) {
      replicas(out, out.offset + replicated.size(), end);
    } else if (layout.starts_with('@')) {
      out.placement = layout;
      const Result<Grid> grid = try_parse_placement_grid(layout);
      if (!grid) fail_inside(grid.error(), out.offset);
      need_ranks(grid.value().world_size_min());
    } else {
      fail_at(out.offset, ErrorCode::bad_text,
              fmt::format("found {}; expected '@' and the grid, or {}",
                          layout.empty() ? "the end of a rule" : fmt::format("'{}'", printable(layout.substr(0, 1))),
                          replicated));
    }
    rules_.push_back(std::move(out));
  }

  /// Parses the rest after the word: nothing, or a number of ranks in parentheses.
  void replicas(Rule& out, std::size_t at, std::size_t end) {
    at = skip_space(at, end);
    if (at == end) return;
    const auto expect = [&](bool found, std::string_view what) {
      if (!found) fail_at(at, ErrorCode::bad_text, fmt::format("expected {}", what));
    };
    expect(text_[at] == '(', "'(', ';' or the end of the rule");
    at = skip_space(at + 1, end);
    Rank count = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at, text_.data() + end, count);
    if (error == std::errc::result_out_of_range)
      fail_at(at, ErrorCode::overflow, fmt::format("the largest number of ranks is {}", INT_MAX));
    expect(error == std::errc() && count >= 1, "a number of ranks of 1 or more");
    out.replicas = count;
    need_ranks(count);
    at = skip_space(static_cast<std::size_t>(stop - text_.data()), end);
    expect(at < end && text_[at] == ')', "')'");
    at = skip_space(at + 1, end);
    expect(at == end, "';' or the end of the rule");
  }

  void need_ranks(Rank count) { out_.rank_count_ = std::max(out_.rank_count_, count); }

  std::string_view text_;
  std::vector<Rule> rules_;
  LayoutRules out_;
};

Result<LayoutRules> LayoutRules::parse(std::string_view text) {
  return attempt([&] { return Reader(text).read(); });
}

std::size_t LayoutRules::size() const noexcept {
  return rules_ ? rules_->size() : 0;
}

std::string_view LayoutRules::pattern_text(std::size_t rule) const {
  return (*rules_)[rule].pattern_text;
}

bool LayoutRules::matches(std::size_t rule, std::string_view tensor) const {
  return (*rules_)[rule].pattern.matches(tensor);
}

std::optional<std::size_t> LayoutRules::rule_of(std::string_view tensor) const {
  for (std::size_t i = 0; i < size(); ++i)
    if (matches(i, tensor)) return i;
  return std::nullopt;
}

Result<ArraySpec> LayoutRules::layout_of(std::string_view tensor, ElementType type, const Indices& extents) const {
  const std::optional<std::size_t> number = rule_of(tensor);
  if (!number)
    return make_error(ErrorCode::mismatch,
                      "tensor '{}' matches none of {}; a last rule '** = {}' keeps such tensors whole on every rank",
                      printable(tensor, name_chars_max), amount(size(), "rule"), replicated);
  const Rule& rule = (*rules_)[*number];
  const Indices shape = extents.empty() ? Indices{1} : extents;
  Result<ArraySpec> out = attempt([&]() -> ArraySpec {
    Result<ArraySpec> placed =
        rule.placement.empty() ? attempt([&] { return replicas_of(type, shape, rule.replicas.value_or(rank_count_)); })
                               : try_parse_placement(rule.placement, type, shape);
    if (!placed) fail_inside(placed.error(), rule.offset);
    return std::move(placed).value();
  });
  if (out) return out;
  Error error = make_error(out.error().code(), "tensor '{}' [{}]: {}", printable(tensor, name_chars_max),
                           to_string(extents), out.error().message());
  error.column = out.error().column;
  return error;
}

}  // namespace tranship
