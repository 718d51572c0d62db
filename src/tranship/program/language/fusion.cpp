#include <algorithm>
#include <optional>
#include <utility>

#include <tranship/program/collective.hpp>
#include <tranship/program/language/draft.hpp>

namespace tranship::language {
namespace {

bool asks_for_sync(const Draft& draft) {
  switch (draft.step.kind) {
    case StepKind::signal:
    case StepKind::wait:
    case StepKind::relaxed_signal:
    case StepKind::relaxed_wait:
    case StepKind::flush:
    case StepKind::acquire:
    case StepKind::release:
      return true;
    default:
      return false;
  }
}
bool meets(const Draft& draft) {
  return draft.step.kind == StepKind::nop || draft.step.kind == StepKind::barrier;
}
bool begins_with_meeting(const Draft& draft) {
  if (draft.step.kind == StepKind::pipeline) return !draft.loop.empty() && begins_with_meeting(draft.loop.front());
  return meets(draft) || (asks_for_sync(draft) && has(draft.sync, DataSync::before));
}
bool ends_with_meeting(const Draft& draft) {
  if (draft.step.kind == StepKind::pipeline) return !draft.loop.empty() && ends_with_meeting(draft.loop.back());
  return meets(draft) || (asks_for_sync(draft) && has(draft.sync, DataSync::after));
}
DataSync without(DataSync all, DataSync one) {
  return static_cast<DataSync>(static_cast<int>(all) & ~static_cast<int>(one));
}

/// Joins a step to the one before it where one step can do the work of both.
class Fusion {
 public:
  Fusion(const Program& header, tranship::Rank rank) : header_(header), rank_(rank) {}

  std::vector<Draft> fuse(std::vector<Draft> drafts) const {
    std::vector<Draft> out;
    out.reserve(drafts.size());
    for (Draft& draft : drafts) {
      draft.loop = fuse(std::move(draft.loop));
      if (!out.empty()) {
        if (joins(out.back(), draft)) continue;
        meet_once(out.back(), draft);
      }
      out.push_back(std::move(draft));
    }
    return out;
  }

 private:
  /// Removes one of two consecutive meetings.
  static void meet_once(Draft& first, Draft& second) {
    if (asks_for_sync(first) && begins_with_meeting(second))
      first.sync = without(first.sync, DataSync::after);
    else if (asks_for_sync(second) && ends_with_meeting(first))
      second.sync = without(second.sync, DataSync::before);
  }

  bool joins(Draft& first, Draft& second) const {
    if (meets(first) && second.step.kind == StepKind::nop) return true;
    if (first.step.kind == StepKind::nop && begins_with_meeting(second) && !asks_for_sync(second)) {
      first = std::move(second);
      return true;
    }
    if (second.step.kind == StepKind::nop && first.step.kind == StepKind::pipeline && ends_with_meeting(first))
      return true;
    if (asks_for_sync(first)) return joins_sync(first, second);
    if (first.step.share != second.step.share || first.step.shares != second.step.shares ||
        first.step.operands.empty() || second.step.operands.empty())
      return false;
    return joins_transfer(first, second) || joins_reduction(first, second) || joins_put(first, second) ||
           joins_packets(first, second) || joins_broadcast(first, second);
  }

  static bool joins_sync(Draft& first, const Draft& second) {
    if (first.step.kind != second.step.kind || first.step.channel != second.step.channel) return false;
    const bool counts = first.step.kind == StepKind::acquire || first.step.kind == StepKind::release;
    std::vector<std::int32_t> ids = first.step.ids;
    for (const std::int32_t id : second.step.ids) {
      const bool is_twice = std::find(ids.begin(), ids.end(), id) != ids.end();
      if (is_twice && !counts && first.step.kind != StepKind::flush) return false;
      if (!is_twice || counts) ids.push_back(id);
    }
    first.step.ids = std::move(ids);
    first.sync = static_cast<DataSync>(static_cast<int>(first.sync) | static_cast<int>(second.sync));
    add_channels(first, second);
    return true;
  }

