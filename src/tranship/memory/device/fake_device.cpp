#include "tranship/memory/device/fake_device.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship {
namespace {

using Lock = std::unique_lock<std::mutex>;

/// One piece of work. run_half() is the part that has happened when the device is lost in the middle of it.
struct Work {
  virtual ~Work() = default;
  virtual void run() = 0;
  virtual void run_half() {}
};

/// A piece of work, or, where `work` is null, a wait for `after`.
struct Piece {
  std::unique_ptr<Work> work;
  Event after;
};

/// Empty for a block of one element.
std::optional<CopyBlock> half_of(CopyBlock block) {
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] > 1) {
      block.extents[d] /= 2;
      return block;
    }
  return {};
}

/// `Block` is a CopyBlock, or a reference to one where the work runs inside the call.
template <class Block>
struct CopyWork final : Work {
  CopyWork(const CopyBlock& all, int element_width, const void* from, void* to)
      : block(all), width(element_width), source(from), target(to) {}
  void run() override { copy_on_host(block, width, source, target); }
  void run_half() override {
    if (const std::optional<CopyBlock> half = half_of(block)) copy_on_host(*half, width, source, target);
  }
  Block block;
  int width;
  const void* source;
  void* target;
};

struct CopyListWork final : Work {
  explicit CopyListWork(std::span<const StreamCopy> all) : copies(all.begin(), all.end()) {}
  void run() override { run_first(copies.size()); }
  void run_half() override { run_first(copies.size() / 2); }
  void run_first(std::size_t count) {
    for (const StreamCopy& one : std::span(copies).first(count))
      copy_on_host(one.block, one.width, one.source, one.target);
  }
  std::vector<StreamCopy> copies;
};

struct FillWork final : Work {
  FillWork(const CopyBlock& all, int element_width, const void* value, void* to)
      : block(all), width(element_width), target(to) {
    if (value) std::memcpy(element, value, std::size_t(width));
  }
  void run() override { fill_on_host(block, width, element, target); }
  void run_half() override {
    if (const std::optional<CopyBlock> half = half_of(block)) fill_on_host(*half, width, element, target);
  }
  CopyBlock block;
  int width;
  unsigned char element[16] = {};
  void* target;
};

struct CombineWork final : Work {
  CombineWork(const CopyBlock& all, Combine how, ElementType element, const void* from, void* to)
      : block(all), combine(how), type(element), source(from), target(to) {}
  void run() override { detail::combine_block(combine, type, block, source, target); }
  void run_half() override {
    if (const std::optional<CopyBlock> half = half_of(block))
      detail::combine_block(combine, type, *half, source, target);
  }
  CopyBlock block;
  Combine combine;
  ElementType type;
  const void* source;
  void* target;
};

struct KernelWork final : Work {
  explicit KernelWork(std::unique_ptr<Kernel> k) : kernel(std::move(k)) {}
  void run() override { run_kernel(std::move(kernel)); }
  std::unique_ptr<Kernel> kernel;
};

/// When a device will be lost, and whether it is.
struct Loss {
  std::int64_t after = -1;  ///< pieces of work before the loss; -1: never
  std::mutex mutex;         ///< guards `done`; held during each piece of work, so that none continues after the loss
  std::int64_t done = 0;
  std::atomic<bool> has_happened = false;
};

/// The memories of all fake devices: how much each has allocated, and which memory an address belongs to.
class Memories {
 public:
  Memories(int count, std::int64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes), used_bytes_(std::size_t(count), 0) {}

  void* allocate(int memory, std::size_t size_bytes) {
    const Lock lock(mutex_);
    std::int64_t& used = used_bytes_[std::size_t(memory)];
    if (size_bytes > std::size_t(capacity_bytes_ - used)) return nullptr;
    void* first = allocate_on_host(size_bytes);
    if (!first) return nullptr;
    used += std::int64_t(size_bytes);
    stretches_[address_of(first)] = {size_bytes, memory};
    return first;
  }
  void deallocate(int memory, void* first, std::size_t size_bytes) noexcept {
    const Lock lock(mutex_);
    used_bytes_[std::size_t(memory)] -= std::int64_t(size_bytes);
    stretches_.erase(address_of(first));
    free_on_host(first);
  }
  /// Returns -1 for an address of the host.
  int memory_at(const void* address) const {
    const Lock lock(mutex_);
    auto next = stretches_.upper_bound(address_of(address));
    if (next == stretches_.begin()) return -1;
    const auto& [first, stretch] = *--next;
    return address_of(address) - first < stretch.size_bytes ? stretch.memory : -1;
  }

