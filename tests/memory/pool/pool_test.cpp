#include <atomic>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <new>
#include <thread>

#include <gtest/gtest.h>
#include <memory/allocations.hpp>
#include <memory/manual_stream.hpp>
#include <support/random_layouts.hpp>

#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/fake_devices.hpp>
#include <tranship/memory/pool/pool.hpp>

namespace {
thread_local long long allocations = 0;
}
long long tranship::test::allocations_of_thread() {
  return allocations;
}

// Of the whole test program: it counts, and is otherwise as the usual one. Inlined, GCC would warn of malloc and
// delete.
[[gnu::noinline]] void* operator new(std::size_t size_bytes) {
  ++allocations;
  if (void* memory = std::malloc(size_bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size_bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size_bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tranship {
namespace {

using test::ManualStream;
using test::Random;

/// A fake device of some capacity, and a pool on it. Streams that use its blocks must outlive it.
struct Fixture {
  explicit Fixture(std::int64_t capacity_bytes = INT64_MAX, PoolOptions options = {})
      : devices({.kinds = {FakeDevices{.count = 1, .capacity_bytes = capacity_bytes}}}),
        pool(devices.driver(devices.memory_of(Device::fake(0))), options) {}
  Devices devices;
  Pool pool;
};

TEST(Pool, classes_are_quarters_of_powers_of_two_and_waste_at_most_a_fifth) {
  std::vector<std::size_t> classes;
  for (std::size_t power = 256; power <= std::size_t(1) << 40; power *= 2)
    for (std::size_t quarter = 4; quarter < 8; ++quarter) classes.push_back(power / 4 * quarter);
  const auto smallest = [&](std::size_t bytes) { return *std::lower_bound(classes.begin(), classes.end(), bytes); };
  for (std::size_t bytes = 0; bytes < 70'000; ++bytes) ASSERT_EQ(Pool::class_bytes(bytes), smallest(bytes)) << bytes;
  for (const std::size_t wanted : classes) {
    if (wanted == classes.back()) break;
    EXPECT_EQ(Pool::class_bytes(wanted), wanted);
    EXPECT_EQ(Pool::class_bytes(wanted + 1), smallest(wanted + 1));
    EXPECT_LE((smallest(wanted + 1) - wanted - 1) * 5, smallest(wanted + 1));
  }
  EXPECT_EQ(Pool::class_bytes(std::size_t(1) << 62), std::size_t(1) << 62);
  EXPECT_THROW(Pool::class_bytes((std::size_t(1) << 62) + 1), Error);
  EXPECT_THROW(Pool::class_bytes(SIZE_MAX), Error);
}

TEST(Pool, what_is_kept_beyond_the_bound_goes_back) {
  Fixture fixture(INT64_MAX, {.kept_bytes_max = 2048});
  Pool& pool = fixture.pool;
  std::vector<PoolBlock> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.allocate(1024));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    pool.free(blocks[i]);
    EXPECT_EQ(pool.counts().kept_bytes, 1024 * std::int64_t(std::min<std::size_t>(i + 1, 2)));
  }
  EXPECT_EQ(pool.counts().driver_frees, 3);
  pool.free(pool.allocate(4096));
  EXPECT_LE(pool.counts().kept_bytes, 2048);
}

TEST(Pool, a_freed_block_serves_the_next_of_its_class) {
  Fixture fixture;
  Pool& pool = fixture.pool;
  const PoolBlock first = pool.allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.memory) % 256, 0U);
  EXPECT_EQ(first.size_bytes, 1000U);
  EXPECT_EQ(pool.counts().in_use_bytes, 1024);
  pool.free(first);
  EXPECT_EQ(pool.counts().in_use_bytes, 0);
  EXPECT_EQ(pool.counts().kept_bytes, 1024);
  const PoolBlock other = pool.allocate(1025);
  EXPECT_NE(other.memory, first.memory);
  const PoolBlock again = pool.allocate(897);
  EXPECT_EQ(again.memory, first.memory);
  EXPECT_EQ(again.size_bytes, 897U);
  const PoolCounts counts = pool.counts();
  EXPECT_EQ(counts.in_use_bytes, 1024 + 1280);
  EXPECT_EQ(counts.in_use_bytes_max, 1024 + 1280);
  EXPECT_EQ(counts.kept_bytes, 0);
  EXPECT_EQ(counts.allocations, 3);
  EXPECT_EQ(counts.reuses, 1);
  EXPECT_EQ(counts.driver_allocations, 2);
  EXPECT_EQ(counts.driver_frees, 0);
  pool.free(other);
  pool.free(again);
}

TEST(Pool, no_bytes_are_a_block_and_an_empty_block_is_none) {
  Fixture fixture;
  const PoolBlock block = fixture.pool.allocate(0);
  EXPECT_NE(block.memory, nullptr);
  EXPECT_EQ(fixture.pool.counts().in_use_bytes, 256);
  fixture.pool.free(block);
  fixture.pool.free({});
  EXPECT_EQ(fixture.pool.counts().kept_bytes, 256);
}

TEST(Pool, a_block_that_is_still_used_is_not_given_to_others) {
  ManualStream stream;
  Fixture fixture;
  Pool& pool = fixture.pool;
  const PoolBlock first = pool.allocate(4096);
  const Event use = stream.give();
  pool.free(first, {&use, 1});
  const PoolBlock second = pool.allocate(4096);
  EXPECT_NE(second.memory, first.memory);
  stream.over = use.number;
  const PoolBlock third = pool.allocate(4096);
  EXPECT_EQ(third.memory, first.memory);
  EXPECT_TRUE(stream.finishes.empty() && stream.waits.empty());
  pool.free(second);
  pool.free(third);
}

TEST(Pool, the_stream_that_still_uses_a_block_may_have_it) {
  ManualStream stream, other;
  Fixture fixture;
  Pool& pool = fixture.pool;
  const PoolBlock first = pool.allocate(4096);
  const Event uses[] = {stream.give(), other.give(), stream.give()};
  pool.free(first, uses);
  const PoolBlock second = pool.allocate(4096, &stream);
  EXPECT_NE(second.memory, first.memory) << "the other stream uses it";
  other.over = 1;
  const PoolBlock third = pool.allocate(4096, &stream);
  EXPECT_EQ(third.memory, first.memory);
  EXPECT_TRUE(stream.waits.empty() && stream.finishes.empty() && other.finishes.empty());
  pool.free(second);
  pool.free(third);
}

TEST(Pool, a_block_that_its_stream_got_early_and_did_not_use_is_still_used_by_the_last) {
  for (const bool by_waiting : {false, true}) {
    ManualStream user, stream;
    Fixture fixture;
    Pool& pool = fixture.pool;
    const PoolBlock first = pool.allocate(4096);
    const Event use = user.give();
    pool.free(first, {&use, 1});
    if (by_waiting) pool.limit(4096);
    stream.give();
    const PoolBlock again = pool.allocate(4096, by_waiting ? &stream : &user);
    EXPECT_EQ(again.memory, first.memory);
    pool.free(again);
    pool.limit(INT64_MAX);
    const PoolBlock other = pool.allocate(4096);
    EXPECT_NE(other.memory, first.memory);
    pool.free(other);
  }
}

TEST(Pool, of_two_uses_by_one_stream_the_later_counts) {
  for (const bool later_first : {false, true}) {
    ManualStream stream;
    Fixture fixture;
    const PoolBlock block = fixture.pool.allocate(1);
    Event uses[] = {stream.give(), stream.give()};
    if (later_first) std::swap(uses[0], uses[1]);
    fixture.pool.free(block, uses);
    stream.over = 1;
    const PoolBlock other = fixture.pool.allocate(1);
    EXPECT_NE(other.memory, block.memory);
    stream.over = 2;
    const PoolBlock same = fixture.pool.allocate(1);
    EXPECT_EQ(same.memory, block.memory);
    fixture.pool.free(other);
    fixture.pool.free(same);
  }
}

TEST(Pool, at_the_limit_a_stream_waits_where_it_can_and_the_host_does_otherwise) {
  ManualStream user, stream;
  Fixture fixture(INT64_MAX, {.limit_bytes = 4096});
  Pool& pool = fixture.pool;
  PoolBlock block = pool.allocate(4096);
  Event use = user.give();
  pool.free(block, {&use, 1});
  block = pool.allocate(4096, &stream);
  EXPECT_EQ(stream.waits, std::vector<Event>{use});
  EXPECT_TRUE(user.finishes.empty());
  use = user.give();
  pool.free(block, {&use, 1});
  block = pool.allocate(4096);
  EXPECT_EQ(user.finishes, std::vector<std::uint64_t>{2});
  // The memory is wanted for another class: the host must wait before the driver gets it back.
  use = user.give();
  pool.free(block, {&use, 1});
  block = pool.allocate(100, &stream);
  EXPECT_EQ(user.finishes, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(pool.counts().driver_frees, 1);
  // An eager stream is the host's.
  pool.free(block);
  pool.trim();
  block = pool.allocate(4096);
  use = user.give();
  pool.free(block, {&use, 1});
  block = pool.allocate(4096, &fixture.devices.stream(Device::host()));
  EXPECT_EQ(user.finishes, (std::vector<std::uint64_t>{2, 3, 4}));
  pool.free(block);
}

TEST(Pool, kept_blocks_of_other_classes_make_room_the_largest_first_and_no_more_than_needed) {
  Fixture fixture(INT64_MAX, {.limit_bytes = 10'000});
  Pool& pool = fixture.pool;
  PoolBlock blocks[] = {pool.allocate(4096), pool.allocate(2048), pool.allocate(1024)};
  for (const PoolBlock& block : blocks) pool.free(block);
  const PoolBlock big = pool.allocate(6144);
  EXPECT_EQ(pool.counts().kept_bytes, 2048 + 1024);
  EXPECT_EQ(pool.counts().driver_frees, 1);
  pool.free(big);
}

TEST(Pool, a_driver_without_room_gets_kept_blocks_back) {
  ManualStream stream;
  Fixture fixture(10'000);
  Pool& pool = fixture.pool;
  const PoolBlock idle = pool.allocate(4096), used = pool.allocate(4096);
  const Event use = stream.give();
  pool.free(idle);
  pool.free(used, {&use, 1});
  const PoolBlock all = pool.allocate(8192);
  EXPECT_EQ(stream.finishes, std::vector<std::uint64_t>{1});
  EXPECT_EQ(pool.counts().driver_frees, 2);
  EXPECT_EQ(pool.counts().kept_bytes, 0);
  pool.free(all);
}

TEST(Pool, where_there_is_no_room_all_numbers_are_named_and_nothing_is_lost) {
  ManualStream stream;
  Fixture fixture(INT64_MAX, {.limit_bytes = 10'000});
  Pool& pool = fixture.pool;
  const PoolBlock block = pool.allocate(5000), kept = pool.allocate(3000);
  const Event use = stream.give();
  pool.free(kept, {&use, 1});
  try {
    pool.allocate(5001);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    for (const char* part : {"fake:0", "5001 bytes", "5120", "5120 bytes in use", "3072 kept", "10000 bytes"})
      EXPECT_NE(error.message().find(part), std::string::npos) << error.what();
  }
  EXPECT_TRUE(stream.finishes.empty()) << "waiting could not have helped";
  EXPECT_EQ(pool.counts().allocations, 2);
  EXPECT_EQ(pool.counts().in_use_bytes_max, 5120 + 3072);
  pool.free(block);

  Fixture small(1000);
  try {
    small.pool.allocate(5000);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_NE(error.message().find("the limit is 1000 bytes"), std::string::npos) << error.what();
  }
  EXPECT_EQ(small.pool.counts().in_use_bytes, 0);
}

TEST(Pool, a_wait_that_times_out_keeps_the_block) {
  ManualStream stream, stream_that_waits;
  stream_that_waits.hangs = true;
  Fixture fixture(INT64_MAX, {.limit_bytes = 4096});
  Pool& pool = fixture.pool;
  const PoolBlock block = pool.allocate(4096);
  const Event use = stream.give();
  pool.free(block, {&use, 1});
  stream.hangs = true;
  EXPECT_THROW(pool.allocate(4096), Error);
  EXPECT_THROW(pool.allocate(4096, &stream_that_waits), Error);
  EXPECT_EQ(pool.counts().kept_bytes, 4096);
  EXPECT_EQ(pool.counts().in_use_bytes, 0);
  stream.hangs = false;
  pool.free(pool.allocate(4096));
  EXPECT_EQ(pool.counts().reuses, 1);
}

TEST(Pool, trim_gives_back_what_is_idle_the_largest_first) {
  ManualStream stream;
  Fixture fixture;
  Pool& pool = fixture.pool;
  const PoolBlock blocks[] = {pool.allocate(1024), pool.allocate(8192), pool.allocate(2048), pool.allocate(4096)};
  const Event use = stream.give();
  for (const PoolBlock& block : {blocks[0], blocks[1], blocks[2]}) pool.free(block);
  pool.free(blocks[3], {&use, 1});
  pool.trim(1024 + 2048 + 4096);
  EXPECT_EQ(pool.counts().kept_bytes, 1024 + 2048 + 4096);
  EXPECT_EQ(pool.counts().driver_frees, 1);
  pool.trim();
  EXPECT_EQ(pool.counts().kept_bytes, 4096) << "it is still used";
  stream.over = 1;
  pool.trim();
  EXPECT_EQ(pool.counts().kept_bytes, 0);
  EXPECT_TRUE(stream.finishes.empty());
}

TEST(Pool, a_lower_limit_gives_back_what_is_kept_beyond_it) {
  Fixture fixture;
  Pool& pool = fixture.pool;
  const PoolBlock used = pool.allocate(1024), kept = pool.allocate(2048), more = pool.allocate(4096);
  pool.free(kept);
  pool.free(more);
  pool.limit(4000);
  EXPECT_EQ(pool.counts().kept_bytes, 2048);
  EXPECT_THROW(pool.allocate(4000), Error);
  pool.limit(INT64_MAX);
  pool.free(pool.allocate(4000));
  pool.free(used);
}

TEST(Pool, free_never_allocates) {
  ManualStream streams[4];
  Fixture fixture;
  Pool& pool = fixture.pool;
  Event uses[8];
  for (int i = 0; i < 8; ++i) uses[i] = streams[i % 4].give();
  std::vector<PoolBlock> blocks;
  const long long before = allocations;
  for (std::size_t bytes = 1; bytes < 1 << 20; bytes *= 3) blocks.push_back(pool.allocate(bytes));
  ASSERT_GT(allocations, before) << "they are counted";
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const long long counted = allocations;
    pool.free(blocks[i], {uses, i % 9});
    EXPECT_EQ(allocations, counted) << i;
  }
  // Nor does an allocation that a kept block serves.
  for (ManualStream& stream : streams) stream.over = stream.given;
  const long long counted = allocations;
  const PoolBlock block = pool.allocate(1);
  EXPECT_EQ(allocations, counted);
  pool.free(block);
}

TEST(Pool, uses_by_more_streams_than_are_remembered_are_waited_for) {
  ManualStream streams[Pool::last_uses_max + 2];
  Fixture fixture;
  Pool& pool = fixture.pool;
  std::vector<Event> uses;
  for (ManualStream& stream : streams) uses.push_back(stream.give());
  const PoolBlock block = pool.allocate(1);
  pool.free(block, uses);
  for (int i = 0; i < Pool::last_uses_max + 2; ++i)
    EXPECT_EQ(streams[i].finishes.size(), i < Pool::last_uses_max ? 0U : 1U);
  std::vector<PoolBlock> others;
  for (int i = 0; i < Pool::last_uses_max; ++i) {
    others.push_back(pool.allocate(1));
    EXPECT_NE(others.back().memory, block.memory) << i;
    streams[i].over = 1;
  }
  others.push_back(pool.allocate(1));
  EXPECT_EQ(others.back().memory, block.memory);
  for (const PoolBlock& other : others) pool.free(other);
}

TEST(Pool, a_block_whose_use_hangs_at_free_is_never_used_again) {
  ManualStream streams[Pool::last_uses_max + 1];
  Fixture fixture;
  Pool& pool = fixture.pool;
  std::vector<Event> uses;
  for (ManualStream& stream : streams) uses.push_back(stream.give());
  const PoolBlock block = pool.allocate(1);
  streams[Pool::last_uses_max].hangs = true;
  pool.free(block, uses);
  EXPECT_EQ(pool.counts().in_use_bytes, 256);
  for (ManualStream& stream : streams) stream.over = 1, stream.hangs = false;
  const PoolBlock other = pool.allocate(1);
  EXPECT_NE(other.memory, block.memory);
  pool.free(other);
  pool.free(block);  // so that the test leaves nothing behind
}

TEST(Pool, its_end_waits_for_those_who_still_use_its_blocks) {
  ManualStream stream;
  Devices devices({.kinds = {FakeDevices{.count = 1, .capacity_bytes = 4096}}});
  Driver& driver = devices.driver(devices.memory_of(Device::fake(0)));
  {
    Pool pool(driver);
    const PoolBlock block = pool.allocate(4096);
    const Event use = stream.give();
    pool.free(block, {&use, 1});
  }
  EXPECT_EQ(stream.finishes, std::vector<std::uint64_t>{1});
  void* all = driver.allocate(4096);
  EXPECT_NE(all, nullptr) << "all memory was given back";
  driver.deallocate(all, 4096);
}

/// One life of a block: who has it, and how many uses of it have been given but have not happened.
struct Life {
  std::uintptr_t first = 0;
  std::size_t bytes = 0;
  bool is_live = true;
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
  Event ready;  ///< when the stream that it was allocated for may use it
  std::vector<Event> uses;
  PoolBlock block;

  bool meets(const Life& other) const { return first < other.first + other.bytes && other.first < first + bytes; }
};

/// Random allocations, uses on streams and frees: no two live blocks overlap, no block has two users at once, and
/// memory is refused exactly when it would not fit beside the blocks in use.
std::string fault_of_random_use(FakeTiming timing, std::uint64_t seed) {
  Random random(seed);
  constexpr std::int64_t limit = 20'000;
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = timing, .seed = seed}}});
  const bool is_limited = random.one_in(2);
  Pool pool(devices.driver(1), {.limit_bytes = is_limited ? limit : INT64_MAX});
  std::vector<std::unique_ptr<Stream>> streams;
  for (int s = 0; s < 3; ++s) streams.push_back(devices.make_stream(Device::fake(0)));
  std::vector<Life> lives;
  std::atomic<bool> two_users = false;
  std::int64_t in_use = 0;
  std::string fault;

  const auto use = [&](Life& life, Stream& stream) {
    stream.wait(life.ready);
    for (const Event& event : life.uses) stream.wait(event);
    ++*life.pending;
    run_on(stream, [pending = life.pending] { --*pending; });
    life.uses.push_back(stream.event());
  };
  for (int turn = 0; turn < 150 && fault.empty(); ++turn) {
    const int what = int(random.below(10));
    if (what < 4) {
      Stream* stream = random.one_in(3) ? nullptr : random.pick(streams).get();
      const auto bytes = std::size_t(random.one_in(2) ? random.between(0, 600) : random.between(1, 6000));
      const auto room = std::int64_t(Pool::class_bytes(bytes));
      Life life{.bytes = bytes};
      try {
        life.block = pool.allocate(bytes, stream);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::no_memory || !is_limited || in_use + room <= limit)
          fault = fmt::format("{} bytes were refused beside {}: {}", bytes, in_use, error.what());
        continue;
      }
      if (is_limited && in_use + room > limit) fault = fmt::format("{} bytes were given beside {}", bytes, in_use);
      in_use += room;
      life.first = reinterpret_cast<std::uintptr_t>(life.block.memory);
      for (const Life& other : lives) {
        if (!life.meets(other)) continue;
        if (other.is_live) fault = "two live blocks overlap";
        if (stream)
          run_on(*stream, [&two_users, pending = other.pending] {
            if (*pending != 0) two_users = true;
          });
        else if (*other.pending != 0)
          fault = "a block was handed out before its users were over";
      }
      std::erase_if(lives, [](const Life& old) { return !old.is_live && *old.pending == 0; });
      if (stream) life.ready = stream->event();
      lives.push_back(std::move(life));
    } else if (what < 8) {
      std::vector<Life*> live;
      for (Life& life : lives)
        if (life.is_live) live.push_back(&life);
      if (live.empty()) continue;
      Life& life = *random.pick(live);
      if (what < 6) {
        use(life, *random.pick(streams));
      } else {
        pool.free(life.block, life.uses);
        life.is_live = false;
        in_use -= std::int64_t(Pool::class_bytes(life.bytes));
      }
    } else if (what == 8) {
      devices.steps(int(random.below(6)));
    } else if (random.one_in(6)) {
      pool.trim(random.below(8000));
    }
    const PoolCounts counts = pool.counts();
    if (counts.in_use_bytes != in_use) fault = fmt::format("{} bytes in use, not {}", counts.in_use_bytes, in_use);
    if (is_limited && counts.in_use_bytes + counts.kept_bytes > limit) fault = "more than the limit";
    if (counts.allocations != counts.reuses + counts.driver_allocations) fault = "counts that do not add up";
  }
  for (const Life& life : lives)
    if (life.is_live) pool.free(life.block, life.uses);
  streams.clear();
  if (two_users) fault = "a block had two users at once";
  return fault;
}

TEST(Pool, random_use_never_shares_a_block) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded})
    EXPECT_EQ(test::first_fault(0.1, [&](std::uint64_t seed) { return fault_of_random_use(timing, seed); }), "")
        << int(timing);
}

