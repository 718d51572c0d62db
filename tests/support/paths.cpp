#include "support/paths.hpp"

#include <filesystem>

namespace tranship::test {

std::string test_path(std::string_view below) {
  return std::string(TRANSHIP_TEST_DIR "/").append(below);
}

const char* command_path() noexcept {
  return TRANSHIP_COMMAND;
}

std::vector<std::string> this_program(const std::string& name) {
  return {"env",
          "-u",
          "GTEST_TOTAL_SHARDS",
          "-u",
          "GTEST_SHARD_INDEX",
          std::filesystem::read_symlink("/proc/self/exe").string(),
          "--gtest_also_run_disabled_tests",
          "--gtest_brief=1",
          "--gtest_filter=" + name};
}

}  // namespace tranship::test