 private:
  struct Stretch {
    std::size_t size_bytes;
    int memory;
  };
  static std::uintptr_t address_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

  mutable std::mutex mutex_;
  std::int64_t capacity_bytes_;
  std::vector<std::int64_t> used_bytes_;
  std::map<std::uintptr_t, Stretch> stretches_;
};

class QueuedStream;
class DeferredStream;

/// Decides the order in which work of all deferred streams runs. Its lock guards all state of the streams.
class DeferredOrder {
 public:
  explicit DeferredOrder(std::uint64_t seed) : random_(seed) {}
  void add(DeferredStream& stream);
  void remove(DeferredStream& stream) noexcept;
  void give(DeferredStream& stream, Piece piece);
  /// Runs the work that this point depends on and nothing else.
  void finish(DeferredStream& stream, std::uint64_t number, Deadline deadline);
  int steps(int count);
  /// Call with the lock held, when a device has been lost.
  void break_lost() noexcept;

 private:
  bool has(const Stream* stream) const;
  std::mutex mutex_;
  SplitMix64 random_;
  std::vector<DeferredStream*> streams_;
};

}  // namespace

struct FakeMachine::State {
  State(const FakeDevices& all, const DeviceSetOptions& options)
      : fake(all),
        wait_timeout_ns(options.wait_timeout_ns),
        memories(fake.count, fake.capacity_bytes),
        order(fake.seed),
        lost(std::size_t(fake.count)),
        launches(std::size_t(fake.count)),
        pinned_bytes(std::size_t(fake.count)),
        registered_bytes(std::size_t(fake.count)),
        losses(options.losses) {
    for (std::size_t i = 0; i < fake.lost_after.size(); ++i) lost[i].after = fake.lost_after[i];
  }

  int memory_of(int ordinal) const noexcept {
    while (std::size_t(ordinal) < fake.memory_of.size() && fake.memory_of[std::size_t(ordinal)] >= 0)
      ordinal = fake.memory_of[std::size_t(ordinal)];
    return ordinal;
  }
  bool reaches(int ordinal, int other) const noexcept {
    return fake.reach_each_other || memory_of(ordinal) == memory_of(other);
  }
  void check_reach(int ordinal, const void* address) const {
    if (fake.reach_each_other) return;
    const int memory = memories.memory_at(address);
    if (memory >= 0 && !reaches(ordinal, memory))
      throw_error(ErrorCode::invalid_use, "a stream of {} does not reach the memory of {}",
                  to_string(Device::fake(ordinal)), to_string(Device::fake(memory)));
  }

  void check_copies(int ordinal, std::span<const StreamCopy> copies) const {
    for (const StreamCopy& one : copies) {
      check_width(one.width);
      check_memory(one.block, one.source, one.target);
      check_reach(ordinal, one.source);
      check_reach(ordinal, one.target);
    }
  }

  bool is_lost(int ordinal) const noexcept {
    return lost[std::size_t(ordinal)].has_happened.load(std::memory_order_acquire);
  }
  std::string loss_of(int ordinal) const {
    return fmt::format("{} was lost in the middle of piece {} of its work", to_string(Device::fake(ordinal)),
                       lost[std::size_t(ordinal)].after + 1);
  }
  [[noreturn]] void fail(int ordinal, int lost_ordinal) const {
    if (ordinal == lost_ordinal) throw_error(ErrorCode::device_lost, "{}", loss_of(ordinal));
    throw_error(ErrorCode::device_lost, "a stream of {} waits for work that is never over: {}",
                to_string(Device::fake(ordinal)), loss_of(lost_ordinal));
  }
  /// Runs a piece of work and returns true, or returns false when the device is lost.
  bool run(int ordinal, Work& work);

