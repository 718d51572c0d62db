// Private: NamePattern, patterns over names of tensors, like a shell's over file names; dots separate components.
//
//   model.layers.*.self_attn.{q,k,v}_proj.weight        model.layers.{0..15}.**
//
// `*` matches any characters of one component, or none; `**` any characters, including dots; `?` one character that is
// not a dot; `{a,b}` one of the alternatives, which may contain everything except braces; `{0..15}` one of the numbers.
// A backslash makes the character after it literal. A pattern matches whole names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>

namespace tranship {

/// Limit on the characters of a pattern once its ranges of numbers are written out.
inline constexpr Index name_pattern_states_max = 65'536;

class NamePattern {
 public:
  /// Fails with `bad_text`, and with `unsupported` if the pattern is too large; every error has its 1-based `column`.
  static Result<NamePattern> parse(std::string_view text);

  /// Takes time in proportion to the length of the name times that of the pattern, for all inputs.
  bool matches(std::string_view name) const;

 private:
  class Compiler;

  enum class Kind : std::uint8_t { literal, character, continuation, component, any, fork, end };
  /// One step of an automaton: it consumes a character, or continues with two other states.
  struct State {
    Kind kind = Kind::end;
    char literal = 0;
    int next = 0;
    int other = 0;
  };

  std::vector<State> states_;
};

}  // namespace tranship
