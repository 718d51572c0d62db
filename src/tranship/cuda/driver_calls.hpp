// Private: DriverCalls, the table of the driver's calls. It is filled from the driver's library at run time, so that
// one binary serves machines with and without a card, or by a double of the driver in this process.
#pragma once

#include <string>
#include <string_view>

#include <cuda.h>

namespace tranship::cuda {

/// Function pointers under the names of the calls, each of the type that cuda.h gives it. Plain: other code than
/// driver_calls.cpp may fill one.
struct DriverCalls {
#define TRANSHIP_DRIVER_CALL(name) decltype(&::name) name = nullptr;
#include <tranship/cuda/driver_calls.def>
#undef TRANSHIP_DRIVER_CALL
};

inline void* pointer_to(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's addresses are numbers
}

/// The driver of this process, or why there is none.
struct DriverFound {
  const DriverCalls* calls = nullptr;  ///< as long as the process
  std::string why_none;                ///< one line, empty where there are calls
  bool is_malformed = false;           ///< TRANSHIP_CUDA says what nothing understands
};

/// A double of the driver, chosen by its name in the environment variable TRANSHIP_CUDA: "software:2" chooses the one
/// that is called "software".
struct DriverDouble {
  std::string_view name;
  /// Fills the table; `setting` is what follows the colon, "2", or empty. Returns why it cannot; empty on success.
  /// Throws `bad_text` for a setting that it does not understand, with what it expects.
  std::string (*fill)(DriverCalls& calls, std::string_view setting) = nullptr;
};
/// To be called before any other thread runs, as initialisers of static variables are.
void register_double(const DriverDouble& one);

/// Loads the driver at the first call: libcuda.so.1, or what the environment variable TRANSHIP_CUDA names: a library
/// (by a path with a slash), a double, or "none". cuInit has been called with success. Thread-safe.
const DriverFound& driver();

}  // namespace tranship::cuda
