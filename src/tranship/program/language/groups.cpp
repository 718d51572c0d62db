#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <tranship/program/collective.hpp>
#include <tranship/program/language/draft.hpp>

namespace tranship::language {

std::vector<Access> local_accesses(const Program& header, tranship::Rank rank, const Draft& draft) {
  std::vector<Access> out;
  for (const Draft& inner : draft.loop) {
    const std::vector<Access> all = local_accesses(header, rank, inner);
    out.insert(out.end(), all.begin(), all.end());
  }
  const StepShape& shape = shape_of(draft.step.kind);
  const auto sources = static_cast<std::size_t>(draft.step.sources);
  for (std::size_t i = 0; i < draft.step.operands.size(); ++i) {
    const bool is_source = i < sources;
    const OperandShape what = is_source ? shape_of_source(shape, i) : shape_of_target(shape, i - sources);
    // The place of a switch channel belongs to this rank, too: only ranks of the group use the channel.
    if (what.format != OperandFormat::plain || what.where == Where::peer) continue;
    const Operand& operand = draft.step.operands[i];
    const BufferPlace place = place_of(header, rank, operand.buffer);
    const Index begin = place.first_chunk + operand.first;
    out.push_back({place.memory, begin, begin + operand.count, !is_source});
  }
  return out;
}

namespace {

/// One operation of a rank, with its drafts in the rank's blocks.
struct Operation {
  Index order = 0;
  std::vector<std::pair<int, Draft>> drafts;  ///< by block
  std::vector<Access> accesses;
  std::int32_t shares = 0;
};

/// Returns true when both cut their common memory into the same shares.
bool has_equal_cuts(const Operation& a, const Operation& b) {
  if (a.shares != b.shares) return false;
  const auto is_equal = [](const Access& x, const Access& y) {
    return x.memory == y.memory && x.begin == y.begin && x.end == y.end;
  };
  for (const Access& x : a.accesses)
    for (const Access& y : b.accesses)
      if (conflict(x, y) && !is_equal(x, y)) return false;
  return true;
}

/// For each block, the operations of other blocks that it has seen finish: vector clocks over the blocks of a rank, in
/// the order in which the program was written. Blocks that have met share one clock.
class Order {
 public:
  bool knows(int block, int other, Index order) const {
    if (block == other) return true;
    const auto own = known_.find(block);
    if (own == known_.end()) return false;
    const auto theirs = own->second->find(other);
    return theirs != own->second->end() && theirs->second >= order;
  }
  void meet(const std::vector<int>& blocks, Index now) {
    const auto all = std::make_shared<Clock>();
    const Clock* last = nullptr;
    for (const int block : blocks) {
      const auto own = known_.find(block);
      if (own != known_.end() && std::exchange(last, own->second.get()) != own->second.get()) merge(*all, *own->second);
    }
    for (const int block : blocks) (*all)[block] = now;
    for (const int block : blocks) known_[block] = all;
  }
  void release(std::int32_t semaphore, int block, Index now) {
    Clock& of_semaphore = semaphores_[semaphore];
    if (const auto own = known_.find(block); own != known_.end()) merge(of_semaphore, *own->second);
    of_semaphore[block] = now;
  }
  void acquire(std::int32_t semaphore, int block) {
    const auto of_semaphore = semaphores_.find(semaphore);
    if (of_semaphore == semaphores_.end()) return;
    const auto all = std::make_shared<Clock>(of_semaphore->second);
    if (const auto own = known_.find(block); own != known_.end()) merge(*all, *own->second);
    known_[block] = all;
  }

 private:
  using Clock = std::map<int, Index>;  ///< for each block, its last known operation
  static void merge(Clock& into, const Clock& from) {
    for (const auto& [block, order] : from) {
      Index& known = into.try_emplace(block, order).first->second;
      known = std::max(known, order);
    }
  }

  std::map<int, std::shared_ptr<const Clock>> known_;
  std::map<std::int32_t, Clock> semaphores_;
};

class GroupBarriers {
 public:
  GroupBarriers(ProgramDraft& program, tranship::Rank rank)
      : program_(program), rank_(rank), draft_(program.at(rank)) {}

  /// Returns true when it has inserted a barrier.
  bool insert() {
    std::map<Index, Operation> operations;
    bool has_groups = false;
    for (std::size_t b = 0; b < draft_.blocks.size(); ++b)
      for (Draft& draft : draft_.blocks[b].steps) {
        has_groups = has_groups || draft.step.shares > 1;
        Operation& operation = operations[draft.order];
        operation.order = draft.order;
        operation.shares = draft.step.shares;
        operation.accesses = local_accesses(program_.header, rank_, draft);
        operation.drafts.emplace_back(static_cast<int>(b), draft);
      }
    if (!has_groups) return false;
    for (BlockDraft& block : draft_.blocks) block.steps.clear();
    for (auto& [order, operation] : operations) {
      meet_before(operation);
      for (auto& [block, draft] : operation.drafts) {
        follow(block, draft);
        draft_.blocks[static_cast<std::size_t>(block)].steps.push_back(draft);
      }
      if (!operation.accesses.empty()) past_.push_back(std::move(operation));
    }
    return has_inserted_;
  }

 private:
  void meet_before(const Operation& operation) {
    std::vector<int> blocks;
    for (const Operation& earlier : past_) {
      if (std::max(operation.shares, earlier.shares) < 2 || !conflict(operation.accesses, earlier.accesses)) continue;
      const bool are_apart = has_equal_cuts(operation, earlier);
      for (const auto& [block, draft] : operation.drafts)
        for (const auto& [other, theirs] : earlier.drafts)
          if (!(are_apart && draft.step.share != theirs.step.share) && !order_.knows(block, other, earlier.order))
            blocks.insert(blocks.end(), {block, other});
    }
    if (blocks.empty()) return;
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    has_inserted_ = true;
    Draft barrier;
    barrier.step.kind = StepKind::barrier;
    barrier.step.line = operation.drafts.front().second.step.line;
    barrier.step.participants = static_cast<std::int32_t>(blocks.size());
    barrier.order = operation.order;
    barrier.blocks = blocks;
    const auto at = std::find(draft_.barriers.begin(), draft_.barriers.end(), blocks);
    barrier.step.ids = {static_cast<std::int32_t>(at - draft_.barriers.begin())};
    if (at == draft_.barriers.end()) draft_.barriers.push_back(blocks);
    for (const int block : blocks) draft_.blocks[static_cast<std::size_t>(block)].steps.push_back(barrier);
    order_.meet(blocks, operation.order);
  }

  void follow(int block, const Draft& draft) {
    if (draft.step.kind == StepKind::barrier && block == draft.blocks.back()) order_.meet(draft.blocks, draft.order);
    for (const std::int32_t id : draft.step.ids) {
      if (draft.step.kind == StepKind::release) order_.release(id, block, draft.order);
      if (draft.step.kind == StepKind::acquire) order_.acquire(id, block);
    }
  }

  ProgramDraft& program_;
  tranship::Rank rank_;
  RankDraft& draft_;
  Order order_;
  std::vector<Operation> past_;
  bool has_inserted_ = false;
};

}  // namespace

bool insert_group_barriers(ProgramDraft& program) {
  bool has_inserted = false;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    has_inserted |= GroupBarriers(program, static_cast<tranship::Rank>(rank)).insert();
  return has_inserted;
}

}  // namespace tranship::language
