// What a reshard reads from the disk, counted by the kernel: in a control group that leaves little of the page cache,
// from a source that is not in it. No more than the forecast says, and at most twice the source.
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <tranship/base/sanitizers.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/reshard_scene.hpp"
#include "file/temporary_folder.hpp"
#include "support/control_group.hpp"
#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

constexpr Index mib = Index(1) << 20;

/// Bytes that this process has had fetched from storage.
Index fetched_bytes() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  for (Index count = 0; counters >> name >> count;)
    if (name == "read_bytes:") return count;
  return -1;
}

/// Takes a file, or all files of a directory, out of the page cache.
void forget(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) forget(entry.path().string());
    return;
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

void write_array(const std::string& path, const ArraySpec& spec) {
  std::ofstream out(path, std::ios::binary);
  out << format_npy_header(make_npy_header(spec.type, spec.distribution.extents()));
  std::vector<std::uint64_t> block(1 << 14);
  SplitMix64 random(1);
  for (Index left = checked_product(spec.distribution.extents()) * size_bytes(spec.type); left > 0;) {
    for (std::uint64_t& word : block) word = random.next();
    const Index now = std::min<Index>(left, static_cast<Index>(block.size() * 8));
    out.write(reinterpret_cast<const char*>(block.data()), now);
    left -= now;
  }
}

/// Each part has rows from everywhere in an order of its own, and ghosts of all others.
ArraySpec by_lists(const ArraySpec& like, Index parts) {
  const Indices& extents = like.distribution.extents();
  std::vector<Index> ids(static_cast<std::size_t>(extents[0]));
  std::iota(ids.begin(), ids.end(), 0);
  test::Random random(3);
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random.below(Index(i))]);
  std::vector<IndexedPart> lists(static_cast<std::size_t>(parts));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    lists[i % lists.size()].owned.push_back(ids[i]);
    if (i % 100 == 0) lists[(i + 1) % lists.size()].ghosts.push_back(ids[i]);
  }
  return {like.type, Distribution::indexed(extents, 1, Grid({parts}), std::move(lists))};
}

/// What a run in the group reads; -1 where it fails, -2 where it cannot enter.
Index read_in_group(const test::ControlGroup& group, const ReshardOptions& options) {
  return testing::number_of_child([&]() -> Index {
    if (!group.enter()) return -2;
    const Index before = fetched_bytes();
    return attempt([&] { return reshard(options); }).ok() ? fetched_bytes() - before : -1;
  });
}

TEST(DiskReads, AreAtMostTwiceTheSourceAndWhatTheForecastSays) {
#if defined(TRANSHIP_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more memory than the group has";
#endif
  struct Case {
    const char* from;
    const char* to;  // "": rows that are dealt at random, by lists
    Index memory_bytes;
  };
  const std::vector<Case> cases = {
      {"f64[2048,4096] @ 1x1 : whole, whole", "@ 1x256 : whole, block", 4 * mib},
      {"f64[2048,4096] @ 1x1 : whole, whole", "@ 1x1024 : whole, block", 4 * mib},
      {"f64[2048,4096] @ 1x1 : whole, whole", "@ 1x8 : whole, block | order(1,0)", 4 * mib},
      {"f64[2048,4096] @ 16x32 : block, block", "@ 1x64 : whole, block", 4 * mib},
      {"f32[2000,60,120] @ 1x1x1 : whole, whole, whole", "@ 1x10x20 : whole, block, block", 4 * mib},
      {"f32[2000,60,120] @ 1x10x20 : whole, block, block", "@ 20x1x1 : block, whole, whole", 4 * mib},
      {"u8[8192,8192] @ 1x1 : whole, whole", "@ 1x4 : whole, block | order(1,0)", 4 * mib},
      {"f64[2048,4096] @ 1x1 : whole, whole", "@ 4x4 : cyclic(3), cyclic(5)+overlap(1,1)", 4 * mib},
      {"f64[200000,40] @ 1x1 : whole, whole", "", 4 * mib},
      {"f64[200000,40] @ 8x1 : cyclic(5), whole | order(1,0)", "", 4 * mib},
  };
  const test::ControlGroup group(64 * mib);
  if (!group.is_there()) GTEST_SKIP() << "no control group can be made here";
  const testing::TemporaryFolder folder;
  const std::string source = folder.path("source"), target = folder.path("target");
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.from << " to " << c.to);
    const ArraySpec from = parse_layout(c.from);
    const std::string extents = std::string(c.from, std::string_view(c.from).find('@'));
    std::filesystem::remove_all(source);
    write_array(folder.path("whole.npy"), from);
    reshard({.source = folder.path("whole.npy"), .target = source, .to = from});
    std::filesystem::remove(folder.path("whole.npy"));
    const ReshardOptions options{.source = source,
                                 .target = target,
                                 .to = *c.to ? parse_layout(extents + c.to) : by_lists(from, 7),
                                 .memory_bytes = c.memory_bytes,
                                 .threads = 2};
    const Index source_bytes = checked_product(from.distribution.extents()) * size_bytes(from.type);
    const Index forecast_bytes = forecast_reshard(options).work.bytes_read;
    // What the file system keeps of each file is read as well.
    const Index files = from.distribution.grid().size() + options.to.distribution.grid().size();
    const Index allowed_bytes = std::min(forecast_bytes, 2 * source_bytes + files * (16 << 10));
    // Where the machine is short of pages it may take some back before they are copied; that only adds.
    Index read_bytes = 0;
    for (int turn = 0; turn < 3 && (turn == 0 || read_bytes > allowed_bytes); ++turn) {
      std::filesystem::remove_all(target);
      forget(source);
      read_bytes = read_in_group(group, options);
    }
    if (read_bytes == -2) GTEST_SKIP() << "the control group cannot be entered";
    ASSERT_GE(read_bytes, 0);
    if (read_bytes == 0) GTEST_SKIP() << "this file system does not count what is read";
    EXPECT_LE(read_bytes, forecast_bytes);
    EXPECT_LE(read_bytes, allowed_bytes) << double(read_bytes) / double(source_bytes);
    EXPECT_GE(read_bytes, source_bytes - mib) << "the source was in the cache";
    std::filesystem::remove_all(target);
  }
}

}  // namespace
}  // namespace tranship
