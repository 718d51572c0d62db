// What every back-end promises of symmetric memory, one-sided transfers, signals, atomics, waits and teams: the same
// programs on each of them, at many numbers of ranks, most of them larger than the machine.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/pages.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/paired_copy.hpp>

#include "support/job.hpp"
#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

using ::testing::Combine;
using ::testing::Values;

class Contract : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Contract,
                         Combine(Values(On::threads, On::sim, On::messaged, On::hosts), Values(1, 2, 3, 4, 8, 16)),
                         OnRanks::name);
// Real hosts, which need two ranks at least.
INSTANTIATE_TEST_SUITE_P(OnApart, Contract,
                         Combine(Values(On::apart, On::dealt), ::testing::ValuesIn(sizes_apart({2, 4, 5}))),
                         OnRanks::name);
// A process has a shadow of its memory under a sanitizer, which is made with it: what many of them cost.
INSTANTIATE_TEST_SUITE_P(OnProcesses, Contract,
                         Combine(Values(On::processes), ::testing::ValuesIn(sizes_up_to(4, {1, 2, 3, 4, 8, 16}))),
                         OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnListed, Contract,
                         Combine(Values(On::listed, On::listed_messaged, On::listed_hosts), Values(5)), OnRanks::name);
INSTANTIATE_TEST_SUITE_P(OnSub, Contract, Combine(Values(On::sub, On::sub_messaged, On::sub_hosts), Values(1, 2, 5)),
                         OnRanks::name);

Rank next_of(const World& world) {
  return (world.rank() + 1) % world.size();
}
Rank before(const World& world) {
  return (world.rank() + world.size() - 1) % world.size();
}

bool rma_is_direct(World& world) {
  return world.context().completes_at_once();
}

// The heap.

TEST_P(Contract, few_bytes_at_steps_are_no_word) {
  run([](World& world) {
    const auto cells = world.allocate<std::uint8_t>(64);
    const std::uint8_t mine[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (const Index count : {2, 4, 8})
      for (const Index step : {-4, 3}) {
        std::fill_n(cells.local(), 64, std::uint8_t(0));
        world.barrier();
        const Index first = step < 0 ? 48 : 8;
        world.context().put(
            StridedView{.data = cells.local() + first, .type = ElementType::u8, .extents = {count}, .strides = {step}},
            StridedView{
                .data = const_cast<std::uint8_t*>(mine), .type = ElementType::u8, .extents = {count}, .strides = {1}},
            (world.rank() + 1) % world.size());
        world.barrier();
        for (Index at = 0; at < 64; ++at) {
          const Index i = (at - first) / step;
          const int expected = (at - first) % step == 0 && i >= 0 && i < count ? int(i + 1) : 0;
          require(cells[at] == expected, "{} bytes at steps of {}: byte {} is {}, not {}", count, step, at,
                  int(cells[at]), expected);
        }
        world.barrier();
      }
  });
}

TEST_P(Contract, allocations_are_zeroed_aligned_and_at_one_place) {
  run([](World& world) {
    const auto a = world.allocate<double>(100);
    const auto b = world.allocate<std::uint8_t>(3);
    const auto c = world.allocate<float>(5, {.bytes = 4096});
    require(a.size() == 100 && b.size() == 3 && c.size() == 5, "sizes");
    require(std::all_of(a.local(), a.local() + 100, [](double x) { return x == 0; }), "zeros");
    require(reinterpret_cast<std::uintptr_t>(a.local()) % 64 == 0, "alignment");
    require(reinterpret_cast<std::uintptr_t>(b.local()) % 64 == 0, "alignment");
    require(reinterpret_cast<std::uintptr_t>(c.local()) % 4096 == 0, "alignment of 4096");
    const HeapPlace& heap = world.heap().place();
    const std::byte* own = heap.own;
    const std::ptrdiff_t offset = reinterpret_cast<std::byte*>(c.local()) - own;
    for (const std::ptrdiff_t theirs : world.all_gather(offset)) require(theirs == offset, "{} {}", theirs, offset);
  });
}

TEST_P(Contract, allocations_are_aligned_as_was_asked_for_on_every_rank) {
  run_on(on(), {.ranks = ranks(), .heap_bytes = std::size_t(64) << 20}, [](World& world) {
    constexpr std::size_t bytes_max = std::size_t(2) << 20;
    SplitMix64 random(17);
    std::vector<SymmetricArray<char>> held;
    for (std::size_t bytes = 1; bytes <= bytes_max; bytes *= 2) {
      held.push_back(world.allocate<char>(Index(1 + random.below(3000))));
      const auto aligned = world.allocate<char>(Index(1 + random.below(3000)), {.bytes = bytes});
      require(reinterpret_cast<std::uintptr_t>(aligned.local()) % std::max<std::size_t>(64, bytes) == 0,
              "{} is no multiple of {}", static_cast<const void*>(aligned.local()), bytes);
      const Index offset = reinterpret_cast<std::byte*>(aligned.local()) - world.heap().place().own;
      for (const Index theirs : world.all_gather(offset)) require(theirs == offset, "{} {}", theirs, offset);
    }
    // A world in a part of the heap that begins anywhere.
    for (const std::size_t heap_bytes : {3 * page_bytes(), std::size_t(3) << 20, std::size_t(7) << 20}) {
      const SubWorld sub(world.team(), {.heap_bytes = heap_bytes});
      for (std::size_t bytes = 64; bytes <= heap_bytes / 4; bytes *= 2) {
        const auto aligned = sub.world().allocate<char>(1, {.bytes = bytes});
        require(reinterpret_cast<std::uintptr_t>(aligned.local()) % bytes == 0, "{} is no multiple of {}",
                static_cast<const void*>(aligned.local()), bytes);
      }
    }
    for (const std::size_t bytes : {2 * bytes_max, std::size_t(1) << 40, std::size_t(1) << 63})
      require_says(error_of_rank([&] { world.allocate<char>(1, {.bytes = bytes}); }), ErrorCode::invalid_use,
                   {"an alignment of ", " is too large: symmetric heaps are aligned to 2097152"});
    require(error_of_rank([&] { world.allocate<char>(1, {.bytes = 96}); }).code() == ErrorCode::invalid_use, "96");
  });
}

TEST_P(Contract, more_elements_than_there_can_be_are_refused_with_the_reason) {
  run([](World& world) {
    require_says(error_of_rank([&] { world.allocate<double>(Index(1) << 61); }), ErrorCode::invalid_use,
                 {"2305843009213693952 symmetric elements of 8 bytes are more than the 9223372036854775807 bytes"});
    require_says(error_of_rank([&] { world.allocate<double>(-3); }), ErrorCode::invalid_use,
                 {"-3 symmetric elements of 8 bytes: a count is at least 0"});
  });
}

TEST_P(Contract, memory_that_all_released_is_used_again_and_zeroed) {
  run([](World& world) {
    const HeapUsage empty = world.heap_usage();
    double* first = nullptr;
    {
      auto a = world.allocate<double>(1000);
      first = a.local();
      std::fill_n(a.local(), 1000, 7.0);
      // Rank 0 keeps it longer than the others.
      if (world.rank() != 0) a = {};
      const auto b = world.allocate<double>(1000);
      require(b.local() != first, "it is still held by rank 0");
    }
    const auto c = world.allocate<double>(1000);
    require(c.local() == first, "not used again");
    require(std::all_of(c.local(), c.local() + 1000, [](double x) { return x == 0; }), "not zeroed");
    require(world.heap_usage().blocks == empty.blocks + 1, "blocks {}", world.heap_usage().blocks);
    require(world.heap_usage().used_bytes == empty.used_bytes + 8000, "bytes {}", world.heap_usage().used_bytes);
  });
}

TEST_P(Contract, as_many_blocks_as_may_be_are_free_at_the_next_allocation) {
  run([](World& world) {
    const HeapUsage empty = world.heap_usage();
    for (const int count : {28, 29, 30, 200}) {
      std::vector<SymmetricArray<int>> many;
      for (int i = 0; i < count; ++i) many.push_back(world.allocate<int>(16));
      const auto kept = world.rank() == 0 ? std::move(many[0]) : SymmetricArray<int>();
      many.clear();
      const auto next = world.allocate<int>(16);
      require(world.heap_usage().blocks == empty.blocks + 2, "{} of {}", world.heap_usage().blocks, count);
    }
  });
}

TEST_P(Contract, freeing_is_collective_and_at_once) {
  run([](World& world) {
    auto a = world.allocate<int>(16);
    const int* const at = a.local();
    const std::size_t used = world.heap_usage().used_bytes;
    world.free(std::move(a));
    require(world.heap_usage().used_bytes == used - 64, "used {}", world.heap_usage().used_bytes);
    auto b = world.allocate<int>(16);
    require(b.local() == at, "not used again");
    world.free(std::move(b));
    world.free(SymmetricArray<int>());  // of nothing
  });
}

TEST_P(Contract, nothing_can_be_allocated) {
  run([](World& world) {
    auto none = world.allocate<double>(0);
    require(none.size() == 0 && none.local() == nullptr && !none, "nothing");
    Context& rma = world.context();
    rma.put(none, {}, next_of(world));
    std::vector<double> empty;
    rma.get(empty, none, next_of(world));
  });
}

TEST_P(Contract, a_full_heap_fails_alike_on_every_rank_and_can_be_used_on) {
  run_on(on(), {.ranks = ranks(), .heap_bytes = std::size_t(4) << 20}, [](World& world) {
    const Error full = error_of_rank([&] { world.allocate<double>(Index(1) << 30); });
    require_says(full, ErrorCode::no_memory, {"symmetric heap of 4194304 bytes", "8589934592", "TRANSHIP_HEAP"});
    std::vector<SymmetricArray<char>> many;
    for (int i = 0; i < 3; ++i) many.push_back(world.allocate<char>(Index(5) << 18));
    require_says(error_of_rank([&] { world.allocate<char>(Index(5) << 18); }), ErrorCode::no_memory, {"in one piece"});
    many.erase(many.begin() + 1);
    const auto again = world.allocate<char>(Index(5) << 18);
    require(bool(again), "there is room again");
  });
}

/// Pages of the program's own.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : count_(count * page_bytes() / sizeof(Index)),
        data_(static_cast<Index*>(std::aligned_alloc(page_bytes(), count * page_bytes()))) {
    std::fill_n(data_.get(), count_, 0);
  }
  std::span<Index> span() const { return {data_.get(), count_}; }

 private:
  struct Free {
    void operator()(Index* data) const { std::free(data); }
  };
  std::size_t count_;
  std::unique_ptr<Index, Free> data_;
};

