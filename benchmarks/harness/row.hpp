// Row: one measured case beside its limit, its peers and its target, all in one unit; as JSON and as a Markdown table.
// The JSON names are stable: others script against them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tranship::bench {

enum class Better { lower, higher };

struct Row {
  /// The benchmark it belongs to; the Report fills it in.
  std::string bench = {};
  /// What was measured, unique within the benchmark: "case" in JSON.
  std::string name = {};
  /// Of `ours`, `limit`, `target` and every peer: "GB/s", "ms", "bytes".
  std::string unit = {};
  Better better = Better::lower;
  double ours = 0;
  /// What the machine allows, measured in the same run.
  std::optional<double> limit = std::nullopt;
  /// Others who do the same, measured in the same run, in the order of the table.
  std::vector<std::pair<std::string, double>> peers = {};
  /// What `ours` must reach.
  std::optional<double> target = std::nullopt;

  /// Whether `ours` reaches the target; nothing where there is none.
  std::optional<bool> met() const;
  /// How many times better `ours` is than `other`: above 1 it wins, whichever way the unit counts.
  double times_better_than(double other) const;
};

/// A JSON array of {"bench", "case", "unit", "better", "ours", "limit", "peers": {name: value}, "target", "met"}; what
/// does not apply is null.
std::string to_json(const std::vector<Row>& rows);
/// The same as a Markdown table, with the ratio of ours to each other number.
std::string to_markdown(const std::vector<Row>& rows);

}  // namespace tranship::bench
