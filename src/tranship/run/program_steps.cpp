#include "tranship/run/program_steps.hpp"

#include <algorithm>
#include <map>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/program/collective.hpp>

namespace tranship {
namespace {

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

class Placing {
 public:
  Placing(const Program& program, const Chunking& chunking, const PlacingOptions& options)
      : program_(program),
        own_(program.ranks[static_cast<std::size_t>(options.rank)]),
        chunking_(chunking),
        options_(options),
        touched_(touched(program, options.rank)) {}

  PlacedProgram run() {
    find_makers();
    for (const ThreadBlock& block : own_.blocks) {
      out_.blocks.push_back(out_.steps.size());
      for (std::size_t i = 0; i < block.steps.size(); ++i) {
        position_ = static_cast<std::int32_t>(i);
        const Step& step = block.steps[i];
        if (step.pipeline && !step.pipeline->steps.empty())
          place_loop(*step.pipeline);
        else
          place(step, nullptr);
      }
      add(PlacedStep::Act::end, StepKind::nop);
    }
    return std::move(out_);
  }

 private:
  /// Finds the ranks that store packets to this rank, and the chunks.
  void find_makers() {
    for (Rank by = 0; by < static_cast<Rank>(program_.ranks.size()); ++by) {
      if (by == options_.rank) continue;
      const RankProgram& rank = program_.ranks[static_cast<std::size_t>(by)];
      for_each_step(rank, [&](const Step& step, const Pipeline*) {
        const StepShape& shape = shape_of(step.kind);
        const auto sources = static_cast<std::size_t>(step.sources);
        for (std::size_t i = sources; i < step.operands.size(); ++i) {
          const Operand& operand = step.operands[i];
          const OperandShape what = shape_of_target(shape, i - sources);
          if (what.format != OperandFormat::packets || what.where == Where::here) continue;
          const auto via = static_cast<std::size_t>(operand.via);
          bool is_here = false;
          if (what.where == Where::peer) is_here = rank.remote_buffers[via].rank == options_.rank;
          if (what.where == Where::group)
            for (const Rank member : rank.switches[via].ranks) is_here |= member == options_.rank;
          if (is_here) makers_.push_back({by, operand.first, operand.first + operand.count});
        }
      });
    }
  }
  Rank maker_of(const Operand& operand) const {
    Rank out = -1;
    for (const Maker& maker : makers_) {
      if (maker.end <= operand.first || operand.first + operand.count <= maker.first) continue;
      if (out >= 0 && out != maker.rank) return -1;
      out = maker.rank;
    }
    return out;
  }

  PlacedStep& add(PlacedStep::Act act, StepKind kind) {
    out_.steps.push_back({.act = act, .kind = kind, .position = position_});
    return out_.steps.back();
  }

  void place_loop(const Pipeline& loop) {
    const Index unit = round_up(loop.unit_bytes, cut_unit_bytes);
    const Index iterations = std::max<Index>(1, (loop.chunks * chunking_.chunk_bytes + unit - 1) / unit);
    const auto first = static_cast<std::uint32_t>(out_.steps.size());
    PlacedStep& begin = add(PlacedStep::Act::begin_loop, StepKind::pipeline);
    begin.iterations = iterations;
    begin.unit_bytes = unit;
    begin.is_last = false;
    for (const Step& step : loop.steps) place(step, &loop);
    PlacedStep& end = add(PlacedStep::Act::end_loop, StepKind::pipeline);
    end.first = first;
    end.is_last = false;
  }

