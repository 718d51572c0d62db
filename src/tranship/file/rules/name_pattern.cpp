#include "tranship/file/rules/name_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/rules/column_error.hpp>

namespace tranship {
namespace {

struct NumberRange {
  Index first = 0;
  Index last = 0;
};

/// Parses "0..15"; returns nothing for other text.
std::optional<NumberRange> number_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<Index> {
    Index out = 0;
    const bool plain = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!plain || std::from_chars(digits.data(), digits.data() + digits.size(), out).ec != std::errc())
      return std::nullopt;
    return out;
  };
  const std::optional<Index> first = number(text.substr(0, dots)), last = number(text.substr(dots + 2));
  if (!first || !last) return std::nullopt;
  return NumberRange{*first, *last};
}

/// Returns true for a UTF-8 byte that continues a character.
bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

/// Writes the automaton from left to right: by default, every state continues with the next one.
class NamePattern::Compiler {
 public:
  explicit Compiler(std::string_view text) : text_(text) {}

  std::vector<State> compile() {
    if (text_.empty()) fail_at(0, ErrorCode::bad_text, "found the end; expected a pattern");
    piece("");
    if (at_ < text_.size()) fail_at(at_, ErrorCode::bad_text, "found '}'; expected '{' before it");
    add(Kind::end);
    return std::move(states_);
  }

 private:
  /// Adds a state that continues with the next one. Returns its number.
  int add(Kind kind, char literal = 0) {
    if (static_cast<Index>(states_.size()) >= name_pattern_states_max)
      fail_at(std::min(at_, text_.size()), ErrorCode::unsupported,
              fmt::format("a pattern of more than {} characters, its ranges written out", name_pattern_states_max));
    const int next = static_cast<int>(states_.size()) + 1;
    states_.push_back({.kind = kind, .literal = literal, .next = next, .other = next});
    return next - 1;
  }

  /// Adds any number of repetitions of `kind`.
  void repeat(Kind kind) {
    const int fork = add(Kind::fork);
    states_[add(kind)].next = fork;
    states_[fork].other = static_cast<int>(states_.size());
  }

  /// Reads up to the end, an unmatched '}' or one of `stops`.
  void piece(std::string_view stops) {
    while (at_ < text_.size() && text_[at_] != '}' && stops.find(text_[at_]) == std::string_view::npos) {
      const char c = text_[at_];
      switch (c) {
        case '*':
          if (text_.substr(at_, 2) == "**") {
            ++at_;
            repeat(Kind::any);
          } else {
            repeat(Kind::component);
          }
          break;
        case '?':
          add(Kind::character);
          repeat(Kind::continuation);
          break;
        case '{':
          if (!stops.empty()) fail_at(at_, ErrorCode::bad_text, "found '{' inside braces; they do not nest");
          braces();
          break;
        case '[':
        case ']':
          fail_at(at_, ErrorCode::bad_text,
                  fmt::format("found '{}'; sets of characters are not known, write {{a,b}} or '\\{}'", c, c));
        case '\\':
          if (++at_ == text_.size())
            fail_at(at_, ErrorCode::bad_text, "found the end; expected a character after '\\'");
          add(Kind::literal, text_[at_]);
          break;
        default:
          add(Kind::literal, c);
      }
      ++at_;
    }
  }

  /// Reads from '{' to '}', and stops before the '}'.
  void braces() {
    const std::size_t begin = at_++;
    const std::size_t end = text_.find('}', at_);
    if (end != std::string_view::npos)
      if (const std::optional<NumberRange> range = number_range(text_.substr(at_, end - at_))) {
        numbers(begin, *range);
        at_ = end;
        return;
      }
    std::vector<int> exits;
    for (;;) {
      const int fork = add(Kind::fork);
      piece(",");
      if (at_ == text_.size())
        fail_at(at_, ErrorCode::bad_text, fmt::format("found the end; expected '}}' for '{{' of column {}", begin + 1));
      leave(fork, exits);
      if (text_[at_] == '}') break;
      ++at_;
    }
    join(exits);
  }

  void numbers(std::size_t begin, NumberRange range) {
    if (range.last < range.first)
      fail_at(begin, ErrorCode::bad_text, fmt::format("the range goes down from {} to {}", range.first, range.last));
    std::vector<int> exits;
    for (Index number = range.first;; ++number) {
      const int fork = add(Kind::fork);
      for (const char c : fmt::format("{}", number)) add(Kind::literal, c);
      leave(fork, exits);
      if (number == range.last) break;
    }
    join(exits);
  }

  /// Ends an alternative: the fork in front of it continues with the alternative after it.
  void leave(int fork, std::vector<int>& exits) {
    exits.push_back(add(Kind::fork));
    states_[fork].other = static_cast<int>(states_.size());
  }

  void join(const std::vector<int>& exits) {
    // The fork of the last alternative has no other alternative to try.
    const int dead = add(Kind::fork);
    states_[dead] = {.kind = Kind::fork, .next = dead, .other = dead};
    for (const int exit : exits) states_[exit].next = states_[exit].other = dead + 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<State> states_;
};

Result<NamePattern> NamePattern::parse(std::string_view text) {
  return attempt([&] {
    NamePattern out;
    out.states_ = Compiler(text).compile();
    return out;
  });
}

bool NamePattern::matches(std::string_view name) const {
  // All states in which the automaton may be, each once.
  std::vector<int> now, then, open;
  std::vector<std::size_t> entered(states_.size(), 0);
  std::size_t step = 0;
  const auto enter = [&](std::vector<int>& states, int first) {
    open.push_back(first);
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (std::exchange(entered[at], step) == step) continue;
      const State& state = states_[at];
      if (state.kind == Kind::fork) {
        open.push_back(state.next);
        open.push_back(state.other);
      } else {
        states.push_back(at);
      }
    }
  };
  ++step;
  enter(now, 0);
  for (const char c : name) {
    ++step;
    then.clear();
    for (const int at : now) {
      const State& state = states_[at];
      const bool takes = state.kind == Kind::any || (state.kind == Kind::literal && state.literal == c) ||
                         (state.kind == Kind::continuation && continues(c)) ||
                         (state.kind == Kind::component && c != '.') ||
                         (state.kind == Kind::character && c != '.' && !continues(c));
      if (takes) enter(then, state.next);
    }
    std::swap(now, then);
    if (now.empty()) return false;
  }
  return std::any_of(now.begin(), now.end(), [&](int at) { return states_[at].kind == Kind::end; });
}

}  // namespace tranship
