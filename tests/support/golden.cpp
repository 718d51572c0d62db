#include "support/golden.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/paths.hpp"

namespace tranship::test {

::testing::AssertionResult matches_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(test_path("golden")) / name;
  const char* update = std::getenv("TRANSHIP_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    if (!out.flush()) return ::testing::AssertionFailure() << "cannot write " << path;
    return ::testing::AssertionSuccess();
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return ::testing::AssertionFailure() << path << " is missing; TRANSHIP_UPDATE_GOLDEN=1 writes it";
  const std::string expected((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (text == expected) return ::testing::AssertionSuccess();
  std::size_t line = 1;
  for (std::size_t i = 0; i < std::min(text.size(), expected.size()) && text[i] == expected[i]; ++i)
    line += text[i] == '\n';
  return ::testing::AssertionFailure() << path << " differs from line " << line << " on; now it would be:\n" << text;
}

}  // namespace tranship::test
