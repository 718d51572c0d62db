// Pipes: any two groups of ranks, any numbers of buffers, any order of calls, against the global array cell by cell.
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

#include <unistd.h>

#include <tranship/array/array.hpp>
#include <tranship/array/pipe.hpp>
#include <tranship/layout/text.hpp>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

ArraySpec layout(const char* text) {
  return parse_layout(text);
}

std::int64_t& at(const StridedView& view, const Indices& local) {
  Index offset = 0;
  for (int d = 0; d < view.dims(); ++d) offset += local[d] * view.strides[d];
  return static_cast<std::int64_t*>(view.data)[offset];
}

struct PipeCase {
  std::uint64_t seed = 0;
  int ranks = 1;
  ArraySpec source, target;
  Index from = 1, to = 1, frames = 0;
  Schedule schedule = Schedule::automatic;

  std::string text() const {
    return fmt::format("TRANSHIP_TEST_SEED={}: {} ranks, {} -> {}, {} and {} buffers, {} frames, schedule {}", seed,
                       ranks, to_text(source), to_text(target), from, to, frames, int(schedule));
  }
};

PipeCase random_case(std::uint64_t seed) {
  Random random(seed);
  const int ranks = int(random.between(1, 5));
  const LayoutChoices choices{.ranks_max = ranks, .world = ranks};
  const Indices extents = random_extents(random, int(random.between(1, 3)));
  const ArraySpec source{ElementType::i64, random_distribution(random, extents, choices)};
  const ArraySpec target{ElementType::i64, random_distribution(random, extents, choices)};
  return {.seed = seed,
          .ranks = ranks,
          .source = source,
          .target = target,
          .from = random.between(1, 4),
          .to = random.between(1, 3),
          .frames = random.between(0, 9),
          .schedule = random.pick(std::vector{Schedule::automatic, Schedule::direct, Schedule::staged})};
}

/// One rank of a case: what it puts, and what it must get.
class Streaming {
 public:
  Streaming(World& world, const PipeCase& c)
      : case_(c),
        random_(c.seed * 1000 + std::uint64_t(world.rank())),
        from_points_(c.source.distribution, world.rank()),
        to_points_(c.target.distribution, world.rank()),
        pipe_(
            world, known(c.source, world), known(c.target, world),
            {.from = buffers(c.source, world, c.from), .to = buffers(c.target, world, c.to), .schedule = c.schedule}) {}

  void run() {
    Index to_send = pipe_.sends() ? case_.frames : 0, to_take = pipe_.receives() ? case_.frames : 0;
    const bool is_both = pipe_.sends() && pipe_.receives();
    while (to_send > 0 || to_take > 0 || !sending_.empty() || !taken_.empty()) {
      switch (random_.below(4)) {
        case 0:
          if (to_send > 0 && pipe_.sender().held() < case_.from) to_send -= Index(begin_frame(!is_both));
          break;
        case 1:
          // A rank that sends, too, must not wait for frames that are its own.
          if (to_take > 0 && pipe_.receiver().held() < case_.to) to_take -= Index(take_frame(!is_both));
          break;
        case 2:
          if (!sending_.empty()) end_frame();
          break;
        default:
          if (!taken_.empty()) give_back();
      }
    }
    if (pipe_.sends()) pipe_.sender().drain();
    check_guards();
  }

 private:
  static constexpr Index guard = 3;

  std::optional<ArraySpec> known(const ArraySpec& spec, const World& world) {
    if (spec.distribution.grid().place_of(world.rank()) || world.rank() == spec.distribution.grid().rank_at(0))
      return spec;
    return random_.one_in(2) ? std::optional(spec) : std::nullopt;
  }
  PipeBuffers buffers(const ArraySpec& spec, const World& world, Index count) {
    PipeBuffers out{.count = count};
    if (random_.one_in(2)) return out;
    const Index elements = spec.distribution.storage(world.rank()).elements;
    for (Index i = 0; i < count; ++i) {
      auto& memory = memory_.emplace_back(std::size_t(elements + 2 * guard), untouched);
      out.memory.push_back({.data = memory.data() + guard});
    }
    return out;
  }

