// Distribution: owners, local and global coordinates, slices and storage against one global array walked cell by cell.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <layout/random_layout.hpp>

#include <tranship/layout/distribution.hpp>

namespace tranship {
namespace {

std::vector<Index> as_vector(const Indices& values) {
  return {values.begin(), values.end()};
}

bool inside(const Indices& at, const Indices& extents) {
  return Box::of_extents(extents).contains(at);
}

// Where element `at` of a rank's local array lies.
Index position_of(const Storage& storage, const Indices& at) {
  Index out = storage.offset;
  for (int d = 0; d < at.size(); ++d) out += at[d] * storage.strides[d];
  return out;
}

// Walks every element of every rank and compares all that a structured distribution says with all else that it says.
void expect_consistent(const Distribution& d, const std::string& label) {
  std::map<std::vector<Index>, std::vector<Rank>> owners;
  for (Index ordinal = 0; ordinal < d.grid().size(); ++ordinal) {
    const Rank rank = d.grid().rank_at(ordinal);
    const Indices local_extents = d.local_extents(rank);
    const Place place = d.grid().place_at(ordinal);
    for (int i = 0; i < d.dims(); ++i)
      ASSERT_EQ(local_extents[i], d.axis(i).local_extent(place.coordinates[i])) << label;

    // Elements are apart and inside the allocation; explicit strides that make them meet were refused.
    const Storage storage = d.storage(rank);
    ASSERT_EQ(storage.extents, local_extents) << label;
    std::vector<Index> positions;
    std::map<Index, Distribution::Cell> by_position;
    for_each_coordinate(local_extents, [&](const Indices& local) {
      const Distribution::Cell cell = d.cell_of(rank, local);
      positions.push_back(position_of(storage, local));
      by_position[positions.back()] = cell;
      if (!cell.owned) return;
      ASSERT_TRUE(inside(cell.at, d.extents())) << label;
      ASSERT_EQ(d.local_of(rank, cell.at), local) << label;
      owners[as_vector(cell.at)].push_back(rank);
    });
    std::sort(positions.begin(), positions.end());
    ASSERT_TRUE(std::adjacent_find(positions.begin(), positions.end()) == positions.end()) << label;
    ASSERT_EQ(storage.elements, positions.empty() ? 0 : positions.back() + 1) << label;
    if (!positions.empty()) {
      ASSERT_EQ(positions.front(), d.memory().offset) << label;
    }

    // The slices are the local array again: every element once, owned where the slice says so.
    std::size_t seen = 0;
    const std::vector<Slice> slices = d.slices(rank);
    ASSERT_EQ(Index(slices.size()), d.slice_count(rank)) << label;
    for (const Slice& slice : slices) {
      ASSERT_EQ(slice.extents, slice.stored.extents()) << label;
      for_each_coordinate(slice.extents, [&](const Indices& at) {
        Index position = slice.offset;
        Indices cell;
        for (int i = 0; i < at.size(); ++i) {
          position += at[i] * slice.strides[i];
          cell.push_back(slice.stored.lower[i] + at[i]);
        }
        ASSERT_TRUE(by_position.contains(position)) << label;
        ASSERT_EQ(by_position[position].at, cell) << label;
        ASSERT_EQ(by_position[position].owned, slice.owned.contains(cell)) << label;
        ++seen;
      });
    }
    ASSERT_EQ(seen, positions.size()) << label;
  }
  Index cells = 0;
  for_each_coordinate(d.extents(), [&](const Indices& cell) {
    ++cells;
    const std::vector<Rank>& ranks = owners[as_vector(cell)];
    ASSERT_EQ(d.owners(cell), ranks) << label;
    ASSERT_FALSE(ranks.empty()) << label;
    ASSERT_TRUE(std::find(ranks.begin(), ranks.end(), d.owner(cell)) != ranks.end()) << label;
    for (const Rank rank : d.grid().ranks())
      ASSERT_EQ(d.local_of(rank, cell).has_value(), std::find(ranks.begin(), ranks.end(), rank) != ranks.end())
          << label;
  });
  ASSERT_EQ(Index(owners.size()), cells) << label;
  const Rank outside = d.grid().world_size_min();
  ASSERT_EQ(d.local_extents(outside), Indices::filled(d.dims(), 0)) << label;
  ASSERT_EQ(d.slice_count(outside), 0) << label;
  ASSERT_EQ(d.storage(outside).elements, 0) << label;
}

TEST(Distribution, AgreesWithItselfCellByCell) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ArraySpec spec = test::random_spec(seed);
    expect_consistent(spec.distribution, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(Distribution, HasUpToEightDimensions) {
  expect_consistent(
      Distribution({3, 2, 3, 2, 1, 2, 3, 2}, Grid({2, 1, 2, 1, 1, 2, 1, 1}, {.order = {5, 0, 2, 1, 3, 4, 6, 7}}),
                   {block(), whole(), cyclic(1), whole(), block(), block(Remainder::high), whole(),
                    whole().with_overlap(1, 0, EdgePolicy::zero)},
                   {.order = {7, 6, 5, 4, 3, 2, 1, 0}, .align = 4}),
      "eight dimensions");
  EXPECT_THROW((Indices{1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST(Distribution, OwnerIsTheFirstOfReplicasAndTheUpperOfInterfaces) {
  const Distribution replicas({6}, Grid({3}, {.replicas = 2}), {block()});
  EXPECT_EQ(replicas.owner({5}), 2);
  EXPECT_EQ(replicas.owners({5}), (std::vector<Rank>{2, 5}));
  EXPECT_TRUE(replicas.replicated());
  const Distribution wholes({6, 4}, grid(2, 3), {block(), whole()});
  EXPECT_EQ(wholes.owner({3, 0}), 3);
  EXPECT_EQ(wholes.owners({3, 0}), (std::vector<Rank>{3, 4, 5}));
  EXPECT_TRUE(wholes.replicated());
  const Distribution interfaces({5}, grid(2), {block().with_interfaces()});
  EXPECT_EQ(interfaces.owner({2}), 1);
  EXPECT_EQ(interfaces.owners({2}), (std::vector<Rank>{0, 1}));
  EXPECT_FALSE(interfaces.replicated());
}

TEST(Distribution, HasTheSlicesOfTheFirstDriExample) {
  const Distribution d({20, 64}, grid(5, 1), {cyclic(2).with_overlap(1, 1, EdgePolicy::toroidal), whole()});
  Index rows_delivered = 0;
  for (Rank rank = 0; rank < 5; ++rank) {
    const std::vector<Slice> slices = d.slices(rank);
    ASSERT_EQ(slices.size(), 2u);
    for (const Slice& slice : slices) {
      EXPECT_EQ(slice.extents, (Indices{4, 64}));
      EXPECT_EQ(slice.strides, (Indices{64, 1}));
      rows_delivered += slice.extents[0];
    }
    EXPECT_EQ(slices[0].offset, 0);
    EXPECT_EQ(slices[1].offset, 4 * 64);
    EXPECT_EQ(d.storage(rank).elements, 2 * 4 * 64);
  }
  EXPECT_EQ(rows_delivered, 40);
  EXPECT_EQ(d.slice(0, 0).stored, (Box{{-1, 0}, {3, 64}}));
  EXPECT_EQ(d.slice(0, 0).owned, (Box{{0, 0}, {2, 64}}));
  EXPECT_EQ(d.slice(4, 1).stored, (Box{{17, 0}, {21, 64}}));
  EXPECT_THROW(d.slice(0, 2), Error);
  EXPECT_THROW(d.slice(5, 0), Error);
}

// The storage of one rank that holds the whole array.
Storage storage_of(const Indices& extents, MemoryLayout memory) {
  return Distribution(extents, Grid(Indices::filled(extents.size(), 1)), std::vector<Partition>(extents.size()),
                      std::move(memory))
      .storage(0);
}

TEST(Distribution, LaysMemoryOut) {
  EXPECT_EQ(storage_of({4, 64}, {}), (Storage{{4, 64}, {64, 1}, 0, 256}));
  EXPECT_EQ(storage_of({4, 64}, {.order = {1, 0}}), (Storage{{4, 64}, {1, 4}, 0, 256}));
  EXPECT_EQ(storage_of({2, 3, 4}, {.order = {1, 2, 0}}), (Storage{{2, 3, 4}, {1, 8, 2}, 0, 24}));
  // DRI's strides {1, 2}: every second element of a row, rows 128 apart.
  EXPECT_EQ(storage_of({4, 64}, {.spacing = {1, 2}}), (Storage{{4, 64}, {128, 2}, 0, 3 * 128 + 63 * 2 + 1}));
  EXPECT_EQ(storage_of({4, 64}, {.spacing = {3, 1}}), (Storage{{4, 64}, {192, 1}, 0, 3 * 192 + 64}));
  EXPECT_EQ(storage_of({3, 5, 7}, {.align = 4}), (Storage{{3, 5, 7}, {40, 8, 1}, 0, 2 * 40 + 4 * 8 + 7}));
  // The space below is rounded up first, then multiplied.
  EXPECT_EQ(storage_of({3, 5, 7}, {.spacing = {1, 3, 1}, .align = 4}),
            (Storage{{3, 5, 7}, {120, 24, 1}, 0, 2 * 120 + 4 * 24 + 7}));
  EXPECT_EQ(storage_of({4, 64}, {.offset = 512}), (Storage{{4, 64}, {64, 1}, 512, 768}));
  EXPECT_EQ(storage_of({4, 6}, {.strides = {2, 10}, .offset = 1}), (Storage{{4, 6}, {2, 10}, 1, 1 + 6 + 50 + 1}));
  // Interleaved rows: dimension 0 steps inside a row of dimension 1.
  EXPECT_EQ(storage_of({2, 3}, {.strides = {1, 2}}), (Storage{{2, 3}, {1, 2}, 0, 6}));
  EXPECT_EQ(storage_of({4, 0}, {.offset = 9}).elements, 0);
}

TEST(Distribution, RefusesStridesThatMakeCellsOverlap) {
  auto message = [](const Indices& extents, const Indices& strides) -> std::string {
    try {
      storage_of(extents, {.strides = strides});
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      return error.message();
    }
  };
  EXPECT_EQ(message({4, 6}, {5, 1}),
            "stride 5 of dimension 0 makes cells overlap: the faster dimensions reach over 6 elements");
  EXPECT_EQ(message({4, 6}, {2, 7}),
            "accepted");  // 7 steps over the 0, 2, 4, 6 of dimension 0
  EXPECT_EQ(message({4, 6}, {2, 6}),
            "stride 6 of dimension 1 makes cells overlap: the faster dimensions reach over 7 elements");
  EXPECT_EQ(message({2, 2}, {3, 3}),
            "stride 3 of dimension 1 makes cells overlap: the faster dimensions reach over 4 elements");
  EXPECT_EQ(message({1, 6}, {1, 1}), "accepted");  // a dimension of one cell takes no step
}

// Before anybody asks where a rank's cells lie, and for the largest part, whoever holds it.
TEST(Distribution, RefusesStridesThatMakeCellsOfAnyPartOverlap) {
  const auto of_rows = [](Index stride) {
    return Distribution({8, 9}, grid(1, 2), {whole(), irregular({0, 3, 9})}, {.strides = {stride, 1}});
  };
  EXPECT_NO_THROW(of_rows(6));
  EXPECT_THROW(of_rows(5), Error);
  EXPECT_THROW(Distribution({8, 9}, grid(1, 3), {whole(), block().with_overlap(1, 1)}, {.strides = {4, 1}}), Error);
  EXPECT_THROW(Distribution::indexed({4, 6}, 1, grid(2), {{{0, 1, 2}, {3}}, {{3}, {}}}, {.strides = {5, 1}}), Error);
  EXPECT_NO_THROW(Distribution::indexed({4, 6}, 1, grid(2), {{{0, 1, 2}, {3}}, {{3}, {}}}, {.strides = {6, 1}}));
}

// Also of parts with more slices over the edge than are ever listed, and of a million such parts.
TEST(Distribution, ChecksStridesWithoutListingSlices) {
  const Index slices = Index(1) << 22;
  const auto of_columns = [&](Index stride) {
    return Distribution({slices, 2}, grid(1, 1), {cyclic(1).with_overlap(0, slices, EdgePolicy::zero), whole()},
                        {.strides = {1, stride}});
  };
  EXPECT_NO_THROW(of_columns(slices * (slices + 1)));
  EXPECT_THROW(of_columns(slices * (slices + 1) - 1), Error);
  const Index cells = 1'000'000'000;
  EXPECT_NO_THROW(Distribution({cells}, grid(1'000'000), {cyclic(1).with_overlap(cells, 0)}, {.strides = {1}}));
}

TEST(Distribution, PartsThatOwnNothingStoreNothing) {
  const Partition wide = block().with_overlap(2, 2, EdgePolicy::zero);
  const Distribution d({2, 6}, grid(3, 2), {wide, wide});
  EXPECT_EQ(d.local_extents(0), (Indices{5, 7}));
  EXPECT_EQ(d.local_extents(4), (Indices{0, 7}));  // rank 4 holds part (2, 0), which has no rows
  EXPECT_EQ(d.local_extents(6), (Indices{0, 0}));  // not in the grid
  EXPECT_EQ(d.storage(4).elements, 0);
  EXPECT_EQ(d.slice_count(4), 0);
}

TEST(Distribution, IsEqualByContent) {
  const Distribution d({8, 9}, grid(2, 2), {block(), cyclic(2)});
  EXPECT_TRUE(d == Distribution({8, 9}, Grid({2, 2}, {.ranks = {0, 1, 2, 3}}), {block(), cyclic(2)},
                                {.order = {0, 1}, .spacing = {1, 1}}));
  EXPECT_FALSE(d == Distribution({8, 9}, grid(2, 2), {block(), cyclic(2)}, {.order = {1, 0}}));
  EXPECT_FALSE(d == Distribution({8, 9}, grid(2, 2), {block(), cyclic(3)}));
  EXPECT_FALSE(d == Distribution({8, 8}, grid(2, 2), {block(), cyclic(2)}));
  EXPECT_FALSE(d == d.on_ranks({3, 2, 1, 0}));
  EXPECT_TRUE(d == d.on_ranks({3, 2, 1, 0}).on_ranks({0, 1, 2, 3}));
}

struct BadDistribution {
  Indices extents;
  Grid grid;
  std::vector<Partition> partitions;
  MemoryLayout memory;
  ErrorCode code;
  const char* message;
};

TEST(Distribution, RefusesWhatDoesNotFit) {
  const BadDistribution cases[] = {
      {{}, Grid(), {}, {}, ErrorCode::invalid_use, "an array needs 1 to 8 dimensions, has 0"},
      {{8}, grid(2, 2), {block()}, {}, ErrorCode::invalid_use, "the array has 1 dimension, its grid 2"},
      {{8, 8}, grid(2, 2), {block()}, {}, ErrorCode::invalid_use, "the array has 2 dimensions, 1 are partitioned"},
      {{8, -8}, grid(2, 2), {block(), block()}, {}, ErrorCode::invalid_use, "extent -8 of dimension 1 is negative"},
      {{Index(1) << 32, Index(1) << 31},
       grid(2, 2),
       {block(), block()},
       {},
       ErrorCode::overflow,
       "the product of extents [4294967296, 2147483648] does not fit in 63 bits"},
      {{8, 8},
       grid(2, 2),
       {block(), cyclic(0)},
       {},
       ErrorCode::invalid_use,
       "cyclic block of 0 cells; at least 1 is needed"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.order = {0, 0}},
       ErrorCode::invalid_use,
       "memory order [0, 0] is not a permutation of 2 dimensions"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.order = {0}},
       ErrorCode::invalid_use,
       "memory order has 1 entry for 2 dimensions"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.strides = {0, 1}},
       ErrorCode::invalid_use,
       "memory stride 0 is below 1"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.spacing = {1, 0}},
       ErrorCode::invalid_use,
       "memory spacing 0 is below 1"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.strides = {8, 1}, .align = 2},
       ErrorCode::invalid_use,
       "explicit strides [8, 1] leave no room for order, spacing or align"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.align = 0},
       ErrorCode::invalid_use,
       "memory alignment of 0 elements is below 1"},
      {{8, 8},
       grid(2, 2),
       {block(), block()},
       {.offset = -1},
       ErrorCode::invalid_use,
       "memory offset of -1 elements is negative"},
  };
  for (const BadDistribution& bad : cases) {
    try {
      Distribution(bad.extents, bad.grid, bad.partitions, bad.memory);
      ADD_FAILURE() << "accepted, but should say: " << bad.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), bad.message);
      EXPECT_EQ(error.code(), bad.code) << bad.message;
    }
  }
  const Distribution d({8, 8}, grid(2, 2), {block(), block()});
  EXPECT_THROW(d.owner({8, 0}), Error);
  EXPECT_THROW(d.owner({0}), Error);
  EXPECT_THROW(d.owners({0, -1}), Error);
  EXPECT_THROW(d.local_of(0, {0, 8}), Error);
  EXPECT_THROW(d.cell_of(0, {4, 0}), Error);
  EXPECT_THROW(d.cell_of(9, {0, 0}), Error);
}

