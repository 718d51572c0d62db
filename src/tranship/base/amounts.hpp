// Private: amounts as people read them, in tables, pictures and messages to the terminal.
#pragma once

#include <string>
#include <string_view>

#include <tranship/base/index.hpp>

namespace tranship {

/// "1,234,567"
std::string grouped(Index value);
/// "999 B", "270.8 KiB"
std::string human_bytes(Index bytes);
/// "1 part", "2 parts": the plural takes an s.
std::string counted(Index count, std::string_view what);

}  // namespace tranship