  FakeDevices fake;
  std::int64_t wait_timeout_ns;
  Memories memories;
  DeferredOrder order;
  std::deque<Loss> lost;                                                           // by ordinal
  std::deque<std::atomic<std::int64_t>> launches, pinned_bytes, registered_bytes;  // by ordinal
  std::atomic<int>& losses;
  std::mutex streams_mutex;
  std::vector<QueuedStream*> streams;
};

namespace {

class EagerFakeStream final : public EagerStream {
 public:
  EagerFakeStream(FakeMachine::State& machine, int ordinal)
      : EagerStream(Device::fake(ordinal), machine.wait_timeout_ns), machine_(machine) {}

  void wait(Event event) override {
    check_here();
    EagerStream::wait(event);
  }
  void copy(const CopyBlock& block, int width, const void* source, void* target) override {
    check_width(width);
    check_memory(block, source, target);
    machine_.check_reach(ordinal(), source);
    machine_.check_reach(ordinal(), target);
    CopyWork<const CopyBlock&> work(block, width, source, target);
    run_here(work);
  }
  void copy_list(std::span<const StreamCopy> copies) override {
    machine_.check_copies(ordinal(), copies);
    if (copies.empty()) return;
    CopyListWork work(copies);
    run_here(work);
  }
  void* native_handle() noexcept override { return this; }
  void fill(const CopyBlock& block, int width, const void* element, void* target) override {
    check_width(width);
    check_target(block, target);
    machine_.check_reach(ordinal(), target);
    FillWork work(block, width, element, target);
    run_here(work);
  }
  void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) override {
    detail::check_combination(how, type);
    check_memory(block, source, target);
    machine_.check_reach(ordinal(), source);
    machine_.check_reach(ordinal(), target);
    CombineWork work(block, how, type, source, target);
    run_here(work);
  }
  void run(std::unique_ptr<Kernel> kernel) override {
    check_kernel(kernel);
    KernelWork work(std::move(kernel));
    run_here(work);
  }

 private:
  int ordinal() const { return device().ordinal(); }
  void check_here() const {
    if (machine_.is_lost(ordinal())) machine_.fail(ordinal(), ordinal());
  }
  void run_here(Work& work) {
    machine_.launches[std::size_t(ordinal())].fetch_add(1, std::memory_order_relaxed);
    if (!machine_.run(ordinal(), work)) machine_.fail(ordinal(), ordinal());
  }
  FakeMachine::State& machine_;
};

/// A stream with a queue; a subclass decides when pieces leave it.
class QueuedStream : public Stream {
 public:
  QueuedStream(FakeMachine::State& machine, int ordinal) : machine_(machine), ordinal_(ordinal) {}

  /// The device is lost: threads that wait for this stream must check again.
  virtual void wake() noexcept = 0;
  virtual void stop() noexcept {}

  Device device() const noexcept final { return Device::fake(ordinal_); }
  Event event() final { return {this, given_.load(std::memory_order_acquire)}; }
  bool is_over(std::uint64_t number) final { return done_.load(std::memory_order_acquire) >= number; }
  std::optional<Device> lost_with(std::uint64_t number) final {
    const int ordinal = lost_ordinal();
    return ordinal < 0 || is_over(number) ? std::nullopt : std::optional(Device::fake(ordinal));
  }

