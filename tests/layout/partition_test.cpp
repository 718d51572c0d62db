// AxisParts against a cell-by-cell model of the documented rules, then golden values and huge extents.
#include <algorithm>
#include <climits>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include <tranship/base/fail.hpp>
#include <tranship/layout/partition.hpp>

#include "support/thinned.hpp"

namespace tranship {
namespace {

// The rules again, dealt out one by one: every part's slices as lists of cells.
using Cells = std::vector<Index>;
using PartSlices = std::vector<Cells>;

std::vector<Index> dealt_block_sizes(Index cells, Index parts, const Partition& p) {
  // Cells go out in units of `modulo`, the last of which may be short.
  std::vector<Index> units;
  for (Index left = cells; left > 0; left -= p.modulo) units.push_back(std::min(left, p.modulo));
  Index units_min = 1;
  while (units_min * p.modulo < p.minimum) ++units_min;
  std::vector<Index> units_of(parts, 0);
  const Index n = Index(units.size());
  if (p.remainder == Remainder::ceil) {
    Index size = units_min;
    while (size * parts < n) ++size;
    for (Index i = 0; i < n; ++i) ++units_of[i / size];
  } else {
    // All parts, or as many as a minimum allows, take one unit each, in turn, until none is left.
    Index sharing = p.minimum > 0 ? 1 : parts;
    while (sharing < parts && (sharing + 1) * units_min <= n) ++sharing;
    for (Index i = 0; i < n; ++i) {
      const Index turn = i % sharing;
      const Index last_round = n % sharing;
      const bool in_last_round = i >= n - last_round;
      ++units_of[p.remainder == Remainder::high && in_last_round ? sharing - 1 - turn : turn];
    }
  }
  std::vector<Index> sizes(parts, 0);
  std::size_t next = 0;
  for (Index part = 0; part < parts; ++part)
    for (Index i = 0; i < units_of[part]; ++i) sizes[part] += units[next++];
  return sizes;
}

std::vector<PartSlices> model_of(Index extent, Index parts, const Partition& p) {
  std::vector<PartSlices> out(parts);
  auto run = [](Index lower, Index upper) {
    Cells cells(upper - lower);
    std::iota(cells.begin(), cells.end(), lower);
    return cells;
  };
  if (p.kind == PartitionKind::whole) {
    for (PartSlices& slices : out)
      if (extent > 0) slices.push_back(run(0, extent));
    return out;
  }
  if (p.kind == PartitionKind::cyclic) {
    for (Index i = 0; i < extent; ++i) {
      PartSlices& slices = out[i / p.block_size % parts];
      if (i % p.block_size == 0) slices.emplace_back();
      slices.back().push_back(i);
    }
    return out;
  }
  const Index cells = p.points == Points::interfaces ? extent - 1 : extent;
  std::vector<Index> sizes;
  if (p.kind == PartitionKind::irregular) {
    for (Index part = 0; part < parts; ++part) sizes.push_back(p.bounds[part + 1] - p.bounds[part]);
  } else {
    sizes = dealt_block_sizes(cells, parts, p);
  }
  Index next = 0;
  for (Index part = 0; part < parts; ++part) {
    if (sizes[part] > 0) out[part].push_back(run(next, next + sizes[part]));
    next += sizes[part];
    // The interface at the end of a part's cells is its own, and its neighbour's too.
    if (p.points == Points::interfaces && sizes[part] > 0) out[part].back().push_back(next);
  }
  if (p.points == Points::interfaces && cells == 0) out[0].push_back({0});
  return out;
}

std::string show(const Partition& p) {
  return fmt::format("{}({}) bounds [{}] block {} min {} mod {} interfaces {} overlap {} {} / {} {}", name_of(p.kind),
                     name_of(p.remainder), join_text(p.bounds, " "), p.block_size, p.minimum, p.modulo,
                     p.points == Points::interfaces, p.overlap.left.width, name_of(p.overlap.left.edge),
                     p.overlap.right.width, name_of(p.overlap.right.edge));
}

struct Stored {
  Index cell;
  bool owned;
};

// Everything that AxisParts says, against the model. Returns what differs first, or an empty text.
std::string difference(Index extent, Index parts, const Partition& p) {
  const AxisParts axis(extent, parts, p);
  const std::vector<PartSlices> model = model_of(extent, parts, p);
  for (Index part = 0; part < parts; ++part) {
    // The local array as the model stores it.
    std::vector<Stored> local;
    std::vector<Index> local_of(extent, -1);
    std::vector<std::pair<Index, Index>> stored_ranges;
    for (const Cells& slice : model[part]) {
      Index lower = slice.front() - p.overlap.left.width, upper = slice.back() + 1 + p.overlap.right.width;
      if (p.overlap.left.edge == EdgePolicy::truncate) lower = std::max<Index>(lower, 0);
      if (p.overlap.right.edge == EdgePolicy::truncate) upper = std::min(upper, extent);
      stored_ranges.emplace_back(lower, upper);
      for (Index cell = lower; cell < upper; ++cell) {
        const bool owned = cell >= slice.front() && cell <= slice.back();
        if (owned) local_of[cell] = Index(local.size());
        local.push_back({cell, owned});
      }
    }
    // The families, taken apart.
    std::size_t number = 0;
    Index next_local = 0;
    for (const SliceFamily& f : axis.slices(part)) {
      if (f.count < 1 || f.length < 1) return fmt::format("part {}: an empty family", part);
      if (f.number != Index(number)) return fmt::format("part {}: family numbered {}, not {}", part, f.number, number);
      for (Index k = 0; k < f.count; ++k, ++number) {
        if (number >= model[part].size()) return fmt::format("part {}: too many slices", part);
        const Cells& cells = model[part][number];
        if (f.start + k * f.period != cells.front() || f.length != Index(cells.size()))
          return fmt::format("part {} slice {}: {} from {}, not {} from {}", part, number, f.length,
                             f.start + k * f.period, cells.size(), cells.front());
        if (f.start + k * f.period - f.left != stored_ranges[number].first ||
            f.start + k * f.period + f.length + f.right != stored_ranges[number].second)
          return fmt::format("part {} slice {}: overlap {} and {}", part, number, f.left, f.right);
        if (f.local + k * f.pitch != next_local) return fmt::format("part {} slice {}: not packed", part, number);
        next_local += f.stored();
      }
    }
    if (number != model[part].size()) return fmt::format("part {}: {} slices of {}", part, number, model[part].size());
    if (axis.slice_count(part) != Index(number)) return fmt::format("part {}: slice_count", part);
    if (axis.local_extent(part) != Index(local.size()) || axis.local_extent(part) != next_local)
      return fmt::format("part {}: local extent {}, not {}", part, axis.local_extent(part), local.size());
    for (Index i = 0; i < Index(local.size()); ++i) {
      const LocalCell cell = axis.cell_of(part, i);
      if (cell.cell != local[i].cell || cell.owned != local[i].owned)
        return fmt::format("part {}: local {} is cell {} ({}), not {}", part, i, cell.cell, cell.owned, local[i].cell);
    }
    Index owned = 0;
    for (Index cell = 0; cell < extent; ++cell) {
      const std::optional<Index> at = axis.local_of(part, cell);
      if (at.value_or(-1) != local_of[cell])
        return fmt::format("part {}: cell {} at {}, not {}", part, cell, at.value_or(-1), local_of[cell]);
      if (axis.owns(part, cell) != (local_of[cell] >= 0)) return fmt::format("part {}: owns {}", part, cell);
      owned += local_of[cell] >= 0;
    }
    if (axis.owned_count(part) != owned) return fmt::format("part {}: owned_count {}", part, axis.owned_count(part));
  }
  for (Index cell = 0; cell < extent; ++cell) {
    std::vector<Index> owners;
    for (Index part = 0; part < parts; ++part)
      for (const Cells& slice : model[part])
        if (std::binary_search(slice.begin(), slice.end(), cell)) owners.push_back(part);
    if (owners.empty()) return fmt::format("cell {} has no owner", cell);
    const Index owner = p.kind == PartitionKind::whole ? owners.front() : owners.back();
    if (axis.owner(cell) != owner) return fmt::format("cell {}: owner {}, not {}", cell, axis.owner(cell), owner);
  }
  return "";
}

std::vector<Partition> irregular_samples(Index cells, Index parts) {
  // All at the end, all at the beginning, thirds with empty parts between, and one by one.
  std::vector<std::vector<Index>> bounds(4, std::vector<Index>(parts + 1, 0));
  for (Index i = 0; i <= parts; ++i) {
    bounds[0][i] = i == parts ? cells : 0;
    bounds[1][i] = i == 0 ? 0 : cells;
    bounds[2][i] = i == parts ? cells : std::min(cells, (i + 1) / 2 * 3);
    bounds[3][i] = i == parts ? cells : std::min(cells, i);
  }
  std::vector<Partition> out;
  for (auto& b : bounds) out.push_back(irregular(b));
  return out;
}

constexpr Index extent_max = 12, parts_max = 5;
constexpr Remainder all_remainders[] = {Remainder::low, Remainder::high, Remainder::ceil};
constexpr EdgePolicy all_edges[] = {EdgePolicy::truncate,  EdgePolicy::toroidal,        EdgePolicy::zero,
                                    EdgePolicy::replicate, EdgePolicy::replicate_local, EdgePolicy::open};

TEST(AxisParts, AgreesWithTheRulesForEveryMinimumAndModulo) {
  const Overlap overlaps[] = {{},
                              {{1, EdgePolicy::truncate}, {2, EdgePolicy::truncate}},
                              {{3, EdgePolicy::zero}, {0, EdgePolicy::truncate}},
                              {{4, EdgePolicy::toroidal}, {4, EdgePolicy::replicate}}};
  for (Index extent = 0; extent <= extent_max; ++extent)
    for (Index parts = 1; parts <= parts_max; ++parts)
      for (Index minimum = 0; minimum <= 3; ++minimum)
        for (Index modulo = 1; modulo <= 3; ++modulo) {
          std::vector<Partition> rules;
          for (Remainder remainder : all_remainders) rules.push_back(block(remainder));
          for (Index size = 1; size <= 6; ++size)
            if (size >= minimum && size % modulo == 0) rules.push_back(cyclic(size));
          for (Partition& p : rules) {
            p = p.with_minimum(minimum).with_modulo(modulo);
            for (const Overlap& overlap : overlaps) {
              p.overlap = overlap;
              ASSERT_EQ(difference(extent, parts, p), "") << extent << " in " << parts << ": " << show(p);
              if (p.kind == PartitionKind::cyclic || extent < 2) continue;
              ASSERT_EQ(difference(extent, parts, p.with_interfaces()), "")
                  << extent << " interfaces in " << parts << ": " << show(p);
            }
          }
        }
}

TEST(AxisParts, AgreesWithTheRulesForEveryOverlapAndEdge) {
  std::vector<std::pair<EdgePolicy, EdgePolicy>> edge_pairs = {{EdgePolicy::truncate, EdgePolicy::zero},
                                                               {EdgePolicy::toroidal, EdgePolicy::truncate}};
  for (const EdgePolicy edge : all_edges) edge_pairs.emplace_back(edge, edge);
  test::Thinned thinned(7);
  for (Index extent = 0; extent <= extent_max; ++extent)
    for (Index parts = 1; parts <= parts_max; ++parts) {
      std::vector<Partition> rules = {whole(), block(), block(Remainder::high), cyclic(1), cyclic(2), cyclic(3)};
      for (const Partition& p : irregular_samples(extent, parts)) rules.push_back(p);
      if (extent >= 2) {
        rules.push_back(block().with_interfaces());
        rules.push_back(whole().with_interfaces());
        for (const Partition& p : irregular_samples(extent - 1, parts)) rules.push_back(p.with_interfaces());
      }
      for (const Partition& rule : rules)
        for (Index left = 0; left <= 4; ++left)
          for (Index right = 0; right <= 4; ++right)
            for (const auto& [left_edge, right_edge] : edge_pairs) {
              if (!thinned.takes_next()) continue;
              const Partition p = rule.with_overlap({left, left_edge}, {right, right_edge});
              ASSERT_EQ(difference(extent, parts, p), "") << extent << " in " << parts << ": " << show(p);
            }
    }
}

/// The stored cells of families, in the order of their local indices: (local, cell, owned).
std::vector<std::tuple<Index, Index, bool>> stored_cells(const std::vector<SliceFamily>& families) {
  std::vector<std::tuple<Index, Index, bool>> out;
  for (const SliceFamily& f : families)
    for (Index k = 0; k < f.count; ++k)
      for (Index i = 0; i < f.stored(); ++i)
        out.emplace_back(f.local + k * f.pitch + i, f.start + k * f.period - f.left + i,
                         i >= f.left && i < f.left + f.length);
  return out;
}

TEST(AxisParts, StretchesAreTheSlicesJoined) {
  for (Index extent = 0; extent <= 20; ++extent)
    for (Index parts = 1; parts <= 3; ++parts)
      for (const Partition& rule : {whole(), block(), cyclic(1), cyclic(2), cyclic(3), cyclic(7)})
        for (Index width = 0; width <= 2; ++width) {
          const AxisParts axis(extent, parts, rule.with_overlap(width, width, EdgePolicy::truncate));
          for (Index part = 0; part < parts; ++part) {
            ASSERT_EQ(stored_cells(axis.stretches(part)), stored_cells(axis.slices(part)))
                << extent << " in " << parts << ": " << show(axis.partition());
            if (parts == 1 && width == 0) {
              ASSERT_EQ(axis.stretches(0).size(), extent > 0 ? 1u : 0u) << show(axis.partition());
            }
          }
        }
}

TEST(AxisParts, OwnsASingleInterface) {
  for (Index parts = 1; parts <= parts_max; ++parts)
    for (const Partition& p : {block(), whole(), block(Remainder::ceil).with_overlap(2, 1, EdgePolicy::zero)})
      EXPECT_EQ(difference(1, parts, p.with_interfaces()), "");
}

// What minimum and modulo promise, said directly.
TEST(AxisParts, KeepsMinimumAndModuloButForTheTail) {
  for (Index extent = 1; extent <= 30; ++extent)
    for (Index parts = 1; parts <= parts_max; ++parts)
      for (Index minimum = 0; minimum <= 7; ++minimum)
        for (Index modulo = 1; modulo <= 4; ++modulo)
          for (Remainder remainder : all_remainders) {
            const AxisParts axis(extent, parts, block(remainder).with_minimum(minimum).with_modulo(modulo));
            const Index tail = axis.owner(extent - 1);
            // Without a minimum, `high` leaves low parts empty when there are fewer cells than parts.
            const Index least = remainder == Remainder::high ? minimum : std::max<Index>(1, minimum);
            for (Index part = 0; part < tail; ++part) {
              EXPECT_GE(axis.owned_count(part), least) << show(axis.partition());
              EXPECT_EQ(axis.owned_count(part) % modulo, 0) << show(axis.partition());
            }
            for (Index part = tail + 1; part < parts; ++part) EXPECT_EQ(axis.owned_count(part), 0);
          }
}

TEST(AxisParts, TouchingPartsAreASmallSuperset) {
  for (Index extent = 0; extent <= extent_max; ++extent)
    for (Index parts = 1; parts <= parts_max; ++parts) {
      std::vector<Partition> rules = {whole(), cyclic(1), cyclic(2), cyclic(3)};
      for (Remainder remainder : all_remainders) rules.push_back(block(remainder));
      for (const Partition& p : irregular_samples(extent, parts)) rules.push_back(p);
      if (extent >= 1)
        for (Remainder remainder : all_remainders) rules.push_back(block(remainder).with_interfaces());
      if (extent >= 1)
        for (const Partition& p : irregular_samples(extent - 1, parts)) rules.push_back(p.with_interfaces());
      for (const Partition& p : rules) {
        const AxisParts axis(extent, parts, p);
        for (Index lower = -2; lower <= extent + 2; ++lower)
          for (Index upper = lower; upper <= extent + 2; ++upper) {
            const std::vector<Index> touching = axis.parts_touching({lower, upper});
            ASSERT_TRUE(std::is_sorted(touching.begin(), touching.end()));
            ASSERT_TRUE(std::adjacent_find(touching.begin(), touching.end()) == touching.end());
            std::set<Index> owners;
            for (Index cell = std::max<Index>(0, lower); cell < std::min(upper, extent); ++cell)
              for (Index part = 0; part < parts; ++part)
                if (axis.owns(part, cell)) owners.insert(part);
            ASSERT_TRUE(std::includes(touching.begin(), touching.end(), owners.begin(), owners.end()))
                << extent << " in " << parts << ": " << show(p) << ", [" << lower << ", " << upper << ")";
            // Small: nothing for nothing, and no more than the cells could belong to.
            const Index cells = std::max<Index>(0, std::min(upper, extent) - std::max<Index>(0, lower));
            if (cells == 0) {
              ASSERT_TRUE(touching.empty());
            } else if (p.kind == PartitionKind::cyclic) {
              ASSERT_EQ(touching.size(), owners.size()) << show(p);
            }
          }
      }
    }
}

TEST(AxisParts, PartsTouchingPeriodicIntervals) {
  for (Index extent = 1; extent <= extent_max; ++extent)
    for (Index parts = 1; parts <= parts_max; ++parts)
      for (const Partition& p : {whole(), block(), cyclic(1), cyclic(2), cyclic(3)}) {
        const AxisParts axis(extent, parts, p);
        for (const Index period : {-7, -3, 0, 1, 2, 4, 6})
          for (const Index count : {1, 2, 3, 20})
            for (Index lower = -2; lower <= extent; ++lower) {
              const Interval first{lower, lower + 2};
              const std::vector<Index> touching = axis.parts_touching(first, period, count);
              ASSERT_TRUE(std::is_sorted(touching.begin(), touching.end()));
              ASSERT_TRUE(std::adjacent_find(touching.begin(), touching.end()) == touching.end());
              for (Index k = 0; k < count; ++k) {
                const std::vector<Index> one =
                    axis.parts_touching({first.lower + k * period, first.upper + k * period});
                ASSERT_TRUE(std::includes(touching.begin(), touching.end(), one.begin(), one.end()))
                    << extent << " in " << parts << ": " << show(p) << ", " << count << " of period " << period;
              }
            }
      }
  // Of dealt blocks the parts repeat, however many intervals there are.
  const AxisParts dealt(Index(1) << 60, 100'000, cyclic(64));
  EXPECT_EQ(dealt.parts_touching({61, 70}, 6'400'000, Index(1) << 37), (std::vector<Index>{0, 1}));
}

// DRI's first example: 20 rows, cyclic blocks of 2 on 5 ranks, overlap 1 and 1, toroidal.
TEST(AxisParts, HasTheRowsOfTheFirstDriExample) {
  const AxisParts rows(20, 5, cyclic(2).with_overlap(1, 1, EdgePolicy::toroidal));
  auto stored = [&](Index part) {
    std::vector<Cells> out;
    for (const SliceFamily& f : rows.slices(part))
      for (Index k = 0; k < f.count; ++k) {
        out.emplace_back();
        for (Index i = 0; i < f.stored(); ++i)
          out.back().push_back(floor_modulo(f.start + k * f.period - f.left + i, rows.period()));
      }
    return out;
  };
  EXPECT_EQ(stored(0), (std::vector<Cells>{{19, 0, 1, 2}, {9, 10, 11, 12}}));
  EXPECT_EQ(stored(4), (std::vector<Cells>{{7, 8, 9, 10}, {17, 18, 19, 0}}));
  Index delivered = 0;
  for (Index part = 0; part < 5; ++part) delivered += rows.local_extent(part);
  EXPECT_EQ(delivered, 40);
}

// 5 columns, 4 processes, overlap 2, zero pad: the case that decided the block rule.
TEST(AxisParts, BalancesTheCaseOfDecember2000) {
  const AxisParts columns(5, 4, block().with_overlap(2, 2, EdgePolicy::zero));
  std::vector<Index> sizes;
  for (Index part = 0; part < 4; ++part) sizes.push_back(columns.owned_count(part));
  EXPECT_EQ(sizes, (std::vector<Index>{2, 1, 1, 1}));
  const SliceFamily third = columns.slices(2).at(0);
  EXPECT_EQ(third.start, 3);
  EXPECT_EQ(third.right, 2);
  const Index real_on_the_right = columns.extent() - (third.start + third.length);
  EXPECT_EQ(real_on_the_right, 1);
  EXPECT_EQ(columns.cell_of(2, third.left + third.length + 1).cell, 5);  // beyond the edge: the pad
  EXPECT_EQ(AxisParts(5, 4, block(Remainder::ceil)).owned_count(1), 2);
  EXPECT_EQ(AxisParts(5, 4, block(Remainder::ceil)).owned_count(3), 0);
  EXPECT_EQ(AxisParts(5, 4, block(Remainder::high)).owned_count(3), 2);
}

TEST(AxisParts, FewerCellsThanPartsGoToTheLowPartsOrToTheHighOnes) {
  const auto sizes = [](Index extent, Index parts, const Partition& partition) {
    const AxisParts axis(extent, parts, partition);
    std::vector<Index> out;
    for (Index part = 0; part < parts; ++part) out.push_back(axis.owned_count(part));
    return out;
  };
  const Partition high = block(Remainder::high);
  EXPECT_EQ(sizes(2, 4, block()), (std::vector<Index>{1, 1, 0, 0}));
  EXPECT_EQ(sizes(2, 4, high), (std::vector<Index>{0, 0, 1, 1}));
  EXPECT_EQ(sizes(5, 4, high.with_modulo(2)), (std::vector<Index>{0, 2, 2, 1}));
  EXPECT_EQ(sizes(3, 4, high.with_interfaces()), (std::vector<Index>{0, 0, 2, 2}));
  // With a minimum the late parts are the empty ones.
  EXPECT_EQ(sizes(2, 4, high.with_minimum(1)), (std::vector<Index>{1, 1, 0, 0}));
}

TEST(AxisParts, DescribesHugeExtentsByFewFamilies) {
  for (const Index extent : {Index(1'000'000), Index(1'000'000'000), Index(1'000'000'000'007)})
    for (const EdgePolicy edge : all_edges) {
      const AxisParts axis(extent, 16, cyclic(64).with_overlap(3, 100, edge));
      Index owned = 0;
      for (Index part = 0; part < 16; ++part) {
        EXPECT_LE(axis.slices(part).size(), 5u);
        owned += axis.owned_count(part);
        const Index last = axis.local_extent(part) - 1;
        EXPECT_GE(axis.cell_of(part, last).cell, extent - 16 * 64 - 64);
      }
      EXPECT_EQ(owned, extent);
      for (const Index cell : {Index(0), Index(63), Index(64), extent / 2, extent - 1}) {
        const Index part = cell / 64 % 16;
        EXPECT_EQ(axis.owner(cell), part);
        const LocalCell back = axis.cell_of(part, axis.local_of(part, cell).value());
        EXPECT_EQ(back.cell, cell);
        EXPECT_TRUE(back.owned);
      }
    }
  const Index extent = Index(1) << 61;
  const AxisParts blocks(extent, 3, block());
  EXPECT_EQ(blocks.owned_count(0) + blocks.owned_count(1) + blocks.owned_count(2), extent);
  EXPECT_EQ(blocks.owner(extent - 1), 2);
}

TEST(AxisParts, BearsTheLargestBlocks) {
  const AxisParts axis(5, 1, cyclic(INT64_MAX).with_overlap(10, 10, EdgePolicy::zero));
  EXPECT_EQ(axis.local_extent(0), 25);
  EXPECT_EQ(axis.owned_count(0), 5);
  const AxisParts units(5, 3, block().with_modulo(INT64_MAX).with_minimum(INT64_MAX));
  EXPECT_EQ(units.owned_count(0), 5);
  EXPECT_EQ(units.owned_count(2), 0);
}

TEST(AxisParts, RefusesAnOverlapThatMakesTooManySlicesReachTheEdge) {
  const AxisParts axis(Index(1) << 39, 2, cyclic(1).with_overlap(Index(1) << 22, 0));
  try {
    axis.slices(0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(error.message().find("2097152"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("1048576"), std::string::npos) << error.message();
  }
}

// Sizes are sums in closed form: no slice is looked at, however many reach the edge.
TEST(AxisParts, SizesDoNotTakeTheSlicesOneByOne) {
  const Index extent = 1'000'000'000, parts = 1'000'000, slices = extent / parts;
  const auto local_extent = [&](const Partition& cut, Index part) {
    return AxisParts(extent, parts, cut).local_extent(part);
  };
  const Partition rule = cyclic(1).with_overlap(2'000'000, 2'000'000, EdgePolicy::zero);
  EXPECT_EQ(local_extent(rule, 7), slices * 4'000'001);
  // Of 10^9 cells on either side slice k of part p stores p + k * 10^6 before and the others behind: all cells.
  const Partition wide = cyclic(1).with_overlap(extent, extent);
  for (const Index part : {Index(0), Index(123'456), parts - 1}) EXPECT_EQ(local_extent(wide, part), slices * extent);
  const Partition left = cyclic(1).with_overlap(extent, 0);
  EXPECT_EQ(local_extent(left, 3), slices * 4 + parts * (slices * (slices - 1) / 2));
  EXPECT_EQ(AxisParts(extent, parts, left).slice_count(3), slices);
  EXPECT_EQ(AxisParts(extent, parts, left).owned_count(3), slices);
}

TEST(AxisParts, IsEqualByContent) {
  const auto parts = [](Partition p) { return AxisParts(12, 3, std::move(p)); };
  EXPECT_TRUE(parts(block()) == parts({.kind = PartitionKind::block, .block_size = 7, .bounds = {1}}));
  EXPECT_TRUE(parts(cyclic(2)) ==
              parts({.kind = PartitionKind::cyclic, .remainder = Remainder::ceil, .block_size = 2}));
  EXPECT_TRUE(parts(block().with_overlap(0, 1, EdgePolicy::zero)) ==
              parts(block().with_overlap({0, EdgePolicy::open}, {1, EdgePolicy::zero})));
  EXPECT_FALSE(parts(block()) == parts(block(Remainder::high)));
  EXPECT_FALSE(parts(block()) == parts(whole()));
  EXPECT_FALSE(parts(cyclic(2)) == parts(cyclic(3)));
  EXPECT_FALSE(parts(block().with_overlap(1, 1)) == parts(block().with_overlap(1, 1, EdgePolicy::zero)));
  EXPECT_FALSE(parts(block()) == AxisParts(12, 4, block()));
  EXPECT_FALSE(parts(block()) == AxisParts(13, 3, block()));
}

struct BadPartition {
  Index extent;
  Index parts;
  Partition partition;
  ErrorCode code;
  const char* message;
};

TEST(AxisParts, RefusesWhatMakesNoSense) {
  const BadPartition cases[] = {
      {-1, 1, whole(), ErrorCode::invalid_use, "extent -1 is negative"},
      {8, 0, whole(), ErrorCode::invalid_use, "a dimension is cut into 0 parts; at least 1 is needed"},
      {8, 2, block().with_overlap(-1, 0), ErrorCode::invalid_use, "overlap of -1 cells is negative"},
      {8, 2, block().with_minimum(-2), ErrorCode::invalid_use, "minimum of -2 cells is negative"},
      {8, 2, block().with_modulo(0), ErrorCode::invalid_use, "modulo 0 is less than 1"},
      {8, 2, whole().with_minimum(2), ErrorCode::invalid_use,
       "minimum 2 and modulo 1 apply to block and cyclic partitions only"},
      {8, 2, cyclic(0), ErrorCode::invalid_use, "cyclic block of 0 cells; at least 1 is needed"},
      {8, 2, cyclic(4).with_modulo(3), ErrorCode::invalid_use, "cyclic block of 4 cells is not a multiple of modulo 3"},
      {8, 2, cyclic(4).with_minimum(5), ErrorCode::invalid_use, "cyclic block of 4 cells is below the minimum of 5"},
      {8, 2, cyclic(INT64_MAX), ErrorCode::overflow,
       "cyclic blocks of 9223372036854775807 cells: one for each of 2 parts do not fit in 63 bits"},
      {8, 2, cyclic(4).with_interfaces(), ErrorCode::unsupported, "a cyclic(4) partition of interfaces is not defined"},
      {0, 2, block().with_interfaces(), ErrorCode::invalid_use,
       "a dimension of interfaces has extent 0, needs at least 1"},
      {1, 2, block().with_interfaces().with_overlap(1, 0, EdgePolicy::toroidal), ErrorCode::invalid_use,
       "a toroidal dimension of interfaces has extent 1, needs at least 2"},
      {8, 2, irregular({0, 8}), ErrorCode::invalid_use, "irregular partition into 2 parts needs 3 bounds, has 2"},
      {8, 2, irregular({1, 4, 8}), ErrorCode::invalid_use, "irregular bounds go from 1 to 8, must go from 0 to 8"},
      {8, 3, irregular({0, 5, 4, 8}), ErrorCode::invalid_use, "irregular bounds decrease from 5 to 4"},
      {8, 2, block().with_overlap(INT64_MAX, 1), ErrorCode::overflow,
       "extent 8 in 2 parts with an overlap of 9223372036854775807 and 1 cell: together they may store more than "
       "4611686018427387903 cells"},
      {tranship::extent_max, 2, block().with_overlap(1, 1), ErrorCode::overflow,
       "extent 4611686018427387903 in 2 parts with an overlap of 1 and 1 cell: together they may store more than "
       "4611686018427387903 cells"},
      {INT64_MAX, 2, block(), ErrorCode::overflow,
       "extent 9223372036854775807; at most 4611686018427387903 is possible"},
      {tranship::extent_max + 1, 1, whole(), ErrorCode::overflow,
       "extent 4611686018427387904; at most 4611686018427387903 is possible"},
  };
  for (const BadPartition& bad : cases) {
    try {
      AxisParts(bad.extent, bad.parts, bad.partition);
      ADD_FAILURE() << "accepted, but should say: " << bad.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), bad.message);
      EXPECT_EQ(error.code(), bad.code) << bad.message;
    }
  }
  const AxisParts axis(8, 2, block());
  EXPECT_THROW(axis.owner(8), Error);
  EXPECT_THROW(axis.owner(-1), Error);
  EXPECT_THROW(axis.cell_of(0, 4), Error);
  EXPECT_THROW(axis.cell_of(0, -1), Error);
}

}  // namespace
}  // namespace tranship
