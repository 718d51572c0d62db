// Private: the state of each unit of memory in a verification: which steps have accessed it, and its value.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include <tranship/program/happens_before.hpp>
#include <tranship/program/symbolic_value.hpp>

namespace tranship::verification {

/// An action: the actor's timeline and time, and the step in the program.
struct Stamp {
  Timeline timeline = -1;
  Time time = 0;
  int block = -1;  ///< the block, numbered over all ranks, that asked for it; -1: the host
  std::int32_t step = -1;
  std::int32_t launch = 0;
  bool by_packets = false;  ///< for an access: each thread takes a packet at a time
  // For an access: its first unit, and the number of units.
  Index first = 0, units = 0;
};

struct LinkNode;
using Links = std::shared_ptr<const LinkNode>;
/// Steps whose unit e + `between` was executed before unit e of the owner of these links, because packets led from one
/// to the other, unit by unit. A node is one such step together with the nodes that it points to; `of_writer` has the
/// links of the packets' writer, displaced by `between`.
struct LinkNode {
  Timeline timeline = -1;
  Time time = 0;
  Index between = 0;
  Links of_writer, other;
  int depth = 0;
};
/// Links of units that follow packets of `writer`, and thereby the links of that writer.
Links followed(const Stamp& writer, const Links& of_writer, Index between);
Links joined(const Links& a, const Links& b);
/// Returns true when `before` is one of the links. Returns false when that takes more than some thousands of nodes to
/// see.
bool leads_to(const Links& links, const Stamp& before, Index between, Index& work);

/// A write of packets, as its readers learn of it.
struct PacketWrite {
  Snapshot of_all;   ///< learned from all of its packets
  Snapshot of_each;  ///< learned from any of them: the launch of the writer has begun
  Index units = 0;
};

/// Consecutive units of a memory with one history.
struct Cell {
  Index end = 0;
  Stamp writer;
  std::vector<Stamp> reads;  ///< since the last write; the last reads of each timeline
  Value value;
  std::vector<Stamp> twins;  ///< writes of equal packets by others
  int packets_of = -1;       ///< launch of the packets that it holds; -1: plain data
  std::shared_ptr<const PacketWrite> packets;
  Links links;
};

class Memory {
 public:
  /// Counts in `stamps` the stamps that are copied when cells are cut.
  Memory(Index units, Index& stamps) : stamps_(&stamps) {
    if (units > 0) cells_.emplace(0, Cell{.end = units});
  }
  /// Calls f(begin, cell) for the cells of [begin, end), which are cut at both ends.
  template <class F>
  void visit(Index begin, Index end, F&& f) {
    if (begin >= end) return;
    auto at = cut(begin);
    cut(end);
    for (; at != cells_.end() && at->first < end; ++at) f(at->first, at->second);
  }
  /// Returns true when f(cell) is true for all cells that overlap [begin, end).
  template <class F>
  bool all(Index begin, Index end, F&& f) const {
    if (begin >= end) return true;
    auto at = cells_.upper_bound(begin);
    for (at = at == cells_.begin() ? at : std::prev(at); at != cells_.end() && at->first < end; ++at)
      if (at->second.end > begin && !f(at->second)) return false;
    return true;
  }

 private:
  std::map<Index, Cell>::iterator cut(Index at);

  std::map<Index, Cell> cells_;
  Index* stamps_;
};

}  // namespace tranship::verification
