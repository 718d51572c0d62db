// Row: one measured case beside its limit, its peers and its target, all in one unit; as JSON and as a Markdown table.
// The JSON names are stable: others script against them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tranship::bench {

enum class Better { lower, higher };

/// What our ranks are; those of peers that have ranks are processes.
enum class RanksAre : std::uint8_t { threads, processes };
const char* name_of(RanksAre ranks);

/// What ours must be, as a multiple of another number of the same row: above 1 it must win, whichever way the unit
/// counts.
struct Goal {
  std::string against;
  double ratio = 1;
  double value = 0;  ///< that other number
};

struct Row {
  /// The benchmark it belongs to; the Report fills it in.
  std::string bench = {};
  /// What was measured; unique within the benchmark, together with `data`.
  std::string name = {};
  /// Of `ours`, `limit`, `target` and every peer: "GB/s", "ms", "bytes".
  std::string unit = {};
  Better better = Better::lower;
  double ours = 0;
  /// What the machine allows, measured in the same run.
  std::optional<double> limit = std::nullopt;
  /// As long as the machine takes to move as many cache lines as the work touches, measured in the same run.
  std::optional<double> line_bound = std::nullopt;
  /// Others who do the same, measured in the same run, in the order of the table.
  std::vector<std::pair<std::string, double>> peers = {};
  /// What `ours` must reach; where there are goals as well, the strictest of all counts.
  std::optional<double> target = std::nullopt;
  std::vector<Goal> goals = {};
  /// What the data has been through: "fresh", "warm", "cold"; empty where it makes no difference. Part of "case".
  std::string data = {};
  /// Peers that did not make it, and why.
  std::vector<std::pair<std::string, std::string>> absent = {};
  /// Nothing where `ours` has no ranks.
  std::optional<RanksAre> our_ranks = std::nullopt;

  /// The strictest of target and goals.
  std::optional<double> strictest() const;
  bool reaches(const Goal& goal) const { return times_better_than(goal.value) >= goal.ratio; }
  /// "case": the name and the state of the data.
  std::string full_name() const { return data.empty() ? name : name + ", " + data; }
  /// Whether `ours` reaches the target; nothing where there is none.
  std::optional<bool> met() const;
  /// How many times better `ours` is than `other`: above 1 it wins, whichever way the unit counts.
  double times_better_than(double other) const;
};

/// A JSON array of {"bench", "case", "data", "unit", "better", "ours", "limit", "peers": {name: value}, "target",
/// "met", "goals": [{"against", "ratio", "reached", "met"}], "absent": {name: reason}, "our_ranks": "threads" or
/// "processes", "line_bound"}; what does not apply is null.
std::string to_json(const std::vector<Row>& rows);
/// What to_json wrote, but for what it derives: `target` is that of the row and of all goals. Throws `bad_text` for
/// anything else.
std::vector<Row> rows_of_json(const std::string& text);
/// The same as a Markdown table, with the ratio of ours to each other number; what is absent is listed below it.
std::string to_markdown(const std::vector<Row>& rows);

}  // namespace tranship::bench