TEST_P(Contract, memory_of_the_program_can_be_registered) {
  run([](World& world) {
    Context& rma = world.context();
    const Pages pages(3);
    const std::span<Index> mine = pages.span();
    std::iota(mine.begin(), mine.end(), 1000 * world.rank());
    const std::size_t used = world.heap_usage().used_bytes;
    {
      const RegisteredMemory registered = world.register_memory(mine);
      require(registered.size_bytes() == mine.size_bytes(), "{} bytes", registered.size_bytes());
      require(mine[5] == 1000 * world.rank() + 5, "what it held: {}", mine[5]);
      const Symmetric<Index> seven = registered.symmetric(&mine[7]);
      const Symmetric<Index> last = registered.symmetric(&mine[mine.size() - 2], 2);
      require(rma.g(seven, next_of(world)) == 1000 * next_of(world) + 7, "what a peer held");
      world.barrier();
      const std::array<Index, 2> values = {world.rank(), -world.rank()};
      rma.put(last, values, next_of(world));
      world.barrier();
      require(mine[mine.size() - 2] == before(world) && mine.back() == -before(world), "{} was put", mine.back());
      mine[7] = -7;
      require(seven[0] == -7, "two addresses of one memory");
      world.barrier();
      require(error_of_rank([&] { registered.symmetric(&mine[mine.size() - 1], 2); }).code() == ErrorCode::invalid_use,
              "behind its end");
    }
    require(mine[7] == -7 && mine.back() == -before(world), "its values stay");
    const auto next = world.allocate<Index>(Index(mine.size()), {.bytes = page_bytes()});
    require(std::all_of(next.local(), next.local() + next.size(), [](Index x) { return x == 0; }), "zeros");
    std::fill_n(next.local(), next.size(), 1);
    require(mine[7] == -7, "its pages are its own again");
    require(world.heap_usage().used_bytes == used + mine.size_bytes(), "the place is used again");
    require(world.register_memory(std::span<Index>()).size_bytes() == 0, "nothing");
  });
}

TEST_P(Contract, only_whole_pages_are_registered_and_as_many_on_every_rank) {
  run([](World& world) {
    const Pages pages(2);
    const auto odd = world.rank() == world.size() - 1 ? pages.span().subspan(1) : pages.span().first(511);
    const std::span<Index> first_half = odd.first(pages.span().size() / 4);
    const Error error = error_of_rank([&] { world.register_memory(first_half); });
    require_says(error, ErrorCode::invalid_use, {"must be multiples of the page size"});
    require_says(error_of_rank([&] {
                   const auto block =
                       world.allocate<Index>(Index(page_bytes() / sizeof(Index)), {.bytes = page_bytes()});
                   world.register_memory(block.span());
                 }),
                 ErrorCode::invalid_use, {": they lie in the "});
    const RegisteredMemory registered = world.register_memory(pages.span());
    require_says(error_of_rank([&] { world.register_memory(pages.span().subspan(page_bytes() / sizeof(Index))); }),
                 ErrorCode::invalid_use, {"that are registered already"});
    if (world.size() > 1) {
      const auto few = pages.span().first(page_bytes() / sizeof(Index));
      require_says(error_of_rank([&] { world.register_memory(world.rank() == 0 ? few : pages.span()); }),
                   ErrorCode::mismatch, {"register_memory of"});
    }
  });
}

// A transfer to the rank itself reads all of its source before it writes its target.

/// What memory holds after `count` elements have gone from element `from` to element `to` of it.
std::vector<std::uint16_t> moved(std::vector<std::uint16_t> values, std::size_t from, std::size_t to,
                                 std::size_t count) {
  const std::vector<std::uint16_t> before = values;
  std::copy_n(before.begin() + long(from), count, values.begin() + long(to));
  return values;
}

TEST_P(Contract, transfers_to_self_that_overlap_are_moves) {
  run_once(on(), {.ranks = ranks()}, 1, [](World& world) {
    Context& rma = world.context();
    const Rank me = world.rank();
    const auto signal = world.allocate<std::uint64_t>(1);
    const Pages pages(4);
    const RegisteredMemory registered = world.register_memory(pages.span());
    auto* const of_program = reinterpret_cast<std::uint16_t*>(pages.span().data());
    constexpr Index room = 4096;
    const auto block = world.allocate<std::uint16_t>(room);
    const auto in_pages = registered.symmetric(of_program, room);
    SplitMix64 random(std::uint64_t(me) + 5);
    // The second memory has two addresses: the source is given by the one, the target by the other.
    for (const bool has_two : {false, true}) {
      const Symmetric<std::uint16_t> all = has_two ? in_pages : Symmetric<std::uint16_t>(block);
      std::uint16_t* const own = has_two ? of_program : block.local();
      std::vector<std::uint16_t> expected(room);
      std::iota(expected.begin(), expected.end(), std::uint16_t(0));
      std::copy(expected.begin(), expected.end(), own);
      for (int i = 0; i < 300; ++i) {
        const std::size_t count = i < 100 ? std::size_t(i) : 1 + random.below(i < 200 ? 200 : 3000);
        const std::size_t from = random.below(room - count), reach = std::min<std::size_t>(count, room - count - from);
        const std::size_t to =
            random.below(2) == 0 ? from + random.below(reach + 1) : from - random.below(std::min(from, count) + 1);
        const std::span<std::uint16_t> here(own + (i % 6 < 4 ? from : to), count);
        const Symmetric<std::uint16_t> named = all.slice(Index(i % 6 < 4 ? to : from), Index(count));
        rma.writes(all);
        if (i % 6 == 0) rma.put(named, here, me);
        if (i % 6 == 1) rma.put_nbi(named, here, me);
        if (i % 6 == 2) rma.put_signal(named, here, signal, 1, SignalOp::add, me);
        if (i % 6 == 3) rma.put_signal_nbi(named, here, signal, 1, SignalOp::add, me);
        if (i % 6 == 4) rma.get(here, named, me);
        if (i % 6 == 5) rma.get_nbi(here, named, me);
        rma.quiet();
        expected = moved(std::move(expected), from, to, count);
        require(std::equal(expected.begin(), expected.end(), own), "{} elements from {} to {}, call {}", count, from,
                to, i % 6);
      }
    }
    // Rows and columns: every place of the target gets what its place of the source held before.
    for (int i = 0; i < 100; ++i) {
      const Index rows = 1 + Index(random.below(8)), columns = 1 + Index(random.below(8)), pitch = 32;
      const Index from = Index(random.below(1000)), to = from + Index(random.below(64)) - 32 * (from >= 32);
      const bool turns = random.below(2) == 0, has_two = random.below(2) == 0;
      std::uint16_t* const own = has_two ? of_program : block.local();
      std::uint16_t* const named = has_two ? in_pages.local() : block.local();
      std::vector<std::uint16_t> expected(own, own + room);
      for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < columns; ++c)
          expected[std::size_t(to + r * pitch + c)] = own[from + (turns ? c * pitch + r : r * pitch + c)];
      const Indices steps = {pitch, 1}, turned = {1, pitch};
      const auto view = [&](std::uint16_t* first, const Indices& strides) {
        return StridedView{.data = first, .type = ElementType::u16, .extents = {rows, columns}, .strides = strides};
      };
      rma.writes(has_two ? in_pages : Symmetric<std::uint16_t>(block));
      const Indices& source = turns ? turned : steps;
      if (i % 4 == 0) rma.put(view(named + to, steps), view(own + from, source), me);
      if (i % 4 == 1) rma.put_nbi(view(named + to, steps), view(own + from, source), me);
      if (i % 4 == 2) rma.get(view(own + to, steps), view(named + from, source), me);
      if (i % 4 == 3) rma.get_nbi(view(own + to, steps), view(named + from, source), me);
      rma.quiet();
      require(std::equal(expected.begin(), expected.end(), own), "{} by {} from {} to {}, call {}", rows, columns, from,
              to, i % 4);
    }
    world.barrier();
  });
}

TEST_P(Contract, allocations_that_differ_fail_on_every_rank) {
  if (ranks() < 2) GTEST_SKIP() << "one rank agrees with itself";
  const int n = ranks();
  for (const int kind : {0, 1, 2, 3, 4}) {
    try {
      run([&](World& world) {
        const bool odd = world.rank() == n - 1;
        try {
          if (kind == 0) world.allocate<double>(odd ? 11 : 10);
          if (kind == 1) odd ? void(world.allocate<double>(8)) : void(world.allocate<std::int64_t>(8));
          if (kind == 2) world.allocate<double>(8, {.bytes = odd ? 256u : 128u});
          if (kind == 3) odd ? world.barrier() : void(world.allocate<double>(8));
          if (kind == 4) world.allocate(odd ? ElementType::i32 : ElementType::f32, 8);
        } catch (const Error& error) {
          require_says(error, ErrorCode::mismatch,
                       {"collective call 1 differs: rank 0 makes allocate of ", "contract_test.cpp:"});
          throw;
        }
      });
      ADD_FAILURE() << kind;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::mismatch) << error.message();
    }
  }
}

// Children.

/// What `call` does wrong in a child of the rank: "" where it throws what it is to throw.
std::string found_in_child(const char* name, FunctionRef<void()> call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_use && error.message().find("is a child of ") != std::string::npos)
      return "";
    return fmt::format("{}: {}; ", name, error.message());
  } catch (const std::exception& error) {
    return fmt::format("{}: {}; ", name, error.what());
  }
  return fmt::format("{} is done; ", name);
}

