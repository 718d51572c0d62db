// Private: Patterns over names of tensors, as shells have them over names of files: components stand between dots.
//
//   model.layers.*.self_attn.{q,k,v}_proj.weight        model.layers.{0..15}.**
//
// `*` stands for any characters of one component, also none; `**` for any characters, dots included; `?` for one
// character that is no dot; `{a,b}` for one of the alternatives, in which all but braces may occur; `{0..15}` for one
// of the numbers. A backslash takes the meaning from the character after it. A pattern matches whole names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>

namespace tranship {

/// How large a pattern is at most once its ranges of numbers are written out, in characters.
inline constexpr Index name_pattern_states_max = 65'536;

class NamePattern {
 public:
  /// Fails with `bad_text`, and `unsupported` when it is too large; every error has its 1-based `column`.
  static Result<NamePattern> parse(std::string_view text);

  /// Time grows with the length of the name times that of the pattern, whatever they are.
  bool matches(std::string_view name) const;

 private:
  class Compiler;

  enum class Kind : std::uint8_t { literal, character, continuation, component, any, fork, end };
  /// One step of an automaton: it takes a character, or goes on to two others.
  struct State {
    Kind kind = Kind::end;
    char literal = 0;
    int next = 0;
    int other = 0;
  };

  std::vector<State> states_;
};

}  // namespace tranship
