#include "tranship/fabric/processes/launch_program.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/processes/other_launcher.hpp>
#include <tranship/fabric/processes/process_group.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>
#include <tranship/fabric/rank_scope.hpp>

namespace tranship {

namespace {

/// The ranks that run the program of this process, if several programs have been started.
struct Together {
  Rank first = 0;
  int count = 0;
} launched_together;

}  // namespace

ProgramResult launch_program(const ProgramLaunchOptions& options, const std::vector<ProgramPart>& programs) {
  int ranks = 0;
  for (const ProgramPart& program : programs) {
    if (program.ranks < 1 || program.words.empty())
      throw_error(ErrorCode::invalid_use, "launch needs a program and at least 1 rank, got {} and {}",
                  amount(program.words.size(), "word"), amount(program.ranks, "rank"));
    ranks += program.ranks;
  }
  if (ranks < 1) throw_error(ErrorCode::invalid_use, "launch needs at least 1 program, got {}", programs.size());
  refuse_other_launcher("a world of its own, of all these ranks");
  default_timeout_ns();  // the ranks read it; errors in it are found before they start
  const auto shared =
      SharedWorld::make({.ranks = ranks, .heap_bytes = options.heap_bytes}, SharedWorld::Kind::processes);

  ProcessGroup group(shared);
  Rank first = 0;
  for (const ProgramPart& program : programs) {
    std::vector<char*> words;
    for (const std::string& word : program.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    for (int i = 0; i < program.ranks; ++i)
      group.start([&](Rank rank) {
        fcntl(shared->descriptor(), F_SETFD, 0);
        setenv(launch_variable, fmt::format("{} {} {} {}", shared->descriptor(), rank, first, program.ranks).c_str(),
               1);
        execvp(words[0], words.data());
        shared->board().post_failed(rank, ErrorCode::io,
                                    fmt::format("cannot run '{}': {}", program.words[0], std::strerror(errno)));
        return 127;
      });
    first += program.ranks;
  }
  ProcessGroup::End end = group.wait(options.grace_ns, options.notice, options.signal_check);
  ProgramResult result{.exit_codes = std::move(end.exit_codes), .late = std::move(end.late)};
  result.exit_status = end.exit_status;
  // A failed rank may still have exited with 0, and a process that never became a rank may have exited with another
  // code.
  result.failed = shared->board().first_failed();
  if (result.failed >= 0) result.reason = shared->board().failure_of(result.failed);
  return result;
}

Members program_members(const World& world) {
  const auto& [first, count] = launched_together;
  return count > 0 ? Members{.first = first, .count = count} : Members{.count = world.size()};
}

std::optional<RankScope> join_program() {
  const char* text = std::getenv(launch_variable);
  if (text == nullptr) return std::nullopt;
  int descriptor = -1;
  Rank rank = -1;
  Members together;
  if (std::sscanf(text, "%d %d %d %d", &descriptor, &rank, &together.first, &together.count) != 4)
    throw_error(ErrorCode::bad_text,
                "{} is '{}': needs a descriptor, a rank, and the first and the number of the ranks of this program",
                launch_variable, text);
  // Programs that this process starts are not ranks, nor is a second world in this process.
  unsetenv(launch_variable);
  const auto shared = std::make_shared<SharedWorld>(descriptor);
  if (rank < 0 || rank >= shared->shape().ranks)
    throw_error(ErrorCode::invalid_use, "{} says rank {} of a world of {}", launch_variable, rank,
                shared->shape().ranks);
  if (together.member_of(rank) < 0 || together.first < 0 || together.count > shared->shape().ranks - together.first)
    throw_error(ErrorCode::invalid_use, "{} says that ranks {} to {} of {} run the program of rank {}", launch_variable,
                together.first, together.first + together.count - 1, shared->shape().ranks, rank);
  launched_together = {together.first, together.count};
  const Result<std::int64_t> timeout_ns = attempt(default_timeout_ns);
  if (!timeout_ns) {
    shared->board().post_failed(rank, timeout_ns.error().code(), timeout_ns.error().message());
    throw timeout_ns.error();
  }
  return RankScope(shared, shared->board(), rank, timeout_ns.value(),
                   [&] { return std::make_unique<ProcessesFabric>(shared, rank); });
}

}  // namespace tranship
