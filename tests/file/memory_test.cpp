// The memory that a reshard takes: measured in a process of its own, at every report of progress.
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/sanitizers.hpp>
#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/store/part_store.hpp>
#include <tranship/layout/text.hpp>

#include "file/reshard_scene.hpp"
#include "file/temporary_folder.hpp"
#include "support/control_group.hpp"

namespace tranship {
namespace {

using testing::FolderPlace;
using testing::TemporaryFolder;

using Counters = std::set<std::string>;
/// What a process has for itself, and what it has mapped of files.
const Counters anonymous = {"RssAnon:", "RssShmem:"}, mapped = {"RssFile:", "RssShmem:"};

/// Resident bytes of this process.
Index resident_bytes(const Counters& counters) {
  std::ifstream status("/proc/self/status");
  Index out = 0;
  for (std::string word; status >> word;)
    if (Index kilobytes = 0; counters.contains(word) && status >> kilobytes) out += kilobytes * 1024;
  return out;
}

/// The most that a reshard takes beside what the process has before; -1 where it fails.
Index peak_bytes(const ReshardOptions& options) {
  return testing::number_of_child([&] {
    const Index before = resident_bytes(anonymous);
    Index peak = before;
    const auto measure = [&](const ReshardProgress&) { peak = std::max(peak, resident_bytes(anonymous)); };
    ReshardOptions measured = options;
    measured.progress = measure;
    const Result<ReshardReport> done = attempt([&] { return reshard(measured); });
    if (!done) std::fprintf(stderr, "%s\n", done.error().message().c_str());
    return done ? peak - before : -1;
  });
}

/// A file of random enough elements, far larger than the memory that is given.
void write_array(const std::string& path, Index rows, Index columns) {
  const std::string header = format_npy_header(make_npy_header(ElementType::u32, {rows, columns}));
  std::ofstream out(path, std::ios::binary);
  out << header;
  std::vector<std::uint32_t> row(static_cast<std::size_t>(columns));
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) row[j] = static_cast<std::uint32_t>((i * columns + j) * 2654435761u);
    out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof row[0]));
  }
}

TEST(ReshardMemory, ADefaultIsHalvedUntilItIsAvailable) {
  constexpr Index mib = Index(1) << 20;
  EXPECT_EQ(default_memory_bytes(INT64_MAX), 256 * mib);
  EXPECT_EQ(default_memory_bytes(256 * mib), 256 * mib);
  EXPECT_EQ(default_memory_bytes(256 * mib - 1), 128 * mib);
  EXPECT_EQ(default_memory_bytes(100 * mib), 64 * mib);
  EXPECT_EQ(default_memory_bytes(5 * mib), 4 * mib);
  EXPECT_EQ(default_memory_bytes(0), reshard_memory_min);
}

