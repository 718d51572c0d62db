// Reshard and what may befall it: ended or failed at every single call that changes the disk, killed at random moments,
// a full disk, two runs at once. The target is the old one or the new one, complete; the same call goes on or starts
// anew, and leaves nothing else behind.
#include <atomic>
#include <csignal>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/deadline.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/reshard_scene.hpp"
#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using testing::files_below;
using testing::in_child;
using testing::read_text;
using testing::Scene;
using testing::TemporaryFolder;
using testing::write_text;

// What happens at the call with this number, counted from 1 in this process; 0: nothing.
enum class Fate { exit_before, exit_after, fail };
Fate fate = Fate::fail;
int fatal_call = 0;
int fatal_error = EIO;
// Whether the file system exchanges two directories in one step.
bool exchanges = true;
std::atomic<int> calls = 0;
const posix::DiskCalls real_disk = posix::disk;

template <class Call, class... Args>
auto counted(Call call, Args... args) {
  const bool now = ++calls == fatal_call;
  if (now && fate == Fate::exit_before) ::_exit(9);
  if (now && fate == Fate::fail) {
    errno = fatal_error;
    return decltype(call(args...))(-1);
  }
  const auto out = call(args...);
  if (now) ::_exit(9);
  return out;
}

/// Counts calls from here to the end of the object.
struct CountedDisk {
  CountedDisk(Fate what, int call, int error) {
    fate = what;
    fatal_call = call;
    fatal_error = error;
    calls = 0;
    posix::disk = {
        [](int f, const void* b, std::size_t n, off_t o) { return counted(real_disk.pwrite, f, b, n, o); },
        [](int f, int m, off_t o, off_t n) { return counted(real_disk.fallocate, f, m, o, n); },
        [](int f) { return counted(real_disk.fdatasync, f); },
        [](int f) { return counted(real_disk.fsync, f); },
        [](int f) { return counted(real_disk.syncfs, f); },
        [](const char* p, mode_t m) { return counted(real_disk.mkdir, p, m); },
        [](const char* a, const char* b) { return counted(real_disk.rename, a, b); },
        [](int a, const char* p, int b, const char* q, unsigned f) {
          if (exchanges || !(f & RENAME_EXCHANGE)) return counted(real_disk.renameat2, a, p, b, q, f);
          errno = EINVAL;
          return -1;
        },
        [](const char* p) { return counted(real_disk.unlink, p); },
    };
  }
  ~CountedDisk() { posix::disk = real_disk; }
};

void run_quietly(const ReshardOptions& options) {
  try {
    reshard(options);
  } catch (const std::exception&) {
    ::_exit(3);
  }
}

class Crash : public ::testing::TestWithParam<const char*> {};
constexpr const char* kinds[] = {"Directory", "File", "Archive"};
INSTANTIATE_TEST_SUITE_P(Targets, Crash, ::testing::Values("new", "new.npy", "new.npz"),
                         [](const auto& target) { return std::string(kinds[target.index]); });

/// What a run leaves that ends between two steps: the next one puts the old target back before all else.
bool is_set_aside(const Scene& scene) {
  const std::string aside = scene.folder.path(".new.partial/old");
  return !exchanges && !fs::exists(scene.target) && fs::exists(aside) && files_below(aside) == scene.before;
}

/// Under a sanitizer, a third of the calls is enough, and every day a thirteenth.
const int calls_step = test::is_brief() ? 13 : test::is_sanitized ? 3 : 1;

