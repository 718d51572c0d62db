// Private: ReplayArrows, which step of a replay needs which other one.
#pragma once

#include <tranship/program/replay/data.hpp>

namespace tranship::replays {

/// Finds nothing where the options do not ask for arrows.
class ReplayArrows {
 public:
  /// All of them must outlive it. Arrows go to `out`.
  ReplayArrows(const ReplayOptions& options, const ReplayData& data, Replay& out)
      : options_(options), data_(data), out_(out) {}

  bool are_found() const { return options_.arrows == ReplayOptions::Arrows::find; }
  void draw(std::int32_t from, std::int32_t to, StepArrow::Kind kind);
  /// From the steps that have written what step number `id` of a rank reads.
  void draw_sources(Rank rank, const Step& step, std::int32_t id, Part part);
  /// At the end: each arrow once, in order.
  void sort();

 private:
  const ReplayOptions& options_;
  const ReplayData& data_;
  Replay& out_;
};

}  // namespace tranship::replays
