// Private: Writes to memory that another core may have read. Samples decide which kind of stores is faster there.
// Measurements are in docs/copying.md.
#pragma once

#include <tranship/base/function_ref.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace tranship {

/// Returns the row size from which on a write to a peer is worth samples; 0 on CPUs with one kind of stores.
long long long_put_bytes_min();
inline bool is_long_put(long long bytes) {
  const long long least = long_put_bytes_min();
  return least > 0 && bytes >= least;
}

/// Measures the time until stores are visible to all.
class StoreClock {
 public:
  StoreClock() noexcept { restart(); }

  /// Starts the clock once all earlier stores are visible.
  void restart() noexcept;
  /// Returns the ticks of the CPU's clock since the start.
  unsigned long long ticks() const noexcept;

 private:
  unsigned long long begin_ = 0;
};

/// The result of the last samples for pieces that one caller writes, and how long it is trusted.
struct WriteChoice {
  Stores stores = Stores::plain;
  long long believed_bytes = 0;  ///< bytes to write before the next samples; the last part may be longer
  long long stretch_bytes = 0;   ///< bytes between the last two samples
};

struct WrittenPart {
  long long begin = 0, bytes = 0;
  Stores stores = Stores::plain;  ///< plain or streaming
  /// Not null for a sample. A writer that computes first restarts the clock before it stores.
  StoreClock* clock = nullptr;
};

/// Describes a write for write_to_peer().
struct PeerWrite {
  long long bytes = 0;
  int rows = 1;  ///< number of rows of `bytes` bytes, each stored to another place
  /// Streaming stores are chosen if they are more than this many times as fast as plain ones. A caller that waits for
  /// the peer's read needs a larger factor, because the peer then reads from memory.
  double times_faster = 1.5;
};

/// Calls `write` for a contiguous piece, part by part in order. Each part but the last is a whole number of cache
/// lines. Samples of 8 KiB are stored plainly and, if that is slow, streamed; the faster kind writes the rest. The
/// stores are ordered before the caller's later stores.
void write_to_peer(const PeerWrite& what, WriteChoice& choice, FunctionRef<void(const WrittenPart&)> write);
constexpr long long write_sample_bytes = 8192;

/// Writes one row of at least one byte with the stores of a part; write_to_peer() orders them.
void write_row(void* target, const void* source, long long bytes, Stores stores);

}  // namespace tranship
