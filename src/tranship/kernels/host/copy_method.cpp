#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <tranship/kernels/host/host_move.hpp>

namespace tranship {
namespace {

#if defined(__x86_64__)
/// Some compilers do not know the name of this feature.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

Simd simd_of_cpu() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && has_f16c() ? Simd::bytes32 : Simd::bytes16;
#else
  return Simd::bytes16;
#endif
}

/// Depends on the make: streaming stores halve the traffic, but Intel's server cores keep too few of them in flight to
/// gain.
Stores large_stores_of_cpu() {
#if defined(__x86_64__)
  if (const char* wanted = std::getenv("TRANSHIP_STORES"))
    for (const Stores stores : {Stores::plain, Stores::prefetched, Stores::streaming})
      if (std::strcmp(wanted, name_of(stores)) == 0) return stores;
  return __builtin_cpu_is("amd") ? Stores::streaming : Stores::prefetched;
#else
  return Stores::plain;
#endif
}

/// CPUs with fast strings of any length copy long ones without reading the target's lines first. CPUs that are fast
/// only at long strings have not been measured.
LongRows long_rows_of_cpu() {
#if defined(__x86_64__)
  constexpr unsigned fast_long_strings = 1u << 9, fast_short_strings = 1u << 4;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & fast_long_strings) != 0 && (d & fast_short_strings) != 0)
    return LongRows::string;
#endif
  return LongRows::vectors;
}

/// Reads the system's value; the processor's may be that of all sockets, or of the host of a virtual machine.
long long cache_bytes(const char* file_name, long long usual) {
  long long kibibytes = 0;
  if (std::FILE* file = std::fopen(file_name, "r")) {
    if (std::fscanf(file, "%lldK", &kibibytes) != 1) kibibytes = 0;
    std::fclose(file);
  }
  return kibibytes > 0 ? kibibytes * 1024 : usual;
}

}  // namespace

long long large_traffic_min() {
  // The last cache holds the data twice, as source and as target.
  static const long long bytes = cache_bytes("/sys/devices/system/cpu/cpu0/cache/index3/size", 32LL << 20) / 2;
  return bytes;
}

long long private_cache_bytes() {
  static const long long bytes = cache_bytes("/sys/devices/system/cpu/cpu0/cache/index2/size", 1LL << 20);
  return bytes;
}

CopyMethod copy_method(long long traffic_bytes) {
  static const Simd simd = simd_of_cpu();
  static const Stores large = large_stores_of_cpu();
  static const LongRows long_rows = long_rows_of_cpu();
  return {simd, traffic_bytes >= large_traffic_min() ? large : Stores::plain, long_rows};
}

const char* name_of(Simd simd) {
  return simd == Simd::bytes32 ? "AVX2" : "16 bytes";
}

const char* name_of(Stores stores) {
  switch (stores) {
    case Stores::plain:
      break;
    case Stores::prefetched:
      return "prefetched";
    case Stores::streaming:
      return "streaming";
  }
  return "plain";
}

const char* name_of(LongRows long_rows) {
  return long_rows == LongRows::string ? "rep movsb" : "vectors";
}

const char* name_of(BlockShape shape) {
  switch (shape) {
    case BlockShape::empty:
      return "empty";
    case BlockShape::rows:
      return "rows";
    case BlockShape::tiles:
      return "tiles";
    case BlockShape::elements:
      break;
  }
  return "elements";
}

}  // namespace tranship
