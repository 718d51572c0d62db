// Private: A program as one page of HTML that needs nothing else: a lane for each thread block, the steps in the order
// in which they can run, arrows from signals to waits and from writers to readers, and what a step does when one points
// at it. All text of the program is escaped; the script of the page holds none of it.
#pragma once

#include <optional>
#include <string>

#include <tranship/program/program.hpp>

namespace tranship {

struct ProgramPageOptions {
  /// The lanes of this rank alone, and the arrows between them.
  std::optional<Rank> rank = std::nullopt;
  /// Ranks after so many steps are left out, and the page says so. A page has about 1 KB for each step.
  Index steps_max = 5000;
  Index arrows_max = 20'000;
};

/// Throws as program_text does.
std::string program_page(const Program& program, const ProgramPageOptions& options = {});

}  // namespace tranship
