#include <gtest/gtest.h>

#include <tranship/memory/state/region_map.hpp>

#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using test::first_fault;
using test::Random;

/// An array of values beside a map: what is done to one is done to the other.
class Twin {
 public:
  Twin(const Indices& extents, int value)
      : whole_(Box::of_extents(extents)), map_(whole_, value), cells_(std::size_t(whole_.count()), value) {}

  /// Writes f(old value), and says what is wrong with the boxes that it was given.
  template <class F>
  std::string update(const Box& region, F f, bool is_new = false) {
    const std::string fault = update_only(region, f, is_new);
    return fault.empty() ? check() : fault;
  }
  /// The same without a look at what all entries are then.
  template <class F>
  std::string update_only(const Box& region, F f, bool is_new = false) {
    std::vector<int> visits(cells_.size(), 0);
    std::string fault;
    const auto written = [&](const Box& box, int& value) {
      each_cell(box, [&](std::size_t at) {
        ++visits[at];
        if (cells_[at] != value) fault = fmt::format("update of {} shows {} for {}", to_string(box), value, cells_[at]);
      });
      value = f(value);
    };
    if (is_new)
      map_.renew(region, written);
    else
      map_.update(region, written);
    each_cell(whole_, [&](std::size_t at) {
      if (visits[at] != int(is_in(at, region))) fault = fmt::format("update visits cell {} {} times", at, visits[at]);
    });
    each_cell(intersect(region, whole_), [&](std::size_t at) { cells_[at] = f(cells_[at]); });
    return fault;
  }

  std::string look_at(const Box& region) const {
    std::vector<int> visits(cells_.size(), 0);
    std::string fault;
    map_.for_each(region, [&](const Box& box, const int& value) {
      each_cell(box, [&](std::size_t at) {
        ++visits[at];
        if (cells_[at] != value) fault = fmt::format("{} has {} for {}", to_string(box), value, cells_[at]);
      });
    });
    each_cell(whole_, [&](std::size_t at) {
      if (visits[at] != int(is_in(at, region))) fault = fmt::format("cell {} is visited {} times", at, visits[at]);
    });
    return fault;
  }

  /// Whether the entries are disjoint, cover, have the right values, and no two neighbours could be one.
  std::string check() const {
    std::vector<int> visits(cells_.size(), 0);
    std::vector<std::pair<Box, int>> entries;
    std::string fault;
    map_.for_each([&](const Box& box, const int& value) {
      entries.emplace_back(box, value);
      each_cell(box, [&](std::size_t at) {
        ++visits[at];
        if (cells_[at] != value) fault = fmt::format("entry {} has {} for {}", to_string(box), value, cells_[at]);
      });
    });
    if (entries.size() != map_.entry_count()) return "the count of entries is wrong";
    for (const int visit : visits)
      if (visit != 1) fault = fmt::format("{} entries have one cell", visit);
    for (const auto& [a, in_a] : entries)
      for (const auto& [b, in_b] : entries) {
        if (in_a != in_b || !detail::share_face(a, b)) continue;
        Box both = a;
        detail::extend(both, b);
        if (both.count() == a.count() + b.count())
          fault = fmt::format("{} and {} could be one entry", to_string(a), to_string(b));
      }
    return fault;
  }

  std::size_t entry_count() const { return map_.entry_count(); }
  const Box& whole() const { return whole_; }

 private:
  template <class F>
  void each_cell(const Box& box, F f) const {
    for_each_coordinate(box.extents(), [&](const Indices& offset) {
      Index at = 0;
      for (int d = 0; d < offset.size(); ++d) at = at * whole_.upper[d] + box.lower[d] + offset[d];
      f(std::size_t(at));
    });
  }
  bool is_in(std::size_t at, const Box& region) const {
    Indices cell = Indices::filled(whole_.dims(), 0);
    for (int d = whole_.dims() - 1; d >= 0; --d) {
      cell[d] = Index(at) % whole_.upper[d];
      at = std::size_t(Index(at) / whole_.upper[d]);
    }
    return region.contains(cell);
  }

  Box whole_;
  RegionMap<int> map_;
  std::vector<int> cells_;
};

