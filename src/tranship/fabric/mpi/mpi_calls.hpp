// Detail: what MpiModule is for the MPI whose <mpi.h> is included here: compiled once for each ABI as a module, and by
// programs that include <tranship/mpi.hpp>, with theirs.
#pragma once

#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>

#include <mpi.h>

#include <tranship/fabric/mpi/mpi_module.hpp>

namespace tranship::detail::mpi {

#if defined(OPEN_MPI)
inline constexpr const char* abi = "Open MPI";
#elif defined(MPICH_VERSION) || defined(I_MPI_VERSION)
inline constexpr const char* abi = "MPICH";
#else
inline constexpr const char* abi = "the MPI standard";
#endif

template <class Handle>
MpiHandle bits_of(const Handle& handle) {
  static_assert(sizeof handle <= sizeof(MpiHandle));
  MpiHandle bits = 0;
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}
template <class Handle>
Handle of_bits(MpiHandle bits) {
  Handle handle;
  std::memcpy(&handle, &bits, sizeof handle);
  return handle;
}
inline MPI_Comm comm_of(MpiHandle bits) {
  return of_bits<MPI_Comm>(bits);
}

/// Calls `f` with a handle that stands in `bits` before and after.
template <class Handle, class F>
int with_handle(MpiHandle* bits, F&& f) {
  auto handle = of_bits<Handle>(*bits);
  const int code = f(&handle);
  *bits = bits_of(handle);
  return code;
}
template <class F>
int make_request(MpiHandle* request, F&& f) {
  *request = bits_of(MPI_REQUEST_NULL);
  return with_handle<MPI_Request>(request, f);
}

inline MpiModule::State state() {
  int is = 0;
  MPI_Finalized(&is);
  if (is) return MpiModule::State::finalised;
  MPI_Initialized(&is);
  return is ? MpiModule::State::running : MpiModule::State::before;
}

inline MpiThreads threads() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return MpiThreads::multiple;
  if (level == MPI_THREAD_SERIALIZED) return MpiThreads::serialized;
  return level == MPI_THREAD_FUNNELED ? MpiThreads::funneled : MpiThreads::single;
}

inline bool is_main_thread() {
  int is_main = 0;
  MPI_Is_thread_main(&is_main);
  return is_main != 0;
}

inline int initialise(MpiThreads wanted) {
  constexpr int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  int provided = 0;
  return MPI_Init_thread(nullptr, nullptr, levels[int(wanted)], &provided);
}

inline void error_text(int code, char* text, std::size_t size) {
  char said[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, said, &length) != MPI_SUCCESS) std::snprintf(said, sizeof said, "code %d", code);
  std::snprintf(text, size, "%s", said);
}

