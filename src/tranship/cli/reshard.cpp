// `tranship reshard`: brings an array in files from its layout into another one.

#include <charconv>
#include <csignal>
#include <filesystem>
#include <memory>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/forecast_text.hpp>
#include <tranship/cli/progress_line.hpp>
#include <tranship/cli/report_text.hpp>
#include <tranship/cli/standard_streams.hpp>
#include <tranship/file/format/manifest.hpp>
#include <tranship/file/reshard_tensors.hpp>
#include <tranship/layout/text.hpp>

namespace tranship::cli {
namespace {

struct ReshardArguments {
  std::string source;
  std::string target;
  std::string to;
  std::optional<std::string> from;
  bool raw = false;
  std::optional<std::string> skip;
  std::optional<std::string> memory;
  std::optional<std::string> shard_size;
  int threads = 0;
  bool verify = false;
  bool dry_run = false;
  bool quiet = false;
  bool json = false;

  // The paths of the arrays; for a standard stream, the file that stands for it.
  std::string source_file = {};
  std::string target_file = {};
};

/// Prints the messages of a run where they do not mix with the bytes of an array.
void print_beside(const ReshardArguments& arguments, const std::string& text) {
  arguments.target == standard_stream ? print_note(text) : print_report(text);
}

volatile std::sig_atomic_t interrupted = 0;

// The first interrupt ends the work at the next report of progress and keeps what is written for another run; a second
// one ends the program at once.
void stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  handle_interrupts(action);
}

void check_interrupted() {
  if (interrupted) throw_error(ErrorCode::io, "interrupted, the target is as it was");
}

void check_interrupted_output() {
  if (interrupted) throw_error(ErrorCode::io, "interrupted, the output is not complete");
}

/// Parses a size in bytes: "64MiB", "1GiB", "1048576".
Index size_argument(const std::string& option, const std::string& text) {
  static constexpr std::pair<std::string_view, int> units[] = {
      {"B", 0}, {"K", 10}, {"KiB", 10}, {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30}, {"T", 40}, {"TiB", 40}};
  Index count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, shift] : units)
    if (failure == std::errc() && count >= 0 && (unit.empty() || unit == name)) {
      const int by = unit.empty() ? 0 : shift;
      if (count <= INT64_MAX >> by) return count << by;
    }
  throw UsageError{
      fmt::format("{}: '{}' is not a size: give a number of bytes, 64MiB or 1GiB; see 'tranship reshard --help'",
                  option, printable(text))};
}

Index memory_argument(const std::optional<std::string>& text) {
  if (!text) return 0;
  const Index bytes = size_argument("--memory", *text);
  if (bytes < reshard_memory_min)
    throw UsageError{fmt::format("--memory: {} is {}, at least {} are needed", printable(*text), amount(bytes, "byte"),
                                 reshard_memory_min)};
  return bytes;
}

Json checksums_json(const std::vector<ReshardReport::Checksum>& checksums) {
  Json out = Json::object();
  for (const ReshardReport::Checksum& checksum : checksums) out[checksum.file] = fmt::format("{:08x}", checksum.crc32);
  return out;
}

Json report_json(const ReshardArguments& arguments, const ReshardReport& report) {
  return {{"source", arguments.source},
          {"target", arguments.target},
          {"from", json_of(report.from)},
          {"to", json_of(report.to)},
          {"bytes_read", report.bytes_read},
          {"bytes_written", report.bytes_written},
          {"parts_written", report.parts_written},
          {"duration_ns", report.duration_ns},
          {"verified", report.verified == Verify::yes},
          {"memory_bytes", report.memory_bytes},
          {"threads", report.threads},
          {"resumed_bytes", report.bytes_resumed},
          {"checksums", checksums_json(report.checksums)}};
}

struct Layouts {
  std::optional<ArraySpec> from;
  ArraySpec to;
};

