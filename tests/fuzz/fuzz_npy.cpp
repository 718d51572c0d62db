// libFuzzer program for .npy headers: any bytes are refused with an error or keep the promises of npy_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/npy_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict =
      tranship::testing::check_npy(std::as_bytes(std::span(bytes, count)), tranship::format_npy_header);
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
