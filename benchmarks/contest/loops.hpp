// Copies as one writes them by hand, and well: rows by memcpy, short rows by loops of constant length, matrices turned
// in tiles. Used by the hand-written peers only.
#pragma once

#include <cstring>

#include <contest/work.hpp>

namespace contest {

/// Copies `rows` rows of `length` doubles that lie `from_pitch` and `to_pitch` apart.
inline void copy_rows(const double* from, std::int64_t from_pitch, double* to, std::int64_t to_pitch, std::int64_t rows,
                      std::int64_t length) {
  const auto each = [&](auto copy_one) {
    for (std::int64_t i = 0; i < rows; ++i) copy_one(to + i * to_pitch, from + i * from_pitch);
  };
  switch (length) {
    case 1:
      return each([](double* t, const double* f) { *t = *f; });
    case 2:
      return each([](double* t, const double* f) { std::memcpy(t, f, 2 * sizeof(double)); });
    case 3:
      return each([](double* t, const double* f) { std::memcpy(t, f, 3 * sizeof(double)); });
    default:
      return each([&](double* t, const double* f) { std::memcpy(t, f, std::size_t(length) * sizeof(double)); });
  }
}

/// to[j * to_pitch + i] = from[i * from_pitch + j], in tiles that fit in the first cache.
inline void transpose(const double* from, std::int64_t from_pitch, double* to, std::int64_t to_pitch, std::int64_t rows,
                      std::int64_t columns) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t j0 = 0; j0 < columns; j0 += tile)
    for (std::int64_t i0 = 0; i0 < rows; i0 += tile) {
      const std::int64_t j1 = j0 + tile < columns ? j0 + tile : columns;
      const std::int64_t i1 = i0 + tile < rows ? i0 + tile : rows;
      for (std::int64_t j = j0; j < j1; ++j)
        for (std::int64_t i = i0; i < i1; ++i) to[j * to_pitch + i] = from[i * from_pitch + j];
    }
}

/// A box of one field to a box of another (or the same) one, both stored as `field` says.
inline void copy_box(const Field& field, const double* from, const Box& gives, double* to, const Box& takes) {
  const auto at = [&](const Box& box, std::int64_t i) {
    return ((box.low[0] + i) * field.stored[1] + box.low[1]) * field.stored[2] + box.low[2];
  };
  for (std::int64_t i = 0; i < gives.extents[0]; ++i)
    copy_rows(from + at(gives, i), field.stored[2], to + at(takes, i), field.stored[2], gives.extents[1],
              gives.extents[2]);
}

inline double* pack_box(const Field& field, const double* from, const Box& gives, double* to) {
  for (std::int64_t i = 0; i < gives.extents[0]; ++i) {
    const std::int64_t at = ((gives.low[0] + i) * field.stored[1] + gives.low[1]) * field.stored[2] + gives.low[2];
    copy_rows(from + at, field.stored[2], to, gives.extents[2], gives.extents[1], gives.extents[2]);
    to += gives.extents[1] * gives.extents[2];
  }
  return to;
}

inline const double* unpack_box(const Field& field, const double* from, double* to, const Box& takes) {
  for (std::int64_t i = 0; i < takes.extents[0]; ++i) {
    const std::int64_t at = ((takes.low[0] + i) * field.stored[1] + takes.low[1]) * field.stored[2] + takes.low[2];
    copy_rows(from, takes.extents[2], to + at, field.stored[2], takes.extents[1], takes.extents[2]);
    from += takes.extents[1] * takes.extents[2];
  }
  return from;
}

}  // namespace contest
