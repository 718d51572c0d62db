// Tests under mpirun or mpiexec: the processes of the job are the ranks, and each of them runs the same tests.
#pragma once

#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

#include "support/hosts.hpp"

namespace tranship::test {

/// Returns true when this process is one of an MPI job, which TRANSHIP_TEST_JOB=1 says.
bool is_in_job();
/// Returns the number of processes of the job. Collective when it is the first call of the job.
int job_size();
/// Returns sizes of worlds on several hosts: the size of the job, so that jobs of all sizes test all of them; `usual`
/// without a job. Not collective: lists of tests are made before MPI begins.
std::vector<int> sizes_apart(std::vector<int> usual);
/// Runs `body` as ranks in the first processes of the job, by MPI between hosts; the others wait. Throws on all what
/// launch_hosts throws. Processes that are on one host according to the options share memory only where they do.
void run_in_job(const HostsOptions& options, FunctionRef<void(World&)> body);
/// Returns true when two processes of the job run on hosts of one name. Collective when it is the job's first call.
bool share_host_of_job(Rank one, Rank other);

/// Tells the job's launcher, before MPI is finalised, that this rank's work is done and how it went
/// (tests/hosts/README.md).
void tell_launcher(Rank rank, bool has_failed);
/// Tells the launcher for this process of the job, and finalises MPI.
void end_job(bool has_failed);

}  // namespace tranship::test
