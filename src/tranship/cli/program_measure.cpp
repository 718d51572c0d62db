// `tranship measure`: what this machine takes for the steps of programs.
#include <tranship/cli/commands.hpp>
namespace tranship::cli {
void add_measure(CommandLine&) {}
}  // namespace tranship::cli
