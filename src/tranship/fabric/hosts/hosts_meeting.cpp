#include "tranship/fabric/hosts/hosts_meeting.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// The message of a reduction: the call, and the record behind it.
struct HostsMeeting::Stated {
  Call call;
  std::uint64_t differs = 0;  ///< not all of those that have been combined make this call
  std::byte record[record_bytes_max];

  static constexpr std::size_t head_bytes = sizeof(Call) + sizeof(std::uint64_t);
};

MembersHere members_here(const std::vector<int>& host_of, Rank rank, const Members& members, const Members& named) {
  const auto host = [&](Rank r) { return host_of[static_cast<std::size_t>(r)]; };
  std::vector<Rank> here, here_named;
  for (int member = 0; member < members.count; ++member)
    if (host(members.rank_of(member)) == host(rank)) {
      here.push_back(members.rank_of(member));
      here_named.push_back(named.rank_of(member));
    }
  return {Members::of(here), Members::of(here_named)};
}

HostsMeeting::HostsMeeting(Mail& mail, const std::vector<int>& host_of, Rank rank, const Members& members, int slot,
                           const Members& named, std::unique_ptr<SharedMeeting> local)
    : mail_(mail),
      host_of_(host_of),
      members_(members),
      named_(named),
      slot_(slot),
      me_(members.member_of(rank)),
      local_(std::move(local)),
      number_(local_->calls()),
      calls_(number_) {
  const MembersByHost hosts = members_by_host();
  hosts_ = int(hosts.size());
  const auto leader = [&](int host) { return hosts[std::size_t(host % hosts_)].front(); };
  const auto is_mine = [&](const std::vector<int>& of_host) {
    return std::find(of_host.begin(), of_host.end(), me_) != of_host.end();
  };
  my_host_ = int(std::find_if(hosts.begin(), hosts.end(), is_mine) - hosts.begin());
  here_count_ = int(hosts[std::size_t(my_host_)].size());
  leads_ = leader(my_host_) == me_;
  for (int distance = 1; distance < hosts_; distance *= 2) {
    ahead_.push_back(leader(my_host_ + distance));
    behind_.push_back(leader(my_host_ + hosts_ - distance));
  }
}

HostsMeeting::MembersByHost HostsMeeting::members_by_host() const {
  MembersByHost out;
  std::vector<int> number_of;
  for (int member = 0; member < members_.count; ++member) {
    const auto host = static_cast<std::size_t>(host_of_[static_cast<std::size_t>(members_.rank_of(member))]);
    if (host >= number_of.size()) number_of.resize(host + 1);
    if (number_of[host] == 0) {
      out.emplace_back();
      number_of[host] = int(out.size());
    }
    out[std::size_t(number_of[host] - 1)].push_back(member);
  }
  return out;
}

void HostsMeeting::begin_at(std::uint64_t calls) {
  local_->begin_at(calls);
  number_ = calls_ = calls;
}

std::vector<std::byte> HostsMeeting::taken(World& world, const Call& call, int leader, CallSite where) {
  WaitNote note(name_of(call.kind), named_.rank_of(leader), where);
  note.flag_rank = note.raised_by;
  note.flag_index = slot_;
  note.wanted = calls_;
  note.seen = calls_ - 1;
  std::optional<std::vector<std::byte>> letter;
  world.wait_until(
      [&] {
        letter = mail_.take(members_.rank_of(leader), {slot_, number_});
        return letter.has_value();
      },
      note);
  return std::move(*letter);
}

void HostsMeeting::bring(int leader, std::span<const std::byte> bytes) {
  mail_.bring(members_.rank_of(leader), {slot_, number_}, bytes);
}

