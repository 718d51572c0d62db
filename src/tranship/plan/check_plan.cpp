#include "tranship/plan/check_plan.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/plan/written_cells.hpp>

namespace tranship {
namespace {

/// Wide enough for every sum and difference of indices below.
using Wide = __int128;

enum class End : std::uint8_t { source, target };

const char* name_of(End end) {
  return end == End::source ? "source" : "target";
}

/// `where` is a text or a function that makes one, because most of these texts are never needed.
template <class Where, class... Args>
[[noreturn]] void refuse(const Where& where, fmt::format_string<Args...> format, Args&&... args) {
  const std::string problem = fmt::format(format, std::forward<Args>(args)...);
  if constexpr (std::is_invocable_v<Where>)
    throw_error(ErrorCode::invalid_use, "{}: {}", where(), problem);
  else
    throw_error(ErrorCode::invalid_use, "{}: {}", where, problem);
}

// --- Cells of one dimension -----------------------------------------------------------------------------------------

/// `count` stretches of `length` cells, `pitch` >= 0 apart.
struct WideComb {
  Wide start = 0;
  Wide length = 0;
  Wide pitch = 0;
  Wide count = 1;

  Wide end() const { return start + (count - 1) * pitch + length; }
};

/// Returns the cells of one end of a run, in increasing order. A step of 0 stays on one cell.
WideComb comb_of(const Run& run, End end) {
  const Wide start = end == End::source ? run.source : run.target;
  const Wide step = end == End::source ? run.source_step : run.target_step;
  const Wide pitch = end == End::source ? run.source_pitch : run.target_pitch;
  WideComb comb{start, step == 0 ? 1 : run.length, pitch, run.count};
  if (step < 0) comb.start -= run.length - 1;
  if (pitch < 0) {
    comb.start += (comb.count - 1) * pitch;
    comb.pitch = -pitch;
  }
  return comb;
}

// --- The parts of a plan --------------------------------------------------------------------------------------------

class Checker {
 public:
  explicit Checker(const TransferPlan& plan) : plan_(plan) {}

  void check() {
    if (plan_.rank < 0) refuse("rank", "{} is below 0", plan_.rank);
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) check_slot(plan_.slots[i], fmt::format("slots[{}]", i));
    for (std::size_t i = 0; i < plan_.receives.size(); ++i)
      check_group(plan_.receives[i], End::target, fmt::format("receives[{}]", i));
    for (std::size_t i = 0; i < plan_.sends.size(); ++i)
      check_group(plan_.sends[i], End::source, fmt::format("sends[{}]", i));
    for (std::size_t i = 0; i < plan_.indexed_receives.size(); ++i)
      check_indexed(plan_.indexed_receives[i], End::target, fmt::format("indexed_receives[{}]", i));
    for (std::size_t i = 0; i < plan_.indexed_sends.size(); ++i)
      check_indexed(plan_.indexed_sends[i], End::source, fmt::format("indexed_sends[{}]", i));
    for (std::size_t i = 0; i < plan_.fills_before.size(); ++i)
      check_fill(plan_.fills_before[i], fmt::format("fills_before[{}]", i));
    for (std::size_t i = 0; i < plan_.fills_after.size(); ++i)
      check_fill(plan_.fills_after[i], fmt::format("fills_after[{}]", i));
    if (combines()) return;
    check_groups_written_once();
    check_lists_written_once();
  }

 private:
  /// Returns true when received values are combined with the target, so that a cell may be written several times.
  bool combines() const {
    return plan_.kind == PlanKind::redistribution_adjoint || plan_.kind == PlanKind::halo_adjoint;
  }

  static void check_slot(const Slot& slot, const std::string& where) {
    if (slot.local_extents.empty()) refuse(where, "has 0 dimensions; at least 1 is needed");
    for (const Index extent : slot.local_extents)
      if (extent < 0) refuse(where, "has extents [{}]; one is below 0", to_string(slot.local_extents));
    total_bytes(where, slot.type, [&] { return checked_product(slot.local_extents); });
  }

