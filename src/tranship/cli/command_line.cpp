#include "tranship/cli/command_line.hpp"

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <sstream>

#include <CLI/CLI.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/did_you_mean.hpp>

namespace tranship::cli {
namespace {

/// Returns the end of a message about a wrong argument.
std::string hint(const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  return fmt::format("; see '{} --help'", command);
}

/// Suggests a word for the first one that is unknown to the chosen command, or to the program if none is chosen.
std::string suggestion(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App& place = chosen.empty() ? app : *chosen.front();
  const std::vector<std::string> left = place.remaining();
  if (left.empty()) return {};
  std::vector<std::string> known;
  const bool is_option = left.front().starts_with('-');
  if (is_option)
    for (const CLI::Option* option : place.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  else
    for (const CLI::App* command : place.get_subcommands(nullptr)) known.push_back(command->get_name());
  return did_you_mean(is_option ? left.front().substr(0, left.front().find('=')) : left.front(),
                      std::vector<std::string_view>(known.begin(), known.end()));
}

CommandText text_of(const CLI::App& command) {
  CommandText out{.name = command.get_name(), .description = command.get_description(), .footer = command.get_footer()};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      out.positionals.push_back({.name = option->get_name(true), .description = option->get_description()});
      continue;
    }
    OptionText text{.description = option->get_description()};
    if (!option->get_snames().empty()) text.short_name = option->get_snames().front();
    if (!option->get_lnames().empty()) text.long_name = option->get_lnames().front();
    if (option->get_items_expected_max() > 0) text.value = option->get_type_name();
    out.options.push_back(std::move(text));
  }
  return out;
}

/// Reads a number as CLI11 does, but refuses one that is too large, for which CLI11 takes the largest number.
bool is_in_range(const std::string& text, std::int64_t low, std::uint64_t high) {
  char* end = nullptr;
  errno = 0;
  const bool is_negative = text.find('-') != std::string::npos;  // strtoull accepts -1 as the largest number
  const std::int64_t below_0 = is_negative ? std::strtoll(text.c_str(), &end, 0) : 0;
  const std::uint64_t number = is_negative ? 0 : std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || errno != 0) return false;
  return is_negative ? below_0 >= low : number <= high && (low <= 0 || number >= static_cast<std::uint64_t>(low));
}

template <class T>
Option number_option(CLI::App& app, const std::string& names, T& value, const std::string& description) {
  return Option(*app.add_option(names, value, description), std::numeric_limits<T>::max());
}

/// An unset shell variable gives an empty text, which must not count as an absent option.
CLI::Option* not_empty(CLI::Option* option) {
  const auto check = [](std::string& text) { return text.empty() ? "expected a value, not an empty text" : ""; };
  return option->check(CLI::Validator(check, ""));
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::value_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option Option::last_counts() {
  option_->take_last();
  return *this;
}

Option Option::in_range(std::int64_t low, std::uint64_t high, const std::string& range_name) {
  const auto check = [low, high](std::string& text) {
    return is_in_range(text, low, high) ? std::string()
                                        : fmt::format("expected a whole number from {} to {}, not {}", low, high, text);
  };
  option_->check(CLI::Validator(check, range_name));
  return *this;
}

Option Option::in_range(std::int64_t low, std::uint64_t high) {
  return in_range(low, high, fmt::format("INT in [{} - {}]", low, high));
}

Option Option::positive() {
  return in_range(1, number_max_, "POSITIVE");
}

Option Option::not_negative() {
  return in_range(0, number_max_, "NONNEGATIVE");
}

Option Option::one_of(const std::vector<std::string>& choices) {
  option_->check(CLI::IsMember(choices));
  return *this;
}

void Command::footer(const std::string& text) {
  app_->footer(text);
}

Option Command::positional(const std::string& name, std::string& value, const std::string& description) {
  return Option(*not_empty(app_->add_option(name, value, description)));
}

Option Command::option(const std::string& names, std::string& value, const std::string& description) {
  return Option(*not_empty(app_->add_option(names, value, description)));
}

Option Command::option(const std::string& names, std::optional<std::string>& value, const std::string& description) {
  return Option(*not_empty(app_->add_option(names, value, description)));
}

Option Command::option(const std::string& names, std::optional<int>& value, const std::string& description) {
  return Option(*app_->add_option(names, value, description), std::numeric_limits<int>::max());
}

Option Command::option(const std::string& names, int& value, const std::string& description) {
  return number_option(*app_, names, value, description);
}

Option Command::option(const std::string& names, std::int64_t& value, const std::string& description) {
  return number_option(*app_, names, value, description);
}

Option Command::option(const std::string& names, std::uint64_t& value, const std::string& description) {
  return number_option(*app_, names, value, description);
}

void Command::flag(const std::string& name, bool& value, const std::string& description) {
  app_->add_flag(name, value, description);
}

void Command::runs(std::function<void()> action) {
  app_->callback(std::move(action));
}

void Command::runs_program(std::function<void(const std::vector<std::string>& program)> action) {
  app_->prefix_command();
  app_->callback([app = app_, action = std::move(action)] { action(app->remaining()); });
}

CommandLine::CommandLine(const About& about) : app_(std::make_unique<CLI::App>(about.description, about.name)) {
  app_->set_version_flag("--version", about.version, "Print the version and exit");
  app_->set_help_flag("-h,--help", "Print this help and exit");
  app_->get_formatter()->column_width(34);
  app_->require_subcommand(0, 1);
  app_->footer(about.footer);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

void CommandLine::run(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    if (app_->get_subcommands().empty()) throw UsageError{"no command was given" + hint(*app_)};
  } catch (const CLI::Success& wanted) {  // --help, --version
    std::ostringstream out, errors;
    app_->exit(wanted, out, errors);
    print(out.str());
  } catch (const CLI::ParseError& error) {
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    throw UsageError{error.what() + (is_unknown ? suggestion(*app_) : "") + hint(*app_)};
  }
}

std::string CommandLine::description() const {
  return app_->get_description();
}

std::string CommandLine::footer() const {
  return app_->get_footer();
}

std::vector<CommandText> CommandLine::commands() const {
  std::vector<CommandText> out;
  for (const CLI::App* command : app_->get_subcommands(nullptr)) out.push_back(text_of(*command));
  return out;
}

std::string CommandLine::help() const {
  // App::help() would return the help of the chosen command.
  return app_->get_formatter()->make_help(app_.get(), app_->get_name(), CLI::AppFormatMode::Normal);
}

std::string CommandLine::help_of(const std::string& command) const {
  return app_->get_subcommand(command)->help(app_->get_name());
}

}  // namespace tranship::cli
