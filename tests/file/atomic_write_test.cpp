// AtomicFile and AtomicDirectory: the old one or the new one, nothing in between and nothing left over.
#include <algorithm>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/file/atomic_write.hpp>

#include "file/temporary_folder.hpp"

namespace tranship {
namespace {

using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;
using Names = std::set<std::string>;

void fill(std::span<std::byte> bytes, const std::string& text) {
  ASSERT_EQ(bytes.size(), text.size());
  std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(bytes.data()));
}

AtomicFile make_file(const std::string& target, const std::string& text) {
  AtomicFile file = AtomicFile::create(target, static_cast<Index>(text.size())).value();
  fill(file.bytes(), text);
  return file;
}

void add_file(const AtomicDirectory& directory, const std::string& name, const std::string& text) {
  fill(directory.create_file(name, static_cast<Index>(text.size())).value().writable_bytes(), text);
}

AtomicDirectory make_directory(const std::string& target, const std::string& text) {
  AtomicDirectory directory = AtomicDirectory::create(target, "manifest.json").value();
  add_file(directory, "part-00000.npy", text);
  add_file(directory, "manifest.json", "{}");
  return directory;
}

TEST(AtomicFile, AppearsWhenCommitted) {
  TemporaryFolder folder;
  AtomicFile file = make_file(folder.path("a"), "new");
  EXPECT_FALSE(folder.names().contains("a"));
  file.commit().value();
  EXPECT_EQ(folder.names(), Names{"a"});
  EXPECT_EQ(read_text(folder.path("a")), "new");
  const Result<void> again = file.commit();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), ErrorCode::invalid_use);
}

TEST(AtomicFile, ReplacesAndKeepsPermissions) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "old text");
  ASSERT_EQ(::chmod(folder.path("a").c_str(), 0640), 0);
  AtomicFile file = make_file(folder.path("a"), "new");
  EXPECT_EQ(read_text(folder.path("a")), "old text");
  file.commit().value();
  EXPECT_EQ(read_text(folder.path("a")), "new");
  struct stat status;
  ASSERT_EQ(::stat(folder.path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(AtomicFile, VanishesWhenNotCommitted) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "old");
  {
    AtomicFile file = make_file(folder.path("a"), "new");
    EXPECT_EQ(folder.names().size(), 2u);
    const AtomicFile moved = std::move(file);
    EXPECT_EQ(folder.names().size(), 2u);
  }
  EXPECT_EQ(folder.names(), Names{"a"});
  EXPECT_EQ(read_text(folder.path("a")), "old");
}

TEST(AtomicFile, HoldsNoBytesIfSoAsked) {
  TemporaryFolder folder;
  make_file(folder.path("a"), "").commit().value();
  EXPECT_EQ(read_text(folder.path("a")), "");
}

TEST(AtomicFile, FollowsALink) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkdir(folder.path("far").c_str(), 0700), 0);
  write_text(folder.path("far/a"), "old");
  std::filesystem::create_symlink("far/a", folder.path("link"));
  make_file(folder.path("link"), "new").commit().value();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(read_text(folder.path("far/a")), "new");
  EXPECT_EQ(folder.names(), (Names{"far", "far/a", "link"}));
}

TEST(AtomicFile, RefusesWhatItMustNotReplace) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkdir(folder.path("d").c_str(), 0700), 0);
  const Result<AtomicFile> directory = AtomicFile::create(folder.path("d"), 3);
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(AtomicFile::create("/dev/null", 3).error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(AtomicFile::create("", 3).error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(AtomicFile::create(folder.path("none/a"), 3).error().code(), ErrorCode::io);
  EXPECT_EQ(AtomicFile::create(folder.path("a"), Index{1} << 62).error().code(), ErrorCode::io);
  EXPECT_EQ(folder.names(), Names{"d"});
}

TEST(AtomicFile, AcceptsTheLongestName) {
  TemporaryFolder folder;
  const std::string name(255, 'n');
  make_file(folder.path(name), "new").commit().value();
  EXPECT_EQ(folder.names(), Names{name});
}

TEST(AtomicFile, ACommitThatFailsLeavesTheTarget) {
  TemporaryFolder folder;
  {
    AtomicFile file = make_file(folder.path("a"), "new");
    // Something came up at the target that a file cannot replace.
    ASSERT_EQ(::mkdir(folder.path("a").c_str(), 0700), 0);
    const Result<void> committed = file.commit();
    ASSERT_FALSE(committed.ok());
    EXPECT_EQ(committed.error().code(), ErrorCode::io);
    EXPECT_EQ(committed.error().message(), "cannot put in place '" + folder.path("a") + "': Is a directory");
  }
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(AtomicFile, ACrashLeavesTheOldOne) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const AtomicFile file = make_file(folder.path("a"), "half");
    ::_exit(7);  // no destructor runs
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_text(folder.path("a")), "old");
  const Names names = folder.names();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names.begin()->substr(0, 11), ".a.partial-");
}

