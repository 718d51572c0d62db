#include "tranship/plan/halo.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/halo_interval.hpp>
#include <tranship/plan/cut_pieces.hpp>
#include <tranship/plan/fills.hpp>
#include <tranship/plan/plan_size.hpp>
#include <tranship/plan/readers.hpp>
#include <tranship/plan/tiled_fields.hpp>

namespace tranship {
namespace {

/// A product of stretches that one part wants: per dimension, a family of slices and the cells relative to its slices.
struct WantedBox {
  std::vector<SliceFamily> families;
  Box box;
};

/// Returns the depth of the halo on one side of dimension d; `depth` is the option for that side.
Index depth_of(const HaloOptions& options, const Indices& depth, int d, Index stored) {
  if (!depth.empty()) return depth[d];
  return options.depth && stored > 0 ? *options.depth : stored;
}

void check_options(const Distribution& array, const HaloOptions& options) {
  const int dims = array.dims();
  auto check = [&](Index wanted, Index stored, int d, const char* side) {
    if (wanted > stored)
      throw_error(ErrorCode::invalid_use, "the halo reaches {} {} in dimension {}, the overlap stores {}",
                  amount(wanted, "cell"), side, d, stored);
  };
  if (options.depth.value_or(0) < 0) throw_error(ErrorCode::invalid_use, "halo depth {} is negative", *options.depth);
  for (const Indices* depth : {&options.depth_low, &options.depth_high}) {
    if (!depth->empty() && depth->size() != dims)
      throw_error(ErrorCode::invalid_use, "halo depths are given for {}, but the array has {}",
                  amount(depth->size(), "dimension"), dims);
    for (int d = 0; d < depth->size(); ++d)
      if ((*depth)[d] < 0)
        throw_error(ErrorCode::invalid_use, "halo depth {} in dimension {} is negative", (*depth)[d], d);
  }
  for (int d = 0; d < dims; ++d) {
    const Overlap& overlap = array.axis(d).partition().overlap;
    check(depth_of(options, options.depth_low, d, overlap.left.width), overlap.left.width, d, "to the left");
    check(depth_of(options, options.depth_high, d, overlap.right.width), overlap.right.width, d, "to the right");
    for (const Indices& offset : options.stencil.offsets) {
      if (offset.size() != dims)
        throw_error(ErrorCode::invalid_use, "a stencil offset has {}, but the array has {}",
                    amount(offset.size(), "dimension"), dims);
      check(-offset[d], overlap.left.width, d, "to the left");
      check(offset[d], overlap.right.width, d, "to the right");
    }
  }
}

void check_cells(const Distribution& array, const std::vector<Box>& boxes) {
  const int dims = array.is_indexed() ? 1 : array.dims();
  for (const Box& box : boxes)
    for (const Indices* corner : {&box.lower, &box.upper})
      if (corner->size() != dims)
        throw_error(ErrorCode::invalid_use, "a box of cells has {}, but the cells of the array have {}",
                    amount(corner->size(), "dimension"), dims);
}

/// Cells beyond a replicated edge are copies of cells of the same local array at that edge, which must be wanted, too.
/// Appends these cells, slice by slice relative to the first owned cells.
void append_copied(const Distribution& array, const std::vector<SliceFamily>& families, std::vector<Box>& boxes) {
  auto append = [&](Box box, int d, EdgePolicy edge, Index edge_cell, Index local_cell) {
    if (edge != EdgePolicy::replicate && edge != EdgePolicy::replicate_local) return;
    box.lower[d] = edge == EdgePolicy::replicate ? edge_cell : local_cell;
    box.upper[d] = box.lower[d] + 1;
    boxes.push_back(box);
  };
  for (int d = 0; d < array.dims(); ++d) {
    const SliceFamily& f = families[d];
    if (f.count > 1) continue;  // reaches no edge
    const Overlap& overlap = array.axis(d).partition().overlap;
    const Index extent = array.extents()[d];
    for (std::size_t i = 0, count = boxes.size(); i < count; ++i) {
      const Box box = boxes[i];
      if (box.empty()) continue;
      if (f.start + box.lower[d] < 0) append(box, d, overlap.left.edge, -f.start, 0);
      if (f.start + box.upper[d] > extent) append(box, d, overlap.right.edge, extent - 1 - f.start, f.length - 1);
    }
  }
}

/// Returns everything that the part at `coordinates` wants, in an order that is the same on every rank.
std::vector<WantedBox> wanted_boxes(const Distribution& array, const Indices& coordinates, const HaloOptions& options) {
  const int dims = array.dims();
  std::vector<std::vector<SliceFamily>> families;
  Indices counts;
  for (int d = 0; d < dims; ++d) {
    families.push_back(array.axis(d).slices(coordinates[d]));
    counts.push_back(Index(families[d].size()));
  }
  std::vector<WantedBox> out;
  for_each_coordinate(counts, [&](const Indices& at) {
    WantedBox wanted;
    Box owned, stored;
    for (int d = 0; d < dims; ++d) {
      const SliceFamily& f = families[d][at[d]];
      wanted.families.push_back(f);
      owned.lower.push_back(0);
      owned.upper.push_back(f.length);
      stored.lower.push_back(-std::min(f.left, depth_of(options, options.depth_low, d, f.left)));
      stored.upper.push_back(f.length + std::min(f.right, depth_of(options, options.depth_high, d, f.right)));
    }
    std::vector<Box> boxes;
    switch (options.stencil.kind) {
      case StencilKind::box:
        boxes.push_back(stored);
        break;
      case StencilKind::star:
        for (int d = 0; d < dims; ++d) {
          Box beam = owned;
          beam.lower[d] = stored.lower[d];
          beam.upper[d] = stored.upper[d];
          boxes.push_back(beam);
        }
        break;
      case StencilKind::offsets:
        for (const Indices& offset : options.stencil.offsets)
          boxes.push_back(intersect(shifted(owned, offset), stored));
        append_copied(array, wanted.families, boxes);
        break;
    }
    for (const Box& box : disjoint_union(boxes, owned)) {
      wanted.box = box;
      out.push_back(wanted);
    }
  });
  return out;
}

/// Where a part of a slot's index space is found. Dimensions that the tiling does not continue follow their edge
/// policies.
struct Image : TiledImage {
  std::vector<Interval> regions;  ///< of tiled dimensions, in the slot's coordinates
};

/// Returns the pieces of a wanted stretch along dimension d that an image gives.
std::vector<AxisPiece> image_pieces(const AxisParts& target, const Image& image, int d, const SliceFamily& family,
                                    Index lower, Index upper) {
  if (!image.tiled[d]) return resolve_edges(target, family, lower, upper);
  AxisWant want{family, lower, upper, image.signs[d], image.offsets[d]};
  if (family.count == 1) {
    const Interval cut = intersect(image.regions[d], {family.start + lower, family.start + upper});
    if (cut.empty()) return {};
    want.lower = cut.lower - family.start;
    want.upper = cut.upper - family.start;
  } else if (!image.regions[d].contains(family.start + lower)) {
    return {};  // a family of several slices lies inside the tile, and so inside one image
  }
  return {{AxisPieceKind::given, want}};
}

/// Returns what a part of the source gives to `pieces`.
AxisEntry entry_from(const AxisParts& source, Index part, const std::vector<AxisPiece>& pieces) {
  AxisEntry entry{.peer = part};
  for (const AxisPiece& piece : pieces)
    if (piece.kind == AxisPieceKind::given) append_runs(source, part, piece.want, entry);
  return entry;
}

class HaloPlanner {
 public:
  HaloPlanner(std::vector<const ArraySpec*> slots, const HaloOptions& options, Rank rank)
      : slots_(std::move(slots)), options_(options) {
    plan_.kind = PlanKind::halo;
    plan_.rank = rank;
    for (const ArraySpec* spec : slots_)
      plan_.slots.push_back({spec->type, spec->distribution.local_extents(rank), fingerprint_of(*spec)});
  }

