#include "tranship/lower/view_overlap.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Addresses and their distances fit, with room for sums.
using Wide = __int128;
using Modular = unsigned __int128;

Wide gcd(Wide a, Wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

/// `coefficient * x` for x in [0, bound].
struct Term {
  Wide coefficient = 0;
  Wide bound = 0;
};

/// The bytes of one plane of a view: chunks of `width` bytes, the first at `lower`, and `count` chunks a stride apart
/// in each dimension. Strides are positive; counts are above 1.
struct Lattice {
  struct Dimension {
    Wide stride = 0;
    Wide count = 0;
  };
  Wide lower = 0;
  Wide width = 0;
  std::vector<Dimension> dims;  // by increasing stride
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
  // Joins chunks and dimensions that continue each other without a gap.
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

/// Returns the sum of floor((first + i * step) / period) over all i in [0, count), modulo 2^128. No argument may be
/// negative.
Modular floor_sum(Modular first, Modular step, Modular count, Modular period) {
  Modular out = 0;
  while (count > 0) {
    out +=
        first / period * count + step / period * (count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count);
    first %= period;
    step %= period;
    // Counts the points under the line from the other side, with the axes exchanged.
    const Modular end = first + step * count;
    count = end / period;
    first = end % period;
    std::swap(step, period);
  }
  return out;
}

/// Returns true if (first - i * step) modulo `period` <= slack for some i in [0, count); requires slack < period.
bool comes_near(Wide first, Wide step, Wide count, Wide period, Wide slack) {
  const auto floored = [&](Wide x) { return Modular((x % period + period) % period); };
  const Modular from = floored(first), by = floored(-step);
  // Each such i adds one; all others add 0.
  return floor_sum(from + Modular(period), by, Modular(count), Modular(period)) !=
         floor_sum(from + Modular(period - 1 - slack), by, Modular(count), Modular(period));
}

/// Decides whether the terms and a number in [0, slack] can add up to `wanted`. It goes from the largest coefficient
/// down, of which only a few multiples are near enough for the rest, to the last two, for which there is a formula.
class Sums {
 public:
  Sums(std::vector<Term> terms, Wide slack) : slack_(slack) {
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    // Multiples without gaps between them count as slack.
    for (; !terms.empty() && terms.back().coefficient <= slack_ + 1; terms.pop_back())
      slack_ += terms.back().coefficient * terms.back().bound;
    for (const Term& term : terms)
      if (term.bound == 0)
        continue;
      else if (!terms_.empty() && terms_.back().coefficient == term.coefficient)
        terms_.back().bound += term.bound;
      else
        terms_.push_back(term);
    rests_.resize(terms_.size() + 1, {slack_, 0});
    for (std::size_t i = terms_.size(); i-- > 0;)
      rests_[i] = {rests_[i + 1].largest + terms_[i].coefficient * terms_[i].bound,
                   gcd(rests_[i + 1].divisor, terms_[i].coefficient)};
  }
  bool reach(Wide wanted) { return reach(0, wanted); }

 private:
  static constexpr Index steps_max = Index(1) << 20;

  bool reach(std::size_t i, Wide wanted) {
    const Rest& rest = rests_[i];
    if (wanted < 0 || wanted > rest.largest || (rest.divisor > 0 && wanted % rest.divisor > slack_)) return false;
    if (i == terms_.size() || ++steps_ > steps_max) return true;
    const auto& [coefficient, bound] = terms_[i];
    const Wide missing = wanted - rests_[i + 1].largest;
    const Wide first = missing <= 0 ? 0 : (missing + coefficient - 1) / coefficient;
    const Wide last = std::min(bound, wanted / coefficient);
    if (i + 1 == terms_.size()) return first <= last;
    if (i + 2 == terms_.size())
      return comes_near(wanted - coefficient * first, coefficient, last - first + 1, terms_[i + 1].coefficient, slack_);
    for (Wide x = first; x <= last; ++x)
      if (reach(i + 1, wanted - coefficient * x)) return true;
    return false;
  }

  /// The terms from one on: their largest sum including the slack, and their common divisor.
  struct Rest {
    Wide largest = 0;
    Wide divisor = 0;
  };
  Wide slack_;
  std::vector<Term> terms_;
  std::vector<Rest> rests_;
  Index steps_ = 0;
};

bool share_bytes(const Lattice& a, const Lattice& b) {
  if (a.upper() <= b.lower || b.upper() <= a.lower) return false;
  // a.lower + sum(s x) + e = b.lower + sum(t y) + f, with e and f within the chunks; y and f count backward.
  std::vector<Term> terms;
  for (const Lattice* lattice : {&a, &b})
    for (const Lattice::Dimension& d : lattice->dims) terms.push_back({d.stride, d.count - 1});
  return Sums(std::move(terms), a.width + b.width - 2).reach(b.upper() - 1 - a.lower);
}

/// Returns true if chunk x of one lattice and chunk y of the other share a byte for some x != y. Both have the same
/// dimensions; their first chunks, of these widths, lie `apart` bytes from each other.
bool share_out_of_step(const std::vector<Lattice::Dimension>& dims, Wide width, Wide other_width, Wide apart) {
  // If k is the largest dimension in which the chunks differ, they are 1 + x strides of k apart, and the smaller
  // dimensions compensate for that up to less than a chunk.
  Wide below = 0;  // how far the smaller dimensions reach
  std::vector<Term> smaller;
  for (const Lattice::Dimension& d : dims) {
    for (const Wide reach : {other_width - 1 - apart, width - 1 + apart}) {
      std::vector<Term> terms = smaller;
      terms.push_back({d.stride, d.count - 2});
      if (Sums(std::move(terms), width + other_width - 2).reach(below + reach - d.stride)) return true;
    }
    below += d.stride * (d.count - 1);
    smaller.push_back({d.stride, 2 * (d.count - 1)});
  }
  return false;
}

bool overlaps_itself(const Lattice& lattice) {
  return lattice.repeats || share_out_of_step(lattice.dims, lattice.width, lattice.width, 0);
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

bool share_out_of_step(const StridedView& a, const StridedView& b) {
  if (a.extents != b.extents) return share_bytes(a, b);
  const auto unit_of = [](const StridedView& view) {
    return Wide(size_bytes(view.imaginary ? part_of(view.type) : view.type));
  };
  std::vector<Lattice::Dimension> dims;
  for (int d = 0; d < a.dims(); ++d) {
    if (a.extents[d] == 0) return false;
    if (a.extents[d] == 1) continue;
    const Wide stride = a.strides[d] * unit_of(a);
    if (stride != b.strides[d] * unit_of(b)) return share_bytes(a, b);
    dims.push_back({stride < 0 ? -stride : stride, a.extents[d]});
  }
  std::sort(dims.begin(), dims.end(), [](const auto& x, const auto& y) { return x.stride < y.stride; });
  const auto address = [](const void* data) { return Wide(reinterpret_cast<std::uintptr_t>(data)); };
  for (const void* mine : {a.data, a.imaginary})
    for (const void* other : {b.data, b.imaginary})
      if (mine && other && share_out_of_step(dims, unit_of(a), unit_of(b), address(mine) - address(other))) return true;
  return false;
}

}  // namespace tranship
