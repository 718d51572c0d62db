// Private: BufferState, what stands behind the handles of one buffer: turns steps into work on streams, keeps leases.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/mutex.hpp>
#include <tranship/memory/checks/guard.hpp>
#include <tranship/memory/checks/watch.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/pool/pool.hpp>
#include <tranship/memory/pool/residents.hpp>
#include <tranship/memory/state/cell_state.hpp>

namespace tranship::detail {

/// How long the host waits for a device before it gives up.
inline constexpr std::int64_t device_timeout_ns = 60'000'000'000;

/// A piece of a memory that holds a copy. Several buffers hold it together after a duplicate, until one of them writes.
struct Storage {
  Pool* pool = nullptr;  ///< none: foreign memory
  PoolBlock block;
  void* data = nullptr;
  std::unique_ptr<Guard> guard;  ///< none: any code can touch it
  std::shared_ptr<void> owner;   ///< of what is not the pool's
  bool is_foreign = false;       ///< the program's own memory, which stays
  /// Another buffer has held it, too: its uses are unknown to the cells of this one.
  std::atomic<bool> was_shared = false;
  std::atomic<std::uint64_t> last_use = 0;  ///< by Residents::now()

  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();
  /// Remembers a use for the next user of the memory, or the buffer that is left alone with it.
  void note(Event event);
  std::vector<Event> uses() const;
  /// Tells the driver of another memory, once, of the foreign bytes that it copies from or to.
  void register_with(MemoryId memory, Driver& driver, void* lowest, std::size_t bytes);

 private:
  mutable std::mutex mutex_;
  std::vector<Event> uses_;  // at most one for each stream
  MemorySet registered_;
  std::vector<std::shared_ptr<void>> registrations_;
};

/// An access whose defaults are resolved.
struct Request {
  Intent intent = Intent::read;
  Combine combine = Combine::sum;
  Device device;
  MemoryId memory = 0;
  Stream* stream = nullptr;
  const Region* region = nullptr;  ///< null: the whole buffer
  std::optional<Cause> cause;
  CallSite where{"", 0};
  MemoryId leaving = -1;  ///< whose copy is to be given back; -1: none
};

struct BufferState final : private Resident {
  Devices& devices;
  const std::uint64_t number;  ///< of all buffers of the process
  const ElementType type;
  const Indices extents;
  const Indices strides;
  const Index size_bytes;    ///< of the elements
  const Index lowest_bytes;  ///< from the first element to the lowest byte: 0 or negative
  const Index span_bytes;    ///< from there to behind the highest
  const Region whole;
  const BufferOptions options;
  Residents& residents;
  const std::atomic<int>& losses;  ///< of devices

  Mutex mutex;  // guards all that follows
  CellStates cells;
  std::vector<std::shared_ptr<Storage>> copies;  // by memory
  std::uint64_t version = 0;
  CallSite frozen{"", 0};  // line 0: it is not

  struct OpenLease {
    bool is_open = false;
    Intent intent{};
    Combine combine{};
    MemoryId memory = 0;
    bool is_whole = true;
    Region region;  // unless it is the whole buffer
    std::optional<Cause> cause;
    bool is_void = false;  // it could not be handed out, so nothing is written under it
    CallSite where{"", 0};
    std::shared_ptr<Storage> storage;  // what it reads, when the buffer has another copy since
  };
  /// Whether `is_so(state)` for all cells of a region; `only` is cells.only() of it.
  template <class F>
  bool all_of(const CellState* only, const Region& region, F&& is_so) const {
    if (only) return is_so(*only);
    bool all = true;
    cells.for_each(region, [&](const Box&, const CellState& cell) { all = all && is_so(cell); });
    return all;
  }
  const Region& region_of(const OpenLease& lease) const { return lease.is_whole ? whole : lease.region; }
  bool has_copy(MemoryId memory) const { return std::size_t(memory) < copies.size() && copies[memory]; }
  /// Makes room for the copy in a memory that was added after the buffer was made.
  void know(MemoryId memory);
  /// The first open lease that `is_wanted(lease)`; null when there is none.
  template <class F>
  const OpenLease* open_lease(F&& is_wanted) const {
    for (const OpenLease& lease : leases)
      if (lease.is_open && is_wanted(lease)) return &lease;
    return nullptr;
  }
  const OpenLease* open_lease_on(MemoryId memory) const {
    return open_lease([&](const OpenLease& lease) { return lease.memory == memory; });
  }
  std::vector<OpenLease> leases;
  int open_leases = 0;
  CopyBlock block;  // of the last copy or fill: it takes longer to clear one than to write what is used of it
  bool has_handles = true;
  std::unique_ptr<Watch> watch;  // none: nothing is checked, and no pointers are noted

  /// For handles to share. It goes with the last of them, or with the last lease that is open then.
  static std::shared_ptr<BufferState> make(ElementType type, const Indices& extents, const Indices& strides,
                                           const BufferOptions& options);
  BufferState(const BufferState&) = delete;
  BufferState& operator=(const BufferState&) = delete;

  // All of these take the lock themselves.
  void lose_handles() noexcept;
  /// `self` is what handles share.
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

