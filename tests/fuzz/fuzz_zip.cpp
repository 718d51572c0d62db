// libFuzzer program for zip archives: any bytes are refused with an error or keep the promises of zip_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/zip_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict = tranship::testing::check_zip(std::as_bytes(std::span(bytes, count)), tranship::read_zip_member);
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
