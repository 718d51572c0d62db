// Pipes between ranks that know their own side only, while others do something else.
#include <iterator>
#include <list>

#include <tranship/array/array.hpp>
#include <tranship/array/switchboard.hpp>
#include <tranship/layout/text.hpp>

#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test::switchboard_test {
namespace {

class Switchboards : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Switchboards,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt, On::sub, On::listed,
                                                              On::listed_hosts),
                                            ::testing::Values(6)),
                         OnRanks::name);

ArraySpec on_ranks(const char* text, std::vector<Rank> ranks) {
  ArraySpec out = parse_layout(text);
  out.distribution = out.distribution.on_ranks(std::move(ranks));
  return out;
}
std::int64_t& at(const StridedView& view, const Indices& local) {
  Index offset = 0;
  for (int d = 0; d < view.dims(); ++d) offset += local[d] * view.strides[d];
  return static_cast<std::int64_t*>(view.data)[offset];
}

// Ranks 0, 1 -> 2, 3 -> 4, 5; each stage adds one to every value.
TEST_P(Switchboards, stages_of_a_pipeline_connect_with_their_neighbours) {
  run([](World& world) {
    Switchboard board(world);
    const int stage = world.rank() / 2;
    const std::vector<Rank> mine{2 * stage, 2 * stage + 1};
    const ArraySpec rows = on_ranks("i64[8,6] @ 2x1 : block, whole", mine);
    const ArraySpec columns = on_ranks("i64[8,6] @ 1x2 : whole, cyclic(1)", mine);
    std::optional<PipeLine> in, out;
    if (stage > 0) in.emplace(board.connect(fmt::format("to {}", stage), {}, columns, {.to = {.count = 1 + stage}}));
    if (stage < 2) out.emplace(board.connect(fmt::format("to {}", 1 + stage), rows, {}, {.from = {.count = 2}}));
    std::vector<std::int64_t> sums;
    for (int frame = 0; frame < 7; ++frame) {
      std::int64_t first = 1000 * frame;
      if (in) {
        const PipeBuffer got = in->pipe().receiver().get();
        for_each_owned(columns.distribution, world.rank(), [&](const Indices& local, const Indices& cell) {
          const std::int64_t expected = 1000 * frame + stage - 1 + 10 * cell[0] + cell[1];
          require(at(got.view, local) == expected, "stage {}, frame {}: {} is not {}", stage, frame,
                  at(got.view, local), expected);
        });
        first += stage;
        in->pipe().receiver().put();
      }
      if (out) {
        const PipeBuffer next = out->pipe().sender().get();
        for_each_owned(rows.distribution, world.rank(), [&](const Indices& local, const Indices& cell) {
          at(next.view, local) = first + 10 * cell[0] + cell[1];
        });
        out->pipe().sender().put();
      }
    }
    if (out) out->pipe().sender().drain();
  });
}

// Ranks 4, 0 -> 5, 1, 0, in that order; rank 0 is on both sides, 2 and 3 on none.
TEST_P(Switchboards, sides_are_any_ranks) {
  run([](World& world) {
    Switchboard board(world);
    const ArraySpec from = on_ranks("i64[8,6] @ 2x1 : block, whole", {4, 0});
    const ArraySpec to = on_ranks("i64[8,6] @ 1x3 : whole, cyclic(1)", {5, 1, 0});
    const auto of = [&](const ArraySpec& spec) {
      return spec.distribution.grid().place_of(world.rank()) ? std::optional(spec) : std::nullopt;
    };
    if (!of(from) && !of(to)) return;
    for (const int repeat : {0, 1, 2}) {
      PipeLine line = board.connect("any", of(from), of(to), {.from = {.count = 2}, .to = {.count = 3}});
      for (int frame = 0; frame < 7; ++frame) {
        if (of(from)) {
          const PipeBuffer next = line.pipe().sender().get();
          for_each_owned(from.distribution, world.rank(), [&](const Indices& local, const Indices& cell) {
            at(next.view, local) = 1000 * frame + repeat + 10 * cell[0] + cell[1];
          });
          line.pipe().sender().put();
        }
        if (of(to)) {
          const PipeBuffer got = line.pipe().receiver().get();
          for_each_owned(to.distribution, world.rank(), [&](const Indices& local, const Indices& cell) {
            const std::int64_t expected = 1000 * frame + repeat + 10 * cell[0] + cell[1];
            require(at(got.view, local) == expected, "frame {}: {} is not {}", frame, at(got.view, local), expected);
          });
          line.pipe().receiver().put();
        }
      }
      if (of(from)) line.pipe().sender().drain();
    }
  });
}

