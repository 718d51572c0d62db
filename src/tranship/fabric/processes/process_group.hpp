// Private: the processes that are the ranks of one world, seen by the one that has started them. It posts on their
// board how they ended, so that the others learn at once of one that has died.
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
  /// Raises this process's limit of open files to what so many ranks need; processes that it starts have the old one.
  /// Throws `no_memory` where the system does not allow that many.
  explicit ProcessGroup(std::shared_ptr<SharedWorld> shared);
  /// Kills those that still run.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Forks a process for the next rank, which runs `body` and ends with what it returns. It dies with the thread that
  /// calls this. Throws `no_memory`.
  void start(FunctionRef<int(Rank)> body);

  /// For those that still run when one has failed, before they are killed.
  static constexpr std::int64_t default_grace_ns = 10'000'000'000;
  struct End {
    /// By rank; of a process that was killed, 128 and the number of the signal.
    std::vector<int> exit_codes;
    /// Which ranks have not ended by themselves, what they were doing, and how long they had; "" when all have.
    std::string late;
    /// With which a rank has ended all of them (World::global_exit): they all have it as their exit code.
    std::optional<int> exit_status = std::nullopt;
  };
  /// Waits until all have ended; once one has failed, for `grace_ns`. When a tenth of that has passed and some have not
  /// ended, `notice` is told which, what they are doing, and when they are killed.
  ///
  /// `signal_check` is called some 50 times a second. The first signal that it returns is sent to all that still run,
  /// unless it has been (by sigqueue(), which tells it from those that a terminal sends to all of a group), and they
  /// have `grace_ns` to end; at the second one they are killed.
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
  /// "rank 1 (process 77, stopped by a signal), rank 2 (...)": those that have not ended.
  std::string late_ranks() const;
  void kill_all() noexcept;
  void pass_on(PassedSignal signal) noexcept;

  std::shared_ptr<SharedWorld> shared_;
  std::vector<Process> processes_;
  RaisedFileLimit files_;
};

}  // namespace tranship
