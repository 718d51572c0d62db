// One-sided transfers between two ranks, signals and barriers. The loops are the same for all contestants. A contestant
// brings a link, which is compiled into the loops because some operations take three nanoseconds. A link offers the
// operations that its library has: the concepts below say which belong together.
//
// A link owns a window: words of this rank that its peers transfer to and from. Windows begin with a page, or soon
// after it where a library has a header there, and local data begins half a page away from that: some processors copy
// thirty times slower when a target lies less than 32 bytes behind its source within a page, and this must not decide
// the contest.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <contest/methods.hpp>
#include <sched.h>

namespace contest {

using Word = std::uint64_t;
constexpr std::size_t page_bytes = 4096;
constexpr std::int64_t half_page = page_bytes / 2 / sizeof(Word);

/// The layout of a window, in words.
struct WindowLayout {
  std::int64_t words = 0;   ///< of one transfer, from the start on
  std::int64_t signal = 0;  ///< the word that signals, in the line of the data where it fits
  std::int64_t size = 0;
};
inline WindowLayout layout_of(const Work& work) {
  constexpr std::int64_t line = 8;
  const std::int64_t words = work.bytes / 8;
  const std::int64_t data = words * (work.transfer == Transfer::put_along ? work.repeats : 1);
  const std::int64_t signal = data < line ? line - 1 : (data + line - 1) / line * line;
  return {words, signal, (signal / line + 1) * line};
}

/// p and g transfer the first word. put transfers `layout.words` to its place and those after it, get from the start.
template <class Link>
concept Puts = requires(Link& link, Word* local) {
  link.p(Word());
  link.put(std::int64_t(), local);
  link.quiet();
  Word(link.g());
  link.get(local);
};
template <class Link>
concept Adds = requires(Link& link) {
  link.add(Word());
  Word(link.fetch_add(Word()));
};
/// Sends data together with a notice of its arrival: `turn` differs each time.
template <class Link>
concept Sends = requires(Link& link, Word* local, Word turn) {
  link.send(local, turn);
  link.receive(turn);
};
template <class Link>
concept Signals = requires(Link& link, Word turn) {
  link.signal(turn);
  link.await(turn);
};
template <class Link>
concept Meets = requires(Link& link) {
  link.barrier();
};

template <class Link>
bool can(const Work& work) {
  switch (work.transfer) {
    case Transfer::put:
    case Transfer::put_quiet:
    case Transfer::together:
      return Puts<Link> || (Sends<Link> && work.repeats == 1);
    case Transfer::put_along:
    case Transfer::get:
      return Puts<Link>;
    case Transfer::add:
    case Transfer::fetch_add:
      return Adds<Link>;
    case Transfer::message:
      return Sends<Link>;
    case Transfer::signal:
      return Signals<Link>;
    case Transfer::barrier:
      return Meets<Link>;
  }
  return false;
}

inline void fill(Word* data, std::int64_t count, Word first) {
  for (std::int64_t i = 0; i < count; ++i) data[i] = first + Word(i);
}
inline Word sum(const Word* data, std::int64_t count) {
  Word total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += data[i];
  return total;
}
/// The sum of the words that fill() writes.
inline Word sum_of(std::int64_t count, Word first) {
  return Word(count) * first + Word(count) * Word(count - 1) / 2;
}

inline std::int64_t count_wrong(const Word* data, std::int64_t count, Word first) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) wrong += data[i] != first + Word(i);
  return wrong;
}

template <class Link>
class OneSidedMethod final : public Method {
 public:
  /// Constructs the link from the layout and `arguments`.
  template <class... Arguments>
  OneSidedMethod(const Work& work, int rank, std::string name, Arguments&&... arguments)
      : work_(work),
        rank_(rank),
        layout_(layout_of(work)),
        name_(std::move(name)),
        link_(layout_, std::forward<Arguments>(arguments)...),
        memory_(memory(half_page + layout_.size, page_bytes)),
        local_(reinterpret_cast<Word*>(memory_.get()) + half_page) {}

  std::string name() const override { return name_; }

