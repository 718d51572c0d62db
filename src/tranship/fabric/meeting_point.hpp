// Private: MeetingPoint, how some ranks of a world become a team while the others do something else. They find each
// other by a key that they share, and by cards on which each says what it brings.
//
//   phase of each rank's word:  away  ->  here: its card lies there  ->  counted: it has read all cards and says how
//   often it has met in the team's slot  ->  begun: at the highest of these numbers
//
// All members wait for each phase of all members. Before any of them goes away they meet as the team that they have
// become, so each of them has seen the last phase; and once more afterwards, so none sees the words of a meeting that
// is over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

class MeetingPoint {
 public:
  /// Collective over the world. Cards hold so many bytes at most.
  MeetingPoint(World& world, Index card_bytes_max, CallSite where = CallSite::here());

  struct Met {
    Team team;
    std::vector<std::string> cards;  ///< by rank of the world; empty of those that are not in the team
  };
  /// Collective over those who bring this key, until the world's timeout. `who` is told the cards that lie there so
  /// far, by rank of the world (an empty one where there is none) and says who the members are, or nothing as long as
  /// some of them have not come. It gives the same answer on all of them. What it throws
  /// ends the call, on all whose cards lead to it: a rank that refuses stays until those that it has seen do so, too.
  ///
  /// The first line of a card names the meeting. A wait that fails with `timeout` says at which other meetings ranks
  /// are, or were when they gave up.
  ///
  /// A rank is at one meeting at a time. Ranks that have several meetings in common come to them in the same order.
  /// Throws `invalid_use` for a card that is empty or too long; `unsupported` when there are as many teams as there can
  /// be; `timeout`, `peer_lost`.
  Met meet(std::uint32_t key, const std::string& card,
           FunctionRef<std::optional<Members>(const std::vector<std::string>&)> who, CallSite where);

 private:
  /// A rank that has given up leaves its card where it is, for others to read why they wait.
  enum Phase : std::uint64_t { away, given_up, here, counted, begun, refused };
  struct Notice {
    Index card_bytes = 0;
  };

  void enter(std::uint32_t key, Phase phase);
  [[noreturn]] void refuse(const Error& error, std::uint32_t key, const std::vector<std::string>& cards,
                           CallSite where);
  /// The card that lies at a rank, or lay there when it gave up; empty where there is none.
  std::string card_of(Rank rank) const;
  std::string others_at(std::string_view title) const;
  void announce(std::string_view title);
  /// What a rank has announced last; readable while it changes, and whole where the rank's word is the same after it.
  std::string announced(Rank rank) const;
  bool all_in(const Members& members, std::uint32_t key, Phase phase, WaitNote& note) const;

  World& world_;
  Index card_bytes_max_;
  SharedFlags words_;
  SymmetricArray<Notice> notices_;
  SymmetricArray<std::uint64_t> slots_;  ///< that the rank's teams have taken
  SymmetricArray<std::byte> cards_;
  SymmetricArray<std::uint64_t> calls_;
};

}  // namespace tranship
