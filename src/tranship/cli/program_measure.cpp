// `tranship measure`: measures the steps of programs on this machine, and writes the file that `predict` reads.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/program_argument.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/file/io/atomic_write.hpp>
#include <tranship/run/machine_trial.hpp>

namespace tranship::cli {
namespace {

constexpr const char* measure_footer = R"(Examples:
  tranship measure -o here.json
  tranship predict allreduce.json --machine here.json
  tranship run allreduce.json --bytes 1048576

Small programs run on all ranks at once, as 'tranship run' runs plans: signals, copies, puts, reads, reductions and
packets, from 4 KiB to 16 MiB. That takes less than a minute with 2 ranks. With --check, all ready algorithms are run,
too, from 64 KiB on, and what they take is compared with its predictions. Do it while the machine does nothing else.)";

struct MeasureOptions {
  std::string file;
  std::string ranks_as = "threads";
  std::optional<int> ranks;
  std::int64_t bytes_max = 16 << 20;
  bool force = false, check = false;
};

void check_replaceable(const MeasureOptions& options) {
  std::error_code ignored;
  if (options.file.empty() || options.force || !std::filesystem::exists(options.file, ignored)) return;
  try {
    read_machine(text_in_file("-o", options.file));
  } catch (const Error&) {
    throw_error(ErrorCode::invalid_use, "'{}' exists and does not describe a machine: --force replaces it",
                options.file);
  }
}

void write_text(const std::string& path, std::string_view text) {
  AtomicFile file = AtomicFile::create(path, static_cast<Index>(text.size())).value();
  std::transform(text.begin(), text.end(), file.bytes().begin(), [](char c) { return static_cast<std::byte>(c); });
  file.commit().value();
}

void report(const MeasureOptions& options, const MachineModel& machine, int ranks) {
  const std::string text = write_machine(machine);
  if (options.file.empty()) return print(text);
  write_text(options.file, text);
  const auto largest = [](const Rate& rate) { return rate.points().back().gb_per_s; };
  print_report(fmt::format(
      "{}: {} as {} on {}; a step {:.0f} ns, a signal {:.0f} ns, until it is seen {:.0f} ns, another rank on "
      "a core {:.0f} ns\nGB/s of each rank, large messages: copy {:.1f}, put {:.1f}, get {:.1f}\n",
      printable(options.file), counted(ranks, "rank"), options.ranks_as, counted(machine.cores_per_host, "core"),
      machine.step_ns, machine.memory.message_ns, machine.memory.latency_ns, machine.core_switch_ns,
      largest(machine.copy), largest(machine.memory.put), largest(machine.memory.get)));
}

/// Returns one row per algorithm and one column per size.
std::string checks_text(const std::vector<PredictionCheck>& checks) {
  constexpr double close = 0.3;
  std::vector<TextTable::Column> columns{{"predicted / measured"}};
  for (const PredictionCheck& one : checks) {
    if (one.algorithm != checks.front().algorithm) break;
    columns.push_back({human_bytes(one.input_bytes), Align::right});
  }
  TextTable table(columns);
  std::vector<std::string> row;
  Index compared = 0, right = 0;
  for (const PredictionCheck& one : checks) {
    if (row.empty()) row.emplace_back(one.algorithm);
    row.push_back(one.is_comparable ? fmt::format("{:.2f}", one.ratio()) : "-");
    if (row.size() == columns.size()) table.add(std::exchange(row, {}));
    if (!one.is_comparable) continue;
    ++compared;
    if (std::abs(one.ratio() - 1) <= close) ++right;
  }
  const std::string left_out =
      compared < std::ssize(checks) ? "; -: cores were not as far apart as usual while it was measured" : "";
  return fmt::format("{}{} of {} within {:.0f} %{}\n", table.text(), right, compared, 100 * close, left_out);
}

void measure(const MeasureOptions& options) {
  if (options.check && options.file.empty())
    throw UsageError{"--check prints the comparison: give a file for the machine with -o"};
  if (options.check && options.bytes_max < checked_bytes_min)
    throw UsageError{fmt::format("--check: predictions are compared from {} bytes on, and --bytes-max is {}",
                                 checked_bytes_min, options.bytes_max)};
  check_replaceable(options);
  const int cores = this_machine().cores, ranks = options.ranks.value_or(std::clamp(cores, 2, 8));
  const MachineTrial trial{.input_bytes_max = options.bytes_max};
  const MachineChecks checked = options.check ? MachineChecks::make : MachineChecks::leave_out;
  if (const Index needed = measured_bytes(ranks, trial, checked), available = available_memory_bytes();
      needed > available)
    throw_error(
        ErrorCode::no_memory,
        "{} with inputs of up to {} take about {} of memory, {} are available: --ranks and --bytes-max make it less",
        amount(ranks, "rank"), human_bytes(options.bytes_max), human_bytes(needed), human_bytes(available));
  const auto start = [&](int count, auto&& body) {
    options.ranks_as == "processes" ? launch_processes(count, body) : launch(count, body);
  };
  // Rank 0 reports, in whichever process it runs. The time of a core that switches between ranks is measured on
  // threads, whose results stay in this process.
  double core_switch_ns = 0;
  start(ranks, [&](World& world) {
    MeasuredMachine measured = measure_machine(world, trial, checked);
    MachineModel& machine = measured.model;
    if (world.rank() == 0) {
      launch(2 * cores, [&](World& crowd) {
        const double switch_ns = measure_core_switch_ns(crowd, machine);
        if (crowd.rank() == 0) core_switch_ns = switch_ns;
      });
      machine.core_switch_ns = core_switch_ns;
      report(options, machine, ranks);
      if (measured.unusual > 0)
        print_note(fmt::format("{} of {} were timed only while cores were nearer or farther than usual\n",
                               measured.unusual, amount(measured.timed, "program")));
      if (options.check) print_report(checks_text(measured.checks));
    }
    world.barrier();
  });
}

}  // namespace

void add_measure(CommandLine& line) {
  auto options = std::make_shared<MeasureOptions>();
  Command command = line.add("measure", "What this machine takes for the steps of programs, for predict");
  command.option("-o,--output", options->file, "Write the machine there instead of printing it")
      .value_name("FILE.json");
  command.flag("--force", options->force, "Let it replace any file, not only one that describes a machine");
  command.flag("--check", options->check, "Then compare predictions of all algorithms with what they take");
  command.option("--ranks", options->ranks, "How many ranks; without it, one for each core, 2 to 8")
      .value_name("N")
      .in_range(2, 1024);
  command.option("--bytes-max", options->bytes_max, "The largest input of a rank; larger ones are taken to be as fast")
      .in_range(1, input_bytes_max)
      .shows_default();
  command.option("--ranks-as", options->ranks_as, "What ranks are: threads or processes")
      .one_of({"threads", "processes"})
      .shows_default();
  command.footer(measure_footer);
  command.runs([options] { measure(*options); });
}

}  // namespace tranship::cli
