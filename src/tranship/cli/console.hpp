// Private: What all commands share of the terminal: output that survives a closed pipe, errors of one line, numbers for
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

/// Thrown when the output is not read any more; the command then ends quietly.
struct OutputClosed {};

/// Writes to standard output at once. Throws OutputClosed, or Error(io) when it cannot be written.
void print(std::string_view text);
/// The report of work that is done and stays: as print, but where it cannot be written, a line on standard error says
/// so and the command has succeeded all the same.
void print_report(std::string_view text);
/// What a command prints when it has also written the file at `path`, which makes it a report, or, where that is empty,
/// nothing else.
void print_beside_file(std::string_view path, std::string_view text);
/// A JSON document, indented; bytes that are no UTF-8 (of file names) are replaced.
std::string document_text(const Json& document);
void print_document(const Json& document);
/// `tranship: error: MESSAGE`, one line whatever the message holds. Never fails.
void print_error(std::string_view message);
/// Writes to standard error at once and as it is. Never fails.
void print_note(std::string_view text);
/// What is not seen (base/printable.hpp), as '?', so that a file name cannot write to the terminal.
std::string printable(std::string_view text);

/// For what asks a program to end: SIGINT, SIGTERM and SIGHUP. What is ignored, as nohup has it, stays so.
void handle_interrupts(const struct sigaction& action) noexcept;

enum class Stream : int { output = 1, errors = 2 };
bool is_terminal(Stream stream) noexcept;
/// Columns of the terminal behind standard error; 80 where it does not say.
int terminal_columns() noexcept;
/// Whether output goes to a terminal that shows colours, and the user has not set NO_COLOR.
bool colors_wanted() noexcept;

/// "850 ns", "3.1 ms", "12 s", "3 min 20 s"
std::string human_duration(std::int64_t duration_ns);

enum class Align : std::uint8_t { left, right };

/// Rows below headings, columns two spaces apart.
class TextTable {
 public:
  struct Column {
    std::string heading;
    Align align = Align::left;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);
  /// Every line indented by two spaces.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tranship::cli