  void place(const Step& step, const Pipeline* loop) {
    using Act = PlacedStep::Act;
    switch (step.kind) {
      case StepKind::nop:
      case StepKind::pipeline:
        add(Act::nothing, step.kind);
        return;
      case StepKind::barrier:
        add_with_ids(Act::meet, step, barrier_of(step.ids[0])).participants = step.participants;
        return;
      case StepKind::signal:
      case StepKind::relaxed_signal:
        add_with_ids(Act::signal, step, wires_of(step));
        return;
      case StepKind::wait:
      case StepKind::relaxed_wait:
        add_with_ids(Act::wait, step, wires_of(step));
        return;
      case StepKind::acquire:
        add_with_ids(Act::acquire, step, step.ids);
        return;
      case StepKind::release:
        add_with_ids(Act::release, step, step.ids);
        return;
      case StepKind::flush:
        add(Act::flush, step.kind);
        return;
      default:
        break;
    }
    place_move(step, loop);
    if (step.kind != StepKind::put_signal && step.kind != StepKind::put_signal_flush) return;
    out_.steps.back().is_last = false;
    add_with_ids(Act::signal, step, wires_of(step));
    if (step.kind == StepKind::put_signal) return;
    out_.steps.back().is_last = false;
    add(Act::flush, step.kind);
  }

  PlacedStep& add_with_ids(PlacedStep::Act act, const Step& step, const std::vector<std::int32_t>& ids) {
    PlacedStep& out = add(act, step.kind);
    out.first = static_cast<std::uint32_t>(out_.ids.size());
    out.count = static_cast<std::uint32_t>(ids.size());
    out_.ids.insert(out_.ids.end(), ids.begin(), ids.end());
    return out;
  }
  std::vector<std::int32_t> barrier_of(std::int32_t id) {
    const std::int32_t number = barriers_.try_emplace(id, static_cast<std::int32_t>(barriers_.size())).first->second;
    out_.barriers = barriers_.size();
    return {number};
  }
  std::vector<std::int32_t> wires_of(const Step& step) const {
    const auto before = step.channel == ChannelKind::port ? static_cast<std::int32_t>(own_.peers[0].size()) : 0;
    std::vector<std::int32_t> out;
    for (const std::int32_t channel : step.ids) out.push_back(before + channel);
    return out;
  }

  void place_move(const Step& step, const Pipeline* loop) {
    const StepShape& shape = shape_of(step.kind);
    const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
    std::vector<PlacedOperand> from, to;
    PlacedStep out{.kind = step.kind, .pairing = shape.pairing, .position = position_};
    out.in_loop = loop != nullptr;
    out.by_memory = step.channel != ChannelKind::port;
    out.bytes = (step.operands.empty() ? 0 : step.operands[0].count) * chunking_.chunk_bytes;
    out.share = step.share;
    out.shares = step.shares;
    if (!loop && step.shares > 0) {
      const UnitRange own = share_of(out.bytes / cut_unit_bytes, step.share, step.shares);
      out.begin = own.first * cut_unit_bytes;
      out.bytes = own.count * cut_unit_bytes;
    }
    for (std::size_t i = 0; i < sources; ++i) add_places(step.operands[i], shape_of_source(shape, i), from);
    for (std::size_t i = 0; i < targets; ++i) add_places(step.operands[sources + i], shape_of_target(shape, i), to);
    if (out.bytes == 0 || from.empty() || to.empty()) {
      add(PlacedStep::Act::nothing, step.kind);
      return;
    }

    // In the order of the ranks that the data comes from, so ranks that combine the same data get the same bits.
    if (shape.pairing == Pairing::all)
      std::stable_sort(from.begin(), from.end(), [](const PlacedOperand& a, const PlacedOperand& b) {
        const auto origin = [](const PlacedOperand& at) { return at.made_by >= 0 ? at.made_by : at.rank; };
        return origin(a) < origin(b);
      });
    const auto is_simple = [](const PlacedOperand& at) { return at.format == OperandFormat::plain && at.is_reached; };
    const bool simple =
        std::all_of(from.begin(), from.end(), is_simple) && std::all_of(to.begin(), to.end(), is_simple);
    out.first = static_cast<std::uint32_t>(out_.operands.size());
    out.sources = static_cast<std::uint32_t>(from.size());
    out.targets = static_cast<std::uint32_t>(to.size());
    if (simple && (shape.pairing == Pairing::pairs || from.size() == 1)) {
      out.act = PlacedStep::Act::copy;
      out.count = out.targets;
      for (std::size_t i = 0; i < to.size(); ++i) {
        out_.operands.push_back(from[shape.pairing == Pairing::pairs ? i : 0]);
        out_.operands.push_back(to[i]);
      }
    } else {
      out.act = simple ? PlacedStep::Act::combine : act_of_transfer(shape.pairing, from, to);
      out_.operands.insert(out_.operands.end(), from.begin(), from.end());
      out_.operands.insert(out_.operands.end(), to.begin(), to.end());
      for (const PlacedOperand& at : from) {
        out.has_packets |= at.format == OperandFormat::packets;
        out.fetches |= !at.is_reached;
      }
      out.combine = detail::Combiner(step.reduction, options_.type);
      out.combines_packets = out.act == PlacedStep::Act::unpack && from.size() == 2 && to.size() == 1 &&
                             (from[0].format == OperandFormat::plain) != (from[1].format == OperandFormat::plain) &&
                             out.combine.takes_packets();
      out_.operands_max = std::max({out_.operands_max, from.size(), to.size()});
    }
    out_.steps.push_back(out);
  }