TEST(Distribution, RefusesStorageThatOverflows) {
  const Indices huge = {Index(1) << 31, Index(1) << 31};
  auto expect_overflow = [&](MemoryLayout memory) {
    try {
      Distribution(huge, grid(1, 1), {whole(), whole()}, memory).storage(0);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::overflow);
    }
  };
  expect_overflow({.spacing = {2, 2}});
  expect_overflow({.strides = {INT64_MAX, 1}});
  expect_overflow({.align = INT64_MAX});
  expect_overflow({.offset = INT64_MAX});
  const Distribution fits(huge, grid(1, 1), {whole(), whole()});
  EXPECT_EQ(fits.storage(0).elements, Index(1) << 62);
}

// A mesh of 2 x 3 points with 4 levels: the points are indexed, the levels whole.
Distribution mesh() {
  return Distribution::indexed({2, 3, 4}, 2, Grid({3}, {.ranks = {4, 0, 9}}),
                               {{{5, 0}, {3}}, {{}, {}}, {{3, 1}, {0, 5}}}, {.order = {1, 0}});
}

TEST(IndexedDistribution, KnowsOwnersAndGhosts) {
  const Distribution d = mesh();
  EXPECT_TRUE(d.is_indexed());
  EXPECT_FALSE(d.replicated());
  EXPECT_EQ(d.id_count(), 6);
  EXPECT_EQ(d.indexed_dims(), 2);
  EXPECT_EQ(d.local_extents(4), (Indices{3, 4}));
  EXPECT_EQ(d.local_extents(0), (Indices{0, 4}));
  EXPECT_EQ(d.local_extents(9), (Indices{4, 4}));
  EXPECT_EQ(d.local_extents(1), (Indices{0, 0}));
  EXPECT_EQ(d.storage(9), (Storage{{4, 4}, {1, 4}, 0, 16}));
  EXPECT_EQ(d.storage(0).elements, 0);
  const Rank owners[] = {4, 9, -1, 9, -1, 4};  // by id
  for (Index id = 0; id < 6; ++id)
    for (Index level = 0; level < 4; ++level) {
      const Indices cell = {id / 3, id % 3, level};
      EXPECT_EQ(d.owner(cell), owners[id]);
      EXPECT_EQ(d.owners(cell), owners[id] < 0 ? std::vector<Rank>{} : std::vector<Rank>{owners[id]});
      for (const Rank rank : {4, 0, 9, 1}) EXPECT_EQ(d.local_of(rank, cell).has_value(), rank == owners[id]);
    }
  for (const Rank rank : {4, 9})
    for_each_coordinate(d.local_extents(rank), [&](const Indices& local) {
      const Distribution::Cell cell = d.cell_of(rank, local);
      const bool owned = local[0] < 2;
      EXPECT_EQ(cell.owned, owned);
      EXPECT_EQ(cell.at[2], local[1]);
      if (owned) {
        EXPECT_EQ(d.local_of(rank, cell.at), local);
      } else {
        EXPECT_NE(d.owner(cell.at), rank);
      }
    });
  EXPECT_EQ(d.cell_of(9, {3, 2}).at, (Indices{1, 2, 2}));  // ghost 5
  EXPECT_THROW(d.cell_of(0, {0, 0}), Error);
}

