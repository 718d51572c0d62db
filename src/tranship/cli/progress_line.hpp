// Private: How far a reshard is, on standard error: on a terminal a bar that is rewritten in place, elsewhere plain
// lines now and then, so that a log of a long run says something and one of a short run says nothing.
#pragma once

#include <cstdint>

#include <tranship/file/reshard.hpp>

namespace tranship::cli {

class ProgressLine {
 public:
  enum class Place : std::uint8_t { terminal, log, nowhere };
  /// The terminal, where standard error is one.
  static Place standard_place();

  explicit ProgressLine(Place place);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ReshardProgress& progress);
  /// Takes the bar away.
  void clear();

 private:
  Place place_;
  std::int64_t began_ns_;
  Index began_bytes_ = -1;  // done by an earlier run
  std::int64_t shown_ns_ = 0;
  Index shown_percent_ = 0;
  bool visible_ = false;
};

/// "  43%  1.2 GiB of 2.8 GiB, 3 of 8 parts  412.0 MiB/s  4.0 s left"; without rate and time before the first
/// byte, and "finishing" after the last, when files are checked and put on the disk. `resumed_bytes` took no time.
std::string progress_text(const ReshardProgress& progress, std::int64_t elapsed_ns, Index resumed_bytes = 0);

/// The same behind a bar that takes what room there is in so many columns, at most 40; no bar where there is hardly
/// any.
std::string progress_bar(const ReshardProgress& progress, std::int64_t elapsed_ns, Index resumed_bytes, int columns);

}  // namespace tranship::cli
