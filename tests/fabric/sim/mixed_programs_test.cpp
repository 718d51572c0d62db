// Random programs of one-sided transfers under random orders of everything: what is right never fails and leaves what
// plain arrays say; with one fence, quiet, wait or barrier less it is found to be wrong.
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>

#include "support/random_programs.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

constexpr int no_step = -1;

/// One run of a program. What is not symmetric outlives the ranks, so that a program that is wrong may write it late.
class ProgramRun {
 public:
  /// Without step number `without`.
  explicit ProgramRun(const Program& program, int without = no_step)
      : program_(program),
        without_(without),
        own_(std::size_t(program.ranks) * own_bytes),
        observed_(std::size_t(program.observations)) {}

  SimulationReport simulate(std::uint64_t seed) {
    const SimulationReport report = tranship::simulate({.ranks = program_.ranks,
                                                        .seed = seed,
                                                        .peers = program_.peers,
                                                        .heap_bytes = std::size_t(1) << 14,
                                                        .steps_max = 200'000},
                                                       [&](World& world) { OfRank(*this, world).run(); });
    for (const Contest& contest : program_.contests) judge(contest, observed_);
    return report;
  }

  /// On ranks of this machine or of several; each of them judges what all have seen.
  void run(On on) {
    run_on(on, {.ranks = program_.ranks, .heap_bytes = std::size_t(1) << 20}, [&](World& world) {
      OfRank(*this, world).run();
      if (observed_.empty()) return;
      world.barrier();  // threads share them
      // Each observation is of one rank, and 0 in the processes of the others.
      std::vector<std::uint64_t> mine = observed_, all(mine.size() * std::size_t(world.size()));
      world.team().all_gather(mine.data(), mine.size() * sizeof mine[0], all.data());
      std::fill(mine.begin(), mine.end(), 0);
      for (std::size_t i = 0; i < all.size(); ++i) mine[i % mine.size()] |= all[i];
      for (const Contest& contest : program_.contests) judge(contest, mine);
    });
  }

 private:
  class OfRank {
   public:
    OfRank(ProgramRun& run, World& world) : run_(run), world_(world), rank_(world.rank()) {
      contexts_.push_back(&world.context());
      for (int c = 1; c < run.program_.contexts; ++c) {
        more_.push_back(std::make_unique<Context>(
            world, ContextOptions{.checks = c % 2 == 1 ? HeapChecks::blocks : HeapChecks::bounds}));
        contexts_.push_back(more_.back().get());
      }
      for (int a = 0; a < symmetric_arrays; ++a)
        symmetric_[std::size_t(a)] = world.allocate<std::byte>(run.program_.first_bytes[std::size_t(a)]);
      if (run.program_.peers == PeerKind::reachable) words_ = world.shared_flags(ranks_max, "raised");
    }

    void run() {
      for (int s = 0; s < int(run_.program_.steps.size()); ++s) {
        const Step& step = run_.program_.steps[std::size_t(s)];
        if ((step.ranks >> rank_ & 1) == 0) continue;
        if (s != run_.without_)
          make(step);
        else if (step.kind == Step::Kind::collect)
          check_collected(step, ~step.skips);
      }
    }

   private:
    using Kind = Step::Kind;
    using Form = Step::Form;

    std::byte* at(Place place) const {
      return (place.array == own_array ? run_.own_.data() + rank_ * own_bytes
                                       : symmetric_[std::size_t(place.array)].local()) +
             place.offset;
    }
    template <class T>
    Symmetric<T> symmetric(Place place, Index count) const {
      return Symmetric<T>::at(reinterpret_cast<T*>(at(place)), count);
    }
    template <class T>
    Symmetric<T> word(const Step& step, Index count = 1) const {
      return symmetric<T>(step.word, count);
    }
    template <class T>
    T& own(Place place) const {
      return *reinterpret_cast<T*>(at(place));
    }
    Symmetric<std::byte> bytes_at(Place place, Index bytes) const { return symmetric<std::byte>(place, bytes); }
    static StridedView view(const Step& step, std::byte* first, const Side& side) {
      return {.data = first, .type = view_type_of(step.width), .extents = step.extents, .strides = side.strides};
    }
    Team& team(const Step& step) {
      if (step.team == 0) return world_.team();
      return *teams_[std::size_t(step.team - 1)];
    }

    void make(const Step& step) {
      Context& rma = *contexts_[std::size_t(step.context)];
      switch (step.kind) {
        case Kind::store:
          if (step.target.first.array != own_array)
            rma.writes(bytes_at(step.target.first, step.bytes));
          else
            rma.writes(std::span(at(step.target.first), std::size_t(step.bytes)));
          return fill_bytes(step.seed, at(step.target.first), step.bytes);
        case Kind::check:
          return check(step, step.target.first, 0, step.bytes);
        case Kind::put:
          return put(rma, step);
        case Kind::get:
          return get(rma, step);
        case Kind::signal:
          return with_signal(step,
                             [&](auto word) { rma.signal(word, std::int64_t(step.value), step.signal_op, step.peer); });
        case Kind::wait:
          return wait(rma, step);
        case Kind::collect:
          return collect(rma, step);
        case Kind::atomic:
          return atomic(rma, step);
        case Kind::critical:
          return critical(rma, step);
        case Kind::fence:
          return rma.fence();
        case Kind::quiet:
          return rma.quiet();
        case Kind::barrier:
          return team(step).barrier();
        case Kind::sync:
          return team(step).sync();
        case Kind::broadcast:
          return team(step).broadcast(at(step.source.first), std::size_t(step.bytes), step.root);
        case Kind::all_gather:
          return team(step).all_gather(at(step.source.first), std::size_t(step.bytes), at(step.target.first));
        case Kind::split_strided:
          teams_[0] =
              world_.team().split_strided({.first = step.root, .stride = int(step.value), .count = int(step.count)});
          return;
        case Kind::split_2d: {
          const Team::Split2d both = world_.team().split_2d(int(step.count));
          teams_ = {both.x, both.y};
          return;
        }
        case Kind::allocate: {
          auto& array = symmetric_[std::size_t(step.word.array)];
          if (step.seed % 2 == 0)
            world_.free(std::move(array));
          else
            array = {};
          array = world_.allocate<std::byte>(step.bytes);
          return;
        }
        case Kind::raise_word:
          words_.fetch_add(step.peer, rank_, 1);
          return;
        case Kind::wait_word:
          return world_.wait(words_, rank_, step.peer, step.value, WaitNote("wait_word"));
      }
    }

    template <class F>
    void with_signal(const Step& step, F&& f) const {
      if (step.type == WordType::u64)
        f(word<std::uint64_t>(step));
      else
        f(word<std::int64_t>(step));
    }

    void put(Context& rma, const Step& step) {
      std::byte* const source = at(step.source.first);
      const bool waits = step.completion == Completion::blocking;
      if (step.form == Form::view) {
        const StridedView to = view(step, at(step.target.first), step.target);
        const StridedView from = view(step, source, step.source);
        if (step.signals)
          with_signal(step, [&](auto word) {
            rma.put_signal(to, from, word, std::int64_t(step.value), step.signal_op, step.peer);
          });
        else
          waits ? rma.put(to, from, step.peer) : rma.put_nbi(to, from, step.peer);
        return;
      }
      with_element(step.width, [&](auto zero) {
        using T = decltype(zero);
        const Index count = step.extents[0];
        const std::span<const T> from(reinterpret_cast<const T*>(source),
                                      std::size_t(count + std::max<Index>(-step.slack, 0)));
        const auto to = symmetric<T>(step.target.first, count + std::max<Index>(step.slack, 0));
        if (step.signals)
          with_signal(step, [&](auto word) {
            const auto value = std::int64_t(step.value);
            waits ? rma.put_signal(to, from, word, value, step.signal_op, step.peer)
                  : rma.put_signal_nbi(to, from, word, value, step.signal_op, step.peer);
          });
        else if (step.form == Form::element)
          rma.p(to, from[0], step.peer);
        else
          waits ? rma.put(to, from, step.peer) : rma.put_nbi(to, from, step.peer);
      });
    }
    void get(Context& rma, const Step& step) {
      std::byte* const target = at(step.target.first);
      const bool waits = step.completion == Completion::blocking;
      if (step.form == Form::view) {
        const StridedView to = view(step, target, step.target);
        const StridedView from = view(step, at(step.source.first), step.source);
        return waits ? rma.get(to, from, step.peer) : rma.get_nbi(to, from, step.peer);
      }
      with_element(step.width, [&](auto zero) {
        using T = decltype(zero);
        const Index count = step.extents[0];
        const std::span<T> to(reinterpret_cast<T*>(target), std::size_t(count + std::max<Index>(step.slack, 0)));
        const auto from = symmetric<T>(step.source.first, count + std::max<Index>(-step.slack, 0));
        if (step.form == Form::element)
          to[0] = rma.g(from, step.peer);
        else
          waits ? rma.get(to, from, step.peer) : rma.get_nbi(to, from, step.peer);
      });
    }

    void wait(Context& rma, const Step& step) {
      with_word(step.type, [&](auto zero) {
        using T = decltype(zero);
        const auto wanted = T(step.value);
        T seen{}, expected;
        std::memcpy(&expected, run_.program_.expected.data() + step.expected, sizeof expected);
        if (step.polls) {
          while (!rma.test(word<T>(step), step.comparison, wanted)) {
          }
          seen = *word<T>(step).local();
        } else {
          seen = rma.wait_until(word<T>(step), step.comparison, wanted);
        }
        if constexpr (SignalWord<T>) {
          require(rma.signal_wait(word<T>(step), step.comparison, wanted) == seen, "signal_wait sees another value");
          require(rma.signal_fetch(word<T>(step)) == seen, "signal_fetch sees another value");
        }
        require(seen == expected, "a wait sees {}, expected {}", seen, expected);
      });
    }

    void collect(Context& rma, const Step& step) {
      with_signal(step, [&](auto first) {
        using T = typename decltype(first)::Element;
        const auto all = word<T>(step, step.count);
        const auto wanted = T(step.value);
        std::array<int, 16> skip{};
        for (Index i = 0; i < step.count; ++i) skip[std::size_t(i)] = int(step.skips >> i & 1);
        const auto left = [&] { return std::count(skip.begin(), skip.begin() + step.count, 0) > 0; };
        const auto come = [&](Index i) {
          require(skip[std::size_t(i)] == 0, "word {} has come twice", i);
          skip[std::size_t(i)] = 1;
          check_collected(step, std::uint32_t(1) << i);
        };
        std::array<Index, 16> places{};
        switch (step.collect) {
          case Step::Collect::all:
            rma.wait_until_all(all, step.comparison, wanted, skip);
            return check_collected(step, ~step.skips);
          case Step::Collect::test_all:
            while (!rma.test_all(all, step.comparison, wanted, skip)) {
            }
            return check_collected(step, ~step.skips);
          case Step::Collect::any:
            while (left()) come(rma.wait_until_any(all, step.comparison, wanted, skip));
            return require(rma.wait_until_any(all, step.comparison, wanted, skip) == -1, "any of none");
          case Step::Collect::test_any:
            while (left())
              if (const Index i = rma.test_any(all, step.comparison, wanted, skip); i >= 0) come(i);
            return;
          case Step::Collect::some:
            while (left())
              for (Index i = rma.wait_until_some(all, places, step.comparison, wanted, skip); i > 0; --i)
                come(places[std::size_t(i - 1)]);
            return;
          case Step::Collect::test_some:
            while (left())
              for (Index i = rma.test_some(all, places, step.comparison, wanted, skip); i > 0; --i)
                come(places[std::size_t(i - 1)]);
        }
      });
    }
    void check_collected(const Step& step, std::uint32_t which) const {
      for (Index i = 0; i < step.count; ++i)
        if (which >> i & 1) check(step, step.target.first + i * step.bytes, i * step.bytes, step.bytes);
    }

    void atomic(Context& rma, const Step& step) {
      with_word(step.type, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (AtomicInteger<T>) {
          const auto at_peer = word<T>(step);
          T& before = step.observed >= 0 ? reinterpret_cast<T&>(run_.observed_[std::size_t(step.observed)])
                                         : own<T>(fetched_place(step));
          const auto by = T(step.value), compare = T(step.compare);
          if (step.fetch == Step::Fetch::none) {
            update(rma, step, at_peer, by);
          } else if (step.fetch == Step::Fetch::blocking) {
            before = fetch(rma, step, at_peer, by, compare);
          } else {
            fetch_nbi(rma, step, before, at_peer, by, compare);
          }
        }
      });
    }
    /// Of what does not fetch, any.
    static Place fetched_place(const Step& step) {
      return step.fetch == Step::Fetch::none ? Place{} : step.target.first;
    }
    template <class T>
    static void update(Context& rma, const Step& step, Symmetric<T> to, T by) {
      switch (step.atomic_op) {
        case AtomicOp::set:
          return rma.set(to, by, step.peer);
        case AtomicOp::add:
          return by == 1 ? rma.inc(to, step.peer) : rma.add(to, by, step.peer);
        case AtomicOp::bit_and:
          return rma.bit_and(to, by, step.peer);
        case AtomicOp::bit_or:
          return rma.bit_or(to, by, step.peer);
        case AtomicOp::bit_xor:
          return rma.bit_xor(to, by, step.peer);
        default:
          require(false, "an update that fetches");
      }
    }
    template <class T>
    static T fetch(Context& rma, const Step& step, Symmetric<T> to, T by, T compare) {
      switch (step.atomic_op) {
        case AtomicOp::fetch:
          return rma.fetch(to, step.peer);
        case AtomicOp::swap:
          return rma.swap(to, by, step.peer);
        case AtomicOp::compare_swap:
          return rma.compare_swap(to, compare, by, step.peer);
        case AtomicOp::add:
          return by == 1 ? rma.fetch_inc(to, step.peer) : rma.fetch_add(to, by, step.peer);
        case AtomicOp::bit_and:
          return rma.fetch_bit_and(to, by, step.peer);
        case AtomicOp::bit_or:
          return rma.fetch_bit_or(to, by, step.peer);
        case AtomicOp::bit_xor:
          return rma.fetch_bit_xor(to, by, step.peer);
        case AtomicOp::set:
          break;
      }
      require(false, "a set that fetches");
      return {};
    }
    template <class T>
    static void fetch_nbi(Context& rma, const Step& step, T& before, Symmetric<T> to, T by, T compare) {
      switch (step.atomic_op) {
        case AtomicOp::fetch:
          return rma.fetch_nbi(before, to, step.peer);
        case AtomicOp::swap:
          return rma.swap_nbi(before, to, by, step.peer);
        case AtomicOp::compare_swap:
          return rma.compare_swap_nbi(before, to, compare, by, step.peer);
        case AtomicOp::add:
          return by == 1 ? rma.fetch_inc_nbi(before, to, step.peer) : rma.fetch_add_nbi(before, to, by, step.peer);
        case AtomicOp::bit_and:
          return rma.fetch_bit_and_nbi(before, to, by, step.peer);
        case AtomicOp::bit_or:
          return rma.fetch_bit_or_nbi(before, to, by, step.peer);
        case AtomicOp::bit_xor:
          return rma.fetch_bit_xor_nbi(before, to, by, step.peer);
        case AtomicOp::set:
          require(false, "a set that fetches");
      }
    }

    void critical(Context& rma, const Step& step) {
      const auto lock = word<std::uint64_t>(step);
      const auto sum = symmetric<std::uint64_t>(step.target.first, 1);
      while (rma.compare_swap(lock, step.compare, ~step.compare, step.peer) != step.compare) {
      }
      rma.p(sum, rma.g(sum, step.peer) + step.value, step.peer);
      rma.quiet();
      rma.set(lock, step.compare, step.peer);
    }

    void check(const Step& step, Place place, Index skipped, Index bytes) const {
      if (bytes == 0) return;
      const std::byte* const seen = at(place);
      if (place.array != own_array)
        contexts_[0]->reads(bytes_at(place, bytes));
      else
        contexts_[0]->reads(std::span(seen, std::size_t(bytes)));
      const std::byte* const expected = run_.program_.expected.data() + step.expected + skipped;
      if (std::memcmp(seen, expected, std::size_t(bytes)) == 0) return;
      const Index wrong = std::mismatch(seen, seen + bytes, expected).first - seen;
      require(false, "rank {}, array {}, byte {}: is {:02x}, expected {:02x}", rank_, place.array, place.offset + wrong,
              int(seen[wrong]), int(expected[wrong]));
    }

    ProgramRun& run_;
    World& world_;
    Rank rank_;
    std::vector<std::unique_ptr<Context>> more_;
    std::vector<Context*> contexts_;
    std::array<SymmetricArray<std::byte>, symmetric_arrays> symmetric_;
    SharedFlags words_;
    std::array<std::optional<Team>, 2> teams_;
  };

