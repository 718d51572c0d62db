// Every kind of element, in both byte orders, through every layout and format: each element of each file is compared.
#include <filesystem>

#include <gtest/gtest.h>

#include <tranship/file/format/byte_order.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/store/part_store.hpp>
#include <tranship/layout/inner_dimension.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"

namespace tranship {
namespace {

using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

const std::vector<std::string> spellings = {"|b1",
                                            "|u1",
                                            "<i2",
                                            ">u2",
                                            "<f2",
                                            ">f2",
                                            "|V2",
                                            "bfloat16",
                                            "<i4",
                                            ">f4",
                                            "<u8",
                                            ">f8",
                                            "<f16",
                                            ">f16",
                                            "<c8",
                                            ">c8",
                                            ">c16",
                                            "<c32",
                                            ">c32",
                                            "|V1",
                                            "<f1",
                                            "<M8[ns]",
                                            ">M8[D]",
                                            ">m8[25s]",
                                            "|S1",
                                            "|S7",
                                            "<U1",
                                            ">U2",
                                            ">U3",
                                            "<U4",
                                            "|V12",
                                            "|V16",
                                            "|V40",
                                            "[('x', '<f4'), ('y', '<i8')]",
                                            "[('x', '>f4'), ('y', '<i2')]",
                                            "[('a', '|i1'), ('', '|V7'), ('b', '<f8')]",
                                            "[('p', [('x', '<f4', (2, 3))]), (('t', 'n'), '|S3')]"};

/// So many bytes of an element, none like those of another.
std::string element(std::size_t number, std::size_t width) {
  std::string out;
  auto seed = static_cast<std::uint32_t>(number * 2654435761u + 12345u);
  for (std::size_t i = 0; i < width; ++i) out += static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
  return out;
}

std::string reversed(const std::string& bytes, std::size_t width) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    const std::string number = bytes.substr(at, width);
    out.append(number.rbegin(), number.rend());
  }
  return out;
}

class Formats : public ::testing::TestWithParam<std::string> {
 protected:
  Formats() : spelled(parse_npy_descr(GetParam()).value()) {}

  std::size_t width() const { return static_cast<std::size_t>(spelled.count * size_bytes(spelled.type)); }

  NpyHeader header(const Indices& extents) const {
    return {.type = spelled.type,
            .count = spelled.count,
            .byte_order = spelled.byte_order,
            .extents = extents,
            .descr = GetParam()};
  }
  std::string elements(const Indices& extents) const {
    std::string out;
    for (Index i = 0; i < checked_product(extents); ++i) out += element(static_cast<std::size_t>(i), width());
    return out;
  }
  /// The layout that a text has for elements of this kind.
  ArraySpec layout(const std::string& text) const {
    ArraySpec out = parse_layout("u8" + text);
    if (spelled.count > 1) out.distribution = with_inner_dimension(out.distribution, spelled.count);
    out.type = spelled.type;
    return out;
  }
  void go(const std::string& source, const std::string& target, const std::string& to) const {
    reshard({.source = path(source), .target = path(target), .to = layout(to), .verify = Verify::yes});
  }
  std::string path(const std::string& name) const { return folder.path(name); }

