// Wrong programs beside right ones, whose own loads and stores are seen by the race hooks alone: this file is compiled
// with tranship::race_hooks, by each compiler that there is, and announces nothing. Each access of a list is made to
// symmetric memory that a peer accesses, and to local memory that a transfer uses, with the order that it needs and
// without. Prints what is wrong; the exit status is 0 when nothing is.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tranship/base/error.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sim/simulate.hpp>

// As the compilers call them.
extern "C" {
using Pair = unsigned __int128;
void __tsan_read_range(void*, unsigned long);
void __tsan_write_range(void*, unsigned long);
void __tsan_vptr_read(void**);
void __tsan_vptr_update(void**, void*);
void __tsan_volatile_read4(void*);
void __tsan_unaligned_volatile_write2(void*);
void __tsan_read_write8(void*);
void __tsan_unaligned_read_write4(void*);
#if defined(__x86_64__)
Pair __tsan_atomic128_load(const volatile Pair*, int);
void __tsan_atomic128_store(volatile Pair*, Pair, int);
Pair __tsan_atomic128_exchange(volatile Pair*, Pair, int);
Pair __tsan_atomic128_fetch_add(volatile Pair*, Pair, int);
Pair __tsan_atomic128_fetch_sub(volatile Pair*, Pair, int);
Pair __tsan_atomic128_fetch_and(volatile Pair*, Pair, int);
Pair __tsan_atomic128_fetch_or(volatile Pair*, Pair, int);
Pair __tsan_atomic128_fetch_xor(volatile Pair*, Pair, int);
Pair __tsan_atomic128_fetch_nand(volatile Pair*, Pair, int);
int __tsan_atomic128_compare_exchange_strong(volatile Pair*, Pair*, Pair, int, int);
int __tsan_atomic128_compare_exchange_weak(volatile Pair*, Pair*, Pair, int, int);
Pair __tsan_atomic128_compare_exchange_val(volatile Pair*, Pair, Pair, int, int);
#endif
}

