// copy: the strided copy beside memcpy of as many bytes (the limit) and the loop nest that one writes by hand.
// Every contestant's result is checked against that loop nest before anything is timed.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <harness/registry.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace {

using namespace tranship;
using bench::Better;
using Cell = double;

constexpr long long cell_bytes = sizeof(Cell);

/// Copies rows x columns cells; strides are in cells.
struct Case {
  std::string name;
  long long rows;
  long long columns;
  long long source_row;
  long long source_column;
  long long target_row;
  long long target_column;
};

void copy_by_hand(const Case& c, const Cell* source, Cell* target) {
  for (long long i = 0; i < c.rows; ++i)
    for (long long j = 0; j < c.columns; ++j)
      target[i * c.target_row + j * c.target_column] = source[i * c.source_row + j * c.source_column];
}

CopyBlock block_of(const Case& c) {
  CopyBlock block;
  block.dims = 2;
  block.extents[0] = c.rows;
  block.extents[1] = c.columns;
  block.source_strides[0] = c.source_row * cell_bytes;
  block.source_strides[1] = c.source_column * cell_bytes;
  block.target_strides[0] = c.target_row * cell_bytes;
  block.target_strides[1] = c.target_column * cell_bytes;
  canonicalise(block, cell_bytes);
  return block;
}

std::size_t cells_reached(const Case& c, long long row, long long column) {
  return static_cast<std::size_t>((c.rows - 1) * row + (c.columns - 1) * column + 1);
}

void measure(bench::Report& report, const Case& c) {
  std::vector<Cell> source(cells_reached(c, c.source_row, c.source_column));
  std::iota(source.begin(), source.end(), 1.0);
  std::vector<Cell> ours(cells_reached(c, c.target_row, c.target_column)), by_hand(ours.size());
  const std::size_t moved_bytes = static_cast<std::size_t>(c.rows * c.columns * cell_bytes);
  const std::vector<Cell> dense_source(moved_bytes / cell_bytes, 1.0);
  std::vector<Cell> dense_target(dense_source.size());

  const CopyBlock block = block_of(c);
  copy(block, cell_bytes, source.data(), ours.data());
  copy_by_hand(c, source.data(), by_hand.data());
  if (ours != by_hand) throw_error(ErrorCode::internal, "case '{}': the strided copy moved other bytes", c.name);

  const auto ns = bench::medians_ns({{[&] { copy(block, cell_bytes, source.data(), ours.data()); }},
                                     {[&] { std::memcpy(dense_target.data(), dense_source.data(), moved_bytes); }},
                                     {[&] { copy_by_hand(c, source.data(), by_hand.data()); }}},
                                    report.measure_options());
  const auto gigabytes_per_second = [&](double each_ns) { return static_cast<double>(moved_bytes) / each_ns; };
  report.add({.name = c.name,
              .unit = "GB/s",
              .better = Better::higher,
              .ours = gigabytes_per_second(ns[0]),
              .limit = gigabytes_per_second(ns[1]),
              .peers = {{"loops by hand", gigabytes_per_second(ns[2])}}});
}

}  // namespace

TRANSHIP_BENCH(copy, "strided copies of 8-byte cells, one core, against memcpy") {
  // 512 KiB stay in a core's second cache; 64 MiB do not stay in any.
  std::vector<long long> sides = {256};
  if (!report.is_quick()) sides.push_back(2896);
  for (const long long n : sides) {
    const std::string size = fmt::format("{0} x {0}", n);
    measure(report, {size + ", contiguous", n, n, n, 1, n, 1});
    measure(report, {size + ", padded rows", n, n, n + 8, 1, n, 1});
    measure(report, {size + ", runs of 3 cells", n * n / 3, 3, 8, 1, 3, 1});
    measure(report, {size + ", transposed", n, n, n, 1, 1, n});
  }
}
