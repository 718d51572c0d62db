#include "tranship/kernels/host/peer_writes.hpp"

#include <algorithm>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tranship {

#if defined(__x86_64__)
namespace {

// A plain store first takes its line from all caches that hold it. If another core has read the line, some CPUs do so
// one line at a time, much slower than streaming stores, which take none. If this core's cache holds the line, or
// another core wrote it, plain stores are faster. Only a trial can tell: the first sample of each stretch is stored
// plainly and, if that was slow, a second sample is streamed; the faster kind writes the rest.

/// Below this size the reader loses more by reading from memory than the writer gains.
constexpr long long sampled_bytes_min = 64 << 10;
/// How far samples are trusted: first this far, then twice as far each time that they do not change.
constexpr long long first_stretch_bytes = 128 << 10, stretch_bytes_max = 1 << 20;
/// A smaller sample would measure the latency of a store and not the throughput of many.
constexpr long long sample_bytes = write_sample_bytes;

/// Returns the ticks of a plain sample whose lines are in this core's own cache.
unsigned long long ticks_of_near_sample() {
  alignas(line_bytes) unsigned char source[sample_bytes] = {}, target[sample_bytes];
  unsigned long long least = ~0ULL;
  for (int i = 0; i < 16; ++i) {
    const StoreClock clock;
    write_row(target, source, sample_bytes, Stores::plain);
    least = std::min(least, clock.ticks());
  }
  return least;
}

}  // namespace

long long long_put_bytes_min() {
  return sampled_bytes_min;
}

void StoreClock::restart() noexcept {
  _mm_mfence();
  begin_ = __rdtsc();
}

unsigned long long StoreClock::ticks() const noexcept {
  _mm_mfence();
  return __rdtsc() - begin_;
}

void write_to_peer(const PeerWrite& what, WriteChoice& choice, FunctionRef<void(const WrittenPart&)> write) {
  static const unsigned long long near_ticks = ticks_of_near_sample();
  const auto slow_ticks = 4 * static_cast<unsigned long long>(what.rows) * near_ticks;
  long long at = 0;
  const auto sample = [&](Stores stores) {
    StoreClock clock;
    write({.begin = at, .bytes = sample_bytes, .stores = stores, .clock = &clock});
    at += sample_bytes;
    return clock.ticks();
  };
  bool has_streamed = false;
  while (at < what.bytes) {
    if (choice.believed_bytes < sample_bytes && what.bytes - at > 2 * sample_bytes) {
      const Stores before = std::exchange(choice.stores, Stores::plain);
      const unsigned long long ticks = sample(Stores::plain);
      // Lines that no cache holds must not count: plain stores bring them in, and the next copy finds them.
      if (ticks > slow_ticks &&
          what.times_faster * static_cast<double>(sample(Stores::streaming)) < static_cast<double>(ticks))
        choice.stores = Stores::streaming;
      const bool is_as_before = choice.stores == before && choice.stretch_bytes > 0;
      choice.stretch_bytes = is_as_before ? std::min(2 * choice.stretch_bytes, stretch_bytes_max) : first_stretch_bytes;
      choice.believed_bytes = choice.stretch_bytes;
    }
    // Writes all that is left if it is not worth another sample, else up to the beginning of a line.
    const long long left = what.bytes - at;
    const bool is_last = left < 2 * choice.believed_bytes || left <= 2 * sample_bytes;
    const long long part = is_last ? left : choice.believed_bytes / line_bytes * line_bytes;
    write({.begin = at, .bytes = part, .stores = choice.stores});
    has_streamed |= choice.stores == Stores::streaming;
    choice.believed_bytes = std::max<long long>(0, choice.believed_bytes - part);
    at += part;
  }
  if (has_streamed) _mm_sfence();
}

#else

long long long_put_bytes_min() {
  return 0;
}

void StoreClock::restart() noexcept {}

unsigned long long StoreClock::ticks() const noexcept {
  return 0;
}

void write_to_peer(const PeerWrite& what, WriteChoice&, FunctionRef<void(const WrittenPart&)> write) {
  write({.bytes = what.bytes});
}

#endif

void write_row(void* target, const void* source, long long bytes, Stores stores) {
  CopyMethod way = copy_method(bytes);
  way.stores = stores;
  row_copy(bytes, way)(Rows{.row_bytes = bytes}, source, target);
}

}  // namespace tranship
