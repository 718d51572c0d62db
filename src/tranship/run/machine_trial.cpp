#include "tranship/run/machine_trial.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/kernels/host/peer_writes.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/predict.hpp>
#include <tranship/program/replay.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/run/program_stopwatch.hpp>
#include <tranship/run/shared_program.hpp>

namespace tranship {
namespace {

constexpr int rounds = 64;

Operand here(BufferKind buffer, Index chunk = 0) {
  return {.buffer = buffer, .via = -1, .first = chunk, .count = 1};
}

/// Makes programs in which each rank works with the next one in a ring, in one block. Its channels lead to the next and
/// to the previous rank; with two ranks, one channel serves for both.
class Ring {
 public:
  explicit Ring(Rank size) : size_(size) {}

  /// A program without steps, with these numbers of chunks.
  Program empty(Index input = 1, Index output = 1, Index scratch = 0) const {
    Program program{.name = fmt::format("empty {} {} {}", input, output, scratch), .collective = "measure"};
    for (Rank rank = 0; rank < size_; ++rank) {
      RankProgram& one = program.ranks.emplace_back();
      one.chunks[0] = input;
      one.chunks[1] = output;
      one.chunks[2] = scratch;
      one.peers[0] = {Rank((rank + 1) % size_)};
      if (size_ > 2) one.peers[0].push_back(Rank((rank + size_ - 1) % size_));
      for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch})
        one.remote_buffers.push_back(
            {.rank = Rank((rank + 1) % size_), .buffer = buffer, .access = {ChannelKind::memory}});
      ThreadBlock& block = one.blocks.emplace_back();
      for (std::size_t i = 0; i < one.peers[0].size(); ++i) block.channels[0].push_back(std::int32_t(i));
      block.remote_buffers[0] = {0, 1, 2};
    }
    return program;
  }

  std::int32_t next() const { return 0; }
  std::int32_t previous() const { return size_ > 2 ? 1 : 0; }

  static Step step(StepKind kind, std::vector<std::int32_t> ids = {}) {
    Step out{.kind = kind};
    out.ids = std::move(ids);
    return out;
  }
  static Step move(StepKind kind, std::vector<Operand> sources, const Operand& target) {
    Step out{.kind = kind};
    out.sources = static_cast<std::int32_t>(sources.size());
    out.operands = std::move(sources);
    out.operands.push_back(target);
    return out;
  }
  /// A buffer of the next rank.
  static Operand there(BufferKind buffer, Index chunk = 0) {
    return {.buffer = buffer, .via = static_cast<std::int32_t>(buffer), .first = chunk, .count = 1};
  }

  /// Makes the moves once this rank may write to the next one, then waits until its own memory has been written.
  Program writing(Program program, const std::vector<Step>& moves) const {
    const Step ready[] = {step(StepKind::relaxed_signal, {previous()}), step(StepKind::relaxed_wait, {next()})};
    const Step done[] = {step(StepKind::signal, {next()}), step(StepKind::wait, {previous()})};
    return surrounded(std::move(program), ready, moves, done);
  }
  /// Makes the moves once the next rank's memory may be read, then waits until its own memory has been read.
  Program reading(Program program, const std::vector<Step>& moves) const {
    const Step ready[] = {step(StepKind::signal, {previous()}), step(StepKind::wait, {next()})};
    const Step done[] = {step(StepKind::relaxed_signal, {next()}), step(StepKind::relaxed_wait, {previous()})};
    return surrounded(std::move(program), ready, moves, done);
  }
  /// Makes the first move, then the second one once the next rank has made its first.
  Program sharing(Program program, const Step& first, const Step& second) const {
    const Step nop = step(StepKind::nop);
    return with(std::move(program),
                {first, nop, step(StepKind::signal, {previous()}), step(StepKind::wait, {next()}), nop, second, nop});
  }
  static Program with(Program program, const std::vector<Step>& steps) {
    program.name = words_of(steps);
    for (RankProgram& rank : program.ranks) rank.blocks[0].steps = steps;
    return program;
  }

