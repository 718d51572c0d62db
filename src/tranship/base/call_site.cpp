#include "tranship/base/call_site.hpp"

#include <tranship/base/fail.hpp>
#include <tranship/base/user_place.hpp>

namespace tranship {

std::string to_string(CallSite where) {
  if (std::string place = user_place(where); !place.empty()) return place;
  return where.line > 0 ? fmt::format("{}:{}", where.file, where.line) : "an unknown place";
}

}  // namespace tranship
