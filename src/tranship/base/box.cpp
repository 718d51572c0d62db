#include "tranship/base/box.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>

namespace tranship {

Indices Box::extents() const {
  Indices out;
  for (int d = 0; d < dims(); ++d) out.push_back((*this)[d].length());
  return out;
}

bool Box::empty() const noexcept {
  for (int d = 0; d < dims(); ++d)
    if ((*this)[d].empty()) return true;
  return false;
}

bool Box::contains(const Indices& at) const noexcept {
  for (int d = 0; d < dims(); ++d)
    if (!(*this)[d].contains(at[d])) return false;
  return true;
}

Box intersect(const Box& a, const Box& b) {
  Box out;
  for (int d = 0; d < a.dims(); ++d) {
    const Interval i = intersect(a[d], b[d]);
    out.lower.push_back(i.lower);
    out.upper.push_back(i.upper);
  }
  return out;
}

Box shifted(const Box& box, const Indices& by) {
  Box out = box;
  for (int d = 0; d < box.dims(); ++d) {
    out.lower[d] += by[d];
    out.upper[d] += by[d];
  }
  return out;
}

std::vector<Box> subtract(const Box& a, const Box& b) {
  std::vector<Box> out;
  if (a.empty()) return out;
  if (intersect(a, b).empty()) return {a};
  Box rest = a;
  for (int d = 0; d < a.dims(); ++d) {
    if (rest.lower[d] < b.lower[d]) {
      Box low = rest;
      low.upper[d] = b.lower[d];
      out.push_back(low);
      rest.lower[d] = b.lower[d];
    }
    if (rest.upper[d] > b.upper[d]) {
      Box high = rest;
      high.lower[d] = b.upper[d];
      out.push_back(high);
      rest.upper[d] = b.upper[d];
    }
  }
  return out;
}

std::vector<Box> disjoint_union(const std::vector<Box>& boxes, const Box& hole) {
  std::vector<Box> out;
  for (const Box& box : boxes) {
    std::vector<Box> rest = subtract(box, hole);
    const std::size_t before = out.size();
    for (std::size_t i = 0; i < before && !rest.empty(); ++i) {
      std::vector<Box> next;
      for (const Box& piece : rest) {
        const std::vector<Box> left = subtract(piece, out[i]);
        next.insert(next.end(), left.begin(), left.end());
      }
      rest = std::move(next);
    }
    out.insert(out.end(), rest.begin(), rest.end());
  }
  return out;
}

std::vector<Box> products(const std::vector<std::vector<Interval>>& axes) {
  Indices counts;
  for (const auto& axis : axes) counts.push_back(Index(axis.size()));
  std::vector<Box> out;
  for_each_coordinate(counts, [&](const Indices& at) {
    Box& box = out.emplace_back();
    for (int d = 0; d < counts.size(); ++d) {
      const Interval& interval = axes[std::size_t(d)][std::size_t(at[d])];
      box.lower.push_back(interval.lower);
      box.upper.push_back(interval.upper);
    }
  });
  return out;
}

std::string to_string(const Box& box) {
  std::string out;
  for (int d = 0; d < box.dims(); ++d) out += fmt::format("{}[{}, {})", d ? " x " : "", box.lower[d], box.upper[d]);
  return out;
}

}  // namespace tranship
