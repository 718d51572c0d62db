// The commands. Each adds itself to the application: its options, its help, and what it does when it is chosen. A
// command parses, calls the library and prints; it holds no mechanism.
#pragma once

#include <CLI/App.hpp>

namespace tranship::cli {

void add_info(CLI::App& app);
void add_layout(CLI::App& app);
void add_plan(CLI::App& app);
void add_halo(CLI::App& app);
void add_reshard(CLI::App& app);
void add_demo(CLI::App& app);
void add_launch(CLI::App& app);
void add_simulate(CLI::App& app);
void add_help(CLI::App& app);
void add_completion(CLI::App& app);
void add_manual(CLI::App& app);

/// Thrown when a program that was launched or simulated has ended so: the command ends with its exit code.
struct ProgramFailed {
  int exit_code = 1;
};

}  // namespace tranship::cli
