// Private: programs of the channel language while they are written and lowered. A draft is a step whose operands name
// remote buffers and channels of its rank already; what only the passes know is beside it.
#pragma once

#include <vector>

#include <tranship/program/language.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::language {

struct Draft {
  Step step;
  DataSync sync = DataSync::none;
  /// All channels that the step uses, by id within the rank. `step.ids` has those that plan files name.
  std::vector<std::int32_t> channels;
  std::vector<int> blocks;  ///< that carry it out together
  Index order = 0;          ///< in which the operations of the program were written
  std::vector<Draft> loop;  ///< of a pipeline
  LoopShape shape = {0, 0};
};

struct BlockDraft {
  std::vector<Draft> steps;
};

struct RankDraft {
  std::vector<BlockDraft> blocks;
  std::vector<std::vector<int>> barriers;  ///< the blocks that meet in each
};

struct ProgramDraft {
  Program header;  ///< with ranks, but without their blocks
  Collective collective;
  Options options;
  std::vector<RankDraft> ranks;
  Index order = 0;
  // While a loop is open: what it gathers.
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

/// Chunks of one memory of a rank: input and output of a program in place are one.
struct Access {
  int memory = 0;
  Index begin = 0, end = 0;
  bool writes = false;
};
inline bool conflict(const Access& a, const Access& b) noexcept {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end && (a.writes || b.writes);
}
/// What the step reads and writes of its own rank in plain form. Packets carry their own order.
std::vector<Access> local_accesses(const Program& header, tranship::Rank rank, const Draft& draft);
inline bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) noexcept {
  for (const Access& one : a)
    for (const Access& other : b)
      if (conflict(one, other)) return true;
  return false;
}

// The passes, in order.
void check_pairing(const ProgramDraft& program);
/// Whether there were any to insert.
bool insert_group_barriers(ProgramDraft& program);
void split_for_instances(ProgramDraft& program);  // a part of replication that comes before fusion
void fuse(ProgramDraft& program);
void insert_data_sync(ProgramDraft& program);
void insert_dependencies(ProgramDraft& program);
void replicate(ProgramDraft& program);
/// The end of the way: the lists of each block.
Program numbered(const ProgramDraft& program);

}  // namespace tranship::language