  void add(int target_slot, const std::vector<Image>& images) {
    if (array(target_slot).replicated())
      throw_error(ErrorCode::unsupported,
                  "the halo of array {}, which is replicated, is not defined: exchange one replica, then copy it",
                  target_slot);
    check_plan_size(*slots_[target_slot], options_);
    receive(target_slot, images);
    send(target_slot, images);
  }

  /// Plans a star forest: every ghost comes from its owner.
  void add_indexed(int slot) {
    const Distribution& d = array(slot);
    Index inner = 1;
    for (int k = d.indexed_dims(); k < d.dims(); ++k) inner *= d.extents()[k];
    if (inner == 0) return;
    const IndexedTransfer empty{.source_slot = slot, .target_slot = slot, .inner = inner};
    const std::optional<Index> me = d.grid().ordinal_of(plan_.rank);
    if (!me) return;
    const IndexedPart& part = d.indexed_part(*me);
    const auto is_wanted = [&](Index id) {
      if (options_.cells.empty()) return true;
      const std::vector<Box>& boxes = options_.cells[slot];
      return std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) { return box[0].contains(id); });
    };
    std::map<Rank, IndexedTransfer> receives, sends;
    auto append = [&](std::map<Rank, IndexedTransfer>& lists, Index peer, Index from, Index to) {
      IndexedTransfer& list = lists.try_emplace(d.grid().rank_at(peer), empty).first->second;
      list.source_cells.push_back(from);
      list.target_cells.push_back(to);
    };
    for (Index i = 0; i < Index(part.ghosts.size()); ++i) {
      if (!is_wanted(part.ghosts[i])) continue;
      const Distribution::IdPlace owner = d.place_of_id(part.ghosts[i]);
      append(receives, owner.ordinal, owner.local, Index(part.owned.size()) + i);
    }
    for (Index i = 0; i < Index(part.owned.size()); ++i)
      if (is_wanted(part.owned[i]))
        for (const Distribution::IdPlace& ghost : d.ghosts_of_id(part.owned[i]))
          append(sends, ghost.ordinal, i, ghost.local);
    for (auto& [peer, list] : sends) sort_by_target(list);
    for (auto& [peer, list] : receives) plan_.indexed_receives.emplace_back(std::move(list)).peer = peer;
    for (auto& [peer, list] : sends) plan_.indexed_sends.emplace_back(std::move(list)).peer = peer;
  }

