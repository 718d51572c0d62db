#include "tranship/plan/explain.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/json.hpp>
#include <tranship/plan/enum_names.hpp>

namespace tranship {
namespace {

constexpr int messages_shown_max = 20;

/// The side of a group on which this rank is.
enum class Direction : std::uint8_t { receive, send };

Amount& operator+=(Amount& a, const Amount& b) {
  a.cells = checked_add(a.cells, b.cells);
  a.bytes = checked_add(a.bytes, b.bytes);
  return a;
}

/// Lattices with more distances are counted by closed forms and not run by run.
constexpr Index distances_listed_max = 512;

/// The number of some stretches, and the bytes in them.
struct Tally {
  Index count = 0;
  Index bytes = 0;

  Tally& operator+=(const Tally& other) {
    count = checked_add(count, other.count);
    bytes = checked_add(bytes, other.bytes);
    return *this;
  }
};

class StretchCounter {
 public:
  void add(Index length, Index count, Index cell_bytes) {
    by_length_[length] += {count, checked_multiply(checked_multiply(length, count), cell_bytes)};
  }

  /// Adds the stretches of a lattice `repeats` times; each of its cells is `inner` cells in a row.
  void add(const RunLattice& lattice, Index inner, Index repeats, Index cell_bytes) {
    if (lattice.distances() <= distances_listed_max)
      return lattice.for_each_run([&](const Run& run) {
        add(checked_multiply(run.length, inner), checked_multiply(run.count, repeats), cell_bytes);
      });
    lattices_.push_back({lattice, inner, repeats, checked_multiply(inner, cell_bytes)});
    checked_multiply(checked_multiply(lattice.cells(), repeats), lattices_.back().cell_bytes);
  }

  Stretches result() const {
    Stretches out;
    if (by_length_.empty() && lattices_.empty()) return out;
    out.shortest = shortest();
    out.longest = longest();
    std::map<Index, Tally> bins;
    for (const auto& [length, tally] : by_length_) bins[Index(std::bit_floor(std::uint64_t(length)))] += tally;
    for (const Lattice& one : lattices_) {
      Tally below;
      for (Index floor = 1; floor <= one.longest(); floor *= 2) {
        const Tally up = one.up_to(floor + (floor - 1));
        if (up.count > below.count) bins[floor] += {up.count - below.count, up.bytes - below.bytes};
        below = up;
        if (floor > one.longest() / 2) break;
      }
    }
    Tally total;
    for (const auto& [floor, tally] : bins) {
      out.bins.push_back({floor, tally.count, tally.bytes});
      total += tally;
    }
    Index seen = 0;
    for (const StretchBin& bin : out.bins) {
      if (seen < total.bytes - seen && seen + bin.bytes >= total.bytes - (seen + bin.bytes))
        out.median = median(bin.cells_min, seen, total.bytes);
      seen += bin.bytes;
    }
    return out;
  }

 private:
  struct Lattice {
    RunLattice lattice;
    Index inner;
    Index repeats;
    Index cell_bytes;

    Index longest() const { return std::min(lattice.source.length, lattice.target.length) * inner; }
    Tally up_to(Index length) const {
      const RunLattice::Share share = lattice.up_to(length / inner);
      return {share.stretches * repeats, share.cells * repeats * cell_bytes};
    }
  };

  /// Returns the least number of [lower, upper] for which `f` is true. `f` must be true for `upper`, and must stay true
  /// once it is.
  template <class F>
  static Index first_true(Index lower, Index upper, F&& f) {
    while (lower < upper) {
      const Index middle = lower + (upper - lower) / 2;
      if (f(middle))
        upper = middle;
      else
        lower = middle + 1;
    }
    return lower;
  }

  Index shortest() const {
    Index out = by_length_.empty() ? std::numeric_limits<Index>::max() : by_length_.begin()->first;
    for (const Lattice& one : lattices_) {
      const auto has = [&](Index length) { return one.up_to(length).count > 0; };
      const Index most = std::min(out - 1, one.longest());
      if (has(most)) out = first_true(1, most, has);
    }
    return out;
  }