TEST(RegionMap, all_triples_of_updates_of_a_line_of_four_cells) {
  std::vector<Box> intervals;
  for (Index lower = 0; lower < 4; ++lower)
    for (Index upper = lower + 1; upper <= 4; ++upper) intervals.push_back({{lower}, {upper}});
  for (const Box& a : intervals)
    for (const Box& b : intervals)
      for (const Box& c : intervals)
        for (const int last : {0, 1, 2}) {
          Twin twin({4}, 0);
          ASSERT_EQ(twin.update(a, [](int) { return 1; }), "");
          ASSERT_EQ(twin.update(b, [](int) { return 2; }), "");
          ASSERT_EQ(twin.update(c, [last](int) { return last; }), "");
          for (const Box& region : intervals) ASSERT_EQ(twin.look_at(region), "");
        }
}

/// Reaches out of the map now and then.
Box random_box(Random& random, const Box& whole) {
  Box box;
  for (int d = 0; d < whole.dims(); ++d) {
    const Index a = random.between(-1, whole.upper[d]), b = random.between(0, whole.upper[d] + 1);
    box.lower.push_back(std::min(a, b));
    box.upper.push_back(std::max(a, b));
  }
  return box;
}

TEST(RegionMap, random_updates_agree_with_an_array) {
  EXPECT_EQ(first_fault(0.1,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          Indices extents;
                          for (int d = 0; d < dims; ++d) extents.push_back(random.between(1, dims == 1 ? 40 : 7));
                          Twin twin(extents, 0);
                          for (int turn = 0; turn < 30; ++turn) {
                            Box region = random_box(random, twin.whole());
                            const int value = int(random.below(3));
                            const bool adds = random.one_in(3);
                            std::string fault =
                                twin.update(region, [&](int old) { return adds ? (old + value) % 4 : value; });
                            if (random.one_in(2)) region = random_box(random, twin.whole());
                            if (fault.empty() && random.one_in(3))
                              fault = twin.update(
                                  region, [&](int) { return 100 + turn; }, true);
                            if (fault.empty()) fault = twin.look_at(random_box(random, twin.whole()));
                            if (!fault.empty()) return fmt::format("turn {}: {}", turn, fault);
                          }
                          return "";
                        }),
            "");
}

TEST(RegionMap, thousands_of_boxes_agree_with_an_array) {
  EXPECT_EQ(first_fault(0.002,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(2, 3));
                          Twin twin(dims == 2 ? Indices{48, 60} : Indices{12, 15, 16}, 0);
                          for (int turn = 0; turn < 1500; ++turn) {
                            Box region;
                            for (int d = 0; d < dims; ++d) {
                              region.lower.push_back(random.between(-1, twin.whole().upper[d]));
                              region.upper.push_back(region.lower[d] + random.between(1, random.one_in(40) ? 40 : 3));
                            }
                            const int value = random.one_in(2) ? turn : int(random.below(3));
                            std::string fault = twin.update_only(region, [&](int) { return value; });
                            if (fault.empty()) fault = twin.look_at(random_box(random, twin.whole()));
                            if (fault.empty() && turn % 250 == 249) fault = twin.check();
                            if (!fault.empty()) return fmt::format("turn {}: {}", turn, fault);
                          }
                          const std::string fault = twin.update(twin.whole(), [](int) { return 1; });
                          if (fault.empty() && twin.entry_count() != 1)
                            return fmt::format("{} entries are left", twin.entry_count());
                          return fault;
                        }),
            "");
}

/// The cells of a cube, or every other one of them along each dimension, in random order.
std::vector<Box> shuffled_cells(int dims, Index extent, Index stride, std::uint64_t seed) {
  std::vector<Box> cells;
  for_each_coordinate(Indices::filled(dims, extent), [&](const Indices& at) {
    Box cell{at, at};
    for (int d = 0; d < dims; ++d) {
      cell.lower[d] *= stride;
      cell.upper[d] = cell.lower[d] + 1;
    }
    cells.push_back(cell);
  });
  Random(seed).shuffle(cells);
  return cells;
}

