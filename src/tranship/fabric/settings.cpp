#include "tranship/fabric/settings.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/seam/team_slots.hpp>

namespace tranship {

std::int64_t timeout_ns_of(const std::string& name, const std::string& text) {
  if (text == "off") return INT64_MAX;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(seconds) || seconds <= 0)
    throw_error(ErrorCode::bad_text, "{} is '{}': give a positive number of seconds, or \"off\"", name,
                printable(text));
  return seconds < 9e9 ? static_cast<std::int64_t>(seconds * 1e9) : INT64_MAX;
}

std::size_t heap_bytes_of(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit == "T" ? 40 : 0;
  const double bytes = number * static_cast<double>(std::size_t(1) << shift);
  if ((shift == 0 && !unit.empty()) || !(bytes >= 1) || bytes > 9e18)
    throw_error(ErrorCode::bad_text,
                "{} is '{}': give a positive number of bytes, with an optional suffix K, M, G or T", name,
                printable(text));
  return static_cast<std::size_t>(bytes);
}

int teams_of(const std::string& name, const std::string& text) {
  int teams = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, teams);
  if (read.ec != std::errc() || read.ptr != end || teams < TeamSlots::count_min || teams > TeamSlots::count_max)
    throw_error(ErrorCode::bad_text, "{} is '{}': give a number of teams from {} to {}", name, printable(text),
                TeamSlots::count_min, TeamSlots::count_max);
  return teams;
}

}  // namespace tranship
