// What is made of the commands' help: `help`, completion and the manual.
#include <gtest/gtest.h>

#include "cli/command.hpp"

namespace tranship {
namespace {

using testing::Outcome;
using testing::Workplace;

TEST(Help, IsThatOfTheCommand) {
  const Workplace place;
  for (const char* command : {"reshard", "layout", "plan", "halo", "launch", "simulate", "check", "run", "show",
                              "predict", "measure", "info", "demo", "completion"}) {
    const Outcome help = place.run({"help", command});
    EXPECT_EQ(help.code, 0) << help.errors;
    EXPECT_EQ(help.output, place.run({command, "--help"}).output) << command;
  }
  EXPECT_EQ(place.run({"help"}).output, place.run({"--help"}).output);
  const Outcome unknown = place.run({"help", "nothing"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(unknown.errors.starts_with("tranship: error: no command 'nothing'; there are reshard, layout, plan, "))
      << unknown.errors;
}

TEST(Help, CompletionAndManualKnowEveryOption) {
  const Workplace place;
  const std::string manual = place.run({"manual"}).output;
  EXPECT_TRUE(manual.starts_with(".TH TRANSHIP 1 "));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome script = place.run({"completion", shell});
    EXPECT_EQ(script.code, 0) << script.errors;
    for (const char* word : {"reshard", "dry-run", "memory", "simulate", "stencil"})
      EXPECT_NE(script.output.find(word), std::string::npos) << shell << ": " << word;
  }
  for (const char* word : {"dry\\-run", "TARGET", "takes its place", "cyclic(64)+overlap(1,1)"})
    EXPECT_NE(manual.find(word), std::string::npos) << word;
  EXPECT_EQ(place.run({"completion", "csh"}).code, 2);
}

TEST(Help, BashCompletes) {
  const Workplace place;
  place.write("script", place.run({"completion", "bash"}).output + R"(
COMP_WORDS=(tranship re) COMP_CWORD=1; _tranship; echo "${COMPREPLY[*]}"
COMP_WORDS=(tranship reshard --dr) COMP_CWORD=2; _tranship; echo "${COMPREPLY[*]}"
COMP_WORDS=(tranship help pl) COMP_CWORD=2; _tranship; echo "${COMPREPLY[*]}"
)");
  const std::string line = "cd '" + place.path("") + "' && bash script > out";
  ASSERT_EQ(std::system(line.c_str()), 0);
  EXPECT_EQ(place.read("out"), "reshard\n--dry-run\nplan\n");
}

}  // namespace
}  // namespace tranship
