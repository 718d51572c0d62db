#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/processes/process_group.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>
#include <tranship/fabric/rank_scope.hpp>

namespace tranship {

ProgramResult launch_program(const ProgramOptions& options, const std::vector<std::string>& program) {
  if (options.ranks < 1 || program.empty())
    throw_error(ErrorCode::invalid_use, "launch needs a program and at least 1 rank, got {} words and {} ranks",
                program.size(), options.ranks);
  const auto shared = SharedWorld::make(options.ranks, options.heap_bytes, SharedWorld::Kind::processes);
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  ProcessGroup group(shared);
  for (int i = 0; i < options.ranks; ++i)
    group.start([&](Rank rank) {
      fcntl(shared->descriptor(), F_SETFD, 0);
      setenv(launch_variable, fmt::format("{} {}", shared->descriptor(), rank).c_str(), 1);
      execvp(words[0], words.data());
      shared->board().post_failed(rank, ErrorCode::io,
                                  fmt::format("cannot run '{}': {}", program[0], std::strerror(errno)));
      return 127;
    });
  ProcessGroup::End end = group.wait(options.grace_ns, options.notice);
  ProgramResult result{.exit_codes = std::move(end.exit_codes), .late = std::move(end.late)};
  // A rank that failed may still have ended well in the eyes of the system, and one that never was a rank may not.
  result.failed = shared->board().first_failed();
  if (result.failed >= 0) result.reason = shared->board().failure_of(result.failed);
  return result;
}

std::optional<RankScope> join_program() {
  const char* text = std::getenv(launch_variable);
  if (text == nullptr) return std::nullopt;
  int descriptor = -1;
  Rank rank = -1;
  if (std::sscanf(text, "%d %d", &descriptor, &rank) != 2)
    throw_error(ErrorCode::bad_text, "{} is '{}': needs a descriptor and a rank", launch_variable, text);
  // Programs that this one starts are no ranks, nor is a second world in this process.
  unsetenv(launch_variable);
  const auto shared = std::make_shared<SharedWorld>(descriptor);
  if (rank < 0 || rank >= shared->shape().ranks)
    throw_error(ErrorCode::invalid_use, "{} says rank {} of a world of {}", launch_variable, rank,
                shared->shape().ranks);
  return RankScope(shared, shared->board(), rank, default_timeout_ns(),
                   [&] { return std::make_unique<ProcessesFabric>(shared, rank); });
}

}  // namespace tranship
