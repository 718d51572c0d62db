// Places of the program that the stack names where a call site lies in the standard library. The code that stands for a
// program's is outside of the library's namespace.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/base/call_site.hpp>
#include <tranship/base/elf_symbols.hpp>

namespace tranship {

/// Stands for a class of the library, which names its caller when it fails.
struct PlaceOfMaker {
  [[gnu::noinline]] explicit PlaceOfMaker(int number, CallSite where = CallSite::here())
      : number(number), place(to_string(where)) {}
  int number;
  std::string place;
};

}  // namespace tranship

namespace a_program {

using tranship::PlaceOfMaker;

[[gnu::noinline]] std::string makes_unique() {
  return std::make_unique<PlaceOfMaker>(1)->place;
}
[[gnu::noinline]] std::string makes_shared() {
  return std::make_shared<PlaceOfMaker>(2)->place;
}
[[gnu::noinline]] std::string emplaces_in_optional() {
  std::optional<PlaceOfMaker> out;
  return out.emplace(3).place;
}
[[gnu::noinline]] std::string emplaces_in_vector() {
  std::vector<PlaceOfMaker> out;
  return out.emplace_back(4).place;
}
[[gnu::noinline]] std::string makes_one() {
  return PlaceOfMaker(5).place;
}

}  // namespace a_program

namespace tranship::test {
namespace {

/// Its line where there is debug information, else its function.
void expect_names(const std::string& place, const std::string& function, int line) {
  EXPECT_TRUE(place.starts_with("a_program::" + function) || place == fmt::format("user_place_test.cpp:{}", line))
      << place;
}

TEST(UserPlace, names_the_program_behind_the_standard_library) {
  expect_names(a_program::makes_unique(), "makes_unique[abi:cxx11]()+0x", 31);
  expect_names(a_program::makes_shared(), "makes_shared[abi:cxx11]()+0x", 34);
  expect_names(a_program::emplaces_in_optional(), "emplaces_in_optional[abi:cxx11]()+0x", 38);
  expect_names(a_program::emplaces_in_vector(), "emplaces_in_vector[abi:cxx11]()+0x", 42);
}

TEST(UserPlace, leaves_the_lines_of_the_program) {
  EXPECT_NE(a_program::makes_one().find("user_place_test.cpp:"), std::string::npos) << a_program::makes_one();
}

TEST(ElfSymbols, finds_none_in_what_is_no_program) {
  int count = 0;
  const auto counts = [&](const ElfSymbols::Function&) { return ++count > 0; };
  ElfSymbols("/no such file").find(counts);
  ElfSymbols("/proc/self/cmdline").find(counts);
  EXPECT_EQ(count, 0);
  ElfSymbols("/proc/self/exe").find(counts);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace tranship::test
