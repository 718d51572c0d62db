#include "tranship/fabric/team.hpp"

#include <algorithm>
#include <string>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

namespace {

/// Splits that are not strided have a number in the highest bits of their detail.
constexpr std::uint64_t listed_split = std::uint64_t(3) << 60;

/// The part of a list of members that ranks exchange.
struct BroughtList {
  static constexpr std::size_t shown_max = 10;
  std::uint64_t count = 0;
  std::uint64_t fingerprint = 0;
  int shown[shown_max] = {};

  explicit BroughtList(const std::vector<int>& list = {}) : count(list.size()) {
    for (const int member : list) fingerprint = splitmix64(fingerprint + std::uint64_t(member) + 1);
    std::copy_n(list.begin(), std::min(list.size(), shown_max), shown);
  }
  std::string text() const {
    const std::size_t end = std::min<std::size_t>(count, shown_max);
    std::string out;
    for (std::size_t i = 0; i < end; ++i) out += fmt::format("{}{}", i > 0 ? ", " : "", shown[i]);
    return fmt::format("[{}{}]{}", out, end < count ? ", ..." : "", end < count ? fmt::format(" of {}", count) : "");
  }
  friend bool operator==(const BroughtList& a, const BroughtList& b) {
    return a.count == b.count && a.fingerprint == b.fingerprint;
  }
};

}  // namespace

struct Team::State {
  World& world;
  Fabric& fabric;
  Members members;
  int slot;
  std::unique_ptr<Meeting> meeting;

  State(World& w, Fabric& f, const Members& m, int s)
      : world(w), fabric(f), members(m), slot(s), meeting(f.meeting(m, s, m)) {
    fabric.team_slots().take(slot);
  }
  ~State() { fabric.team_slots().release(slot); }
};

Team::Team(World& world, Fabric& fabric, const Members& members, int slot)
    : state_(std::make_shared<State>(world, fabric, members, slot)) {}

int Team::rank() const noexcept {
  return state_->members.member_of(state_->world.rank());
}
int Team::size() const noexcept {
  return state_->members.count;
}
const Members& Team::members() const noexcept {
  return state_->members;
}
int Team::slot() const noexcept {
  return state_->slot;
}
std::uint64_t Team::calls() const noexcept {
  return state_->meeting->calls();
}
void Team::begin_at(std::uint64_t calls) {
  state_->meeting->begin_at(calls);
}
World& Team::world() const noexcept {
  return state_->world;
}

Rank Team::world_rank(int member) const {
  if (member < 0 || member >= size())
    throw_error(ErrorCode::invalid_use, "no member {} in a team of {} (rank {})", member, size(), world().rank());
  return members().rank_of(member);
}
int Team::translate(int member, const Team& other) const {
  return other.members().member_of(world_rank(member));
}

void Team::meet(const Call& call, CallSite where) {
  world().check_process();
  state_->meeting->meet(world(), call, where);
}
void Team::all_gather(const Call& call, const void* mine, std::size_t size_bytes, void* all, CallSite where) {
  world().check_process();
  state_->meeting->gather(world(), call, mine, size_bytes, all, where);
}

void Team::reduce(void* record, std::size_t size_bytes, Combining combine, CallSite where) {
  reduce({.kind = CallKind::agreement, .size_bytes = size_bytes}, record, size_bytes, combine, where);
}
void Team::reduce(const Call& call, void* record, std::size_t size_bytes, Combining combine, CallSite where) {
  static_assert(record_bytes_max == Meeting::record_bytes_max);
  world().check_process();
  state_->meeting->reduce(world(), call, record, size_bytes, combine, where);
}

void Team::barrier(CallSite where) {
  // If all peers are reachable, the meeting itself orders all puts.
  if (Context& context = world().context(); !context.completes_at_once()) context.quiet(where);
  meet({.kind = CallKind::barrier}, where);
}
void Team::sync(CallSite where) {
  meet({.kind = CallKind::sync}, where);
}
void Team::all_gather(const void* mine, std::size_t size_bytes, void* all, CallSite where) {
  const Context& context = world().context();
  context.touches(mine, size_bytes, Touch::loads, "all_gather", where);
  all_gather({.kind = CallKind::all_gather, .size_bytes = size_bytes}, mine, size_bytes, all, where);
  context.touches(all, size_bytes * std::size_t(size()), Touch::stores, "all_gather", where);
}

void Team::broadcast(void* data, std::size_t size_bytes, int root, CallSite where) {
  if (root < 0 || root >= size())
    throw_error(ErrorCode::invalid_use, "no root {} in a team of {} (rank {}, {})", root, size(), world().rank(),
                short_name(where));
  const Call call{.kind = CallKind::broadcast, .size_bytes = size_bytes, .detail = std::uint64_t(root)};
  const Context& context = world().context();
  if (rank() == root) context.touches(data, size_bytes, Touch::loads, "broadcast", where);
  world().check_process();
  state_->meeting->spread(world(), call, data, size_bytes, root, where);
  if (rank() != root) context.touches(data, size_bytes, Touch::stores, "broadcast", where);
}

