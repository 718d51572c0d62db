// Private: Guard closes the pages of a buffer's copy while no lease covers them, and reports code that touches them.
//
// Pages are closed while no lease is open on the copy, readable under read leases, and writable while a lease writes. A
// forbidden access is described on stderr; then the SIGSEGV handler that was installed before runs, which by default
// ends the program.
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
  /// Size of a block in which whole pages for `size_bytes` fit at any alignment.
  static std::size_t room_bytes(std::size_t size_bytes);
  /// Guards a copy in the memory of `device` and closes its pages, inside `room` of room_bytes(size_bytes). Reports
  /// count bytes and elements from the first byte.
  Guard(void* room, std::size_t size_bytes, int element_bytes, const std::string& buffer, Device device);
  /// Leaves the pages writable.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// The first guarded byte.
  void* data() const noexcept { return data_; }

  /// Enters a lease and sets the pages. Throws `no_memory` when the system refuses.
  void open(Intent intent, CallSite where);
  void close(Intent intent, CallSite where) noexcept;
  /// Opens the pages for the library's own work; calls nest. open() throws `no_memory`.
  void open();
  void close() noexcept;
  /// Records for reports that the buffer was written in another memory.
  void written_elsewhere(Device device, CallSite where) noexcept;

  struct Record;

 private:
  struct Point {
    std::uint64_t number = 0;  ///< orders the points; 0: it has not happened
    CallSite where{"", 0};
  };
  enum class Pages : std::uint8_t { closed, readable, writable };
  [[nodiscard]] bool set_pages() noexcept;
  void describe() noexcept;

  std::byte* data_;
  std::size_t pages_bytes_;
  Record& record_;

  std::mutex mutex_;  // guards all members below
  Pages pages_ = Pages::writable;
  int own_ = 0;                   // pieces of the library's own work that are open
  std::vector<CallSite> reads_;   // open read leases
  std::vector<CallSite> writes_;  // open leases that write
  std::uint64_t points_ = 0;
  Point last_lease_, last_write_, last_elsewhere_;
  Device elsewhere_;
};

/// Lets the library itself touch guarded pages while the object lives. A null guard is allowed.
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
