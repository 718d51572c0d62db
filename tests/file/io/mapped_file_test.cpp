// MappedFile: reading, writing, what is no regular file, and files that cannot be made.
#include <algorithm>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/file/io/mapped_file.hpp>
#include <tranship/file/io/mapped_window.hpp>

#include "file/temporary_folder.hpp"

namespace tranship {
namespace {

using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedFile, ReadsAllBytes) {
  TemporaryFolder folder;
  const std::string text(10'000, 'x');
  write_text(folder.path("a"), text + "end");
  const MappedFile file = MappedFile::open(folder.path("a")).value();
  EXPECT_EQ(file.size_bytes(), 10'003);
  EXPECT_EQ(text_of(file.bytes()), text + "end");
}

TEST(MappedFile, WritesReachTheFile) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "hello");
  {
    const MappedFile file = MappedFile::open(folder.path("a"), FileAccess::read_write).value();
    file.writable_bytes()[0] = std::byte{'j'};
    file.sync().value();
  }
  EXPECT_EQ(read_text(folder.path("a")), "jello");
}

TEST(MappedFile, ReadOnlyBytesAreNotGivenForWriting) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "hello");
  const MappedFile file = MappedFile::open(folder.path("a")).value();
  try {
    file.writable_bytes();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_EQ(error.message(), "'" + folder.path("a") + "' is mapped for reading only");
  }
}

TEST(MappedFile, AFileOfNoBytesIsAnEmptySpan) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "");
  const MappedFile file = MappedFile::open(folder.path("a"), FileAccess::read_write).value();
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_TRUE(file.writable_bytes().empty());
  EXPECT_TRUE(file.sync().ok());
  EXPECT_TRUE(MappedFile::create(folder.path("b"), 0).ok());
  EXPECT_EQ(read_text(folder.path("b")), "");
}

TEST(MappedFile, MovingHandsTheMappingOver) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "first");
  write_text(folder.path("b"), "second");
  MappedFile a = MappedFile::open(folder.path("a")).value();
  MappedFile b = std::move(a);
  EXPECT_TRUE(a.bytes().empty());
  EXPECT_EQ(text_of(b.bytes()), "first");
  b = MappedFile::open(folder.path("b")).value();
  EXPECT_EQ(text_of(b.bytes()), "second");
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  TemporaryFolder folder;
  const Result<MappedFile> none = MappedFile::open(folder.path("none"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::io);
  EXPECT_EQ(none.error().message(), "cannot open '" + folder.path("none") + "': No such file or directory");
  const Result<MappedFile> directory = MappedFile::open(folder.path());
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().code(), ErrorCode::bad_file);
  EXPECT_EQ(directory.error().message(), "'" + folder.path() + "' is a directory, not a regular file");
  // Opening a pipe that nobody writes must not wait.
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder.path("pipe")).error().code(), ErrorCode::bad_file);
  EXPECT_EQ(MappedFile::open("/dev/null").error().code(), ErrorCode::bad_file);
}

TEST(MappedFile, AFileThatBecomesShorterIsAnErrorAndNoSignal) {
  TemporaryFolder folder;
  write_text(folder.path("a"), std::string(200'000, 'x'));
  const MappedFile file = MappedFile::open(folder.path("a")).value();
  EXPECT_EQ(text_of(file.bytes().subspan(150'000, 1)), "x");
  EXPECT_NO_THROW(file.check());
  std::filesystem::resize_file(folder.path("a"), 4096);
  EXPECT_EQ(text_of(file.bytes().subspan(150'000, 1)), std::string(1, '\0'));
  const Result<void> checked = attempt([&] { file.check(); });
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code(), ErrorCode::bad_file);
  EXPECT_EQ(checked.error().message(), "'" + folder.path("a") +
                                           "' became shorter while it was read, or its disk failed: bytes from 0 to "
                                           "200000");
}

TEST(MappedFile, CreateMakesZerosOfTheWholeLength) {
  TemporaryFolder folder;
  const MappedFile file = MappedFile::create(folder.path("a"), 9'000).value();
  EXPECT_EQ(read_text(folder.path("a")), std::string(9'000, '\0'));
  std::fill(file.writable_bytes().begin(), file.writable_bytes().end(), std::byte{'z'});
  EXPECT_EQ(read_text(folder.path("a")), std::string(9'000, 'z'));
  struct stat status;
  ASSERT_EQ(::stat(folder.path("a").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 9'000) << "the blocks are not taken";
}

TEST(MappedFile, CreateNeverTouchesWhatIsThere) {
  TemporaryFolder folder;
  write_text(folder.path("a"), "old");
  const Result<MappedFile> again = MappedFile::create(folder.path("a"), 9);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message(), "cannot create '" + folder.path("a") + "': File exists");
  EXPECT_EQ(read_text(folder.path("a")), "old");
}

TEST(MappedFile, CreateThatFindsNoRoomLeavesNothing) {
  TemporaryFolder folder;
  constexpr Index size_bytes = Index{1} << 62;
  const Result<MappedFile> huge = MappedFile::create(folder.path("a"), size_bytes);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code(), ErrorCode::io);
  EXPECT_EQ(huge.error().message().find("cannot reserve 4611686018427387904 bytes for '" + folder.path("a") + "': "),
            0u);
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(MappedFile::create(folder.path("a"), -1).error().code(), ErrorCode::invalid_use);
}

TEST(MappedWindow, ReadsWhatItCovers) {
  TemporaryFolder folder;
  std::string text(50'000, 'x');
  text.replace(20'000, 3, "abc");
  write_text(folder.path("a"), text);
  const int file = ::open(folder.path("a").c_str(), O_RDONLY | O_CLOEXEC);
  const MappedWindow window = MappedWindow::map(file, "a", 20'000, 3);
  ::close(file);
  EXPECT_TRUE(window.covers(20'000, 3));
  EXPECT_FALSE(window.covers(20'000, 4));
  EXPECT_FALSE(window.covers(10'000, 1));
  EXPECT_EQ(text_of({window.at(20'000), 3}), "abc");
  EXPECT_NO_THROW(window.check());
}

TEST(MappedWindow, AFileThatBecomesShorterIsAnErrorAndNoSignal) {
  TemporaryFolder folder;
  write_text(folder.path("a"), std::string(200'000, 'x'));
  const int file = ::open(folder.path("a").c_str(), O_RDWR | O_CLOEXEC);
  const MappedWindow lost = MappedWindow::map(file, "a", 0, 200'000);
  const MappedWindow other = MappedWindow::map(file, "a", 0, 4096);
  EXPECT_EQ(text_of({lost.at(150'000), 1}), "x");
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  ::close(file);
  EXPECT_EQ(text_of({lost.at(150'000), 1}), std::string(1, '\0'));
  EXPECT_EQ(text_of({other.at(0), 1}), "x");
  EXPECT_NO_THROW(other.check());
  try {
    lost.check();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    EXPECT_EQ(error.message(), "'a' became shorter while it was read, or its disk failed: bytes from 0 to 200000");
  }
}

}  // namespace
}  // namespace tranship
