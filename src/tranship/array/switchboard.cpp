#include "tranship/array/switchboard.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/meeting_point.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/run/located.hpp>

namespace tranship {
namespace {

constexpr Index card_bytes_max = Index(1) << 16;

/// Returns a rank's card: a line per side with the number of its buffers and the JSON of its distribution, or nothing.
std::string card_of(const std::optional<ArraySpec>& source, const std::optional<ArraySpec>& target,
                    const PipeOptions& options) {
  const auto line = [](const std::optional<ArraySpec>& spec, const PipeBuffers& buffers) {
    return spec ? fmt::format("{} {}", buffers.count, to_json(*spec)) : std::string();
  };
  return line(source, options.from) + "\n" + line(target, options.to);
}
std::string side_of(const std::string& card, int side) {
  const std::size_t middle = card.find('\n');
  return side == 0 ? card.substr(0, middle) : card.substr(middle + 1);
}

/// FNV-1a. Names may share a key: a card begins with its name, so cards of other names are skipped.
std::uint32_t key_of(std::string_view name) {
  std::uint32_t key = 2166136261u;
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 16777619u;
  return key;
}
std::vector<std::string> sides_of(std::string_view name, std::vector<std::string> cards) {
  for (std::string& card : cards) {
    const std::size_t end = card.find('\n');
    card = std::string_view(card).substr(0, end) == name ? card.substr(end + 1) : std::string();
  }
  return cards;
}

/// One side, as the cards describe it.
struct SideFound {
  std::string json;
  std::optional<ArraySpec> spec;
  Rank given_by = -1;   // the first rank that gives the side
  Index count_max = 1;  // number of buffers

  void read(const std::vector<std::string>& cards, int side) {
    for (std::size_t r = 0; r < cards.size(); ++r) {
      if (cards[r].empty()) continue;
      const std::string line = side_of(cards[r], side);
      if (line.empty()) continue;
      const std::string text = line.substr(line.find(' ') + 1);
      count_max = std::max(count_max, Index(std::atoll(line.c_str())));
      if (!spec) {
        json = text;
        given_by = Rank(r);
        spec = array_spec_from_json(text);
      } else if (text != json) {
        throw_error(ErrorCode::mismatch, "rank {} gives {} as the {}; rank {} gives {}", r,
                    to_text(array_spec_from_json(text)), side == 0 ? "source" : "target", given_by, to_text(*spec));
      }
    }
  }
};

std::string rank_key(const World& world) {
  bool any = false;
  std::string out;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    const Rank launched = world.launched_rank(rank);
    any |= launched != rank;
    out += rank == 0 ? fmt::format("; here rank 0 is rank {} of the world", launched)
                     : fmt::format(", rank {} is rank {}", rank, launched);
  }
  return any ? out : "";
}

ArraySpec among(const ArraySpec& spec, const Members& members) {
  std::vector<Rank> ranks = spec.distribution.grid().ranks();
  for (Rank& rank : ranks) rank = members.member_of(rank);
  return {spec.type, spec.distribution.on_ranks(std::move(ranks))};
}

}  // namespace

struct Switchboard::State {
  /// A world of some ranks, which the lines between them share.
  struct Joined {
    Members members;
    std::uint64_t number = 0;  ///< equal on all its ranks
    std::weak_ptr<SubWorld> world;
  };

  World& world;
  MeetingPoint point;
  std::vector<Joined> joined;
  std::uint64_t joined_count = 0;  // at least the greatest number in `joined`

  State(World& w, CallSite where) : world(w), point(w, card_bytes_max, where) {}

  /// Returns the ranks of both sides once all have published their cards.
  std::optional<Members> members_of(const std::vector<std::string>& cards, SideFound& source, SideFound& target) const {
    source.read(cards, 0);
    target.read(cards, 1);
    if (!source.spec || !target.spec) return std::nullopt;
    std::vector<Rank> ranks;
    for (const auto& [found, side] : {std::pair(&source, 0), std::pair(&target, 1)})
      for (const Rank rank : found->spec->distribution.grid().ranks()) {
        if (rank >= world.size())
          throw_error(ErrorCode::invalid_use, "the {} needs {}, the world has {}", side == 0 ? "source" : "target",
                      counted(found->spec->distribution.grid().world_size_min(), "rank"), world.size());
        const std::string& card = cards[std::size_t(rank)];
        if (card.empty()) return std::nullopt;
        if (side_of(card, side).empty())
          throw_error(ErrorCode::mismatch, "rank {} belongs to the {} but gives only the other side", rank,
                      side == 0 ? "source" : "target");
        ranks.push_back(rank);
      }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return Members::of(ranks);
  }

