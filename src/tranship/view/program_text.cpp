#include "tranship/view/program_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {
namespace {

const RankProgram& of(const Program& program, Rank rank) {
  return program.ranks[static_cast<std::size_t>(rank)];
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const bool in_a_row =
      std::adjacent_find(ranks.begin(), ranks.end(), [](Rank a, Rank b) { return b != a + 1; }) == ranks.end();
  if (ranks.size() > 2 && in_a_row) return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  return "ranks " + join_text(ranks, ", ");
}

std::string operand_text(const RankProgram& rank, const Operand& operand, OperandShape what) {
  std::string text = chunks_text(name_of(operand.buffer), operand.first, operand.count);
  if (what.where == Where::peer)
    text += fmt::format(" of rank {}", rank.remote_buffers[static_cast<std::size_t>(operand.via)].rank);
  if (what.where == Where::group)
    text += " of " + ranks_text(rank.switches[static_cast<std::size_t>(operand.via)].ranks);
  if (what.format != OperandFormat::plain) text += " (packets)";
  return text;
}

/// Returns "a + b + ... + z (26 in all)".
std::string list_text(const std::vector<std::string>& items, std::string_view separator, std::size_t list_max) {
  if (items.size() <= list_max) return join_text(items, separator);
  const std::vector<std::string> first(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(list_max) - 1);
  return fmt::format("{}{}...{}{} ({} in all)", join_text(first, separator), separator, separator, items.back(),
                     items.size());
}

std::string channels_text(const RankProgram& rank, const Step& step, std::size_t list_max) {
  std::vector<std::string> names;
  for (const std::int32_t id : step.ids)
    names.push_back(fmt::format("{} (rank {})", id,
                                rank.peers[static_cast<std::size_t>(step.channel)][static_cast<std::size_t>(id)]));
  return fmt::format("{} {} {}", name_of(step.channel), plural(Index(names.size()), "channel"),
                     list_text(names, ", ", list_max));
}

bool combines(const Step& step, const StepShape& shape) {
  return shape.pairing == Pairing::all && (shape.sources.size() > 1 || shape.sources == "S") && step.names_reduction;
}

std::string operands_text(const RankProgram& rank, const Step& step, const StepShape& shape, std::size_t list_max) {
  const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
  const auto source = [&](std::size_t i) { return operand_text(rank, step.operands[i], shape_of_source(shape, i)); };
  const auto target = [&](std::size_t i) {
    return operand_text(rank, step.operands[sources + i], shape_of_target(shape, i));
  };
  std::vector<std::string> parts;
  if (shape.pairing == Pairing::pairs) {
    for (std::size_t i = 0; i < targets; ++i) parts.push_back(source(i) + " -> " + target(i));
    return list_text(parts, "; ", list_max);
  }
  for (std::size_t i = 0; i < sources; ++i) parts.push_back(source(i));
  std::string text = list_text(parts, " + ", list_max);
  if (combines(step, shape) && step.reduction != Reduction::sum)
    text = fmt::format("{} of {}", name_of(step.reduction), list_text(parts, ", ", list_max));
  parts.clear();
  for (std::size_t i = 0; i < targets; ++i) parts.push_back(target(i));
  return text + " -> " + list_text(parts, ", ", list_max);
}

constexpr const char* verb_of(StepArrow::Kind kind, bool is_source) {
  switch (kind) {
    case StepArrow::Kind::signal:
      return is_source ? "signals" : "signalled by";
    case StepArrow::Kind::packets:
      return is_source ? "packets for" : "packets from";
    case StepArrow::Kind::data:
      return is_source ? "data for" : "data from";
    case StepArrow::Kind::release:
      return is_source ? "releases" : "released by";
  }
  return "";
}

std::string block_text(const Program& program, const StepArrows& arrows, std::size_t first, std::size_t last,
                       std::size_t list_max) {
  std::string out;
  for (std::size_t i = first; i < last; ++i) {
    const StepPlace& place = arrows.steps()[i];
    const std::string number =
        place.inner < 0 ? fmt::format("{}", place.step) : fmt::format("{}.{}", place.step, place.inner);
    std::string line = fmt::format("    {:>5}  {:<9}  {}", number, shape_of(place.what->kind).word,
                                   step_text(program, place, list_max));
    if (const std::string paired = arrows.text(static_cast<std::int32_t>(i)); !paired.empty())
      line += fmt::format("  [{}]", paired);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string channels_of(const RankProgram& rank, std::size_t list_max) {
  std::string out;
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port}) {
    const auto& peers = rank.peers[static_cast<std::size_t>(kind)];
    if (peers.empty()) continue;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < peers.size(); ++i) parts.push_back(fmt::format("{} to rank {}", i, peers[i]));
    out += fmt::format("  {} channels: {}\n", name_of(kind), list_text(parts, ", ", list_max));
  }
  for (std::size_t i = 0; i < rank.switches.size(); ++i)
    out += fmt::format("  switch channel {}: the {} of {}\n", i, name_of(rank.switches[i].buffer),
                       ranks_text(rank.switches[i].ranks));
  if (!rank.semaphores.empty()) out += fmt::format("  semaphores begin at: {}\n", join_text(rank.semaphores, ", "));
  return out;
}

