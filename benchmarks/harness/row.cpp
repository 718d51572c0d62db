#include <algorithm>
#include <array>
#include <limits>

#include <fmt/core.h>
#include <harness/row.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/base/json.hpp>

namespace tranship::bench {
namespace {

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Row& row) {
  Json peers = Json::object();
  for (const auto& [name, value] : row.peers) peers[name] = value;
  Json goals = Json::array();
  for (const Goal& goal : row.goals)
    goals.push_back({{"against", goal.against},
                     {"ratio", goal.ratio},
                     {"reached", row.times_better_than(goal.value)},
                     {"met", row.reaches(goal)}});
  Json absent = Json::object();
  for (const auto& [name, reason] : row.absent) absent[name] = reason;
  return {{"bench", row.bench},
          {"case", row.full_name()},
          {"data", row.data.empty() ? Json(nullptr) : Json(row.data)},
          {"unit", row.unit},
          {"better", row.better == Better::lower ? "lower" : "higher"},
          {"ours", row.ours},
          {"limit", or_null(row.limit)},
          {"peers", std::move(peers)},
          {"target", or_null(row.strictest())},
          {"met", row.met() ? Json(*row.met()) : Json(nullptr)},
          {"goals", std::move(goals)},
          {"absent", std::move(absent)},
          {"our_ranks", row.our_ranks ? Json(name_of(*row.our_ranks)) : Json(nullptr)},
          {"line_bound", or_null(row.line_bound)}};
}

std::optional<double> number_or_nothing(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.as_number());
}

Row row_of_json(const Json& json) {
  Row row{.bench = json.at("bench").as_string(),
          .name = json.at("case").as_string(),
          .unit = json.at("unit").as_string(),
          .better = json.at("better") == "lower" ? Better::lower : Better::higher,
          .ours = json.at("ours").as_number(),
          .limit = number_or_nothing(json.at("limit")),
          .target = number_or_nothing(json.at("target"))};
  if (!json.at("data").is_null()) {
    row.data = json.at("data").as_string();
    // "case" ends with ", " and the state of the data.
    row.name.resize(row.name.size() - std::min(row.name.size(), row.data.size() + 2));
  }
  for (const auto& [name, value] : json.at("peers").members()) row.peers.emplace_back(name, value.as_number());
  for (const Json& goal : json.at("goals").items()) {
    const double reached = goal.at("reached").as_number();
    row.goals.push_back({goal.at("against").as_string(), goal.at("ratio").as_number(),
                         row.better == Better::lower ? row.ours * reached : row.ours / reached});
  }
  for (const auto& [name, reason] : json.at("absent").members()) row.absent.emplace_back(name, reason.as_string());
  // Runs of older versions do not say these.
  if (const Json* ranks = json.find("our_ranks"); ranks && !ranks->is_null())
    row.our_ranks = *ranks == "processes" ? RanksAre::processes : RanksAre::threads;
  if (const Json* bound = json.find("line_bound")) row.line_bound = number_or_nothing(*bound);
  return row;
}

std::string with_ratio(const Row& row, double other) {
  // Differences may be negative.
  if (row.ours <= 0 || other <= 0) return fmt::format("{:.4g}", other);
  return fmt::format("{:.4g} ({:.2f}×)", other, row.times_better_than(other));
}

/// The target, then each goal; those that are missed say what was reached.
std::string target_text(const Row& row) {
  std::string text = row.target ? fmt::format("{:.4g}", *row.target) : "";
  for (const Goal& goal : row.goals) {
    text += fmt::format("{}{}× {}", text.empty() ? "" : ", ", goal.ratio, goal.against);
    if (!row.reaches(goal)) text += fmt::format(" (missed: {:.2f}×)", row.times_better_than(goal.value));
  }
  return text.empty() ? "–" : text;
}

/// Columns are as wide as their longest cell, counted in characters as a terminal shows them.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

const char* name_of(RanksAre ranks) {
  return ranks == RanksAre::threads ? "threads" : "processes";
}

std::optional<double> Row::strictest() const {
  std::optional<double> strictest = target;
  for (const Goal& goal : goals) {
    const double wanted = better == Better::lower ? goal.value / goal.ratio : goal.value * goal.ratio;
    if (!strictest)
      strictest = wanted;
    else
      strictest = better == Better::lower ? std::min(*strictest, wanted) : std::max(*strictest, wanted);
  }
  return strictest;
}

std::optional<bool> Row::met() const {
  if (!target && goals.empty()) return std::nullopt;
  bool met = !target || (better == Better::lower ? ours <= *target : ours >= *target);
  for (const Goal& goal : goals) met = met && reaches(goal);
  return met;
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
  return all.dump({.indent = 2}) + "\n";
}

std::vector<Row> rows_of_json(const std::string& text) {
  try {
    std::vector<Row> rows;
    for (const Json& row : parse_json(text).items()) rows.push_back(row_of_json(row));
    return rows;
  } catch (const Error& error) {
    throw_error(ErrorCode::bad_text, "not the rows of a run, {} bytes of text: {}", text.size(), error.what());
  }
}

std::string to_markdown(const std::vector<Row>& rows) {
  constexpr int columns = 11;
  using Cells = std::array<std::string, columns>;
  std::vector<Cells> lines = {
      {"bench", "case", "data", "ranks", "unit", "ours", "limit", "lines", "peers", "target", "met"}};
  for (const Row& row : rows) {
    std::string peers;
    for (const auto& [name, value] : row.peers)
      peers += fmt::format("{}{} {}", peers.empty() ? "" : ", ", name, with_ratio(row, value));
    lines.push_back(
        {row.bench, row.name, row.data.empty() ? "–" : row.data, row.our_ranks ? name_of(*row.our_ranks) : "–",
         fmt::format("{} {}", row.unit, row.better == Better::lower ? "↓" : "↑"), fmt::format("{:.4g}", row.ours),
         row.limit ? with_ratio(row, *row.limit) : "–", row.line_bound ? with_ratio(row, *row.line_bound) : "–",
         peers.empty() ? "–" : peers, target_text(row), row.met() ? (*row.met() ? "yes" : "NO") : "–"});
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
  table +=
      "\n↓ lower is better, ↑ higher is better; (r×): ours is r times as good as that number. ranks: what ours are; "
      "those of peers are processes. lines: moving as many cache lines as the work touches.\n";
  for (const Row& row : rows)
    for (const auto& [name, reason] : row.absent)
      table += fmt::format("absent: {} from {} {}: {}\n", name, row.bench, row.full_name(), reason);
  return table;
}

}  // namespace tranship::bench
