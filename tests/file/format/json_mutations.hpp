// Seeded mutations of JSON texts, and what became of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/random_layouts.hpp"

namespace tranship::testing {

/// Changes `text` in one to three places: characters that mean something, `pieces`, numbers, spans dropped or doubled.
inline void mutate_json(std::string& text, const std::vector<std::string>& pieces, test::Random& random) {
  static constexpr std::string_view meaning = "0123456789-[]{},:\"\\ .eftnU/\x80";
  static const std::vector<std::string> anywhere = {
      "9223372036854775807", "-1", "0", "1e9", "null", "\"\"", "..", "[]", "{}"};
  for (Index changes = random.between(1, 3); changes-- > 0 && !text.empty();) {
    const auto at = static_cast<std::size_t>(random.below(Index(text.size())));
    const auto length = static_cast<std::size_t>(random.between(1, 12));
    switch (random.below(5)) {
      case 0:
        text[at] = meaning[random.below(Index(meaning.size()))];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.replace(at, 1, random.pick(random.one_in(3) ? pieces : anywhere));
        break;
      case 4: {
        // A number becomes another one: the most of what is accepted changes so.
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text[digit] = char('0' + random.below(10));
        break;
      }
    }
  }
}

/// Verdicts have `accepted` and `violation`, which is empty when all is well.
struct Tally {
  int accepted = 0;
  int refused = 0;
  int violations = 0;
  std::string first_violation;

  template <class Verdict>
  void add(const Verdict& verdict, const std::string& text) {
    ++(verdict.accepted ? accepted : refused);
    if (!verdict.violation.empty() && violations++ == 0) first_violation = verdict.violation + ": " + text;
  }
};

}  // namespace tranship::testing
