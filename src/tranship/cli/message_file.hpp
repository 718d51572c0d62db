// Private: option -o of commands that explain plans: draws who sends what to whom, as an SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/cli/command_line.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship::cli {

struct PictureArguments {
  std::string path;  ///< empty: no picture
  bool force = false;
};

/// Adds the options -o and --force.
void add_picture(Command& command, PictureArguments& arguments);

/// Draws the messages of one rank, or of all ranks of the layouts, and writes them like write_picture().
void write_messages(const PictureArguments& picture, std::optional<Rank> rank, const std::vector<ArraySpec>& layouts,
                    FunctionRef<TransferPlan(Rank)> plan_of);

}  // namespace tranship::cli
