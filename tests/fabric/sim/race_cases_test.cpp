// What is a race and what is none, case by case, as OpenSHMEM 1.5 and context.hpp say it: each race must be found with
// both of its places, and nothing may be found where there is none.
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/pages.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/lanes/cpu_lanes.hpp>
#include <tranship/fabric/lanes/kernel_team.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

/// The two places of each race.
constexpr CallSite first{"first.cpp", 1}, second{"second.cpp", 2};
enum class Verdict { race, race_with_a_store, race_under_some_orders, clean };
constexpr auto race = Verdict::race, race_under_some_orders = Verdict::race_under_some_orders, clean = Verdict::clean;
/// With a store that is not announced, so that its place is not known.
constexpr auto race_with_a_store = Verdict::race_with_a_store;

/// What a rank of a case has.
struct Rig {
  explicit Rig(World& w) : world(w), rma(w.context()), me(w.rank()) {}

  World& world;
  Context& rma;
  Rank me;
  SymmetricArray<std::int64_t> memory = world.allocate<std::int64_t>(16);
  SymmetricArray<std::uint64_t> flags = world.allocate<std::uint64_t>(8);
  Symmetric<std::uint64_t> flag = flags.slice(0, 1);
  /// The same memory as words of other types.
  Symmetric<int> data = as<int>();
  Symmetric<float> reals = as<float>();
  Symmetric<double> doubles = as<double>();
  std::array<int, 32> own{};
  std::array<float, 2> own_reals{};
  std::array<std::int64_t, 2> own_longs{};

  template <class T>
  Symmetric<T> as() const {
    return Symmetric<T>::at(reinterpret_cast<T*>(memory.local()), memory.size_bytes() / Index(sizeof(T)));
  }
  std::span<const int> some(std::size_t count) const { return std::span<const int>(own).first(count); }
  std::span<int> some(std::size_t count) { return std::span(own).first(count); }
  /// `columns` columns of the 4 x 4 ints of the memory, from one on.
  StridedView columns(int column, int columns) const {
    return {.data = data.local() + column, .type = ElementType::i32, .extents = {4, columns}, .strides = {4, 1}};
  }
  StridedView own_columns(int columns) {
    return {.data = own.data(), .type = ElementType::i32, .extents = {4, columns}, .strides = {columns, 1}};
  }
  void raise(Rank to, int which = 0) { rma.signal(flags.slice(which, 1), 1, SignalOp::set, to); }
  void await(int which = 0) { rma.signal_wait(flags.slice(which, 1), Comparison::greater_equal, 1); }
};

/// What is wrong with the verdict on a program, empty when it is right.
template <class F>
std::string fault_of(Verdict expected, int ranks, std::uint64_t seeds, F&& program) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    try {
      simulate({.ranks = ranks, .seed = seed, .heap_bytes = std::size_t(1) << 18, .steps_max = 100'000},
               [&](World& world) {
                 Rig rig(world);
                 program(rig);
               });
    } catch (const Error& error) {
      ++found;
      if (expected == clean) return fmt::format("seed {}: {}", seed, error.message());
      for (const char* part : {"first.cpp:1", expected == race_with_a_store ? "no longer what it was" : "second.cpp:2"})
        if (error.code() != ErrorCode::race || error.message().find(part) == std::string::npos)
          return fmt::format("seed {}: '{}' is missing in: {}", seed, part, error.message());
    }
  }
  if ((expected == race || expected == race_with_a_store) && found < seeds)
    return fmt::format("found under {} of {} seeds", found, seeds);
  if (expected == race_under_some_orders && found == 0) return fmt::format("not found under {} seeds", seeds);
  return "";
}

class Faults {
 public:
  void add(const std::string& name, const std::string& fault) {
    ++cases_;
    if (!fault.empty()) faults_ += fmt::format("{}: {}\n", name, fault);
  }
  void expect_none() const { EXPECT_EQ(faults_, "") << "of " << cases_ << " cases"; }
  int cases() const { return cases_; }

 private:
  int cases_ = 0;
  std::string faults_;
};

// Two accesses to one place of rank 1, by any two ranks.

struct Access {
  const char* name;
  enum class Does { reads, writes } does;
  /// How others must access the word for both to be atomic.
  enum class Atomic { no, int32, int64, float32 } atomic;
  enum class By { rank_1, anyone } by;
  enum class Ends { at_return, at_quiet } ends;
  /// On the element `at` of the data.
  void (*make)(Rig& rig, Index at, CallSite where);
};
const Access accesses[] = {
    {"load", Access::Does::reads, Access::Atomic::no, Access::By::rank_1, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { r.rma.reads(r.data.slice(at, 1), where); }},
    {"store", Access::Does::writes, Access::Atomic::no, Access::By::rank_1, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { r.rma.writes(r.data.slice(at, 1), where); }},
    {"p", Access::Does::writes, Access::Atomic::no, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.p(r.data.from(at), 3, 1, where); }},
    {"put", Access::Does::writes, Access::Atomic::no, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.put(r.data.slice(at, 2), r.some(2), 1, where); }},
    {"put_nbi", Access::Does::writes, Access::Atomic::no, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.put_nbi(r.data.slice(at, 2), r.some(2), 1, where); }},
    {"put_signal", Access::Does::writes, Access::Atomic::no, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) {
       r.rma.put_signal(r.data.slice(at, 2), r.some(2), r.flags.slice(r.me, 1), 1, SignalOp::set, 1, where);
     }},
    {"put of a box", Access::Does::writes, Access::Atomic::no, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.put(r.columns(int(at), 1), r.own_columns(1), 1, where); }},
    {"get", Access::Does::reads, Access::Atomic::no, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { r.rma.get(r.some(2), r.data.slice(at, 2), 1, where); }},
    {"get_nbi", Access::Does::reads, Access::Atomic::no, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.get_nbi(r.some(2), r.data.slice(at, 2), 1, where); }},
    {"g", Access::Does::reads, Access::Atomic::no, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { (void)r.rma.g(r.data.from(at), 1, where); }},
    {"get of a box", Access::Does::reads, Access::Atomic::no, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { r.rma.get(r.own_columns(1), r.columns(int(at), 1), 1, where); }},
    {"fetch", Access::Does::reads, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { (void)r.rma.fetch(r.data.from(at), 1, where); }},
    {"fetch_nbi", Access::Does::reads, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.fetch_nbi(r.own[0], r.data.from(at), 1, where); }},
    {"set", Access::Does::writes, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.set(r.data.from(at), 4, 1, where); }},
    {"add", Access::Does::writes, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.add(r.data.from(at), 4, 1, where); }},
    {"swap", Access::Does::writes, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { (void)r.rma.swap(r.data.from(at), 4, 1, where); }},
    {"compare_swap", Access::Does::writes, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { (void)r.rma.compare_swap(r.data.from(at), 0, 4, 1, where); }},
    {"fetch_add_nbi", Access::Does::writes, Access::Atomic::int32, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.fetch_add_nbi(r.own[0], r.data.from(at), 4, 1, where); }},
    {"fetch of a float", Access::Does::reads, Access::Atomic::float32, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { (void)r.rma.fetch(r.reals.from(at), 1, where); }},
    {"set of a float", Access::Does::writes, Access::Atomic::float32, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.set(r.reals.from(at), 4.f, 1, where); }},
    {"fetch of 64 bits", Access::Does::reads, Access::Atomic::int64, Access::By::anyone, Access::Ends::at_return,
     [](Rig& r, Index at, CallSite where) { (void)r.rma.fetch(r.memory.from(at / 2), 1, where); }},
    {"add to 64 bits", Access::Does::writes, Access::Atomic::int64, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.add(r.memory.from(at / 2), 4, 1, where); }},
    {"signal", Access::Does::writes, Access::Atomic::int64, Access::By::anyone, Access::Ends::at_quiet,
     [](Rig& r, Index at, CallSite where) { r.rma.signal(r.memory.slice(at / 2, 1), 4, SignalOp::add, 1, where); }},
};

TEST(RaceCases, two_accesses_to_one_place) {
  Faults faults;
  enum class Between { nothing, sync, barrier, elsewhere };
  constexpr const char* names[] = {"together with", "then a sync and", "then a barrier and", "beside"};
  for (const Access& a : accesses)
    for (const Access& b : accesses) {
      if (a.by == Access::By::rank_1 && b.by == Access::By::rank_1) continue;
      const bool conflicts = (a.does == Access::Does::writes || b.does == Access::Does::writes) &&
                             (a.atomic == Access::Atomic::no || a.atomic != b.atomic);
      for (const Between between : {Between::nothing, Between::sync, Between::barrier, Between::elsewhere}) {
        if (&b < &a && (between == Between::nothing || between == Between::elsewhere)) continue;  // as the other way
        const bool ordered = between == Between::barrier || between == Between::elsewhere ||
                             (between == Between::sync && a.ends == Access::Ends::at_return);
        const auto program = [&](Rig& r) {
          if (r.me == (a.by == Access::By::rank_1 ? 1 : 0)) a.make(r, 0, first);
          if (between == Between::sync) r.world.sync();
          if (between == Between::barrier) r.world.barrier();
          if (r.me == (b.by == Access::By::rank_1 ? 1 : 2)) b.make(r, between == Between::elsewhere ? 2 : 0, second);
          r.world.barrier();
        };
        faults.add(fmt::format("{} {} {}", a.name, names[int(between)], b.name),
                   fault_of(conflicts && !ordered ? race : clean, 3, 2, program));
      }
    }
  faults.expect_none();
  EXPECT_GT(faults.cases(), 1500);
}

