// dri: a corner turn in a stream of frames: every rank writes its rows of a frame, all exchange, every rank reads its
// columns. Ours goes through a channel with two buffers on each side; the peers do the same work frame by frame. GB/s
// count the bytes of each frame once, over the time that writing, moving and reading it takes.
//
// The second part measures how much of the moving is hidden behind computing between two disjoint groups. With the
// times of moving frames, of computing on them, and of both together, the hidden share is
// (move + compute - both) / min(move, compute). Its limit is the same quotient for copies by hand of the same threads.
// Processors that copy cannot compute: little can be hidden where all ranks compute, and all of it where one side has
// the time to copy and a core of its own. "Moving" writes and reads a number in each cache line, because unchanged
// lines would stay in the caches of all ranks.
//
// The third part measures loops over views of vsip.h beside loops over a pointer and strides, which are their limit.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <contest/loops.hpp>
#include <contest/memory.hpp>
#include <fmt/core.h>
#include <harness/contest_case.hpp>
#include <view_access.hpp>

#include <tranship/array/pipe.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/launch.hpp>

namespace {

using namespace tranship;
using bench::GoalRule;
using bench::Rivals;
using contest::Freshness;
using contest::Work;

constexpr std::int64_t buffers = 2;
constexpr std::int64_t frames = 16;
constexpr int ranks_max = 4;

enum class Computing : std::uint8_t { all, senders, receivers };

/// A corner turn of n x n doubles: the rows of the first ranks become the columns of the others.
struct Turn {
  int senders, receivers;
  Computing computing;
  std::int64_t n;

  int ranks() const { return senders + receivers; }
  bool sends(int rank) const { return rank < senders; }
  bool computes(int rank) const {
    return computing == Computing::all || (computing == Computing::senders) == sends(rank);
  }
  std::int64_t rows() const { return n / senders; }
  std::int64_t columns() const { return n / receivers; }
  std::int64_t cells(int rank) const { return n * (sends(rank) ? rows() : columns()); }
  std::string name() const {
    constexpr std::array names = {"all", "senders", "receivers"};
    return fmt::format("moving hidden while {} compute, {}x{}, {} to {} ranks", names[std::size_t(computing)], n, n,
                       senders, receivers);
  }
};

/// The work of a rank on a frame before it sends it, or after it has received it.
using Act = std::function<void(double* cells, std::int64_t count)>;

void compute(double* cells, std::int64_t count) {
  // Computing took about as long as moving on the machine on which this number was chosen.
  constexpr int steps = 8;
  for (std::int64_t i = 0; i < count; ++i) {
    double x = cells[i];
    for (int step = 0; step < steps; ++step) x = x * 0.75 + 0.25;
    cells[i] = x;
  }
}

void touch(double* cells, std::int64_t count) {
  constexpr auto step = std::int64_t(contest::line_bytes / sizeof(double));
  for (std::int64_t i = 0; i < count; i += step) cells[i] += 1;
}

class Mover {
 public:
  virtual ~Mover() = default;
  /// Moves all frames; this rank calls `act` for its side of each. Collective.
  virtual void run(const Act& act) = 0;
};

class ByPipe final : public Mover {
 public:
  ByPipe(World& world, const Turn& turn)
      : cells_(turn.cells(world.rank())),
        pipe_(world,
              ArraySpec{ElementType::f64, Distribution({turn.n, turn.n}, grid(turn.senders, 1), {block(), whole()})},
              ArraySpec{ElementType::f64,
                        Distribution({turn.n, turn.n}, Grid({1, turn.receivers}, {.first = turn.senders}),
                                     {whole(), block()})},
              {.from = {.count = buffers}, .to = {.count = buffers}}) {}

  void run(const Act& act) override {
    PipeEnd& end = pipe_.sends() ? pipe_.sender() : pipe_.receiver();
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      act(static_cast<double*>(end.get().view.data), cells_);
      end.put();
    }
    end.drain();
  }

 private:
  std::int64_t cells_;
  Pipe pipe_;
};