TEST(Pool, threads_may_use_it_at_once) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = FakeTiming::threaded}}});
  Pool pool(devices.driver(1));
  constexpr int thread_count = 4;
  std::latch start(thread_count);
  std::atomic<int> faults = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      Random random{std::uint64_t(t)};
      auto stream = devices.make_stream(Device::fake(0));
      std::vector<PoolBlock> blocks;
      start.arrive_and_wait();
      for (int turn = 0; turn < 300; ++turn) {
        if (random.one_in(2) || blocks.empty()) {
          // What one thread writes on its stream, another one's host may not write before it is over.
          const bool on_stream = random.one_in(2);
          const PoolBlock block =
              pool.allocate(std::size_t(random.between(1, 2000)), on_stream ? stream.get() : nullptr);
          if (!on_stream) std::memset(block.memory, t, block.size_bytes);
          if (on_stream) run_on(*stream, [block, t] { std::memset(block.memory, t, block.size_bytes); });
          blocks.push_back(block);
        } else {
          const PoolBlock block = blocks.back();
          blocks.pop_back();
          run_on(*stream, [block, t, &faults] {
            const auto* bytes = static_cast<const unsigned char*>(block.memory);
            for (std::size_t i = 0; i < block.size_bytes; ++i) faults += bytes[i] != t;
          });
          const Event use = stream->event();
          pool.free(block, {&use, 1});
        }
        if (random.one_in(50)) pool.trim();
      }
      const Event use = stream->event();
      for (const PoolBlock& block : blocks) pool.free(block, {&use, 1});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(pool.counts().in_use_bytes, 0);
}

}  // namespace
}  // namespace tranship