  TransferPlan take() { return std::move(plan_); }

 private:
  const Distribution& array(int slot) const { return slots_[slot]->distribution; }

  TransferGroup group_of(int target_slot, const Image& image) const {
    TransferGroup group{.source_slot = image.source_slot,
                        .target_slot = target_slot,
                        .map = image.map,
                        .source_dims = image.source_dims};
    for (int d = 0; d < array(target_slot).dims(); ++d) group.target_dims.push_back(d);
    return group;
  }

  void receive(int target_slot, const std::vector<Image>& images) {
    const Distribution& target = array(target_slot);
    const std::optional<Place> place = target.grid().place_of(plan_.rank);
    if (!place) return;
    const int dims = target.dims();
    for (const WantedBox& wanted : wanted_boxes(target, place->coordinates, options_)) {
      for (const Image& image : images) {
        const Distribution& source = array(image.source_slot);
        for_each_product(target_slot, wanted, image, [&](const std::vector<std::vector<AxisPiece>>& pieces) {
          TransferGroup group = group_of(target_slot, image);
          for (int d = 0; d < dims; ++d) {
            const AxisParts& axis = source.axis(image.source_dims[d]);
            std::set<Index> parts;
            for (const AxisPiece& piece : pieces[d])
              if (piece.kind == AxisPieceKind::given)
                for (const Index part : parts_giving(axis, piece.want)) parts.insert(part);
            std::vector<AxisEntry>& entries = group.axes.emplace_back();
            for (const Index part : parts)
              if (AxisEntry entry = entry_from(axis, part, pieces[d]); !entry.is_empty())
                entries.push_back(std::move(entry));
          }
          append_fills(target_slot, pieces, plan_.fills_after);
          if (group.combinations() == 0) return;
          Indices counts;
          for (const auto& entries : group.axes) counts.push_back(Index(entries.size()));
          for_each_coordinate(counts, [&](const Indices& at) {
            Place from{.coordinates = Indices::filled(dims, 0)};
            for (int d = 0; d < dims; ++d) from.coordinates[group.source_dims[d]] = group.axes[d][at[d]].peer;
            group.peers.push_back(source.grid().rank_of(from));
          });
          plan_.receives.push_back(std::move(group));
        });
      }
    }
  }

