// A simulation sees what exchanges read and write as accesses of their rank, from start() to finish(), by cells: each
// wrong program is found under every seed, with both of its places, and stands beside the right one.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/tranship.hpp>

namespace tranship::test {
namespace {

constexpr CallSite first{"first.cpp", 1}, second{"second.cpp", 2};
constexpr Index cells = 4;  // that a rank owns, with a ghost on either side

Distribution ring(int ranks) {
  return Distribution({cells * ranks}, grid(ranks), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
}

/// A rank of a case. Its array lies in memory that peers put into.
struct Rig {
  explicit Rig(World& w) : world(w), rma(w.context()) {}

  World& world;
  Context& rma;
  SymmetricArray<double> memory = world.allocate<double>(cells + 2);
  Array<double> array{world, ring(world.size()), memory.local()};
  SymmetricArray<double> other_memory = world.allocate<double>(cells * world.size());
  Array<double> whole{world, Distribution({cells * world.size()}, grid(1), {tranship::whole()}),
                      world.rank() == 0 ? other_memory.local() : nullptr};

  Rank next() const { return (world.rank() + 1) % world.size(); }
  /// One cell of the memory of the array: 0 is a ghost, 1 and 4 are sent, 2 and 3 are neither.
  Symmetric<double> cell(Index i) const { return memory.slice(i, 1); }
};

struct Case {
  const char* name;
  bool is_race;
  std::function<void(Rig&)> program;
};

std::string fault_of(const Case& one) {
  constexpr std::uint64_t seeds = 25;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::string message;
    try {
      simulate({.ranks = 2, .seed = seed, .heap_bytes = std::size_t(1) << 18}, [&](World& world) {
        Rig rig(world);
        one.program(rig);
        world.barrier();
      });
    } catch (const Error& error) {
      message = error.message();
      if (one.is_race && error.code() == ErrorCode::race && message.find("first.cpp:1") != std::string::npos &&
          message.find("second.cpp:2") != std::string::npos)
        continue;
      return std::string(one.name) + ": " + message + "\n";
    }
    if (one.is_race) return std::string(one.name) + ": not found under seed " + std::to_string(seed) + "\n";
  }
  return "";
}

void expect(const std::vector<Case>& cases) {
  std::string faults;
  for (const Case& one : cases) faults += fault_of(one);
  EXPECT_EQ(faults, "");
}

/// A halo exchange around `between`.
std::function<void(Rig&)> during_halo(std::function<void(Rig&)> between, Sources sources = Sources::in_place) {
  return [=](Rig& r) {
    HaloExchange halo({r.array}, {}, HaloDirection::update, {.sources = sources});
    r.world.barrier();
    halo.start(first);
    between(r);
    halo.finish();
  };
}
std::function<void(Rig&)> after_halo(std::function<void(Rig&)> after) {
  return [=](Rig& r) {
    HaloExchange halo({r.array});
    halo.start(first);
    halo.finish();
    after(r);
  };
}

TEST(ExchangeRaces, cells_of_a_rank_between_start_and_finish) {
  const auto writes = [](Index i) { return [i](Rig& r) { r.rma.writes(r.cell(i), second); }; };
  const auto reads = [](Index i) { return [i](Rig& r) { r.rma.reads(r.cell(i), second); }; };
  expect({
      {"a cell that is sent is written", true, during_halo(writes(1))},
      {"the last cell that is sent is written", true, during_halo(writes(4))},
      {"a cell that is sent is read", false, during_halo(reads(1))},
      {"a cell within is written", false, during_halo(writes(2))},
      {"a ghost is read", true, during_halo(reads(0))},
      {"a ghost is written", true, during_halo(writes(5))},
      {"a cell that is sent is written after finish", false, after_halo(writes(1))},
      {"a ghost is read after finish", false, after_halo(reads(0))},
      {"a cell that a snapshot sends is written", false, during_halo(writes(1), Sources::snapshot)},
      {"a ghost of a snapshot is read", false, during_halo(reads(0), Sources::snapshot)},
      {"a span of memory, which has no symmetric name", true,
       during_halo([](Rig& r) { r.rma.writes(std::span(r.memory.local() + 1, 1), second); })},
  });
}

TEST(ExchangeRaces, transfers_of_the_rank) {
  const auto get_before = [](bool completes, Index i) {
    return [=](Rig& r) {
      HaloExchange halo({r.array});
      r.world.barrier();
      r.rma.get_nbi(std::span(r.memory.local() + i, 1), r.other_memory.slice(0, 1), r.next(), first);
      if (completes) r.rma.quiet();
      halo.start(second);
      halo.finish();
    };
  };
  expect({
      {"a get under way fills a cell that is sent", true, get_before(false, 1)},
      {"a get under way fills a cell within", false, get_before(false, 2)},
      {"a get that is complete has filled a cell that is sent", false, get_before(true, 1)},
      {"a put under way reads a ghost", true,
       [](Rig& r) {
         HaloExchange halo({r.array});
         r.world.barrier();
         r.rma.put_nbi(r.other_memory.slice(0, 1), std::span<const double>(r.memory.local(), 1), r.next(), first);
         halo.start(second);
         halo.finish();
       }},
      {"a get during the exchange fills a ghost", true, during_halo([](Rig& r) {
         r.rma.get(std::span(r.memory.local(), 1), r.other_memory.slice(0, 1), r.next(), second);
       })},
  });
}

TEST(ExchangeRaces, transfers_of_peers) {
  // Rank 1 puts into rank 0's array while rank 0 moves it.
  const auto peer_puts = [](Index i, bool waits, Sources sources = Sources::in_place) {
    return [=](Rig& r) {
      HaloExchange halo({r.array}, {}, HaloDirection::update, {.sources = sources});
      r.world.barrier();
      halo.start(r.world.rank() == 0 ? first : CallSite{"other.cpp", 3});
      if (!waits && r.world.rank() == 1)
        r.rma.put(r.cell(i), std::span<const double>(r.other_memory.local(), 1), 0, second);
      halo.finish();
      if (waits) {
        r.world.barrier();
        if (r.world.rank() == 1) r.rma.put(r.cell(i), std::span<const double>(r.other_memory.local(), 1), 0, second);
      }
    };
  };
  expect({
      {"a peer puts into a cell that is sent", true, peer_puts(1, false)},
      {"a peer puts into a ghost", true, peer_puts(5, false)},
      {"a peer puts into a cell within", false, peer_puts(2, false)},
      {"a peer puts into a ghost that a snapshot fills", true, peer_puts(5, false, Sources::snapshot)},
      {"a peer puts into a cell that a snapshot has read", true, peer_puts(1, false, Sources::snapshot)},
      {"a peer puts into a cell that was sent, after a barrier", false, peer_puts(1, true)},
  });
}

TEST(ExchangeRaces, redistributions) {
  const auto between = [](std::function<void(Rig&)> f) {
    return [=](Rig& r) {
      Redistribution gather(r.array, r.whole);
      r.world.barrier();
      gather.start(first);
      f(r);
      gather.finish();
    };
  };
  const auto root_reads = [](Rig& r) {
    if (r.world.rank() == 0) r.rma.reads(r.other_memory.slice(5, 1), second);
  };
  expect({
      {"the target is read before finish", true, between(root_reads)},
      {"a cell of the source is written before finish", true, between([](Rig& r) { r.rma.writes(r.cell(2), second); })},
      {"a ghost, which does not move, is written before finish", false,
       between([](Rig& r) { r.rma.writes(r.cell(0), second); })},
      {"the target is read after finish", false,
       [=](Rig& r) {
         Redistribution gather(r.array, r.whole);
         gather.start(first);
         gather.finish();
         root_reads(r);
       }},
  });
}

TEST(ExchangeRaces, two_exchanges_at_once) {
  const auto two = [](bool same) {
    return [=](Rig& r) {
      Array<double> another(r.world, ring(r.world.size()));
      HaloExchange one({r.array}), two({same ? r.array : another});
      one.start(first);
      two.start(second);
      two.finish();
      one.finish();
    };
  };
  expect({{"of one array", true, two(true)}, {"of two arrays", false, two(false)}});
}

/// Rank 0 streams three frames to rank 1 through two buffers.
std::function<void(Rig&)> pipe(bool late) {
  return [=](Rig& r) {
    const auto on = [](Rank rank) {
      return ArraySpec{ElementType::f64, Distribution({cells}, Grid({1}, {.first = rank}), {tranship::whole()})};
    };
    Pipe pipe(r.world, on(0), on(1));
    for (int frame = 0; frame < 3; ++frame) {
      PipeEnd& end = r.world.rank() == 0 ? pipe.sender() : pipe.receiver();
      const PipeBuffer buffer = end.get();
      const std::span<const double> values(static_cast<const double*>(buffer.view.data), cells);
      if (!late && r.world.rank() == 1) r.rma.reads(values, second);
      end.put(first);
      if (late && r.world.rank() == 1) r.rma.reads(values, second);
    }
    if (r.world.rank() == 0) pipe.sender().drain();
  };
}

std::function<void(Rig&)> interfaces(bool early) {
  return [=](Rig& r) {
    const Distribution points({cells * r.world.size() + 1}, grid(r.world.size()), {block().with_interfaces()});
    Array<double> array(r.world, points);
    InterfaceExchange equal({array});
    const std::span<double> all(array.data(), std::size_t(array.extents()[0]));
    equal.start(first);
    if (early) r.rma.writes(all, second);
    equal.finish();
    if (!early) r.rma.writes(all, second);
  };
}

std::string message_of(const std::function<void(Rig&)>& program) {
  try {
    simulate({.ranks = 2, .seed = 1, .heap_bytes = std::size_t(1) << 18}, [&](World& world) {
      Rig rig(world);
      program(rig);
      world.barrier();
    });
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(ExchangeRaces, messages_name_the_array_and_the_call_that_is_missing) {
  const auto expect_says = [](const std::string& message, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
    EXPECT_EQ(message.find("0x"), std::string::npos) << message;
  };
  const auto write_second_cell = [](Rig& r, const Array<double>& array) {
    if (r.world.rank() == 1) r.rma.writes(std::span(array.data() + 1, 1), second);
  };
  expect_says(message_of([&](Rig& r) {
                const Array<double> u(r.world, ring(2), BufferOptions{.name = "u"});
                HaloExchange halo({u});
                halo.start(first);
                write_second_cell(r, u);
                halo.finish();
              }),
              {"bytes [8, 16) of array 'u' f64[8] @ 2 : block+overlap(1,1,toroidal) of rank 1", "finish() is missing"});
  std::vector<double> foreign(cells + 2);
  expect_says(message_of([&](Rig& r) {
                const Array<double> a(r.world, ring(2), foreign.data());
                HaloExchange halo({a});
                if (r.world.rank() == 1) {
                  halo.start(first);
                  write_second_cell(r, a);
                }
                r.world.barrier();
              }),
              {"bytes [8, 16) of array f64[8] @ 2", "finish() is missing"});
  expect_says(message_of(pipe(true)), {"of target 'pipe' f64[4] @", "a pipe by rank 1", "get() is missing"});
}

TEST(ExchangeRaces, adjoints_pipes_and_interfaces) {
  expect({
      {"an adjoint adds to a cell that is read", true,
       [](Rig& r) {
         HaloExchange back({r.array}, {}, HaloDirection::adjoint);
         back.start(first);
         r.rma.reads(r.cell(1), second);
         back.finish();
       }},
      {"the receiver of a pipe reads a buffer that it has put back", true, pipe(true)},
      {"the receiver of a pipe reads a buffer that it holds", false, pipe(false)},
      {"interfaces are written before finish", true, interfaces(true)},
      {"interfaces are written after finish", false, interfaces(false)},
      {"an adjoint and nothing else", false,
       [](Rig& r) {
         HaloExchange back({r.array}, {}, HaloDirection::adjoint);
         for (int i = 0; i < 3; ++i) back();
         r.rma.reads(r.cell(1), second);
       }},
  });
}

}  // namespace
}  // namespace tranship::test
