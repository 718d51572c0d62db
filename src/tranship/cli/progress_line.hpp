// Private: Shows the progress of a reshard on standard error: a bar that is rewritten in place on a terminal, and plain
// lines at intervals elsewhere, so that a log of a long run shows progress and a short run logs nothing.
#pragma once

#include <cstdint>

#include <tranship/file/reshard.hpp>

namespace tranship::cli {

class ProgressLine {
 public:
  enum class Place : std::uint8_t { terminal, log, nowhere };
  /// Returns terminal if standard error is one.
  static Place standard_place();

  explicit ProgressLine(Place place);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ReshardProgress& progress);
  /// Removes the bar.
  void clear();

 private:
  Place place_;
  std::int64_t began_ns_;
  Index began_bytes_ = -1;  // done by an earlier run
  std::int64_t shown_ns_ = 0;
  Index shown_percent_ = 0;
  bool visible_ = false;
};

/// Returns "  43%  1.2 GiB of 2.8 GiB, 3 of 8 parts  412.0 MiB/s  4.0 s left". Before the first byte it has no rate and
/// time; after the last it says "finishing", while files are checked and written to the disk. `resumed_bytes` took no
/// time.
std::string progress_text(const ReshardProgress& progress, std::int64_t elapsed_ns, Index resumed_bytes = 0);

/// Returns that text after a bar, which fills the remaining columns up to 40; there is no bar if hardly any remain.
std::string progress_bar(const ReshardProgress& progress, std::int64_t elapsed_ns, Index resumed_bytes, int columns);

}  // namespace tranship::cli
