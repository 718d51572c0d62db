// Private: Writes to memory that another core may have read, by the kind of stores that samples say is faster there.
// Measurements are in docs/copying.md.
#pragma once

#include <tranship/base/function_ref.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace tranship {

/// From so many bytes in a row on, a write to a peer is worth samples; 0 on CPUs with one kind of stores.
long long long_put_bytes_min();
inline bool is_long_put(long long bytes) {
  const long long least = long_put_bytes_min();
  return least > 0 && bytes >= least;
}

/// The time that stores take until all can see them.
class StoreClock {
 public:
  StoreClock() noexcept { restart(); }

  /// Once what was stored before can be seen.
  void restart() noexcept;
  /// Since then, of the CPU's own clock.
  unsigned long long ticks() const noexcept;

 private:
  unsigned long long begin_ = 0;
};

/// What the last samples have said of pieces that one caller writes, and how far that is believed.
struct WriteChoice {
  Stores stores = Stores::plain;
  long long believed_bytes = 0;  ///< that are written before the next samples; the last part may be longer
  long long stretch_bytes = 0;   ///< between the last two
};

struct WrittenPart {
  long long begin = 0, bytes = 0;
  Stores stores = Stores::plain;  ///< or streaming
  /// Set for a sample. Who computes first restarts the clock before it stores.
  StoreClock* clock = nullptr;
};

/// What write_to_peer() is told.
struct PeerWrite {
  long long bytes = 0;
  int rows = 1;  ///< of so many bytes that are stored, each to another place
  /// Streaming stores write where they are more than so many times as fast as plain ones. Who waits for the peer to
  /// read asks for more, since it then reads from memory.
  double times_faster = 1.5;
};

/// Calls `write` for all of a contiguous piece, part by part in order, each a whole number of cache lines but the last
/// one. Samples of 8 KiB are stored plainly and, where that is slow, streaming, and the faster kind writes what
/// follows. What was stored is ordered before what the caller stores afterwards.
void write_to_peer(const PeerWrite& what, WriteChoice& choice, FunctionRef<void(const WrittenPart&)> write);
constexpr long long write_sample_bytes = 8192;

/// One row of at least one byte, by the kind of stores that a part says; write_to_peer() orders them.
void write_row(void* target, const void* source, long long bytes, Stores stores);

}  // namespace tranship