TEST(AtomicDirectory, AppearsWhenCommitted) {
  TemporaryFolder folder;
  AtomicDirectory directory = make_directory(folder.path("out/"), "new");
  EXPECT_FALSE(folder.names().contains("out"));
  directory.commit().value();
  EXPECT_EQ(folder.names(), (Names{"out", "out/manifest.json", "out/part-00000.npy"}));
  EXPECT_EQ(read_text(folder.path("out/part-00000.npy")), "new");
  EXPECT_EQ(directory.commit().error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(directory.create_file("late", 1).error().code(), ErrorCode::invalid_use);
}

TEST(AtomicDirectory, TakesThePlaceOfAnOldOne) {
  TemporaryFolder folder;
  AtomicDirectory first = make_directory(folder.path("out"), "old");
  add_file(first, "part-00001.npy", "old too");
  first.commit().value();
  AtomicDirectory second = make_directory(folder.path("out"), "new");
  EXPECT_EQ(read_text(folder.path("out/part-00000.npy")), "old");
  second.commit().value();
  EXPECT_EQ(read_text(folder.path("out/part-00000.npy")), "new");
  EXPECT_EQ(folder.names(), (Names{"out", "out/manifest.json", "out/part-00000.npy"}));
}

TEST(AtomicDirectory, VanishesWhenNotCommitted) {
  TemporaryFolder folder;
  make_directory(folder.path("out"), "old").commit().value();
  const Names before = folder.names();
  {
    AtomicDirectory directory = make_directory(folder.path("out"), "new");
    const AtomicDirectory moved = std::move(directory);
    EXPECT_EQ(folder.names().size(), before.size() + 3);
  }
  EXPECT_EQ(folder.names(), before);
  EXPECT_EQ(read_text(folder.path("out/part-00000.npy")), "old");
}

TEST(AtomicDirectory, RefusesADirectoryOfSomebodyElse) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkdir(folder.path("home").c_str(), 0700), 0);
  write_text(folder.path("home/letter"), "dear");
  const Result<AtomicDirectory> home = AtomicDirectory::create(folder.path("home"), "manifest.json");
  ASSERT_FALSE(home.ok());
  EXPECT_EQ(home.error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(home.error().message(), "directory '" + std::filesystem::canonical(folder.path("home")).string() +
                                        "' exists and holds no 'manifest.json': it is not replaced");
  EXPECT_EQ(AtomicDirectory::create(folder.path("home/letter"), "manifest.json").error().code(),
            ErrorCode::invalid_use);
  EXPECT_EQ(AtomicDirectory::create("/", "manifest.json").error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(AtomicDirectory::create(folder.path("none/out"), "manifest.json").error().code(), ErrorCode::io);
  EXPECT_EQ(folder.names(), (Names{"home", "home/letter"}));
}

TEST(AtomicDirectory, RefusesATargetThatCameUpMeanwhile) {
  TemporaryFolder folder;
  {
    AtomicDirectory directory = make_directory(folder.path("out"), "new");
    ASSERT_EQ(::mkdir(folder.path("out").c_str(), 0700), 0);
    write_text(folder.path("out/letter"), "dear");
    EXPECT_EQ(directory.commit().error().code(), ErrorCode::invalid_use);
  }
  EXPECT_EQ(folder.names(), (Names{"out", "out/letter"}));
}

TEST(AtomicDirectory, IsNotCommittedWithoutItsMarker) {
  TemporaryFolder folder;
  {
    AtomicDirectory directory = AtomicDirectory::create(folder.path("out"), "manifest.json").value();
    add_file(directory, "part-00000.npy", "new");
    const Result<void> committed = directory.commit();
    ASSERT_FALSE(committed.ok());
    EXPECT_EQ(committed.error().message(), "the new '" + folder.path("out") + "' holds no 'manifest.json'");
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicDirectory, HoldsFilesOfPlainNamesOnce) {
  TemporaryFolder folder;
  const AtomicDirectory directory = AtomicDirectory::create(folder.path("out"), "manifest.json").value();
  for (const char* name : {"", ".", "..", "../escape", "a/b", "/etc/passwd"})
    EXPECT_EQ(directory.create_file(name, 1).error().code(), ErrorCode::invalid_use) << name;
  EXPECT_TRUE(directory.create_file("a", 1).ok());
  EXPECT_EQ(directory.create_file("a", 1).error().code(), ErrorCode::io);
}

TEST(AtomicDirectory, FollowsALink) {
  TemporaryFolder folder;
  make_directory(folder.path("real"), "old").commit().value();
  std::filesystem::create_directory_symlink("real", folder.path("link"));
  make_directory(folder.path("link"), "new").commit().value();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(read_text(folder.path("real/part-00000.npy")), "new");
}

}  // namespace
}  // namespace tranship
