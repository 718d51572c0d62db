// AtomicFile: the old one or the new one, nothing in between and nothing left over.
#include <algorithm>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/file/io/atomic_write.hpp>

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

}  // namespace
}  // namespace tranship
