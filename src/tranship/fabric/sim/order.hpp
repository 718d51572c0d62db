// Private: whether accesses to symmetric memory are held apart, by what ranks can know of each other.
//
// A rank knows what it has done itself, what it had learnt when it waited for a signal, fetched a word or met others,
// and nothing else. Of a transfer it knows the end only after a quiet (its own, or that of whoever tells it), after the
// signal that was put with it, or after another transfer to the same rank that a fence holds behind it. Two accesses to
// a byte, one of which writes, must be so that the later one knows the earlier one: whatever order this run has given
// them. (Vector clocks as in Mattern 1989; one entry for what a rank does itself, one for its transfers.)
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

class Order {
 public:
  /// What is known to be over: by rank, its own accesses and its transfers up to a number, and single transfers beyond.
  struct Knowledge {
    std::vector<std::uint64_t> own, transfers;
    std::set<std::pair<Rank, std::uint64_t>> single;
    void join(const Knowledge& other);
  };
  enum class What : std::uint8_t { read, write, update };
  /// One access. A transfer is over when it is known to be; anything else when its call returns.
  struct Access {
    Rank rank = 0;
    What what{};
    const char* name = "";
    bool is_transfer = false;
    std::uint64_t number = 0;  ///< among its rank's own accesses, or its transfers
    std::uint64_t issued = 0;  ///< its rank's own accesses before it
    CallSite where{};
  };
  /// [first, end) of the heap of a rank.
  struct Bytes {
    Rank owner = 0;
    std::size_t first = 0, end = 0;
  };

  explicit Order(int ranks);

  /// The calling rank's access, over when the call returns. Throws `race`.
  void access(Rank rank, What what, const char* name, const Bytes& bytes, CallSite where);
  /// A transfer of the calling rank that accesses the bytes of `all`, and what whoever sees its own end, or a signal
  /// that was put with it, will know. Throws `race`.
  struct Sent {
    std::uint64_t number = 0;
    Knowledge before;  ///< what is over when it begins to arrive
  };
  Sent send(Rank rank, int context, Rank target, std::uint64_t fences, What what, const char* name,
            const std::vector<Bytes>& all, CallSite where);
  /// The transfers of a context so far are over.
  void quiet(Rank rank, int context);

  /// A word has been written, or added to, by somebody who knew `what`.
  void release(Rank owner, std::size_t offset_bytes, const Knowledge& what, bool is_added);
  /// The rank has seen what the word holds.
  void acquire(Rank rank, Rank owner, std::size_t offset_bytes);
  /// What the rank knows.
  const Knowledge& known(Rank rank) const { return ranks_[std::size_t(rank)].known; }
  void learn(Rank rank, const Knowledge& what) { ranks_[std::size_t(rank)].known.join(what); }
  /// Nobody has used these bytes yet.
  void forget(const Bytes& bytes);

 private:
  struct Unfinished {
    std::uint64_t number;
    int context;
    Rank target;
    std::uint64_t fences;
  };
  struct RankState {
    Knowledge known;
    std::uint64_t transfers = 0;
    std::vector<Unfinished> unfinished;
  };
  /// What was last done to [key, end) of a heap.
  struct Cell {
    std::size_t end = 0;
    std::vector<Access> accesses;  ///< the last write first, if there is one; then reads and updates since
  };
  using Heap = std::map<std::size_t, Cell>;

  static bool knows(const Knowledge& who, const Access& what);
  void note(const Access& access, const Knowledge& known, const Bytes& bytes);
  void cut(Heap& heap, std::size_t at);
  [[noreturn]] void refuse(const Access& earlier, const Access& later, const Knowledge& known, const Bytes& bytes);

  std::vector<RankState> ranks_;
  std::vector<Heap> heaps_;
  std::vector<std::map<std::size_t, Knowledge>> words_;
};

}  // namespace tranship
