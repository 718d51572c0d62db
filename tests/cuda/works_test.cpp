// Lists of moves as software cards count them: one launch each, and sectors of 32 bytes beside those that the list
// touches at all. What the lanes of a warp access together decides the second.
#include "cuda/works.hpp"

#include <optional>

#include <gtest/gtest.h>

#include <tranship/cuda/software/software_card.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>

#include "memory/device_kinds.hpp"

namespace tranship::test {
namespace {

class CardWorks : public testing::Test {
 protected:
  void SetUp() override {
    const char* const setting = std::getenv("TRANSHIP_CUDA");
    if (!setting || std::string_view(setting).rfind("software", 0) != 0) GTEST_SKIP() << "only software cards count";
    devices.emplace(DevicesOptions{.kinds = {CudaDevices{.cards = {0}}}});
    stream = devices->make_stream(Device::cuda(0));
  }
  Driver& driver() { return devices->driver(devices->memory_of(Device::cuda(0))); }
  static cuda::software::KernelCounts counted() {
    cuda::software::KernelCounts all;
    for (const char* kernel : {"tranship_move_lean", "tranship_move_deep", "tranship_move_tiled"})
      all.add(cuda::software::counts_of(0, kernel));
    return all;
  }

  /// Runs a work once. Returns its sectors, read and written, as a multiple of those that it touches.
  double sectors_of(const Work& work) {
    std::vector<std::byte*> bases;
    for (const long long bytes : work.base_bytes)
      bases.push_back(static_cast<std::byte*>(driver().allocate(std::size_t(bytes))));
    const auto list = stream->prepare(work.moves, std::vector<int>(bases.size(), 16));
    const cuda::software::KernelCounts before = counted();
    stream->move_list(list, bases);
    finish(stream->event(), Deadline::after_seconds(60));
    const cuda::software::KernelCounts after = counted();
    EXPECT_EQ(after.launches - before.launches, 1) << work.name;
    EXPECT_EQ(after.loads.bytes - before.loads.bytes, work.payload_bytes) << work.name;
    EXPECT_EQ(after.stores.bytes - before.stores.bytes, work.payload_bytes) << work.name;
    for (std::size_t i = 0; i < bases.size(); ++i) driver().deallocate(bases[i], std::size_t(work.base_bytes[i]));
    return double(after.loads.sectors - before.loads.sectors + after.stores.sectors - before.stores.sectors) /
           double(sectors_touched(work));
  }

  std::optional<Devices> devices;
  std::unique_ptr<Stream> stream;
};

/// `count` rows of `row` bytes, the first of which begins `first` bytes into its base, packed.
Work rows(long long row, long long pitch, long long count, long long first = 0) {
  const int width = row % 8 == 0 && pitch % 8 == 0 && first % 8 == 0 ? 8 : 1;
  Work out = one_move(fmt::format("rows of {} at {}, from {}", row, pitch, first),
                      block_of({{count, pitch, row}, {row / width, width, width}}), width);
  out.moves[0].source_offset = first;
  out.base_bytes[0] = first + count * pitch;
  return out;
}

TEST_F(CardWorks, are_one_launch_and_touch_few_sectors) {
  struct Case {
    Work work;
    double most;
  };
  const long long n = 48;
  const std::vector<Case> cases = {
      // Rows of 128 bytes and more.
      {rows(128, 256, 600), 1},
      {rows(256, 320, 300), 1},
      {rows(4096, 8192, 30), 1},
      {rows(65536, 65600, 3), 1},
      {one_move("contiguous", row_of(100'000, 4), 4), 1},
      {one_move("ijk to kji", block_of({{n, n * n * 8, 8}, {n, n * 8, n * 8}, {n, 8, n * n * 8}}), 8), 1},
      {one_move("ijk to jki", block_of({{n, n * n * 8, 8}, {n, n * 8, n * n * 8}, {n, 8, n * 8}}), 8), 1},
      {one_move("floats", block_of({{512, 2048, 4}, {512, 4, 2048}}), 4), 1},
      {one_move("bytes", block_of({{512, 512, 1}, {512, 1, 512}}), 1), 1},
      // Rows that begin off a sector: warps that meet within a sector touch it twice.
      {rows(4096, 8192, 30, 16), 1.05},
      {rows(4096, 8192, 30, 8), 1.07},
      {rows(632, 632 * 3, 400), 1.05},
      {ndsl(true, 1, false), 1.08},
      {ndsl(true, 1, true), 1.08},
      {ndsl(false, 1, false), 1.2},
      {ndsl(false, 1, true), 1.2},
      // Short rows.
      {rows(64, 128, 1000), 1},
      {rows(24, 96, 1000), 1.1},
      {rows(24, 256, 1000), 1.1},
      {rows(8, 64, 4000), 1},
      {rows(3, 32, 4000), 1.1},
  };
  for (const Case& one : cases) {
    const double sectors = sectors_of(one.work);
    EXPECT_LE(sectors, one.most) << one.work.name;
    EXPECT_GE(sectors, 1) << one.work.name;
    if (one.most > 1) EXPECT_GT(sectors, 1 + (one.most - 1) / 4) << one.work.name << ": the bound is too loose";
  }
}

}  // namespace
}  // namespace tranship::test
