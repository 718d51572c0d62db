#include "tranship/file/engine/block_run.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

#include <sched.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/engine/box_reader.hpp>
#include <tranship/file/engine/slab.hpp>
#include <tranship/file/format/byte_order.hpp>
#include <tranship/file/store/strided_source.hpp>

namespace tranship {
namespace {

// Rounds in flight at once: one whose blocks are written, one that is read, and a few small ones.
constexpr std::size_t rounds_max = 4;
// Limits on the plans of parts that are kept from one round to the next.
constexpr std::size_t plans_max = 8192;
constexpr Index plan_runs_max = Index(1) << 17;

/// The plans of the parts of one job, each made once, or of single blocks.
class PartPlans {
 public:
  explicit PartPlans(const BlockPlan& plan) : plan_(plan) {}

  std::shared_ptr<const PartPlan> of(Index part, const Box& block) {
    if (auto moves = plan_.moves_of(part, block)) return std::make_shared<const PartPlan>(std::move(*moves));
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = plans_.find(part); known != plans_.end()) return known->second;
    }
    auto made = std::make_shared<const PartPlan>(planner().plan(part));
    const std::lock_guard lock(mutex_);
    if (plans_.size() >= plans_max || runs_ >= plan_runs_max) {
      plans_.clear();
      runs_ = 0;
    }
    runs_ += made->moves.stored_runs();
    return plans_.insert_or_assign(part, std::move(made)).first->second;
  }

 private:
  const PartPlanner& planner() {
    const std::lock_guard lock(mutex_);
    if (!planner_) planner_.emplace(plan_.job().source->spec, plan_.job().wanted->spec);
    return *planner_;
  }

  const BlockPlan& plan_;
  std::mutex mutex_;  // guards the members below
  std::optional<PartPlanner> planner_;
  std::unordered_map<Index, std::shared_ptr<const PartPlan>> plans_;
  Index runs_ = 0;
};

/// A round in flight.
struct Round {
  const BlockPlan* plan = nullptr;
  std::shared_ptr<PartPlans> plans;
  std::unique_ptr<Slab> slab;  // set if blocks are assembled from a slab
  std::vector<Slab::Piece> loads;
  std::vector<BlockAddress> blocks;
  std::size_t loads_begun = 0, loads_ended = 0, blocks_begun = 0, blocks_ended = 0;

  bool is_loaded() const { return loads_ended == loads.size(); }
};

/// The next work of one thread: a piece of a slab, or a block.
struct Task {
  std::list<Round>::iterator round;
  const Slab::Piece* load = nullptr;
  const BlockAddress* block = nullptr;
};

/// Hands pieces and blocks to the threads and keeps the first error.
class Team {
 public:
  Team(std::span<const std::unique_ptr<const BlockPlan>> plans, const BlockRunOptions& options)
      : plans_(plans), options_(options), slabs_room_bytes_(BlockPlan::slabs_bytes_max(options.memory_bytes)) {}

  /// Returns the bytes that were read.
  Index run() {
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
    return bytes_read_;
  }