  void wait(Event event) final {
    check_here();
    if (event.stream == this || tranship::is_over(event)) return;
    if (const std::optional<Device> lost = tranship::lost_with(event)) machine_.fail(ordinal_, lost->ordinal());
    give({nullptr, event});
  }
  void copy(const CopyBlock& block, int width, const void* source, void* target) final {
    check_width(width);
    check_memory(block, source, target);
    machine_.check_reach(ordinal_, source);
    machine_.check_reach(ordinal_, target);
    check_here();
    give({std::make_unique<CopyWork<CopyBlock>>(block, width, source, target), {}});
  }
  void copy_list(std::span<const StreamCopy> copies) final {
    machine_.check_copies(ordinal_, copies);
    check_here();
    if (!copies.empty()) give({std::make_unique<CopyListWork>(copies), {}});
  }
  void* native_handle() noexcept final { return this; }
  void fill(const CopyBlock& block, int width, const void* element, void* target) final {
    check_width(width);
    check_target(block, target);
    machine_.check_reach(ordinal_, target);
    check_here();
    give({std::make_unique<FillWork>(block, width, element, target), {}});
  }
  void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) final {
    detail::check_combination(how, type);
    check_memory(block, source, target);
    machine_.check_reach(ordinal_, source);
    machine_.check_reach(ordinal_, target);
    check_here();
    give({std::make_unique<CombineWork>(block, how, type, source, target), {}});
  }
  void run(std::unique_ptr<Kernel> kernel) final {
    check_kernel(kernel);
    check_here();
    give({std::make_unique<KernelWork>(std::move(kernel)), {}});
  }

 protected:
  virtual void give(Piece piece) = 0;

  void push(Piece piece) {
    if (piece.work) machine_.launches[std::size_t(ordinal_)].fetch_add(1, std::memory_order_relaxed);
    queue_.push_back(std::move(piece));
    given_.fetch_add(1, std::memory_order_release);
  }
  /// Runs a piece and destroys it, before it counts as done. Returns false when that breaks the stream.
  bool run_piece(Piece piece) {
    if (!piece.work || machine_.run(ordinal_, *piece.work)) return true;
    break_with(ordinal_);
    return false;
  }
  void count_done() { done_.fetch_add(1, std::memory_order_release); }

  /// Stops all further work, because a device is lost.
  void break_with(int lost_ordinal) { broken_with_.store(lost_ordinal, std::memory_order_release); }
  /// Returns -1 when no device is lost.
  int lost_ordinal() const {
    return machine_.is_lost(ordinal_) ? ordinal_ : broken_with_.load(std::memory_order_acquire);
  }
  void check_here() const {
    if (const int lost = lost_ordinal(); lost >= 0) machine_.fail(ordinal_, lost);
  }
  void check_given(std::uint64_t number) const {
    if (const std::uint64_t given = given_.load(std::memory_order_acquire); number > given)
      throw_error(ErrorCode::invalid_use, "there is no point {}: the stream of {} has been given {} of work", number,
                  to_string(device()), amount(given, "piece"));
  }
  [[noreturn]] void fail_late(std::uint64_t number) const {
    throw_error(ErrorCode::timeout, "{} of {} of work on a stream of {} were over when the deadline passed",
                done_.load(std::memory_order_acquire), amount(number, "piece"), to_string(device()));
  }

  FakeMachine::State& machine_;
  int ordinal_;
  std::deque<Piece> queue_;
  std::atomic<std::uint64_t> given_ = 0, done_ = 0;
  std::atomic<int> broken_with_ = -1;
};

class DeferredStream final : public QueuedStream {
 public:
  DeferredStream(FakeMachine::State& machine, int ordinal) : QueuedStream(machine, ordinal) {
    machine_.order.add(*this);
  }
  ~DeferredStream() override {
    // This waits for no other thread: all work that it depends on runs here.
    settle(event(), Deadline::never());
    machine_.order.remove(*this);
  }
  void finish(std::uint64_t number, Deadline deadline) override {
    if (is_over(number)) return;
    check_given(number);
    machine_.order.finish(*this, number, deadline);
    if (!is_over(number)) check_here();
  }

 private:
  friend DeferredOrder;
  void wake() noexcept override {}  // waiters check when they run work
  void give(Piece piece) override { machine_.order.give(*this, std::move(piece)); }
  bool is_runnable() const { return !queue_.empty() && tranship::is_over(queue_.front().after); }
  void run_first() {
    const bool is_done = run_piece(std::move(queue_.front()));
    queue_.pop_front();
    if (is_done)
      count_done();
    else
      machine_.order.break_lost();
  }
  /// Returns true, and forgets the queue, when its first piece will never run.
  bool breaks() {
    if (queue_.empty()) return false;
    if (lost_ordinal() < 0) {
      const std::optional<Device> lost = tranship::lost_with(queue_.front().after);
      if (!lost) return false;
      break_with(lost->ordinal());
    }
    queue_.clear();
    return true;
  }
};

