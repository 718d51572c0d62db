// `tranship halo`: shows what moves when the overlap of a layout is filled from the owners of its cells.

#include <memory>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/message_file.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/explain.hpp>

namespace tranship::cli {
namespace {

struct HaloArguments {
  std::string layout;
  std::optional<std::string> depth;
  std::string stencil = "box";
  std::optional<Rank> rank;
  PictureArguments picture;
  bool json = false;
};

/// Returns false if no part has overlap, whatever its size. Ghosts of indexed arrays are lists, which count as overlap
/// even if they are empty.
bool stores_overlap(const Distribution& array) {
  if (array.is_indexed()) return true;
  for (int d = 0; d < array.dims(); ++d)
    if (const Overlap& overlap = array.axis(d).partition().overlap; overlap.left.width + overlap.right.width > 0)
      return true;
  return false;
}

void run(const HaloArguments& arguments) {
  const ArraySpec field = layout_argument("LAYOUT", arguments.layout);
  HaloOptions halo;
  halo.stencil.kind = arguments.stencil == "star" ? StencilKind::star : StencilKind::box;
  if (arguments.depth) {
    const Indices depths = numbers_argument("--depth", *arguments.depth, field.distribution.dims());
    if (arguments.depth->find(',') == std::string::npos)
      halo.depth = depths[0];
    else
      halo.depth_low = halo.depth_high = depths;
  }
  if (arguments.rank) require_rank(*arguments.rank, field.distribution, field.distribution);
  if (!stores_overlap(field.distribution))
    throw_error(ErrorCode::invalid_use, "LAYOUT stores 0 cells of overlap, so it has no halo: {}", to_text(field));
  const auto plan_of = [&](Rank rank) { return plan_halo({&field, 1}, rank, halo); };

  const auto explained = [&](auto&& summary) {
    if (!arguments.json) return fmt::format("halo of  {}\n\n{}", to_text(field), explain_text(summary));
    Json out = {
        {"layout", json_of(field)}, {"stencil", arguments.stencil}, {"summary", parse_json(explain_json(summary))}};
    if (!arguments.picture.path.empty()) out["picture"] = arguments.picture.path;
    return document_text(out);
  };
  const std::string text =
      arguments.rank ? explained(summarise(plan_of(*arguments.rank))) : explained(summarise_halo({&field, 1}, halo));
  if (!arguments.picture.path.empty()) write_messages(arguments.picture, arguments.rank, {field}, plan_of);
  print_beside_file(arguments.picture.path, text);
}

}  // namespace

void add_halo(CommandLine& line) {
  Command command = line.add("halo", "What moves when the overlap of a layout is filled from its owners");
  command.footer(R"help(Examples:
  tranship halo "f32[1024,1024] @ 2x2 : block+overlap(1,1,toroidal), block+overlap(1,1,toroidal)"
  tranship halo "f64[256,256,80] @ 4x4x1 : block+overlap(3,3), block+overlap(3,3), whole" --depth 2,2,0 --stencil star)help");
  auto arguments = std::make_shared<HaloArguments>();
  command.positional("LAYOUT", arguments->layout, "A layout text with overlap, or @FILE.json").required();
  command
      .option(
          "--depth", arguments->depth,
          "Overlap cells to fill on either side: one number for all sides that store any, or one for each dimension; "
          "all by default")
      .value_name("N[,N..]");
  command.option("--stencil", arguments->stencil, "box (with corners) or star (without)")
      .one_of({"box", "star"})
      .value_name("KIND")
      .shows_default();
  command.option("--rank", arguments->rank, "The plan of this rank only; without it, of all ranks together")
      .value_name("R")
      .not_negative();
  add_picture(command, arguments->picture);
  command.flag("--json", arguments->json, "Print JSON");
  command.runs([arguments] { run(*arguments); });
}

}  // namespace tranship::cli
