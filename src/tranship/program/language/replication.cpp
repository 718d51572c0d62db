#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/language/draft.hpp>

namespace tranship::language {
namespace {

struct Instance {
  Index number;
  Index count;
  ReplicationPolicy policy;

  std::int32_t id(std::int32_t id) const { return static_cast<std::int32_t>(id * count + number); }
};

bool can_be_shared(StepKind kind) {
  const StepShape& shape = shape_of(kind);
  return shape.channel == StepChannel::none || shape.channel == StepChannel::memory ||
         shape.channel == StepChannel::wire;
}

void shift(Draft& draft, const Instance& instance, int block) {
  for (Draft& inner : draft.loop) shift(inner, instance, block);
  for (std::int32_t& id : draft.step.ids) id = instance.id(id);
  for (std::int32_t& id : draft.channels) id = instance.id(id);
  const StepShape& shape = shape_of(draft.step.kind);
  const auto sources = static_cast<std::size_t>(draft.step.sources);
  for (std::size_t i = 0; i < draft.step.operands.size(); ++i) {
    const bool is_source = i < sources;
    const OperandShape what = is_source ? shape_of_source(shape, i) : shape_of_target(shape, i - sources);
    Operand& operand = draft.step.operands[i];
    if (instance.policy == ReplicationPolicy::interleaved)
      operand.first = operand.first * instance.count + instance.number * operand.count;
    if (what.where == Where::group) operand.via = instance.id(operand.via);
  }
  if (instance.policy == ReplicationPolicy::none && !draft.step.operands.empty()) {
    if (!can_be_shared(draft.step.kind) || draft.step.channel == ChannelKind::port)
      throw_error(ErrorCode::invalid_use,
                  "{} without replication share the bytes of each step, and a {} of block {} cannot be shared",
                  amount(instance.count, "instance"), shape.word, block);
    const Index shares = std::max(draft.step.shares, 1);
    draft.step.share = static_cast<std::int32_t>(draft.step.share * instance.count + instance.number);
    draft.step.shares = static_cast<std::int32_t>(shares * instance.count);
  }
}

/// The ranges of chunks, by rank and memory, that operations name.
class NamedRanges {
 public:
  void add(const Program& header, tranship::Rank rank, const Operand& operand) {
    if (operand.count == 0) return;
    const BufferPlace place = place_of(header, rank, operand.buffer);
    const Index begin = place.first_chunk + operand.first;
    ranges_[{rank, place.memory}].emplace(begin, begin + operand.count);
  }
  /// Returns true when two ranges overlap without being equal.
  bool are_mixed() const {
    for (const auto& [memory, ranges] : ranges_) {
      Index end = 0;
      for (const auto& range : ranges) {
        if (range.first < end) return true;
        end = range.second;
      }
    }
    return false;
  }

 private:
  std::map<std::pair<tranship::Rank, int>, std::set<std::pair<Index, Index>>> ranges_;
};

void add_ranges(const ProgramDraft& program, tranship::Rank rank, const std::vector<Draft>& drafts,
                NamedRanges& ranges) {
  const RankProgram& resources = program.resources(rank);
  for (const Draft& draft : drafts) {
    add_ranges(program, rank, draft.loop, ranges);
    const StepShape& shape = shape_of(draft.step.kind);
    const auto sources = static_cast<std::size_t>(draft.step.sources);
    for (std::size_t i = 0; i < draft.step.operands.size(); ++i) {
      const Operand& operand = draft.step.operands[i];
      const auto via = static_cast<std::size_t>(operand.via);
      switch ((i < sources ? shape_of_source(shape, i) : shape_of_target(shape, i - sources)).where) {
        case Where::here:
          ranges.add(program.header, rank, operand);
          break;
        case Where::peer:
          ranges.add(program.header, resources.remote_buffers[via].rank, operand);
          break;
        case Where::group:
          for (const tranship::Rank peer : resources.switches[via].ranks) ranges.add(program.header, peer, operand);
      }
    }
  }
}

std::vector<Draft> in_single_chunks(const std::vector<Draft>& drafts) {
  std::vector<Draft> out;
  for (const Draft& draft : drafts) {
    // A loop states how many chunks its steps name, so those are left as they are.
    const Index chunks = draft.step.operands.empty() ? 1 : draft.step.operands.front().count;
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      Draft& single = out.emplace_back(draft);
      for (Operand& operand : single.step.operands) operand = {operand.buffer, operand.via, operand.first + chunk, 1};
      // A port carries out requests in order, so the last one signals for all.
      if (signals(single.step.kind) && chunk + 1 < chunks) single.step.kind = StepKind::put;
    }
  }
  return out;
}

template <class T>
std::vector<T> repeated(const std::vector<T>& values, Index count) {
  std::vector<T> out;
  out.reserve(values.size() * static_cast<std::size_t>(count));
  for (const T& value : values) out.insert(out.end(), static_cast<std::size_t>(count), value);
  return out;
}

}  // namespace