void DeferredOrder::add(DeferredStream& stream) {
  const Lock lock(mutex_);
  streams_.push_back(&stream);
}

void DeferredOrder::remove(DeferredStream& stream) noexcept {
  const Lock lock(mutex_);
  std::erase(streams_, &stream);
}

bool DeferredOrder::has(const Stream* stream) const {
  return std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
}

void DeferredOrder::give(DeferredStream& stream, Piece piece) {
  const Lock lock(mutex_);
  stream.push(std::move(piece));
}

/// Streams that wait for lost work are lost, too.
void DeferredOrder::break_lost() noexcept {
  while (std::any_of(streams_.begin(), streams_.end(), [](DeferredStream* stream) { return stream->breaks(); }))
    ;
}

/// Returns when the work has completed, or never will.
void DeferredOrder::finish(DeferredStream& stream, std::uint64_t number, Deadline deadline) {
  // Each goal waits for the one above it. An event names work enqueued before it, so no goal occurs twice.
  std::vector<Event> goals{{&stream, number}};
  const Lock lock(mutex_);
  while (!goals.empty()) {
    const Event goal = goals.back();
    if (tranship::is_over(goal)) {
      goals.pop_back();
      continue;
    }
    if (tranship::lost_with(goal)) {
      break_lost();
      return;
    }
    if (deadline.passed()) stream.fail_late(number);
    if (!has(goal.stream)) {  // of another Devices
      tranship::finish(goal, deadline);
      continue;
    }
    auto& next = static_cast<DeferredStream&>(*goal.stream);
    if (next.is_runnable())
      next.run_first();
    else
      goals.push_back(next.queue_.front().after);
  }
}

int DeferredOrder::steps(int count) {
  const Lock lock(mutex_);
  std::vector<DeferredStream*> runnable;
  for (int step = 0; step < count; ++step) {
    runnable.clear();
    for (DeferredStream* stream : streams_)
      if (stream->is_runnable()) runnable.push_back(stream);
    if (runnable.empty()) {
      break_lost();
      return step;
    }
    runnable[random_.below(runnable.size())]->run_first();
  }
  return count;
}

}  // namespace

bool FakeMachine::State::run(int ordinal, Work& work) {
  Loss& loss = lost[std::size_t(ordinal)];
  if (loss.after < 0) {
    work.run();
    return true;
  }
  {
    const Lock lock(loss.mutex);
    if (is_lost(ordinal)) return false;
    if (loss.done++ < loss.after) {
      work.run();
      return true;
    }
    work.run_half();
    losses.fetch_add(1, std::memory_order_release);
    loss.has_happened.store(true, std::memory_order_release);
  }
  const Lock lock(streams_mutex);
  for (QueuedStream* stream : streams)
    if (stream->device().ordinal() == ordinal) stream->wake();
  return false;
}