  // Programs of many steps are made once for all ranks of a process.
  using Shared = std::shared_ptr<const Program>;

  /// Signals in a row, then the waits for them.
  Shared signals_in_a_row() const {
    return shared("signals in a row", [&](RankProgram& rank, bool) {
      std::vector<Step>& steps = rank.blocks[0].steps;
      steps.assign(rounds, step(StepKind::signal, {next()}));
      steps.insert(steps.end(), rounds, step(StepKind::wait, {previous()}));
    });
  }
  /// In each round, each rank signals the next one and waits for the previous one.
  Shared signals_around() const {
    return repeated("signals around", [&](RankProgram&, bool) {
      return std::array{step(StepKind::signal, {next()}), step(StepKind::wait, {previous()})};
    });
  }
  /// One signal travels around the ring.
  Shared one_signal_around() const {
    return repeated("one signal around", [&](RankProgram&, bool is_first) {
      const Step signal = step(StepKind::signal, {next()}), wait = step(StepKind::wait, {previous()});
      return is_first ? std::array{signal, wait} : std::array{wait, signal};
    });
  }
  /// Steps that do next to nothing.
  Shared semaphores() const {
    return repeated("semaphores", [](RankProgram& rank, bool) {
      rank.semaphores = {0};
      return std::array{step(StepKind::release, {0}), step(StepKind::acquire, {0})};
    });
  }

 private:
  /// Calls add_steps(rank, true for rank 0) for each rank.
  template <class F>
  Shared shared(const char* name, const F& add_steps) const {
    return shared_program(fmt::format("measure {} of {}", name, size_), [&] {
      Program program = empty();
      program.name = name;
      for (RankProgram& rank : program.ranks) add_steps(rank, &rank == &program.ranks.front());
      return program;
    });
  }
  /// Repeats two steps.
  template <class F>
  Shared repeated(const char* name, const F& steps_of) const {
    return shared(name, [&](RankProgram& rank, bool is_first) {
      const std::array<Step, 2> steps = steps_of(rank, is_first);
      for (int i = 0; i < rounds; ++i)
        rank.blocks[0].steps.insert(rank.blocks[0].steps.end(), steps.begin(), steps.end());
    });
  }

  static std::string words_of(const std::vector<Step>& steps) {
    std::string out;
    for (const Step& one : steps) out += fmt::format("{} ", name_of(one.kind));
    return out;
  }
  template <class Ready, class Done>
  static Program surrounded(Program program, const Ready& ready, const std::vector<Step>& moves, const Done& done) {
    std::vector<Step> steps(std::begin(ready), std::end(ready));
    steps.push_back(step(StepKind::nop));
    for (const Step& one : moves) {
      steps.push_back(one);
      steps.push_back(step(StepKind::nop));
    }
    steps.insert(steps.end(), std::begin(done), std::end(done));
    steps.push_back(step(StepKind::nop));
    return with(std::move(program), steps);
  }

  Rank size_;
};

/// Computes rates at several sizes, from the time that a program takes beyond others.
class Rates {
 public:
  Rates(ProgramStopwatch& watch, const MachineModel& machine, Index input_bytes_max)
      : watch_(watch), machine_(machine) {
    constexpr Index least_bytes = 4096, dense_from_bytes = 1 << 20;
    sizes_.push_back(least_bytes);
    // Around the size of the last cache, rates fall by a factor from one size to the next.
    for (Index bytes = 4 * least_bytes; bytes <= input_bytes_max; bytes *= bytes < dense_from_bytes ? 4 : 2)
      sizes_.push_back(bytes);
  }

