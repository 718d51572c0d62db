#include "tranship/file/io/atomic_write.hpp"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <sys/stat.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/file/io/target_path.hpp>

namespace tranship {

using posix::io_error;

AtomicFile::AtomicFile(std::string target, std::string partial, MappedFile file)
    : target_(std::move(target)), partial_(std::move(partial)), file_(std::move(file)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)), partial_(std::exchange(other.partial_, {})), file_(std::move(other.file_)) {}

AtomicFile::~AtomicFile() {
  if (!partial_.empty()) std::remove(partial_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& requested, Index size_bytes) {
  return attempt([&] {
    const std::string target = resolved_target(requested);
    const bool exists = file_may_be_replaced(target);
    check_replacing_is_permitted(target);
    const std::string partial = name_beside(target, "partial-" + random_letters());
    AtomicFile out(target, partial, MappedFile::create(partial, size_bytes).value());
    struct stat old;
    if (exists && ::stat(target.c_str(), &old) == 0 && ::chmod(partial.c_str(), old.st_mode & 07777) != 0)
      throw io_error("set the permissions of", partial, errno);
    return out;
  });
}

Result<void> AtomicFile::commit() {
  if (partial_.empty()) return make_error(ErrorCode::invalid_use, "'{}' is committed already", target_);
  if (Result<void> synced = file_.sync(); !synced) return synced;
  if (std::rename(partial_.c_str(), target_.c_str()) != 0) return io_error("put in place", target_, errno);
  partial_.clear();
  return sync_what_took_its_place(target_);
}

}  // namespace tranship
