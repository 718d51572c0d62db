#include "tranship/plan/plan_size.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

/// Returns the quotient, rounded down.
double quotient(Index dividend, Index divisor) {
  const Index whole = dividend / divisor;
  return double(whole);
}

/// Bounds of the blocks of one dimension: the cells of the largest block (at least 1), and the number of blocks that a
/// stretch can touch.
class Blocks {
 public:
  explicit Blocks(const AxisParts& axis) : bounds_(axis.partition().bounds), extent_(axis.extent()) {
    const Partition& p = axis.partition();
    shared_ = p.points == Points::interfaces ? 1 : 0;
    longest_ = shortest_ = std::max<Index>(1, extent_);
    if (extent_ <= shared_) return;
    switch (axis.is_whole() ? PartitionKind::whole : p.kind) {
      case PartitionKind::whole:
        break;
      case PartitionKind::cyclic:
        longest_ = shortest_ = std::min(p.block_size, extent_);
        break;
      case PartitionKind::block: {
        // The first block and all others but the last differ by at most one unit.
        const Index first = axis.owned_count(axis.owner(0)) - shared_, unit = std::min(p.modulo, first);
        shortest_ = p.remainder == Remainder::low ? std::max(unit, first - p.modulo) : first;
        longest_ = shared_ + (p.remainder == Remainder::high ? first + std::min(p.modulo, extent_ - first) : first);
        break;
      }
      case PartitionKind::irregular:
        longest_ = 1;
        for (Index i = 1; i < Index(bounds_.size()); ++i)
          longest_ = std::max(longest_, bounds_[i] - bounds_[i - 1] + shared_);
        break;
    }
  }

  Index longest() const { return longest_; }
  double touched_by(Index length) const {
    if (length <= 0) return 0;
    // Both neighbours own the interface between them.
    length = std::min(length, extent_) + shared_;
    // It touches the most blocks when it begins at the last cell of a block.
    if (bounds_.empty()) return quotient(length - 2 + shortest_, shortest_) + 1;
    const Index blocks = Index(bounds_.size()) - 1;
    Index most = 1, touched = 0, next = 0;
    for (Index first = 0; first < blocks; ++first) {
      if (bounds_[first] == bounds_[first + 1]) continue;
      for (; next < blocks && bounds_[next] < bounds_[first + 1] - 1 + length; ++next)
        touched += bounds_[next] < bounds_[next + 1];
      most = std::max(most, touched);
      --touched;
    }
    return double(most);
  }

 private:
  const std::vector<Index>& bounds_;
  Index extent_;
  Index shared_ = 0;    ///< points that a block shares with the next one
  Index shortest_ = 1;  ///< of all blocks but the last
  Index longest_ = 1;
};

/// The numbers of one dimension that the bounds need. Numbers of runs are doubles, because they may exceed any Index.
class Shape {
 public:
  explicit Shape(const AxisParts& axis)
      : blocks_(axis),
        is_cyclic_(axis.is_dealt()),
        is_whole_(axis.is_whole() || axis.replicated()),
        parts_(axis.parts()),
        turn_(std::max<Index>(1, axis.period())) {
    const Partition& p = axis.partition();
    left_ = p.overlap.left.width;
    right_ = p.overlap.right.width;
    for (const EdgePolicy edge : {p.overlap.left.edge, p.overlap.right.edge}) {
      is_toroidal_ = is_toroidal_ || edge == EdgePolicy::toroidal;
      is_filled_ =
          is_filled_ || (edge != EdgePolicy::toroidal && edge != EdgePolicy::truncate && edge != EdgePolicy::open);
    }
    if (is_cyclic_) {
      period_ = p.block_size * parts_;
      slices_ = ceil_divide(ceil_divide(axis.extent(), p.block_size), parts_);
    }
  }

  bool is_cyclic() const { return is_cyclic_; }
  Index period() const { return period_; }
  Index block_max() const { return blocks_.longest(); }
  Index length() const { return left_ + block_max() + right_; }

  /// Returns the slices of a part that reach an edge; each is a family, and all others together are one family.
  Index slices_at_edges() const {
    if (!is_cyclic_) return 1;
    return std::min(slices_, ceil_divide(left_, period_) + ceil_divide(right_ + block_max(), period_));
  }
  Index slices_inside() const { return is_cyclic_ ? slices_ : 0; }
  Index families() const { return is_cyclic_ ? slices_at_edges() + 1 : 1; }