void crash_at_every_call(Scene& scene, int step = calls_step) {
  Index resumed = 0;
  int set_aside = 0;
  // The two steps are among the last calls.
  const bool is_half = !exchanges && test::is_brief();
  int dense_from = 0;
  if (is_half) {
    scene.put_old();
    const CountedDisk disk(Fate::fail, 0, EIO);
    reshard(scene.options);
    dense_from = calls - 20;
  }
  for (const Fate what : {Fate::exit_before, Fate::exit_after}) {
    if (is_half && what == Fate::exit_after) continue;
    int call = 1;
    for (;; call += exchanges ? step : call < dense_from ? 5 : 1) {
      scene.put_old();
      const int status = in_child([&] {
        const CountedDisk disk(what, call, EIO);
        run_quietly(scene.options);
      });
      ASSERT_TRUE(WIFEXITED(status));
      if (WEXITSTATUS(status) == 0) break;
      ASSERT_EQ(WEXITSTATUS(status), 9) << "call " << call;
      if (is_set_aside(scene)) {
        // Also a run that comes to nothing puts it back.
        ReshardOptions refused = scene.options;
        const auto refuse = [](const ReshardProgress&) { throw Error(ErrorCode::mismatch, "no more"); };
        refused.progress = refuse;
        ASSERT_FALSE(attempt([&] { return reshard(refused); }).ok());
        ASSERT_EQ(files_below(scene.target), scene.before) << "call " << call;
        ++set_aside;
      }
      ASSERT_EQ(scene.fault_after_crash(), "") << "call " << call;
      resumed += reshard(scene.options).bytes_resumed;
      ASSERT_EQ(scene.fault_after_success(), "") << "call " << call;
    }
    EXPECT_GT(call, 20) << "the calls are not counted";
  }
  EXPECT_GT(resumed, 0) << "nothing was ever gone on with";
  EXPECT_EQ(set_aside, exchanges ? 0 : is_half ? 1 : 2) << "before the second step, and after the first";
}

TEST_P(Crash, AtEveryCallThatChangesTheDisk) {
  Scene scene(GetParam());
  crash_at_every_call(scene);
}

/// Where everything goes through an intermediate.
Scene scene_with_intermediate() {
  return Scene("new.npy", 1024, " | order(1,0)", 1024);
}

TEST(CrashIntermediate, AtEveryCallThatChangesTheDisk) {
  Scene scene = scene_with_intermediate();
  const ReshardForecast forecast = forecast_reshard(scene.options).work;
  ASSERT_GE(forecast.intermediate_bytes, Index(8) << 20);
  EXPECT_GT(forecast.disk_bytes, Index(16) << 20);
  crash_at_every_call(scene, 31 * calls_step);
}

TEST(CrashIntermediate, GoesOnWithWhatIsWritten) {
  const Scene scene = scene_with_intermediate();
  ReshardOptions interrupted = scene.options;
  const auto stop = [](const ReshardProgress& progress) {
    if (progress.bytes_done > progress.bytes_total / 4) throw Error(ErrorCode::io, "interrupted");
  };
  interrupted.progress = stop;
  ASSERT_FALSE(attempt([&] { return reshard(interrupted); }).ok());
  EXPECT_EQ(scene.fault_after_crash(), "");
  const ReshardReport resumed = reshard(scene.options);
  // Half of what moves is the intermediate, half of which was written.
  EXPECT_LT(resumed.bytes_read, 2 * 8 << 20);
  EXPECT_EQ(scene.fault_after_success(), "");

  // Without it, what was written of the target is nothing to go on with.
  ASSERT_FALSE(attempt([&] { return reshard(interrupted); }).ok());
  int removed = 0;
  for (const auto& entry : fs::directory_iterator(scene.folder.path(".new.npy.partial")))
    if (entry.path().string().ends_with("-intermediate")) removed += fs::remove(entry.path());
  EXPECT_EQ(removed, 1);
  EXPECT_EQ(reshard(scene.options).bytes_resumed, 0);
  EXPECT_EQ(scene.fault_after_success(), "");
}

TEST(CrashOfTwoSteps, AtEveryCallThatChangesTheDisk) {
  exchanges = false;
  Scene scene("new");
  crash_at_every_call(scene);
  exchanges = true;
}

TEST(CrashOfTwoSteps, AnErrorOfTheSecondPutsTheOldOneBack) {
  Scene scene("new");
  static int renames;
  renames = 0;
  posix::disk.renameat2 = [](int, const char*, int, const char*, unsigned) {
    errno = ENOSYS;
    return -1;
  };
  posix::disk.rename = [](const char* from, const char* to) {
    if (++renames != 2) return real_disk.rename(from, to);
    errno = EIO;
    return -1;
  };
  const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
  posix::disk = real_disk;
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(renames, 3);
  EXPECT_EQ(report.error().code(), ErrorCode::io);
  EXPECT_NE(report.error().message().find("are kept in"), std::string::npos) << report.error().message();
  EXPECT_EQ(files_below(scene.target), scene.before);
  EXPECT_GT(reshard(scene.options).bytes_resumed, 0);
  EXPECT_EQ(scene.fault_after_success(), "");
}

