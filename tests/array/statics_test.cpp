// What a program holds in static variables: it is released after the main function has returned, when the library's
// own static variables would be gone, too.
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/array/array.hpp>
#include <tranship/array/halo_exchange.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/collectives/world_collectives.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/run/exchange_log.hpp>

#include "support/paths.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

Array<double> ring_of(World& world) {
  const auto ring = block().with_overlap(1, 1, EdgePolicy::toroidal);
  return Array<double>(world, distribution({8 * world.size()}, grid(world.size()), {ring}));
}

/// Uses the library once more when all else is gone. Its member is made before any static variable of the library.
struct Last {
  bool is_used = false;
  ~Last() {
    if (!is_used) return;
    try {
      launch(2, [](World& world) {
        Array<double> cells = ring_of(world);
        HaloExchange({cells})();
        std::vector<double> sum(1), mine(1);
        WorldCollectives(world).all_reduce(sum, mine);
      });
      require(!algorithms().empty(), "no algorithms");
      require(!ExchangeLog::is_open(), "the log is open");
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(9);
    }
  }
} last;

struct Held {
  std::optional<RankScope> scope;
  std::optional<ExchangeLog> log;
  std::optional<Buffer> buffer;
  std::optional<Array<double>> cells;
  std::optional<HaloExchange> halo;
  std::optional<WorldCollectives> collectives;
  std::optional<SharedFlags> flags;
  SymmetricArray<double> allocated;
  RegisteredMemory registered;
  RegisteredMemory mapped;
} held;

TEST(Statics, DISABLED_hold_all_that_there_is) {
  last.is_used = true;
  held.scope.emplace(RankScope::join());
  World& world = held.scope->world();
  held.log.emplace();
  held.buffer.emplace(ElementType::f64, Indices{100});
  { const Lease lease = held.buffer->write(); }
  held.cells.emplace(ring_of(world));
  held.halo.emplace(HaloExchange({*held.cells}));
  (*held.halo)();
  held.collectives.emplace(world);
  held.flags.emplace(world.shared_flags(1, "static"));
  held.allocated = world.allocate<double>(100);
  auto* const pages = static_cast<double*>(std::aligned_alloc(page_bytes(), page_bytes()));
  held.registered = world.register_memory(std::span(pages, page_bytes() / sizeof(double)));
  void* const mapped = mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  held.mapped = world.register_memory(std::span(static_cast<double*>(mapped), page_bytes() / sizeof(double)));
  world.barrier();
}

int exit_code_of(const std::vector<std::string>& program) {
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<char*> words;
    for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Statics, may_hold_all_that_there_is) {
  const std::vector<std::string> program = this_program("Statics.DISABLED_hold_all_that_there_is");
  EXPECT_EQ(exit_code_of(program), 0) << "alone";
  EXPECT_EQ(launch_program({}, {{2, program}}).exit_codes, std::vector<int>(2, 0)) << "as ranks";
}

}  // namespace
}  // namespace tranship::test
