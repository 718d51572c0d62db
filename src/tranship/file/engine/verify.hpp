// Private: Verifying a reshard from its files alone: does the target hold what the source says, in every cell?
//
//   own cells   every part of the source is rebuilt from the target by a plan of its own, block by block, and compared
//               byte by byte
//   replicas    every copy of a part is compared to the first one
//   overlap     each cell is looked up in the source by the arithmetic of Distribution and of the edge policies
#pragma once

#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

struct VerifyPartsOptions {
  /// Overlap cells to look up: all of them, or where there are more so many drawn at random.
  Index overlap_cells_max = Index(1) << 20;
  std::uint64_t seed = 0;
  /// As of ReshardOptions.
  Index memory_bytes = Index(256) << 20;
  int threads = 1;
  /// Called every now and then on the calling thread; what it throws ends the work.
  std::optional<FunctionRef<void()>> watch = {};
};

/// Throws `internal` at the first cell that is wrong, naming its part, its place and the bytes of both. Overlap in the
/// source does not count: only what its parts own. Cells that no part owns on one side are not compared, those beyond
/// an open edge must be zero. Throws `io` and `bad_file` as reading does.
void verify_parts(const StoredParts& source, const StoredParts& target, const VerifyPartsOptions& options = {});

}  // namespace tranship
