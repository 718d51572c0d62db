#include "tranship/memory/checks/guard.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/base/sync.hpp>

namespace tranship::detail {
namespace {

std::size_t whole_pages(std::size_t size_bytes) {
  return round_up(size_bytes, page_bytes());
}

/// Text in a fixed array, truncated to fit. The signal handler may read it.
class Note {
 public:
  template <class... Args>
  void set(fmt::format_string<Args...> format, Args&&... args) {
    size_ =
        std::min(fmt::format_to_n(text_.data(), text_.size(), format, std::forward<Args>(args)...).size, text_.size());
  }
  iovec piece() { return {text_.data(), size_}; }

 private:
  std::array<char, 512> text_;
  std::size_t size_ = 0;
};

}  // namespace

/// A guarded range as the signal handler sees it. Records are reused and never freed, so the handler can walk the list.
struct Guard::Record {
  std::atomic<std::uintptr_t> begin = 0, end = 0;  // end 0: unused
  std::atomic<int> element_bytes = 1;
  Record* next = nullptr;       // list of all records, set once
  Record* next_free = nullptr;  // free list, under the mutex of Records

  /// The lock of the notes. The handler may wait for it: code that holds it touches no guarded memory.
  std::atomic<bool> is_busy = false;
  Note buffer, size, open, legal_to_read, legal_to_write;

  void lock() noexcept {
    while (is_busy.exchange(true, std::memory_order_acquire)) RealSync::yield();
  }
  void unlock() noexcept { is_busy.store(false, std::memory_order_release); }
};

namespace {

std::atomic<Guard::Record*> all_records = nullptr;
struct sigaction handler_before;

/// A number as text, without allocation: "0x7f00", "40".
class Digits {
 public:
  Digits(std::uintptr_t number, int base) : size_(std::size_t(write(number, base) - text_.data())) {}
  iovec piece() { return {text_.data(), size_}; }

 private:
  char* write(std::uintptr_t number, int base) {
    return std::to_chars(text_.data(), text_.data() + text_.size(), number, base).ptr;
  }
  std::array<char, 24> text_;
  std::size_t size_;
};

iovec piece_of(const char* text) {
  return {const_cast<char*>(text), std::strlen(text)};
}

enum class Access : std::uint8_t { unknown, read, write };

Access access_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr unsigned long is_write = 2;  // bit of a page fault's error code
  const auto error = static_cast<unsigned long>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR]);
  return error & is_write ? Access::write : Access::read;
#else
  return Access::unknown;
#endif
}

void report(Guard::Record& record, std::uintptr_t address, Access access) {
  const std::uintptr_t offset = address - record.begin.load(std::memory_order_relaxed);
  const auto element_bytes = std::uintptr_t(record.element_bytes.load(std::memory_order_relaxed));
  Digits at(address, 16), byte(offset, 10), element(offset / element_bytes, 10);
  record.lock();
  std::array pieces{
      record.buffer.piece(),
      piece_of(access == Access::write  ? " was written through a pointer"
               : access == Access::read ? " was read through a pointer"
                                        : " was touched through a pointer"),
      piece_of(" that no lease covers\n  at 0x"),
      at.piece(),
      piece_of(", byte "),
      byte.piece(),
      piece_of(", element "),
      element.piece(),
      record.size.piece(),
      record.open.piece(),
      (access == Access::write ? record.legal_to_write : record.legal_to_read).piece(),
  };
  [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, pieces.data(), int(pieces.size()));
  record.unlock();
}

/// Passes a fault on as if there were no guards.
void pass_on(int signal, siginfo_t* fault, void* context) {
  const bool is_sent = fault->si_code <= 0;  // sent by a process, not raised by a page
  if (handler_before.sa_flags & SA_SIGINFO) return handler_before.sa_sigaction(signal, fault, context);
  if (handler_before.sa_handler == SIG_IGN && is_sent) return;
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    return handler_before.sa_handler(signal);
  std::signal(signal, SIG_DFL);
  // A page faults again when this returns.
  if (is_sent) ::raise(signal);
}

void handle(int signal, siginfo_t* fault, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(fault->si_addr);
  bool is_ours = false;
  if (fault->si_code == SEGV_ACCERR)
    for (Guard::Record* at = all_records.load(std::memory_order_acquire); at && !is_ours; at = at->next)
      if (address >= at->begin.load(std::memory_order_acquire) && address < at->end.load(std::memory_order_acquire)) {
        is_ours = true;
        report(*at, address, access_of(context));
      }
  pass_on(signal, fault, context);
  // A previous handler that returns would fault here for ever.
  if (is_ours) std::signal(signal, SIG_DFL);
}

struct Records {
  std::mutex mutex;
  Guard::Record* free = nullptr;
};

