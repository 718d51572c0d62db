// The oracle computes what every local cell must hold after a redistribution or a halo exchange, from one global array
// and a loop over cells. It implements edge policies, stencils and the choice between two owners of an interface a
// second time, per cell; PlanInterpreter runs the plans.
//
// Each check returns what is wrong, with the layouts, or an empty text.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/layout/text.hpp>
#include <tranship/layout/tiling.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>

#include "support/plan_interpreter.hpp"

namespace tranship::test {

/// No cell has these values: they mark cells that no plan may read, and cells that no plan may write.
inline constexpr Index unreadable = -1'000'000'007;
inline constexpr Index untouched = -2'000'000'011;

/// The global array: a number of its own for every cell, and of an interface for either part that holds it.
class Global {
 public:
  explicit Global(const Distribution& shape, Index number = 0) : extents_(shape.extents()), number_(number) {}

  /// Bit d of `uppers`: along dimension d this is what the upper one of two parts holds.
  Index operator()(const Indices& cell, unsigned uppers = 0) const;

 private:
  Indices extents_;
  Index number_;
};

/// One local index along one dimension: its cell, which may lie beyond the edge, and the slice it belongs to.
struct AxisPoint {
  Index cell = 0;
  Interval owned;

  /// Steps from the nearest owned cell: negative to the left, 0 inside.
  Index beyond() const;
};

/// Slices that follow each other without a gap count as one.
std::vector<AxisPoint> axis_points(const AxisParts& axis, Index part);

/// Returns true when two parts own a point: it is an interface at which a part other than the first begins.
bool is_shared(const AxisParts& axis, Index point);

/// Bit d: along dimension d the cell is an interface that two parts own.
unsigned shared_dims(const Distribution& array, const Indices& cell);

struct Resolved {
  enum Kind { value, zero, left_alone } kind = value;
  Index cell = 0;
  bool upper = false;  ///< of two parts that own it, the one above it is read
};

/// Returns true when the upper one of two parts that own an interface is read: the part nearer to the slice is. Above
/// the last point of the slice this is the lower part, below its first point the upper one. The slice's own end points
/// come from its side, and those inside from the upper part.
bool reads_upper(const AxisPoint& point);

/// Where the value of a point comes from along one dimension.
Resolved resolve(const AxisParts& axis, const AxisPoint& point);

/// The points of a rank's local array, dimension by dimension.
class LocalPoints {
 public:
  LocalPoints(const Distribution& array, Rank rank);

  const Indices& extents() const { return extents_; }
  const AxisPoint& point(int d, Index local) const { return points_[d][local]; }

  /// Resolves a local cell in all dimensions together: `cell` is the cell of the global array, and bit d of `uppers` is
  /// set where the upper one of two parts is read.
  Resolved::Kind resolve_at(const Indices& local, Indices& cell, unsigned& uppers) const;

  /// Resolves a local cell of an array whose copies of a cell are all equal.
  Resolved::Kind resolve_at(const Indices& local, Indices& cell) const;

  /// The kind of a local cell and its value when it is read from `source`.
  std::pair<Resolved::Kind, Index> read_from(const Distribution& source, const Global& values,
                                             const Indices& local) const;

  /// Returns the value of an owned local cell; for a shared interface, the value that this part holds.
  Index own(const Indices& local, const Distribution::Cell& cell, const Global& values) const;

 private:
  const Distribution& array_;
  Indices extents_;
  std::vector<std::vector<AxisPoint>> points_;
};

Rank world_of(std::span<const ArraySpec> arrays);

/// Says whether the two parts that own an interface hold different values there.
enum class Shared { alike, different };

/// Fills a slot: the values of the global array where the rank owns them, `unowned` elsewhere.
void fill_owned(const Distribution& array, const Global& values, int slot, Index unowned, Memory& memory,
                Shared shared = Shared::different);

/// The value that one cell must hold at the end, and whether the plan writes it.
struct Expected {
  Index value = untouched;
  bool written = false;
  bool may_be_left = false;  ///< or it is left alone
};

std::string compare_cell(const PlanInterpreter& plans, const Memory& memory, Rank rank, int slot, Index i,
                         const Indices& local, const Expected& expected);

/// The plans of all ranks.
Plans redistribution_plans(const ArraySpec& source, const ArraySpec& target, const RedistributionOptions& options = {});

std::string redistribution_fault(const ArraySpec& source, const ArraySpec& target, const Plans& plans);

std::string redistribution_fault(const ArraySpec& source, const ArraySpec& target,
                                 const RedistributionOptions& options = {});

/// Returns true when a stencil wants the point that lies `beyond` a slice (per dimension, 0 inside). `owned` returns
/// whether the slice owns the point shifted back by an offset.
bool stencil_wants(const HaloOptions& options, const Indices& beyond,
                   const std::function<bool(const Indices& offset)>& owned);

bool wanted_by(const HaloOptions& options, const LocalPoints& points, const Indices& local);

/// Returns true when the plan of a stencil of offsets may fill more cells than it wants, to copy them beyond a
/// replicated edge.
bool may_want_more(const Distribution& array, const HaloOptions& options);

/// Returns true when the options ask for the cell whose copy a ghost is, wrapped or at the edge.
bool is_asked(const HaloOptions& options, int field, const Distribution& array, const LocalPoints& points,
              const Indices& local, const Indices& id);

std::string text_of(const HaloOptions& options);

Index id_of(const Distribution& array, const Indices& cell);

std::string halo_fault(std::span<const ArraySpec> fields, const HaloOptions& options = {});

/// Where a point that may lie beyond its tile is found: the tile, its coordinates there, and for each tile dimension
/// which component of a vector, with which sign, points along it.
struct TiledPoint {
  int tile = 0;
  Indices at;
  std::vector<VectorComponent> components;
};

/// Answers for a point of a tile, a cell or (where `staggered`) an interface in each dimension. Empty: left alone.
using FindPoint =
    std::function<std::optional<TiledPoint>(int tile, const Indices& at, const std::vector<bool>& staggered)>;

/// By Tiling::locate: an interface beyond the tile belongs to the cell whose far side it is.
FindPoint by_locate(const Tiling& tiling);

std::vector<bool> staggering(const TiledField& field);

/// A vector whose components along tile dimensions 0, 1, ... are these fields.
std::vector<VectorField> vector_of(const std::vector<int>& fields);

/// Plans of all ranks for the halo of fields on a tiling.
Plans tiled_plans(const Tiling& tiling, std::span<const TiledField> fields, const TiledHaloOptions& options);

std::string tiled_halo_fault(const Tiling& tiling, std::span<const TiledField> fields, const FindPoint& find,
                             const TiledHaloOptions& options = {});

}  // namespace tranship::test
