// Private: amounts as people read them, in tables, pictures and messages to the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tranship/base/index.hpp>

namespace tranship {

/// "1,234,567"
std::string grouped(Index value);
/// "999 B", "270.8 KiB"
std::string human_bytes(Index bytes);
/// "part" of 1, "parts" of others. The plural takes an s unless another one is given.
std::string plural(Index count, std::string_view one, std::string_view several = {});
/// "1 part", "2000 parts": for errors, whose numbers are digits alone.
std::string amount(Index count, std::string_view one, std::string_view several = {});
/// Sizes beyond 2^63 stay what they are.
template <class T>
requires(std::is_unsigned_v<T> && sizeof(T) == sizeof(Index))  //
    std::string amount(T count, std::string_view one, std::string_view several = {}) {
  return count <= T(INT64_MAX) ? amount(Index(count), one, several)
                               : std::to_string(count) + " " + plural(-1, one, several);
}
/// "1 part", "2,000 parts"
std::string counted(Index count, std::string_view one, std::string_view several = {});
/// "an allreduce", "a reducescatter": by the letter with which it begins.
std::string with_article(std::string_view what);

}  // namespace tranship
