// Private: The forecast of a reshard, what it would do and need, as a table and as JSON.
#pragma once

#include <string>

#include <tranship/file/reshard.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship::cli {

std::string forecast_text(const ReshardForecast& forecast);
/// Returns one object, without the facts about source and target.
Json forecast_json(const ReshardForecast& forecast);

}  // namespace tranship::cli