  bool begin_frame(bool may_wait) {
    PipeEnd& end = pipe_.sender();
    std::optional<PipeBuffer> buffer;
    if (may_wait && random_.one_in(2))
      buffer = end.get();
    else
      buffer = end.test_get();
    if (!buffer) return false;
    require(buffer->frame == begun_++ && buffer->number == buffer->frame % case_.from, "frames in order");
    // At once: if anyone still reads the frame before, it is wrong.
    for_each_coordinate(buffer->view.extents, [&](const Indices& local) { at(buffer->view, local) = unreadable; });
    sending_.push_back(*buffer);
    return true;
  }
  void end_frame() {
    const PipeBuffer buffer = sending_.front();
    sending_.erase(sending_.begin());
    const Global values(case_.source.distribution, buffer.frame);
    for_each_coordinate(buffer.view.extents, [&](const Indices& local) {
      const Distribution::Cell cell = case_.source.distribution.cell_of(from_points_rank(), local);
      if (cell.owned) at(buffer.view, local) = from_points_.own(local, cell, values);
    });
    pipe_.sender().put();
  }

  bool take_frame(bool may_wait) {
    PipeEnd& end = pipe_.receiver();
    std::optional<PipeBuffer> buffer;
    if (may_wait && random_.one_in(2))
      buffer = end.get();
    else
      buffer = end.test_get();
    if (!buffer) return false;
    require(buffer->frame == came_++ && buffer->number == buffer->frame % case_.to, "frames in order");
    check(*buffer);
    taken_.push_back(*buffer);
    return true;
  }
  void give_back() {
    const PipeBuffer buffer = taken_.front();
    taken_.erase(taken_.begin());
    check(buffer);  // nothing has come to what is held
    for_each_coordinate(buffer.view.extents, [&](const Indices& local) { at(buffer.view, local) = untouched; });
    pipe_.receiver().put();
  }
  void check(const PipeBuffer& buffer) const {
    const Global values(case_.source.distribution, buffer.frame);
    for_each_coordinate(buffer.view.extents, [&](const Indices& local) {
      const auto [kind, value] = to_points_.read_from(case_.source.distribution, values, local);
      const std::int64_t found = at(buffer.view, local);
      if (kind == Resolved::left_alone) {
        require(buffer.frame < case_.to || found == untouched, "{} was written", to_string(local));
      } else {
        const Index expected = kind == Resolved::zero ? 0 : value;
        require(found == expected, "frame {}: local {} holds {}, not {}", buffer.frame, to_string(local), found,
                expected);
      }
    });
  }
  void check_guards() const {
    for (const auto& memory : memory_)
      for (Index i = 0; i < guard; ++i)
        require(memory[std::size_t(i)] == untouched && memory[memory.size() - 1 - std::size_t(i)] == untouched,
                "a guard was written");
  }
  Rank from_points_rank() const { return rank_; }

 public:
  Rank rank_ = 0;

 private:
  const PipeCase& case_;
  Random random_;
  LocalPoints from_points_, to_points_;
  std::vector<std::vector<std::int64_t>> memory_;
  Pipe pipe_;
  std::vector<PipeBuffer> sending_, taken_;
  Index begun_ = 0, came_ = 0;
};

std::string fault_on(On on, std::uint64_t seed) {
  const PipeCase c = random_case(seed);
  try {
    run_on(on, {.ranks = c.ranks, .timeout_ns = 20'000'000'000}, [&](World& world) {
      Streaming streaming(world, c);
      streaming.rank_ = world.rank();
      streaming.run();
    });
  } catch (const std::exception& error) {
    return c.text() + ": " + error.what();
  }
  return {};
}

class RandomPipes : public ::testing::TestWithParam<On> {};
INSTANTIATE_TEST_SUITE_P(On, RandomPipes,
                         ::testing::Values(On::threads, On::processes, On::sim, On::messaged, On::hosts, On::apart,
                                           On::dealt),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(RandomPipes, deliver_every_frame) {
  const double share = are_apart(GetParam())                                   ? 0.005
                       : is_simulated(GetParam()) || are_processes(GetParam()) ? 0.02
                                                                               : 0.05;
  EXPECT_EQ(first_fault(share, [&](std::uint64_t seed) { return fault_on(GetParam(), seed); }), "");
}

class Pipes : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, Pipes,
                         ::testing::Combine(::testing::Values(On::threads, On::processes, On::sim, On::messaged,
                                                              On::hosts, On::apart, On::dealt, On::sub, On::listed,
                                                              On::listed_hosts),
                                            ::testing::Values(4)),
                         OnRanks::name);

