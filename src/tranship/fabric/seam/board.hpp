// Private: Board: what every rank of a world is doing, so that a failing wait can name the rank that holds it up.
//
// Each rank writes its own slot; any rank reads all. A slot is a seqlock of atomics that hold copies of texts: no
// locks, no pointers, no allocations, so it works in memory that processes share and survives the death of its writer.
// Invariant: the first failure is set once, after its text is written, and never changes.
//
// Each machine has a board of its own, with a slot for every rank. A BoardLink copies the state of ranks of other
// machines to it: their ends as they happen, everything else on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tranship/base/error.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {

class Board;

/// Carries slots from the boards of other machines to this one. The threads of this machine's ranks call it.
class BoardLink {
 public:
  virtual ~BoardLink() = default;
  /// A rank of this machine has begun, finished or failed. The boards of all other machines must show it soon, after
  /// the rank's earlier transfers, and in the order of these calls.
  virtual void tell(Rank rank) noexcept = 0;
  /// Copies the current state of a rank of another machine to this board, if that is possible at once. It does not copy
  /// the rank's end, which arrives in order, so that the first failure shows first.
  virtual void ask(Rank rank) noexcept = 0;
  /// Reports a failed rank as tell() does, and returns when the report has left this process, which then ends; or after
  /// a second.
  virtual void tell_at_end(Rank rank) noexcept = 0;
  /// Returns true if a rank of another machine has told this rank that it has ended, which implies that everything it
  /// had sent to this rank is here. The board may show the end earlier, since all ranks of a machine share it. Acquire.
  virtual bool has_heard_end(Rank rank) const noexcept = 0;
};

class Board {
 public:
  /// Allocates memory of its own.
  explicit Board(int ranks);
  /// Uses size_bytes(ranks) bytes of memory, aligned to a cache line, that hold zeros or a board; the memory must
  /// outlive this object.
  Board(int ranks, void* memory) noexcept;
  /// Shows some ranks of another board as ranks 0, 1, ... in the order of `members`. That board must outlive this
  /// object.
  Board(const Board& whole, const Members& members);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Connects a board to other machines: the ranks that are not `here` are on these. The link must outlive this object.
  void connect(const Members& here, BoardLink& link) {
    here_ = here;
    link_ = &link;
  }

  /// The value of a slot, to be sent to another machine.
  struct Entry;
  Entry entry_of(Rank rank) const;
  /// Writes an entry to this board only. An end that this board already shows stays.
  void show(Rank rank, const Entry& entry) noexcept;

  static std::size_t size_bytes(int ranks) noexcept;
  int ranks() const noexcept { return ranks_; }

  /// The rank waits as `note` says since `since_ns`. Only the rank itself calls this and the next three.
  void post_wait(Rank rank, const WaitNote& note, std::int64_t since_ns) noexcept;
  /// The rank has begun, or has stopped waiting.
  void post_running(Rank rank) noexcept;
  /// The rank begins its collective call number `sequence` of the world, or returns from it. One store each.
  void post_call(Rank rank, CallKind kind, std::uint64_t sequence) noexcept;
  void post_return(Rank rank) noexcept;
  /// Returns a number that identifies the rank's last collective call.
  std::uint64_t call_of(Rank rank) const noexcept;
  /// The rank's function has returned, or its launcher reports that its process exited with 0 without ever joining: it
  /// raises nothing more. Release: a rank that sees it finished also sees everything that it raised before.
  void post_finished(Rank rank) noexcept;

  /// The rank has failed: it reports an exception of its own, or its launcher reports its death. Keeps the first 1007
  /// bytes of `message`.
  void post_failed(Rank rank, ErrorCode code, std::string_view message) noexcept;

  /// The rank ends all ranks with a status; the first status that any rank gives counts. The rank then shows as failed.
  void post_exit(Rank rank, int status) noexcept;
  /// Returns the status with which all ranks must end, if there is one. Acquire.
  std::optional<int> exit_status() const noexcept;
  /// Called by a rank that is about to end its process with that status. The boards of other machines show the status
  /// before they find that the rank is gone.
  void pass_exit_on() const noexcept;

