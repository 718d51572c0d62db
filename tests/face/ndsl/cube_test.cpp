// NDSL's halo updates on cubes of 6 and 24 ranks, two ways: by exchanges of arrays on a tiling, and by messages that
// are packed, sent and unpacked as NDSL does. Both leave in every byte of every rank's memory what NDSL left there;
// points that ranks share hold different values on them before and after.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/interface_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/face/ndsl/halo_data_transformer.hpp>
#include <tranship/layout/tile_ranks.hpp>

#include "support/ndsl_cube.hpp"
#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::ndsl {
namespace {

using nlohmann::json;
using test::NdslArrays;
using test::NdslQuantity;
using test::On;
using test::require;

/// The quantities of one updater: numbers of scalars, or of x components, and of y components.
struct Updater {
  std::vector<int> x, y;
};

struct CubeCase {
  std::string id, op;
  bool is_defect = false;
  Index layout = 1, n_points = 0;
  std::vector<Updater> updaters;
  std::vector<std::vector<NdslQuantity>> steps;  ///< the quantities of each
  /// What NDSL sent, by updater, source and target.
  std::map<std::tuple<int, Rank, Rank>, std::string> messages;
};

CubeCase cube_case(const json& c, const NdslArrays& arrays) {
  CubeCase out{.id = c.at("id"),
               .op = c.at("op"),
               .is_defect = c.at("note").get<std::string>().find("NDSL defect") != std::string::npos,
               .layout = c.at("layout")[0],
               .n_points = c.at("n_points")};
  const int count = int(c.at("quantities").size()), n_x = c.at("n_x"), pairs = count - n_x;
  for (int step = 1; step <= c.at("steps").get<int>(); ++step) {
    auto& quantities = out.steps.emplace_back();
    for (int q = 0; q < count; ++q) quantities.push_back(test::ndsl_quantity(c, q, arrays, step));
  }
  Updater scalars, vectors;
  for (int q = 0; q < n_x - pairs; ++q) scalars.x.push_back(q);
  for (int q = n_x; q < count; ++q) {
    vectors.x.push_back(q - pairs);
    vectors.y.push_back(q);
  }
  for (const Updater& one : {scalars, vectors})
    if (!one.x.empty()) out.updaters.push_back(one);
  if (c.contains("messages") && !c.at("messages").is_null()) {
    const std::string bytes = arrays.elements(out.id + "/messages");
    for (const json& m : c.at("messages"))
      out.messages[{m[2].get<int>() - 1, m[0], m[1]}] = bytes.substr(m[3].get<std::size_t>(), m[4].get<std::size_t>());
  }
  return out;
}

std::vector<CubeCase> cases_of(Rank ranks) {
  std::vector<CubeCase> out;
  const json index = json::parse(test::read_ndsl("cube_index.json"));
  for (const auto& [family, listed] : index.items()) {
    if (listed.at("cases").empty() || listed.at("cases")[0].at("ranks") != ranks) continue;
    const NdslArrays arrays(listed.at("npz").get<std::string>());
    for (const json& c : listed.at("cases")) out.push_back(cube_case(c, arrays));
  }
  return out;
}

/// What one rank holds of the quantities of a case.
class Memories {
 public:
  Memories(const std::vector<NdslQuantity>& quantities, Rank rank) : rank_(rank) {
    for (const NdslQuantity& q : quantities) bytes_.push_back(q.before[std::size_t(rank)]);
  }
  void refill(const std::vector<NdslQuantity>& quantities) {
    for (std::size_t q = 0; q < bytes_.size(); ++q)
      std::memcpy(bytes_[q].data(), quantities[q].before[std::size_t(rank_)].data(), bytes_[q].size());
  }
  void compare(const CubeCase& c, std::size_t step, const char* way) const {
    for (std::size_t q = 0; q < bytes_.size(); ++q)
      require(bytes_[q] == c.steps[step][q].after[std::size_t(rank_)], "{} {}: quantity {} of rank {} differs, step {}",
              c.id, way, q, rank_, step);
  }
  StridedView view(const NdslQuantity& q, int number) {
    return {.data = bytes_[std::size_t(number)].data(),
            .type = q.type,
            .extents = q.shapes[std::size_t(rank_)],
            .strides = row_major_strides(q.shapes[std::size_t(rank_)])};
  }