namespace {

using namespace tranship;

int faults = 0, cases = 0;

void fault(const std::string& what, const std::string& why) {
  ++faults;
  std::printf("%s: %s\n", what.c_str(), why.c_str());
}
void expect(bool is_right, const char* what) {
  ++cases;
  if (!is_right) fault(what, "wrong");
}

// Accesses to the 16 bytes at `at`, which has the alignment of 16 and 64 bytes behind it.

struct OwnAccess {
  const char* name;
  bool writes;
  int line;  // the access is in it or in one of the next four
  void (*make)(std::byte* at);
};
#define LOADS(name, ...) \
  { name, false, __LINE__, [](std::byte * at) __VA_ARGS__ }
#define STORES(name, ...) \
  { name, true, __LINE__, [](std::byte * at) __VA_ARGS__ }

volatile std::uint64_t sink;
std::byte elsewhere[256];

template <class T>
T* as(std::byte* at) {
  return reinterpret_cast<T*>(at);
}
struct [[gnu::packed]] Unaligned {
  std::uint8_t one;
  std::uint16_t two;
  std::uint32_t four;
  std::uint64_t eight;
};
struct Small {
  std::uint64_t a, b;
};
struct Large {
  std::uint64_t words[6];
};
struct Bits {
  std::uint32_t low : 5, high : 20;
};
struct Based {
  virtual ~Based() = default;
  virtual int value() const { return 1; }
};

// clang-format off
const OwnAccess touches[] = {
    LOADS("load of 1 byte", { sink = *as<std::uint8_t>(at + 3); }),
    LOADS("load of 2 bytes", { sink = *as<std::uint16_t>(at + 2); }),
    LOADS("load of 4 bytes", { sink = *as<std::uint32_t>(at + 4); }),
    LOADS("load of 8 bytes", { sink = *as<std::uint64_t>(at + 8); }),
    LOADS("load of 16 bytes", { sink = std::uint64_t(*as<Pair>(at)); }),
    LOADS("load of a float", { sink = std::uint64_t(*as<float>(at + 12)); }),
    LOADS("unaligned load of 2 bytes", { sink = as<Unaligned>(at)->two; }),
    LOADS("unaligned load of 4 bytes", { sink = as<Unaligned>(at)->four; }),
    LOADS("unaligned load of 8 bytes", { sink = as<Unaligned>(at)->eight; }),
    LOADS("volatile load", { sink = *as<volatile std::uint32_t>(at); }),
    LOADS("load of a bit field", { sink = as<Bits>(at)->high; }),
    LOADS("copy of a struct", { *as<Small>(elsewhere) = *as<Small>(at); }),
    LOADS("copy of a large struct", { *as<Large>(elsewhere) = *as<Large>(at); }),
    LOADS("memcpy of 8 bytes from it", { std::memcpy(elsewhere, at, 8); }),
    LOADS("memcpy of 16 bytes from it", { std::memcpy(elsewhere, at, 16); }),
    LOADS("memcpy of some bytes from it", { std::memcpy(elsewhere, at + 1, sink % 2 + 13); }),
    LOADS("memmove from it", { std::memmove(elsewhere, at + 4, sink % 2 + 9); }),
    LOADS("memcmp", { sink = std::uint64_t(std::memcmp(elsewhere, at, sink % 2 + 12) == 0); }),
    LOADS("load in a loop", { for (int i = 0; i < 8; ++i) sink = as<std::uint16_t>(at)[i]; }),
    LOADS("a range", { __tsan_read_range(at + 5, 3); }),
    LOADS("a pointer to virtual functions", { __tsan_vptr_read(as<void*>(at)); }),
    LOADS("a volatile load that is told apart", { __tsan_volatile_read4(at + 4); }),
    LOADS("atomic load", { sink = __atomic_load_n(as<std::uint32_t>(at), __ATOMIC_RELAXED); }),
    LOADS("compare and swap that fails", { sink = std::uint64_t(__sync_bool_compare_and_swap(as<std::uint64_t>(at), 0x123456789abcdef, 1)); }),
    STORES("store of 1 byte", { *as<std::uint8_t>(at + 3) = 1; }),
    STORES("store of 2 bytes", { *as<std::uint16_t>(at + 2) = 1; }),
    STORES("store of 4 bytes", { *as<std::uint32_t>(at + 4) = 1; }),
    STORES("store of 8 bytes", { *as<std::uint64_t>(at + 8) = 1; }),
    STORES("store of 16 bytes", { *as<Pair>(at) = 1; }),
    STORES("store of a double", { *as<double>(at) = 1; }),
    STORES("unaligned store of 2 bytes", { as<Unaligned>(at)->two = 1; }),
    STORES("unaligned store of 4 bytes", { as<Unaligned>(at)->four = 1; }),
    STORES("unaligned store of 8 bytes", { as<Unaligned>(at)->eight = 1; }),
    STORES("volatile store", { *as<volatile std::uint16_t>(at) = 1; }),
    STORES("store of a bit field", { as<Bits>(at)->low = 1; }),
    STORES("increment", { ++*as<std::uint32_t>(at); }),
    STORES("copy into a struct", { *as<Small>(at) = *as<Small>(elsewhere); }),
    STORES("copy into a large struct", { *as<Large>(at) = *as<Large>(elsewhere); }),
    STORES("memcpy of 8 bytes", { std::memcpy(at, elsewhere, 8); }),
    STORES("memcpy of 16 bytes", { std::memcpy(at, elsewhere, 16); }),
    STORES("memcpy of some bytes", { std::memcpy(at + 1, elsewhere, sink % 2 + 13); }),
    STORES("memmove", { std::memmove(at + 4, at + 1, sink % 2 + 9); }),
    STORES("memset of 16 bytes", { std::memset(at, 0, 16); }),
    STORES("memset of some bytes", { std::memset(at + 2, 0, sink % 2 + 3); }),
    STORES("store in a loop", { for (int i = 3; i >= 0; --i) as<std::uint32_t>(at)[i] = std::uint32_t(i); }),
    STORES("a range", { __tsan_write_range(at + 5, 3); }),
    STORES("a pointer to virtual functions", { __tsan_vptr_update(as<void*>(at), nullptr); }),
    STORES("a volatile store that is told apart", { __tsan_unaligned_volatile_write2(at + 3); }),
    STORES("a load and a store in one", { __tsan_read_write8(at); }),
    STORES("an unaligned load and a store in one", { __tsan_unaligned_read_write4(at + 3); }),
    STORES("atomic store", { __atomic_store_n(as<std::uint16_t>(at), 1, __ATOMIC_SEQ_CST); }),
    STORES("atomic exchange", { sink = __atomic_exchange_n(as<std::uint8_t>(at), 1, __ATOMIC_RELAXED); }),
    STORES("compare and swap", { sink = std::uint64_t(__sync_bool_compare_and_swap(as<std::uint32_t>(at), *as<std::uint32_t>(at), 1)); }),
    STORES("atomic addition", { __atomic_fetch_add(as<std::uint64_t>(at), 1, __ATOMIC_RELAXED); }),
};
// Named by a line elsewhere where the compiler has not put it in place.
const OwnAccess library_touches[] = {
    STORES("construction of an object", { ::new (at) Based; }),
    LOADS("std::copy from it", { std::copy(as<int>(at), as<int>(at) + 4, as<int>(elsewhere)); }),
    LOADS("std::accumulate", { sink = std::uint64_t(std::accumulate(as<int>(at), as<int>(at) + 4, 0)); }),
    LOADS("std::equal", { sink = std::uint64_t(std::equal(at, at + 4, elsewhere)); }),
    STORES("std::copy", { std::copy(as<int>(elsewhere), as<int>(elsewhere) + 4, as<int>(at)); }),
    STORES("std::fill", { std::fill(at, at + 16, std::byte{}); }),
    STORES("std::fill of some bytes", { std::fill(at, at + sink % 2 + 9, std::byte{}); }),
    STORES("std::fill_n of floats", { std::fill_n(as<float>(at), 4, 1.0F); }),
    STORES("std::sort", { std::sort(as<short>(at), as<short>(at) + 8); }),
    STORES("atomic_ref", { std::atomic_ref(*as<int>(at)).fetch_or(1); }),
};
// clang-format on

// Programs.

struct Rig {
  explicit Rig(World& w) : world(w), rma(w.context()), me(w.rank()) {}

