// A control group with a limit of memory, below the one of this process: version 1 or 2, where this user may make one.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace tranship::test {

class ControlGroup {
 public:
  explicit ControlGroup(long long limit_bytes) {
    std::ifstream membership("/proc/self/cgroup");
    for (std::string line; std::getline(membership, line);) {
      const std::size_t first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
      if (controllers == "memory") make("/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes", limit_bytes);
      if (controllers.empty()) make("/sys/fs/cgroup" + path, "memory.max", limit_bytes);
    }
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());  // it has no members left
  }

  bool is_there() const { return !folder_.empty(); }
  /// Makes the calling process a member, until it ends.
  bool enter() const { return write(folder_ + "/cgroup.procs", ::getpid()); }

 private:
  void make(const std::string& parent, const char* limit, long long limit_bytes) {
    if (is_there() || !std::filesystem::exists(parent + '/' + limit)) return;
    const std::string folder = parent + "/tranship_test_" + std::to_string(::getpid());
    std::error_code failure;
    if (!std::filesystem::create_directory(folder, failure)) return;
    if (write(folder + '/' + limit, limit_bytes))
      folder_ = folder;
    else
      ::rmdir(folder.c_str());
  }
  static bool write(const std::string& path, long long number) {
    std::ofstream file(path);
    file << number << std::flush;
    return file.good();
  }

  std::string folder_;
};

}  // namespace tranship::test
