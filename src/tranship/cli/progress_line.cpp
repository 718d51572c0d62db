#include "tranship/cli/progress_line.hpp"

#include <algorithm>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/console.hpp>

namespace tranship::cli {
namespace {

// No bar for a run that ends before it can be read, and no updates faster than the eye.
constexpr std::int64_t first_ns = 300'000'000;
constexpr std::int64_t interval_ns = 100'000'000;
// A log is read later: one line per tenth, and lines at intervals if a tenth takes long.
constexpr std::int64_t first_log_ns = 3'000'000'000;
constexpr std::int64_t log_interval_ns = 30'000'000'000;
constexpr Index log_percent = 10;
constexpr const char* erase_line = "\r\x1b[K";
constexpr int bar_columns_min = 8;
constexpr int bar_columns_max = 40;

double share_of(const ReshardProgress& progress) {
  return progress.bytes_total > 0 ? static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total)
                                  : 1;
}

}  // namespace

std::string progress_text(const ReshardProgress& progress, std::int64_t elapsed_ns, Index resumed_bytes) {
  std::string out = fmt::format("{:3.0f}%  {} of {}, {} of {}", share_of(progress) * 100,
                                human_bytes(progress.bytes_done), human_bytes(progress.bytes_total),
                                grouped(progress.parts_done), counted(progress.parts_total, "part"));
  const Index moved_bytes = progress.bytes_done - resumed_bytes;
  if (progress.bytes_done == progress.bytes_total) {
    out += "  finishing";
  } else if (moved_bytes > 0 && elapsed_ns > 0) {
    const double rate = static_cast<double>(moved_bytes) * 1e9 / static_cast<double>(elapsed_ns);
    const double left_ns = static_cast<double>(progress.bytes_total - progress.bytes_done) / rate * 1e9;
    out += fmt::format("  {}/s  {} left", human_bytes(static_cast<Index>(rate)),
                       human_duration(static_cast<std::int64_t>(left_ns)));
  }
  return out;
}

std::string progress_bar(const ReshardProgress& progress, std::int64_t elapsed_ns, Index resumed_bytes, int columns) {
  const std::string text = progress_text(progress, elapsed_ns, resumed_bytes);
  const int room = std::min(columns - static_cast<int>(text.size()) - 3, bar_columns_max);  // brackets and a space
  if (room < bar_columns_min) return text.substr(0, static_cast<std::size_t>(std::max(columns, 0)));
  const int full = std::clamp(static_cast<int>(share_of(progress) * room), 0, room);
  return fmt::format("[{}{}] {}", std::string(static_cast<std::size_t>(full), '='),
                     std::string(static_cast<std::size_t>(room - full), ' '), text);
}

ProgressLine::Place ProgressLine::standard_place() {
  return is_terminal(Stream::errors) ? Place::terminal : Place::log;
}

ProgressLine::ProgressLine(Place place) : place_(place), began_ns_(now_ns()) {}

void ProgressLine::show(const ReshardProgress& progress) {
  if (place_ == Place::nowhere) return;
  const std::int64_t now = now_ns(), elapsed_ns = now - began_ns_;
  if (began_bytes_ < 0) began_bytes_ = progress.bytes_done;
  if (place_ == Place::log) {
    const auto percent = static_cast<Index>(share_of(progress) * 100);
    const bool due = percent / log_percent > shown_percent_ / log_percent || now - shown_ns_ >= log_interval_ns;
    if (elapsed_ns < first_log_ns || !due) return;
    shown_ns_ = now;
    shown_percent_ = percent;
    return print_note(progress_text(progress, elapsed_ns, began_bytes_) + "\n");
  }
  if (elapsed_ns < first_ns || now - shown_ns_ < interval_ns) return;
  shown_ns_ = now;
  visible_ = true;
  // A line that wraps could not be rewritten.
  print_note(erase_line + progress_bar(progress, elapsed_ns, began_bytes_, terminal_columns() - 1));
}

void ProgressLine::clear() {
  if (!visible_) return;
  print_note(erase_line);
  visible_ = false;
}

}  // namespace tranship::cli
