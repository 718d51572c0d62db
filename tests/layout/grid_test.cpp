// Grids: the numbering of parts against a nested loop, sets of ranks, replicas, equality by content.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include <tranship/layout/grid.hpp>

namespace tranship {
namespace {

// Places in the order of their ordinals: the loop over the axes from slowest to fastest, written out.
std::vector<Place> places_in_order(const Indices& extents, Index replicas, const std::vector<int>& axes) {
  Indices lengths;
  for (const int axis : axes) lengths.push_back(axis == extents.size() ? replicas : extents[axis]);
  std::vector<Place> out;
  for_each_coordinate(lengths, [&](const Indices& at) {
    Place place{.coordinates = Indices::filled(extents.size(), 0), .replica = 0};
    for (std::size_t k = 0; k < axes.size(); ++k)
      (axes[k] == extents.size() ? place.replica : place.coordinates[axes[k]]) = at[int(k)];
    out.push_back(place);
  });
  return out;
}

void expect_numbering(const Grid& grid, const std::vector<Place>& places, const std::vector<Rank>& ranks) {
  ASSERT_EQ(grid.size(), Index(places.size()));
  EXPECT_EQ(grid.ranks(), ranks);
  EXPECT_EQ(grid.world_size_min(), *std::max_element(ranks.begin(), ranks.end()) + 1);
  for (Index i = 0; i < grid.size(); ++i) {
    EXPECT_EQ(grid.place_at(i), places[i]);
    EXPECT_EQ(grid.ordinal_of(places[i]), i);
    EXPECT_EQ(grid.rank_at(i), ranks[i]);
    EXPECT_EQ(grid.rank_of(places[i]), ranks[i]);
    EXPECT_EQ(grid.ordinal_of(ranks[i]), i);
    EXPECT_EQ(grid.place_of(ranks[i]), places[i]);
  }
  for (Rank rank = -2; rank < grid.world_size_min() + 3; ++rank) {
    const bool member = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    EXPECT_EQ(grid.ordinal_of(rank).has_value(), member) << rank;
    EXPECT_EQ(grid.place_of(rank).has_value(), member) << rank;
  }
}

std::vector<Rank> ranks_from(Rank first, Rank stride, Index count) {
  std::vector<Rank> out;
  for (Index i = 0; i < count; ++i) out.push_back(static_cast<Rank>(first + i * stride));
  return out;
}

TEST(Grid, NumbersRowMajorWithReplicasSlowest) {
  expect_numbering(grid(4), places_in_order({4}, 1, {1, 0}), ranks_from(0, 1, 4));
  expect_numbering(grid(2, 3), places_in_order({2, 3}, 1, {2, 0, 1}), ranks_from(0, 1, 6));
  expect_numbering(Grid({2, 3}, {.replicas = 2}), places_in_order({2, 3}, 2, {2, 0, 1}), ranks_from(0, 1, 12));
}

TEST(Grid, NumbersInEveryOrder) {
  const Indices extents = {2, 3, 1, 2};
  std::vector<int> axes = {0, 1, 2, 3, 4};
  do {
    for (const Index replicas : {1, 3})
      expect_numbering(Grid(extents, {.replicas = replicas, .order = axes, .first = 2, .stride = 3}),
                       places_in_order(extents, replicas, axes), ranks_from(2, 3, 12 * replicas));
  } while (std::next_permutation(axes.begin(), axes.end()));
  // The replica axis may be left out: it is the slowest.
  expect_numbering(Grid({2, 3}, {.replicas = 2, .order = {1, 0}}), places_in_order({2, 3}, 2, {2, 1, 0}),
                   ranks_from(0, 1, 12));
}

TEST(Grid, SitsOnAnyRanks) {
  std::vector<Rank> ranks = ranks_from(0, 1, 12);
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    for (Rank& rank : ranks) rank += static_cast<Rank>(random() % 2) * 12;
    std::shuffle(ranks.begin(), ranks.end(), random);
    expect_numbering(Grid({3, 2}, {.replicas = 2, .order = {0, 2, 1}, .ranks = ranks}),
                     places_in_order({3, 2}, 2, {0, 2, 1}), ranks);
    expect_numbering(Grid({3, 2}, {.replicas = 2, .order = {0, 2, 1}}).on_ranks(ranks),
                     places_in_order({3, 2}, 2, {0, 2, 1}), ranks);
    for (Rank& rank : ranks) rank %= 12;
  }
}

TEST(Grid, OrdinalStridesAreThoseOfTheNumbering) {
  const Grid g({2, 3, 4}, {.replicas = 5, .order = {1, 3, 0, 2}});
  for (Index i = 0; i < g.size(); ++i) {
    const Place place = g.place_at(i);
    for (int axis = 0; axis <= 3; ++axis) {
      Place next = place;
      Index& coordinate = axis == 3 ? next.replica : next.coordinates[axis];
      if (++coordinate == (axis == 3 ? g.replicas() : g.extents()[axis])) continue;
      EXPECT_EQ(g.ordinal_of(next) - i, g.ordinal_stride(axis));
    }
  }
}

TEST(Grid, IsEqualByContent) {
  EXPECT_TRUE(grid(2, 3) == Grid({2, 3}, {.replicas = 1, .order = {2, 0, 1}}));
  EXPECT_TRUE(grid(2, 3) == Grid({2, 3}, {.order = {0, 1}}));
  EXPECT_TRUE(grid(2, 3) == Grid({2, 3}, {.order = {0, 2, 1}}));  // one replica: its axis has no place
  EXPECT_TRUE(grid(2, 3) == Grid({2, 3}, {.ranks = {0, 1, 2, 3, 4, 5}}));
  EXPECT_TRUE(grid(1, 3) == Grid({1, 3}, {.order = {1, 0}}));
  EXPECT_TRUE(grid(1) == Grid({1}, {.stride = 4}));
  EXPECT_TRUE(Grid({2}, {.first = 3, .stride = 4}) == Grid({2}, {.ranks = {3, 7}}));
  EXPECT_TRUE(Grid({3}, {.ranks = {5, 0, 9}}) == grid(3).on_ranks({5, 0, 9}));

  EXPECT_FALSE(grid(2, 3) == Grid({2, 3}, {.order = {1, 0}}));
  EXPECT_FALSE(grid(2, 3) == grid(3, 2));
  EXPECT_FALSE(grid(2, 3) == grid(2, 3, 1));
  EXPECT_FALSE(grid(2, 3) == Grid({2, 3}, {.replicas = 2}));
  EXPECT_FALSE(grid(2, 3) == Grid({2, 3}, {.first = 1}));
  EXPECT_FALSE(grid(2, 3) == Grid({2, 3}, {.stride = 2}));
  EXPECT_FALSE(Grid({3}, {.ranks = {5, 0, 9}}) == Grid({3}, {.ranks = {5, 9, 0}}));
  EXPECT_FALSE(Grid({3}, {.ranks = {5, 0, 9}}) == grid(3));
  EXPECT_FALSE(Grid({2}, {.replicas = 2, .order = {0, 1}}) == Grid({2}, {.replicas = 2}));
}

TEST(Grid, NeedsNoListForManyRanks) {
  const Grid g({40'000, 50'000});
  EXPECT_EQ(g.size(), 2'000'000'000);
  EXPECT_FALSE(g.ranks_listed());
  EXPECT_EQ(g.rank_of({.coordinates = {39'999, 49'999}}), 1'999'999'999);
  EXPECT_EQ(g.place_of(1'999'999'999), (Place{.coordinates = {39'999, 49'999}}));
}

struct BadGrid {
  Indices extents;
  GridOptions options;
  ErrorCode code;
  const char* message;
};

TEST(Grid, RefusesWhatMakesNoSense) {
  const BadGrid cases[] = {
      {{2, 0}, {}, ErrorCode::invalid_use, "grid extent 0 of dimension 1 is below 1"},
      {{2}, {.replicas = 0}, ErrorCode::invalid_use, "the grid has 0 replicas; at least 1 is needed"},
      {{2, 2}, {.order = {0}}, ErrorCode::invalid_use, "grid order [0] is not a permutation of the axes 0 to 2"},
      {{2, 2},
       {.order = {0, 0, 1}},
       ErrorCode::invalid_use,
       "grid order [0, 0, 1] is not a permutation of the axes 0 to 2"},
      {{2, 2},
       {.order = {0, 1, 2, 3}},
       ErrorCode::invalid_use,
       "grid order [0, 1, 2, 3] is not a permutation of the axes 0 to 2"},
      {{2, 2},
       {.order = {0, -1}},
       ErrorCode::invalid_use,
       "grid order [0, -1] is not a permutation of the axes 0 to 2"},
      {{2}, {.first = -1}, ErrorCode::invalid_use, "ranks from -1 in steps of 1: must start at 0 or above and go up"},
      {{2}, {.stride = 0}, ErrorCode::invalid_use, "ranks from 0 in steps of 0: must start at 0 or above and go up"},
      {{2}, {.ranks = {1, 2, 3}}, ErrorCode::invalid_use, "a grid of 2 parts is given 3 ranks"},
      {{2}, {.ranks = {1, -2}}, ErrorCode::invalid_use, "rank -2 of part 1 is negative"},
      {{2},
       {.ranks = {1, 2147483647}},
       ErrorCode::overflow,
       "rank 2147483647 of part 1 is above the largest rank 2147483646"},
      {{3}, {.ranks = {1, 4, 1}}, ErrorCode::invalid_use, "rank 1 holds two parts, 0 and 2"},
      {{2}, {.first = 2147483646}, ErrorCode::overflow, "rank 2147483647 is above the largest rank 2147483646"},
      {{1'000'000'000, 3}, {}, ErrorCode::overflow, "rank 2999999999 is above the largest rank 2147483646"},
      {{4'000'000'000, 4'000'000'000},
       {},
       ErrorCode::overflow,
       "the product of extents [4000000000, 4000000000] does not fit in 63 bits"},
  };
  for (const BadGrid& bad : cases) {
    try {
      Grid(bad.extents, bad.options);
      ADD_FAILURE() << "accepted, but should say: " << bad.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), bad.message);
      EXPECT_EQ(error.code(), bad.code) << bad.message;
    }
  }
}

}  // namespace
}  // namespace tranship
