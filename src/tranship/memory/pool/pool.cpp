#include "tranship/memory/pool/pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <optional>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/sync.hpp>

namespace tranship {
namespace {

/// A spin lock: the work under it takes some tens of nanoseconds, half of which a mutex would cost.
class SpinLock {
 public:
  void lock() noexcept {
    while (is_locked_.exchange(true, std::memory_order_acquire)) RealSync::yield();
  }
  void unlock() noexcept { is_locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_locked_ = false;
};
using PoolLock = std::unique_lock<SpinLock>;

constexpr int smallest_bits = 8;  // blocks of 256 bytes
constexpr int largest_bits = 62;
constexpr int class_count = 4 * (largest_bits - smallest_bits) + 1;

constexpr std::size_t bytes_of_class(int number) {
  return (std::size_t(4) + std::size_t(number % 4)) << (smallest_bits - 2 + number / 4);
}

int class_of(std::size_t size_bytes) {
  if (size_bytes <= bytes_of_class(0)) return 0;
  if (size_bytes > bytes_of_class(class_count - 1))
    throw_error(ErrorCode::overflow, "cannot allocate {}: the largest block has {}", amount(size_bytes, "byte"),
                bytes_of_class(class_count - 1));
  // The last byte lies in [2^bits, 2^(bits+1)), in one of its quarters.
  const std::size_t last = size_bytes - 1;
  const int bits = std::bit_width(last) - 1;
  const int quarter = int(last >> (bits - 2)) - 4;
  return 4 * (bits - smallest_bits) + quarter + 1;
}

/// A block of the driver's memory that the pool owns. Kept blocks are linked through themselves, so that keeping one
/// allocates nothing.
struct Block {
  Block* next = nullptr;
  Block* previous = nullptr;
  void* memory = nullptr;
  int size_class = 0;
  bool is_kept = false;
  int use_count = 0;
  Event uses[Pool::last_uses_max];

  std::size_t bytes() const { return bytes_of_class(size_class); }
  /// Returns false when there is no room. Of two points of one stream, the later one counts.
  bool add_use(Event use) {
    for (int i = 0; i < use_count; ++i)
      if (uses[i].stream == use.stream) {
        uses[i].number = std::max(uses[i].number, use.number);
        return true;
      }
    if (use_count == Pool::last_uses_max) return false;
    uses[use_count++] = use;
    return true;
  }
  /// Removes uses that are at rest; returns true when none is left.
  bool is_idle() {
    int unfinished = 0;
    for (int i = 0; i < use_count; ++i)
      if (!is_at_rest(uses[i])) uses[unfinished++] = uses[i];
    use_count = unfinished;
    return unfinished == 0;
  }
  bool is_used_only_by(const Stream* stream) const {
    return stream && std::all_of(uses, uses + use_count, [&](Event use) { return use.stream == stream; });
  }
};

/// The kept blocks of one class: first the idle ones, last freed first, then the others, first freed first.
class Chain {
 public:
  Block* first() const { return first_; }
  void push_front(Block& block) { link(block, nullptr, first_); }
  void push_back(Block& block) { link(block, last_, nullptr); }
  void remove(Block& block) {
    (block.previous ? block.previous->next : first_) = block.next;
    (block.next ? block.next->previous : last_) = block.previous;
    block.next = block.previous = nullptr;
  }

 private:
  void link(Block& block, Block* previous, Block* next) {
    block.previous = previous;
    block.next = next;
    (previous ? previous->next : first_) = &block;
    (next ? next->previous : last_) = &block;
  }
  Block* first_ = nullptr;
  Block* last_ = nullptr;
};

}  // namespace

/// All members are guarded by the lock, which is released around driver calls and waits.
struct Pool::State {
  State(Driver& d, PoolOptions o) : driver(d), options(o) {}

  Block& get(int size_class, std::size_t size_bytes, Stream* stream);
  Block* take_ready(int size_class, const Stream* in_order);
  Block* make(int size_class, PoolLock& lock);
  bool give_back(std::int64_t keep_bytes, PoolLock& lock);
  void wait_on(Stream& stream, Block& block, PoolLock& lock);
  Block* first_kept() const;
  void wait_here(const Block& block, Deadline deadline, PoolLock& lock);
  Block& hand_out(Block& block);
  void take(Block& block);
  void keep(Block& block);
  [[noreturn]] void fail(int size_class, std::size_t size_bytes, PoolLock& lock) const;

