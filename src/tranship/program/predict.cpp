#include "tranship/program/predict.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {
namespace {

constexpr std::size_t words_max = 4;

void add_word(PathStretch& stretch, std::string_view word, std::size_t& words) {
  if (words == words_max) stretch.words += " ...";
  if (words++ >= words_max) return;
  if (!stretch.words.empty()) stretch.words += ' ';
  stretch.words += word;
}

}  // namespace

Prediction predict(const Program& program, const MachineModel& machine, Index input_bytes) {
  const Replay played = replay(program, machine, {.input_bytes = input_bytes});
  if (!played.stuck.empty()) {
    const StepPlace& at = played.steps[static_cast<std::size_t>(played.stuck.front())];
    throw_error(ErrorCode::invalid_use,
                "the program does not end: {} of its blocks wait for ever, the first of them on rank {}, block {}, at "
                "step {} ({})",
                played.stuck.size(), at.rank, at.block, at.step, shape_of(at.what->kind).word);
  }
  Prediction out{.input_bytes = input_bytes, .duration_ns = played.duration_ns};
  out.executions = static_cast<Index>(std::count_if(played.events.begin(), played.events.end(),
                                                    [](const StepEvent& event) { return event.step >= 0; }));

  std::vector<std::int32_t> chain;
  for (std::int32_t at = played.last_event; at >= 0; at = played.events[static_cast<std::size_t>(at)].cause)
    chain.push_back(at);
  std::reverse(chain.begin(), chain.end());
  double previous_ns = 0;
  std::size_t words = 0;
  for (const std::int32_t number : chain) {
    const StepEvent& event = played.events[static_cast<std::size_t>(number)];
    std::int32_t block = -1, step = 0;
    std::string_view word = event.step == StepEvent::launch ? "launch" : "end of launch";
    if (event.step >= 0) {
      const StepPlace& place = played.steps[static_cast<std::size_t>(event.step)];
      block = place.block;
      step = place.step;
      word = shape_of(place.what->kind).word;
    }
    if (out.path.empty() || out.path.back().rank != event.rank || out.path.back().block != block) {
      out.path.push_back({.rank = event.rank, .block = block, .first = step, .last = step, .begin_ns = previous_ns});
      words = 0;
    }
    PathStretch& stretch = out.path.back();
    add_word(stretch, word, words);
    stretch.first = std::min(stretch.first, step);
    stretch.last = std::max(stretch.last, step);
    ++stretch.executions;
    stretch.end_ns = previous_ns = event.end_ns;
    stretch.latency_ns += event.latency_ns;
    stretch.bandwidth_ns += event.bandwidth_ns;
    stretch.queued_ns += event.queued_ns;
  }
  for (const PathStretch& stretch : out.path) {
    out.latency_ns += stretch.latency_ns;
    out.bandwidth_ns += stretch.bandwidth_ns;
    out.queued_ns += stretch.queued_ns;
  }
  return out;
}

}  // namespace tranship
