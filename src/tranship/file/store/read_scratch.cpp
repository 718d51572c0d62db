#include "tranship/file/store/read_scratch.hpp"

#include <tranship/base/fail.hpp>

namespace tranship {

std::byte* ReadScratch::window() {
  if (!window_) window_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(window_bytes_));
  return window_.get();
}

const std::byte* ReadScratch::mapped(const FileSet& files, Index file, Index offset_bytes, Index size_bytes) {
  if (mapped_set_ != &files || mapped_file_ != file || !mapped_->covers(offset_bytes, size_bytes)) {
    mapped_set_ = nullptr;
    mapped_ = files.map(file, offset_bytes);
    mapped_set_ = &files;
    mapped_file_ = file;
    TRANSHIP_ASSERT(mapped_->covers(offset_bytes, size_bytes));
  }
  return mapped_->at(offset_bytes);
}

void ReadScratch::check_mapped() const {
  if (mapped_) mapped_->check();
}

}  // namespace tranship