  /// Returns true when the second step does not depend on the first.
  bool is_independent(const Draft& first, const Draft& second) const {
    return !conflict(local_accesses(header_, rank_, first), local_accesses(header_, rank_, second));
  }

  bool joins_transfer(Draft& first, const Draft& second) const {
    if (first.step.kind != second.step.kind || first.step.channel != second.step.channel) return false;
    const Operand &source = first.step.operands.front(), &other = second.step.operands.front();
    if (first.step.kind == StepKind::read_put_packets) {
      if (source != other) return false;
      append_targets(first, second);
      return true;
    }
    if (shape_of(first.step.kind).pairing != Pairing::pairs || source.count != other.count) return false;
    const Operand &target = first.step.operands.back(), &second_target = second.step.operands.back();
    // MSCCL++ takes all local operands of a step from the buffer of the first one.
    const bool is_get = first.step.kind == StepKind::get;
    if (is_get ? target.buffer != second_target.buffer : source.buffer != other.buffer) return false;
    if (!is_independent(first, second)) return false;
    auto& operands = first.step.operands;
    const auto sources = static_cast<std::ptrdiff_t>(second.step.sources);
    operands.insert(operands.begin() + first.step.sources, second.step.operands.begin(),
                    second.step.operands.begin() + sources);
    operands.insert(operands.end(), second.step.operands.begin() + sources, second.step.operands.end());
    first.step.sources += second.step.sources;
    first.step.ids.insert(first.step.ids.end(), second.step.ids.begin(), second.step.ids.end());
    add_channels(first, second);
    return true;
  }

  static bool reduces(StepKind kind) {
    return kind == StepKind::reduce || kind == StepKind::reduce_packets || kind == StepKind::read_reduce;
  }
  static const Operand& first_target(const Draft& draft) {
    return draft.step.operands[static_cast<std::size_t>(draft.step.sources)];
  }
  static bool is_alike(const Operand& a, const Operand& b) {
    return a.buffer == b.buffer && a.first == b.first && a.count == b.count;
  }

  /// x = a + b; x = x + c. When the second does not read x, it overwrites what the first made and is not joined.
  bool joins_reduction(Draft& first, const Draft& second) const {
    if (!reduces(first.step.kind) || first.step.kind != second.step.kind ||
        first.step.reduction != second.step.reduction)
      return false;
    const Operand& sum = first_target(first);
    if (!is_alike(sum, second.step.operands.front()) || !is_alike(sum, first_target(second))) return false;
    Draft others = second;
    others.step.operands.erase(others.step.operands.begin());
    others.step.operands.pop_back();
    others.step.sources -= 1;
    others.step.kind = first.step.kind;
    if (overlaps_any(sum, second)) return false;
    first.step.operands.insert(first.step.operands.begin() + first.step.sources, others.step.operands.begin(),
                               others.step.operands.end());
    first.step.sources += others.step.sources;
    add_channels(first, second);
    return true;
  }
  /// Returns true when the target of a reduction is among its other local sources.
  bool overlaps_any(const Operand& target, const Draft& draft) const {
    const StepShape& shape = shape_of(draft.step.kind);
    const Access written = access_of(target);
    for (std::size_t i = 1; i < static_cast<std::size_t>(draft.step.sources); ++i) {
      const OperandShape what = shape_of_source(shape, i);
      if (what.where == Where::here && what.format == OperandFormat::plain &&
          conflict(written, access_of(draft.step.operands[i])))
        return true;
    }
    return false;
  }
  Access access_of(const Operand& operand) const {
    const BufferPlace place = place_of(header_, rank_, operand.buffer);
    const Index begin = place.first_chunk + operand.first;
    return {place.memory, begin, begin + operand.count, true};
  }

