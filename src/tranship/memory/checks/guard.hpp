// Private: Guard, pages of a buffer's copy that can be touched under a lease alone, and the report of who else does.
//
// Pages are closed while no lease is open on the copy, readable while there are leases to read, and writable while one
// writes. Code that breaks that is named on stderr, and the program then ends as one that has touched a forbidden page:
// the handler of SIGSEGV that was there before has the next word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/device.hpp>
#include <tranship/memory/intent.hpp>

namespace tranship::detail {

/// Thread-safe: several buffers may share one copy.
class Guard {
 public:
  /// What a block must have, so that whole pages for `size_bytes` lie in it.
  static std::size_t room_bytes(std::size_t size_bytes);
  /// Closes the pages in `room`, which has room_bytes(size_bytes), for a copy of `device`'s memory. Reports count bytes
  /// and elements from the first byte.
  Guard(void* room, std::size_t size_bytes, int element_bytes, const std::string& buffer, Device device);
  /// They can be written again.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// The first byte.
  void* data() const noexcept { return data_; }

  /// Throws `no_memory` when the system refuses.
  void open(Intent intent, CallSite where);
  void close(Intent intent, CallSite where) noexcept;
  /// For the library's own work.
  void open();
  void close() noexcept;
  /// The buffer has been written in another memory.
  void written_elsewhere(Device device, CallSite where) noexcept;

  struct Record;

 private:
  struct Point {
    std::uint64_t number = 0;  ///< by which points are ordered; 0: it has not happened
    CallSite where{"", 0};
  };
  enum class Pages : std::uint8_t { closed, readable, writable };
  [[nodiscard]] bool set_pages() noexcept;
  void describe() noexcept;

  std::byte* data_;
  std::size_t pages_bytes_;
  Record& record_;

  std::mutex mutex_;  // guards all that follows
  Pages pages_ = Pages::writable;
  int own_ = 0;                   // pieces of the library's own work
  std::vector<CallSite> reads_;   // leases that are open
  std::vector<CallSite> writes_;  // the same, of those that write
  std::uint64_t points_ = 0;
  Point last_lease_, last_write_, last_elsewhere_;
  Device elsewhere_;
};

/// While one exists, the library itself may touch what is guarded. Null: nothing is.
class OwnAccess {
 public:
  explicit OwnAccess(Guard* guard) : guard_(guard) {
    if (guard_) guard_->open();
  }
  ~OwnAccess() {
    if (guard_) guard_->close();
  }
  OwnAccess(const OwnAccess&) = delete;
  OwnAccess& operator=(const OwnAccess&) = delete;

 private:
  Guard* guard_;
};

}  // namespace tranship::detail
