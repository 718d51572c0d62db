// NDSL's own answers: rank neighbours on cubes and periodic tiles, slices of ranks, halo slices. A subset lies in
// tests/fixtures/ndsl; all of it is read when TRANSHIP_CONFORMANCE_DIR names the folder that holds it.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/layout/halo_interval.hpp>
#include <tranship/layout/tile_ranks.hpp>
#include <tranship/layout/uneven_blocks.hpp>

#include "support/ndsl_cases.hpp"

namespace tranship {
namespace {

using nlohmann::json;

json ndsl_cases(const std::string& name) {
  return json::parse(test::read_ndsl(name));
}

const std::map<std::string, Indices> directions{
    {"NORTH", {1, 0}},      {"SOUTH", {-1, 0}},    {"WEST", {0, -1}},       {"EAST", {0, 1}},
    {"NORTHWEST", {1, -1}}, {"NORTHEAST", {1, 1}}, {"SOUTHWEST", {-1, -1}}, {"SOUTHEAST", {-1, 1}},
};

/// 0 for the dimensions along y, 1 for those along x, -1 for all others.
int tile_dim(const std::string& dim) {
  return dim[0] == 'j' ? 0 : dim[0] == 'i' ? 1 : -1;
}

Points points_of(const std::string& dim) {
  return dim.find("interface") == std::string::npos ? Points::cells : Points::interfaces;
}

json to_json(Interval interval) {
  return {interval.lower, interval.upper};
}

void expect_neighbors(const TileRanks& ranks, const json& expected) {
  ASSERT_EQ(static_cast<std::size_t>(ranks.count()), expected.size());
  for (Rank rank = 0; rank < ranks.count(); ++rank) {
    ASSERT_EQ(expected[rank].size(), directions.size());
    for (const auto& [name, direction] : directions) {
      const auto neighbor = ranks.neighbor(rank, direction);
      const json ours = neighbor ? json{neighbor->rank, clockwise_rotations(neighbor->map).value()} : json();
      EXPECT_EQ(ours, expected[rank].at(name)) << name << " of rank " << rank;
    }
  }
}

TEST(NdslGolden, CubeNeighbors) {
  const json cases = ndsl_cases("partitioner.json").at("cube");
  ASSERT_GE(cases.size(), 3u);
  for (const auto& [name, expected] : cases.items()) {
    SCOPED_TRACE(name);
    const Index ranks_per_side = std::stoi(name);
    expect_neighbors(TileRanks(cubed_sphere(12 * ranks_per_side), {ranks_per_side, ranks_per_side}), expected);
  }
}

TEST(NdslGolden, PeriodicTileNeighbors) {
  const json cases = ndsl_cases("partitioner.json").at("tile");
  ASSERT_GE(cases.size(), 7u);
  for (const auto& [name, expected] : cases.items()) {
    SCOPED_TRACE(name);
    const Index ly = std::stoi(name);
    const Index lx = std::stoi(name.substr(name.find('x') + 1));
    expect_neighbors(TileRanks(doubly_periodic(4 * ly, 4 * lx), {ly, lx}), expected);
  }
}

/// The slices of all ranks. Interfaces shared with the next rank belong to both where `overlap` says so, otherwise to
/// the next one.
json rank_slices(const json& c) {
  const Indices layout{c.at("layout")[0], c.at("layout")[1]};
  const auto dims = c.at("dims").get<std::vector<std::string>>();
  const auto extent = c.at("extent").get<std::vector<Index>>();
  const bool overlap = c.at("overlap");
  std::vector<std::vector<Index>> bounds(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (const int along = tile_dim(dims[d]); along >= 0)
      bounds[d] =
          uneven_block_bounds(extent[d] - (points_of(dims[d]) == Points::interfaces), layout[along], c.at("ratio"));
  json out = json::array();
  for_each_coordinate(layout, [&](const Indices& at) {
    json slices = json::array();
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const int along = tile_dim(dims[d]);
      Interval slice{0, extent[d]};
      if (along >= 0) {
        const auto part = static_cast<std::size_t>(at[along]);
        slice = {bounds[d][part], bounds[d][part + 1]};
        const bool last = at[along] == layout[along] - 1;
        if (points_of(dims[d]) == Points::interfaces && (overlap || last)) ++slice.upper;
      }
      slices.push_back(to_json(slice));
    }
    out.push_back(slices);
  });
  return out;
}

TEST(NdslGolden, SlicesOfRanks) {
  const json cases = ndsl_cases("partitioner.json").at("subtile");
  int accepted = 0, refused = 0;
  for (const json& c : cases) {
    SCOPED_TRACE(c.dump());
    if (c.contains("error")) {
      // NDSL's search also ends without cuts that exist; UnevenBlocks has those.
      if (c.at("message").get<std::string>().find("for odd") == std::string::npos) continue;
      ++refused;
      try {
        rank_slices(c);
        ADD_FAILURE() << "not refused";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      }
    } else {
      ++accepted;
      EXPECT_EQ(rank_slices(c), c.at("slices"));
    }
  }
  EXPECT_GE(accepted, 150);
  EXPECT_GE(refused, 36);
}

enum class Way { send, receive };

/// The slices of one boundary, or NDSL's error where one lies outside of the array.
json halo_slices(const json& c, const Indices& direction, Way way) {
  json out = json::array();
  for (std::size_t d = 0; d < c.at("dims").size(); ++d) {
    const std::string dim = c.at("dims")[d];
    const Index origin = c.at("origin")[d], extent = c.at("extent")[d], shape = c.at("shape")[d];
    Interval slice{origin, origin + extent};
    const int along = tile_dim(dim);
    if (along >= 0 && direction[along] != 0) {
      const Side side = direction[along] < 0 ? Side::low : Side::high;
      const Index width = c.at("n_points");
      slice =
          way == Way::send ? send_interval(slice, width, side, points_of(dim)) : receive_interval(slice, width, side);
    }
    if (slice.lower < 0 || slice.upper > shape)
      return {{"error", "IndexError"},
              {"message", std::string("Boundary slice extends past ") + (slice.lower < 0 ? "start" : "end") +
                              " of domain on dimension " + dim + "."}};
    out.push_back(to_json(slice));
  }
  return out;
}

TEST(NdslGolden, HaloSlices) {
  const json cases = ndsl_cases("boundary_slices.json");
  ASSERT_GE(cases.size(), 80u);
  for (const json& c : cases) {
    ASSERT_EQ(c.at("slices").size(), 2 * directions.size());
    for (const auto& [name, direction] : directions) {
      EXPECT_EQ(halo_slices(c, direction, Way::send), c.at("slices").at(name + ".send")) << name << " of " << c.dump();
      EXPECT_EQ(halo_slices(c, direction, Way::receive), c.at("slices").at(name + ".recv"))
          << name << " of " << c.dump();
    }
  }
}

TEST(UnevenBlocks, AreSymmetricCompleteAndAsNearAsTheSearchAllows) {
  EXPECT_EQ(uneven_block_bounds(128, 3, 1.0), (std::vector<Index>{0, 43, 85, 128}));
  for (Index extent = 1; extent <= 40; ++extent)
    for (Index parts = 1; parts <= 9; ++parts)
      for (double ratio : {0.3, 1.0, 3.0}) {
        std::vector<Index> bounds;
        try {
          bounds = uneven_block_bounds(extent, parts, ratio);
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), ErrorCode::invalid_use);
          continue;
        }
        ASSERT_EQ(static_cast<Index>(bounds.size()), parts + 1);
        ASSERT_EQ(bounds.front(), 0);
        ASSERT_EQ(bounds.back(), extent);
        for (Index p = 0; p < parts; ++p) ASSERT_EQ(bounds[p + 1] + bounds[parts - p - 1], extent);
        if (parts <= 2) continue;
        for (Index p = 1; p < parts - 1; ++p) ASSERT_EQ(bounds[p + 1] - bounds[p], bounds[2] - bounds[1]);
        ASSERT_GE(bounds[1], 1);
        ASSERT_GT(bounds[2], bounds[1]);
      }
  // NDSL's search gives these up.
  EXPECT_EQ(uneven_block_bounds(12, 5, 0.1), (std::vector<Index>{0, 3, 5, 7, 9, 12}));
  EXPECT_EQ(uneven_block_bounds(24, 5, 0.1), (std::vector<Index>{0, 3, 9, 15, 21, 24}));
  // An even cut is found wherever there is one.
  for (Index parts = 2; parts <= 9; ++parts) EXPECT_EQ(uneven_block_bounds(6 * parts, parts, 1.0)[1], 6);
}

TEST(UnevenBlocks, MisuseIsRefused) {
  EXPECT_THROW(uneven_block_bounds(13, 4, 1.0), Error);
  EXPECT_THROW(uneven_block_bounds(13, 0, 1.0), Error);
  EXPECT_THROW(uneven_block_bounds(-2, 2, 1.0), Error);
  EXPECT_THROW(uneven_block_bounds(12, 3, 0.0), Error);
  EXPECT_THROW(uneven_block_bounds(12, 3, std::nan("")), Error);
}

}  // namespace
}  // namespace tranship
