// Private: whether accesses to memory are held apart, by what ranks can know of each other.
//
// A rank knows what it has done itself, what it had learnt when it waited for a signal, fetched a word or met others,
// and nothing else. It knows the end of a transfer only after a quiet (its own, or that of a rank that has told it),
// after the signal that was put with it, after another transfer to the same rank that a fence holds behind it, or when
// it has seen all that the transfer writes: who has seen a part knows of that part. A transfer that does not block
// accesses its local memory, too, until it is known to be over. Two accesses to a byte, one of which writes, must be so
// that the later one knows the earlier one, in whatever order this run has made them; only atomics of one word are held
// apart by being atomic. (Vector clocks as in Mattern 1989.)
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
  /// Which memory of a transfer is meant.
  enum class Side : std::uint8_t { peer, source, target, value };
  /// What is done to memory, as messages name it.
  struct Use {
    What what{};
    const char* name = "";
    CallSite where{};
    Side side = Side::peer;
    WordKind kind{};                   ///< of a word that is accessed atomically
    const char* completion = nullptr;  ///< the call that completes it; nullptr of what a quiet completes
    const char* of = nullptr;          ///< what the bytes are of, as long as the detector; nullptr: it has no name
    std::size_t of_first = 0;          ///< where that begins
    const void* code = nullptr;        ///< in place of `where`, behind the instruction; its atomics are of any kind
  };
  /// Bytes [first, end) of the symmetric heap of `owner`, or addresses of memory that no other rank reaches.
  struct Bytes {
    enum class Memory : std::uint8_t { symmetric, own };
    Rank owner = 0;
    std::size_t first = 0, end = 0;
    Memory memory = Memory::symmetric;
  };

  enum class Fencing : std::uint8_t {
    ordered,    ///< puts and updates
    unordered,  ///< what reads at its peer
  };
  struct Accesses {
    Use use;
    std::vector<Bytes> bytes;
  };

  explicit RaceDetector(int ranks);

  /// The same name, as long as the detector.
  const char* kept(const char* name) { return names_.emplace(name).first->c_str(); }

  /// The calling rank's accesses, over when the call returns. Throws `race`.
  void access(Rank rank, const Accesses& all);
  /// The same of an atomic that waits for its value: fences order it. Returns what is over when it is made.
  Told access(Rank rank, const FencedWay& way, const Accesses& all);
  /// A transfer of the calling rank: what it accesses at its target, and of local memory until it is over. It can be
  /// seen in parts where `put_bytes` is not 0. Throws `race`.
  struct Sent {
    TransferRecord::Ref transfer;
    Told before;  ///< what is over before it, for those who see any of it
  };
  Sent send(Rank rank, const FencedWay& way, Fencing fencing, std::size_t put_bytes, const Accesses& remote,
            const Accesses* local);
  /// The transfers of a context so far are over, and what they have fetched may be looked at.
  void quiet(Rank rank, int context, std::optional<Rank> target, CallSite where);
  /// Memory that a transfer reads, and what it held when that began.
  class Held {
   public:
    virtual ~Held() = default;
    virtual bool is_unchanged() const = 0;
  };
  /// A transfer that reads memory of its rank until the rank knows that it is over. The memory is looked at when the
  /// rank learns of the end, for a store that is not announced.
  struct Source {
    TransferRecord::Ref transfer;
    Accesses read;
    std::unique_ptr<const Held> held;
  };
  void watch(Rank rank, Source source);
  /// An operation that accesses memory of its rank from begin() to end(), by whichever means. It orders nothing for
  /// others, and no quiet completes it. Throws `race`.
  std::uint64_t begin(Rank rank, const std::vector<Accesses>& all);
  void end(Rank rank, std::uint64_t number);
  /// Calls f(first, end) for the memory that no other rank reaches and that operations of the rank may access now.
  template <class F>
  void for_each_in_use(Rank rank, F&& f) const {
    const Memory& own = ranks_[std::size_t(rank)].own;
    own.cells.for_each([&](std::size_t first, std::size_t end, const Cell&) { f(first, end); });
    for (const HeldUse& use : own.uses)
      for (const auto& [first, end] : use.stretches) f(first, end);
  }
  /// An access of the calling rank where nothing can be thrown.
  void note_late(Rank rank, const Accesses& all) noexcept;
  /// What the rank has done wrong where nothing could be thrown.
  const std::optional<Error>& late_error(Rank rank) const { return ranks_[std::size_t(rank)].late_error; }

  /// The bytes have been written or, where `joins`, updated.
  enum class Release : std::uint8_t { replaces, joins };
  void release(const Bytes& bytes, const std::shared_ptr<Told>& what, Release how);
  /// The rank has seen what the bytes hold.
  void acquire(Rank rank, const Bytes& bytes);
  /// The rank will have seen it at the next quiet of the context.
  void acquire_at_quiet(Rank rank, int context, const Bytes& bytes);
  /// What the rank knows.
  const Times& known(Rank rank) const { return ranks_[std::size_t(rank)].known; }
  void learn(Rank rank, const Times& what);
  /// What a word tells that the rank stores itself.
  std::shared_ptr<Told> told_by(Rank rank) const;
  /// The symmetric bytes are allocated anew.
  void forget(const Bytes& bytes);

 private:
  /// One access. That of a transfer is over when the transfer is known to be; any other when its call returns.
  struct Access {
    Use use;
    Rank rank = 0;
    TransferRecord::Ref transfer;
    Fencing fencing = Fencing::unordered;
    Time time = 0;  ///< of its rank, when it was made
    std::size_t word_first = 0, word_end = 0;
  };
  /// What is known where an access is made: beside what its rank knows, what a fence holds it behind.
  struct View {
    const Times& known;
    Rank rank = 0;
    const FencedWay* way = nullptr;
  };
  /// What was last done to some bytes: the last write first, if there is one; then reads and updates since.
  using Cell = std::vector<Access>;
  using Stretch = std::pair<std::size_t, std::size_t>;
  /// A use that has begun, of stretches [first, end) in order that do not touch. It is no part of the cells: there
  /// would be one for each of its stretches.
  struct HeldUse {
    Access access;
    std::vector<Stretch> stretches;
    std::size_t first() const { return stretches.front().first; }
    std::size_t end() const { return stretches.back().second; }
  };
  struct Memory {
    ByteMap<Cell> cells;
    std::vector<HeldUse> uses;
    std::size_t uses_max = 64;  ///< when they are looked through next
  };
  /// The transfers of one context to one target that its rank has not completed.
  struct Way {
    std::deque<TransferRecord::Ref> open;
    TransferRecord::Ref last_ordered;
  };
  /// What the rank will have seen.
  struct Sight {
    std::shared_ptr<Told> told;
    std::size_t first = 0, end = 0;
  };
  struct RankState {
    Times known;
    Time time = 0;
    std::map<std::pair<int, Rank>, Way> ways;           ///< by context and target
    std::map<std::uint64_t, TransferRecord::Ref> uses;  ///< that have begun
    std::uint64_t uses_begun = 0;
    std::map<std::pair<int, Rank>, std::vector<Sight>> fetched;  ///< by context and target, not yet to be looked at
    Memory own;                                                  ///< local memory of transfers
    std::size_t own_max = 64;                                    ///< when it is looked through next
    std::vector<Source> sources;                                 ///< in use, for all that the rank knows
    std::optional<Error> late_error;
  };
  using Words = ByteMap<std::shared_ptr<Told>>;

  static bool knows(const View& who, const Access& what, const Bytes& part);
  static bool conflict(const Access& earlier, const Access& later);
  /// A new time of the rank.
  Moment next_moment(Rank rank);
  Access own_access(Rank rank, const Use& use);
  void note(Access access, const View& view, const std::vector<Bytes>& all);
  void note_use(const Access& access, const View& view, std::vector<Bytes> all);
  void compare(const HeldUse& use, const Memory& held, const View& view, const Bytes& memory) const;
  /// With an access to stretches of the same memory, in order.
  void compare(const HeldUse& earlier, const Access& access, const View& view, std::span<const Stretch> stretches,
               const Bytes& memory) const;
  void forget_over(Memory& memory) const;
  Memory& memory_of(const Bytes& bytes) {
    const auto owner = std::size_t(bytes.owner);
    return bytes.memory == Bytes::Memory::own ? ranks_[owner].own : heaps_[owner];
  }
  /// Drops local memory of transfers that the rank knows to be complete, when there is much.
  static void forget_known(RankState& mine);
  void compare(const Cell& cell, const Access& access, const View& view, const Bytes& bytes) const;
  /// What the bytes tell that the rank does not know.
  std::vector<Sight> news_in(const Bytes& bytes, Rank rank) const;
  void learn(Rank rank, const std::vector<Sight>& sights);
  bool is_unwritten_since(const Source& source) const;
  /// Of those whose end the rank now knows, for it calls quiet, or else as a peer has told it.
  void release_sources(Rank rank, const CallSite* quiet = nullptr);
  [[noreturn]] void refuse(const Access& earlier, const Access& later, const View& view, const Bytes& bytes) const;

  std::vector<RankState> ranks_;
  std::vector<Memory> heaps_;
  std::vector<Words> words_;
  std::set<std::string> names_;  // of memory, in uses
};

}  // namespace tranship
