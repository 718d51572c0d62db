// `tranship check` and `tranship run`: prove and execute programs of channel operations.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/program_argument.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/mscclpp_limits.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/run/program_trial.hpp>

namespace tranship::cli {
namespace {

constexpr const char* check_footer = R"(Examples:
  tranship check allreduce.json
  tranship check allreduce/ring --ranks 64 --json
  tranship check allreduce.json --for mscclpp

A PLAN is an execution plan of MSCCL++, in its present format or that of releases up to 0.7. Proved are: that it ends,
that no two accesses to the same memory are unordered, also from one launch to the next, and that every output is what
the collective promises. What the executor of MSCCL++ would not run, or does not promise, is said below, and decides
with --for mscclpp. Exit code: 0 when all of that is so, 1 when not, 2 when PLAN describes no program.)";

constexpr const char* run_footer = R"(Examples:
  tranship run allreduce.json
  tranship run allreduce/copies --ranks 2
  tranship run allreduce.json --ranks-as processes --bytes 1048576 --dtype bf16 --op max --iterations 100

The plan is checked first, and --bytes must lie in the range of message sizes that it states. A message is the input of
a rank or, for an allgather, its output, which has --bytes times the number of ranks. The ranks are threads or processes
of this machine, or simulated; each fills its input, runs the program, and compares its output with what the collective
promises. The time of a launch is the time of its slowest rank.)";

/// Values of `--dtype`: NumPy's names and those of layout texts.
constexpr std::pair<std::string_view, ElementType> types_by_name[] = {
    {"int8", ElementType::i8},       {"int16", ElementType::i16},   {"int32", ElementType::i32},
    {"int64", ElementType::i64},     {"uint8", ElementType::u8},    {"uint16", ElementType::u16},
    {"uint32", ElementType::u32},    {"uint64", ElementType::u64},  {"float16", ElementType::f16},
    {"bfloat16", ElementType::bf16}, {"float32", ElementType::f32}, {"float64", ElementType::f64},
};

ElementType type_argument(std::string_view name) {
  for (const auto& [numpy_name, type] : types_by_name)
    if (name == numpy_name || name == name_of(type)) return type;
  std::string short_names, long_names;
  for (const auto& [numpy_name, type] : types_by_name) {
    short_names += fmt::format("{}, ", name_of(type));
    long_names += fmt::format("{}{}", long_names.empty() ? "" : ", ", numpy_name);
  }
  throw UsageError{fmt::format("--dtype: unknown element type '{}': needs one of {}or {}; numbers count bits",
                               printable(name), short_names, long_names)};
}

std::string kinds_text(const Program& program) {
  std::size_t blocks = 0;
  for (const RankProgram& rank : program.ranks) blocks += rank.blocks.size();
  return fmt::format("{}, {}, {}", counted(Index(program.ranks.size()), "rank"),
                     counted(static_cast<Index>(blocks), "thread block"), counted(count_steps(program), "step"));
}

struct CheckOptions {
  ProgramArgument program;
  std::optional<std::string> executor;
  bool json = false;
};

std::string remark_on_keys(const Program& program) {
  if (program.unknown_keys.empty()) return {};
  const std::size_t more = program.unknown_keys.size() - 1;
  return fmt::format("the key {} is not known here, and what it asks for is left out{}\n",
                     path_of(program.unknown_keys.front()), more == 0 ? "" : fmt::format("; {} more are not", more));
}

void check(const CheckOptions& options) {
  const Program program = program_of(options.program);
  const Verification said = verify(program);
  const std::vector<std::string> objections = mscclpp_objections(program);
  if (options.json) {
    Json findings = Json::array();
    const auto add = [&](const Finding& finding) {
      findings.push_back({{"kind", name_of(finding.kind)},
                          {"rank", finding.rank},
                          {"block", finding.block},
                          {"step", finding.step},
                          {"text", finding.text}});
    };
    for (const Finding& finding : said.findings) add(finding);
    for (const Finding& finding : said.why_meeting) add(finding);
    Json unknown_keys = Json::array();
    for (const UnknownKey& one : program.unknown_keys) unknown_keys.push_back(path_of(one));
    print_document({{"name", program.name},
                    {"collective", program.collective},
                    {"ranks", program.ranks.size()},
                    {"steps", count_steps(program)},
                    {"unknown_keys", unknown_keys},
                    {"right", said.is_right()},
                    {"result_known", said.knows_result},
                    {"needs_meeting", said.needs_meeting},
                    {"found", said.found},
                    {"findings", findings},
                    {"mscclpp_objections", objections}});
  } else {
    std::string out = fmt::format("{} ({}): {}\n{}{}", printable(program.name), printable(program.collective),
                                  kinds_text(program), remark_on_keys(program), said.text());
    for (const std::string& one : objections) out += fmt::format("the executor of MSCCL++: {}\n", one);
    if (options.executor && objections.empty()) out += "the executor of MSCCL++: runs it, and promises what it needs\n";
    print(out);
  }
  if (!said.is_right() || (options.executor && !objections.empty())) throw ProgramFailed{1};
}