  static PlacedStep::Act act_of_transfer(Pairing pairing, const std::vector<PlacedOperand>& from,
                                         const std::vector<PlacedOperand>& to) {
    const auto is_reached = [](const PlacedOperand& at) { return at.is_reached; };
    const auto is_plain = [](const PlacedOperand& at) { return at.format == OperandFormat::plain; };
    const auto is_raw = [](const PlacedOperand& at) { return at.format == OperandFormat::raw_packets; };
    if (!std::all_of(from.begin(), from.end(), is_reached) || !std::all_of(to.begin(), to.end(), is_reached))
      return PlacedStep::Act::transfer;
    if (std::all_of(from.begin(), from.end(), is_plain) && std::none_of(to.begin(), to.end(), is_plain) &&
        (pairing == Pairing::pairs || from.size() == 1))
      return PlacedStep::Act::pack;
    if (std::none_of(from.begin(), from.end(), is_raw) && std::all_of(to.begin(), to.end(), is_plain) &&
        pairing == Pairing::all)
      return PlacedStep::Act::unpack;
    return PlacedStep::Act::transfer;
  }

  void add_places(const Operand& operand, OperandShape shape, std::vector<PlacedOperand>& out) const {
    const auto place_at = [&](Rank rank) {
      const BufferPlace at = place_of(program_, rank, operand.buffer);
      const bool is_own = rank == options_.rank;
      const Index first = (at.first_chunk + operand.first) * chunking_.chunk_bytes;
      out.push_back({.rank = rank,
                     .base = static_cast<std::uint32_t>(rank * memory_count + at.memory),
                     .offset = shape.format == OperandFormat::plain ? first : 2 * first,
                     .format = shape.format,
                     .is_own = is_own,
                     .is_read_by_peers = is_own && touched_[static_cast<std::size_t>(at.memory)].is_read_by_peers,
                     .is_reached = is_own || options_.reaches(rank),
                     .made_by = is_own && shape.format == OperandFormat::packets ? maker_of(operand) : -1});
    };
    switch (shape.where) {
      case Where::here:
        return place_at(options_.rank);
      case Where::peer:
        return place_at(own_.remote_buffers[static_cast<std::size_t>(operand.via)].rank);
      case Where::group:
        for (const Rank rank : own_.switches[static_cast<std::size_t>(operand.via)].ranks) place_at(rank);
    }
  }

  /// A rank that stores packets to chunks [first, end) of this rank's scratch memory.
  struct Maker {
    Rank rank;
    Index first, end;
  };

