// Contest: several programs, each with several methods, do one case and take turns round by round.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <harness/measure.hpp>
#include <harness/team.hpp>

namespace tranship::bench {

struct Score {
  std::string contender;
  std::string method;
  double median_ns = 0;
  std::int64_t moved_bytes = -1;  ///< see MethodResult
};

/// A method that was not measured, and the reason; an empty `method` stands for the whole program.
struct Absence {
  std::string contender;
  std::string method;
  std::string reason;
};

struct ContestOptions {
  int rounds = 9;
  /// A turn repeats the operation for about this time, preparation included.
  std::int64_t turn_ns = 20'000'000;
  /// Least operations of a turn: enough that data other contestants left in the caches no longer affects the median.
  int ops_min = 1;
  std::int64_t (*clock_ns)() = now_ns;
};

class Contest {
 public:
  /// Opens `work` with all contenders. A contender that fails is left out from then on: its pointer is set to null.
  Contest(std::vector<std::shared_ptr<Contender>>& contenders, const contest::Work& work, ContestOptions options);
  /// Closes it.
  ~Contest();
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  /// Measures every method whose results were right, and returns scores in the order of contenders and their methods.
  /// The value of a turn is the median of its operations, and a score is the median of `rounds` turns.
  std::vector<Score> scores(contest::Freshness freshness);
  const std::vector<Absence>& absences() const noexcept { return absences_; }

 private:
  struct Entry {
    std::shared_ptr<Contender>* contender;
    int method;
    std::string method_name;
    std::int64_t moved_bytes;
  };
  void lose(const Entry& entry, const std::string& reason);

  std::vector<std::shared_ptr<Contender>>& contenders_;
  ContestOptions options_;
  std::vector<Entry> entries_;
  std::vector<Absence> absences_;
};

}  // namespace tranship::bench
