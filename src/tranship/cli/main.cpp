// tranship, the command line: exit code 0 for success, 1 for a failure, 2 for wrong arguments. Every error is one line
// on standard error. Documented in docs/cli.md.

#include <csignal>
#include <new>
#include <tuple>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>

namespace tranship::cli {
namespace {

enum ExitCode : int { succeeded = 0, failed = 1, misused = 2 };

constexpr const char* about =
    "tranship moves array data between distributed memories.\n"
    "Say where an array is and where it must be: it plans the moves and makes them.\n";

constexpr const char* layouts = R"(A LAYOUT says how an array is cut among ranks:

  f64[8192,8192] @ 4x1 : block, whole            four ranks, each a band of rows
  f64[517,389] @ 2x3 : cyclic(7), cyclic(5)      tiles dealt out like cards
  f32[344,403] @ 2x2 : block+overlap(1,1), block+overlap(1,1)
                                                 blocks that also keep a rim of their neighbours' cells
  @layout.json                                   the same as JSON, from a file

Exit codes: 0 done, 1 failed, 2 the arguments make no sense. 'tranship COMMAND --help' shows examples.)";

int run(int argc, char** argv) {
  CommandLine line(
      {.name = "tranship", .description = about, .footer = layouts, .version = "tranship " TRANSHIP_VERSION});
  add_reshard(line);
  add_layout(line);
  add_plan(line);
  add_halo(line);
  add_launch(line);
  add_simulate(line);
  add_check(line);
  add_run(line);
  add_show(line);
  add_predict(line);
  add_measure(line);
  add_info(line);
  add_demo(line);
  add_help(line);
  add_completion(line);
  add_manual(line);
  try {
    line.run(argc, argv);
    return succeeded;
  } catch (const UsageError& error) {
    print_error(error.message);
    if (!error.picture.empty()) print_note(error.picture + "\n");
    return misused;
  }
}

/// Lets write() fail instead when a reader has gone away or a file may not grow; all code checks write(). exec resets a
/// handler to the default, but launched programs would inherit SIG_IGN.
void turn_into_an_error(int signal) {
  std::signal(signal, [](int) {});
}

/// Ends the command when a page of a mapped file is gone; `text` is as long as its array.
void end_without_page(int) {
  static constexpr char text[] =
      "tranship: error: a file became shorter while it was read, or the disk that holds it failed\n";
  std::ignore = ::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(failed);
}

/// Keeps the numbers of closed standard streams occupied. Otherwise the next file to be opened would get such a number,
/// and messages for that stream would be written to it. Using such a stream still fails.
void keep_standard_numbers() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      std::ignore = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // gets the lowest number
}

void prepare_signals() {
  turn_into_an_error(SIGPIPE);
  turn_into_an_error(SIGXFSZ);
  std::signal(SIGBUS, end_without_page);
}

}  // namespace
}  // namespace tranship::cli

int main(int argc, char** argv) {
  using namespace tranship;
  cli::keep_standard_numbers();
  cli::prepare_signals();
  try {
    return cli::run(argc, argv);
  } catch (const cli::OutputClosed&) {
    return cli::succeeded;
  } catch (const cli::ProgramFailed& program) {
    return program.exit_code;
  } catch (const Error& error) {
    cli::print_error(error.what());
  } catch (const std::bad_alloc&) {
    cli::print_error("out of memory");
  } catch (const std::exception& error) {
    cli::print_error(error.what());
  } catch (...) {
    cli::print_error("failed with an exception of unknown type");
  }
  return cli::failed;
}
