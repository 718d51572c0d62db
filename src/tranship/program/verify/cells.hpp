// Private: What a verification knows of each unit of memory: which steps have accessed it, and what it holds.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include <tranship/program/happens_before.hpp>
#include <tranship/program/symbolic_value.hpp>

namespace tranship::verification {

/// Who did something, and where it stands in the program.
struct Stamp {
  Timeline timeline = -1;
  Time time = 0;
  int block = -1;  ///< the block that asked for it: of all ranks, or -1 for the host
  std::int32_t step = -1;
  std::int32_t launch = 0;
  bool by_packets = false;  ///< of an access: whether each thread takes a packet at a time
  // Of an access: where its first unit lies, of how many.
  Index first = 0, units = 0;
};

struct LinkNode;
using Links = std::shared_ptr<const LinkNode>;
/// Steps whose unit e + `between` has been executed before unit e of what has the links: packets have led from one to
/// the other, unit by unit. A node is one of them and those of its parents; `of_writer` are those that the writer of
/// packets had, displaced as it is.
struct LinkNode {
  Timeline timeline = -1;
  Time time = 0;
  Index between = 0;
  Links of_writer, other;
  int depth = 0;
};
/// Those of units that had been written in this way, and of them.
Links followed(const Stamp& writer, const Links& of_writer, Index between);
Links joined(const Links& a, const Links& b);
/// Whether `before` is one of them. Says no where that takes more than some thousands of nodes.
bool leads_to(const Links& links, const Stamp& before, Index between, Index& work);

/// A write of packets, as their readers learn of it.
struct PacketWrite {
  Snapshot of_all;   ///< learned with all of its packets
  Snapshot of_each;  ///< learned with any of them: that the launch of the writer has begun
  Index units = 0;
};

/// Some units of a memory, which have been accessed alike.
struct Cell {
  Index end = 0;
  Stamp writer;
  std::vector<Stamp> reads;  ///< since it was written, the last ones of each timeline
  Value value;
  std::vector<Stamp> twins;  ///< those that have written the same again
  int packets_of = -1;       ///< the launch of the packets that it holds
  std::shared_ptr<const PacketWrite> packets;
  Links links;
};

class Memory {
 public:
  /// Adds to `stamps` what cutting it into cells copies.
  Memory(Index units, Index& stamps) : stamps_(&stamps) {
    if (units > 0) cells_.emplace(0, Cell{.end = units});
  }
  /// Calls f(begin, cell) for what lies in [begin, end), cut at both.
  template <class F>
  void visit(Index begin, Index end, F&& f) {
    if (begin >= end) return;
    auto at = cut(begin);
    cut(end);
    for (; at != cells_.end() && at->first < end; ++at) f(at->first, at->second);
  }
  /// Whether f(cell) of all cells that lie in [begin, end) in part.
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
