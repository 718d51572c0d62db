// Detail: Layout rules: one layout for each tensor of a checkpoint, by patterns over their names.
//
//   # attention by heads, the rest of the weights by rows; vectors on every rank
//   model.layers.*.self_attn.o_proj.weight = @ 1x4 : whole, block
//   **_proj.weight                         = @ 4x1 : block, whole
//   **                                     = replicated
//
// The first rule that matches a name counts. Type and extents are the tensor's own. A tensor that no rule matches is an
// error: a layout that is meant to be the default is written down. Grammar: docs/layout-text.md.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <tranship/layout/distribution.hpp>

namespace tranship {

class LayoutRules {
 public:
  /// Reads rules, one a line or with ';' between them. Every error has its 1-based `column` in bytes from the front of
  /// `text`, and says so; what depends on a tensor is found by `layout_of`. Fails with `bad_text`, `invalid_use`,
  /// `overflow` and `unsupported`.
  static Result<LayoutRules> parse(std::string_view text);

  std::size_t size() const noexcept;
  /// Ranks that the layouts need; those of `replicated` are on all of them.
  Rank rank_count() const noexcept { return rank_count_; }
  /// A rule's pattern as it is written, by number from 0.
  std::string_view pattern_text(std::size_t rule) const;

  /// Whether a rule matches, also where an earlier one does.
  bool matches(std::size_t rule, std::string_view tensor) const;
  /// The number of the first rule that matches.
  std::optional<std::size_t> rule_of(std::string_view tensor) const;

  /// The layout of a tensor. A scalar (no extents) counts as one dimension of one element. Fails with `mismatch` when
  /// no rule matches, else as try_parse_placement does, naming the tensor, with the `column` in the text of the rules.
  Result<ArraySpec> layout_of(std::string_view tensor, ElementType type, const Indices& extents) const;

 private:
  class Reader;

  struct Rule;

  std::shared_ptr<const std::vector<Rule>> rules_;  // nullptr: none
  Rank rank_count_ = 1;
};

}  // namespace tranship