namespace {

class ThreadedStream final : public QueuedStream {
 public:
  ThreadedStream(FakeMachine::State& machine, int ordinal)
      : QueuedStream(machine, ordinal), worker_([this] { work(); }) {
    const Lock lock(machine.streams_mutex);
    machine.streams.push_back(this);
  }
  ~ThreadedStream() override {
    {
      const Lock lock(machine_.streams_mutex);
      std::erase(machine_.streams, this);
    }
    stop();
  }
  void stop() noexcept override {
    {
      const Lock lock(mutex_);
      stopping_ = true;
    }
    given_work_.notify_one();
    if (worker_.joinable()) worker_.join();
  }
  void finish(std::uint64_t number, Deadline deadline) override {
    if (is_over(number)) return;
    check_given(number);
    Lock lock(mutex_);
    // steady_clock is the clock of now_ns().
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.at_ns())};
    if (!work_over_.wait_until(lock, until, [&] { return is_over(number) || lost_ordinal() >= 0; })) fail_late(number);
    if (!is_over(number)) check_here();
  }
  void wake() noexcept override {
    { const Lock lock(mutex_); }
    work_over_.notify_all();
  }

 private:
  void give(Piece piece) override {
    {
      const Lock lock(mutex_);
      push(std::move(piece));
    }
    given_work_.notify_one();
  }
  /// Returns true when the event has completed; otherwise the stream is broken.
  bool wait_here(Event event) {
    // No deadline: a device waits as long as it takes. Callers that wait for the device have one.
    settle(event, Deadline::never());
    const std::optional<Device> lost = tranship::lost_with(event);
    if (lost) break_with(lost->ordinal());
    return !lost;
  }
  /// Ends when the stream is stopped and its queue is empty, or at the piece that breaks the stream.
  void work() {
    const std::chrono::nanoseconds delay(machine_.fake.delay_ns);
    Lock lock(mutex_);
    for (;;) {
      // wait() without a timeout needs the library of GCC 12, and programs may run with that of GCC 11.
      while (!given_work_.wait_for(lock, std::chrono::hours(1), [&] { return stopping_ || !queue_.empty(); })) {
      }
      if (queue_.empty()) return;
      // Simulates a slow device; correctness does not depend on it.
      if (delay.count() > 0) given_work_.wait_for(lock, delay, [&] { return stopping_; });
      Piece piece = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const bool is_done = wait_here(piece.after) && run_piece(std::move(piece));
      lock.lock();
      if (is_done) count_done();
      work_over_.notify_all();
      if (is_done) continue;
      queue_.clear();
      return;
    }
  }

  std::mutex mutex_;
  std::condition_variable given_work_, work_over_;
  bool stopping_ = false;
  std::thread worker_;
};

class FakeDriver final : public Driver {
 public:
  FakeDriver(FakeMachine::State& machine, int ordinal)
      : machine_(machine), ordinal_(ordinal), memory_(machine.memory_of(ordinal)) {}

  Device device() const noexcept override { return Device::fake(ordinal_); }
  void* allocate(std::size_t size_bytes) override { return machine_.memories.allocate(memory_, size_bytes); }
  void deallocate(void* memory, std::size_t size_bytes) noexcept override {
    machine_.memories.deallocate(memory_, memory, size_bytes);
  }
  void* allocate_pinned(std::size_t size_bytes) override {
    void* const memory = Driver::allocate_pinned(size_bytes);
    if (memory) counted(machine_.pinned_bytes) += std::int64_t(size_bytes);
    return memory;
  }
  void deallocate_pinned(void* memory, std::size_t size_bytes) noexcept override {
    Driver::deallocate_pinned(memory, size_bytes);
    counted(machine_.pinned_bytes) -= std::int64_t(size_bytes);
  }
  std::shared_ptr<void> register_foreign(void* first, std::size_t size_bytes) override {
    counted(machine_.registered_bytes) += std::int64_t(size_bytes);
    return {first, [this, size_bytes](void*) { counted(machine_.registered_bytes) -= std::int64_t(size_bytes); }};
  }
  DriverCounts counts() const noexcept override {
    return {.launches = counted(machine_.launches),
            .pinned_bytes = counted(machine_.pinned_bytes),
            .registered_bytes = counted(machine_.registered_bytes)};
  }
  std::int64_t capacity_bytes() const noexcept override { return machine_.fake.capacity_bytes; }
  std::unique_ptr<Stream> make_stream() override {
    switch (machine_.fake.timing) {
      case FakeTiming::eager:
        break;
      case FakeTiming::deferred:
        return std::make_unique<DeferredStream>(machine_, ordinal_);
      case FakeTiming::threaded:
        return std::make_unique<ThreadedStream>(machine_, ordinal_);
    }
    return std::make_unique<EagerFakeStream>(machine_, ordinal_);
  }
  bool reaches(Device other) const noexcept override {
    if (other.is_host()) return true;
    return other.kind() == DeviceKind::fake && other.ordinal() >= 0 && other.ordinal() < machine_.fake.count &&
           machine_.reaches(ordinal_, other.ordinal());
  }
  bool is_host_memory() const noexcept override { return false; }
  std::string loss() const override { return machine_.is_lost(ordinal_) ? machine_.loss_of(ordinal_) : ""; }

