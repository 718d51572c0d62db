// libFuzzer program for indices of sharded checkpoints: any bytes are refused with an error or keep the promises of
// safetensors_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/safetensors_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict = tranship::testing::check_safetensors_index({reinterpret_cast<const char*>(bytes), count},
                                                                  tranship::format_safetensors_index);
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
