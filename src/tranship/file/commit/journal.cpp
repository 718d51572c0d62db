#include "tranship/file/commit/journal.hpp"

#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/io/checksum.hpp>

namespace tranship {
namespace {

std::uint32_t checksum_of(std::string_view text) {
  return crc32_of(std::as_bytes(std::span(text)));
}

std::string line_of(const std::string& text) {
  return fmt::format("{} {:08x}\n", text, checksum_of(text));
}

/// Removes the first line from `rest` and returns its text without the checksum; nothing if the checksum is wrong.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos ||
      fmt::format("{:08x}", checksum_of(line.substr(0, space))) != line.substr(space + 1))
    return std::nullopt;
  rest.remove_prefix(end + 1);
  return line.substr(0, space);
}

/// Removes the next word and parses it as a number.
template <class Number>
bool take_number(std::string_view& line, Number& out, int base = 10) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), out, base);
  return failure == std::errc() && end == word.data() + word.size();
}

constexpr std::string_view head = "tranship journal 1 ";

std::optional<JournalSubject> subject_of(std::string_view line) {
  if (!line.starts_with(head)) return std::nullopt;
  line.remove_prefix(head.size());
  JournalSubject out;
  if (!take_number(line, out.work, 16) || !take_number(line, out.inode)) return std::nullopt;
  out.name = line;
  return out;
}

std::optional<FinishedBlocks> blocks_of(std::string_view line) {
  FinishedBlocks out;
  const bool good = take_number(line, out.job) && take_number(line, out.part) && take_number(line, out.first) &&
                    take_number(line, out.count) && take_number(line, out.contribution, 16) && line.empty();
  if (!good || out.job < 0 || out.part < 0 || out.first < 0 || out.count < 1) return std::nullopt;
  return out;
}

}  // namespace

JournalContents read_journal(const std::string& path) {
  JournalContents out;
  const Result<std::string> read = attempt([&] { return posix::read_text(path, std::numeric_limits<Index>::max()); });
  if (!read) return out;
  const std::string& text = read.value();
  std::string_view rest = text;
  const std::optional<std::string_view> first = take_line(rest);
  const std::optional<JournalSubject> subject = first ? subject_of(*first) : std::nullopt;
  if (!subject) return out;
  out.subject = *subject;
  for (;;) {
    out.good_bytes = static_cast<Index>(text.size() - rest.size());
    const std::optional<std::string_view> line = take_line(rest);
    const std::optional<FinishedBlocks> blocks = line ? blocks_of(*line) : std::nullopt;
    if (!blocks) return out;
    out.finished.push_back(*blocks);
  }
}

Journal Journal::begin(const std::string& path, const JournalSubject& subject) {
  posix::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.number() < 0) throw posix::io_error("create", path, errno);
  Journal out(path, std::move(file), 0);
  out.write(line_of(fmt::format("{}{:016x} {} {}", head, subject.work, subject.inode, subject.name)));
  return out;
}

Journal Journal::resume(const std::string& path, const JournalContents& contents) {
  posix::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.number() < 0) throw posix::io_error("open", path, errno);
  if (::ftruncate(file.number(), contents.good_bytes) != 0) throw posix::io_error("shorten", path, errno);
  return Journal(path, std::move(file), contents.good_bytes);
}

void Journal::write(const std::string& text) {
  posix::write_at(file_.number(), path_, end_bytes_, std::as_bytes(std::span(text)));
  if (posix::disk.fdatasync(file_.number()) != 0) throw posix::io_error("sync", path_, errno);
  end_bytes_ += static_cast<Index>(text.size());
}

void Journal::append(std::span<const FinishedBlocks> finished) {
  std::string text;
  for (const FinishedBlocks& f : finished)
    text += line_of(fmt::format("{} {} {} {} {:08x}", f.job, f.part, f.first, f.count, f.contribution));
  if (!text.empty()) write(text);
}

}  // namespace tranship
