// Detail: Pipe: a stream of arrays from one group of ranks to another, planned once, with several buffers on each side.
//
//   Pipe pipe(world, rows, columns, {.from = {.count = 2}, .to = {.count = 3}});
//   if (pipe.sends()) {
//     PipeBuffer out = pipe.sender().get();    // waits until a buffer is empty
//     fill(out.view);
//     pipe.sender().put();                     // launches it, and returns
//   }
//   if (pipe.receives()) {
//     PipeBuffer in = pipe.receiver().get();   // waits until a buffer is full
//     use(in.view);
//     pipe.receiver().put();                   // gives it back
//   }
//
// These are the channels of the Data Reorganization Interface (https://data-re.org): get and put have the same meaning
// there.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tranship/array/local_array.hpp>
#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

/// Memory of the program's own for one buffer: an allocation that Distribution::storage describes; of split complex
/// arrays the plane of real parts, and that of imaginary parts.
struct PipeMemory {
  void* data = nullptr;
  void* imaginary = nullptr;
};

/// The buffers of one side of a pipe, on each of its ranks: 1 to 256, as many on all ranks of the side.
struct PipeBuffers {
  Index count = 2;
  /// As many as `count`; none: the pipe allocates them, zeroed, where its peers reach them. Must outlive the pipe.
  /// Memory that peers cannot reach (the program's own, where ranks are processes) costs one more copy.
  std::vector<PipeMemory> memory = {};
  /// Or arrays of this world, with the side's distribution and element type and any strides, as many as `count`. Where
  /// an array has had a lease, the pipe sends what devices hold, and devices see what it brings; it holds a lease of a
  /// buffer from put() to get(), and those that it has when it ends have no value.
  std::vector<ArrayRef> arrays = {};
};

struct PipeOptions {
  PipeBuffers from = {};
  PipeBuffers to = {};
  Schedule schedule = Schedule::automatic;
  std::string name = "pipe";
};

/// A buffer that the program holds, between get() and put().
struct PipeBuffer {
  Index number = 0;  ///< in the rotation, from 0
  Index frame = 0;   ///< how many have gone through this side before
  StridedView view;  ///< the rank's local array of the side's distribution, overlap included
};

/// One side of a pipe on one rank. Buffers rotate first in, first out: get() gives them in turn, and put() takes the
/// one that the program has held longest. Any number of them may be held at a time, up to all.
class PipeEnd {
 public:
  ~PipeEnd();
  /// Of the sending side: waits until the next buffer is empty: all that it held has been read. Of the receiving side:
  /// waits until the next buffer is full: the frame has come from all ranks that send to this one. Meanwhile moves what
  /// is in flight. Throws `invalid_use` when the program holds all buffers; `timeout` after the world's timeout and
  /// `peer_lost`, which say who waits on whom.
  PipeBuffer get(CallSite where = CallSite::here());
  /// The same, but returns at once: nothing where get() would wait. Throws `timeout` when a loop over it has seen
  /// nothing new for the world's timeout.
  std::optional<PipeBuffer> test_get(CallSite where = CallSite::here());
  /// Of the sending side: the buffer is final and is launched. Of the receiving side: the buffer may be overwritten.
  /// Never waits for peers: a frame whose receiver is not ready moves during later calls and waits of either side; to
  /// memory that the sender does not reach, during those of the sender. Waits for a device that holds cells of the
  /// buffer. Throws `invalid_use` where the program holds no buffer, and where a lease of it is open.
  void put(CallSite where = CallSite::here());
  /// Of the sending side: waits until all frames that were put have been read by their receivers, or lie in buffers of
  /// the receivers. Before a pipe is destroyed, this is what keeps its last frames. Of the receiving side: returns at
  /// once. Throws as get() does.
  void drain(CallSite where = CallSite::here());
  bool test_drained(CallSite where = CallSite::here());
  /// Ends this side of the pipe on this rank, as the destructor of the pipe ends both: what was put and has not been
  /// drained may be lost, and peers that wait for this side fail with `peer_lost`; so does the other end of this rank,
  /// which goes on else. Memory of this side is not touched any more. Never waits. Later calls throw `invalid_use`.
  void end();
  /// A call has thrown `peer_lost` because a rank of the other side has ended its side or destroyed its pipe, and not
  /// because it has failed. Of the receiving side this is the end of the stream: all frames that the rank has put have
  /// been got.
  bool peer_has_ended() const noexcept;

  /// Buffers of this side; those that the program holds.
  Index count() const noexcept;
  Index held() const noexcept;

 private:
  friend class Pipe;
  struct State;
  explicit PipeEnd(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Used by the thread of its rank. Moves, does not copy. A group may be any ranks of the world: the two may be
/// disjoint, overlap, or be the same; a rank in both has both ends. Ranks that are in neither take part in the set-up
/// only.
///
/// Frame k that any rank puts is frame k that its receivers get. A frame moves as one epoch of an exchange, so it goes
/// straight from buffer to buffer where memory is shared. A rank that waits in get() or drain() copies, so that the one
/// that computes need not; where neither waits, the one whose put() or test comes second copies; where both wait, both
/// do. A frame that was put also moves while its sender waits for anything else. A sender runs ahead of its receivers
/// by as many frames as both sides have buffers: the flow control is that of the exchange, for each pair of ranks that
/// share cells, so a receiver never waits for a rank that sends nothing to it, and a sender never for a rank that gets
/// nothing from it. A receiver that gets nothing from any rank counts the frames of the first sender that has cells.
class Pipe {
 public:
  /// Collective over the world; waits for all ranks until its timeout. `source` and `target` are the distributions of
  /// the two sides, over ranks of this world. A rank may leave out a side that it is not in, as a program that knows
  /// its own side only must: it is told by the others. Costs the set-up of lcm(from.count, to.count) exchanges, at most
  /// 256, and the buffers. get() and put() allocate nothing.
  ///
  /// Throws on all ranks `mismatch` where ranks give different distributions or numbers of buffers, where no rank gives
  /// one, and where extents or elements differ; `invalid_use` for numbers of buffers out of range, a grid that needs
  /// more ranks than the world has, missing memory, memory that buffers share, and a read-only array of the target;
  /// `no_memory`, `unsupported`, `timeout` and `peer_lost` as Exchange does.
  Pipe(World& world, const std::optional<ArraySpec>& source, const std::optional<ArraySpec>& target,
       const PipeOptions& options = {}, CallSite where = CallSite::here());
  /// Not collective and never waits. What was put and has not been drained may be lost; peers that wait for this rank
  /// fail with `peer_lost`.
  ~Pipe();
  Pipe(Pipe&&) noexcept;
  Pipe& operator=(Pipe&&) = delete;

  bool sends() const noexcept;
  bool receives() const noexcept;
  /// Throw `invalid_use` on a rank that is not in that group.
  PipeEnd& sender(CallSite where = CallSite::here());
  PipeEnd& receiver(CallSite where = CallSite::here());

  /// Both sides, as all ranks know them now.
  const ArraySpec& source() const noexcept;
  const ArraySpec& target() const noexcept;
  /// How this rank moves one frame, as Exchange::explain says.
  std::string explain() const;

 private:
  friend class PipeEnd;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
