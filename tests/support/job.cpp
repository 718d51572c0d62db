#include "support/job.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/mpi/mpi_library.hpp>
#include <tranship/fabric/mpi/mpi_process.hpp>
#include <tranship/fabric/mpi/mpi_world.hpp>
#include <tranship/fabric/processes/other_launcher.hpp>
#include <tranship/fabric/seam/run_rank.hpp>

namespace tranship::test {
namespace {

/// The job as a whole, for what tests themselves agree on.
class Job {
 public:
  static Job& here() {
    static auto& job = *new Job;
    return job;
  }

  const MpiModule& mpi() const { return mpi_; }
  Rank rank() const { return rank_; }
  int size() const { return size_; }

  /// Collective.
  MpiHandle part(int colour) const {
    MpiHandle comm = 0;
    check_mpi(mpi_, mpi_.split(mpi_.world(), colour, rank_, &comm), "split the job");
    return comm;
  }
  template <class T>
  std::vector<T> gather(const T& mine) const {
    std::vector<T> all(static_cast<std::size_t>(size_));
    MpiHandle request = 0;
    check_mpi(mpi_, mpi_.all_gather(&mine, int(sizeof mine), all.data(), mpi_.world(), &request), "gather");
    for (bool is_complete = false; !is_complete; sched_yield())
      check_mpi(mpi_, mpi_.test(&request, &is_complete, nullptr), "gather");
    return all;
  }
  bool share_host(Rank one, Rank other) const { return hosts_[std::size_t(one)] == hosts_[std::size_t(other)]; }
  void free(MpiHandle comm) const { check_mpi(mpi_, mpi_.free(comm), "free a communicator"); }

 private:
  using Host = std::array<char, 256>;

  Job() : mpi_(*mpi_library().value().mpi) {
    if (mpi_.state() == MpiModule::State::before)
      check_mpi(mpi_, mpi_.initialise(MpiThreads::multiple), "be initialised");
    check_mpi(mpi_, mpi_.rank(mpi_.world(), &rank_), "tell a rank");
    check_mpi(mpi_, mpi_.size(mpi_.world(), &size_), "tell a size");
    Host mine{};
    gethostname(mine.data(), mine.size() - 1);
    hosts_ = gather(mine);
  }

  const MpiModule& mpi_;
  Rank rank_ = 0;
  int size_ = 0;
  std::vector<Host> hosts_;  ///< by rank
};

struct Outcome {
  int code = -1;  ///< of the error, or -1
  Rank rank = -1;
  char text[1020] = {};
};

}  // namespace

bool is_in_job() {
  const char* const text = std::getenv("TRANSHIP_TEST_JOB");
  return text != nullptr && std::strcmp(text, "1") == 0;
}

std::vector<int> sizes_apart(std::vector<int> usual) {
  if (!is_in_job()) return usual;
  const std::optional<OtherLauncher> launcher = other_launcher();
  return {launcher ? launcher->processes : 1};
}

void tell_launcher(Rank rank, bool has_failed) {
  const char* const folder = std::getenv("TRANSHIP_TEST_DONE_DIR");
  if (folder == nullptr) return;
  std::FILE* const file = std::fopen((std::string(folder) + "/" + std::to_string(rank)).c_str(), "w");
  if (file == nullptr) return;
  std::fputs(has_failed ? "1\n" : "0\n", file);
  std::fclose(file);
}

int job_size() {
  return Job::here().size();
}

void end_job(bool has_failed) {
  tell_launcher(Job::here().rank(), has_failed);
  Job::here().gather(0);  // all have told it before MPI, which may hang or abort then, is finalised
  finalise_mpi(mpi_library().value());
}

void run_in_job(const HostsOptions& options, FunctionRef<void(World&)> body) {
  const Job& job = Job::here();
  const int ranks = int(options.host_of.size());
  if (ranks > job.size())
    throw_error(ErrorCode::internal, "test: it needs {} ranks, and the job has {} processes", ranks, job.size());
  const bool takes_part = job.rank() < ranks;
  const MpiHandle comm = job.part(takes_part ? 0 : 1);
  Outcome mine;
  if (takes_part) {
    setenv(host_variable, ("host " + std::to_string(options.host_of[std::size_t(job.rank())])).c_str(), 1);
    try {
      RankScope scope = join_mpi(job.mpi(), comm, {.heap_bytes = options.heap_bytes, .timeout_ns = options.timeout_ns});
      if (const std::exception_ptr thrown = run_in(scope, body)) std::rethrow_exception(thrown);
    } catch (...) {
      const Error error = error_of_current_exception();
      mine = {.code = int(error.code()), .rank = job.rank()};
      error.message().copy(mine.text, sizeof mine.text - 1);
    }
  }
  job.free(comm);
  const std::vector<Outcome> all = job.gather(mine);
  // The other ranks fail because one failed by itself: its error is thrown.
  const auto has_failed = [](const Outcome& one) { return one.code >= 0; };
  const auto by_itself = [](const Outcome& one) { return one.code >= 0 && one.code != int(ErrorCode::peer_lost); };
  auto first = std::find_if(all.begin(), all.end(), by_itself);
  if (first == all.end()) first = std::find_if(all.begin(), all.end(), has_failed);
  if (first == all.end()) return;
  Error error(static_cast<ErrorCode>(first->code), first->text);
  error.rank = first->rank;
  throw error;
}

bool share_host_of_job(Rank one, Rank other) {
  return Job::here().share_host(one, other);
}

}  // namespace tranship::test