void HostsMeeting::combine_records(World& world, const Call& call, std::span<std::byte> record, Combine combine,
                                   CallSite where) {
  // The machines behind the last power of two leave theirs to one of the first ones.
  const int rounds = int(std::bit_width(unsigned(hosts_))) - 1, paired = 1 << rounds;
  const auto last = std::size_t(rounds);
  const auto read = [&](int leader) {
    const std::vector<std::byte> letter = taken(world, call, leader, where);
    TRANSHIP_ASSERT(letter.size() <= sizeof(Stated));
    alignas(Stated) std::byte theirs[sizeof(Stated)] = {};
    std::memcpy(theirs, letter.data(), letter.size());
    return std::to_array(theirs);
  };
  const auto keep = [&](const void* combined) { std::memcpy(record.data(), combined, record.size()); };
  if (my_host_ >= paired) {
    bring(behind_[last], record);
    return keep(read(behind_[last]).data());
  }
  if (my_host_ + paired < hosts_) combine(record.data(), read(ahead_[last]).data());
  for (int round = 0; round < rounds; ++round) {
    const bool is_lower = (my_host_ >> round & 1) == 0;
    const int other = (is_lower ? ahead_ : behind_)[std::size_t(round)];
    bring(other, record);
    alignas(Stated) auto theirs = read(other);
    // Both combine in one order.
    if (is_lower) {
      combine(record.data(), theirs.data());
    } else {
      combine(theirs.data(), record.data());
      keep(theirs.data());
    }
  }
  if (my_host_ + paired < hosts_) bring(ahead_[last], record);
}

void HostsMeeting::send_down(World& world, const Call& call, std::span<std::byte> data, int from_host, CallSite where) {
  // A machine at distance `place` from the first one has it from the machine at `place` without its lowest bit.
  const unsigned place = unsigned((my_host_ + hosts_ - from_host) % hosts_);
  const int below = place == 0 ? int(ahead_.size()) : std::countr_zero(place);
  if (place != 0) {
    const std::vector<std::byte> letter = taken(world, call, behind_[std::size_t(below)], where);
    TRANSHIP_ASSERT(letter.size() == data.size());
    std::memcpy(data.data(), letter.data(), letter.size());
  }
  for (int k = below - 1; k >= 0; --k)
    if (place + (1u << k) < unsigned(hosts_)) bring(ahead_[std::size_t(k)], data);
}

void HostsMeeting::reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
                          CallSite where) {
  TRANSHIP_ASSERT(size_bytes <= record_bytes_max);
  ++calls_;
  ++number_;
  Stated mine{.call = call};
  if (size_bytes > 0) std::memcpy(mine.record, record, size_bytes);
  const auto combine_stated = [&](void* into, const void* from) {
    auto& a = *static_cast<Stated*>(into);
    const auto& b = *static_cast<const Stated*>(from);
    if (b.differs != 0 || !(a.call == b.call)) a.differs = 1;
    if (a.differs == 0 && size_bytes > 0) combine(a.record, b.record);
  };
  const std::span bytes = std::as_writable_bytes(std::span(&mine, 1)).first(Stated::head_bytes + size_bytes);
  local_->reduce_part(world, call, calls_, bytes.data(), bytes.size(), combine_stated, where);
  if (hosts_ > 1) {
    if (leads()) combine_records(world, call, bytes, combine_stated, where);
    if (here_count_ > 1) local_->spread_part(world, call, calls_, 0, bytes.data(), bytes.size(), where);
  }
  if (mine.differs != 0) disagree(world, call, where);
  if (size_bytes > 0) std::memcpy(record, mine.record, size_bytes);
}

