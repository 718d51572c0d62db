// Exchange against the plan interpreter: whatever a plan says, every schedule on real ranks and real memory must do, in
// every element type and memory layout, and touch nothing else.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <span>

#include <gtest/gtest.h>

#include <tranship/array/local_array.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/run/exchange.hpp>

#include "support/elements.hpp"
#include "support/error_of.hpp"
#include "support/oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/ranks.hpp"

namespace {
std::atomic<long> allocations = 0;
}

// Counts what the whole program allocates, so that a test can show that reuse allocates nothing.
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // the buffers of std::stable_sort
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size ? size : 1);
}
void* operator new(std::size_t size, std::align_val_t align) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace tranship::test::exchange_test {
namespace {

const std::vector<ElementType> linear_types = {ElementType::i8,  ElementType::u8,   ElementType::i16, ElementType::u32,
                                               ElementType::i64, ElementType::f32,  ElementType::f64, ElementType::f128,
                                               ElementType::c64, ElementType::c128, ElementType::c256};
const std::vector<ElementType> real_types = {ElementType::i8,  ElementType::u8,   ElementType::i16, ElementType::u16,
                                             ElementType::i32, ElementType::u32,  ElementType::i64, ElementType::u64,
                                             ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::f64,
                                             ElementType::f128};
const std::vector<ElementType> all_types = {ElementType::bool8, ElementType::i8,   ElementType::u16, ElementType::f16,
                                            ElementType::bf16,  ElementType::i32,  ElementType::f32, ElementType::u64,
                                            ElementType::f64,   ElementType::f128, ElementType::c64, ElementType::c128,
                                            ElementType::c256};

/// No zeros: a negated float zero has other bits. Factors are few, for products to be exact in every type.
Index value_for(Combine combine, Index number) {
  if (combine == Combine::product) return number % 11 == 0 ? 2 : number % 2 == 0 ? 1 : -1;
  return 1 + number * 37 % 61;
}

/// Threads, or simulated machines of so many ranks each.
struct Where {
  int ranks_per_host = 0;
  std::uint64_t seed = 0;

  void run(int ranks, const std::function<void(World&)>& f) const {
    if (ranks_per_host == 0) return launch(ranks, f);
    constexpr std::size_t heap_bytes = std::size_t(16) << 20;
    simulate({.ranks = ranks, .seed = seed, .ranks_per_host = ranks_per_host, .heap_bytes = heap_bytes}, f);
  }
};

/// Runs a plan in one schedule and compares every element with what the interpreter leaves there. Runs
/// twice, the second time on fresh values, so that reuse is tested as well.
std::string exchange_fault(const Plans& plans, const std::vector<ArraySpec>& specs, Schedule schedule, Combine combine,
                           Where where) {
  const int ranks = int(plans.size());
  std::vector<std::string> faults(ranks);
  const PlanInterpreter interpreter(plans);
  Memory first = memory_for(plans, 0);
  Index next = 1;
  for (auto& rank : first)
    for (auto& slot : rank)
      for (Index& value : slot) value = value_for(combine, next++);
  Memory second = first;
  for (auto& rank : second)
    for (auto& slot : rank)
      for (Index& value : slot) value = value_for(combine, next++);
  const std::vector<Memory> inputs = {first, second};
  std::vector<Memory> outputs = inputs;
  for (Memory& memory : outputs) interpreter.apply(memory);

  where.run(ranks, [&](World& world) {
    const Rank me = world.rank();
    std::vector<ArrayRef> arrays;
    std::vector<StridedView> views;
    for (const ArraySpec& spec : specs) {
      arrays.push_back(allocate_array(world, spec));
      views.push_back(arrays.back().view);
    }
    auto for_each_element = [&](int s, auto&& f) {
      Index i = 0;
      for_each_coordinate(views[s].extents, [&](const Indices& local) { f(local, i++); });
    };
    Exchange exchange(world, plans[me], views, {.schedule = schedule});
    for (std::size_t turn = 0; turn < inputs.size(); ++turn) {
      std::vector<std::vector<unsigned char>> guards;
      for (int s = 0; s < int(specs.size()); ++s) {
        // Everything is poisoned, then the elements get their values: what remains is padding.
        const Index bytes = specs[s].distribution.storage(me).elements * size_bytes(specs[s].type);
        if (bytes > 0) std::memset(arrays[s].memory.get(), 0xa5, bytes);
        for_each_element(s, [&](const Indices& local, Index i) {
          write_element(views[s], local, element_of(specs[s].type, inputs[turn][me][s][i]));
        });
      }
      world.barrier();
      exchange.start();
      exchange.finish();
      for (int s = 0; s < int(specs.size()); ++s) {
        for_each_element(s, [&](const Indices& local, Index i) {
          const ElementBytes expected = element_of(specs[s].type, outputs[turn][me][s][i]);
          if (faults[me].empty() && !has_element(views[s], local, expected))
            faults[me] = fmt::format("turn {} rank {} slot {} local [{}] differs from {}", turn, me, s,
                                     to_string(local), outputs[turn][me][s][i]);
          write_element(views[s], local, {});
        });
        // Without the elements only poison and zeros are left: count the zeros.
        const Storage storage = specs[s].distribution.storage(me);
        const Index bytes = storage.elements * size_bytes(specs[s].type);
        const std::span<const std::byte> all(static_cast<const std::byte*>(arrays[s].memory.get()), std::size_t(bytes));
        const Index zeros = count_bytes(all, 0), poison = count_bytes(all, 0xa5);
        const Index cells = bytes > 0 ? checked_product(storage.extents) * size_bytes(specs[s].type) : 0;
        if (faults[me].empty() && (zeros != cells || poison != bytes - cells))
          faults[me] = fmt::format("turn {} rank {} slot {}: {} padding bytes were written", turn, me, s,
                                   bytes - cells - poison);
      }
      world.barrier();
    }
  });
  for (const std::string& fault : faults)
    if (!fault.empty()) {
      std::string out = fault + fmt::format(" (schedule {}, {} ranks per host, seed {})", int(schedule),
                                            where.ranks_per_host, where.seed);
      for (const ArraySpec& spec : specs) out += "\n  " + to_text(spec);
      return out;
    }
  return "";
}

/// Memory of a program's own, of the extents and type of another view: dimensions in a random order, with gaps.
struct Elsewhere {
  std::vector<std::byte> memory;
  StridedView view;

  Elsewhere(const StridedView& like, Random& random) : view(like) {
    const Index unit = size_bytes(like.imaginary ? part_of(like.type) : like.type);
    std::vector<int> order;
    for (int d = 0; d < like.dims(); ++d) order.insert(order.begin() + random.between(0, d), d);
    Index elements = 1;
    for (const int d : order) {
      view.strides[d] = elements;
      elements *= like.extents[d] + random.between(0, 1);
    }
    memory.assign(std::size_t(elements * unit * (like.imaginary ? 2 : 1)), std::byte(0xa5));
    view.data = checked_product(like.extents) > 0 ? memory.data() : nullptr;
    view.imaginary = like.imaginary && view.data ? memory.data() + elements * unit : like.imaginary;
  }
};

/// Runs a plan several times with Sources::snapshot, each time on memory that has just been bound, while every rank
/// writes all its cells between start() and finish(); no rank waits for another one between two runs. What is received
/// must be what the interpreter says of the cells at start(); all else must be what was written last.
std::string snapshot_fault(const Plans& plans, const std::vector<ArraySpec>& specs, std::uint64_t seed, Where where) {
  const int ranks = int(plans.size()), turns = 3;
  std::vector<std::string> faults(ranks);
  const PlanInterpreter interpreter(plans);
  std::vector<Memory> inputs, outputs, written;
  Index next = 1;
  for (int turn = 0; turn < turns; ++turn)
    for (std::vector<Memory>* all : {&inputs, &written}) {
      all->push_back(memory_for(plans, 0));
      for (auto& rank : all->back())
        for (auto& slot : rank)
          for (Index& value : slot) value = value_for(Combine::sum, next++);
    }
  outputs = inputs;
  for (Memory& memory : outputs) interpreter.apply(memory);

  where.run(ranks, [&](World& world) {
    const Rank me = world.rank();
    Random random(seed * 100 + std::uint64_t(me));
    std::vector<StridedView> likes;
    std::vector<ArrayRef> arrays;  // whose strides are those of the set-up
    for (const ArraySpec& spec : specs) {
      arrays.push_back(allocate_array(world, spec));
      likes.push_back(arrays.back().view);
    }
    const bool is_bound = random.one_in(2);
    std::vector<StridedView> at_first = likes;
    for (StridedView& view : at_first)
      if (!is_bound && !view.imaginary) view.data = nullptr;
    Exchange exchange(world, plans[me], at_first, {.sources = Sources::snapshot});
    for (int turn = 0; turn < turns; ++turn) {
      std::vector<Elsewhere> held;
      std::vector<StridedView> views;
      for (const StridedView& like : likes) held.emplace_back(like, random);
      for (const Elsewhere& one : held) views.push_back(one.view);
      exchange.bind(views);
      const auto write = [&](const Memory& values) {
        for (int s = 0; s < int(specs.size()); ++s) {
          Index i = 0;
          for_each_coordinate(views[s].extents, [&](const Indices& local) {
            write_element(views[s], local, element_of(specs[s].type, values[me][s][i++]));
          });
        }
      };
      write(inputs[turn]);
      exchange.start();
      write(written[turn]);
      if (random.one_in(2)) (void)exchange.test();
      exchange.finish();
      for (int s = 0; s < int(specs.size()); ++s) {
        Index i = 0;
        for_each_coordinate(views[s].extents, [&](const Indices& local) {
          const bool is_received = interpreter.writes(me, s)[std::size_t(i)] > 0;
          const Index value = (is_received ? outputs : written)[turn][me][s][i++];
          if (faults[me].empty() && !has_element(views[s], local, element_of(specs[s].type, value)))
            faults[me] = fmt::format("turn {} rank {} slot {} local [{}], {}, differs from {}", turn, me, s,
                                     to_string(local), is_received ? "received" : "kept", value);
          write_element(views[s], local, {});
        });
        const std::span<const std::byte> all(held[std::size_t(s)].memory);
        const Index cells = views[s].data ? checked_product(views[s].extents) * size_bytes(specs[s].type) : 0;
        const Index poison = count_bytes(all, 0xa5);
        if (faults[me].empty() && poison != Index(all.size()) - cells)
          faults[me] = fmt::format("turn {} rank {} slot {}: {} padding bytes were written", turn, me, s,
                                   Index(all.size()) - cells - poison);
      }
    }
    world.barrier();
  });
  for (const std::string& fault : faults)
    if (!fault.empty()) {
      std::string out =
          fault + fmt::format(" (snapshot, {} ranks per host, seed {})", where.ranks_per_host, where.seed);
      for (const ArraySpec& spec : specs) out += "\n  " + to_text(spec);
      return out;
    }
  return "";
}

std::string fault_in_any_schedule(const Plans& plans, const std::vector<ArraySpec>& specs,
                                  Combine combine = Combine::sum) {
  for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged})
    if (std::string fault = exchange_fault(plans, specs, schedule, combine, {}); !fault.empty()) return fault;
  static std::uint64_t seed = 0;
  ++seed;
  const bool adds = plans[0].kind == PlanKind::halo_adjoint || plans[0].kind == PlanKind::redistribution_adjoint;
  if (!adds && seed % 2 == 0)
    if (std::string fault = snapshot_fault(plans, specs, seed, {}); !fault.empty()) return fault;
#if defined(TRANSHIP_TSAN)  // simulated ranks are one thread, and the sanitizer keeps a megabyte for each fiber that
                            // has ever run
  return "";
#endif
  // Where messages to some peers are posted, those to others still go as the schedule says.
  const int ranks_per_host = 1 + int(seed % plans.size());
  const Schedule schedule = seed % 2 ? Schedule::direct : Schedule::staged;
  if (!adds && seed % 3 == 0) return snapshot_fault(plans, specs, seed, {ranks_per_host, seed});
  return exchange_fault(plans, specs, schedule, combine, {ranks_per_host, seed});
}

