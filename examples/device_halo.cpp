// Shows an array on four ranks that compute on devices: reading ghosts fetches those that are stale, and no others.
// Prints the bytes that moved for ghosts and in all, and the result beside that of one array.
// Run: build/release/bin/example_device_halo (fake devices, so it needs no card)
#include <cmath>
#include <cstdio>
#include <utility>

#include <tranship/tranship.hpp>

namespace ts = tranship;

namespace {

constexpr ts::Index n = 64;
constexpr int steps = 10;

double start_value(ts::Index row, ts::Index column) {
  return double((row * 7 + column * 13) % 10);
}

/// One step of diffusion in the cells of a local region, as a kernel: reads u with its neighbours, writes v.
void diffuse(const ts::Lease& u, const ts::Lease& v, const ts::Region& cells) {
  const ts::Index row = u.view().strides[0];
  ts::run_on(v.stream(), [from = u.data<const double>(), to = v.data<double>(), row, cells] {
    for (const ts::Box& box : cells.boxes())
      for (ts::Index i = box.lower[0]; i < box.upper[0]; ++i)
        for (ts::Index j = box.lower[1]; j < box.upper[1]; ++j) {
          const ts::Index at = i * row + j;
          to[at] = from[at] / 2 + (from[at - 1] + from[at + 1] + from[at - row] + from[at + row]) / 8;
        }
  });
}

/// Makes the same steps on one array, for comparison.
double expected_sum_of_squares() {
  std::vector<double> u(n * n), v(n * n);
  for (ts::Index i = 0; i < n * n; ++i) u[std::size_t(i)] = start_value(i / n, i % n);
  const auto at = [](ts::Index i, ts::Index j) { return std::size_t((i + n) % n * n + (j + n) % n); };
  for (int step = 0; step < steps; ++step) {
    for (ts::Index i = 0; i < n; ++i)
      for (ts::Index j = 0; j < n; ++j)
        v[at(i, j)] = u[at(i, j)] / 2 + (u[at(i, j - 1)] + u[at(i, j + 1)] + u[at(i - 1, j)] + u[at(i + 1, j)]) / 8;
    std::swap(u, v);
  }
  double sum = 0;
  for (const double value : u) sum += value * value;
  return sum;
}

}  // namespace

int main() {
  // Fake devices have memory of the host that only their streams may touch.
  ts::Devices devices({.kinds = {ts::FakeDevices{.count = 2}}});
  const ts::Partition torus = ts::block().with_overlap(1, 1, ts::EdgePolicy::toroidal);
  const ts::Distribution tiles({n, n}, ts::grid(2, 2), {torus, torus});
  double sum = 0;

  ts::launch(4, [&](ts::World& world) {
    ts::Array<double> u(world, tiles, {.name = "u", .devices = &devices});
    ts::Array<double> v(world, tiles, {.name = "v", .devices = &devices});
    u.fill_owned([](const ts::Indices& cell) { return start_value(cell[0], cell[1]); });

    const ts::Offload on_device(ts::Device::fake(world.rank() % 2));
    const ts::Region cells = u.local_region();
    for (int step = 0; step < steps; ++step) {
      const ts::Lease from =
          u.read({.cells = ts::Cells::stored});  // exchanges the stale ghosts, straight to the device
      const ts::Lease to = v.write();            // v's ghosts are stale from here on
      diffuse(from, to, cells);
      std::swap(u, v);
    }

    if (world.rank() == 0) std::fputs(u.explain(ts::Intent::read, {.cells = ts::Cells::stored}).c_str(), stdout);
    const ts::Lease result = u.read({.device = ts::Device::host()});
    double mine = 0;
    ts::for_each_owned(tiles, world.rank(), [&](const ts::Indices& local, const ts::Indices&) {
      const double value = result.data<const double>()[local[0] * result.view().strides[0] + local[1]];
      mine += value * value;
    });
    for (const double part : world.all_gather(mine))
      if (world.rank() == 0) sum += part;
  });
  const ts::CopyLedger::Sums halo = devices.ledger().sums(ts::Cause::halo), all = devices.ledger().sums();
  std::printf("%d steps: %lld bytes between devices and host for ghosts, %lld in all (an array has %lld)\n", steps,
              static_cast<long long>(halo.bytes), static_cast<long long>(all.bytes), static_cast<long long>(n * n * 8));
  const double expected = expected_sum_of_squares();
  std::printf("sum of squares %.12g, on one array %.12g\n", sum, expected);
  return std::fabs(sum - expected) <= 1e-9 * expected ? 0 : 1;
}
