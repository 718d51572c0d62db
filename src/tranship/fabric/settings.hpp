// Private: How the settings of a world are written, in the environment and as options of the command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tranship {

/// Seconds, more than 0, or "off" for no end, in nanoseconds. Throws `bad_text`, in which `name` is what has the text.
std::int64_t timeout_ns_of(const std::string& name, const std::string& text);

/// Bytes, at least 1, perhaps with K, M, G or T. Throws likewise.
std::size_t heap_bytes_of(const std::string& name, const std::string& text);

/// How many teams can exist at a time, within the limits of TeamSlots. Throws `bad_text`.
int teams_of(const std::string& name, const std::string& text);

}  // namespace tranship
