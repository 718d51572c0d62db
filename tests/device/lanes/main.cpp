// device_lanes runs the operations of lanes/ in real kernels and compares them bit for bit with lanes of the CPU. Ranks
// share one card, as blocks of one cooperative launch or as streams of one process. Each case (arena.hpp) runs on the
// same random bytes on both sides, and the whole heaps are compared.
//
//   device_lanes [--small] [--ranks N] [--as blocks|streams] [--only TEXT] [--no-times] [--no-lost]
//   device_lanes --host [--small] [--ranks N] [--only TEXT]     without a card: all routes of the CPU agree
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "lanes/card.hpp"
#include "lanes/runs.hpp"
#include "support/findings.hpp"

namespace tranship::device {
namespace {

struct Options {
  bool host = false;
  bool times = true;
  bool lost = true;
  Extent extent = Extent::full;
  std::vector<int> ranks;
  std::vector<As> as = {As::blocks, As::streams};
  std::string only;
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Holds the runs of one case with `ranks` ranks.
struct Batch {
  Batch(const HostCase& of, int ranks, Extent extent) : runs(runs_of(of.facts, ranks, extent)) {
    for (const Run& run : runs) before.push_back(arenas_before(of.facts, run));
  }
  std::vector<Run> runs;
  std::vector<std::vector<Bytes>> before;
};

/// Compares run by run, by `difference_of(i)`, and reports one check.
void compare(const std::string& name, const Batch& batch, const std::vector<std::vector<Bytes>>& wanted,
             const std::function<std::string(std::size_t)>& difference_of) {
  long long wrong = 0;
  std::string note;
  for (std::size_t i = 0; i < batch.runs.size(); ++i) {
    std::string problem = difference_of(i);
    if (problem.empty() && wanted[i] == batch.before[i]) problem = "nothing has happened";
    if (problem.empty()) continue;
    if (wrong++ == 0) note = name_of(batch.runs[i]) + ": " + problem;
  }
  check(name, static_cast<long long>(batch.runs.size()), wrong, note);
}

/// Holds the heaps by place, with guards around the arenas.
struct Heaps {
  Heaps(const Run& run, const std::vector<Bytes>& arenas) : places_(arenas.size()) {
    const auto* const lists = reinterpret_cast<const Lists*>(arenas.front().data() + lists_at);
    bytes.resize(arenas.size() * heap_bytes);
    for_each_guard([&](std::size_t i) { bytes[i] = guard(i); });
    for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
      places_[rank] = run.args.has_places ? std::size_t(lists->places[rank]) : rank;
      std::memcpy(arena(rank), arenas[rank].data(), arena_bytes);
    }
  }

  unsigned char* arena(std::size_t rank) { return &bytes[places_[rank] * heap_bytes + guard_bytes]; }
  std::string difference_from(const std::vector<Bytes>& wanted) {
    for (std::size_t rank = 0; rank < wanted.size(); ++rank)
      if (std::memcmp(arena(rank), wanted[rank].data(), arena_bytes) != 0) return difference(wanted, arenas());
    std::string problem;
    for_each_guard([&](std::size_t i) {
      if (bytes[i] != guard(i)) problem = "place " + std::to_string(i / heap_bytes) + ": a guard is written";
    });
    return problem;
  }

  Bytes bytes;

