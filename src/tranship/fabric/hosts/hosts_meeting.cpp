#include "tranship/fabric/hosts/hosts_meeting.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// What a member states. Little data comes with it, so that one exchange is enough.
struct HostsMeeting::Statement {
  static constexpr std::size_t data_bytes = 128;

  Call call;
  char place[104] = {};
  std::byte data[data_bytes] = {};
};

HostsMeeting::HostsMeeting(HostsEngine& engine, const std::vector<int>& host_of, const Members& members, int slot,
                           const Members& named, std::unique_ptr<SharedMeeting> local)
    : engine_(engine),
      members_(members),
      named_(named),
      slot_(slot),
      me_(members.member_of(engine.rank())),
      local_(std::move(local)),
      number_(local_->calls()),
      calls_(number_) {
  std::vector<int> known;
  for (int member = 0; member < members.count; ++member) {
    const int host = host_of[static_cast<std::size_t>(members.rank_of(member))];
    const auto at = static_cast<std::size_t>(std::find(known.begin(), known.end(), host) - known.begin());
    if (at == known.size()) {
      known.push_back(host);
      hosts_.emplace_back();
    }
    hosts_[at].push_back(member);
    if (member == me_) my_host_ = at;
  }
}

void HostsMeeting::begin_at(std::uint64_t calls) {
  local_->begin_at(calls);
  number_ = calls_ = calls;
}

std::vector<std::byte> HostsMeeting::taken(World& world, const Call& call, const Host& host, CallSite where) {
  WaitNote note(name_of(call.kind), named_.rank_of(host.front()), where);
  note.flag_rank = note.raised_by;
  note.flag_index = slot_;
  note.wanted = calls_;
  note.seen = calls_ - 1;
  std::optional<std::vector<std::byte>> message;
  world.wait_until(
      [&] {
        engine_.progress();
        message = engine_.take(members_.rank_of(host.front()), {slot_, number_});
        return message.has_value();
      },
      note);
  return std::move(*message);
}

void HostsMeeting::exchange(World& world, const Call& call, const void* mine, std::size_t size_bytes, std::byte* all,
                            CallSite where) {
  ++number_;
  const auto place = [&](int member) { return all + std::size_t(member) * size_bytes; };
  std::vector<std::byte> ours(here().size() * size_bytes);
  local_->gather_part(world, call, calls_, mine, size_bytes, ours.data(), where);
  for (std::size_t i = 0; i < here().size(); ++i)
    std::memcpy(place(here()[i]), ours.data() + i * size_bytes, size_bytes);
  if (hosts_.size() == 1) return;

  std::vector<std::byte> theirs;
  theirs.reserve((std::size_t(members_.count) - here().size()) * size_bytes);
  if (leads()) {
    for (const Host& host : hosts_)
      if (&host != &here()) engine_.bring(members_.rank_of(host.front()), {slot_, number_}, ours);
    for (const Host& host : hosts_) {
      if (&host == &here()) continue;
      const std::vector<std::byte> message = taken(world, call, host, where);
      TRANSHIP_ASSERT(message.size() == host.size() * size_bytes);
      theirs.insert(theirs.end(), message.begin(), message.end());
    }
  }
  theirs.resize((std::size_t(members_.count) - here().size()) * size_bytes);
  local_->spread_part(world, call, calls_, 0, theirs.data(), theirs.size(), where);
  const std::byte* from = theirs.data();
  for (const Host& host : hosts_) {
    if (&host == &here()) continue;
    for (const int member : host) {
      std::memcpy(place(member), from, size_bytes);
      from += size_bytes;
    }
  }
}

std::vector<HostsMeeting::Statement> HostsMeeting::stated(World& world, const Call& call, const void* data,
                                                          std::size_t size_bytes, CallSite where) {
  ++calls_;
  Statement statement{.call = call};
  short_name(where).copy(statement.place, sizeof statement.place - 1);
  if (size_bytes > 0 && size_bytes <= Statement::data_bytes) std::memcpy(statement.data, data, size_bytes);
  std::vector<Statement> out(static_cast<std::size_t>(members_.count));
  exchange(world, call, &statement, sizeof statement, reinterpret_cast<std::byte*>(out.data()), where);
  for (int member = 1; member < members_.count; ++member)
    if (!(out[std::size_t(member)].call == out[0].call)) disagree(world, out, member, where);
  return out;
}

void HostsMeeting::gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                          CallSite where) {
  const std::vector<Statement> statements = stated(world, call, mine, size_bytes, where);
  auto* const out = static_cast<std::byte*>(all);
  if (size_bytes > Statement::data_bytes) return exchange(world, call, mine, size_bytes, out, where);
  for (std::size_t member = 0; member < statements.size() && size_bytes > 0; ++member)
    std::memcpy(out + member * size_bytes, statements[member].data, size_bytes);
}

const HostsMeeting::Host& HostsMeeting::host_of(int member) const {
  return *std::find_if(hosts_.begin(), hosts_.end(),
                       [&](const Host& host) { return std::binary_search(host.begin(), host.end(), member); });
}

void HostsMeeting::spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
                          CallSite where) {
  const std::vector<Statement> statements = stated(world, call, data, size_bytes, where);
  if (size_bytes <= Statement::data_bytes) {
    if (me_ != from_member && size_bytes > 0) std::memcpy(data, statements[std::size_t(from_member)].data, size_bytes);
    return;
  }
  ++number_;
  const Host& from = host_of(from_member);
  const bool has_it = &from == &here();
  const auto spread_here = [&](int member) {
    local_->spread_part(world, call, calls_, member, data, size_bytes, where);
  };
  if (has_it) spread_here(int(std::lower_bound(from.begin(), from.end(), from_member) - from.begin()));
  if (leads() && has_it)
    for (const Host& host : hosts_)
      if (&host != &here())
        engine_.bring(members_.rank_of(host.front()), {slot_, number_}, {static_cast<std::byte*>(data), size_bytes});
  if (has_it) return;
  if (leads()) std::memcpy(data, taken(world, call, from, where).data(), size_bytes);
  spread_here(0);
}

void HostsMeeting::disagree(World& world, const std::vector<Statement>& statements, int other, CallSite where) {
  const auto words_of = [&](int member) {
    const Statement& statement = statements[std::size_t(member)];
    return fmt::format("{} ({})", to_string(statement.call), statement.place);
  };
  Error error =
      make_error(ErrorCode::mismatch, "collective call {} differs: rank {} makes {}, rank {} {} (rank {})", calls_,
                 named_.rank_of(0), words_of(0), named_.rank_of(other), words_of(other), world.rank());
  error.rank = world.rank();
  error.peer = named_.rank_of(other);
  // All find out before any of them fails, which others may see before what it has brought.
  const std::byte nothing{};
  std::vector<std::byte> all(statements.size());
  const Result<void> ignored =
      attempt([&] { exchange(world, statements[std::size_t(me_)].call, &nothing, 1, all.data(), where); });
  (void)ignored;
  throw error;
}

}  // namespace tranship