  World& world;
  Context& rma;
  Rank me;
  SymmetricArray<std::uint64_t> memory = world.allocate<std::uint64_t>(32);
  SymmetricArray<std::uint64_t> flags = world.allocate<std::uint64_t>(8);
  Symmetric<std::uint64_t> words = memory.slice(0, 2);  // the 16 bytes
  std::byte* at = reinterpret_cast<std::byte*>(memory.local());
  std::uint64_t own[2] = {1, 2};
  // For local memory: 16 bytes and 64 more.
  alignas(16) std::array<std::byte, 96> local{};
  std::span<std::uint64_t> local_words{reinterpret_cast<std::uint64_t*>(local.data()), 2};

  void raise(Rank to) { rma.signal(flags.slice(0, 1), 1, SignalOp::set, to); }
  void await() { rma.signal_wait(flags.slice(0, 1), Comparison::equal, 1); }
};

enum class Verdict { race, clean };

/// Runs it under some seeds. `lines`: one of them is named by a race.
template <class F>
void check(Verdict expected, const std::string& name, F&& program, int line = 0) {
  ++cases;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::string message;
    bool is_race = false;
    try {
      simulate({.ranks = 2, .seed = seed, .heap_bytes = std::size_t(1) << 16, .steps_max = 100'000}, [&](World& world) {
        Rig rig(world);
        program(rig);
      });
    } catch (const Error& error) {
      message = error.message();
      is_race = error.code() == ErrorCode::race;
    } catch (const std::exception& error) {
      message = error.what();
    }
    if (expected == Verdict::clean && !message.empty()) return fault(name, message);
    if (expected == Verdict::race && !is_race) return fault(name, "no race is found: " + message);
    if (expected == Verdict::clean || line == 0) continue;
    bool is_named = false;
#if defined(HAS_LINES)
    for (int i = line; i < line + 5; ++i)
      is_named |= message.find("cases.cpp:" + std::to_string(i) + ")") != std::string::npos;
#else
    is_named = message.find("+0x") != std::string::npos;
#endif
    if (!is_named) return fault(name, "line " + std::to_string(line) + " is missing in: " + message);
    return;  // one message is as good as three, and takes its time
  }
}