  /// Calls f with what an image gives to a wanted box, one list of pieces per dimension: once, or once for each box of
  /// HaloOptions::cells.
  void for_each_product(int target_slot, const WantedBox& wanted, const Image& image,
                        FunctionRef<void(const std::vector<std::vector<AxisPiece>>&)> f) const {
    const Distribution& target = array(target_slot);
    std::vector<std::vector<AxisPiece>> pieces;
    for (int d = 0; d < target.dims(); ++d)
      pieces.push_back(
          image_pieces(target.axis(d), image, d, wanted.families[d], wanted.box.lower[d], wanted.box.upper[d]));
    if (options_.cells.empty()) return f(pieces);
    std::vector<std::vector<AxisPiece>> cut(pieces.size());
    for (const Box& cells : options_.cells[target_slot]) {
      for (int d = 0; d < target.dims(); ++d) cut[d] = cut_pieces(pieces[d], target.extents()[d], cells[d]);
      f(cut);
    }
  }

  /// Returns the coordinates along dimension d of the target whose overlap may hold cells of this rank's source part.
  std::vector<Index> readers(const AxisParts& target, const AxisParts& source, Index part, const Image& image,
                             int d) const {
    std::vector<Index> out;
    const AxisMap map = image.tiled[d] ? AxisMap{image.signs[d], image.offsets[d]} : AxisMap{};
    for (const Index q : parts_wanting(target, source, part, map)) {
      AxisEntry entry;
      for (const SliceFamily& f : target.slices(q))
        for (const AxisPiece& piece : image_pieces(target, image, d, f, -f.left, f.length + f.right))
          if (piece.kind == AxisPieceKind::given && entry.is_empty()) append_runs(source, part, piece.want, entry);
      if (!entry.is_empty()) out.push_back(q);
    }
    return out;
  }

  void send(int target_slot, const std::vector<Image>& images) {
    const Distribution& target = array(target_slot);
    const int dims = target.dims();
    // Ordinals of all parts that may read from this rank.
    std::set<Index> reading;
    for (const Image& image : images) {
      const Distribution& source = array(image.source_slot);
      const std::optional<Place> me = source.grid().place_of(plan_.rank);
      if (!me) continue;
      std::vector<std::vector<Index>> coordinates;
      Indices counts;
      for (int d = 0; d < dims; ++d) {
        const int e = image.source_dims[d];
        coordinates.push_back(readers(target.axis(d), source.axis(e), me->coordinates[e], image, d));
        counts.push_back(Index(coordinates[d].size()));
      }
      for_each_coordinate(counts, [&](const Indices& at) {
        Place place;
        for (int d = 0; d < dims; ++d) place.coordinates.push_back(coordinates[d][at[d]]);
        reading.insert(target.grid().ordinal_of(place));
      });
    }
    for (const Index ordinal : reading) {
      for (const WantedBox& wanted : wanted_boxes(target, target.grid().place_at(ordinal).coordinates, options_)) {
        for (const Image& image : images) {
          const Distribution& source = array(image.source_slot);
          const std::optional<Place> me = source.grid().place_of(plan_.rank);
          if (!me) continue;
          for_each_product(target_slot, wanted, image, [&](const std::vector<std::vector<AxisPiece>>& pieces) {
            TransferGroup group = group_of(target_slot, image);
            for (int d = 0; d < dims; ++d) {
              const int e = image.source_dims[d];
              AxisEntry entry = entry_from(source.axis(e), me->coordinates[e], pieces[d]);
              if (entry.is_empty()) return;
              group.axes.push_back({std::move(entry)});
            }
            group.peers.push_back(target.grid().rank_at(ordinal));
            plan_.sends.push_back(std::move(group));
          });
        }
      }
    }
  }