const char* const rows_on_two = "i64[12,6] @ 2x1 : block, whole";
const char* const columns_on_two = "i64[12,6] @ 1x2 : whole, block";

ArraySpec on_ranks(const char* text, std::vector<Rank> ranks) {
  ArraySpec out = layout(text);
  out.distribution = out.distribution.on_ranks(std::move(ranks));
  return out;
}

TEST_P(Pipes, senders_run_ahead_by_the_buffers) {
  run([](World& world) {
    Pipe pipe(world, on_ranks(rows_on_two, {0, 1}), on_ranks(columns_on_two, {2, 3}),
              {.from = {.count = 2}, .to = {.count = 3}});
    require(pipe.sends() == (world.rank() < 2) && pipe.receives() == (world.rank() >= 2), "sides");
    if (pipe.sends()) {
      // Two frames can always be put, whatever the receivers do: they come after the barrier.
      for (int i = 0; i < 2; ++i) {
        at(pipe.sender().get().view, {0, 0}) = 100 + i;
        pipe.sender().put();
      }
    }
    world.barrier();
    if (pipe.receives())
      for (int i = 0; i < 2; ++i) {
        const PipeBuffer in = pipe.receiver().get();
        require(in.frame == i, "frame {}", in.frame);
        if (world.rank() == 2) require(at(in.view, {0, 0}) == 100 + i, "value {}", at(in.view, {0, 0}));
        pipe.receiver().put();
      }
    if (pipe.sends()) pipe.sender().drain();
  });
}

TEST_P(Pipes, a_rank_that_is_in_both_groups_puts_before_it_gets) {
  run([](World& world) {
    std::vector<Rank> all(std::size_t(world.size()));
    std::iota(all.begin(), all.end(), 0);
    const ArraySpec rows = on_ranks("i64[12,8] @ 4x1 : block, whole", all);
    const ArraySpec columns = on_ranks("i64[12,8] @ 1x4 : whole, cyclic(1)", all);
    Pipe pipe(world, rows, columns, {.from = {.count = 1}, .to = {.count = 1}});
    for (Index frame = 0; frame < 5; ++frame) {
      const PipeBuffer out = pipe.sender().get();
      for_each_owned(rows.distribution, world.rank(), [&](const Indices& local, const Indices& cell) {
        at(out.view, local) = 1000 * frame + 10 * cell[0] + cell[1];
      });
      pipe.sender().put();
      const PipeBuffer in = pipe.receiver().get();
      for_each_owned(columns.distribution, world.rank(), [&](const Indices& local, const Indices& cell) {
        require(at(in.view, local) == 1000 * frame + 10 * cell[0] + cell[1], "frame {}", frame);
      });
      pipe.receiver().put();
    }
    pipe.sender().drain();
    require(pipe.sender().test_drained(), "drained");
  });
}

// One more frame in one half than in the other: the two halves of a rank count by themselves.
TEST_P(Pipes, a_rank_puts_while_it_holds_what_it_has_got) {
  run([](World& world) {
    const ArraySpec source = on_ranks("i64[8] @ 2 : block", {0, 1}), target = on_ranks("i64[8] @ 2 : block", {1, 2});
    Pipe pipe(world, source, target, {.from = {.count = 1}, .to = {.count = 1}});
    for (int frame = 0; frame < 4; ++frame) {
      if (pipe.sends()) {
        at(pipe.sender().get().view, {0}) = frame;
        if (world.rank() == 1 && frame > 0) pipe.receiver().put();  // held since the last round
        pipe.sender().put();
      }
      if (pipe.receives()) {
        require(at(pipe.receiver().get().view, {0}) == frame, "frame {}", frame);
        if (world.rank() == 2) pipe.receiver().put();
      }
    }
    if (pipe.sends()) pipe.sender().drain();
  });
}