/// What a map looks at when each of these cells gets a value of its own, then is looked for, then all get one value.
std::uint64_t steps_of(const std::vector<Box>& cells) {
  Box whole = cells[0];
  for (const Box& cell : cells) detail::extend(whole, cell);
  RegionMap<int> map(whole, 0);
  const std::uint64_t before = detail::box_steps;
  int number = 0;
  for (const Box& cell : cells) {
    ++number;
    map.update(cell, [&](const Box&, int& value) { value = number; });
  }
  EXPECT_GE(map.entry_count(), cells.size());
  number = 0;
  for (const Box& cell : cells) {
    ++number;
    map.for_each(cell, [&](const Box&, const int& value) { EXPECT_EQ(value, number); });
  }
  const RegionMap<int> copy = map;
  for (const Box& cell : cells) map.update(cell, [&](const Box&, int& value) { value = 0; });
  EXPECT_EQ(map.entry_count(), 1u);
  EXPECT_GE(copy.entry_count(), cells.size());
  EXPECT_NE(copy.only({&cells[0], 1}), nullptr);
  return detail::box_steps - before;
}

TEST(RegionMap, ten_thousand_boxes_cost_about_their_number_in_all_dimensions) {
  struct Case {
    int dims;
    Index few, many;  // along each dimension
    Index stride;
  };
  test::Thinned thinned(2);
  for (const Case& c : {Case{1, 625, 10'000, 1}, Case{1, 625, 10'000, 2}, Case{2, 25, 100, 1}, Case{2, 25, 100, 2},
                        Case{3, 12, 22, 1}, Case{3, 12, 22, 2}}) {
    if (!thinned.takes_next()) continue;
    const std::vector<Box> few = shuffled_cells(c.dims, c.few, c.stride, 1);
    const std::vector<Box> many = shuffled_cells(c.dims, c.many, c.stride, 1);
    const double each_of_few = double(steps_of(few)) / double(few.size());
    const double each_of_many = double(steps_of(many)) / double(many.size());
    EXPECT_LE(each_of_many, 2.5 * each_of_few) << c.dims << " dimensions, one of " << c.stride;
  }
}

TEST(RegionMap, when_all_values_are_equal_again_one_entry_is_left) {
  EXPECT_EQ(first_fault(0.02,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          Twin twin(Indices::filled(dims, 6), 0);
                          for (int turn = 0; turn < 12; ++turn) {
                            const int value = int(random.below(4));
                            const std::string fault =
                                twin.update(random_box(random, twin.whole()), [&](int) { return value; });
                            if (!fault.empty()) return fault;
                          }
                          // Cell by cell, in an order that has nothing to do with the boxes.
                          std::vector<Box> cells;
                          for_each_coordinate(twin.whole().extents(), [&](const Indices& at) {
                            Box cell{at, at};
                            for (Index& upper : cell.upper) ++upper;
                            cells.push_back(cell);
                          });
                          random.shuffle(cells);
                          for (const Box& cell : cells) {
                            const std::string fault = twin.update(cell, [](int) { return 9; });
                            if (!fault.empty()) return fault;
                          }
                          if (twin.entry_count() != 1) return fmt::format("{} entries are left", twin.entry_count());
                          return "";
                        }),
            "");
}

TEST(RegionMap, the_updated_region_joins_its_neighbours_on_both_sides) {
  RegionMap<int> map(Box{{0}, {30}}, 1);
  map.update(Box{{10}, {20}}, [](const Box&, int& value) { value = 2; });
  EXPECT_EQ(map.entry_count(), 3u);
  map.update(Box{{10}, {20}}, [](const Box&, int& value) { value = 1; });
  EXPECT_EQ(map.entry_count(), 1u);
}

TEST(RegionMap, entries_that_interlock_become_one) {
  RegionMap<int> map(Box{{0, 0}, {3, 3}}, 0);
  const std::vector<Box> bars = {{{0, 0}, {1, 2}}, {{0, 2}, {2, 3}}, {{2, 1}, {3, 3}}, {{1, 0}, {3, 1}}};
  int number = 0;
  for (const Box& bar : bars) {
    ++number;
    map.update(bar, [&](const Box&, int& value) { value = number; });
  }
  EXPECT_EQ(map.entry_count(), 5u);
  for (const Box& bar : bars) map.update(bar, [&](const Box&, int& value) { value = 9; });
  EXPECT_EQ(map.entry_count(), 5u);
  map.update(Box{{1, 1}, {2, 2}}, [](const Box&, int& value) { value = 9; });
  EXPECT_EQ(map.entry_count(), 1u);
}

