// Private: Access to the terminal for all commands: output that survives a closed pipe, errors of one line, numbers for
// people, tables. Next: commands.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <signal.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/index.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship::cli {

/// Thrown when the reader of the output has closed it; the command then ends silently.
struct OutputClosed {};

/// Writes to standard output without a buffer. Throws OutputClosed, or Error(io) when it cannot write.
void print(std::string_view text);
/// Prints a report of work that is already done. If it cannot be written, prints a line on standard error, and the
/// command still succeeds.
void print_report(std::string_view text);
/// Prints the text of a command that may also write a file: a report if `path` names that file, else as print() does.
void print_beside_file(std::string_view path, std::string_view text);
/// Returns an indented JSON document; bytes that are not UTF-8 (in file names) are replaced.
std::string document_text(const Json& document);
void print_document(const Json& document);
/// Prints `tranship: error: MESSAGE` on one line, whatever the message contains. Never fails.
void print_error(std::string_view message);
/// Writes to standard error without a buffer and unchanged. Never fails.
void print_note(std::string_view text);
/// Replaces invisible characters (base/printable.hpp) by '?', so that a file name cannot control the terminal.
std::string printable(std::string_view text);

/// Sets the action for SIGINT, SIGTERM and SIGHUP. A signal that is ignored, as under nohup, stays ignored.
void handle_interrupts(const struct sigaction& action) noexcept;

enum class Stream : int { output = 1, errors = 2 };
bool is_terminal(Stream stream) noexcept;
/// Returns the columns of the terminal on standard error; 80 if it does not tell.
int terminal_columns() noexcept;
/// Returns true if standard output is a terminal that shows colours and the user has not set NO_COLOR.
bool colors_wanted() noexcept;

/// Returns "850 ns", "3.1 ms", "12 s", "3 min 20 s".
std::string human_duration(std::int64_t duration_ns);

enum class Align : std::uint8_t { left, right };

/// Rows below headings, with two spaces between columns.
class TextTable {
 public:
  struct Column {
    std::string heading;
    Align align = Align::left;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);
  /// Returns the table, with every line indented by two spaces.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tranship::cli