Records& records() {
  static Records* const all = [] {
    struct sigaction ours = {};
    ours.sa_sigaction = &handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    if (::sigaction(SIGSEGV, nullptr, &handler_before) != 0 || ::sigaction(SIGSEGV, &ours, nullptr) != 0)
      throw_error(ErrorCode::unsupported, "guards need a handler of SIGSEGV: {}", std::strerror(errno));
    return new Records;
  }();
  return *all;
}

Guard::Record& take_record() {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  if (Guard::Record* const used = all.free) {
    all.free = used->next_free;
    return *used;
  }
  auto* const fresh = new Guard::Record;
  fresh->next = all_records.load(std::memory_order_relaxed);
  all_records.store(fresh, std::memory_order_release);
  return *fresh;
}

void give_back(Guard::Record& record) {
  record.end.store(0, std::memory_order_release);
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  record.next_free = all.free;
  all.free = &record;
}

}  // namespace

std::size_t Guard::room_bytes(std::size_t size_bytes) {
  return whole_pages(size_bytes) + page_bytes();
}

Guard::Guard(void* room, std::size_t size_bytes, int element_bytes, const std::string& buffer, Device device)
    : data_(static_cast<std::byte*>(room) + (whole_pages(std::uintptr_t(room)) - std::uintptr_t(room))),
      pages_bytes_(whole_pages(size_bytes)),
      record_(take_record()) {
  record_.lock();
  record_.buffer.set("tranship: buffer '{:.200}' on {}", buffer, to_string(device));
  record_.size.set(", of {}\n", amount(size_bytes, "byte"));
  record_.unlock();
  record_.element_bytes.store(element_bytes, std::memory_order_relaxed);
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  record_.begin.store(begin, std::memory_order_release);
  record_.end.store(begin + pages_bytes_, std::memory_order_release);
  [[maybe_unused]] const bool is_closed = set_pages();
}

Guard::~Guard() {
  own_ = 1;
  [[maybe_unused]] const bool is_open = set_pages();
  give_back(record_);
}

void Guard::open(Intent intent, CallSite where) {
  const std::lock_guard lock(mutex_);
  (intent == Intent::read ? reads_ : writes_).push_back(where);
  if (!set_pages()) throw_error(ErrorCode::no_memory, "guarded pages cannot be opened: {}", std::strerror(errno));
}

void Guard::close(Intent intent, CallSite where) noexcept {
  const std::lock_guard lock(mutex_);
  auto& open = intent == Intent::read ? reads_ : writes_;
  const auto found = std::find_if(open.begin(), open.end(), [&](CallSite other) {
    return other.line == where.line && std::strcmp(other.file, where.file) == 0;
  });
  if (found != open.end()) open.erase(found);
  last_lease_ = {++points_, where};
  if (intent != Intent::read) last_write_ = last_lease_;
  // When the system refuses, the pages stay open and fewer errors are found.
  [[maybe_unused]] const bool is_closed = set_pages();
}

void Guard::open() {
  const std::lock_guard lock(mutex_);
  ++own_;
  if (set_pages()) return;
  --own_;
  throw_error(ErrorCode::no_memory, "guarded pages cannot be opened: {}", std::strerror(errno));
}

void Guard::close() noexcept {
  const std::lock_guard lock(mutex_);
  --own_;
  [[maybe_unused]] const bool is_closed = set_pages();
}

void Guard::written_elsewhere(Device device, CallSite where) noexcept {
  const std::lock_guard lock(mutex_);
  last_elsewhere_ = {++points_, where};
  elsewhere_ = device;
  describe();
}

bool Guard::set_pages() noexcept {
  describe();
  const Pages wanted = own_ > 0 || !writes_.empty() ? Pages::writable
                       : reads_.empty()             ? Pages::closed
                                                    : Pages::readable;
  if (wanted == pages_) return true;
  const int protection = wanted == Pages::writable   ? PROT_READ | PROT_WRITE
                         : wanted == Pages::readable ? PROT_READ
                                                     : PROT_NONE;
  if (::mprotect(data_, pages_bytes_, protection) != 0) return false;
  pages_ = wanted;
  return true;
}

void Guard::describe() noexcept {
  const auto legal = [&](Note& note, const Point& last, const char* what) {
    if (last.number == 0)
      note.set("  no lease has allowed it to be {} yet\n", what);
    else if (last_elsewhere_.number > last.number)
      note.set("  it was last legal under the lease of {}:{}; since then the buffer has been written on {} at {}:{}\n",
               last.where.file, last.where.line, to_string(elsewhere_), last_elsewhere_.where.file,
               last_elsewhere_.where.line);
    else
      note.set("  it was last legal under the lease of {}:{}; the buffer has not been written elsewhere since\n",
               last.where.file, last.where.line);
  };
  const std::lock_guard lock(record_);
  if (reads_.empty())
    record_.open.set("  no lease is open there\n");
  else
    record_.open.set("  only a lease to read is open there, from {}:{}\n", reads_.back().file, reads_.back().line);
  legal(record_.legal_to_read, last_lease_, "read");
  legal(record_.legal_to_write, last_write_, "written");
}

}  // namespace tranship::detail