TEST(RegionMap, one_entry_speaks_for_all_boxes_that_it_has) {
  RegionMap<int> map(Box{{0, 0}, {4, 6}}, 1);
  const std::vector<Box> two{{{0, 0}, {1, 1}}, {{2, 2}, {4, 6}}};
  EXPECT_EQ(*map.only(two), 1);
  map.update(Box{{1, 0}, {3, 6}}, [](const Box&, int& value) { value = 2; });
  const Box upper{{0, 1}, {1, 5}}, middle{{1, 0}, {3, 6}}, both{{0, 0}, {2, 6}};
  EXPECT_EQ(*map.only({&upper, 1}), 1);
  EXPECT_EQ(*map.only({&middle, 1}), 2);
  EXPECT_EQ(map.only({&both, 1}), nullptr);
  EXPECT_EQ(map.only(two), nullptr);
}

TEST(RegionMap, a_scalar_has_one_cell_and_an_empty_box_none) {
  RegionMap<int> scalar(Box{}, 7);
  int seen = 0;
  scalar.update(Box{}, [&](const Box&, int& value) { value += 1; });
  scalar.for_each(Box{}, [&](const Box&, const int& value) { seen += value; });
  EXPECT_EQ(seen, 8);
  RegionMap<int> none(Box{{0}, {0}}, 7);
  none.update(Box{{0}, {5}}, [&](const Box&, int&) { ADD_FAILURE(); });
  EXPECT_EQ(none.entry_count(), 0u);
  EXPECT_EQ(RegionMap<int>().entry_count(), 0u);
}

TEST(RegionMap, regions_of_many_boxes_go_box_by_box) {
  RegionMap<int> map(Box{{0}, {10}}, 0);
  const Region odd = Region::intervals({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}});
  map.update(odd, [](const Box&, int& value) { ++value; });
  EXPECT_EQ(map.entry_count(), 10u);
  int sum = 0;
  map.for_each(odd, [&](const Box& box, const int& value) { sum += value * int(box.count()); });
  EXPECT_EQ(sum, 5);
  map.update(odd, [](const Box&, int& value) { --value; });
  EXPECT_EQ(map.entry_count(), 1u);
}

TEST(RegionMap, other_dimensions_are_refused) {
  RegionMap<int> map(Box{{0}, {10}}, 0);
  EXPECT_THROW(map.update(Box{{0, 0}, {1, 1}}, [](const Box&, int&) {}), Error);
  EXPECT_THROW(map.for_each(Box{}, [](const Box&, const int&) {}), Error);
}

TEST(RegionMap, a_function_that_throws_leaves_all_cells_with_a_value) {
  RegionMap<int> map(Box{{0, 0}, {4, 4}}, 0);
  EXPECT_THROW(map.update(Box{{1, 1}, {3, 3}},
                          [](const Box&, int& value) {
                            value = 5;
                            throw 1;
                          }),
               int);
  Index cells = 0, fives = 0;
  map.for_each([&](const Box& box, const int& value) {
    cells += box.count();
    if (value == 5) fives += box.count();
  });
  EXPECT_EQ(cells, 16);
  EXPECT_EQ(fives, 4);
}

/// Counts how often it is copied and compared.
struct Counted {
  int value = 0;
  static inline long copies = 0;
  static inline long comparisons = 0;
  explicit Counted(int v) : value(v) {}
  Counted(const Counted& other) : value(other.value) { ++copies; }
  Counted(Counted&&) = default;
  Counted& operator=(const Counted&) = default;
  bool operator==(const Counted& other) const {
    ++comparisons;
    return value == other.value;
  }
};

TEST(RegionMap, a_small_interval_among_very_many_touches_few_values) {
  constexpr Index pieces = 20000;
  RegionMap<Counted> map(Box{{0}, {pieces}}, Counted(-1));
  for (Index i = 0; i < pieces; ++i)
    map.update(Box{{i}, {i + 1}}, [&](const Box&, Counted& cell) { cell.value = int(i); });
  ASSERT_EQ(map.entry_count(), std::size_t(pieces));
  Counted::copies = Counted::comparisons = 0;
  int seen = 0;
  map.for_each(Box{{9000}, {9003}}, [&](const Box&, const Counted&) { ++seen; });
  map.update(Box{{9000}, {9003}}, [&](const Box&, Counted&) { ++seen; });
  EXPECT_EQ(seen, 6);
  EXPECT_EQ(Counted::copies, 0);
  EXPECT_LE(Counted::comparisons, 10);
}

}  // namespace
}  // namespace tranship
