#include "tranship/run/program_machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/library_calls.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/kernels/host/packet_unit.hpp>

namespace tranship {
namespace {

using Act = PlacedStep::Act;

/// Moves bytes like memmove; operands may overlap.
void move_bytes(std::byte* to, const std::byte* from, Index bytes, PieceOf piece_of, Index traffic_bytes = 0) {
  const auto count = static_cast<std::size_t>(bytes);
  if (to == from) return;
  if (bytes == 16) {
    std::memcpy(to, from, 16);
  } else if (bytes <= 1024 || (to < from + bytes && from < to + bytes)) {
    std::memmove(to, from, count);
  } else {
    copy_piece(to, from, bytes, piece_of, traffic_bytes);
  }
}

/// The last packet of a unit. Packets are stored in order, so it arrives last.
const std::uint64_t* last_packet(const std::byte* unit) {
  return reinterpret_cast<const std::uint64_t*>(unit) + detail::packet_unit_bytes / 4 - 1;
}

PieceOf piece_of(bool from_own, const PlacedOperand& to) {
  if (!to.is_own || (from_own && to.is_read_by_peers)) return PieceOf::target_of_peer;
  return from_own ? PieceOf::own_memory : PieceOf::source_of_peer;
}

}  // namespace

ProgramMachine::ProgramMachine(World& world, Setup setup, CallSite where)
    : world_(world),
      context_(world.context()),
      setup_(std::move(setup)),
      is_watched_(!context_.completes_at_once()),
      spins_(is_watched_                            ? 0
             : this_machine().cores >= world.size() ? 1000
                                                    : 10),
      passes_(spins_ > 10 ? spins_ : 0),
      barriers_(setup_.program.barriers),
      sources_(setup_.program.operands_max + 1),
      targets_(setup_.program.operands_max + 1),
      choices_(setup_.program.steps.size()),
      output_traffic_bytes_(Index(setup_.memories[output_memory].size()) * world_.size()),
      where_(where) {
  for (Rank rank = 0; rank < world_.size(); ++rank)
    for (const Symmetric<std::byte>& memory : setup_.memories)
      bases_[1].push_back(context_.reaches(rank) && memory ? context_.peer_array(memory, rank, where).data()
                                                           : memory.local());
  bases_[0] = bases_[1];
  for (Rank rank = 0; rank < world_.size() && setup_.second_scratch_bytes > 0; ++rank)
    bases_[0][std::size_t(rank) * memory_count + scratch_memory] += setup_.second_scratch_bytes;
  // One strip for each source and one for the result; packets take two words per unit.
  strips_.resize((setup_.program.operands_max + 1) * std::size_t(strip_bytes));
  for (const std::size_t first : setup_.program.blocks)
    blocks_.push_back({.first = &setup_.program.steps[first], .index = static_cast<int>(blocks_.size())});
  running_.reserve(blocks_.size());
  is_alone_ = blocks_.size() == 1 && !is_watched_;
  if (is_alone_) find_units();
}

/// Precomputes the launch of a block that moves only single units of packets, as programs on a few elements do.
void ProgramMachine::find_units() {
  std::vector<UnitMove> units;
  const PlacedStep* step = blocks_.front().first;
  for (; step->act != Act::end; ++step) {
    if (step->in_loop || step->bytes != Index(detail::packet_unit_bytes)) return;
    auto how = UnitMove::pack;
    if (step->act == Act::copy)
      how = UnitMove::copy;
    else if (step->act == Act::unpack && step->targets == 1 && (step->sources == 1 || step->combines_packets))
      how = step->combines_packets ? UnitMove::combine : UnitMove::take;
    else if (step->act != Act::pack || step->sources != 1)
      return;
    for (std::uint32_t i = 0; i < step->targets; ++i) {
      UnitMove unit{.how = how, .step = step, .from = step->first, .to = step->first + step->sources + i};
      if (how == UnitMove::copy) {  // operands are pairs
        unit.from = step->first + 2 * i;
        unit.to = unit.from + 1;
      }
      units.push_back(unit);
    }
  }
  unit_steps_ = step - blocks_.front().first;
  units_[0] = units_[1] = std::move(units);
  place_units();
}

void ProgramMachine::place_units() {
  for (int half = 0; half < 2; ++half) {
    base_ = bases_[half].data();
    for (UnitMove& unit : units_[half]) {
      const auto place = [&](std::uint32_t operand) {
        return address(setup_.program.operands[operand], unit.step->begin);
      };
      const bool packets_come_first = setup_.program.operands[unit.from].format == OperandFormat::packets;
      const std::uint32_t second = unit.how == UnitMove::combine ? unit.from + 1 : unit.from;
      unit.pair = {.plain = place(packets_come_first ? second : unit.from),
                   .packets = place(packets_come_first ? unit.from : second),
                   .target = place(unit.to),
                   .bytes = detail::packet_unit_bytes,
                   .packets_come_first = packets_come_first,
                   .looks = spins_ + 1};
    }
  }
}

/// Runs to the end of the block, or to a step whose packets do not come soon. Work that can follow the first store
/// does, so that packets leave early.
inline bool ProgramMachine::move_units() {
  const std::uint32_t flag = this->flag();
  // The processor keeps the order of packets in memory; this fence keeps the compiler to it.
  std::atomic_signal_fence(std::memory_order_acq_rel);
  for (UnitMove& unit : units_[launch_ % 2]) {
    detail::CombinedPackets& pair = unit.pair;
    if (unit.how == UnitMove::pack) {
      detail::pack_unit(pair.target, pair.plain, flag);
      std::atomic_signal_fence(std::memory_order_acq_rel);
      continue;
    }
    if (unit.how == UnitMove::copy) {
      std::memmove(pair.target, pair.plain, detail::packet_unit_bytes);
      continue;
    }
    pair.flag = flag;
    if (unit.how == UnitMove::combine ? unit.step->combine.with_packets(pair) > 0
                                      : detail::await_packet_unit(pair.packets, pair.target, flag, pair.looks))
      continue;
    Block& block = blocks_.front();
    steps_ += unit.step - block.first;
    block.at = unit.step;
    return false;
  }
  std::atomic_signal_fence(std::memory_order_acq_rel);
  steps_ += unit_steps_;
  return true;
}

void ProgramMachine::launch(CallSite where) {
  ++launch_;
  if (units_[0].empty() || !move_units()) go_on(where);
}

/// Not inlined, so that the shortest launch saves few registers.
[[gnu::noinline]] void ProgramMachine::go_on(CallSite where) {
  const detail::LibraryCalls in_library(context_);
  where_ = where;
  base_ = bases_[launch_ % 2].data();
  running_.clear();
  for (Block& block : blocks_) {
    if (units_[0].empty()) block.at = block.first;
    if (!advance(block)) running_.push_back(&block);
  }
  bool may_move = blocks_.size() > 1;  // a single block has just been tried
  while (!running_.empty()) {
    if (may_move && pass()) continue;
    may_move = true;
    if (completing_ > 0)
      quiet();
    else
      wait(where);
  }
  if (is_watched_) quiet();
}

bool ProgramMachine::pass() {
  const Index before = steps_ + progress_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < running_.size(); ++i)
    if (!advance(*running_[i])) running_[kept++] = running_[i];
  running_.resize(kept);
  return kept == 0 || steps_ + progress_ != before;
}