/// Appends the properties of a step in which ranks must agree to be alike.
void add_shape(const Step& step, std::vector<std::uint64_t>& out) {
  const auto add = [&](auto number) { out.push_back(static_cast<std::uint64_t>(number)); };
  add(step.kind);
  add(step.channel);
  add(step.reduction);
  for (const std::int32_t number : {step.share, step.shares, step.sources, step.participants}) add(number);
  add(step.ids.size());
  add(step.operands.size());
  for (const Operand& operand : step.operands) {
    add(operand.buffer);
    add(operand.count);
  }
  if (!step.pipeline) return;
  add(step.pipeline->unit_bytes);
  add(step.pipeline->chunks);
  add(step.pipeline->steps.size());
  for (const Step& inner : step.pipeline->steps) add_shape(inner, out);
}
std::vector<std::uint64_t> shape_of_rank(const RankProgram& rank) {
  std::vector<std::uint64_t> out(std::begin(rank.chunks), std::end(rank.chunks));
  out.push_back(rank.semaphores.size());
  for (const Index value : rank.semaphores) out.push_back(static_cast<std::uint64_t>(value));
  for (const ThreadBlock& block : rank.blocks) {
    out.push_back(block.steps.size());
    for (const Step& step : block.steps) add_shape(step, out);
  }
  return out;
}

/// Returns "ranks 1 to 63", or a list of ranks and ranges.
std::string many_ranks_text(const std::vector<Rank>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i > 2)
      parts.push_back(fmt::format("{} to {}", ranks[i], ranks[end - 1]));
    else
      for (std::size_t k = i; k < end; ++k) parts.push_back(fmt::format("{}", ranks[k]));
    i = end;
  }
  constexpr std::size_t parts_max = 8;
  return plural(Index(ranks.size()), "rank") + " " + list_text(parts, ", ", parts_max);
}

}  // namespace

std::vector<Rank> first_ranks_alike(const Program& program) {
  std::map<std::vector<std::uint64_t>, Rank> seen;
  std::vector<Rank> out;
  for (Rank rank = 0; rank < static_cast<Rank>(program.ranks.size()); ++rank)
    out.push_back(seen.try_emplace(shape_of_rank(of(program, rank)), rank).first->second);
  return out;
}

std::string sizes_text(const Program& program) {
  std::size_t blocks = 0;
  for (const RankProgram& rank : program.ranks) blocks += rank.blocks.size();
  return fmt::format("{}, {}, {}", counted(static_cast<Index>(program.ranks.size()), "rank"),
                     counted(static_cast<Index>(blocks), "thread block"), counted(count_steps(program), "step"));
}

std::string place_text(const StepPlace& place) {
  if (place.inner < 0) return fmt::format("rank {}, block {}, step {}", place.rank, place.block, place.step);
  return fmt::format("rank {}, block {}, step {}.{}", place.rank, place.block, place.step, place.inner);
}

std::string step_text(const Program& program, const StepPlace& place, std::size_t list_max) {
  const Step& step = *place.what;
  const StepShape& shape = shape_of(step.kind);
  const RankProgram& rank = of(program, place.rank);
  std::vector<std::string> parts;
  if (shape.moves()) parts.push_back(operands_text(rank, step, shape, list_max));
  if (step.kind == StepKind::barrier)
    parts.push_back(fmt::format("barrier {} of {}", step.ids[0], amount(step.participants, "block")));
  else if (step.kind == StepKind::acquire || step.kind == StepKind::release)
    parts.push_back(fmt::format("{} {}", plural(Index(step.ids.size()), "semaphore"), join_text(step.ids, ", ")));
  else if (!step.ids.empty() && !(shape.moves() && !signals(step.kind)))
    parts.push_back(channels_text(rank, step, list_max));
  if (step.shares > 0) parts.push_back(fmt::format("share {} of {}", step.share, step.shares));
  if (step.pipeline)
    parts.push_back(fmt::format("loop of {} over {}, {} at a time", counted(Index(step.pipeline->steps.size()), "step"),
                                counted(step.pipeline->chunks, "chunk"), human_bytes(step.pipeline->unit_bytes)));
  return join_text(parts, ", ");
}

StepArrows::StepArrows(const Program& program)
    : replay_(replay(program, step_by_step(),
                     {.input_bytes = 1 << 20, .iterations_max = 2, .arrows = ReplayOptions::Arrows::find})) {
  const auto& arrows = replay_.arrows;
  by_target_.resize(arrows.size());
  std::iota(by_target_.begin(), by_target_.end(), 0);
  const auto at = [&](std::int32_t i) -> const StepArrow& { return arrows[static_cast<std::size_t>(i)]; };
  std::stable_sort(by_target_.begin(), by_target_.end(),
                   [&](std::int32_t a, std::int32_t b) { return at(a).to < at(b).to; });
  outgoing_.resize(replay_.steps.size() + 1);
  incoming_.resize(replay_.steps.size() + 1);
  for (const StepArrow& arrow : arrows) {
    ++outgoing_[static_cast<std::size_t>(arrow.from) + 1];
    ++incoming_[static_cast<std::size_t>(arrow.to) + 1];
  }
  std::partial_sum(outgoing_.begin(), outgoing_.end(), outgoing_.begin());
  std::partial_sum(incoming_.begin(), incoming_.end(), incoming_.begin());
}

