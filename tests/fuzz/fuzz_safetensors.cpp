// libFuzzer program for safetensors headers: any bytes are refused with an error or keep the promises of
// safetensors_check.hpp. They are taken for a file, and for the JSON of a header with the right length in front.
#include <cstdio>
#include <cstdlib>

#include "fuzz/safetensors_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t count) {
  using namespace tranship::testing;
  const std::string front = safetensors_front({reinterpret_cast<const char*>(bytes), count});
  for (const auto& file :
       {std::as_bytes(std::span(bytes, count)), std::as_bytes(std::span(front.data(), front.size()))}) {
    const auto verdict = check_safetensors(file, tranship::format_safetensors_header);
    if (!verdict.violation.empty()) {
      std::fprintf(stderr, "%s\n", verdict.violation.c_str());
      std::abort();
    }
  }
  return 0;
}