/// Returns false when only one block is left, and the word that it waits for has not changed.
bool ProgramMachine::may_go_on() const {
  const Block& only = *running_.front();
  return is_watched_ || running_.size() > 1 || !only.word || detail::load_word(only.word) != only.word_seen;
}

void ProgramMachine::wait(CallSite where) {
  for (int spin = 0; spin < spins_ && !may_go_on();) ++spin;
  const auto goes_on = [&] { return may_go_on() && (pass() || completing_ > 0); };
  for (int i = 0; i < passes_; ++i)
    if (goes_on()) return;
  WaitNote note("a step of a program", WaitNote::anyone, where);
  // A description of the wait takes time, so it is made only for a long wait, shortly before other ranks may see it.
  int vain = is_watched_ ? 15 : 0;
  world_.wait_until(
      [&] {
        if (goes_on()) return true;
        if (++vain == 16) {
          describe(*running_.front());
          note.label = label_.c_str();
          note.raised_by = awaited_;
        }
        return false;
      },
      note);
}

void ProgramMachine::describe(const Block& block) {
  const PlacedStep& step = *block.at;
  label_ = fmt::format("step {} ({}) of block {}", step.position, shape_of(step.kind).word, block.index);
  awaited_ = WaitNote::anyone;
  if (step.act == Act::wait)
    awaited_ = setup_.wires[std::size_t(setup_.program.ids[step.first + std::size_t(block.done)])].peer;
  if (step.has_packets) awaited_ = maker_of_missing(block, step);
}

