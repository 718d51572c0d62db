// A fresh folder for one test, removed with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "support/text_file.hpp"

namespace tranship::testing {

/// `memory` is for tests that make many files, whose syncing to a disk would take most of their time; it is the disk
/// where there is no file system in memory.
enum class FolderPlace { disk, memory };

class TemporaryFolder {
 public:
  explicit TemporaryFolder(FolderPlace place = FolderPlace::disk) {
    std::string name = (root_of(place) / "tranship-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path() const { return path_.string(); }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

  /// The names of all that lies in it, at any depth.
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
      out.insert(entry.path().lexically_relative(path_).string());
    return out;
  }

 private:
  static std::filesystem::path root_of(FolderPlace place) {
    const char* in_memory = "/dev/shm";
    const bool use_it = place == FolderPlace::memory && ::access(in_memory, W_OK) == 0;
    return use_it ? in_memory : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

using test::read_text;
using test::write_text;

}  // namespace tranship::testing
