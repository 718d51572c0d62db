#include "tranship/file/engine/block_run.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include <sched.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/engine/block_grid.hpp>
#include <tranship/file/engine/box_reader.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/format/byte_order.hpp>

namespace tranship {
namespace {

// A block takes a 32nd of the memory, and its reader's window twice that: 8 threads take three quarters of it.
constexpr Index blocks_in_memory = 32;
constexpr Index windows_per_block = 2;
// Slabs gain nothing from being larger than the caches.
constexpr Index slab_bytes_max = Index(1) << 20;
// Shorter writes to a file that is not in the page cache yet cost more than shorter reads of one that is: measured with
// 8 to 64 KiB. Longer ones keep other threads from the file.
constexpr Index run_bytes_wanted = Index(32) << 10;
// A listed cell costs its two indices and its two offsets, twice while they are made.
constexpr Index listed_cell_bytes = 64;
// Plans of parts whose blocks take turns.
constexpr Index plan_runs_max = Index(1) << 16;
constexpr Index parts_in_turn_max = 256;

Index block_bytes_max(Index memory_bytes) {
  return memory_bytes / blocks_in_memory;
}

BlockGrid grid_of(const BlockJob& job, Index part, Index memory_bytes) {
  const StoredParts& wanted = *job.wanted;
  const Index width = size_bytes(wanted.spec.type);
  const int dims = wanted.parts[part].extents.size();
  BlockGridOptions options{.extents = wanted.parts[part].extents,
                           .source_order = dimension_order(job.source->parts.front().order, dims),
                           .target_order = dimension_order(wanted.parts[part].order, dims)};
  Index bytes = block_bytes_max(memory_bytes);
  if (options.source_order == options.target_order) bytes = std::min(bytes, slab_bytes_max);
  options.target_run_wanted = run_bytes_wanted / width;
  const bool listed = wanted.spec.distribution.is_indexed() || job.source->spec.distribution.is_indexed();
  options.cells_max = std::max<Index>(1, bytes / (listed ? width + listed_cell_bytes : width));
  return BlockGrid(options);
}

/// Parts in the order in which they are taken, and those of them that share rows of the source side by side.
class Turns {
 public:
  Turns(const BlockJob& job, Index memory_bytes)
      : job_(job), planner_(job.source->spec, job.wanted->spec), memory_bytes_(memory_bytes) {
    const Distribution& wanted = job.wanted->spec.distribution;
    const auto count = static_cast<Index>(job.wanted->parts.size());
    keys_.resize(static_cast<std::size_t>(count));
    order_.resize(static_cast<std::size_t>(count));
    std::iota(order_.begin(), order_.end(), Index(0));
    if (wanted.is_indexed()) return;
    // Parts with another stretch of the source's slowest dimension share no rows; cyclic ones share all.
    const int slowest = job.source->parts.front().order == NpyOrder::c ? 0 : wanted.dims() - 1;
    if (wanted.axis(slowest).partition().kind != PartitionKind::cyclic)
      for (Index i = 0; i < count; ++i) keys_[i] = wanted.grid().place_at(i).coordinates[slowest];
    std::stable_sort(order_.begin(), order_.end(), [&](Index a, Index b) { return keys_[a] < keys_[b]; });
  }

  struct Next {
    BlockAddress at;
    Box box;
    std::shared_ptr<const PartPlan> plan;
  };
  /// False when there are no more.
  bool next(Next& out) {
    for (;;) {
      if (active_.empty() && !refill()) return false;
      if (turn_ >= active_.size()) turn_ = 0;
      Active& part = active_[turn_];
      if (part.next == part.grid.count()) {
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(turn_));
        continue;
      }
      out.at.part = part.ordinal;
      out.at.number = part.next++;
      out.box = part.grid.box(out.at.number);
      if (!part.plan) part.plan = std::make_shared<const PartPlan>(planner_.plan(part.ordinal));
      out.plan = part.plan;
      ++turn_;
      return true;
    }
  }

 private:
  struct Active {
    Index ordinal;
    BlockGrid grid;
    Index next = 0;
    std::shared_ptr<const PartPlan> plan;
  };

  bool refill() {
    Index runs = 0;
    turn_ = 0;
    const std::size_t first = taken_;
    while (taken_ < order_.size() && taken_ - first < parts_in_turn_max && runs < plan_runs_max &&
           keys_[order_[taken_]] == keys_[order_[first]]) {
      const Index ordinal = order_[taken_++];
      Active part{ordinal, grid_of(job_, ordinal, memory_bytes_), 0, nullptr};
      if (part.grid.count() == 0) continue;
      part.plan = std::make_shared<const PartPlan>(planner_.plan(ordinal));
      runs += part.plan->moves.stored_runs();
      active_.push_back(std::move(part));
    }
    return !active_.empty() || (taken_ < order_.size() && refill());
  }

  const BlockJob& job_;
  PartPlanner planner_;
  Index memory_bytes_;
  std::vector<Index> keys_;   // by ordinal
  std::vector<Index> order_;  // ordinals
  std::size_t taken_ = 0;
  std::vector<Active> active_;
  std::size_t turn_ = 0;
};

/// Hands blocks to the threads and keeps the first error.
class Team {
 public:
  Team(std::span<const BlockJob> jobs, const BlockRunOptions& options) : jobs_(jobs), options_(options) {}