  void write(double salt) override {
    if (is_put() && rank_ == 0) fill(local_, data_words(), first_of(salt));
    if (work_.transfer == Transfer::get && rank_ == 1) fill(link_.window(), layout_.words, first_of(salt));
  }
  void spoil() override {
    if (is_put() && rank_ == 1) fill(link_.window(), data_words(), 0);
    if (work_.transfer == Transfer::get && rank_ == 0) fill(local_, layout_.words, 0);
    if (is_add() && rank_ == 1) link_.window()[0] = 0;
  }
  double read() override {
    if (is_put() && rank_ == 1) return double(sum(link_.window(), data_words()));
    if (work_.transfer == Transfer::get && rank_ == 0) return double(sum(local_, layout_.words));
    return double(used_);
  }
  std::int64_t count_wrong(double salt) override {
    std::int64_t wrong = wrong_;
    if (is_put() && rank_ == 1) wrong += contest::count_wrong(link_.window(), data_words(), first_of(salt));
    if (work_.transfer == Transfer::get && rank_ == 0)
      wrong += contest::count_wrong(local_, layout_.words, first_of(salt));
    if (is_add() && rank_ == 1) wrong += link_.window()[0] != Word(work_.repeats) * step;
    if (work_.transfer == Transfer::fetch_add && rank_ == 0) wrong += used_ != sum_of(work_.repeats, 0) * step;
    return wrong;
  }

  void run() override {
    const std::int64_t repeats = work_.repeats;
    switch (work_.transfer) {
      case Transfer::put:
      case Transfer::put_quiet:
      case Transfer::together:
        if constexpr (Puts<Link>) {
          if (rank_ == 0 && work_.transfer == Transfer::put_quiet)
            put(repeats, [this] { link_.quiet(); });
          else if (rank_ == 0)
            put(repeats, [] {});
          finish();
        } else if constexpr (Sends<Link>) {
          ++turn_;
          if (rank_ == 0)
            link_.send(local_, turn_);
          else
            link_.receive(turn_);
        }
        break;
      case Transfer::put_along:
        if constexpr (Puts<Link>) {
          if (rank_ == 0) {
            for (std::int64_t i = 0; i < repeats; ++i) link_.put(i * layout_.words, local_ + i * layout_.words);
            link_.quiet();
          }
          finish();
        }
        break;
      case Transfer::get:
        if constexpr (Puts<Link>) {
          if (rank_ == 0) get(repeats);
          finish();
        }
        break;
      case Transfer::add:
      case Transfer::fetch_add:
        if constexpr (Adds<Link>) {
          if (rank_ == 0) add(repeats);
          finish();
        }
        break;
      case Transfer::message:
        if constexpr (Sends<Link>)
          for (std::int64_t i = 0; i < repeats; ++i) there_and_back([&] { send(); }, [&] { receive(); });
        break;
      case Transfer::signal:
        if constexpr (Signals<Link>)
          for (std::int64_t i = 0; i < repeats; ++i)
            there_and_back([&] { link_.signal(turn_); }, [&] { link_.await(turn_); });
        break;
      case Transfer::barrier:
        if constexpr (Meets<Link>)
          for (std::int64_t i = 0; i < repeats; ++i) link_.barrier();
        break;
    }
  }

 private:
  static constexpr Word step = 3;

  bool is_put() const {
    return work_.transfer == Transfer::put || work_.transfer == Transfer::put_quiet ||
           work_.transfer == Transfer::put_along || work_.transfer == Transfer::together;
  }
  bool is_add() const { return work_.transfer == Transfer::add || work_.transfer == Transfer::fetch_add; }
  std::int64_t data_words() const {
    return layout_.words * (work_.transfer == Transfer::put_along ? work_.repeats : 1);
  }
  static Word first_of(double salt) { return Word(salt) << 20; }

