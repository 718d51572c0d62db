// What is made of the commands' own help, so that it cannot differ from it: `tranship help`, completion for shells, and
// the page of the manual.

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>

namespace tranship::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> out;
  for (const CLI::App* command : commands) out.push_back(command->get_name());
  return out;
}

/// An option as all three need it.
struct Word {
  std::string short_name;  // "o", of "-o"
  std::string long_name;   // "output", of "--output"
  std::string description;
  std::string value;  // what it takes, "FILE.svg"; empty: nothing

  std::string shown() const {
    std::string out = short_name.empty() ? "" : "-" + short_name;
    if (!long_name.empty()) out += (out.empty() ? "--" : ", --") + long_name;
    return value.empty() ? out : out + " " + value;
  }
};

std::vector<Word> options_of(const CLI::App& command) {
  std::vector<Word> out;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    Word word{.description = option->get_description()};
    if (!option->get_snames().empty()) word.short_name = option->get_snames().front();
    if (!option->get_lnames().empty()) word.long_name = option->get_lnames().front();
    if (option->get_items_expected_max() > 0) word.value = option->get_type_name();
    out.push_back(std::move(word));
  }
  return out;
}

std::string help_of(const CLI::App& app, const CLI::App* command) {
  if (command) return command->help(app.get_name());
  return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

/// Within single quotes, in every shell.
std::string unquoted(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\''), text.end());
  return text;
}

std::string option_words(const CLI::App& command) {
  std::string out;
  for (const Word& word : options_of(command)) {
    if (!word.short_name.empty()) out += fmt::format("{}-{}", out.empty() ? "" : " ", word.short_name);
    if (!word.long_name.empty()) out += fmt::format("{}--{}", out.empty() ? "" : " ", word.long_name);
  }
  return out;
}

std::string bash_completion(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : commands_of(app))
    cases += fmt::format("    {}) words='{}' ;;\n", command->get_name(), option_words(*command));
  return fmt::format(R"script(# Completion of tranship for bash: eval "$(tranship completion bash)"
_tranship() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=''
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [ "$COMP_CWORD" -eq 1 ] || [ "${{COMP_WORDS[1]}}" = help ]; then
    words='{}'
  elif [[ $current != -* ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _tranship tranship
)script",
                     cases, join_text(names_of(commands_of(app)), " "));
}

std::string zsh_completion(const CLI::App& app) {
  // A colon ends a name, a bracket a description.
  const auto escaped = [](const std::string& text) {
    std::string out;
    for (const char c : unquoted(text)) out += (c == ':' || c == '[' || c == ']' ? "\\" : "") + std::string(1, c);
    return out;
  };
  std::string list, cases;
  for (const CLI::App* command : commands_of(app)) {
    list += fmt::format("    '{}:{}'\n", command->get_name(), escaped(command->get_description()));
    cases += fmt::format("    {}) _arguments", command->get_name());
    for (const Word& word : options_of(*command)) {
      const std::string value = word.value.empty() ? "" : fmt::format(":{}:_files", escaped(word.value));
      for (const std::string& name :
           {word.short_name.empty() ? "" : "-" + word.short_name, word.long_name.empty() ? "" : "--" + word.long_name})
        if (!name.empty()) cases += fmt::format(" \\\n      '{}[{}]{}'", name, escaped(word.description), value);
    }
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return fmt::format(R"script(#compdef tranship
# Completion of tranship for zsh: eval "$(tranship completion zsh)"
_tranship() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then
    _describe command commands
    return
  fi
  case $words[2] in
{}  esac
}}
compdef _tranship tranship
)script",
                     list, cases);
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "# Completion of tranship for fish: tranship completion fish | source\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    out += fmt::format("complete -c tranship -n '__fish_use_subcommand' -f -a '{}' -d '{}'\n", name,
                       unquoted(command->get_description()));
    for (const Word& word : options_of(*command))
      out += fmt::format("complete -c tranship -n '__fish_seen_subcommand_from {}'{}{}{} -d '{}'\n", name,
                         word.short_name.empty() ? "" : " -s " + word.short_name,
                         word.long_name.empty() ? "" : " -l " + word.long_name, word.value.empty() ? "" : " -r",
                         unquoted(word.description));
  }
  return out;
}

/// As roff reads it: nothing of it is a command.
std::string roff(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string verbatim(const std::string& text) {
  return text.empty() ? "" : fmt::format(".nf\n{}\n.fi\n", roff(text));
}

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH TRANSHIP 1 \"\" \"tranship {}\"\n.SH NAME\ntranship \\- moves array data between distributed memories\n"
      ".SH SYNOPSIS\n.B tranship\nCOMMAND [OPTIONS]\n.SH DESCRIPTION\n{}\n",
      TRANSHIP_VERSION, roff(app.get_description()));
  out += verbatim(app.get_footer());
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    out += fmt::format(".SS {}\n{}\n", command->get_name(), roff(command->get_description()));
    for (const CLI::Option* option : command->get_options())
      if (option->get_positional())
        out += fmt::format(".TP\n.I {}\n{}\n", roff(option->get_name(true)), roff(option->get_description()));
    for (const Word& word : options_of(*command))
      out += fmt::format(".TP\n.B {}\n{}\n", roff(word.shown()), roff(word.description));
    if (!command->get_footer().empty()) out += ".PP\n" + verbatim(command->get_footer());
  }
  return out;
}

}  // namespace

void add_help(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "Print the help of a command");
  auto name = std::make_shared<std::string>();
  command->add_option("COMMAND", *name, "Which one; without it, what commands there are");
  command->callback([&app, name] {
    if (name->empty()) return print(help_of(app, nullptr));
    for (const CLI::App* other : commands_of(app))
      if (other->get_name() == *name) return print(help_of(app, other));
    throw UsageError{
        fmt::format("no command '{}'; there are {}", printable(*name), join_text(names_of(commands_of(app)), ", "))};
  });
}

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands in a shell");
  command->footer(R"help(Examples:
  eval "$(tranship completion bash)"
  tranship completion fish > ~/.config/fish/completions/tranship.fish)help");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell] {
    print(*shell == "bash" ? bash_completion(app) : *shell == "zsh" ? zsh_completion(app) : fish_completion(app));
  });
}

void add_manual(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Print the page of the manual");
  command->footer("Example:\n  tranship manual | man -l -");
  command->callback([&app] { print(manual_page(app)); });
}

}  // namespace tranship::cli
