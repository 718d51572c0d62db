#include "tranship/fabric/hosts/hosts_meeting.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

HostsMeeting::HostsMeeting(HostsEngine& engine, const std::vector<int>& host_of, const Members& members, int slot,
                           const Members& named, std::unique_ptr<SharedMeeting> local)
    : engine_(engine),
      members_(members),
      named_(named),
      slot_(slot),
      me_(members.member_of(engine.rank())),
      local_(std::move(local)),
      number_(local_->calls()) {
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
  number_ = calls;
}

std::optional<HostsMeeting::Verdict> HostsMeeting::verdict_on(const Call& mine, const Call& theirs,
                                                              const Host& host) const {
  if (mine == theirs) return std::nullopt;
  int one = here().front(), other = host.front();
  const Call* calls[] = {&mine, &theirs};
  if (other < one) {
    std::swap(one, other);
    std::swap(calls[0], calls[1]);
  }
  Verdict out{.code = static_cast<int>(ErrorCode::mismatch), .peer = named_.rank_of(other)};
  const std::string text =
      fmt::format("collective call {} differs: rank {} makes {}, rank {} {}", number_, named_.rank_of(one),
                  to_string(*calls[0]), named_.rank_of(other), to_string(*calls[1]));
  text.copy(out.text, sizeof out.text - 1);
  return out;
}

void HostsMeeting::throw_verdict(const World& world, const Verdict& verdict) const {
  Error error(static_cast<ErrorCode>(verdict.code), fmt::format("{} (rank {})", verdict.text, world.rank()));
  error.rank = world.rank();
  error.peer = verdict.peer;
  throw error;
}

void HostsMeeting::bring_to_others(const Call& call, const Verdict& verdict, std::span<const std::byte> bytes) {
  std::vector<std::byte> message(sizeof call + sizeof verdict + bytes.size());
  std::memcpy(message.data(), &call, sizeof call);
  std::memcpy(message.data() + sizeof call, &verdict, sizeof verdict);
  if (!bytes.empty()) std::memcpy(message.data() + sizeof call + sizeof verdict, bytes.data(), bytes.size());
  for (const Host& host : hosts_)
    if (&host != &here()) engine_.bring(members_.rank_of(host.front()), {slot_, number_}, message);
}

HostsMeeting::Verdict HostsMeeting::exchange(World& world, const Call& call, std::span<const std::byte> bytes,
                                             FunctionRef<void(const Host&, std::span<const std::byte>)> take,
                                             CallSite where) {
  bring_to_others(call, {}, bytes);
  Verdict out;
  WaitNote note(name_of(call.kind), WaitNote::anyone, where);
  note.flag_index = slot_;
  note.wanted = number_;
  for (const Host& host : hosts_) {
    if (&host == &here()) continue;
    const Rank leader = members_.rank_of(host.front());
    std::optional<std::vector<std::byte>> message;
    note.raised_by = note.flag_rank = named_.rank_of(host.front());
    world.wait_until(
        [&] {
          if (!message) engine_.progress();
          if (!message) message = engine_.take(leader, {slot_, number_});
          return message.has_value();
        },
        note);
    Call theirs;
    Verdict said;
    std::memcpy(&theirs, message->data(), sizeof theirs);
    std::memcpy(&said, message->data() + sizeof theirs, sizeof said);
    if (out.code != 0) continue;
    if (said.code != 0)
      out = said;
    else if (const auto differs = verdict_on(call, theirs, host))
      out = *differs;
    else
      take(host, std::span(*message).subspan(sizeof theirs + sizeof said));
  }
  return out;
}

void HostsMeeting::meet(World& world, const Call& call, CallSite where) {
  gather(world, call, nullptr, 0, nullptr, where);
}

void HostsMeeting::gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                          CallSite where) {
  ++number_;
  const auto place = [&](int member) { return static_cast<std::byte*>(all) + std::size_t(member) * size_bytes; };
  std::vector<std::byte> ours(here().size() * size_bytes), theirs;
  try {
    local_->gather(world, call, mine, size_bytes, ours.data(), where);
  } catch (const Error& error) {
    // All of this machine have failed alike; the others learn it from its leader.
    if (error.code() == ErrorCode::mismatch && leads()) {
      Verdict verdict{.code = static_cast<int>(error.code()), .peer = error.peer};
      std::string(error.message()).copy(verdict.text, sizeof verdict.text - 1);
      bring_to_others(call, verdict, {});
    }
    throw;
  }
  for (std::size_t i = 0; i < here().size() && size_bytes > 0; ++i)
    std::memcpy(place(here()[i]), ours.data() + i * size_bytes, size_bytes);
  if (hosts_.size() == 1) return;

  theirs.resize((std::size_t(members_.count) - here().size()) * size_bytes);
  Verdict verdict;
  if (leads()) {
    std::size_t at = 0;
    const auto append = [&](const Host& host, std::span<const std::byte> bytes) {
      TRANSHIP_ASSERT(bytes.size() == host.size() * size_bytes);
      if (!bytes.empty()) std::memcpy(theirs.data() + at, bytes.data(), bytes.size());
      at += bytes.size();
    };
    verdict = exchange(world, call, ours, append, where);
  }
  local_->spread(world, call, 0, &verdict, sizeof verdict, where);
  if (verdict.code != 0) throw_verdict(world, verdict);
  local_->spread(world, call, 0, theirs.data(), theirs.size(), where);
  std::size_t at = 0;
  for (const Host& host : hosts_) {
    if (&host == &here()) continue;
    for (const int member : host) {
      if (size_bytes > 0) std::memcpy(place(member), theirs.data() + at, size_bytes);
      at += size_bytes;
    }
  }
}

}  // namespace tranship
