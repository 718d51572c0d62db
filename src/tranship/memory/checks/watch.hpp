// Private: Watch finds accesses that no lease covers. It is slow, since it waits for every device: for debugging.
//
// It writes poison (NaN for floats) into stale cells and into what a write lease opens. It keeps a checksum of each
// copy, without the cells that open leases write, and compares it before the buffer is used and before the library
// itself changes the copy or gives it back. It closes the pages of copies on the host (guard.hpp). Without Checks it
// keeps checksums only of copies for which pointers have been noted.
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

/// The element that marks cells as unwritten; at most 16 bytes, repeated for wider elements.
struct Poison {
  explicit Poison(ElementType type);
  int width = 0;
  /// False for integers of 1 and 2 bytes: a program may mean each of their values.
  bool is_told_apart = true;
  unsigned char bytes[16] = {};
};

/// Guarded by the lock of the buffer. At each call, all streams that touch the copy have finished, or their work was
/// enqueued before.
class Watch {
 public:
  Watch(BufferCore& buffer, Checks checks);

  /// Sets the number of memories that the buffer knows.
  void know(std::size_t memories);
  /// Call before each use of the buffer; `use` names it for messages. Throws `invalid_use` for pending findings, and
  /// for the first copy that was changed without a lease.
  void before_use(const char* use, CallSite where);
  /// Call before a copy is given back in a call that cannot throw; keeps a finding for later.
  void before_loss(MemoryId memory) noexcept;
  /// Call after a lease has been opened in `slot`.
  void opened(int slot);
  /// Call before a lease is committed or abandoned.
  void closing(int slot, Stream& stream, Ending ending) noexcept;
  /// Call after all changes that closing the lease makes.
  void closed(int slot, Ending ending) noexcept;
  /// Call when a copy is given back or replaced: drops its checksum.
  void forget(MemoryId memory);
  /// Call after the library has changed a copy: takes its checksum anew.
  void remember(MemoryId memory);
  /// Pointers into a copy outlive its leases: checksums of it are kept, whatever the Checks.
  void note_pointers(MemoryId memory);
  /// All noted pointers are gone.
  void forget_pointers();
  /// Continues for a duplicate of the buffer that `other` watches.
  void take_over(const Watch& other);
  /// Throws findings that calls which cannot throw have kept.
  void report();
  /// Returns true when copies in this memory need a Guard.
  bool guards(MemoryId memory) const;

  /// Lets the library's own work touch all copies while it lives; its destructor waits for that work. A null watch is
  /// allowed.
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
  /// Returns true when a copy still has its checksum. A changed copy loses it.
  bool is_unchanged(MemoryId memory);
  /// Takes new checksums after a change was found, so that it is reported once.
  void accept(MemoryId memory);
  std::string change_of(MemoryId memory, const std::string& use) const;
  void add_found(const std::string& text) noexcept;
  std::uint64_t sum_of(MemoryId memory, const Region& region) const;
  void fill(MemoryId memory, const Region& region) const;
  Index count_poison(MemoryId memory, const Region& region) const;
  Guard* guard_of(MemoryId memory) const;
  /// Returns true when there is a copy that host functions can read and write.
  bool sees(MemoryId memory) const;
  /// Calls f and keeps its error as a finding, except `device_lost`, which the buffer reports itself.
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
  std::vector<CallSite> last_closed_;  // by memory: call site of the last lease closed there
  std::vector<std::uint64_t> lent_;    // by slot: checksum of a read lease's region when it was opened
  std::string found_;
};

}  // namespace tranship::detail
