// Private: The parts of the command line: commands, and the options and arguments that fill their variables. Only
// command_line.cpp includes the parser, which takes longer to compile than any command. Next: commands.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tranship::cli {

/// The properties of an option beyond its variable and description. A handle: copies are the same option.
class Option {
 public:
  /// `number_max` is the largest value of its variable, if that is a whole number.
  explicit Option(CLI::Option& option, std::uint64_t number_max = 0) : option_(&option), number_max_(number_max) {}

  Option required();
  /// The name of the value in the help: FILE, SIZE.
  Option value_name(const std::string& name);
  /// Shows the present value of the variable in the help.
  Option shows_default();
  /// Allows the option several times; the last one counts. By default, a repeated option is an error.
  Option last_counts();
  Option in_range(std::int64_t low, std::uint64_t high);
  Option positive();      ///< from 1 to the largest value of the variable
  Option not_negative();  ///< 0 or more
  Option one_of(const std::vector<std::string>& choices);

 private:
  Option in_range(std::int64_t low, std::uint64_t high, const std::string& range_name);

  CLI::Option* option_;
  std::uint64_t number_max_;
};

/// A command being described. A handle: copies are the same command. `names` is "--from" or "-n,--ranks". Parsing the
/// command line fills the variables; the action given to runs() must keep them alive until then.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  /// Sets the end of the help.
  void footer(const std::string& text);

  Option positional(const std::string& name, std::string& value, const std::string& description);
  Option option(const std::string& names, std::string& value, const std::string& description);
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& description);
  Option option(const std::string& names, std::optional<int>& value, const std::string& description);
  Option option(const std::string& names, int& value, const std::string& description);
  Option option(const std::string& names, std::int64_t& value, const std::string& description);
  Option option(const std::string& names, std::uint64_t& value, const std::string& description);
  void flag(const std::string& name, bool& value, const std::string& description);

  /// Sets the action of the command, which runs when the command is chosen and its arguments are right.
  void runs(std::function<void()> action);
  /// Sets the action of a command that ends with a program and its arguments: all words from the first one that is not
  /// an option of the command.
  void runs_program(std::function<void(const std::vector<std::string>& program)> action);

 private:
  CLI::App* app_;
};

/// An option in the help.
struct OptionText {
  std::string short_name;  // "o", of "-o"
  std::string long_name;   // "output", of "--output"
  std::string description;
  std::string value;  // the value that it takes, "FILE.svg"; empty: none
};

struct PositionalText {
  std::string name;
  std::string description;
};

/// A command in the help.
struct CommandText {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<PositionalText> positionals;
  std::vector<OptionText> options;
};

/// All commands of one program. Each of them has -h and --help.
class CommandLine {
 public:
  struct About {
    std::string name;
    std::string description;
    std::string footer;
    std::string version;  // printed by --version
  };
  explicit CommandLine(const About& about);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add(const std::string& name, const std::string& description);

  /// Parses the arguments and runs the chosen command, or prints the help or the version. Throws UsageError for wrong
  /// arguments, and whatever the command throws.
  void run(int argc, const char* const* argv);

  std::string description() const;
  std::string footer() const;
  std::vector<CommandText> commands() const;
  /// Returns the text that --help prints.
  std::string help() const;
  /// Returns the text that --help prints after the name of a command.
  std::string help_of(const std::string& command) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tranship::cli
