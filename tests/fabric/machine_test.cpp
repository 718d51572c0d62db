#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <tranship/base/error.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/seam/domain.hpp>

namespace tranship {
namespace {

int allowed_cpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : -1;
}

class Environment {
 public:
  explicit Environment(const char* value) { setenv("TRANSHIP_PIN", value, 1); }
  ~Environment() { unsetenv("TRANSHIP_PIN"); }
};

TEST(Machine, has_what_every_machine_has) {
  EXPECT_GE(this_machine().cores, 1);
  EXPECT_GE(this_machine().processing_units, this_machine().cores);
  EXPECT_GE(this_machine().memory_nodes, 1);
}

/// A tree of control groups in files.
class GroupTree : public ::testing::Test {
 public:
  GroupTree() : root_(::testing::TempDir() + "/groups_" + std::to_string(getpid())) {}
  ~GroupTree() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  Index available(const std::string& membership) const { return available_memory_bytes_of_groups(membership, root_); }

 private:
  std::string root_;
};

TEST_F(GroupTree, what_is_kept_of_files_is_available) {
  EXPECT_EQ(available("0::/\n"), INT64_MAX);
  write("/memory.current", "900\n");
  write("/memory.max", "max\n");
  EXPECT_EQ(available("0::/\n"), INT64_MAX);
  write("/memory.max", "1000\n");
  EXPECT_EQ(available("0::/\n"), 100);
  write("/memory.stat",
        "anon 200\nfile 650\nshmem 50\ninactive_file 400\nactive_file 200\nslab_reclaimable 30\nslab 40\n");
  EXPECT_EQ(available("0::/\n"), 730);
  write("/memory.current", "1900\n");
  EXPECT_EQ(available("0::/\n"), 0);
}

/// The system counts what is used and what is kept of files at different moments.
TEST_F(GroupTree, more_may_be_kept_of_files_than_is_used) {
  const std::string membership = "4:memory:/job\n";
  write("/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  write("/memory/job/memory.usage_in_bytes", "1000000\n");
  write("/memory/job/memory.stat", "total_inactive_file 700000\ntotal_active_file 400000\n");
  EXPECT_EQ(available(membership), 9223372036854771712);
  write("/memory/job/memory.limit_in_bytes", "2000\n");
  EXPECT_EQ(available(membership), 2000);
}

TEST_F(GroupTree, the_least_of_all_groups_around_counts) {
  write("/user/job/task/memory.max", "5000\n");
  write("/user/job/task/memory.current", "1000\n");
  EXPECT_EQ(available("0::/user/job/task\n"), 4000);
  write("/user/memory.max", "3000\n");
  write("/user/memory.current", "1000\n");
  EXPECT_EQ(available("0::/user/job/task\n"), 2000);
  EXPECT_EQ(available("0::/user/job\n"), 2000);
  EXPECT_EQ(available("0::/other\n"), INT64_MAX);
  // In a container the path may be one of the host, of which only the root is seen.
  write("/memory.max", "900\n");
  write("/memory.current", "0\n");
  EXPECT_EQ(available("0::/machine/of/the/host\n"), 900);
  EXPECT_EQ(available("0::/../..\n"), 900);
}

TEST_F(GroupTree, version_1_counts_too) {
  const std::string membership = "9:name=systemd:/a\n4:cpu,memory:/batch/job\n3:cpuset:/\n0::/\n";
  write("/memory/memory.limit_in_bytes", "9223372036854771712\n");  // what version 1 writes for none
  write("/memory/memory.usage_in_bytes", "100\n");
  EXPECT_GT(available(membership), Index(1) << 60);
  write("/memory/batch/job/memory.limit_in_bytes", "1000\n");
  write("/memory/batch/job/memory.usage_in_bytes", "900\n");
  EXPECT_EQ(available(membership), 100);
  write("/memory/batch/job/memory.stat", "cache 5\nactive_file 1\ntotal_inactive_file 300\ntotal_active_file 200\n");
  EXPECT_EQ(available(membership), 600);
  EXPECT_GT(available("4:memory:/batch\n"), Index(1) << 60);
  write("/unified/a/memory.max", "70\n");
  write("/unified/a/memory.current", "0\n");
  EXPECT_EQ(available("4:memory:/batch/job\n0::/a\n"), 70);
}

TEST_F(GroupTree, what_is_no_membership_has_no_limit) {
  write("/memory.max", "1\n");
  write("/memory.current", "0\n");
  for (const char* text : {"", "\n", "0", "0:", ":::", "x:memoryless:/\n", "4:cpu\n"})
    EXPECT_GE(available(text), 1) << text;
  EXPECT_EQ(available("x:memoryless:/\n"), INT64_MAX);
}

TEST(Machine, ranks_pinned_to_cores_have_a_core_each) {
  const int before = allowed_cpus();
  const int per_core = this_machine().processing_units / this_machine().cores;
  launch({.ranks = 3, .pinning = Pinning::core}, [&](World&) { EXPECT_LE(allowed_cpus(), std::max(1, per_core)); });
  launch({.ranks = 3, .pinning = Pinning::none}, [&](World&) { EXPECT_EQ(allowed_cpus(), before); });
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Machine, the_environment_has_its_say_where_the_program_has_none) {
  for (const char* name : {"none", "node", "core"}) {
    const Environment environment(name);
    EXPECT_STREQ(name_of(resolved(Pinning::automatic)), name);
    EXPECT_EQ(resolved(Pinning::core), Pinning::core);
  }
}

TEST(Machine, a_pinning_that_does_not_exist_is_refused_before_any_rank_runs) {
  const Environment environment("everywhere");
  try {
    launch(2, [](World&) { ADD_FAILURE() << "a rank ran"; });
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(std::string(error.what()).find("'everywhere'"), std::string::npos) << error.what();
  }
}

TEST(Machine, memory_that_it_has_not_is_refused_to_ranks_that_are_threads) {
  const Index available = available_memory_bytes();
  ASSERT_LT(available, INT64_MAX);
  const auto refuses = [&](World& world, auto&& call, const char* first, const char* then) {
    try {
      call();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ErrorCode::no_memory) << text;
      EXPECT_NE(text.find(first), std::string::npos) << text;
      EXPECT_NE(text.find(then), std::string::npos) << text;
      return;
    }
    throw Error(ErrorCode::internal, "test: granted on rank " + std::to_string(world.rank()));
  };
  launch({.ranks = 3, .heap_bytes = std::size_t(available) * 2}, [&](World& world) {
    // More than there is, in a block that no rank could touch; then, in small blocks that no rank has touched, more
    // than there is for all three together.
    refuses(
        world, [&] { world.allocate<char>(available / 4 * 5); }, "a symmetric block of ",
        " bytes exceeds the memory of this machine: ");
    std::vector<SymmetricArray<char>> many;
    const Index small = std::min(available / 4000, Index(Domain::sparse_bytes_min) / 2);
    refuses(
        world,
        [&] {
          for (Index bytes = 0; bytes < available; bytes += small) many.push_back(world.allocate<char>(small));
        },
        "a symmetric block of ", " bytes for each of 3 ranks exceeds the memory of this machine: ");
    // Of a world that works.
    many.clear();
    const auto word = world.allocate<int>(1);
    world.context().p(word, world.rank(), (world.rank() + 1) % 3);
    world.barrier();
    EXPECT_EQ(word[0], (world.rank() + 2) % 3);
  });
  launch(1, [&](World& world) { EXPECT_EQ(world.local_memory(std::size_t(available) * 2), nullptr); });
}

}  // namespace
}  // namespace tranship
