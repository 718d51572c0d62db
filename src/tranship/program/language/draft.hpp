// Private: programs of the channel language while they are written and lowered. A Draft is a step whose operands
// already name remote buffers and channels of its rank, with what only the passes need beside it.
#pragma once

#include <vector>

#include <tranship/program/language.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::language {

struct Draft {
  Step step;
  DataSync sync = DataSync::none;
  /// All channels that the step uses, by id within the rank. `step.ids` has only those that plan files name.
  std::vector<std::int32_t> channels;
  std::vector<int> blocks;  ///< the blocks that carry it out together
  Index order = 0;          ///< position of the operation in the order of writing
  std::vector<Draft> loop;  ///< the steps of a pipeline
  LoopShape shape = {0, 0};
};

struct BlockDraft {
  std::vector<Draft> steps;
};

struct RankDraft {
  std::vector<BlockDraft> blocks;
  std::vector<std::vector<int>> barriers;  ///< the blocks that meet in each barrier
};

struct ProgramDraft {
  Program header;  ///< with its ranks, but without their blocks
  Collective collective;
  Options options;
  std::vector<RankDraft> ranks;
  Index order = 0;
  // While a loop is open: the operations gathered for it.
  bool in_loop = false;
  LoopShape loop_shape = {0, 0};
  struct Gathered {
    tranship::Rank rank;
    int block;
    Draft draft;
  };
  std::vector<Gathered> gathered;

  RankProgram& resources(tranship::Rank rank) { return header.ranks[static_cast<std::size_t>(rank)]; }
  const RankProgram& resources(tranship::Rank rank) const { return header.ranks[static_cast<std::size_t>(rank)]; }
  RankDraft& at(tranship::Rank rank) { return ranks[static_cast<std::size_t>(rank)]; }
};

/// Chunks of one memory of a rank. Input and output of a program in place are one memory.
struct Access {
  int memory = 0;
  Index begin = 0, end = 0;
  bool writes = false;
};
inline bool conflict(const Access& a, const Access& b) noexcept {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end && (a.writes || b.writes);
}
/// The plain data that the step reads and writes on its own rank. Packets are left out, because they carry their own
/// order.
std::vector<Access> local_accesses(const Program& header, tranship::Rank rank, const Draft& draft);
inline bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) noexcept {
  for (const Access& one : a)
    for (const Access& other : b)
      if (conflict(one, other)) return true;
  return false;
}

// The passes, in order.
void check_pairing(const ProgramDraft& program);
/// Returns true when it has inserted a barrier.
bool insert_group_barriers(ProgramDraft& program);
void split_for_instances(ProgramDraft& program);  // the part of replication that precedes fusion
void fuse(ProgramDraft& program);
void insert_data_sync(ProgramDraft& program);
void insert_dependencies(ProgramDraft& program);
void replicate(ProgramDraft& program);
/// Last: makes the steps and the channel lists of each block.
Program numbered(const ProgramDraft& program);

}  // namespace tranship::language
