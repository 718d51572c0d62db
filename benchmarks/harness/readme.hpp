// The tables of README.md and docs/performance.md, made of the rows of one run of everything.
#pragma once

#include <string>
#include <vector>

#include <harness/row.hpp>

namespace tranship::bench {

/// The names of all tables; table NAME stands between "<!-- measured: NAME -->" and "<!-- end -->".
std::vector<std::string> readme_tables();

struct Readme {
  std::string text;
  /// Tables that stay as they were, because none of their rows was measured.
  std::vector<std::string> kept;
};
/// Puts every table where `text` has a place for it; a number that was not measured is "–". Throws `bad_text` when
/// `text` has no place at all, a place for an unknown table, or a place without an end.
Readme with_tables(const std::string& text, const std::vector<Row>& rows);

}  // namespace tranship::bench