  /// Whether what ranks saw of a word that they updated at the same time can be.
  static void judge(const Contest& contest, const std::vector<std::uint64_t>& all_observed) {
    const int width = size_bytes_of(contest.type);
    const auto seen = [&](int observed) {
      std::uint64_t out = 0;
      std::memcpy(&out, &all_observed[std::size_t(observed)], std::size_t(width));
      return out;
    };
    const std::uint64_t last = seen(contest.after);
    std::multiset<std::uint64_t> before, after;
    std::uint64_t sum = contest.before, changed = 0;
    int won = 0;
    for (const auto& [operand, observed] : contest.tries) {
      sum = updated(AtomicOp::add, contest.type, sum, operand, 0);
      if (observed < 0) continue;
      const std::uint64_t was = seen(observed);
      before.insert(was);
      switch (contest.law) {
        case Contest::Law::sums:
          after.insert(updated(AtomicOp::add, contest.type, was, operand, 0));
          break;
        case Contest::Law::swaps:
          after.insert(updated(AtomicOp::swap, contest.type, was, operand, 0));
          break;
        case Contest::Law::claims:
          won += was == contest.before;
          require(was == contest.before || was == last, "a claim saw {}, which is neither {} nor {}", was,
                  contest.before, last);
          require(was != contest.before || updated(AtomicOp::swap, contest.type, 0, operand, 0) == last,
                  "a claim of {} won, and {} is there", operand, last);
          break;
        case Contest::Law::bits:
          changed |= contest_bit(operand);
          require(((was ^ contest.before) & contest_bit(operand)) == 0, "bits of {} were changed before", operand);
          break;
        case Contest::Law::bounds:
          break;
      }
    }
    switch (contest.law) {
      case Contest::Law::claims:
        return require(won == 1, "{} claims won", won);
      case Contest::Law::bits:
        for (const std::uint64_t was : before)
          require(((was ^ contest.before) & ~changed) == 0, "{} has bits of nobody", was);
        return;
      case Contest::Law::bounds:
        for (const std::uint64_t was : before) {
          const auto since = [&](std::uint64_t value) {
            return updated(AtomicOp::add, contest.type, value, 0 - contest.before, 0);
          };
          require(since(was) < since(sum), "an add saw {} between {} and {}", was, contest.before, sum);
        }
        return require(last == sum, "the sum is {}, expected {}", last, sum);
      case Contest::Law::sums:
        require(last == sum, "the sum is {}, expected {}", last, sum);
        [[fallthrough]];
      case Contest::Law::swaps:
        // What one left is what the next one saw.
        before.insert(last);
        after.insert(contest.before);
        require(before == after, "what was seen is no chain from {} to {}", contest.before, last);
    }
  }
  /// Those that an operand of a bit operation changes: few are set, or few are not.
  static std::uint64_t contest_bit(std::uint64_t operand) {
    return (operand & (operand - 1)) == 0 ? operand : ~operand;
  }

