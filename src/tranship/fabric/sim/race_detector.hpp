// Private: RaceDetector: checks that accesses to memory are ordered, by what ranks can know of each other.
//
// A rank knows what it has done itself, and what it has learnt by waiting for a signal, fetching a word or meeting
// others. It knows the end of a transfer only after a quiet (its own, or that of a rank that has told it), after the
// signal that was put with the transfer, after another transfer to the same rank that a fence orders behind it, or when
// it has seen all bytes that the transfer writes; a rank that has seen some of them knows of these. A non-blocking
// transfer also accesses its local memory until its end is known. Of two accesses to a byte, at least one of which
// writes, the later one must know the earlier one, in whatever order this run has made them. Only atomics on the same
// word need no order. (Vector clocks as in Mattern 1989.)
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/byte_map.hpp>
#include <tranship/base/call_site.hpp>
#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/times.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/sim/transfer_record.hpp>

namespace tranship {

class RaceDetector {
 public:
  /// `fetch` reads and `update` writes a word atomically.
  enum class What : std::uint8_t { read, write, fetch, update, free };
  /// The memory of a transfer that is accessed.
  enum class Side : std::uint8_t { peer, source, target, value };
  /// An access to memory, as messages describe it.
  struct Use {
    What what{};
    const char* name = "";
    CallSite where{};
    Side side = Side::peer;
    WordKind kind{};                   ///< of a word that is accessed atomically
    const char* completion = nullptr;  ///< the call that completes it; nullptr if a quiet does
    const char* of = nullptr;          ///< name of the memory, valid as long as the detector; nullptr if none
    std::size_t of_first = 0;          ///< where that memory begins
    const void* code = nullptr;        ///< if set, replaces `where`: address after the instruction; atomics of any kind
  };
  /// Bytes [first, end) of the symmetric heap of `owner`, or addresses of memory that no other rank can reach.
  struct Bytes {
    enum class Memory : std::uint8_t { symmetric, own };
    Rank owner = 0;
    std::size_t first = 0, end = 0;
    Memory memory = Memory::symmetric;
  };

  enum class Fencing : std::uint8_t {
    ordered,    ///< puts and updates
    unordered,  ///< transfers that read at their peer
  };
  struct Accesses {
    Use use;
    std::vector<Bytes> bytes;
  };

  explicit RaceDetector(int ranks);

  /// Returns a copy of a name that lives as long as the detector.
  const char* kept(const char* name) { return names_.emplace(name).first->c_str(); }

  /// Records accesses of the calling rank that are over when the call returns. Throws `race`.
  void access(Rank rank, const Accesses& all);
  /// Records an atomic that waits for its value, which fences order. Returns what is over when it is made.
  Told access(Rank rank, const FencedWay& way, const Accesses& all);
  /// Records a transfer of the calling rank: its accesses at the target, and to local memory until it is over. If
  /// `put_bytes` is not 0, parts of it can be seen. Throws `race`.
  struct Sent {
    TransferRecord::Ref transfer;
    Told before;  ///< what is over before it, for ranks that see any of it
  };
  Sent send(Rank rank, const FencedWay& way, Fencing fencing, std::size_t put_bytes, const Accesses& remote,
            const Accesses* local);
  /// The earlier transfers of a context are over, and the values that they have fetched may be used.
  void quiet(Rank rank, int context, std::optional<Rank> target, CallSite where);
  /// Memory that a transfer reads, with its content when the transfer began.
  class Held {
   public:
    virtual ~Held() = default;
    virtual bool is_unchanged() const = 0;
  };
  /// A transfer that reads memory of its rank until the rank knows that it is over. The memory is compared when the
  /// rank learns of the end, to find stores that were not declared.
  struct Source {
    TransferRecord::Ref transfer;
    Accesses read;
    std::unique_ptr<const Held> held;
  };
  void watch(Rank rank, Source source);
  /// Begin and end an operation that accesses memory of its rank by any means in between. It orders nothing for other
  /// ranks, and no quiet completes it. Throws `race`.
  std::uint64_t begin(Rank rank, const std::vector<Accesses>& all);
  void end(Rank rank, std::uint64_t number);
  /// Calls f(first, end) for memory that no other rank can reach and that operations of the rank may access now.
  template <class F>
  void for_each_in_use(Rank rank, F&& f) const {
    const Memory& own = ranks_[std::size_t(rank)].own;
    own.cells.for_each([&](std::size_t first, std::size_t end, const Cell&) { f(first, end); });
    for (const HeldUse& use : own.uses)
      for (const auto& [first, end] : use.stretches) f(first, end);
  }
  /// Records accesses of the calling rank in a place that cannot throw.
  void note_late(Rank rank, const Accesses& all) noexcept;
  /// The first race of the rank that could not be thrown.
  const std::optional<Error>& late_error(Rank rank) const { return ranks_[std::size_t(rank)].late_error; }