// Instance k of N gets part k of what an operation names. Where one operation names two chunks and another only the
// first of them, these parts would differ; then every operation is split into single chunks.
void split_for_instances(ProgramDraft& program) {
  if (program.options.instances == 1 || program.options.replication == ReplicationPolicy::none) return;
  NamedRanges ranges;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const BlockDraft& block : program.ranks[rank].blocks)
      add_ranges(program, static_cast<tranship::Rank>(rank), block.steps, ranges);
  if (!ranges.are_mixed()) return;
  for (RankDraft& rank : program.ranks)
    for (BlockDraft& block : rank.blocks) block.steps = in_single_chunks(block.steps);
}

void replicate(ProgramDraft& program) {
  const Index count = program.options.instances;
  if (count == 1) return;
  constexpr Index numbers_max = 1 << 24;  // of channels or blocks; as many as a file of this size can hold
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankProgram& resources = program.header.ranks[rank];
    const auto largest = std::max({resources.peers[0].size(), resources.peers[1].size(), resources.switches.size(),
                                   resources.semaphores.size(), program.ranks[rank].blocks.size()});
    if (static_cast<Index>(largest) > numbers_max / count)
      throw_error(ErrorCode::invalid_use, "{} of {} or channels each exceed the limit of {}", amount(count, "instance"),
                  amount(largest, "block"), numbers_max / std::max<Index>(1, static_cast<Index>(largest)));
    if (program.options.replication == ReplicationPolicy::interleaved)
      for (Index& chunks : resources.chunks) chunks = checked_multiply(chunks, count);
    for (auto& peers : resources.peers) peers = repeated(peers, count);
    resources.switches = repeated(resources.switches, count);
    resources.semaphores = repeated(resources.semaphores, count);
    std::vector<BlockDraft> blocks;
    int id = 0;
    for (const BlockDraft& block : program.ranks[rank].blocks) {
      for (Index number = 0; number < count; ++number) {
        blocks.push_back(block);
        for (Draft& draft : blocks.back().steps) shift(draft, {number, count, program.options.replication}, id);
      }
      ++id;
    }
    program.ranks[rank].blocks = std::move(blocks);
  }
}

namespace {

void list(std::vector<std::int32_t>& ids, std::int32_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

Step numbered(const Draft& draft, ThreadBlock& block) {
  const auto kind = static_cast<std::size_t>(draft.step.channel);
  for (const std::int32_t id : draft.channels) list(block.channels[kind], id);
  const StepShape& shape = shape_of(draft.step.kind);
  const auto sources = static_cast<std::size_t>(draft.step.sources);
  for (std::size_t i = 0; i < draft.step.operands.size(); ++i) {
    const bool is_source = i < sources;
    const OperandShape what = is_source ? shape_of_source(shape, i) : shape_of_target(shape, i - sources);
    if (what.where == Where::peer) list(block.remote_buffers[kind], draft.step.operands[i].via);
  }
  Step step = draft.step;
  if (draft.step.kind == StepKind::pipeline) {
    Pipeline loop{.unit_bytes = draft.shape.unit_bytes, .chunks = draft.shape.chunks, .steps = {}};
    for (const Draft& inner : draft.loop) loop.steps.push_back(numbered(inner, block));
    step.pipeline = std::make_shared<const Pipeline>(std::move(loop));
  }
  return step;
}

}  // namespace

Program numbered(const ProgramDraft& program) {
  Program out = program.header;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const BlockDraft& draft : program.ranks[rank].blocks) {
      ThreadBlock& block = out.ranks[rank].blocks.emplace_back();
      for (const Draft& step : draft.steps) block.steps.push_back(numbered(step, block));
    }
  return out;
}

}  // namespace tranship::language
