// Private: CudaStream, one stream of a card. Which of its points are over is what its Timeline knows.
//
// Contiguous copies are the copy engine's, all others of a list one launch. A card cannot touch pageable memory: such
// bytes go through pinned memory, packed and unpacked by host functions in the order of the stream, so that a copy
// never waits and never takes bytes before its turn, as copies of the driver's own do.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <tranship/cuda/card.hpp>
#include <tranship/cuda/timeline.hpp>
#include <tranship/kernels/host/piece_list.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/pool/pool.hpp>

namespace tranship::cuda {

struct ListArgs;
class CardMoves;
class CapturedRuns;

/// A device: a card, and what is counted for the device.
struct Unit final : PinnedMemory, LossWatcher {
  Unit(Card& of, int number, const DeviceSetOptions& options);
  ~Unit() override;
  Device device() const noexcept { return Device::cuda(ordinal); }
  /// Returns true when the card is lost.
  bool is_lost() noexcept;
  void on_loss() noexcept override;
  [[noreturn]] void fail() const;
  std::string loss() const;

  Card& card;
  int ordinal;
  std::int64_t wait_timeout_ns;
  std::atomic<int>& losses;
  std::atomic<bool> is_loss_counted = false;
  std::atomic<std::int64_t> launches = 0, used_bytes = 0, pinned_bytes = 0, registered_bytes = 0;

  void* allocate_pinned(std::size_t size_bytes) override;
  void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept override;

  /// Pinned memory that streams use for a while.
  PinnedDriver pinned;
  std::unique_ptr<Pool> staging;
  std::shared_ptr<CapturedRuns> captured_runs;  ///< graphs may outlive the unit
};

/// Threads that enqueue at once take turns: ranks that are threads share the streams of a card.
class CudaStream final : public Stream {
 public:
  explicit CudaStream(Unit& unit);
  ~CudaStream() override;

  Device device() const noexcept override { return unit_.device(); }
  Event event() override;
  void wait(Event event) override;
  void copy(const CopyBlock& block, int width, const void* source, void* target) override;
  void copy_list(std::span<const StreamCopy> copies) override;
  std::shared_ptr<const PreparedMoves> prepare(std::span<const BlockMove> moves,
                                               std::span<const int> alignments) override;
  void move_list(const std::shared_ptr<const PreparedMoves>& moves, std::span<std::byte* const> bases) override;
  void fill(const CopyBlock& block, int width, const void* element, void* target) override;
  void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) override;
  void run(std::unique_ptr<Kernel> kernel) override;
  void* native_handle() noexcept override;
  bool is_over(std::uint64_t number) override;
  void finish(std::uint64_t number, Deadline deadline) override;
  std::optional<Device> lost_with(std::uint64_t number) override;
  bool is_at_rest(std::uint64_t number) override;

 private:
  /// Where a card finds what a block touches.
  enum class Side { card, pinned, pageable };
  struct Staged {
    std::uint64_t number;  ///< of the work that uses it
    PoolBlock block;
  };
  struct Running {
    std::uint64_t number;  ///< of its last run
    std::shared_ptr<const PreparedMoves> moves;
  };
  /// An allocation of this card's memory.
  struct Range {
    CUdeviceptr first = 0;
    std::size_t size_bytes = 0;
  };
  struct HostCall;
  struct Batch;

  void end();

  const DriverCalls& calls() const { return unit_.card.calls(); }
  CUstream handle();
  void begin();
  void give();
  void check_alive();
  CUstreamCaptureStatus capture_status(CUgraph* graph = nullptr);
  bool is_captured() { return capture_status() != CU_STREAM_CAPTURE_STATUS_NONE; }

  bool record(std::uint64_t number);
  void check_wait(std::optional<Device> lost) const;

  /// Within `known` the driver need not be asked; it becomes the allocation that the driver names.
  Side side_of(const CopyBlock& block, const long long* strides, int width, const void* first, Range* known = nullptr);
  std::byte* stage(std::size_t size_bytes);
  void call_on_host(std::unique_ptr<Kernel> kernel);
  static void CUDA_CB run_host_call(void* call);

  void add_pageable(Batch& batch, const StreamCopy& copy, Side source, Side target);
  void flush(Batch& batch);
  void move(std::span<const StreamCopy> copies);
  void launch(CUkernel kernel, const packing::PieceList& list, ListArgs& args, void* all_args);
  void launch_over(CUkernel kernel, unsigned groups, void* all_args);
  void hold(const std::shared_ptr<const PreparedMoves>& moves);
  void capture_list(CUgraph graph, const std::shared_ptr<const CardMoves>& moves, std::span<std::byte* const> bases);
  void check_reached(const CardMoves& list, std::span<std::byte* const> bases);
  void move_by_host(const BlockMove& one, std::span<std::byte* const> bases);
  template <class F>
  void compute_on_host(const CopyBlock& block, int size, const void* source, Side source_side, void* target,
                       Side target_side, bool reads_target, const F& compute);

  Unit& unit_;
  std::shared_ptr<Timeline> timeline_;
  std::mutex handle_mutex_;  // of making it
  std::atomic<CUstream> handle_ = nullptr;
  std::atomic<bool> is_shared_ = false;  ///< others give it work by its native handle

  /// Held by a thread that enqueues. One call enqueues by others.
  std::recursive_mutex turn_;
  // Guarded by turn_.
  std::deque<Staged> staged_;
  std::vector<Running> prepared_;

  std::mutex host_calls_mutex_;
  std::vector<HostCall*> host_calls_;  // that have not run
};

}  // namespace tranship::cuda
