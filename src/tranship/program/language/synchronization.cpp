#include <utility>

#include <tranship/program/language/draft.hpp>

namespace tranship::language {
namespace {

Draft meeting(const Draft& because) {
  Draft draft;
  draft.step.line = because.step.line;
  draft.blocks = because.blocks;
  draft.order = because.order;
  return draft;
}

std::vector<Draft> with_data_sync(std::vector<Draft> drafts) {
  std::vector<Draft> out;
  out.reserve(drafts.size());
  for (Draft& draft : drafts) {
    draft.loop = with_data_sync(std::move(draft.loop));
    const DataSync sync = std::exchange(draft.sync, DataSync::none);
    if (has(sync, DataSync::before)) out.push_back(meeting(draft));
    out.push_back(std::move(draft));
    if (has(sync, DataSync::after)) out.push_back(meeting(out.back()));
  }
  return out;
}

/// The memory that a block has read and written since its threads last met, as intervals. Neighbouring accesses of one
/// kind are joined, so a block that walks through a buffer keeps few of them.
class SinceMeeting {
 public:
  bool has_conflict(const std::vector<Access>& accesses) const {
    for (const Access& access : accesses)
      for (const Access& earlier : accesses_)
        if (conflict(access, earlier)) return true;
    return false;
  }
  void add(const std::vector<Access>& accesses) {
    for (const Access& access : accesses) {
      if (access.begin == access.end) continue;
      if (!accesses_.empty()) {
        Access& last = accesses_.back();
        if (last.memory == access.memory && last.writes == access.writes && last.end == access.begin) {
          last.end = access.end;
          continue;
        }
      }
      accesses_.push_back(access);
    }
  }
  void clear() { accesses_.clear(); }

 private:
  std::vector<Access> accesses_;
};

std::vector<Draft> with_dependencies(const Program& header, tranship::Rank rank, std::vector<Draft> drafts) {
  std::vector<Draft> out;
  out.reserve(drafts.size());
  SinceMeeting since;
  for (Draft& draft : drafts) {
    draft.loop = with_dependencies(header, rank, std::move(draft.loop));
    if (draft.step.kind == StepKind::nop || draft.step.kind == StepKind::barrier) {
      since.clear();
    } else {
      const std::vector<Access> accesses = local_accesses(header, rank, draft);
      if (since.has_conflict(accesses)) {
        out.push_back(meeting(draft));
        since.clear();
      }
      since.add(accesses);
    }
    out.push_back(std::move(draft));
  }
  return out;
}

}  // namespace

void insert_data_sync(ProgramDraft& program) {
  for (RankDraft& rank : program.ranks)
    for (BlockDraft& block : rank.blocks) block.steps = with_data_sync(std::move(block.steps));
}

void insert_dependencies(ProgramDraft& program) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (BlockDraft& block : program.ranks[rank].blocks)
      block.steps = with_dependencies(program.header, static_cast<tranship::Rank>(rank), std::move(block.steps));
}

}  // namespace tranship::language
