// Where the MPI of a launcher is looked for.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <tranship/fabric/mpi/mpi_library.hpp>
#include <tranship/fabric/processes/launch_program.hpp>

#include "support/paths.hpp"

namespace tranship::test {
namespace {

constexpr const char* expected_variable = "TRANSHIP_TEST_EXPECTED_MPI";

/// An MPI of empty files, whose launcher is a shell.
class LauncherOfMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = std::filesystem::temp_directory_path() / "tranship-mpi-XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder_ = std::filesystem::canonical(made);
    std::filesystem::create_directory(folder_ / "bin");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The path of a library, which is there from now on.
  std::string add(const std::string& library) {
    std::filesystem::create_directories((folder_ / library).parent_path());
    std::ofstream(folder_ / library) << "a library";
    return folder_ / library;
  }

  /// Fails unless a process that `launcher` has started, with shells between, looks for this library first.
  void expect_first(const std::string& path, const std::string& launcher, const std::string& size_variable) {
    const std::filesystem::path program = folder_ / "bin" / launcher;
    std::filesystem::copy_file(std::filesystem::canonical("/bin/sh"), program);
    // A shell that goes on after its command does not become it.
    const std::string runs = R"("$@"; exit $?)";
    std::vector<std::string> words = {
        "env", size_variable, std::string(expected_variable) + "=" + path, program, "-c", runs, "sh", "sh", "-c",
        runs,  "sh"};
    for (const std::string& word : this_program("MpiOfLauncher.DISABLED_is_as_expected")) words.push_back(word);
    EXPECT_EQ(launch_program({}, {{1, words}}).exit_codes, std::vector<int>(1, 0)) << launcher;
  }

  std::filesystem::path folder_;
};

TEST(MpiOfLauncher, DISABLED_is_as_expected) {
  const std::vector<MpiCandidate> candidates = mpi_of_launcher();
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.front().path, std::getenv(expected_variable));
}

TEST_F(LauncherOfMpi, above_shells_has_its_library_beside_it) {
  expect_first(add("lib/libmpi.so.40"), "prterun", "OMPI_COMM_WORLD_SIZE=2");
  add("lib/libmpi.so.12");
  add("lib/libmpich.so.12");
  expect_first(folder_ / "lib/libmpich.so.12", "hydra_pmi_proxy", "PMI_SIZE=2");
}

TEST_F(LauncherOfMpi, has_its_library_in_other_folders_too) {
  const std::string other = add("lib64/libmpi.so.12");
  expect_first(other, "mpiexec.hydra", "PMI_SIZE=2");
}

TEST_F(LauncherOfMpi, without_a_library_beside_it_leaves_it_to_the_loader) {
  add("lib/libmpi.so.12");
  expect_first("libmpi.so.40", "orted", "OMPI_COMM_WORLD_SIZE=2");
  expect_first("libmpi.so.40", "another", "OMPI_COMM_WORLD_SIZE=2");
}

}  // namespace
}  // namespace tranship::test
