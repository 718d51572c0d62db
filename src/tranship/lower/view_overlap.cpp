#include "tranship/lower/view_overlap.hpp"

#include <algorithm>
#include <vector>

#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Addresses and their distances fit with room for sums.
using Wide = __int128;

/// `coefficient * x` for x in [0, bound].
struct Term {
  Wide coefficient = 0;
  Wide bound = 0;
};

/// The bytes of one plane of a view: chunks of `width` bytes, the first at `lower`, `count` of them a stride apart in
/// each dimension. Strides are positive, counts above 1.
struct Lattice {
  struct Dimension {
    Wide stride = 0;
    Wide count = 0;
  };
  Wide lower = 0;
  Wide width = 0;
  std::vector<Dimension> dims;  // by stride, ascending
  bool repeats = false;         // some stride is 0

  Wide upper() const {
    Wide last = lower;
    for (const Dimension& d : dims) last += d.stride * (d.count - 1);
    return last + width;
  }
};

Lattice lattice_of(const void* data, Index unit, const StridedView& view) {
  Lattice out{.lower = Wide(reinterpret_cast<std::uintptr_t>(data)), .width = unit, .dims = {}, .repeats = false};
  for (int d = 0; d < view.dims(); ++d) {
    const Wide stride = Wide(view.strides[d]) * unit, count = view.extents[d];
    if (count <= 1) continue;
    out.repeats |= stride == 0;
    if (stride < 0) out.lower += stride * (count - 1);
    if (stride != 0) out.dims.push_back({stride < 0 ? -stride : stride, count});
  }
  std::sort(out.dims.begin(), out.dims.end(), [](const auto& a, const auto& b) { return a.stride < b.stride; });
  // What follows without a gap becomes one chunk, or one dimension.
  std::vector<Lattice::Dimension> joined;
  for (const Lattice::Dimension& d : out.dims) {
    if (joined.empty() && d.stride == out.width)
      out.width *= d.count;
    else if (!joined.empty() && d.stride == joined.back().stride * joined.back().count)
      joined.back().count *= d.count;
    else
      joined.push_back(d);
  }
  out.dims = std::move(joined);
  return out;
}

std::vector<Lattice> lattices_of(const StridedView& view) {
  for (const Index extent : view.extents)
    if (extent == 0) return {};
  if (!view.data) return {};
  const bool split = view.imaginary != nullptr;
  const Index unit = split ? size_bytes(part_of(view.type)) : size_bytes(view.type);
  std::vector<Lattice> out{lattice_of(view.data, unit, view)};
  if (split) out.push_back(lattice_of(view.imaginary, unit, view));
  return out;
}

/// Whether the terms can make up `wanted`: from the largest coefficient down, of which few multiples are near enough
/// for the rest.
class Sums {
 public:
  explicit Sums(std::vector<Term> terms) {
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    for (const Term& term : terms)
      if (!terms_.empty() && terms_.back().coefficient == term.coefficient)
        terms_.back().bound += term.bound;
      else
        terms_.push_back(term);
    rest_.resize(terms_.size() + 1, 0);
    for (std::size_t i = terms_.size(); i-- > 0;) rest_[i] = rest_[i + 1] + terms_[i].coefficient * terms_[i].bound;
  }
  bool reach(Wide wanted) { return reach(0, wanted); }

 private:
  static constexpr Index steps_max = Index(1) << 20;

  bool reach(std::size_t i, Wide wanted) {
    if (wanted < 0 || wanted > rest_[i]) return false;
    if (i == terms_.size() || ++steps_ > steps_max) return true;
    const auto& [coefficient, bound] = terms_[i];
    const Wide missing = wanted - rest_[i + 1];
    const Wide first = missing <= 0 ? 0 : (missing + coefficient - 1) / coefficient;
    const Wide last = std::min(bound, wanted / coefficient);
    for (Wide x = first; x <= last; ++x)
      if (reach(i + 1, wanted - coefficient * x)) return true;
    return false;
  }

  std::vector<Term> terms_;
  std::vector<Wide> rest_;  // the largest sum of the terms from here on
  Index steps_ = 0;
};

bool share_bytes(const Lattice& a, const Lattice& b) {
  if (a.upper() <= b.lower || b.upper() <= a.lower) return false;
  // a.lower + sum(s x) + e = b.lower + sum(t y) + f, with e and f within the chunks; y and f are counted backward.
  std::vector<Term> terms{{1, a.width + b.width - 2}};
  for (const Lattice* lattice : {&a, &b})
    for (const Lattice::Dimension& d : lattice->dims) terms.push_back({d.stride, d.count - 1});
  return Sums(std::move(terms)).reach(b.upper() - 1 - a.lower);
}

bool overlaps_itself(const Lattice& lattice) {
  if (lattice.repeats) return true;
  // Two elements whose largest dimension that differs is k are 1 + x of its strides apart; the others make up for that,
  // up to less than a chunk.
  Wide below = lattice.width - 1;  // how far the smaller dimensions reach
  for (std::size_t k = 0; k < lattice.dims.size(); ++k) {
    const Lattice::Dimension& largest = lattice.dims[k];
    if (largest.stride <= below) {
      std::vector<Term> terms{{1, 2 * (lattice.width - 1)}, {largest.stride, largest.count - 2}};
      for (std::size_t j = 0; j < k; ++j) terms.push_back({lattice.dims[j].stride, 2 * (lattice.dims[j].count - 1)});
      if (Sums(std::move(terms)).reach(below - largest.stride)) return true;
    }
    below += largest.stride * (largest.count - 1);
  }
  return false;
}

}  // namespace

ByteRange range_of(const StridedView& view) {
  ByteRange out;
  for (const Lattice& plane : lattices_of(view)) {
    const auto lower = std::uintptr_t(plane.lower), upper = std::uintptr_t(plane.upper());
    const bool is_first = out.lower == out.upper;
    out = {is_first ? lower : std::min(out.lower, lower), is_first ? upper : std::max(out.upper, upper)};
  }
  return out;
}

std::string to_string(const ByteRange& range) {
  return fmt::format("{:#x} to {:#x}", range.lower, range.upper - 1);
}

bool overlaps_itself(const StridedView& view) {
  const std::vector<Lattice> planes = lattices_of(view);
  for (const Lattice& plane : planes)
    if (overlaps_itself(plane)) return true;
  return planes.size() == 2 && share_bytes(planes[0], planes[1]);
}

bool share_bytes(const StridedView& a, const StridedView& b) {
  const std::vector<Lattice> theirs = lattices_of(b);
  for (const Lattice& mine : lattices_of(a))
    for (const Lattice& other : theirs)
      if (share_bytes(mine, other)) return true;
  return false;
}

}  // namespace tranship