  struct Measured {
    std::vector<double> touched_bytes;
    std::vector<double> ns_per_byte;  ///< of one chunk
  };
  /// Time of a program's moves per byte of a chunk, without its launch and its signals.
  Measured moves(const Program& program) const { return moves(program, 1, INT64_MAX); }
  /// Like moves(program), for `count` equal moves of chunks smaller than `chunk_bytes_end`.
  Measured moves(const Program& program, Index count, Index chunk_bytes_end) const {
    Measured out;
    const Index least_bytes = std::max(tiny_bytes, cut_unit_bytes * program.ranks[0].chunks[0]);
    const Index least_chunk_bytes = bytes_of_chunks(program, least_bytes);
    const double least_ns = watch_.launch_ns(program, least_bytes);
    for (const Index bytes : sizes_) {
      const Index chunk_bytes = bytes_of_chunks(program, bytes);
      if (chunk_bytes >= chunk_bytes_end) break;
      const double each_ns = (watch_.launch_ns(program, bytes) - least_ns) /
                             static_cast<double>(count * (chunk_bytes - least_chunk_bytes));
      out.touched_bytes.push_back(bytes_touched_by_hosts(program, machine_, bytes)[0]);
      out.ns_per_byte.push_back(std::max(least_ns_per_byte, each_ns));
    }
    return out;
  }
  /// For data in the caches of other cores, the rates as measured. Large sizes may be faster than small ones, because
  /// data that has left a core's own cache comes from a larger one that all share.
  static Rate rate_of_shared(const Measured& measured) {
    std::vector<Rate::Point> points;
    for (std::size_t i = 0; i < measured.ns_per_byte.size(); ++i)
      points.push_back({.bytes = measured.touched_bytes[i], .gb_per_s = rounded(1 / measured.ns_per_byte[i])});
    return Rate(std::move(points));
  }
  /// For data that a core has to itself, more memory is never faster. Values that say otherwise are noise and are
  /// replaced by the mean of their neighbours, in which large sizes weigh more, since they have less noise per byte.
  static Rate rate(const Measured& measured) {
    struct Pool {
      double sum_ns = 0, weight = 0;
      std::size_t count = 0;
      double mean() const { return sum_ns / weight; }
    };
    std::vector<Pool> pools;
    for (std::size_t i = 0; i < measured.ns_per_byte.size(); ++i) {
      const double weight = std::sqrt(measured.touched_bytes[i]);
      pools.push_back({.sum_ns = weight * measured.ns_per_byte[i], .weight = weight, .count = 1});
      for (std::size_t last = pools.size() - 1; last > 0 && pools[last].mean() < pools[last - 1].mean(); --last) {
        pools[last - 1].sum_ns += pools[last].sum_ns;
        pools[last - 1].weight += pools[last].weight;
        pools[last - 1].count += pools[last].count;
        pools.pop_back();
      }
    }
    std::vector<Rate::Point> points;
    for (const Pool& pool : pools)
      for (std::size_t i = 0; i < pool.count; ++i)
        points.push_back({.bytes = measured.touched_bytes[points.size()], .gb_per_s = rounded(1 / pool.mean())});
    return Rate(std::move(points));
  }
  /// Subtracts a rate from the times, at each of their sizes.
  static Measured without(const Measured& all, const Rate& part) {
    Measured out = all;
    for (std::size_t i = 0; i < out.ns_per_byte.size(); ++i)
      out.ns_per_byte[i] = std::max(least_ns_per_byte, out.ns_per_byte[i] - part.ns_per_byte(out.touched_bytes[i]));
    return out;
  }

  static constexpr Index tiny_bytes = 64;

 private:
  static constexpr double least_ns_per_byte = 0.01;

  /// Digits after the third are noise.
  static double rounded(double value) {
    const std::string digits = fmt::format("{:.3g}", value);
    double out = value;
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return out;
  }

  ProgramStopwatch& watch_;
  const MachineModel& machine_;
  std::vector<Index> sizes_;
};

