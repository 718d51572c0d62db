#include "tranship/cli/did_you_mean.hpp"

#include <algorithm>
#include <vector>

#include <tranship/base/fail.hpp>

namespace tranship::cli {
namespace {

/// Returns the number of letters to remove, insert, change, or swap with the next, to get from one word to the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  // Edits from the prefixes of `a` that end one letter before the last one, at the last one, and at the present letter,
  // to each prefix of `b`.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), next(b.size() + 1);
  for (std::size_t k = 0; k <= b.size(); ++k) last[k] = k;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t change = a[i - 1] == b[k - 1] ? 0 : 1;
      next[k] = std::min({last[k] + 1, next[k - 1] + 1, last[k - 1] + change});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        next[k] = std::min(next[k], before[k - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, next);
  }
  return last[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t letters_max = 64;
  if (word.empty() || word.size() > letters_max) return {};
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 5) + 1;
  for (const std::string_view one : known)
    if (const std::size_t edits = edits_between(word, one); edits < fewest) {
      fewest = edits;
      best = one;
    }
  return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

}  // namespace tranship::cli