  const Program& program_;
  int without_;
  std::vector<std::byte> own_;
  std::vector<std::uint64_t> observed_;
};

/// Its failure begins with the seed that replays it: of the program, and of the order of its run.
TEST(MixedPrograms, leave_what_plain_arrays_say) {
  std::int64_t deliveries = 0;
  const std::string fault = first_fault(1, [&](std::uint64_t seed) {
    const Program program = ProgramGenerator(seed).generate();
    deliveries += ProgramRun(program).simulate(seed).deliveries;
    return std::string();
  });
  EXPECT_EQ(fault, "");
  EXPECT_GT(deliveries, 0);
}

class MixedProgramsOn : public ::testing::TestWithParam<On> {};
INSTANTIATE_TEST_SUITE_P(On, MixedProgramsOn, ::testing::Values(On::threads, On::apart, On::dealt),
                         [](const auto& info) { return std::string(name_of(info.param)); });

/// The same bytes on ranks that run when they like. Flags that ranks share reach those of one machine alone.
TEST_P(MixedProgramsOn, leave_what_plain_arrays_say) {
  EXPECT_EQ(first_fault(0.04,
                        [&](std::uint64_t seed) {
                          const Program program = ProgramGenerator(seed).generate();
                          if (program.peers == PeerKind::messaged || !are_apart(GetParam()))
                            ProgramRun(program).run(GetParam());
                          return std::string();
                        }),
            "");
}

