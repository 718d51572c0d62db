// Private: the limit of open files of a process that holds a descriptor for every rank.
#pragma once

#include <sys/resource.h>

namespace tranship {

class RaisedFileLimit {
 public:
  /// Raises this process's limit to what a descriptor for each of so many ranks needs, until this object goes. Throws
  /// `no_memory` where the system does not allow that many.
  explicit RaisedFileLimit(int ranks);
  ~RaisedFileLimit() { restore(); }
  RaisedFileLimit(const RaisedFileLimit&) = delete;
  RaisedFileLimit& operator=(const RaisedFileLimit&) = delete;

  /// For a child of a fork, which has the raised limit, too.
  void restore() const noexcept { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace tranship