  std::vector<const ArraySpec*> slots_;
  const HaloOptions& options_;
  TransferPlan plan_;
};

Image plain_image(int slot, int dims) {
  Image image;
  image.source_slot = slot;
  for (int d = 0; d < dims; ++d) image.source_dims.push_back(d);
  image.tiled.assign(dims, false);
  image.signs.assign(dims, 1);
  image.offsets = Indices::filled(dims, 0);
  image.regions.resize(dims);
  return image;
}

}  // namespace

TransferPlan plan_halo(std::span<const ArraySpec> fields, Rank rank, const HaloOptions& options) {
  std::vector<const ArraySpec*> slots;
  if (!options.cells.empty() && options.cells.size() != fields.size())
    throw_error(ErrorCode::invalid_use, "cells are given for {}, but the halo has {}",
                amount(options.cells.size(), "array"), fields.size());
  for (const ArraySpec& field : fields) {
    if (!options.cells.empty()) check_cells(field.distribution, options.cells[slots.size()]);
    slots.push_back(&field);
    if (!field.distribution.is_indexed()) check_options(field.distribution, options);
  }
  HaloPlanner planner(std::move(slots), options, rank);
  for (int slot = 0; slot < int(fields.size()); ++slot) {
    const Distribution& array = fields[slot].distribution;
    if (array.is_indexed())
      planner.add_indexed(slot);
    else
      planner.add(slot, {plain_image(slot, array.dims())});
  }
  return planner.take();
}

TransferPlan plan_halo(const Tiling& tiling, std::span<const TiledField> fields, Rank rank,
                       const TiledHaloOptions& options) {
  if (!options.cells.empty())
    throw_error(ErrorCode::unsupported, "the halo of {} cannot be cut to cells, which are given for {}",
                amount(tiling.tiles(), "tile"), amount(options.cells.size(), "array"));
  const TiledFields tiled(tiling, fields, options.vectors);
  for (const ArraySpec* spec : tiled.slots()) check_options(spec->distribution, options);

  HaloPlanner planner(tiled.slots(), options, rank);
  for (int f = 0; f < int(fields.size()); ++f) {
    const TiledField& field = fields[f];
    for (int t = 0; t < tiling.tiles(); ++t) {
      const Distribution& array = field.tiles[t].distribution;
      Indices low, high;
      for (int k = 0; k < tiling.dims(); ++k) {
        const Overlap& overlap = array.axis(field.tile_dims[k]).partition().overlap;
        low.push_back(overlap.left.width);
        high.push_back(overlap.right.width);
      }
      std::vector<Image> images;
      for (const TileImage& tile : tiling.images(t, low, high)) {
        Image image{tiled.image(f, t, tile.tile, tile.map), std::vector<Interval>(std::size_t(array.dims()))};
        for (int k = 0; k < tiling.dims(); ++k) {
          const int d = field.tile_dims[k];
          image.regions[d] = array.axis(d).partition().points == Points::cells
                                 ? tile.region[k]
                                 : interfaces_of(tile.region[k], tiling.extents(t)[k]);
        }
        images.push_back(std::move(image));
      }
      planner.add(tiled.slot(f, t), images);
    }
  }
  return planner.take();
}

}  // namespace tranship
