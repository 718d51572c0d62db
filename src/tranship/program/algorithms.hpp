// Ready programs of the common collective operations, for any number of ranks. Each is written in the channel language
// (program/language.hpp), and can be proved, written to a plan file and run like any other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct AlgorithmOptions {
  Rank ranks = 0;
  /// Ranks of one node reach each other's memory; "hierarchical" programs need it, and it divides `ranks`. 0
  /// means all ranks; programs that have no nodes refuse any other value.
  Rank ranks_per_node = 0;
  Rank root = 0;  ///< of broadcast and reduce
  bool in_place = false;
  Index instances = 1;  ///< how often everything is replicated: for machines with many thread blocks
};

struct Algorithm {
  std::string_view name;        ///< such as "allreduce/ring"
  std::string_view collective;  ///< such as "allreduce"
  std::string_view summary;     ///< one line: what it does, and where it is good
  bool has_packets = false;     ///< for short messages: data carries its own flags
  bool has_nodes = false;       ///< takes `ranks_per_node`
  bool can_be_in_place = false;
};

/// All of them, grouped by collective.
const std::vector<Algorithm>& algorithms();

/// Makes a program. Throws Error(invalid_use) for a name that there is not (the message lists those of the collective),
/// and for options that the algorithm cannot have.
Program make_program(std::string_view name, const AlgorithmOptions& options);

}  // namespace tranship
