#include "tranship/cli/console.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship::cli {
namespace {

// Returns 0, or the errno of the failure.
int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string padded(const std::string& cell, std::size_t width, Align align) {
  return align == Align::left ? fmt::format("{:<{}}", cell, width) : fmt::format("{:>{}}", cell, width);
}

}  // namespace

void print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) throw OutputClosed();
  if (error != 0) throw_error(ErrorCode::io, "cannot write the output: {}", std::strerror(error));
}

void print_report(std::string_view text) {
  if (const int error = write_all(STDOUT_FILENO, text); error != 0 && error != EPIPE)
    print_note(fmt::format("tranship: the work is done, but its report cannot be written: {}\n", std::strerror(error)));
}

void print_beside_file(std::string_view path, std::string_view text) {
  path.empty() ? print(text) : print_report(text);
}

std::string document_text(const Json& document) {
  return document.dump({.indent = 2, .invalid = InvalidUtf8::replace}) + "\n";
}

void print_document(const Json& document) {
  print(document_text(document));
}

void print_note(std::string_view text) {
  write_all(STDERR_FILENO, text);
}

void print_error(std::string_view message) {
  print_note(fmt::format("tranship: error: {}\n", printable(message)));
}

std::string printable(std::string_view text) {
  return one_line(text);
}

void handle_interrupts(const struct sigaction& action) noexcept {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (struct sigaction before = {}; ::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);
}

bool is_terminal(Stream stream) noexcept {
  return ::isatty(static_cast<int>(stream)) == 1;
}

int terminal_columns() noexcept {
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool colors_wanted() noexcept {
  const char* off = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(Stream::output) && (!off || !*off) && term && std::strcmp(term, "dumb") != 0;
}

std::string human_duration(std::int64_t duration_ns) {
  const double ns = static_cast<double>(duration_ns);
  if (ns < 1e3) return fmt::format("{} ns", duration_ns);
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
  if (ns < 60e9) return fmt::format("{:.1f} s", ns / 1e9);
  const std::int64_t seconds = duration_ns / 1'000'000'000;
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

void TextTable::add(std::vector<std::string> cells) {
  TRANSHIP_ASSERT(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].heading.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  auto line = [&](auto&& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) text += "  " + padded(cell(c), widths[c], columns_[c].align);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](std::size_t c) -> const std::string& { return columns_[c].heading; });
  for (const auto& row : rows_) line([&](std::size_t c) -> const std::string& { return row[c]; });
  return out;
}

}  // namespace tranship::cli