/// All memory that a touch may be wrong for, with and without order.
void check_touch(const OwnAccess& touch, bool is_named) {
  const int line = is_named ? touch.line : 0;
  const Verdict if_writes = touch.writes ? Verdict::race : Verdict::clean;
  const auto name = [&](const char* what) { return std::string(touch.name) + ", " + what; };

  check(
      Verdict::race, name("while a peer puts"),
      [&](Rig& r) { r.me == 0 ? r.rma.put(r.words, r.own, 1) : touch.make(r.at); }, line);
  check(Verdict::clean, name("after a peer has put"), [&](Rig& r) {
    if (r.me == 0) return r.rma.put_signal(r.words, r.own, r.flags.slice(0, 1), 1, SignalOp::set, 1);
    r.await();
    touch.make(r.at);
  });
  check(
      Verdict::race, name("after a signal that no fence holds back"),
      [&](Rig& r) {
        if (r.me == 0) {
          r.rma.put(r.words, r.own, 1);
          return r.raise(1);
        }
        r.await();
        touch.make(r.at);
      },
      line);
  check(Verdict::clean, name("before a peer puts"), [&](Rig& r) {
    if (r.me == 1) {
      touch.make(r.at);
      return r.raise(0);
    }
    r.await();
    r.rma.put(r.words, r.own, 1);
  });
  check(if_writes, name("while a peer gets"),
        [&](Rig& r) { r.me == 0 ? r.rma.get(r.own, r.words, 1) : touch.make(r.at); });
  check(Verdict::clean, name("beside what a peer puts"),
        [&](Rig& r) { r.me == 0 ? r.rma.put(r.words, r.own, 1) : touch.make(r.at + 32); });
  check(if_writes, name("on a source"), [&](Rig& r) {
    r.rma.put_nbi(r.words, r.local_words, 1 - r.me);
    touch.make(r.local.data());
    r.rma.quiet();
  });
  check(Verdict::race, name("on a target"), [&](Rig& r) {
    if (r.me == 1) return;
    r.rma.get_nbi(r.local_words, r.words, 1);
    touch.make(r.local.data());
    r.rma.quiet();
  });
  check(Verdict::clean, name("on local memory of transfers that are over"), [&](Rig& r) {
    if (r.me == 1) return;
    r.rma.get_nbi(r.local_words, r.words, 1);
    touch.make(r.local.data() + 32);
    r.rma.quiet();
    touch.make(r.local.data());
    r.rma.put_nbi(r.words, r.local_words, 1);
    r.rma.quiet();
    touch.make(r.local.data());
  });
}

template <class T>
void check_values_of_atomics() {
  std::atomic<T> word = T(5);
  expect(word.load() == T(5), "load");
  word.store(T(6), std::memory_order_relaxed);
  word.store(T(7), std::memory_order_release);
  word.store(T(8));
  expect(word.exchange(T(12)) == T(8), "exchange");
  expect(word.fetch_add(T(30)) == T(12), "fetch_add");
  expect(word.fetch_sub(T(2)) == T(42), "fetch_sub");
  expect(word.fetch_and(T(0x2c)) == T(40), "fetch_and");
  expect(word.fetch_or(T(3)) == T(40), "fetch_or");
  expect(word.fetch_xor(T(0xff)) == T(43), "fetch_xor");
  T plain = T(0xd4);
  expect(__atomic_fetch_nand(&plain, T(0xf0), __ATOMIC_ACQ_REL) == T(0xd4) && plain == T(~0xd0), "fetch_nand");
  T seen = T(1);
  expect(!word.compare_exchange_strong(seen, T(9)) && seen == T(0xd4), "compare_exchange_strong that fails");
  expect(word.compare_exchange_strong(seen, T(9)) && word == T(9), "compare_exchange_strong");
  seen = T(1);
  expect(!word.compare_exchange_weak(seen, T(10), std::memory_order_acq_rel) && seen == T(9), "compare_exchange_weak");
  while (!word.compare_exchange_weak(seen, T(10), std::memory_order_relaxed)) {
  }
  expect(word == T(10), "compare_exchange_weak that is repeated");
}

