// Whole files as texts, read in one piece: files are compared thousands of times, in builds without optimization.
#pragma once

#include <string>

namespace tranship::test {

/// All bytes of the file at `path`. Throws std::runtime_error where it cannot be read.
std::string read_text(const std::string& path);
/// Replaces the file at `path`. Throws std::runtime_error where it cannot be written.
void write_text(const std::string& path, const std::string& text);

}  // namespace tranship::test
