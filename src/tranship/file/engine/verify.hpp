// Private: verify_parts, which verifies a reshard from its files alone: the target must agree with the source in every
// cell.
//
//   own cells   every part of the source is rebuilt from the target by a plan of its own, block by block, and compared
//               byte by byte
//   replicas    every replica of a part is compared to the first one
//   overlap     each cell is looked up in the source by the arithmetic of Distribution and of the edge policies
#pragma once

#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

struct VerifyPartsOptions {
  /// Limit on the overlap cells that are looked up. If there are more, they are drawn at random.
  Index overlap_cells_max = Index(1) << 20;
  std::uint64_t seed = 0;
  /// See ReshardOptions.
  Index memory_bytes = Index(256) << 20;
  int threads = 1;
  /// Called from time to time on the calling thread. An exception ends the work.
  std::optional<FunctionRef<void()>> watch = {};
};

/// Throws `internal` at the first wrong cell, naming its part, its place and the bytes of both. Overlap in the source
/// is ignored; only cells that its parts own count. Cells that no part owns on one side are not compared; cells beyond
/// an open edge must be zero. Throws `io` and `bad_file` as reading does.
void verify_parts(const StoredParts& source, const StoredParts& target, const VerifyPartsOptions& options = {});

}  // namespace tranship