TEST_P(Contract, calls_in_a_child_of_a_rank_throw_and_do_nothing_for_the_rank) {
  run_once(on(), {.ranks = ranks()}, 1, [](World& world) {
    Context& rma = world.context();
    const Rank next = next_of(world), last = world.size() - 1;
    Context other(world);
    auto all = world.allocate<std::uint64_t>(100);
    auto freed = world.allocate<double>(10);
    const SharedFlags flags = world.shared_flags(2, "of the rank");
    PairedCopy pairs(world);
    std::optional<Team> team = world.team().split_strided({.count = world.size()});
    const Pages pages(1);
    const RegisteredMemory registered = world.register_memory(pages.span());
    const Symmetric<std::uint64_t> word = all.slice(0, 1);
    std::vector<std::uint64_t> values(100, 7);
    const std::span<std::uint64_t> here(values);
    const StridedView own{.data = values.data(), .type = ElementType::u64, .extents = {5, 5}, .strides = {10, 1}};
    const StridedView there{.data = all.local(), .type = ElementType::u64, .extents = {5, 5}, .strides = {10, 1}};
    world.barrier();
    if (world.rank() == last) {
      std::array<int, 2> ends{};
      require(pipe(ends.data()) == 0, "no pipe");
      const pid_t child = fork();
      if (child == 0) {
        std::string found;
        const auto refuses = [&](const char* name, FunctionRef<void()> call) { found += found_in_child(name, call); };
        for (Context* c : {&rma, &other})
          for (const Rank peer : {next, world.rank()}) {
            refuses("p", [&] { c->p(word, 1, peer); });
            refuses("g", [&] { c->g(word, peer); });
            for (const std::size_t count : {1, 100}) {
              refuses("put", [&] { c->put(all, here.first(count), peer); });
              refuses("put_nbi", [&] { c->put_nbi(all, here.first(count), peer); });
              refuses("get", [&] { c->get(here.first(count), all, peer); });
              refuses("get_nbi", [&] { c->get_nbi(here.first(count), all, peer); });
              refuses("put_signal", [&] { c->put_signal(all, here.first(count), word, 1, SignalOp::set, peer); });
            }
            refuses("put of nothing", [&] { c->put(all, {}, peer); });
            refuses("put of a view", [&] { c->put(there, own, peer); });
            refuses("get of a view", [&] { c->get(own, there, peer); });
            refuses("signal", [&] { c->signal(word, 1, SignalOp::add, peer); });
            refuses("add", [&] { c->add(word, 1, peer); });
            refuses("fetch_add", [&] { c->fetch_add(word, 1, peer); });
            refuses("compare_swap", [&] { c->compare_swap(word, 0, 1, peer); });
            refuses("fetch_nbi", [&] { c->fetch_nbi(values[0], word, peer); });
            refuses("put to registered memory", [&] { c->p(registered.symmetric(&pages.span()[3]), 1, peer); });
            refuses("peer_array", [&] { c->peer_array(word, peer); });
            refuses("quiet", [&] { c->quiet(peer); });
          }
        for (Context* c : {&rma, &other}) {
          refuses("quiet", [&] { c->quiet(); });
          refuses("fence", [&] { c->fence(); });
          refuses("signal_fetch", [&] { c->signal_fetch(word); });
          refuses("signal_wait", [&] { c->signal_wait(word, Comparison::equal, 0); });
          refuses("wait_until", [&] { c->wait_until(word, Comparison::equal, 0); });
          refuses("wait_until_all", [&] { c->wait_until_all(all, Comparison::equal, 0); });
          refuses("wait_until_any", [&] { c->wait_until_any(all, Comparison::equal, 0); });
          refuses("test", [&] { c->test(word, Comparison::equal, 0); });
          refuses("test_all", [&] { c->test_all(all, Comparison::equal, 0); });
          refuses("test_any", [&] { c->test_any(all, Comparison::equal, 1); });
        }
        refuses("another context", [&] { Context third(world); });
        refuses("barrier", [&] { world.barrier(); });
        refuses("sync", [&] { world.sync(); });
        refuses("sync of a team", [&] { team->sync(); });
        refuses("all_gather", [&] { world.all_gather(1); });
        refuses("broadcast", [&] { world.broadcast(values.data(), 8, 0); });
        refuses("allocate", [&] { world.allocate<double>(1); });
        refuses("allocate nothing", [&] { world.allocate<double>(0); });
        refuses("free", [&] { world.free(std::move(freed)); });
        refuses("register_memory", [&] { world.register_memory(pages.span()); });
        refuses("shared_flags", [&] { world.shared_flags(1, "of the child"); });
        refuses("local_memory", [&] { world.local_memory(100); });
        refuses("wait for what is true",
                [&] { world.wait_until([] { return true; }, WaitNote("it", 0, CallSite::here())); });
        refuses("wait for a flag", [&] { world.wait(flags, 0, 0, 0, WaitNote("it", 0, CallSite::here())); });
        refuses("look", [&] { world.look(WaitNote("it", 0, CallSite::here())); });
        refuses("check_failed", [&] { world.check_failed(); });
        refuses("has_ended", [&] { world.has_ended(next); });
        refuses("activity_of", [&] { world.activity_of(next); });
        refuses("peer_kind", [&] { world.peer_kind(next); });
        refuses("reach", [&] { world.reach(next, all.local()); });
        refuses("shared_team", [&] { world.shared_team(); });
        refuses("node_team", [&] { world.node_team(); });
        refuses("split_strided", [&] { world.team().split_strided({}); });
        refuses("split_listed", [&] { world.team().split_listed({0}); });
        refuses("split_2d", [&] { world.team().split_2d(1); });
        refuses("a sub-world", [&] { SubWorld sub(*team); });
        refuses("load of a flag", [&] { flags.load(next, 0); });
        refuses("store to a flag", [&] { flags.store(next, 0, 9); });
        refuses("fetch_add of a flag", [&] { flags.fetch_add(next, 0, 9); });
        refuses("compare_exchange of a flag", [&] { flags.compare_exchange(next, 0, 0, 9); });
        refuses("a copy by both", [&] { pairs.copy(all, all, world.rank(), next); });
        (void)!write(ends[1], found.data(), found.size());
        _exit(0);
      }
      close(ends[1]);
      std::string found(10'000, ' ');
      found.resize(std::size_t(std::max<ssize_t>(0, read(ends[0], found.data(), found.size()))));
      close(ends[0]);
      int status = -1;
      waitpid(child, &status, 0);
      require(found.empty() && status == 0, "status {}: {}", status, found);
    }
    world.barrier();
    for (Index i = 0; i < all.size(); ++i) require(all[i] == 0, "the child has put {}", all[i]);
    require(flags.load(next, 0) == 0, "the child has raised a flag");
  });
}

// One element, many elements.

template <class T>
void check_type(World& world) {
  Context& rma = world.context();
  const auto one = world.allocate<T>(4);
  const auto value = [](int i) {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      return T{std::uint16_t(i + 3)};
    else
      return T(i + 3);
  };
  const Rank next = next_of(world), from = before(world);
  rma.p(one, value(world.rank()), next);
  const std::array<T, 3> three = {value(10), value(world.rank() + 20), value(30)};
  rma.put(one.from(1), three, next);
  world.barrier();
  require(one[0] == value(from) && one[1] == value(10) && one[2] == value(from + 20) && one[3] == value(30), "put");
  require(rma.g(one.from(2), next) == value(world.rank() + 20), "g");
  std::array<T, 4> all{};
  rma.get(all, one, from);
  require(all[0] == value((from + world.size() - 1) % world.size()) && all[3] == value(30), "get");
  world.barrier();
}

TEST_P(Contract, moves_elements_of_every_type) {
  run([](World& world) {
    check_type<bool>(world);
    check_type<std::int8_t>(world);
    check_type<std::uint8_t>(world);
    check_type<std::int16_t>(world);
    check_type<std::uint16_t>(world);
    check_type<float16>(world);
    check_type<bfloat16>(world);
    check_type<std::int32_t>(world);
    check_type<std::uint32_t>(world);
    check_type<float>(world);
    check_type<std::int64_t>(world);
    check_type<std::uint64_t>(world);
    check_type<double>(world);
    check_type<long double>(world);
    check_type<std::complex<float>>(world);
    check_type<std::complex<double>>(world);
  });
}

TEST_P(Contract, moves_every_size_exactly) {
  run([](World& world) {
    Context& rma = world.context();
    constexpr int room = 5000;
    const auto target = world.allocate<std::uint8_t>(room + 32);
    std::vector<std::uint8_t> source(room), back(room + 32);
    std::iota(source.begin(), source.end(), std::uint8_t(world.rank()));
    for (int bytes :
         {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 1000, 2047, 2048, 4999}) {
      std::fill_n(target.local(), target.size(), std::uint8_t(0xee));
      world.barrier();
      rma.put(target.slice(16, bytes), source, next_of(world));
      world.barrier();
      for (int i = 0; i < target.size(); ++i) {
        const bool inside = i >= 16 && i < 16 + bytes;
        const auto wanted = inside ? std::uint8_t(before(world) + i - 16) : std::uint8_t(0xee);
        require(target[i] == wanted, "byte {} of {}: {} for {}", i, bytes, target[i], wanted);
      }
      std::fill(back.begin(), back.end(), std::uint8_t(0xdd));
      rma.get(std::span(back).subspan(16, std::size_t(bytes)), target.from(16), next_of(world));
      for (std::size_t i = 0; i < back.size(); ++i) {
        const bool inside = i >= 16 && i < 16 + std::size_t(bytes);
        require(back[i] == (inside ? std::uint8_t(std::size_t(world.rank()) + i - 16) : std::uint8_t(0xdd)),
                "get of {}", bytes);
      }
      world.barrier();
    }
  });
}

TEST_P(Contract, the_smaller_size_wins_or_is_refused) {
  run([](World& world) {
    const auto target = world.allocate<int>(4);
    const std::vector<int> two = {1, 2}, six = {1, 2, 3, 4, 5, 6};
    std::vector<int> back(6, -1);
    Context& rma = world.context();
    rma.put(target, two, next_of(world));
    world.barrier();
    require(target[1] == 2 && target[2] == 0, "two of four");
    world.barrier();
    rma.put(target, six, next_of(world));
    world.barrier();
    require(target[3] == 4, "four of six");
    rma.get(back, target, next_of(world));
    require(back[3] == 4 && back[4] == -1, "four into six");

    Context strict(world, {.sizes = SizeRule::equal});
    require_says(error_of_rank([&] { strict.put(target, six, 0); }), ErrorCode::invalid_use,
                 {"4 symmetric elements and 6 on the other side"});
    require_says(error_of_rank([&] { strict.get(back, target, 0); }), ErrorCode::invalid_use,
                 {"4 symmetric elements and 6 on the other side"});
    world.barrier();  // the one before has looked at what it has
    strict.put(target, std::span(six).first(4), next_of(world));
    world.barrier();
  });
}

TEST_P(Contract, nonblocking_transfers_are_done_after_quiet) {
  run([](World& world) {
    Context rma(world);
    const auto target = world.allocate<std::int64_t>(64);
    const auto here = world.allocate<std::int64_t>(64);
    for (int i = 0; i < 64; ++i) here[i] = world.rank() * 100 + i;
    world.barrier();
    for (int i = 0; i < 32; ++i) rma.put_nbi(target.slice(i, 1), here.slice(i, 1), next_of(world));
    std::vector<std::int64_t> got(32, -1);
    rma.get_nbi(got, here.from(32), next_of(world));
    std::int64_t fetched = -1;
    rma.fetch_nbi(fetched, here.from(5), next_of(world));
    rma.quiet();
    require(got[31] == next_of(world) * 100 + 63, "get_nbi");
    require(fetched == next_of(world) * 100 + 5, "fetch_nbi");
    world.barrier();
    for (int i = 0; i < 32; ++i) require(target[i] == before(world) * 100 + i, "put_nbi {}", i);
  });
}

// Boxes.

TEST_P(Contract, boxes_keep_their_shape_whatever_their_strides) {
  run([](World& world) {
    Context& rma = world.context();
    constexpr Index rows = 5, columns = 7;
    const auto grid = world.allocate<int>(200);
    std::vector<int> source(200);
    std::iota(source.begin(), source.end(), 1000 * world.rank());
    struct Case {
      Indices target_strides, source_strides;
      Index target_first, source_first;
    };
    const Case cases[] = {{{10, 1}, {columns, 1}, 3, 0},    // rows with gaps
                          {{1, rows}, {columns, 1}, 0, 0},  // transposed
                          {{-10, 1}, {columns, 1}, 60, 0},  // upside down
                          {{20, 2}, {14, -2}, 0, 12},       // every other, backwards
                          {{10, 1}, {0, 1}, 0, 3}};         // one row, repeated
    for (const Case& c : cases) {
      std::fill_n(grid.local(), 200, -1);
      world.barrier();
      const StridedView to{grid.local() + c.target_first, ElementType::i32, {rows, columns}, c.target_strides};
      const StridedView from{source.data() + c.source_first, ElementType::i32, {rows, columns}, c.source_strides};
      rma.put(to, from, next_of(world));
      world.barrier();
      std::vector<int> wanted(200, -1);
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j)
          wanted[std::size_t(c.target_first + i * c.target_strides[0] + j * c.target_strides[1])] =
              1000 * before(world) + int(c.source_first + i * c.source_strides[0] + j * c.source_strides[1]);
      for (int i = 0; i < 200; ++i)
        require(grid[i] == wanted[std::size_t(i)], "cell {}: {} for {}", i, grid[i], wanted[std::size_t(i)]);

      std::vector<int> back(std::size_t(rows * columns), -1);
      rma.get({back.data(), ElementType::i32, {rows, columns}, {columns, 1}}, to, next_of(world));
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j)
          require(back[std::size_t(i * columns + j)] ==
                      1000 * world.rank() + int(c.source_first + i * c.source_strides[0] + j * c.source_strides[1]),
                  "got {} {}", i, j);
      world.barrier();
    }
  });
}

