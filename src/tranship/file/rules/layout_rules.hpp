// Detail: LayoutRules, which assigns one layout to each tensor of a checkpoint, by patterns over the names.
//
//   # attention by heads, the rest of the weights by rows; vectors on every rank
//   model.layers.*.self_attn.o_proj.weight = @ 1x4 : whole, block
//   **_proj.weight                         = @ 4x1 : block, whole
//   **                                     = replicated
//
// The first rule that matches a name applies. Type and extents are the tensor's own. A tensor that no rule matches is
// an error: write down a default layout if you want one. Grammar: docs/layout-text.md.
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
  /// Parses rules, one per line or with ';' between them. Every error has a 1-based `column` in bytes from the front of
  /// `text`, and its message says so. Errors that depend on a tensor are found by `layout_of`. Fails with `bad_text`,
  /// `invalid_use`, `overflow` and `unsupported`.
  static Result<LayoutRules> parse(std::string_view text);

  std::size_t size() const noexcept;
  /// Returns the number of ranks that the layouts need. Tensors that are `replicated` are on all of them.
  Rank rank_count() const noexcept { return rank_count_; }
  /// Returns a rule's pattern as it is written, by number from 0.
  std::string_view pattern_text(std::size_t rule) const;

  /// Returns true if a rule matches, even if an earlier rule does.
  bool matches(std::size_t rule, std::string_view tensor) const;
  /// Returns the number of the first rule that matches.
  std::optional<std::size_t> rule_of(std::string_view tensor) const;

  /// Returns the layout of a tensor. A scalar (no extents) counts as one dimension of one element. Fails with
  /// `mismatch` if no rule matches, otherwise as try_parse_placement does, naming the tensor, with the `column` in the
  /// text of the rules.
  Result<ArraySpec> layout_of(std::string_view tensor, ElementType type, const Indices& extents) const;

 private:
  class Reader;

  struct Rule;

  std::shared_ptr<const std::vector<Rule>> rules_;  // null if there are none
  Rank rank_count_ = 1;
};

}  // namespace tranship
