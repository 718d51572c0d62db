// A program that joins its world by a call of its own, and passes a number around.
#include <cstdio>
#include <cstring>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/rank_scope.hpp>

using namespace tranship;

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  RankScope scope = RankScope::join();
  World& world = scope.world();
  const Rank rank = world.rank(), next = (rank + 1) % world.size();
  {
    const auto numbers = world.allocate<int>(1);
    const auto signals = world.allocate<std::uint64_t>(1);
    Context& rma = world.context();
    const int mine[] = {100 + rank};
    if (std::strcmp(how, "races") == 0) {
      rma.put_nbi(numbers, mine, next);
      rma.signal(signals, 1, SignalOp::set, next);  // a fence is missing before it
    } else {
      rma.put_signal(numbers, mine, signals, 1, SignalOp::set, next);
    }
    rma.signal_wait(signals, Comparison::equal, 1);
    rma.reads(Symmetric<int>(numbers));
    if (numbers[0] != 100 + (rank + world.size() - 1) % world.size()) return 4;
    world.barrier();
  }
  if (std::strcmp(how, "returns") == 0 && rank == 1) return 3;
  if (std::strcmp(how, "fails") == 0 && rank == 1) scope.fail(Error(ErrorCode::io, "the disk is gone"));
  scope.finish();
  return 0;
}