TEST_P(Contract, boxes_that_do_not_fit_are_refused) {
  run([](World& world) {
    Context& rma = world.context();
    const auto grid = world.allocate<double>(12);
    std::vector<double> source(12);
    const StridedView to{grid.local(), ElementType::f64, {3, 4}, {4, 1}};
    const auto refused = [&](const StridedView& target, const StridedView& from, ErrorCode code,
                             std::initializer_list<const char*> parts) {
      require_says(error_of_rank([&] { rma.put(target, from, 0); }), code, parts);
    };
    refused(to, {source.data(), ElementType::f64, {4, 3}, {3, 1}}, ErrorCode::mismatch, {"[4, 3]", "[3, 4]"});
    refused(to, {source.data(), ElementType::i64, {3, 4}, {4, 1}}, ErrorCode::mismatch, {"i64", "f64"});
    refused({source.data(), ElementType::f64, {3, 4}, {4, 1}}, to, ErrorCode::invalid_use,
            {"does not lie in the symmetric heap"});
    refused({grid.local(), ElementType::f64, {3, 4}, {-4000000, 1}}, {source.data(), ElementType::f64, {3, 4}, {4, 1}},
            ErrorCode::invalid_use, {"does not lie in the symmetric heap"});
  });
}

// Signals and waits.

TEST_P(Contract, a_signal_says_that_its_data_is_there) {
  run([](World& world) {
    Context& rma = world.context();
    const auto data = world.allocate<int>(300);
    const auto signals = world.allocate<std::uint64_t>(2);
    std::vector<int> source(300);
    for (int round = 1; round <= 20; ++round) {
      std::fill(source.begin(), source.end(), 100 * world.rank() + round);
      const int count = round % 3 == 0 ? 0 : round % 3 == 1 ? 6 : 300;  // nothing signals, too
      rma.put_signal(data.slice(0, count), source, signals, std::uint64_t(round), SignalOp::set, next_of(world));
      const std::uint64_t seen =
          rma.signal_wait(signals, Comparison::greater_equal, std::uint64_t(round), before(world));
      require(seen == std::uint64_t(round), "signal {} of {}", seen, round);
      for (int i = 0; i < count; ++i) require(data[i] == 100 * before(world) + round, "data {} in round {}", i, round);
      // The one before may put again when this is seen.
      rma.signal(signals.from(1), 1, SignalOp::add, before(world));
      rma.signal_wait(signals.from(1), Comparison::equal, std::uint64_t(round), next_of(world));
    }
    require(rma.signal_fetch(signals) == 20, "fetch");
  });
}

TEST_P(Contract, signals_add_up_from_all_ranks_signed_and_unsigned) {
  run([](World& world) {
    Context& rma = world.context();
    const auto up = world.allocate<std::uint64_t>(1);
    const auto down = world.allocate<std::int64_t>(1);
    const auto data = world.allocate<int>(world.size());
    for (Rank peer = 0; peer < world.size(); ++peer) {
      const int mine = world.rank() + 1;
      rma.put_signal_nbi(data.slice(world.rank(), 1), {&mine, 1}, up, 1, SignalOp::add, peer);
      rma.quiet();
      rma.signal(down, -2, SignalOp::add, peer);
    }
    rma.signal_wait(up, Comparison::equal, std::uint64_t(world.size()));
    for (int i = 0; i < world.size(); ++i) require(data[i] == i + 1, "data {}", i);
    require(rma.signal_wait(down, Comparison::less_equal, -2 * world.size()) == -2 * world.size(), "down");
  });
}

TEST_P(Contract, puts_boxes_with_signals_and_completes_one_peer) {
  run([](World& world) {
    Context& rma = world.context();
    const auto grid = world.allocate<std::int32_t>(6 * 8);
    const auto up = world.allocate<std::uint64_t>(2);
    const StridedView column{grid.local() + 3, ElementType::i32, {6}, {8}};
    for (int round = 1; round <= 10; ++round) {
      std::vector<std::int32_t> mine(6, 100 * world.rank() + round);
      const StridedView line{mine.data(), ElementType::i32, {6}, {1}};
      rma.put_signal_nbi(column, line, up.slice(0, 1), 1, SignalOp::add, next_of(world));
      rma.quiet(next_of(world));  // now the source may go
      rma.signal_wait(up.slice(0, 1), Comparison::equal, std::uint64_t(round), before(world));
      for (int i = 0; i < 6; ++i)
        require(grid[8 * i + 3] == 100 * before(world) + round, "row {}: {}", i, grid[8 * i + 3]);
      rma.reads(Symmetric<std::int32_t>(grid));
      rma.signal(up.from(1), 1, SignalOp::add, before(world));
      rma.signal_wait(up.from(1), Comparison::equal, std::uint64_t(round), next_of(world));
    }
    require_says(error_of_rank([&] { rma.quiet(world.size()); }), ErrorCode::invalid_use,
                 {"no rank", std::to_string(world.size()).c_str()});
  });
}

TEST_P(Contract, waits_compare_in_all_six_ways) {
  run([](World& world) {
    Context& rma = world.context();
    const auto words = world.allocate<std::int32_t>(6);
    const auto set = [&](int i, int value) { rma.set(words.from(i), value, next_of(world)); };
    set(0, 5), set(1, -1), set(2, 9), set(3, -7), set(4, -4), set(5, 3);
    const auto wait = [&](int i, Comparison c, int value) {
      return rma.wait_until(words.from(i), c, value, before(world));
    };
    require(wait(0, Comparison::equal, 5) == 5, "equal");
    require(wait(1, Comparison::not_equal, 0) == -1, "not equal");
    require(wait(2, Comparison::greater, 8) == 9, "greater");
    require(wait(3, Comparison::less_equal, -7) == -7, "less or equal");
    require(wait(4, Comparison::less, -3) == -4, "less");
    require(wait(5, Comparison::greater_equal, 3) == 3, "greater or equal");
    require(rma.test(words.from(3), Comparison::less, 0) && !rma.test(words.from(3), Comparison::greater, 0), "test");
  });
}