  /// A result that is put to a peer at once.
  static bool joins_put(Draft& first, const Draft& second) {
    const std::optional<StepKind> kind = [&]() -> std::optional<StepKind> {
      if (second.step.channel != ChannelKind::memory || !is_alike(first_target(first), second.step.operands.front()))
        return std::nullopt;
      if (second.step.kind == StepKind::put) {
        if (first.step.kind == StepKind::reduce || first.step.kind == StepKind::reduce_put) return StepKind::reduce_put;
        if (first.step.kind == StepKind::read_reduce || first.step.kind == StepKind::read_reduce_put)
          return StepKind::read_reduce_put;
      }
      if (second.step.kind == StepKind::put_packets) {
        if (first.step.kind == StepKind::reduce_packets || first.step.kind == StepKind::reduce_put_packets)
          return StepKind::reduce_put_packets;
        if (first.step.kind == StepKind::reduce_copy_packets || first.step.kind == StepKind::reduce_copy_put_packets)
          return StepKind::reduce_copy_put_packets;
      }
      return std::nullopt;
    }();
    if (!kind || second.step.operands.size() != 2) return false;
    first.step.kind = *kind;
    first.step.channel = ChannelKind::memory;
    append_targets(first, second);
    return true;
  }

  /// A result that is also written as packets of this rank, and packets that are then sent on.
  static bool joins_packets(Draft& first, const Draft& second) {
    const Operand& source = second.step.operands.front();
    if (first.step.kind == StepKind::reduce_packets && second.step.kind == StepKind::copy_packets) {
      if (!is_alike(first_target(first), source)) return false;
      first.step.kind = StepKind::reduce_copy_packets;
      append_targets(first, second);
      return true;
    }
    const bool has_packets =
        first.step.kind == StepKind::reduce_copy_packets || first.step.kind == StepKind::reduce_copy_put_packets;
    if (!has_packets || second.step.kind != StepKind::read_put_packets || second.step.channel != ChannelKind::memory ||
        second.step.operands.size() != 2)
      return false;
    if (!is_alike(first.step.operands[static_cast<std::size_t>(first.step.sources) + 1], source)) return false;
    first.step.kind = StepKind::reduce_copy_put_packets;
    first.step.channel = ChannelKind::memory;
    append_targets(first, second);
    return true;
  }

  /// A sum over the ranks of a switch channel that goes back to all of them. The joint step has no target of its own:
  /// the old target must be among the places that the step writes.
  bool joins_broadcast(Draft& first, const Draft& second) const {
    if (first.step.kind != StepKind::switch_reduce || second.step.kind != StepKind::switch_broadcast) return false;
    const Operand &sum = first.step.operands.back(), &target = second.step.operands.back();
    if (!is_alike(sum, second.step.operands.front()) || first.step.operands.front().via != target.via) return false;
    const Access kept = access_of(sum), written = access_of(target);
    if (kept.memory != written.memory || kept.begin != written.begin || kept.end != written.end) return false;
    first.step.kind = StepKind::switch_reduce_broadcast;
    first.step.operands.back() = target;
    return true;
  }

  static void append_targets(Draft& first, const Draft& second) {
    first.step.operands.insert(first.step.operands.end(), second.step.operands.begin() + second.step.sources,
                               second.step.operands.end());
    first.step.ids.insert(first.step.ids.end(), second.step.ids.begin(), second.step.ids.end());
    add_channels(first, second);
  }
  static void add_channels(Draft& first, const Draft& second) {
    first.channels.insert(first.channels.end(), second.channels.begin(), second.channels.end());
  }

  const Program& header_;
  tranship::Rank rank_;
};

}  // namespace

void fuse(ProgramDraft& program) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const Fusion fusion(program.header, static_cast<tranship::Rank>(rank));
    for (BlockDraft& block : program.ranks[rank].blocks) block.steps = fusion.fuse(std::move(block.steps));
  }
}

}  // namespace tranship::language