/// Recognises rules in place of a layout, and a directory without an array, to report them as such.
void check_kind(const ReshardArguments& arguments) {
  if (arguments.raw) return;
  std::error_code ignored;  // a path that cannot be examined fails when it is opened
  const bool is_directory = std::filesystem::is_directory(arguments.source_file, ignored);
  if (is_directory && !arguments.from && !std::filesystem::exists(arguments.source + "/" + manifest_name, ignored))
    throw_error(ErrorCode::bad_file,
                "directory '{}' holds no '{}' and no *.safetensors file; for a directory of parts (part-00000.npy, "
                "...), give their layout with --from",
                arguments.source, manifest_name);
  if (arguments.to.find('=') != std::string::npos && LayoutRules::parse(arguments.to))
    throw UsageError{fmt::format(
        "--to: rules apply to tensors, but '{}' holds one array: give a LAYOUT or a placement, '@ 4x1 : block, whole'",
        arguments.source)};
}

/// A placement applies to the array that --from describes, or to the source.
Layouts layouts_of(const ReshardArguments& arguments) {
  check_kind(arguments);
  const bool from_placed = arguments.from && is_placement(*arguments.from);
  // Finds errors in layout texts before it looks at any file.
  std::optional<ArraySpec> to, from;
  if (!is_placement(arguments.to)) to = layout_argument("--to", arguments.to);
  if (arguments.from && !from_placed) from = layout_argument("--from", *arguments.from);
  if (from_placed) {
    if (arguments.raw) throw UsageError{"--from: raw files have no header: give type and extents before the '@'"};
    from = placed_argument("--from", *arguments.from, inspect(arguments.source_file).value());
  }
  if (!to)
    to = from ? placed_argument("--to", arguments.to, *from,
                                arguments.raw ? 1 : elements_at(arguments.source_file, *from))
              : placed_argument("--to", arguments.to, inspect(arguments.source_file).value());
  return {std::move(from), std::move(*to)};
}

Json report_json(const ReshardArguments& arguments, const TensorReshardReport& report) {
  return {{"source", arguments.source},
          {"target", arguments.target},
          {"tensors", report.tensors},
          {"ranks", report.checksums.size()},
          {"bytes_read", report.bytes_read},
          {"bytes_written", report.bytes_written},
          {"duration_ns", report.duration_ns},
          {"verified", report.verified == Verify::yes},
          {"memory_bytes", report.memory_bytes},
          {"threads", report.threads},
          {"resumed_bytes", report.bytes_resumed},
          {"checksums", checksums_json(report.checksums)}};
}

using cli::report_text;  // the overload for one array
std::string report_text(const std::string& target, const TensorReshardReport& report) {
  return fmt::format("{}: {} in {}, {} read, {} written, {}{}in {}", printable(target),
                     counted(report.tensors, "tensor"), counted(static_cast<Index>(report.checksums.size()), "file"),
                     human_bytes(report.bytes_read), human_bytes(report.bytes_written - report.bytes_resumed),
                     report.bytes_resumed > 0 ? human_bytes(report.bytes_resumed) + " from an earlier run, " : "",
                     report.verified == Verify::yes ? "verified, " : "", human_duration(report.duration_ns));
}

/// Prints the result of a dry run, which fails if the disk is too full.
void show_forecast(const ReshardArguments& arguments, const Json& head, const std::string& what,
                   const ReshardForecast& forecast) {
  if (arguments.json) {
    Json out = head;
    out.update(forecast_json(forecast));
    out["dry_run"] = true;
    print_beside(arguments, document_text(out));
  } else if (!arguments.quiet) {
    const std::string text =
        fmt::format("{}: {}, nothing is written\n\n{}", printable(arguments.target), what, forecast_text(forecast));
    arguments.target == standard_stream ? print_note(text) : print(text);
  }
  if (forecast.disk_free_bytes && *forecast.disk_free_bytes < forecast.disk_bytes)
    throw_error(ErrorCode::io, "the disk is too full for '{}': needs {}, has {} free", arguments.target,
                amount(forecast.disk_bytes, "byte"), *forecast.disk_free_bytes);
}

/// Runs with a progress bar and returns the report, for an array and for tensors.
template <class Options, class Reshard>
std::string run_and_report(const ReshardArguments& arguments, Options options, Reshard&& reshard_all) {
  stop_on_interrupt();
  ProgressLine line(arguments.json || arguments.quiet ? ProgressLine::Place::nowhere : ProgressLine::standard_place());
  options.progress = [&line](const ReshardProgress& progress) {
    check_interrupted();
    line.show(progress);
  };
  const auto report = reshard_all(options);
  line.clear();
  if (arguments.json) return document_text(report_json(arguments, report));
  return arguments.quiet ? "" : fmt::format("{}\n", report_text(arguments.target, report));
}

