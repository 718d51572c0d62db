// Packets are small pieces of data that carry a flag beside them, so that a reader that finds the flag has the data and
// needs no fence. LL8 is {data 4, flag 4}; LL16 is two of those, moved by one instruction; LL128 is a line of 128 bytes
// that eight lanes move together, with the flag in its last 8. This header also has what the sources of this program
// share: 16-byte loads and stores of each kind, waits that give up, and launches whose blocks all run at once. Read
// next: main.cu.
#pragma once

#include <type_traits>

#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {

/// Each part of the program has its own source.
void packet_hops(const Options& options);
void packet_streams(const Options& options);
void packet_reductions(const Options& options);
void port_channels(const Options& options);
void host_memory(const Options& options);
void step_lists(const Options& options);
void block_barriers(const Options& options);
void cluster_hops(const Options& options);

using Vector = ulonglong2;  // 16 bytes in registers

enum class Access { plain_v4, volatile_v4, relaxed_sys_v2, relaxed_sys_b128, relaxed_gpu_b128 };

inline const char* words_of(Access access) {
  switch (access) {
    case Access::plain_v4:
      return "plain .v4.u32";
    case Access::volatile_v4:
      return ".volatile.v4.u32";
    case Access::relaxed_sys_v2:
      return ".relaxed.sys.v2.u64";
    case Access::relaxed_sys_b128:
      return ".relaxed.sys.b128";
    case Access::relaxed_gpu_b128:
      return ".relaxed.gpu.b128";
  }
  return "";
}

template <Access access>
__device__ inline void store16(Vector* at, Vector v) {
  if constexpr (access == Access::plain_v4 || access == Access::volatile_v4) {
    const unsigned a = unsigned(v.x), b = unsigned(v.x >> 32), c = unsigned(v.y), d = unsigned(v.y >> 32);
    if constexpr (access == Access::plain_v4)
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    else
      asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(a), "r"(b), "r"(c), "r"(d)
                   : "memory");
  } else if constexpr (access == Access::relaxed_sys_v2) {
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(v.x), "l"(v.y) : "memory");
  } else if constexpr (access == Access::relaxed_sys_b128) {
    asm volatile("{\n .reg .b128 t;\n mov.b128 t, {%1, %2};\n st.relaxed.sys.global.b128 [%0], t;\n}" ::"l"(at),
                 "l"(v.x), "l"(v.y)
                 : "memory");
  } else {
    asm volatile("{\n .reg .b128 t;\n mov.b128 t, {%1, %2};\n st.relaxed.gpu.global.b128 [%0], t;\n}" ::"l"(at),
                 "l"(v.x), "l"(v.y)
                 : "memory");
  }
}

template <Access access>
__device__ inline Vector load16(const Vector* at) {
  Vector v;
  if constexpr (access == Access::plain_v4 || access == Access::volatile_v4) {
    unsigned a, b, c, d;
    if constexpr (access == Access::plain_v4)
      asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "l"(at)
                   : "memory");
    else
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "l"(at)
                   : "memory");
    v = {Word(b) << 32 | a, Word(d) << 32 | c};
  } else if constexpr (access == Access::relaxed_sys_v2) {
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(at) : "memory");
  } else if constexpr (access == Access::relaxed_sys_b128) {
    asm volatile("{\n .reg .b128 t;\n ld.relaxed.sys.global.b128 t, [%2];\n mov.b128 {%0, %1}, t;\n}"
                 : "=l"(v.x), "=l"(v.y)
                 : "l"(at)
                 : "memory");
  } else {
    asm volatile("{\n .reg .b128 t;\n ld.relaxed.gpu.global.b128 t, [%2];\n mov.b128 {%0, %1}, t;\n}"
                 : "=l"(v.x), "=l"(v.y)
                 : "l"(at)
                 : "memory");
  }
  return v;
}

/// Makes a packet of 8 bytes.
__device__ inline Word packet(unsigned data, unsigned flag) {
  return Word(flag) << 32 | data;
}
__device__ inline unsigned flag_of(Word packet) {
  return unsigned(packet >> 32);
}

/// A wait for packets gives up after this many looks at memory of the card: a third of a second or more.
constexpr int packet_looks_max = 1 << 19;

/// Looks until `ready()`. A lane that has once waited in vain looks only once from then on, so that a kernel of many
/// rounds ends soon after the first packet is lost.
template <class Ready>
__device__ inline void await_ready(bool& lost, const Ready& ready) {
  for (int looks = 0; !ready(); ++looks)
    if (lost || looks == packet_looks_max) {
      lost = true;
      return;
    }
}

/// Launches a kernel, and is refused unless all its blocks can run at once.
template <class... Arguments>
void launch_together(void (*kernel)(Arguments...), unsigned blocks, unsigned lanes, cudaStream_t stream,
                     std::type_identity_t<Arguments>... arguments) {
  void* pointers[] = {&arguments...};
  TRANSHIP_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(lanes), pointers,
                                            0, stream));
}

inline std::string bytes_text(std::size_t bytes) {
  if (bytes >= std::size_t(1) << 20) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= std::size_t(1) << 10) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace tranship::device