TEST(MixedPrograms, are_found_to_be_wrong_without_a_step_that_they_need) {
  constexpr std::uint64_t programs = 150, orders = 8;
  const auto fails = [](const Program& program, int without, std::uint64_t seed) {
    try {
      ProgramRun(program, without).simulate(seed);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  std::map<Step::Kind, std::vector<std::string>> missed;
  std::map<Step::Kind, std::size_t> mutants;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const Program program = ProgramGenerator(seed).generate();
    for (int s = 0; s < int(program.steps.size()); ++s) {
      const Step& step = program.steps[std::size_t(s)];
      if (!step.needed) continue;
      ++mutants[step.kind];
      std::uint64_t order = 0;
      while (order < orders && !fails(program, s, 1000 * seed + order)) ++order;
      if (order == orders) missed[step.kind].push_back(fmt::format("{} of {}", s, seed));
    }
  }
  // Now and then what another script does there for itself stands in for the step.
  using Kind = Step::Kind;
  for (const Kind kind :
       {Kind::fence, Kind::quiet, Kind::wait, Kind::collect, Kind::barrier, Kind::sync, Kind::wait_word}) {
    EXPECT_GT(mutants[kind], 5u) << int(kind);
    EXPECT_LE(missed[kind].size(), mutants[kind] / 5)
        << fmt::format("kind {}, of {}: steps {}", int(kind), mutants[kind], join_text(missed[kind], ", "));
  }
}

}  // namespace
}  // namespace tranship::test
