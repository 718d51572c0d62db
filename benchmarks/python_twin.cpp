// The C++ side of benchmarks/python_peers.py: the same work of tranship in C++, in ranks that obey commands and print
// how long the work took.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/deadline.hpp>
#include <tranship/tranship.hpp>

namespace ts = tranship;

namespace {

double value(const ts::Indices& cell) {
  double out = 0;
  for (const ts::Index i : cell) out = out * 4096 + double(i);
  return out;
}

/// Each command is two words, such as "turn warm"; "end" is the last. Each rank reads commands from a pipe of its own,
/// which takes no time on a core while others are measured.
void serve(ts::World& world) {
  std::ifstream commands(std::string(std::getenv("PIPES")) + "/" + std::to_string(world.rank()));
  const ts::Index n = std::atoll(std::getenv("TURN_EXTENT")), h = std::atoll(std::getenv("HALO_EXTENT"));
  const ts::Index ranks = world.size();
  const ts::Array<double> a(world, ts::distribution({n, n}, ts::grid(ranks, 1), {ts::block(), ts::whole()}));
  const ts::Array<double> b(world, ts::distribution({n, n}, ts::grid(1, ranks), {ts::whole(), ts::block()}));
  const auto ring = ts::block().with_overlap(3, 3, ts::EdgePolicy::toroidal);
  const ts::Index rows = ranks % 2 == 0 ? ranks / 2 : ranks;
  const ts::Array<double> u(world, ts::distribution({h, h, h}, ts::grid(rows, ranks / rows, 1), {ring, ring, ring}));
  ts::Redistribution turn(a, b);
  ts::HaloExchange halo({u});
  a.fill_owned(value);
  turn();
  u.fill_owned(value);
  halo();
  if (b.count_wrong(value) + u.count_wrong(value) != 0) throw ts::Error(ts::ErrorCode::internal, "wrong cells");

  std::vector<char> caches(std::size_t(64) << 20, 1);
  std::string work, data;
  while (commands >> work && work != "end" && commands >> data) {
    const ts::Array<double>& source = work == "turn" ? a : u;
    const auto elements = std::size_t(source.extents()[0] * source.extents()[1]) *
                          std::size_t(source.extents().size() > 2 ? source.extents()[2] : 1);
    for (std::size_t i = 0; i < elements; ++i) source.data()[i] += 1;
    if (data == "cold") std::memset(caches.data(), ++caches[0], caches.size());
    world.barrier();
    const std::int64_t begin_ns = ts::now_ns();
    work == "turn" ? turn() : halo();
    world.barrier();
    if (world.rank() == 0) {
      std::printf("%.9f\n", double(ts::now_ns() - begin_ns) * 1e-9);
      std::fflush(stdout);
    }
  }
}

/// The C++ side of benchmarks/python_calls.py, beside functions that Numba compiles: puts of 8 bytes, in ns a put.
[[gnu::noinline]] void put_many(ts::Context& rma, ts::Symmetric<double> target, std::span<const double> source,
                                ts::Rank peer, int count) {
  for (int i = 0; i < count; ++i) rma.put(target, source, peer);
}
void time_puts(ts::World& world) {
  constexpr int count = 1'000'000, rounds = 15;
  const auto target = world.allocate<double>(1);
  const std::vector<double> source(1, 1.0);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t begin_ns = ts::now_ns();
    put_many(world.context(), target, source, world.rank(), count);
    times.push_back(double(ts::now_ns() - begin_ns) / count);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  std::printf("%.3f\n", times[rounds / 2]);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::string(argv[1]) == "puts")
    ts::launch(1, time_puts);
  else
    ts::launch(serve);
} catch (const std::exception& error) {
  std::fprintf(stderr, "python_twin: %s\n", error.what());
  return EXIT_FAILURE;
}
