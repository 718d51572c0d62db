// A ring whose loads and stores the simulator sees without a word in its source: examples/CMakeLists.txt links it with
// tranship::race_hooks. Run it by `tranship simulate -n 3 example_checked_ring`, and once more with the word "wrong":
// then ranks read before they have waited.
#include <cstdio>
#include <cstring>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>

namespace ts = tranship;

int main(int argc, char** argv) {
  const bool waits = argc < 2 || std::strcmp(argv[1], "wrong") != 0;
  int wrong = 0;
  ts::launch([&](ts::World& world) {
    auto inbox = world.allocate<double>(100);
    auto arrived = world.allocate<std::uint64_t>(1);
    double outbox[100];
    for (double& value : outbox) value = world.rank();
    const ts::Rank next = (world.rank() + 1) % world.size(),
                   previous = (world.rank() + world.size() - 1) % world.size();
    world.context().put_signal(inbox, outbox, arrived, 1, ts::SignalOp::set, next);
    if (waits) world.context().signal_wait(arrived, ts::Comparison::equal, 1);
    double sum = 0;
    for (int i = 0; i < 100; ++i) sum += inbox[i];
    world.barrier();
    if (sum != 100.0 * previous) {
      std::printf("rank %d: the sum is %g, not %g\n", world.rank(), sum, 100.0 * previous);
      if (world.rank() == 0) wrong = 1;
    }
  });
  return wrong;
}
