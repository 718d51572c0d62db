// Private: The parts of the command line: commands, and the options and arguments that fill variables of theirs.
// Only command_line.cpp includes the parser, which takes longer to compile than any command. Next: commands.hpp.
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

/// What may be said of an option after its variable and its description. A handle: copies are the same option.
class Option {
 public:
  /// `number_max` is the largest that its variable holds, where that is a whole number.
  explicit Option(CLI::Option& option, std::uint64_t number_max = 0) : option_(&option), number_max_(number_max) {}

  Option required();
  /// What the help calls the value: FILE, SIZE.
  Option value_name(const std::string& name);
  /// The help shows what the variable holds now.
  Option shows_default();
  /// May be given again: the last one counts. By default an option that is given twice is an error.
  Option last_counts();
  Option in_range(std::int64_t low, std::uint64_t high);
  Option positive();      ///< from 1 to what the variable holds
  Option not_negative();  ///< from 0
  Option one_of(const std::vector<std::string>& choices);

 private:
  Option in_range(std::int64_t low, std::uint64_t high, const std::string& range_name);

  CLI::Option* option_;
  std::uint64_t number_max_;
};

/// A command while it is described. A handle: copies are the same command. `names` is "--from" or "-n,--ranks".
/// Variables are filled when the command line is parsed; the action given to runs() keeps them alive until then.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  /// What the help ends with.
  void footer(const std::string& text);

  Option positional(const std::string& name, std::string& value, const std::string& description);
  Option option(const std::string& names, std::string& value, const std::string& description);
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& description);
  Option option(const std::string& names, std::optional<int>& value, const std::string& description);
  Option option(const std::string& names, int& value, const std::string& description);
  Option option(const std::string& names, std::int64_t& value, const std::string& description);
  Option option(const std::string& names, std::uint64_t& value, const std::string& description);
  void flag(const std::string& name, bool& value, const std::string& description);

  /// What the command does when it is chosen and its arguments are right.
  void runs(std::function<void()> action);
  /// The same of a command that ends with a program and its arguments: all words from the first one on that is no
  /// option of the command.
  void runs_program(std::function<void(const std::vector<std::string>& program)> action);

 private:
  CLI::App* app_;
};

/// An option as the help names it.
struct OptionText {
  std::string short_name;  // "o", of "-o"
  std::string long_name;   // "output", of "--output"
  std::string description;
  std::string value;  // what it takes, "FILE.svg"; empty: nothing
};

struct PositionalText {
  std::string name;
  std::string description;
};

/// A command as the help describes it.
struct CommandText {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<PositionalText> positionals;
  std::vector<OptionText> options;
};

/// All commands of one program. Each has -h and --help.
class CommandLine {
 public:
  struct About {
    std::string name;
    std::string description;
    std::string footer;
    std::string version;  // what --version prints
  };
  explicit CommandLine(const About& about);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add(const std::string& name, const std::string& description);

  /// Parses the arguments and runs the command that they choose, or prints the help or the version that they ask for.
  /// Throws UsageError where they make no sense, and what the command throws.
  void run(int argc, const char* const* argv);

  std::string description() const;
  std::string footer() const;
  std::vector<CommandText> commands() const;
  /// What --help prints.
  std::string help() const;
  /// What --help prints behind the name of one of the commands.
  std::string help_of(const std::string& command) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tranship::cli