inline void library_version(char* text, std::size_t size) {
  char said[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(said, &length);
  said[std::strcspn(said, "\n")] = 0;
  for (char& c : said)
    if (c == '\t') c = ' ';
  std::snprintf(text, size, "%s", said);
}

inline int highest_tag(MpiHandle comm, int* out) {
  void* value = nullptr;
  int is_set = 0;
  const int code = MPI_Comm_get_attr(comm_of(comm), MPI_TAG_UB, &value, &is_set);
  *out = code == MPI_SUCCESS && is_set ? *static_cast<int*>(value) : 32767;
  return code;
}

inline int duplicate(MpiHandle from, MpiHandle* comm, MpiHandle* request) {
  // MPI writes the handle when the request completes, so it has a place of its own until then.
  static_assert(sizeof(MPI_Comm) <= sizeof(MpiHandle) && alignof(MPI_Comm) <= alignof(MpiHandle));
  *comm = bits_of(MPI_COMM_NULL);
  return make_request(request, [&](MPI_Request* made) {
    return MPI_Comm_idup(comm_of(from), reinterpret_cast<MPI_Comm*>(comm), made);
  });
}

inline int free_comm(MpiHandle bits) {
  MPI_Comm comm = comm_of(bits);
  return MPI_Comm_free(&comm);
}

inline int split(MpiHandle from, int colour, int key, MpiHandle* comm) {
  *comm = bits_of(MPI_COMM_NULL);
  return with_handle<MPI_Comm>(comm, [&](MPI_Comm* made) {
    return MPI_Comm_split(comm_of(from), colour < 0 ? MPI_UNDEFINED : colour, key, made);
  });
}

inline int send(const void* data, int size_bytes, int to, int tag, MpiHandle comm, MpiHandle* request) {
  return make_request(
      request, [&](MPI_Request* made) { return MPI_Isend(data, size_bytes, MPI_BYTE, to, tag, comm_of(comm), made); });
}
inline int receive(void* data, int size_bytes, int from, int tag, MpiHandle comm, MpiHandle* request) {
  return make_request(request, [&](MPI_Request* made) {
    return MPI_Irecv(data, size_bytes, MPI_BYTE, from == MpiModule::any_source ? MPI_ANY_SOURCE : from, tag,
                     comm_of(comm), made);
  });
}

inline int test(MpiHandle* request, bool* is_complete, MpiModule::Arrival* arrival) {
  MPI_Status status;
  int is = 0;
  const int code = with_handle<MPI_Request>(request, [&](MPI_Request* made) { return MPI_Test(made, &is, &status); });
  *is_complete = is != 0;
  if (code != MPI_SUCCESS || !is || !arrival) return code;
  int count = 0;
  arrival->source = status.MPI_SOURCE;
  const int counted = MPI_Get_count(&status, MPI_BYTE, &count);
  arrival->size_bytes = count;
  return counted;
}

inline int withdraw(MpiHandle* request) {
  // MPI would end the job for a request that is complete.
  return with_handle<MPI_Request>(
      request, [](MPI_Request* made) { return *made == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Cancel(made); });
}

/// A function that MPI calls when it is being finalised; nothing is called once `call` is nullptr.
struct AtFinalise {
  void (*call)(void* with);
  void* with;
};

inline int drop_at_finalise(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<AtFinalise> hook(static_cast<AtFinalise*>(value));
  if (hook->call) hook->call(hook->with);
  return MPI_SUCCESS;
}

/// MPI-3.1, 8.7.1: MPI_Finalize begins with the attributes of MPI_COMM_SELF, the last one first.
inline int at_finalise(void (*call)(void*), void* with, int* key) {
  const int code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &drop_at_finalise, key, nullptr);
  if (code != MPI_SUCCESS) return code;
  auto hook = std::make_unique<AtFinalise>(AtFinalise{call, with});
  const int set = MPI_Comm_set_attr(MPI_COMM_SELF, *key, hook.get());
  if (set == MPI_SUCCESS) static_cast<void>(hook.release());
  return set;
}

inline int not_at_finalise(int key) {
  void* hook = nullptr;
  int is_set = 0;
  const int code = MPI_Comm_get_attr(MPI_COMM_SELF, key, &hook, &is_set);
  if (code != MPI_SUCCESS || !is_set) return code;
  static_cast<AtFinalise*>(hook)->call = nullptr;
  const int deleted = MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  return deleted == MPI_SUCCESS ? MPI_Comm_free_keyval(&key) : deleted;
}

inline constexpr MpiModule calls{
    .version = MpiModule::version_here,
    .abi = abi,
    .state = state,
    .threads = threads,
    .is_main_thread = is_main_thread,
    .initialise = initialise,
    .finalise = [] { return MPI_Finalize(); },
    .at_finalise = at_finalise,
    .not_at_finalise = not_at_finalise,
    .error_text = error_text,
    .library_version = library_version,
    .world = [] { return bits_of(MPI_COMM_WORLD); },
    .is_null = [](MpiHandle comm) { return comm_of(comm) == MPI_COMM_NULL; },
    .is_inter =
        [](MpiHandle comm, bool* out) {
          int is = 0;
          const int code = MPI_Comm_test_inter(comm_of(comm), &is);
          *out = is != 0;
          return code;
        },
    .rank = [](MpiHandle comm, int* out) { return MPI_Comm_rank(comm_of(comm), out); },
    .size = [](MpiHandle comm, int* out) { return MPI_Comm_size(comm_of(comm), out); },
    .highest_tag = highest_tag,
    .duplicate = duplicate,
    .return_errors = [](MpiHandle comm) { return MPI_Comm_set_errhandler(comm_of(comm), MPI_ERRORS_RETURN); },
    .free = free_comm,
    .all_gather =
        [](const void* mine, int size_bytes, void* all, MpiHandle comm, MpiHandle* request) {
          return make_request(request, [&](MPI_Request* made) {
            return MPI_Iallgather(mine, size_bytes, MPI_BYTE, all, size_bytes, MPI_BYTE, comm_of(comm), made);
          });
        },
    .split = split,
    .send = send,
    .receive = receive,
    .test = test,
    .withdraw = withdraw,
};

}  // namespace tranship::detail::mpi
