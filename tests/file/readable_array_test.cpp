// Reshards of arrays that are in no file: a function reads their boxes.
#include <atomic>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <gtest/gtest.h>

#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"

namespace tranship {
namespace {

using testing::TemporaryFolder;

struct Numbers {
  Index rows = 0, columns = 0;
  std::atomic<Index> boxes = 0;
  std::atomic<Index> across = 0;
  Index chunk = 1;
  Index first = 0;

  void read(const Box& box, const StridedView& target) {
    ++boxes;
    for (int d = 0; d < 2; ++d) across += box.lower[d] / chunk != (box.upper[d] - 1) / chunk;
    auto* to = static_cast<double*>(target.data);
    for (Index i = 0; i < target.extents[0]; ++i)
      for (Index j = 0; j < target.extents[1]; ++j)
        to[i * target.strides[0] + j * target.strides[1]] =
            double(first + (box.lower[0] + i) * columns + box.lower[1] + j);
  }
  ArraySpec spec() const {
    return parse_layout("f64[" + std::to_string(rows) + "," + std::to_string(columns) + "] @ 1x1 : whole, whole");
  }
};

ReshardReport reshard_numbers(Numbers& numbers, const std::string& target, const std::string& to,
                              Verify verify = Verify::yes) {
  const auto read = [&](const Box& box, const StridedView& view) { numbers.read(box, view); };
  return reshard_array(
      ReadableArray{.spec = numbers.spec(), .chunk = {numbers.chunk, numbers.chunk}, .read = read},
      {.source = "", .target = target, .to = parse_layout(to), .verify = verify, .memory_bytes = 8 << 20});
}

/// Element (i, j) of a .npy file.
std::vector<double> elements_of(const std::string& path, Index count) {
  const std::string bytes = [&] {
    std::string out(std::filesystem::file_size(path), '\0');
    FILE* file = std::fopen(path.c_str(), "rb");
    EXPECT_EQ(std::fread(out.data(), 1, out.size(), file), out.size());
    std::fclose(file);
    return out;
  }();
  std::vector<double> out(static_cast<std::size_t>(count));
  std::memcpy(out.data(), bytes.data() + bytes.size() - out.size() * 8, out.size() * 8);
  return out;
}

TEST(ReadableArray, BecomesFilesChunkByChunk) {
  for (const Index chunk : {1, 7, 16, 100, 1000}) {
    const TemporaryFolder folder(testing::FolderPlace::memory);
    Numbers numbers{.rows = 60, .columns = 45, .chunk = chunk};
    const char* to = "f64[60,45] @ 2x3 : cyclic(7), block+overlap(1,1)";
    reshard_numbers(numbers, folder.path("parts"), to, Verify::no);
    EXPECT_EQ(numbers.across, 0);
    EXPECT_EQ(reshard_numbers(numbers, folder.path("parts"), to, Verify::yes).verified, Verify::yes);
    reshard({.source = folder.path("parts"), .target = folder.path("back.npy"), .to = numbers.spec()});
    const std::vector<double> back = elements_of(folder.path("back.npy"), 60 * 45);
    for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], double(i)) << "chunk " << chunk;
  }
}

TEST(ReadableArray, IsReadInPiecesWhereChunksAreLargerThanTheMemory) {
  const TemporaryFolder folder(testing::FolderPlace::memory);
  Numbers numbers{.rows = 3000, .columns = 1000, .chunk = 3000};  // 24 MB
  reshard_numbers(numbers, folder.path("columns.npy"), "f64[3000,1000] @ 1x1 : whole, whole", Verify::no);
  EXPECT_GT(numbers.boxes, 3);
  EXPECT_EQ(elements_of(folder.path("columns.npy"), 3'000'000)[2'999'999], 2'999'999);
}

TEST(ReadableArray, WhatItsFunctionThrowsLeavesNothing) {
  const TemporaryFolder folder(testing::FolderPlace::memory);
  Index calls = 0;
  const auto read = [&](const Box&, const StridedView&) {
    if (++calls == 3) throw std::runtime_error("no chunk");
  };
  const Numbers numbers{.rows = 4000, .columns = 300};
  EXPECT_THROW(reshard_array(ReadableArray{.spec = numbers.spec(), .chunk = {100, 300}, .read = read},
                             {.source = "",
                              .target = folder.path("parts"),
                              .to = parse_layout("f64[4000,300] @ 4x1 : block, whole"),
                              .memory_bytes = 4 << 20,
                              .threads = 1}),
               std::runtime_error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

// The same shape with other values, after a run that ended: nothing of the first one is taken over.
TEST(ReadableArray, NoRunGoesOnWithAnother) {
  const TemporaryFolder folder(testing::FolderPlace::memory);
  for (const Index first : {0, 1'000'000}) {
    Numbers numbers{.rows = 30, .columns = 20, .chunk = 10, .first = first};
    EXPECT_EQ(reshard_numbers(numbers, folder.path("a.npy"), "f64[30,20] @ 1x1 : whole, whole").bytes_resumed, 0);
    EXPECT_EQ(elements_of(folder.path("a.npy"), 600)[599], double(first + 599));
  }
}

TEST(ReadableArray, MustFitAndHaveOnePart) {
  const TemporaryFolder folder(testing::FolderPlace::memory);
  Numbers numbers{.rows = 4, .columns = 4};
  EXPECT_THROW(reshard_numbers(numbers, folder.path("a"), "f64[4,5] @ 2x1 : block, whole"), Error);
  EXPECT_THROW(reshard_numbers(numbers, folder.path("a"), "f32[4,4] @ 2x1 : block, whole"), Error);
  const auto read = [](const Box&, const StridedView&) {};
  const ArraySpec parts = parse_layout("f64[4,4] @ 2x1 : block, whole");
  EXPECT_THROW(reshard_array(ReadableArray{.spec = parts, .chunk = {1, 1}, .read = read},
                             {.source = "", .target = folder.path("a"), .to = parts}),
               Error);
  EXPECT_THROW(reshard_array(ReadableArray{.spec = numbers.spec(), .chunk = {1}, .read = read},
                             {.source = "", .target = folder.path("a"), .to = parts}),
               Error);
  Numbers none{.rows = 0, .columns = 4};
  EXPECT_EQ(reshard_numbers(none, folder.path("none"), "f64[0,4] @ 2x1 : block, whole").bytes_written, 0);
  EXPECT_EQ(none.boxes, 0);
}

}  // namespace
}  // namespace tranship
