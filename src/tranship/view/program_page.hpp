// Private: A program as one self-contained page of HTML: a lane for each thread block, the steps in an order in which
// they can run, arrows from signals to waits and from writers to readers, and a description of the step under the
// pointer. All text of the program is escaped, and the page's script contains none of it.
#pragma once

#include <optional>
#include <string>

#include <tranship/program/program.hpp>

namespace tranship {

struct ProgramPageOptions {
  /// Shows only the lanes of this rank, and the arrows between them.
  std::optional<Rank> rank = std::nullopt;
  /// Ranks beyond this many steps are left out, and the page says so. A page takes about 1 KB per step.
  Index steps_max = 5000;
  Index arrows_max = 20'000;
};

/// Throws the same errors as program_text.
std::string program_page(const Program& program, const ProgramPageOptions& options = {});

}  // namespace tranship
