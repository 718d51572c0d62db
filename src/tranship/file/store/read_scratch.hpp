// Private: ReadScratch, the buffers with which one thread reads stored parts. It is kept from one read to the next, so
// that reads allocate no memory and find their mappings again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <tranship/file/io/file_set.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {

class ReadScratch {
 public:
  explicit ReadScratch(Index window_bytes) : window_bytes_(window_bytes) {}

  /// Returns a buffer for data that is read together and moved from there. The first call allocates it.
  std::byte* window();
  Index window_bytes() const noexcept { return window_bytes_; }

  /// Returns bytes of a file from an offset on, at most FileSet::window_bytes. They are valid until the next call; use
  /// data read from them only after check_mapped() has returned. Both throw as FileSet::read does.
  const std::byte* mapped(const FileSet& files, Index file, Index offset_bytes, Index size_bytes);
  void check_mapped() const;

  /// How moves store, chosen for all bytes that are read together.
  CopyMethod way;
  /// Used by the moves and the runs of one read.
  std::vector<LoweredMove> moves;
  TransferGroup cells;

 private:
  Index window_bytes_;
  std::unique_ptr<std::byte[]> window_;
  std::shared_ptr<const MappedWindow> mapped_;
  const FileSet* mapped_set_ = nullptr;
  Index mapped_file_ = -1;
};

}  // namespace tranship
