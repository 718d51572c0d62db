#include <algorithm>
#include <numeric>

#include <tranship/base/fail.hpp>
#include <tranship/program/verify/execution.hpp>

namespace tranship {
namespace {

using verification::Cut;
using verification::Execution;
using verification::Relaunch;

/// Executions that show shares of uneven sizes and loops of more than one iteration.
std::vector<Cut> cuts_of(const Program& program) {
  Index shares = 1;
  bool has_loops = false;
  const auto look = [&](const Step& step) {
    constexpr Index units_max = 720'720;
    if (step.shares > 0) shares = std::min(units_max, std::lcm(shares, Index(step.shares)));
  };
  for (const RankProgram& rank : program.ranks)
    for (const ThreadBlock& block : rank.blocks)
      for (const Step& step : block.steps) {
        look(step);
        if (!step.pipeline) continue;
        has_loops = true;
        for (const Step& inner : step.pipeline->steps) look(inner);
      }
  std::vector<Cut> out = {{.units = shares, .iterations = 1}};
  if (has_loops) out.push_back({.units = 3 * shares - 1, .iterations = 3});
  if (shares > 1) out.push_back({.units = 2 * shares + 1, .iterations = 1});
  return out;
}

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
    out = fmt::format("proved: it ends, no two accesses race{}\n",
                      knows_result ? ", and every output is what the collective promises" : "");
    if (needs_meeting)
      out +=
          fmt::format("launches must not follow each other before all ranks have met: {}\n", why_meeting.front().text);
    return out;
  }
  for (const Finding& finding : findings) out += fmt::format("{}: {}\n", name_of(finding.kind), finding.text);
  if (static_cast<Index>(findings.size()) < found) out += fmt::format("and {} more\n", found - Index(findings.size()));
  return out;
}

Verification verify(const Program& program, const VerifyOptions& options) {
  check_structure(program);
  const CollectiveMeaning meaning(program);
  const auto execute = [&](Relaunch relaunch) {
    Verification out;
    out.knows_result = meaning.is_known();
    for (const Cut& cut : cuts_of(program)) {
      Execution(program, options, meaning, cut, relaunch, out).run();
      if (!out.is_right()) break;
    }
    return out;
  };
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