TEST_P(Contract, waits_for_all_any_and_some_of_many) {
  run([](World& world) {
    Context& rma = world.context();
    const int n = world.size();
    const auto flags = world.allocate<std::uint64_t>(n);
    for (Rank peer = 0; peer < n; ++peer) rma.p(flags.from(world.rank()), 7, peer);
    std::vector<int> done(std::size_t(n), 0);
    int left = n;
    while (left > 0) {
      std::vector<Index> found(static_cast<std::size_t>(n));
      const Index count = rma.wait_until_some(flags, found, Comparison::equal, 7, done);
      require(count >= 1, "some");
      for (Index i = 0; i < count; ++i) {
        require(done[std::size_t(found[std::size_t(i)])] == 0, "found twice");
        done[std::size_t(found[std::size_t(i)])] = 1;
      }
      left -= int(count);
    }
    rma.wait_until_all(flags, Comparison::equal, 7);
    require(rma.test_all(flags, Comparison::equal, 7), "all");
    require(rma.wait_until_any(flags, Comparison::equal, 7) >= 0, "any");
    // Of none: all have come, none is found.
    std::vector<Index> room(static_cast<std::size_t>(n));
    require(rma.wait_until_any(flags, Comparison::equal, 9, done) == -1, "any of none");
    require(rma.wait_until_some(flags, room, Comparison::equal, 9, done) == 0, "some of none");
    require(rma.test_all(flags, Comparison::equal, 9, done) && rma.test_all(flags.slice(0, 0), Comparison::equal, 9),
            "all of none");
    require_says(error_of_rank([&] { rma.test_some(flags, {}, Comparison::equal, 7); }), ErrorCode::invalid_use,
                 {"places has 0 entries"});
    world.barrier();
  });
}

TEST_P(Contract, waits_for_a_value_of_its_own_at_each_of_many) {
  run([](World& world) {
    Context& rma = world.context();
    const int n = world.size();
    const auto flags = world.allocate<std::int32_t>(n);
    std::vector<std::int32_t> values;
    for (Rank peer = 0; peer < n; ++peer) values.push_back(100 + peer);
    const std::vector<std::int32_t> others(std::size_t(n), -1);
    std::vector<Index> places(static_cast<std::size_t>(n));
    const std::span<const std::int32_t> wanted(values);
    require(rma.test_any(flags, Comparison::equal, wanted) == -1, "any before");
    require(rma.test_some(flags, places, Comparison::equal, wanted) == 0, "some before");
    require(!rma.test_all(flags, Comparison::equal, wanted), "all before");
    world.barrier();
    for (Rank peer = 0; peer < n; ++peer) rma.p(flags.from(world.rank()), 100 + world.rank(), peer);
    const Index any = rma.wait_until_any(flags, Comparison::equal, wanted);
    require(any >= 0 && flags[any] == 100 + any, "any: {}", any);
    require(rma.wait_until_some(flags, places, Comparison::equal, wanted) >= 1, "some");
    rma.wait_until_all(flags, Comparison::equal, wanted);
    require(rma.test_all(flags, Comparison::equal, wanted), "all");
    require(rma.test_some(flags, places, Comparison::equal, wanted) == n, "some after");
    require(rma.test_any(flags, Comparison::equal, std::span<const std::int32_t>(others)) == -1, "any of others");
    require_says(error_of_rank([&] { rma.wait_until_all(flags, Comparison::equal, wanted.subspan(1)); }),
                 ErrorCode::invalid_use,
                 {"give one value, or one for each", std::to_string(n).c_str(), std::to_string(n - 1).c_str()});
    world.barrier();
  });
}

// Atomics.

template <class T>
void check_atomics(World& world) {
  Context& rma = world.context();
  const int n = world.size();
  const auto words = world.allocate<T>(8);
  const Rank root = n - 1;
  T sum_of_tickets = 0;
  for (int i = 0; i < 20; ++i) sum_of_tickets = T(sum_of_tickets + rma.fetch_add(words, T(1), root));
  rma.add(words.from(1), T(3), root);
  rma.inc(words.from(2), root);
  rma.fetch_inc(words.from(2), root);
  rma.bit_or(words.from(3), T(T(1) << world.rank()), root);
  rma.bit_xor(words.from(4), T(T(1) << world.rank()), root);
  T ticket{};
  rma.fetch_add_nbi(ticket, words.from(6), T(2), root);
  rma.quiet();
  require(ticket % 2 == 0 && ticket >= 0 && ticket < T(2 * n), "ticket");
  world.barrier();
  const auto tickets = world.all_gather(sum_of_tickets);
  const T expected = T(20 * n) * T(20 * n - 1) / 2;
  require(std::accumulate(tickets.begin(), tickets.end(), T(0)) == expected, "each ticket once");
  require(rma.fetch(words, root) == T(20 * n), "fetch");
  require(rma.g(words.from(1), root) == T(3 * n) && rma.g(words.from(2), root) == T(2 * n), "add and inc");
  const T ones = T((std::uint64_t(1) << n) - 1);
  require(rma.fetch(words.from(3), root) == ones, "or: {} for {}", rma.fetch(words.from(3), root), ones);
  require(rma.fetch(words.from(4), root) == ones, "xor: {} for {}", rma.fetch(words.from(4), root), ones);
  world.barrier();
  rma.bit_and(words.from(3), T(~(T(1) << world.rank())), root);
  // One of them wins.
  const T before_swap = rma.compare_swap(words.from(5), T(0), T(world.rank() + 1), root);
  const auto winners = world.all_gather(before_swap);
  require(std::count(winners.begin(), winners.end(), T(0)) == 1, "one winner");
  world.barrier();
  require(rma.fetch(words.from(3), root) == 0, "and");
  require(winners[std::size_t(rma.fetch(words.from(5), root) - 1)] == 0, "the winner's value");
  world.barrier();
  // A baton: what each swaps out is what another swapped in.
  const auto out = world.all_gather(rma.swap(words.from(7), T(world.rank() + 1), root));
  world.barrier();
  std::vector<T> all = out;
  all.push_back(rma.fetch(words.from(7), root));
  std::sort(all.begin(), all.end());
  for (int i = 0; i <= n; ++i) require(all[std::size_t(i)] == T(i), "swapped {}", i);
  world.barrier();
}

TEST_P(Contract, atomics_lose_nothing) {
  run([](World& world) {
    check_atomics<std::int32_t>(world);
    check_atomics<std::uint32_t>(world);
    check_atomics<std::int64_t>(world);
    check_atomics<std::uint64_t>(world);
    Context& rma = world.context();
    const auto real = world.allocate<double>(2);
    rma.set(real, 0.5 + world.rank(), next_of(world));
    world.barrier();
    require(rma.fetch(real, next_of(world)) == 0.5 + world.rank(), "set");
    require(rma.swap(real, 9.25, next_of(world)) == 0.5 + world.rank(), "swap");
    world.barrier();
    require(real[0] == 9.25, "swapped");
  });
}

// Misuse.

TEST_P(Contract, misuse_is_refused_before_anything_happens) {
  run([](World& world) {
    Context& rma = world.context();
    const auto a = world.allocate<int>(4);
    int outside = 3;
    const std::vector<int> four(4, 1);
    const auto refused = [](auto&& f, std::initializer_list<const char*> parts) {
      require_says(error_of_rank(f), ErrorCode::invalid_use, parts);
    };
    refused([&] { rma.put(a, four, world.size()); }, {"no rank", "contract_test.cpp:"});
    refused([&] { rma.p(a, 1, -1); }, {"no rank -1 in a world of"});
    refused([&] { rma.put(Symmetric<int>::at(&outside, 1), four, 0); },
            {"the target of a put of 4 bytes does not lie"});
    refused([&] { (void)rma.g(Symmetric<int>::at(&outside, 1), 0); }, {"the source of a get"});
    refused([&] { rma.inc(Symmetric<int>::at(&outside, 1), 0); }, {"an atomic variable"});
    // As many bytes as four times 2^64, and as one more element.
    for (const Index count : {Index(1) << 62, (Index(1) << 62) + 1}) {
      const auto all = Symmetric<int>::at(a.local(), count);
      const std::span<int> there(&outside, std::size_t(count));
      refused([&] { rma.put(all, there, 0); }, {"the target of a put: 46116860184273879", " elements of 4 bytes"});
      refused([&] { rma.put_nbi(all, there, 0); }, {"the target of a put"});
      refused([&] { rma.get(there, all, 0); }, {"the source of a get: 46116860184273879", " elements of 4 bytes"});
      refused([&] { rma.get_nbi(there, all, 0); }, {"the source of a get"});
      const auto flag = world.allocate<std::uint64_t>(1);
      refused([&] { rma.put_signal(all, there, flag, 1, SignalOp::set, 0); }, {"the target of a put"});
    }
    refused([&] { a.slice(2, 3); }, {"a slice of 3 elements from element 2 on leaves a symmetric object of 4"});
    refused([&] { a.slice(-1, 1); }, {"1 element from element -1 on"});
    refused([&] { world.allocate<int>(-1); }, {"-1 symmetric elements"});
    refused([&] { world.allocate<int>(1, {.bytes = 48}); }, {"48 bytes is no power of two"});
    // The address of a peer is not the name of a symmetric object.
    const HeapPlace& heap = world.heap().place();
    if (const std::byte* of_next = heap.mapped.of(next_of(world)); world.size() > 1 && of_next != nullptr) {
      const std::ptrdiff_t apart = of_next - heap.own;
      int* theirs = a.local() + apart / std::ptrdiff_t(sizeof(int));
      refused([&] { rma.put(Symmetric<int>::at(theirs, 4), four, 0); },
              {"lies in the heap of rank", "this rank's own address"});
    }
    require(a[0] == 0, "something was written");
    world.barrier();
  });
}

