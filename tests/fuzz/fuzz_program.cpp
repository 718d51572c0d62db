// libFuzzer program for plan files of channel operations: any bytes are refused with an error, or keep the promises of
// program_check.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/program_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  const auto verdict = tranship::testing::check_program_text({reinterpret_cast<const char*>(bytes), count});
  if (!verdict.violation.empty()) {
    std::fprintf(stderr, "%s\n", verdict.violation.c_str());
    std::abort();
  }
  return 0;
}
