// Private: The result of a reshard in one line.
#pragma once

#include <string>

#include <tranship/file/reshard.hpp>

namespace tranship::cli {

/// Returns "tiles: 6 parts, 270.8 KiB read, 290.1 KiB written, verified, in 3.1 ms".
std::string report_text(const std::string& target, const ReshardReport& report);

}  // namespace tranship::cli
