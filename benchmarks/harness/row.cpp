#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <harness/row.hpp>
#include <nlohmann/json.hpp>

namespace tranship::bench {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Row& row) {
  Json peers = Json::object();
  for (const auto& [name, value] : row.peers) peers[name] = value;
  return {{"bench", row.bench},
          {"case", row.name},
          {"unit", row.unit},
          {"better", row.better == Better::lower ? "lower" : "higher"},
          {"ours", row.ours},
          {"limit", or_null(row.limit)},
          {"peers", std::move(peers)},
          {"target", or_null(row.target)},
          {"met", row.met() ? Json(*row.met()) : Json(nullptr)}};
}

std::string with_ratio(const Row& row, double other) {
  return fmt::format("{:.4g} ({:.2f}×)", other, row.times_better_than(other));
}

/// Columns are as wide as their longest cell, counted in characters as a terminal shows them.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::optional<bool> Row::met() const {
  if (!target) return std::nullopt;
  return better == Better::lower ? ours <= *target : ours >= *target;
}

double Row::times_better_than(double other) const {
  const double numerator = better == Better::lower ? other : ours;
  const double denominator = better == Better::lower ? ours : other;
  if (denominator == 0) return numerator == 0 ? 1 : std::numeric_limits<double>::infinity();
  return numerator / denominator;
}

std::string to_json(const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) all.push_back(json_of(row));
  return all.dump(2) + "\n";
}

std::string to_markdown(const std::vector<Row>& rows) {
  constexpr int columns = 8;
  using Cells = std::array<std::string, columns>;
  std::vector<Cells> lines = {{"bench", "case", "unit", "ours", "limit", "peers", "target", "met"}};
  for (const Row& row : rows) {
    std::string peers;
    for (const auto& [name, value] : row.peers)
      peers += fmt::format("{}{} {}", peers.empty() ? "" : ", ", name, with_ratio(row, value));
    lines.push_back({row.bench, row.name, fmt::format("{} {}", row.unit, row.better == Better::lower ? "↓" : "↑"),
                     fmt::format("{:.4g}", row.ours), row.limit ? with_ratio(row, *row.limit) : "–",
                     peers.empty() ? "–" : peers, row.target ? fmt::format("{:.4g}", *row.target) : "–",
                     row.met() ? (*row.met() ? "yes" : "NO") : "–"});
  }

  std::array<std::size_t, columns> widths{};
  for (const Cells& cells : lines)
    for (int c = 0; c < columns; ++c) widths[c] = std::max(widths[c], width_of(cells[c]));

  std::string table;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (int c = 0; c < columns; ++c)
      table += fmt::format("| {}{:{}}", lines[i][c], "", widths[c] - width_of(lines[i][c]) + 1);
    table += "|\n";
    if (i > 0) continue;
    for (int c = 0; c < columns; ++c) table += fmt::format("|{:->{}}", "", widths[c] + 2);
    table += "|\n";
  }
  return table + "\n↓ lower is better, ↑ higher is better; (r×): ours is r times as good as that number.\n";
}

}  // namespace tranship::bench