/// Returns the rank that stores the packets that the step waits for, if there is one such rank.
Rank ProgramMachine::maker_of_missing(const Block& block, const PlacedStep& step) const {
  const Part part = part_of(block, step);
  for (std::uint32_t i = 0; i < step.sources; ++i) {
    const PlacedOperand& from = setup_.program.operands[step.first + i];
    if (from.format != OperandFormat::packets) continue;
    const auto* const first = reinterpret_cast<const std::uint64_t*>(address(from, part.begin));
    for (Index k = block.done / 4; k < part.bytes / 4; ++k)
      if (detail::load_word(first + k) >> 32 != flag()) return from.made_by;
  }
  return WaitNote::anyone;
}

bool ProgramMachine::advance(Block& block) {
  for (;;) {
    const PlacedStep& step = *block.at;
    switch (step.act) {
      case Act::end:
        return true;
      case Act::nothing:
        break;
      case Act::begin_loop:
        block.iteration = 0;
        block.loop_unit_bytes = step.unit_bytes;
        break;
      case Act::end_loop: {
        const PlacedStep& begin = setup_.program.steps[step.first];
        if (++block.iteration < begin.iterations) {
          block.at = &begin + 1;
          continue;
        }
        break;
      }
      case Act::meet:
        if (!come_to_barrier(block, step)) return false;
        break;
      case Act::signal:
        if (!signal(block, step)) return false;
        break;
      case Act::wait:
        if (!take_signals(block, step)) return false;
        break;
      case Act::acquire:
        if (!acquire(block, step)) return false;
        break;
      case Act::release:
        for (std::uint32_t i = 0; i < step.count; ++i)
          ++setup_.semaphores[std::size_t(setup_.program.ids[step.first + i])];
        break;
      case Act::flush:
        if (!flush(block)) return false;
        break;
      case Act::copy:
        copy(step, part_of(block, step));
        break;
      case Act::combine:
        combine(step, part_of(block, step));
        break;
      case Act::pack:
        if (is_watched(step))
          transfer(block, step, part_of(block, step));
        else
          pack(step, part_of(block, step));
        break;
      case Act::unpack:
        if (is_watched(step) ? !transfer(block, step, part_of(block, step))
                             : !unpack(block, step, part_of(block, step)))
          return false;
        break;
      case Act::transfer:
        if (!transfer(block, step, part_of(block, step))) return false;
        break;
    }
    block.done = 0;
    block.word = nullptr;
    steps_ += step.is_last;
    ++block.at;
  }
}

/// Returns true when packets of the step come from, or go to, a peer that is watched.
bool ProgramMachine::is_watched(const PlacedStep& step) const {
  if (!is_watched_) return false;
  const PlacedOperand* const operand = &setup_.program.operands[step.first];
  for (std::uint32_t i = 0; i < step.sources + step.targets; ++i) {
    const bool is_made_elsewhere = i < step.sources && operand[i].format == OperandFormat::packets;
    if (is_watched(is_made_elsewhere ? operand[i].made_by : operand[i].rank)) return true;
  }
  return false;
}

bool ProgramMachine::come_to_barrier(Block& block, const PlacedStep& step) {
  Barrier& barrier = barriers_[std::size_t(setup_.program.ids[step.first])];
  if (!block.has_arrived) {
    block.has_arrived = true;
    block.round = barrier.round;
    if (++barrier.arrived == step.participants) {
      barrier.arrived = 0;
      ++barrier.round;
    }
  }
  if (barrier.round == block.round) return false;
  block.has_arrived = false;
  return true;
}

bool ProgramMachine::signal(Block& block, const PlacedStep& step) {
  for (; block.done < Index(step.count); ++block.done) {
    Wire& wire = setup_.wires[std::size_t(setup_.program.ids[step.first + std::size_t(block.done)])];
    if (is_watched_ && (block.is_completing || must_complete_before(wire.peer)) && !complete(block)) return false;
    if (wire.out_at) {
      // only this rank raises this word
      detail::store_word(wire.out_at, ++wire.sent);
    } else {
      context_.fence(where_);
      context_.signal(wire.out, 1, SignalOp::add, wire.peer, where_);
      has_transfers_ = true;
    }
  }
  return true;
}