MachineModel measured(const Ring& ring, Rank size, ProgramStopwatch& watch, const MachineTrial& trial) {
  MachineModel out{.name = "this machine", .blocks = MachineModel::Blocks::in_turn};
  out.ranks_per_host = 1 << 20;
  out.cores_per_host = this_machine().cores;
  const Rates rates(watch, out, trial.input_bytes_max);

  // Signals, from programs whose bytes do not matter.
  const auto each_ns = [&](const Program& program, double empty_ns) {
    return std::max(0.0, (watch.launch_ns(program, Rates::tiny_bytes) - empty_ns) / rounds);
  };
  const double empty_ns = watch.launch_ns(ring.empty(), Rates::tiny_bytes);
  out.launch_ns = empty_ns;
  out.step_ns = each_ns(*ring.semaphores(), empty_ns) / 2;
  out.memory.message_ns = std::max(0.0, each_ns(*ring.signals_in_a_row(), empty_ns) - 2 * out.step_ns);
  const double around_ns = each_ns(*ring.one_signal_around(), empty_ns) / double(size);
  out.memory.latency_ns = std::max(0.0, around_ns - 2 * out.step_ns - out.memory.message_ns);

  // Moves of plain data.
  using enum BufferKind;
  const auto move = [](StepKind kind, std::vector<Operand> sources, const Operand& target) {
    return Ring::move(kind, std::move(sources), target);
  };
  const Program plain = ring.empty(), packets = ring.empty(1, 1, 1), halves = ring.empty(2, 1, 0);
  out.copy = Rates::rate(rates.moves(Ring::with(plain, {move(StepKind::copy, {here(input)}, here(output))})));
  out.reduce = Rates::rate(Rates::without(
      rates.moves(Ring::with(halves, {move(StepKind::reduce, {here(input, 0), here(input, 1)}, here(output))})),
      out.copy));
  out.memory.put = Rates::rate_of_shared(
      rates.moves(ring.writing(plain, {move(StepKind::put, {here(input)}, Ring::there(output))})));
  out.memory.get = Rates::rate_of_shared(
      rates.moves(ring.reading(plain, {move(StepKind::get, {Ring::there(input)}, here(output))})));
  out.memory.short_put = out.memory.put;
  if (const Index end = long_put_bytes_min(); end > 0) {
    constexpr Index puts = 64;
    std::vector<Step> all;
    for (Index chunk = 0; chunk < puts; ++chunk)
      all.push_back(move(StepKind::put, {here(input, chunk)}, Ring::there(output, chunk)));
    out.memory.short_put = Rates::rate_of_shared(rates.moves(ring.writing(ring.empty(puts, puts, 0), all), puts, end));
    out.memory.long_put_bytes = end;
  }
  // A copy into memory that the next rank has read and will read again.
  const Program shared = ring.empty(1, 1, 1);
  out.memory.take_back = Rates::rate_of_shared(
      Rates::without(rates.moves(ring.sharing(shared, move(StepKind::copy, {here(input)}, here(scratch)),
                                              move(StepKind::get, {Ring::there(scratch)}, here(output)))),
                     out.memory.get));
  Step combine = move(StepKind::reduce_put, {here(input, 0), here(input, 1)}, here(output, 0));
  combine.operands.push_back(Ring::there(output, 1));
  out.memory.reduce_put = Rates::rate_of_shared(
      Rates::without(Rates::without(rates.moves(ring.writing(ring.empty(2, 2, 0), {combine})), out.copy), out.reduce));
  // Only one rank reads each line, as in most programs: two ranks that want a line at once slow each other down.
  out.memory.read_reduce = Rates::rate_of_shared(
      Rates::without(rates.moves(ring.reading(
                         halves, {move(StepKind::read_reduce, {here(input, 0), Ring::there(input, 1)}, here(output))})),
                     out.copy));

  // Packets. Packing once and unpacking once or twice separates the two times.
  const Step pack = move(StepKind::copy_packets, {here(input)}, here(scratch));
  const Step unpack = move(StepKind::unpack_packets, {here(scratch)}, here(output));
  const Step nop = Ring::step(StepKind::nop);
  const Rates::Measured once = rates.moves(Ring::with(packets, {pack, unpack}));
  const Rates::Measured twice = rates.moves(Ring::with(packets, {pack, unpack, nop, unpack}));
  out.unpack = Rates::rate(Rates::without(twice, Rates::rate(once)));
  out.pack = Rates::rate(Rates::without(once, out.unpack));
  const Step reduce = move(StepKind::reduce_packets, {here(input), here(scratch)}, here(output));
  out.reduce_packets =
      Rates::rate(Rates::without(Rates::without(rates.moves(Ring::with(packets, {pack, reduce})), out.pack), out.copy));
  const Step send = move(StepKind::put_packets, {here(input)}, Ring::there(scratch));
  out.memory.packets =
      Rates::rate_of_shared(Rates::without(rates.moves(ring.writing(packets, {send, unpack})), out.unpack));
  out.port = out.far_port = out.memory;
  return out;
}

}  // namespace