// A transfer, and what its own rank does with the memory that it comes from or goes to.

struct Local {
  const char* name;
  enum class Does { reads, writes } does;
  enum class Ends { at_return, at_quiet } ends;
  /// At a peer, each of two that are made has a place of its own.
  void (*make)(Rig& rig, std::span<int> memory, CallSite where);
};
Index place_of(CallSite where) {
  return 10 + 2 * where.line;
}
const Local locals[] = {
    {"load", Local::Does::reads, Local::Ends::at_return,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.reads(m, where); }},
    {"store", Local::Does::writes, Local::Ends::at_return,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.writes(m, where); }},
    {"source of a put", Local::Does::reads, Local::Ends::at_return,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.put(r.data.slice(place_of(where), 2), m, 1, where); }},
    {"source of a put_nbi", Local::Does::reads, Local::Ends::at_quiet,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.put_nbi(r.data.slice(place_of(where), 2), m, 1, where); }},
    {"source of a put_signal_nbi", Local::Does::reads, Local::Ends::at_quiet,
     [](Rig& r, std::span<int> m, CallSite where) {
       r.rma.put_signal_nbi(r.data.slice(place_of(where), 2), m, r.flag, 1, SignalOp::add, 1, where);
     }},
    {"target of a get", Local::Does::writes, Local::Ends::at_return,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.get(m, r.data.slice(30, 2), 1, where); }},
    {"target of a get_nbi", Local::Does::writes, Local::Ends::at_quiet,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.get_nbi(m, r.data.slice(30, 2), 1, where); }},
    {"value of a fetch_nbi", Local::Does::writes, Local::Ends::at_quiet,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.fetch_nbi(m[0], r.data.from(20), 1, where); }},
    {"value of a fetch_inc_nbi", Local::Does::writes, Local::Ends::at_quiet,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.fetch_inc_nbi(m[0], r.data.from(21), 1, where); }},
    {"value of a compare_swap_nbi", Local::Does::writes, Local::Ends::at_quiet,
     [](Rig& r, std::span<int> m, CallSite where) { r.rma.compare_swap_nbi(m[0], r.data.from(22), 1, 2, 1, where); }},
    {"all_gather of it", Local::Does::reads, Local::Ends::at_return,
     [](Rig& r, std::span<int> m, CallSite where) {
       int all[2];
       r.world.all_gather(m.data(), sizeof(int), all, where);
     }},
    {"broadcast to it", Local::Does::writes, Local::Ends::at_return,
     [](Rig& r, std::span<int> m, CallSite where) { r.world.broadcast(m.data(), sizeof(int), 1, where); }},
};

TEST(RaceCases, a_transfer_and_its_own_memory) {
  Faults faults;
  enum class Between { nothing, fence, other_quiet, quiet_of_another, quiet_of_it, quiet, barrier };
  constexpr const char* names[] = {"then",
                                   "then a fence and",
                                   "then a quiet elsewhere and",
                                   "then a quiet of another peer and",
                                   "then a quiet of the peer and",
                                   "then a quiet and",
                                   "then a barrier and"};
  for (const Local& a : locals)
    for (const Local& b : locals)
      for (const bool is_symmetric : {false, true})
        for (const Between between : {Between::nothing, Between::fence, Between::other_quiet, Between::quiet_of_another,
                                      Between::quiet_of_it, Between::quiet, Between::barrier}) {
          const bool conflicts = a.does == Local::Does::writes || b.does == Local::Does::writes;
          const bool ordered = a.ends == Local::Ends::at_return || between >= Between::quiet_of_it;
          const auto program = [&](Rig& r) {
            Context other(r.world);
            const std::span<int> memory = is_symmetric ? r.data.slice(0, 2).span() : r.some(2);
            // Collective calls are made by both.
            const bool is_collective = std::string_view(a.name).ends_with(" it");
            const bool also = std::string_view(b.name).ends_with(" it");
            if (r.me == 0 || is_collective) a.make(r, r.me == 0 ? memory : std::span(r.own).subspan(8, 2), first);
            if (r.me == 0 && between == Between::fence) r.rma.fence();
            if (r.me == 0 && between == Between::other_quiet) other.quiet();
            if (r.me == 0 && between == Between::quiet_of_another) r.rma.quiet(0);
            if (r.me == 0 && between == Between::quiet_of_it) r.rma.quiet(1);
            if (r.me == 0 && between == Between::quiet) r.rma.quiet();
            if (between == Between::barrier) r.world.barrier();
            if (r.me == 0 || also) b.make(r, r.me == 0 ? memory : std::span(r.own).subspan(10, 2), second);
            r.world.barrier();
          };
          faults.add(fmt::format("{} {} {} of {} memory", a.name, names[int(between)], b.name,
                                 is_symmetric ? "symmetric" : "private"),
                     fault_of(conflicts && !ordered ? race : clean, 2, 2, program));
        }
  faults.expect_none();
}

/// Whole pages of a program's own.
std::shared_ptr<void> aligned_pages() {
  return {std::aligned_alloc(page_bytes(), page_bytes()), std::free};
}

// Programs of some steps.

struct Case {
  const char* name;
  Verdict verdict;
  int ranks;
  void (*program)(Rig& rig);
};

void expect_right(std::span<const Case> cases) {
  Faults faults;
  for (const Case& one : cases) {
    const std::uint64_t seeds = one.verdict == race_under_some_orders ? 60 : 12;
    faults.add(one.name, fault_of(one.verdict, one.ranks, seeds, [&](Rig& rig) {
                 one.program(rig);
                 rig.world.barrier();
               }));
  }
  faults.expect_none();
}