/// A signal publishes all stores of this rank, wherever they went. Transfers to the signalled peer itself come before
/// it anyway.
bool ProgramMachine::must_complete_before(Rank peer) const {
  return std::any_of(stored_to_.begin(), stored_to_.end(), [&](Rank other) { return other != peer; });
}

bool ProgramMachine::take_signals(Block& block, const PlacedStep& step) {
  for (; block.done < Index(step.count); ++block.done) {
    Wire& wire = setup_.wires[std::size_t(setup_.program.ids[step.first + std::size_t(block.done)])];
    if (look_at(wire.in, wire.peer) <= wire.seen) {
      block.word = wire.in.local();
      block.word_seen = wire.seen;
      ++polls_;
      if (!has_come_soon(block)) return false;
    }
    ++wire.seen;
    ++progress_;
  }
  return true;
}

/// When no other block could go on meanwhile, looks at the word in a loop before the block gives up its turn.
bool ProgramMachine::has_come_soon(const Block& block) const {
  if (!is_alone_ || !block.word) return false;
  for (int spin = 0; spin < spins_; ++spin)
    if (detail::load_word(block.word) != block.word_seen) return true;
  return false;
}

bool ProgramMachine::acquire(Block& block, const PlacedStep& step) {
  for (; block.done < Index(step.count); ++block.done) {
    Index& value = setup_.semaphores[std::size_t(setup_.program.ids[step.first + std::size_t(block.done)])];
    if (value == 0) return false;
    --value;
    ++progress_;
  }
  return true;
}

bool ProgramMachine::flush(Block& block) {
  return (!block.is_completing && !has_transfers_) || complete(block);
}

/// Returns true when a quiet has completed since the block began to wait for one.
bool ProgramMachine::complete(Block& block) {
  if (!block.is_completing) {
    block.is_completing = true;
    block.completing_since = quiets_;
    ++completing_;
  }
  if (quiets_ == block.completing_since) return false;
  block.is_completing = false;
  --completing_;
  return true;
}

void ProgramMachine::quiet() {
  context_.quiet(where_);
  ++quiets_;
  stored_to_.clear();
  puts_.clear();
  has_transfers_ = false;
}

ProgramMachine::Part ProgramMachine::part_of(const Block& block, const PlacedStep& step) {
  if (!step.in_loop) return {step.begin, step.bytes};
  Index begin = std::min(step.bytes, block.iteration * block.loop_unit_bytes);
  Index bytes = std::min(step.bytes - begin, block.loop_unit_bytes);
  if (step.shares > 0) {
    const UnitRange own = share_of(bytes / cut_unit_bytes, step.share, step.shares);
    begin += own.first * cut_unit_bytes;
    bytes = own.count * cut_unit_bytes;
  }
  return {begin, bytes};
}

void ProgramMachine::note_reads(const PlacedOperand& operand, Part part) const {
  if (is_watched_ && operand.is_own && operand.format == OperandFormat::plain)
    context_.reads(std::span<const std::byte>(address(operand, part.begin), std::size_t(part.bytes)), where_);
}
void ProgramMachine::note_writes(const PlacedOperand& operand, Part part) const {
  if (is_watched_ && operand.is_own && operand.format == OperandFormat::plain)
    context_.writes(std::span<const std::byte>(address(operand, part.begin), std::size_t(part.bytes)), where_);
}

void ProgramMachine::copy(const PlacedStep& step, Part part) {
  const PlacedOperand* operand = &setup_.program.operands[step.first];
  for (std::uint32_t i = 0; i < step.count; ++i, operand += 2) {
    note_reads(operand[0], part);
    note_writes(operand[1], part);
    move_bytes(address(operand[1], part.begin), address(operand[0], part.begin), part.bytes,
               piece_of(operand[0].is_own, operand[1]),
               operand[1].base % memory_count == output_memory ? output_traffic_bytes_ : 0);
  }
}

