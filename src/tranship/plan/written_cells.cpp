#include "tranship/plan/written_cells.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tranship {
namespace {

/// Stretches that are listed one by one if no closed form tells whether two of them meet.
constexpr Index stretches_listed_max = Index(1) << 16;
/// Lists of up to this length are compared pair by pair, without sorting.
constexpr std::size_t pairwise_max = 12;
/// Stretches of a comb that are tried one by one: a closed form costs about as much as this many comparisons.
constexpr Index tried_max = 64;

}  // namespace

void WrittenCells::add(const Run& run) {
  const Index step = run.target_step;
  Stretches out{run.target, step == 0 ? 1 : run.length, run.target_pitch, run.count};
  if (step < 0) out.start -= run.length - 1;
  if (out.count == 1) out.pitch = 0;
  if (out.pitch < 0) {
    out.start += (out.count - 1) * out.pitch;
    out.pitch = -out.pitch;
  }
  all_.push_back(out);
}

void WrittenCells::add(const RunLattice& lattice) {
  const LocalComb& comb = lattice.target;
  all_.push_back({comb.start, comb.length, comb.count > 1 ? comb.pitch : 0, comb.count, &lattice});
}

class WrittenCells::Search {
 public:
  explicit Search(ComparisonBudget& budget) : budget_(budget) {}

  bool any_twice(std::vector<Stretches> all) {
    if (all.size() <= pairwise_max) {
      for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
          if (meet(all[i], all[k])) return true;
    } else {
      // Only stretches whose hulls meet can meet.
      std::sort(all.begin(), all.end(), [](const Stretches& a, const Stretches& b) { return a.start < b.start; });
      for (std::size_t first = 0; first < all.size();) {
        Index end = all[first].end();
        std::size_t next = first + 1;
        for (; next < all.size() && all[next].start < end; ++next) end = std::max(end, all[next].end());
        if (next - first > 1 && any_twice_in_hull({all.begin() + long(first), all.begin() + long(next)})) return true;
        first = next;
      }
    }
    return is_undecided_ && any_twice_listed(all);
  }

 private:
  /// Combs with one pitch are of one kind, and lattices in the same target comb whose sources have one period.
  using Kind = std::tuple<bool, Index, Index, Index, Index, Index>;
  static Kind kind_of(const Stretches& s) {
    if (!s.lattice) return {false, s.count > 1 ? s.pitch : 0, 0, 0, 0, 0};
    return {true, s.lattice->source.period, s.start, s.length, s.lattice->target.period, s.count};
  }

  bool any_twice_in_hull(const std::vector<Stretches>& all) {
    std::map<Kind, std::vector<Stretches>> kinds;
    for (const Stretches& one : all) kinds[kind_of(one)].push_back(one);
    for (auto at = kinds.begin(); at != kinds.end(); ++at) {
      if (any_twice_of_kind(at->second)) return true;
      for (auto other = kinds.begin(); other != at; ++other)
        for (const Stretches& a : at->second)
          for (const Stretches& b : other->second) {
            if (budget_.left < 0) return false;
            if (meet(a, b)) return true;
          }
    }
    return false;
  }

