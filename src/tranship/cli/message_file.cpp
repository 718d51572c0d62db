#include "tranship/cli/message_file.hpp"

#include <set>

#include <tranship/cli/picture_file.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/view/message_picture.hpp>

namespace tranship::cli {

void add_picture(Command& command, PictureArguments& arguments) {
  command.option("-o,--output", arguments.path, "Also draw who sends what to whom, as an SVG").value_name("FILE.svg");
  command.flag("--force", arguments.force, "Let the SVG replace any file, not only one that tranship drew");
}

void write_messages(const PictureArguments& picture, std::optional<Rank> rank, const std::vector<ArraySpec>& layouts,
                    FunctionRef<TransferPlan(Rank)> plan_of) {
  const Replace replace = picture.force ? Replace::any_file : Replace::own_files;
  check_replaceable_picture(picture.path, PictureForm::svg, replace);
  if (rank) {
    write_picture(picture.path, messages_svg(summarise(plan_of(*rank))), replace);
    return;
  }
  std::set<Rank> ranks;
  for (const ArraySpec& layout : layouts)
    for (const Rank one : layout.distribution.grid().ranks()) ranks.insert(one);
  std::vector<PlanSummary> plans;
  for (const Rank one : ranks) plans.push_back(summarise(plan_of(one)));
  write_picture(picture.path, messages_svg(plans), replace);
}

}  // namespace tranship::cli