/// Which way a random plan goes, and for which elements.
struct Operation {
  bool reverse = false;
  Combine combine = Combine::sum;

  const std::vector<ElementType>& types() const {
    return !reverse ? all_types : combine == Combine::sum ? linear_types : real_types;
  }
  TransferPlan of(TransferPlan plan) const { return reverse ? adjoint(plan, combine) : plan; }
};

Operation random_operation(Random& random) {
  return {random.one_in(2), random.pick<Combine>({Combine::sum, Combine::product, Combine::minimum, Combine::maximum})};
}

ArraySpec random_spec(Random& random, ElementType type, const Indices& extents, const LayoutChoices& choices) {
  Distribution d = random_distribution(random, extents, choices);
  if (is_complex(type) && random.one_in(2)) {
    MemoryLayout memory = d.memory();
    memory.parts = ComplexParts::split;
    std::vector<Partition> partitions;
    for (int k = 0; k < d.dims(); ++k) partitions.push_back(d.axis(k).partition());
    d = Distribution(d.extents(), d.grid(), std::move(partitions), memory);
  }
  return {type, std::move(d)};
}

TEST(Exchange, RedistributionsAndTheirAdjointsAgreeWithTheInterpreter) {
  EXPECT_EQ(first_fault(
                0.1,
                [](Index seed) {
                  Random random(seed);
                  const Operation operation = random_operation(random);
                  const ElementType type = random.pick(operation.types());
                  const Indices extents = random_extents(random, int(random.between(1, 3)));
                  const LayoutChoices choices;
                  std::vector<ArraySpec> specs;
                  if (random.one_in(4)) {
                    const Index parts = random.between(1, 4);
                    const ArraySpec indexed{
                        type, random_indexed(random, extents, int(random.between(1, extents.size())), parts, {})};
                    LayoutChoices plain = choices;
                    specs = {indexed,
                             {type, Distribution(extents, Grid(Indices::filled(extents.size(), 1)),
                                                 std::vector<Partition>(extents.size(), whole()))}};
                    if (random.one_in(2)) std::swap(specs[0], specs[1]);
                  } else {
                    specs = {random_spec(random, type, extents, choices), random_spec(random, type, extents, choices)};
                  }
                  Plans plans;
                  for (Rank r = 0; r < world_of(specs); ++r) {
                    TransferPlan plan = plan_redistribution(specs[0], specs[1], r);
                    plans.push_back(operation.of(std::move(plan)));
                  }
                  return fault_in_any_schedule(plans, specs, operation.combine);
                }),
            "");
}