 private:
  std::vector<Bytes> arenas() {
    std::vector<Bytes> out;
    for (std::size_t rank = 0; rank < places_.size(); ++rank) out.emplace_back(arena(rank), arena(rank) + arena_bytes);
    return out;
  }
  template <class F>
  void for_each_guard(const F& f) {
    for (std::size_t first = 0; first < bytes.size(); first += heap_bytes)
      for (std::size_t i = 0; i < guard_bytes; ++i) {
        f(first + i);
        f(first + guard_bytes + arena_bytes + i);
      }
  }
  static unsigned char guard(std::size_t i) { return static_cast<unsigned char>(i * 167 + 41 + (i >> 8)); }
  std::vector<std::size_t> places_;
};

/// Checks that a comparison finds a difference of one byte.
void check_comparison(const HostCase& of) {
  const Run run = runs_of(of.facts, 2, Extent::small).front();
  const std::vector<Bytes> arenas = arenas_before(of.facts, run);
  long long missed = 0, cases = 0;
  for (const std::size_t at :
       {std::size_t(guard_bytes), std::size_t(heap_bytes + guard_bytes + target_at + 77), std::size_t(3)}) {
    Heaps heaps(run, arenas);
    missed += !heaps.difference_from(arenas).empty();
    heaps.bytes[at] ^= 4;
    missed += heaps.difference_from(arenas).empty();
    ++cases;
  }
  check("a wrong byte is noticed", cases, missed);
}

bool is_wanted(const Options& options, const CaseFacts& facts) {
  return name_of(facts).find(options.only) != std::string::npos;
}

void run_on_host(const Options& options, const std::vector<HostCase>& cases) {
  for (const HostCase& one : cases) {
    if (!is_wanted(options, one.facts)) continue;
    for (const int ranks : options.ranks) {
      const Batch batch(one, ranks, options.extent);
      const std::string name = name_of(one.facts) + ", " + std::to_string(ranks) + " ranks";
      const auto wanted = arenas_after(one, batch.runs, batch.before, Route::memory);
      compare(name + ", as computed without lanes", batch, wanted,
              [&](std::size_t i) { return ring_difference(one.facts, batch.runs[i], batch.before[i], wanted[i]); });
      std::vector<Route> others = {Route::memory, Route::side_by_side};
      if (!one.facts.needs_memory) others.push_back(Route::context);
      // The simulation runs only small extents: its lanes are fibers of fibers, and each look at a word is a step.
      if (!one.facts.needs_memory && options.extent == Extent::small) others.push_back(Route::simulated);
      for (const Route route : others) {
        const auto found = arenas_after(one, batch.runs, batch.before, route);
        compare(name + ", " + name_of(route), batch, wanted,
                [&](std::size_t i) { return difference(wanted[i], found[i]); });
      }
    }
  }
}

void run_on_card(const Options& options, const std::vector<HostCase>& cases) {
  Kernels kernels;
  add_transfer_kernels(kernels);
  add_signal_kernels(kernels);
  add_wait_kernels(kernels);
  add_atomic_kernels(kernels);
  add_array_kernels(kernels);
  add_memory_kernels(kernels);
  add_move_kernels(kernels);
  add_reduction_kernels(kernels);
  add_wide_reduction_kernels(kernels);
  if (kernels.size() != cases.size()) {
    fault("there are " + std::to_string(kernels.size()) + " kernels and " + std::to_string(cases.size()) + " cases");
    return;
  }
  Card card(options.extent == Extent::small ? 120 : 10);
  card.load(kernels);
  if (options.times && options.extent == Extent::full) card.measure();
  // Under a checker, all takes much longer.
  if (options.lost)
    card.check_lost_waits(options.extent == Extent::full ? 3e-3 : 0.5, options.extent == Extent::full ? 5 : 1);
  long long launched = 0;
  double host_s = 0;
  const auto begin = Clock::now();
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const HostCase& one = cases[c];
    if (!is_wanted(options, one.facts)) continue;
    for (const int ranks : options.ranks) {
      const auto host_begin = Clock::now();
      const Batch batch(one, ranks, options.extent);
      const auto wanted = arenas_after(one, batch.runs, batch.before, Route::memory);
      host_s += seconds_since(host_begin);
      for (const As as : options.as) {
        const std::string name = name_of(one.facts) + ", " + std::to_string(ranks) + " ranks as " + name_of(as);
        compare(name, batch, wanted, [&](std::size_t i) {
          Heaps heaps(batch.runs[i], batch.before[i]);
          card.run(kernels[c], as, batch.runs[i].args, batch.runs[i].lanes, heaps.bytes,
                   name + ": " + name_of(batch.runs[i]));
          ++launched;
          for (std::size_t rank = 0; rank < wanted[i].size(); ++rank) forget_words(heaps.arena(rank));
          return heaps.difference_from(wanted[i]);
        });
      }
    }
  }
  answer("runs of cases on the card", std::to_string(launched),
         std::to_string(seconds_since(begin)) + " s, of which the CPU as the reference took " + std::to_string(host_s) +
             " s");
  // A checker would report the trap.
  if (options.lost && options.extent == Extent::full) card.check_trap();
}

Options options_of(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const std::string value = i + 1 < count ? arguments[i + 1] : "";
    if (word == "--host") {
      options.host = true;
    } else if (word == "--no-times") {
      options.times = false;
    } else if (word == "--no-lost") {
      options.lost = false;
    } else if (word == "--small") {
      options.extent = Extent::small;
    } else if (word == "--ranks") {
      options.ranks = {std::atoi(value.c_str())};
      ++i;
    } else if (word == "--as") {
      options.as = {value == "streams" ? As::streams : As::blocks};
      ++i;
    } else if (word == "--only") {
      options.only = value;
      ++i;
    } else {
      fault("unknown option " + word);
      std::exit(2);
    }
  }
  if (options.extent == Extent::small && options.as.size() > 1) options.as = {As::blocks};
  if (options.ranks.empty())
    options.ranks = options.extent == Extent::small ? std::vector<int>{2} : std::vector<int>{1, 2, 3, 8, ranks_max};
  for (const int ranks : options.ranks)
    if (ranks < 1 || ranks > ranks_max) {
      fault("there can be 1 to " + std::to_string(ranks_max) + " ranks, not " + std::to_string(ranks));
      std::exit(2);
    }
  return options;
}

int run(int count, char** arguments) {
  const Options options = options_of(count, arguments);
  // The settings come before the first call of CUDA: a launch must not wait for a kernel that spins, neither to load
  // code nor for a queue.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  try {
    const std::vector<HostCase> cases = host_cases();
    check_comparison(cases.front());
    bool is_any = false;
    for (const HostCase& one : cases) is_any |= is_wanted(options, one.facts);
    if (!is_any) {
      fault("no case is called so: " + options.only);
      return 2;
    }
    if (options.host)
      run_on_host(options, cases);
    else
      run_on_card(options, cases);
  } catch (const std::exception& error) {
    fault(error.what());
    return 3;
  }
  return 0;
}

}  // namespace
}  // namespace tranship::device

int main(int count, char** arguments) {
  return tranship::device::run(count, arguments);
}