TEST(RaceCases, data_and_a_flag_after_it) {
  static const Case cases[] = {
      {"put, flag", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, fence, flag", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet, flag", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.quiet(), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, fence of its peer, flag", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(1), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, fence of another peer, flag", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(0), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet of its peer, flag", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.quiet(1), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet of another peer, flag", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.quiet(0), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put_nbi, fence, flag", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_nbi(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"fence, put, flag", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.fence(), r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, fence of another context, flag", race, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), other.fence(), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, fence, flag by another context", race, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) {
           other.put(r.data.slice(0, 4), r.some(4), 1, first);
           other.fence();
           r.raise(1);
         }
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
         other.quiet();
       }},
      {"put, quiet of its context, flag by another", clean, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) {
           other.put(r.data.slice(0, 4), r.some(4), 1, first);
           other.quiet();
           r.raise(1);
         }
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet of another context, flag", race, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), other.quiet(), r.raise(1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, fence, flag by way of a third", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 2, first), r.rma.fence(), r.raise(1);
         if (r.me == 1) r.await(), r.raise(2);
         if (r.me == 2) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet, flag by way of a third", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 2, first), r.rma.quiet(), r.raise(1);
         if (r.me == 1) r.await(), r.raise(2);
         if (r.me == 2) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"the wait is for another flag", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.raise(1, 1), r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.raise(1);
         if (r.me == 1) r.await(1), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"no wait", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.quiet();
         if (r.me == 1) r.rma.get(r.some(4), r.data.slice(0, 4), 1, second);
       }},
      {"the wait comes too late", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.raise(1);
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second), r.await();
       }},
      {"data with its signal", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_signal(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1, first);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"data beside that of the signal", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.put_signal(r.data.slice(4, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
         }
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 8), second);
       }},
      {"a fence between data and a signal with more", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.fence();
           r.rma.put_signal(r.data.slice(4, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
         }
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 8), second);
       }},
      {"a signal of nothing after data", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.put_signal(r.data.slice(0, 0), r.some(0), r.flag, 1, SignalOp::set, 1);
         }
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"signals of two are added up", clean, 3,
       [](Rig& r) {
         if (r.me < 2) r.rma.put_signal_nbi(r.data.slice(4 * r.me, 4), r.some(4), r.flag, 1, SignalOp::add, 2, first);
         if (r.me == 2) {
           r.rma.signal_wait(r.flag, Comparison::equal, 2);
           r.rma.reads(r.data.slice(0, 8), second);
         }
       }},
      {"one of two signals that are added up", race_under_some_orders, 3,
       [](Rig& r) {
         if (r.me < 2) r.rma.put_signal_nbi(r.data.slice(4 * r.me, 4), r.some(4), r.flag, 1, SignalOp::add, 2, first);
         if (r.me == 2) r.await(), r.rma.reads(r.data.slice(0, 8), second);
       }},
      {"two set one signal", race_under_some_orders, 3,
       [](Rig& r) {
         if (r.me < 2) r.rma.put_signal(r.data.slice(4 * r.me, 4), r.some(4), r.flag, 1, SignalOp::set, 2, first);
         if (r.me == 2) r.await(), r.rma.reads(r.data.slice(0, 8), second);
       }},
      {"two set signals of their own", clean, 3,
       [](Rig& r) {
         if (r.me < 2)
           r.rma.put_signal(r.data.slice(4 * r.me, 4), r.some(4), r.flags.slice(r.me, 1), 1, SignalOp::set, 2, first);
         if (r.me == 2) {
           r.rma.wait_until_all(r.flags.slice(0, 2), Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 8), second);
         }
       }},
      {"any of two signals, and the data of both", race, 3,
       [](Rig& r) {
         if (r.me < 2)
           r.rma.put_signal(r.data.slice(4 * r.me, 4), r.some(4), r.flags.slice(r.me, 1), 1, SignalOp::set, 2, first);
         if (r.me == 2) {
           const Index come = r.rma.wait_until_any(r.flags.slice(0, 2), Comparison::equal, 1);
           r.rma.reads(r.data.slice(4 - 4 * come, 4), second);
         }
       }},
      {"any of two signals, and its own data", clean, 3,
       [](Rig& r) {
         if (r.me < 2)
           r.rma.put_signal(r.data.slice(4 * r.me, 4), r.some(4), r.flags.slice(r.me, 1), 1, SignalOp::set, 2, first);
         if (r.me == 2) {
           const Index come = r.rma.wait_until_any(r.flags.slice(0, 2), Comparison::equal, 1);
           r.rma.reads(r.data.slice(4 * come, 4), second);
         }
       }},
      {"the next data before the last is read", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
           r.await(1);
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         } else {
           r.await();
           r.raise(0, 1);
           r.rma.reads(r.data.slice(0, 4), second);
         }
       }},
      {"the next data when the last has been read", clean, 2,
       [](Rig& r) {
         for (std::uint64_t round = 1; round <= 3; ++round) {
           if (r.me == 0) {
             r.rma.put_signal(r.data.slice(0, 4), r.some(4), r.flag, round, SignalOp::set, 1);
             r.rma.signal_wait(r.flags.slice(1, 1), Comparison::equal, round);
           } else {
             r.rma.signal_wait(r.flag, Comparison::equal, round);
             r.rma.reads(r.data.slice(0, 4));
             r.rma.signal(r.flags.slice(1, 1), round, SignalOp::set, 0);
           }
         }
       }},
      {"many flags in one put after a fence", clean, 2,
       [](Rig& r) {
         const auto many = r.world.allocate<int>(100);
         const std::vector<int> ones(100, 1);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence(), r.rma.put(many, ones, 1);
         if (r.me == 1) {
           r.rma.wait_until(many.slice(57, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 4));
         }
         r.world.barrier();
       }},
      {"many flags in one put", race, 2,
       [](Rig& r) {
         const auto many = r.world.allocate<int>(100);
         const std::vector<int> ones(100, 1);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.put(many, ones, 1);
         if (r.me == 1) {
           r.rma.wait_until(many.slice(57, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 4), second);
         }
         r.world.barrier();
       }},
      {"flags in a box", clean, 2,
       [](Rig& r) {
         std::fill(r.own.begin(), r.own.end(), 1);
         if (r.me == 0) {
           r.rma.put(r.data.slice(16, 4), r.some(4), 1);
           r.rma.fence();
           r.rma.put(r.columns(1, 2), r.own_columns(2), 1);
         }
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(9, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(16, 4));
         }
       }},
      {"a word of a put tells nothing of its others", race, 2,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(3, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 1), second);
         }
         r.world.barrier();
       }},
      {"nor does a word of a put with a signal", race, 2,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) r.rma.put_signal_nbi(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1, first);
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(3, 1), Comparison::equal, 1);
           r.rma.writes(r.data.slice(1, 2), second);
         }
         r.world.barrier();
       }},
      {"nor one of a box", race, 2,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) r.rma.put(r.columns(1, 2), r.own_columns(2), 1, first);
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(9, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(5, 1), second);
         }
         r.world.barrier();
       }},
      {"a word of a put tells of itself, and of what was seen before", clean, 3,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1);
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(3, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(3, 1));
           r.rma.wait_until(r.data.slice(1, 1), Comparison::equal, 1);
           r.rma.writes(r.data.slice(1, 1));
           r.rma.writes(r.data.slice(3, 1));
           r.rma.signal(r.flag, 1, SignalOp::set, 2);
         }
         if (r.me == 2) {
           r.rma.signal_wait(r.flag, Comparison::equal, 1);
           r.rma.p(r.data.slice(3, 1), 2, 1);
         }
         r.world.barrier();
       }},
      {"all words of a put are seen, and its source is free", clean, 2,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) {
           r.rma.put_nbi(r.data.slice(0, 4), r.some(4), 1);
           r.rma.signal_wait(r.flag, Comparison::equal, 1);
           r.rma.writes(r.some(4));
           r.own.fill(2);
         }
         if (r.me == 1) {
           for (const Index word : {2, 0, 3, 1}) r.rma.wait_until(r.data.slice(word, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 4));
           r.rma.signal(r.flag, 1, SignalOp::set, 0);
         }
         r.world.barrier();
       }},
      {"a word of a put is seen, and its source is not free", race, 2,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) {
           r.rma.put_nbi(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.signal_wait(r.flag, Comparison::equal, 1);
           r.rma.writes(r.some(4), second);
         }
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(3, 1), Comparison::equal, 1);
           r.rma.signal(r.flag, 1, SignalOp::set, 0);
         }
         r.world.barrier();
       }},
      {"an update of one word tells nothing to those who have seen another", race, 2,
       [](Rig& r) {
         r.own.fill(1);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.rma.add(r.data, 1, 1);
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(1, 1), Comparison::equal, 1);
           r.rma.reads(r.data.slice(1, 1));
           r.rma.reads(r.data.slice(2, 1), second);
         }
         r.world.barrier();
       }},
      {"an update is waited for", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(4, 4), r.some(4), 1), r.rma.fence(), r.rma.set(r.data, 1, 1);
         if (r.me == 1) {
           r.rma.wait_until(r.data.slice(0, 1), Comparison::not_equal, 0);
           r.rma.reads(r.data.slice(0, 8));
         }
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, meetings) {
  static const Case cases[] = {
      {"put, sync", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         r.world.sync();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet, sync", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.quiet();
         r.world.sync();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4));
       }},
      {"put, fence, sync", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence();
         r.world.sync();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet on the wrong rank, sync", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         if (r.me == 1) r.rma.quiet();
         r.world.sync();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet, no meeting", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.quiet();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put of another context, barrier", race, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) other.put(r.data.slice(0, 4), r.some(4), 1, first);
         r.world.barrier();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
         other.quiet();
       }},
      {"put of a context that has ended, sync", clean, 2,
       [](Rig& r) {
         if (r.me == 0) Context(r.world).put(r.data.slice(0, 4), r.some(4), 1);
         r.world.sync();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4));
       }},
      {"barrier of a team with both", clean, 3,
       [](Rig& r) {
         auto team = r.world.team().split_strided({.first = 0, .stride = 1, .count = 2});
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1);
         if (team) team->barrier();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4));
       }},
      {"sync of a team with both", race, 3,
       [](Rig& r) {
         auto team = r.world.team().split_strided({.first = 0, .stride = 1, .count = 2});
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         if (team) team->sync();
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"barrier of a team without the reader", race, 3,
       [](Rig& r) {
         auto team = r.world.team().split_strided({.first = 0, .stride = 2, .count = 2});
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         if (team) team->barrier();
         if (r.me == 1) r.rma.get(r.some(4), r.data.slice(0, 4), 1, second);
       }},
      {"barrier of rows, and a column", race, 4,
       [](Rig& r) {
         auto [row, column] = r.world.team().split_2d(2);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 2, first);
         row.barrier();
         if (r.me == 2) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"barriers of rows and columns", clean, 4,
       [](Rig& r) {
         auto [row, column] = r.world.team().split_2d(2);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 3);
         row.barrier();
         column.barrier();
         if (r.me == 3) r.rma.reads(r.data.slice(0, 4));
       }},
      {"store, sync, get", clean, 2,
       [](Rig& r) {
         if (r.me == 1) r.rma.writes(r.data.slice(0, 4));
         r.world.sync();
         if (r.me == 0) r.rma.get(r.some(4), r.data.slice(0, 4), 1);
       }},
      {"get, sync, store", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.get(r.some(4), r.data.slice(0, 4), 1);
         r.world.sync();
         if (r.me == 1) r.rma.writes(r.data.slice(0, 4));
       }},
      {"get_nbi, sync, store", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1, first);
         r.world.sync();
         if (r.me == 1) r.rma.writes(r.data.slice(0, 4), second);
       }},
      {"get_nbi, barrier, store", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1);
         r.world.barrier();
         if (r.me == 1) r.rma.writes(r.data.slice(0, 4));
       }},
      {"put, all_gather", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         r.world.all_gather(r.me);
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, quiet, all_gather", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.quiet();
         r.world.all_gather(r.me);
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4));
       }},
      {"put into what a peer gathers from", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 1), r.some(1), 1, first);
         int all[2];
         r.world.all_gather(r.data.local(), sizeof(int), all, r.me == 1 ? second : CallSite::here());
       }},
      {"put into what a peer has gathered from", clean, 2,
       [](Rig& r) {
         int all[2];
         r.world.all_gather(r.data.local(), sizeof(int), all);
         if (r.me == 0) r.rma.put(r.data.slice(0, 1), r.some(1), 1);
       }},
      {"put into what a peer gathers to", race, 2,
       [](Rig& r) {
         r.world.all_gather(&r.me, sizeof r.me, r.data.local(), r.me == 1 ? first : CallSite::here());
         if (r.me == 0) r.rma.put(r.data.slice(0, 2), r.some(2), 1, second);
       }},
      {"put into what a peer has gathered to, after a barrier", clean, 2,
       [](Rig& r) {
         r.world.all_gather(&r.me, sizeof r.me, r.data.local());
         r.world.barrier();
         if (r.me == 0) r.rma.put(r.data.slice(0, 2), r.some(2), 1);
       }},
      {"get of what the root broadcasts", clean, 3,
       [](Rig& r) {
         if (r.me == 2) r.rma.get(r.some(2), r.data.slice(0, 2), 1);
         r.world.broadcast(r.me == 1 ? r.data.local() : r.own.data() + 4, 8, 1);
       }},
      {"get of what a broadcast writes", race, 3,
       [](Rig& r) {
         r.world.broadcast(r.me == 1 ? r.data.local() : r.own.data() + 4, 8, 0, r.me == 1 ? first : CallSite::here());
         if (r.me == 2) r.rma.get(r.some(2), r.data.slice(0, 2), 1, second);
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, fences) {
  static const Case cases[] = {
      {"put, put", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, second);
       }},
      {"put, fence, put", clean, 2,
       [](Rig& r) {
         for (int i = 0; i < 2 && r.me == 0; ++i) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence();
       }},
      {"put_nbi, fence, put_nbi", clean, 2,
       [](Rig& r) {
         for (int i = 0; i < 2 && r.me == 0; ++i) r.rma.put_nbi(r.data.slice(0, 4), r.some(4), 1), r.rma.fence();
       }},
      {"put, put of another context", race, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.fence();
           other.put(r.data.slice(0, 4), r.some(4), 1, second);
         }
       }},
      {"put, quiet, put of another context", clean, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1);
           r.rma.quiet();
           other.put(r.data.slice(0, 4), r.some(4), 1);
         }
         other.quiet();
       }},
      {"get_nbi, fence, put", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1, first);
           r.rma.fence();
           r.rma.put(r.data.slice(0, 4), std::span(r.own).subspan(8, 4), 1, second);
         }
       }},
      {"put, fence, get_nbi", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), std::span(r.own).subspan(8, 4), 1, first);
           r.rma.fence();
           r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1, second);
         }
       }},
      {"put, fence, get", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.fence();
           r.rma.get(r.some(4), r.data.slice(0, 4), 1, second);
         }
       }},
      {"put, fence, g", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.p(r.data, 1, 1, first), r.rma.fence(), (void)r.rma.g(r.data, 1, second);
       }},
      {"put, quiet, get", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1);
           r.rma.quiet();
           r.rma.get(r.some(4), r.data.slice(0, 4), 1);
         }
       }},
      {"get_nbi, quiet, put", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1);
           r.rma.quiet();
           r.rma.put(r.data.slice(0, 4), r.some(4), 1);
         }
       }},
      {"get, put", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.get(r.some(4), r.data.slice(0, 4), 1), r.rma.put(r.data.slice(0, 4), r.some(4), 1);
       }},
      {"get_nbi, get_nbi", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1);
           r.rma.get_nbi(std::span(r.own).subspan(8, 4), r.data.slice(0, 4), 1);
         }
       }},
      {"put, fence, add", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.p(r.data, 1, 1), r.rma.fence(), r.rma.add(r.data, 1, 1);
       }},
      {"put, fence, fetch_add", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.p(r.data, 1, 1), r.rma.fence(), (void)r.rma.fetch_add(r.data, 1, 1);
       }},
      {"put, fetch_add", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.p(r.data, 1, 1, first), (void)r.rma.fetch_add(r.data, 1, 1, second);
       }},
      {"add, fence, put", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.add(r.data, 1, 1), r.rma.fence(), r.rma.p(r.data, 1, 1);
       }},
      {"put, fence, fetch_add_nbi", race, 2,
       [](Rig& r) {
         if (r.me == 0)
           r.rma.p(r.data, 1, 1, first), r.rma.fence(), r.rma.fetch_add_nbi(r.own[0], r.data, 1, 1, second);
       }},
      {"fetch_add_nbi, fence, put", race, 2,
       [](Rig& r) {
         if (r.me == 0)
           r.rma.fetch_add_nbi(r.own[0], r.data, 1, 1, first), r.rma.fence(), r.rma.p(r.data, 1, 1, second);
       }},
      {"swap_nbi, quiet, put", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.swap_nbi(r.own[0], r.data, 1, 1), r.rma.quiet(), r.rma.p(r.data, 1, 1);
       }},
      {"put, fence, fetch_inc_nbi that is waited for", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.rma.fence();
           std::uint64_t before = 0;
           r.rma.fetch_inc_nbi(before, r.flag, 1);
           r.rma.quiet();
         }
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"fetch_nbi, fence, put", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.fetch_nbi(r.own[0], r.data, 1, first), r.rma.fence(), r.rma.p(r.data, 1, 1, second);
       }},
      {"put to oneself, load", race, 1,
       [](Rig& r) {
         r.rma.put(r.data.slice(0, 4), r.some(4), 0, first);
         r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put to oneself, quiet, load", clean, 1,
       [](Rig& r) {
         r.rma.put(r.data.slice(0, 4), r.some(4), 0);
         r.rma.quiet();
         r.rma.reads(r.data.slice(0, 4));
       }},
      {"put to oneself, put of it", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 0, first);
           r.rma.fence();
           r.rma.put_nbi(r.data.slice(8, 4), r.data.slice(0, 4), 1, second);
         }
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, atomics_that_order) {
  static const Case cases[] = {
      {"put, fence, set, and a loop of fetches by a third", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence(), r.rma.set(r.flag, 1, 1);
         if (r.me == 2) {
           while (r.rma.fetch(r.flag, 1) == 0) {
           }
           r.rma.get(r.some(4), r.data.slice(0, 4), 1);
         }
       }},
      {"put, set, and a loop of fetches by a third", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.set(r.flag, 1, 1);
         if (r.me == 2) {
           while (r.rma.fetch(r.flag, 1) == 0) {
           }
           r.rma.get(r.some(4), r.data.slice(0, 4), 1, second);
         }
       }},
      {"put, fence, set elsewhere", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.rma.set(r.flag, 1, 2);
         if (r.me == 2) {
           while (r.rma.fetch(r.flag, 2) == 0) {
           }
           r.rma.get(r.some(4), r.data.slice(0, 4), 1, second);
         }
       }},
      {"put, fence, fetch_add that is waited for", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence(), (void)r.rma.fetch_add(r.flag, 1, 1);
         if (r.me == 1) r.await(), r.rma.reads(r.data.slice(0, 4));
       }},
      {"fetch_nbi, quiet", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence(), r.rma.set(r.flag, 1, 1);
         if (r.me == 2) {
           std::uint64_t seen = 0;
           while (seen == 0) r.rma.fetch_nbi(seen, r.flag, 1), r.rma.quiet();
           r.rma.get(r.some(4), r.data.slice(0, 4), 1);
         }
       }},
      {"a counter that all have raised", clean, 4,
       [](Rig& r) {
         if (r.me > 0) r.rma.put(r.data.slice(4 * r.me, 4), r.some(4), 0), r.rma.quiet(), r.rma.inc(r.flag, 0);
         if (r.me == 0) {
           r.rma.wait_until(r.flag, Comparison::equal, 3);
           r.rma.reads(r.data.slice(0, 16));
         }
       }},
      {"a counter that not all have raised", race_under_some_orders, 4,
       [](Rig& r) {
         if (r.me > 0) r.rma.put(r.data.slice(4 * r.me, 4), r.some(4), 0, first), r.rma.quiet(), r.rma.inc(r.flag, 0);
         if (r.me == 0) {
           r.rma.wait_until(r.flag, Comparison::greater_equal, 2);
           r.rma.reads(r.data.slice(0, 16), second);
         }
       }},
      {"bits", clean, 3,
       [](Rig& r) {
         if (r.me > 0) {
           r.rma.put(r.data.slice(4 * r.me, 4), r.some(4), 0);
           r.rma.fence();
           r.rma.bit_or(r.flag, std::uint64_t(1) << r.me, 0);
         }
         if (r.me == 0) {
           r.rma.wait_until(r.flag, Comparison::equal, 6);
           r.rma.reads(r.data.slice(0, 16));
         }
       }},
      {"a lock", clean, 3,
       [](Rig& r) {
         while (r.rma.compare_swap(r.flag, 0, 1, 0) != 0) {
         }
         r.rma.p(r.data, r.rma.g(r.data, 1) + 1, 1);
         r.rma.quiet();
         r.rma.set(r.flag, 0, 0);
       }},
      {"a lock by swap", clean, 3,
       [](Rig& r) {
         while (r.rma.swap(r.flag, 1, 0) != 0) {
         }
         r.rma.p(r.data, r.rma.g(r.data, 1) + 1, 1);
         r.rma.quiet();
         r.rma.set(r.flag, 0, 0);
       }},
      {"a lock released before a quiet", race, 2,
       [](Rig& r) {
         while (r.rma.compare_swap(r.flag, 0, 1, 0) != 0) {
         }
         const bool is_second = r.rma.fetch_add(r.flags.from(1), 1, 0) == 1;
         r.rma.p(r.data, 1, 1, is_second ? second : first);
         r.rma.set(r.flag, 0, 0);
       }},
      {"a lock of one of them only", race_under_some_orders, 2,
       [](Rig& r) {
         while (r.rma.compare_swap(r.flag, 0, 1, 0) != 0) {
         }
         if (r.me == 0) r.rma.p(r.data, 1, 1, first), r.rma.quiet();
         r.rma.set(r.flag, 0, 0);
         if (r.me == 1) r.rma.p(r.data, 1, 1, second);
       }},
      {"a ticket", clean, 3,
       [](Rig& r) {
         const std::uint64_t mine = r.rma.fetch_inc(r.flag, 0);
         while (r.rma.fetch(r.flags.from(1), 0) != mine) {
         }
         r.rma.p(r.data, r.rma.g(r.data, 1) + 1, 1);
         r.rma.quiet();
         r.rma.inc(r.flags.from(1), 0);
       }},
      {"a compare_swap that fails tells nothing", race, 3,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.p(r.data, 1, 1, first);
           r.rma.quiet();
           (void)r.rma.compare_swap(r.flag, 7, 9, 1);
           r.rma.inc(r.flags.from(1), 2);
         }
         if (r.me == 2) {
           while (*static_cast<const volatile std::uint64_t*>(r.flags.local() + 1) == 0)
             (void)r.rma.test(r.flags.slice(2, 1), Comparison::equal, 1);
           (void)r.rma.fetch(r.flag, 1);
           r.rma.p(r.data, 1, 1, second);
         }
       }},
      {"halves of a word", clean, 3,
       [](Rig& r) {
         if (r.me != 1) r.rma.add(r.data.from(r.me == 0 ? 0 : 1), 1, 1);
       }},
      {"a word and its upper half", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.add(r.memory, 1, 1, first);
         if (r.me == 2) r.rma.add(r.data.from(1), 1, 1, second);
       }},
      {"a double and an integer", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.set(r.doubles, 2.0, 1, first);
         if (r.me == 2) r.rma.set(r.memory, 3, 1, second);
       }},
      {"a double and an integer, both fetched", clean, 3,
       [](Rig& r) {
         if (r.me == 0) (void)r.rma.fetch(r.doubles, 1);
         if (r.me == 2) (void)r.rma.fetch(r.memory, 1);
       }},
      {"a float and an integer of one rank", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.set(r.data, 1, 1, first), r.rma.set(r.reals, 2.f, 1, second);
       }},
      {"a float and an integer of one rank, fenced", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.set(r.data, 1, 1), r.rma.fence(), r.rma.set(r.reals, 2.f, 1);
       }},
      {"atomics of two contexts", clean, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) r.rma.add(r.data, 1, 1), other.add(r.data, 1, 1);
       }},
      {"an atomic and the wait for it", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.add(r.flag, 1, 1);
         if (r.me == 1) r.await(), r.rma.reads(r.flag);
       }},
      {"an atomic and a load", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.add(r.flag, 1, 1, first);
         if (r.me == 1) r.rma.reads(r.flag, second);
       }},
      {"a signal and a put to its word", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.signal(r.flag, 1, SignalOp::set, 1, first);
         if (r.me == 2) r.rma.p(r.flag, 1, 1, second);
       }},
      {"a signal and an atomic", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.signal(r.flag, 1, SignalOp::add, 1);
         if (r.me == 2) r.rma.add(r.flag, 1, 1);
         if (r.me == 1) r.rma.signal_wait(r.flag, Comparison::equal, 2);
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, loops_that_poll) {
  static const Case cases[] = {
      {"test", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence(), r.raise(1);
         if (r.me == 1) {
           while (!r.rma.test(r.flag, Comparison::equal, 1)) {
           }
           r.rma.reads(r.data.slice(0, 4));
         }
       }},
      {"test that something is over", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1), r.rma.fence(), r.raise(1);
         if (r.me == 1) {
           while (r.rma.test(r.flag, Comparison::equal, 0)) {
           }
           r.rma.reads(r.data.slice(0, 4));
         }
       }},
      {"test without a fence", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.raise(1);
         if (r.me == 1) {
           while (!r.rma.test(r.flag, Comparison::equal, 1)) {
           }
           r.rma.reads(r.data.slice(0, 4), second);
         }
       }},
      {"one test", race_under_some_orders, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1, first), r.rma.fence(), r.raise(1);
         if (r.me == 1) {
           (void)r.rma.test(r.flag, Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 4), second);
         }
       }},
      {"signal_fetch", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_signal(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
         if (r.me == 1) {
           while (r.rma.signal_fetch(r.flag) == 0) {
           }
           r.rma.reads(r.data.slice(0, 4));
         }
       }},
      {"test_all, test_any and test_some", clean, 3,
       [](Rig& r) {
         if (r.me > 0) {
           for (int i = 0; i < 3; ++i) {
             const auto to = r.data.slice(8 * i + 4 * (r.me - 1), 4);
             r.rma.put_signal(to, r.some(4), r.flags.slice(2 * i + r.me - 1, 1), 1, SignalOp::set, 0);
           }
           return;
         }
         while (!r.rma.test_all(r.flags.slice(0, 2), Comparison::equal, 1)) {
         }
         r.rma.reads(r.data.slice(0, 8));
         Index any = -1;
         while (any < 0) any = r.rma.test_any(r.flags.slice(2, 2), Comparison::equal, 1);
         r.rma.reads(r.data.slice(8 + 4 * any, 4));
         Index places[2], count = 0;
         while (count == 0) count = r.rma.test_some(r.flags.slice(4, 2), places, Comparison::equal, 1);
         for (Index i = 0; i < count; ++i) r.rma.reads(r.data.slice(16 + 4 * places[i], 4));
       }},
      {"get of a flag that is put", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.p(r.flag, 1, 1, first), r.rma.quiet();
         if (r.me == 1) (void)r.rma.g(r.flag, 1, second);
       }},
      {"get of a flag that is set", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.set(r.flag, 1, 1, first);
         if (r.me == 2) (void)r.rma.g(r.flag, 1, second);
       }},
      {"loads of a flag", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.signal(r.flag, 1, SignalOp::add, 1, first);
         if (r.me == 1) {
           while (*static_cast<const volatile std::uint64_t*>(r.flag.local()) == 0)
             (void)r.rma.test(r.flags.slice(1, 1), Comparison::equal, 1);
           r.rma.reads(r.flag, second);
         }
       }},
      {"loads that acquire", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_signal(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
         if (r.me == 1) {
           while (*static_cast<const volatile std::uint64_t*>(r.flag.local()) == 0)
             (void)r.rma.test(r.flags.slice(1, 1), Comparison::equal, 1);
           r.rma.acquires(r.flag);
           r.rma.reads(r.data.slice(0, 4));
         }
       }},
      {"words", clean, 2,
       [](Rig& r) {
         const SharedFlags words = r.world.shared_flags(1, "done");
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1);
           r.rma.quiet();
           words.store(1, 0, 1);
         } else {
           r.world.wait(words, 1, 0, 1, WaitNote("done"));
           r.rma.reads(r.data.slice(0, 4));
         }
       }},
      {"words, of what a rank has stored", clean, 2,
       [](Rig& r) {
         const SharedFlags words = r.world.shared_flags(1, "done");
         if (r.me == 0) {
           r.rma.writes(r.data.slice(0, 4));
           words.fetch_add(1, 0, 1);
         } else {
           r.world.wait(words, 1, 0, 1, WaitNote("done"));
           r.rma.get(r.some(4), r.data.slice(0, 4), 0);
         }
       }},
      {"words without a quiet", race, 2,
       [](Rig& r) {
         const SharedFlags words = r.world.shared_flags(1, "done");
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           words.store(1, 0, 1);
         } else {
           r.world.wait(words, 1, 0, 1, WaitNote("done"));
           r.rma.reads(r.data.slice(0, 4), second);
         }
         r.world.barrier();
       }},
      {"words too early", race, 2,
       [](Rig& r) {
         const SharedFlags words = r.world.shared_flags(1, "done");
         if (r.me == 0) {
           (void)words.compare_exchange(1, 0, 0, 1);
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.world.sync();
         } else {
           r.world.wait(words, 1, 0, 1, WaitNote("done"));
           r.world.sync();
           r.rma.reads(r.data.slice(0, 4), second);
         }
         r.world.barrier();
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, boxes_and_neighbours) {
  static const Case cases[] = {
      {"columns side by side", clean, 3,
       [](Rig& r) {
         if (r.me != 1) r.rma.put(r.columns(r.me, 1), r.own_columns(1), 1);
       }},
      {"columns that overlap", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.columns(0, 2), r.own_columns(2), 1, first);
         if (r.me == 2) r.rma.put(r.columns(1, 2), r.own_columns(2), 1, second);
       }},
      {"a column and a row", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.columns(2, 1), r.own_columns(1), 1, first);
         if (r.me == 2) r.rma.get(r.some(4), r.data.slice(4, 4), 1, second);
       }},
      {"a column and the rest of a row", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.columns(3, 1), r.own_columns(1), 1);
         if (r.me == 2) r.rma.get(r.some(3), r.data.slice(4, 3), 1);
       }},
      {"backwards", race, 3,
       [](Rig& r) {
         StridedView backwards = r.columns(0, 4);
         backwards.data = r.data.local() + 15;
         backwards.strides = {-4, -1};
         if (r.me == 0) r.rma.put_nbi(backwards, r.own_columns(4), 1, first);
         if (r.me == 2) r.rma.p(r.data.from(0), 1, 1, second);
       }},
      {"a column of a source is written", race, 2,
       [](Rig& r) {
         StridedView to = r.own_columns(1);
         to.data = r.data.local() + 16;
         if (r.me == 0) r.rma.put_nbi(to, r.columns(1, 1), 1, first), r.rma.writes(r.data.slice(9, 1), second);
       }},
      {"beside a column of a source is written", clean, 2,
       [](Rig& r) {
         StridedView to = r.own_columns(1);
         to.data = r.data.local() + 16;
         if (r.me == 0) r.rma.put_nbi(to, r.columns(1, 1), 1), r.rma.writes(r.data.slice(10, 3));
       }},
      {"neighbours", clean, 3,
       [](Rig& r) {
         if (r.me != 1) r.rma.put(r.data.slice(2 * r.me, 4), r.some(4), 1);
       }},
      {"one element of two", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 5), r.some(5), 1, first);
         if (r.me == 2) r.rma.put(r.data.slice(4, 4), r.some(4), 1, second);
       }},
      {"single bytes side by side", clean, 3,
       [](Rig& r) {
         if (r.me != 1) r.rma.p(r.as<std::uint8_t>().from(r.me), 1, 1);
       }},
      {"a byte of a word", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.p(r.as<std::uint8_t>().from(6), 1, 1, first);
         if (r.me == 2) r.rma.p(r.memory, 1, 1, second);
       }},
      {"one place of two ranks", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.some(4), 1);
         if (r.me == 1) r.rma.put(r.data.slice(0, 4), r.some(4), 2);
       }},
      {"ghosts by turns", clean, 4,
       [](Rig& r) {
         const Rank right = (r.me + 1) % 4, left = (r.me + 3) % 4;
         for (int round = 0; round < 4; ++round) {
           const Index at = round % 2 * 8;
           r.rma.writes(r.data.slice(at + 2, 2));
           r.rma.put_signal_nbi(r.data.slice(at, 1), r.data.slice(at + 3, 1), r.flag, 1, SignalOp::add, right);
           r.rma.put_signal_nbi(r.data.slice(at + 4, 1), r.data.slice(at + 2, 1), r.flag, 1, SignalOp::add, left);
           r.rma.signal_wait(r.flag, Comparison::greater_equal, std::uint64_t(2 * round + 2));
           r.rma.quiet();
           r.world.sync();
           r.rma.reads(r.data.slice(at, 5));
         }
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, fences_do_not_order_updates_that_bring_a_value) {
  const auto seeds_with_value = [](int wanted, void (*program)(Rig & rig)) {
    int seeds = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed)
      simulate({.ranks = 2, .seed = seed, .heap_bytes = std::size_t(1) << 18}, [&](World& world) {
        Rig rig(world);
        if (world.rank() == 0) {
          program(rig);
          rig.rma.quiet();
          require(rig.own[0] == 0 || rig.own[0] == 5, "fetched {}", rig.own[0]);
          seeds += rig.own[0] == wanted;
        }
        world.barrier();
      });
    return seeds;
  };
  EXPECT_GT(seeds_with_value(0,
                             [](Rig& r) {
                               r.rma.add(r.data, 5, 1), r.rma.fence();
                               r.rma.fetch_add_nbi(r.own[0], r.data, 1, 1);
                             }),
            0);
  EXPECT_GT(seeds_with_value(5,
                             [](Rig& r) {
                               r.rma.fetch_add_nbi(r.own[0], r.data, 1, 1);
                               r.rma.fence(), r.rma.add(r.data, 5, 1);
                             }),
            0);
}

