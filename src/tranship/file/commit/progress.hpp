// Private: Progress, what of a reshard is done. Finished blocks are counted; now and then those whose bytes have
// reached the disk are written into the journal, so that a run that is killed loses little and is gone on with.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <tranship/file/commit/journal.hpp>
#include <tranship/file/engine/block_run.hpp>

namespace tranship {

/// Threads may use it at once.
class Progress {
 public:
  /// The first of the plans make the target, the others intermediates. `sync_interval_bytes`: what is written between
  /// two entries in the journal.
  Progress(std::span<const std::unique_ptr<const BlockPlan>> plans, std::size_t targets, Index sync_interval_bytes);

  /// Takes over what an earlier run has finished. False, and nothing is taken, where it does not fit the blocks.
  bool take_over(std::span<const FinishedBlocks> finished);
  void keep_journal(Journal journal) { journal_.emplace(std::move(journal)); }

  bool finished_before(const BlockAddress& at) const;
  /// A block has been written; `contribution` is its share in the checksum of its file. Now and then this syncs files
  /// and writes the journal, on the thread that calls; throws `io` then.
  void add(const BlockAddress& at, Index bytes, std::uint32_t contribution);
  /// Syncs every file that was written to since the last time, and writes the journal. Throws `io`.
  void settle();
  /// The same when all is written, and also syncs the files that no block was written to.
  void finish();

  struct Totals {
    Index bytes = 0;            ///< of the target
    Index bytes_moved = 0;      ///< and of intermediates
    Index parts = 0;            ///< of the target, all blocks of which are finished
    Index bytes_journaled = 0;  ///< of those moved, that a later run need not write
    Index bytes_resumed = 0;    ///< of the target, that an earlier run wrote
  };
  Totals totals() const;
  /// What the finished blocks of a part contribute.
  std::uint32_t contribution(Index job, Index part) const;

 private:
  struct Part {
    Index blocks = 0;
    Index blocks_left = 0;
    std::uint32_t contribution = 0;
    bool written = false;               // by this run
    std::vector<bool> finished_before;  // empty: none
  };
  struct Pending {
    FinishedBlocks block;
    Index bytes = 0;
  };

  bool is_target(Index job) const noexcept { return job < targets_; }
  void sync_and_journal(const std::vector<Pending>& pending);

  std::span<const std::unique_ptr<const BlockPlan>> plans_;
  Index targets_;
  Index sync_interval_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::vector<Part>> parts_;
  Totals totals_;
  std::vector<Pending> pending_;
  Index pending_bytes_ = 0;
  std::mutex journal_mutex_;  // one thread at a time writes it
  std::optional<Journal> journal_;
};

}  // namespace tranship