  /// Collective over the team. Returns one of its worlds that has room for `bytes` more, or a new one.
  std::shared_ptr<SubWorld> world_of(Team& team, std::size_t bytes, CallSite where) {
    std::erase_if(joined, [](const Joined& one) { return one.world.expired(); });
    /// The number of a world, or 0 if the rank has none to offer.
    struct Offer {
      std::uint64_t lowest = 0, highest = 0, count = 0;
    };
    std::uint64_t number = 0;
    std::shared_ptr<SubWorld> found;
    for (const Joined& one : joined) {
      if (!(one.members == team.members())) continue;
      const std::shared_ptr<SubWorld> sub = one.world.lock();
      const HeapUsage usage = sub->world().heap().usage();
      if (usage.reserved_bytes - usage.used_bytes < bytes) continue;
      number = one.number;
      found = sub;
    }
    const auto both = [](const Offer& a, const Offer& b) {
      return Offer{std::min(a.lowest, b.lowest), std::max(a.highest, b.highest), std::max(a.count, b.count)};
    };
    const Offer all = team.reduce(Offer{number, number, joined_count}, both, where);
    joined_count = std::max(joined_count, all.count);
    if (found && all.lowest == all.highest) {
      found->world().set_timeout_ns(world.timeout_ns());
      return found;
    }
    // Addresses are reserved for more lines than this one; memory is committed when they need it.
    const std::size_t room = std::max(bytes + (std::size_t(1) << 20), world.heap().place().size_bytes / 64);
    auto made = std::make_shared<SubWorld>(team, SubWorldOptions{.heap_bytes = room}, where);
    joined.push_back({team.members(), ++joined_count, made});
    return made;
  }
  /// After a failed set-up, the ranks may have stopped at different points of it, so no later line may share this
  /// world.
  void forget(const std::shared_ptr<SubWorld>& sub) {
    std::erase_if(joined, [&](const Joined& one) { return one.world.lock() == sub; });
  }

  /// Upper bound on the symmetric memory of one line: for each pair of buffers, words for all members and the inboxes
  /// of posted messages.
  std::size_t heap_bytes(const Members& members, const ArraySpec& target, Index pairs) const {
    const auto words = std::size_t(checked_multiply(pairs, (members.count + Index(4)) * 1024));
    bool reaches_all = true;
    for (int i = 0; i < members.count; ++i) reaches_all &= world.context().reaches(members.rank_of(i));
    if (reaches_all) return words;
    Index elements_max = 0;
    for (const Rank rank : target.distribution.grid().ranks())
      elements_max = std::max(elements_max, target.distribution.storage(rank).elements);
    const Index frame = checked_multiply(elements_max, size_bytes(target.type)) + members.count * Index(64);
    return words + std::size_t(checked_multiply(2 * frame, pairs));
  }
};

std::string PipeLine::rank_key() const {
  return world_ ? tranship::rank_key(world_->world()) : "";
}

Switchboard::Switchboard(World& world, CallSite where) : state_(std::make_unique<State>(world, where)) {}
Switchboard::~Switchboard() = default;
Switchboard::Switchboard(Switchboard&&) noexcept = default;

PipeLine Switchboard::connect(std::string_view name, const std::optional<ArraySpec>& source,
                              const std::optional<ArraySpec>& target, const PipeOptions& options, CallSite where) {
  return located(where, [&]() -> PipeLine {
    World& world = state_->world;
    if (name.find('\n') != std::string_view::npos)
      throw_error(ErrorCode::invalid_use, "the name of a line must not contain a new line (rank {})", world.rank());
    if (!source && !target)
      throw_error(ErrorCode::invalid_use, "rank {} gives neither a source nor a target", world.rank());
    for (const auto& [spec, side] : {std::pair(&source, "source"), std::pair(&target, "target")})
      if (*spec && !(*spec)->distribution.grid().place_of(world.rank()))
        throw_error(ErrorCode::invalid_use, "rank {} is not in the {}, which has {}", world.rank(), side,
                    counted((*spec)->distribution.grid().size(), "rank"));
    SideFound from, to;
    MeetingPoint::Met met = state_->point.meet(
        key_of(name), fmt::format("{}\n{}", name, card_of(source, target, options)),
        [&](const std::vector<std::string>& cards) {
          from = to = {};
          return state_->members_of(sides_of(name, cards), from, to);
        },
        where);
    const Members members = met.team.members();
    if (members.count == world.size()) return {nullptr, Pipe(world, from.spec, to.spec, options, where)};
    const std::size_t bytes = state_->heap_bytes(members, *to.spec, from.count_max * to.count_max);
    std::shared_ptr<SubWorld> sub = state_->world_of(met.team, bytes, where);
    try {
      Pipe pipe(sub->world(), among(*from.spec, members), among(*to.spec, members), options, where);
      return {std::move(sub), std::move(pipe)};
    } catch (const Error& error) {
      state_->forget(sub);
      throw error.with_message(error.message() + rank_key(sub->world()));
    } catch (...) {
      state_->forget(sub);
      throw;
    }
  });
}

}  // namespace tranship