TEST(Distribution, lists_of_few_ids_take_no_more_of_an_extent_that_has_many) {
  const Index n = extent_max;
  const Distribution d = Distribution::indexed({n}, 1, grid(3), {{{n - 1, 0}, {5, n - 7}}, {{5, n - 7}, {0}}, {}});
  EXPECT_EQ(d.id_count(), n);
  const auto place = [&](Index id) { return std::pair(d.place_of_id(id).ordinal, d.place_of_id(id).local); };
  EXPECT_EQ(place(n - 1), std::pair(Index(0), Index(0)));
  EXPECT_EQ(place(0), std::pair(Index(0), Index(1)));
  EXPECT_EQ(place(n - 7), std::pair(Index(1), Index(1)));
  EXPECT_EQ(place(6).first, -1);
  EXPECT_EQ(d.ghosts_of_id(0).size(), 1u);
  EXPECT_EQ(d.ghosts_of_id(0)[0].ordinal, 1);
  EXPECT_EQ(d.ghosts_of_id(n - 1).size(), 0u);
  EXPECT_EQ(d.ghosts_of_id(7).size(), 0u);
  EXPECT_THROW(Distribution::indexed({n}, 1, grid(2), {{{1, 2}, {}}, {{2}, {}}}), Error);
  EXPECT_THROW(Distribution::indexed({n}, 1, grid(2), {{{1}, {3}}, {{2}, {}}}), Error);
  EXPECT_EQ(Distribution::indexed({n}, 1, grid(1), {{}}).place_of_id(3).ordinal, -1);
}