TEST(RaceCases, a_source_that_has_changed_when_its_rank_ends) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::array<int, 4> source{};
    const auto program = [&](World& world) {
      const auto target = world.allocate<int>(4);
      if (world.rank() == 0) world.context().put_nbi(target, source, 1, first), source[0] = 9;
    };
    const std::string error = error_of([&] { simulate({.ranks = 2, .seed = seed}, program); });
    EXPECT_NE(error.find("first.cpp:1) is no longer what it was"), std::string::npos) << "seed " << seed << error;
  }
}

TEST(RaceCases, local_memory_of_transfers) {
  static const Case cases[] = {
      {"the source is written when the target says that it has come", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.data.slice(8, 4), r.flag, 1, SignalOp::set, 1);
           r.await();
           r.rma.writes(r.data.slice(8, 4));
           std::fill_n(r.data.local() + 8, 4, 7);
         }
         if (r.me == 1) r.await(), r.raise(0);
       }},
      {"the source is written when the target says something else", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.data.slice(8, 4), r.flag, 1, SignalOp::set, 1, first);
           r.await();
           r.rma.writes(r.data.slice(8, 4), second);
         }
         if (r.me == 1) r.raise(0);
       }},
      {"the source of a put that blocks is written", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.data.slice(8, 4), 1), r.rma.writes(r.data.slice(8, 4));
       }},
      {"an undeclared store to a private source", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_nbi(r.data.slice(0, 4), r.some(4), 1, first);
           r.own[2] = 5;
           r.rma.quiet(second);
         }
       }},
      {"an undeclared store to a symmetric source", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_nbi(r.data.slice(0, 4), r.data.slice(8, 4), 1, first);
           r.data[9] = 5;
           r.rma.quiet(second);
         }
       }},
      {"an undeclared store to a source before the target says that it has come", race_with_a_store, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1, first);
           r.own[2] = 5;
           r.await();
         }
         if (r.me == 1) r.await(), r.raise(0);
       }},
      {"an undeclared store to a source after the target has said that it has come", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
           r.await();
           r.own[2] = 5;
         }
         if (r.me == 1) r.await(), r.raise(0);
       }},
      {"an undeclared store to a source before a meeting with the target", race_with_a_store, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.data.slice(8, 4), r.flag, 1, SignalOp::set, 1, first);
           r.data[9] = 5;
         }
         if (r.me == 1) r.await();
         r.world.sync();
       }},
      {"an undeclared store to a source after a meeting with the target", clean, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_signal_nbi(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
         if (r.me == 1) r.await();
         r.world.sync();
         r.own[2] = 5;
       }},
      {"an undeclared store to a source before a value that another context brings", race_with_a_store, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1, first);
           r.own[2] = 5;
           for (std::uint64_t value = 0; value == 0; other.quiet()) other.fetch_nbi(value, r.flag, 0);
         }
         if (r.me == 1) r.await(), r.raise(0);
       }},
      {"an undeclared store to a source before shared flags tell that it has come", race_with_a_store, 2,
       [](Rig& r) {
         const SharedFlags flags = r.world.shared_flags(1, "ready");
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1, first);
           r.own[2] = 5;
           r.world.wait(flags, 1, 0, 1, "ready");
         }
         if (r.me == 1) r.await(), flags.store(1, 0, 1);
       }},
      {"an undeclared store to a source of a context that ends", race_with_a_store, 2,
       [](Rig& r) {
         Context other(r.world);
         if (r.me == 0) other.put_nbi(r.data.slice(0, 4), r.some(4), 1, first);
         r.own[2] = 5;
       }},
      {"an undeclared store to a source of a context that has ended", clean, 2,
       [](Rig& r) {
         if (r.me == 0) Context(r.world).put_nbi(r.data.slice(0, 4), r.some(4), 1);
         r.own[2] = 5;
       }},
      {"another rank puts into a source that it has got", clean, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put_signal_nbi(r.data.slice(0, 4), r.data.slice(8, 4), r.flag, 1, SignalOp::set, 1);
           while (*static_cast<const volatile int*>(r.data.local() + 8) == 0)
             (void)r.rma.test(r.flag, Comparison::equal, 7);
           r.rma.quiet();
         }
         r.own[0] = 3;
         if (r.me == 1) r.await(), r.rma.put(r.data.slice(8, 1), r.some(1), 0);
       }},
      {"another rank puts into a source", race, 2,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_nbi(r.data.slice(0, 4), r.data.slice(8, 4), 1, first);
         if (r.me == 1) r.rma.put(r.data.slice(10, 1), r.some(1), 0, second);
       }},
      {"a get into what a peer puts into", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.get(r.data.slice(0, 4), r.data.slice(8, 4), 1, first);
         if (r.me == 2) r.rma.put(r.data.slice(2, 2), r.some(2), 0, second);
       }},
      {"a get beside what a peer puts into", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.get(r.data.slice(0, 4), r.data.slice(8, 4), 1);
         if (r.me == 2) r.rma.put(r.data.slice(4, 2), r.some(2), 0);
       }},
      {"a get into what a peer gets", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.get_nbi(r.data.slice(0, 4), r.data.slice(8, 4), 1, first);
         if (r.me == 2) r.rma.get(r.some(2), r.data.slice(2, 2), 0, second);
       }},
      {"a put of what a peer gets", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put_nbi(r.data.slice(0, 4), r.data.slice(8, 4), 1);
         if (r.me == 2) r.rma.get(r.some(2), r.data.slice(8, 2), 0);
       }},
      {"a put of what a peer adds to", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.put(r.data.slice(0, 4), r.data.slice(8, 4), 1, first);
         if (r.me == 2) r.rma.add(r.data.from(8), 1, 0, second);
       }},
      {"a fetched value where a peer puts", race, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.fetch_add_nbi(r.data[0], r.data.from(8), 1, 1, first);
         if (r.me == 2) r.rma.p(r.data, 1, 0, second);
       }},
      {"a fetched value, quiet, signal, put", clean, 3,
       [](Rig& r) {
         if (r.me == 0) r.rma.fetch_add_nbi(r.data[0], r.data.from(8), 1, 1), r.rma.quiet(), r.raise(2);
         if (r.me == 2) r.await(), r.rma.p(r.data, 1, 0);
       }},
      {"two transfers by turns of one private buffer", clean, 2,
       [](Rig& r) {
         for (int i = 0; i < 4 && r.me == 0; ++i) {
           r.rma.get_nbi(r.some(4), r.data.slice(0, 4), 1);
           r.rma.quiet();
           r.rma.put_nbi(r.data.slice(8, 4), r.some(4), 1);
           r.rma.quiet();
         }
       }},
      {"registered memory under its own address", race, 2,
       [](Rig& r) {
         const std::shared_ptr<void> memory = aligned_pages();
         const std::span<int> own(static_cast<int*>(memory.get()), page_bytes() / sizeof(int));
         const RegisteredMemory registered = r.world.register_memory(own);
         if (r.me == 0) r.rma.put(registered.symmetric(&own[0], 4), r.some(4), 1, first);
         if (r.me == 1) r.rma.put(r.data.slice(0, 4), own.first(4), 0, second);
         r.world.barrier();
       }},
      {"registered memory under both addresses, by turns", clean, 2,
       [](Rig& r) {
         const std::shared_ptr<void> memory = aligned_pages();
         const std::span<int> own(static_cast<int*>(memory.get()), page_bytes() / sizeof(int));
         const RegisteredMemory registered = r.world.register_memory(own);
         if (r.me == 0) r.rma.put(registered.symmetric(&own[0], 4), r.some(4), 1);
         r.world.barrier();
         if (r.me == 1) r.rma.put(r.data.slice(0, 4), own.first(4), 0), r.rma.reads(own.first(4));
         r.world.barrier();
       }},
  };
  expect_right(cases);
}

