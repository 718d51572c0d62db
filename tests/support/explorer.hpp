// Explorer: runs a small scenario of fibers under every schedule up to a bound, and under what C++ memory orders allow.
//
// Stateless depth-first search: a run is a list of choices, and the next run differs in the last choice that has an
// alternative left. Before each access to a word the scheduler may preempt the fiber (at most `preemptions_max` times a
// run); a load may return an older value that the memory model still allows (at most `stale_reads_max` times a run).
//
// Memory model: each word keeps all values ever stored, in the order of the stores. A fiber has a view: how far it has
// certainly seen each word, and each other fiber. A release store carries the view of its fiber; an acquire load takes
// it over; a relaxed one does not. So store buffering and delayed visibility are explored; values read before they are
// written (load buffering) are not. Payload has no choices: an access that is not ordered after the last conflicting
// one by views is a race, found in every schedule that has the same order of words. It is therefore no scheduling
// point.
//
// A scenario is a class with `static constexpr int fibers`, words and payload as members, `void run(int fiber)` and
// `void check()`; it fails by `Sync::check`. A failing run is abandoned in the middle: run() must own nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ucontext.h>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/lanes/fiber_sanitizers.hpp>

namespace tranship::test {

struct ExploreOptions {
  int preemptions_max = 2;
  int stale_reads_max = 2;
  long runs_max = 2'000'000;
};

struct Exploration {
  long runs = 0;
  /// The failure of the first run that failed.
  std::optional<std::string> failure;
  /// False when runs_max ended the search.
  bool complete = false;
};

class Explorer {
 public:
  static constexpr int fibers_max = 4;
  static constexpr int words_max = 16;

  /// The explorer whose run is in progress.
  static Explorer& current() { return *current_; }

  template <class Scenario>
  static Exploration explore(ExploreOptions options) {
    static_assert(Scenario::fibers <= fibers_max);
    Explorer explorer(options, Scenario::fibers);
    Exploration result;
    while (result.runs < options.runs_max) {
      explorer.begin_run();
      Scenario scenario;
      explorer.run([](void* scenario, int fiber) { static_cast<Scenario*>(scenario)->run(fiber); }, &scenario);
      if (!explorer.failure_) scenario.check();
      ++result.runs;
      if ((result.failure = explorer.failure_)) return result;
      if (!explorer.next_choices()) {
        result.complete = true;
        return result;
      }
    }
    return result;
  }

  // The members below are called from inside a scenario.

  /// How far a fiber has certainly seen: per word the index of a store, per fiber a time.
  struct View {
    std::array<int, words_max> store{};
    std::array<int, fibers_max> time{};

    void join(const View& other) {
      for (int w = 0; w < words_max; ++w) store[w] = std::max(store[w], other.store[w]);
      for (int f = 0; f < fibers_max; ++f) time[f] = std::max(time[f], other.time[f]);
    }
  };
  struct Store {
    std::uint64_t value;
    View released;
  };
  enum class Order { relaxed, ordered };

  int new_word() {
    if (words_ == words_max) std::abort();
    return words_++;
  }

  std::uint64_t load(int word, const std::vector<Store>& stores, Order order) {
    schedule();
    View& view = views_[running_];
    const int newest = static_cast<int>(stores.size()) - 1;
    const int oldest = std::max(view.store[word], newest - (options_.stale_reads_max - stale_reads_));
    const int back = choose(newest - oldest + 1);
    stale_reads_ += back;
    if (back > 0) polling_[running_].read_stale = true;
    const Store& store = stores[static_cast<std::size_t>(newest - back)];
    if (order == Order::ordered) view.join(store.released);
    view.store[word] = std::max(view.store[word], newest - back);
    return store.value;
  }

  void store(int word, std::vector<Store>& stores, std::uint64_t value, Order order) {
    schedule();
    append(word, stores, value, order, View{});
  }

