// Reshard where the surroundings are against it. One generator: each kind of target in each of these places. Whatever
// happens, the target is the old one or the new one, whole, the error says what was in the way, and nothing else has
// been touched. What ends the process at any step is in crash_test.cpp.
#include <atomic>
#include <csignal>
#include <functional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/file/io/posix.hpp>

#include "file/reshard_scene.hpp"
#include "support/thinned.hpp"

namespace tranship::hostile_test {
namespace {

namespace fs = std::filesystem;
using testing::Files;
using testing::files_below;
using testing::in_child;
using testing::read_text;
using testing::Scene;
using testing::TemporaryFolder;
using testing::write_text;

const posix::DiskCalls real_disk = posix::disk;
constexpr uid_t nobody = 65534;

/// Everything in the folder but the target: names, what links lead to, and bytes. The names of things in `.partial` are
/// left out, which an error may keep.
Files surroundings(const Scene& scene) {
  Files out;
  const std::string target = fs::path(scene.target).filename().string();
  for (const auto& entry : fs::recursive_directory_iterator(scene.folder.path())) {
    const std::string name = entry.path().lexically_relative(scene.folder.path()).string();
    if (name == target || name.starts_with(target + "/") || name.starts_with("." + target + ".partial")) continue;
    if (entry.is_symlink())
      out[name] = "-> " + fs::read_symlink(entry.path()).string();
    else
      out[name] = entry.is_regular_file() ? read_text(entry.path().string()) : "";
  }
  return out;
}

/// The message of a reshard in a process of its own, which `prepare` has made different from this one; empty where it
/// succeeds.
std::string message_of_run(const Scene& scene, const std::function<void()>& prepare) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const int status = in_child([&] {
    prepare();
    const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
    const std::string text =
        report.ok() ? "" : fmt::format("{}: {}", name_of(report.error().code()), report.error().message());
    if (::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(4);
  });
  ::close(ends[1]);
  std::string out(4096, '\0');
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], out.data(), out.size()))));
  ::close(ends[0]);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fmt::format("the process ended with status {}", status);
  return out;
}

void become_nobody() {
  if (::seteuid(nobody) != 0) ::_exit(5);
}

void do_nothing() {}