  /// Throws if the bytes of this many cells overflow.
  template <class Count>
  static void total_bytes(const std::string& where, ElementType type, Count&& count) {
    const Result<Index> bytes = attempt([&] { return checked_multiply(count(), size_bytes(type)); });
    if (!bytes) refuse(where, "{}", bytes.error().message());
  }

  const Slot& slot(int number, const std::string& where) const {
    if (number < 0 || number >= int(plan_.slots.size()))
      refuse(where, "names slot {} of {}", number, plan_.slots.size());
    return plan_.slots[number];
  }

  /// Checks the members that groups and lists have in common.
  template <class Moves>
  void check_slots_and_map(const Moves& moves, const std::string& where) const {
    const Slot &source = slot(moves.source_slot, where), &target = slot(moves.target_slot, where);
    if (source.type != target.type)
      refuse(where, "the source has elements {}, the target {}", tranship::name_of(source.type),
             tranship::name_of(target.type));
    if (combine_of(moves.map).has_value() != combines())
      refuse(where, "element map {} does not fit a plan of kind {}", tranship::name_of(moves.map),
             tranship::name_of(plan_.kind));
    if (!can_map(moves.map, source.type))
      refuse(where, "element map {} cannot be applied to elements {}", tranship::name_of(moves.map),
             tranship::name_of(source.type));
  }

  static void check_dims(const std::vector<int>& dims, std::size_t count, End end, const std::string& where) {
    std::vector<int> sorted = dims;
    std::sort(sorted.begin(), sorted.end());
    bool permutation = dims.size() == count;
    for (std::size_t i = 0; permutation && i < count; ++i) permutation = sorted[i] == int(i);
    if (!permutation)
      refuse(where, "{} dimensions [{}] are not a permutation of 0 to {}", name_of(end), join_text(dims, ", "),
             count - 1);
  }

  /// Throws unless the cells of one end lie in [0, extent).
  template <class Where>
  static void check_range(const Run& run, End end, Index extent, const Where& where) {
    const WideComb comb = comb_of(run, end);
    if (comb.start >= 0 && comb.end() <= extent) return;
    // Numbers that do not fit in 64 bits are shown as the nearest that does.
    auto shown = [](Wide value) { return Index(std::clamp<Wide>(value, INT64_MIN, INT64_MAX)); };
    refuse(where, "{} cells {} to {} are outside [0, {})", name_of(end), shown(comb.start), shown(comb.end() - 1),
           extent);
  }

  template <class Where>
  static void check_shape(const Run& run, Index length_min, const Where& where) {
    if (run.length < length_min || run.count < 1)
      refuse(where, "{} of {}; at least 1 of {} is needed", amount(run.count, "stretch", "stretches"),
             amount(run.length, "cell"), length_min);
    for (const Index step : {run.source_step, run.target_step})
      if (step < -1 || step > 1) refuse(where, "step {} is not -1, 0 or 1", step);
  }

  template <class Where>
  static void check_lattice(const RunLattice& lattice, End mine, Index extent, Index their_extent, const Where& where) {
    for (const End end : {End::source, End::target}) {
      const LocalComb& comb = end == End::source ? lattice.source : lattice.target;
      check_range(Run{.source = comb.start,
                      .target = comb.start,
                      .length = comb.length,
                      .count = comb.count,
                      .source_pitch = comb.pitch,
                      .target_pitch = comb.pitch},
                  end, end == mine ? extent : their_extent, where);
    }
    if (!lattice.is_sound())
      refuse(where, "{} of {} every {} and {} of {} every {}, {} apart, do not form a lattice",
             amount(lattice.source.count, "stretch", "stretches"), amount(lattice.source.length, "cell"),
             lattice.source.period, lattice.target.count, lattice.target.length, lattice.target.period,
             lattice.distance);
    if (lattice.stretches() == 0) refuse(where, "gives 0 stretches; at least 1 is needed");
  }

  static Index cells_of(const AxisEntry& entry, const std::string& where) {
    const Result<Index> cells = attempt([&] {
      Index sum = cells_of(entry.runs, where);
      for (const RunLattice& lattice : entry.lattices) sum = checked_add(sum, lattice.cells());
      return sum;
    });
    if (!cells) refuse(where, "{}", cells.error().message());
    return cells.value();
  }

