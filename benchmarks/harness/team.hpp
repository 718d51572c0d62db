// Team: a contestant program with all its ranks, started once, asleep between commands. The driver's side of a stage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <contest/stage.hpp>

namespace tranship::bench {

struct MethodResult {
  std::string name;
  /// Elements, over all ranks, that were not what they must be; a method with any is not timed.
  std::int64_t wrong_cells = 0;
  /// That one operation copies between memories; -1 where nobody counts.
  std::int64_t moved_bytes = -1;
};

/// What a contest needs of a team; tests bring their own.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual const std::string& name() const = 0;
  /// Sets the case up and checks every method once by value; no methods where the program cannot do it. Throws `io`
  /// when the program has died or does not answer; it must not be used any more then.
  virtual std::vector<MethodResult> open(const contest::Work& work) = 0;
  /// The time of each of `ops` operations, in nanoseconds. Throws as `open`.
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
  /// Tells it to quit; kills it, with all its ranks, when it does not.
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