/// The state that the threads of ByHand share.
struct Shared {
  std::array<std::array<double*, buffers>, ranks_max> memory = {};
  /// For a sender, the number of frames that its receivers may use; for a receiver, the number that it has released.
  std::array<std::atomic<std::int64_t>, ranks_max> done = {};
};

/// Every frame is copied once, by the side that has the time: the senders where receivers compute, else the receivers.
class ByHand final : public Mover {
 public:
  ByHand(World& world, const Turn& turn, Shared& shared)
      : world_(world), turn_(turn), shared_(shared), senders_copy_(turn.computing == Computing::receivers) {
    for (std::int64_t b = 0; b < buffers; ++b) {
      memory_[b] = contest::memory(turn.cells(world.rank()));
      shared.memory[world.rank()][b] = memory_[b].get();
    }
    world.barrier();
  }

  void run(const Act& act) override {
    for (const std::int64_t end = frame_ + frames; frame_ < end; ++frame_)
      if (turn_.sends(world_.rank()))
        send(act);
      else
        receive(act);
  }

 private:
  void send(const Act& act) {
    const int me = world_.rank();
    // Where the senders copy, their own buffers are free again at once.
    if (!senders_copy_) await_receivers();
    act(memory_[frame_ % buffers].get(), turn_.cells(me));
    if (senders_copy_) {
      await_receivers();
      for (int receiver = turn_.senders; receiver < turn_.ranks(); ++receiver) copy(me, receiver);
    }
    shared_.done[me].store(frame_ + 1, std::memory_order_release);
  }

  void receive(const Act& act) {
    const int me = world_.rank();
    for (int sender = 0; sender < turn_.senders; ++sender) {
      reach(sender, frame_ + 1);
      if (!senders_copy_) copy(sender, me);
    }
    if (!senders_copy_) shared_.done[me].store(frame_ + 1, std::memory_order_release);
    act(memory_[frame_ % buffers].get(), turn_.cells(me));
    if (senders_copy_) shared_.done[me].store(frame_ + 1, std::memory_order_release);
  }

  void await_receivers() {
    for (int receiver = turn_.senders; receiver < turn_.ranks(); ++receiver) reach(receiver, frame_ + 1 - buffers);
  }
  void reach(int rank, std::int64_t at_least) {
    const auto& done = shared_.done[rank];
    world_.wait_until([&] { return done.load(std::memory_order_acquire) >= at_least; }, WaitNote("a frame", rank));
  }
  void copy(int sender, int receiver) const {
    const std::int64_t rows = turn_.rows(), columns = turn_.columns(), b = frame_ % buffers;
    contest::copy_rows(shared_.memory[sender][b] + (receiver - turn_.senders) * columns, turn_.n,
                       shared_.memory[receiver][b] + sender * rows * columns, columns, rows, columns);
  }

  World& world_;
  const Turn turn_;
  Shared& shared_;
  const bool senders_copy_;
  std::array<contest::Memory, buffers> memory_ = {};
  std::int64_t frame_ = 0;
};

/// Moves frames whose elements are numbered, and returns the number of wrong elements on this rank.
std::int64_t count_wrong(Mover& mover, const Turn& turn, int rank) {
  const bool sends = turn.sends(rank);
  const std::int64_t width = sends ? turn.n : turn.columns();
  const std::int64_t first = sends ? rank * turn.rows() * turn.n : (rank - turn.senders) * width;
  std::int64_t wrong = 0, frame = 0;
  mover.run([&](double* cells, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t number = first + i / width * turn.n + i % width + frame;
      const auto value = double(number);
      if (sends)
        cells[i] = value;
      else
        wrong += cells[i] != value;
    }
    ++frame;
  });
  return wrong;
}

/// Times in milliseconds for a frame.
struct HidingTimes {
  double move = 0, compute = 0, both = 0;

  double hidden_percent() const { return 100 * (move + compute - both) / std::min(move, compute); }
};