/// Calls every operation that needs an element on `some`, which lies where none may be touched.
template <class F>
void require_all_refused(Context& rma, const Symmetric<std::uint64_t>& some, const Symmetric<std::uint64_t>& good,
                         Rank peer, std::initializer_list<const char*> parts, F&& whole) {
  const std::vector<std::uint64_t> source(4, 77);
  std::uint64_t before = 0;
  const auto refused = [&](const char* name, auto&& call) {
    const auto result = attempt([&] { call(); });
    require(!result.ok(), "{} is not refused", name);
    require(result.error().code() == ErrorCode::invalid_use, "{}: {}", name, result.error().message());
    for (const char* part : parts)
      require(result.error().message().find(part) != std::string::npos, "{}: '{}' is missing in {}", name, part,
              result.error().message());
    require(result.error().message().find("contract_test.cpp:") != std::string::npos, "{}: {}", name,
            result.error().message());
  };
  using enum Comparison;
  if (reinterpret_cast<std::uintptr_t>(some.local()) % sizeof(std::uint64_t) == 0) {  // these take any address
    refused("p", [&] { rma.p(some, 1, peer); });
    refused("g", [&] { rma.g(some, peer); });
  }
  refused("signal", [&] { rma.signal(some, 1, SignalOp::set, peer); });
  for (const SignalOp op : {SignalOp::set, SignalOp::add}) {
    refused("put_signal", [&] { rma.put_signal(good, source, some, 1, op, peer); });
    refused("put_signal_nbi", [&] { rma.put_signal_nbi(good, source, some, 1, op, peer); });
  }
  const Index extent = good.size();
  const auto view = [&](std::uint64_t* data) {
    return StridedView{.data = data, .type = ElementType::u64, .extents = {extent}, .strides = {1}};
  };
  std::vector<std::uint64_t> local(std::size_t(extent), 77);
  refused("put_signal of a box",
          [&] { rma.put_signal(view(good.local()), view(local.data()), some, 1, SignalOp::set, peer); });
  refused("put_signal_nbi of a box",
          [&] { rma.put_signal_nbi(view(good.local()), view(local.data()), some, 1, SignalOp::set, peer); });
  refused("signal_fetch", [&] { rma.signal_fetch(some); });
  refused("signal_wait", [&] { rma.signal_wait(some, not_equal, 12345); });
  refused("wait_until", [&] { rma.wait_until(some, not_equal, 12345); });
  refused("test", [&] { rma.test(some, equal, 1); });
  refused("fetch", [&] { rma.fetch(some, peer); });
  refused("set", [&] { rma.set(some, 1, peer); });
  refused("swap", [&] { rma.swap(some, 1, peer); });
  refused("compare_swap", [&] { rma.compare_swap(some, 0, 1, peer); });
  refused("fetch_inc", [&] { rma.fetch_inc(some, peer); });
  refused("inc", [&] { rma.inc(some, peer); });
  refused("fetch_add", [&] { rma.fetch_add(some, 1, peer); });
  refused("add", [&] { rma.add(some, 1, peer); });
  refused("fetch_bit_and", [&] { rma.fetch_bit_and(some, 1, peer); });
  refused("bit_and", [&] { rma.bit_and(some, 1, peer); });
  refused("bit_or", [&] { rma.bit_or(some, 1, peer); });
  refused("bit_xor", [&] { rma.bit_xor(some, 1, peer); });
  refused("fetch_nbi", [&] { rma.fetch_nbi(before, some, peer); });
  refused("swap_nbi", [&] { rma.swap_nbi(before, some, 1, peer); });
  refused("compare_swap_nbi", [&] { rma.compare_swap_nbi(before, some, 0, 1, peer); });
  refused("fetch_add_nbi", [&] { rma.fetch_add_nbi(before, some, 1, peer); });
  refused("fetch_inc_nbi", [&] { rma.fetch_inc_nbi(before, some, peer); });
  whole(refused);
}

TEST_P(Contract, slices_of_no_elements_are_refused_where_one_is_needed) {
  run([](World& world) {
    for (const HeapChecks checks : {HeapChecks::bounds, HeapChecks::blocks}) {
      Context rma(world, {.checks = checks});
      const auto a = world.allocate<std::uint64_t>(8);
      const auto neighbour = world.allocate<std::uint64_t>(8);
      require(neighbour.local() == a.local() + 8, "the next block");
      for (const auto& none : {a.from(8), a.slice(3, 0), Symmetric<std::uint64_t>::at(a.local(), -1)})
        require_all_refused(rma, none, a.slice(0, 4), next_of(world), {" needs 1 symmetric element or more, got "},
                            [](auto&&) {});
      // What moves as many as there are moves none.
      const std::vector<std::uint64_t> source(4, 77);
      std::vector<std::uint64_t> target(4, 0);
      rma.put(a.from(8), source, next_of(world));
      rma.get(target, neighbour.slice(8, 0), next_of(world));
      require(rma.test_any(a.from(8), Comparison::equal, 0) == -1, "any of none");
      require(rma.test_all(a.from(8), Comparison::equal, 1), "all of none");
      rma.wait_until_all(a.from(8), Comparison::equal, 1);
      for (const Index count : {Index(-1), INT64_MAX / 4}) {
        const auto bad = Symmetric<std::uint64_t>::at(a.local(), count);
        const auto refused = [&](auto&& call) { require_says(error_of_rank(call), ErrorCode::invalid_use, {}); };
        refused([&] { rma.test_any(bad, Comparison::equal, 1); });
        refused([&] { rma.test_all(bad, Comparison::equal, 1); });
        refused([&] { rma.wait_until_all(bad, Comparison::equal, 1); });
        refused([&] { (void)rma.peer_array(bad, world.rank()); });
        refused([&] { rma.put(bad, source, next_of(world)); });
        refused([&] { rma.get(target, bad, next_of(world)); });
      }
      rma.quiet();
      world.barrier();
      require(std::all_of(a.local(), a.local() + 8, [](std::uint64_t x) { return x == 0; }), "something was put");
      require(std::all_of(neighbour.local(), neighbour.local() + 8, [](std::uint64_t x) { return x == 0; }),
              "something was put behind its end");
      world.barrier();
    }
  });
}

TEST_P(Contract, memory_outside_the_heap_is_refused_by_every_call) {
  run([](World& world) {
    std::vector<std::uint64_t> outside(8, 0);
    for (const HeapChecks checks : {HeapChecks::bounds, HeapChecks::blocks}) {
      Context rma(world, {.checks = checks});
      const auto a = world.allocate<std::uint64_t>(8);
      const auto foreign = Symmetric<std::uint64_t>::at(outside.data(), 8);
      require_all_refused(rma, foreign, a, next_of(world), {"bytes does not lie in the symmetric heap of "},
                          [&](const auto& refused) {
                            Index places[8];
                            using enum Comparison;
                            refused("wait_until_all", [&] { rma.wait_until_all(foreign, not_equal, 1); });
                            refused("wait_until_any", [&] { rma.wait_until_any(foreign, equal, 0); });
                            refused("wait_until_some", [&] { rma.wait_until_some(foreign, places, equal, 0); });
                            refused("test_all", [&] { rma.test_all(foreign, equal, 0); });
                            refused("test_any", [&] { rma.test_any(foreign, equal, 0); });
                            refused("test_some", [&] { rma.test_some(foreign, places, equal, 0); });
                          });
      rma.quiet();
      world.barrier();
    }
  });
}

TEST_P(Contract, words_out_of_their_natural_places_are_refused) {
  run([](World& world) {
    for (const HeapChecks checks : {HeapChecks::bounds, HeapChecks::blocks}) {
      Context rma(world, {.checks = checks});
      const auto a = world.allocate<std::uint64_t>(8);
      auto* const bytes = reinterpret_cast<std::byte*>(a.local());
      for (const int shift : {1, 4}) {
        const auto words = Symmetric<std::uint64_t>::at(reinterpret_cast<std::uint64_t*>(bytes + shift), 3);
        require_all_refused(rma, words, a.slice(4, 4), next_of(world),
                            {" of 8 bytes at offset ", " of the symmetric heap is not aligned to its size"},
                            [&](const auto& refused) {
                              Index places[3];
                              using enum Comparison;
                              refused("wait_until_all", [&] { rma.wait_until_all(words, not_equal, 1); });
                              refused("wait_until_any", [&] { rma.wait_until_any(words, equal, 0); });
                              refused("wait_until_some", [&] { rma.wait_until_some(words, places, equal, 0); });
                              refused("test_all", [&] { rma.test_all(words, equal, 0); });
                              refused("test_any", [&] { rma.test_any(words, equal, 0); });
                              refused("test_some", [&] { rma.test_some(words, places, equal, 0); });
                            });
      }
      const auto half = Symmetric<std::uint32_t>::at(reinterpret_cast<std::uint32_t*>(bytes + 4), 1);
      rma.inc(half, next_of(world));
      const auto odd = Symmetric<std::uint16_t>::at(reinterpret_cast<std::uint16_t*>(bytes + 1), 1);
      require_says(error_of_rank([&] { rma.test(odd, Comparison::equal, 0); }), ErrorCode::invalid_use,
                   {"test of 2 bytes at offset ", "is not aligned"});
      rma.quiet();
      world.barrier();
      require(a[0] == std::uint64_t(1) << 32, "{}", a[0]);
      require(std::all_of(a.local() + 1, a.local() + 8, [](std::uint64_t x) { return x == 0; }), "something was put");
      world.barrier();
    }
  });
}