TEST_P(Switchboards, lines_come_and_go_under_one_number) {
  run([](World& world) {
    Switchboard board(world);
    if (world.rank() % 2 == 0) return;  // ranks 1, 3, 5 alone
    for (int repeat = 0; repeat < 4; ++repeat) {
      const Rank sender = 1 + 2 * (repeat % 3);
      const ArraySpec one = on_ranks("i64[5] @ 1 : block", {sender}), all = on_ranks("i64[5] @ 3 : block", {1, 3, 5});
      PipeLine line = board.connect("seven", world.rank() == sender ? std::optional(one) : std::nullopt, all);
      Pipe& pipe = line.pipe();
      if (pipe.sends()) {
        const PipeBuffer out = pipe.sender().get();
        for (Index i = 0; i < 5; ++i) at(out.view, {i}) = 10 * repeat + i;
        pipe.sender().put();
      }
      const PipeBuffer in = pipe.receiver().get();
      for_each_owned(pipe.target().distribution, (world.rank() - 1) / 2,
                     [&](const Indices& local, const Indices& cell) {
                       require(at(in.view, local) == 10 * repeat + cell[0], "value");
                     });
      pipe.receiver().put();
      if (pipe.sends()) pipe.sender().drain();
    }
  });
}

// More lines at a time than there can be teams: those between the same ranks share one world. Others come and go
// between.
TEST_P(Switchboards, many_lines_join_the_same_ranks) {
  run([](World& world) {
    Switchboard board(world);
    const Rank r = world.rank();
    if (r == 2 || r == 4) return;
    const int count = is_brief() ? 30 : 100;
    const ArraySpec all = on_ranks("i64[8] @ 4 : block", {0, 1, 3, 5}), one = on_ranks("i64[8] @ 1 : block", {1});
    const auto only = [&](bool is_in, const ArraySpec& spec) { return is_in ? std::optional(spec) : std::nullopt; };
    std::list<PipeLine> lines;
    for (int i = 0; i < count; ++i) {
      lines.push_back(board.connect(fmt::format("line {}", i), all, only(r == 1, one)));
      if (i % 50 == 7 && r < 2) {
        const ArraySpec pair = on_ranks("i64[8] @ 2 : block", {0, 1});
        PipeLine between = board.connect("between", pair, only(r == 1, one));
        if (r == 0) {
          require(error_of_rank([&] {
                    (void)board.connect("bad", pair, on_ranks("i64[9] @ 1 : block", {0}));
                  }).code() == ErrorCode::mismatch,
                  "extents");
        } else {
          require(error_of_rank([&] { (void)board.connect("bad", pair, {}); }).code() == ErrorCode::mismatch,
                  "extents");
        }
      }
      if (i % 10 == 9) lines.erase(std::next(lines.begin(), i / 10));  // and may go in any order
    }
    Index number = 0;
    for (PipeLine& line : lines) {
      const Index first = 1000 * ++number;
      const PipeBuffer out = line.pipe().sender().get();
      for (Index k = 0; k < 2; ++k) at(out.view, {k}) = first + 2 * (r == 5 ? 3 : r == 3 ? 2 : r) + k;
      line.pipe().sender().put();
      if (r != 1) continue;
      const PipeBuffer in = line.pipe().receiver().get();
      for (Index k = 0; k < 8; ++k) require(at(in.view, {k}) == first + k, "line {}: {}", number, at(in.view, {k}));
      line.pipe().receiver().put();
    }
    for (PipeLine& line : lines) line.pipe().sender().drain();
  });
}

