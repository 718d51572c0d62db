#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/mpi/mpi_process.hpp>
#include <tranship/fabric/seam/backends.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/memory/device/driver.hpp>

namespace tranship::cli {
namespace {

const char* state_of(const Backend& backend) {
  return backend.state == Backend::State::present ? "present" : "absent";
}

struct NamedDevices {
  std::string_view kind;
  DeviceFamilyState state;
};
std::vector<NamedDevices> devices_here() {
  std::vector<NamedDevices> out;
  for (const DeviceFamily& family : device_families())
    if (family.state) out.push_back({family.kind, family.state()});
  return out;
}

/// Returns one row per name: if ranks run there, and the number of devices for buffers.
std::string places_text() {
  TextTable table({{"back-end"}, {"ranks"}, {"devices"}, {""}});
  std::vector<NamedDevices> devices = devices_here();
  for (const Backend& backend : available_backends()) {
    const auto same =
        std::find_if(devices.begin(), devices.end(), [&](const NamedDevices& one) { return one.kind == backend.name; });
    std::string note(backend.note), count;
    if (same != devices.end()) {
      count = std::to_string(same->state.count);
      note += "; devices: " + same->state.note;
      devices.erase(same);
    } else if (backend.name == "cuda") {
      note += "; devices: not in this build";
    }
    table.add({std::string(backend.name), state_of(backend), count, note});
  }
  for (const NamedDevices& one : devices)
    table.add({std::string(one.kind), "", std::to_string(one.state.count), one.state.note});
  return table.text();
}

/// Returns rows about the MPI by which ranks of several machines meet: a word and its value.
std::vector<std::pair<std::string, std::string>> mpi_rows(const MpiFacts& mpi) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!mpi.why_none.empty()) {
    out.emplace_back("library", "none: " + mpi.why_none);
  } else {
    out.emplace_back("library", fmt::format("{} ({})", mpi.library, mpi.chosen));
    out.emplace_back("version", mpi.version);
    out.emplace_back("ABI", mpi.abi);
    out.emplace_back("threads", mpi.threads.empty() ? "MPI is not running: no launcher has started this process"
                                                    : fmt::format("{}, in a job of {}", mpi.threads,
                                                                  amount(mpi.processes, "process", "processes")));
  }
  for (const MpiModuleFile& module : mpi.modules)
    out.emplace_back("module",
                     fmt::format("{}: {}", module.abi,
                                 module.is_there ? module.file : module.file + " is missing: built without its mpi.h"));
  out.emplace_back("network", mpi.interfaces.empty()
                                  ? "no interface is up"
                                  : fmt::format("{} (MPI chooses)", join_text(mpi.interfaces, ", ")));
  return out;
}

/// Returns how data that no cache holds is moved.
CopyMethod large_way() {
  return copy_method(std::numeric_limits<long long>::max());
}

void print_json() {
  Json backends = Json::array();
  for (const Backend& backend : available_backends())
    backends.push_back({{"name", backend.name}, {"state", state_of(backend)}, {"note", backend.note}});
  Json devices = Json::array();
  for (const NamedDevices& one : devices_here())
    devices.push_back({{"kind", one.kind}, {"count", one.state.count}, {"note", one.state.note}});
  const Machine& machine = this_machine();
  const MpiFacts mpi = mpi_facts();
  Json modules = Json::array();
  for (const MpiModuleFile& module : mpi.modules)
    modules.push_back({{"abi", module.abi}, {"file", module.file}, {"is_there", module.is_there}});
  print_document(Json{{"version", TRANSHIP_VERSION},
                      {"build", TRANSHIP_BUILD},
                      {"compiler", TRANSHIP_COMPILER},
                      {"backends", backends},
                      {"devices", devices},
                      {"mpi",
                       {{"why_none", mpi.why_none},
                        {"library", mpi.library},
                        {"chosen", mpi.chosen},
                        {"version", mpi.version},
                        {"abi", mpi.abi},
                        {"threads", mpi.threads},
                        {"processes", mpi.processes},
                        {"modules", modules},
                        {"interfaces", mpi.interfaces}}},
                      {"machine",
                       {{"cores", machine.cores},
                        {"processing_units", machine.processing_units},
                        {"memory_nodes", machine.memory_nodes},
                        {"l1_bytes", machine.l1_bytes},
                        {"l2_bytes", machine.l2_bytes},
                        {"l3_bytes", machine.l3_bytes},
                        {"huge_pages", name_of(machine.huge_pages)}}},
                      {"pinning", name_of(resolved(Pinning::automatic))},
                      {"simd", name_of(large_way().simd)},
                      {"long_rows", name_of(large_way().long_rows)},
                      {"large_stores", name_of(large_way().stores)},
                      {"large_from_bytes", large_traffic_min()}});
}

void print_text() {
  const std::string out = fmt::format("tranship {} ({}, {})\n\n", TRANSHIP_VERSION, TRANSHIP_BUILD, TRANSHIP_COMPILER);
  const Machine& machine = this_machine();
  TextTable facts({{"machine"}, {""}});
  facts.add(
      {"cores", fmt::format("{}, with {}, on {}", machine.cores, amount(machine.processing_units, "hardware thread"),
                            amount(machine.memory_nodes, "memory node"))});
  facts.add({"caches", fmt::format("{}, {}, {}", human_bytes(machine.l1_bytes), human_bytes(machine.l2_bytes),
                                   human_bytes(machine.l3_bytes))});
  facts.add({"huge pages", name_of(machine.huge_pages)});
  facts.add({"ranks are pinned", fmt::format("{} (TRANSHIP_PIN)", name_of(resolved(Pinning::automatic)))});
  facts.add({"vectors", name_of(large_way().simd)});
  facts.add({"rows of 8 KiB and more", name_of(large_way().long_rows)});
  facts.add({"stores", fmt::format("plain below {}, then {} (TRANSHIP_STORES)", human_bytes(large_traffic_min()),
                                   name_of(large_way().stores))});
  TextTable mpi({{"mpi"}, {""}});
  for (const auto& [word, text] : mpi_rows(mpi_facts())) mpi.add({word, text});
  print(out + places_text() + "\n" + mpi.text() + "\n" + facts.text());
}

}  // namespace

void add_info(CommandLine& line) {
  Command command = line.add("info", "Version, build, and the back-ends: which are present, why others not");
  command.footer("Example:\n  tranship info --json");
  auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "Print JSON");
  command.runs([json] { *json ? print_json() : print_text(); });
}

}  // namespace tranship::cli