  /// Reads the newest value, as the standard demands; writes `desired(value)` unless that is nothing.
  template <class Desired>
  std::uint64_t read_modify_write(int word, std::vector<Store>& stores, Desired desired) {
    schedule();
    const Store seen = stores.back();
    View& view = views_[running_];
    view.join(seen.released);
    view.store[word] = static_cast<int>(stores.size()) - 1;
    // A read-modify-write continues the release sequence of what it replaces.
    if (const auto value = desired(seen.value)) append(word, stores, *value, Order::ordered, seen.released);
    return seen.value;
  }

  struct Access {
    int fiber = -1;
    int time = 0;
  };
  void payload_read(const Access& written, std::array<int, fibers_max>& read_times) {
    View& view = views_[running_];
    if (written.fiber >= 0 && view.time[written.fiber] < written.time)
      fail("race: fiber " + std::to_string(running_) + " reads what fiber " + std::to_string(written.fiber) +
           " writes");
    read_times[running_] = ++view.time[running_];
  }
  void payload_write(Access& written, const std::array<int, fibers_max>& read_times) {
    View& view = views_[running_];
    if (written.fiber >= 0 && view.time[written.fiber] < written.time)
      fail("race: fibers " + std::to_string(running_) + " and " + std::to_string(written.fiber) + " both write");
    for (int f = 0; f < fibers_; ++f)
      if (view.time[f] < read_times[f])
        fail("race: fiber " + std::to_string(running_) + " writes what fiber " + std::to_string(f) + " reads");
    written = {running_, ++view.time[running_]};
  }

  /// Ends one round of a polling loop: the fiber goes on once a fiber has stored since the round began.
  void pause() {
    Polling& polling = polling_[running_];
    if (polling.stores == stores_ && !polling.read_stale) switch_to_another();
    polling_[running_] = {stores_, false};
  }

  /// Ends the whole run; does not return inside a fiber.
  void fail(std::string what) {
    if (!failure_) failure_ = std::move(what);
    if (running_ >= 0) leave(Leaving::for_good);
  }

 private:
  struct Choice {
    int taken;
    int count;
  };
  struct Polling {
    long stores = 0;
    bool read_stale = false;
  };
  struct Fiber {
    ucontext_t context;
    std::vector<unsigned char> stack = std::vector<unsigned char>(256 * 1024);
    bool finished = false;
    bool waiting = false;
#if defined(TRANSHIP_TSAN)
    void* tsan = nullptr;
#endif
  };
  enum class Leaving { to_come_back, for_good };

  Explorer(ExploreOptions options, int fibers) : options_(options), fibers_(fibers) {
    for (int f = 0; f < fibers; ++f) fiber_.push_back(std::make_unique<Fiber>());
    current_ = this;
  }
  ~Explorer() {
    current_ = nullptr;
  }

  void begin_run() {
    at_ = 0;
    words_ = 0;
    stores_ = 0;
    preemptions_ = 0;
    stale_reads_ = 0;
    running_ = -1;
    views_ = {};
    polling_ = {};
    failure_.reset();
  }

  /// One past the last choice of the run: the next alternative in depth-first order. False when there is none.
  bool next_choices() {
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    return true;
  }

  int choose(int count) {
    if (count <= 1) return 0;
    if (at_ == choices_.size()) choices_.push_back({0, count});
    // Equal choices lead to equal runs, unless the scenario depends on something outside of itself.
    if (choices_[at_].count != count) std::abort();
    return choices_[at_++].taken;
  }

  void run(void (*body)(void*, int), void* scenario) {
    body_ = body;
    scenario_ = scenario;
    for (auto& fiber : fiber_) prepare(*fiber);
#if defined(TRANSHIP_TSAN)
    main_tsan_ = __tsan_get_current_fiber();
#endif
    const int first = choose(fibers_);
    running_ = first;
    enter(main_, *fiber_[first], Leaving::to_come_back);
    running_ = -1;
#if defined(TRANSHIP_TSAN)
    for (auto& fiber : fiber_) __tsan_destroy_fiber(fiber->tsan);
#endif
  }