  /// Single words have a different value each time, and the last one has the right value.
  template <class Each>
  void put(std::int64_t repeats, Each each) {
    if (layout_.words == 1) {
      const Word last = local_[0];
      for (std::int64_t left = repeats; left-- > 0;) {
        link_.p(last - Word(left));
        each();
      }
    } else {
      for (std::int64_t i = 0; i < repeats; ++i) {
        link_.put(0, local_);
        each();
      }
    }
    link_.quiet();
  }
  void get(std::int64_t repeats) {
    if (layout_.words == 1) {
      Word seen = 0;
      for (std::int64_t i = 0; i < repeats; ++i) used_ += seen = link_.g();
      local_[0] = seen;
    } else {
      for (std::int64_t i = 0; i < repeats; ++i) link_.get(local_);
    }
  }
  void add(std::int64_t repeats) {
    if (work_.transfer == Transfer::fetch_add) {
      used_ = 0;
      for (std::int64_t i = 0; i < repeats; ++i) used_ += link_.fetch_add(step);
    } else {
      for (std::int64_t i = 0; i < repeats; ++i) link_.add(step);
      link_.quiet();
    }
  }
  /// Makes all ranks meet at the end, for links that need their peers' help to make progress.
  void finish() {
    if constexpr (requires(Link & link) { link.finish(); }) link_.finish();
  }

  template <class Give, class Take>
  void there_and_back(Give give, Take take) {
    ++turn_;
    if (rank_ == 0) {
      give();
      take();
    } else {
      take();
      give();
    }
  }
  void send() {
    fill(local_, layout_.words, turn_ + Word(rank_));
    link_.send(local_, turn_);
  }
  void receive() {
    link_.receive(turn_);
    wrong_ += sum(link_.window(), layout_.words) != sum_of(layout_.words, turn_ + Word(1 - rank_));
  }

  const Work work_;
  const int rank_;
  const WindowLayout layout_;
  const std::string name_;
  Link link_;
  const Memory memory_;
  Word* const local_;
  Word turn_ = 0, used_ = 0;
  std::int64_t wrong_ = 0;
};

/// Adds the method when its link can do the work. Collective over the ranks, because constructors of links are.
template <class Link, class... Arguments>
void add_one_sided(Methods& methods, const Work& work, int rank, std::string name, Arguments&&... arguments) {
  if (can<Link>(work))
    methods.push_back(std::make_unique<OneSidedMethod<Link>>(work, rank, std::move(name), arguments...));
}

/// Loads, stores and memcpy as one writes them by hand, over any memory that ranks share. Also the machine's limit.
class ByHand {
 public:
  /// `windows` has the window of every rank at this rank's addresses, each on a cache line of its own and zero.
  ByHand(const WindowLayout& layout, std::vector<Word*> windows, int rank)
      : layout_(layout),
        windows_(std::move(windows)),
        rank_(rank),
        peer_(windows_[std::size_t(rank == 0 ? int(windows_.size()) - 1 : 0)]) {}

  Word* window() const { return windows_[std::size_t(rank_)]; }
  Word* peer() const { return peer_; }

  void p(Word value) { store(peer_, value); }
  void put(std::int64_t place, const Word* local) {
    if (layout_.words == 1) return store(peer_ + place, *local);
    std::memcpy(peer_ + place, local, std::size_t(layout_.words) * sizeof(Word));
    asm volatile("" : : : "memory");  // each of them is made
  }
  void quiet() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  Word g() const { return load(peer_); }
  void get(Word* local) const {
    std::memcpy(local, peer_, std::size_t(layout_.words) * sizeof(Word));
    asm volatile("" : : : "memory");
  }
  void add(Word value) { __atomic_fetch_add(peer_, value, __ATOMIC_ACQ_REL); }
  Word fetch_add(Word value) { return __atomic_fetch_add(peer_, value, __ATOMIC_ACQ_REL); }

  void send(const Word* local, Word turn) {
    std::memcpy(peer_, local, std::size_t(layout_.words) * sizeof(Word));
    signal(turn);
  }
  void receive(Word turn) const { await(turn); }
  void signal(Word turn) { store(peer_ + layout_.signal, turn); }
  void await(Word turn) const {
    while (load(window() + layout_.signal) != turn) {
    }
  }

  /// One phase: each rank counts its barriers in a line of its own, which all others read.
  void barrier() {
    const bool yields = int(windows_.size()) > core_count();
    store(window(), ++epoch_);
    for (const Word* other : windows_)
      while (load(other) < epoch_)
        if (yields) sched_yield();
  }

 private:
  static void store(Word* at, Word value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
  static Word load(const Word* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

  const WindowLayout layout_;
  const std::vector<Word*> windows_;
  const int rank_;
  Word* const peer_;
  Word epoch_ = 0;
};

}  // namespace contest