/// A page of the program's own.
std::shared_ptr<int> page() {
  constexpr std::size_t bytes = 4096;
  return {static_cast<int*>(std::aligned_alloc(bytes, bytes)), std::free};
}

/// A release is no call and has no place; the put has one.
TEST(RaceCases, registered_memory_that_is_released) {
  const auto race_of = [](FunctionRef<void(World&, RegisteredMemory&, Symmetric<int>)> program) {
    std::string said;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) try {
        simulate({.ranks = 2, .seed = seed, .heap_bytes = std::size_t(1) << 20}, [&](World& world) {
          const auto own = page();
          RegisteredMemory registered = world.register_memory(std::span(own.get(), 1024));
          program(world, registered, registered.symmetric(own.get(), 4));
          world.barrier();
        });
        said += "-";
      } catch (const Error& error) {
        const bool names_both =
            error.message().find("the release of registered memory by rank 1") != std::string::npos &&
            error.message().find("second.cpp:2") != std::string::npos;
        said += error.code() == ErrorCode::race && names_both ? "r" : error.message();
      }
    return said;
  };
  static const int values[4] = {};
  const auto put = [](World& world, Symmetric<int> to) {
    if (world.rank() == 0) world.context().put(to, std::span(values), 1, second);
  };
  EXPECT_EQ(race_of([&](World& world, RegisteredMemory& registered, Symmetric<int> name) {
              if (world.rank() == 1) registered = {};
              world.barrier();
              put(world, name);
            }),
            std::string(12, 'r'));
  EXPECT_EQ(race_of([&](World& world, RegisteredMemory& registered, Symmetric<int> name) {
              put(world, name);
              world.sync();
              if (world.rank() == 1) registered = {};
            }),
            std::string(12, 'r'));
  EXPECT_EQ(race_of([&](World& world, RegisteredMemory& registered, Symmetric<int> name) {
              put(world, name);
              world.barrier();
              if (world.rank() == 1) registered = {};
              for (int i = 0; i < 3; ++i) {
                const auto own = page();
                const RegisteredMemory more = world.register_memory(std::span(own.get(), 1024));
                put(world, more.symmetric(own.get(), 4));
                world.barrier();
              }
            }),
            std::string(12, '-'));
}