  Driver& driver;
  PoolOptions options;
  mutable SpinLock mutex;
  PoolCounts counts;
  std::array<Chain, class_count> kept;
};

Block& Pool::State::get(int size_class, std::size_t size_bytes, Stream* stream) {
  const auto bytes = std::int64_t(bytes_of_class(size_class));
  // The events of a stream may name another object than the caller's. Null: the caller itself waits.
  const Stream* const in_order = stream ? stream->event().stream : nullptr;
  std::optional<Deadline> deadline;
  PoolLock lock(mutex);
  for (;;) {
    if (Block* block = take_ready(size_class, in_order)) {
      ++counts.reuses;
      return hand_out(*block);
    }
    const std::int64_t room = options.limit_bytes - counts.in_use_bytes - bytes;  // for kept blocks
    const bool fits = room >= counts.kept_bytes;
    if (fits)
      if (Block* block = make(size_class, lock)) return hand_out(*block);
    if (room >= 0 && give_back(fits ? 0 : room, lock)) continue;

    Block* busy = kept[std::size_t(size_class)].first();
    if (busy && in_order) {
      wait_on(*stream, *busy, lock);
      ++counts.reuses;
      return hand_out(*busy);
    }
    if (!busy && room >= 0) busy = first_kept();
    if (!busy) fail(size_class, size_bytes, lock);
    if (!deadline) deadline = Deadline::after_ns(options.wait_timeout_ns);
    wait_here(*busy, *deadline, lock);
  }
}

/// Takes the first block that is idle or used only by `in_order`, whose order protects it. Its uses stay recorded,
/// because the new owner may free the block without using it.
Block* Pool::State::take_ready(int size_class, const Stream* in_order) {
  for (Block* block = kept[std::size_t(size_class)].first(); block; block = block->next)
    if (block->is_idle() || block->is_used_only_by(in_order)) {
      take(*block);
      return block;
    }
  return nullptr;
}

/// Returns a new block; null when the driver has no room. Throws what the driver throws.
Block* Pool::State::make(int size_class, PoolLock& lock) {
  const std::size_t bytes = bytes_of_class(size_class);
  // Counted in advance, so that no other thread takes the room meanwhile.
  counts.in_use_bytes += std::int64_t(bytes);
  lock.unlock();
  std::unique_ptr<Block> block(new (std::nothrow) Block);
  void* memory = nullptr;
  try {
    if (block) memory = driver.allocate(bytes);
  } catch (...) {
    lock.lock();
    counts.in_use_bytes -= std::int64_t(bytes);
    throw;
  }
  lock.lock();
  if (!memory) {
    counts.in_use_bytes -= std::int64_t(bytes);
    return nullptr;
  }
  ++counts.driver_allocations;
  block->memory = memory;
  block->size_class = size_class;
  return block.release();
}

/// Returns idle blocks to the driver, largest first, until at most `keep_bytes` are kept. Returns true when there were
/// any.
bool Pool::State::give_back(std::int64_t keep_bytes, PoolLock& lock) {
  Block* unlinked = nullptr;
  for (int size_class = class_count - 1; size_class >= 0; --size_class) {
    Chain& chain = kept[std::size_t(size_class)];
    for (Block* block = chain.first(); block && counts.kept_bytes > keep_bytes;) {
      Block* const next = block->next;
      if (block->is_idle()) {
        chain.remove(*block);
        counts.kept_bytes -= std::int64_t(block->bytes());
        ++counts.driver_frees;
        block->next = unlinked;
        unlinked = block;
      }
      block = next;
    }
  }
  if (!unlinked) return false;
  lock.unlock();
  while (unlinked) {
    const std::unique_ptr<Block> block(unlinked);
    unlinked = block->next;
    driver.deallocate(block->memory, block->bytes());
  }
  lock.lock();
  return true;
}

/// Takes a block and makes `stream` wait for its last users. The stream's next point then replaces them, even if the
/// new owner frees the block unused.
void Pool::State::wait_on(Stream& stream, Block& block, PoolLock& lock) {
  take(block);
  lock.unlock();
  try {
    for (int i = 0; i < block.use_count; ++i) {
      const Event use = block.uses[i];
      if (is_at_rest(use)) continue;
      if (lost_with(use))
        settle(use, Deadline::after_ns(options.wait_timeout_ns));
      else
        stream.wait(use);
    }
    block.uses[0] = stream.event();
    block.use_count = 1;
  } catch (...) {
    lock.lock();
    keep(block);
    throw;
  }
  lock.lock();
}

Block* Pool::State::first_kept() const {
  const auto chain = std::find_if(kept.rbegin(), kept.rend(), [](const Chain& c) { return c.first() != nullptr; });
  return chain == kept.rend() ? nullptr : chain->first();
}

/// Waits until the block is unused. It stays in its chain: others may wait for it, too, and the first to return takes
/// it.
void Pool::State::wait_here(const Block& block, Deadline deadline, PoolLock& lock) {
  std::array<Event, last_uses_max> uses;
  std::copy(std::begin(block.uses), std::end(block.uses), uses.begin());
  const int use_count = block.use_count;
  lock.unlock();
  for (int i = 0; i < use_count; ++i) settle(uses[std::size_t(i)], deadline);
  lock.lock();
}

Block& Pool::State::hand_out(Block& block) {
  ++counts.allocations;
  counts.in_use_bytes_max = std::max(counts.in_use_bytes_max, counts.in_use_bytes);
  return block;
}

void Pool::State::take(Block& block) {
  const auto bytes = std::int64_t(block.bytes());
  kept[std::size_t(block.size_class)].remove(block);
  block.is_kept = false;
  counts.kept_bytes -= bytes;
  counts.in_use_bytes += bytes;
}

void Pool::State::keep(Block& block) {
  const auto bytes = std::int64_t(block.bytes());
  Chain& chain = kept[std::size_t(block.size_class)];
  if (block.use_count == 0)
    chain.push_front(block);
  else
    chain.push_back(block);
  block.is_kept = true;
  counts.in_use_bytes -= bytes;
  counts.kept_bytes += bytes;
}

void Pool::State::fail(int size_class, std::size_t size_bytes, PoolLock& lock) const {
  const auto [in_use, kept_bytes] = std::pair(counts.in_use_bytes, counts.kept_bytes);
  lock.unlock();
  const std::int64_t limit_bytes = std::min(options.limit_bytes, driver.capacity_bytes());
  const std::string limit = limit_bytes == INT64_MAX ? "none" : amount(limit_bytes, "byte");
  const std::string left = driver.memory_left();
  throw_error(ErrorCode::no_memory, "no room on {} for {} (a block of {}): {} in use, {} kept, the limit is {}{}{}",
              to_string(driver.device()), amount(Index(size_bytes), "byte"), bytes_of_class(size_class),
              amount(in_use, "byte"), kept_bytes, limit, left.empty() ? "" : "; ", left);
}

Pool::Pool(Driver& driver, PoolOptions options) : state_(std::make_unique<State>(driver, options)) {
  limit(options.limit_bytes);
  driver.add(*this);
}

Pool::~Pool() {
  state_->driver.remove(*this);
  const Deadline deadline = Deadline::after_ns(state_->options.wait_timeout_ns);
  for (Chain& chain : state_->kept)
    while (Block* first = chain.first()) {
      chain.remove(*first);
      const std::unique_ptr<Block> block(first);
      try {
        for (int i = 0; i < block->use_count; ++i) settle(block->uses[i], deadline);
        state_->driver.deallocate(block->memory, block->bytes());
      } catch (const Error&) {
        // Memory that is still in use is never given back.
      }
    }
}

PoolBlock Pool::allocate(std::size_t size_bytes, Stream* stream) {
  Block& block = state_->get(class_of(size_bytes), size_bytes, stream);
  return {.memory = block.memory, .size_bytes = size_bytes, .record = &block};
}

void Pool::free(PoolBlock block, std::span<const Event> last_uses) noexcept {
  if (!block.record) return;
  Block& record = *static_cast<Block*>(block.record);
  TRANSHIP_ASSERT(!record.is_kept);
  for (const Event use : last_uses) {
    if (is_at_rest(use) || record.add_use(use)) continue;
    try {
      settle(use, Deadline::after_ns(state_->options.wait_timeout_ns));
    } catch (const Error&) {
      return;  // It stays allocated for good, because work may still use it.
    }
  }
  PoolLock lock(state_->mutex);
  state_->keep(record);
  if (state_->counts.kept_bytes > state_->options.kept_bytes_max)
    state_->give_back(std::max<std::int64_t>(state_->options.kept_bytes_max, 0), lock);
}

void Pool::trim(std::int64_t keep_bytes) noexcept {
  PoolLock lock(state_->mutex);
  state_->give_back(std::max<std::int64_t>(keep_bytes, 0), lock);
}

void Pool::limit(std::int64_t limit_bytes) noexcept {
  PoolLock lock(state_->mutex);
  state_->options.limit_bytes = std::max<std::int64_t>(limit_bytes, 0);
  const std::int64_t room = state_->options.limit_bytes - state_->counts.in_use_bytes;
  state_->give_back(std::max<std::int64_t>(room, 0), lock);
}

PoolCounts Pool::counts() const noexcept {
  const PoolLock lock(state_->mutex);
  return state_->counts;
}

Driver& Pool::driver() const noexcept {
  return state_->driver;
}

std::size_t Pool::class_bytes(std::size_t size_bytes) {
  return bytes_of_class(class_of(size_bytes));
}

}  // namespace tranship