TEST_P(Pipes, wrong_programs_are_refused) {
  run([](World& world) {
    const ArraySpec from = on_ranks(rows_on_two, {0, 1}), to = on_ranks(columns_on_two, {2, 3});
    {
      Pipe pipe(world, from, to, {.from = {.count = 1}, .to = {.count = 1}, .name = "corner"});
      const bool sends = pipe.sends();
      PipeEnd& end = sends ? pipe.sender() : pipe.receiver();
      require_says(error_of_rank([&] { end.put(); }), ErrorCode::invalid_use, {"no buffer of the", "'corner'", "held"});
      require_says(error_of_rank([&] { sends ? pipe.receiver() : pipe.sender(); }), ErrorCode::invalid_use,
                   {"'corner'", "2 ranks"});
      if (sends) {
        (void)end.get();
        require_says(error_of_rank([&] { (void)end.get(); }), ErrorCode::invalid_use,
                     {"no buffer of the sender of 'corner' is free (1 held of 1)"});
        require_says(error_of_rank([&] { (void)end.test_get(); }), ErrorCode::invalid_use, {"(1 held of 1)"});
        end.put();
        end.drain();
      } else {
        (void)end.get();
        end.put();
      }
    }
    world.barrier();
    const auto refused = [&](const std::optional<ArraySpec>& a, const std::optional<ArraySpec>& b, PipeOptions options,
                             ErrorCode code, std::initializer_list<const char*> parts) {
      require_says(error_of_rank([&] { Pipe(world, a, b, options); }), code, parts);
      world.barrier();
    };
    refused(from, {}, {}, ErrorCode::mismatch, {"no rank gives", "target"});
    refused({}, to, {}, ErrorCode::mismatch, {"no rank gives", "source"});
    refused(from, on_ranks("i64[12,7] @ 1x2 : whole, block", {2, 3}), {}, ErrorCode::mismatch, {"12", "7", "6"});
    refused(from, on_ranks("i32[12,6] @ 1x2 : whole, block", {2, 3}), {}, ErrorCode::mismatch, {"i64", "i32"});
    refused(from, on_ranks(columns_on_two, {2, 9}), {}, ErrorCode::invalid_use, {"10 ranks", "4"});
    refused(from, to, {.from = {.count = 0}}, ErrorCode::invalid_use, {"0 buffers"});
    refused(from, to, {.to = {.count = 257}}, ErrorCode::invalid_use, {"257 buffers", "256"});
    refused(from, to, {.from = {.count = 255}, .to = {.count = 254}}, ErrorCode::invalid_use,
            {"255", "254", "64770 exchanges"});
    refused(from, to, {.from = {.count = 1 + world.rank()}}, ErrorCode::mismatch,
            {"rank 0 has 1 buffer of the source, rank 1 has 2"});
    refused(from, to, {.from = {.count = 3, .memory = {{}, {}}}}, ErrorCode::invalid_use, {"2 buffers", "3"});
    refused(world.rank() == 1 ? on_ranks(rows_on_two, {1, 0}) : from, to, {}, ErrorCode::mismatch,
            {"on rank 0", "another one on rank 1"});
    refused(world.rank() == 0 ? std::optional(from) : std::nullopt, to, {}, ErrorCode::invalid_use,
            {"rank 1", "must give its distribution"});
    std::vector<std::int64_t> memory(36);
    refused(from, to, {.from = {.memory = {{memory.data()}, {memory.data() + 35}}}}, ErrorCode::invalid_use,
            {"source 0", "source 1", "share memory"});
    refused(from, to, {.to = {.memory = {{memory.data()}, {}}}}, ErrorCode::invalid_use, {"passes null memory"});
  });
}

