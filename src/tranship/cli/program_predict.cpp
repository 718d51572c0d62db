// `tranship predict`: predicts how long a program takes on a machine that a file describes.

#include <cmath>
#include <memory>
#include <optional>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/program_argument.hpp>
#include <tranship/program/predict.hpp>
#include <tranship/view/program_text.hpp>

namespace tranship::cli {
namespace {

constexpr const char* predict_footer = R"(Examples:
  tranship predict allreduce.json --machine machines/node-with-switch.json
  tranship predict allreduce/ring --ranks 256 --machine machines/cluster.json --bytes 67108864
  tranship measure -o here.json && tranship predict allreduce.json --machine here.json --bytes 1048576

The program is replayed step by step with the latencies and rates of the machine; no bytes move. The critical path is
the chain of steps in which each waited for the one before. 'fixed' is the time of steps and messages whatever their
size, 'moving' that of bytes, and 'queued' that of waiting for links and cores that others use.)";

struct PredictOptions {
  ProgramArgument program;
  std::string machine;
  std::int64_t bytes = 0;
  bool json = false;
};

std::string share_text(double part_ns, const Prediction& one) {
  const double path_ns = one.latency_ns + one.bandwidth_ns + one.queued_ns;
  return fmt::format("{:.0f} %", path_ns > 0 ? 100 * part_ns / path_ns : 0);
}

Json json_of(const Prediction& one) {
  Json path = Json::array();
  for (const PathStretch& stretch : one.path)
    path.push_back({{"rank", stretch.rank},
                    {"block", stretch.block},
                    {"first_step", stretch.first},
                    {"last_step", stretch.last},
                    {"kinds", stretch.words},
                    {"executions", stretch.executions},
                    {"begin_ns", stretch.begin_ns},
                    {"end_ns", stretch.end_ns},
                    {"fixed_ns", stretch.latency_ns},
                    {"moving_ns", stretch.bandwidth_ns},
                    {"queued_ns", stretch.queued_ns}});
  return {{"input_bytes", one.input_bytes},
          {"duration_ns", one.duration_ns},
          {"fixed_ns", one.latency_ns},
          {"moving_ns", one.bandwidth_ns},
          {"queued_ns", one.queued_ns},
          {"executions", one.executions},
          {"path", path}};
}

std::string path_text(const Prediction& one) {
  constexpr std::size_t rows_max = 24;
  TextTable table({{"from", Align::right},
                   {"for", Align::right},
                   {"rank", Align::right},
                   {"block", Align::right},
                   {"steps"},
                   {"what"}});
  const auto ns = [](double value) { return human_duration(std::llround(value)); };
  for (std::size_t i = 0; i < one.path.size(); ++i) {
    if (one.path.size() > rows_max && i >= rows_max / 2 && i < one.path.size() - rows_max / 2) {
      if (i == rows_max / 2) table.add({"...", "", "", "", "", fmt::format("{} more", one.path.size() - rows_max)});
      continue;
    }
    const PathStretch& stretch = one.path[i];
    const std::string steps = stretch.block < 0               ? ""
                              : stretch.first == stretch.last ? fmt::format("{}", stretch.first)
                                                              : fmt::format("{} to {}", stretch.first, stretch.last);
    table.add({ns(stretch.begin_ns), ns(stretch.end_ns - stretch.begin_ns), fmt::format("{}", stretch.rank),
               stretch.block < 0 ? "" : fmt::format("{}", stretch.block), steps, stretch.words});
  }
  return table.text();
}

void predict_all(const PredictOptions& options) {
  const Program program = program_of(options.program);
  const MachineModel machine = read_argument("--machine", options.machine, read_machine);
  std::vector<Prediction> predictions;
  if (options.bytes > 0)
    predictions.push_back(predict(program, machine, options.bytes));
  else
    for (Index bytes = 1024; bytes <= 64 << 20; bytes *= 4) predictions.push_back(predict(program, machine, bytes));

  if (options.json) {
    Json sizes = Json::array();
    for (const Prediction& one : predictions) sizes.push_back(json_of(one));
    return print_document({{"name", program.name},
                           {"collective", program.collective},
                           {"ranks", program.ranks.size()},
                           {"machine", machine.name},
                           {"sizes", sizes}});
  }
  TextTable table({{"input", Align::right},
                   {"time", Align::right},
                   {"GB/s", Align::right},
                   {"fixed", Align::right},
                   {"moving", Align::right},
                   {"queued", Align::right}});
  for (const Prediction& one : predictions)
    table.add({human_bytes(one.input_bytes), human_duration(std::llround(one.duration_ns)),
               fmt::format("{:.2f}", one.duration_ns > 0 ? double(one.input_bytes) / one.duration_ns : 0),
               share_text(one.latency_ns, one), share_text(one.bandwidth_ns, one), share_text(one.queued_ns, one)});
  const Prediction& last = predictions.back();
  print(fmt::format("{} ({}): {}\non {}\n\n{}\ncritical path at {}:\n{}", printable(program.name),
                    printable(program.collective), sizes_text(program), printable(machine.name), table.text(),
                    human_bytes(last.input_bytes), path_text(last)));
}

}  // namespace

void add_predict(CommandLine& line) {
  auto options = std::make_shared<PredictOptions>();
  Command command = line.add("predict", "How long a program of channel operations takes on a machine");
  add_program_argument(command, options->program);
  command.option("--machine", options->machine, "A file that describes the machine").value_name("FILE").required();
  command.option("--bytes", options->bytes, "Size of each rank's input; without it, 1 KiB to 64 MiB")
      .in_range(1, replayed_bytes_max);
  command.flag("--json", options->json, "Print one JSON object");
  command.footer(predict_footer);
  command.runs([options] { predict_all(*options); });
}

}  // namespace tranship::cli
