// What must hold for any text that is taken for a plan file of channel operations. Used by the libFuzzer program and by
// the seeded mutations of tests/program.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

#include "support/program_explorer.hpp"

namespace tranship::testing {

struct ProgramVerdict {
  bool is_read = false, is_right = false, is_explored = false;
  /// Empty when all is well.
  std::string violation;
};

/// `proves` is a parameter so that a test can show that the check notices a verifier that accepts too much.
inline ProgramVerdict check_program_text(std::string_view text,
                                         Verification (*proves)(const Program&, const VerifyOptions&) = verify) {
  ProgramVerdict out;
  const auto violated = [&](std::string what) {
    out.violation = std::move(what);
    return out;
  };
  try {
    const Program program = read_program(text);
    out.is_read = true;
    std::string written;
    try {
      written = write_program(program);
      if (write_program(read_program(written)) != written) return violated("written and read, it is another");
    } catch (const Error& error) {
      return violated(std::string("what was read is not written: ") + error.what());
    }
    const Verification said = proves(program, {.work_max = 2'000'000});
    out.is_right = said.is_right();
    if (said.text().empty()) return violated("judged without a word");
    constexpr Index steps_max = 40;
    if (!said.is_right() || count_steps(program) > steps_max || program.ranks.size() > 4) return out;
    const auto between = said.needs_meeting ? test::BetweenLaunches::all_ranks_meet : test::BetweenLaunches::nothing;
    const auto explored = test::explore(program, {.states_max = 50, .between = between});
    out.is_explored = explored.outcome == test::ProgramExploration::Outcome::right;
    if (explored.outcome == test::ProgramExploration::Outcome::wrong) return violated("accepted, but " + explored.text);
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    if (code != ErrorCode::bad_text && code != ErrorCode::bad_file && code != ErrorCode::unsupported)
      return violated("refused with code " + std::string(name_of(code)));
    const std::string_view message = error.what();
    if (message.empty()) return violated("refused without a word");
    if (!std::all_of(message.begin(), message.end(), [](unsigned char c) { return std::isprint(c) != 0; }))
      return violated("a message that is not one printable line");
  }
  return out;
}

}  // namespace tranship::testing