TEST_P(Contract, slices_that_leave_the_heap_are_refused_also_where_less_is_moved) {
  run([](World& world) {
    for (const HeapChecks checks : {HeapChecks::bounds, HeapChecks::blocks}) {
      Context rma(world, {.checks = checks});
      const auto a = world.allocate<double>(8);
      const auto signal = world.allocate<std::uint64_t>(1);
      const std::vector<double> source(4, 77);
      std::vector<double> target(4, 0);
      for (const Index count : {INT64_MAX, INT64_MAX / 8, Index(world.heap().usage().reserved_bytes / 8 + 1)}) {
        const auto huge = Symmetric<double>::at(a.local(), count);
        const auto refused = [&](const char* what, auto&& call) {
          require_says(error_of_rank(call), ErrorCode::invalid_use,
                       {what, fmt::format("{} elements of 8 bytes", count).c_str(),
                        "do not lie in the symmetric heap of", "contract_test.cpp:"});
        };
        refused("the target of a put", [&] { rma.put(huge, source, next_of(world)); });
        refused("the target of a put", [&] { rma.put_nbi(huge, source, next_of(world)); });
        refused("the target of a put", [&] { rma.put_signal(huge, source, signal, 1, SignalOp::set, next_of(world)); });
        refused("the source of a get", [&] { rma.get(target, huge, next_of(world)); });
        refused("the source of a get", [&] { rma.get_nbi(target, huge, next_of(world)); });
        refused("a peer's array", [&] { (void)rma.peer_array(huge, world.rank()); });
      }
      require_says(error_of_rank([&] { a.slice(1, INT64_MAX); }), ErrorCode::invalid_use,
                   {"9223372036854775807 elements from element 1 on", "symmetric object of 8"});
      require_says(error_of_rank([&] { a.from(9); }), ErrorCode::invalid_use,
                   {"from element 9 on", "symmetric object of 8"});
      rma.quiet();
      world.barrier();
      require(std::all_of(a.local(), a.local() + 8, [](double x) { return x == 0; }) && signal[0] == 0, "was put");
      world.barrier();
    }
  });
}

TEST_P(Contract, checked_contexts_refuse_what_this_rank_has_released) {
  run([](World& world) {
    Context rma(world, {.checks = HeapChecks::blocks});
    auto kept = world.allocate<std::uint64_t>(4);
    Symmetric<std::uint64_t> gone;
    {
      const auto a = world.allocate<std::uint64_t>(4);
      gone = a;
      rma.p(gone, 0, next_of(world));
      rma.quiet();
      world.barrier();
    }
    require_all_refused(rma, gone, kept, next_of(world), {"do not lie in one block that is allocated"}, [](auto&&) {});
    // The others still hold theirs: the next allocation does not free it, and it stays refused.
    const Symmetric<std::uint64_t> first = kept;
    if (world.rank() == 0 && world.size() > 1) kept = {};
    const auto next = world.allocate<std::uint64_t>(4);
    if (world.rank() == 0 && world.size() > 1)
      require_says(error_of_rank([&] { rma.inc(first, 1); }), ErrorCode::invalid_use,
                   {"do not lie in one block that is allocated"});
    else
      rma.inc(first, world.rank());
    rma.quiet();
    world.barrier();
  });
}

TEST_P(Contract, checked_contexts_end_blocks_where_they_were_asked_to_end) {
  run([](World& world) {
    Context rma(world, {.checks = HeapChecks::blocks});
    const auto three = world.allocate<std::uint8_t>(3);
    const auto four = Symmetric<std::uint8_t>::at(three.local(), 4);
    rma.p(three.from(2), 1, next_of(world));
    require_says(error_of_rank([&] { rma.p(Symmetric<std::uint8_t>::at(three.local() + 3, 1), 1, 0); }),
                 ErrorCode::invalid_use, {"do not lie in one block"});
    require_says(error_of_rank([&] { rma.test_all(four, Comparison::equal, 0); }), ErrorCode::invalid_use,
                 {"do not lie in one block"});
    rma.quiet();
    world.barrier();
  });
}

TEST_P(Contract, checked_contexts_find_what_was_freed_and_what_runs_over) {
  run([](World& world) {
    Context rma(world, {.checks = HeapChecks::blocks});
    auto a = world.allocate<int>(16);
    const auto b = world.allocate<int>(16);
    const std::vector<int> many(64, 1);
    rma.put(a, many, next_of(world));
    const auto over = Symmetric<int>::at(a.local() + 8, 16);
    require_says(error_of_rank([&] { rma.put(over, many, 0); }), ErrorCode::invalid_use, {"do not lie in one block"});
    const Symmetric<int> gone = a;
    rma.quiet();
    world.free(std::move(a));
    require_says(error_of_rank([&] { rma.put(gone, many, 0); }), ErrorCode::invalid_use, {"do not lie in one block"});
    require_says(error_of_rank([&] { rma.inc(gone, 0); }), ErrorCode::invalid_use, {"an atomic variable"});
    rma.inc(b, next_of(world));
    rma.quiet();
    world.barrier();
    require(b[0] == 1, "checked atomics work");
  });
}

TEST_P(Contract, arrays_of_peers_can_be_loaded_and_stored_where_they_are_reachable) {
  run([this](World& world) {
    Context& rma = world.context();
    const auto a = world.allocate<double>(10);
    const auto reaches = [&](Rank one, Rank other) { return share_memory(on(), world.size(), one, other); };
    for (Rank peer = 0; peer < world.size(); ++peer)
      require(rma.reaches(peer) == reaches(world.rank(), peer), "rank {}, peer {}", world.rank(), peer);
    const bool is_reached = reaches(world.rank(), next_of(world));
    if (is_reached)
      rma.peer_array(a, next_of(world))[3] = world.rank() + 0.5;
    else
      require_says(error_of_rank([&] { (void)rma.peer_array(a, next_of(world)); }), ErrorCode::unsupported,
                   {"cannot load and store the memory of rank"});
    world.barrier();
    require(a[3] == (reaches(before(world), world.rank()) ? before(world) + 0.5 : 0), "stored");
    if (is_reached) require(rma.peer_array(a, next_of(world))[3] == world.rank() + 0.5, "loaded");
    world.barrier();
  });
}

// Teams.

