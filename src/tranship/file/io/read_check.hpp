// Private: ReadCheck, which computes the checksum of a stretch of a file from pieces that are read anyway, and reads
// the rest at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// The check of one stretch. Threads may add concurrently.
class ReadCheck {
 public:
  explicit ReadCheck(const Interval& stretch) : stretch_(stretch) {}

  /// Adds bytes of the file that were read; those in the stretch count. Pieces that are too short to record only mark
  /// the stretch as used.
  void add(Index offset_bytes, std::span<const std::byte> bytes);
  /// Marks the stretch as used by another way of reading.
  void use();
  bool any_read() const noexcept { return any_read_; }
  /// Returns the checksum of the stretch; `read(offset, bytes)` reads the bytes that no piece had. Call it when no
  /// thread adds.
  std::uint32_t finish(FunctionRef<void(Index, std::span<std::byte>)> read);

 private:
  void add_contribution(Index offset_bytes, std::span<const std::byte> bytes);

  const Interval stretch_;
  std::mutex mutex_;  // guards the members below
  bool any_read_ = false;
  std::map<Index, Index> covered_;  // begin and end of disjoint stretches
  std::uint32_t checksum_ = 0;      // their contribution
};

}  // namespace tranship
