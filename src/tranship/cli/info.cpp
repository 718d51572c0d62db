#include <memory>

#include <tranship/base/fail.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/fabric/backends.hpp>

namespace tranship::cli {
namespace {

const char* state_of(const Backend& backend) {
  return backend.state == Backend::State::present ? "present" : "absent";
}

void print_json() {
  Json backends = Json::array();
  for (const Backend& backend : available_backends())
    backends.push_back({{"name", backend.name}, {"state", state_of(backend)}, {"note", backend.note}});
  print_document(Json{{"version", TRANSHIP_VERSION},
                      {"build", TRANSHIP_BUILD},
                      {"compiler", TRANSHIP_COMPILER},
                      {"backends", backends}});
}

void print_text() {
  std::string out = fmt::format("tranship {} ({}, {})\n\n", TRANSHIP_VERSION, TRANSHIP_BUILD, TRANSHIP_COMPILER);
  TextTable table({{"back-end"}, {"state"}, {""}});
  for (const Backend& backend : available_backends())
    table.add({std::string(backend.name), state_of(backend), std::string(backend.note)});
  print(out + table.text());
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "Version, build, and the back-ends: which are present, why others not");
  command->footer("Example:\n  tranship info --json");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] { *json ? print_json() : print_text(); });
}

}  // namespace tranship::cli
