// libFuzzer program for layout texts and layout JSON: any bytes are refused with an error or keep the promises of
// layout_text_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/layout_text_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict =
      tranship::testing::check_layout(std::string_view(reinterpret_cast<const char*>(bytes), count), tranship::to_text);
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
