// Private: formats amounts for people to read: in tables, pictures, and messages on the terminal.
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
/// Returns `one` if `count` is 1, else `several`, which by default is `one` with an "s".
std::string plural(Index count, std::string_view one, std::string_view several = {});
/// "1 part", "2000 parts": for errors, whose numbers have no commas.
std::string amount(Index count, std::string_view one, std::string_view several = {});
/// For unsigned numbers: a size above 2^63 does not turn negative.
template <class T>
requires(std::is_unsigned_v<T> && sizeof(T) == sizeof(Index))  //
    std::string amount(T count, std::string_view one, std::string_view several = {}) {
  return count <= T(INT64_MAX) ? amount(Index(count), one, several)
                               : std::to_string(count) + " " + plural(-1, one, several);
}
/// "1 part", "2,000 parts"
std::string counted(Index count, std::string_view one, std::string_view several = {});
/// "an allreduce", "a reducescatter": chooses the article by the first letter.
std::string with_article(std::string_view what);

}  // namespace tranship
