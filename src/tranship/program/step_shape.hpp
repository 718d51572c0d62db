// Private: the columns of steps.def as values: which operands a step reads and writes, and how.
#pragma once

#include <string>
#include <string_view>

#include <tranship/program/program.hpp>

namespace tranship {

/// How an operand is stored and read.
enum class OperandFormat : std::uint8_t {
  plain,
  packets,      ///< data with flags; a read waits until all flags are those of this launch
  raw_packets,  ///< packets that are read without waiting
};
enum class Where : std::uint8_t { here, peer, group };

struct OperandShape {
  OperandFormat format;
  Where where;
};
constexpr OperandShape operand_shape(char letter) noexcept {
  switch (letter) {
    case 'P':
      return {OperandFormat::packets, Where::here};
    case 'p':
      return {OperandFormat::raw_packets, Where::here};
    case 'R':
      return {OperandFormat::plain, Where::peer};
    case 'Q':
      return {OperandFormat::packets, Where::peer};
    case 'S':
      return {OperandFormat::plain, Where::group};
    case 'T':
      return {OperandFormat::packets, Where::group};
    default:
      return {OperandFormat::plain, Where::here};
  }
}

enum class StepChannel : std::uint8_t { none, memory, port, wire, switched };
enum class Pairing : std::uint8_t { pairs, all };

struct StepShape {
  std::string_view name;
  std::string_view word;
  StepChannel channel;
  std::string_view sources;
  std::string_view targets;
  Pairing pairing;

  constexpr bool takes(ChannelKind kind) const noexcept {
    switch (channel) {
      case StepChannel::none:
        return false;
      case StepChannel::memory:
        return kind == ChannelKind::memory;
      case StepChannel::port:
        return kind == ChannelKind::port;
      case StepChannel::wire:
        return kind != ChannelKind::switched;
      case StepChannel::switched:
        return kind == ChannelKind::switched;
    }
    return false;
  }
  constexpr bool moves() const noexcept { return !sources.empty(); }
};

const StepShape& shape_of(StepKind kind) noexcept;

/// Returns true when `letters` allow `count` operands.
constexpr bool allows(std::string_view letters, std::size_t count) noexcept {
  if (letters.ends_with('*')) return count + 2 >= letters.size();
  return count == letters.size();
}
/// Describes these operands: "1 of this rank, and any number of a peer"; "none" without letters.
std::string operands_text(std::string_view letters);
/// The shape of operand `i`.
constexpr OperandShape shape_of_operand(std::string_view letters, std::size_t i) noexcept {
  const std::size_t named = letters.ends_with('*') ? letters.size() - 1 : letters.size();
  return operand_shape(letters[i < named ? i : named - 1]);
}
constexpr OperandShape shape_of_source(const StepShape& shape, std::size_t i) noexcept {
  return shape_of_operand(shape.sources, i);
}
constexpr OperandShape shape_of_target(const StepShape& shape, std::size_t i) noexcept {
  return shape_of_operand(shape.targets, i);
}

/// Steps that name the channels on which they signal or wait. Other steps reach their peers through operands.
constexpr bool signals(StepKind kind) noexcept {
  return kind == StepKind::signal || kind == StepKind::relaxed_signal || kind == StepKind::put_signal ||
         kind == StepKind::put_signal_flush;
}
constexpr bool waits(StepKind kind) noexcept {
  return kind == StepKind::wait || kind == StepKind::relaxed_wait;
}

/// Returns true when the step makes one value of several: of its sources, or of all ranks of a switch channel.
inline bool combines(const Step& step) noexcept {
  const StepShape& shape = shape_of(step.kind);
  return shape.pairing == Pairing::all && step.sources > 0 &&
         (step.sources > 1 || shape_of_source(shape, 0).where == Where::group);
}

/// A chunk is a whole number of units of this size; neither shares nor turns of a loop cut a unit.
inline constexpr Index cut_unit_bytes = 16;
struct UnitRange {
  Index first = 0, count = 0;
};
/// The units that one of `shares` gets; the first shares get one more each when units are left over.
constexpr UnitRange share_of(Index units, Index share, Index shares) noexcept {
  const Index each = units / shares, more = units % shares;
  return {share * each + (share < more ? share : more), each + (share < more ? 1 : 0)};
}

/// Calls f(step, loop around it or null) for all steps of a rank; the steps of a loop follow the loop.
template <class F>
void for_each_step(const RankProgram& rank, F&& f) {
  for (const ThreadBlock& block : rank.blocks)
    for (const Step& step : block.steps) {
      f(step, static_cast<const Pipeline*>(nullptr));
      if (step.pipeline)
        for (const Step& inner : step.pipeline->steps) f(inner, step.pipeline.get());
    }
}

}  // namespace tranship