void ProgramMachine::combine(const PlacedStep& step, Part part) {
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  for (std::uint32_t i = 0; i < step.sources; ++i) {
    note_reads(from[i], part);
    sources_[i] = address(from[i], part.begin);
  }
  for (std::uint32_t i = 0; i < step.targets; ++i) {
    note_writes(to[i], part);
    targets_[i] = address(to[i], part.begin);
  }
  if (is_long_put(part.bytes) &&
      std::any_of(to, to + step.targets, [](const PlacedOperand& one) { return !one.is_own; }))
    return detail::combine_for_peers(step.combine,
                                     {.sources = std::span(sources_).first(step.sources),
                                      .targets = std::span(targets_).first(step.targets),
                                      .is_of_peer = [&](std::size_t i) { return !to[i].is_own; },
                                      .bytes = static_cast<std::size_t>(part.bytes)},
                                     choices_[std::size_t(&step - setup_.program.steps.data())]);
  step.combine({.sources = sources_.data(),
                .source_count = step.sources,
                .targets = targets_.data(),
                .target_count = step.targets,
                .bytes = static_cast<std::size_t>(part.bytes)});
}

void ProgramMachine::pack(const PlacedStep& step, Part part) {
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  for (std::uint32_t i = 0; i < step.targets; ++i)
    detail::pack(address(to[i], part.begin), address(from[step.sources == 1 ? 0 : i], part.begin),
                 std::size_t(part.bytes), flag());
}

bool ProgramMachine::unpack(Block& block, const PlacedStep& step, Part part) {
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  const bool is_copy = step.sources == 1 && step.targets == 1;
  while (block.done < part.bytes) {
    const Index begin = part.begin + block.done;
    Index bytes = part.bytes - block.done;
    if (step.combines_packets) {
      const bool packets_come_first = from[0].format != OperandFormat::plain;
      bytes = Index(step.combine.with_packets({.plain = address(from[packets_come_first ? 1 : 0], begin),
                                               .packets = address(from[packets_come_first ? 0 : 1], begin),
                                               .target = address(to[0], begin),
                                               .bytes = std::size_t(bytes),
                                               .flag = flag(),
                                               .packets_come_first = packets_come_first}));
    } else if (is_copy) {
      bytes = Index(detail::unpack(address(from[0], begin), address(to[0], begin), std::size_t(bytes), flag()));
    } else {
      bytes = std::min(bytes, strip_bytes);
      for (std::uint32_t i = 0; i < step.sources; ++i) {
        const std::byte* const at = address(from[i], begin);
        sources_[i] = at;
        if (from[i].format == OperandFormat::plain) continue;
        sources_[i] = strip(i);
        bytes = Index(detail::unpack(at, strip(i), std::size_t(bytes), flag()));
      }
      for (std::uint32_t i = 0; i < step.targets; ++i) targets_[i] = address(to[i], begin);
      if (bytes > 0 && step.sources == 1)
        for (std::uint32_t i = 0; i < step.targets; ++i)
          move_bytes(targets_[i], sources_[0], bytes, piece_of(from[0].is_own, to[i]));
      else if (bytes > 0)
        step.combine({.sources = sources_.data(),
                      .source_count = step.sources,
                      .targets = targets_.data(),
                      .target_count = step.targets,
                      .bytes = static_cast<std::size_t>(bytes)});
    }
    if (bytes == 0) {
      ++polls_;
      watch_missing(block, step, begin);
      if (has_come_soon(block)) continue;
      return false;
    }
    block.done += bytes;
    ++progress_;
  }
  return true;
}

/// Watches the last packet of the first unit that has not come.
void ProgramMachine::watch_missing(Block& block, const PlacedStep& step, Index begin) {
  for (std::uint32_t i = 0; i < step.sources; ++i) {
    const PlacedOperand& from = setup_.program.operands[step.first + i];
    if (from.format != OperandFormat::packets) continue;
    const std::uint64_t* const last = last_packet(address(from, begin));
    const std::uint64_t seen = detail::load_word(last);
    if (seen >> 32 == flag()) continue;
    block.word = last;
    block.word_seen = seen;
    return;
  }
  block.word = nullptr;
}