  /// Acquire. A rank of another machine counts as finished once all that it has sent to this rank is here.
  bool finished(Rank rank) const noexcept;
  bool joined(Rank rank) const noexcept;
  bool ended(Rank rank) const noexcept;  ///< finished or failed
  /// Returns true if any rank has failed, even one that this board does not show. Acquire.
  bool has_failed() const noexcept;
  /// Returns the rank that failed first; -1 if there is none, or if this board does not show it. Acquire.
  Rank first_failed() const noexcept;
  /// Returns "rank 3 failed: ..." for the rank that failed first.
  std::string first_failure() const;
  ErrorCode failure_code_of(Rank rank) const noexcept;
  std::string failure_of(Rank rank) const;

  /// Returns what a rank does now: "starting", "running", "running in allocate (collective call 7)", "finished",
  /// "failed: ...", or "waiting for barrier (rank 1, flag 0 >= 3, sees 2; rank 1 should raise it) for 0.05 s (from
  /// halo.cpp:12)".
  std::string line(Rank rank) const;
  /// Returns "; rank 1 running; rank 2 finished; ..." for the other ranks, to end a message with: `first`, if it is a
  /// rank, then the others by number; ten in all, and the number of those left out.
  std::string lines_of_others(Rank rank, Rank first = -1) const;
  /// Returns the rank that should end the wait of this one, or -1.
  Rank awaited_by(Rank rank) const noexcept;
  /// Returns "0 waits on 1 waits on 0" if `rank` leads into a circle of ranks that wait for each other, else "".
  std::string circle_from(Rank rank) const;

 private:
  struct Head;
  struct Slot;
  Slot& slot(Rank rank) const noexcept;
  static WaitNote note_of(const Entry& entry);
  /// Returns false if the rank already shows as failed.
  bool mark_failed(Rank rank, ErrorCode code, std::string_view message) noexcept;
  /// Reads the end from the board's memory, which shows what any rank of this machine has learnt.
  bool shows_end(Rank rank) const noexcept;
  bool is_here(Rank rank) const noexcept { return !link_ || here_.member_of(rank) >= 0; }
  void tell(Rank rank) const noexcept {
    const Rank told = to_whole(rank);
    if (link_ && is_here(told)) link_->tell(told);
  }
  void ask(Rank rank) const noexcept {
    const Rank asked = to_whole(rank);
    if (!is_here(asked)) link_->ask(asked);
  }
  int post_exit_status(int status_plus_1) noexcept;  ///< returns the first status
  /// Slots number ranks as the whole board does. Negative numbers stay as they are.
  Rank to_whole(Rank rank) const noexcept { return rank < 0 || is_whole_ ? rank : shown_.rank_of(rank); }
  Rank from_whole(Rank rank) const noexcept { return rank < 0 || is_whole_ ? rank : shown_.member_of(rank); }

  int ranks_;
  Members shown_;
  bool is_whole_ = true;
  Head* head_;
  bool owned_ = false;
  Members here_;
  BoardLink* link_ = nullptr;
};

struct Board::Entry {
  bool has_failed() const noexcept;
  bool has_ended() const noexcept;

  int doing = 0;
  int failure_code = 0;
  int how = 0;
  int line = 0;
  int exit_status_plus_1 = 0;  ///< of all ranks; 0 for none
  bool is_torn = false;        ///< the wait was not read in one piece
  Rank flag_rank = -1;
  Rank raised_by = -1;
  std::int64_t flag_index = -1;
  std::int64_t waited_ns = 0;  // a duration, since clocks of two machines differ
  std::uint64_t wanted = 0;
  std::uint64_t seen = 0;
  std::uint64_t call = 0;
  char label[48] = {};
  char file[64] = {};
  char failure[1008] = {};
};

}  // namespace tranship