  /// Returns the pieces into which the edges cut what a slice stores: on each side of the array, a cut turn, all whole
  /// turns together, and another cut turn.
  double turns() const { return is_toroidal_ ? std::min(quotient(length(), turn_) + 2, 7.0) : 1; }
  /// Returns true if the rank itself fills some of these pieces.
  bool is_filled() const { return is_filled_; }
  /// Returns the runs that all parts together give to a stretch of at most one turn.
  double runs_into(Index length) const {
    if (is_whole_) return 1;
    return std::min(blocks_.touched_by(length), double(parts_) * runs_of_one(length));
  }
  /// Returns the runs that one part gives to a stretch.
  double runs_of_one(Index length) const {
    return is_cyclic_ ? double(std::min(families() + 2, (length + block_max() - 1) / period_ + 1)) : 1;
  }
  /// Returns the number of parts with a slice that may store a cell of a stretch.
  double readers_of(Index length) const {
    if (is_whole_) return double(parts_);
    // On a torus, parts near one edge read from the other. If a stretch reaches around both edges at once, all parts
    // read it.
    const double around = is_toroidal_ ? std::max(blocks_.touched_by(left_), blocks_.touched_by(right_)) : 0;
    return std::min(double(parts_), blocks_.touched_by(left_ + length + right_) + around);
  }
  /// Returns the slices of all parts that reach an edge and may store cells of one part of the source.
  double reading_at_edges(const Shape& source) const {
    if (!is_cyclic_) return std::min(double(parts_), source.slices() * readers_of(source.block_max()));
    return std::min(double(parts_) * double(slices_at_edges()),
                    blocks_.touched_by(left_) + blocks_.touched_by(right_) + 3);
  }
  double slices() const { return double(slices_); }
  double parts() const { return double(parts_); }

 private:
  Blocks blocks_;
  bool is_cyclic_;
  bool is_whole_;
  bool is_toroidal_ = false;
  bool is_filled_ = false;
  Index parts_;
  Index turn_;  ///< a torus repeats after this many cells
  Index left_ = 0;
  Index right_ = 0;
  Index period_ = 1;
  Index slices_ = 1;  ///< of a part
};

/// Runs that one part of the source gives to the slices of one target part inside the array; with more, they become a
/// lattice. If one side has few slices, each of them meets whole slices of the other side and two cut ones.
constexpr double runs_of_pair_max = std::max(3 * lattice_runs_min, lattice_distances_min);

/// Returns true if that many runs become a lattice.
bool may_be_lattice(const Shape& source, const Shape& target) {
  // Sums may overflow beyond this many cells.
  for (const Shape* shape : {&source, &target})
    if (shape->slices() * double(shape->period()) > 0x1.4p62) return false;
  return target.length() <= target.period() &&
         (source.block_max() + target.length()) / std::gcd(source.period(), target.period()) < lattice_distances_max;
}

double received(const Shape& source, const Shape& target) {
  const double at_edges = double(target.slices_at_edges()) * target.turns() * source.runs_into(target.length());
  const double each = source.runs_into(target.length());
  double inside = double(target.slices_inside()) * each;
  if (source.is_cyclic() && target.is_cyclic()) {
    // Positions of target slices in the source's period repeat after this many slices; source slices that reach the
    // source's own edges are families of their own.
    const Index repeat = source.period() / std::gcd(source.period(), target.period());
    const double alone = source.parts() * double(source.slices_at_edges());
    const double meet = quotient(source.block_max() + target.length(), target.period()) + 2;
    inside = std::min(inside, double(repeat) * (quotient(target.length(), source.block_max()) + 2) + alone * meet);
    if (may_be_lattice(source, target)) inside = std::min(inside, source.parts() * runs_of_pair_max + alone * meet);
  } else if (target.is_cyclic()) {
    // One slice meets a family: the slices inside it, and those that its ends cut.
    inside = std::min(inside, source.parts() * (3 + 2 * quotient(target.length(), target.period())));
  }
  return at_edges + inside;
}