  /// `replaces` after the bytes were written, `joins` after they were updated.
  enum class Release : std::uint8_t { replaces, joins };
  void release(const Bytes& bytes, const std::shared_ptr<Told>& what, Release how);
  /// The rank has seen the content of the bytes.
  void acquire(Rank rank, const Bytes& bytes);
  /// The rank sees the content of the bytes at the next quiet of the context.
  void acquire_at_quiet(Rank rank, int context, const Bytes& bytes);
  /// The clock of what the rank knows.
  const Times& known(Rank rank) const { return ranks_[std::size_t(rank)].known; }
  void learn(Rank rank, const Times& what);
  /// Returns the knowledge that a word passes on which the rank stores itself.
  std::shared_ptr<Told> told_by(Rank rank) const;
  /// The symmetric bytes are allocated anew.
  void forget(const Bytes& bytes);

 private:
  /// One access. An access of a transfer is over when the transfer is known to be; any other when its call returns.
  struct Access {
    Use use;
    Rank rank = 0;
    TransferRecord::Ref transfer;
    Fencing fencing = Fencing::unordered;
    Time time = 0;  ///< of its rank, when it was made
    std::size_t word_first = 0, word_end = 0;
  };
  /// The knowledge at an access: that of its rank, and the transfers that a fence orders before it.
  struct View {
    const Times& known;
    Rank rank = 0;
    const FencedWay* way = nullptr;
  };
  /// The latest accesses to some bytes: the last write first, if there is one, then reads and updates since.
  using Cell = std::vector<Access>;
  using Stretch = std::pair<std::size_t, std::size_t>;
  /// A use that has begun, with its stretches [first, end) in order, which do not touch. It is kept apart from the
  /// cells, which would need one entry for each of its stretches.
  struct HeldUse {
    Access access;
    std::vector<Stretch> stretches;
    std::size_t first() const { return stretches.front().first; }
    std::size_t end() const { return stretches.back().second; }
  };
  struct Memory {
    ByteMap<Cell> cells;
    std::vector<HeldUse> uses;
    std::size_t uses_max = 64;  ///< number of uses at which they are next searched for old ones
  };
  /// The transfers of one context to one target that their rank has not completed.
  struct Way {
    std::deque<TransferRecord::Ref> open;
    TransferRecord::Ref last_ordered;
  };
  /// Knowledge that the rank gains later.
  struct Sight {
    std::shared_ptr<Told> told;
    std::size_t first = 0, end = 0;
  };
  struct RankState {
    Times known;
    Time time = 0;
    std::map<std::pair<int, Rank>, Way> ways;           ///< by context and target
    std::map<std::uint64_t, TransferRecord::Ref> uses;  ///< uses that have begun
    std::uint64_t uses_begun = 0;
    std::map<std::pair<int, Rank>, std::vector<Sight>> fetched;  ///< by context and target, not yet usable
    Memory own;                                                  ///< local memory of transfers
    std::size_t own_max = 64;                                    ///< size at which it is next searched for old entries
    std::vector<Source> sources;                                 ///< in use, as far as the rank knows
    std::optional<Error> late_error;
  };
  using Words = ByteMap<std::shared_ptr<Told>>;

  static bool knows(const View& who, const Access& what, const Bytes& part);
  static bool conflict(const Access& earlier, const Access& later);
  /// Advances the time of the rank and returns it.
  Moment next_moment(Rank rank);
  Access own_access(Rank rank, const Use& use);
  void note(Access access, const View& view, const std::vector<Bytes>& all);
  void note_use(const Access& access, const View& view, std::vector<Bytes> all);
  void compare(const HeldUse& use, const Memory& held, const View& view, const Bytes& memory) const;
  /// Compares a use with an access to stretches of the same memory, in order.
  void compare(const HeldUse& earlier, const Access& access, const View& view, std::span<const Stretch> stretches,
               const Bytes& memory) const;
  void forget_over(Memory& memory) const;
  Memory& memory_of(const Bytes& bytes) {
    const auto owner = std::size_t(bytes.owner);
    return bytes.memory == Bytes::Memory::own ? ranks_[owner].own : heaps_[owner];
  }
  /// Drops local memory of transfers that the rank knows to be complete, once there is much of it.
  static void forget_known(RankState& mine);
  void compare(const Cell& cell, const Access& access, const View& view, const Bytes& bytes) const;
  /// Returns what the bytes tell that the rank does not know yet.
  std::vector<Sight> news_in(const Bytes& bytes, Rank rank) const;
  void learn(Rank rank, const std::vector<Sight>& sights);
  bool is_unwritten_since(const Source& source) const;
  /// Releases the sources of transfers whose end the rank now knows, from its own `quiet` or, if that is nullptr, from
  /// a peer.
  void release_sources(Rank rank, const CallSite* quiet = nullptr);
  [[noreturn]] void refuse(const Access& earlier, const Access& later, const View& view, const Bytes& bytes) const;

  std::vector<RankState> ranks_;
  std::vector<Memory> heaps_;
  std::vector<Words> words_;
  std::set<std::string> names_;  // of memory, in uses
};

}  // namespace tranship