TEST(RaceCases, memory_that_is_freed) {
  static const Case cases[] = {
      {"a put of another context is under way", race, 2,
       [](Rig& r) {
         auto more = r.world.allocate<int>(4);
         Context other(r.world);
         if (r.me == 0) other.put(more, r.some(4), 1, first);
         r.world.free(std::move(more), second);
         other.quiet();
       }},
      {"a put of another context is over", clean, 2,
       [](Rig& r) {
         auto more = r.world.allocate<int>(4);
         Context other(r.world);
         if (r.me == 0) other.put(more, r.some(4), 1), other.quiet();
         r.world.free(std::move(more));
       }},
      {"a put of the default context", clean, 2,
       [](Rig& r) {
         auto more = r.world.allocate<int>(4);
         if (r.me == 0) r.rma.put(more, r.some(4), 1);
         r.world.free(std::move(more));
       }},
      {"released, and a put of another context is under way", race, 2,
       [](Rig& r) {
         auto more = r.world.allocate<int>(4);
         Context other(r.world);
         if (r.me == 0) other.put(more, r.some(4), 1, first);
         more = {};
         more = r.world.allocate<int>(4, second);
         other.quiet();
       }},
      {"released and allocated anew", clean, 2,
       [](Rig& r) {
         for (int i = 0; i < 3; ++i) {
           const auto more = r.world.allocate<int>(4);
           if (r.me == 0) r.rma.put(more, r.some(4), 1);
           r.world.barrier();
           if (r.me == 1) r.rma.reads(more);
         }
       }},
      {"a put after a free", race, 2,
       [](Rig& r) {
         auto more = r.world.allocate<int>(4);
         const Symmetric<int> name = more;
         r.world.free(std::move(more), first);
         r.world.barrier();
         if (r.me == 0) r.rma.put(name, r.some(4), 1, second);
       }},
      {"a load after a free", race, 1,
       [](Rig& r) {
         auto more = r.world.allocate<int>(4);
         const Symmetric<int> name = more;
         r.world.free(std::move(more), first);
         r.rma.reads(name, second);
       }},
  };
  expect_right(cases);
}