TEST_P(Contract, arrays_of_all_members_are_stored_and_combined_as_one) {
  run([this](World& world) {
    Context& rma = world.context();
    const auto array = world.allocate<Index>(3000);
    std::optional<Team> odd =
        world.team().split_strided({.first = world.size() > 1, .stride = 2, .count = std::max(1, world.size() / 2)});
    if (is_simulated(on()) || are_apart(on())) {
      if (world.size() > 1)
        require_says(error_of_rank([&] { rma.multicast_array(world.team(), array); }), ErrorCode::unsupported,
                     {"cannot load and store the memory of rank"});
      return;
    }
    std::vector<Index> all(3000);
    std::iota(array.local(), array.local() + array.size(), 10'000 * world.rank());
    world.barrier();
    const auto sum = [](Index a, Index b) { return a + b; };
    const auto last = [](Index, Index b) { return b; };
    const auto everyone = rma.multicast_array(world.team(), array);
    require(everyone.members == world.size() && everyone.size == 3000, "{} members", everyone.members);
    const Index ranks_sum = Index(world.size()) * (world.size() - 1) / 2;
    require(everyone.load_reduce(17, sum) == 17 * world.size() + 10'000 * ranks_sum, "a sum of one");
    require(everyone.load_reduce(17, last) == 10'000 * (world.size() - 1) + 17, "the order of the members");
    everyone.load_reduce(Span(all.data(), 2990), 10, sum);
    for (Index i = 0; i < 2990; ++i)
      require(all[std::size_t(i)] == (i + 10) * world.size() + 10'000 * ranks_sum, "{} at {}", all[std::size_t(i)], i);
    world.barrier();
    if (odd) {
      const auto some = rma.multicast_array(*odd, array);
      if (odd->rank() == 0) {
        some.store(3, -1);
        std::fill(all.begin(), all.end(), -2);
        some.store(5, Span<const Index>(all.data(), 2500));
      }
      odd->barrier();
    }
    for (Index i = 0; i < array.size(); ++i) {
      const Index wanted = !odd || i < 3 || i == 4 || i >= 2505 ? 10'000 * world.rank() + i : i == 3 ? -1 : -2;
      require(array[i] == wanted, "{} for {} at {}", array[i], wanted, i);
    }
  });
}

TEST_P(Contract, two_ranks_copy_together) {
  run([](World& world) {
    PairedCopy pairs(world);
    const Index count = rma_is_direct(world) ? 60'000 : 1'500;
    const auto source = world.allocate<Index>(count), target = world.allocate<Index>(count);
    const Rank me = world.rank(), next = next_of(world), last = before(world);
    // Around the ring: even ranks send first.
    const auto around = [&](Index first, Index elements) {
      const auto send = [&] { pairs.copy(target.slice(first, elements), source.from(first), me, next); };
      const auto receive = [&] { pairs.copy(target.slice(first, elements), source.from(first), last, me); };
      if (world.size() == 1) return send();
      if (me % 2 == 0) send();
      receive();
      if (me % 2 == 1) send();
    };
    for (const Index elements : {Index(0), Index(1), Index(1000), count - 5, count / 2}) {
      for (Index i = 0; i < count; ++i) source[i] = 1'000'000 * me + elements + i;
      std::fill_n(target.local(), count, -1);
      world.barrier();
      around(3, elements);
      for (Index i = 0; i < count; ++i) {
        const Index wanted = i >= 3 && i < 3 + elements ? 1'000'000 * last + elements + i : -1;
        require(target[i] == wanted, "{} elements: {} for {} at {}", elements, target[i], wanted, i);
      }
      std::fill_n(source.local(), count, -2);  // may be written again
      world.barrier();
    }
    require_says(error_of_rank([&] { pairs.copy(target, source, me, world.size()); }), ErrorCode::invalid_use,
                 {"to rank"});
    if (world.size() < 2) return;
    if (me < 2) {
      require_says(error_of_rank([&] { pairs.copy(target.slice(0, 10), source, me, 1 - me); }), ErrorCode::mismatch,
                   {"from rank 0", "from rank 1"});
      const Error error = error_of_rank([&] { pairs.copy(target.slice(0, 10 + me), source, 0, 1); });
      require_says(error, ErrorCode::mismatch, {"80", "88", "pass different arguments to copy"});
      pairs.copy(target.slice(0, 10), source, 0, 1);
    } else {
      require_says(error_of_rank([&] { pairs.copy(target, source, 0, 1); }), ErrorCode::invalid_use,
                   {"from rank 0 to rank 1"});
    }
    world.barrier();
  });
}

TEST_P(Contract, a_copy_of_two_that_fails_is_their_last) {
  if (ranks() < 2) GTEST_SKIP() << "one rank waits for nobody";
  run([](World& world) {
    PairedCopy pairs(world);
    const auto array = world.allocate<Index>(1000), signal = world.allocate<Index>(1);
    if (world.rank() == 0) {
      const std::int64_t timeout_ns = world.timeout_ns();
      world.set_timeout_ns(1'000'000);
      require_says(error_of_rank([&] { pairs.copy(array, array, 0, 1); }), ErrorCode::timeout, {"rank 0 waited"});
      world.set_timeout_ns(timeout_ns);
      require_says(error_of_rank([&] { pairs.copy(array, array, 0, 1); }), ErrorCode::invalid_use, {"has failed"});
      world.context().set(signal, 1, 1);
      world.context().quiet();
    } else if (world.rank() == 1) {
      world.context().wait_until(signal, Comparison::equal, 1);
      world.set_timeout_ns(1'000'000);
      const Error error = error_of_rank([&] { pairs.copy(array, array, 0, 1); });
      require(error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::timeout, "{}", error.message());
    }
    world.set_timeout_ns(60'000'000'000);
    world.barrier();
  });
}

TEST_P(Contract, a_wait_whose_condition_polls_ends_as_a_wait) {
  const bool has_direct_peers = on() == On::threads || on() == On::processes;
  if (!has_direct_peers && ranks() > 4) GTEST_SKIP() << "as few ranks do";
  run([&](World& world) {
    const auto flag = world.allocate<Index>(1);
    const Rank peer = (world.rank() + 1) % world.size();
    const int rounds = has_direct_peers ? 20 : 1;
    WaitNote note("a condition that polls", peer, CallSite::here());
    for (int round = 0; round < rounds; ++round) {
      world.set_timeout_ns(has_direct_peers ? 100'000 : 20'000'000);
      const Error error = error_of_rank(
          [&] { world.wait_until([&] { return world.context().g(Symmetric<Index>(flag), peer) > 0; }, note); });
      world.set_timeout_ns(60'000'000'000);
      require_says(error, ErrorCode::timeout, {"waited", "a condition that polls"});
    }
    world.barrier();
  });
}

TEST_P(Contract, teams_are_split_by_steps) {
  run([this](World& world) {
    const int n = world.size();
    std::optional<Team> even = world.team().split_strided({.first = 0, .stride = 2, .count = (n + 1) / 2});
    require(bool(even) == (world.rank() % 2 == 0), "who is in");
    if (even) {
      require(even->size() == (n + 1) / 2 && even->rank() == world.rank() / 2, "places");
      require(even->world_rank(even->rank()) == world.rank(), "world rank");
      const auto ranks = even->all_gather(world.rank());
      for (int i = 0; i < even->size(); ++i) require(ranks[std::size_t(i)] == 2 * i, "gathered {}", i);
      std::optional<Team> reversed =
          even->split_strided({.first = even->size() - 1, .stride = -1, .count = even->size()});
      require(reversed && reversed->rank() == even->size() - 1 - even->rank(), "reversed");
      require(reversed->translate(0, *even) == even->size() - 1, "translate");
      require(even->translate(0, world.team()) == 0, "translate to the world");
      require(world.team().translate(n > 1 ? 1 : 0, *even) == (n > 1 ? -1 : 0), "translate to none");
      int word = reversed->rank() == 0 ? 42 : 0;
      reversed->broadcast(&word, sizeof word, 0);
      require(word == 42, "broadcast");
      reversed->barrier();
    }
    world.barrier();
    require_says(error_of_rank([&] { world.team().split_strided({.first = 0, .stride = 1, .count = n + 1}); }),
                 ErrorCode::invalid_use, {"of a team of"});
    int reachable = 0, near = 0;
    for (Rank peer = 0; peer < n; ++peer) {
      reachable += world.peer_kind(peer) == PeerKind::reachable;
      near += share_machine(on(), n, world.rank(), peer);
    }
    require(world.shared_team().size() == reachable, "shared");
    require(world.node_team().size() == near, "node");
    world.shared_team().barrier();
    world.node_team().sync();
  });
}

TEST_P(Contract, teams_are_split_by_lists) {
  run([this](World& world) {
    const int n = world.size();
    // Of 5: 4, 0, 1; of these: 1, 4; and those that are left.
    const std::vector<int> list = n > 2 ? std::vector<int>{n - 1, 0, 1} : std::vector<int>{n - 1};
    const auto at = std::find(list.begin(), list.end(), world.rank());
    std::optional<Team> some = world.team().split_listed(list);
    require(bool(some) == (at != list.end()), "who is in");
    if (some) {
      require(some->size() == int(list.size()) && some->rank() == int(at - list.begin()), "places");
      const auto ranks = some->all_gather(world.rank());
      require(ranks == list, "gathered");
      for (int i = 0; i < some->size(); ++i) {
        require(some->world_rank(i) == list[std::size_t(i)], "world rank of {}", i);
        require(some->translate(i, world.team()) == list[std::size_t(i)], "translated to the world");
        require(world.team().translate(list[std::size_t(i)], *some) == i, "translated from the world");
      }
      for (Rank rank = 0; rank < n; ++rank)
        require((world.team().translate(rank, *some) < 0) == (std::find(list.begin(), list.end(), rank) == list.end()),
                "rank {} is in, or none", rank);
      int word = some->rank() == 0 ? 42 : 0;
      some->broadcast(&word, sizeof word, 0);
      require(word == 42, "broadcast");
      const int width = 2;
      auto [x, y] = some->split_2d(width);
      for (const int r : x.all_gather(some->rank() / width)) require(r == some->rank() / width, "row");
      for (const int c : y.all_gather(some->rank() % width)) require(c == some->rank() % width, "column");
      if (n > 2) {
        std::optional<Team> pair = some->split_listed({2, 0});
        std::optional<Team> strided = some->split_strided({.first = 2, .stride = -2, .count = 2});
        require(bool(pair) == (some->rank() != 1) && bool(pair) == bool(strided), "the pair");
        if (pair) require(pair->all_gather(world.rank()) == std::vector<int>({1, n - 1}), "of the pair");
        if (strided) require(strided->members() == pair->members(), "the same pair");
      }
      some->barrier();
    }
    world.barrier();
    Team& all = world.team();
    require_says(error_of_rank([&] { all.split_listed({}); }), ErrorCode::invalid_use, {"0 members", "list 1 to"});
    require_says(error_of_rank([&] {
                   all.split_listed({0, n});
                 }),
                 ErrorCode::invalid_use, {n == 1 ? "list 1 to" : "of"});
    require_says(error_of_rank([&] { all.split_listed({-1}); }), ErrorCode::invalid_use, {"no member -1"});
    if (n > 1) {
      require_says(error_of_rank([&] { all.split_listed({0, 0}); }), ErrorCode::invalid_use, {"twice"});
      const std::vector<int> mine = world.rank() == 0 ? std::vector<int>{0, 1} : std::vector<int>{1, 0};
      require_says(error_of_rank([&] { all.split_listed(mine); }), ErrorCode::mismatch,
                   {"rank 0 lists members [0, 1], rank 1 [1, 0]", "contract_test.cpp:"});
    }
    // As one array, where their memory is loaded and stored.
    if (is_simulated(on()) || are_apart(on())) return;
    const auto array = world.allocate<int>(3);
    std::optional<Team> again = all.split_listed(list);
    if (again && again->rank() == 0) world.context().multicast_array(*again, array).store(1, 7 + n);
    world.barrier();
    require(array[1] == (again ? 7 + n : 0) && array[0] == 0 && array[2] == 0, "stored {}", array[1]);
    if (again) {
      const auto seen = world.context().multicast_array(*again, array);
      for (int i = 0; i < again->size(); ++i)
        require(seen.copy(i) == &world.context().peer_array(array, list[std::size_t(i)])[0], "copy {}", i);
    }
    world.barrier();
  });
}

TEST_P(Contract, teams_are_split_in_rows_and_columns) {
  run([](World& world) {
    const int n = world.size();
    for (int width : {1, 2, 3, n, n + 1}) {
      auto [x, y] = world.team().split_2d(width);
      const int row = world.rank() / width, column = world.rank() % width;
      require(x.rank() == column && y.rank() == row, "places");
      require(x.size() == std::min(width, n - row * width), "row of {}", x.size());
      for (const int r : x.all_gather(row)) require(r == row, "row");
      for (const int c : y.all_gather(column)) require(c == column, "column");
    }
  });
}

TEST_P(Contract, many_teams_come_and_go) {
  run([this](World& world) {
    for (int i = 0; i < 200; ++i) {
      const int stride = 1 + i % 3;
      const auto team =
          world.team().split_strided({.first = 0, .stride = stride, .count = (world.size() - 1) / stride + 1});
      if (team) {
        Team copy = *team;
        for (int k = 0; k < i % 4; ++k) copy.barrier();
      }
    }
    std::vector<Team> kept;
    Error full(ErrorCode::internal, "");
    try {
      for (;;) kept.push_back(*world.team().split_strided({.count = world.size()}));
    } catch (const Error& error) {
      full = error;
    }
    require_says(full, ErrorCode::unsupported, {"all 64 teams are in use", "TRANSHIP_TEAMS"});
    // The others are the world's own three; around a sub-world, also that of its members, twice.
    require(kept.size() == (is_sub(on()) ? 59 : 61), "{} teams", kept.size());
    for (Team& team : kept) team.barrier();
  });
}

}  // namespace
}  // namespace tranship::test
