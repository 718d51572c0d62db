// Private: Progress, which counts the finished blocks of a reshard. From time to time it writes the blocks whose bytes
// have reached the disk into the journal, so that a killed run loses little and a later run continues it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <tranship/file/commit/journal.hpp>
#include <tranship/file/engine/block_run.hpp>

namespace tranship {

/// Threads may use it concurrently.
class Progress {
 public:
  /// The first `targets` plans make the target, the others make intermediates. `sync_interval_bytes` are written
  /// between two entries in the journal.
  Progress(std::span<const std::unique_ptr<const BlockPlan>> plans, std::size_t targets, Index sync_interval_bytes);

  /// Takes over the blocks that an earlier run has finished. Returns false, and takes none, if they do not fit the
  /// plans.
  bool take_over(std::span<const FinishedBlocks> finished);
  void keep_journal(Journal journal) { journal_.emplace(std::move(journal)); }

  bool finished_before(const BlockAddress& at) const;
  /// Counts a block that has been written; `contribution` is its share in the checksum of its file. From time to time
  /// this syncs files and writes the journal, on the calling thread, and may throw `io`.
  void add(const BlockAddress& at, Index bytes, std::uint32_t contribution);
  /// Syncs every file that was written to since the last call, and writes the journal. Throws `io`.
  void settle();
  /// Settles when all is written, and also syncs the files to which no block was written.
  void finish();

  struct Totals {
    Index bytes = 0;            ///< written to the target
    Index bytes_moved = 0;      ///< written to the target and to intermediates
    Index parts = 0;            ///< parts of the target whose blocks are all finished
    Index bytes_journaled = 0;  ///< those of bytes_moved that a later run need not write
    Index bytes_resumed = 0;    ///< those of the target that an earlier run wrote
  };
  Totals totals() const;
  /// Returns the contribution of a part's finished blocks to the checksum of its file.
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
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::vector<Part>> parts_;
  Totals totals_;
  std::vector<Pending> pending_;
  Index pending_bytes_ = 0;
  std::mutex journal_mutex_;  // held by the thread that writes the journal
  std::optional<Journal> journal_;
};

}  // namespace tranship