#if defined(__x86_64__)
void check_values_of_pairs() {
  constexpr int order = __ATOMIC_SEQ_CST;
  const Pair high = Pair(1) << 64;
  alignas(16) Pair word = high + 5;
  expect(__tsan_atomic128_load(&word, order) == high + 5, "load of 16 bytes");
  __tsan_atomic128_store(&word, high + 8, order);
  expect(__tsan_atomic128_exchange(&word, high + 12, order) == high + 8, "exchange of 16 bytes");
  expect(__tsan_atomic128_fetch_add(&word, high, order) == high + 12, "fetch_add of 16 bytes");
  expect(__tsan_atomic128_fetch_sub(&word, 2 * high, order) == 2 * high + 12, "fetch_sub of 16 bytes");
  expect(__tsan_atomic128_fetch_or(&word, high, order) == 12, "fetch_or of 16 bytes");
  expect(__tsan_atomic128_fetch_and(&word, high + 4, order) == high + 12, "fetch_and of 16 bytes");
  expect(__tsan_atomic128_fetch_xor(&word, high + 1, order) == high + 4, "fetch_xor of 16 bytes");
  expect(__tsan_atomic128_fetch_nand(&word, 4, order) == 5 && word == ~Pair(4), "fetch_nand of 16 bytes");
  word = high;
  Pair seen = 1;
  expect(__tsan_atomic128_compare_exchange_strong(&word, &seen, 3, order, order) == 0 && seen == high && word == high,
         "compare_exchange_strong of 16 bytes that fails");
  expect(__tsan_atomic128_compare_exchange_strong(&word, &seen, 3, order, order) != 0 && word == 3,
         "compare_exchange_strong of 16 bytes");
  expect(__tsan_atomic128_compare_exchange_val(&word, 3, high + 7, order, order) == 3 && word == high + 7,
         "compare_exchange_val of 16 bytes");
  seen = high + 7;
  expect(__tsan_atomic128_compare_exchange_weak(&word, &seen, 1, order, order) != 0 && word == 1,
         "compare_exchange_weak of 16 bytes");
}
#endif

void check_atomics_of_threads() {
  std::atomic<std::uint32_t> count = 0;
  std::atomic<std::uint64_t> by_swap = 0;
#if defined(__x86_64__)
  alignas(16) static Pair pair = 0;
#endif
  std::vector<std::thread> threads;
  constexpr std::uint32_t times = 20'000;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::uint32_t i = 0; i < times; ++i) {
        count.fetch_add(1, std::memory_order_relaxed);
        std::uint64_t seen = by_swap.load(std::memory_order_relaxed);
        while (!by_swap.compare_exchange_weak(seen, seen + 3)) {
        }
#if defined(__x86_64__)
        __tsan_atomic128_fetch_add(&pair, (Pair(1) << 64) + 1, __ATOMIC_RELAXED);
#endif
      }
    });
  for (std::thread& thread : threads) thread.join();
  expect(count == 4 * times, "additions of threads");
  expect(by_swap == std::uint64_t(12) * times, "swaps of threads");
#if defined(__x86_64__)
  expect(pair == (Pair(1) << 64 | 1) * (4 * times), "additions of threads to 16 bytes");
#endif
}

