#include "support/golden.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/paths.hpp"
#include "support/text_file.hpp"

namespace tranship::test {

::testing::AssertionResult matches_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(test_path("golden")) / name;
  const char* update = std::getenv("TRANSHIP_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    write_text(path, text);
    return ::testing::AssertionSuccess();
  }
  if (!std::filesystem::exists(path))
    return ::testing::AssertionFailure() << path << " is missing; TRANSHIP_UPDATE_GOLDEN=1 writes it";
  const std::string expected = read_text(path);
  if (text == expected) return ::testing::AssertionSuccess();
  std::size_t line = 1;
  for (std::size_t i = 0; i < std::min(text.size(), expected.size()) && text[i] == expected[i]; ++i)
    line += text[i] == '\n';
  return ::testing::AssertionFailure() << path << " differs from line " << line << " on; now it would be:\n" << text;
}

}  // namespace tranship::test