TEST_P(Switchboards, wrong_programs_are_refused) {
  run([](World& world) {
    Switchboard board(world);
    const Rank r = world.rank();
    const ArraySpec a = on_ranks("i64[6] @ 2 : block", {0, 1}), b = on_ranks("i64[6] @ 2 : block", {2, 5});
    const auto error = [&](const char* name, const std::optional<ArraySpec>& from, const std::optional<ArraySpec>& to) {
      return error_of_rank([&] { (void)board.connect(name, from, to); });
    };
    require_says(error("1", {}, {}), ErrorCode::invalid_use, {"neither a source nor a target"});
    require_says(error("1", r < 2 ? b : a, {}), ErrorCode::invalid_use,
                 {"is not in the source, which has 2 ranks", "source"});
    const ArraySpec other = on_ranks("i64[6] @ 2 : cyclic(2)", {0, 1}), both = on_ranks("i64[6] @ 2 : block", {1, 2});
    if (r < 2)
      require_says(error("3", r == 0 ? a : other, r == 1 ? std::optional(both) : std::nullopt), ErrorCode::mismatch,
                   {"as the source", "cyclic"});
    world.barrier();
    // Rank 1 is in both groups, and connects as a sender only.
    if (r < 3)
      require_says(error("4", r < 2 ? std::optional(a) : std::nullopt, r == 2 ? std::optional(both) : std::nullopt),
                   ErrorCode::mismatch, {"rank 1", "target"});
    world.barrier();
    if (r == 0) {
      world.set_timeout_ns(10'000'000);
      require_says(error("5", a, {}), ErrorCode::timeout, {"the other ranks of a meeting"});
      world.set_timeout_ns(60'000'000'000);
    }
    world.barrier();
  });
}

class SwitchboardPairs : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, SwitchboardPairs,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged),
                                            ::testing::Values(2)),
                         OnRanks::name);

// Ranks that connect lines in another order, or under other names, read where the other one waits, or has given up.
TEST_P(SwitchboardPairs, lines_that_do_not_meet_are_named_on_both_sides) {
  run([](World& world) {
    Switchboard board(world);
    const Rank r = world.rank();
    const ArraySpec from = on_ranks("i64[6] @ 1 : block", {0}), to = on_ranks("i64[6] @ 1 : block", {1});
    const auto connect = [&](const char* name) {
      return board.connect(name, r == 0 ? std::optional(from) : std::nullopt,
                           r == 1 ? std::optional(to) : std::nullopt);
    };
    constexpr std::int64_t patient_ns = 60'000'000'000, impatient_ns = 100'000;
    // Rank 0 gives up at "first". Then rank 1 gives up at "second", and reads that.
    for (const Rank giving_up : {0, 1}) {
      if (r == giving_up) {
        world.set_timeout_ns(impatient_ns);
        const Error error = error_of_rank([&] { (void)connect(r == 0 ? "first" : "second"); });
        require_says(error, ErrorCode::timeout, {"the other ranks of a meeting", r == 0 ? "first" : "second"});
        if (r == 1) require_says(error, ErrorCode::timeout, {"rank 0 has given up at 'first'"});
        world.set_timeout_ns(patient_ns);
      }
      world.barrier();
    }
    // Rank 0 waits at "third" until rank 1 has read that while it waited at "fourth".
    if (r == 0) (void)connect("third");
    if (r == 1) {
      world.set_timeout_ns(impatient_ns);
      std::string message;
      while (message.find("rank 0 waits at 'third'") == std::string::npos)
        message = error_of_rank([&] { (void)connect("fourth"); }).message();
      world.set_timeout_ns(patient_ns);
      (void)connect("third");
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace tranship::test::switchboard_test
