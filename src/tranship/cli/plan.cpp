// `tranship plan`: shows what moves when an array goes from one layout to another.

#include <memory>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/forecast_text.hpp>
#include <tranship/cli/message_file.hpp>
#include <tranship/cli/picture_file.hpp>
#include <tranship/file/reshard_tensors.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/plan/plan_json.hpp>
#include <tranship/plan/relabel.hpp>

namespace tranship::cli {
namespace {

struct PlanOptions {
  std::string source;
  std::optional<std::string> from;
  std::string to;
  std::optional<Rank> rank;
  bool relabel = false;
  bool full = false;
  std::string compare;
  PictureArguments picture;
  bool json = false;
};

std::string relabelled_text(const Relabelled& best, ElementType type) {
  const Index saved = best.cells_moved_before - best.cells_moved;
  auto amount = [&](Index cells) {
    return fmt::format("{} ({})", counted(cells, "cell"), human_bytes(checked_multiply(cells, size_bytes(type))));
  };
  if (saved == 0) return fmt::format("\nrelabelling saves nothing: no other order of the target's ranks moves less\n");
  return fmt::format("\nrelabelled, the target's ranks move {} instead of {}: {:.1f}% less\n  {}\n",
                     amount(best.cells_moved), amount(best.cells_moved_before),
                     100.0 * static_cast<double>(saved) / static_cast<double>(best.cells_moved_before),
                     to_text({type, best.target}));
}

Json relabelled_json(const Relabelled& best, ElementType type) {
  return {{"cells_moved", best.cells_moved},
          {"cells_moved_before", best.cells_moved_before},
          {"to", json_of(ArraySpec{type, best.target})}};
}

void plan_tensors(const PlanOptions& options) {
  if (options.from || options.rank || options.relabel || options.full || !options.compare.empty() ||
      !options.picture.path.empty())
    throw UsageError{"--from, --rank, --relabel, --full, --compare and -o apply to one array, not to tensors"};
  const TensorForecast forecast =
      forecast_tensors({.source = options.source, .target = "", .to = rules_argument("--to", options.to)});
  if (!options.json)
    return print(fmt::format("{}: {}, to {}\n\n{}", printable(options.source), counted(forecast.tensors, "tensor"),
                             counted(forecast.ranks, "rank"), forecast_text(forecast.work)));
  print_document({{"source", options.source},
                  {"tensors", forecast.tensors},
                  {"ranks", forecast.ranks},
                  {"files", forecast_json(forecast.work)}});
}

void require_one_plan(const PlanOptions& options) {
  const char* const option = options.full ? "--full" : "--compare";
  if (!options.rank) throw UsageError{fmt::format("{} applies to the plan of one rank: add --rank", option)};
  if (options.full && !options.compare.empty()) throw UsageError{"--full and --compare exclude each other"};
  if (options.relabel || options.json || !options.picture.path.empty())
    throw UsageError{fmt::format("{} takes neither --relabel, nor --json, nor -o", option)};
}

/// Prints the differences between the plan in a file and `plan`; the command fails if there are any.
void compare(const TransferPlan& plan, const std::string& path) {
  const Result<TransferPlan> saved = try_load_plan(text_in_file("--compare", path));
  if (!saved) refuse_file("--compare", path, saved.error());
  const std::string differences = diff_plans(saved.value(), plan);
  if (differences.empty()) return print("the plans are equal\n");
  print(differences);
  throw ProgramFailed{1};
}

/// The layouts and, for files, the work that a reshard would take.
struct Planned {
  ArraySpec from;
  ArraySpec to;
  std::optional<ReshardForecast> work = {};
};

Planned planned_by(const PlanOptions& options) {
  if (options.source.empty()) {
    if (!options.from) throw UsageError{"plan needs a SOURCE or --from"};
    return {layout_argument("--from", *options.from), layout_argument("--to", options.to)};
  }
  const auto stored = [&] { return inspect(options.source).value(); };
  std::optional<ArraySpec> from;
  if (options.from)
    from = is_placement(*options.from) ? placed_argument("--from", *options.from, stored())
                                       : layout_argument("--from", *options.from);
  ArraySpec to = !is_placement(options.to) ? layout_argument("--to", options.to)
                 : from ? placed_argument("--to", options.to, *from, elements_at(options.source, *from))
                        : placed_argument("--to", options.to, stored());
  const ArrayForecast forecast = forecast_reshard({.source = options.source, .target = "", .from = from, .to = to});
  return {forecast.from, to, forecast.work};
}

void run(const PlanOptions& options) {
  if (!options.source.empty() && names_tensors(options.source)) return plan_tensors(options);
  if (options.full || !options.compare.empty()) require_one_plan(options);
  const Planned planned = planned_by(options);
  const ArraySpec &from = planned.from, &to = planned.to;
  std::optional<Relabelled> best;
  if (options.rank) require_rank(*options.rank, from.distribution, to.distribution);
  if (options.full) return print(save_plan(plan_redistribution(from, to, *options.rank)));
  if (!options.compare.empty()) return compare(plan_redistribution(from, to, *options.rank), options.compare);
  if (!options.picture.path.empty() && !options.source.empty()) check_not_source(options.picture.path, options.source);
  if (options.relabel) best = relabel(from.distribution, to.distribution);
  const auto explained = [&](auto&& summary) {
    if (!options.json)
      return fmt::format("from  {}\nto    {}\n\n{}{}{}", to_text(from), to_text(to), explain_text(summary),
                         best ? relabelled_text(*best, to.type) : "",
                         planned.work ? "\n" + forecast_text(*planned.work) : "");
    Json out = {{"from", json_of(from)}, {"to", json_of(to)}, {"summary", parse_json(explain_json(summary))}};
    if (planned.work) {
      out["source"] = options.source;
      out["files"] = forecast_json(*planned.work);
    }
    if (!options.picture.path.empty()) out["picture"] = options.picture.path;
    if (best) out["relabelled"] = relabelled_json(*best, to.type);
    return document_text(out);
  };
  const std::string text = options.rank ? explained(summarise(plan_redistribution(from, to, *options.rank)))
                                        : explained(summarise_redistribution(from, to));
  if (!options.picture.path.empty())
    write_messages(options.picture, options.rank, {from, to},
                   [&](Rank rank) { return plan_redistribution(from, to, rank); });
  print_beside_file(options.picture.path, text);
}

}  // namespace

void add_plan(CommandLine& line) {
  Command command = line.add("plan", "What moves from one layout to another: messages, bytes, stretches");
  command.footer(R"help(Examples:
  tranship plan --from "f64[8192,8192] @ 4x1 : block, whole" --to "f64[8192,8192] @ 2x2 : cyclic(64), cyclic(64)"
  tranship plan --from "f32[1000000000000] @ 16 : cyclic(64)" --to "f32[1000000000000] @ 24 : cyclic(100)" --rank 5
  tranship plan elevation.npy --to "@ 4x1 : block, whole"
  tranship plan --from "f64[90] @ 3 : block" --to "f64[90] @ 3 : cyclic(7)" --rank 0 --full > plan.json
  tranship plan --from "f64[90] @ 3 : block" --to "f64[90] @ 3 : cyclic(8)" --rank 0 --compare plan.json
  tranship plan model/ --to "**_proj.weight = @ 4x1 : block, whole; ** = replicated" --json
  tranship plan --from "f64[4000,4] @ 8x2 : block, block" \
                --to "f64[4000,4] @ 8x2 order(1,0) : block, block" --relabel)help");
  auto options = std::make_shared<PlanOptions>();
  command.positional("SOURCE", options->source,
                     "An array or tensors in files: says also what a reshard takes; instead of --from");
  command.option("--from", options->from, "The layout that the array has").value_name("LAYOUT");
  command.option("--to", options->to, "The layout that it shall have; of tensors, rules")
      .required()
      .value_name("LAYOUT");
  command.option("--rank", options->rank, "The plan of this rank only; without it, of all ranks together")
      .value_name("R")
      .not_negative();
  command.flag("--relabel", options->relabel, "Also say what the best order of the target's ranks would save");
  command.flag("--full", options->full, "Print the plan itself, as JSON that --compare and load_plan read");
  command.option("--compare", options->compare, "Print where the plan of this file differs; exit code 1 if it does")
      .value_name("FILE");
  add_picture(command, options->picture);
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { run(*options); });
}

}  // namespace tranship::cli
