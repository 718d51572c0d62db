// Collective operations on doubles: writing, checking and repeating are the same for all contestants. Below them are
// the same operations written by hand, with loads and stores to the memory of all ranks.
//
// One timed operation repeats small work many times, and rewrites the inputs and reads the outputs each time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <contest/act.hpp>
#include <sched.h>

namespace contest {

/// Elements of one rank. A part is what one rank gives to one other rank.
struct CollectiveSizes {
  std::int64_t input = 0, output = 0, part = 0;
};
inline CollectiveSizes sizes_of(const Work& work) {
  const std::int64_t all = work.bytes / 8, part = all / work.ranks;
  switch (work.collective) {
    case Collective::all_reduce:
      return {all, all, all};
    case Collective::all_gather:
      return {part, all, part};
    case Collective::reduce_scatter:
      return {all, part, part};
    case Collective::all_to_all:
      break;
  }
  return {all, all, part};
}

class CollectiveMethod : public Method {
 public:
  CollectiveMethod(const Work& work, int rank, std::string name)
      : work_(work), rank_(rank), sizes_(sizes_of(work)), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  void write(double salt) override {
    salt_ = salt;
    fill(salt);
  }
  void spoil() override { std::fill_n(output_, sizes_.output, -1.0); }
  double read() override { return double(touch()); }
  std::int64_t count_wrong(double salt) override {
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < sizes_.output; ++i) wrong += output_[i] != wanted(i, salt);
    return wrong;
  }
  void run() override {
    for (std::int64_t k = work_.repeats - 1; k > 0; --k) {
      fill(salt_ - double(k));
      operate();
      used_ = used_ + touch();
    }
    if (work_.repeats > 1) fill(salt_);
    operate();
    if (work_.repeats > 1) used_ = used_ + touch();
  }

 protected:
  /// Must be called before any other member.
  void use(double* input, double* output) { input_ = input, output_ = output; }
  virtual void operate() = 0;

  const Work work_;
  const int rank_;
  const CollectiveSizes sizes_;
  double* input_ = nullptr;
  double* output_ = nullptr;

 private:
  static double value(int rank, std::int64_t i, double salt) { return salt + 1000.0 * rank + double(i); }
  void fill(double salt) {
    const double first = value(rank_, 0, salt);
    for (std::int64_t i = 0; i < sizes_.input; ++i) input_[i] = first + double(i);
  }
  /// Adds words instead of doubles, which the compiler may reorder, so that it takes no longer than reading.
  std::uint64_t touch() const {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < sizes_.output; ++i) {
      std::uint64_t word;
      std::memcpy(&word, output_ + i, sizeof word);
      sum += word;
    }
    return sum;
  }
  double wanted(std::int64_t i, double salt) const {
    const auto sum = [&](std::int64_t at) {
      double total = 0;
      for (int rank = 0; rank < work_.ranks; ++rank) total += value(rank, at, salt);
      return total;
    };
    switch (work_.collective) {
      case Collective::all_reduce:
        return sum(i);
      case Collective::reduce_scatter:
        return sum(rank_ * sizes_.part + i);
      case Collective::all_gather:
        return value(int(i / sizes_.part), i % sizes_.part, salt);
      case Collective::all_to_all:
        break;
    }
    return value(int(i / sizes_.part), rank_ * sizes_.part + i % sizes_.part, salt);
  }

  const std::string name_;
  double salt_ = 0;
  volatile std::uint64_t used_ = 0;
};

/// Small data goes to two slots of each peer in turn, followed by the number of the turn: a rank that has received a
/// turn from all peers knows that they have read the turn before the previous one. Larger data is loaded where it lies,
/// and larger sums are stored to all ranks, between two signals from all to all.
class HandCollective : public CollectiveMethod {
 public:
  static std::int64_t window_elements(const Work& work) { return Layout(work).size; }

  /// `windows` has the window of every rank, aligned to a cache line and filled with zeros.
  HandCollective(const Work& work, int rank, std::string name, std::vector<double*> windows)
      : CollectiveMethod(work, rank, std::move(name)), layout_(work), windows_(std::move(windows)) {
    use(windows_[std::size_t(rank)], windows_[std::size_t(rank)] + layout_.output);
  }

 protected:
  void operate() override {
    ++turn_;
    if (layout_.slot > 0)
      exchange();
    else
      work_in_place();
  }

 private:
  static constexpr std::int64_t line = 8;  // doubles
  static constexpr std::int64_t small_bytes = 8192;
  static constexpr std::int64_t whole_bytes = 1 << 20;  // two ranks combine all of it, each for itself
  static constexpr std::int64_t strip = 1024;

  struct Layout {
    explicit Layout(const Work& work) {
      const CollectiveSizes sizes = sizes_of(work);
      const auto lines = [](std::int64_t elements) { return (elements + line - 1) / line * line; };
      output = lines(sizes.input);
      slots = output + lines(sizes.output);
      slot = sizes.part * 8 <= small_bytes ? lines(sizes.part + 1) : 0;
      flags = slots + 2 * work.ranks * slot;
      size = flags + work.ranks * line;
    }
    std::int64_t output, slots, slot, flags, size;
  };

