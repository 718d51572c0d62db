// The byte order of elements in every format that is written: those that say it keep it, those that do not have this
// machine's.
#include <algorithm>

#include <gtest/gtest.h>

#include <tranship/file/format/byte_order.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"

namespace tranship {
namespace {

using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

constexpr int type_count = 17;

std::string swapped(std::string bytes, std::size_t width) {
  for (std::size_t at = 0; at < bytes.size(); at += width)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
  return bytes;
}

std::string counted_bytes(std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>(i * 7 + i / 251);
  return out;
}

TEST(ByteOrder, IsSwappedByTheNumbersWithinAnElement) {
  EXPECT_EQ(swapped_bytes(">f8", "<f8"), 8);
  EXPECT_EQ(swapped_bytes("<c16", ">c16"), 8);
  EXPECT_EQ(swapped_bytes(">c32", "<c32"), 16);
  EXPECT_EQ(swapped_bytes("|u1", "|u1"), 0);
  EXPECT_EQ(swapped_bytes("|V2", "|V2"), 0);
  EXPECT_EQ(swapped_bytes("F8_E4M3", "F8_E4M3"), 0) << "a dtype of safetensors";
  EXPECT_EQ(native_descr(">f8"), "<f8");
  EXPECT_EQ(native_descr("=f8"), "=f8");
  EXPECT_EQ(native_descr("bfloat16"), "bfloat16");
}

TEST(ByteOrder, WordsAreReversed) {
  for (const std::size_t width : {2, 4, 8, 16}) {
    const std::string before = counted_bytes(width * 37);
    std::string after = before;
    reverse_each(std::as_writable_bytes(std::span(after)), static_cast<Index>(width));
    EXPECT_EQ(after, swapped(before, width)) << width;
  }
  std::string same = counted_bytes(8);
  reverse_each(std::as_writable_bytes(std::span(same)), 0);
  EXPECT_EQ(same, counted_bytes(8));
}

// Every element type, in both byte orders, through every format of one array.
TEST(ByteOrder, BareElementsAreInThisMachinesOrder) {
  const ArraySpec shape = parse_layout("u8[5,6] @ 1x1 : whole, whole");
  for (int n = 0; n < type_count; ++n)
    for (const char order : {'<', '>'}) {
      const auto type = static_cast<ElementType>(n);
      const ArraySpec whole{type, shape.distribution};
      const ArraySpec tiles{type, parse_layout("u8[5,6] @ 2x2 : block+overlap(1,1,replicate), cyclic(2)").distribution};
      NpyHeader header = make_npy_header(type, {5, 6});
      if (header.byte_order != '|') {
        header.byte_order = order;
        header.descr[0] = order;
      }
      SCOPED_TRACE(header.descr);
      const std::string elements = counted_bytes(static_cast<std::size_t>(header.data_bytes()));
      const auto width = static_cast<std::size_t>(size_bytes(part_of(type)));
      const std::string native = header.descr == native_descr(header.descr) ? elements : swapped(elements, width);
      TemporaryFolder folder(FolderPlace::memory);
      const auto path = [&](const char* name) { return folder.path(name); };
      const auto go = [&](const char* source, const char* target, const ArraySpec& to) {
        reshard({.source = path(source), .target = path(target), .to = to, .verify = Verify::yes});
      };
      write_text(path("a.npy"), format_npy_header(header) + elements);
      go("a.npy", "a.bin", whole);
      EXPECT_EQ(read_text(path("a.bin")), native);
      go("a.npy", "tiles", tiles);
      go("tiles", "b.raw", whole);
      EXPECT_EQ(read_text(path("b.raw")), native);
      go("tiles", "b.npy", whole);
      EXPECT_EQ(read_text(path("b.npy")), read_text(path("a.npy"))) << "which says its order, and keeps it";
      reshard({.source = path("a.bin"),
               .target = path("c.npy"),
               .from = whole,
               .to = whole,
               .raw = RawForm{},
               .verify = Verify::yes});
      EXPECT_EQ(read_text(path("c.npy")), format_npy_header(make_npy_header(type, {5, 6})) + native);
    }
}

TEST(ByteOrder, VerificationLooksAtOverlapInEitherOrder) {
  const ArraySpec overlapped = parse_layout("f64[9] @ 1 : block+overlap(2,1,toroidal)");
  NpyHeader header = make_npy_header(ElementType::f64, {9});
  header.byte_order = header.descr[0] = '>';
  TemporaryFolder folder(FolderPlace::memory);
  const std::string elements = counted_bytes(72), native = swapped(elements, 8);
  write_text(folder.path("a.npy"), format_npy_header(header) + elements);
  reshard({.source = folder.path("a.npy"), .target = folder.path("a.bin"), .to = overlapped, .verify = Verify::yes});
  EXPECT_EQ(read_text(folder.path("a.bin")), native.substr(56) + native + native.substr(0, 8));
}

}  // namespace
}  // namespace tranship
