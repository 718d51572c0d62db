// Traces: the exchanges and copies of this process as events of the Trace Event Format.
#include <map>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tranship/base/deadline.hpp>
#include <tranship/base/trace_events.hpp>
#include <tranship/memory/ledger_trace.hpp>
#include <tranship/run/exchange_log.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "leases.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

/// Records exchanges while it exists, and the time when it began.
struct Recording {
  ExchangeLog exchanges;
  std::int64_t begin_ns = now_ns();
};

/// Devices and the rank to which their copies belong, if any.
using RankDevices = std::pair<std::optional<Rank>, DevicesHandle>;

/// Traces number processes from 0; no world has as many ranks as this number.
constexpr std::int64_t process_of_no_rank = 1 << 20;

std::string events_of(const Recording& recording, const std::vector<RankDevices>& devices) {
  std::map<std::int64_t, std::vector<TraceSlice>> processes;
  for (const LoggedExchange& run : recording.exchanges.records()) append_slices(run, processes[run.rank]);
  for (const auto& [rank, of_rank] : devices)
    for (const CopyRecord& copy : of_rank->ledger().records())
      if (copy.begin_ns >= recording.begin_ns) processes[rank ? *rank : process_of_no_rank].push_back(slice_of(copy));
  Json events = Json::array();
  for (auto& [id, slices] : processes) {
    const std::string name = id == process_of_no_rank ? "devices of no rank" : fmt::format("rank {}", id);
    for (Json& event : trace_events({.id = id, .name = name}, std::move(slices)).items())
      events.push_back(std::move(event));
  }
  return events.dump({.invalid = InvalidUtf8::replace});
}

}  // namespace

void bind_traces(nb::module_& module) {
  nb::class_<Recording>(module, "Recording",
                        "Records the exchanges of this process until it is gone. There is one at a time.")
      .def(nb::init<>())
      .def(
          "events",
          [](const Recording& self, const std::vector<RankDevices>& devices) {
            return without_gil([&] { return events_of(self, devices); });
          },
          "devices"_a,
          "The events as a JSON array. Times are microseconds of the monotonic clock. `devices` are pairs of a rank, "
          "or\n"
          "None, and the devices whose copies belong to it.")
      .def_prop_ro("left_out", [](const Recording& self) { return self.exchanges.left_out(); })
      .def(
          "restart",
          [](Recording& self) {
            self.exchanges.clear();
            self.begin_ns = now_ns();
          },
          "Forgets what has been recorded: the child of a fork has not done it.");
}

}  // namespace tranship::python