  Index longest() const {
    Index out = by_length_.empty() ? 0 : by_length_.rbegin()->first;
    for (const Lattice& one : lattices_) {
      const Index all = one.up_to(one.longest()).count;
      const auto has_all = [&](Index length) { return one.up_to(length).count == all; };
      if (out < one.longest() && !has_all(out)) out = first_true(out + 1, one.longest(), has_all);
    }
    return out;
  }

  /// Returns the least length in a bin such that at least half of all bytes are in stretches of at most that length;
  /// `seen` bytes are in earlier bins.
  Index median(Index floor, Index seen, Index total) const {
    std::vector<Tally> before;
    for (const Lattice& one : lattices_) before.push_back(one.up_to(floor - 1));
    return first_true(floor, floor + (floor - 1), [&](Index length) {
      Index up = seen;
      for (auto at = by_length_.lower_bound(floor); at != by_length_.end() && at->first <= length; ++at)
        up += at->second.bytes;
      for (std::size_t i = 0; i < lattices_.size(); ++i) up += lattices_[i].up_to(length).bytes - before[i].bytes;
      return up >= total - up;
    });
  }

  std::map<Index, Tally> by_length_;
  std::vector<Lattice> lattices_;
};

/// A group seen from one side, which sums over its tables.
class GroupView {
 public:
  GroupView(const TransferPlan& plan, const TransferGroup& group, Direction direction)
      : plan_(plan),
        group_(group),
        direction_(direction),
        cell_bytes_(size_bytes(plan.slots[group.source_slot].type)),
        extents_(plan.slots[direction == Direction::receive ? group.target_slot : group.source_slot].local_extents) {
    for (const auto& table : group.axes) {
      std::vector<Index>& cells = cells_.emplace_back();
      for (const AxisEntry& entry : table) cells.push_back(entry.cells());
    }
  }

  /// Returns, for each entry e of table k, the cells of all transfers that use it.
  std::vector<Index> cells_by_entry(int k) const {
    std::vector<Index> out(cells_[k].size(), 0);
    if (group_.peer_grid < 0) {
      for_each_listed([&](Rank, const Indices& at) { out[at[k]] = checked_add(out[at[k]], cells_at(at)); });
      return out;
    }
    Index others = 1;
    for (int j = 0; j < tables(); ++j)
      if (j != k) others = checked_multiply(others, std::accumulate(cells_[j].begin(), cells_[j].end(), Index(0)));
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = checked_multiply(cells_[k][e], others);
    return out;
  }

  Amount total() const {
    Index cells = 0;
    for (const Index some : cells_by_entry(0)) cells = checked_add(cells, some);
    return amount(cells);
  }

  /// Returns what this rank gives to itself.
  Amount local() const {
    if (group_.peer_grid < 0) {
      Index cells = 0;
      for_each_listed([&](Rank peer, const Indices& at) {
        if (peer == plan_.rank) cells = checked_add(cells, cells_at(at));
      });
      return amount(cells);
    }
    const std::optional<Place> place = plan_.peer_grids[group_.peer_grid].place_of(plan_.rank);
    if (!place || place->replica != group_.peer_replica) return {};
    Index cells = 1;
    for (int k = 0; k < tables(); ++k) {
      const int dim = direction_ == Direction::receive ? group_.source_dims[k] : group_.target_dims[k];
      Index along = 0;
      for (std::size_t e = 0; e < cells_[k].size(); ++e)
        if (group_.axes[k][e].peer == place->coordinates[dim]) along = cells_[k][e];
      cells = checked_multiply(cells, along);
    }
    return amount(cells);
  }

  /// Returns the cells of one transfer.
  Amount amount_of(const Transfer& transfer) const { return amount(cells_at(transfer.entries)); }

  void count_stretches(StretchCounter& counter) const {
    // Trailing dimensions that move whole belong to each stretch of the dimension before them.
    const std::vector<int>& dims = direction_ == Direction::receive ? group_.target_dims : group_.source_dims;
    Index inner = 1;
    for (int d = tables() - 1; d >= 0; --d) {
      const int k = int(std::find(dims.begin(), dims.end(), d) - dims.begin());
      if (d > 0 && is_whole(k, extents_[d])) {
        inner = checked_multiply(inner, extents_[d]);
        continue;
      }
      const std::vector<Index> moved = cells_by_entry(k);
      for (std::size_t e = 0; e < moved.size(); ++e) {
        const Index repeats = moved[e] / cells_[k][e] / inner;
        if (repeats == 0) continue;
        for (const Run& run : group_.axes[k][e].runs) {
          const auto [length, count] = stretches_of(run);
          counter.add(checked_multiply(length, inner), checked_multiply(count, repeats), cell_bytes_);
        }
        for (const RunLattice& lattice : group_.axes[k][e].lattices) counter.add(lattice, inner, repeats, cell_bytes_);
      }
      return;
    }
  }

