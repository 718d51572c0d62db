// Private: StoredTensors, all tensors of a safetensors file, of an index with its shards, or of a directory that
// tranship has made, each as a stored array. Opening checks everything except the elements.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tranship/file/format/tensor_manifest.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

struct StoredTensors {
  /// Metadata of all files; for equal keys, that of the first file.
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<TensorShape> shapes;
  std::vector<StoredParts> arrays;  ///< one per shape, sharing one FileSet, with the dtype as descr
  std::shared_ptr<FileSet> files;
  /// Checksum of each file, by number, where it is known.
  std::vector<std::optional<RecordedChecksum>> checksums;
};

/// Fails with `io`, `bad_file`, `unsupported`, `overflow` and `mismatch`, naming the path.
Result<StoredTensors> open_tensors(const std::string& path);
/// Opens a single file, whatever its name.
Result<StoredTensors> open_tensors_file(const std::string& path);

}  // namespace tranship
