// Private: BufferState, the object behind the handles of one buffer, and BufferLock, the only way to reach what its
// lock guards.
//
// BufferCore joins three parts and turns plans into work on streams: Admission (admission.hpp) decides which leases may
// be open together, CopyPlan (copy_plan.hpp) chooses the source memory of each region, Residence (residence.hpp)
// records which memory holds what.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <tranship/base/mutex.hpp>
#include <tranship/memory/buffer/admission.hpp>
#include <tranship/memory/buffer/copy_plan.hpp>
#include <tranship/memory/buffer/residence.hpp>
#include <tranship/memory/buffer/shape.hpp>
#include <tranship/memory/checks/watch.hpp>
#include <tranship/memory/pool/residents.hpp>

namespace tranship::detail {

/// The data that a buffer's lock guards. Only a BufferLock gives access.
struct BufferCore {
  BufferCore(const BufferShape& buffer, const Resident& self)
      : shape(buffer), admission(buffer), residence(buffer, self) {}

  const BufferShape& shape;
  Admission admission;
  Residence residence;
  std::uint64_t version = 0;
  bool has_handles = true;
  std::unique_ptr<Watch> watch;  // null: no checks, and no pointers are noted
  CopyBlock block;  // reused by copies and fills: clearing a new one takes longer than writing the part that is used

  /// Makes room for the copy in a memory that was added after the buffer was made.
  void know(MemoryId memory);
  /// Throws when the request is forbidden now.
  void admit(const Request& request);
  /// Carries out what a request needs. First asks the scopes of the thread and allocates the copy.
  void carry_out(const Request& request, std::optional<Cause> asked);
  /// Forgets the copy of a memory and returns it. Its end may wait for streams.
  [[nodiscard]] std::shared_ptr<Storage> take_copy(MemoryId memory);

 private:
  void carry_out(const Step& step, const Request& request);
  [[noreturn]] void name_buffer_in_error() const;
  /// How many of the first steps are copies that the stream can take as one list; 1 where it cannot.
  std::size_t copies_together(std::span<const Step> steps, MemoryId memory) const;
  void copy_together(std::span<const Step> steps, const Request& request);
  /// Returns the event after which the merged value is there.
  Event merge(const Step& step, const Request& request);
  Event fold(const Step& step, const Request& request);
  void make_own_copy(const Region& moved, const Request& request);
  /// Records copies to a memory, enqueued since `begin_ns`, in the ledger and charges them to the budgets.
  void note_copies(std::span<CopyRecord> records, MemoryId memory, std::int64_t begin_ns);
  bool guards(MemoryId memory) const { return watch && watch->guards(memory); }

  /// Enqueues one copy of a box. Each end is the buffer's copy in a memory, or a dense piece of scratch memory. The
  /// copy begins after the events `after`.
  struct Place {
    MemoryId memory = 0;
    void* data = nullptr;
    bool is_dense = false;
  };
  Event copy(const Box& box, const Place& source, const Place& target, const std::vector<Before>& after);
  /// The stream on which copies between two memories are enqueued.
  Stream& stream_between(MemoryId source, MemoryId target) const {
    return shape.devices.copy_stream(target == 0 ? source : target);
  }
  Place place(MemoryId memory) const { return {memory, residence.copies[memory]->data, false}; }
  /// A box as a CopyBlock in units of width(), for copies and fills. Valid until the next call.
  const CopyBlock& block_of(const Box& box, bool source_is_dense, bool target_is_dense);
  /// A box as a CopyBlock in whole elements, for combinations. Valid until the next call.
  const CopyBlock& elements_of(const Box& box, bool source_is_dense, bool target_is_dense);
};

struct BufferState final : BufferShape, private Resident {
  /// A state for handles to share. It is destroyed with the last handle, or with the last lease that is open then.
  static std::shared_ptr<BufferState> make(ElementType type, const Indices& extents, const Indices& strides,
                                           const BufferOptions& options);
  BufferState(const BufferState&) = delete;
  BufferState& operator=(const BufferState&) = delete;

  // All of these acquire the lock themselves.
  void lose_handles() noexcept;
  /// `self` is the pointer that the handles share.
  Lease open(const Request& request, const std::shared_ptr<BufferState>& self);
  void close(const Lease& lease, Ending ending) noexcept;
  void note_pointers(MemoryId memory);
  void forget_pointers() noexcept;
  void prefetch(const Request& request);
  std::vector<CopyRecord> predict(const Request& request);
  void invalidate(const Region& region, CallSite where);
  void freeze(CallSite where);
  std::shared_ptr<BufferState> duplicate(CallSite where);
  void drop(Device device, CallSite where);
  void evict(Device device, CallSite where);
  Region valid(Device device);

 private:
  friend class BufferLock;
  BufferState(ElementType type, const Indices& extents, const Indices& strides, const BufferOptions& options);
  ~BufferState();

  std::uint64_t last_use(MemoryId memory) noexcept override;
  bool try_release(MemoryId memory) noexcept override;

  Residents& residents_;
  const std::atomic<int>& losses_;  ///< number of lost devices
  Mutex mutex_;
  BufferCore core_;
};

/// Holds the lock of a buffer, which must outlive the BufferLock.
class BufferLock {
 public:
  explicit BufferLock(BufferState& state) : lock_(state.mutex_), core_(state.core_) {}
  /// Tries to acquire the lock; converts to false when another thread holds it.
  BufferLock(BufferState& state, std::try_to_lock_t) : lock_(state.mutex_, std::try_to_lock), core_(state.core_) {}
  explicit operator bool() const noexcept { return lock_.owns_lock(); }
  BufferCore* operator->() const noexcept { return &core_; }
  BufferCore& operator*() const noexcept { return core_; }

 private:
  std::unique_lock<Mutex> lock_;
  BufferCore& core_;
};

}  // namespace tranship::detail