TEST_P(Crash, AnErrorAtEveryCallThatChangesTheDisk) {
  Scene scene(GetParam());
  Index kept = 0;
  for (const int error : {EIO, ENOSPC}) {
    int call = 1;
    for (;; call += calls_step) {
      scene.put_old();
      Result<ReshardReport> report = Error(ErrorCode::internal, "");
      {
        const CountedDisk disk(Fate::fail, call, error);
        report = attempt([&] { return reshard(scene.options); });
        if (calls < call) break;
      }
      ASSERT_EQ(scene.fault_after_crash(), "") << "call " << call;
      if (!report.ok()) {
        EXPECT_EQ(report.error().code(), ErrorCode::io) << report.error().message();
        const bool is_kept = report.error().message().find("are kept in") != std::string::npos;
        const bool is_there = fs::exists(scene.folder.path("." + std::string(GetParam()) + ".partial/journal"));
        EXPECT_EQ(is_kept, is_there) << "call " << call << ": " << report.error().message();
        kept += is_kept;
      }
      const Index resumed = reshard(scene.options).bytes_resumed;
      if (!report.ok() && report.error().message().find("are kept in") != std::string::npos) EXPECT_GT(resumed, 0);
      ASSERT_EQ(scene.fault_after_success(), "") << "call " << call;
    }
    EXPECT_GT(call, 20) << "the calls are not counted";
  }
  EXPECT_GT(kept, 0);
}

/// Kills the run at a random moment of its usual time, again and again, and lets it finish now and then.
TEST_P(Crash, KilledAtRandomMoments) {
  Scene scene(GetParam(), 2048, " | order(1,0)");
  scene.options.sync_interval_bytes = Index(1) << 19;
  test::Random random(7);
  const std::int64_t began_ns = now_ns();
  reshard(scene.options);
  const std::int64_t usual_ns = now_ns() - began_ns;
  scene.put_old();
  const int kills = test::long_tests() ? 100 : test::is_brief() ? 4 : 10;  // of either target
  int killed = 0;
  Index resumed = 0;
  for (int round = 0; killed < kills && round < 20 * kills; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      run_quietly(scene.options);
      ::_exit(0);
    }
    const timespec moment{0, static_cast<long>(random.below(std::min<Index>(999'999'999, usual_ns * 3 / 2 + 1)))};
    ::nanosleep(&moment, nullptr);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
      ++killed;
    else
      ASSERT_EQ(WEXITSTATUS(status), 0);
    ASSERT_EQ(scene.fault_after_crash(), "") << "round " << round;
    if (!random.one_in(3)) continue;  // killed again before it has finished
    resumed += reshard(scene.options).bytes_resumed;
    ASSERT_EQ(scene.fault_after_success(), "") << "round " << round;
    scene.put_old();
  }
  EXPECT_EQ(killed, kills);
  reshard(scene.options);
  EXPECT_EQ(scene.fault_after_success(), "");
  if (test::long_tests()) EXPECT_GT(resumed, 0);
}

TEST_P(Crash, AnInterruptKeepsWhatIsDone) {
  Scene scene(GetParam());
  const auto stop = [](const ReshardProgress& progress) {
    if (progress.bytes_done > progress.bytes_total / 4) throw Error(ErrorCode::io, "interrupted");
  };
  ReshardOptions interrupted = scene.options;
  interrupted.progress = stop;
  const Result<ReshardReport> report = attempt([&] { return reshard(interrupted); });
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("interrupted; "), std::string::npos) << report.error().message();
  EXPECT_NE(report.error().message().find("are kept in"), std::string::npos) << report.error().message();
  EXPECT_EQ(scene.fault_after_crash(), "");
  const ReshardReport resumed = reshard(scene.options);
  EXPECT_GT(resumed.bytes_resumed, 0);
  EXPECT_EQ(resumed.bytes_written, 512 * 256 * 8);
  EXPECT_LE(resumed.bytes_read, resumed.bytes_written) << "no round is read that is finished";
  EXPECT_EQ(scene.fault_after_success(), "");
}

