#include "tranship/cuda/driver_calls.hpp"

#include <cstdlib>
#include <vector>

#include <dlfcn.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

#define TRANSHIP_TEXT_OF(expanded) #expanded
#define TRANSHIP_NAME_OF(name) TRANSHIP_TEXT_OF(name)

namespace tranship::cuda {
namespace {

std::vector<DriverDouble>& doubles() {
  static auto& all = *new std::vector<DriverDouble>;
  return all;
}

/// Why a library cannot be the driver; empty on success. It stays loaded.
std::string load(DriverCalls& calls, const char* library) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!loaded)
    return fmt::format("there is no CUDA driver: {}{}", dlerror(),
                       doubles().empty() ? "" : "; for tests, TRANSHIP_CUDA can ask for software cards");
  std::string_view missing;
#define TRANSHIP_DRIVER_CALL(name)                                                            \
  calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(loaded, TRANSHIP_NAME_OF(name))); \
  if (!calls.name && missing.empty()) missing = TRANSHIP_NAME_OF(name);
#include <tranship/cuda/driver_calls.def>
#undef TRANSHIP_DRIVER_CALL
  if (missing.empty()) return {};
  if (!calls.cuInit || !calls.cuDriverGetVersion)
    return fmt::format("{} is no CUDA driver: it has no {}", library, missing);
  int version = 0;
  calls.cuDriverGetVersion(&version);
  return fmt::format("the CUDA driver is too old: it is of CUDA {}.{} and has no {}; tranship is built with CUDA {}.{}",
                     version / 1000, version % 1000 / 10, missing, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}

std::string fill(DriverCalls& calls, std::string_view setting) {
  if (setting == "none") return "TRANSHIP_CUDA is none";
  if (setting.empty()) return load(calls, "libcuda.so.1");
  if (setting.find('/') != std::string_view::npos) return load(calls, std::string(setting).c_str());
  const std::string_view name = setting.substr(0, setting.find(':'));
  std::vector<std::string_view> names;
  for (const DriverDouble& one : doubles()) {
    if (one.name == name)
      return one.fill(calls, name.size() == setting.size() ? std::string_view() : setting.substr(name.size() + 1));
    names.push_back(one.name);
  }
  throw_error(ErrorCode::bad_text, "TRANSHIP_CUDA is '{}'; it must be none{}{}, or the path of a driver, with a slash",
              printable(setting), names.empty() ? "" : ", ", join_text(names, ", "));
}

DriverFound find_driver() {
  static auto& calls = *new DriverCalls;
  const char* const setting = std::getenv("TRANSHIP_CUDA");
  std::string why;
  try {
    why = fill(calls, setting ? setting : "");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_text) throw;
    return {nullptr, error.message(), true};
  }
  if (!why.empty()) return {nullptr, std::move(why)};
  if (const CUresult result = calls.cuInit(0); result != CUDA_SUCCESS) {
    const char *name = nullptr, *text = nullptr;
    calls.cuGetErrorName(result, &name);
    calls.cuGetErrorString(result, &text);
    return {nullptr, fmt::format("the CUDA driver does not start: {} ({})", name ? name : "an unknown error",
                                 text ? text : "no text")};
  }
  return {&calls, {}};
}

}  // namespace

void register_double(const DriverDouble& one) {
  doubles().push_back(one);
}

const DriverFound& driver() {
  static const auto& found = *new DriverFound(find_driver());
  return found;
}

}  // namespace tranship::cuda
