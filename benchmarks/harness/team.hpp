// Team: a contestant program with all its ranks, which is started once and sleeps between commands. This is the side of
// a stage that the driver has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <contest/stage.hpp>

namespace tranship::bench {

struct MethodResult {
  std::string name;
  /// Wrong elements of the target, over all ranks; a method with any is not timed.
  std::int64_t wrong_cells = 0;
  /// Bytes that one operation copies between memories; -1 when the method does not count them.
  std::int64_t moved_bytes = -1;
};

/// The interface of a team that a contest uses; tests implement it themselves.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual const std::string& name() const = 0;
  /// Sets the case up and checks every method once by value; returns no methods when the program cannot do the work.
  /// Throws `io` when the program has died or does not answer; the contender must not be used afterwards.
  virtual std::vector<MethodResult> open(const contest::Work& work) = 0;
  /// Returns the time of each of `ops` operations, in nanoseconds. Throws `io` under the conditions of `open`.
  virtual std::vector<double> run(int method, contest::Freshness freshness, int ops) = 0;
  virtual void close() = 0;
};

enum class Launcher : std::uint8_t {
  none,      ///< its ranks are threads
  open_mpi,  ///< mpirun of Open MPI
  mpich,     ///< mpiexec of MPICH
  tranship,  ///< the command that lies beside the program
};

struct TeamOptions {
  std::string name;
  std::string program;
  Launcher launcher = Launcher::none;
  int ranks = 1;
};

class Team final : public Contender {
 public:
  /// Starts the program. Throws `io` when that fails.
  explicit Team(const TeamOptions& options);
  /// Tells the program to quit; kills it, with all its ranks, when it does not.
  ~Team() override;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const std::string& name() const override { return name_; }
  std::vector<MethodResult> open(const contest::Work& work) override;
  std::vector<double> run(int method, contest::Freshness freshness, int ops) override;
  void close() override;

 private:
  void command(const contest::Command& command);
  std::string last_words() const;
  void kill_all();

  std::string name_;
  std::string folder_;  ///< for what launchers leave in TMPDIR
  contest::StageMemory stage_;
  int log_ = -1;
  int process_ = -1;
};

/// The command line that starts a team whose stage lies at `stage_path`.
std::vector<std::string> command_line(const TeamOptions& options, const std::string& stage_path);

}  // namespace tranship::bench