double sent(const Shape& source, const Shape& target) {
  const double at_edges = target.reading_at_edges(source) * target.turns() * source.runs_of_one(target.length());
  if (!target.is_cyclic()) return at_edges;
  const double meet = quotient(source.block_max() + target.length(), target.block_max()) + 2;
  if (!source.is_cyclic())
    return at_edges + std::min(meet, target.parts() * (3 + 2 * quotient(target.length(), target.period())));
  const Index repeat = target.period() / std::gcd(source.period(), target.period());
  const double inside = std::min(source.slices(), double(repeat) + double(source.slices_at_edges())) * meet;
  if (!may_be_lattice(source, target)) return at_edges + inside;
  return at_edges + std::min(inside, target.parts() * runs_of_pair_max + double(source.slices_at_edges()) * meet);
}

enum class Families { one, all };

/// Returns the runs that a rank fills in itself: products of pieces, a few per dimension.
double filled(const Distribution& target, Families families) {
  double pieces = 0;
  bool any = false;
  for (int d = 0; d < target.dims(); ++d) {
    const Shape shape(target.axis(d));
    pieces += (families == Families::one ? 1 : double(shape.families())) * (shape.turns() + 2);
    any = any || shape.is_filled();
  }
  return any ? 2 * target.dims() * pieces : 0;
}

Index to_index(double runs) {
  return runs < 9e18 ? Index(runs) : std::numeric_limits<Index>::max();
}

}  // namespace

Index runs_expected(const Distribution& source, const Distribution& target) {
  double out = filled(target, Families::all);
  for (int d = 0; d < target.dims(); ++d) {
    const Shape from(source.axis(d)), to(target.axis(d));
    out += received(from, to) + sent(from, to) * double(target.grid().replicas());
  }
  return to_index(out);
}

Index slices_looked_at(const Distribution& source, const Distribution& target) {
  double out = 0;
  for (int d = 0; d < target.dims(); ++d) {
    const Shape from(source.axis(d)), to(target.axis(d));
    const double giving = to.is_cyclic() ? from.parts() : std::min(from.parts(), from.runs_into(to.length()));
    const double reading = from.is_cyclic() ? to.parts() : to.readers_of(from.block_max());
    out += (giving + reading) * double(to.families()) * to.turns() * double(from.families());
  }
  return to_index(out);
}

Index runs_expected(const Distribution& array, const HaloOptions& options) {
  // Each combination of families has its boxes of wanted cells, and each box is a product for every part that gives to
  // it.
  const bool offsets = options.stencil.kind == StencilKind::offsets;
  double boxes = 2 * double(array.dims()) * (offsets ? double(options.stencil.offsets.size()) : 1);
  double givers = 1, received = 0, sent = 0;
  for (int d = 0; d < array.dims(); ++d) {
    const Shape shape(array.axis(d));
    boxes *= double(shape.families());
    givers *= shape.readers_of(shape.block_max());
    received += shape.turns() * shape.runs_into(shape.length());
    sent += shape.turns() * shape.runs_of_one(shape.length());
  }
  return to_index(boxes * (received + givers * sent + filled(array, Families::one)));
}

void check_plan_size(const ArraySpec& source, const ArraySpec& target, const StandsFor& named) {
  const Index expected = runs_expected(source.distribution, target.distribution);
  if (expected > plan_runs_max)
    throw_error(ErrorCode::unsupported, "the plan may need {} on one rank, the limit is {}: from {} to {}",
                amount(expected, "run"), plan_runs_max, to_text(named.source), to_text(named.target));
  const Index slices = slices_looked_at(source.distribution, target.distribution);
  if (slices > plan_slices_max)
    throw_error(ErrorCode::unsupported, "planning may examine {} on one rank, the limit is {}: from {} to {}",
                amount(slices, "slice"), plan_slices_max, to_text(named.source), to_text(named.target));
}

void check_plan_size(const ArraySpec& source, const ArraySpec& target) {
  check_plan_size(source, target, {source, target});
}

void check_plan_size(const ArraySpec& array, const HaloOptions& options) {
  const Index expected = runs_expected(array.distribution, options);
  if (expected > plan_runs_max)
    throw_error(ErrorCode::unsupported, "the halo may need {} on one rank, the limit is {}: {}",
                amount(expected, "run"), plan_runs_max, to_text(array));
}

}  // namespace tranship
