#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <harness/team.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>

namespace tranship::bench {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t answer_timeout_ns = 180 * second_ns;

bool has_ended(int process) {
  return ::waitpid(process, nullptr, WNOHANG) != 0;
}

}  // namespace

std::vector<std::string> command_line(const TeamOptions& options, const std::string& stage_path) {
  std::vector<std::string> line;
  if (options.launcher == Launcher::open_mpi) {
    // Ranks pin themselves, alike for all contestants. No remote shell is asked for on one machine.
    line = {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm",
            "isolated"};
    if (options.ranks > contest::core_count()) line.insert(line.end(), {"--mca", "mpi_yield_when_idle", "1"});
  } else if (options.launcher == Launcher::mpich) {
    line = {"mpiexec.mpich", "-launcher", "fork"};
  } else if (options.launcher == Launcher::tranship) {
    line = {std::filesystem::path(options.program).replace_filename("tranship").string(), "launch"};
  }
  if (options.launcher != Launcher::none) line.insert(line.end(), {"-n", std::to_string(options.ranks)});
  line.insert(line.end(), {options.program, stage_path});
  return line;
}

Team::Team(const TeamOptions& options) : name_(options.name), stage_(contest::StageMemory::make(options.ranks)) {
  std::vector<std::string> line = command_line(options, stage_.path());
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  // Launchers that start at the same time need a folder each: those of Open MPI remove each other's files.
  char folder[] = "/tmp/tranship-bench-XXXXXX";
  if (!::mkdtemp(folder)) throw_error(ErrorCode::io, "{}: cannot make '{}': error {}", name_, folder, errno);
  folder_ = folder;
  log_ = ::memfd_create("log", MFD_CLOEXEC);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  process_ = ::fork();
  if (process_ < 0) throw_error(ErrorCode::io, "{}: cannot start {}: error {}", name_, options.program, errno);
  if (process_ == 0) {
    // Every program gets a session, as some launchers make one anyway: the kernel shares a busy machine out by session.
    ::setsid();
    // Ends this program with its driver, since its ranks would sleep on the stage forever; launchers pass SIGTERM on.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(nothing, 0);
    ::dup2(log_, 1);
    ::dup2(log_, 2);
    ::setenv("TMPDIR", folder, 1);
    ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(nothing);
}

Team::~Team() {
  if (process_ >= 0 && !has_ended(process_)) {
    stage_->command = {.verb = contest::Verb::quit};
    contest::publish(*stage_);
    contest::await_answer(*stage_, 10 * second_ns);
    const std::int64_t until_ns = contest::now_ns() + 10 * second_ns;
    bool ended = false;
    while (!(ended = has_ended(process_)) && contest::now_ns() < until_ns) ::usleep(2000);
    if (!ended) kill_all();
  }
  ::close(log_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Team::kill_all() {
  ::kill(-process_, SIGTERM);  // a launcher takes its ranks with it
  for (int i = 0; i < 500 && !has_ended(process_); ++i) ::usleep(2000);
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string Team::last_words() const {
  constexpr off_t words_max = 600;
  const off_t size = ::lseek(log_, 0, SEEK_END), from = std::max<off_t>(0, size - words_max);
  std::string words(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(log_, words.data(), words.size(), from);
  words.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return words.empty() ? "(it said nothing)" : words;
}

void Team::command(const contest::Command& command) {
  if (process_ < 0) throw_error(ErrorCode::io, "{}: has ended before", name_);
  stage_->command = command;
  contest::publish(*stage_);
  // In short waits, so that a program that has died is noticed.
  const std::int64_t until_ns = contest::now_ns() + answer_timeout_ns;
  while (!contest::await_answer(*stage_, second_ns / 5)) {
    if (has_ended(process_)) {
      process_ = -1;
      throw_error(ErrorCode::io, "{}: the program has ended: {}", name_, last_words());
    }
    if (contest::now_ns() < until_ns) continue;
    kill_all();
    process_ = -1;
    throw_error(ErrorCode::io, "{}: no answer within {} s: {}", name_, answer_timeout_ns / second_ns, last_words());
  }
}

std::vector<MethodResult> Team::open(const contest::Work& work) {
  for (auto& of_rank : stage_->wrong_cells) std::fill(std::begin(of_rank), std::end(of_rank), 0);
  for (auto& name : stage_->method_names) name[0] = '\0';
  command({.verb = contest::Verb::open, .work = work});
  std::vector<MethodResult> results;
  for (int m = 0; m < stage_->methods; ++m) {
    MethodResult result{.name = stage_->method_names[m], .moved_bytes = stage_->moved_bytes[m]};
    for (int rank = 0; rank < stage_->ranks; ++rank) result.wrong_cells += stage_->wrong_cells[rank][m];
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<double> Team::run(int method, contest::Freshness freshness, int ops) {
  TRANSHIP_ASSERT(ops >= 1 && ops <= contest::ops_max);
  command({.verb = contest::Verb::run, .method = method, .ops = ops, .freshness = freshness});
  std::vector<double> times_ns;
  for (int op = 0; op < ops; ++op) times_ns.push_back(static_cast<double>(contest::elapsed_ns(*stage_, op)));
  return times_ns;
}

void Team::close() {
  command({.verb = contest::Verb::close});
}

}  // namespace tranship::bench