 private:
  /// Starts as many threads as the system grants. If it grants none, the calling thread works.
  void start(std::vector<std::thread>& threads, int count) {
    threads.reserve(static_cast<std::size_t>(count));
    const std::lock_guard lock(mutex_);
    try {
      for (; working_ < count; ++working_) threads.emplace_back([this] { work([] {}); });
    } catch (const std::system_error&) {
      // The threads that run do all the work.
    }
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      ended_.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();
      options_.watch();
      lock.lock();
    }
  }

  void stop(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  /// Finds the next task. Returns false when there is nothing left to begin.
  bool next(Task& out) {
    std::unique_lock lock(mutex_);
    while (!error_) {
      if (begin_block(out) || begin_load(out)) return true;
      if (begin_round()) continue;
      if (rounds_.empty()) return false;
      // Other threads load the pieces that are needed here, or hold the memory that another round needs. wait() without
      // a time limit is in GCC 12's library, but programs may run with GCC 11's.
      changed_.wait_for(lock, std::chrono::hours(1));
    }
    return false;
  }

  bool begin_block(Task& out) {
    for (auto round = rounds_.begin(); round != rounds_.end(); ++round)
      if (round->is_loaded() && round->blocks_begun < round->blocks.size()) {
        out = {round, nullptr, &round->blocks[round->blocks_begun++]};
        return true;
      }
    return false;
  }

  bool begin_load(Task& out) {
    for (auto round = rounds_.begin(); round != rounds_.end(); ++round)
      if (round->loads_begun < round->loads.size()) {
        out = {round, &round->loads[round->loads_begun++], nullptr};
        return true;
      }
    return false;
  }

  void end(const Task& task) {
    const std::lock_guard lock(mutex_);
    Round& round = *task.round;
    ++(task.load ? round.loads_ended : round.blocks_ended);
    const bool is_done = round.blocks_ended == round.blocks.size();
    if (is_done && round.slab) free_slabs_.push_back(std::move(round.slab));
    if (is_done || (task.load && round.is_loaded())) changed_.notify_all();
    if (is_done) rounds_.erase(task.round);
    if (task.block) ended_.notify_one();
  }

  /// Begins the next round that has work. Returns false if there is none, or no room for it yet.
  bool begin_round() {
    if (rounds_.size() >= rounds_max) return false;
    for (; job_ < plans_.size(); ++job_, round_ = 0, parts_.reset()) {
      const BlockPlan& plan = *plans_[job_];
      for (; round_ < plan.round_count(); ++round_) {
        Round round{.plan = &plan};
        plan.for_each_block(round_, [&](Index part, Index number) {
          const BlockAddress at{options_.first_job + static_cast<Index>(job_), part, number};
          if (!options_.skip(at)) round.blocks.push_back(at);
        });
        if (round.blocks.empty()) continue;
        if (plan.gathers()) {
          round.slab = free_slab(plan.slab_bytes_max());
          if (!round.slab) return false;
          round.loads = round.slab->begin(plan, round_);
        }
        if (!parts_) parts_ = std::make_shared<PartPlans>(plan);
        round.plans = parts_;
        rounds_.push_back(std::move(round));
        ++round_;
        return true;
      }
    }
    return false;
  }

  std::unique_ptr<Slab> free_slab(Index size_bytes) {
    const auto fits = std::find_if(free_slabs_.begin(), free_slabs_.end(),
                                   [&](const auto& s) { return s->capacity_bytes() >= size_bytes; });
    if (fits != free_slabs_.end()) {
      auto out = std::move(*fits);
      free_slabs_.erase(fits);
      return out;
    }
    while (slabs_room_bytes_ < size_bytes && !free_slabs_.empty()) {
      slabs_room_bytes_ += free_slabs_.back()->capacity_bytes();
      free_slabs_.pop_back();
    }
    if (slabs_room_bytes_ < size_bytes) return nullptr;
    auto out = std::make_unique<Slab>(size_bytes);
    slabs_room_bytes_ -= size_bytes;
    return out;
  }

  void work(FunctionRef<void()> after_block) {
    try {
      BoxReader reader(BlockPlan::window_bytes(options_.memory_bytes));
      for (Task task; next(task);) {
        const Index bytes = task.load ? task.round->slab->load(*task.load, reader.scratch())
                                      : assemble(*task.round, *task.block, reader);
        if (task.load || !task.round->slab) bytes_read_ += bytes;
        end(task);
        if (task.block) after_block();
      }
    } catch (const std::bad_alloc&) {
      stop(std::make_exception_ptr(make_error(ErrorCode::no_memory,
                                              "no memory for the blocks of this run, which has a limit of {}",
                                              amount(options_.memory_bytes, "byte"))));
    } catch (...) {
      stop(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --working_;
    ended_.notify_one();
  }

  /// Returns the bytes that came from the source.
  Index assemble(const Round& round, const BlockAddress& at, BoxReader& reader) const {
    const StoredParts &source = *round.plan->job().source, &wanted = *round.plan->job().wanted;
    const Box box = round.plan->box(at.part, at.number);
    const StoredPart in_memory{.order = wanted.parts[at.part].order, .extents = box.extents()};
    const std::span<std::byte> elements = reader.block(box.count() * size_bytes(wanted.spec.type));
    const SourceOf files(source);
    const PartSource& from = round.slab ? *round.slab : *files;
    const Index given = reader.read(from, *round.plans->of(at.part, box), box,
                                    view_of(in_memory, wanted.spec.type, elements.data()), elements);
    reverse_each(elements, swapped_bytes(source.descr, wanted.descr));
    options_.sink({at, box, elements});
    return given;
  }

  std::span<const std::unique_ptr<const BlockPlan>> plans_;
  const BlockRunOptions& options_;
  std::atomic<Index> bytes_read_ = 0;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_, ended_;
  int working_ = 0;
  std::exception_ptr error_;
  // The next round to begin.
  std::size_t job_ = 0;
  Index round_ = 0;
  std::shared_ptr<PartPlans> parts_;
  std::list<Round> rounds_;  // oldest first
  std::vector<std::unique_ptr<Slab>> free_slabs_;
  Index slabs_room_bytes_;
};

}  // namespace

int threads_within(Index memory_bytes, int wished) noexcept {
  const Index threads = memory_bytes / std::max<Index>(1, BlockPlan::thread_bytes(memory_bytes));
  return static_cast<int>(std::clamp<Index>(threads, 1, std::max(1, wished)));
}

int default_threads() noexcept {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return std::clamp(CPU_COUNT(&cpus), 1, 8);
}

Index run_blocks(std::span<const std::unique_ptr<const BlockPlan>> plans, const BlockRunOptions& options) {
  return Team(plans, options).run();
}

}  // namespace tranship