// Blocks without a common factor in one dimension of two, of any type.
TEST(Exchange, LatticesAndTheirAdjointsAgreeWithTheInterpreter) {
  EXPECT_EQ(first_fault(0.03,
                        [](Index seed) {
                          Random random(seed);
                          const Operation operation = random_operation(random);
                          const ElementType type = random.pick(operation.types());
                          const Index a = random.pick<Index>({60, 97, 127}), b = random.pick<Index>({83, 101, 131});
                          const Index width = random.pick<Index>({0, 4});
                          const Index extent = random.between(13'000, 16'000), other = random.between(1, 3);
                          const bool first = random.one_in(2);
                          const auto spec_of = [&](Index parts, const Partition& cut) {
                            return ArraySpec{type,
                                             {first ? Indices{extent, other} : Indices{other, extent},
                                              first ? grid(parts, 1) : grid(1, parts),
                                              first ? std::vector{cut, whole()} : std::vector{whole(), cut}}};
                          };
                          const std::vector<ArraySpec> specs = {
                              spec_of(2, cyclic(a)),
                              spec_of(3, cyclic(b).with_overlap(width, 1, EdgePolicy::toroidal))};
                          Plans plans;
                          for (Rank r = 0; r < world_of(specs); ++r) {
                            const TransferPlan plan = plan_redistribution(specs[0], specs[1], r);
                            const AxisEntry& entry =
                                (plan.receives.empty() ? plan.sends : plan.receives).at(0).axes[first ? 0 : 1][0];
                            if (entry.lattices.empty()) return std::string("no lattice");
                            plans.push_back(operation.of(plan));
                          }
                          return fault_in_any_schedule(plans, specs, operation.combine);
                        }),
            "");
}

TEST(Exchange, ProductsOfTwoLatticesAgreeWithTheInterpreter) {
  const auto spec_of = [](Index parts, Index rows, Index columns) {
    return ArraySpec{
        ElementType::i32,
        {{800, 900}, grid(parts, parts), {cyclic(rows).with_overlap(1, 0), cyclic(columns).with_overlap(1, 0)}}};
  };
  const std::vector<ArraySpec> specs = {spec_of(1, 17, 19), spec_of(2, 23, 29)};
  Plans plans;
  for (Rank r = 0; r < 4; ++r) plans.push_back(plan_redistribution(specs[0], specs[1], r));
  for (const auto& axis : plans[0].receives[0].axes) ASSERT_FALSE(axis[0].lattices.empty());
  EXPECT_EQ(fault_in_any_schedule(plans, specs), "");
}

TEST(Exchange, HalosAndTheirAdjointsAgreeWithTheInterpreter) {
  EXPECT_EQ(first_fault(0.1,
                        [](Index seed) {
                          Random random(seed);
                          const Operation operation = random_operation(random);
                          LayoutChoices choices;
                          choices.replicas = false;
                          std::vector<ArraySpec> specs;
                          for (Index field = random.between(1, 3); field > 0; --field) {
                            const ElementType type = random.pick(operation.types());
                            const Indices extents = random_extents(random, int(random.between(1, 3)));
                            if (random.one_in(4)) {
                              specs.push_back({type, random_indexed(random, extents, 1, random.between(1, 4), {})});
                              continue;
                            }
                            ArraySpec spec = random_spec(random, type, extents, choices);
                            if (!spec.distribution.replicated()) specs.push_back(std::move(spec));
                          }
                          if (specs.empty()) return std::string();
                          Plans plans;
                          for (Rank r = 0; r < world_of(specs); ++r) {
                            TransferPlan plan = plan_halo(specs, r);
                            plans.push_back(operation.of(std::move(plan)));
                          }
                          return fault_in_any_schedule(plans, specs, operation.combine);
                        }),
            "");
}

