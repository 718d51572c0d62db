// Private: MappedWindow, a stretch of a file as memory, for bytes that lie too far apart for a system call each.
//
// Another process may shorten the file at any moment, and touching a lost page then raises SIGBUS. While windows exist,
// the process has a handler that replaces the window by zeros, and `check` reports it. Faults elsewhere go to the
// previous handler.
#pragma once

#include <cstddef>
#include <string>

#include <tranship/base/index.hpp>

namespace tranship {

/// Threads may read it concurrently.
class MappedWindow {
 public:
  MappedWindow() = default;
  MappedWindow(MappedWindow&& other) noexcept;
  MappedWindow& operator=(MappedWindow&& other) noexcept;
  ~MappedWindow();

  /// Maps the pages of a file that hold `size_bytes` from `offset_bytes` on. The descriptor is not needed afterwards.
  /// Throws `io`, and `no_memory` if there are too many windows at once.
  static MappedWindow map(int descriptor, const std::string& path, Index offset_bytes, Index size_bytes);

  bool covers(Index offset_bytes, Index size_bytes) const noexcept {
    return offset_bytes >= offset_ && offset_bytes + size_bytes <= offset_ + size_;
  }
  /// Returns the address of the byte at an offset of the file that the window covers.
  const std::byte* at(Index offset_bytes) const noexcept { return begin_ + (offset_bytes - offset_); }
  /// Throws `bad_file` if bytes that were read since the mapping were lost.
  void check() const;

 private:
  std::string path_;
  std::byte* begin_ = nullptr;
  Index offset_ = 0;
  Index size_ = 0;
  int slot_ = -1;  // in the table of the handler
};

}  // namespace tranship