TEST(ReshardMemory, ADefaultIsNeverRefused) {
#if defined(TRANSHIP_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more memory than the group has";
#endif
  constexpr Index limit_bytes = Index(96) << 20;
  const test::ControlGroup group(limit_bytes);
  if (!group.is_there()) GTEST_SKIP() << "no control group can be made here";
  const TemporaryFolder folder;
  write_array(folder.path("a.npy"), 5, 4);
  const ReshardOptions options{
      .source = folder.path("a.npy"), .target = folder.path("b"), .to = parse_layout("u32[5,4] @ 2x1 : block, whole")};
  const pid_t child = ::fork();
  if (child == 0) {
    if (!group.enter()) ::_exit(2);
    const Index forecast = forecast_reshard(options).work.memory_bytes, taken = reshard(options).memory_bytes;
    ReshardOptions asked = options;
    asked.memory_bytes = Index(256) << 20;
    const bool is_refused = !attempt([&] { reshard(asked); }).ok();
    ::_exit(forecast == taken && taken < limit_bytes && taken >= reshard_memory_min && is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: it could not enter the group";
}

TEST(ReshardMemory, StaysWithinWhatIsGiven) {
#if defined(TRANSHIP_SANITIZED)
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  // Beside the memory for elements: plans, stacks, what the allocator holds back.
  constexpr Index beside_bytes = Index(2) << 20;
  TemporaryFolder folder;
  write_array(folder.path("a.npy"), 4096, 3072);  // 48 MiB, 6 times the memory
  ReshardOptions options{.source = folder.path("a.npy"),
                         .target = folder.path("b"),
                         .to = parse_layout("u32[1] @ 1 : whole"),
                         .memory_bytes = Index(8) << 20,
                         .threads = 4};
  for (const char* layout : {"3x1 : block, whole", "1x3 : whole, block | order(1,0)",
                             "2x3 : cyclic(7)+overlap(1,1), cyclic(5)", "1x2 : whole, block+overlap(9,9,toroidal)"})
    for (const Verify verify : {Verify::no, Verify::yes}) {
      SCOPED_TRACE(layout);
      options.to = parse_layout(std::string("u32[4096,3072] @ ") + layout);
      options.verify = verify;
      const Index peak = peak_bytes(options);
      EXPECT_GT(peak, 0);
      EXPECT_LE(peak, options.memory_bytes + beside_bytes);
    }
  // Stretches of one element in the source, of which many parts have a list.
  const ArraySpec thin = parse_layout("u32[4096,3072] @ 1x1024 : whole, block+overlap(0,3,open)");
  ReshardOptions back = options;
  back.to = thin;
  back.target = folder.path("thin");
  reshard(back);
  back.source = back.target;
  back.target = folder.path("whole");
  back.to = parse_layout("u32[4096,3072] @ 1x1 : whole, whole");
  EXPECT_LE(peak_bytes(back), back.memory_bytes + 4 * beside_bytes);
  // The measure sees what is taken where more is given.
  options.to = parse_layout("u32[4096,3072] @ 1x3 : whole, block | order(1,0)");
  options.memory_bytes = Index(256) << 20;
  EXPECT_GT(peak_bytes(options), (Index(8) << 20) + beside_bytes);
}

TEST(ReshardMemory, MapsALimitedPartOfTheSource) {
#if defined(TRANSHIP_SANITIZED)
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  TemporaryFolder folder(FolderPlace::memory);
  write_array(folder.path("a.npy"), 4096, 3072);  // 48 MiB
  const StoredParts array = open_parts(folder.path("a.npy")).value();
  array.files->keep_mapped(2 * FileSet::window_bytes);
  Index sum = 0;
  const Index before = resident_bytes(mapped);
  for (int round = 0; round < 2; ++round)
    for (Index at = 0; at < array.files->size_bytes(0); at += 4096)
      sum += static_cast<Index>(*array.files->map(0, at)->at(at));
  EXPECT_NE(sum, 0);
  // Two windows of twice that length.
  EXPECT_LE(resident_bytes(mapped) - before, 4 * FileSet::window_bytes);
  EXPECT_GT(resident_bytes(mapped) - before, FileSet::window_bytes);
}

TEST(ReshardMemory, MapsNoMoreThanAProcessCan) {
  TemporaryFolder folder(FolderPlace::memory);
  // Nothing but a hole.
  constexpr Index windows = 1100;
  const std::string path = folder.path("a.bin");
  testing::write_text(path, "");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(windows * FileSet::window_bytes));
  FileSet files(FileAccess::read_only);
  files.add(path).value();
  files.keep_mapped(Index(64) << 30);
  for (Index i = 0; i < windows; ++i)
    EXPECT_EQ(*files.map(0, i * FileSet::window_bytes)->at(i * FileSet::window_bytes), std::byte{0});

  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto others = [&] {
    std::vector<MappedWindow> out;
    for (;;) try {
        out.push_back(MappedWindow::map(file, path, 0, 1));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_memory);
        return out;
      }
  }();
  EXPECT_GT(others.size(), 0u);
  EXPECT_NO_THROW(files.map(0, 0)) << "in the place of one of its own";
  ::close(file);
}

}  // namespace
}  // namespace tranship