bool ProgramMachine::transfer(Block& block, const PlacedStep& step, Part part) {
  if (step.pairing == Pairing::pairs) return transfer_pairs(block, step, part);
  if (step.fetches) return combine_fetched(block, step, part);
  const bool watched = is_watched(step);
  if (watched && step.has_packets && !have_packets_come(block, step, part)) return false;
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  const bool needs_strips = step.sources > 1 || from[0].format != OperandFormat::plain;
  while (block.done < part.bytes) {
    Part now{part.begin + block.done, part.bytes - block.done};
    if (needs_strips) now.bytes = std::min(now.bytes, strip_bytes);
    for (std::uint32_t i = 0; i < step.sources; ++i) {
      const std::byte* const at = address(from[i], now.begin);
      sources_[i] = at;
      if (from[i].format == OperandFormat::plain) continue;
      sources_[i] = strip(i);
      if (from[i].format == OperandFormat::raw_packets || watched)
        detail::unpack_any(at, strip(i), std::size_t(now.bytes));
      else
        now.bytes = Index(detail::unpack(at, strip(i), std::size_t(now.bytes), flag()));
    }
    if (now.bytes == 0) {
      ++polls_;
      return false;
    }
    for (std::uint32_t i = 0; i < step.sources; ++i) note_reads(from[i], now);
    const std::byte* const data = step.sources == 1 ? sources_[0] : combined(step, now, strip(step.sources));
    for (std::uint32_t i = 0; data && i < step.targets; ++i)
      if (step.sources == 1 || to[i].format != OperandFormat::plain || !to[i].is_reached) store(step, to[i], now, data);
    block.done += now.bytes;
    ++progress_;
  }
  block.looked = 0;
  return true;
}

/// Combines `sources_` into all plain targets that are reached and, when there are others, into `buffer`, which it then
/// returns.
const std::byte* ProgramMachine::combined(const PlacedStep& step, Part part, std::byte* buffer) {
  const PlacedOperand* const to = &setup_.program.operands[step.first + step.sources];
  std::size_t targets = 0;
  for (std::uint32_t i = 0; i < step.targets; ++i)
    if (to[i].format == OperandFormat::plain && to[i].is_reached) {
      note_writes(to[i], part);
      targets_[targets++] = address(to[i], part.begin);
    }
  const bool has_others = targets < step.targets;
  if (has_others) targets_[targets++] = buffer;
  step.combine({.sources = sources_.data(),
                .source_count = step.sources,
                .targets = targets_.data(),
                .target_count = targets,
                .bytes = static_cast<std::size_t>(part.bytes)});
  return has_others ? buffer : nullptr;
}

bool ProgramMachine::transfer_pairs(Block& block, const PlacedStep& step, Part part) {
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  for (; block.done < Index(step.targets); ++block.done) {
    const auto i = static_cast<std::size_t>(block.done);
    // Transfers of a block are made one after the other where one depends on another, as its copies would be.
    const bool needs_quiet = block.is_completing || is_fetched(block, step, part, block.done) ||
                             (!from[i].is_reached && is_put(from[i], part));
    if (needs_quiet) {
      if (!complete(block)) return false;
      block.completed = block.done;
    }
    if (!from[i].is_reached) {
      context_.get_nbi<std::byte>(std::span(address(to[i], part.begin), std::size_t(part.bytes)),
                                  at_peer(from[i], part.begin, part.bytes), from[i].rank, where_);
      has_transfers_ = true;
      continue;
    }
    note_reads(from[i], part);
    if (from[i].format == OperandFormat::plain) {
      store(step, to[i], part, address(from[i], part.begin));
      continue;
    }
    for (Index done = 0; done < part.bytes; done += strip_bytes) {
      const Part now{part.begin + done, std::min(strip_bytes, part.bytes - done)};
      detail::unpack_any(address(from[i], now.begin), strip(0), std::size_t(now.bytes));
      store(step, to[i], now, strip(0));
    }
  }
  if (step.fetches && !complete(block)) return false;
  block.completed = 0;
  return true;
}

/// Returns true when a get that is under way writes what a pair of its step moves to.
bool ProgramMachine::is_fetched(const Block& block, const PlacedStep& step, Part part, Index pair) const {
  if (!step.fetches) return false;
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  const std::byte* const at = address(to[pair], part.begin);
  for (Index i = block.completed; i < pair; ++i) {
    const std::byte* const other = address(to[i], part.begin);
    if (!from[i].is_reached && other < at + part.bytes && at < other + part.bytes) return true;
  }
  return false;
}

bool ProgramMachine::is_put(const PlacedOperand& remote, Part part) const {
  const auto puts = puts_.find(remote.rank);
  if (puts == puts_.end()) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(address(remote, part.begin));
  bool any = false;
  puts->second.look(first, first + static_cast<std::size_t>(part.bytes),
                    [&](std::size_t, std::size_t, IsPut) { any = true; });
  return any;
}