TEST_P(Crash, WhatDoesNotFitIsNotGoneOnWith) {
  const auto stop = [](const ReshardProgress& progress) {
    if (progress.bytes_done > 0) throw Error(ErrorCode::io, "interrupted");
  };
  struct Case {
    const char* name;
    std::function<void(Scene&)> change;
  };
  const Case cases[] = {
      {"another source", [](Scene& scene) { scene.write("source.npy", 512, 1); }},
      {"a source that was written and given its old time",
       [](Scene& scene) {
         const auto before = fs::last_write_time(scene.options.source);
         scene.write("source.npy", 512, 1);
         fs::last_write_time(scene.options.source, before);
       }},
      {"another memory", [](Scene& scene) { scene.options.memory_bytes *= 2; }},
      {"another journal",
       [](Scene& scene) {
         for (const std::string& name : scene.folder.names())
           if (name.ends_with("/journal")) write_text(scene.folder.path(name), "tranship journal 1 nonsense\n");
       }},
      {"a file that was cut",
       [](Scene& scene) {
         for (const std::string& name : scene.folder.names())
           if (name.find("/new-") != std::string::npos && fs::is_regular_file(scene.folder.path(name)))
             fs::resize_file(scene.folder.path(name), 100);
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Scene scene(GetParam());
    ReshardOptions interrupted = scene.options;
    interrupted.progress = stop;
    ASSERT_FALSE(attempt([&] { return reshard(interrupted); }).ok());
    c.change(scene);
    EXPECT_EQ(reshard(scene.options).bytes_resumed, 0);
    EXPECT_EQ(scene.fault_after_success(), "");
  }
}

TEST_P(Crash, ATornJournalCountsUpToTheTear) {
  Scene scene(GetParam());
  const auto stop = [](const ReshardProgress& progress) {
    if (progress.bytes_done > progress.bytes_total / 2) throw Error(ErrorCode::io, "interrupted");
  };
  ReshardOptions interrupted = scene.options;
  interrupted.progress = stop;
  for (const Index cut : {1, 5, 20, 60}) {
    SCOPED_TRACE(cut);
    scene.put_old();
    ASSERT_FALSE(attempt([&] { return reshard(interrupted); }).ok());
    for (const std::string& name : scene.folder.names())
      if (name.ends_with("/journal")) {
        const std::string text = read_text(scene.folder.path(name));
        write_text(scene.folder.path(name), text.substr(0, text.size() - static_cast<std::size_t>(cut)));
      }
    EXPECT_GT(reshard(scene.options).bytes_resumed, 0);
    EXPECT_EQ(scene.fault_after_success(), "");
  }
}

TEST_P(Crash, TwoRunsAtOnceAreRefused) {
  Scene scene(GetParam());
  Result<ReshardReport> second = Error(ErrorCode::internal, "did not run");
  const auto meanwhile = [&](const ReshardProgress& progress) {
    if (progress.bytes_done == 0) second = attempt([&] { return reshard(scene.options); });
  };
  ReshardOptions first = scene.options;
  first.progress = meanwhile;
  reshard(first);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), ErrorCode::invalid_use);
  EXPECT_NE(second.error().message().find("another run is writing"), std::string::npos) << second.error().message();
  EXPECT_NE(second.error().message().find(std::to_string(::getpid())), std::string::npos) << second.error().message();
  EXPECT_EQ(scene.fault_after_success(), "");
}

TEST(CrashDisk, OnlyErrorsOfRoomSayHowMuchWasReserved) {
  static int failure;
  for (const int error : {EIO, EPERM, ENOSPC, EDQUOT}) {
    Scene scene("new");
    scene.put_old();
    failure = error;
    posix::disk.fallocate = [](int, int, off_t, off_t) {
      errno = failure;
      return -1;
    };
    const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
    posix::disk = real_disk;
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code(), ErrorCode::io);
    EXPECT_EQ(report.error().message().find(" of all parts were reserved") != std::string::npos,
              error == ENOSPC || error == EDQUOT)
        << report.error().message();
    EXPECT_EQ(scene.fault_after_crash(), "");
  }
}