/// Where a kernel's operation is said to be.
KernelSite site(CallSite where) {
  return {where.file, where.line};
}

TEST(RaceCases, kernels) {
  static const Case cases[] = {
      {"data with its signal", clean, 2,
       [](Rig& r) {
         run_block(r.world, {.lanes = 4}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           const auto data = span_of(r.data.slice(0, 4));
           if (r.me == 0)
             heap.put_signal(lane.block(), data, Span<const int>{r.own.data(), 4}, r.flag.local(), 1, SignalOp::set, 1);
           else
             heap.signal_wait(lane.block(), r.flag.local(), Comparison::equal, 1);
         });
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4));
       }},
      {"data with its signal, put by the host", clean, 2,
       [](Rig& r) {
         if (r.me == 0) return r.rma.put_signal(r.data.slice(0, 4), r.some(4), r.flag, 1, SignalOp::set, 1);
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           heap_view(r.world).wait_until(lane.thread(), r.flag.local(), Comparison::not_equal, 0);
           r.rma.reads(r.data.slice(0, 4));
         });
       }},
      {"data, then a signal", race, 2,
       [](Rig& r) {
         if (r.me == 0) {
           r.rma.put(r.data.slice(0, 4), r.some(4), 1, first);
           r.raise(1);
           return;
         }
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           heap_view(r.world).signal_wait(lane.block(), r.flag.local(), Comparison::equal, 1);
         });
         r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"a source is written before a quiet", race, 2,
       [](Rig& r) {
         if (r.me == 1) return;
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const KernelSite where{first.file, first.line};
           heap_view(r.world).put_nbi(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.data.local() + 8, 4},
                                      1, where);
         });
         r.rma.writes(r.data.slice(8, 4), second);
       }},
      {"a source is written after a quiet", clean, 2,
       [](Rig& r) {
         if (r.me == 1) return;
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           heap.put_nbi(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.data.local() + 8, 4}, 1);
           heap.quiet(lane.block());
         });
         r.rma.writes(r.data.slice(8, 4));
       }},
      {"any of two signals, and the data of both", race, 3,
       [](Rig& r) {
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           const Span<const int> one(r.own.data(), 1);
           if (r.me != 1)
             heap.put_signal(lane.block(), Span(r.data.local() + r.me, 1), one, r.flags.local() + r.me, 1,
                             SignalOp::set, 1, site(first));
           else
             heap.wait_until_any(lane.block(), Span(r.flags.local(), 3), Comparison::equal, 1);
         });
         if (r.me == 1) r.rma.reads(r.data.slice(0, 3), second);
       }},
      {"some of two signals, and their data", clean, 3,
       [](Rig& r) {
         const auto places = r.world.allocate<long>(3);
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           const Span<const int> one(r.own.data(), 1);
           if (r.me != 1)
             return heap.put_signal(lane.block(), Span(r.data.local() + r.me, 1), one, r.flags.local() + r.me, 1,
                                    SignalOp::set, 1);
           const long long some =
               heap.wait_until_some(lane.block(), Span(r.flags.local(), 3), span_of(places), Comparison::equal, 1);
           for (Index i = 0; i < some; ++i) r.rma.reads(r.data.slice(places[i], 1));
         });
       }},
      {"a test that has found its signal", clean, 2,
       [](Rig& r) {
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0)
             return heap.put_signal(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4},
                                    r.flag.local(), 1, SignalOp::set, 1);
           while (!heap.test(lane.block(), r.flag.local(), Comparison::equal, 1)) {
           }
           r.rma.reads(r.data.slice(0, 4));
         });
       }},
      {"a test of another variable", race, 2,
       [](Rig& r) {
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0)
             return heap.put_signal(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4},
                                    r.flag.local(), 1, SignalOp::set, 1, site(first));
           heap.test(lane.block(), r.flags.local() + 1, Comparison::equal, 1);
           r.rma.reads(r.data.slice(0, 4), second);
         });
       }},
      {"a fetched value before a quiet", race, 2,
       [](Rig& r) {
         if (r.me == 1) return;
         run_block(r.world, {.lanes = 1}, [&](const CpuLane& lane) {
           heap_view(r.world).fetch_add_nbi(lane.block(), r.data.local() + 8, r.data.local(), 1, 1, site(first));
         });
         r.rma.reads(r.data.slice(8, 1), second);
       }},
      {"a fetched value after a quiet", clean, 2,
       [](Rig& r) {
         if (r.me == 1) return;
         run_block(r.world, {.lanes = 1}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           heap.fetch_add_nbi(lane.block(), r.data.local() + 8, r.data.local(), 1, 1);
           heap.quiet(lane.block());
         });
         r.rma.reads(r.data.slice(8, 1));
       }},
      {"columns beside each other", clean, 3,
       [](Rig& r) {
         if (r.me == 1) return;
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const StridedSpan<int> mine{.data = r.data.local() + r.me, .dims = 2, .extents = {4, 1}, .strides = {4, 1}};
           heap_view(r.world).put(lane.block(), mine, mine, 1);
         });
       }},
      {"columns that overlap", race, 3,
       [](Rig& r) {
         if (r.me == 1) return;
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const StridedSpan<int> mine{.data = r.data.local() + r.me, .dims = 2, .extents = {4, 3}, .strides = {4, 1}};
           heap_view(r.world).put(lane.block(), mine, mine, 1, site(r.me == 0 ? first : second));
         });
       }},
  };
  expect_right(cases);
}