  const Program& program_;
  const RankProgram& own_;
  const Chunking& chunking_;
  const PlacingOptions& options_;
  const std::array<Touched, memory_count> touched_;
  std::vector<Maker> makers_;
  PlacedProgram out_;
  std::map<std::int32_t, std::int32_t> barriers_;
  std::int32_t position_ = 0;
};

/// Returns true when steps cut the bytes of chunks: into packets, into shares or into turns of a loop.
bool cuts_chunks(const Program& program) {
  bool cuts = false;
  for (const RankProgram& rank : program.ranks)
    for (const ThreadBlock& block : rank.blocks)
      for (const Step& step : block.steps) {
        const StepShape& shape = shape_of(step.kind);
        cuts = cuts || step.pipeline || step.shares > 0 ||
               shape.sources.find_first_of("PpT") != std::string_view::npos ||
               shape.targets.find_first_of("PQT") != std::string_view::npos;
      }
  return cuts;
}

}  // namespace

Chunking chunking_of(const Program& program, Rank rank, Index elements, Index width) {
  const CollectiveMeaning meaning(program);
  const auto ranks = static_cast<Index>(program.ranks.size()), chunks = input_chunks_max(program);
  const auto& own = program.ranks[static_cast<std::size_t>(rank)].chunks;
  const Index inputs = own[int(BufferKind::input)], outputs = own[int(BufferKind::output)];
  const bool joins = program.collective == "alltoall" || program.collective == "allgather";
  // The collective says where chunks begin; for a program that promises nothing, the callers do.
  const Index segments = input_parts(program);
  if (elements < 0 || elements % segments != 0)
    throw_error(ErrorCode::invalid_use, "an input of {} cannot be cut into {}, as {} does", amount(elements, "element"),
                amount(segments, "equal part"), printable(program.collective, name_chars_max));
  Chunking out;
  out.segment_elements = elements / segments;
  out.segment_chunks = std::max<Index>(1, chunks / segments);
  if (meaning.is_known()) {
    if (inputs > 0) out.input_segments = segments;
    if (meaning.promised_chunks(rank) > 0) out.output_segments = joins ? ranks : 1;
  } else {
    out.input_segments = inputs;
    out.output_segments = outputs;
  }
  const Index per_chunk = (out.segment_elements + out.segment_chunks - 1) / out.segment_chunks;
  // Where no chunk is padded or cut, elements are laid out in the program's memory as at the caller.
  const bool is_exact = !meaning.is_known() && !cuts_chunks(program);
  out.chunk_bytes = round_up(checked_multiply(per_chunk, width), is_exact ? width : std::max(cut_unit_bytes, width));
  return out;
}

PlacedProgram placed(const Program& program, const Chunking& chunking, const PlacingOptions& options) {
  return Placing(program, chunking, options).run();
}

std::array<Touched, memory_count> touched(const Program& program, Rank rank) {
  std::array<Touched, memory_count> out;
  const auto touch = [&](Rank by, Rank at, BufferKind buffer, bool writes) {
    if (at != rank) return;
    Touched& memory = out[static_cast<std::size_t>(place_of(program, at, buffer).memory)];
    if (by != rank) memory.by_peers = true;
    if (by != rank && !writes) memory.is_read_by_peers = true;
    if (by == rank && writes) memory.is_written = true;
  };
  for (Rank by = 0; by < static_cast<Rank>(program.ranks.size()); ++by) {
    const RankProgram& own = program.ranks[static_cast<std::size_t>(by)];
    for_each_step(own, [&](const Step& step, const Pipeline*) {
      const StepShape& shape = shape_of(step.kind);
      const auto sources = static_cast<std::size_t>(step.sources);
      for (std::size_t i = 0; i < step.operands.size(); ++i) {
        const Operand& operand = step.operands[i];
        const bool writes = i >= sources;
        const OperandShape what = writes ? shape_of_target(shape, i - sources) : shape_of_source(shape, i);
        if (what.where == Where::here) touch(by, by, operand.buffer, writes);
        if (what.where == Where::peer)
          touch(by, own.remote_buffers[static_cast<std::size_t>(operand.via)].rank, operand.buffer, writes);
        if (what.where == Where::group)
          for (const Rank at : own.switches[static_cast<std::size_t>(operand.via)].ranks)
            touch(by, at, operand.buffer, writes);
      }
    });
  }
  return out;
}

}  // namespace tranship
