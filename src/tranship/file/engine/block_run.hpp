// Private: run_blocks, the engine of the file layer: several threads assemble arrays in files, block by block, in the
// layouts that are wanted, in bounded memory. A BlockPlan says which blocks there are and what is read for them; a sink
// writes or compares each block.
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
  Index part = 0;    ///< ordinal among the wanted parts
  Index number = 0;  ///< number among the blocks of the part
  friend bool operator==(const BlockAddress&, const BlockAddress&) = default;
};

struct FileBlock {
  BlockAddress at;
  Box box;
  /// The elements of the block, dense in the order of its part.
  std::span<const std::byte> bytes;
};

struct BlockRunOptions {
  /// The memory that the plans were made for.
  Index memory_bytes = 0;
  int threads = 1;
  Index first_job = 0;
  /// Returns true for blocks that need not be assembled.
  FunctionRef<bool(const BlockAddress&)> skip;
  /// Several threads call it at once.
  FunctionRef<void(const FileBlock&)> sink;
  /// Called on the calling thread, after blocks and from time to time. An exception ends the run.
  FunctionRef<void()> watch;
};

/// Returns how many of the `wished` threads this memory suffices for.
int threads_within(Index memory_bytes, int wished) noexcept;
/// Returns the number of CPUs that this process may run on, at most 8.
int default_threads() noexcept;

/// Assembles all blocks of all plans, whose jobs are numbered from `first_job` on. Returns the bytes that were read
/// from the sources. The first error of any thread ends the run and is thrown when all threads have ended.
Index run_blocks(std::span<const std::unique_ptr<const BlockPlan>> plans, const BlockRunOptions& options);

}  // namespace tranship
