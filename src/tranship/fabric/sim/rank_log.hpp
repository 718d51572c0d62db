// Private: RankLog: the access log of one simulated rank, which reports to the race detector of its simulation.
#pragma once

#include <optional>

#include <tranship/base/error.hpp>
#include <tranship/fabric/sim/access_log.hpp>
#include <tranship/fabric/sim/race_detector.hpp>

namespace tranship {

class Simulation;

class RankLog final : public AccessLog {
 public:
  /// `simulation` and `detector` must outlive it. The heaps of all ranks lie at [heaps, heaps + heaps_bytes).
  RankLog(const Simulation& simulation, RaceDetector& detector, Rank rank, const void* heaps, std::size_t heaps_bytes);

  void settle() noexcept override;
  /// Returns the first race of the rank's accesses.
  const std::optional<Error>& race() const noexcept { return race_; }

 private:
  void tell_atomic(Address first, std::size_t bytes, Atomic how, const void* code) noexcept override;
  void find_others() noexcept override;
  void tell();
  template <class F>
  void keeping_race(F&& f) noexcept;
  RaceDetector::Bytes bytes_at(Address first, Address end) const;

  const Simulation& simulation_;
  RaceDetector& detector_;
  Rank rank_;
  std::vector<Run> told_;
  std::optional<Error> race_;
};

}  // namespace tranship
