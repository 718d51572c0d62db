// Detail: Copies contiguous bytes by the lanes of a group.
#pragma once

#include <tranship/kernels/shared.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship::detail {

template <class T>
struct MutableType {
  using Type = T;
};
template <class T>
struct MutableType<const T> {
  using Type = T;
};
template <class T>
using Mutable = typename MutableType<T>::Type;

/// Holds a 16-byte word of a copy in registers.
struct CopiedPair {
  unsigned long long low, high;
};
/// A 16-byte word in memory. The compiler keeps no struct of this alignment in registers.
struct alignas(16) PlacedPair {
  unsigned long long low, high;
};
template <int width>
struct CopiedWordOf : WordOf<width> {};
template <>
struct CopiedWordOf<16> {
  using Type = CopiedPair;
};
template <int width>
using CopiedWord = typename CopiedWordOf<width>::Type;

// These load and store aligned words. The type must tell a device that they are aligned: after a few calls its compiler
// forgets what was assumed of an address and moves the word byte by byte.
template <int width>
TRANSHIP_SHARED inline CopiedWord<width> load_copied(const void* from) {
#if defined(__CUDA_ARCH__)
  if constexpr (width == 16) {
    const PlacedPair pair = *static_cast<const PlacedPair*>(from);
    return {pair.low, pair.high};
  } else {
    return *static_cast<const CopiedWord<width>*>(from);
  }
#else
  CopiedWord<width> word;
  copy_bytes(&word, __builtin_assume_aligned(from, width), width);
  return word;
#endif
}
template <int width>
TRANSHIP_SHARED inline void store_copied(void* to, CopiedWord<width> word) {
#if defined(__CUDA_ARCH__)
  if constexpr (width == 16)
    *static_cast<PlacedPair*>(to) = {word.low, word.high};
  else
    *static_cast<CopiedWord<width>*>(to) = word;
#else
  copy_bytes(__builtin_assume_aligned(to, width), &word, width);
#endif
}

/// Copies every lanes-th of `count` words, beginning with number `lane`. A lane reads several words before it writes
/// the first, because each separate read costs the latency of memory: with eight words, a block of 256 lanes puts 1 MiB
/// within an H200 at 47 GB/s, and with one word at 21 GB/s (docs/gpu-facts.md).
template <int width>
TRANSHIP_SHARED inline void copy_words(int lane, int lanes, unsigned char* to, const unsigned char* from,
                                       unsigned long long count) {
  constexpr int ahead = 8;
  const auto step = static_cast<unsigned long long>(lanes);
  unsigned long long i = lane;
  for (; i + (ahead - 1) * step < count; i += ahead * step) {
    CopiedWord<width> words[ahead];
    TRANSHIP_UNROLL
    for (int k = 0; k < ahead; ++k) words[k] = load_copied<width>(from + (i + k * step) * width);
    TRANSHIP_UNROLL
    for (int k = 0; k < ahead; ++k) store_copied<width>(to + (i + k * step) * width, words[k]);
  }
  for (; i < count; i += step) store_copied<width>(to + i * width, load_copied<width>(from + i * width));
}

// These copy the share of one lane when all lanes together copy `bytes` bytes.

/// For lanes that run side by side and should access adjacent memory: copies the widest words that are aligned in both
/// source and target, and single bytes before the first and after the last word.
TRANSHIP_SHARED inline void copy_interleaved(int lane, int lanes, void* target, const void* source,
                                             unsigned long long bytes) {
  auto* to = static_cast<unsigned char*>(target);
  const auto* from = static_cast<const unsigned char*>(source);
  const auto place = reinterpret_cast<unsigned long long>(to);
  const auto apart = place ^ reinterpret_cast<unsigned long long>(from);
  // Uses only shifts and masks: a device divides 64-bit numbers by a function of a hundred instructions.
  const int shift = apart % 16 == 0 ? 4 : apart % 8 == 0 ? 3 : apart % 4 == 0 ? 2 : apart % 2 == 0 ? 1 : 0;
  const unsigned long long width = 1ull << shift;
  unsigned long long head = (0 - place) & (width - 1);
  if (head > bytes) head = bytes;
  const unsigned long long words = (bytes - head) >> shift, tail = head + (words << shift);
  copy_words<1>(lane, lanes, to, from, head);
  if (width == 16) copy_words<16>(lane, lanes, to + head, from + head, words);
  if (width == 8) copy_words<8>(lane, lanes, to + head, from + head, words);
  if (width == 4) copy_words<4>(lane, lanes, to + head, from + head, words);
  if (width == 2) copy_words<2>(lane, lanes, to + head, from + head, words);
  if (width == 1) copy_words<1>(lane, lanes, to + head, from + head, words);
  copy_words<1>(lane, lanes, to + tail, from + tail, bytes - tail);
}

/// For lanes that run one after the other, each of which should access memory in long rows.
TRANSHIP_SHARED inline void copy_in_runs(int lane, int lanes, void* target, const void* source,
                                         unsigned long long bytes) {
  constexpr unsigned long long run = 1 << 16;
  for (unsigned long long first = lane * run; first < bytes; first += lanes * run)
    copy_bytes(static_cast<unsigned char*>(target) + first, static_cast<const unsigned char*>(source) + first,
               bytes - first < run ? bytes - first : run);
}

}  // namespace tranship::detail