  void run() {
    std::vector<std::thread> threads;
    try {
      start(threads, threads_within(options_.memory_bytes, options_.threads));
      threads.empty() ? work(options_.watch) : watch();
    } catch (...) {
      stop(std::current_exception());
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    options_.watch();
  }

 private:
  /// As many threads as the system grants; where that is none, the calling thread works.
  void start(std::vector<std::thread>& threads, int count) {
    threads.reserve(static_cast<std::size_t>(count));
    const std::lock_guard lock(mutex_);
    try {
      for (; working_ < count; ++working_) threads.emplace_back([this] { work([] {}); });
    } catch (const std::system_error&) {
      // Those that run do all of the work.
    }
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      changed_.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();
      options_.watch();
      lock.lock();
    }
  }

  void stop(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  bool next(Turns::Next& out) {
    const std::lock_guard lock(mutex_);
    while (!error_ && job_ < jobs_.size()) {
      if (!turns_) turns_ = std::make_unique<Turns>(jobs_[job_], options_.memory_bytes);
      while (turns_->next(out)) {
        out.at.job = static_cast<Index>(job_);
        if (!options_.skip(out.at)) return true;
      }
      turns_.reset();
      ++job_;
    }
    return false;
  }

  void work(FunctionRef<void()> after_block) {
    try {
      const Index block_max = block_bytes_max(options_.memory_bytes);
      BoxReader reader(windows_per_block * block_max);
      std::unique_ptr<std::byte[]> buffer;
      Index buffer_bytes = 0;
      for (Turns::Next next; this->next(next);) {
        const BlockJob& job = jobs_[next.at.job];
        const StoredPart& part = job.wanted->parts[next.at.part];
        const Index bytes = next.box.count() * size_bytes(job.wanted->spec.type);
        if (bytes > buffer_bytes) {
          buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
          buffer_bytes = bytes;
        }
        const StoredPart in_memory{.order = part.order, .extents = next.box.extents()};
        const std::span<std::byte> elements(buffer.get(), static_cast<std::size_t>(bytes));
        const Index given = reader.read(*job.source, *next.plan, next.box,
                                        view_of(in_memory, job.wanted->spec.type, buffer.get()), elements);
        reverse_each(elements, swapped_bytes(job.source->descr, job.wanted->descr));
        options_.sink({next.at, next.box, elements, given});
        changed_.notify_one();
        after_block();
      }
    } catch (const std::bad_alloc&) {
      stop(std::make_exception_ptr(make_error(ErrorCode::no_memory, "no memory for blocks of {} bytes",
                                              block_bytes_max(options_.memory_bytes))));
    } catch (...) {
      stop(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --working_;
    changed_.notify_one();
  }

  std::span<const BlockJob> jobs_;
  const BlockRunOptions& options_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  int working_ = 0;
  std::exception_ptr error_;
  std::size_t job_ = 0;
  std::unique_ptr<Turns> turns_;
};

}  // namespace

int threads_within(Index memory_bytes, int wished) noexcept {
  const Index per_thread = (1 + windows_per_block) * block_bytes_max(memory_bytes);
  return static_cast<int>(std::clamp<Index>(memory_bytes / std::max<Index>(1, per_thread), 1, std::max(1, wished)));
}

int default_threads() noexcept {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return std::clamp(CPU_COUNT(&cpus), 1, 8);
}

Index block_count(const BlockJob& job, Index part, Index memory_bytes) {
  return grid_of(job, part, memory_bytes).count();
}

Index block_bytes(const BlockJob& job, const BlockAddress& at, Index memory_bytes) {
  return grid_of(job, at.part, memory_bytes).box(at.number).count() * size_bytes(job.wanted->spec.type);
}

void run_blocks(std::span<const BlockJob> jobs, const BlockRunOptions& options) {
  Team(jobs, options).run();
}

void for_each_stretch(const StoredPart& part, Index width, const Box& box, FunctionRef<void(Index, Index, Index)> f) {
  const int dims = box.dims();
  const Indices order = dimension_order(part.order, dims);
  const Indices strides = view_of(part, ElementType::u8, nullptr).strides;
  // Dimensions that the box has whole join the one before them.
  int first = dims - 1;
  Index stretch = box[order[first]].length();
  for (; first > 0 && box[order[first]].length() == part.extents[order[first]]; --first)
    stretch *= box[order[first - 1]].length();
  Indices counts;
  Index corner = 0;
  for (int k = 0; k < dims; ++k) {
    if (k < first) counts.push_back(box[order[k]].length());
    corner += box.lower[order[k]] * strides[order[k]];
  }
  Index in_box = 0;
  for_each_coordinate(counts, [&](const Indices& at) {
    Index offset = corner;
    for (int k = 0; k < first; ++k) offset += at[k] * strides[order[k]];
    f(part.offset_bytes + offset * width, in_box, stretch * width);
    in_box += stretch * width;
  });
}

void for_each_piece(const Box& box, const Indices& order, Index cells_max, FunctionRef<void(const Box&, Index)> f) {
  Indices steps = Indices::filled(box.dims(), 1), counts = steps;  // the latter in the order
  for (int k = box.dims() - 1; k >= 0; --k) {
    const Index length = box[order[k]].length();
    if (length == 0) return;
    steps[order[k]] = std::clamp<Index>(cells_max, 1, length);
    counts[k] = ceil_divide(length, steps[order[k]]);
    // A dimension that is cut is the last one of which a piece has more than one cell.
    cells_max = steps[order[k]] == length ? cells_max / length : 1;
  }
  Index first = 0;
  for_each_coordinate(counts, [&](const Indices& at) {
    Box piece = box;
    for (int k = 0; k < box.dims(); ++k) {
      const int d = static_cast<int>(order[k]);
      piece.lower[d] = box.lower[d] + at[k] * steps[d];
      piece.upper[d] = std::min(box.upper[d], piece.lower[d] + steps[d]);
    }
    f(piece, first);
    first += piece.count();
  });
}

}  // namespace tranship
