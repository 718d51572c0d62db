#include "tranship/plan/redistribution.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/cut_pieces.hpp>
#include <tranship/plan/fills.hpp>
#include <tranship/plan/indexed_redistribution.hpp>
#include <tranship/plan/plan_size.hpp>
#include <tranship/plan/readers.hpp>

namespace tranship {
namespace {

using Axes = std::vector<std::vector<AxisEntry>>;

/// Returns what a part of the source gives to `pieces`, as the entry of the coordinate `peer`.
AxisEntry entry_between(const AxisParts& source, Index part, const std::vector<AxisPiece>& pieces, Index peer) {
  AxisEntry entry{.peer = peer};
  for (const AxisPiece& piece : pieces)
    if (piece.kind == AxisPieceKind::given) append_runs(source, part, piece.want, entry);
  return entry;
}

/// Returns what each source coordinate gives to one target coordinate.
std::vector<AxisEntry> entries_of_sources(const AxisParts& source, const std::vector<AxisPiece>& pieces) {
  std::vector<Index> parts;
  for (const AxisPiece& piece : pieces) {
    if (piece.kind != AxisPieceKind::given) continue;
    const std::vector<Index> giving = parts_giving(source, piece.want);
    parts.insert(parts.end(), giving.begin(), giving.end());
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::vector<AxisEntry> out;
  for (const Index part : parts)
    if (AxisEntry entry = entry_between(source, part, pieces, part); !entry.is_empty()) out.push_back(std::move(entry));
  return out;
}

/// Returns what part q of the target wants along dimension d: all that it stores, or only what it stores of a box. The
/// cells of a box have other coordinates in the source.
std::vector<AxisPiece> wanted_pieces(const Distribution& target, int d, Index q, const std::optional<SubArray>& box) {
  std::vector<AxisPiece> pieces = stored_pieces(target.axis(d), q);
  if (!box) return pieces;
  std::erase_if(pieces, [](const AxisPiece& piece) { return piece.kind != AxisPieceKind::given; });
  const Index first = box->target[d];
  pieces = cut_pieces(pieces, target.extents()[d], {first, first + box->extents[d]});
  for (AxisPiece& piece : pieces) piece.want.offset += box->source[d] - first;
  return pieces;
}

/// Returns what one source coordinate gives to each target coordinate.
std::vector<AxisEntry> entries_of_targets(const AxisParts& source, Index part, const Distribution& target, int d,
                                          const std::optional<SubArray>& box) {
  std::vector<AxisEntry> out;
  const AxisMap map{.sign = 1, .offset = box ? box->source[d] - box->target[d] : 0};
  for (const Index q : parts_wanting(target.axis(d), source, part, map))
    if (AxisEntry entry = entry_between(source, part, wanted_pieces(target, d, q, box), q); !entry.is_empty())
      out.push_back(std::move(entry));
  return out;
}

void check_box(const Distribution& array, const char* what, const Indices& first, const Indices& extents) {
  if (first.size() != array.dims() || extents.size() != array.dims())
    throw_error(ErrorCode::invalid_use, "the box from [{}] of extents [{}] does not fit a {} of {}", to_string(first),
                to_string(extents), what, amount(array.dims(), "dimension"));
  for (int d = 0; d < array.dims(); ++d)
    if (first[d] < 0 || extents[d] < 0 || extents[d] > array.extents()[d] || first[d] > array.extents()[d] - extents[d])
      throw_error(ErrorCode::invalid_use, "the box from [{}] of extents [{}] leaves the {} of extents [{}]",
                  to_string(first), to_string(extents), what, to_string(array.extents()));
}

std::vector<int> all_dims(int dims) {
  std::vector<int> out;
  for (int d = 0; d < dims; ++d) out.push_back(d);
  return out;
}

/// Chooses the owner from which `reader` reads a cell, among the replicas of the part at `coordinates` (0 along
/// replicated axes).
class OwnerChoice {
 public:
  OwnerChoice(const Distribution& source, const RedistributionOptions& options) : source_(source), options_(options) {
    for (int d = 0; d < source.dims(); ++d) copies_.push_back(source.axis(d).replicated() ? source.axis(d).parts() : 1);
  }

  Rank operator()(const Indices& coordinates, Rank reader) const {
    std::vector<Rank> owners;
    for (Index replica = 0; replica < source_.grid().replicas(); ++replica)
      for_each_coordinate(copies_, [&](const Indices& copy) {
        Place place{.coordinates = coordinates, .replica = replica};
        for (int d = 0; d < copy.size(); ++d) place.coordinates[d] += copy[d];
        owners.push_back(source_.grid().rank_of(place));
      });
    return nearest_owner(owners, reader, options_.distance);
  }

 private:
  const Distribution& source_;
  const RedistributionOptions& options_;
  Indices copies_;
};

void plan_structured(const Distribution& source, const Distribution& target, const RedistributionOptions& options,
                     TransferPlan& plan) {
  const int dims = target.dims();
  const Rank rank = plan.rank;
  const bool choose = source.replicated();
  const OwnerChoice owner(source, options);
  const TransferGroup empty{
      .source_slot = 0, .target_slot = 1, .source_dims = all_dims(dims), .target_dims = all_dims(dims)};

  if (const std::optional<Place> place = target.grid().place_of(rank)) {
    TransferGroup group = empty;
    std::vector<std::vector<AxisPiece>> pieces;
    for (int d = 0; d < dims; ++d) {
      pieces.push_back(wanted_pieces(target, d, place->coordinates[d], options.part));
      group.axes.push_back(entries_of_sources(source.axis(d), pieces[d]));
    }
    append_fills(1, pieces, plan.fills_after);
    if (group.combinations() > 0) {
      if (choose) {
        Indices counts;
        for (const auto& axis : group.axes) counts.push_back(Index(axis.size()));
        for_each_coordinate(counts, [&](const Indices& at) {
          Indices coordinates;
          for (int d = 0; d < dims; ++d) coordinates.push_back(group.axes[d][at[d]].peer);
          group.peers.push_back(owner(coordinates, rank));
        });
      } else {
        group.peer_grid = Index(plan.peer_grids.size());
        plan.peer_grids.push_back(source.grid());
      }
      plan.receives.push_back(std::move(group));
    }
  }

  if (const std::optional<Place> place = source.grid().place_of(rank)) {
    TransferGroup group = empty;
    Indices mine = place->coordinates;
    for (int d = 0; d < dims; ++d) {
      if (source.axis(d).replicated()) mine[d] = 0;
      group.axes.push_back(entries_of_targets(source.axis(d), mine[d], target, d, options.part));
    }
    if (group.combinations() == 0) return;
    Indices counts;
    for (const auto& axis : group.axes) counts.push_back(Index(axis.size()));
    if (!choose) {
      group.peer_grid = int(plan.peer_grids.size());
      plan.peer_grids.push_back(target.grid());
    }
    for (Index replica = 0; replica < target.grid().replicas(); ++replica) {
      TransferGroup one = group;
      one.peer_replica = replica;
      if (choose)
        for_each_coordinate(counts, [&](const Indices& at) {
          Place reader{.coordinates = {}, .replica = replica};
          for (int d = 0; d < dims; ++d) reader.coordinates.push_back(group.axes[d][at[d]].peer);
          const Rank to = target.grid().rank_of(reader);
          one.peers.push_back(owner(mine, to) == rank ? to : -1);
        });
      plan.sends.push_back(std::move(one));
    }
  }
}

}  // namespace

TransferPlan plan_redistribution(const ArraySpec& source, const ArraySpec& target, Rank rank,
                                 const RedistributionOptions& options) {
  const Distribution &from = source.distribution, &to = target.distribution;
  if (options.part) {
    if (from.is_indexed() || to.is_indexed())
      throw_error(ErrorCode::unsupported, "a box of extents [{}] cannot be moved: one of the arrays is indexed",
                  to_string(options.part->extents));
    check_box(from, "source", options.part->source, options.part->extents);
    check_box(to, "target", options.part->target, options.part->extents);
  } else if (!(from.extents() == to.extents()))
    throw_error(ErrorCode::mismatch, "the source has extents [{}], the target [{}]", to_string(from.extents()),
                to_string(to.extents()));
  if (source.type != target.type)
    throw_error(ErrorCode::mismatch, "the source has elements {}, the target {}", name_of(source.type),
                name_of(target.type));
  TransferPlan plan;
  plan.kind = PlanKind::redistribution;
  plan.rank = rank;
  for (const ArraySpec* spec : {&source, &target})
    plan.slots.push_back({spec->type, spec->distribution.local_extents(rank), fingerprint_of(*spec)});
  if (from.is_indexed() || to.is_indexed()) {
    plan_indexed_redistribution(from, to, options, plan);
  } else {
    check_plan_size(source, target);
    plan_structured(from, to, options, plan);
  }
  return plan;
}

Index shared_cells(const Distribution& source, Index source_ordinal, const Distribution& target, Index target_ordinal) {
  const Place from = source.grid().place_at(source_ordinal), to = target.grid().place_at(target_ordinal);
  Index out = 1;
  for (int d = 0; d < target.dims() && out > 0; ++d) {
    const AxisParts& axis = source.axis(d);
    out *= entry_between(axis, axis.replicated() ? 0 : from.coordinates[d],
                         stored_pieces(target.axis(d), to.coordinates[d]), 0)
               .cells();
  }
  return out;
}

}  // namespace tranship
