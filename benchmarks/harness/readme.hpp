// The tables of README.md and docs/performance.md, made of the rows of one run of everything.
#pragma once

#include <string>
#include <vector>

#include <harness/row.hpp>

namespace tranship::bench {

/// What a table is called between "<!-- measured: NAME -->" and "<!-- end -->".
std::vector<std::string> readme_tables();

struct Readme {
  std::string text;
  /// Tables that stay as they were, because none of their rows was measured.
  std::vector<std::string> kept;
};
/// Puts every table where `text` has a place for it; what was not measured is "–" there. Throws `bad_text` where there
/// is no place at all, one for a table that does not exist, or one without an end.
Readme with_tables(const std::string& text, const std::vector<Row>& rows);

}  // namespace tranship::bench
