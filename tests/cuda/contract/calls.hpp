// The calls of a driver, as tests and benchmarks make them themselves.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include <tranship/cuda/software/all_calls.hpp>
#include <tranship/cuda/software/software_card.hpp>

namespace tranship::contract {

#define TRANSHIP_CONTRACT_TEXT_OF(expanded) #expanded
#define TRANSHIP_CONTRACT_NAME_OF(name) TRANSHIP_CONTRACT_TEXT_OF(name)

/// Fills a table from a driver's library, which stays loaded. Throws std::runtime_error with the calls that it lacks.
inline cuda::software::AllCalls calls_of(const char* library) {
  void* const driver = dlopen(library, RTLD_NOW);
  if (!driver) throw std::runtime_error(std::string("there is no driver: ") + dlerror());
  cuda::software::AllCalls calls;
  std::string missing;
#define TRANSHIP_DRIVER_CALL(name)                                                                     \
  calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(driver, TRANSHIP_CONTRACT_NAME_OF(name))); \
  if (!calls.name) missing += " " TRANSHIP_CONTRACT_NAME_OF(name);
#include <tranship/cuda/driver_calls.def>
#include <tranship/cuda/software/more_calls.def>
#undef TRANSHIP_DRIVER_CALL
  if (!missing.empty()) throw std::runtime_error("the driver has no" + missing);
  return calls;
}

/// The calls of the driver that TRANSHIP_CUDA chooses for this process.
inline const cuda::software::AllCalls& calls_of_this_process() {
  static const cuda::software::AllCalls all = [] {
    const char* const setting = std::getenv("TRANSHIP_CUDA");
    std::string_view text = setting ? setting : "";
    if (!text.starts_with("software")) return calls_of(text.empty() ? "libcuda.so.1" : setting);
    text.remove_prefix(std::string_view("software").size());
    if (text.starts_with(':')) text.remove_prefix(1);
    cuda::software::AllCalls calls;
    cuda::software::fill_calls(calls, cuda::software::software_cards(text));
    return calls;
  }();
  return all;
}

}  // namespace tranship::contract