void HostsMeeting::exchange(World& world, const Call& call, const void* mine, std::size_t size_bytes, std::byte* all,
                            CallSite where) {
  ++number_;
  const MembersByHost hosts = members_by_host();
  const std::vector<int>& here = hosts[std::size_t(my_host_)];
  std::vector<std::byte> blocks(std::size_t(members_.count) * size_bytes);  // from this machine's on
  local_->gather_part(world, call, calls_, mine, size_bytes, blocks.data(), where);
  const auto host_at = [&](int place) -> const std::vector<int>& {
    return hosts[std::size_t((my_host_ + place) % hosts_)];
  };
  if (leads()) {
    std::vector<std::size_t> ends{0};  // of the blocks of the first k machines
    for (int place = 0; place < hosts_; ++place) ends.push_back(ends.back() + host_at(place).size() * size_bytes);
    for (std::size_t k = 0; k < ahead_.size(); ++k) {
      const int known = 1 << k, count = std::min(known, hosts_ - known);
      bring(behind_[k], std::span(blocks).first(ends[std::size_t(count)]));
      const std::vector<std::byte> letter = taken(world, call, ahead_[k], where);
      const std::size_t begin = ends[std::size_t(known)];
      TRANSHIP_ASSERT(letter.size() == ends[std::size_t(known + count)] - begin);
      std::memcpy(blocks.data() + begin, letter.data(), letter.size());
    }
  }
  if (hosts_ > 1 && here.size() > 1) local_->spread_part(world, call, calls_, 0, blocks.data(), blocks.size(), where);
  const std::byte* from = blocks.data();
  for (int place = 0; place < hosts_; ++place)
    for (const int member : host_at(place)) {
      if (size_bytes > 0) std::memcpy(all + std::size_t(member) * size_bytes, from, size_bytes);
      from += size_bytes;
    }
}

void HostsMeeting::gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                          CallSite where) {
  meet(world, call, where);
  if (size_bytes > 0) exchange(world, call, mine, size_bytes, static_cast<std::byte*>(all), where);
}

void HostsMeeting::spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
                          CallSite where) {
  // Little data comes with the calls.
  struct Brought {
    std::uint64_t is_here;
    std::byte data[record_bytes_max - sizeof(std::uint64_t)];
  };
  if (size_bytes <= sizeof Brought::data) {
    Brought brought{.is_here = me_ == from_member};
    if (brought.is_here != 0 && size_bytes > 0) std::memcpy(brought.data, data, size_bytes);
    const std::size_t bytes = sizeof brought.is_here + size_bytes;
    const auto whichever_is_here = [&](void* into, const void* from) {
      if (static_cast<const Brought*>(from)->is_here != 0) std::memcpy(into, from, bytes);
    };
    reduce(world, call, &brought, bytes, whichever_is_here, where);
    if (size_bytes > 0) std::memcpy(data, brought.data, size_bytes);
    return;
  }
  meet(world, call, where);
  ++number_;
  const MembersByHost hosts = members_by_host();
  const auto from = std::find_if(hosts.begin(), hosts.end(), [&](const std::vector<int>& members) {
    return std::binary_search(members.begin(), members.end(), from_member);
  });
  const int from_host = int(from - hosts.begin());
  const auto spread_here = [&](int place) { local_->spread_part(world, call, calls_, place, data, size_bytes, where); };
  if (from_host == my_host_)
    spread_here(int(std::lower_bound(from->begin(), from->end(), from_member) - from->begin()));
  if (leads()) send_down(world, call, {static_cast<std::byte*>(data), size_bytes}, from_host, where);
  if (from_host != my_host_) spread_here(0);
}

void HostsMeeting::disagree(World& world, const Call& call, CallSite where) {
  struct Statement {
    Call call;
    char place[104] = {};
  };
  Statement mine{.call = call};
  short_name(where).copy(mine.place, sizeof mine.place - 1);
  std::vector<Statement> all(static_cast<std::size_t>(members_.count));
  exchange(world, call, &mine, sizeof mine, reinterpret_cast<std::byte*>(all.data()), where);
  const auto differs = [&](const Statement& one) { return !(one.call == all[0].call); };
  const int other = int(std::find_if(all.begin(), all.end(), differs) - all.begin());
  const auto words_of = [&](int member) {
    const Statement& statement = all[std::size_t(member)];
    return fmt::format("{} ({})", to_string(statement.call), statement.place);
  };
  Error error =
      make_error(ErrorCode::mismatch, "collective call {} differs: rank {} makes {}, rank {} {} (rank {})", calls_,
                 named_.rank_of(0), words_of(0), named_.rank_of(other), words_of(other), world.rank());
  error.rank = world.rank();
  error.peer = named_.rank_of(other);
  // All find out before any of them fails, which others may see before what it has brought.
  const std::byte nothing{};
  std::vector<std::byte> ends(all.size());
  (void)attempt([&] { exchange(world, call, &nothing, 1, ends.data(), where); });
  throw error;
}

}  // namespace tranship
