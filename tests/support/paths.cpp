#include "support/paths.hpp"

namespace tranship::test {

std::string test_path(std::string_view below) {
  return std::string(TRANSHIP_TEST_DIR "/").append(below);
}

const char* command_path() noexcept {
  return TRANSHIP_COMMAND;
}

}  // namespace tranship::test
