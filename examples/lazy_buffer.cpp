// Shows one buffer on a host and two devices: it is copied only when a stale copy is read.
// Prints each state that it checks, and in the end the ledger: all copies, each with its cause and source lines.
// Run: build/release/bin/example_lazy_buffer (fake devices, so it needs no card)
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tranship/tranship.hpp>

namespace ts = tranship;

namespace {

constexpr ts::Device gpu0 = ts::Device::fake(0), gpu1 = ts::Device::fake(1);

void expect(bool holds, const char* what) {
  std::printf("%s %s\n", holds ? "  yes:" : "  NO: ", what);
  if (!holds) std::exit(1);
}

/// A kernel on whatever device is current: x = x * factor + offset.
void scale(ts::Buffer& x, double factor, double offset) {
  ts::Lease lease = x.read_write();
  ts::run_on(lease.stream(), [data = lease.data<double>(), n = x.extents()[0], factor, offset] {
    for (ts::Index i = 0; i < n; ++i) data[i] = data[i] * factor + offset;
  });
}

double first(const ts::Buffer& x) {
  return x.read({.device = ts::Device::host()}).data<const double>()[0];
}

}  // namespace

int main() {
  // Fake devices have memory of the host that only their streams may touch.
  ts::Devices devices({.kinds = {ts::FakeDevices{.count = 2}}});
  ts::Buffer x(ts::ElementType::f64, {1000}, {.name = "x", .devices = &devices});

  std::puts("A new buffer has no copy, and asking for its state makes none:");
  expect(x.state(ts::Device::host()) == ts::CopyState::unallocated, "not on the host");
  expect(x.state(gpu0) == ts::CopyState::unallocated, "not on fake:0");

  {
    ts::Lease lease = x.write();
    for (int i = 0; i < 1000; ++i) lease.data<double>()[i] = 1.0;
  }
  std::puts("Written on the host, used on a device:");
  {
    const ts::Offload on_gpu(gpu0);
    expect(x.state(gpu0) == ts::CopyState::unallocated, "entering the scope has copied nothing");
    scale(x, 2, 1);
    expect(x.state(gpu0) == ts::CopyState::valid, "fake:0 has the last value");
    expect(x.state(ts::Device::host()) == ts::CopyState::stale, "the host's copy is stale, and still there");
  }
  std::fputs(x.explain(ts::Intent::read, {.device = ts::Device::host()}).c_str(), stdout);
  expect(first(x) == 3.0, "a read on the host sees what the device wrote");

  std::puts("A part is written on another device; only what is stale moves:");
  {
    ts::Lease lease = x.write({.device = gpu1, .region = ts::Region::interval(0, 10)});
    ts::run_on(lease.stream(), [data = lease.data<double>()] { std::fill(data, data + 10, 5.0); });
  }
  {
    const ts::ByteBudget budget(10 * 8);
    expect(first(x) == 5.0, "the host reads the part");
    expect(budget.spent_bytes() == 80, "80 bytes have moved for it");
  }

  std::puts("Both devices add, apart; one read merges:");
  for (const ts::Device device : {gpu0, gpu1}) {
    ts::Lease lease = x.accumulate(ts::Combine::sum, {.device = device});
    ts::run_on(lease.stream(), [data = lease.data<double>()] {
      for (int i = 0; i < 1000; ++i) data[i] += 100.0;
    });
  }
  expect(first(x) == 205.0, "5 + 100 + 100");

  std::puts("A duplicate is made of nothing until one of the two is written:");
  ts::Buffer y = x.duplicate();
  expect(devices.ledger().sums(ts::Cause::duplicate).bytes == 0, "no byte has been copied");
  scale(y, 0, 1);
  expect(first(y) == 1.0 && first(x) == 205.0, "they are two");

  std::puts("A frozen buffer is read-only on every device:");
  x.freeze();
  for (const ts::Device device : {ts::Device::host(), gpu0, gpu1}) {
    bool refused = false;
    try {
      x.write({.device = device});
    } catch (const ts::Error& error) {
      refused = true;
      if (device == gpu1) std::printf("  %s\n", error.what());
    }
    expect(refused, "no lease to write");
  }

  std::puts("What has moved, and why:");
  for (const ts::CopyRecord& copy : devices.ledger().records()) std::printf("  %s\n", ts::to_string(copy).c_str());
  return 0;
}
