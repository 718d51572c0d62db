// Private: the processes that are the ranks of one world, seen by the one that has started them. It posts on their
// board how they ended, so that the others learn at once of one that has died.
#pragma once

#include <memory>
#include <vector>

#include <sys/types.h>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

class ProcessGroup {
 public:
  explicit ProcessGroup(std::shared_ptr<SharedWorld> shared);
  /// Kills those that still run.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Forks a process for the next rank, which runs `body` and ends with what it returns. It dies with the thread that
  /// calls this. Throws `no_memory`.
  void start(FunctionRef<int(Rank)> body);

  /// Waits until all have ended. Once one has failed, the others have 10 s to end by themselves; then they are killed.
  /// Returns the exit codes by rank; of a process that was killed, 128 and the number of the signal.
  std::vector<int> wait();

 private:
  struct Process {
    pid_t pid = -1;
    int descriptor = -1;  // a pidfd; -1 once it has ended
    int exit_code = -1;
  };
  void end(Rank rank);
  void kill_all() noexcept;

  std::shared_ptr<SharedWorld> shared_;
  std::vector<Process> processes_;
};

}  // namespace tranship
