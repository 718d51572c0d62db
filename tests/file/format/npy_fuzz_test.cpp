// Seeded mutations of valid .npy headers: the same checks as the libFuzzer program, in every run of the tests.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fuzz/npy_check.hpp"

namespace tranship::npy_fuzz_test {
namespace {

std::vector<std::string> valid_headers() {
  std::vector<std::string> out;
  for (const Indices& extents : {Indices{}, Indices{0}, Indices{12}, Indices{3, 4, 5}, Indices{1, 2, 3, 4, 5, 6, 7, 8}})
    for (const ElementType type : {ElementType::bool8, ElementType::bf16, ElementType::i32, ElementType::c256})
      for (const NpyOrder order : {NpyOrder::c, NpyOrder::fortran})
        out.push_back(format_npy_header(make_npy_header(type, extents, order)));
  return out;
}

/// Changes `text` in one to four places: a byte flipped, replaced by one that means something, doubled, dropped or
/// moved.
void mutate(std::string& text, std::mt19937_64& random) {
  static constexpr std::string_view meaning = "0123456789()[]{},:'\"-<>|=LbiufcOSUVMm TrueFalse\n\\\0";
  for (std::uint64_t changes = random() % 2 ? 1 : random() % 4 + 1; changes-- > 0 && !text.empty();) {
    // Half of the changes meet the first 64 bytes of the text, where all keys but the padding lie.
    const std::size_t at = random() % (random() % 2 ? text.size() : std::min<std::size_t>(text.size(), 74));
    switch (random() % 6) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      case 1:
      case 2:
        text[at] = meaning[random() % meaning.size()];
        break;
      case 3:
        text.insert(at, 1, text[at]);
        break;
      case 4:
        text.erase(at, random() % 3 + 1);
        break;
      case 5:
        std::swap(text[at], text[random() % text.size()]);
        break;
    }
  }
  if (random() % 8 && text.size() > 10) {
    text[8] = static_cast<char>((text.size() - 10) & 0xff);
    text[9] = static_cast<char>((text.size() - 10) >> 8);
  }
}

struct Tally {
  int accepted = 0;
  int refused = 0;
  int violations = 0;
  std::string first_violation;
};

Tally run_mutations(int count, testing::NpyFormat format) {
  std::mt19937_64 random(20240607);
  const std::vector<std::string> headers = valid_headers();
  Tally tally;
  for (int i = 0; i < count; ++i) {
    std::string text = headers[random() % headers.size()];
    mutate(text, random);
    const testing::NpyVerdict verdict = testing::check_npy(testing::bytes_of(text), format);
    ++(verdict.accepted ? tally.accepted : tally.refused);
    if (!verdict.violation.empty() && tally.violations++ == 0) tally.first_violation = verdict.violation + ": " + text;
  }
  return tally;
}

TEST(NpyFuzz, MutatedHeadersAreRefusedOrKeepTheirPromises) {
  const Tally tally = run_mutations(100'000, format_npy_header);
  EXPECT_EQ(tally.violations, 0) << tally.first_violation;
  // Both sides were met often, or the mutations would prove little.
  EXPECT_GT(tally.accepted, 5'000);
  EXPECT_GT(tally.refused, 5'000);
}

TEST(NpyFuzz, CanaryAWriterThatSwapsTheOrderIsFound) {
  const auto wrong = [](const NpyHeader& header) {
    NpyHeader swapped = header;
    swapped.order = header.order == NpyOrder::c ? NpyOrder::fortran : NpyOrder::c;
    return format_npy_header(swapped);
  };
  EXPECT_GT(run_mutations(1'000, wrong).violations, 0);
}

TEST(NpyFuzz, CanaryAWriterThatLosesAnExtentIsFound) {
  const auto wrong = [](const NpyHeader& header) {
    NpyHeader shorter = header;
    shorter.extents = Indices{};
    return format_npy_header(shorter);
  };
  EXPECT_GT(run_mutations(1'000, wrong).violations, 0);
}

}  // namespace
}  // namespace tranship::npy_fuzz_test
