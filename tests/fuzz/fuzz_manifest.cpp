// libFuzzer program for manifests: any bytes are refused with an error or keep the promises of manifest_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/manifest_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict =
      tranship::testing::check_manifest({reinterpret_cast<const char*>(bytes), count}, tranship::format_manifest);
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
