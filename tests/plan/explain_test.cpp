// Summaries against a walk over every transfer, stretches by hand, and the texts as golden files.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/plan/explain.hpp>
#include <tranship/plan/relabel.hpp>

#include "support/golden.hpp"
#include "support/random_plans.hpp"

namespace tranship {
namespace {

using namespace test;

/// The same, transfer by transfer.
PlanSummary walked(const TransferPlan& plan) {
  PlanSummary out{.kind = plan.kind, .rank = plan.rank};
  std::map<Rank, PeerAmount> peers;
  auto add = [&](Rank peer, int slot, Index cells, Amount PlanSummary::*total, Amount PeerAmount::*of_peer) {
    const Index bytes = cells * size_bytes(plan.slots[slot].type);
    Amount& sum = peer == plan.rank ? out.local : out.*total;
    // What a rank gives itself stands in both lists.
    if (peer != plan.rank || total == &PlanSummary::received) sum = {sum.cells + cells, sum.bytes + bytes};
    if (peer == plan.rank) return;
    Amount& one = peers[peer].*of_peer;
    one = {one.cells + cells, one.bytes + bytes};
  };
  plan.for_each_receive([&](const Transfer& t) {
    add(t.peer, t.group->source_slot, t.cells(), &PlanSummary::received, &PeerAmount::received);
  });
  plan.for_each_send(
      [&](const Transfer& t) { add(t.peer, t.group->source_slot, t.cells(), &PlanSummary::sent, &PeerAmount::sent); });
  for (const IndexedTransfer& t : plan.indexed_receives)
    add(t.peer, t.source_slot, Index(t.source_cells.size()) * t.inner, &PlanSummary::received, &PeerAmount::received);
  for (const IndexedTransfer& t : plan.indexed_sends)
    add(t.peer, t.source_slot, Index(t.source_cells.size()) * t.inner, &PlanSummary::sent, &PeerAmount::sent);
  for (const auto& [peer, amount] : peers) {
    out.peers.push_back({peer, amount.received, amount.sent});
    out.messages_received += amount.received.cells > 0;
    out.messages_sent += amount.sent.cells > 0;
  }
  return out;
}

Index bytes_of(const Stretches& stretches) {
  Index out = 0;
  for (const StretchBin& bin : stretches.bins) out += bin.bytes;
  return out;
}

TEST(Explain, AgreesWithAWalkOverAllTransfers) {
  Index messages = 0;
  EXPECT_EQ(first_fault(0.3,
                        [&](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const TransferPlan plan = random_plan(random);
                          const PlanSummary ours = summarise(plan), expected = walked(plan);
                          if (!(ours.received == expected.received)) return "received";
                          if (!(ours.sent == expected.sent)) return "sent";
                          if (!(ours.local == expected.local)) return "local";
                          if (ours.messages_received != expected.messages_received) return "messages received";
                          if (ours.messages_sent != expected.messages_sent) return "messages sent";
                          if (ours.peers != expected.peers) return "peers";
                          if (bytes_of(ours.received_stretches) != ours.received.bytes + ours.local.bytes)
                            return "stretches written";
                          if (bytes_of(ours.sent_stretches) != ours.sent.bytes + ours.local.bytes)
                            return "stretches read";
                          messages += ours.messages_received;
                          return "";
                        }),
            "");
  EXPECT_GT(messages, 0);
}

TEST(Explain, AFusedMessageCountsOnce) {
  const std::vector<Partition> cut = {block().with_overlap(1, 1, EdgePolicy::toroidal),
                                      block().with_overlap(1, 1, EdgePolicy::toroidal)};
  const ArraySpec field{ElementType::f64, Distribution({8, 8}, grid(2, 2), cut)};
  const PlanSummary one = summarise(plan_halo(std::vector{field}, 0));
  EXPECT_EQ(one.messages_received, 3);
  EXPECT_EQ(one.messages_sent, 3);
  EXPECT_EQ(one.received, (Amount{20, 160}));
  const PlanSummary three = summarise(plan_halo(std::vector(3, field), 0));
  EXPECT_EQ(three.messages_received, 3);
  EXPECT_EQ(three.messages_sent, 3);
  EXPECT_EQ(three.received, (Amount{60, 480}));
}

TEST(Explain, Stretches) {
  // Rank 0 keeps columns 0 and 1 of its own rows 0 to 3 and gets them of rows 4 to 7.
  const ArraySpec rows{ElementType::f32, Distribution({8, 6}, grid(2, 1), {block(), whole()})};
  const ArraySpec columns{ElementType::f32, Distribution({8, 6}, grid(1, 3), {whole(), block()})};
  const PlanSummary turn = summarise(plan_redistribution(rows, columns, 0));
  // Two columns are all that a local row has, so the rows of one peer are one stretch; they are read from rows of six.
  EXPECT_EQ(turn.received_stretches, (Stretches{8, 8, 8, {{8, 2, 64}}}));
  EXPECT_EQ(turn.sent_stretches, (Stretches{2, 2, 2, {{2, 12, 96}}}));

  // One block cyclic of 3: stretches of 3, and a tail of 1.
  const ArraySpec whole_array{ElementType::u8, Distribution({10}, grid(1), {whole()})};
  const ArraySpec threes{ElementType::u8, Distribution({10}, grid(2), {cyclic(3)})};
  const PlanSummary dealt = summarise(plan_redistribution(whole_array, threes, 1));
  EXPECT_EQ(dealt.received_stretches, (Stretches{1, 3, 3, {{1, 1, 1}, {2, 1, 3}}}));

  // A list: 4, 5 and 6 together, 9 alone, two elements each.
  TransferPlan list;
  list.rank = 0;
  list.slots = {{ElementType::i16, {10, 2}}};
  list.indexed_receives = {{.peer = 1, .source_cells = {0, 1, 2, 3}, .target_cells = {4, 5, 6, 9}, .inner = 2}};
  EXPECT_EQ(summarise(list).received_stretches, (Stretches{2, 6, 6, {{2, 1, 4}, {4, 1, 12}}}));

  EXPECT_EQ(summarise(TransferPlan{}).received_stretches, Stretches{});
}

/// The stretches of a plan that has one dimension and lattices, one by one.
Stretches walked_stretches(const TransferPlan& plan, Index cell_bytes) {
  std::map<Index, Index> counts;
  plan.for_each_receive([&](const Transfer& t) {
    for (const tranship::Run& run : t.entry(0).runs) {
      // What follows each other in the local array is one stretch.
      const bool is_one = run.target_pitch == run.length;
      counts[is_one ? run.cells() : run.length] += is_one ? 1 : run.count;
    }
    for (const RunLattice& lattice : t.entry(0).lattices)
      for (LatticeWalk walk(lattice); !walk.is_over(); walk.next()) ++counts[walk.length()];
  });
  Stretches out{.shortest = counts.begin()->first, .longest = counts.rbegin()->first};
  Index total = 0, seen = 0;
  for (const auto& [length, count] : counts) total += length * count;
  for (const auto& [length, count] : counts) {
    if (2 * seen < total) out.median = length;
    seen += length * count;
    const Index floor = Index(std::bit_floor(std::uint64_t(length)));
    if (out.bins.empty() || out.bins.back().cells_min != floor) out.bins.push_back({floor});
    out.bins.back().count += count;
    out.bins.back().bytes += length * count * cell_bytes;
  }
  return out;
}

TEST(Explain, StretchesOfLatticesAreThoseOfAWalk) {
  Index closed_forms = 0;
  EXPECT_EQ(first_fault(0.2,
                        [&](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Index extent = random.between(100'000, 400'000);
                          const auto line = [&] {
                            return ArraySpec{ElementType::i32, Distribution({extent}, grid(random.between(2, 7)),
                                                                            {cyclic(random.between(200, 3000))})};
                          };
                          const ArraySpec source = line(), target = line();
                          const TransferPlan plan = plan_redistribution(source, target, 1);
                          plan.for_each_receive([&](const Transfer& t) {
                            for (const RunLattice& lattice : t.entry(0).lattices)
                              closed_forms += lattice.distances() > 512;
                          });
                          return summarise(plan).received_stretches == walked_stretches(plan, 4) ? ""
                                                                                                 : explain_text(plan);
                        }),
            "");
  EXPECT_GT(closed_forms, 20);
}

TEST(Explain, SizesDoNotMatter) {
  for (const Index extent : {Index(1'000'000), Index(1'000'000'000'000)}) {
    const ArraySpec source{ElementType::f32, Distribution({extent}, grid(16), {cyclic(64)})};
    const ArraySpec target{ElementType::f32, Distribution({extent}, grid(24), {cyclic(100)})};
    const PlanSummary summary = summarise(plan_redistribution(source, target, 5));
    const Index mine = target.distribution.local_extents(5)[0];
    EXPECT_EQ(summary.received.cells + summary.local.cells, mine);
    EXPECT_EQ(bytes_of(summary.received_stretches), 4 * mine);
    EXPECT_EQ(summary.messages_received, 15);
    EXPECT_EQ(summary.received_stretches.longest, 64);
  }
}

TEST(Explain, ManyTransfersAreCountedButNotListed) {
  TransferPlan plan;
  plan.rank = 3;
  plan.slots = {{ElementType::u8, {2000, 2000}}, {ElementType::u8, {2000, 2000}}};
  plan.peer_grids = {grid(2000, 2000)};
  std::vector<AxisEntry> table;
  for (Index k = 0; k < 2000; ++k) table.push_back({k, {{.source = k, .target = k, .length = 1}}});
  plan.receives = {
      {.target_slot = 1, .source_dims = {0, 1}, .target_dims = {0, 1}, .axes = {table, table}, .peer_grid = 0}};
  const PlanSummary summary = summarise(plan);
  EXPECT_EQ(summary.messages_received, 4'000'000);
  EXPECT_EQ(summary.received.cells, 3'999'999);
  EXPECT_EQ(summary.local.cells, 1);
  EXPECT_TRUE(summary.peers.empty());
}

TEST(Explain, FillsAreCounted) {
  const ArraySpec source{ElementType::f64, Distribution({6}, grid(1), {whole()})};
  const ArraySpec target{ElementType::f64, Distribution({6}, grid(2), {block().with_overlap(2, 2, EdgePolicy::zero)})};
  EXPECT_EQ(summarise(plan_redistribution(source, target, 0)).filled, (Amount{2, 16}));
}

TEST(Explain, TheWorldIsTheSumOfItsRanks) {
  EXPECT_EQ(first_fault(0.05,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Indices extents = random_extents(random, 2);
                          const ArraySpec source{ElementType::f32, random_distribution(random, extents)};
                          const ArraySpec target{ElementType::f32, random_distribution(random, extents)};
                          const WorldSummary world = summarise_redistribution(source, target);
                          std::set<Rank> ranks;
                          for (const ArraySpec* spec : {&source, &target})
                            for (const Rank rank : spec->distribution.grid().ranks()) ranks.insert(rank);
                          Amount received, sent;
                          Index messages = 0, most = 0;
                          for (const Rank rank : ranks) {
                            const PlanSummary one = summarise(plan_redistribution(source, target, rank));
                            received = {received.cells + one.received.cells, received.bytes + one.received.bytes};
                            sent = {sent.cells + one.sent.cells, sent.bytes + one.sent.bytes};
                            messages += one.messages_received;
                            most = std::max(most, one.received.bytes);
                          }
                          if (!(world.moved == received)) return "moved is not what is received";
                          if (!(world.moved == sent)) return "moved is not what is sent";
                          if (world.messages != messages) return "messages";
                          if (world.receiver.bytes != most) return "the busiest receiver";
                          if (world.ranks != Index(ranks.size())) return "ranks";
                          const Relabelled relabelled = relabel(source.distribution, target.distribution);
                          if (relabelled.cells_moved_before != world.moved.cells) return "relabel counts differently";
                          if (summarise_redistribution(source, {target.type, relabelled.target}).moved.cells !=
                              relabelled.cells_moved)
                            return "relabel promises other cells than move";
                          return "";
                        }),
            "");
}

TEST(Explain, HalosOfAWorld) {
  const std::vector<Partition> cut = {block().with_overlap(1, 1, EdgePolicy::toroidal), whole()};
  const ArraySpec field{ElementType::f64, Distribution({12, 5}, grid(3, 1), cut)};
  const WorldSummary plain = summarise_halo(std::vector(2, field));
  EXPECT_EQ(plain.ranks, 3);
  EXPECT_EQ(plain.messages, 6);
  EXPECT_EQ(plain.moved, (Amount{60, 480}));

  const Tiling cube = cubed_sphere(4);
  TiledField tiles{.tiles = {}, .tile_dims = {0, 1}};
  for (int t = 0; t < 6; ++t)
    tiles.tiles.push_back({ElementType::f64, Distribution({4, 4}, Grid({1, 1}, {.first = t}),
                                                          {block().with_overlap(1, 1, EdgePolicy::open),
                                                           block().with_overlap(1, 1, EdgePolicy::open)})});
  const WorldSummary sphere = summarise_halo(cube, std::vector{tiles});
  EXPECT_EQ(sphere.ranks, 6);
  EXPECT_EQ(sphere.messages, 24);
  EXPECT_EQ(sphere.moved, (Amount{96, 768}));
}

ArraySpec rows_spec() {
  return {ElementType::f64, Distribution({1024, 768}, grid(32, 1), {block(), whole()})};
}

ArraySpec tiles_spec() {
  return {ElementType::f64,
          Distribution({1024, 768}, grid(4, 8), {cyclic(64).with_overlap(1, 1, EdgePolicy::zero), cyclic(16)})};
}

TEST(Explain, Golden) {
  EXPECT_TRUE(matches_golden("plan/tiles.txt", explain_text(plan_redistribution(rows_spec(), tiles_spec(), 5))));
  EXPECT_TRUE(
      matches_golden("plan/tiles_world.txt", explain_text(summarise_redistribution(rows_spec(), tiles_spec()))));
  const std::vector<Partition> cut = {block().with_overlap(3, 3, EdgePolicy::toroidal),
                                      block().with_overlap(3, 3, EdgePolicy::toroidal), whole()};
  const std::vector<ArraySpec> fields(3, {ElementType::f64, Distribution({256, 256, 80}, grid(2, 2, 1), cut)});
  EXPECT_TRUE(matches_golden("plan/halo.txt", explain_text(plan_halo(fields, 0))));
  const ArraySpec lists{ElementType::i32,
                        Distribution::indexed({7, 2}, 1, grid(3), {{{0, 6, 2}, {3}}, {{5, 1}, {}}, {{3, 4}, {0, 1}}})};
  EXPECT_TRUE(matches_golden("plan/lists.txt", explain_text(plan_halo(std::vector{lists}, 2))));
}

TEST(Explain, SaysHowAnAdjointCombines) {
  const ArraySpec field{ElementType::i32,
                        Distribution({8}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)})};
  const TransferPlan plan = plan_halo(std::vector{field}, 1);
  EXPECT_TRUE(summarise(plan).combines.empty());
  EXPECT_TRUE(explain_text(adjoint(plan)).starts_with("adjoint of a halo exchange by sum, rank 1:"));
  const TransferPlan reverse = adjoint(plan, Combine::maximum);
  EXPECT_TRUE(explain_text(reverse).starts_with("adjoint of a halo exchange by maximum, rank 1:"));
  EXPECT_EQ(nlohmann::json::parse(explain_json(reverse))["combines"], std::vector<std::string>{"maximum"});
}

