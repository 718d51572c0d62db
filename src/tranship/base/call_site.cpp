#include "tranship/base/call_site.hpp"

#include <tranship/base/fail.hpp>

namespace tranship {

std::string to_string(CallSite where) {
  return where.line > 0 ? fmt::format("{}:{}", where.file, where.line) : "an unknown place";
}

}  // namespace tranship
