// Ready programs of the common collective operations, for 1 to 1,024 ranks. Each is written in the channel language
// (program/language.hpp) and can be proved, written to a plan file and run like any other. algorithms/ has their
// sources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct AlgorithmOptions {
  Rank ranks = 0;
  /// Ranks of one node reach each other's memory. Only "hierarchical" programs use it, and it must divide `ranks`. 0:
  /// all ranks. Programs without nodes refuse any other value.
  Rank ranks_per_node = 0;
  Rank root = 0;  ///< root of broadcast and reduce
  bool in_place = false;
  Index instances = 1;  ///< copies of the whole program, each on its part of the data: for machines with many thread
                        ///< blocks
};

struct Algorithm {
  std::string_view name;        ///< for example "allreduce/ring"
  std::string_view collective;  ///< for example "allreduce"
  std::string_view summary;     ///< one line: how it works, and where it is good
  bool has_packets = false;     ///< for short messages: data carries its own flags
  bool has_nodes = false;       ///< uses `ranks_per_node`
  bool can_be_in_place = false;
};

/// All algorithms, grouped by collective.
const std::vector<Algorithm>& algorithms();

/// Makes a program. Throws `invalid_use` for an unknown name, with a list of the algorithms of that collective, and for
/// options that the algorithm does not allow.
Program make_program(std::string_view name, const AlgorithmOptions& options);

}  // namespace tranship
