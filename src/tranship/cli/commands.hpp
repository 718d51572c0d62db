// Private: The commands. Each function adds a command to the command line: its options, its help and its action. A
// command parses, calls the library and prints; it holds no mechanism.
#pragma once

#include <tranship/cli/command_line.hpp>

namespace tranship::cli {

void add_info(CommandLine& line);
void add_layout(CommandLine& line);
void add_plan(CommandLine& line);
void add_halo(CommandLine& line);
void add_reshard(CommandLine& line);
void add_demo(CommandLine& line);
void add_launch(CommandLine& line);
void add_simulate(CommandLine& line);
void add_check(CommandLine& line);
void add_run(CommandLine& line);
void add_show(CommandLine& line);
void add_predict(CommandLine& line);
void add_measure(CommandLine& line);
void add_help(CommandLine& line);
void add_completion(CommandLine& line);
void add_manual(CommandLine& line);

/// Thrown when a launched or simulated program has failed: the command ends with its exit code.
struct ProgramFailed {
  int exit_code = 1;
};

}  // namespace tranship::cli
