// `tranship help`, completion for shells, and the manual page. All are made from the commands' own help, so they cannot
// differ from it.

#include <algorithm>
#include <memory>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>

namespace tranship::cli {
namespace {

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> out;
  for (const CommandText& command : commands) out.push_back(command.name);
  return out;
}

/// Returns "-o, --output FILE.svg".
std::string shown(const OptionText& option) {
  std::string out = option.short_name.empty() ? "" : "-" + option.short_name;
  if (!option.long_name.empty()) out += (out.empty() ? "--" : ", --") + option.long_name;
  return option.value.empty() ? out : out + " " + option.value;
}

/// Makes a text safe within single quotes in every shell.
std::string unquoted(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\''), text.end());
  return text;
}

std::string option_words(const CommandText& command) {
  std::string out;
  for (const OptionText& option : command.options) {
    if (!option.short_name.empty()) out += fmt::format("{}-{}", out.empty() ? "" : " ", option.short_name);
    if (!option.long_name.empty()) out += fmt::format("{}--{}", out.empty() ? "" : " ", option.long_name);
  }
  return out;
}

std::string bash_completion(const std::vector<CommandText>& commands) {
  std::string cases;
  for (const CommandText& command : commands)
    cases += fmt::format("    {}) words='{}' ;;\n", command.name, option_words(command));
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
                     cases, join_text(names_of(commands), " "));
}

std::string zsh_completion(const std::vector<CommandText>& commands) {
  // A colon would end a name, and a bracket a description.
  const auto escaped = [](const std::string& text) {
    std::string out;
    for (const char c : unquoted(text)) out += (c == ':' || c == '[' || c == ']' ? "\\" : "") + std::string(1, c);
    return out;
  };
  std::string list, cases;
  for (const CommandText& command : commands) {
    list += fmt::format("    '{}:{}'\n", command.name, escaped(command.description));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const OptionText& option : command.options) {
      const std::string value = option.value.empty() ? "" : fmt::format(":{}:_files", escaped(option.value));
      for (const std::string& name : {option.short_name.empty() ? "" : "-" + option.short_name,
                                      option.long_name.empty() ? "" : "--" + option.long_name})
        if (!name.empty()) cases += fmt::format(" \\\n      '{}[{}]{}'", name, escaped(option.description), value);
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

std::string fish_completion(const std::vector<CommandText>& commands) {
  std::string out = "# Completion of tranship for fish: tranship completion fish | source\n";
  for (const CommandText& command : commands) {
    const std::string& name = command.name;
    out += fmt::format("complete -c tranship -n '__fish_use_subcommand' -f -a '{}' -d '{}'\n", name,
                       unquoted(command.description));
    for (const OptionText& option : command.options)
      out += fmt::format("complete -c tranship -n '__fish_seen_subcommand_from {}'{}{}{} -d '{}'\n", name,
                         option.short_name.empty() ? "" : " -s " + option.short_name,
                         option.long_name.empty() ? "" : " -l " + option.long_name, option.value.empty() ? "" : " -r",
                         unquoted(option.description));
  }
  return out;
}

/// Escapes a text for roff, so that nothing in it is a command.
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

std::string manual_page(const CommandLine& line) {
  std::string out = fmt::format(
      ".TH TRANSHIP 1 \"\" \"tranship {}\"\n.SH NAME\ntranship \\- moves array data between distributed memories\n"
      ".SH SYNOPSIS\n.B tranship\nCOMMAND [OPTIONS]\n.SH DESCRIPTION\n{}\n",
      TRANSHIP_VERSION, roff(line.description()));
  out += verbatim(line.footer());
  out += ".SH COMMANDS\n";
  for (const CommandText& command : line.commands()) {
    out += fmt::format(".SS {}\n{}\n", command.name, roff(command.description));
    for (const PositionalText& positional : command.positionals)
      out += fmt::format(".TP\n.I {}\n{}\n", roff(positional.name), roff(positional.description));
    for (const OptionText& option : command.options)
      out += fmt::format(".TP\n.B {}\n{}\n", roff(shown(option)), roff(option.description));
    if (!command.footer.empty()) out += ".PP\n" + verbatim(command.footer);
  }
  return out;
}

}  // namespace

void add_help(CommandLine& line) {
  Command command = line.add("help", "Print the help of a command");
  auto name = std::make_shared<std::string>();
  command.positional("COMMAND", *name, "Which one; without it, what commands there are");
  command.runs([&line, name] {
    if (name->empty()) return print(line.help());
    const std::vector<std::string> names = names_of(line.commands());
    if (std::find(names.begin(), names.end(), *name) == names.end())
      throw UsageError{fmt::format("no command '{}'; there are {}", printable(*name), join_text(names, ", "))};
    print(line.help_of(*name));
  });
}

void add_completion(CommandLine& line) {
  Command command = line.add("completion", "Print a script that completes commands in a shell");
  command.footer(R"help(Examples:
  eval "$(tranship completion bash)"
  tranship completion fish > ~/.config/fish/completions/tranship.fish)help");
  auto shell = std::make_shared<std::string>();
  command.positional("SHELL", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.runs([&line, shell] {
    const std::vector<CommandText> commands = line.commands();
    print(*shell == "bash"  ? bash_completion(commands)
          : *shell == "zsh" ? zsh_completion(commands)
                            : fish_completion(commands));
  });
}

void add_manual(CommandLine& line) {
  Command command = line.add("manual", "Print the page of the manual");
  command.footer("Example:\n  tranship manual | man -l -");
  command.runs([&line] { print(manual_page(line)); });
}

}  // namespace tranship::cli
