#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/posix.hpp>

namespace tranship::posix {

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Error io_error(const char* action, const std::string& path, int error_number) {
  return make_error(ErrorCode::io, "cannot {} '{}': {}", action, path, std::generic_category().message(error_number));
}

Result<void> sync_path(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return io_error("open for syncing", path, errno);
  int status;
  do status = ::fsync(file.number());
  while (status != 0 && errno == EINTR);
  // Some network file systems have no fsync of a folder and say EINVAL: there, nothing more can be asked for.
  if (status != 0 && errno != EINVAL) return io_error("sync", path, errno);
  return {};
}

}  // namespace tranship::posix