  /// Returns the cells of some runs; throws on overflow.
  static Index cells_of(const std::vector<Run>& runs, const std::string& where) {
    const Result<Index> cells = attempt([&] {
      Index sum = 0;
      for (const Run& run : runs) sum = checked_add(sum, checked_multiply(run.length, run.count));
      return sum;
    });
    if (!cells) refuse(where, "{}", cells.error().message());
    return cells.value();
  }

  void check_group(const TransferGroup& group, End mine, const std::string& where) {
    check_slots_and_map(group, where);
    const std::size_t tables = group.axes.size();
    for (const End end : {End::source, End::target}) {
      const Slot& one = plan_.slots[end == End::source ? group.source_slot : group.target_slot];
      if (one.local_extents.size() != int(tables))
        refuse(where, "{} for a {} of {}: there must be one for each dimension", amount(tables, "table"), name_of(end),
               amount(one.local_extents.size(), "dimension"));
    }
    check_dims(group.source_dims, tables, End::source, where);
    check_dims(group.target_dims, tables, End::target, where);
    check_peers(group, mine, where);

    // If this rank is the peer of an entry, both ends of the entry are here.
    std::vector<std::vector<char>> own = own_entries(group, mine);
    const End theirs = mine == End::target ? End::source : End::target;
    Indices sums;
    for (std::size_t k = 0; k < tables; ++k) {
      Index sum = 0;
      for (std::size_t e = 0; e < group.axes[k].size(); ++e) {
        const AxisEntry& entry = group.axes[k][e];
        auto path = [&] { return fmt::format("{}.axes[{}][{}]", where, k, e); };
        if (entry.is_empty()) refuse(path, "gives 0 runs; at least 1 is needed");
        for (std::size_t r = 0; r < entry.runs.size(); ++r) {
          const Run& run = entry.runs[r];
          auto run_path = [&] { return fmt::format("{}.axes[{}][{}].runs[{}]", where, k, e, r); };
          check_shape(run, 1, run_path);
          check_range(run, mine, local_extent(group, mine, k), run_path);
          check_range(run, theirs, own[k][e] ? local_extent(group, theirs, k) : INT64_MAX, run_path);
        }
        for (std::size_t n = 0; n < entry.lattices.size(); ++n)
          check_lattice(entry.lattices[n], mine, local_extent(group, mine, k),
                        own[k][e] ? local_extent(group, theirs, k) : INT64_MAX,
                        [&] { return fmt::format("{}.axes[{}][{}].lattices[{}]", where, k, e, n); });
        const Index cells = cells_of(entry, where);
        const Result<Index> more = attempt([&] { return checked_add(sum, cells); });
        if (!more) refuse(path, "{}", more.error().message());
        sum = more.value();
      }
      sums.push_back(sum);
    }
    total_bytes(where, plan_.slots[group.source_slot].type, [&] { return checked_product(sums); });
  }

  Index local_extent(const TransferGroup& group, End end, std::size_t k) const {
    return end == End::source ? plan_.slots[group.source_slot].local_extents[group.source_dims[k]]
                              : plan_.slots[group.target_slot].local_extents[group.target_dims[k]];
  }

  /// Returns the dimension of the peers' grid along which table k runs.
  static int peer_dim(const TransferGroup& group, End mine, std::size_t k) {
    return mine == End::target ? group.source_dims[k] : group.target_dims[k];
  }