 private:
  int tables() const { return int(cells_.size()); }
  Amount amount(Index cells) const {
    Amount out{.cells = cells};
    if (__builtin_mul_overflow(cells, cell_bytes_, &out.bytes))
      throw_error(ErrorCode::overflow, "{} of {} in a local array of extents [{}]: their bytes do not fit in 63 bits",
                  tranship::amount(cells, "cell"), name_of(plan_.slots[group_.source_slot].type), to_string(extents_));
    return out;
  }

  Index cells_at(const Indices& at) const {
    Index cells = 1;
    for (int k = 0; k < tables(); ++k) cells = checked_multiply(cells, cells_[k][at[k]]);
    return cells;
  }

  void for_each_listed(FunctionRef<void(Rank, const Indices&)> f) const {
    Indices counts;
    for (const auto& cells : cells_) counts.push_back(Index(cells.size()));
    std::size_t number = 0;
    for_each_coordinate(counts, [&](const Indices& at) {
      const Rank peer = group_.peers[number++];
      if (peer >= 0) f(peer, at);
    });
  }

  bool is_whole(int k, Index extent) const {
    if (group_.axes[k].size() != 1 || group_.axes[k][0].runs.size() != 1 || !group_.axes[k][0].lattices.empty())
      return false;
    return stretches_of(group_.axes[k][0].runs[0]) == std::pair<Index, Index>(extent, 1);
  }

  /// Returns the length and the number of stretches of a run along this rank's own dimension.
  std::pair<Index, Index> stretches_of(const Run& run) const {
    const Index step = direction_ == Direction::receive ? run.target_step : run.source_step;
    const Index pitch = direction_ == Direction::receive ? run.target_pitch : run.source_pitch;
    if (step != 1) return {1, run.cells()};
    return pitch == run.length ? std::pair(run.cells(), Index(1)) : std::pair(run.length, run.count);
  }