struct RunOptions {
  ProgramArgument program;
  std::string ranks_as = "threads";
  std::int64_t bytes = 65536;
  std::string type = "f32";
  std::optional<std::string> reduction;
  int launches = 20;
  bool json = false;
};

std::optional<Reduction> reduction_argument(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  if (*word == "sum") return Reduction::sum;
  if (*word == "prod") return Reduction::product;
  return *word == "min" ? Reduction::minimum : Reduction::maximum;
}

void report(const Program& program, const RunOptions& options, const ProgramTrial& trial, ProgramTrialResult result) {
  std::sort(result.launches_ns.begin(), result.launches_ns.end());
  const std::int64_t median_ns = result.launches_ns[result.launches_ns.size() / 2];
  const Index bytes = trial.elements * size_bytes(trial.program.type);
  const auto ranks = static_cast<Index>(program.ranks.size());
  if (options.json)
    return print_document({{"name", program.name},
                           {"collective", program.collective},
                           {"ranks", ranks},
                           {"ranks_as", options.ranks_as},
                           {"dtype", name_of(trial.program.type)},
                           {"input_bytes", bytes},
                           {"iterations", trial.launches},
                           {"compared_elements", result.compared},
                           {"median_ns", median_ns},
                           {"least_ns", result.launches_ns.front()}});
  std::string out =
      fmt::format("{}: {} as {}, {} of {} each\n{}", printable(program.name), counted(ranks, "rank"), options.ranks_as,
                  human_bytes(bytes), name_of(trial.program.type), remark_on_keys(program));
  out += result.compared > 0 ? fmt::format("right: {} compared on rank 0\n", counted(result.compared, "element"))
                             : "no result to compare: nothing is known of this collective\n";
  if (options.ranks_as != "sim")
    out += fmt::format("median of {}: {}, {:.2f} GB/s of input\n", amount(trial.launches, "launch", "launches"),
                       human_duration(median_ns), static_cast<double>(bytes) / static_cast<double>(median_ns));
  print(out);
}

void run(const RunOptions& options) {
  const Program program = program_of(options.program);
  const ElementType type = type_argument(options.type);
  const Index width = size_bytes(type), ranks = static_cast<Index>(program.ranks.size());
  const Index elements = input_elements(program, options.bytes, width);
  if (const Result<void> fits = attempt([&] { require_message(program, elements * width); }); !fits)
    throw UsageError{fmt::format("--bytes: {}", fits.error().message())};
  const ProgramTrial trial{.program = {.type = type, .reduction = reduction_argument(options.reduction)},
                           .elements = elements,
                           .launches = options.launches};

  // Rank 0 reports, in whichever process it runs.
  const auto body = [&](World& world) {
    const ProgramTrialResult result = try_program(world, program, trial);
    if (world.rank() == 0) report(program, options, trial, result);
  };
  if (options.ranks_as == "sim")
    simulate({.ranks = int(ranks)}, body);
  else if (options.ranks_as == "processes")
    launch_processes(int(ranks), body);
  else
    launch(int(ranks), body);
}

}  // namespace

void add_check(CommandLine& line) {
  auto options = std::make_shared<CheckOptions>();
  Command command = line.add("check", "Prove a program of channel operations");
  add_program_argument(command, options->program);
  command.option("--for", options->executor, "Fail, too, where the executor of MSCCL++ would").one_of({"mscclpp"});
  command.flag("--json", options->json, "Print one JSON object");
  command.footer(check_footer);
  command.runs([options] { check(*options); });
}

void add_run(CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
  Command command = line.add("run", "Run a program of channel operations, and compare what comes out");
  add_program_argument(command, options->program);
  command.option("--ranks-as", options->ranks_as, "What ranks are: threads, processes or sim")
      .one_of({"threads", "processes", "sim"})
      .shows_default();
  command
      .option("--bytes", options->bytes,
              "Size of the largest input of a rank, also for an allgather; rounded to whole elements, as many in each "
              "of its parts")
      .in_range(1, input_bytes_max)
      .shows_default();
  command.option("--dtype", options->type, "The type of the elements, such as f32 or float32")
      .value_name("TYPE")
      .shows_default();
  command.option("--op", options->reduction, "Combine by this instead of what the plan says")
      .one_of({"sum", "prod", "min", "max"});
  command.option("--iterations", options->launches, "How many launches").positive().shows_default();
  command.flag("--json", options->json, "Print one JSON object");
  command.footer(run_footer);
  command.runs([options] { run(*options); });
}

}  // namespace tranship::cli