  /// What is wrong in a directory of parts, cell by cell.
  std::string fault(const std::string& directory, const std::string& text) const {
    const Distribution cells = parse_layout("u8" + text).distribution;
    for (const Rank rank : cells.grid().ranks()) {
      const std::string file = read_text(path(directory + "/" + part_name(rank)));
      const NpyHeader found = parse_npy_header(std::as_bytes(std::span(file)), static_cast<Index>(file.size())).value();
      if (found.descr != GetParam()) return "descr " + found.descr;
      if (!(found.extents == cells.local_extents(rank))) return "extents " + to_string(found.extents);
      std::size_t number = 0;
      std::string wrong;
      for_each_coordinate(found.extents, [&](const Indices& local) {
        const Indices at = cells.cell_of(rank, local).at;
        Index cell = 0;
        for (int d = 0; d < at.size(); ++d) cell = cell * cells.extents()[d] + at[d];
        const std::size_t offset = static_cast<std::size_t>(found.header_bytes) + number++ * width();
        if (file.substr(offset, width()) != element(static_cast<std::size_t>(cell), width()))
          wrong = "rank " + std::to_string(rank) + " at [" + to_string(local) + "]";
      });
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  NpyElement spelled;
  TemporaryFolder folder{FolderPlace::memory};
};

TEST_P(Formats, KeepEveryElement) {
  const struct {
    Indices extents;
    std::string whole;
    std::vector<std::string> layouts;
  } arrays[] = {
      {{7}, "[7] @ 1 : whole", {"[7] @ 3 : block+overlap(1,2,truncate)", "[7] @ 2 : cyclic(2)"}},
      {{4, 5},
       "[4,5] @ 1x1 : whole, whole",
       {"[4,5] @ 2x2 : cyclic(1)+overlap(1,1,truncate), block", "[4,5] @ 1x3 order(1,0) ranks(2,0,1) : whole, block"}},
      {{0, 3}, "[0,3] @ 1x1 : whole, whole", {"[0,3] @ 2x1 : block, whole"}},
      {{}, "[1] @ 1 : whole", {"[1] @ 2 : block", "[1] @ 1*2 : whole"}}};
  for (const auto& array : arrays) {
    SCOPED_TRACE(array.whole);
    const std::string all = elements(array.extents);
    const std::string file = format_npy_header(header(array.extents)) + all;
    write_text(path("a.npy"), file);
    for (const std::string& text : array.layouts) {
      SCOPED_TRACE(text);
      go("a.npy", "parts", text);
      if (!array.extents.empty()) EXPECT_EQ(fault("parts", text), "");
      go("parts", "b.npy", array.whole);
      EXPECT_EQ(read_text(path("b.npy")), file);
    }
    const Result<std::string> native = attempt([&] { return native_descr(GetParam()); });
    if (!native) {
      EXPECT_THROW(go("a.npy", "a.bin", array.whole), Error);
      continue;
    }
    go("parts", "a.bin", array.whole);
    EXPECT_EQ(read_text(path("a.bin")),
              native.value() == GetParam() ? all : reversed(all, static_cast<std::size_t>(spelled.swap_bytes)));
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, Formats, ::testing::ValuesIn(spellings),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

TEST(FormatsRefuse, LayoutsThatCutAnElement) {
  TemporaryFolder folder(FolderPlace::memory);
  const auto refusal = [&](const std::string& text) {
    const auto result = attempt([&] {
      return reshard({.source = folder.path("a.npy"), .target = folder.path("b"), .to = parse_layout(text)});
    });
    return result ? "accepted" : std::string(name_of(result.error().code())) + ": " + result.error().message();
  };
  const NpyHeader header{.type = ElementType::u32, .count = 3, .byte_order = '|', .extents = {4}, .descr = "|V12"};
  write_text(folder.path("a.npy"), format_npy_header(header) + std::string(48, 'x'));
  EXPECT_EQ(refusal("u32[4,3] @ 2x1 : block, whole"), "accepted");
  EXPECT_EQ(refusal("u32[4,3] @ 1x3 : whole, block"),
            "unsupported: an element '|V12' is 3 u32 in the last dimension, which must be whole: the layout cuts it");
  EXPECT_EQ(refusal("u32[4,3] @ 1x1 : whole, block+overlap(1,0,toroidal)").substr(0, 12), "unsupported:");
  EXPECT_EQ(refusal("u32[4,3] @ 1x1 : whole, whole | order(1,0)"),
            "unsupported: an array in a file has no dimension order [1, 0], which would split elements of 3 u32: its "
            "elements lie densely, in row-major order or its reverse");
  EXPECT_EQ(refusal("u32[12] @ 1 : whole").substr(0, 9), "mismatch:");
  NpyHeader fortran = header;
  fortran.extents = {2, 2};
  fortran.order = NpyOrder::fortran;
  write_text(folder.path("a.npy"), format_npy_header(fortran) + std::string(48, 'x'));
  EXPECT_EQ(refusal("u32[2,2,3] @ 1x1x1 : whole, whole, whole"), "accepted");
  EXPECT_EQ(refusal("u32[2,2,3] @ 1x1x1 : whole, whole, whole | order(1,0,2)"), "accepted");
}

TEST(FormatsRefuse, PartsOfOtherUnitsOrFields) {
  TemporaryFolder folder(FolderPlace::memory);
  std::filesystem::create_directory(folder.path("parts"));
  const auto merged = [&](const std::string& first, const std::string& second) {
    const auto write = [&](const std::string& name, const std::string& descr) {
      const NpyElement element = parse_npy_descr(descr).value();
      const NpyHeader header{.type = element.type,
                             .count = element.count,
                             .byte_order = element.byte_order,
                             .extents = {1},
                             .descr = descr};
      write_text(folder.path("parts/" + name), format_npy_header(header) + std::string(8, 'x'));
    };
    write("part-00000.npy", first);
    write("part-00001.npy", second);
    const auto result = attempt([&] {
      return reshard(
          {.source = folder.path("parts"),
           .target = folder.path("b.npy"),
           .from = parse_layout(std::string(name_of(parse_npy_descr(first).value().type)) + "[2] @ 2 : block"),
           .to = parse_layout(std::string(name_of(parse_npy_descr(first).value().type)) + "[2] @ 1 : whole")});
    });
    return result ? "accepted" : std::string(name_of(result.error().code()));
  };
  EXPECT_EQ(merged("<M8[ns]", "<M8[ns]"), "accepted");
  EXPECT_EQ(merged("<i8", "=i8"), "accepted");
  EXPECT_EQ(merged("|S8", "S8"), "accepted");
  EXPECT_EQ(merged("<M8[ns]", "<M8[s]"), "mismatch");
  EXPECT_EQ(merged("<u8", "<M8[s]"), "mismatch");
  EXPECT_EQ(merged("|S8", "|V8"), "mismatch");
  EXPECT_EQ(merged("<M8[s]", ">M8[s]"), "mismatch");
  EXPECT_EQ(merged("[('x', '<f4'), ('y', '<f4')]", "[('x', '<f4'), ('z', '<f4')]"), "mismatch");
}

}  // namespace
}  // namespace tranship