 private:
  std::atomic<std::int64_t>& counted(std::deque<std::atomic<std::int64_t>>& what) const {
    return what[std::size_t(ordinal_)];
  }

  FakeMachine::State& machine_;
  int ordinal_, memory_;
};

void check_options(const FakeDevices& fake) {
  if (fake.count < 0) throw_error(ErrorCode::invalid_use, "FakeDevices::count is {}; it must be 0 or more", fake.count);
  if (fake.capacity_bytes < 0 || fake.delay_ns < 0)
    throw_error(ErrorCode::invalid_use, "FakeDevices has capacity_bytes {} and delay_ns {}; both must be 0 or more",
                fake.capacity_bytes, fake.delay_ns);
  if (fake.lost_after.size() > std::size_t(fake.count))
    throw_error(ErrorCode::invalid_use, "FakeDevices::lost_after lists {}, but count is {}",
                amount(fake.lost_after.size(), "device"), fake.count);
  if (fake.memory_of.size() > std::size_t(fake.count))
    throw_error(ErrorCode::invalid_use, "FakeDevices::memory_of lists {}, but count is {}",
                amount(fake.memory_of.size(), "device"), fake.count);
  for (int i = 0; i < int(fake.memory_of.size()); ++i)
    if (const int memory = fake.memory_of[std::size_t(i)]; memory < -1 || memory >= i)
      throw_error(ErrorCode::invalid_use, "fake:{} has the memory of device {}; it must be an earlier one, or -1", i,
                  memory);
}

const FakeDevices& checked(const FakeDevices& fake) {
  check_options(fake);
  return fake;
}

constexpr int fake_count_max = 63;  // with the host, as many memories as there can be

int fake_devices_of_environment() {
  const char* text = std::getenv("TRANSHIP_FAKE_DEVICES");
  if (!text || !*text) return 0;
  const char* end = text + std::strlen(text);
  int count = -1;
  const auto [after, fault] = std::from_chars(text, end, count);
  if (fault != std::errc() || after != end || count < 0 || count > fake_count_max)
    throw_error(ErrorCode::bad_text, "TRANSHIP_FAKE_DEVICES is '{}'; it must be a number from 0 to {}", text,
                fake_count_max);
  return count;
}

}  // namespace

FakeMachine::FakeMachine(const FakeDevices& fake, const DeviceSetOptions& options)
    : state_(std::make_unique<State>(checked(fake), options)) {}
FakeMachine::~FakeMachine() = default;

std::unique_ptr<Driver> FakeMachine::make_driver(int ordinal) {
  return std::make_unique<FakeDriver>(*state_, ordinal);
}

int FakeMachine::count() const noexcept {
  return state_->fake.count;
}

int FakeMachine::memory_of(int ordinal) const noexcept {
  return state_->memory_of(ordinal);
}

void FakeMachine::stop() noexcept {
  std::vector<QueuedStream*> streams;
  {
    const Lock lock(state_->streams_mutex);
    streams = state_->streams;  // copied, because a thread that ends by a loss needs the lock
  }
  for (QueuedStream* stream : streams) stream->stop();
}

int FakeMachine::steps(int count) {
  return state_->order.steps(count);
}

const DeviceFamily fake_devices{
    .kind = FakeDevices::kind,
    .make = [](const std::any& kind_options, const DeviceSetOptions& options) -> std::unique_ptr<DeviceSet> {
      return std::make_unique<FakeMachine>(std::any_cast<const FakeDevices&>(kind_options), options);
    },
    .standard = []() -> std::optional<DevicesOfKind> {
      const int count = fake_devices_of_environment();
      if (count == 0) return {};
      return FakeDevices{.count = count};
    },
    .state =
        [] {
          const int count = fake_devices_of_environment();
          return DeviceFamilyState{count, count == 0 ? "for tests: TRANSHIP_FAKE_DEVICES says how many there are, 0"
                                                     : "for tests, as many as TRANSHIP_FAKE_DEVICES says"};
        },
};

}  // namespace tranship
