// Private: ReplayArrows, which step of a replay depends on which.
#pragma once

#include <tranship/program/replay/data.hpp>

namespace tranship::replays {

/// Does nothing unless the options ask for arrows.
class ReplayArrows {
 public:
  /// All arguments must outlive it. Arrows go to `out`.
  ReplayArrows(const ReplayOptions& options, const ReplayData& data, Replay& out)
      : options_(options), data_(data), out_(out) {}

  bool are_found() const { return options_.arrows == ReplayOptions::Arrows::find; }
  void draw(std::int32_t from, std::int32_t to, StepArrow::Kind kind);
  /// Draws arrows from the steps that have written what step number `id` of a rank reads.
  void draw_sources(Rank rank, const Step& step, std::int32_t id, Part part);
  /// At the end: sorts the arrows and removes repetitions.
  void sort();

 private:
  const ReplayOptions& options_;
  const ReplayData& data_;
  Replay& out_;
};

}  // namespace tranship::replays