std::optional<Team> Team::split_strided(const Strided& which, CallSite where) {
  const auto& [first, stride, count] = which;
  const std::int64_t last = first + std::int64_t(stride) * (count - 1);
  if (count < 1 || first < 0 || first >= size() || last < 0 || last >= size() || (stride == 0 && count > 1))
    throw_error(
        ErrorCode::invalid_use,
        "split_strided: first {}, stride {}, count {} do not select distinct members of a team of {} (rank {}, {})",
        first, stride, count, size(), world().rank(), short_name(where));
  const Call call{.kind = CallKind::split,
                  .size_bytes = std::uint64_t(count),
                  .detail = std::uint64_t(first) << 32 | std::uint32_t(stride)};
  const Members inner = Members{.first = first, .stride = stride ? stride : 1, .count = count}.in(members());
  return split(inner.member_of(world().rank()) < 0 ? std::nullopt : std::optional(inner), call, where);
}

std::optional<Team> Team::split_listed(const std::vector<int>& list, CallSite where) {
  if (list.empty() || list.size() > std::size_t(size()))
    throw_error(ErrorCode::invalid_use,
                "split_listed: the list has {}, the team {}: list 1 to {} members (rank {}, {})",
                amount(list.size(), "member"), size(), size(), world().rank(), short_name(where));
  std::vector<bool> is_named(static_cast<std::size_t>(size()));
  for (const int member : list) {
    if (member < 0 || member >= size())
      throw_error(ErrorCode::invalid_use, "no member {} in a team of {} (rank {}, {})", member, size(), world().rank(),
                  short_name(where));
    if (is_named[std::size_t(member)])
      throw_error(ErrorCode::invalid_use, "member {} is twice in a list of {} (rank {}, {})", member,
                  amount(list.size(), "member"), world().rank(), short_name(where));
    is_named[std::size_t(member)] = true;
  }
  const Call call{.kind = CallKind::split, .detail = listed_split};
  const Alike<BroughtList> lists = reduce(
      call, Alike<BroughtList>::of(rank(), BroughtList(list)),
      [](const Alike<BroughtList>& a, const Alike<BroughtList>& b) { return joined(a, b); }, where);
  if (lists.differ()) {
    const std::string one = lists.first.text(), other = lists.other.text();
    throw_error(ErrorCode::mismatch, "split_listed: rank {} lists members {}, rank {} {}{} (rank {}, {})",
                world_rank(lists.first_member), one, world_rank(lists.other_member), other,
                one == other ? ", which differ later" : "", world().rank(), short_name(where));
  }
  const Members inner = Members::of(list).in(members());
  return split(inner.member_of(world().rank()) < 0 ? std::nullopt : std::optional(inner), call, where);
}

Team::Split2d Team::split_2d(int x_size, CallSite where) {
  if (x_size < 1)
    throw_error(ErrorCode::invalid_use, "split_2d: a row needs at least 1 member, got {} (rank {}, {})", x_size,
                world().rank(), short_name(where));
  const int x = rank() % x_size, y = rank() / x_size;
  const Members row =
      Members{.first = y * x_size, .stride = 1, .count = std::min(x_size, size() - y * x_size)}.in(members());
  const Members column =
      Members{.first = x, .stride = x_size, .count = (size() - x + x_size - 1) / x_size}.in(members());
  const auto call = [&](int axis) {
    return Call{.kind = CallKind::split, .size_bytes = std::uint64_t(x_size), .detail = std::uint64_t(1 + axis) << 60};
  };
  std::optional<Team> in_row = split(row, call(0), where);
  return {.x = *in_row, .y = *split(column, call(1), where)};
}

void Team::refuse_more(const World& world, int teams, CallSite where) {
  throw_error(ErrorCode::unsupported, "all {} are in use; TRANSHIP_TEAMS sets how many there can be (rank {}, {})",
              amount(teams, "team"), world.rank(), short_name(where));
}

std::optional<Team> Team::split(const std::optional<Members>& mine, const Call& call, CallSite where) {
  // Find the lowest slot that is free on all members. Teams without a common member may share a slot.
  TeamSlots& slots = state_->fabric.team_slots();
  std::vector<std::uint64_t> taken = slots.taken();
  // The number of words that fit into a record.
  constexpr std::size_t words_max = 16;
  struct Taken {
    std::uint64_t words[words_max] = {};
  };
  for (std::size_t first = 0; first < taken.size(); first += words_max) {
    const auto begin = taken.begin() + std::ptrdiff_t(first);
    Taken some;
    const auto end = begin + std::ptrdiff_t(std::min(words_max, taken.size() - first));
    std::copy(begin, end, some.words);
    some = reduce(
        call, some,
        [](Taken a, const Taken& b) {
          for (std::size_t i = 0; i < words_max; ++i) a.words[i] |= b.words[i];
          return a;
        },
        where);
    std::copy_n(some.words, end - begin, begin);
  }
  const int slot = slots.first_free(taken);
  if (slot == slots.count()) refuse_more(world(), slot, where);

  std::optional<Team> team;
  if (mine) team = Team(world(), state_->fabric, *mine, slot);
  const auto later = [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); };
  const std::uint64_t calls = reduce(call, team ? team->calls() : std::uint64_t(0), later, where);
  if (team) team->begin_at(calls);
  meet(call, where);
  return team;
}

}  // namespace tranship