  void check_peers(const TransferGroup& group, End mine, const std::string& where) const {
    Indices counts;
    for (const auto& table : group.axes) counts.push_back(Index(table.size()));
    const Result<Index> combinations = attempt([&] { return checked_product(counts); });
    if (!combinations || combinations.value() > transfers_per_group_max)
      refuse(where, "tables of [{}] entries stand for more than {} transfers", to_string(counts),
             transfers_per_group_max);
    for (std::size_t k = 0; k < group.axes.size(); ++k)
      for (const AxisEntry& entry : group.axes[k])
        if (entry.peer < 0) refuse(where, "peer coordinate {} of table {} is below 0", entry.peer, k);

    if (group.peer_grid < -1) refuse(where, "names grid {}; -1 means none", group.peer_grid);
    if (group.peer_grid < 0) {
      if (Index(group.peers.size()) != combinations.value())
        refuse(where, "{} for {}", amount(group.peers.size(), "peer"), amount(combinations.value(), "transfer"));
      for (const Rank peer : group.peers)
        if (peer < -1) refuse(where, "peer {} is below -1", peer);
      return;
    }
    if (!group.peers.empty())
      refuse(where, "the group has a list of {} and names grid {}: it may have only one of them",
             amount(group.peers.size(), "peer"), group.peer_grid);
    if (group.peer_grid >= int(plan_.peer_grids.size()))
      refuse(where, "names grid {} of {}", group.peer_grid, plan_.peer_grids.size());
    const Grid& grid = plan_.peer_grids[group.peer_grid];
    if (grid.dims() != int(group.axes.size()))
      refuse(where, "{} for a grid of {}", amount(group.axes.size(), "table"), amount(grid.dims(), "dimension"));
    if (group.peer_replica < 0 || group.peer_replica >= grid.replicas())
      refuse(where, "names replica {} of {}", group.peer_replica, grid.replicas());
    for (std::size_t k = 0; k < group.axes.size(); ++k) {
      const Index extent = grid.extents()[peer_dim(group, mine, k)];
      Index last = -1;
      for (const AxisEntry& entry : group.axes[k]) {
        if (entry.peer >= extent)
          refuse(where, "peer coordinate {} of table {} is outside the grid's {}", entry.peer, k, extent);
        if (entry.peer <= last)
          refuse(where, "peer coordinate {} of table {} follows {}; they must increase", entry.peer, k, last);
        last = entry.peer;
      }
    }
  }

  std::vector<std::vector<char>> own_entries(const TransferGroup& group, End mine) const {
    std::vector<std::vector<char>> own;
    Indices counts;
    for (const auto& table : group.axes) {
      own.emplace_back(table.size(), 0);
      counts.push_back(Index(table.size()));
    }
    if (group.peer_grid < 0) {
      std::size_t number = 0;
      for_each_coordinate(counts, [&](const Indices& at) {
        if (group.peers[number++] == plan_.rank)
          for (int k = 0; k < at.size(); ++k) own[k][at[k]] = 1;
      });
      return own;
    }
    const std::optional<Place> place = plan_.peer_grids[group.peer_grid].place_of(plan_.rank);
    if (!place || place->replica != group.peer_replica) return own;
    for (std::size_t k = 0; k < own.size(); ++k) {
      bool found = false;
      for (std::size_t e = 0; e < own[k].size(); ++e)
        if (group.axes[k][e].peer == place->coordinates[peer_dim(group, mine, k)]) own[k][e] = found = true;
      if (!found) {
        for (auto& entries : own) std::fill(entries.begin(), entries.end(), 0);
        return own;
      }
    }
    return own;
  }

  void check_indexed(const IndexedTransfer& list, End mine, const std::string& where) const {
    check_slots_and_map(list, where);
    if (list.peer < 0) refuse(where, "peer {} is below 0", list.peer);
    if (list.inner < 0) refuse(where, "{} per cell", amount(list.inner, "element"));
    if (list.source_cells.size() != list.target_cells.size())
      refuse(where, "{} for {}", amount(list.source_cells.size(), "source cell"),
             amount(list.target_cells.size(), "target cell"));
    for (const End end : {End::source, End::target}) {
      const Slot& here = plan_.slots[end == End::source ? list.source_slot : list.target_slot];
      const bool known = end == mine || list.peer == plan_.rank;
      const Index count = known ? leading_cells(here.local_extents, list.inner, where) : INT64_MAX;
      for (const Index cell : end == End::source ? list.source_cells : list.target_cells)
        if (cell < 0 || cell >= count) refuse(where, "{} cell {} is outside [0, {})", name_of(end), cell, count);
    }
    total_bytes(where, plan_.slots[list.source_slot].type,
                [&] { return checked_multiply(Index(list.source_cells.size()), list.inner); });
  }

