// Shows a ring whose loads and stores the simulator sees, because it links tranship::race_hooks (CMakeLists.txt).
// Prints the sums that are wrong; with the argument "wrong", ranks read before they wait, and the simulator says where.
// Run: build/release/bin/tranship simulate -n 3 --seeds 50 build/release/bin/example_checked_ring [wrong]
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