  const TransferPlan& plan_;
  const TransferGroup& group_;
  Direction direction_;
  Index cell_bytes_;
  const Indices& extents_;
  std::vector<std::vector<Index>> cells_;
};

Amount amount_of(const TransferPlan& plan, const IndexedTransfer& list) {
  const Index cells = checked_multiply(Index(list.source_cells.size()), list.inner);
  return {cells, checked_multiply(cells, size_bytes(plan.slots[list.source_slot].type))};
}

void count_stretches(const TransferPlan& plan, const IndexedTransfer& list, Direction direction,
                     StretchCounter& counter) {
  const std::vector<Index>& cells = direction == Direction::receive ? list.target_cells : list.source_cells;
  const Index cell_bytes = size_bytes(plan.slots[list.source_slot].type);
  if (list.inner == 0) return;
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t end = i + 1;
    while (end < cells.size() && cells[end] == cells[end - 1] + 1) ++end;
    counter.add(Index(end - i) * list.inner, 1, cell_bytes);
    i = end;
  }
}

/// One direction of a plan.
struct Flow {
  Index messages = 0;
  Amount remote;
  Amount local;
  std::map<Rank, Amount> by_peer;  ///< includes this rank
};

Flow flow_of(const TransferPlan& plan, Direction direction, StretchCounter& stretches) {
  const bool receive = direction == Direction::receive;
  const auto& groups = receive ? plan.receives : plan.sends;
  const auto& lists = receive ? plan.indexed_receives : plan.indexed_sends;
  Flow out;
  Amount total;
  Index transfers = Index(lists.size());
  std::vector<GroupView> views;
  views.reserve(groups.size());
  for (const TransferGroup& group : groups) {
    const GroupView& view = views.emplace_back(plan, group, direction);
    total += view.total();
    out.local += view.local();
    view.count_stretches(stretches);
    transfers = checked_add(transfers, group.combinations());
  }
  for (const IndexedTransfer& list : lists) {
    const Amount amount = amount_of(plan, list);
    total += amount;
    if (list.peer == plan.rank) out.local += amount;
    count_stretches(plan, list, direction, stretches);
  }
  out.remote = {total.cells - out.local.cells, total.bytes - out.local.bytes};

  out.messages = transfers;
  if (transfers > transfers_listed_max) return out;
  const TransferGroup* first = groups.data();
  auto add = [&](const Transfer& t) { out.by_peer[t.peer] += views[std::size_t(t.group - first)].amount_of(t); };
  if (receive) {
    plan.for_each_receive(add);
  } else {
    plan.for_each_send(add);
  }
  for (const IndexedTransfer& list : lists) out.by_peer[list.peer] += amount_of(plan, list);
  out.messages = Index(out.by_peer.size()) - Index(out.by_peer.count(plan.rank));
  return out;
}

std::vector<Combine> combines_of(const TransferPlan& plan) {
  std::set<Combine> found;
  const auto find = [&](const auto& moves) {
    for (const auto& one : moves)
      if (const std::optional<Combine> combine = combine_of(one.map)) found.insert(*combine);
  };
  find(plan.receives);
  find(plan.sends);
  find(plan.indexed_receives);
  find(plan.indexed_sends);
  for (const auto* fills : {&plan.fills_before, &plan.fills_after})
    for (const LocalFill& fill : *fills)
      if (fill.kind == LocalFillKind::accumulate) found.insert(fill.combine);
  return {found.begin(), found.end()};
}

PlanSummary summarise(const TransferPlan& plan, StretchCounter& received, StretchCounter& sent) {
  PlanSummary out{.kind = plan.kind, .combines = combines_of(plan), .rank = plan.rank};
  const Flow in = flow_of(plan, Direction::receive, received), away = flow_of(plan, Direction::send, sent);
  out.messages_received = in.messages;
  out.messages_sent = away.messages;
  out.received = in.remote;
  out.sent = away.remote;
  out.local = in.local;
  for (const auto* fills : {&plan.fills_before, &plan.fills_after})
    for (const LocalFill& fill : *fills) {
      Indices sums;
      for (const auto& runs : fill.axes) {
        Index sum = 0;
        for (const Run& run : runs) sum += run.cells();
        sums.push_back(sum);
      }
      const Index cells = checked_product(sums);
      out.filled += {cells, checked_multiply(cells, size_bytes(plan.slots[fill.slot].type))};
    }
  out.stored_runs = plan.stored_runs();
  std::map<Rank, PeerAmount> peers;
  for (const auto& [peer, amount] : in.by_peer) peers[peer].received = amount;
  for (const auto& [peer, amount] : away.by_peer) peers[peer].sent = amount;
  peers.erase(plan.rank);
  for (auto& [peer, amount] : peers) {
    amount.peer = peer;
    out.peers.push_back(amount);
  }
  return out;
}

// --- The world ------------------------------------------------------------------------------------------------------

/// Plans for the ranks of some grids and adds up the summaries.
template <class Plan>
WorldSummary summarise_world(PlanKind kind, std::vector<Rank> ranks, Plan&& plan) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  WorldSummary out{.kind = kind, .ranks = Index(ranks.size())};
  StretchCounter received, sent;
  for (const Rank rank : ranks) {
    const PlanSummary one = summarise(plan(rank), received, sent);
    out.messages = checked_add(out.messages, one.messages_received);
    out.moved += one.received;
    out.local += one.local;
    out.filled += one.filled;
    if (out.receiver.rank < 0 || one.received.bytes > out.receiver.bytes)
      out.receiver = {rank, one.messages_received, one.received.bytes};
    if (out.sender.rank < 0 || one.sent.bytes > out.sender.bytes)
      out.sender = {rank, one.messages_sent, one.sent.bytes};
    out.stored_runs_max = std::max(out.stored_runs_max, one.stored_runs);
  }
  out.written_stretches = received.result();
  return out;
}

void append_ranks(const ArraySpec& spec, std::vector<Rank>& ranks) {
  const std::vector<Rank> more = spec.distribution.grid().ranks();
  ranks.insert(ranks.end(), more.begin(), more.end());
}

// --- Text -----------------------------------------------------------------------------------------------------------

