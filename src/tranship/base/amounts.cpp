#include "tranship/base/amounts.hpp"

#include <fmt/format.h>

namespace tranship {

std::string grouped(Index value) {
  std::string out = fmt::format("{}", value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(out.size()) - 3; at > first; at -= 3) out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

std::string human_bytes(Index bytes) {
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  // 1023.95 would be printed as 1024.0.
  for (; value >= 1023.95 && unit < 5; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string plural(Index count, std::string_view one, std::string_view several) {
  if (count == 1) return std::string(one);
  return several.empty() ? fmt::format("{}s", one) : std::string(several);
}

std::string amount(Index count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, plural(count, one, several));
}

std::string counted(Index count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", grouped(count), plural(count, one, several));
}

std::string with_article(std::string_view what) {
  constexpr std::string_view vowels = "aeiouAEIOU";
  return fmt::format("{} {}", !what.empty() && vowels.find(what.front()) != vowels.npos ? "an" : "a", what);
}

}  // namespace tranship
