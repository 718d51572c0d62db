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

/// The kind of our ranks; the ranks of peers are processes.
enum class RanksAre : std::uint8_t { threads, processes };
const char* name_of(RanksAre ranks);

/// A goal for `ours` as a multiple of another number of the same row: with a ratio above 1, `ours` must be better,
/// whether the unit counts up or down.
struct Goal {
  std::string against;
  double ratio = 1;
  double value = 0;  ///< that other number
};

struct Row {
  /// The benchmark it belongs to; the Report fills it in.
  std::string bench = {};
  /// The case that was measured; unique within the benchmark, together with `data`.
  std::string name = {};
  /// The unit of `ours`, `limit`, `target` and every peer: "GB/s", "ms", "bytes".
  std::string unit = {};
  Better better = Better::lower;
  double ours = 0;
  /// The best that the machine allows, measured in the same run.
  std::optional<double> limit = std::nullopt;
  /// The machine's number for moving as many cache lines as the work touches, measured in the same run.
  std::optional<double> line_bound = std::nullopt;
  /// Other contestants with the same work, measured in the same run, in the order of the table.
  std::vector<std::pair<std::string, double>> peers = {};
  /// The number that `ours` must reach; with goals as well, the strictest of all counts.
  std::optional<double> target = std::nullopt;
  std::vector<Goal> goals = {};
  /// The state of the data: "fresh", "warm", "cold"; empty where it makes no difference. Part of "case".
  std::string data = {};
  /// Peers that were not measured, and the reasons.
  std::vector<std::pair<std::string, std::string>> absent = {};
  /// Nothing when the work of `ours` has no ranks.
  std::optional<RanksAre> our_ranks = std::nullopt;

  /// The strictest of target and goals.
  std::optional<double> strictest() const;
  bool reaches(const Goal& goal) const { return times_better_than(goal.value) >= goal.ratio; }
  /// "case": the name and the state of the data.
  std::string full_name() const { return data.empty() ? name : name + ", " + data; }
  /// Returns true when `ours` reaches the target and all goals; nothing when there is neither.
  std::optional<bool> met() const;
  /// How many times better `ours` is than `other`: above 1 it wins, whichever way the unit counts.
  double times_better_than(double other) const;
};

/// A JSON array of {"bench", "case", "data", "unit", "better", "ours", "limit", "peers": {name: value}, "target",
/// "met", "goals": [{"against", "ratio", "reached", "met"}], "absent": {name: reason}, "our_ranks": "threads" or
/// "processes", "line_bound"}; what does not apply is null.
std::string to_json(const std::vector<Row>& rows);
/// Reads what to_json wrote, except that `target` is the strictest of the row's target and all its goals. Throws
/// `bad_text` for any other text.
std::vector<Row> rows_of_json(const std::string& text);
/// Writes a Markdown table with the ratio of ours to each other number, and lists absent peers below it.
std::string to_markdown(const std::vector<Row>& rows);

}  // namespace tranship::bench
