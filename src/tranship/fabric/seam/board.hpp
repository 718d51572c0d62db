// Private: Board, what every rank of a world is doing, so that a wait that fails can say who holds it up.
//
// Each rank writes its own slot; any rank reads all. A slot is a seqlock of atomics with text copied in: no lock, no
// pointer, no allocation, so it also works in memory that processes share and survives the death of its writer.
// Invariant: the first failure is set once, after its text is written, and never changes.
//
// Each machine has a board of its own, with a slot for every rank. What ranks of other machines do is brought there by
// a BoardLink: their ends without being asked, all else when it is to be read.
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

/// Carries slots from the boards of other machines to this one. Called from the threads of this machine's ranks.
class BoardLink {
 public:
  virtual ~BoardLink() = default;
  /// A rank of this machine has begun, finished or failed. The boards of all other machines are to show it soon,
  /// after what the rank has transferred before, and in the order in which this machine has told it.
  virtual void tell(Rank rank) noexcept = 0;
  /// Brings what a rank of another machine does now to this board, if that can be done at once. Not its end: that comes
  /// in its turn, so that the first failure shows first.
  virtual void ask(Rank rank) noexcept = 0;
  /// Tells what a failed rank has done, as tell() does, and returns when that has left this process, which ends then;
  /// or after a second.
  virtual void tell_at_end(Rank rank) noexcept = 0;
  /// Whether a rank of another machine has told this rank that it has ended, and so all that it had sent to it before
  /// is here. The board may show it already, since all ranks of a machine share that. Acquire.
  virtual bool has_heard_end(Rank rank) const noexcept = 0;
};

class Board {
 public:
  /// Memory of its own.
  explicit Board(int ranks);
  /// Memory of size_bytes(ranks), aligned to a cache line, that holds zeros or a board; it outlives this object.
  Board(int ranks, void* memory) noexcept;
  /// What some ranks of another board do, as ranks 0, 1, ... in the order of `members`. That board outlives this
  /// object.
  Board(const Board& whole, const Members& members);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Ranks that are not `here` are on other machines. The link outlives this object.
  void connect(const Members& here, BoardLink& link) {
    here_ = here;
    link_ = &link;
  }

  /// A slot as a value, to be sent to another machine.
  struct Entry;
  Entry entry_of(Rank rank) const;
  /// Shows it here, and tells no other machine. An end that is shown here already stays.
  void show(Rank rank, const Entry& entry) noexcept;

  static std::size_t size_bytes(int ranks) noexcept;
  int ranks() const noexcept { return ranks_; }

  /// The rank waits as `note` says since `since_ns`. Only the rank itself may call this; so for the next five.
  void post_wait(Rank rank, const WaitNote& note, std::int64_t since_ns) noexcept;
  /// It has begun, or waits no longer.
  void post_running(Rank rank) noexcept;
  /// The rank makes its collective call number `sequence` of the world; then that it has returned from it. One store.
  void post_call(Rank rank, CallKind kind, std::uint64_t sequence) noexcept;
  void post_return(Rank rank) noexcept;
  /// Names the rank's last collective call: another number for another one.
  std::uint64_t call_of(Rank rank) const noexcept;
  /// The rank's function has returned, or its process has ended well without ever joining (its launcher says so):
  /// it will raise nothing more. Release: what it raised before is seen by a rank that sees that it has finished.
  void post_finished(Rank rank) noexcept;

  /// The rank has failed: it has thrown (the rank itself says so), or has died (its launcher does). Keeps the
  /// first 1007 bytes of `message`.
  void post_failed(Rank rank, ErrorCode code, std::string_view message) noexcept;

  /// The rank ends all ranks with a status, which is the first one that any of them gives. Then it has failed.
  void post_exit(Rank rank, int status) noexcept;
  /// With which status all ranks are to end, if they are. Acquire.
  std::optional<int> exit_status() const noexcept;
  /// Called by a rank that is about to end its process with that status. The boards of other machines show the status
  /// before they find that the rank is gone.
  void pass_exit_on() const noexcept;

  /// Acquire. A rank of another machine has finished once all that it has sent to this rank is here.
  bool finished(Rank rank) const noexcept;
  bool joined(Rank rank) const noexcept;
  bool ended(Rank rank) const noexcept;  ///< finished or failed
  /// Whether any rank has failed, be it one that this board does not show. Acquire.
  bool has_failed() const noexcept;
  /// The rank that failed first, or -1; -1, too, when this board does not show it. Acquire.
  Rank first_failed() const noexcept;
  /// "rank 3 failed: ..." of the rank that failed first.
  std::string first_failure() const;
  ErrorCode failure_code_of(Rank rank) const noexcept;
  std::string failure_of(Rank rank) const;

  /// What a rank does now: "running", "running in allocate (collective call 7)", "finished", "failed: ...", "waiting
  /// for barrier (rank 1, flag 0 >= 3, sees 2; rank 1 should raise it) from halo.cpp:12 for 0.05 s".
  std::string line(Rank rank) const;
  /// "; rank 1 running; rank 2 finished; ..." of the other ranks, as messages end with it: `first`, where it is one,
  /// and then by number, ten in all, and how many more there are.
  std::string lines_of_others(Rank rank, Rank first = -1) const;
  /// The rank that should end the wait of this one, or -1.
  Rank awaited_by(Rank rank) const noexcept;
  /// "0 waits on 1 waits on 0": the ranks that wait for each other in a circle that `rank` leads into, or "".
  std::string circle_from(Rank rank) const;

 private:
  struct Head;
  struct Slot;
  Slot& slot(Rank rank) const noexcept;
  static WaitNote note_of(const Entry& entry);
  /// False where it is shown as failed already.
  bool mark_failed(Rank rank, ErrorCode code, std::string_view message) noexcept;
  /// As the memory of the board has it, whichever rank of this machine has heard of it.
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
  int post_exit_status(int status_plus_1) noexcept;  ///< returns the first one
  /// Ranks in the slots are those of the whole board. What is no rank stays as it is.
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
  int exit_status_plus_1 = 0;  ///< of all ranks, 0 for none
  bool is_torn = false;        ///< what it waits for was not read in one piece
  Rank flag_rank = -1;
  Rank raised_by = -1;
  std::int64_t flag_index = -1;
  std::int64_t waited_ns = 0;  // clocks of two machines differ
  std::uint64_t wanted = 0;
  std::uint64_t seen = 0;
  std::uint64_t call = 0;
  char label[48] = {};
  char file[64] = {};
  char failure[1008] = {};
};

}  // namespace tranship