  double* at(int rank) const { return windows_[std::size_t(rank)]; }
  double* slot_of(int target, int source) const {
    return at(target) + layout_.slots + (std::int64_t(turn_ % 2) * work_.ranks + source) * layout_.slot;
  }
  double* output_of(int rank) const { return at(rank) + layout_.output; }
  const double* part_for(int source, int target) const {
    const bool is_cut = work_.collective == Collective::reduce_scatter || work_.collective == Collective::all_to_all;
    return at(source) + (is_cut ? target * sizes_.part : 0);
  }
  static void publish(double* word, std::uint64_t turn) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(word), turn, __ATOMIC_RELEASE);
  }
  void await(const double* word, std::uint64_t turn) const {
    const int spins = work_.ranks <= core_count() ? 100'000 : 20;
    for (int spin = 0; __atomic_load_n(reinterpret_cast<const std::uint64_t*>(word), __ATOMIC_ACQUIRE) < turn; ++spin)
      if (spin > spins) sched_yield();
  }
  bool adds() const {
    return work_.collective == Collective::all_reduce || work_.collective == Collective::reduce_scatter;
  }

  void exchange() {
    const auto bytes = std::size_t(sizes_.part) * sizeof(double);
    for (int i = 1; i < work_.ranks; ++i) {
      const int peer = (rank_ + i) % work_.ranks;
      double* const slot = slot_of(peer, rank_);
      std::memcpy(slot, part_for(rank_, peer), bytes);
      publish(slot + layout_.slot - 1, turn_);
    }
    std::memcpy(output_ + (adds() ? 0 : rank_ * sizes_.part), part_for(rank_, rank_), bytes);
    for (int i = 1; i < work_.ranks; ++i) {
      const int peer = (rank_ + i) % work_.ranks;
      const double* const slot = slot_of(rank_, peer);
      await(slot + layout_.slot - 1, turn_);
      if (adds())
        add(output_, slot, sizes_.part);
      else
        std::memcpy(output_ + peer * sizes_.part, slot, bytes);
    }
  }

  void meet(std::uint64_t turn) {
    for (int peer = 0; peer < work_.ranks; ++peer)
      if (peer != rank_) publish(at(peer) + layout_.flags + rank_ * line, turn);
    for (int peer = 0; peer < work_.ranks; ++peer)
      if (peer != rank_) await(at(rank_) + layout_.flags + peer * line, turn);
  }

  void work_in_place() {
    meet(2 * turn_);
    if (work_.collective == Collective::all_reduce && work_.ranks == 2 && work_.bytes <= whole_bytes) {
      const double* const a = at(rank_);
      const double* const b = at(1 - rank_);
      for (std::int64_t i = 0; i < sizes_.input; ++i) output_[i] = a[i] + b[i];
    } else if (work_.collective == Collective::all_reduce) {
      const std::int64_t first = share(rank_), end = share(rank_ + 1);
      for (std::int64_t i = first; i < end; i += strip) combine(i, i, std::min(strip, end - i), work_.ranks);
    } else if (work_.collective == Collective::reduce_scatter) {
      for (std::int64_t i = 0; i < sizes_.part; i += strip)
        combine(rank_ * sizes_.part + i, i, std::min(strip, sizes_.part - i), 1);
    } else {
      for (int i = 0; i < work_.ranks; ++i) {
        const int peer = (rank_ + i) % work_.ranks;
        std::memcpy(output_ + peer * sizes_.part, part_for(peer, rank_), std::size_t(sizes_.part) * sizeof(double));
      }
    }
    meet(2 * turn_ + 1);
  }
  std::int64_t share(int rank) const {
    return sizes_.input / line * rank / work_.ranks * line + (rank == work_.ranks ? sizes_.input % line : 0);
  }

  /// A strip of all inputs, from this rank's on, into the outputs of `targets` ranks.
  void combine(std::int64_t from, std::int64_t to, std::int64_t count, int targets) {
    double* const sum = output_ + to;
    if (work_.ranks == 2 && targets == 2) {
      const double* a = at(rank_) + from;
      const double* b = at(1 - rank_) + from;
      double* other = output_of(1 - rank_) + to;
      for (std::int64_t i = 0; i < count; ++i) other[i] = sum[i] = a[i] + b[i];
      return;
    }
    const double* a = at(rank_) + from;
    const double* b = at((rank_ + 1) % work_.ranks) + from;
    for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
    for (int i = 2; i < work_.ranks; ++i) add(sum, at((rank_ + i) % work_.ranks) + from, count);
    for (int i = 1; i < targets; ++i)
      std::memcpy(output_of((rank_ + i) % work_.ranks) + to, sum, std::size_t(count) * sizeof(double));
  }
  static void add(double* to, const double* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
  }

  const Layout layout_;
  const std::vector<double*> windows_;
  std::uint64_t turn_ = 0;
};

}  // namespace contest
