// Private: What a reshard would do and need, as a table and as JSON.
#pragma once

#include <string>

#include <tranship/file/reshard.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship::cli {

std::string forecast_text(const ReshardForecast& forecast);
/// One object, without what is known of source and target.
Json forecast_json(const ReshardForecast& forecast);

}  // namespace tranship::cli