void check_order_of_atomics() {
  constexpr auto relaxed = std::memory_order_relaxed, acquire = std::memory_order_acquire,
                 release = std::memory_order_release, strongest = std::memory_order_seq_cst;
  // Ranks wait by tests of another word, which lets others go on and orders nothing, for nothing is ever put there.
  const auto looks = [](std::memory_order order) {
    return [=](Rig& r) {
      if (r.me == 0) {
        r.rma.put(r.words, r.own, 1);
        r.rma.fence();
        return r.raise(1);
      }
      while (std::atomic_ref(*r.flags.local()).load(order) == 0) r.rma.test(r.flags.slice(1, 1), Comparison::equal, 1);
      sink = r.memory.local()[0];
    };
  };
  check(Verdict::clean, "a load that acquires", looks(acquire));
  check(Verdict::clean, "a load of the strongest order", looks(strongest));
  check(Verdict::race, "a load that does not acquire", looks(relaxed));
  const auto raises = [](std::memory_order order) {
    return [=](Rig& r) {
      if (r.me == 1) {
        r.memory.local()[0] = 7;
        return std::atomic_ref(*r.flags.local()).store(1, order);
      }
      while (r.rma.fetch(r.flags.slice(0, 1), 1) == 0) {
      }
      r.rma.get(r.own, r.words, 1);
    };
  };
  check(Verdict::clean, "a store that releases", raises(release));
  check(Verdict::clean, "a store of the strongest order", raises(strongest));
  check(Verdict::race, "a store that does not release", raises(relaxed));
  const auto adds = [](std::memory_order order) {
    return [=](Rig& r) {
      if (r.me == 1) {
        r.memory.local()[0] = 7;
        std::atomic_ref(*r.flags.local()).fetch_add(1, order);
        return;
      }
      while (r.rma.fetch(r.flags.slice(0, 1), 1) == 0) {
      }
      r.rma.get(r.own, r.words, 1);
    };
  };
  check(Verdict::clean, "an addition that releases", adds(std::memory_order_acq_rel));
  check(Verdict::race, "an addition that does not release", adds(acquire));

  check(Verdict::clean, "a signal that is looked at by an atomic load", [](Rig& r) {
    if (r.me == 0) return r.rma.put_signal(r.words, r.own, r.flags.slice(0, 1), 1, SignalOp::set, 1);
    r.rma.signal_wait(r.flags.slice(0, 1), Comparison::equal, 1);
    if (std::atomic_ref(*r.flags.local()).load() == 1) sink = r.memory.local()[0];
  });
  check(Verdict::clean, "updates by both sides", [](Rig& r) {
    if (r.me == 0) return r.rma.add(r.words, 1, 1);
    std::atomic_ref(*r.words.local()).fetch_add(1);
  });
  check(Verdict::clean, "updates of a floating-point number by both sides", [](Rig& r) {
    const auto reals = Symmetric<double>::at(reinterpret_cast<double*>(r.memory.local()), 1);
    if (r.me == 0) return r.rma.set(reals, 1.0, 1);
    std::atomic_ref(*reals.local()).fetch_add(1.0);
  });
  check(Verdict::race, "updates of different widths", [](Rig& r) {
    if (r.me == 0) return r.rma.add(r.words, 1, 1);
    std::atomic_ref(*reinterpret_cast<int*>(r.words.local())).fetch_add(1);
  });
  check(Verdict::race, "an update and a plain load", [](Rig& r) {
    if (r.me == 0) return r.rma.add(r.words, 1, 1);
    sink = *r.words.local();
  });
}

