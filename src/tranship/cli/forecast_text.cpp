#include "tranship/cli/forecast_text.hpp"

#include <tranship/base/fail.hpp>
#include <tranship/cli/console.hpp>

namespace tranship::cli {

std::string forecast_text(const ReshardForecast& forecast) {
  TextTable table({{"in files"}, {""}});
  table.add({"files written", grouped(forecast.files)});
  table.add({"parts written", grouped(forecast.parts)});
  table.add({"messages, from part to part", grouped(forecast.messages)});
  table.add({"read from disks, at most", human_bytes(forecast.bytes_read)});
  table.add({"elements written", human_bytes(forecast.bytes_written)});
  if (forecast.intermediate_bytes > 0)
    table.add({"through an intermediate of", human_bytes(forecast.intermediate_bytes)});
  table.add({"memory", fmt::format("{}, {}", human_bytes(forecast.memory_bytes), counted(forecast.threads, "thread"))});
  table.add({"disk", forecast.disk_free_bytes ? fmt::format("{} needed, {} free", human_bytes(forecast.disk_bytes),
                                                            human_bytes(*forecast.disk_free_bytes))
                                              : human_bytes(forecast.disk_bytes) + " needed"});
  return table.text();
}

Json forecast_json(const ReshardForecast& forecast) {
  Json out = {{"files", forecast.files},
              {"parts", forecast.parts},
              {"messages", forecast.messages},
              {"bytes_read", forecast.bytes_read},
              {"bytes_written", forecast.bytes_written},
              {"intermediate_bytes", forecast.intermediate_bytes},
              {"memory_bytes", forecast.memory_bytes},
              {"threads", forecast.threads},
              {"disk_bytes", forecast.disk_bytes}};
  if (forecast.disk_free_bytes) out["disk_free_bytes"] = *forecast.disk_free_bytes;
  return out;
}

}  // namespace tranship::cli
