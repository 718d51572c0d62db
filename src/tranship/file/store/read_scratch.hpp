// Private: ReadScratch, what one thread reads stored parts with. It is kept from one read to the next, so that reads
// ask for no memory and find again what they have mapped.
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

  /// A buffer for what is read together and moved from there. Its memory is taken at the first call.
  std::byte* window();
  Index window_bytes() const noexcept { return window_bytes_; }

  /// Bytes of a file from an offset on, no more than FileSet::window_bytes. They stay until the next call; what was
  /// read of them counts once check_mapped() has returned. Both throw as FileSet::read.
  const std::byte* mapped(const FileSet& files, Index file, Index offset_bytes, Index size_bytes);
  void check_mapped() const;

  /// How moves store; for all bytes that are read together.
  CopyMethod way;
  /// For the moves and the runs of one read.
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
