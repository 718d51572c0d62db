// Programs as text and as a page: what a reader finds there, and what a browser makes of it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tranship/base/fail.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/view/picture.hpp>
#include <tranship/view/program_page.hpp>
#include <tranship/view/program_text.hpp>

#include "file/temporary_folder.hpp"
#include "support/error_of.hpp"
#include "support/golden.hpp"
#include "support/mscclpp_plans.hpp"

namespace tranship::test {
namespace {

Program plan(const std::string& name) {
  return read_program(read_text(mscclpp_plan(name)));
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// "lanes steps arrows", as the script of a page counts them.
std::string counts_of(const Program& program) {
  const StepArrows arrows(program);
  std::size_t lanes = 0;
  for (const RankProgram& rank : program.ranks) lanes += rank.blocks.size();
  return fmt::format("{} {} {}", lanes, arrows.steps().size(), arrows.all().size());
}

TEST(ProgramText, is_that_of_the_golden_files) {
  EXPECT_TRUE(matches_golden("program/mn_allgather_2x2.txt", program_text(plan("mn_allgather_2x2"))));
  EXPECT_TRUE(matches_golden("program/ex_reduce_pack_tbg.txt", program_text(plan("ex_reduce_pack_tbg"))));
}

TEST(ProgramText, shows_one_rank_or_as_many_as_fit) {
  const Program program = plan("mn_allgather_2x2");
  const std::string one = program_text(program, {.rank = 2});
  EXPECT_EQ(count_of(one, "\nrank "), 1u);
  EXPECT_NE(one.find("\nrank 2: "), std::string::npos) << one;
  const std::string some = program_text(program, {.steps_max = 45});
  EXPECT_EQ(count_of(some, "\nrank "), 2u);
  EXPECT_TRUE(some.ends_with("2 ranks more: --rank shows one\n")) << some;
  EXPECT_NE(error_of([&] { program_text(program, {.rank = 4}); }).find("no rank 4; the program has 4"),
            std::string::npos);
}

TEST(ProgramText, marks_steps_that_never_go_on) {
  EXPECT_NE(program_text(plan("ut_reduce_send_packet_test")).find("never goes on"), std::string::npos);
}

TEST(ProgramPage, has_every_lane_step_and_arrow_of_every_plan) {
  for (const PlanCase& one : mscclpp_plans()) {
    const Program program = read_program(read_text(one.path));
    const std::string page = program_page(program, {.steps_max = 1'000'000, .arrows_max = 1'000'000});
    EXPECT_TRUE(page.starts_with("<!doctype html>")) << one.name;
    EXPECT_NE(page.substr(0, 1024).find(picture_mark), std::string::npos) << one.name;
    EXPECT_EQ(fmt::format("{} {} {}", count_of(page, "<rect class=\"lane\""), count_of(page, "<g class=\"step "),
                          count_of(page, "<path class=\"arrow ")),
              counts_of(program))
        << one.name;
    for (const char* outside : {"http:", "https:", "src=", "href=", "url(//", "@import"})
      EXPECT_EQ(page.find(outside), std::string::npos) << one.name << " needs something from elsewhere: " << outside;
  }
}

TEST(ProgramPage, of_one_rank_has_its_lanes_alone) {
  const Program program = plan("mn_allgather_2x2");
  const StepArrows arrows(program);
  for (Rank rank = 0; rank < Rank(program.ranks.size()); ++rank) {
    const std::string page = program_page(program, {.rank = rank});
    std::set<std::string> expected, shown;
    for (std::size_t i = 0; i < arrows.steps().size(); ++i)
      if (arrows.steps()[i].rank == rank) expected.insert(fmt::format("s{}", i));
    for (std::size_t at = 0; (at = page.find(" id=\"s", at)) != std::string::npos; ++at)
      shown.insert(page.substr(at + 5, page.find('"', at + 5) - at - 5));
    EXPECT_EQ(shown, expected);
    EXPECT_EQ(count_of(page, "<text class=\"rank\""), 1u);
    EXPECT_NE(page.find(fmt::format(">rank {}</text>", rank)), std::string::npos);
    EXPECT_NE(page.find(fmt::format("Rank {} of {} is shown.", rank, program.ranks.size())), std::string::npos);
  }
  EXPECT_NE(error_of([&] { program_page(program, {.rank = 4}); }).find("no rank 4; the program has 4"),
            std::string::npos);
}

TEST(ProgramText, folds_ranks_that_do_the_same) {
  const Program ring = make_program("allreduce/ring", {.ranks = 6});
  EXPECT_EQ(first_ranks_alike(ring), std::vector<Rank>(6, 0));
  const std::string folded = program_text(ring);
  EXPECT_NE(folded.find("\nrank 0: "), std::string::npos);
  EXPECT_EQ(folded.find("\nrank 1: "), std::string::npos) << folded;
  EXPECT_TRUE(folded.ends_with("ranks 1 to 5: the same steps with peers and chunks of their own (--rank shows them)\n"))
      << folded;
  const std::string all = program_text(ring, {.ranks_unfolded_max = 6});
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_NE(all.find("\nrank " + std::to_string(rank) + ": "), std::string::npos) << rank;
  // Ranks that do something else, or stand for ever, are shown.
  Program odd = ring;
  odd.ranks[3].blocks[0].steps.pop_back();
  EXPECT_EQ(first_ranks_alike(odd), (std::vector<Rank>{0, 0, 0, 3, 0, 0}));
  odd.ranks[3].blocks[0].steps.clear();
  const std::string stuck = program_text(odd);
  EXPECT_NE(stuck.find("never goes on"), std::string::npos);
  EXPECT_NE(stuck.find("\nrank 4: "), std::string::npos) << stuck;
}

TEST(ProgramText, shortens_long_lists_of_many_ranks) {
  const Program program = make_program("allreduce/all_pairs", {.ranks = 64});
  const std::string text = program_text(program);
  EXPECT_NE(text.find("input[0] + input[0] of rank 1 + input[0] of rank 2 + ... + input[0] of rank 63 (64 in all)"),
            std::string::npos)
      << text;
  EXPECT_LT(text.size(), 4000u);
  EXPECT_NE(program_text(program, {.rank = 0}).find("input[0] of rank 31 + input[0] of rank 32"), std::string::npos);
}

TEST(ProgramPage, shows_the_leading_ranks_of_large_programs_and_says_so) {
  const std::string page = program_page(plan("mn_allgather_2x2"), {.steps_max = 45, .arrows_max = 3});
  EXPECT_EQ(count_of(page, "<g class=\"step "), 40u);
  EXPECT_EQ(count_of(page, "<path class=\"arrow "), 3u);
  EXPECT_NE(page.find("Ranks 0 to 1 of 4 are shown."), std::string::npos);
  EXPECT_NE(page.find(" arrows are not drawn."), std::string::npos);
}

Program hostile() {
  Program program = plan("sn_alltoall_2r");
  program.name = "</title></style><script>document.body.dataset.error='name'</script>\n\x01";
  program.collective = "\"><img src=x onerror=\"document.body.dataset.error='collective'\">";
  program.protocol = "'--><svg onload=\"document.body.dataset.error='protocol'\">";
  return program;
}

TEST(ProgramPage, escapes_what_the_plan_says_of_itself) {
  const std::string page = program_page(hostile());
  EXPECT_EQ(count_of(page, "<script"), 1u);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<svg onload"), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
}

/// The browser of this machine; empty where there is none.
std::string browser() {
  if (const char* const given = std::getenv("TRANSHIP_BROWSER")) return given;
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(fmt::format("command -v {} > /dev/null 2>&1", name).c_str()) == 0) return name;
  return "";
}

/// What a browser makes of a page once its script has run.
std::string document_in_browser(const std::string& page) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path("page.html"), std::ios::binary) << page;
  const std::string line = fmt::format(
      "timeout 60 {} --headless --no-sandbox --disable-gpu --user-data-dir='{}' --dump-dom 'file://{}' > '{}' 2> "
      "/dev/null",
      browser(), folder.path("profile"), folder.path("page.html"), folder.path("document"));
  EXPECT_EQ(std::system(line.c_str()), 0) << line;
  return read_text(folder.path("document"));
}

