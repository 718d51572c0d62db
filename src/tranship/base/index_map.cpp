#include "tranship/base/index_map.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

IndexMap::IndexMap(const Indices& image_dims, const Indices& signs, const Indices& offsets_doubled)
    : image_dims_(image_dims), signs_(signs), offsets_(offsets_doubled) {
  const int dims = image_dims.size();
  if (signs.size() != dims || offsets_doubled.size() != dims)
    throw_error(ErrorCode::invalid_use, "an index map of {} has {} and {}", amount(dims, "dimension"),
                amount(signs.size(), "sign"), amount(offsets_doubled.size(), "offset"));
  unsigned seen = 0;
  for (int d = 0; d < dims; ++d) {
    if (image_dims[d] < 0 || image_dims[d] >= dims || (seen >> image_dims[d] & 1))
      throw_error(ErrorCode::invalid_use, "[{}] is not a permutation of {}", to_string(image_dims),
                  amount(dims, "dimension"));
    seen |= 1u << image_dims[d];
    if (signs[d] != 1 && signs[d] != -1)
      throw_error(ErrorCode::invalid_use, "sign {} of dimension {} is neither 1 nor -1", signs[d], d);
    if (offsets_doubled[d] % 2 != 0)
      throw_error(ErrorCode::invalid_use, "offset {} of dimension {} is odd: it would map cells onto interfaces",
                  offsets_doubled[d], d);
  }
}

IndexMap IndexMap::identity(int dims) {
  return translation(Indices::filled(dims, 0));
}

IndexMap IndexMap::translation(const Indices& by) {
  IndexMap out;
  for (int d = 0; d < by.size(); ++d) {
    out.image_dims_.push_back(d);
    out.signs_.push_back(1);
    out.offsets_.push_back(2 * by[d]);
  }
  return out;
}

Indices IndexMap::apply(const Indices& cell) const {
  Indices out = Indices::filled(dims(), 0);
  for (int d = 0; d < dims(); ++d) out[image_dim(d)] = apply(d, cell[d], Points::cells);
  return out;
}

IndexMap IndexMap::inverse() const {
  IndexMap out = *this;
  for (int d = 0; d < dims(); ++d) {
    const int e = image_dim(d);
    out.image_dims_[e] = d;
    out.signs_[e] = signs_[d];
    out.offsets_[e] = -signs_[d] * offsets_[d];
  }
  return out;
}

IndexMap IndexMap::followed_by(const IndexMap& then) const {
  IndexMap out = *this;
  for (int d = 0; d < dims(); ++d) {
    const int e = image_dim(d);
    out.image_dims_[d] = then.image_dims_[e];
    out.signs_[d] = signs_[d] * then.signs_[e];
    out.offsets_[d] = then.signs_[e] * offsets_[d] + then.offsets_[e];
  }
  return out;
}

bool IndexMap::is_translation() const noexcept {
  for (int d = 0; d < dims(); ++d)
    if (image_dim(d) != d || sign(d) != 1) return false;
  return true;
}

std::string to_string(const IndexMap& map) {
  std::string out;
  for (int d = 0; d < map.dims(); ++d)
    out += fmt::format("{}y{} = {}x{} {:+}", d ? ", " : "", map.image_dim(d), map.sign(d) < 0 ? "-" : "", d,
                       map.apply(d, 0, Points::cells));
  return out;
}

}  // namespace tranship