 private:
  Rank rank_;
  std::vector<std::string> bytes_;
};

TiledArray tiled_array(World& world, const NdslQuantity& q, StridedView view, Index width) {
  TiledArray out{.tiles = {}, .tile_dims = q.field.tile_dims};
  for (const ArraySpec& spec : q.field.tiles) {
    const Distribution& distribution = spec.distribution;
    if (!distribution.grid().place_of(world.rank())) {
      out.tiles.push_back(allocate_array(world, spec));
      continue;
    }
    StridedView part = view;
    part.extents = distribution.local_extents(world.rank());
    part.data = static_cast<std::byte*>(view.data) +
                q.index_of(world.rank(), Indices::filled(view.dims(), 0), width) * q.element_bytes();
    out.tiles.push_back(wrap_array(world, spec, part));
  }
  return out;
}

void update_by_exchanges(World& world, const CubeCase& c) {
  const std::vector<NdslQuantity>& quantities = c.steps[0];
  Memories memories(quantities, world.rank());
  const Tiling tiling = test::ndsl_tiling(quantities[0]);
  std::vector<std::unique_ptr<ArrayExchange>> updaters;
  for (const Updater& updater : c.updaters) {
    std::vector<TiledArray> fields;
    std::vector<std::vector<VectorField>> vectors;
    for (const std::vector<int>* numbers : {&updater.x, &updater.y})
      for (const int q : *numbers)
        fields.push_back(
            tiled_array(world, quantities[std::size_t(q)], memories.view(quantities[std::size_t(q)], q), c.n_points));
    const int pairs = int(updater.y.size());
    for (int p = 0; p < pairs; ++p) vectors.push_back({{.field = p, .along = 1}, {.field = pairs + p, .along = 0}});
    if (c.op == "sync") {
      updaters.push_back(std::make_unique<InterfaceExchange>(tiling, fields, vectors));
    } else {
      TiledHaloOptions halo;
      halo.vectors = vectors;
      updaters.push_back(std::make_unique<HaloExchange>(tiling, fields, halo));
    }
  }
  for (std::size_t step = 0; step < c.steps.size(); ++step) {
    if (step > 0) memories.refill(c.steps[step]);
    for (auto& updater : updaters) updater->start();
    for (auto updater = updaters.rbegin(); updater != updaters.rend(); ++updater) (*updater)->finish();
    memories.compare(c, step, "by exchanges");
  }
}

QuantityHaloSpec spec_of(const NdslQuantity& q, Rank rank, Index n_points) {
  QuantityHaloSpec out{.n_points = n_points,
                       .strides = row_major_strides(q.shapes[std::size_t(rank)]),
                       .itemsize = q.element_bytes(),
                       .shape = q.shapes[std::size_t(rank)],
                       .origin = q.origins[std::size_t(rank)],
                       .extent = q.extents[std::size_t(rank)],
                       .dims = q.dims,
                       .dtype = q.type};
  for (Index& stride : out.strides) stride *= out.itemsize;
  return out;
}

/// What one rank sends to another one: the boundaries of the former that touch the latter.
struct Peer {
  Rank rank = -1;
  std::vector<std::pair<BoundaryDirection, int>> boundaries;
};

std::vector<Peer> peers_of(const TileRanks& ranks, Rank rank) {
  std::vector<Peer> out;
  for (const auto& [j, i] : {std::pair{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {1, 1}, {-1, -1}, {-1, 1}}) {
    const auto neighbor = ranks.neighbor(rank, {j, i});
    if (!neighbor) continue;
    auto peer = std::find_if(out.begin(), out.end(), [&](const Peer& p) { return p.rank == neighbor->rank; });
    if (peer == out.end()) peer = out.insert(peer, {neighbor->rank, {}});
    peer->boundaries.push_back({{.j = j, .i = i}, *clockwise_rotations(neighbor->map)});
  }
  return out;
}

void update_by_messages(World& world, const CubeCase& c) {
  const std::vector<NdslQuantity>& quantities = c.steps[0];
  Memories memories(quantities, world.rank());
  const TileRanks ranks(test::ndsl_tiling(quantities[0]), {c.layout, c.layout});
  const std::vector<Peer> peers = peers_of(ranks, world.rank());
  struct Transfer {
    HaloDataTransformer transformer;
    std::vector<StridedView> x, y;
  };
  std::vector<std::vector<Transfer>> updaters;
  std::size_t largest = 0;
  for (const Updater& updater : c.updaters) {
    auto& transfers = updaters.emplace_back();
    for (const Peer& peer : peers) {
      std::vector<HaloExchangeSpec> x, y;
      std::vector<StridedView> views_x, views_y;
      for (const auto& [direction, rotation] : peer.boundaries)
        for (const bool is_y : {false, true})
          for (const int q : is_y ? updater.y : updater.x) {
            const NdslQuantity& quantity = quantities[std::size_t(q)];
            (is_y ? y : x).push_back(exchange_at(spec_of(quantity, world.rank(), c.n_points), direction, rotation));
            (is_y ? views_y : views_x).push_back(memories.view(quantity, q));
          }
      transfers.push_back({HaloDataTransformer::get(x, y), views_x, views_y});
      largest = std::max(largest, transfers.back().transformer.get_pack_buffer().size());
    }
  }
  // Ranks pad their messages alike where their memories differ in shape only.
  auto inbox = world.allocate<std::uint8_t>(Index(largest) * 8 * Index(updaters.size()));
  const auto place_of = [&](Rank receiver, Rank sender, std::size_t updater) {
    const std::vector<Peer> senders = peers_of(ranks, receiver);
    for (std::size_t p = 0; p < senders.size(); ++p)
      if (senders[p].rank == sender) return Index((updater * 8 + p) * largest);
    return Index(-1);
  };
  for (std::size_t step = 0; step < c.steps.size(); ++step) {
    if (step > 0) memories.refill(c.steps[step]);
    for (std::size_t u = 0; u < updaters.size(); ++u)
      for (std::size_t p = 0; p < peers.size(); ++p) {
        Transfer& transfer = updaters[u][p];
        transfer.transformer.async_pack(transfer.x, transfer.y);
        const std::span<std::byte> packed = transfer.transformer.get_pack_buffer();
        const std::span<const std::uint8_t> sent(reinterpret_cast<const std::uint8_t*>(packed.data()), packed.size());
        const auto recorded = c.messages.find({int(u), world.rank(), peers[p].rank});
        if (step == 0 && !c.messages.empty())
          require(recorded != c.messages.end() &&
                      std::equal(sent.begin(), sent.end(), recorded->second.begin(), recorded->second.end(),
                                 [](std::uint8_t a, char b) { return char(a) == b; }),
                  "{}: the message of updater {} from {} to {} differs from NDSL's", c.id, u, world.rank(),
                  peers[p].rank);
        world.context().put(inbox.slice(place_of(peers[p].rank, world.rank(), u), Index(sent.size())), sent,
                            peers[p].rank);
      }
    world.barrier();
    for (std::size_t u = 0; u < updaters.size(); ++u)
      for (std::size_t p = 0; p < peers.size(); ++p) {
        Transfer& transfer = updaters[u][p];
        const std::span<std::byte> received = transfer.transformer.get_unpack_buffer();
        std::memcpy(received.data(), inbox.local() + place_of(world.rank(), peers[p].rank, u), received.size());
        transfer.transformer.async_unpack(transfer.x, transfer.y);
        transfer.transformer.synchronize();
      }
    memories.compare(c, step, "by messages");
    world.barrier();
  }
}

class NdslCube : public test::OnRanks {};
INSTANTIATE_TEST_SUITE_P(, NdslCube,
                         testing::Combine(testing::Values(On::threads, On::processes, On::sim), testing::Values(6, 24)),
                         test::OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnApart, NdslCube, testing::Combine(testing::Values(On::apart, On::dealt), testing::Values(6)),
                         test::OnRanks::name);

TEST_P(NdslCube, UpdatesAreNdslsToTheByte) {
  const std::vector<CubeCase> cases = cases_of(ranks());
  if (cases.empty()) GTEST_SKIP() << "no cases of " << ranks() << " ranks without TRANSHIP_CONFORMANCE_DIR";
  test::run_once(on(), {.ranks = ranks()}, 7, [&](World& world) {
    test::Thinned thinned(ranks() > 6 ? 5 : 1);
    for (const CubeCase& c : cases) {
      if (!thinned.takes_next()) continue;
      if (!c.is_defect) update_by_exchanges(world, c);
      if (c.op != "sync") update_by_messages(world, c);
    }
  });
}

/// A scalar and a vector on cell centres of a cube of 6 by 6 cells a tile, as one rank of a layout holds it: what the
/// whole tile holds decides, however it is cut.
CubeCase case_of_layout(Index layout) {
  constexpr Index n = 6, width = 2, halo = 3;
  const Index own = n / layout, stored = own + 2 * halo;
  const Tiling tiling = cubed_sphere(n);
  const auto value = [](int q, int tile, const Indices& cell) {
    return 1000.0 * (q + 1) + 100 * tile + double(n * cell[0] + cell[1]);
  };
  CubeCase out{.id = "layout " + std::to_string(layout), .op = "oneshot", .layout = layout, .n_points = width};
  out.updaters = {{{0}, {}}, {{1}, {2}}};
  auto& quantities = out.steps.emplace_back();
  for (int q = 0; q < 3; ++q) {
    NdslQuantity quantity{.field = {.tiles = {}, .tile_dims = {0, 1}}, .dims = {"j", "i"}};
    const Partition cut = block().with_overlap(width, width, EdgePolicy::open);
    for (int t = 0; t < 6; ++t)
      quantity.field.tiles.push_back(
          {ElementType::f64,
           Distribution({n, n}, Grid({layout, layout}, {.first = Rank(t * layout * layout)}), {cut, cut})});
    for (Rank r = 0; r < Rank(6 * layout * layout); ++r) {
      const int tile = int(r / (layout * layout));
      const Index first_y = r % (layout * layout) / layout * own, first_x = r % layout * own;
      quantity.shapes.push_back({stored, stored});
      quantity.origins.push_back({halo, halo});
      quantity.extents.push_back({own, own});
      std::vector<double> before, after;
      for_each_coordinate({stored, stored}, [&](const Indices& at) {
        const Index y = at[0] - halo, x = at[1] - halo;
        const auto reach = [&](Index c) { return c < 0 ? -c : c >= own ? c - own + 1 : 0; };
        const auto found = tiling.locate(tile, {first_y + y, first_x + x});
        before.push_back(reach(y) + reach(x) == 0 ? value(q, tile, found->cell) : -5);
        after.push_back(before.back());
        if (reach(y) > width || reach(x) > width || !found) return;
        // Components are x, y; dimensions y, x.
        const VectorComponent from = q == 0 ? VectorComponent{} : vector_component(found->map, 2 - q);
        after.back() = q == 0 ? value(0, found->tile, found->cell)
                              : from.sign * value(2 - from.component, found->tile, found->cell);
      });
      const auto bytes = [](const std::vector<double>& values) {
        return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
      };
      quantity.before.push_back(bytes(before));
      quantity.after.push_back(bytes(after));
    }
    quantities.push_back(std::move(quantity));
  }
  return out;
}

TEST(NdslLayouts, AreTransparent) {
  for (const Index layout : {1, 2, 3}) {
    const CubeCase c = case_of_layout(layout);
    test::run_once(On::sim, {.ranks = int(6 * layout * layout)}, 11, [&](World& world) {
      update_by_exchanges(world, c);
      update_by_messages(world, c);
    });
  }
}

}  // namespace
}  // namespace tranship::ndsl
