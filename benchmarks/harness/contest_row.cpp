#include <algorithm>

#include <harness/contest_row.hpp>
#include <harness/league.hpp>

#include <tranship/base/fail.hpp>

namespace tranship::bench {
namespace {

constexpr const char* our_method = "tranship";
constexpr const char* limit_method = "limit";
constexpr const char* lines_method = "lines";

bool is_ours(const std::string& contender) {
  return contender == ours_in_threads || contender == ours_in_processes;
}

bool is_mpi(const Score& score) {
  return score.contender == "Open MPI" || score.contender == "MPICH";
}

/// Returns true when `score` is one of `rivals`. The caller has left out the contender of ours that the row leaves out.
bool is_among(Rivals rivals, const Score& score) {
  switch (rivals) {
    case Rivals::limit:
      return is_ours(score.contender) && score.method == limit_method;
    case Rivals::our_copy:
      return is_ours(score.contender) && score.method == "our copy by hand";
    case Rivals::mpi_calls:
      return is_mpi(score) && score.method != "window";
    case Rivals::packed_alltoallv:
      return is_mpi(score) && score.method == "packed Alltoallv";
    case Rivals::alltoallw:
      return is_mpi(score) && score.method == "Alltoallw";
    case Rivals::windows:
      return is_mpi(score) && score.method == "window";
    case Rivals::fftw:
      return score.contender == "FFTW-MPI";
    case Rivals::scalapack:
      return score.contender == "ScaLAPACK";
    case Rivals::by_call:
      return !is_ours(score.contender) && score.method != "window";
    case Rivals::everybody:
      return !is_ours(score.contender);
  }
  return false;
}

const char* name_of(Rivals rivals) {
  switch (rivals) {
    case Rivals::limit:
      return "limit";
    case Rivals::our_copy:
      return "our copy by hand";
    case Rivals::mpi_calls:
      return "best MPI call";
    case Rivals::packed_alltoallv:
      return "packed Alltoallv";
    case Rivals::alltoallw:
      return "Alltoallw";
    case Rivals::windows:
      return "window";
    case Rivals::fftw:
      return "FFTW-MPI";
    case Rivals::scalapack:
      return "ScaLAPACK";
    case Rivals::by_call:
      return "every peer's calls";
    case Rivals::everybody:
      return "every peer";
  }
  return "";
}

}  // namespace

const char* name_of(contest::Freshness freshness) {
  switch (freshness) {
    case contest::Freshness::fresh:
      return "fresh";
    case contest::Freshness::warm:
      return "warm";
    case contest::Freshness::cold:
      return "cold";
  }
  return "";
}

Row row_of(const RowRule& rule, const std::vector<Score>& scores, const std::vector<Absence>& absences) {
  const auto in_unit = [&](double ns) {
    return rule.bytes > 0 ? rule.bytes / ns : rule.steps > 0 ? ns / rule.steps : ns * 1e-6;
  };
  Row row{.name = rule.name,
          .unit = rule.bytes > 0   ? "GB/s"
                  : rule.steps > 0 ? "ns"
                                   : "ms",
          .better = rule.bytes > 0 ? Better::higher : Better::lower,
          .data = name_of(rule.freshness),
          .our_ranks = rule.our_ranks};
  const char* us = rule.our_ranks == RanksAre::processes ? ours_in_processes : ours_in_threads;
  const auto is_left_out = [&](const auto& entry) { return is_ours(entry.contender) && entry.contender != us; };
  bool found = false;
  for (const Score& score : scores) {
    if (is_left_out(score)) continue;
    if (score.contender != us) {
      const bool only_one = score.method.empty();
      row.peers.emplace_back(only_one ? score.contender : score.contender + " " + score.method,
                             in_unit(score.median_ns));
    } else if (score.method == our_method) {
      row.ours = in_unit(score.median_ns);
      found = true;
    } else if (score.method == limit_method) {
      row.limit = in_unit(score.median_ns);
    } else if (score.method == lines_method) {
      row.line_bound = in_unit(score.median_ns);
    } else {
      row.peers.emplace_back(score.method, in_unit(score.median_ns));
    }
  }
  for (const Absence& absence : absences) {
    if (is_left_out(absence)) continue;
    if (absence.contender == us)
      throw_error(ErrorCode::internal, "case '{}': {} {}", rule.name, absence.method, absence.reason);
    row.absent.emplace_back(absence.method.empty() ? absence.contender : absence.contender + " " + absence.method,
                            absence.reason);
  }
  if (!found) throw_error(ErrorCode::internal, "case '{}': 1 of {} scores must be ours", rule.name, scores.size());

  for (const GoalRule& goal : rule.goals) {
    double best_ns = 0;
    for (const Score& score : scores)
      if (!is_left_out(score) && is_among(goal.rivals, score) && (best_ns == 0 || score.median_ns < best_ns))
        best_ns = score.median_ns;
    if (best_ns > 0) row.goals.push_back({name_of(goal.rivals), goal.ratio, in_unit(best_ns)});
  }
  return row;
}

}  // namespace tranship::bench
