// Private: whether accesses to memory are held apart, by what ranks can know of each other.
//
// A rank knows what it has done itself, what it had learnt when it waited for a signal, fetched a word or met others,
// and nothing else. It knows the end of a transfer only after a quiet (its own, or that of a rank that has told it),
// after the signal that was put with it, after another transfer to the same rank that a fence holds behind it, or when
// it has seen all that the transfer writes: who has seen a part knows of that part. A transfer that does not block
// accesses its local memory, too, until it is known to be over. Two accesses to a byte, one of which writes, must be so
// that the later one knows the earlier one, in whatever order this run has made them; only atomics of one word are held
// apart by being atomic. (Vector clocks as in Mattern 1989; one entry for what a rank does itself, one for its
// transfers.)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/sim/byte_map.hpp>

namespace tranship {

class RaceDetector {
 public:
  /// A put: which one it is of the transfers of its rank, and how much it writes.
  struct Put {
    Rank rank = 0;
    std::uint64_t number = 0;
    std::size_t bytes = 0;
  };
  /// What has been seen of a put: stretches [first, end) of the target's heap that do not touch.
  struct Seen {
    std::size_t bytes = 0;  ///< of the whole put
    std::map<std::size_t, std::size_t> stretches;
    void add(std::size_t first, std::size_t end);
    bool has(std::size_t first, std::size_t end) const;
    bool is_whole() const;
  };
  /// What is known to be over: by rank, its own accesses and its transfers up to a number, single transfers beyond, and
  /// parts of puts.
  struct Knowledge {
    std::vector<std::uint64_t> own, transfers;
    std::set<std::pair<Rank, std::uint64_t>> single;
    std::map<std::pair<Rank, std::uint64_t>, Seen> parts;
    void join(const Knowledge& other);
    void see(const Put& put, std::size_t first, std::size_t end);
    bool has(Rank rank, std::uint64_t transfer) const {
      return transfers[std::size_t(rank)] >= transfer || single.contains({rank, transfer});
    }
    /// Drops single transfers and parts that the rest says already.
    void prune();
  };

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
    const void* code = nullptr;        ///< in place of `where`, behind the instruction; its atomics are of any kind
  };
  /// Bytes [first, end) of the symmetric heap of `owner`, or addresses of memory that no other rank reaches.
  struct Bytes {
    enum class Memory : std::uint8_t { symmetric, own };
    Rank owner = 0;
    std::size_t first = 0, end = 0;
    Memory memory = Memory::symmetric;
  };

  /// What a fence orders: transfers of one context to one target that have more fences before them than others.
  struct Channel {
    int context = 0;
    Rank target = 0;
    std::uint64_t fences = 0;
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

  /// The calling rank's accesses, over when the call returns. Throws `race`.
  void access(Rank rank, const Accesses& all);
  /// The same of an atomic that waits for its value: fences order it. Returns what is over when it is made.
  Knowledge access(Rank rank, const Channel& channel, const Accesses& all);
  /// A transfer of the calling rank: what it accesses at its target, and of local memory until it is over. Throws
  /// `race`.
  struct Sent {
    std::uint64_t number = 0;
    Knowledge before;  ///< what is over before it, for those who see any of it
  };
  Sent send(Rank rank, const Channel& channel, Fencing fencing, const Accesses& remote, const Accesses* local);
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
    std::uint64_t transfer = 0;
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
    ranks_[std::size_t(rank)].own.for_each([&](std::size_t first, std::size_t end, const Cell&) { f(first, end); });
  }
  /// What the rank has done wrong with such memory.
  const std::optional<Error>& changed_source(Rank rank) const { return ranks_[std::size_t(rank)].changed_source; }

  /// What those know who see what has been written. A put tells of itself what they have seen.
  struct Told {
    std::shared_ptr<const Knowledge> known;
    Put put = {};  ///< of no bytes where it is none
  };
  /// The bytes have been written or, where `joins`, updated.
  enum class Release : std::uint8_t { replaces, joins };
  void release(const Bytes& bytes, const Told& what, Release how);
  /// The rank has seen what the bytes hold.
  void acquire(Rank rank, const Bytes& bytes);
  /// The rank will have seen it at the next quiet of the context.
  void acquire_at_quiet(Rank rank, int context, const Bytes& bytes);
  /// What the rank knows.
  const Knowledge& known(Rank rank) const { return ranks_[std::size_t(rank)].known; }
  void learn(Rank rank, const Knowledge& what);
  /// The symmetric bytes are allocated anew.
  void forget(const Bytes& bytes);

 private:
  /// One access. That of a transfer is over when the transfer is known to be; any other when its call returns.
  struct Access {
    Use use;
    Rank rank = 0;
    bool is_transfer = false;
    Fencing fencing = Fencing::unordered;
    std::uint64_t number = 0;  ///< among its rank's own accesses, or its transfers
    std::uint64_t issued = 0;  ///< its rank's own accesses before it
    std::size_t word_first = 0, word_end = 0;
  };
  struct Unfinished {
    std::uint64_t number;
    Channel channel;
    Fencing fencing;
  };
  /// The context of what is none of a context.
  static constexpr int no_context = -1;
  struct RankState {
    Knowledge known;
    std::uint64_t transfers = 0;
    std::vector<Unfinished> unfinished;
    std::map<std::pair<int, Rank>, Knowledge> fetched;  ///< by context and target, not yet to be looked at
    ByteMap<std::vector<Access>> own;                   ///< local memory of transfers
    std::vector<Source> sources;                        ///< in use, for all that the rank knows
    std::optional<Error> changed_source;
  };
  /// What was last done to some bytes: the last write first, if there is one; then reads and updates since.
  using Cell = std::vector<Access>;
  using Words = ByteMap<Told>;

  static bool knows(const Knowledge& who, const Access& what);
  static bool knows(const Knowledge& who, const Access& what, const Bytes& part);
  static bool conflict(const Access& earlier, const Access& later);
  Knowledge before(Rank rank, const Channel& channel) const;
  Access own_access(Rank rank, const Use& use);
  void note(Access access, const Knowledge& known, const std::vector<Bytes>& all);
  /// Drops local memory of transfers that the rank knows to be complete.
  static void forget_known(RankState& mine);
  void complete(RankState& mine, Rank rank, FunctionRef<bool(const Unfinished&)> is_complete);
  void compare(const Cell& cell, const Access& access, const Knowledge& known, const Bytes& bytes) const;
  std::optional<Knowledge> told_by(const Bytes& bytes) const;
  bool is_unwritten_since(Rank rank, const Source& source) const;
  /// Of those whose end the rank now knows, for it calls quiet, or else as a peer has told it.
  void release_sources(Rank rank, const CallSite* quiet = nullptr);
  [[noreturn]] void refuse(const Access& earlier, const Access& later, const Knowledge& known,
                           const Bytes& bytes) const;

  std::vector<RankState> ranks_;
  std::vector<ByteMap<Cell>> heaps_;
  std::vector<Words> words_;
};

}  // namespace tranship