  static void prepare(Fiber& fiber) {
    fiber.finished = fiber.waiting = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Explorer::fiber_main, 0);
#if defined(TRANSHIP_TSAN)
    fiber.tsan = __tsan_create_fiber(0);
#endif
  }

  static void fiber_main() {
    Explorer& explorer = current();
    explorer.arrived();
    const int me = explorer.running_;
    explorer.body_(explorer.scenario_, me);
    explorer.fiber_[me]->finished = true;
    explorer.switch_to_another();
  }

  /// A scheduling point: the running fiber goes on, or another one that can takes over.
  void schedule() {
    if (preemptions_ == options_.preemptions_max) return;
    const std::vector<int>& others = runnable_others();
    const int taken = choose(1 + static_cast<int>(others.size()));
    if (taken == 0) return;
    ++preemptions_;
    resume(others[static_cast<std::size_t>(taken - 1)]);
  }

  /// The running fiber cannot go on: any other may, at no cost.
  void switch_to_another() {
    Fiber& fiber = *fiber_[running_];
    fiber.waiting = !fiber.finished;
    const std::vector<int>& others = runnable_others();
    if (others.empty()) {
      if (std::any_of(fiber_.begin(), fiber_.end(), [](const auto& f) { return !f->finished; }))
        fail("deadlock: every fiber waits for another");
      leave(Leaving::for_good);
      return;
    }
    const int next = others[static_cast<std::size_t>(choose(static_cast<int>(others.size())))];
    resume(next);
    fiber.waiting = false;
  }

  const std::vector<int>& runnable_others() {
    runnable_.clear();
    for (int f = 0; f < fibers_; ++f) {
      const Fiber& fiber = *fiber_[f];
      if (f == running_ || fiber.finished) continue;
      if (!fiber.waiting || polling_[f].stores != stores_) runnable_.push_back(f);
    }
    return runnable_;
  }

  void append(int word, std::vector<Store>& stores, std::uint64_t value, Order order, View released) {
    View& view = views_[running_];
    ++view.time[running_];
    view.store[word] = static_cast<int>(stores.size());
    if (order == Order::ordered) released.join(view);
    stores.push_back({value, released});
    ++stores_;
  }

  void resume(int next) {
    Fiber& from = *fiber_[running_];
    const Leaving leaving = from.finished ? Leaving::for_good : Leaving::to_come_back;
    const int me = running_;
    running_ = next;
    enter(from.context, *fiber_[next], leaving);
    running_ = me;
  }

  /// Back to explore().
  void leave(Leaving leaving) {
#if defined(TRANSHIP_TSAN)
    __tsan_switch_to_fiber(main_tsan_, 0);
#endif
    switch_context(fiber_[running_]->context, main_, main_stack_, main_stack_bytes_, leaving);
  }

  void enter(ucontext_t& from, Fiber& to, Leaving leaving) {
#if defined(TRANSHIP_TSAN)
    __tsan_switch_to_fiber(to.tsan, 0);
#endif
    switch_context(from, to.context, to.stack.data(), to.stack.size(), leaving);
  }

  // AddressSanitizer wants to know of every change of stack: before it, and on the other side after it.
  void switch_context(ucontext_t& from, ucontext_t& to, [[maybe_unused]] const void* stack,
                      [[maybe_unused]] std::size_t stack_bytes, [[maybe_unused]] Leaving leaving) {
#if defined(TRANSHIP_ASAN)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(leaving == Leaving::for_good ? nullptr : &fake_stack, stack, stack_bytes);
    swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#else
    swapcontext(&from, &to);
#endif
  }
  void arrived() {
#if defined(TRANSHIP_ASAN)
    const void* stack;
    std::size_t stack_bytes;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &stack_bytes);
    if (main_stack_ == nullptr) {
      main_stack_ = stack;
      main_stack_bytes_ = stack_bytes;
    }
#endif
  }

  static inline thread_local Explorer* current_ = nullptr;

  ExploreOptions options_;
  int fibers_;
  std::vector<std::unique_ptr<Fiber>> fiber_;
  ucontext_t main_;
  const void* main_stack_ = nullptr;
  std::size_t main_stack_bytes_ = 0;
