// Blocks of lanes on the CPU: runs a kernel that is written for a GPU (lanes/lane.hpp, lanes/rma.hpp) on the thread of
// its rank. Each lane is a fiber; lanes take turns, always in the same order. A lane runs until it reaches an operation
// of its warp or block, where it stays until all others have reached it, or reaches a wait, or has polled 64 times (g,
// get and fetching atomics), since the value may have to come from another lane.
//
//   ts::run_block(world, {.lanes = 64}, [&](const ts::CpuLane& lane) { kernel(lane, ts::heap_view(world), ...); });
//
// Lanes that diverge throw `invalid_use`, which names both lanes, their operations and call sites. Lanes diverge when
// one ends, or reaches another operation, call site or argument, while others of its group are at an operation. When a
// lane throws, all other lanes of the grid are unwound, and run_block rethrows the exception.
//
// When no lane of the grid can run, waits have the deadline of the rank and fail as World::wait_until does; polling
// loops fail as those of a Context do. A kernel must wait by operations of its lane only, not by those of World and
// Context.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/lanes/lane.hpp>
#include <tranship/lanes/rma.hpp>

namespace tranship {

struct LaneBlock {
  static constexpr int lanes_max = 1024;

  int lanes = 1;
  int warp = 32;  ///< lanes per warp; the last warp of a block may have fewer
};
struct LaneGrid {
  int blocks = 1;
  LaneBlock block = {};
};

/// Returns the symmetric heaps of this world, for kernels. Valid while the world lives.
HeapView heap_view(const World& world) noexcept;
/// Returns this rank's elements, for kernels.
template <class T>
Span<T> span_of(Symmetric<T> array) noexcept {
  return {array.local(), array.size()};
}

namespace detail {

/// The services that a lane needs from its executor.
class LaneExecutor {
 public:
  virtual ~LaneExecutor() = default;
  virtual void meet(Scope scope, const GroupCall& call) = 0;
  /// Returns a group's storage for one value.
  virtual unsigned long long& slot(Scope scope) noexcept = 0;
  virtual void wait(FunctionRef<bool()> ready, const WaitNote& note) = 0;
  /// Called after a lane has seen the value that this rank has at `word`.
  virtual void saw(const void* word, std::size_t bytes) const = 0;
  /// Runs `f` on the stack of the rank, where it may wait and switch to other ranks.
  virtual void on_rank(FunctionRef<void(Context&)> f) = 0;
  /// Returns the note of a wait for this rank's word at `word`.
  virtual WaitNote note(const GroupCall& call, const void* word) const = 0;
  /// Returns the error for misuse.
  virtual Error refusal(const GroupCall& call, const char* problem) const = 0;
  /// Throws such an error if the rank checks blocks and these bytes of its heap do not lie in one block.
  virtual void check_block(FunctionRef<GroupCall()> call, std::size_t offset_bytes, std::size_t size_bytes) const = 0;
  /// Called after a poll that `lanes` lanes make together. Lets other lanes run after a number of polls, and throws as
  /// polls of a Context do.
  virtual void polled(int lanes, FunctionRef<WaitNote()> note) = 0;
  /// Does this after a get.
  virtual void got(int lanes, FunctionRef<WaitNote()> note, FunctionRef<LaneTarget()> target) = 0;
  /// Does this after a poll made by a Context, which throws by itself.
  virtual void carried(int lanes) = 0;
  /// Called after the lanes have stored there directly.
  virtual void stores(KernelSite where, const void* first, std::size_t size_bytes) const = 0;
};

/// Carries operations to peers whose memory is not reachable.
class LaneMessenger {
 public:
  explicit LaneMessenger(LaneExecutor& executor) : executor_(&executor) {}