/// Returns "1.5 MiB", or nothing below 1 KiB.
std::string rounded(Index bytes) {
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return "";
  double value = double(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
  return fmt::format(" ({:.1f} {})", value, units[unit]);
}

std::string line(const char* what, const std::string& messages, const Amount& amount) {
  return fmt::format("  {:<9}{:>14}  {:>16} cells  {:>18} bytes{}\n", what, messages, amount.cells, amount.bytes,
                     rounded(amount.bytes));
}

std::string messages_text(Index count) {
  return amount(count, "message");
}

std::string text_of(const char* what, const Stretches& stretches) {
  if (stretches.bins.empty()) return "";
  std::string out = fmt::format("  stretches {}: shortest {}, median {}, longest {}\n", what, stretches.shortest,
                                stretches.median, amount(stretches.longest, "cell"));
  Index total = 0;
  for (const StretchBin& bin : stretches.bins) total += bin.bytes;
  for (const StretchBin& bin : stretches.bins) {
    // cells_min is a power of two; twice that minus one always fits.
    const Index last = bin.cells_min + (bin.cells_min - 1);
    const std::string cells = last > bin.cells_min ? fmt::format("{} to {}", bin.cells_min, last) : "1";
    out += fmt::format("    {:>22} cells  {:>14} times  {:>5.1f} % of the bytes\n", cells, bin.count,
                       100.0 * double(bin.bytes) / double(total));
  }
  return out;
}

std::string name_in_text(PlanKind kind) {
  switch (kind) {
    case PlanKind::redistribution:
      return "redistribution";
    case PlanKind::halo:
      return "halo exchange";
    case PlanKind::redistribution_adjoint:
      return "adjoint of a redistribution";
    case PlanKind::halo_adjoint:
      return "adjoint of a halo exchange";
  }
  return "";
}

// --- JSON -----------------------------------------------------------------------------------------------------------

Json json_of(const Amount& amount) {
  return {{"cells", amount.cells}, {"bytes", amount.bytes}};
}

Json json_of(Index messages, const Amount& amount) {
  return {{"messages", messages}, {"cells", amount.cells}, {"bytes", amount.bytes}};
}

Json json_of(const Stretches& stretches) {
  Json bins = Json::array();
  for (const StretchBin& bin : stretches.bins)
    bins.push_back(Json{{"cells_min", bin.cells_min}, {"count", bin.count}, {"bytes", bin.bytes}});
  return {{"shortest", stretches.shortest},
          {"median", stretches.median},
          {"longest", stretches.longest},
          {"bins", std::move(bins)}};
}

Json json_of(const WorldSummary::Busiest& busiest) {
  return {{"rank", busiest.rank}, {"messages", busiest.messages}, {"bytes", busiest.bytes}};
}

}  // namespace

PlanSummary summarise(const TransferPlan& plan) {
  StretchCounter received, sent;
  PlanSummary out = summarise(plan, received, sent);
  out.received_stretches = received.result();
  out.sent_stretches = sent.result();
  return out;
}

std::string explain_text(const PlanSummary& summary) {
  std::vector<std::string_view> words;
  for (const Combine combine : summary.combines) words.push_back(name_of(combine));
  std::string out = fmt::format("{}{}{}, rank {}: {}\n", name_in_text(summary.kind), words.empty() ? "" : " by ",
                                join_text(words, " and "), summary.rank, amount(summary.stored_runs, "run"));
  out += line("receives", messages_text(summary.messages_received), summary.received);
  out += line("sends", messages_text(summary.messages_sent), summary.sent);
  out += line("keeps", "", summary.local);
  if (summary.filled.cells > 0) out += line("fills", "", summary.filled);
  out += text_of("written", summary.received_stretches);
  out += text_of("read", summary.sent_stretches);

  struct Message {
    const char* direction;
    Rank peer;
    Amount amount;
  };
  std::vector<Message> messages;
  for (const PeerAmount& peer : summary.peers) {
    if (peer.received.cells > 0) messages.push_back({"from", peer.peer, peer.received});
    if (peer.sent.cells > 0) messages.push_back({"to", peer.peer, peer.sent});
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.amount.bytes > b.amount.bytes; });
  if (messages.empty()) return out;
  out += "  largest messages\n";
  const int shown = std::min(int(messages.size()), messages_shown_max);
  for (int i = 0; i < shown; ++i) {
    const auto& [direction, peer, amount] = messages[i];
    out += fmt::format("    {:<4} rank {:>9}  {:>16} cells  {:>18} bytes{}\n", direction, peer, amount.cells,
                       amount.bytes, rounded(amount.bytes));
  }
  if (int(messages.size()) > shown) out += fmt::format("    and {} more\n", messages.size() - std::size_t(shown));
  return out;
}