TEST(IndexedDistribution, IsEqualByContent) {
  EXPECT_TRUE(mesh() == mesh());
  EXPECT_FALSE(mesh() == mesh().on_ranks({0, 1, 2}));
  auto line = [](std::vector<IndexedPart> parts) { return Distribution::indexed({4}, 1, grid(2), std::move(parts)); };
  const Distribution halves = line({{{0, 1}, {}}, {{2, 3}, {}}});
  EXPECT_FALSE(halves == line({{{1, 0}, {}}, {{2, 3}, {}}}));
  EXPECT_FALSE(halves == line({{{0, 1}, {2}}, {{2, 3}, {}}}));
  EXPECT_FALSE(halves == distribution({4}, grid(2), {block()}));
}

TEST(IndexedDistribution, RefusesListsThatMakeNoSense) {
  auto message = [](const Indices& extents, int dims, const Grid& ranks,
                    std::vector<IndexedPart> parts) -> std::string {
    try {
      Distribution::indexed(extents, dims, ranks, std::move(parts));
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      return error.message();
    }
  };
  EXPECT_EQ(message({4}, 1, grid(2), {{{0}, {}}}), "1 index list for 2 parts: give one for each part");
  EXPECT_EQ(message({4}, 2, grid(1), {{{0}, {}}}), "2 indexed dimensions, but an array of 1 dimension has 1 to 1");
  EXPECT_EQ(message({4}, 0, grid(1), {{{0}, {}}}), "0 indexed dimensions, but an array of 1 dimension has 1 to 1");
  EXPECT_EQ(message({4}, 1, grid(1, 1), {{{0}, {}}}),
            "an indexed distribution needs a grid of 1 dimension without replicas, has 2 and 1 replica");
  EXPECT_EQ(message({4}, 1, Grid({1}, {.replicas = 2}), {{{0}, {}}, {{1}, {}}}),
            "an indexed distribution needs a grid of 1 dimension without replicas, has 1 and 2 replicas");
  EXPECT_EQ(message({4}, 1, grid(1), {{{4}, {}}}), "part 0 owns id 4, ids go from 0 to 3");
  EXPECT_EQ(message({4}, 1, grid(1), {{{-1}, {}}}), "part 0 owns id -1, ids go from 0 to 3");
  EXPECT_EQ(message({4}, 1, grid(2), {{{1}, {}}, {{0, 1}, {}}}), "id 1 is owned by part 0 and by part 1");
  EXPECT_EQ(message({4}, 1, grid(2), {{{1}, {9}}, {{0}, {}}}), "part 0 has ghost id 9, ids go from 0 to 3");
  EXPECT_EQ(message({4}, 1, grid(2), {{{1}, {2}}, {{0}, {}}}), "part 0 has ghost id 2, which no part owns");
}

}  // namespace
}  // namespace tranship
