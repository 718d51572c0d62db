// The SVG of a layout, written as all files are: complete or not at all.
#pragma once

#include <string>

#include <tranship/layout/distribution.hpp>

namespace tranship::cli {

/// Replaces what is at `path`. Throws `io`, and `unsupported` for an indexed layout.
void write_picture(const std::string& path, const ArraySpec& spec);

}  // namespace tranship::cli