/// Only somebody else than root can be kept from starting threads.
void become_nobody_without_threads() {
  const rlimit limit{1, 1};
  if (::setgid(nobody) != 0 || ::setuid(nobody) != 0 || ::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(5);
}

void limit_open_files() {
  const rlimit limit{64, 64};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(5);
}

struct Place {
  const char* name;
  /// Of the folder, before the run.
  std::function<void(Scene&)> make;
  /// Of the process that runs.
  std::function<void()> enter;
  /// What the error says; empty where the run succeeds.
  const char* message;
  /// Needs root, to be able to run as somebody else or to mount.
  bool needs_root = false;
};

/// A folder outside that must stay as it is.
void make_victim(Scene& scene) {
  fs::create_directory(scene.folder.path("victim"));
  write_text(scene.folder.path("victim/precious"), "precious");
}

void make_staging_link(Scene& scene, const std::string& name, const std::string& to) {
  make_victim(scene);
  fs::create_directory(scene.folder.path("." + fs::path(scene.target).filename().string() + ".partial"));
  fs::create_symlink(scene.folder.path(to),
                     scene.folder.path("." + fs::path(scene.target).filename().string() + ".partial/" + name));
}

void limit_file_size(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(5);
}

const Place places[] = {
    {"nothing in the way", [](Scene&) {}, do_nothing, ""},
    {"a small limit of file sizes", [](Scene&) {}, [] { limit_file_size(20'000); },
     "this process may write files of 20000 bytes at most"},
    {"a limit that not even a journal fits in", [](Scene&) {},
     [] {
       std::signal(SIGXFSZ, SIG_IGN);  // as the command does
       limit_file_size(20);
     },
     "io: cannot "},
    {"the staging folder is a link",
     [](Scene& scene) {
       make_victim(scene);
       fs::create_directory_symlink("victim",
                                    scene.folder.path("." + fs::path(scene.target).filename().string() + ".partial"));
     },
     do_nothing, "it is a symbolic link; remove it"},
    {"the staging folder is a file",
     [](Scene& scene) {
       write_text(scene.folder.path("." + fs::path(scene.target).filename().string() + ".partial"), "text");
     },
     do_nothing, "it is not a directory; remove it"},
    {"the lock is a link", [](Scene& scene) { make_staging_link(scene, "lock", "victim/precious"); }, do_nothing,
     "Too many levels of symbolic links"},
    {"the journal is a link", [](Scene& scene) { make_staging_link(scene, "journal", "victim/precious"); }, do_nothing,
     ""},
    {"a new target is a link", [](Scene& scene) { make_staging_link(scene, "new-abcdef", "victim"); }, do_nothing, ""},
    {"an old target is a link", [](Scene& scene) { make_staging_link(scene, "old", "victim"); }, do_nothing, ""},
    {"the target is a link that leads nowhere",
     [](Scene& scene) {
       fs::remove_all(scene.target);
       fs::create_symlink("nothing", scene.target);
     },
     do_nothing, "is a symbolic link to 'nothing', which does not exist"},
    {"a folder that is read only", [](Scene& scene) { ::chmod(scene.folder.path().c_str(), 0555); }, become_nobody,
     "Permission denied", true},
    {"a sticky folder with another's target", [](Scene& scene) { ::chmod(scene.folder.path().c_str(), 01777); },
     become_nobody, "its folder is sticky: user 65534", true},
    {"a staging folder of another",
     [](Scene& scene) {
       const std::string folder = scene.folder.path("." + fs::path(scene.target).filename().string() + ".partial");
       fs::create_directory(folder);
       if (::chown(folder.c_str(), nobody, nobody) != 0) throw std::runtime_error("cannot chown");
     },
     do_nothing, "belongs to user 65534, and this process runs as user 0; remove it", true},
};

class Hostile : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Targets, Hostile, ::testing::Values("new", "new.npy"),
                         [](const auto& target) { return target.index == 0 ? "Directory" : "File"; });

TEST_P(Hostile, PlacesLeaveTheOldTargetOrTheNewOne) {
  for (const Place& place : places) {
    SCOPED_TRACE(place.name);
    if (place.needs_root && ::geteuid() != 0) continue;
    Scene scene(GetParam(), 64);
    ::chmod(scene.folder.path().c_str(), 0755);
    place.make(scene);
    const bool has_target = fs::exists(scene.target);
    const Files before = surroundings(scene);
    const std::string message = message_of_run(scene, place.enter);
    ::chmod(scene.folder.path().c_str(), 0755);
    if (std::string(place.message).empty()) {
      EXPECT_EQ(message, "");
      EXPECT_EQ(scene.fault_after_success(), "");
    } else {
      EXPECT_NE(message.find(place.message), std::string::npos) << message;
      if (has_target) EXPECT_EQ(files_below(scene.target), scene.before);
    }
    EXPECT_EQ(surroundings(scene), before);
  }
}

TEST(HostileDirectory, ThreadsThatCannotBeStartedAreDoneWithout) {
  if (::geteuid() != 0) GTEST_SKIP() << "running as somebody else needs root";
  Scene scene("new", 64);
  scene.options.threads = 8;
  scene.options.verify = Verify::yes;
  for (const std::string& path : {scene.folder.path(), scene.target})
    if (::chown(path.c_str(), nobody, nobody) != 0) GTEST_SKIP() << "cannot chown";
  EXPECT_EQ(message_of_run(scene, become_nobody_without_threads), "");
  EXPECT_EQ(scene.fault_after_success(), "");
}

TEST(HostileDirectory, ThereMayBeMorePartsThanFilesThatMayBeOpen) {
  Scene scene("new", 64);
  scene.options.threads = 8;
  scene.options.verify = Verify::yes;
  const std::string there = scene.options.source;
  for (const std::string& to : {std::string("64x4 : block, block"), std::string("1x1 : whole, whole")}) {
    scene.options.to = parse_layout("f64[64,256] @ " + to);
    scene.options.target = scene.folder.path(to.starts_with("1x1") ? "back.npy" : "many");
    EXPECT_EQ(message_of_run(scene, limit_open_files), "");
    scene.options.source = scene.options.target;
  }
  EXPECT_EQ(read_text(scene.folder.path("back.npy")), read_text(there));
}

TEST(HostileDirectory, ATargetThatMayNotMoveIsRefusedBeforeTheFirstByte) {
  if (::geteuid() != 0) GTEST_SKIP() << "running as somebody else needs root";
  Scene scene("new", 64);
  for (const std::string& path : {scene.folder.path(), scene.target})
    if (::chown(path.c_str(), nobody, nobody) != 0) GTEST_SKIP() << "cannot chown";
  ::chmod(scene.folder.path().c_str(), 0755);
  ::chmod(scene.target.c_str(), 0555);
  EXPECT_EQ(message_of_run(scene, become_nobody), "io: cannot replace '" + scene.target + "': Permission denied");
  EXPECT_EQ(files_below(scene.target), scene.before);
  EXPECT_FALSE(fs::exists(scene.folder.path(".new.partial")));
}

TEST(HostileDirectory, TheCurrentOneIsRefusedBeforeTheFirstByte) {
  Scene scene("new", 64);
  const std::string message = message_of_run(scene, [&] { fs::current_path(scene.target); });
  EXPECT_NE(message.find("'" + scene.target + "' is the current directory"), std::string::npos) << message;
  EXPECT_EQ(files_below(scene.target), scene.before);
  EXPECT_FALSE(fs::exists(scene.folder.path(".new.partial")));
}

TEST(HostileDirectory, AMountPointIsRefusedBeforeTheFirstByte) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  Scene scene("new", 64);
  if (::mount("tmpfs", scene.target.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "cannot mount";
  for (const auto& [name, text] : scene.before) write_text(scene.target + "/" + name, text);
  const std::string message = message_of_run(scene, do_nothing);
  const Files left = files_below(scene.target);
  EXPECT_EQ(::umount(scene.target.c_str()), 0);
  EXPECT_NE(message.find("is a mount point: it cannot be replaced"), std::string::npos) << message;
  EXPECT_EQ(left, scene.before);
  EXPECT_FALSE(fs::exists(scene.folder.path(".new.partial")));
}

// What happens to the source when the block with this number is written.
std::atomic<int> writes = 0;
int fatal_write = 0;
std::function<void()> change_source;

/// The source becomes shorter, or other, under a run that has read some of it, at each block.
TEST_P(Hostile, ASourceThatChangesAtAnyBlockLeavesTheOldTarget) {
  Scene scene(GetParam());
  scene.options.threads = 1;
  const std::string whole = read_text(scene.options.source);
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const std::function<void()> changes[] = {[&] { fs::resize_file(scene.options.source, 4096); },
                                           [&] { fs::resize_file(scene.options.source, 0); },
                                           [&] { scene.write("source.npy", 512, 3); },
                                           [&] {  // another file under the name
                                             scene.write("third.npy", 512, 3);
                                             fs::rename(scene.folder.path("third.npy"), scene.options.source);
                                           }};
  // Long rows are read straight to their place, those of another order through a window, and sparse ones are mapped.
  const bool single = std::string(GetParam()) == "new.npy";
  for (const char* to : {"1x1 : whole, whole", "1x1 : whole, whole | order(1,0)", "1x64 : whole, cyclic(1)"}) {
    if (single && to[2] != '1') continue;
    scene.options.to = parse_layout(std::string("f64[512,256] @ ") + to);
    scene.put_old();
    for (const auto& change : changes) {
      int write = 1;
      for (;; write += (test::is_brief() ? 15 : 7) + write / 2) {
        write_text(scene.options.source, whole);
        fs::last_write_time(scene.options.source, an_hour_ago);
        writes = 0;
        fatal_write = write;
        change_source = change;
        posix::disk.pwrite = [](int file, const void* bytes, std::size_t size, off_t offset) {
          if (++writes == fatal_write) change_source();
          return real_disk.pwrite(file, bytes, size, offset);
        };
        const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
        posix::disk = real_disk;
        if (writes < write) {
          EXPECT_TRUE(report.ok()) << report.error().message();
          break;
        }
        ASSERT_FALSE(report.ok()) << "write " << write;
        EXPECT_EQ(report.error().code(), ErrorCode::bad_file) << report.error().message();
        EXPECT_NE(report.error().message().find("while it was read"), std::string::npos) << report.error().message();
        ASSERT_EQ(files_below(scene.target), scene.before) << "write " << write;
      }
      EXPECT_GT(write, 8) << "the writes are not counted";
      scene.put_old();
    }
  }
}

}  // namespace
}  // namespace tranship::hostile_test
