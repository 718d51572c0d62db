// One line on the terminal that tells how far a reshard is, rewritten in place; nothing where there is no terminal.
#pragma once

#include <cstdint>

#include <tranship/file/reshard.hpp>

namespace tranship::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ReshardProgress& progress);
  /// Takes the line away.
  void clear();

 private:
  enum class Place : std::uint8_t { terminal, nowhere };

  Place place_;
  std::int64_t began_ns_;
  std::int64_t shown_ns_ = 0;
  bool visible_ = false;
};

/// "  43%  1.2 GiB of 2.8 GiB, 3 of 8 parts  412.0 MiB/s  4.0 s left"; without rate and time before the first
/// byte, and "finishing" after the last, when files are checked and put on the disk.
std::string progress_text(const ReshardProgress& progress, std::int64_t elapsed_ns);

}  // namespace tranship::cli
