// Private: The engine of the file layer: arrays in files, assembled block by block in the layouts that are wanted, by
// several threads in bounded memory. What becomes of a block, its sink says: it is written, or compared. Which blocks
// there are, and what is read for them, BlockPlan says.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/file/engine/block_plan.hpp>

namespace tranship {

struct BlockAddress {
  Index job = 0;
  Index part = 0;    ///< ordinal, of the wanted parts
  Index number = 0;  ///< of the blocks of the part
  friend bool operator==(const BlockAddress&, const BlockAddress&) = default;
};

struct FileBlock {
  BlockAddress at;
  Box box;
  /// Its elements, dense in the order of its part.
  std::span<const std::byte> bytes;
};

struct BlockRunOptions {
  /// The memory that the plans were made for.
  Index memory_bytes = 0;
  int threads = 1;
  Index first_job = 0;
  /// Blocks that need not be assembled.
  FunctionRef<bool(const BlockAddress&)> skip;
  /// Called by several threads at once.
  FunctionRef<void(const FileBlock&)> sink;
  /// Called on the calling thread, after blocks and every now and then. What it throws ends the run.
  FunctionRef<void()> watch;
};

/// Threads that so much memory is enough for, of those that are wished for.
int threads_within(Index memory_bytes, int wished) noexcept;
/// CPUs that this process may run on, at most 8.
int default_threads() noexcept;

/// Assembles all blocks of all plans, whose jobs are numbered from `first_job` on. Returns the bytes that were read of
/// the sources. The first error of any thread ends the run and is thrown when all threads have ended.
Index run_blocks(std::span<const std::unique_ptr<const BlockPlan>> plans, const BlockRunOptions& options);

}  // namespace tranship