TEST(Exchange, VectorsCrossTheEdgesOfACubeInEverySchedule) {
  const Tiling cube = cubed_sphere(4);
  std::vector<TiledField> fields(2);
  std::vector<ArraySpec> specs;
  for (TiledField& field : fields) {
    field.tile_dims = {0, 1};
    for (int t = 0; t < 6; ++t) {
      const Partition cells = block().with_overlap(2, 2, EdgePolicy::open);
      field.tiles.push_back(
          {ElementType::f64, Distribution({4, 4, 3}, Grid({2, 1, 1}, {.first = 2 * t}), {cells, cells, whole()})});
      specs.push_back(field.tiles.back());
    }
  }
  TiledHaloOptions options;
  options.vectors = {{{.field = 0, .along = 0}, {.field = 1, .along = 1}}};
  for (const bool reverse : {false, true}) {
    Plans plans;
    for (Rank r = 0; r < 12; ++r) {
      TransferPlan plan = plan_halo(cube, fields, r, options);
      plans.push_back(reverse ? adjoint(plan) : plan);
    }
    EXPECT_EQ(fault_in_any_schedule(plans, specs), "");
  }
}

TEST(Exchange, BoolsAreCombinedByOrAndAnd) {
  const ArraySpec spec{ElementType::bool8,
                       Distribution({4}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)})};
  for (const Combine combine : {Combine::sum, Combine::product, Combine::minimum, Combine::maximum}) {
    const bool is_or = combine == Combine::sum || combine == Combine::maximum;
    launch(2, [&](World& world) {
      const ArrayRef array = allocate_array(world, spec);
      bool* local = static_cast<bool*>(array.view.data);
      const std::vector<ArraySpec> fields = {spec};
      Exchange reverse(world, adjoint(plan_halo(fields, world.rank()), combine), {array.view});
      for (const bool owned : {false, true})
        for (const bool ghost : {false, true}) {
          for (const int i : {1, 2}) local[i] = owned;
          for (const int i : {0, 3}) local[i] = ghost;
          reverse();
          for (const int i : {1, 2}) EXPECT_EQ(local[i], is_or ? owned || ghost : owned && ghost);
          for (const int i : {0, 3}) EXPECT_EQ(local[i], !is_or);
        }
    });
  }
}

ArraySpec ring(Index cells, int ranks) {
  return {ElementType::f64, Distribution({cells}, grid(ranks), {block().with_overlap(1, 1, EdgePolicy::toroidal)})};
}

/// The ring's own cells, and the exchange of its ghosts between two ranks.
struct TwoRanks {
  explicit TwoRanks(World& world) : array(allocate_array(world, ring(8, 2))) {
    local = static_cast<double*>(array.view.data);
    for (int i = 0; i < 4; ++i) local[1 + i] = world.rank() * 4 + i;
    const std::vector<ArraySpec> fields = {ring(8, 2)};
    halo.emplace(world, plan_halo(fields, world.rank()), std::vector{array.view});
  }
  bool has_ghosts(Rank rank) const { return local[0] == (rank == 0 ? 7 : 3) && local[5] == (rank == 0 ? 4 : 0); }

  ArrayRef array;
  double* local = nullptr;
  std::optional<Exchange> halo;
};

TEST(Exchange, BytesArriveBeforeFinishOnceBothHaveStarted) {
  launch(2, [](World& world) {
    TwoRanks two(world);
    ASSERT_EQ(two.halo->schedule(), Schedule::direct);
    // One rank after the other starts; the second takes all before it returns from start(), the first when it looks.
    if (world.rank() == 1) world.barrier();
    two.halo->start();
    if (world.rank() == 0) world.barrier();
    world.barrier();
    if (world.rank() == 0) EXPECT_TRUE(two.halo->test());
    EXPECT_TRUE(two.has_ghosts(world.rank()));
    world.barrier();
    EXPECT_TRUE(two.halo->test());
    two.halo->finish();
  });
}

TEST(Exchange, ARankThatWaitsCopiesForOneThatHasStartedAndDoesNotLook) {
  launch(2, [](World& world) {
    TwoRanks two(world);
    two.halo->start();
    if (world.rank() == 1) two.halo->finish();
    world.barrier();  // rank 1 has come to its end, and rank 0 has not looked since it started
    EXPECT_TRUE(two.has_ghosts(world.rank()));
    two.halo->finish();
  });
}

/// Long messages are packed first in their first epoch at least, where samples are taken, and straight later or not.
TEST(Exchange, LongStagedMessagesArrive) {
  for (const Sources sources : {Sources::in_place, Sources::snapshot})
    launch(2, [&](World& world) {
      constexpr Index n = 100;
      ASSERT_GE(n * n * sizeof(double), 64 << 10);
      const auto both = block().with_overlap(1, 1, EdgePolicy::toroidal);
      const ArraySpec spec{ElementType::f64, Distribution({n, n, 8}, grid(1, 1, 2), {block(), block(), both})};
      const ArrayRef array = allocate_array(world, spec);
      double* const local = static_cast<double*>(array.view.data);
      const std::vector<ArraySpec> fields = {spec};
      Exchange halo(world, plan_halo(fields, world.rank()), {array.view},
                    {.schedule = Schedule::staged, .sources = sources});
      const auto value = [](Index row, Index cell, int epoch) { return double(1000 * epoch + 8 * row + cell); };
      for (int epoch = 0; epoch < 40; ++epoch) {
        const Index first = 4 * world.rank();
        for (Index row = 0; row < n * n; ++row)
          for (Index i = 0; i < 4; ++i) local[6 * row + 1 + i] = value(row, first + i, epoch);
        halo();
        Index wrong = 0;
        for (Index row = 0; row < n * n; ++row) {
          wrong += local[6 * row] != value(row, (first + 7) % 8, epoch);
          wrong += local[6 * row + 5] != value(row, (first + 4) % 8, epoch);
        }
        EXPECT_EQ(wrong, 0) << epoch;
        world.barrier();
      }
    });
}