#if defined(TRANSHIP_TSAN)
  void* main_tsan_ = nullptr;
#endif
  void (*body_)(void*, int) = nullptr;
  void* scenario_ = nullptr;

  std::vector<Choice> choices_;
  std::size_t at_ = 0;
  int words_ = 0;
  long stores_ = 0;
  int preemptions_ = 0;
  int stale_reads_ = 0;
  int running_ = -1;
  std::array<View, fibers_max> views_{};
  std::array<Polling, fibers_max> polling_{};
  std::vector<int> runnable_;
  std::optional<std::string> failure_;
};

struct ExploredSync {
  class Word {
   public:
    Word() : id_(Explorer::current().new_word()) {}
    Word(const Word&) = delete;
    Word& operator=(const Word&) = delete;

    std::uint64_t load_acquire() const { return load(Order::ordered); }
    std::uint64_t load_relaxed() const { return load(Order::relaxed); }
    void store_release(std::uint64_t value) { Explorer::current().store(id_, stores_, value, Order::ordered); }
    void store_relaxed(std::uint64_t value) { Explorer::current().store(id_, stores_, value, Order::relaxed); }
    bool compare_exchange(std::uint64_t expected, std::uint64_t desired) {
      return Explorer::current().read_modify_write(id_, stores_, [&](std::uint64_t seen) {
        return seen == expected ? std::optional(desired) : std::nullopt;
      }) == expected;
    }
    std::uint64_t fetch_add(std::uint64_t by) {
      return Explorer::current().read_modify_write(id_, stores_,
                                                   [&](std::uint64_t seen) { return std::optional(seen + by); });
    }

   private:
    using Order = Explorer::Order;
    std::uint64_t load(Order order) const { return Explorer::current().load(id_, stores_, order); }

    int id_;
    std::vector<Explorer::Store> stores_{{0, {}}};
  };

  template <class T>
  class Payload {
   public:
    T read() {
      Explorer::current().payload_read(written_, read_times_);
      return value_;
    }
    void write(T value) {
      Explorer::current().payload_write(written_, read_times_);
      value_ = value;
    }

   private:
    T value_{};
    Explorer::Access written_;
    std::array<int, Explorer::fibers_max> read_times_{};
  };

  static void pause() { Explorer::current().pause(); }
  static void check(bool holds, int line = __builtin_LINE()) {
    if (!holds) Explorer::current().fail("check failed at line " + std::to_string(line));
  }
};
static_assert(SyncSeam<ExploredSync>);

/// Canaries: the same protocol over words with one promise broken. A scenario that passes over these proves nothing.
struct RelaxedStoreSync : ExploredSync {
  struct Word : ExploredSync::Word {
    void store_release(std::uint64_t value) { store_relaxed(value); }
  };
};
struct RelaxedLoadSync : ExploredSync {
  struct Word : ExploredSync::Word {
    std::uint64_t load_acquire() const { return load_relaxed(); }
  };
};
struct TornExchangeSync : ExploredSync {
  struct Word : ExploredSync::Word {
    bool compare_exchange(std::uint64_t expected, std::uint64_t desired) {
      if (load_acquire() != expected) return false;
      store_release(desired);
      return true;
    }
  };
};

/// Runs a scenario on real words and real threads, for ThreadSanitizer and for effects that the model lacks.
struct ThreadedSync : RealSync {
  static void pause() { RealSync::yield(); }
  static void check(bool holds, int line = __builtin_LINE()) {
    if (!holds) throw std::runtime_error("check failed at line " + std::to_string(line));
  }
};

}  // namespace tranship::test