  /// If they do not meet within one turn of their common pitch, they meet nowhere.
  bool any_twice_of_kind(const std::vector<Stretches>& all) {
    struct Place {
      Index lower;
      Index upper;
      const Stretches* of;
    };
    std::vector<Place> places;
    const Index turn = all[0].lattice ? all[0].lattice->source.period : all[0].count > 1 ? all[0].pitch : 0;
    for (const Stretches& one : all) {
      const Index start = one.lattice ? -one.lattice->distance : one.start;
      const Index length = one.lattice ? one.lattice->source.length : one.length;
      const Index lower = turn > 0 ? floor_modulo(start, turn) : start;
      places.push_back({lower, lower + length, &one});
      if (turn > 0 && lower + length > turn) places.push_back({lower - turn, lower + length - turn, &one});
    }
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.lower < b.lower; });
    for (std::size_t i = 0; i < places.size(); ++i)
      for (std::size_t k = i + 1; k < places.size() && places[k].lower < places[i].upper; ++k) {
        if (budget_.left < 0) return false;
        if (places[i].of != places[k].of && meet(*places[i].of, *places[k].of)) return true;
      }
    return false;
  }

  /// Returns true if the two have a common cell. Returns false and sets `is_undecided_` if that cannot be told.
  bool meet(const Stretches& a, const Stretches& b) {
    if (--budget_.left < 0) return false;
    if (a.start >= b.end() || b.start >= a.end()) return false;
    if (a.lattice && b.lattice) return lattices_meet(*a.lattice, *b.lattice);
    if (a.lattice || b.lattice) return a.lattice ? meets_lattice(*a.lattice, b) : meets_lattice(*b.lattice, a);
    return combs_meet(a, b);
  }

  static bool meets_interval(const Stretches& comb, Index lower, Index upper) {
    if (comb.start >= upper || comb.end() <= lower) return false;
    if (comb.count == 1) return true;
    // Only the first stretch that ends above `lower` can decide. Pitches are positive here.
    const Index past = lower - comb.start - comb.length;
    const Index first = past < 0 ? 0 : past / comb.pitch + 1;
    return first < comb.count && comb.start + first * comb.pitch < upper;
  }

  bool combs_meet(const Stretches& a, const Stretches& b) {
    if (a.start >= b.end() || b.start >= a.end()) return false;
    if (a.count == 1) return meets_interval(b, a.start, a.end());
    if (b.count == 1) return meets_interval(a, b.start, b.end());
    const Stretches& few = a.count < b.count ? a : b;
    const Stretches& many = a.count < b.count ? b : a;
    if (few.count <= tried_max) {
      for (Index k = 0; k < few.count; ++k)
        if (meets_interval(many, few.start + k * few.pitch, few.start + k * few.pitch + few.length)) return true;
      return false;
    }
    budget_.left -= tried_max;
    return pairs(a, b) > 0;
  }

  /// Returns the number of pairs of stretches that touch.
  static Index pairs(const Stretches& a, const Stretches& b) {
    const RunLattice both{
        {0, a.length, a.pitch, a.pitch, a.count}, {0, b.length, b.pitch, b.pitch, b.count}, b.start - a.start};
    return both.stretches();
  }

  /// Compares two lattices in one comb of the target, in array coordinates: what both sources have is a comb again.
  bool lattices_meet(const RunLattice& a, const RunLattice& b) {
    const Index period = a.source.period;
    if (!(a.target == b.target) || b.source.period != period) return undecided();
    budget_.left -= tried_max;
    const Index apart = a.distance - b.distance;  // from the first cell of a's source to that of b's
    // Member k of a's source meets member k + shift of b's, for one or two values of shift.
    const Index first = ceil_divide(1 - b.source.length - apart, period);
    for (Index shift = first; shift * period + apart < a.source.length; ++shift) {
      const Index offset = apart + shift * period;
      const Index lower = std::max<Index>(0, offset), upper = std::min(a.source.length, offset + b.source.length);
      const Index begin = std::max<Index>(0, -shift), end = std::min(a.source.count, b.source.count - shift);
      if (begin >= end || lower >= upper) continue;
      const RunLattice common{
          {0, upper - lower, period, period, end - begin}, a.target, a.distance - lower - begin * period};
      if (common.stretches() > 0) return true;
    }
    return false;
  }

  /// Compares a lattice with a run that writes into the same comb of the target, in array coordinates.
  bool meets_lattice(const RunLattice& lattice, const Stretches& run) {
    const LocalComb& target = lattice.target;
    const Index member = floor_divide(run.start - target.start, target.pitch);
    const Index offset = run.start - target.start - member * target.pitch;
    Stretches in_array{member * target.period + offset, run.length, run.pitch, run.count};
    const bool within_one = offset + (run.count - 1) * run.pitch + run.length <= target.length;
    const bool steps_alike = run.pitch % target.pitch == 0;
    if (offset >= target.length && offset + run.length <= target.pitch && steps_alike) return false;  // between them
    if (!within_one) {
      if (offset + run.length > target.length || !steps_alike) return undecided();
      in_array.pitch = run.pitch / target.pitch * target.period;
    }
    const Index last = member + (within_one ? 0 : (run.count - 1) * (run.pitch / target.pitch));
    if (member < 0 || last >= target.count) return undecided();
    const LocalComb& source = lattice.source;
    return combs_meet(in_array, {-lattice.distance, source.length, source.count > 1 ? source.period : 0, source.count});
  }

  bool undecided() {
    is_undecided_ = true;
    return false;
  }

  static bool any_twice_listed(const std::vector<Stretches>& all) {
    Index stretches = 0;
    for (const Stretches& one : all) {
      const Index more = one.lattice ? one.lattice->stretches() : one.count;
      if (more > stretches_listed_max - stretches) return false;
      stretches += more;
    }
    std::vector<std::pair<Index, Index>> list;
    for (const Stretches& one : all) {
      if (one.lattice) {
        for (LatticeWalk walk(*one.lattice); !walk.is_over(); walk.next())
          list.emplace_back(walk.target(), walk.target() + walk.length());
      } else {
        for (Index k = 0; k < one.count; ++k)
          list.emplace_back(one.start + k * one.pitch, one.start + k * one.pitch + one.length);
      }
    }
    std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i)
      if (list[i].first < list[i - 1].second) return true;
    return false;
  }

  ComparisonBudget& budget_;
  bool is_undecided_ = false;
};

bool WrittenCells::any_twice(ComparisonBudget& budget) const {
  return Search(budget).any_twice(all_);
}

}  // namespace tranship
