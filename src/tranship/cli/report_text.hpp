// Private: What a reshard did, in one line.
#pragma once

#include <string>

#include <tranship/file/reshard.hpp>

namespace tranship::cli {

/// "tiles: 6 parts, 270.8 KiB read, 290.1 KiB written, verified, in 3.1 ms"
std::string report_text(const std::string& target, const ReshardReport& report);

}  // namespace tranship::cli
