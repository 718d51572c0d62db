// Detail: MpiModule, what this library calls of an MPI, as a table of functions without a type of <mpi.h> in it.
//
// Each ABI of MPI has a module, a small shared library that is compiled with a header of that ABI and names no library
// that it needs: it is loaded after the MPI that it then calls. So one build of tranship serves every MPI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tranship {

/// The bits of a handle of MPI, of whatever size it is there.
using MpiHandle = std::uint64_t;

/// The levels of thread support of MPI, in its order.
enum class MpiThreads : std::int32_t { single, funneled, serialized, multiple };

struct MpiModule {
  static constexpr std::uint32_t version_here = 2;
  static constexpr int any_source = -1;

  enum class State : std::int32_t { before, running, finalised };
  struct Arrival {
    std::int32_t source = 0;
    std::int64_t size_bytes = 0;
  };

  std::uint32_t version;
  const char* abi;  ///< "Open MPI", "MPICH", "the MPI standard"

  State (*state)();
  MpiThreads (*threads)();
  /// Returns true on the thread that has initialised MPI.
  bool (*is_main_thread)();
  // All that follows returns 0, or a code for error_text.
  int (*initialise)(MpiThreads wanted);
  int (*finalise)();
  /// `call` is called at the beginning of MPI_Finalize, while MPI still works, unless `key` is given back before.
  int (*at_finalise)(void (*call)(void* with), void* with, int* key);
  int (*not_at_finalise)(int key);
  void (*error_text)(int code, char* text, std::size_t size);
  /// Writes the first line, cut to `size` bytes with the final 0.
  void (*library_version)(char* text, std::size_t size);

  MpiHandle (*world)();
  bool (*is_null)(MpiHandle comm);
  int (*is_inter)(MpiHandle comm, bool* out);
  int (*rank)(MpiHandle comm, int* out);
  int (*size)(MpiHandle comm, int* out);
  int (*highest_tag)(MpiHandle comm, int* out);
  /// Collective, without waiting: `comm`, which must stay where it is, is there once the request is complete.
  int (*duplicate)(MpiHandle from, MpiHandle* comm, MpiHandle* request);
  /// Makes calls with `comm` return errors instead of ending the job.
  int (*return_errors)(MpiHandle comm);
  int (*free)(MpiHandle comm);
  int (*all_gather)(const void* mine, int size_bytes, void* all, MpiHandle comm, MpiHandle* request);
  /// Collective and waits: for tests.
  int (*split)(MpiHandle from, int colour, int key, MpiHandle* comm);

  int (*send)(const void* data, int size_bytes, int to, int tag, MpiHandle comm, MpiHandle* request);
  int (*receive)(void* data, int size_bytes, int from, int tag, MpiHandle comm, MpiHandle* request);
  /// The request is gone once it is complete. `arrival` may be null.
  int (*test)(MpiHandle* request, bool* is_complete, Arrival* arrival);
  /// A receive that nothing is to come to any more, or that is complete. Its next test says whether it is complete: not
  /// while a message is on its way into its memory.
  int (*withdraw)(MpiHandle* request);
};

}  // namespace tranship

/// The function that a module exports.
extern "C" const tranship::MpiModule* tranship_mpi_module();
