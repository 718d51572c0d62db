#include "tranship/fabric/meeting_point.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/polls.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/seam/rank_list.hpp>
#include <tranship/fabric/seam/team_slots.hpp>

namespace tranship {
namespace {

constexpr std::uint64_t phases = 8;
// The title of a meeting is cut to a few words: others read it while it may change, which is allowed for words only.
constexpr int title_words = 8;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

std::string title_of(std::string_view card) {
  return std::string(card.substr(0, std::min(card.find('\n'), title_words * word_bytes)));
}

}  // namespace

MeetingPoint::MeetingPoint(World& world, Index card_bytes_max, CallSite where)
    : world_(world),
      card_bytes_max_(card_bytes_max),
      words_(world.shared_flags(1 + title_words, "meeting point", where)),
      notices_(world.allocate<Notice>(1, where)),
      slots_(world.allocate<std::uint64_t>(Index(world.fabric_->team_slots().taken().size()), where)),
      cards_(world.allocate<std::byte>(card_bytes_max, where)),
      calls_(world.allocate<std::uint64_t>(1, where)) {}

/// A word holds the key and the phase; 0 stands for `away`.
void MeetingPoint::enter(std::uint32_t key, Phase phase) {
  words_.store(world_.rank(), 0, phase == away ? 0 : (std::uint64_t(key) + 1) * phases + phase);
}

/// Publishes the title of this rank's meeting.
void MeetingPoint::announce(std::string_view title) {
  for (int i = 0; i < title_words; ++i) {
    std::uint64_t word = 0;
    const std::string_view part = title.substr(std::min(title.size(), i * word_bytes), word_bytes);
    std::memcpy(&word, part.data(), part.size());
    words_.store(world_.rank(), 1 + i, word);
  }
}

std::string MeetingPoint::announced(Rank rank) const {
  char text[title_words * word_bytes];
  for (int i = 0; i < title_words; ++i) {
    const std::uint64_t word = words_.load(rank, 1 + i);
    std::memcpy(text + i * word_bytes, &word, word_bytes);
  }
  return {text, ::strnlen(text, sizeof text)};
}

/// Waits until all ranks whose cards it has seen have come to the same result, or fail, too.
void MeetingPoint::refuse(const Error& error, std::uint32_t key, const std::vector<std::string>& cards,
                          CallSite where) {
  enter(key, refused);
  WaitNote note("the other ranks of a meeting that is refused", WaitNote::anyone, where);
  world_.wait_until(
      [&] {
        for (Rank rank = 0; rank < world_.size(); ++rank)
          if (!cards[std::size_t(rank)].empty() && words_.load(rank, 0) == (std::uint64_t(key) + 1) * phases + here)
            return false;
        return true;
      },
      note);
  throw error;
}

bool MeetingPoint::all_in(const Members& members, std::uint32_t key, Phase phase, WaitNote& note) const {
  for (int i = 0; i < members.count; ++i) {
    const Rank rank = members.rank_of(i);
    const std::uint64_t word = words_.load(rank, 0), wanted = (std::uint64_t(key) + 1) * phases + phase;
    if (word / phases == wanted / phases && word >= wanted) continue;
    note.raised_by = note.flag_rank = rank;
    note.flag_index = 0;
    note.wanted = wanted;
    note.seen = word;
    return false;
  }
  return true;
}

std::string MeetingPoint::card_of(Rank rank) const {
  Context& rma = world_.context();
  const Notice notice = rma.g(Symmetric<Notice>(notices_), rank);
  if (notice.card_bytes < 1 || notice.card_bytes > card_bytes_max_) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(notice.card_bytes));
  rma.get(bytes, cards_.slice(0, notice.card_bytes), rank);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the meetings of other ranks that can be reached, for the message of a wait that has failed.
std::string MeetingPoint::others_at(std::string_view title) const {
  RankList out;
  for (Rank rank = 0; rank < world_.size(); ++rank) try {
      const std::uint64_t word = words_.load(rank, 0);
      if (rank == world_.rank() || word == 0) continue;
      const std::string other = announced(rank);
      const bool has_given_up = word % phases == given_up;
      if (words_.load(rank, 0) != word) continue;  // it has left meanwhile
      if (other == title && !has_given_up) continue;
      out.add(rank, [&] { return fmt::format("{} '{}'", has_given_up ? "has given up at" : "waits at", other); });
    } catch (const Error&) {
      continue;  // the caller needs the error of the wait itself
    }
  return out.text();
}

MeetingPoint::Met MeetingPoint::meet(std::uint32_t key, const std::string& card,
                                     FunctionRef<std::optional<Members>(const std::vector<std::string>&)> who,
                                     CallSite where) {
  if (card.empty() || Index(card.size()) > card_bytes_max_)
    throw_error(ErrorCode::invalid_use, "a card has 1 to {} bytes, got {} (rank {}, {})", card_bytes_max_, card.size(),
                world_.rank(), short_name(where));
  Context& rma = world_.context();
  Fabric& fabric = *world_.fabric_;
  enter(key, away);  // in case it has given up before
  announce(title_of(card));
  notices_[0] = {Index(card.size())};
  std::vector<std::uint64_t> taken = fabric.team_slots().taken();
  std::copy(taken.begin(), taken.end(), slots_.local());
  std::memcpy(cards_.local(), card.data(), card.size());
  rma.writes(Symmetric<Notice>(notices_));
  rma.writes(Symmetric<std::uint64_t>(slots_));
  rma.writes(cards_.slice(0, Index(card.size())));
  enter(key, here);

  std::vector<std::string> cards(static_cast<std::size_t>(world_.size()));
  const auto read_card = [&](Rank rank) -> bool {
    const std::uint64_t word = words_.load(rank, 0);
    if (word / phases != std::uint64_t(key) + 1 || word % phases == given_up) return false;
    detail::Polls(world_).end_row();  // the enclosing wait has the deadline
    cards[std::size_t(rank)] = card_of(rank);
    std::vector<std::uint64_t> theirs(taken.size());
    rma.get(theirs, Symmetric<std::uint64_t>(slots_), rank);
    TeamSlots::add(taken, theirs);
    return !cards[std::size_t(rank)].empty();
  };
  std::optional<Members> members;
  std::optional<Error> refusal;
  const std::string title = title_of(card);
  const std::string label = fmt::format("the other ranks of a meeting at '{}'", title);
  WaitNote note(label.c_str(), WaitNote::anyone, where);
  try {
    world_.wait_until(
        [&] {
          bool has_come = false;
          for (Rank rank = 0; rank < world_.size(); ++rank)
            if (cards[std::size_t(rank)].empty()) has_come |= read_card(rank);
          if (!has_come) return false;
          try {
            members = who(cards);
          } catch (const Error& error) {
            refusal = error;
          }
          return refusal.has_value() || members.has_value();
        },
        note);
    if (refusal) refuse(*refusal, key, cards, where);
    for (Rank rank = 0; rank < world_.size(); ++rank)
      if (members->member_of(rank) < 0) cards[std::size_t(rank)].clear();

    const int slot = fabric.team_slots().first_free(taken);
    if (slot == fabric.team_slots().count()) Team::refuse_more(world_, slot, where);
    Team team(world_, fabric, *members, slot);
    calls_[0] = team.calls();
    rma.writes(Symmetric<std::uint64_t>(calls_));
    enter(key, counted);
    world_.wait_until([&] { return all_in(*members, key, counted, note); }, note);
    std::uint64_t calls_max = 0;
    for (int i = 0; i < members->count; ++i)
      calls_max = std::max(calls_max, rma.g(Symmetric<std::uint64_t>(calls_), members->rank_of(i)));
    team.begin_at(calls_max);
    enter(key, begun);
    world_.wait_until([&] { return all_in(*members, key, begun, note); }, note);
    team.sync(where);
    enter(key, away);
    team.sync(where);
    return {std::move(team), std::move(cards)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) {
      enter(key, away);
      throw;
    }
    enter(key, given_up);
    throw error.with_message(error.message() + others_at(title));
  } catch (...) {
    enter(key, away);
    throw;
  }
}

}  // namespace tranship