  template <class T>
  void put(Span<T> target, Span<const T> source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.put(symmetric(target), local(source), peer, site(where)); });
  }
  template <class T>
  void put_nbi(Span<T> target, Span<const T> source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.put_nbi(symmetric(target), local(source), peer, site(where)); });
  }
  template <class T>
  void get(Span<T> target, Span<const T> source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.get(local(target), symmetric(source), peer, site(where)); });
  }
  template <class T>
  void get_nbi(Span<T> target, Span<const T> source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.get_nbi(local(target), symmetric(source), peer, site(where)); });
  }
  template <class T>
  void put(const StridedSpan<T>& target, const StridedSpan<const T>& source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.put(view(target), view(source), peer, site(where)); });
  }
  template <class T>
  void put_nbi(const StridedSpan<T>& target, const StridedSpan<const T>& source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.put_nbi(view(target), view(source), peer, site(where)); });
  }
  template <class T>
  void get(const StridedSpan<T>& target, const StridedSpan<const T>& source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.get(view(target), view(source), peer, site(where)); });
  }
  template <class T>
  void get_nbi(const StridedSpan<T>& target, const StridedSpan<const T>& source, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.get_nbi(view(target), view(source), peer, site(where)); });
  }
  template <class T, class S>
  void put_signal(const StridedSpan<T>& target, const StridedSpan<const T>& source, S* signal, S value, SignalOp op,
                  Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) {
      c.put_signal(view(target), view(source), word(signal), std::uint64_t(value), op, peer, site(where));
    });
  }
  template <class T, class S>
  void put_signal_nbi(const StridedSpan<T>& target, const StridedSpan<const T>& source, S* signal, S value, SignalOp op,
                      Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) {
      c.put_signal_nbi(view(target), view(source), word(signal), std::uint64_t(value), op, peer, site(where));
    });
  }
  template <class T>
  void p(T* target, T value, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.p(symmetric(target), value, peer, site(where)); });
  }
  template <class T>
  std::remove_const_t<T> g(T* source, Rank peer, KernelSite where) const {
    std::remove_const_t<T> value;
    executor_->on_rank([&](Context& c) { value = c.g(symmetric(source), peer, site(where)); });
    return value;
  }
  template <class T, class S>
  void put_signal(Span<T> target, Span<const T> source, S* signal, S value, SignalOp op, Rank peer,
                  KernelSite where) const {
    executor_->on_rank([&](Context& c) {
      c.put_signal(symmetric(target), local(source), word(signal), std::uint64_t(value), op, peer, site(where));
    });
  }
  template <class T, class S>
  void put_signal_nbi(Span<T> target, Span<const T> source, S* signal, S value, SignalOp op, Rank peer,
                      KernelSite where) const {
    executor_->on_rank([&](Context& c) {
      c.put_signal_nbi(symmetric(target), local(source), word(signal), std::uint64_t(value), op, peer, site(where));
    });
  }
  template <class S>
  void signal(S* signal, S value, SignalOp op, Rank peer, KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.signal(word(signal), std::uint64_t(value), op, peer, site(where)); });
  }
  /// Called before a look at data that peers may have put here.
  void poll() const {
    executor_->on_rank([](Context& c) { c.poll(); });
  }
  template <AtomicOp op, class T>
  void atomic_nbi(T* before, T* variable, T operand, T expected, Rank peer, KernelSite where) const {
    executor_->on_rank(
        [&](Context& c) { c.atomic_nbi<op>(*before, symmetric(variable), operand, expected, peer, site(where)); });
  }
  template <AtomicOp op, class T>
  T atomic(T* variable, T operand, T expected, Rank peer, KernelSite where) const {
    T before{};
    executor_->on_rank([&](Context& c) {
      if constexpr (op == AtomicOp::set)
        c.update<op>(symmetric(variable), operand, expected, peer, site(where));
      else
        before = c.atomic<op>(symmetric(variable), operand, expected, peer, site(where));
    });
    return before;
  }
  void fence(KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.fence(site(where)); });
  }
  void quiet(KernelSite where) const {
    executor_->on_rank([&](Context& c) { c.quiet(site(where)); });
  }

 private:
  static CallSite site(KernelSite where) noexcept { return {where.file, where.line}; }
  template <class T>
  static Symmetric<T> symmetric(Span<T> span) noexcept {
    return Symmetric<T>::at(span.data, span.size);
  }
  template <class T>
  static Symmetric<T> symmetric(T* one) noexcept {
    return Symmetric<T>::at(one, 1);
  }
  template <class S>
  static Symmetric<std::uint64_t> word(S* signal) noexcept {
    return symmetric(reinterpret_cast<std::uint64_t*>(signal));
  }
  template <class T>
  static std::span<T> local(Span<T> span) noexcept {
    return {span.data, static_cast<std::size_t>(span.size)};
  }

  /// A view of the elements as bytes of any meaning. If their width is not that of an element type, it has one more
  /// dimension, of bytes.
  template <class T>
  static StridedView view(const StridedSpan<T>& given) {
    const StridedSpan<T> span = detail::plain(given);
    constexpr int width = sizeof(T);
    constexpr bool is_one = width == 1 || width == 2 || width == 4 || width == 8 || width == 16;
    StridedView out;
    out.data = const_cast<std::remove_const_t<T>*>(span.data);
    if constexpr (is_one)
      out.type = width == 1   ? ElementType::u8
                 : width == 2 ? ElementType::u16
                 : width == 4 ? ElementType::u32
                 : width == 8 ? ElementType::u64
                              : ElementType::c128;
    for (int d = 0; d < span.dims; ++d) {
      out.extents.push_back(span.extents[d]);
      out.strides.push_back(is_one ? span.strides[d] : span.strides[d] * width);
    }
    if constexpr (!is_one) {
      out.extents.push_back(width);
      out.strides.push_back(1);
    }
    return out;
  }

  LaneExecutor* executor_;
};

}  // namespace detail

/// A group of lanes on the CPU with the interface of lanes/lane.hpp.
template <Scope scope>
class CpuGroup {
 public:
  CpuGroup(detail::LaneExecutor& executor, int lane, int lanes) : executor_(&executor), lane_(lane), lanes_(lanes) {}

  static constexpr bool runs_side_by_side = false;