Index measured_bytes(Rank ranks, const MachineTrial& trial, MachineChecks checks) {
  // Input, output and scratch, where packets have twice the bytes, and programs with a few steps per rank. The checked
  // programs also have the outputs of all ranks, packets of them in both halves of the scratch, and copies of input and
  // output where parts are no multiple of 16 bytes.
  const Index buffers = checks == MachineChecks::make ? 2 + 6 * Index(ranks) : 4;
  constexpr Index bytes_of_programs = 16384;
  return checked_multiply(
      ranks, checked_add(checked_multiply(buffers, trial.input_bytes_max), checked_multiply(ranks, bytes_of_programs)));
}

MeasuredMachine measure_machine(World& world, const MachineTrial& trial, MachineChecks checks) {
  if (world.size() < 2)
    throw_error(ErrorCode::invalid_use, "measuring a machine needs at least 2 ranks, the world has {}", world.size());
  const Ring ring(world.size());
  ProgramStopwatch watch(world, trial.launches, trial.passes, ring.one_signal_around());
  std::vector<std::shared_ptr<const Program>> programs;
  if (checks == MachineChecks::make)
    for (const Algorithm& one : algorithms())
      programs.push_back(shared_program(fmt::format("{} of {}", one.name, world.size()),
                                        [&] { return make_program(one.name, {.ranks = world.size()}); }));
  const auto for_each_check = [&](auto&& f) {
    for (std::size_t i = 0; i < programs.size(); ++i)
      for (Index bytes = checked_bytes_min; bytes <= trial.input_bytes_max; bytes *= 4)
        f(algorithms()[i], *programs[i], bytes);
  };
  watch.take_passes([&] {
    measured(ring, world.size(), watch, trial);
    for_each_check([&](const Algorithm&, const Program& program, Index bytes) { watch.launch_ns(program, bytes); });
  });
  MeasuredMachine out{
      .model = measured(ring, world.size(), watch, trial), .timed = watch.timed(), .unusual = watch.unusual()};
  for_each_check([&](const Algorithm& algorithm, const Program& program, Index bytes) {
    out.checks.push_back({.algorithm = algorithm.name,
                          .input_bytes = bytes,
                          .predicted_ns = predict(program, out.model, bytes).duration_ns,
                          .measured_ns = watch.launch_ns(program, bytes),
                          .is_comparable = watch.is_usual(program, bytes)});
  });
  return out;
}

double measure_core_switch_ns(World& world, const MachineModel& machine, const MachineTrial& trial) {
  const auto program = Ring(world.size()).signals_around();
  ProgramStopwatch watch(world, trial.launches, trial.passes, program);
  watch.take_passes([&] { watch.launch_ns(*program, Rates::tiny_bytes); });
  const double wanted_ns = watch.launch_ns(*program, Rates::tiny_bytes);
  MachineModel model = machine;
  double low_ns = 0, high_ns = 200'000;
  for (int i = 0; i < 24; ++i) {
    model.core_switch_ns = (low_ns + high_ns) / 2;
    const double found_ns = replay(*program, model, {.input_bytes = Rates::tiny_bytes}).duration_ns;
    (found_ns < wanted_ns ? low_ns : high_ns) = model.core_switch_ns;
  }
  return double(std::int64_t(low_ns));
}

}  // namespace tranship
