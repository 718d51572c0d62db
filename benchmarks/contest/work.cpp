#include <algorithm>

#include <contest/work.hpp>

namespace contest {
namespace {

const Deal& deal_of(const Axis& axis, Side side) {
  return side == Side::from ? axis.from : axis.to;
}

std::int64_t block_of(const Axis& axis, const Deal& deal) {
  return deal.block > 0 ? deal.block : (axis.extent + deal.parts - 1) / deal.parts;
}

/// Calls f(row, cell) for every run of elements along the last dimension: `row` is the offset of its first element.
template <class F>
void for_each_row(const Work& work, const Local& local, F&& f) {
  for (std::int64_t i = 0; i < local.extents[0]; ++i)
    for (std::int64_t j = 0; j < (work.dims == 3 ? local.extents[1] : 1); ++j) {
      std::int64_t number = local.cells[0][i];
      std::int64_t offset = i * local.strides[0];
      if (work.dims == 3) {
        number = number * work.axes[1].extent + local.cells[1][j];
        offset += j * local.strides[1];
      }
      f(offset, number * work.axes[work.dims - 1].extent);
    }
}

/// Calls f(field, offset, value of the first element) for every row of a box, of all fields.
template <class F>
void for_each_field_row(const Work& work, int rank, const Box& box, F&& f) {
  const Field field = field_of(work, rank);
  const auto wrapped = [&](int d, std::int64_t local) {
    const std::int64_t extent = work.axes[d].extent;
    return ((field.first[d] + local - work.width) % extent + extent) % extent;
  };
  for (int k = 0; k < work.fields; ++k)
    for (std::int64_t i = box.low[0]; i < box.low[0] + box.extents[0]; ++i)
      for (std::int64_t j = box.low[1]; j < box.low[1] + box.extents[1]; ++j) {
        const std::int64_t offset = (i * field.stored[1] + j) * field.stored[2] + box.low[2];
        const std::int64_t row = (wrapped(0, i) * work.axes[1].extent + wrapped(1, j)) * work.axes[2].extent;
        f(k, offset, double(k * cell_count(work) + row + wrapped(2, box.low[2])));
      }
}

}  // namespace

std::int64_t cell_count(const Work& work) {
  std::int64_t count = 1;
  for (int d = 0; d < work.dims; ++d) count *= work.axes[d].extent;
  return count;
}

std::vector<std::int64_t> coordinates_of(const Work& work, Side side, int rank) {
  std::vector<std::int64_t> at(work.dims);
  for (int d = work.dims - 1; d >= 0; --d) {
    const std::int64_t parts = deal_of(work.axes[d], side).parts;
    at[d] = rank % parts;
    rank /= int(parts);
  }
  return at;
}

std::vector<std::int64_t> owned_cells(const Axis& axis, Side side, std::int64_t part) {
  const Deal& deal = deal_of(axis, side);
  const std::int64_t block = block_of(axis, deal);
  std::vector<std::int64_t> cells;
  for (std::int64_t start = part * block; start < axis.extent; start += deal.parts * block)
    for (std::int64_t cell = start; cell < start + block && cell < axis.extent; ++cell) cells.push_back(cell);
  return cells;
}

Local local_of(const Work& work, Side side, int rank) {
  Local local;
  const auto at = coordinates_of(work, side, rank);
  for (int d = 0; d < work.dims; ++d) {
    local.cells[d] = owned_cells(work.axes[d], side, at[d]);
    local.extents[d] = std::int64_t(local.cells[d].size());
  }
  std::int64_t stride = 1;
  const bool transposed = side == Side::to && work.order == Order::transposed;
  for (int i = 0; i < work.dims; ++i) {
    const int d = transposed ? i : work.dims - 1 - i;
    local.strides[d] = stride;
    stride *= local.extents[d];
  }
  local.size = stride;
  return local;
}

void write(const Work& work, const Local& local, double* data, double salt) {
  const int last = work.dims - 1;
  for_each_row(work, local, [&](std::int64_t offset, std::int64_t row) {
    const double start = double(row) + salt;
    for (std::int64_t i = 0; i < local.extents[last]; ++i)
      data[offset + i * local.strides[last]] = start + double(local.cells[last][i]);
  });
}

std::int64_t count_wrong(const Work& work, const Local& local, const double* data, double salt) {
  const int last = work.dims - 1;
  std::int64_t wrong = 0;
  for_each_row(work, local, [&](std::int64_t offset, std::int64_t row) {
    for (std::int64_t i = 0; i < local.extents[last]; ++i)
      wrong += data[offset + i * local.strides[last]] != double(row) + salt + double(local.cells[last][i]);
  });
  return wrong;
}

double sum(const double* data, std::int64_t size) {
  double parts[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (int p = 0; p < 4; ++p) parts[p] += data[i + p];
  for (; i < size; ++i) parts[0] += data[i];
  return parts[0] + parts[1] + parts[2] + parts[3];
}

Shared shared_cells(const Work& work, int from, int to) {
  Shared shared;
  shared.cells = 1;
  const auto from_at = coordinates_of(work, Side::from, from), to_at = coordinates_of(work, Side::to, to);
  for (int d = 0; d < work.dims; ++d) {
    const auto mine = owned_cells(work.axes[d], Side::from, from_at[d]);
    const auto wanted = owned_cells(work.axes[d], Side::to, to_at[d]);
    std::int64_t count = 0;
    std::size_t i = 0, j = 0;
    while (i < mine.size() && j < wanted.size()) {
      if (mine[i] != wanted[j]) {
        ++(mine[i] < wanted[j] ? i : j);
        continue;
      }
      Run run = {std::int64_t(i), std::int64_t(j), 0};
      const std::int64_t start = mine[i];
      while (i < mine.size() && j < wanted.size() && mine[i] == start + run.length && wanted[j] == start + run.length)
        ++i, ++j, ++run.length;
      shared.runs[d].push_back(run);
      count += run.length;
    }
    shared.cells *= count;
  }
  return shared;
}

Field field_of(const Work& work, int rank) {
  Field field;
  const auto at = coordinates_of(work, Side::from, rank);
  field.size = 1;
  for (int d = 0; d < 3; ++d) {
    field.interior[d] = work.axes[d].extent / work.axes[d].from.parts;
    field.stored[d] = field.interior[d] + 2 * work.width;
    field.first[d] = at[d] * field.interior[d];
    field.size *= field.stored[d];
  }
  return field;
}

std::vector<Border> borders_of(const Work& work, int rank) {
  const Field field = field_of(work, rank);
  const auto at = coordinates_of(work, Side::from, rank);
  const std::int64_t width = work.width;
  std::vector<Border> borders;
  for (int number = 0; number < 27; ++number) {
    if (number == 13) continue;
    const int direction[3] = {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
    Border border;
    border.neighbour = 0;
    for (int d = 0; d < 3; ++d) {
      const std::int64_t parts = work.axes[d].from.parts, interior = field.interior[d];
      border.neighbour = int(border.neighbour * parts + (at[d] + direction[d] + parts) % parts);
      border.gives.extents[d] = border.takes.extents[d] = direction[d] == 0 ? interior : width;
      border.gives.low[d] = direction[d] > 0 ? interior : width;
      border.takes.low[d] = direction[d] < 0 ? 0 : direction[d] == 0 ? width : interior + width;
    }
    borders.push_back(border);
  }
  return borders;
}

std::int64_t payload_cells(const Work& work, int rank) {
  std::int64_t cells = 0;
  for (const Border& border : borders_of(work, rank)) cells += border.takes.cells();
  return cells * work.fields;
}

TouchedLines touched_lines(const Work& work, int rank) {
  constexpr std::int64_t line = 8;  // elements
  const Field field = field_of(work, rank);
  using Lines = std::vector<bool>;
  const Lines none(std::size_t((field.size + line - 1) / line), false);
  const auto touch = [&](Lines& lines, const Box& box) {
    for (std::int64_t i = box.low[0]; i < box.low[0] + box.extents[0]; ++i)
      for (std::int64_t j = box.low[1]; j < box.low[1] + box.extents[1]; ++j) {
        const std::int64_t first = (i * field.stored[1] + j) * field.stored[2] + box.low[2];
        for (std::int64_t l = first / line; l <= (first + box.extents[2] - 1) / line; ++l) lines[std::size_t(l)] = true;
      }
  };
  std::vector<Lines> reads(std::size_t(work.ranks), none);
  Lines writes = none;
  const std::vector<Border> borders = borders_of(work, rank);
  for (std::size_t b = 0; b < borders.size(); ++b) {
    const int owner = borders[b].neighbour;
    touch(reads[std::size_t(owner)], borders_of(work, owner)[borders.size() - 1 - b].gives);
    touch(writes, borders[b].takes);
  }
  const auto count = [&](const Lines& lines) { return std::count(lines.begin(), lines.end(), true) * work.fields; };
  TouchedLines touched;
  for (const Lines& lines : reads) touched.reads.push_back(count(lines));
  touched.writes = count(writes);
  return touched;
}

void write_owned(const Work& work, int rank, const Fields& fields, double salt) {
  const Field field = field_of(work, rank);
  const Box owned = {{work.width, work.width, work.width}, {field.interior[0], field.interior[1], field.interior[2]}};
  for_each_field_row(work, rank, owned, [&](int k, std::int64_t offset, double first) {
    for (std::int64_t i = 0; i < owned.extents[2]; ++i) fields[k][offset + i] = first + salt + double(i);
  });
}

void write_ghosts(const Work& work, int rank, const Fields& fields, double value) {
  for (const Border& border : borders_of(work, rank))
    for_each_field_row(work, rank, border.takes, [&](int k, std::int64_t offset, double) {
      for (std::int64_t i = 0; i < border.takes.extents[2]; ++i) fields[k][offset + i] = value;
    });
}

std::int64_t count_wrong_ghosts(const Work& work, int rank, const Fields& fields, double salt) {
  std::int64_t wrong = 0;
  for (const Border& border : borders_of(work, rank))
    for_each_field_row(work, rank, border.takes, [&](int k, std::int64_t offset, double first) {
      for (std::int64_t i = 0; i < border.takes.extents[2]; ++i)
        wrong += fields[k][offset + i] != first + salt + double(i);
    });
  return wrong;
}

double sum_ghosts(const Work& work, int rank, const Fields& fields) {
  double total = 0;
  for (const Border& border : borders_of(work, rank))
    for_each_field_row(work, rank, border.takes, [&](int k, std::int64_t offset, double) {
      total += sum(fields[k] + offset, border.takes.extents[2]);
    });
  return total;
}

}  // namespace contest
