// Private: RaisedFileLimit: a raised limit of open files, for a process that holds a descriptor for every rank.
#pragma once

#include <sys/resource.h>

namespace tranship {

class RaisedFileLimit {
 public:
  /// Raises this process's limit to allow a descriptor for each of `ranks` ranks, until this object is destroyed.
  /// Throws `no_memory` if the system does not allow that many.
  explicit RaisedFileLimit(int ranks);
  ~RaisedFileLimit() { restore(); }
  RaisedFileLimit(const RaisedFileLimit&) = delete;
  RaisedFileLimit& operator=(const RaisedFileLimit&) = delete;

  /// Restores the old limit in a forked child, which inherits the raised one.
  void restore() const noexcept { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace tranship