std::string explain_text(const TransferPlan& plan) {
  return explain_text(summarise(plan));
}

std::string explain_json(const PlanSummary& summary) {
  Json peers = Json::array();
  for (const PeerAmount& peer : summary.peers)
    peers.push_back(Json{{"rank", peer.peer}, {"received", json_of(peer.received)}, {"sent", json_of(peer.sent)}});
  Json combines = Json::array();
  for (const Combine combine : summary.combines) combines.push_back(name_of(combine));
  const Json out = {{"kind", name_of(summary.kind)},
                    {"combines", std::move(combines)},
                    {"rank", summary.rank},
                    {"received", json_of(summary.messages_received, summary.received)},
                    {"sent", json_of(summary.messages_sent, summary.sent)},
                    {"local", json_of(summary.local)},
                    {"filled", json_of(summary.filled)},
                    {"received_stretches", json_of(summary.received_stretches)},
                    {"sent_stretches", json_of(summary.sent_stretches)},
                    {"stored_runs", summary.stored_runs},
                    {"peers", std::move(peers)}};
  return out.dump() + "\n";
}

std::string explain_json(const TransferPlan& plan) {
  return explain_json(summarise(plan));
}

WorldSummary summarise_redistribution(const ArraySpec& source, const ArraySpec& target,
                                      const RedistributionOptions& options) {
  std::vector<Rank> ranks;
  append_ranks(source, ranks);
  append_ranks(target, ranks);
  return summarise_world(PlanKind::redistribution, std::move(ranks),
                         [&](Rank rank) { return plan_redistribution(source, target, rank, options); });
}

WorldSummary summarise_halo(std::span<const ArraySpec> fields, const HaloOptions& options) {
  std::vector<Rank> ranks;
  for (const ArraySpec& field : fields) append_ranks(field, ranks);
  return summarise_world(PlanKind::halo, std::move(ranks), [&](Rank rank) { return plan_halo(fields, rank, options); });
}

WorldSummary summarise_halo(const Tiling& tiling, std::span<const TiledField> fields, const TiledHaloOptions& options) {
  std::vector<Rank> ranks;
  for (const TiledField& field : fields)
    for (const ArraySpec& tile : field.tiles) append_ranks(tile, ranks);
  return summarise_world(PlanKind::halo, std::move(ranks),
                         [&](Rank rank) { return plan_halo(tiling, fields, rank, options); });
}

std::string explain_text(const WorldSummary& summary) {
  std::string out = fmt::format("{}, {}: at most {} on a rank\n", name_in_text(summary.kind),
                                amount(summary.ranks, "rank"), amount(summary.stored_runs_max, "run"));
  out += line("moves", messages_text(summary.messages), summary.moved);
  out += line("keeps", "", summary.local);
  if (summary.filled.cells > 0) out += line("fills", "", summary.filled);
  out += text_of("written", summary.written_stretches);
  if (summary.messages == 0) return out;
  auto busiest = [&](const char* what, const WorldSummary::Busiest& rank) {
    out += fmt::format("  {} {:>9} {} the most: {}{} in {}\n", "rank", rank.rank, what, amount(rank.bytes, "byte"),
                       rounded(rank.bytes), messages_text(rank.messages));
  };
  busiest("receives", summary.receiver);
  busiest("sends", summary.sender);
  return out;
}

std::string explain_json(const WorldSummary& summary) {
  const Json out = {{"kind", name_of(summary.kind)},
                    {"ranks", summary.ranks},
                    {"moved", json_of(summary.messages, summary.moved)},
                    {"local", json_of(summary.local)},
                    {"filled", json_of(summary.filled)},
                    {"most_received", json_of(summary.receiver)},
                    {"most_sent", json_of(summary.sender)},
                    {"written_stretches", json_of(summary.written_stretches)},
                    {"stored_runs_max", summary.stored_runs_max}};
  return out.dump() + "\n";
}

}  // namespace tranship
