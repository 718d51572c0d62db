// What ranks send each other while an exchange is set up, counted where no two of them share memory: it grows with the
// peers of a rank, and with the logarithm of the number of ranks.
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/tranship.hpp>

namespace tranship::test {
namespace {

/// What ranks have sent when all of them have set up a periodic halo with 26 neighbours.
SimulationReport set_up_halo(int ranks_per_side) {
  const int side = ranks_per_side;
  SimulationReport so_far, set_up;
  const SimulationOptions options{.ranks = side * side * side,
                                  .peers = PeerKind::messaged,
                                  .order = OrderChecks::off,
                                  .heap_bytes = std::size_t(1) << 20,
                                  .steps_max = INT64_MAX,
                                  .so_far = &so_far};
  const auto ring = block().with_overlap(1, 1, EdgePolicy::toroidal);
  const Distribution cells({4 * side, 4 * side, 4 * side}, grid(side, side, side), {ring, ring, ring});
  simulate(options, [&](World& world) {
    Array<double> u(world, cells);
    HaloExchange halo({u});
    world.sync();
    if (set_up.steps == 0) set_up = so_far;  // the first one to go on: none has begun to leave
  });
  return set_up;
}

TEST(SetUpTraffic, of_a_halo_grows_with_peers_and_the_logarithm_of_ranks) {
  const char* const asked = std::getenv("TRANSHIP_TEST_RANKS_PER_SIDE");
  const int side = asked != nullptr ? std::atoi(asked) : 8;
  const SimulationReport few = set_up_halo(3), many = set_up_halo(side);
  std::printf("%d ranks: at most %lld messages and %lld bytes of a rank; 27 ranks: %lld and %lld\n", side * side * side,
              (long long)many.messages_max, (long long)many.bytes_max, (long long)few.messages_max,
              (long long)few.bytes_max);
  EXPECT_LE(many.messages_max, 200);
  EXPECT_LE(many.bytes_max, 64 * 1024);
  EXPECT_LT(double(many.messages_max) / double(few.messages_max), 2);
}

// So many peers are not listed at once, but searched.
TEST(SetUpTraffic, of_more_peers_than_are_read_as_a_whole) {
  const auto turn = [](World& world) {
    const Distribution rows({90, 90}, grid(45, 1), {block(), whole()}),
        columns({90, 90}, grid(1, 45), {whole(), block()});
    const auto value = [](const Indices& at) { return double(100 * at[0] + at[1]); };
    Array<double> from(world, rows), to(world, columns);
    from.fill_owned(value);
    Redistribution redistribution(from, to);
    redistribution();
    if (to.count_wrong(value) != 0) throw Error(ErrorCode::internal, "wrong cells");
  };
  const std::size_t heap_bytes = std::size_t(4) << 20;
  launch({.ranks = 45, .heap_bytes = heap_bytes}, turn);
  simulate({.ranks = 45, .ranks_per_host = 10, .heap_bytes = heap_bytes}, turn);
}

}  // namespace
}  // namespace tranship::test