TEST(Exchange, ReuseAllocatesNothing) {
  for (const ExchangeOptions& options : {ExchangeOptions{},
                                         {.schedule = Schedule::direct},
                                         {.schedule = Schedule::staged},
                                         {.sources = Sources::snapshot}})
    launch(4, [&](World& world) {
      const ArraySpec spec = ring(100, 4);
      const ArrayRef array = allocate_array(world, spec);
      const std::vector<ArraySpec> fields = {spec};
      Exchange halo(world, plan_halo(fields, world.rank()), {array.view}, options);
      halo();
      world.barrier();
      const long before = allocations.load();
      world.barrier();
      for (int i = 0; i < 100; ++i) halo();
      world.barrier();
      EXPECT_EQ(allocations.load(), before);
      world.barrier();
    });
}

TEST(Exchange, ArraysOfOneLayoutAreSetUpAsOne) {
  const Partition cells = block().with_overlap(1, 2, EdgePolicy::toroidal);
  const ArraySpec spec{ElementType::f64, Distribution({20, 20, 20}, grid(2, 2, 1), {cells, cells, cells})};
  for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged})
    launch(4, [&](World& world) {
      const std::vector<ArraySpec> fields = {spec};
      std::vector<ArrayRef> arrays;
      std::vector<ExchangeArray> one, all;
      for (int i = 0; i < 8; ++i) arrays.push_back(allocate_array(world, spec));
      for (const ArrayRef& array : arrays) all.push_back({.view = array.view});
      one = {all[0]};
      // What all ranks allocate to set up, by how often; the first time fills caches.
      const auto set_up = [&](const std::vector<ExchangeArray>& slot) {
        const TransferPlan plan = plan_halo(fields, world.rank());
        world.barrier();
        const long before = allocations.load();
        world.barrier();
        {
          const Exchange exchange(world, plan, {slot}, {.schedule = schedule});
          world.barrier();
        }
        world.barrier();
        const long after = allocations.load();
        world.barrier();
        return after - before;
      };
      set_up(one);
      const long of_one = set_up(one), of_all = set_up(all);
      EXPECT_LT(of_all, of_one + of_one / 4) << of_one;
    });
}

TEST(Exchange, RefusesWhatDoesNotFitOnEveryRank) {
  launch(2, [](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec);
    const TransferPlan plan = plan_halo(fields, world.rank());
    auto error = [&](TransferPlan p, std::vector<StridedView> views, ExchangeOptions options = {}) {
      return error_of([&] { Exchange(world, std::move(p), std::move(views), options); });
    };
    EXPECT_EQ(error(plan, {array.view}), "");
    EXPECT_NE(error(plan, {}).find("1 slot"), std::string::npos) << error(plan, {});
    EXPECT_NE(error(plan, {}).find("0"), std::string::npos);

    StridedView wrong = array.view;
    wrong.extents = {5};
    EXPECT_NE(error(plan, {wrong}).find("local extents [5], the plan [6]"), std::string::npos);
    wrong = array.view;
    wrong.type = ElementType::f32;
    EXPECT_NE(error(plan, {wrong}).find("elements f32, the plan f64"), std::string::npos);

    // Wrong on one rank only: both fail, and the world lives on.
    TransferPlan other = plan;
    if (world.rank() == 1) other.rank = 0;
    const std::string message = error(other, {array.view});
    EXPECT_NE(
        message.find(world.rank() == 1 ? "the plan belongs to rank 0, but rank 1 runs it" : "rank 1 cannot take part"),
        std::string::npos)
        << message;

    const ArraySpec two[] = {
        {ElementType::f64, ring(8, 2).distribution},
        {ElementType::f64, Distribution({8}, grid(2), {block().with_overlap(1, 1, EdgePolicy::replicate)})}};
    const std::vector<ArraySpec> differing = {two[world.rank()]};
    EXPECT_NE(error(plan_halo(differing, world.rank()), {array.view})
                  .find("mismatch: array 0 has f64[6] stored on rank 0 and rank 1, but of different layouts"),
              std::string::npos);
    EXPECT_NE(error(plan, {array.view}, {.schedule = world.rank() == 0 ? Schedule::direct : Schedule::staged})
                  .find("mismatch"),
              std::string::npos);

    const ArraySpec flags{ElementType::bool8, spec.distribution};
    const std::vector<ArraySpec> flag_fields = {flags};
    const ArrayRef flag_array = allocate_array(world, flags);
    TransferPlan negated = plan_halo(flag_fields, world.rank());
    for (auto* groups : {&negated.receives, &negated.sends})
      for (TransferGroup& group : *groups) group.map = ElementMap::negate;
    EXPECT_NE(error(negated, {flag_array.view}).find("bool8"), std::string::npos);

    Exchange halo(world, plan, {array.view});
    halo.start();
    EXPECT_NE(error_of([&] { halo.start(); }).find("exchange 1 is in flight"), std::string::npos);
    halo.finish();
    halo.finish();
  });
}