std::string run_tensors(const ReshardArguments& arguments) {
  if (arguments.from) throw UsageError{"--from: tensors carry their types and extents: leave it out"};
  const Index memory_bytes = memory_argument(arguments.memory);
  std::optional<Index> shard_bytes_max;
  if (arguments.shard_size) shard_bytes_max = size_argument("--max-shard-size", *arguments.shard_size);
  const TensorReshardOptions options{.source = arguments.source_file,
                                     .target = arguments.target_file,
                                     .to = rules_argument("--to", arguments.to),
                                     .shard_bytes_max = shard_bytes_max,
                                     .verify = arguments.verify ? Verify::yes : Verify::no,
                                     .memory_bytes = memory_bytes,
                                     .threads = arguments.threads};
  if (!arguments.dry_run) return run_and_report(arguments, options, reshard_tensors);
  const TensorForecast forecast = forecast_tensors(options);
  show_forecast(arguments,
                {{"source", arguments.source},
                 {"target", arguments.target},
                 {"tensors", forecast.tensors},
                 {"ranks", forecast.ranks}},
                fmt::format("{} in {}", counted(forecast.tensors, "tensor"), counted(forecast.ranks, "file")),
                forecast.work);
  return {};
}

/// Returns the report that is printed when all is done.
std::string run_here(const ReshardArguments& arguments) {
  if (arguments.skip && !arguments.raw) throw UsageError{"--skip works only with --raw"};
  if (arguments.raw && !arguments.from)
    throw UsageError{"--raw needs --from with the type and extents of the elements"};
  if (!arguments.raw && names_tensors(arguments.source_file)) return run_tensors(arguments);
  if (arguments.shard_size) throw UsageError{"--max-shard-size applies to tensors, but SOURCE holds one array"};
  const Index memory_bytes = memory_argument(arguments.memory);
  std::optional<RawForm> raw;
  if (arguments.raw) raw = RawForm{.skip_bytes = arguments.skip ? size_argument("--skip", *arguments.skip) : 0};
  const Layouts layouts = layouts_of(arguments);
  const ReshardOptions options{
      .source = arguments.source_file,
      .target = arguments.target_file,
      .from = layouts.from,
      .to = layouts.to,
      .raw = raw,
      .verify = arguments.verify ? Verify::yes : Verify::no,
      .memory_bytes = memory_bytes,
      .threads = arguments.threads,
      .after_failure = arguments.target == standard_stream ? AfterFailure::leave_nothing : AfterFailure::keep_work};
  if (!arguments.dry_run) return run_and_report(arguments, options, reshard);
  const ArrayForecast forecast = forecast_reshard(options);
  show_forecast(arguments,
                {{"source", arguments.source},
                 {"target", arguments.target},
                 {"from", json_of(forecast.from)},
                 {"to", json_of(forecast.to)}},
                counted(forecast.work.parts, "part"), forecast.work);
  return {};
}

void run(ReshardArguments arguments) {
  std::optional<Spool> input, output;
  if (arguments.target == standard_stream && is_terminal(Stream::output) && !arguments.dry_run)
    throw UsageError{"TARGET: '-' is standard output, which is a terminal: redirect it to a file or a pipe"};
  // The spool must be removed on an interrupt.
  if (arguments.source == standard_stream || arguments.target == standard_stream) stop_on_interrupt();
  if (arguments.source == standard_stream) input.emplace();
  if (arguments.target == standard_stream) output.emplace();
  arguments.source_file = input ? input->path() : arguments.source;
  arguments.target_file = output ? output->path() : arguments.target;
  try {
    if (input) input->receive([] { check_interrupted(); });
    const std::string report = run_here(arguments);
    if (output && !arguments.dry_run) output->send([] { check_interrupted_output(); });
    print_beside(arguments, report);
  } catch (const Error& error) {
    const Error of_input = input ? input->renamed(error) : error;
    throw output ? output->renamed(of_input) : of_input;
  }
}

}  // namespace

