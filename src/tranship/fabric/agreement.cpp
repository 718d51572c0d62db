#include "tranship/fabric/agreement.hpp"

#include <algorithm>
#include <string>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {
namespace {

constexpr std::size_t message_bytes_max = 4096;

}  // namespace

Error detail::no_memory_to(const char* purpose) {
  return make_error(ErrorCode::no_memory, "no memory to {}", purpose);
}

detail::Failure detail::Failure::of(const Team& team, const Result<void>& mine) {
  if (mine.ok()) return {};
  return {.member = team.rank(),
          .code = static_cast<int>(mine.error().code()),
          .message_bytes = std::min(mine.error().message().size(), message_bytes_max)};
}

void detail::fail_together(Team& team, const Failure& failure, const Result<void>& mine, std::string_view cannot,
                           CallSite where) {
  std::string message(failure.message_bytes, ' ');
  if (team.rank() == failure.member) message.assign(mine.error().message(), 0, message.size());
  team.broadcast(message.data(), message.size(), failure.member, where);
  // Without this meeting, members that still wait for the message could see a member that has thrown as failed.
  (void)attempt([&] { team.sync(where); });
  mine.value();
  const Rank rank = team.world_rank(failure.member);
  if (!cannot.empty())
    message =
        fmt::format("rank {} {}: {} (rank {}, {})", rank, cannot, message, team.world().rank(), short_name(where));
  Error error(static_cast<ErrorCode>(failure.code), std::move(message));
  error.rank = team.world().rank();
  error.peer = rank;
  throw error;
}

void agree(Team& team, const Call& call, const Result<void>& mine, std::string_view cannot, CallSite where) {
  const detail::Failure first = team.reduce(
      call, detail::Failure::of(team, mine),
      [](const detail::Failure& a, const detail::Failure& b) { return joined(a, b); }, where);
  if (first.member >= 0) detail::fail_together(team, first, mine, cannot, where);
}

}  // namespace tranship