void measure_hiding(bench::Report& report, const Turn& turn) {
  const std::string name = turn.name();
  if (!report.wants(name)) return;
  report.announce(name);
  const int rounds = report.is_quick() ? 9 : 25;
  constexpr int contestants = 5;
  std::array<std::vector<double>, contestants> samples_ms;
  Shared shared;
  launch(turn.ranks(), [&](World& world) {
    const int rank = world.rank();
    ByPipe pipe(world, turn);
    ByHand hand(world, turn, shared);
    for (Mover* mover : {static_cast<Mover*>(&pipe), static_cast<Mover*>(&hand)})
      if (const std::int64_t wrong = count_wrong(*mover, turn, rank))
        throw_error(ErrorCode::internal, "{}: {} elements are wrong on rank {}", name, wrong, rank);

    const std::int64_t cells = turn.cells(rank);
    const contest::Memory own = contest::memory(buffers * cells);
    const Act move = touch, both = turn.computes(rank) ? compute : touch;
    const std::array<std::function<void()>, contestants> runs = {
        [&] { pipe.run(move); },
        [&] { pipe.run(both); },
        [&] { hand.run(move); },
        [&] { hand.run(both); },
        [&] {
          for (std::int64_t frame = 0; turn.computes(rank) && frame < frames; ++frame)
            compute(own.get() + frame % buffers * cells, cells);
        },
    };
    bench::take_turns(contestants, rounds, [&](int contestant) {
      world.barrier();
      const std::int64_t begin_ns = now_ns();
      runs[contestant]();
      world.barrier();
      if (rank == 0) samples_ms[contestant].push_back(double(now_ns() - begin_ns) * 1e-6 / double(frames));
    });
  });

  std::array<double, contestants> ms{};
  for (int c = 0; c < contestants; ++c) ms[c] = bench::median(std::move(samples_ms[c]));
  const HidingTimes ours{.move = ms[0], .compute = ms[4], .both = ms[1]};
  const HidingTimes by_hand{.move = ms[2], .compute = ms[4], .both = ms[3]};
  const auto add_time = [&](const char* what, double ours_ms, std::optional<double> limit_ms) {
    report.add({.name = name + ": " + what,
                .unit = "ms",
                .ours = ours_ms,
                .limit = limit_ms,
                .our_ranks = bench::RanksAre::threads});
  };
  add_time("moving", ours.move, by_hand.move);
  add_time("computing", ours.compute, std::nullopt);
  add_time("both", ours.both, by_hand.both);
  report.add({.name = name,
              .unit = "%",
              .better = bench::Better::higher,
              .ours = ours.hidden_percent(),
              .limit = by_hand.hidden_percent(),
              .our_ranks = bench::RanksAre::threads});
}

}  // namespace

TRANSHIP_BENCH(dri, "corner turns in a stream of frames, through double-buffered channels, against MPI and FFTW") {
  std::vector<std::int64_t> sizes = {512};
  if (!report.is_quick()) sizes = {512, 2048};
  for (const int ranks : {2, 4})
    for (const std::int64_t n : sizes)
      for (const contest::Order order : {contest::Order::same, contest::Order::transposed}) {
        Work work;
        work.task = contest::Task::stream;
        work.ranks = ranks;
        work.dims = 2;
        work.axes[0] = {n, {ranks, 0}, {1, 0}};
        work.axes[1] = {n, {1, 0}, {ranks, 0}};
        work.order = order;
        work.repeats = 8;
        const bool transposes = order == contest::Order::transposed;
        std::vector<GoalRule> goals = {{Rivals::everybody, 1.0}};
        if (transposes) goals.push_back({Rivals::fftw, 2.5});
        measure(report, bench::ContestCase{.name = fmt::format("corner turn{}, {}x{}, {} ranks",
                                                               transposes ? ", transposed" : "", n, n, ranks),
                                           .work = work,
                                           .states = {Freshness::warm},
                                           .goals = std::move(goals),
                                           .bytes = double(n) * double(n) * sizeof(double) * double(work.repeats)});
      }
  const std::int64_t n = report.is_quick() ? 512 : 1024;
  for (const Turn& turn :
       {Turn{2, 2, Computing::all, n}, Turn{1, 1, Computing::senders, n}, Turn{1, 1, Computing::receivers, n}})
    measure_hiding(report, turn);
#if defined(TRANSHIP_BENCH_VIEWS)
  bench::measure_view_access(report);
#endif
}
