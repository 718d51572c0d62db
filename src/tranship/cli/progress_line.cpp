#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/progress_line.hpp>

namespace tranship::cli {
namespace {

// A line is not drawn for what is over before it can be read, and no oftener than an eye follows.
constexpr std::int64_t first_ns = 300'000'000;
constexpr std::int64_t interval_ns = 100'000'000;
constexpr const char* erase_line = "\r\x1b[K";

}  // namespace

std::string progress_text(const ReshardProgress& progress, std::int64_t elapsed_ns) {
  const double share = progress.bytes_total > 0
                           ? static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total)
                           : 1;
  std::string out = fmt::format("{:3.0f}%  {} of {}, {} of {}", share * 100, human_bytes(progress.bytes_done),
                                human_bytes(progress.bytes_total), grouped(progress.parts_done),
                                counted(progress.parts_total, "part"));
  if (progress.bytes_done == progress.bytes_total) {
    out += "  finishing";
  } else if (progress.bytes_done > 0 && elapsed_ns > 0) {
    const double rate = static_cast<double>(progress.bytes_done) * 1e9 / static_cast<double>(elapsed_ns);
    const auto left_ns = static_cast<std::int64_t>(static_cast<double>(elapsed_ns) * (1 / share - 1));
    out += fmt::format("  {}/s  {} left", human_bytes(static_cast<Index>(rate)), human_duration(left_ns));
  }
  return out;
}

ProgressLine::ProgressLine()
    : place_(is_terminal(Stream::errors) ? Place::terminal : Place::nowhere), began_ns_(now_ns()) {}

void ProgressLine::show(const ReshardProgress& progress) {
  if (place_ == Place::nowhere) return;
  const std::int64_t now = now_ns();
  if (now - began_ns_ < first_ns || now - shown_ns_ < interval_ns) return;
  shown_ns_ = now;
  visible_ = true;
  std::string text = progress_text(progress, now - began_ns_);
  // A line that wraps could not be rewritten.
  text.resize(std::min(text.size(), static_cast<std::size_t>(terminal_columns() - 1)));
  print_note(erase_line + text);
}

void ProgressLine::clear() {
  if (!visible_) return;
  print_note(erase_line);
  visible_ = false;
}

}  // namespace tranship::cli
