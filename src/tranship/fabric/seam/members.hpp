// Detail: Members: the ranks of the world that form a team: three numbers if they lie at equal steps, otherwise a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// How a rank accesses a peer: by loads and stores of its memory, or only by messages.
enum class PeerKind { reachable, messaged };

/// Ranks in any order, and the position of each of them.
struct ListedRanks {
  std::vector<Rank> ranks;
  std::vector<std::pair<Rank, int>> by_rank;  ///< rank and member, sorted
};

/// Member i is rank first + i * stride of the world, or entry i of `listed` if there is a list, which is only the case
/// if the ranks do not lie at equal steps. Copies share the list.
struct Members {
  Rank first = 0;
  int stride = 1;
  int count = 1;
  std::shared_ptr<const ListedRanks> listed = {};

  /// Makes members of ranks, which must all be different.
  static Members of(const std::vector<Rank>& ranks) {
    Members out{.count = static_cast<int>(ranks.size())};
    if (!ranks.empty()) out.first = ranks[0];
    if (ranks.size() > 1) out.stride = ranks[1] - ranks[0];
    std::size_t equal = 0;
    while (equal < ranks.size() && out.rank_of(static_cast<int>(equal)) == ranks[equal]) ++equal;
    if (equal == ranks.size()) return out;
    ListedRanks list;
    list.ranks = ranks;
    for (const Rank rank : ranks) list.by_rank.emplace_back(rank, static_cast<int>(list.by_rank.size()));
    std::sort(list.by_rank.begin(), list.by_rank.end());
    out.listed = std::make_shared<const ListedRanks>(std::move(list));
    return out;
  }

  Rank rank_of(int member) const noexcept {
    if (listed) [[unlikely]]
      return listed->ranks[static_cast<std::size_t>(member)];
    return first + member * stride;
  }
  /// Returns -1 for a rank that is not in the team.
  int member_of(Rank rank) const noexcept {
    if (listed) [[unlikely]] {
      const auto at = std::lower_bound(listed->by_rank.begin(), listed->by_rank.end(), std::pair(rank, 0));
      return at != listed->by_rank.end() && at->first == rank ? at->second : -1;
    }
    const int distance = rank - first;
    const int member = distance / stride;
    return distance % stride == 0 && member >= 0 && member < count ? member : -1;
  }
  /// Returns true if each member has a higher rank than the one before.
  bool in_order() const noexcept {
    return listed ? std::is_sorted(listed->ranks.begin(), listed->ranks.end()) : count < 2 || stride > 0;
  }
  /// Returns the ranks if there is a list, else nullptr. Valid while a copy of these members lives.
  const Rank* list() const noexcept { return listed ? listed->ranks.data() : nullptr; }

  /// Returns those members that are also in `others`, as member numbers of `others`, in that order.
  Members among(const Members& others) const {
    std::vector<Rank> out;
    for (int i = 0; i < others.count; ++i)
      if (member_of(others.rank_of(i)) >= 0) out.push_back(i);
    return of(out);
  }
  /// Translates these member numbers of `outer` to ranks of the world of `outer`.
  Members in(const Members& outer) const {
    if (!listed && !outer.listed)
      return {.first = outer.rank_of(first), .stride = outer.stride * stride, .count = count};
    std::vector<Rank> out;
    for (int i = 0; i < count; ++i) out.push_back(outer.rank_of(rank_of(i)));
    return of(out);
  }

  friend bool operator==(const Members& a, const Members& b) {
    if (a.listed && b.listed) return a.listed->ranks == b.listed->ranks;
    return !a.listed && !b.listed && a.first == b.first && a.stride == b.stride && a.count == b.count;
  }
};

}  // namespace tranship
