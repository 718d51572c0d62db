// `tranship show`: shows what a program does, as text, as JSON or as a page for a browser.

#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/picture_file.hpp>
#include <tranship/cli/program_argument.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/view/program_page.hpp>
#include <tranship/view/program_text.hpp>

namespace tranship::cli {
namespace {

constexpr const char* show_footer = R"(Examples:
  tranship show allreduce.json
  tranship show allreduce.json --rank 3
  tranship show allreduce.json -o allreduce.html
  tranship show allreduce/ring --ranks 4

The text has, for each rank and thread block, the steps in order and, in brackets, the steps that they pair with: the
wait that takes a signal, and what reads what is written. Of more than 4 ranks, those that do the same with other peers
and chunks are named only, unless --all asks for them. The page shows the same as lanes and arrows, 5,000 steps or,
with --all, all of them; it needs no network. Steps that never run are marked.)";

struct ShowOptions {
  ProgramArgument program;
  std::string page;
  std::optional<int> rank;
  bool force = false;
  bool all = false;
  bool json = false;
};

Json json_of(const Program& program, const std::optional<int>& rank) {
  const StepArrows arrows(program);
  Json steps = Json::array(), pairs = Json::array(), stuck = Json::array();
  const auto is_wanted = [&](std::int32_t step) {
    return !rank || arrows.steps()[static_cast<std::size_t>(step)].rank == *rank;
  };
  for (std::size_t i = 0; i < arrows.steps().size(); ++i) {
    const StepPlace& place = arrows.steps()[i];
    if (!is_wanted(static_cast<std::int32_t>(i))) continue;
    Json step = {{"id", i},
                 {"rank", place.rank},
                 {"block", place.block},
                 {"step", place.step},
                 {"kind", shape_of(place.what->kind).word},
                 {"text", step_text(program, place)}};
    if (place.inner >= 0) step["inner"] = place.inner;
    steps.push_back(std::move(step));
  }
  for (const StepArrow& arrow : arrows.all())
    if (is_wanted(arrow.from) || is_wanted(arrow.to))
      pairs.push_back({{"kind", name_of(arrow.kind)}, {"from", arrow.from}, {"to", arrow.to}});
  for (const std::int32_t step : arrows.stuck()) stuck.push_back(step);
  return {{"name", program.name},
          {"collective", program.collective},
          {"ranks", program.ranks.size()},
          {"protocol", program.protocol},
          {"in_place", program.in_place},
          {"steps", steps},
          {"arrows", pairs},
          {"stuck", stuck}};
}

std::string text_of(const Program& program, const ShowOptions& options) {
  if (!options.all) return program_text(program, {.rank = options.rank});
  return program_text(program, {.rank = options.rank,
                                .steps_max = std::numeric_limits<Index>::max(),
                                .ranks_unfolded_max = std::numeric_limits<Rank>::max()});
}

void show(const ShowOptions& options) {
  if (options.rank && options.all) throw UsageError{"--rank shows one rank, --all shows all of them"};
  const Program program = program_of(options.program);
  const auto ranks = static_cast<int>(program.ranks.size());
  if (options.rank && (*options.rank < 0 || *options.rank >= ranks))
    throw UsageError{fmt::format("--rank: there is no rank {}; the program has {}", *options.rank, ranks)};
  if (!options.page.empty()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(options.page, options.program.name, ignored))
      throw UsageError{fmt::format("-o: '{}' is the file of the plan: give another file", options.page)};
    const Replace replace = options.force ? Replace::any_file : Replace::own_files;
    check_replaceable_picture(options.page, PictureForm::html, replace);
    ProgramPageOptions page{.rank = options.rank};
    if (options.all) page.steps_max = page.arrows_max = std::numeric_limits<Index>::max();
    write_picture(options.page, program_page(program, page), replace);
  }
  if (options.json) return print_beside_file(options.page, document_text(json_of(program, options.rank)));
  if (options.page.empty()) return print(text_of(program, options));
  print_report(fmt::format("{}: {}\n", printable(options.page), sizes_text(program)));
}

}  // namespace

void add_show(CommandLine& line) {
  auto options = std::make_shared<ShowOptions>();
  Command command = line.add("show", "What a program of channel operations does: text, or a page for a browser");
  add_program_argument(command, options->program);
  command.option("-o,--output", options->page, "Write a page of HTML instead of text").value_name("FILE.html");
  command.flag("--force", options->force, "Let the page replace any file, not only one that tranship drew");
  command.option("--rank", options->rank, "Only this rank").value_name("R").not_negative();
  command.flag("--all", options->all, "All ranks, however many and however alike");
  command.flag("--json", options->json, "Print one JSON object");
  command.footer(show_footer);
  command.runs([options] { show(*options); });
}

}  // namespace tranship::cli
