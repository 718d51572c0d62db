// Private: GridRun, one launch of a kernel on a software card. Its lanes are fibers of the thread that calls step(); in
// which order lanes and blocks go on comes from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tranship/base/random.hpp>
#include <tranship/cuda/software/lane.hpp>
#include <tranship/cuda/software/memory.hpp>

namespace tranship::cuda::software {

enum class FaultKind : unsigned char { none, illegal_address, misaligned, launch_failure };

/// Why a kernel was ended.
struct Fault {
  FaultKind kind = FaultKind::none;
  std::string text;
  explicit operator bool() const noexcept { return kind != FaultKind::none; }
};

/// Accesses of the lanes of a kernel. Accesses of a warp by one instruction count together.
struct Traffic {
  std::int64_t bytes = 0;           ///< that lanes asked for
  std::int64_t sectors = 0;         ///< of 32 bytes that accesses touched
  std::int64_t sectors_fewest = 0;  ///< that accesses of as many bytes must touch
  std::int64_t units = 0;           ///< of 64 bytes that accesses touched
  std::int64_t units_fewest = 0;
};
struct KernelCounts {
  std::int64_t launches = 0;
  std::int64_t lanes = 0;
  Traffic loads, stores;
  std::int64_t shared_accesses = 0;  ///< of warps
  std::int64_t shared_passes = 0;    ///< that they took, one for each word of a bank
  std::int64_t shared_passes_fewest = 0;
  void add(const KernelCounts& other) noexcept;
};

struct GridShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  std::size_t dynamic_shared_bytes = 0;

  int blocks() const noexcept { return int(grid[0] * grid[1] * grid[2]); }
  int lanes() const noexcept { return int(block[0] * block[1] * block[2]); }
};

class GridRun {
 public:
  /// `args` is copied.
  GridRun(Memory& memory, int card, const KernelTwin& twin, const void* args, const GridShape& shape,
          std::uint64_t seed);
  ~GridRun();
  GridRun(const GridRun&) = delete;

  int begun() const noexcept;
  int resident() const noexcept;
  bool has_more() const noexcept;  ///< blocks that have not begun
  void begin_block();

  enum class Went { on, nowhere, over };
  /// Lets the lanes of one block go on, as far as they can. `nowhere`: they only wait for others.
  Went step();
  const Fault& fault() const noexcept;
  /// After its end.
  const KernelCounts& counts() const noexcept;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// Lets kernels that access what they may not by plain pointers end with a fault. Done once for the process, which
/// keeps what it does at such accesses of its own.
void catch_faults_of_kernels();

}  // namespace tranship::cuda::software
