// The programs of examples/lazy_buffer.cpp and examples/device_halo.cpp, on cards: the same states, bytes and sums.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/array/array.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/ledger.hpp>

#include "memory/device_kinds.hpp"

namespace tranship::test {
namespace {

class CardExamples : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
  }
};

void scale(Buffer& x, double factor, double offset) {
  const Lease lease = x.read_write();
  const Index n = x.extents()[0];
  run_kernel<double>(lease, 0, n, [=](double* data) {
    for (Index i = 0; i < n; ++i) data[i] = data[i] * factor + offset;
  });
}

double first(const Buffer& x) {
  return x.read({.device = Device::host()}).data<const double>()[0];
}

TEST_F(CardExamples, a_lazy_buffer_is_copied_when_a_stale_copy_is_read) {
  constexpr Device gpu0 = Device::cuda(0), gpu1 = Device::cuda(1);
  Devices devices(options_of(DeviceCase::card));
  Buffer x(ElementType::f64, {1000}, {.name = "x", .devices = &devices});
  EXPECT_EQ(x.state(gpu0), CopyState::unallocated);
  {
    const Lease lease = x.write();
    for (int i = 0; i < 1000; ++i) lease.data<double>()[i] = 1.0;
  }
  {
    const Offload on_gpu(gpu0);
    EXPECT_EQ(x.state(gpu0), CopyState::unallocated) << "entering the scope copies nothing";
    scale(x, 2, 1);
    EXPECT_EQ(x.state(gpu0), CopyState::valid);
    EXPECT_EQ(x.state(Device::host()), CopyState::stale);
  }
  EXPECT_EQ(first(x), 3.0);
  {
    const Lease lease = x.write({.device = gpu1, .region = Region::interval(0, 10)});
    run_kernel<double>(lease, 0, 10, [](double* data) { std::fill(data, data + 10, 5.0); });
  }
  {
    const ByteBudget budget(10 * 8);
    EXPECT_EQ(first(x), 5.0);
    EXPECT_EQ(budget.spent_bytes(), 80);
  }
  for (const Device device : {gpu0, gpu1}) {
    const Lease lease = x.accumulate(Combine::sum, {.device = device});
    run_kernel<double>(lease, 0, 1000, [](double* data) {
      for (int i = 0; i < 1000; ++i) data[i] += 100.0;
    });
  }
  EXPECT_EQ(first(x), 205.0);
  Buffer y = x.duplicate();
  EXPECT_EQ(devices.ledger().sums(Cause::duplicate).bytes, 0);
  scale(y, 0, 1);
  EXPECT_EQ(first(y), 1.0);
  EXPECT_EQ(first(x), 205.0);
  x.freeze();
  for (const Device device : {Device::host(), gpu0, gpu1}) EXPECT_THROW(x.write({.device = device}), Error);
}

TEST_F(CardExamples, a_halo_of_arrays_on_cards_fetches_stale_ghosts_alone) {
  static constexpr Index n = 64, inner = n / 2, all = inner + 2;
  constexpr int steps = 10;
  const auto start_value = [](Index i, Index j) { return double((i * 7 + j * 13) % 10); };
  const auto next = [](const double* u, Index at, Index row) {
    return u[at] / 2 + (u[at - 1] + u[at + 1] + u[at - row] + u[at + row]) / 8;
  };
  // The same steps on one array with a rim of its own.
  std::vector<double> u((n + 2) * (n + 2)), v(u.size());
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) u[std::size_t((i + 1) * (n + 2) + j + 1)] = start_value(i, j);
  for (int step = 0; step < steps; ++step) {
    for (Index i = 0; i < n + 2; ++i)
      for (Index j = 0; j < n + 2; ++j)
        u[std::size_t(i * (n + 2) + j)] = u[std::size_t(((i + n - 1) % n + 1) * (n + 2) + (j + n - 1) % n + 1)];
    for (Index i = 1; i <= n; ++i)
      for (Index j = 1; j <= n; ++j) v[std::size_t(i * (n + 2) + j)] = next(u.data(), i * (n + 2) + j, n + 2);
    std::swap(u, v);
  }

  Devices devices(options_of(DeviceCase::card));
  const Partition torus = block().with_overlap(1, 1, EdgePolicy::toroidal);
  const Distribution tiles({n, n}, grid(2, 2), {torus, torus});
  launch(4, [&](World& world) {
    Array<double> from(world, tiles, {.name = "from", .devices = &devices});
    Array<double> to(world, tiles, {.name = "to", .devices = &devices});
    from.fill_owned([&](const Indices& cell) { return start_value(cell[0], cell[1]); });
    const Offload on_card(Device::cuda(world.rank() % 2));
    for (int step = 0; step < steps; ++step) {
      const Lease read = from.read({.cells = Cells::stored});
      const Lease written = to.write();
      ASSERT_EQ(read.view().strides[0], all);
      const auto stencil = std::make_shared<std::vector<double>>(std::size_t(all * all));
      run_kernel<const double>(read, 0, all * all, [stencil, next](const double* now) {
        for (Index i = 1; i <= inner; ++i)
          for (Index j = 1; j <= inner; ++j) (*stencil)[std::size_t(i * all + j)] = next(now, i * all + j, all);
      });
      written.stream().wait(read.stream().event());
      run_kernel<double>(written, 0, all * all, [stencil](double* then) {
        for (Index i = 1; i <= inner; ++i)
          for (Index j = 1; j <= inner; ++j) then[i * all + j] = (*stencil)[std::size_t(i * all + j)];
      });
      std::swap(from, to);
    }
    const Lease result = from.read({.device = Device::host()});
    for_each_owned(tiles, world.rank(), [&](const Indices& local, const Indices& cell) {
      ASSERT_EQ(result.data<const double>()[local[0] * all + local[1]],
                u[std::size_t((cell[0] + 1) * (n + 2) + cell[1] + 1)])
          << "cell " << cell[0] << ", " << cell[1];
    });
  });
  // The first step fetches whole arrays; each later one fetches 132 ghosts a rank to the host and to a card at most.
  EXPECT_GT(devices.ledger().sums(Cause::halo).bytes, 0);
  EXPECT_LE(devices.ledger().sums(Cause::halo).bytes, 4 * steps * 2 * 132 * 8);
}

}  // namespace
}  // namespace tranship::test
