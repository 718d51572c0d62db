#include "tranship/fabric/processes/process_group.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/machine.hpp>

namespace tranship {

namespace {

/// Returns true if the system has stopped the process (SIGSTOP, a debugger).
bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<SharedWorld> shared)
    : shared_(std::move(shared)), files_(shared_->shape().ranks) {}

ProcessGroup::~ProcessGroup() {
  kill_all();
  for (Process& process : processes_)
    if (process.descriptor >= 0) {
      waitpid(process.pid, nullptr, 0);
      close(process.descriptor);
    }
}

void ProcessGroup::start(FunctionRef<int(Rank)> body) {
  const auto rank = static_cast<Rank>(processes_.size());
  // Otherwise both processes would write the buffered output.
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // The descriptors of earlier ranks would count against this process's limit.
    for (const Process& process : processes_)
      if (process.descriptor >= 0) close(process.descriptor);
    files_.restore();
    const int code = body(rank);
    std::fflush(nullptr);
    _exit(code);
  }
  const int descriptor = pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
  if (descriptor < 0) {
    const int refused = errno;
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    Error error = make_error(ErrorCode::no_memory, "cannot start the process of rank {} of {}: {}{}", rank,
                             shared_->shape().ranks, std::strerror(refused), pid < 0 ? limits_of_processes() : "");
    shared_->board().post_failed(rank, error.code(), error.message());
    throw error;
  }
  processes_.push_back({.pid = pid, .descriptor = descriptor});
}

ProcessGroup::End ProcessGroup::wait(std::int64_t grace_ns, const Callback<void(const std::string&)>& notice,
                                     const Callback<PassedSignal()>& signal_check) {
  constexpr std::int64_t check_every_ns = 20'000'000;
  End out;
  Deadline deadline = Deadline::never(), notice_due = Deadline::never();
  bool is_ending = false, is_interrupted = false;
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<Rank> ranks;
    for (std::size_t i = 0; i < processes_.size(); ++i)
      if (processes_[i].descriptor >= 0) {
        polled.push_back({.fd = processes_[i].descriptor, .events = POLLIN});
        ranks.push_back(static_cast<Rank>(i));
      }
    if (polled.empty()) break;
    if (const PassedSignal signal = signal_check ? signal_check() : PassedSignal(); signal.number != 0) {
      is_interrupted ? kill_all() : pass_on(signal);
      is_interrupted = true;
    }
    if (!is_ending && (is_interrupted || shared_->board().first_failed() >= 0)) {
      is_ending = true;
      constexpr std::int64_t exit_ns_max = 250'000'000;  // for ranks that compute, after another one has ended all
      const bool all_end = shared_->board().exit_status().has_value();
      deadline = Deadline::after_ns(all_end ? std::min(grace_ns, exit_ns_max) : grace_ns);
      notice_due = Deadline::after_ns(grace_ns / 10);
    }
    const std::int64_t left_ns =
        std::min({deadline.remaining_ns(), notice_due.remaining_ns(), signal_check ? check_every_ns : INT64_MAX});
    const std::int64_t left_ms = left_ns / 1'000'000 + 1;
    const int timeout_ms =
        is_ending || signal_check ? static_cast<int>(std::min<std::int64_t>(left_ms, 1'000'000)) : -1;
    if (poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR)
      throw_error(ErrorCode::io, "cannot wait for {}: {}", amount(polled.size(), "process", "processes"),
                  std::strerror(errno));
    for (std::size_t i = 0; i < polled.size(); ++i)
      if (polled[i].revents != 0) end(ranks[i]);
    if (is_ending && notice_due.passed()) {
      notice_due = Deadline::never();
      if (shared_->board().exit_status()) continue;
      const Rank failed = shared_->board().first_failed();
      if (const std::string late = late_ranks(); notice && !late.empty())
        notice(fmt::format("{}: not ended since {}; to be killed in {:.3g} s", late,
                           failed < 0 ? "they were interrupted" : fmt::format("rank {} failed", failed),
                           static_cast<double>(deadline.remaining_ns()) * 1e-9));
    }
    if (is_ending && deadline.passed()) {
      if (!shared_->board().exit_status()) out.late = late_ranks();
      if (!out.late.empty())
        out.late +=
            fmt::format(": not ended within {:.3g} s of that, and killed", static_cast<double>(grace_ns) * 1e-9);
      kill_all();
      deadline = Deadline::never();
    }
  }
  out.exit_status = shared_->board().exit_status();
  for (const Process& process : processes_) out.exit_codes.push_back(out.exit_status.value_or(process.exit_code));
  return out;
}

std::string ProcessGroup::activity_of(Rank rank) const {
  const pid_t pid = processes_[static_cast<std::size_t>(rank)].pid;
  return is_stopped(pid) ? fmt::format("process {}, stopped by a signal", pid) : shared_->board().line(rank);
}

std::string ProcessGroup::late_ranks() const {
  std::string out;
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (processes_[i].descriptor >= 0)
      out += fmt::format("{}rank {} ({})", out.empty() ? "" : ", ", i, activity_of(static_cast<Rank>(i)));
  return out;
}

void ProcessGroup::end(Rank rank) {
  Process& process = processes_[static_cast<std::size_t>(rank)];
  int status = 0;
  if (waitpid(process.pid, &status, 0) != process.pid) status = 255 << 8;
  close(process.descriptor);
  process.descriptor = -1;

  Board& board = shared_->board();
  const bool killed = WIFSIGNALED(status);
  process.exit_code = killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (board.ended(rank)) return;
  if (process.exit_code == 0 && !board.joined(rank)) return board.post_finished(rank);
  const std::string how =
      killed ? fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
             : fmt::format("ended with exit code {} without reporting an error", WEXITSTATUS(status));
  board.post_failed(rank, ErrorCode::peer_lost, fmt::format("process {} (rank {}) {}", process.pid, rank, how));
}

void ProcessGroup::kill_all() noexcept {
  for (const Process& process : processes_)
    if (process.descriptor >= 0)
      kill(process.pid, SIGKILL);  // it has not been waited for, so the number is still its own
}

void ProcessGroup::pass_on(PassedSignal signal) noexcept {
  for (const Process& process : processes_)
    if (process.descriptor >= 0 && !signal.has_been_sent) sigqueue(process.pid, signal.number, {});
}

}  // namespace tranship