  int lane() const noexcept { return lane_; }
  int lanes() const noexcept { return lanes_; }
  void sync(KernelSite where = KernelSite::here()) const {
    enter([&] { return GroupCall{"sync", where}; });
  }

  template <class Call>
  void enter(const Call& call) const {
    if constexpr (scope != Scope::thread) executor_->meet(scope, call());
  }
  template <class Call>
  void leave(const Call& call) const {
    enter(call);
  }
  template <class Call, class T>
  T share(const Call& call, T value) const {
    static_assert(sizeof(T) <= sizeof(unsigned long long));
    if constexpr (scope == Scope::thread) return value;
    unsigned long long& slot = executor_->slot(scope);
    if (lane_ == 0) detail::store(value, &slot);
    leave(call);
    return detail::load<T>(&slot);
  }
  template <class Call, class T, class Ready>
  void wait(const detail::WaitPlace& place, const Call& call, const T* word, Comparison comparison, T value,
            const Ready& ready) const {
    if (ready()) return;
    WaitNote note = executor_->note(call(), word);
    note.raised_by = place.raised_by;
    note.wants(comparison, value);
    executor_->wait(
        [&] {
          note.sees(detail::load_word(word));
          return ready();
        },
        note);
  }
  template <class Call>
  [[noreturn]] void refuse(const Call& call, const char* problem) const {
    throw executor_->refusal(call(), problem);
  }
  template <class Call>
  void check_block(const Call& call, std::size_t offset_bytes, std::size_t size_bytes) const {
    executor_->check_block(call, offset_bytes, size_bytes);
  }
  void saw(const void* word, std::size_t bytes) const { executor_->saw(word, bytes); }
  template <class Call>
  void polled(const Call& call, const void* local, Rank peer, std::uint64_t seen) const {
    executor_->polled(lanes_, [&] {
      WaitNote note = note_at(call, local, peer);
      note.shows = WaitNote::Shows::value;
      note.seen = seen;
      return note;
    });
  }
  template <class Call>
  void got(const Call& call, const void* local, Rank peer, FunctionRef<detail::LaneTarget()> target) const {
    executor_->got(
        lanes_, [&] { return note_at(call, local, peer); }, target);
  }
  void carried() const { executor_->carried(lanes_); }
  template <class Call, class T>
  void missed(const Call& call, const T* word, Comparison comparison, T value) const {
    executor_->polled(lanes_, [&] {
      WaitNote note = executor_->note(call(), word);
      note.wants(comparison, value);
      note.sees(detail::load_word(word));
      return note;
    });
  }
  template <class Call>
  void stores(const Call& call, const void* first, std::size_t bytes) const {
    executor_->stores(call().where, first, bytes);
  }
  detail::LaneMessenger messenger() const noexcept { return detail::LaneMessenger(*executor_); }

 private:
  /// Returns the note of a look at the counterpart of `local` in the heap of `peer`.
  template <class Call>
  WaitNote note_at(const Call& call, const void* local, Rank peer) const {
    WaitNote note = executor_->note(call(), local);
    note.flag_rank = peer;
    return note;
  }

  detail::LaneExecutor* executor_;
  int lane_;
  int lanes_;
};

/// A lane on the CPU with the interface of lanes/lane.hpp.
class CpuLane {
 public:
  CpuLane(detail::LaneExecutor& executor, const LaneGrid& shape, int block, int index)
      : executor_(&executor), shape_(shape), block_(block), index_(index) {}

  int index() const noexcept { return index_; }
  int lanes() const noexcept { return shape_.block.lanes; }
  int block_index() const noexcept { return block_; }
  int blocks() const noexcept { return shape_.blocks; }

  CpuGroup<Scope::thread> thread() const { return {*executor_, 0, 1}; }
  CpuGroup<Scope::warp> warp() const {
    const int warp = shape_.block.warp;
    return {*executor_, index_ % warp, std::min(warp, lanes() - index_ / warp * warp)};
  }
  CpuGroup<Scope::block> block() const { return {*executor_, index_, lanes()}; }

 private:
  detail::LaneExecutor* executor_;
  LaneGrid shape_;
  int block_;
  int index_;
};

namespace detail {
void run_lanes(World& world, const LaneGrid& shape, FunctionRef<void(const CpuLane&)> kernel);
}

/// Runs `kernel(const CpuLane&)` on every lane of every block. A block begins when all blocks before it have ended or
/// can only wait or poll, so blocks may wait for each other. Throws `invalid_use` for a shape without blocks or lanes,
/// or with more than lanes_max lanes per block, and whatever the kernel throws.
template <class Kernel>
void run_grid(World& world, const LaneGrid& shape, Kernel&& kernel) {
  detail::run_lanes(world, shape, [&](const CpuLane& lane) { kernel(lane); });
}
template <class Kernel>
void run_block(World& world, const LaneBlock& shape, Kernel&& kernel) {
  run_grid(world, {.blocks = 1, .block = shape}, kernel);
}

}  // namespace tranship
