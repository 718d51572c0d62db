#include "tranship/program/verify.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/verify/execution.hpp>

namespace tranship {
namespace {

using verification::Cut;
using verification::Execution;
using verification::Relaunch;

}  // namespace

const char* name_of(Finding::Kind kind) noexcept {
  switch (kind) {
    case Finding::Kind::deadlock:
      return "deadlock";
    case Finding::Kind::unpaired:
      return "unpaired";
    case Finding::Kind::race:
      return "race";
    case Finding::Kind::missing_meeting:
      return "missing meeting";
    case Finding::Kind::packets:
      return "packets";
    case Finding::Kind::wrong_result:
      return "wrong result";
    case Finding::Kind::unproved:
      return "unproved";
    case Finding::Kind::mismatch:
      return "mismatch";
  }
  return "?";
}

std::string Verification::text() const {
  std::string out;
  if (is_right()) {
    const char* const result = knows_result ? ", and every output is what the collective promises" : "";
    if (!needs_meeting) return fmt::format("proved: it ends, no two accesses race{}\n", result);
    const auto named = std::find_if(why_meeting.begin(), why_meeting.end(),
                                    [](const Finding& one) { return one.missing != Finding::Missing::none; });
    return fmt::format(
        "proved for launches between which all ranks meet, as they do here: it ends, no two accesses race{}\n"
        "without the meeting: {}\n",
        result, (named == why_meeting.end() ? why_meeting.front() : *named).text);
  }
  for (const Finding& finding : findings) out += fmt::format("{}: {}\n", name_of(finding.kind), finding.text);
  if (static_cast<Index>(findings.size()) < found) out += fmt::format("and {} more\n", found - Index(findings.size()));
  return out;
}

Verification verify(const Program& program, const VerifyOptions& options) {
  if (options.launches < 1)
    throw_error(ErrorCode::invalid_use, "cannot verify {}: at least 1 is needed",
                amount(options.launches, "launch", "launches"));
  check_structure(program);
  const CollectiveMeaning meaning(program);
  const std::vector<Cut> cuts = verification::cuts_of(program);
  const auto execute = [&](Relaunch relaunch) {
    Verification out;
    out.knows_result = meaning.is_known();
    for (const Cut& cut : cuts) {
      Execution(program, options, meaning, cut, relaunch, out).run();
      if (!out.is_right()) break;
    }
    return out;
  };
  if (options.launched_by == LaunchedBy::mscclpp) return execute(Relaunch::as_mscclpp);
  Verification out = execute(Relaunch::at_once);
  if (out.is_right() || options.launches < 2) return out;
  Verification together = execute(Relaunch::together);
  together.work += out.work;
  if (!together.is_right()) return together;
  together.needs_meeting = true;
  together.why_meeting = std::move(out.findings);
  return together;
}

}  // namespace tranship