TEST(ProgramPage, a_browser_runs_it_without_errors) {
  if (browser().empty()) GTEST_SKIP() << "no chromium (TRANSHIP_BROWSER names one)";
  const Program programs[] = {plan("mn_allgather_2x2"), plan("sn_alltoall_2r"), hostile()};
  for (const Program& program : programs) {
    const std::string document = document_in_browser(program_page(program));
    const std::size_t at = document.find("<body");
    ASSERT_NE(at, std::string::npos) << document.substr(0, 2000);
    const std::string body = document.substr(at, document.find('>', at) - at);
    EXPECT_NE(body.find("data-ready=\"" + counts_of(program) + "\""), std::string::npos) << body;
    EXPECT_EQ(body.find("data-error"), std::string::npos) << body;
  }
}

TEST(ProgramPage, pointing_at_a_step_shows_it_and_its_arrows) {
  if (browser().empty()) GTEST_SKIP() << "no chromium (TRANSHIP_BROWSER names one)";
  const Program program = plan("mn_allgather_2x2");
  std::string page = program_page(program);
  // Step 1 of rank 0 signals; nobody can point in a test, so an event says so.
  page.insert(page.find("</body>"),
              "<script>document.getElementById('s1').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));"
              "document.body.dataset.lit = document.querySelectorAll('.on').length;</script>");
  const std::string document = document_in_browser(page);
  // The step, the wait that it pairs with, and the arrow between them.
  EXPECT_NE(document.find("data-lit=\"3\""), std::string::npos);
  EXPECT_NE(document.find("<footer>rank 0, block 0, step 1: rlxsignal\nmemory channel 0 (rank 1)\n"
                          "signals rank 1, block 0, step 3</footer>"),
            std::string::npos)
      << document.substr(document.find("<footer"), 300);
}

}  // namespace
}  // namespace tranship::test