  // These are called under it.
  const Region& region_of(const Request& request) const { return request.region ? *request.region : whole; }
  /// Throws what forbids a request now.
  void admit(const Request& request);
  /// Forgets what has been lost with devices.
  void note_losses();
  void check(const Request& request) const;
  void check_conflicts(const Request& request) const;
  /// Throws when a lease that writes is open; `done` says what it forbids.
  void check_no_writer(const char* done, CallSite where) const;
  /// What a request needs before a lease of it may be opened.
  struct Plan {
    /// `asked` is the cause of copies that were asked for by name.
    Plan(const BufferState& state, const Request& request, std::optional<Cause> asked);
    Few<Step> steps;
    /// What goes to a copy of the buffer's own, where others read the one that the request would change: all that the
    /// memory holds but for what is overwritten. Nothing where there is no such memory.
    Optional<Region> own;
    Few<CopyRecord> records;  ///< of all that is copied, `own` last
  };
  /// What steps copy between memories.
  void add_records(std::span<const Step> steps, const Request& request, std::optional<Cause> asked,
                   Few<CopyRecord>& records) const;
  CopyRecord record_of_own(const Region& moved, const Request& request) const;
  /// Carries out what a request needs, after asking the scopes of the thread and having made room.
  void carry_out(const Request& request, std::optional<Cause> asked);
  void carry_out(const Step& step, const Request& request);
  /// Returns when the merged value is there.
  Event merge(const Step& step, const Request& request);
  Event fold(const Step& step, const Request& request);
  std::optional<Region> own_copy_of(const Request& request) const;
  void make_own_copy(const Region& moved, const Request& request);
  /// Enters copies to a memory, which have been given to their streams since `begin_ns`, in the ledger and the budgets.
  void note_copies(std::span<CopyRecord> records, MemoryId memory, std::int64_t begin_ns);
  /// Throws when a lease is open on the memory's copy, which is to be given back.
  void check_unused(MemoryId memory, CallSite where) const;
  void forget_copy(MemoryId memory);
  /// From the pool of a memory; what others can do without goes first when it is full.
  PoolBlock allocate(MemoryId memory, std::size_t bytes);
  /// The array that a device makes by itself; empty where copies come from the pool.
  std::optional<DeviceArray> make_array(MemoryId memory);
  /// Whether a copy of another buffer has left the memory.
  bool make_room(MemoryId memory);
  std::shared_ptr<Storage> new_storage(MemoryId memory);
  std::vector<Event> events_before(MemoryId memory, Intent intent, std::span<const Box> boxes) const;
  void add_uses(const Use& use, std::span<const Box> boxes);

  /// Gives one copy between memories, of a box of the buffer or of a dense piece of scratch memory, to a stream; it
  /// begins after `after`.
  struct Place {
    MemoryId memory = 0;
    void* data = nullptr;
    bool is_dense = false;
  };
  /// Where copies between two memories are given.
  Stream& stream_between(MemoryId source, MemoryId target) const {
    return devices.copy_stream(target == 0 ? source : target);
  }
  Event copy(const Box& box, const Place& source, const Place& target, const std::vector<Event>& after);
  Place place(MemoryId memory) const { return {memory, copies[memory]->data, false}; }
  /// Tells the devices that copy between two memories of foreign memory among these.
  void register_foreign(MemoryId source, MemoryId target);
  /// The cells of a region whose state `is_wanted(state)`.
  template <class F>
  Region cells_where(const Region& region, F&& is_wanted) const {
    std::vector<Box> boxes;
    cells.for_each(region, [&](const Box& box, const CellState& cell) {
      if (is_wanted(cell)) boxes.push_back(box);
    });
    return Region::boxes(boxes);
  }
  /// Cells whose value would be lost with this memory's copy.
  Region needed(MemoryId memory) const;
  /// Calls f(byte offset, element count) for each run of consecutive elements of a box of the buffer: rows, where the
  /// last dimension is contiguous.
  template <class F>
  void for_each_row(const Box& box, F&& f) const {
    Indices rows = box.extents();
    const int last = box.dims() - 1;
    Index count = 1;
    if (last >= 0 && strides[last] == 1) std::swap(count, rows[last]);
    const Index base = offset_bytes(box);
    for_each_coordinate(rows, [&](const Indices& at) {
      Index offset = 0;
      for (int d = 0; d < box.dims(); ++d) offset += at[d] * strides[d];
      f(base + offset * tranship::size_bytes(type), count);
    });
  }
  /// What kernels move at once: an element, or 16 bytes of a wider one.
  int width() const { return std::min(tranship::size_bytes(type), 16); }
  /// A box in units of width(), as copies and fills take it. Until the next call.
  const CopyBlock& block_of(const Box& box, bool source_is_dense, bool target_is_dense);
  /// The same in whole elements, as combinations take it.
  const CopyBlock& elements_of(const Box& box, bool source_is_dense, bool target_is_dense);
  Index offset_bytes(const Box& box) const;
  std::int64_t bytes_of(const Region& region) const;

  std::uint64_t last_use(MemoryId memory) noexcept override;
  bool try_release(MemoryId memory) noexcept override;

  MemoryId nearest(MemorySet set, MemoryId memory) const;
  Route route(MemoryId source, MemoryId target) const;

 private:
  BufferState(ElementType type, const Indices& extents, const Indices& strides, const BufferOptions& options);
  ~BufferState();
};

}  // namespace tranship::detail