void check_programs() {
  check(Verdict::clean, "waits, tests and fetches of the library", [](Rig& r) {
    if (r.me == 0) {
      r.rma.put(r.words, r.own, 1);  // what a wait looks at may be put
      r.rma.quiet();
      return;
    }
    r.rma.wait_until(r.words, Comparison::equal, 1);
    while (!r.rma.test(r.memory.slice(1, 1), Comparison::equal, 2)) {
    }
    sink = r.rma.signal_fetch(r.words);
  });
  check(Verdict::clean, "a value that has yet to come", [](Rig& r) {
    if (r.me == 1) return;
    r.rma.fetch_add_nbi(r.own[0], r.words, 1, 1);
    r.rma.quiet();
    sink = r.own[0];
  });
  check(Verdict::race, "one cell of an array that a peer puts into", [](Rig& r) {
    std::vector<std::uint64_t> row(4, 1);
    if (r.me == 0) return r.rma.put(r.memory.slice(8, 4), row, 1);
    for (int i = 0; i < 9; ++i) r.memory.local()[i] = 1;
  });
  check(Verdict::clean, "all cells but those", [](Rig& r) {
    std::vector<std::uint64_t> row(4, 1);
    if (r.me == 0) return r.rma.put(r.memory.slice(8, 4), row, 1);
    for (int i = 0; i < 32; ++i)
      if (i < 8 || i >= 12) r.memory.local()[i] = 1;
  });
  for (const Index word : {8, 9})
    check(word == 8 ? Verdict::race : Verdict::clean, "a store across lines of the cache", [word](Rig& r) {
      if (r.me == 0) return r.rma.p(r.memory.slice(word, 1), 1, 1);
      as<Unaligned>(r.at + 60 - offsetof(Unaligned, eight))->eight = 1;
    });
  check(Verdict::race, "more columns than are remembered", [](Rig& r) {
    auto many = r.world.allocate<std::uint64_t>(4096);
    std::uint64_t* const all = many.local();
    if (r.me == 0) return r.rma.p(many.slice(0, 1), 1, 1);
    for (int column = 0; column < 3; ++column)
      for (int i = column; i < 4096; i += 3) all[i] = 1;
    for (int i = 4095; i > 0; i -= 2) all[i] += 1;
  });
  check(Verdict::race, "a read again after the order has gone", [](Rig& r) {
    if (r.me == 0) {
      r.await();
      return r.rma.put(r.words, r.own, 1);
    }
    sink = r.memory.local()[0];
    r.raise(0);
    sink = r.memory.local()[0];
  });
  check(Verdict::race, "a source on the heap, written in a function", [](Rig& r) {
    const auto source = std::make_unique<std::vector<std::uint64_t>>(2, 5);
    r.rma.put_nbi(r.words, *source, 1 - r.me);
    const auto write = [&](std::uint64_t& element) { element = 5; };  // the value that it has
    write(source->back());
    r.rma.quiet();
  });
  check(Verdict::race, "a program that fails by what it has read", [](Rig& r) {
    if (r.me == 0) {
      r.rma.put(r.words, r.own, 1);
      return r.raise(1);
    }
    r.await();
    const std::uint64_t seen = r.memory.local()[0];
    throw std::runtime_error("what is " + std::to_string(seen));
  });
  check(Verdict::clean, "memory of another thread than the rank's", [](Rig& r) {
    if (r.me == 0) return r.rma.put(r.words, r.own, 1);
    std::thread([&] {
      for (const OwnAccess& touch : touches) touch.make(r.at + 64);
      r.memory.local()[0] = 3;
    }).join();
  });
}

/// Runs before main(), and after it has returned.
struct Outside {
  Outside() { act(); }
  ~Outside() { act(); }
  static void act() {
    alignas(16) std::byte memory[96] = {};
    for (const OwnAccess& touch : touches) touch.make(memory);
    for (const OwnAccess& touch : library_touches) touch.make(memory);
  }
};
Outside outside;

}  // namespace

int main() {
  for (const OwnAccess& touch : touches) check_touch(touch, true);
  for (const OwnAccess& touch : library_touches) check_touch(touch, false);
  check_values_of_atomics<std::uint8_t>();
  check_values_of_atomics<std::uint16_t>();
  check_values_of_atomics<std::uint32_t>();
  check_values_of_atomics<std::uint64_t>();
#if defined(__x86_64__)
  check_values_of_pairs();
#endif
  check_atomics_of_threads();
  check_order_of_atomics();
  check_programs();
  std::printf("%d of %d cases are wrong\n", faults, cases);
  return faults == 0 ? 0 : 1;
}
