#include "tranship/fabric/seam/wait_note.hpp"

#include <fmt/core.h>

#include <tranship/base/user_place.hpp>

namespace tranship {

const char* symbol_of(Comparison comparison) noexcept {
  constexpr const char* symbols[] = {"==", "!=", ">", "<=", "<", ">="};
  return symbols[static_cast<int>(comparison)];
}

std::string to_string(const WaitNote& note) {
  std::string text = note.label;
  if (note.flag_index < 0 && note.raised_by < 0) return text;
  text += " (";
  if (note.flag_index >= 0) {
    const auto number = [&](std::uint64_t value) {
      return note.is_signed ? fmt::format("{}", std::int64_t(value)) : fmt::format("{}", value);
    };
    text += fmt::format("rank {}, flag {}", note.flag_rank, note.flag_index);
    if (note.shows == WaitNote::Shows::comparison)
      text += fmt::format(" {} {}", symbol_of(note.comparison), number(note.wanted));
    if (note.shows != WaitNote::Shows::place) text += ", sees " + number(note.seen);
  }
  if (note.flag_index >= 0 && note.raised_by >= 0) text += "; ";
  if (note.raised_by >= 0) text += fmt::format("rank {} should raise it", note.raised_by);
  return text + ")";
}

std::string_view file_name(CallSite where) {
  const std::string_view path = where.file;
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: a path without folders is all name
}
std::string short_name(CallSite where) {
  if (std::string place = user_place(where); !place.empty()) return place;
  if (where.line == 0) return std::string(file_name(where));
  return fmt::format("{}:{}", file_name(where), where.line);
}

}  // namespace tranship
