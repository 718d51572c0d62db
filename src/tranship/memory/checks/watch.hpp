// Private: Watch finds accesses that no lease covers. Slow, for debugging: every device is waited for.
//
// It writes poison (of floats a NaN) into copies that have become stale and into what a write lease has opened. It
// remembers a checksum of each copy, but for what open leases write, and compares it before the buffer is used and
// before the library itself changes the copy or gives it back. It closes the pages of copies on the host, see
// guard.hpp. Without Checks it remembers the copies alone for which pointers have been noted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tranship/memory/buffer.hpp>

namespace tranship::detail {

struct BufferCore;
class Guard;
class OwnAccess;

/// How a lease ends.
enum class Ending : std::uint8_t { committed, abandoned };

/// The element that stands for "this has not been written"; 16 bytes at most, repeated for wider ones.
struct Poison {
  explicit Poison(ElementType type);
  int width = 0;
  /// No program means this value. Integers of 1 and 2 bytes have none like that.
  bool is_told_apart = true;
  unsigned char bytes[16] = {};
};

/// A part of what the lock of the buffer guards. Its calls are made with all streams that touch the copy finished or
/// given before.
class Watch {
 public:
  Watch(BufferCore& buffer, Checks checks);

  /// The buffer has so many memories from now on.
  void know(std::size_t memories);
  /// Before the buffer is used; `use` says by what. Throws what was found, and `invalid_use` for the first copy that
  /// was changed without a lease.
  void before_use(const char* use, CallSite where);
  /// Before a copy is given back where there is no caller to throw to.
  void before_loss(MemoryId memory) noexcept;
  /// A lease has been opened, in slot `slot`.
  void opened(int slot);
  /// A lease is about to be closed; its commit follows.
  void closing(int slot, Stream& stream, Ending ending) noexcept;
  /// All that closing it changes is done.
  void closed(int slot, Ending ending) noexcept;
  /// A copy has been given back, or is another one.
  void forget(MemoryId memory);
  /// After the library itself has changed a copy.
  void remember(MemoryId memory);
  /// Pointers into a copy outlive its leases: it is remembered, whatever the Checks.
  void note_pointers(MemoryId memory);
  /// No pointers are left.
  void forget_pointers();
  /// The buffer is a duplicate of one that `other` watches.
  void take_over(const Watch& other);
  /// Throws what was found when there was no caller to throw to.
  void report();
  /// Whether copies in a memory are to have a Guard.
  bool guards(MemoryId memory) const;

  /// While one exists, the library's own work may touch all copies; its end waits for that work. Null: nothing happens.
  class OwnWork {
   public:
    explicit OwnWork(const Watch* watch);
    ~OwnWork();
    OwnWork(const OwnWork&) = delete;
    OwnWork& operator=(const OwnWork&) = delete;

   private:
    const Watch* watch_;
    std::vector<std::unique_ptr<OwnAccess>> opened_;
  };

 private:
  struct Seen {
    bool is_known = false;
    bool has_pointers = false;
    std::uint64_t sum = 0;
  };
  /// The cells of a copy that no open lease writes.
  Region at_rest(MemoryId memory) const;
  /// Whether a copy has stayed what it was; once it has not, it is unknown.
  bool is_unchanged(MemoryId memory);
  /// A change has been found: it is told once.
  void accept(MemoryId memory);
  std::string change_of(MemoryId memory, const std::string& use) const;
  void add_found(const std::string& text) noexcept;
  std::uint64_t sum_of(MemoryId memory, const Region& region) const;
  void fill(MemoryId memory, const Region& region) const;
  Index count_poison(MemoryId memory, const Region& region) const;
  Guard* guard_of(MemoryId memory) const;
  /// Whether there is a copy that this can read and write.
  bool sees(MemoryId memory) const;
  /// What f throws is found, but for the loss of a device, of which others tell.
  template <class F>
  void find(F f) noexcept;
  void check_closing(int slot, Stream& stream, Ending ending);
  void poison_stale(MemoryId memory, const Region& region);
  void close_pages(int slot) noexcept;
  template <class F>
  void at_once(MemoryId memory, F f) const;

  BufferCore& buffer_;
  Checks checks_;
  Poison poison_;
  std::vector<Seen> copies_;           // by memory
  std::vector<CallSite> last_closed_;  // by memory: the last lease there
  std::vector<std::uint64_t> lent_;    // by slot: of the region, when it was opened to be read
  std::string found_;
};

}  // namespace tranship::detail