TEST(RaceCases, kernel_collectives) {
  static const Case cases[] = {
      {"store, sync, get", clean, 3,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         if (r.me == 1) r.rma.writes(r.data.slice(0, 4));
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           sync(lane.block(), heap, team.view());
           if (r.me == 0) heap.get(lane.block(), Span(r.own.data(), 4), span_of(r.data.slice(0, 4)), 1);
         });
       }},
      {"store, get", race, 2,
       [](Rig& r) {
         if (r.me == 1) return r.rma.writes(r.data.slice(0, 4), first);
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           heap_view(r.world).get(lane.block(), Span(r.own.data(), 4), span_of(r.data.slice(0, 4)), 1, site(second));
         });
       }},
      {"put, sync", race, 2,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0)
             heap.put(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4}, 1, site(first));
           sync(lane.block(), heap, team.view());
         });
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put, barrier", clean, 2,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0) heap.put(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4}, 1);
           barrier(lane.block(), heap, team.view());
         });
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4));
       }},
      {"put, barrier of a team without the reader", race, 3,
       [](Rig& r) {
         auto pair = r.world.team().split_strided({.first = 0, .stride = 2, .count = 2});
         if (pair) {
           const KernelTeam team(*pair);
           run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
             const HeapView heap = heap_view(r.world);
             if (r.me == 0)
               heap.put(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4}, 1, site(first));
             barrier(lane.block(), heap, team.view());
           });
         }
         if (r.me == 1) r.rma.reads(r.data.slice(0, 4), second);
       }},
      {"put into the source of a reduction", race, 2,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0)
             heap.put(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4}, 1, site(first));
           reduce(lane.block(), heap, team.view(), span_of(r.data.slice(8, 4)), span_of(r.data.slice(0, 4)),
                  Reduction::sum, site(second));
         });
       }},
      {"put into the source of a reduction, before a barrier", clean, 2,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0) heap.put(lane.block(), span_of(r.data.slice(0, 4)), Span<const int>{r.own.data(), 4}, 1);
           barrier(lane.block(), heap, team.view());
           reduce(lane.block(), heap, team.view(), span_of(r.data.slice(8, 4)), span_of(r.data.slice(0, 4)),
                  Reduction::sum);
         });
       }},
      {"put into the target of a reduction", race, 2,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           if (r.me == 0)
             heap.put(lane.block(), span_of(r.data.slice(10, 2)), Span<const int>{r.own.data(), 2}, 1, site(first));
           reduce(lane.block(), heap, team.view(), span_of(r.data.slice(8, 4)), span_of(r.data.slice(0, 4)),
                  Reduction::sum, site(second));
         });
       }},
      {"sources and targets are used again at return", clean, 3,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         const auto target = r.world.allocate<int>(12);
         const auto source = r.data.slice(0, 12);
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const HeapView heap = heap_view(r.world);
           const auto block = lane.block();
           const auto again = [&](auto&& call) {
             if (lane.index() == 0) r.rma.writes(source);
             call();
             if (lane.index() == 0) r.rma.reads(target.slice(0, 1)), r.rma.writes(source), r.rma.writes(target.from(0));
           };
           const TeamView& t = team.view();
           const Span<const int> all(source.local(), 12), some(source.local(), 4), one(source.local(), 1);
           for (int round = 0; round < 2; ++round) {
             again([&] { broadcast(block, heap, t, span_of(target), all, round); });
             again([&] { fcollect(block, heap, t, span_of(target), some); });
             again([&] { alltoall(block, heap, t, span_of(target), all); });
             again([&] { reduce(block, heap, t, span_of(target), all, Reduction::sum); });
             again([&] { reduce(block, heap, t, span_of(target), one, Reduction::sum); });
             again([&] { reduce(block, heap, t, span_of(source), all, Reduction::maximum); });
             again([&] { reducescatter(block, heap, t, span_of(target), all, Reduction::bit_or); });
           }
         });
       }},
      {"a source is written while others read it", race, 3,
       [](Rig& r) {
         const KernelTeam team(r.world.team());
         run_block(r.world, {.lanes = 2}, [&](const CpuLane& lane) {
           const Span<const int> four(r.data.local(), 4);
           broadcast(lane.block(), heap_view(r.world), team.view(), Span(r.data.local() + 4, 4), four, 1, site(first));
           if (r.me == 2 && lane.index() == 0)
             heap_view(r.world).p(lane.thread(), r.data.local() + 4, 3, 0, site(second));
         });
         // What rank 0 has got is its own until it says otherwise.
         if (r.me == 0) r.rma.reads(r.data.slice(4, 1), first);
       }},
  };
  expect_right(cases);
}

}  // namespace
}  // namespace tranship::test