TEST(Explain, JsonSaysTheSame) {
  const TransferPlan plan = plan_redistribution(rows_spec(), tiles_spec(), 5);
  const PlanSummary summary = summarise(plan);
  const auto json = nlohmann::json::parse(explain_json(plan));
  EXPECT_EQ(json["kind"], "redistribution");
  EXPECT_EQ(json["rank"], 5);
  EXPECT_EQ(json["received"]["messages"], summary.messages_received);
  EXPECT_EQ(json["received"]["bytes"], summary.received.bytes);
  EXPECT_EQ(json["sent"]["cells"], summary.sent.cells);
  EXPECT_EQ(json["local"]["cells"], summary.local.cells);
  EXPECT_EQ(json["filled"]["bytes"], summary.filled.bytes);
  EXPECT_EQ(json["stored_runs"], summary.stored_runs);
  EXPECT_EQ(json["received_stretches"]["median"], summary.received_stretches.median);
  ASSERT_EQ(json["peers"].size(), summary.peers.size());
  EXPECT_EQ(json["peers"][0]["rank"], summary.peers[0].peer);
  EXPECT_EQ(json["peers"][0]["received"]["cells"], summary.peers[0].received.cells);

  const WorldSummary world = summarise_redistribution(rows_spec(), tiles_spec());
  const auto all = nlohmann::json::parse(explain_json(world));
  EXPECT_EQ(all["ranks"], 32);
  EXPECT_EQ(all["moved"]["messages"], world.messages);
  EXPECT_EQ(all["moved"]["cells"], world.moved.cells);
  EXPECT_EQ(all["most_sent"]["rank"], world.sender.rank);
  EXPECT_EQ(all["written_stretches"]["longest"], world.written_stretches.longest);
}

}  // namespace
}  // namespace tranship
