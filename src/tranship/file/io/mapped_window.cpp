#include "tranship/file/io/mapped_window.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

#include <sys/mman.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {
namespace {

/// The begin of a free slot: no address is larger.
constexpr std::uintptr_t no_window = UINTPTR_MAX;

/// A window as the handler sees it; the handler takes no lock.
struct Slot {
  std::atomic<bool> is_taken{false};
  std::atomic<std::uintptr_t> begin{no_window};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> is_lost{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

std::array<Slot, 1024> slots;
struct sigaction handler_before;

/// Passes a fault to the handler that was there before.
void pass_on(int signal, siginfo_t* fault, void* context) {
  if (handler_before.sa_flags & SA_SIGINFO) return handler_before.sa_sigaction(signal, fault, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    return handler_before.sa_handler(signal);
  std::signal(signal, SIG_DFL);
  if (fault->si_code <= 0) ::raise(signal);  // it was sent; a page fault happens again when this returns
}

void handle(int signal, siginfo_t* fault, void* context) {
  const int error_number = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(fault->si_addr);
  for (Slot& slot : slots) {
    const std::uintptr_t begin = slot.begin.load(), end = slot.end.load();
    // Another thread may have given the slot to another window between the two loads.
    if (address < begin || address >= end || slot.begin.load() != begin) continue;
    slot.is_lost.store(true);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): atomic addresses are numbers.
    void* const zeros = ::mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = error_number;
    if (zeros != MAP_FAILED) return;
  }
  pass_on(signal, fault, context);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours = {};
    ours.sa_sigaction = &handle;
    ours.sa_flags = SA_SIGINFO;
    // Stores the previous handler before ours can run.
    if (::sigaction(SIGBUS, nullptr, &handler_before) != 0 || ::sigaction(SIGBUS, &ours, nullptr) != 0)
      throw_error(ErrorCode::internal, "cannot install a handler of SIGBUS: errno {}", errno);
  });
}

int free_slot() {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].is_taken.exchange(true)) return static_cast<int>(i);
  throw_error(ErrorCode::no_memory, "more than {} of files are mapped at once", amount(slots.size(), "window"));
}

}  // namespace

MappedWindow MappedWindow::map(int descriptor, const std::string& path, Index offset_bytes, Index size_bytes) {
  install_handler();
  MappedWindow out;
  const auto page = static_cast<Index>(page_bytes());
  out.path_ = path;
  out.offset_ = offset_bytes / page * page;
  out.slot_ = free_slot();
  const Index size = offset_bytes + size_bytes - out.offset_;
  void* const begin = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, descriptor, out.offset_);
  if (begin == MAP_FAILED) throw posix::io_error("map", path, errno);
  ::madvise(begin, static_cast<std::size_t>(size), MADV_RANDOM);  // a hint: do not fetch the pages around one
  out.begin_ = static_cast<std::byte*>(begin);
  out.size_ = size;
  Slot& slot = slots[static_cast<std::size_t>(out.slot_)];
  slot.is_lost = false;
  slot.begin = reinterpret_cast<std::uintptr_t>(begin);
  slot.end = reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::uintptr_t>(size);
  return out;
}

MappedWindow::MappedWindow(MappedWindow&& other) noexcept {
  *this = std::move(other);
}

MappedWindow& MappedWindow::operator=(MappedWindow&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(begin_, other.begin_);
  std::swap(offset_, other.offset_);
  std::swap(size_, other.size_);
  std::swap(slot_, other.slot_);
  return *this;
}

MappedWindow::~MappedWindow() {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  slot.end = 0;
  slot.begin = no_window;
  if (begin_) ::munmap(begin_, static_cast<std::size_t>(size_));
  slot.is_taken = false;
}

void MappedWindow::check() const {
  if (slot_ >= 0 && slots[static_cast<std::size_t>(slot_)].is_lost)
    throw_error(ErrorCode::bad_file, "'{}' became shorter while it was read, or its disk failed: bytes from {} to {}",
                path_, offset_, offset_ + size_);
}

}  // namespace tranship