TEST(Exchange, ASnapshotIsRefusedWhereItCannotBeTaken) {
  launch(2, [](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec), other = allocate_array(world, spec);
    const TransferPlan plan = plan_halo(fields, world.rank());
    const auto error = [&](const TransferPlan& p, ExchangeOptions options) {
      options.sources = Sources::snapshot;
      return error_of([&] { Exchange(world, p, {array.view}, options); });
    };
    EXPECT_NE(error(adjoint(plan), {}).find("unsupported: a plan of kind halo_adjoint adds to cells"),
              std::string::npos);
    EXPECT_NE(error(plan, {.schedule = Schedule::direct}).find("is staged: schedule direct is not possible"),
              std::string::npos);
    EXPECT_NE(error(plan, {.halves = Halves::apart}).find("in halves"), std::string::npos);
    EXPECT_EQ(error(plan, {.schedule = Schedule::measured}), "");
    const Sources sources = world.rank() == 0 ? Sources::snapshot : Sources::in_place;
    const std::string differ = error_of([&] { Exchange(world, plan, {array.view}, {.sources = sources}); });
    EXPECT_NE(differ.find("mismatch: "), std::string::npos) << differ;
    EXPECT_NE(differ.find("takes a snapshot of what it sends"), std::string::npos) << differ;

    Exchange in_place(world, plan, {array.view});
    const StridedView views[] = {other.view};
    EXPECT_NE(error_of([&] { in_place.bind(views); }).find("bind() needs Sources::snapshot"), std::string::npos);

    StridedView nowhere = array.view;
    nowhere.data = nullptr;
    Exchange halo(world, plan, {nowhere}, {.sources = Sources::snapshot});
    EXPECT_NE(error_of([&] { halo.start(); }).find("array 0 of 6 elements has no memory"), std::string::npos);
    halo.bind(views);
    halo.start();
    EXPECT_NE(error_of([&] { halo.bind(views); }).find("exchange 1 is in flight"), std::string::npos);
    halo.finish();
    StridedView wrong = array.view;
    wrong.extents = {5};
    const StridedView wrongs[] = {wrong};
    EXPECT_NE(error_of([&] { halo.bind(wrongs); }).find("local extents [5], the plan [6]"), std::string::npos);
    wrong = array.view;
    wrong.strides = {0};
    const StridedView folded[] = {wrong};
    EXPECT_NE(error_of([&] { halo.bind(folded); }).find("share memory"), std::string::npos);
    EXPECT_NE(error_of([&] { halo.bind({}); }).find("0 arrays for an exchange of 1"), std::string::npos);
    EXPECT_NE(error_of([&] {
                const StridedView none[] = {nowhere};
                halo.bind(none);
              }).find("has no memory"),
              std::string::npos);
    static_cast<double*>(other.view.data)[1] = world.rank() + 1;
    halo();  // still with the array that was bound
    EXPECT_EQ(static_cast<double*>(other.view.data)[5], double(2 - world.rank()));
  });
}

TEST(Exchange, APlanThatNeedsMoreRanksIsRefused) {
  launch(2, [](World& world) {
    const ArraySpec spec = ring(9, 3);
    const std::vector<ArraySpec> fields = {spec};
    const TransferPlan plan = plan_halo(fields, world.rank());
    std::vector<double> memory(8);
    const StridedView view{memory.data(), ElementType::f64, spec.distribution.local_extents(world.rank()), {1}};
    const std::string message = error_of([&] { Exchange(world, plan, {view}); });
    EXPECT_NE(message.find("needs rank 2, the world has 2"), std::string::npos) << message;
  });
}

/// When rank 0 drops its exchange.
enum class Leaves { after_set_up, after_an_epoch, in_flight };

TEST(Exchange, WhoLeavesMakesThePeersFail) {
  for (const ExchangeOptions& options : {ExchangeOptions{},
                                         {.schedule = Schedule::direct},
                                         {.schedule = Schedule::staged},
                                         {.sources = Sources::snapshot}})
    for (const Leaves when : {Leaves::after_set_up, Leaves::after_an_epoch, Leaves::in_flight})
      launch({.ranks = 2, .timeout_ns = 20'000'000'000}, [&](World& world) {
        const ArraySpec spec = ring(8, 2);
        const std::vector<ArraySpec> fields = {spec};
        const ArrayRef array = allocate_array(world, spec);
        auto halo =
            std::make_unique<Exchange>(world, plan_halo(fields, world.rank()), std::vector{array.view}, options);
        if (when != Leaves::after_set_up) (*halo)();
        world.barrier();
        if (world.rank() == 0) {
          if (when == Leaves::in_flight) halo->start();
          halo.reset();
          world.barrier();
        } else {
          world.barrier();
          // What was packed before rank 0 left still arrives; the next epoch fails in any case.
          const std::string message = error_of([&] {
            (*halo)();
            (*halo)();
          });
          EXPECT_NE(message.find("peer_lost: rank 0 has left the exchange"), std::string::npos) << message;
          EXPECT_NE(error_of([&] { halo->test(); }).find("peer_lost: rank 0 has left"), std::string::npos);
        }
        world.barrier();
      });
}

const auto everywhere_by_each_schedule = ::testing::Combine(
    ::testing::Values(On::threads, On::processes, On::sim, On::messaged, On::hosts, On::apart, On::dealt),
    ::testing::Values(Schedule::direct, Schedule::staged));
std::string name_of_case(const ::testing::TestParamInfo<std::tuple<On, Schedule>>& info) {
  return fmt::format("{}_{}", name_of(std::get<0>(info.param)),
                     std::get<1>(info.param) == Schedule::direct ? "direct" : "staged");
}

class DroppedExchange : public ::testing::TestWithParam<std::tuple<On, Schedule>> {};
INSTANTIATE_TEST_SUITE_P(All, DroppedExchange, everywhere_by_each_schedule, name_of_case);

// The rank that drops its exchange goes on, so that nothing but the drop can tell the others.
TEST_P(DroppedExchange, ByAnExceptionThatIsCaughtIsToldToThePeers) {
  const auto [on, schedule] = GetParam();
  run_on(on, 3, [schedule = schedule](World& world) {
    const bool tests = schedule == Schedule::staged;
    const ArraySpec spec = ring(9, 3);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec);
    const std::int64_t timeout_ns = world.timeout_ns();
    try {
      Exchange halo(world, plan_halo(fields, world.rank()), {array.view}, {.schedule = schedule});
      halo();
      if (world.rank() == 0) {
        if (tests) halo.start();
        throw std::runtime_error("a fault that is caught");
      }
      world.set_timeout_ns(1'000'000'000);
      const Error error = error_of_rank([&] {
        // Its start may have been seen.
        for (int epoch = 0; epoch < 2; ++epoch) {
          halo.start();
          if (!tests) halo.finish();
          while (tests && !halo.test()) RealSync::pause();
        }
      });
      require_says(error, ErrorCode::peer_lost, {"rank 0 has left the exchange"});
    } catch (const std::runtime_error& fault) {
      if (world.rank() != 0) throw;
    }
    world.set_timeout_ns(timeout_ns);
    world.barrier();
  });
}