void ProgramMachine::note_put(const PlacedOperand& remote, Part part) {
  const auto first = reinterpret_cast<std::uintptr_t>(address(remote, part.begin));
  puts_[remote.rank].assign(first, first + static_cast<std::size_t>(part.bytes), {});
}

bool ProgramMachine::combine_fetched(Block& block, const PlacedStep& step, Part part) {
  const PlacedOperand* const from = &setup_.program.operands[step.first];
  const PlacedOperand* const to = from + step.sources;
  const auto room = [&](std::size_t i) { return block.fetched.data() + i * std::size_t(fetch_bytes); };
  while (block.done < part.bytes) {
    const Part now{part.begin + block.done, std::min(fetch_bytes, part.bytes - block.done)};
    if (!block.has_fetched) {
      const bool needs_quiet =
          block.is_completing || std::any_of(from, from + step.sources, [&](const PlacedOperand& one) {
            return !one.is_reached && is_put(one, now);
          });
      if (needs_quiet && !complete(block)) return false;
      block.fetched.resize(std::size_t(step.sources + 1) * std::size_t(fetch_bytes));
      for (std::uint32_t i = 0; i < step.sources; ++i)
        if (!from[i].is_reached)
          context_.get_nbi<std::byte>(std::span(room(i), std::size_t(now.bytes)),
                                      at_peer(from[i], now.begin, now.bytes), from[i].rank, where_);
      block.has_fetched = true;
      has_transfers_ = true;
    }
    if (!complete(block)) return false;
    block.has_fetched = false;
    for (std::uint32_t i = 0; i < step.sources; ++i) {
      note_reads(from[i], now);
      sources_[i] = from[i].is_reached ? address(from[i], now.begin) : room(i);
    }
    const std::byte* const data = step.sources == 1 ? sources_[0] : combined(step, now, room(step.sources));
    for (std::uint32_t i = 0; data && i < step.targets; ++i)
      if (step.sources == 1 || to[i].format != OperandFormat::plain || !to[i].is_reached) store(step, to[i], now, data);
    block.done += now.bytes;
    ++progress_;
  }
  return true;
}

/// Looks at each packet separately, because what watches the transfers must see each look. Packets that have come are
/// not looked at again.
bool ProgramMachine::have_packets_come(Block& block, const PlacedStep& step, Part part) {
  Index passed = 0;
  for (std::uint32_t i = 0; i < step.sources; ++i) {
    const PlacedOperand& from = setup_.program.operands[step.first + i];
    if (from.format != OperandFormat::packets) continue;
    auto* const first = reinterpret_cast<std::uint64_t*>(address(from, part.begin));
    const Index count = part.bytes / 4;
    for (Index k = std::max<Index>(0, block.looked - passed); k < count; ++k) {
      if (look_at(Symmetric<std::uint64_t>::at(first + k, 1), from.made_by) >> 32 != flag()) {
        ++polls_;
        return false;
      }
      block.looked = passed + k + 1;
      ++progress_;
    }
    passed += count;
  }
  return true;
}

void ProgramMachine::store(const PlacedStep& step, const PlacedOperand& target, Part part, const std::byte* data) {
  if (target.format != OperandFormat::plain) return store_packets(target, part, data);
  if (target.is_reached) {
    note_writes(target, part);
    return move_bytes(address(target, part.begin), data, part.bytes, piece_of(true, target));
  }
  if (is_put(target, part)) context_.fence(target.rank, where_);
  note_put(target, part);
  context_.put<std::byte>(at_peer(target, part.begin, part.bytes), std::span(data, std::size_t(part.bytes)),
                          target.rank, where_);
  has_transfers_ = true;
  if (step.by_memory && std::find(stored_to_.begin(), stored_to_.end(), target.rank) == stored_to_.end())
    stored_to_.push_back(target.rank);
}

void ProgramMachine::store_packets(const PlacedOperand& target, Part part, const std::byte* data) {
  std::byte* const at = address(target, part.begin);
  if (target.is_reached) return detail::pack(at, data, std::size_t(part.bytes), flag());
  auto* const first = reinterpret_cast<std::uint64_t*>(at);
  for (Index i = 0; i < part.bytes / 4; ++i) {
    std::uint32_t value;
    std::memcpy(&value, data + 4 * i, sizeof value);
    context_.set(Symmetric<std::uint64_t>::at(first + i, 1), std::uint64_t(flag()) << 32 | value, target.rank, where_);
  }
  has_transfers_ = true;
}

}  // namespace tranship
