// `tranship reshard`: an array in files, from the layout that it has to the one that it shall have.

#include <csignal>
#include <memory>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/progress_line.hpp>
#include <tranship/cli/report_text.hpp>
#include <tranship/layout/text.hpp>

namespace tranship::cli {
namespace {

struct Arguments {
  std::string source;
  std::string target;
  std::string to;
  std::optional<std::string> from;
  bool verify = false;
  bool json = false;
};

volatile std::sig_atomic_t interrupted = 0;

// The first interrupt ends the work at the next report of progress, which removes what is half written; a second one
// ends it at once.
void stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

Json report_json(const Arguments& arguments, const ReshardReport& report) {
  return {{"source", arguments.source},
          {"target", arguments.target},
          {"from", json_of(report.from)},
          {"to", json_of(report.to)},
          {"bytes_read", report.bytes_read},
          {"bytes_written", report.bytes_written},
          {"parts_written", report.parts_written},
          {"duration_ns", report.duration_ns},
          {"verified", report.verified == Verify::yes}};
}

void run(const Arguments& arguments) {
  ReshardOptions options{.source = arguments.source,
                         .target = arguments.target,
                         .from = std::nullopt,
                         .to = layout_argument("--to", arguments.to),
                         .verify = arguments.verify ? Verify::yes : Verify::no};
  if (arguments.from) options.from = layout_argument("--from", *arguments.from);

  stop_on_interrupt();
  ProgressLine line;
  auto show = [&line](const ReshardProgress& progress) {
    if (interrupted) throw_error(ErrorCode::io, "interrupted; nothing was changed");
    line.show(progress);
  };
  options.progress = show;
  const ReshardReport report = reshard(options);
  line.clear();
  if (arguments.json)
    print_document(report_json(arguments, report));
  else
    print(fmt::format("{}\n", report_text(arguments.target, report)));
}

}  // namespace

std::string report_text(const std::string& target, const ReshardReport& report) {
  return fmt::format("{}: {}, {} read, {} written, {}in {}", printable(target), counted(report.parts_written, "part"),
                     human_bytes(report.bytes_read), human_bytes(report.bytes_written),
                     report.verified == Verify::yes ? "verified, " : "", human_duration(report.duration_ns));
}

void add_reshard(CLI::App& app) {
  CLI::App* command = app.add_subcommand("reshard", "Take an array in files to another layout");
  command->footer(
      R"help(TARGET appears complete or not at all: a failure leaves what was there. A directory of parts holds
manifest.json and part-00000.npy, ... by rank.

Examples:
  tranship reshard elevation.npy rows/ --to "i16[344,403] @ 4x1 : block, whole"
  tranship reshard rows/ tiles/ --to "i16[344,403] @ 2x2 : cyclic(64)+overlap(1,1), cyclic(64)+overlap(1,1)" --verify
  tranship reshard tiles/ back.npy --to "i16[344,403] @ 1x1 : whole, whole"
  tranship reshard parts/ whole.npy --from @parts.json --to @whole.json --json)help");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("SOURCE", arguments->source, "A .npy file, or a directory of parts")->required();
  command->add_option("TARGET", arguments->target, "A directory, or FILE.npy for a layout of one part")->required();
  command->add_option("--to", arguments->to, "The layout that the array shall have")->required()->type_name("LAYOUT");
  command
      ->add_option("--from", arguments->from,
                   "The layout that it has: checked; needed for a directory without a manifest")
      ->type_name("LAYOUT");
  command->add_flag("--verify", arguments->verify, "Read the target back and compare it before it takes its place");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace tranship::cli
