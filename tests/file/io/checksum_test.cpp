// Checksums against the definition, bit by bit, and of pieces in any order; checksums of sources that are not right.
#include <gtest/gtest.h>

#include <tranship/file/format/npy.hpp>
#include <tranship/file/io/checksum.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"
#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::uint32_t plain_crc32(const std::string& text) {
  std::uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

TEST(Checksum, IsThatOfZip) {
  EXPECT_EQ(crc32_of(bytes_of("123456789")), 0xcbf43926u);  // the check value of every catalogue
  EXPECT_EQ(crc32_of({}), 0u);
  EXPECT_EQ(crc32_of(bytes_of("6789"), crc32_of(bytes_of("12345"))), 0xcbf43926u);
}

TEST(Checksum, PiecesInAnyOrderGiveThatOfTheFile) {
  EXPECT_EQ(test::first_fault(0.3,
                              [](std::uint64_t seed) -> std::string {
                                test::Random random(seed);
                                std::string file;
                                for (Index n = random.below(300); n > 0; --n)
                                  file += char(random.below(3) ? random.bits() : 0);
                                // Each byte belongs to one of a few blocks; a block's pieces are its stretches.
                                const Index blocks = random.between(1, 4), length = random.between(1, 9);
                                std::vector<Index> order;
                                for (Index b = 0; b < blocks; ++b) order.push_back(b);
                                random.shuffle(order);
                                std::uint32_t sum = 0;
                                for (const Index b : order) {
                                  PieceChecksum pieces;
                                  for (Index at = b * length; at < Index(file.size()); at += blocks * length)
                                    pieces.add(at, bytes_of(file).subspan(
                                                       at, std::min<std::size_t>(length, file.size() - at)));
                                  sum ^= pieces.contribution(Index(file.size()));
                                }
                                return sum == plain_crc32(file) ? "" : "another checksum";
                              }),
            "");
}

TEST(Checksum, VerifyFindsPartsThatWereExchanged) {
  TemporaryFolder folder(FolderPlace::memory);
  std::string text = format_npy_header(make_npy_header(ElementType::u8, {64}));
  for (int i = 0; i < 64; ++i) text += char(i);
  write_text(folder.path("a.npy"), text);
  const ArraySpec halves = parse_layout("u8[64] @ 2 : block"), one = parse_layout("u8[64] @ 1 : whole");
  reshard({.source = folder.path("a.npy"), .target = folder.path("b"), .to = halves});
  reshard({.source = folder.path("b"), .target = folder.path("c.npy"), .to = one, .verify = Verify::yes});
  EXPECT_EQ(read_text(folder.path("c.npy")), text);

  std::filesystem::rename(folder.path("b/part-00000.npy"), folder.path("x"));
  std::filesystem::rename(folder.path("b/part-00001.npy"), folder.path("b/part-00000.npy"));
  std::filesystem::rename(folder.path("x"), folder.path("b/part-00001.npy"));
  const auto result = attempt([&] {
    return reshard({.source = folder.path("b"), .target = folder.path("c.npy"), .to = one, .verify = Verify::yes});
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::bad_file);
  EXPECT_NE(result.error().message().find("is not what its manifest says: its checksum is "), std::string::npos)
      << result.error().message();
  EXPECT_EQ(read_text(folder.path("c.npy")), text);
}

}  // namespace
}  // namespace tranship
