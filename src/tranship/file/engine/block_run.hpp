// Private: The engine of the file layer: arrays in files, assembled block by block in the layouts that are wanted, by
// several threads in bounded memory. What becomes of a block, its sink says: it is written, or compared.
//
// What is read once: blocks of parts that share rows of the source are assembled soon after each other, so that a page
// of the source is used up while it lies in the page cache; no byte is copied out of it for two blocks but those of
// gaps in short rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// One array: what is there, and in which parts it is wanted. Both outlive the run. The files of `wanted` are not
/// touched here.
struct BlockJob {
  const StoredParts* source = nullptr;
  const StoredParts* wanted = nullptr;
};

struct BlockAddress {
  Index job = 0;
  Index part = 0;    ///< ordinal, of the wanted parts
  Index number = 0;  ///< in the grid of the part
  friend bool operator==(const BlockAddress&, const BlockAddress&) = default;
};

struct FileBlock {
  BlockAddress at;
  Box box;
  /// Its elements, dense in the order of its part.
  std::span<const std::byte> bytes;
  Index bytes_from_source = 0;
};

struct BlockRunOptions {
  Index memory_bytes = 0;
  int threads = 1;
  /// Blocks that need not be assembled.
  FunctionRef<bool(const BlockAddress&)> skip;
  /// Called by several threads at once.
  FunctionRef<void(const FileBlock&)> sink;
  /// Called on the calling thread, after blocks and every now and then. What it throws ends the run.
  FunctionRef<void()> watch;
};

/// The least that blocks are assembled in.
inline constexpr Index block_memory_min = Index(4) << 20;
/// Threads that so much memory is enough for, of those that are wished for.
int threads_within(Index memory_bytes, int wished) noexcept;
/// CPUs that this process may run on, at most 8.
int default_threads() noexcept;

/// How the parts are cut depends on the memory alone, not on the threads: a later run finds the same blocks.
Index block_count(const BlockJob& job, Index part, Index memory_bytes);
/// Bytes of a block of the wanted part.
Index block_bytes(const BlockJob& job, const BlockAddress& at, Index memory_bytes);

/// Assembles all blocks. The first error of any thread ends the run and is thrown when all threads have ended.
void run_blocks(std::span<const BlockJob> jobs, const BlockRunOptions& options);

/// The stretches of a box in the file of its part, in the order of the file: `f(offset in the file, offset in the box,
/// size)`, in bytes.
void for_each_stretch(const StoredPart& part, Index width, const Box& box, FunctionRef<void(Index, Index, Index)> f);

/// Cuts a box into boxes of no more cells than that (at least one) that follow each other in the elements of the box,
/// dense in an order of dimensions: `f(box, number of its first cell)`.
void for_each_piece(const Box& box, const Indices& order, Index cells_max, FunctionRef<void(const Box&, Index)> f);

}  // namespace tranship
