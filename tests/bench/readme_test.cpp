#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <harness/readme.hpp>

#include <tranship/base/error.hpp>

namespace tranship::bench {
namespace {

Row halo(const char* suffix, RanksAre ranks, double ms) {
  return {.bench = "halo",
          .name = std::string("128x128x128 a rank, width 3, split slowest, 1 field, 2 ranks") + suffix,
          .unit = "ms",
          .ours = ms,
          .limit = ms / 2,
          .line_bound = ms / 1.6,
          .peers = {{"Open MPI types Isend/Irecv", 3 * ms},
                    {"MPICH packed Isend/Irecv", 2.5 * ms},
                    {"MPICH window", 1.1 * ms},
                    {"PETSc local-local", 12 * ms}},
          .data = "fresh",
          .our_ranks = ranks};
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_text);
    return error.message();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Readme, ALineHasOursInThreadsAndInProcessesBesideTheBestOfEachKind) {
  const Readme readme = with_tables("before\n<!-- measured: halo -->\nold\n<!-- end -->\nafter\n",
                                    {halo("", RanksAre::threads, 0.4), halo(", processes", RanksAre::processes, 0.5)});
  EXPECT_TRUE(readme.text.starts_with("before\n<!-- measured: halo -->\n| periodic halo")) << readme.text;
  EXPECT_TRUE(readme.text.ends_with("|\n<!-- end -->\nafter\n")) << readme.text;
  EXPECT_EQ(readme.text.find("old"), std::string::npos);
  EXPECT_NE(
      readme.text.find("| 128³ doubles a rank, 2 ranks along the slowest dimension | 0.4 / 0.5 | 0.50 / 0.50 | 0.62 "
                       "/ 0.62 | 2.5 / 2.5 | 1.10 / 1.10 | 12 / 12 |\n"),
      std::string::npos)
      << readme.text;
  // What was not measured is there too.
  EXPECT_NE(readme.text.find("| 32³, 2 ranks along the slowest dimension | – | – | – | – | – | – |\n"),
            std::string::npos)
      << readme.text;
  EXPECT_TRUE(readme.kept.empty());
}

TEST(Readme, RowsOfOtherNamesDataAndBenchmarksAreNotMistaken) {
  std::vector<Row> rows(3, halo("", RanksAre::threads, 0.4));
  rows[0].data = "warm";
  rows[1].bench = "rma";
  rows[2].name += ", other";
  const Readme readme = with_tables("<!-- measured: halo -->\nold\n<!-- end -->", rows);
  EXPECT_EQ(readme.text, "<!-- measured: halo -->\nold\n<!-- end -->");
  EXPECT_EQ(readme.kept, std::vector<std::string>{"halo"});
}

TEST(Readme, TheSummaryHasRowsOfSeveralBenchmarksWithTheirUnits) {
  const Readme readme =
      with_tables("<!-- measured: summary --><!-- end -->", {halo("", RanksAre::threads, 0.4),
                                                             {.bench = "rma",
                                                              .name = "put of 8 B",
                                                              .unit = "ns",
                                                              .better = Better::lower,
                                                              .ours = 2,
                                                              .peers = {{"OpenSHMEM", 8}, {"MPICH put", 12}},
                                                              .data = "warm",
                                                              .our_ranks = RanksAre::threads}});
  EXPECT_NE(readme.text.find("| halo of 128³ doubles, 26 neighbours, width 3, 2 ranks | 400 µs | 2.5 | 1.10 |\n"),
            std::string::npos)
      << readme.text;
  EXPECT_NE(readme.text.find("| put of 8 bytes | 2 ns | 4.0 | – |\n"), std::string::npos) << readme.text;
}

TEST(Readme, OfPlansTimeAndSizeAreTwoRows) {
  const std::string name = "3-D pencils x to y, 4096 ranks";
  const Readme readme = with_tables("<!-- measured: planning --><!-- end -->",
                                    {{.bench = "planning", .name = name + ", time", .unit = "us", .ours = 24.4},
                                     {.bench = "planning", .name = name + ", size", .unit = "runs", .ours = 132}});
  EXPECT_NE(readme.text.find("| 3-D pencils x → y, 4,096 ranks | 24.4 µs | 132 runs |\n"), std::string::npos)
      << readme.text;
}

TEST(Readme, CopiesAreMultiplesOfTheArray) {
  const double array = 4 << 20;
  const Readme readme = with_tables("<!-- measured: copies --><!-- end -->",
                                    {{.bench = "buffer",
                                      .name = "host writes a sixteenth, device reads, 4096 KiB: copied",
                                      .unit = "bytes",
                                      .ours = array / 16,
                                      .peers = {{"Kokkos DualView", array}, {"StarPU", 2 * array}}}});
  EXPECT_NE(readme.text.find("| the host writes a sixteenth, the device reads | 1/16 | 1 | 2 |\n"), std::string::npos)
      << readme.text;
}

TEST(Readme, TablesAreMadeAgainFromWhatTheyAre) {
  const std::vector<Row> rows = {halo("", RanksAre::threads, 0.4)};
  std::string text;
  for (const std::string& name : readme_tables()) text += "<!-- measured: " + name + " -->\n<!-- end -->\n";
  const std::string once = with_tables(text, rows).text;
  EXPECT_NE(once, text);
  EXPECT_EQ(with_tables(once, rows).text, once);
  EXPECT_EQ(with_tables(once, rows).kept.size(), readme_tables().size() - 2);  // the halo is in the summary, too
}

TEST(Readme, PlacesThatCannotBeFilledAreRefused) {
  EXPECT_EQ(message_of([] { with_tables("none", {}); }).find("0 places for tables in 4 bytes"), 0u);
  EXPECT_EQ(message_of([] {
              with_tables("<!-- measured: bees -->\n<!-- end -->", {});
            }).find("no table is called 'bees'; there are 11: summary, redistribution, halo, reshard,"),
            0u);
  EXPECT_EQ(message_of([] {
              with_tables("<!-- measured: halo -->\n<!-- end -->\n<!-- measured: rma -->\n", {});
            }).find("place 2 for a table, at byte 37, has no '<!-- end -->' after it"),
            0u);
}

}  // namespace
}  // namespace tranship::bench