std::string StepArrows::text(std::int32_t step) const {
  constexpr std::size_t named_max = 4;
  std::vector<std::string> parts;
  const auto id = static_cast<std::size_t>(step);
  const auto add = [&](const StepArrow& arrow, bool is_source) {
    const StepPlace& other = replay_.steps[static_cast<std::size_t>(is_source ? arrow.to : arrow.from)];
    parts.push_back(fmt::format("{} {}", verb_of(arrow.kind, is_source), place_text(other)));
  };
  for (std::size_t i = outgoing_[id]; i < outgoing_[id + 1]; ++i) add(replay_.arrows[i], true);
  for (std::size_t i = incoming_[id]; i < incoming_[id + 1]; ++i)
    add(replay_.arrows[static_cast<std::size_t>(by_target_[i])], false);
  if (parts.size() > named_max) {
    const std::size_t more = parts.size() - named_max + 1;
    parts.resize(named_max - 1);
    parts.push_back(fmt::format("and {} more", more));
  }
  if (std::binary_search(replay_.stuck.begin(), replay_.stuck.end(), step)) parts.push_back("never goes on");
  return join_text(parts, "; ");
}

namespace {

std::string folded_text(const std::vector<Rank>& alike, Rank first) {
  std::vector<Rank> others;
  for (std::size_t rank = 0; rank < alike.size(); ++rank)
    if (alike[rank] == first && static_cast<Rank>(rank) != first) others.push_back(static_cast<Rank>(rank));
  if (others.empty()) return "";
  return fmt::format("{}: the same steps with peers and chunks of their own (--rank shows them)\n",
                     many_ranks_text(others));
}

}  // namespace

std::string program_text(const Program& program, const ProgramTextOptions& options) {
  const auto size = static_cast<Rank>(program.ranks.size());
  if (options.rank && (*options.rank < 0 || *options.rank >= size))
    throw_error(ErrorCode::invalid_use, "there is no rank {}; the program has {}", *options.rank, size);
  const StepArrows arrows(program);
  std::string out =
      fmt::format("{} ({}): {}\nprotocol {}, {}", one_line(program.name), one_line(program.collective),
                  sizes_text(program), one_line(program.protocol), program.in_place ? "in place" : "out of place");
  if (program.double_scratch) out += ", two halves of scratch in turn";
  if (program.message_bytes_min > 0 || program.message_bytes_max < UINT64_MAX)
    out += fmt::format(", for {} to {} of {}", program.message_bytes_min, amount(program.message_bytes_max, "byte"),
                       program.collective == "allgather" ? "output" : "input");
  out += "\n";

  const bool folds = !options.rank && size > options.ranks_unfolded_max;
  constexpr std::size_t folded_list_max = 4;
  const std::size_t list_max = folds ? folded_list_max : SIZE_MAX;
  std::vector<Rank> alike = folds ? first_ranks_alike(program) : std::vector<Rank>();
  // A rank that is stuck is shown in full.
  for (const std::int32_t step : arrows.stuck())
    if (folds) {
      const Rank rank = arrows.steps()[static_cast<std::size_t>(step)].rank;
      alike[static_cast<std::size_t>(rank)] = rank;
    }
  std::size_t at = 0;
  Index shown = 0;
  Rank left_out = 0;
  for (Rank rank = 0; rank < size; ++rank) {
    const RankProgram& one = of(program, rank);
    std::size_t end = at;
    while (end < arrows.steps().size() && arrows.steps()[end].rank == rank) ++end;
    if (folds && alike[static_cast<std::size_t>(rank)] != rank) {  // named with the first rank like it
      at = end;
      continue;
    }
    const bool is_wanted =
        options.rank ? rank == *options.rank : shown == 0 || shown + Index(end - at) <= options.steps_max;
    if (!is_wanted) {
      ++left_out;
      at = end;
      continue;
    }
    shown += static_cast<Index>(end - at);
    out += fmt::format("\nrank {}: {} of input, {} of output, {} of scratch\n{}", rank, counted(one.chunks[0], "chunk"),
                       one.chunks[1], one.chunks[2], channels_of(one, list_max));
    for (std::size_t block = 0; block < one.blocks.size(); ++block) {
      std::size_t last = at;
      while (last < end && static_cast<std::size_t>(arrows.steps()[last].block) == block) ++last;
      out += fmt::format("  block {}\n{}", block, block_text(program, arrows, at, last, list_max));
      at = last;
    }
    if (folds) out += folded_text(alike, rank);
  }
  if (arrows.dropped() > 0) out += fmt::format("\n{} of steps are left out\n", amount(arrows.dropped(), "pair"));
  if (left_out > 0 && !options.rank) out += fmt::format("\n{} more: --rank shows one\n", counted(left_out, "rank"));
  return out;
}

}  // namespace tranship
