// Private: MeetingPoint: how some ranks of a world become a team while the others do something else. They find each
// other by a shared key, and by cards on which each states what it brings.
//
//   phase of each rank's word:  away  ->  here: its card is readable  ->  counted: it has read all cards, and publishes
//   how often it has met in the team's slot  ->  begun: it has set its team to the highest of these counts
//
// Every member waits until all members have reached each phase. Before any of them returns to `away`, they meet as the
// new team, so that each of them has seen the last phase; afterwards they meet once more, so that none sees the words
// of a meeting that is over.
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
  /// Collective over the world. A card has at most `card_bytes_max` bytes.
  MeetingPoint(World& world, Index card_bytes_max, CallSite where = CallSite::here());

  struct Met {
    Team team;
    std::vector<std::string> cards;  ///< by rank of the world; empty for ranks that are not in the team
  };
  /// Collective over the ranks that pass this key, until the world's timeout. `who` receives the cards that are
  /// readable so far, by rank of the world (empty where there is none), and returns the members, or nothing while some
  /// of them are missing. It must return the same members on all of them. An Error that it throws ends the call on all
  /// ranks whose cards lead to it: a rank that refuses waits until the ranks that it has seen refuse, too.
  ///
  /// The first line of a card names the meeting. The message of a `timeout` lists the other meetings at which ranks
  /// wait, or waited when they gave up.
  ///
  /// A rank takes part in one meeting at a time. Ranks that have several meetings in common must come to them in the
  /// same order. Throws `invalid_use` for a card that is empty or too long, `unsupported` when the maximum number of
  /// teams exists, `timeout` and `peer_lost`.
  Met meet(std::uint32_t key, const std::string& card,
           FunctionRef<std::optional<Members>(const std::vector<std::string>&)> who, CallSite where);

 private:
  /// A rank that has given up leaves its card readable, so that others can report why they wait.
  enum Phase : std::uint64_t { away, given_up, here, counted, begun, refused };
  struct Notice {
    Index card_bytes = 0;
  };

  void enter(std::uint32_t key, Phase phase);
  [[noreturn]] void refuse(const Error& error, std::uint32_t key, const std::vector<std::string>& cards,
                           CallSite where);
  /// Returns the card of a rank, also of one that has given up; empty if there is none.
  std::string card_of(Rank rank) const;
  std::string others_at(std::string_view title) const;
  void announce(std::string_view title);
  /// Returns the title that a rank has announced last. It may change during the read; it is whole if the rank's word is
  /// the same afterwards.
  std::string announced(Rank rank) const;
  bool all_in(const Members& members, std::uint32_t key, Phase phase, WaitNote& note) const;

  World& world_;
  Index card_bytes_max_;
  SharedFlags words_;
  SymmetricArray<Notice> notices_;
  SymmetricArray<std::uint64_t> slots_;  ///< slots that the rank's teams have taken
  SymmetricArray<std::byte> cards_;
  SymmetricArray<std::uint64_t> calls_;
};

}  // namespace tranship
