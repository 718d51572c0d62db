// Private: Parsers for the settings of a world, in the environment and as options of the command. `name` is the
// setting, for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tranship {

/// Parses a positive number of seconds, or "off" for no timeout (INT64_MAX); returns nanoseconds. Throws `bad_text`.
std::int64_t timeout_ns_of(const std::string& name, const std::string& text);

/// Parses a positive size with an optional suffix K, M, G or T. Throws `bad_text`.
std::size_t heap_bytes_of(const std::string& name, const std::string& text);

/// Parses the maximum number of teams, within the limits of TeamSlots. Throws `bad_text`.
int teams_of(const std::string& name, const std::string& text);

}  // namespace tranship
