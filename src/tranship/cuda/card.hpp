// Private: Card, one card of this process: its context, its kernels, and whether it still works. A card is lost when a
// call says that its context is: all calls after it would say the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tranship/cuda/driver_calls.hpp>

namespace tranship {
class Pool;
}

namespace tranship::cuda {

/// True when this process was forked from one that had started the driver. The cards are that one's: a driver works in
/// no child, and some calls of it do not return there.
inline constinit std::atomic<bool> is_forked = false;

/// "CUDA_ERROR_X: text".
std::string text_of(const DriverCalls& calls, CUresult result);

/// The kernels of a process, loaded once.
struct KernelTable {
  CUkernel move_lean = nullptr, move_deep = nullptr, move_tiled = nullptr, fill = nullptr;
  std::vector<CUkernel> map;  ///< by Arithmetic; null where a card does not compute with it
};

/// Is told of the loss of a card before any caller learns of it.
class LossWatcher {
 public:
  virtual void on_loss() noexcept = 0;

 protected:
  ~LossWatcher() = default;
};

/// Thread-safe.
class Card {
 public:
  Card(const DriverCalls& calls, int number);
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const DriverCalls& calls() const noexcept { return calls_; }
  int number() const noexcept { return number_; }
  CUdevice handle() const noexcept { return handle_; }
  const std::string& name() const noexcept { return name_; }
  std::int64_t total_bytes() const noexcept { return total_bytes_; }

  /// Objects that the first use of the card makes and the process keeps: the primary context, the kernels, a pool of
  /// memory, and a stream for allocations. Throws where that fails.
  struct Parts {
    CUcontext context = nullptr;
    CUmemoryPool pool = nullptr;
    CUstream allocations = nullptr;
    CUlibrary library = nullptr;
    KernelTable kernels;
    unsigned multiprocessors = 1;
  };
  const Parts& parts();
  bool has_parts() const noexcept { return has_parts_.load(std::memory_order_acquire); }

  /// Memory of the card, from its pool: a call neither waits for kernels nor makes them wait. Where there is no room,
  /// pools that were added give back what they keep. Null where that does not suffice.
  void* allocate(std::size_t size_bytes);
  void add(Pool& pool);
  void remove(Pool& pool) noexcept;
  void deallocate(void* memory) noexcept;
  /// Lets kernels of this card use memory of another one that others have allocated: from `pool`, or null for none.
  /// Returns false where the driver has no way.
  bool reach(Card& owner, CUmemoryPool pool);
  /// Copies pinned bytes to the card, and returns when they are there.
  void upload(void* target, const void* pinned, std::size_t size_bytes);

  /// Empty while the card works.
  std::string loss() const;
  /// True also in a forked child, where no call may be made.
  bool is_lost() const noexcept {
    return is_lost_.load(std::memory_order_acquire) || is_forked.load(std::memory_order_relaxed);
  }
  /// A watcher is told until it is removed; at once, if the card is lost already.
  void add(LossWatcher& watcher);
  void remove(LossWatcher& watcher) noexcept;
  /// Notes a loss where the result is one. Whether it is.
  bool note(CUresult result, const char* call) noexcept;
  /// Throws unless the call succeeded: `device_lost`, `no_memory`, or `invalid_use` for what the caller gave.
  void check(CUresult result, const char* call);

 private:
  void make_parts();
  /// Waits for the stream of allocations, in which nothing else ever is. Returns the driver's answer, or
  /// CUDA_ERROR_NOT_READY after 30 s.
  CUresult finish_allocations();

  const DriverCalls& calls_;
  int number_;
  std::string name_;
  std::int64_t total_bytes_ = 0;
  CUdevice handle_ = 0;
  std::mutex mutex_;  // of making parts, and of reached_
  std::set<const Card*> reached_;
  std::atomic<bool> has_parts_ = false;
  Parts parts_;
  std::mutex pools_mutex_;
  std::set<Pool*> pools_;
  mutable std::mutex loss_mutex_;
  std::set<LossWatcher*> watchers_;
  std::atomic<bool> is_lost_ = false;
  std::string loss_;
};

/// All cards of this process, or why there are none. They are never destroyed. A child that is forked after the first
/// call has none.
struct Cards {
  std::vector<Card*> all;
  std::string why_none;
  /// See DriverFound.
  bool is_malformed = false;
  /// Throws `bad_text` where the environment's text for cards is not understood.
  void check_text() const;
};
const Cards& cards();

/// Lets this thread make calls that would otherwise end a program's captures of other streams: none of ours concerns a
/// stream that is captured.
class BesideCaptures {
 public:
  explicit BesideCaptures(const DriverCalls& calls) : calls_(calls) { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() { calls_.cuThreadExchangeStreamCaptureMode(&mode_); }
  const DriverCalls& calls_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Makes a card's context current in this thread, for as long as it lives, and the thread one that ends no captures.
/// Costs little where it is already. Does nothing in a host function.
class Current {
 public:
  explicit Current(Card& card);
  /// For destructors: where the card is lost, calls that follow fail and are noted.
  Current(Card& card, std::nothrow_t) noexcept;
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  CUresult push(CUcontext wanted) noexcept;

  Card& card_;
  std::optional<BesideCaptures> beside_captures_;
  bool is_pushed_ = false;
};

/// True while the calling thread is in a host function of a stream, where the driver refuses nearly all calls.
inline thread_local bool is_in_host_function = false;

}  // namespace tranship::cuda

/// A call of the driver that must succeed: TRANSHIP_CUDA_CALL(card, cuStreamCreate, &stream, 0).
#define TRANSHIP_CUDA_CALL(card, name, ...) (card).check((card).calls().name(__VA_ARGS__), #name)
