// A simulation sees what exchanges read and write as accesses of their rank, from start() to finish(), by cells: each
// wrong program is found under every seed, with both of its places, and stands beside the right one.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
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
      {"the owned cells are filled", true,
       during_halo([](Rig& r) { r.array.fill_owned([](const Indices&) { return 1.0; }, second); })},
      {"all cells are looked at", true,
       during_halo([](Rig& r) { (void)r.array.count_wrong([](const Indices&) { return 0.0; }, second); })},
      {"the owned cells are filled after finish", false, after_halo([](Rig& r) {
         r.array.fill_owned([](const Indices&) { return 1.0; }, second);
         (void)r.array.count_wrong([](const Indices&) { return 0.0; }, second);
       })},
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

/// A cell of one of two arrays.
struct Place {
  int array = -1;
  Rank rank = 0;
  Index cell = 0;
};

/// An exchange of one array, or of two, and which of their cells it reads and writes: by what depends on the cells, and
/// by what a simulation says where they are accessed between start() and finish().
class Probed {
 public:
  Probed(std::string name, int ranks, Distribution from, std::optional<Distribution> to = std::nullopt)
      : name_(std::move(name)), ranks_(ranks), from_(std::move(from)), to_(std::move(to)) {}

  std::string faults() const {
    const Cells before = values(nothing);
    std::string out;
    for (int array = 0; array < (to_ ? 2 : 1); ++array)
      for (Rank rank = 0; rank < ranks_; ++rank)
        for (Index i = 0; i < Index(before[std::size_t(array)][std::size_t(rank)].size()); ++i) {
          const Place place{array, rank, i};
          const double left = at(before, place);
          const bool is_written = left != initial(place);
          const bool is_read = values(place) != with_change(before, place, is_written);
          out += fault(place, Touch::loads, is_written);
          out += fault(place, Touch::stores, is_written || is_read);
        }
    return out;
  }

 private:
  static constexpr Place nothing{};
  using Cells = std::array<std::vector<std::vector<double>>, 2>;  // by array and rank
  static double& at(Cells& cells, const Place& p) {
    return cells[std::size_t(p.array)][std::size_t(p.rank)][std::size_t(p.cell)];
  }
  static double at(const Cells& cells, const Place& p) { return at(const_cast<Cells&>(cells), p); }
  static double initial(const Place& p) { return 1000 * p.array + 100 * p.rank + double(p.cell) + 0.5; }
  /// What is left where the changed cell is not read: itself, unless it is written.
  static Cells with_change(Cells before, const Place& changed, bool is_written) {
    if (!is_written) at(before, changed) = -1;
    return before;
  }

  template <class Between>
  Cells run(const Place& changed, Between&& between) const {
    Cells out;
    for (auto& cells : out) cells.resize(std::size_t(ranks_));
    simulate({.ranks = ranks_, .heap_bytes = std::size_t(1) << 18}, [&](World& world) {
      const Rank me = world.rank();
      std::vector<Array<double>> arrays{Array<double>(world, from_)};
      if (to_) arrays.emplace_back(world, *to_);
      for (int a = 0; a < int(arrays.size()); ++a) {
        const std::span<double> cells = cells_of(arrays[std::size_t(a)]);
        for (Index i = 0; i < Index(cells.size()); ++i)
          cells[std::size_t(i)] =
              changed.array == a && changed.rank == me && changed.cell == i ? -1 : initial({a, me, i});
      }
      const auto exchange = to_ ? std::unique_ptr<ArrayExchange>(new Redistribution(arrays[0], arrays[1]))
                                : std::unique_ptr<ArrayExchange>(new HaloExchange({arrays[0]}));
      exchange->start(first);
      between(world, arrays);
      exchange->finish();
      for (std::size_t a = 0; a < arrays.size(); ++a) {
        const std::span<double> cells = cells_of(arrays[a]);
        out[a][std::size_t(me)].assign(cells.begin(), cells.end());
      }
    });
    return out;
  }
  static std::span<double> cells_of(const Array<double>& array) {
    return {array.data(), std::size_t(array.extents()[0])};
  }
  Cells values(const Place& changed) const {
    return run(changed, [](World&, const std::vector<Array<double>>&) {});
  }
  std::string fault(const Place& place, Touch touch, bool is_race) const {
    bool found = false;
    try {
      run(nothing, [&](World& world, const std::vector<Array<double>>& arrays) {
        if (world.rank() != place.rank) return;
        const std::span<double> cell = cells_of(arrays[std::size_t(place.array)]).subspan(std::size_t(place.cell), 1);
        touch == Touch::loads ? world.context().reads(cell, second) : world.context().writes(cell, second);
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::race) throw;
      found = true;
    }
    if (found == is_race) return "";
    return fmt::format("{}: array {}, rank {}, cell {} is {}: {}\n", name_, place.array, place.rank, place.cell,
                       touch == Touch::loads ? "read" : "written", found ? "accused" : "not found");
  }

  std::string name_;
  int ranks_;
  Distribution from_;
  std::optional<Distribution> to_;
};

TEST(ExchangeRaces, are_those_of_the_cells_that_move_whatever_the_layout) {
  const auto indexed = [](std::vector<IndexedPart> parts) {
    return Distribution::indexed({6}, 1, grid(2), std::move(parts));
  };
  const Distribution halves({6}, grid(2), {block()});
  const Distribution listed = indexed({{.owned = {0, 3, 5}, .ghosts = {4}}, {.owned = {1, 2, 4}, .ghosts = {0, 5}}});
  const Distribution on_one = indexed({{.owned = {5, 0, 1, 4, 2, 3}}, {}});
  const Distribution root({6}, grid(1), {whole()});
  const Probed all[] = {
      {"a halo", 2, Distribution({6}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)})},
      {"a halo of lists", 2, listed},
      {"blocks to cyclic", 2, halves, Distribution({6}, grid(2), {cyclic(1)})},
      {"blocks to lists", 2, halves, listed},
      {"lists to blocks", 2, listed, halves},
      {"lists to lists", 2, listed, on_one},
      {"lists of one rank to lists", 2, on_one, listed},
      {"lists to one rank", 2, listed, root},
      {"one rank to lists", 2, root, listed},
  };
  std::string faults;
  for (const Probed& one : all) faults += one.faults();
  EXPECT_EQ(faults, "");
}

}  // namespace
}  // namespace tranship::test
