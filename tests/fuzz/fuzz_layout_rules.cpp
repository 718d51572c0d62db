// libFuzzer program for layout rules: any text is refused with an error or keeps the promises of
// layout_rules_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/layout_rules_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict = tranship::testing::check_layout_rules({reinterpret_cast<const char*>(bytes), count});
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