  /// Returns the cells of the leading dimensions if the trailing dimensions hold `inner` elements.
  static Index leading_cells(const Indices& extents, Index inner, const std::string& where) {
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
    Index trailing = 1;
    for (int leading = extents.size(); leading > 0; --leading) {
      if (trailing == inner) return checked_product(extents) / trailing;
      trailing *= extents[leading - 1];
    }
    refuse(where, "{} per cell do not fill the last dimensions of [{}]", amount(inner, "element"), to_string(extents));
  }

  void check_fill(const LocalFill& fill, const std::string& where) const {
    const Indices& extents = slot(fill.slot, where).local_extents;
    const ElementType type = plan_.slots[fill.slot].type;
    if (fill.kind == LocalFillKind::replicate && fill.combine != Combine::sum)
      refuse(where, "a fill that replicates cannot combine by {}", tranship::name_of(fill.combine));
    if (!can_map(map_of(fill.combine), type))
      refuse(where, "elements {} cannot be combined by {}", tranship::name_of(type), tranship::name_of(fill.combine));
    if (int(fill.axes.size()) != extents.size())
      refuse(where, "{} for a slot of {}", amount(fill.axes.size(), "table"), amount(extents.size(), "dimension"));
    Indices sums;
    for (std::size_t d = 0; d < fill.axes.size(); ++d) {
      for (std::size_t r = 0; r < fill.axes[d].size(); ++r) {
        const Run& run = fill.axes[d][r];
        auto path = [&] { return fmt::format("{}.axes[{}][{}]", where, d, r); };
        check_shape(run, 0, path);
        check_range(run, End::target, extents[int(d)], path);
        if (fill.kind != LocalFillKind::zero) check_range(run, End::source, extents[int(d)], path);
      }
      sums.push_back(cells_of(fill.axes[d], where));
    }
    total_bytes(where, plan_.slots[fill.slot].type, [&] { return checked_product(sums); });
  }

  /// A group writes a product of cells. Two products are disjoint if they are disjoint in one dimension.
  void check_groups_written_once() const {
    ComparisonBudget budget;
    std::vector<std::vector<WrittenCells>> written;  // per group and target dimension
    for (std::size_t i = 0; i < plan_.receives.size(); ++i) {
      const TransferGroup& group = plan_.receives[i];
      auto& dims = written.emplace_back(group.axes.size());
      for (std::size_t k = 0; k < group.axes.size(); ++k) {
        WrittenCells& cells = dims[group.target_dims[k]];
        auto twice = [&] {
          refuse(fmt::format("receives[{}].axes[{}]", i, k), "writes a cell of dimension {} of slot {} twice",
                 group.target_dims[k], group.target_slot);
        };
        for (const AxisEntry& entry : group.axes[k]) {
          for (const Run& run : entry.runs) {
            const WideComb comb = comb_of(run, End::target);
            const bool stays = run.length > 1 && run.target_step == 0;
            if (stays || (run.count > 1 && comb.pitch < comb.length)) twice();
            cells.add(run);
          }
          for (const RunLattice& lattice : entry.lattices) cells.add(lattice);
        }
        if (cells.any_twice(budget)) twice();
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (plan_.receives[j].target_slot != group.target_slot) continue;
        bool apart = false;
        for (std::size_t d = 0; d < dims.size() && !apart; ++d) {
          WrittenCells both = dims[d];
          both.add(written[j][d]);
          apart = !both.any_twice(budget);
        }
        if (!apart)
          refuse(fmt::format("receives[{}]", i), "writes a cell of slot {} that receives[{}] writes too",
                 group.target_slot, j);
      }
    }
  }

  void check_lists_written_once() const {
    std::vector<std::pair<int, Index>> cells;
    for (const IndexedTransfer& list : plan_.indexed_receives)
      for (const Index cell : list.target_cells) cells.emplace_back(list.target_slot, cell);
    std::sort(cells.begin(), cells.end());
    const auto twice = std::adjacent_find(cells.begin(), cells.end());
    if (twice != cells.end())
      refuse("indexed_receives", "cell {} of slot {} is written twice", twice->second, twice->first);
  }

  const TransferPlan& plan_;
};

}  // namespace

Result<void> check_plan(const TransferPlan& plan) {
  return attempt([&] { Checker(plan).check(); });
}

}  // namespace tranship
