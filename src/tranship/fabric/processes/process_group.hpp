// Private: ProcessGroup: the processes that are the ranks of one world, from the side of their launcher. It posts on
// their board how they ended, so the others learn at once of a death.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <tranship/base/callback.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/processes/file_limit.hpp>
#include <tranship/fabric/processes/passed_signal.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

class ProcessGroup {
 public:
  /// Raises this process's limit of open files to what the ranks need; processes that it starts keep the old limit.
  /// Throws `no_memory` if the system does not allow that many.
  explicit ProcessGroup(std::shared_ptr<SharedWorld> shared);
  /// Kills the processes that still run.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Forks a process for the next rank, which runs `body` and exits with its result. It dies with the thread that calls
  /// this. Throws `no_memory`.
  void start(FunctionRef<int(Rank)> body);

  /// How long the others may run after one has failed, before they are killed.
  static constexpr std::int64_t default_grace_ns = 10'000'000'000;
  struct End {
    /// By rank; for a killed process, 128 plus the number of the signal.
    std::vector<int> exit_codes;
    /// The ranks that did not end by themselves, their state, and the time that they had; "" if all did.
    std::string late;
    /// The status with which a rank has ended all ranks (World::global_exit); it then is the exit code of all.
    std::optional<int> exit_status = std::nullopt;
  };
  /// Waits until all have ended, but only for `grace_ns` once one has failed. After a tenth of `grace_ns`, `notice` is
  /// told which processes have not ended, what they are doing, and when they are killed.
  ///
  /// `signal_check` is called about 50 times per second. The first signal that it returns is sent to all that still
  /// run, unless they have received it already, and they have `grace_ns` to end; at the second one they are killed. It
  /// is sent by sigqueue(), which distinguishes it from a signal that a terminal sends to all of a group.
  End wait(std::int64_t grace_ns = default_grace_ns, const Callback<void(const std::string&)>& notice = {},
           const Callback<PassedSignal()>& signal_check = {});

 private:
  struct Process {
    pid_t pid = -1;
    int descriptor = -1;  // a pidfd; -1 once it has ended
    int exit_code = -1;
  };
  void end(Rank rank);
  std::string activity_of(Rank rank) const;
  /// Returns "rank 1 (process 77, stopped by a signal), rank 2 (...)" for the processes that have not ended.
  std::string late_ranks() const;
  void kill_all() noexcept;
  void pass_on(PassedSignal signal) noexcept;

  std::shared_ptr<SharedWorld> shared_;
  std::vector<Process> processes_;
  RaisedFileLimit files_;
};

}  // namespace tranship