TEST(Exchange, WhatIsDoneStaysDoneWhenThePeerLeaves) {
  for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged})
    launch({.ranks = 2, .timeout_ns = 20'000'000'000}, [&](World& world) {
      const ArraySpec spec = ring(8, 2);
      const std::vector<ArraySpec> fields = {spec};
      const ArrayRef array = allocate_array(world, spec);
      double* local = static_cast<double*>(array.view.data);
      for (int i = 0; i < 4; ++i) local[1 + i] = world.rank() * 4 + i;
      auto halo = std::make_unique<Exchange>(world, plan_halo(fields, world.rank()), std::vector{array.view},
                                             ExchangeOptions{schedule});
      // Rank 1 starts; rank 0 does all its part and is gone; only then rank 1 looks again.
      if (world.rank() == 1) halo->start();
      world.barrier();
      if (world.rank() == 0) {
        (*halo)();
        halo.reset();
      }
      world.barrier();
      if (world.rank() == 1) halo->finish();
      EXPECT_EQ(local[0], world.rank() == 0 ? 7 : 3);
      EXPECT_EQ(local[5], world.rank() == 0 ? 4 : 0);
      world.barrier();
    });
}

TEST(Exchange, PlansThatDoNotBelongTogetherAreRefusedOnEveryRank) {
  for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged})
    launch(2, [&](World& world) {
      const ArraySpec spec = ring(8, 2);
      const std::vector<ArraySpec> fields = {spec};
      const ArrayRef array = allocate_array(world, spec);
      auto error = [&](TransferPlan plan) {
        return error_of([&] { Exchange(world, std::move(plan), {array.view}, {.schedule = schedule}); });
      };
      const TransferPlan whole = plan_halo(fields, world.rank());
      const TransferPlan left_only = plan_halo(fields, world.rank(), {.depth_low = {1}, .depth_high = {0}});
      EXPECT_EQ(error(left_only), "");
      // Rank 0 sends both its edges, rank 1 expects one of them; rank 1 sends one, rank 0 expects both.
      std::string message = error(world.rank() == 0 ? whole : left_only);
      EXPECT_NE(message.find("mismatch: "), std::string::npos) << message;
      EXPECT_NE(message.find(world.rank() == 0 ? "rank 0 sends 16 bytes to rank 1, which expects 8"
                                               : "rank 1 sends 8 bytes to rank 0, which expects 16"),
                std::string::npos)
          << message;
      // A message that nobody sends, and one that nobody expects.
      TransferPlan silent = whole, deaf = whole;
      silent.sends.clear();
      deaf.receives.clear();
      message = error(world.rank() == 0 ? silent : whole);
      EXPECT_NE(message.find("receive 2 messages and send 1"), std::string::npos) << message;
      message = error(world.rank() == 0 ? deaf : whole);
      EXPECT_NE(message.find(world.rank() == 1 ? "rank 1 sends 16 bytes to rank 0, which expects 0" : "mismatch"),
                std::string::npos)
          << message;
      EXPECT_EQ(error(whole), "");
    });
}

TEST(Exchange, OneArrayTwiceIsRefused) {
  launch(2, [](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec, spec};
    const ArrayRef array = allocate_array(world, spec);
    const std::string message = error_of([&] {
      Exchange(world, plan_halo(fields, world.rank()), {array.view, array.view});
    });
    EXPECT_NE(message.find("array 0 (0x"), std::string::npos) << message;
    EXPECT_NE(message.find("share memory, and the exchange writes both"), std::string::npos) << message;
  });
}

#if defined(TRANSHIP_SANITIZED)
constexpr bool impossible_sizes_end_the_program = true;
#else
constexpr bool impossible_sizes_end_the_program = false;
#endif

TEST(Exchange, ARankWithoutMemoryFailsOnEveryRank) {
  if (impossible_sizes_end_the_program) GTEST_SKIP() << "sanitizers end the program when memory cannot be had";
  launch(2, [](World& world) {
    // A petabyte from rank 0 to rank 1, of one number that is repeated: only the staging buffer would need memory.
    const Indices extents = {Index(1) << 50};
    double number = 0;
    std::vector<StridedView> views(2, {.data = nullptr, .type = ElementType::f64, .extents = {0}, .strides = {0}});
    views[world.rank()].data = &number;
    views[world.rank()].extents = extents;
    views[1].strides = {1};  // nobody gets as far as to write there
    const ArraySpec source{ElementType::f64, Distribution(extents, Grid({1}, {.first = 0}), {block()})};
    const ArraySpec target{ElementType::f64, Distribution(extents, Grid({1}, {.first = 1}), {block()})};
    const std::string message = error_of([&] {
      Exchange(world, plan_redistribution(source, target, world.rank()), views, {.schedule = Schedule::staged});
    });
    EXPECT_NE(message.find(world.rank() == 1 ? "no_memory: rank 1 cannot get " : "no_memory: rank 1 cannot take part"),
              std::string::npos)
        << message;
    world.barrier();
  });
}

TEST(Exchange, AFailingRankIsNamedToThoseThatWait) {
  for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged}) {
    std::string message;
    try {
      launch(3, [&](World& world) {
        const ArraySpec spec = ring(9, 3);
        const std::vector<ArraySpec> fields = {spec};
        const ArrayRef array = allocate_array(world, spec);
        Exchange halo(world, plan_halo(fields, world.rank()), {array.view}, {.schedule = schedule});
        halo();
        if (world.rank() == 1) throw Error(ErrorCode::io, "the disk is on fire");
        EXPECT_NE(error_of([&] { halo(); }).find("rank 1"), std::string::npos);
      });
    } catch (const Error& error) {
      message = error.what();
      EXPECT_EQ(error.rank, 1);
    }
    EXPECT_NE(message.find("the disk is on fire"), std::string::npos) << message;
  }
}