std::string report_text(const std::string& target, const ReshardReport& report) {
  return fmt::format("{}: {}, {} read, {} written, {}{}in {}", printable(target), counted(report.parts_written, "part"),
                     human_bytes(report.bytes_read), human_bytes(report.bytes_written - report.bytes_resumed),
                     report.bytes_resumed > 0 ? human_bytes(report.bytes_resumed) + " from an earlier run, " : "",
                     report.verified == Verify::yes ? "verified, " : "", human_duration(report.duration_ns));
}

void add_reshard(CommandLine& line) {
  Command command = line.add("reshard", "Take an array in files to another layout");
  command.footer(
      R"help(TARGET appears complete or not at all: a failure leaves what was there. What a run that was killed or
interrupted has written, the same command goes on with. A directory of parts holds manifest.json and
part-00000.npy, ... by rank. A layout may leave out type and extents: "@ 4x1 : block, whole" is of the array that SOURCE
holds. Safetensors files, their indices and directories of ranks take rules by name: "PATTERN = PLACEMENT; ...", or
@FILE with one rule a line.

Examples:
  tranship reshard elevation.npy rows/ --to "i16[344,403] @ 4x1 : block, whole"
  tranship reshard rows/ tiles/ --to "i16[344,403] @ 2x2 : cyclic(64)+overlap(1,1), cyclic(64)+overlap(1,1)" --verify
  tranship reshard tiles/ back.npy --to "@ 1x1 : whole, whole"
  tranship reshard run.npz:pressure parts/ --to "@ 4x1 : block, whole"
  tranship reshard x.bin x.npy --raw --from "f32[100,200] @ 1x1 : whole, whole" --skip 512 --to "@ 1x1 : whole, whole"
  tranship reshard model/ tp4/ --to "**_proj.weight = @ 4x1 : block, whole; ** = replicated"
  tranship reshard tp4/ sharded/ --to "** = replicated" --max-shard-size 5GiB
  make-array | tranship reshard - - --to "@ 1x1 : whole, whole | order(1,0)" | use-array
  tranship reshard big.npy rows/ --to "@ 64x1 : block, whole" --dry-run
  tranship reshard parts/ whole.npy --from @parts.json --to @whole.json --json)help");
  auto arguments = std::make_shared<ReshardArguments>();
  command
      .positional("SOURCE", arguments->source,
                  "A .npy file, - for one on standard input, FILE.npz:MEMBER, a directory of parts, or safetensors")
      .required();
  command
      .positional(
          "TARGET", arguments->target,
          "A directory; FILE.npy, .npz, .npz:MEMBER, .bin, .raw or .safetensors for one part; - for a .npy file on "
          "standard output")
      .required();
  command.option("--to", arguments->to, "The layout that the array shall have; of tensors, rules")
      .required()
      .value_name("LAYOUT");
  command
      .option("--from", arguments->from, "The layout that it has: checked; needed for a directory without a manifest")
      .value_name("LAYOUT");
  command.flag("--raw", arguments->raw, "SOURCE is bare elements, as --from says");
  command.option("--skip", arguments->skip, "Bytes in front of bare elements").value_name("SIZE");
  command.flag("--dry-run", arguments->dry_run, "Check all, say what it would do and need, and write nothing");
  command.flag("--verify", arguments->verify, "Read the target back and compare it before it takes its place");
  command
      .option(
          "--memory", arguments->memory,
          "Memory for elements on their way: 64MiB, 1GiB, bytes; by default 256MiB, or less where less is available")
      .value_name("SIZE");
  command
      .option("--max-shard-size", arguments->shard_size,
              "Write whole tensors in shards of at most this size, with model.safetensors.index.json")
      .value_name("SIZE");
  command.option("--threads", arguments->threads, "Threads at work; by default one for each CPU, at most 8")
      .in_range(1, 1024);
  command.flag("--quiet", arguments->quiet, "No progress, and no line at the end");
  command.flag("--json", arguments->json, "Print JSON");
  command.runs([arguments] { run(*arguments); });
}

}  // namespace tranship::cli
