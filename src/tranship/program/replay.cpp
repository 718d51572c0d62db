#include "tranship/program/replay.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/replay/scheduler.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {
namespace {

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

const char* name_of(StepArrow::Kind kind) noexcept {
  switch (kind) {
    case StepArrow::Kind::signal:
      return "signal";
    case StepArrow::Kind::packets:
      return "packets";
    case StepArrow::Kind::data:
      return "data";
    case StepArrow::Kind::release:
      return "release";
  }
  return "?";
}

std::vector<StepPlace> places_of_steps(const Program& program) {
  std::vector<StepPlace> out;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (std::size_t block = 0; block < program.ranks[rank].blocks.size(); ++block) {
      const std::vector<Step>& steps = program.ranks[rank].blocks[block].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        StepPlace place{.rank = static_cast<Rank>(rank),
                        .block = static_cast<std::int32_t>(block),
                        .step = static_cast<std::int32_t>(i),
                        .what = &steps[i]};
        out.push_back(place);
        if (!steps[i].pipeline) continue;
        for (const Step& inner : steps[i].pipeline->steps) {
          ++place.inner;
          place.what = &inner;
          out.push_back(place);
        }
      }
    }
  return out;
}

Index bytes_of_chunks(const Program& program, Index input_bytes) {
  const auto ranks = static_cast<Index>(program.ranks.size());
  const bool cuts_input = program.collective == "alltoall" || program.collective == "reducescatter";
  const Index segments = cuts_input ? ranks : 1;
  const Index chunks = std::max<Index>(1, input_chunks_max(program) / segments);
  const Index per_segment = (input_bytes + segments - 1) / segments;
  return std::max(cut_unit_bytes, round_up((per_segment + chunks - 1) / chunks, cut_unit_bytes));
}

std::vector<LaunchCopies> launch_copies_of(const Program& program) {
  const std::size_t size = program.ranks.size();
  struct Touched {
    bool by_peers = false, is_written = false;
  };
  std::vector<Touched> touched(size * buffer_kinds);
  for (const StepPlace& place : places_of_steps(program)) {
    const Step& step = *place.what;
    const StepShape& shape = shape_of(step.kind);
    const RankProgram& own = program.ranks[static_cast<std::size_t>(place.rank)];
    const auto sources = static_cast<std::size_t>(step.sources);
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const Operand& operand = step.operands[i];
      const bool writes = i >= sources;
      const OperandShape what = writes ? shape_of_target(shape, i - sources) : shape_of_source(shape, i);
      const auto touch = [&](Rank at) {
        Touched& one = touched[static_cast<std::size_t>(at) * buffer_kinds + static_cast<std::size_t>(operand.buffer)];
        if (at != place.rank) one.by_peers = true;
        if (at == place.rank && writes) one.is_written = true;
      };
      if (what.where == Where::here) touch(place.rank);
      if (what.where == Where::peer) touch(own.remote_buffers[static_cast<std::size_t>(operand.via)].rank);
      if (what.where == Where::group)
        for (const Rank at : own.switches[static_cast<std::size_t>(operand.via)].ranks) touch(at);
    }
  }
  std::vector<LaunchCopies> out(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    const Touched &input = touched[rank * buffer_kinds], &output = touched[rank * buffer_kinds + 1];
    const auto& chunks = program.ranks[rank].chunks;
    if (program.in_place || input.by_peers || input.is_written) out[rank].input_chunks = chunks[0];
    if (program.in_place || output.by_peers) out[rank].output_chunks = chunks[1];
  }
  return out;
}

std::vector<double> bytes_touched_by_hosts(const Program& program, const MachineModel& machine, Index input_bytes) {
  const auto size = static_cast<Rank>(program.ranks.size());
  std::vector<double> out(static_cast<std::size_t>((size - 1) / machine.ranks_per_host + 1));
  const auto chunk_bytes = static_cast<double>(bytes_of_chunks(program, input_bytes));
  const std::vector<LaunchCopies> copies = launch_copies_of(program);
  for (Rank rank = 0; rank < size; ++rank) {
    Index chunks = 0;
    for (int memory = 0; memory < buffer_kinds; ++memory) chunks += memory_chunks(program, rank, memory);
    if (machine.launch_copy.is_given())
      chunks +=
          copies[static_cast<std::size_t>(rank)].input_chunks + copies[static_cast<std::size_t>(rank)].output_chunks;
    out[static_cast<std::size_t>(rank / machine.ranks_per_host)] += static_cast<double>(chunks) * chunk_bytes;
  }
  return out;
}

MachineModel step_by_step() {
  MachineModel machine{.name = "step by step", .step_ns = 1, .has_far_memory = true};
  machine.ranks_per_host = 1 << 20;
  machine.multicast.is_present = true;
  return machine;
}

Replay replay(const Program& program, const MachineModel& machine, const ReplayOptions& options) {
  check_structure(program);
  if (options.input_bytes < 0 || options.input_bytes > replayed_bytes_max)
    throw_error(ErrorCode::invalid_use, "cannot replay an input of {}: the limit is {}",
                amount(options.input_bytes, "byte"), replayed_bytes_max);
  return replays::schedule(program, machine, options);
}

}  // namespace tranship