/// Holds up the rank that fails while it unwinds, until its right neighbour waits and has had many chances to look; or
/// has failed.
struct SlowUnwinding {
  World& world;
  Rank failing;
  ~SlowUnwinding() {
    if (world.rank() != failing) return;
    const Rank neighbour = (world.rank() + 1) % world.size();
    for (int chances = 1000; chances > 0 && !world.activity_of(neighbour).starts_with("failed");) {
      chances -= world.activity_of(neighbour) != "running";
      RealSync::yield();
    }
  }
};

TEST(Exchange, TheFirstFailureIsTheOneThatIsReported) {
  // The failing rank drops its exchange before its failure is known, and so do all that fail because of it.
  for (const Schedule schedule : {Schedule::automatic, Schedule::direct, Schedule::staged})
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::string message;
      try {
        launch(4, [&](World& world) {
          const ArraySpec spec = ring(9, 4);
          const std::vector<ArraySpec> fields = {spec};
          const ArrayRef array = allocate_array(world, spec);
          const SlowUnwinding slow{world, repeat % 4};
          Exchange halo(world, plan_halo(fields, world.rank()), {array.view}, {.schedule = schedule});
          halo();
          halo.start();
          if (world.rank() == repeat % 4) throw Error(ErrorCode::io, "the disk is on fire");
          halo.finish();
          halo();
        });
      } catch (const Error& error) {
        message = error.what();
        EXPECT_EQ(error.rank, repeat % 4);
      }
      EXPECT_EQ(message, "the disk is on fire");
    }
}

TEST(Exchange, ADeadlineNamesWhoIsMissing) {
  launch(2, [&](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec);
    Exchange halo(world, plan_halo(fields, world.rank()), {array.view});
    if (world.rank() == 0) {
      world.set_timeout_ns(50'000'000);
      const std::string message = error_of([&] { halo(); });
      EXPECT_NE(message.find("timeout"), std::string::npos) << message;
      EXPECT_NE(message.find("exchange"), std::string::npos) << message;
      EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
      world.set_timeout_ns(default_timeout_ns());
    }
    world.barrier();
  });
}

class TestedExchange : public ::testing::TestWithParam<std::tuple<On, Schedule>> {};
INSTANTIATE_TEST_SUITE_P(All, TestedExchange, everywhere_by_each_schedule, name_of_case);

TEST_P(TestedExchange, EndsAtTheDeadline) {
  const auto [on, schedule] = GetParam();
  const bool polls_itself = on == On::threads || on == On::processes;  // else the context does
  const auto program = [schedule = schedule, polls_itself](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec), another = allocate_array(world, spec);
    Exchange one(world, plan_halo(fields, world.rank()), {array.view}, {.schedule = schedule});
    Exchange other(world, plan_halo(fields, world.rank()), {another.view}, {.schedule = schedule});
    const auto times_out = [&](int line, auto&& test) {
      world.set_timeout_ns(20'000'000);
      const Error error = error_of_rank([&] {
        while (!test()) RealSync::pause();
      });
      require_says(error, ErrorCode::timeout, {"has seen nothing new for "});
      if (polls_itself)
        require_says(error, ErrorCode::timeout, {fmt::format("from exchange_test.cpp:{})", line).c_str()});
      world.set_timeout_ns(20'000'000'000);
      world.barrier();  // the exchanges stay until both ranks are here
    };
    one();
    // Each tests what the other has not started; then one of them tests both.
    Exchange& mine = world.rank() == 0 ? one : other;
    mine.start();
    times_out(__LINE__, [&] { return mine.test(); });
    if (world.rank() == 0) {
      other.start();
      other.finish();
      other.start();
      times_out(__LINE__, [&] { return one.test() || other.test(); });
    } else {
      other.finish();
      world.barrier();
    }
  };
  run_once(on, {.ranks = 2}, 1, program);
}

TEST_P(TestedExchange, EndsWhenAPeerIsKilled) {
  const auto [on, schedule] = GetParam();
  if (on != On::processes) GTEST_SKIP() << "ranks that are no processes cannot be killed";
  const auto program = [schedule = schedule](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec);
    Exchange halo(world, plan_halo(fields, world.rank()), {array.view}, {.schedule = schedule});
    halo();
    if (world.rank() == 1) std::raise(SIGKILL);
    world.set_timeout_ns(INT64_MAX);
    halo.start();
    while (!halo.test()) RealSync::pause();
  };
  // A rank that does not end would be named.
  const std::string message = error_of([&] { launch_processes({.ranks = 2, .grace_ns = 5'000'000'000}, program); });
  EXPECT_NE(message.find("was killed by signal 9"), std::string::npos) << message;
  EXPECT_EQ(message.find("not ended"), std::string::npos) << message;
}

TEST(Exchange, ManyRanksOnFewCores) {
  launch(64, [](World& world) {
    const ArraySpec spec = ring(1000, 64);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec);
    double* local = static_cast<double*>(array.view.data);
    const Index cells = array.view.extents[0] - 2;
    Exchange halo(world, plan_halo(fields, world.rank()), {array.view});
    for (int turn = 0; turn < 20; ++turn) {
      for (Index i = 0; i < cells; ++i) local[1 + i] = 1000 * turn + double(world.rank());
      halo();
      EXPECT_EQ(local[0], 1000 * turn + (world.rank() + 63) % 64);
      EXPECT_EQ(local[cells + 1], 1000 * turn + (world.rank() + 1) % 64);
    }
  });
}

TEST(Exchange, ExplainSaysHowAndHowMuch) {
  launch(2, [](World& world) {
    const ArraySpec spec = ring(8, 2);
    const std::vector<ArraySpec> fields = {spec};
    const ArrayRef array = allocate_array(world, spec);
    Exchange halo(world, plan_halo(fields, world.rank()), {array.view});
    const std::string text = halo.explain();
    EXPECT_NE(text.find("schedule: direct"), std::string::npos) << text;
    EXPECT_NE(text.find("from rank " + std::to_string(1 - world.rank()) + ", direct: 16 bytes in 2 moves"),
              std::string::npos)
        << text;
  });
}

}  // namespace
}  // namespace tranship::test::exchange_test
