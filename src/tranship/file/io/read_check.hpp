// Private: ReadCheck, the checksum of a stretch of a file from the pieces that are read anyway; what they leave out is
// read last.
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

/// The check of one stretch. Threads may add at once.
class ReadCheck {
 public:
  explicit ReadCheck(const Interval& stretch) : stretch_(stretch) {}

  /// These bytes of the file have been read, of which those count that lie in the stretch. Pieces that are too short to
  /// keep account of only count as a use of it.
  void add(Index offset_bytes, std::span<const std::byte> bytes);
  /// Something of it has been read in another way.
  void use();
  bool any_read() const noexcept { return any_read_; }
  /// The checksum of the stretch: `read(offset, bytes)` reads what no piece has had. To be called when no thread
  /// adds.
  std::uint32_t finish(FunctionRef<void(Index, std::span<std::byte>)> read);

 private:
  void add_contribution(Index offset_bytes, std::span<const std::byte> bytes);

  const Interval stretch_;
  std::mutex mutex_;  // guards what follows
  bool any_read_ = false;
  std::map<Index, Index> covered_;  // begin and end of stretches apart from each other
  std::uint32_t checksum_ = 0;      // what they contribute
};

}  // namespace tranship