TEST(CrashDisk, AFullOneLeavesTheOldTarget) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small disk needs root";
  TemporaryFolder folder;
  const std::string disk = folder.path("disk");
  ASSERT_EQ(::mkdir(disk.c_str(), 0700), 0);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "cannot mount a small disk";
  {
    Scene scene("unused");
    ReshardOptions options = scene.options;
    options.to = parse_layout("f64[512,256] @ 2x1 : block, whole");
    options.target = disk + "/new";  // 1 MiB of elements do not fit beside anything
    const Result<ReshardReport> report = attempt([&] { return reshard(options); });
    EXPECT_FALSE(report.ok());
    if (!report.ok()) {
      EXPECT_EQ(report.error().code(), ErrorCode::io);
      for (const char* text : {"No space left", " bytes free); ", " of the 1048832 bytes of all parts were reserved"})
        EXPECT_NE(report.error().message().find(text), std::string::npos) << report.error().message();
    }
    EXPECT_TRUE(fs::is_empty(disk));

    // 255 of its 256 pages for the parts, and one for the lock: none for the manifest.
    options.source = scene.folder.path("row.raw");
    options.from = parse_layout("f64[130512] @ 1 : block");
    options.raw = RawForm{};
    write_text(options.source, std::string(8 * 130'512, 'x'));
    options.to = parse_layout("f64[130512] @ 3 : block");
    const Result<ReshardReport> tight = attempt([&] { return reshard(options); });
    EXPECT_FALSE(tight.ok());
    if (!tight.ok()) {
      EXPECT_NE(tight.error().message().find("cannot reserve "), std::string::npos) << tight.error().message();
      EXPECT_NE(tight.error().message().find("manifest.json'"), std::string::npos) << tight.error().message();
    }
    EXPECT_TRUE(fs::is_empty(disk));
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST(CrashSource, OneThatChangesMeanwhileIsNoticed) {
  struct Case {
    const char* name;
    std::function<void(const std::string&)> change;
  };
  const Case cases[] = {
      {"shorter", [](const std::string& path) { fs::resize_file(path, 4096); }},
      {"longer", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more"; }},
      {"written",
       [](const std::string& path) { fs::last_write_time(path, fs::last_write_time(path) + std::chrono::hours(1)); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Scene scene("new");
    bool changed = false;
    const auto change = [&](const ReshardProgress& progress) {
      if (progress.bytes_done == 0 && !std::exchange(changed, true)) c.change(scene.options.source);
    };
    scene.options.progress = change;
    const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code(), ErrorCode::bad_file) << report.error().message();
    EXPECT_NE(report.error().message().find("while it was read"), std::string::npos) << report.error().message();
    EXPECT_EQ(files_below(scene.target), scene.before);
    EXPECT_FALSE(fs::exists(scene.folder.path(".new.partial")));
  }
}

TEST_P(Crash, ATargetThatComesUpMeanwhileStays) {
  Scene scene(GetParam());
  std::filesystem::remove_all(scene.target);
  const auto come_up = [&](const ReshardProgress& progress) {
    if (progress.bytes_done != progress.bytes_total) return;
    if (scene.before.contains("")) return write_text(scene.target, scene.before.at(""));
    std::filesystem::create_directories(scene.target);
    for (const auto& [name, text] : scene.before) write_text(scene.target + "/" + name, text);
  };
  scene.options.progress = come_up;
  const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), ErrorCode::invalid_use) << report.error().message();
  EXPECT_EQ(files_below(scene.target), scene.before);
}

TEST(CrashTarget, WhatIsAddedToADirectoryMeanwhileStays) {
  Scene scene("new");
  const auto add = [&](const ReshardProgress&) { write_text(scene.target + "/notes.txt", "mine"); };
  scene.options.progress = add;
  const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), ErrorCode::invalid_use) << report.error().message();
  EXPECT_EQ(read_text(scene.target + "/notes.txt"), "mine");
}

TEST(CrashTarget, ADirectoryByTheNameOfAPartStays) {
  Scene scene("new");
  const std::string part = scene.target + "/part-00000.npy";
  std::filesystem::remove(part);
  std::filesystem::create_directory(part);
  write_text(part + "/notes.txt", "mine");
  const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("'part-00000.npy' in it is a directory"), std::string::npos)
      << report.error().message();
  EXPECT_EQ(read_text(part + "/notes.txt"), "mine");
}

TEST_P(Crash, LeavesNothingWhereNothingGoesOn) {
  Scene scene(GetParam());
  const auto stop = [](const ReshardProgress& progress) {
    if (progress.bytes_done > progress.bytes_total / 2) throw Error(ErrorCode::io, "interrupted");
  };
  scene.options.progress = stop;
  scene.options.after_failure = AfterFailure::leave_nothing;
  const Result<ReshardReport> report = attempt([&] { return reshard(scene.options); });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message(), "interrupted");
  for (const std::string& name : scene.folder.names()) EXPECT_EQ(name.find(".partial"), std::string::npos) << name;
}

}  // namespace
}  // namespace tranship
