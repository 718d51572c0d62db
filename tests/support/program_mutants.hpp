// Programs with one mistake: a step left out or moved, another index, rank, buffer, channel or semaphore.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tranship/base/error.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::test {

inline bool is_well_formed(const Program& program) {
  try {
    check_structure(program);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Calls f(step) with copies of one step that differ from it in one thing, and what it was.
template <class F>
void for_each_other_step(const RankProgram& rank, const ThreadBlock& block, const Step& step, F&& f) {
  const auto with = [&](std::string what, auto&& change) {
    Step other = step;
    change(other);
    f(std::move(other), std::move(what));
  };
  for (std::size_t i = 0; i < step.ids.size(); ++i) {
    if (step.kind == StepKind::barrier) continue;
    const bool is_semaphore = step.kind == StepKind::acquire || step.kind == StepKind::release;
    std::vector<std::int32_t> others = block.channels[std::size_t(step.channel)];
    if (is_semaphore) {
      others.clear();
      for (std::size_t k = 0; k < rank.semaphores.size(); ++k) others.push_back(std::int32_t(k));
    }
    for (const std::int32_t id : others)
      if (id != step.ids[i]) with(fmt::format("id {} is {}", i, id), [&](Step& one) { one.ids[i] = id; });
    if (step.ids.size() > 1 && !shape_of(step.kind).moves())
      with(fmt::format("id {} is missing", i), [&](Step& one) { one.ids.erase(one.ids.begin() + std::ptrdiff_t(i)); });
  }
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    for (const Index by : {-1, 1})
      with(fmt::format("operand {} is displaced by {}", k, by), [&](Step& one) { one.operands[k].first += by; });
    const StepShape& shape = shape_of(step.kind);
    const auto sources = std::size_t(step.sources);
    const OperandShape what = k < sources ? shape_of_source(shape, k) : shape_of_target(shape, k - sources);
    if (what.where == Where::here)
      for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch})
        if (buffer != step.operands[k].buffer)
          with(fmt::format("operand {} lies in the {}", k, name_of(buffer)),
               [&](Step& one) { one.operands[k].buffer = buffer; });
    if (what.where == Where::peer)
      for (const std::int32_t via : block.remote_buffers[std::size_t(step.channel)])
        if (via != step.operands[k].via)
          with(fmt::format("operand {} is remote buffer {}", k, via), [&](Step& one) {
            one.operands[k].via = via;
            one.operands[k].buffer = rank.remote_buffers[std::size_t(via)].buffer;
          });
  }
  if (step.shares > 1) with("another share", [](Step& one) { one.share = (one.share + 1) % one.shares; });
  if (step.kind == StepKind::signal && step.channel == ChannelKind::memory)
    with("relaxed", [](Step& one) { one.kind = StepKind::relaxed_signal; });
  if (step.kind == StepKind::wait && step.channel == ChannelKind::memory)
    with("relaxed", [](Step& one) { one.kind = StepKind::relaxed_wait; });
  if (step.kind == StepKind::put_signal_flush)
    with("without a flush", [](Step& one) { one.kind = StepKind::put_signal; });
}

/// Calls f(mutant, what is wrong with it) for all that are well formed.
template <class F>
void for_each_mutant(const Program& right, F&& f) {
  Program mutant = right;
  for (std::size_t rank = 0; rank < right.ranks.size(); ++rank) {
    const RankProgram& of_rank = right.ranks[rank];
    for (std::size_t block = 0; block < of_rank.blocks.size(); ++block) {
      const ThreadBlock& of_block = of_rank.blocks[block];
      auto& steps = mutant.ranks[rank].blocks[block].steps;
      const auto give = [&](std::size_t i, const std::string& what) {
        if (is_well_formed(mutant))
          f(std::as_const(mutant),
            fmt::format("rank {}, block {}, step {} ({}): {}", rank, block, i, name_of(of_block.steps[i].kind), what));
        steps = of_block.steps;
      };
      for (std::size_t i = 0; i < of_block.steps.size(); ++i) {
        const Step& step = of_block.steps[i];
        steps.erase(steps.begin() + std::ptrdiff_t(i));
        give(i, "left out");
        if (i + 1 < steps.size()) {
          std::swap(steps[i], steps[i + 1]);
          give(i, "after the next one");
        }
        for_each_other_step(of_rank, of_block, step, [&](Step other, const std::string& what) {
          steps[i] = std::move(other);
          give(i, what);
        });
        if (!step.pipeline) continue;
        for (const Index change : {-1, 1}) {
          Pipeline loop = *step.pipeline;
          loop.unit_bytes = std::max<Index>(16, change < 0 ? loop.unit_bytes / 2 : loop.unit_bytes * 2);
          steps[i].pipeline = std::make_shared<const Pipeline>(std::move(loop));
          give(i, fmt::format("turns of {} bytes", steps[i].pipeline->unit_bytes));
        }
        const auto with_loop = [&](std::size_t k, const std::string& what, auto&& change) {
          Pipeline loop = *step.pipeline;
          change(loop.steps);
          steps[i].pipeline = std::make_shared<const Pipeline>(std::move(loop));
          give(i, fmt::format("step {} of the loop ({}): {}", k, name_of(step.pipeline->steps[k].kind), what));
        };
        for (std::size_t k = 0; k < step.pipeline->steps.size(); ++k) {
          with_loop(k, "left out", [&](auto& inner) { inner.erase(inner.begin() + std::ptrdiff_t(k)); });
          if (k + 1 < step.pipeline->steps.size())
            with_loop(k, "after the next one", [&](auto& inner) { std::swap(inner[k], inner[k + 1]); });
          for_each_other_step(of_rank, of_block, step.pipeline->steps[k], [&](Step other, const std::string& what) {
            with_loop(k, what, [&](auto& inner) { inner[k] = std::move(other); });
          });
        }
      }
    }
    for (std::size_t i = 0; i < of_rank.semaphores.size(); ++i)
      for (const Index by : {-1, 1}) {
        mutant.ranks[rank].semaphores[i] += by;
        if (is_well_formed(mutant))
          f(std::as_const(mutant), fmt::format("rank {}: semaphore {} begins {} higher", rank, i, by));
        mutant.ranks[rank].semaphores = of_rank.semaphores;
      }
  }
}

}  // namespace tranship::test