TEST_P(Pipes, a_receiver_that_no_frame_comes_to_names_who_is_missing) {
  run([](World& world) {
    Pipe pipe(world, on_ranks(rows_on_two, {0, 1}), on_ranks(columns_on_two, {2, 3}), {.name = "p"});
    if (world.rank() == 3) {
      world.set_timeout_ns(50'000'000);
      require_says(error_of_rank([&] { (void)pipe.receiver().get(); }), ErrorCode::timeout, {"exchange", "rank 0"});
    }
    world.set_timeout_ns(60'000'000'000);
    world.barrier();
  });
}

// All ranks are on both sides. Rank 3 has no cell to send, and rank 0 gets none: it counts its own frames.
TEST_P(Pipes, a_rank_ends_one_side_and_goes_on_with_the_other) {
  run([](World& world) {
    for (const bool tests : {false, true}) {
      Pipe pipe(world, on_ranks("i64[3] @ 4 : block", {0, 1, 2, 3}), on_ranks("i64[3] @ 4 : block", {3, 2, 1, 0}),
                {.from = {.count = 1}, .to = {.count = 2}, .name = "p"});
      PipeEnd &sender = pipe.sender(), &receiver = pipe.receiver();
      for (int frame = 0; frame < 2; ++frame) {
        const PipeBuffer out = sender.get();
        if (world.rank() < 3) at(out.view, {0}) = 10 * world.rank() + frame;
        sender.put();
      }
      sender.drain();
      sender.end();
      require_says(error_of_rank([&] { (void)sender.get(); }), ErrorCode::invalid_use, {"sender of 'p' has ended"});
      require_says(error_of_rank([&] { sender.put(); }), ErrorCode::invalid_use, {"sender of 'p' has ended"});
      require_says(error_of_rank([&] { sender.drain(); }), ErrorCode::invalid_use, {"sender of 'p' has ended"});
      const auto next = [&] {
        std::optional<PipeBuffer> got;
        while (tests && !got) got = receiver.test_get();
        return tests ? *got : receiver.get();
      };
      for (int frame = 0; frame < 2; ++frame) {
        const PipeBuffer in = next();
        if (world.rank() > 0) require(at(in.view, {0}) == 10 * (3 - world.rank()) + frame, "frame {}", frame);
        receiver.put();
      }
      for (int again = 0; again < 2; ++again) {
        require_says(error_of_rank([&] { (void)next(); }), ErrorCode::peer_lost, {"has left"});
        require(receiver.peer_has_ended(), "the end of the stream");
      }
      receiver.end();
      require_says(error_of_rank([&] { (void)receiver.get(); }), ErrorCode::invalid_use, {"receiver of 'p' has ended"});
    }
  });
}

TEST_P(Pipes, a_peer_that_leaves_is_named) {
  run([](World& world) {
    std::optional<Pipe> pipe(std::in_place, world, on_ranks(rows_on_two, {0, 1}), on_ranks(columns_on_two, {2, 3}));
    if (pipe->sends()) {
      (void)pipe->sender().get();
      pipe->sender().put();
      pipe->sender().drain();
      pipe.reset();
    } else {
      (void)pipe->receiver().get();
      pipe->receiver().put();
      require_says(error_of_rank([&] { (void)pipe->receiver().get(); }), ErrorCode::peer_lost, {"has left"});
    }
  });
}

// One rank waits in get(), and is held in there while the other one puts.
std::atomic<bool> is_held, is_released;
void await(const std::atomic<bool>& flag) {
  const Deadline deadline = Deadline::after_ns(30'000'000'000);
  while (!flag && !deadline.passed()) std::this_thread::yield();
}
void hold_once() {
  if (is_released) return;
  is_held = true;
  await(is_released);
}

TEST(PipesOfThreads, what_a_rank_that_waits_can_copy_is_left_to_it) {
  for (const bool receiver_waits : {true, false}) {
    is_held = is_released = false;
    std::atomic<std::int64_t*> target = nullptr;
    launch(2, [&](World& world) {
      const ArraySpec source = on_ranks("i64[4096] @ 1 : block", {0}), copy = on_ranks("i64[4096] @ 1 : block", {1});
      Pipe pipe(world, source, copy, {.from = {.count = 1}, .to = {.count = 1}});
      const auto put = [&](std::int64_t value) {
        at(pipe.sender().get().view, {0}) = value;
        pipe.sender().put();
      };
      const auto take = [&](std::int64_t value) {
        const PipeBuffer in = pipe.receiver().get();
        target = &at(in.view, {0});
        require(*target == value, "{} instead of {}", *target.load(), value);
      };
      const bool waits = pipe.receives() == receiver_waits;
      const auto wait = [&](auto&& f) {
        world.set_interrupt_check(hold_once);
        f();
        world.set_interrupt_check(nullptr);
      };
      if (pipe.sends()) put(1);
      if (pipe.receives()) take(1);
      world.barrier();
      // The receiver holds frame 1, so of frame 2 nothing can be copied yet.
      if (receiver_waits) {
        if (waits) {
          pipe.receiver().put();
          wait([&] { take(2); });
        } else {
          await(is_held);
          put(2);
          const std::int64_t left = *target;
          is_released = true;
          require(left == 1, "the sender has copied what its receiver waits for");
          pipe.sender().drain();
          require(*target == 2, "drained too early");
        }
      } else if (waits) {
        put(2);
        wait([&] { put(3); });
      } else {
        await(is_held);
        pipe.receiver().put();
        const std::int64_t left = *target;
        is_released = true;
        require(left == 1, "the receiver has copied what its sender waits for");
        take(2);
      }
      world.barrier();
    });
  }
}

// The ranks meet by flags of this test: in a barrier the receiver would wait, and copy.
TEST(PipesOfThreads, a_rank_that_has_given_up_waiting_is_left_nothing) {
  std::atomic<std::int64_t*> target = nullptr;
  std::atomic<bool> has_given_up = false, is_put = false;
  launch(2, [&](World& world) {
    const ArraySpec source = on_ranks("i64[4096] @ 1 : block", {0}), copy = on_ranks("i64[4096] @ 1 : block", {1});
    Pipe pipe(world, source, copy, {.from = {.count = 1}, .to = {.count = 1}});
    const auto put = [&](std::int64_t value) {
      at(pipe.sender().get().view, {0}) = value;
      pipe.sender().put();
    };
    if (pipe.sends()) put(1);
    if (pipe.receives()) {
      target = &at(pipe.receiver().get().view, {0});
      pipe.receiver().put();
      world.set_timeout_ns(20'000'000);
      require_says(error_of_rank([&] { (void)pipe.receiver().get(); }), ErrorCode::timeout, {"exchange"});
      world.set_timeout_ns(60'000'000'000);
      has_given_up = true;
      await(is_put);
    }
    if (pipe.sends()) {
      await(has_given_up);
      put(2);
      const std::int64_t moved = *target;
      is_put = true;
      require(moved == 2, "the sender has left its frame to a rank that does not wait");
    }
    if (pipe.receives()) require(at(pipe.receiver().get().view, {0}) == 2, "another frame");
  });
}

TEST(PipesOfProcesses, a_rank_that_is_killed_is_named) {
  for (const Rank killed : {0, 2}) {
    const Error error = error_of_rank([&] {
      launch_processes(4, [&](World& world) {
        Pipe pipe(world, on_ranks(rows_on_two, {0, 1}), on_ranks(columns_on_two, {2, 3}));
        for (int frame = 0;; ++frame) {
          if (world.rank() == killed && frame == 5) raise(SIGKILL);
          PipeEnd& end = pipe.sends() ? pipe.sender() : pipe.receiver();
          (void)end.get();
          end.put();
        }
      });
    });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.message();
    EXPECT_EQ(error.rank, killed) << error.message();
  }
}

TEST(PipesSimulated, a_rank_that_dies_at_any_step_ends_all_waits) {
  for (std::int64_t step = 1; step < 400; step += 7) {
    const Error error = error_of_rank([&] {
      simulate({.ranks = 4,
                .seed = std::uint64_t(step),
                .peers = PeerKind::messaged,
                .death = SimulationOptions::Death{.rank = Rank(step % 4), .step = step}},
               [&](World& world) {
                 Pipe pipe(world, on_ranks(rows_on_two, {0, 1}), on_ranks(columns_on_two, {2, 3}));
                 for (int frame = 0; frame < 1000; ++frame) {
                   PipeEnd& end = pipe.sends() ? pipe.sender() : pipe.receiver();
                   (void)end.get();
                   end.put();
                 }
               });
    });
    EXPECT_NE(error.code(), ErrorCode::timeout) << step << ": " << error.message();
  }
}

}  // namespace
}  // namespace tranship::test
