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
// there. switchboard.hpp makes pipes between programs that know only their own side.
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

/// The program's own memory for one buffer: an allocation as Distribution::storage describes it. For split complex
/// arrays, `data` is the plane of real parts and `imaginary` the plane of imaginary parts.
struct PipeMemory {
  void* data = nullptr;
  void* imaginary = nullptr;
};

/// The buffers of one side of a pipe, on each of its ranks. All ranks of the side have the same number of them.
struct PipeBuffers {
  Index count = 2;  ///< 1 to 256
  /// Memory for `count` buffers, which must outlive the pipe. Empty: the pipe allocates zeroed buffers that its peers
  /// reach. Memory that peers cannot reach (the program's own, where ranks are processes) costs one more copy.
  std::vector<PipeMemory> memory = {};
  /// Instead of `memory`: `count` arrays of this world with the side's distribution and element type, and any strides.
  /// If an array has had a lease, the pipe sends what devices hold, and devices see the frames that arrive. The pipe
  /// then holds a lease of the buffer from put() to get(); buffers whose lease it holds when it ends have no value.
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
  Index number = 0;  ///< position in the rotation, from 0
  Index frame = 0;   ///< number of frames that have gone through this side before
  StridedView view;  ///< the rank's local array of the side's distribution, overlap included
};

/// One side of a pipe on one rank. Buffers rotate first in, first out: get() returns the next one, and put() takes back
/// the one that the program has held longest. The program may hold any number of them at a time, up to all.
class PipeEnd {
 public:
  ~PipeEnd();
  /// Returns the next buffer. On the sending side, waits until the buffer is empty: its receivers have read the frame
  /// that it held. On the receiving side, waits until the buffer is full: the frame has arrived from all ranks that
  /// send to this one. Moves what is in flight meanwhile. Throws `invalid_use` when the program holds all buffers;
  /// `timeout` after the world's timeout and `peer_lost`, whose messages say which rank waits for which.
  PipeBuffer get(CallSite where = CallSite::here());
  /// Returns the next buffer, or nothing if get() would wait; returns at once. Throws as get() does, and `timeout` when
  /// a loop over it has seen nothing new for the world's timeout.
  std::optional<PipeBuffer> test_get(CallSite where = CallSite::here());
  /// On the sending side, launches the buffer, whose contents are final. On the receiving side, gives the buffer back
  /// to be overwritten. Never waits for peers: a frame whose receiver is not ready moves during later calls and waits
  /// of either side, or of the sender alone if the sender cannot reach the receiver's memory. Waits for a device that
  /// holds cells of the buffer. Throws `invalid_use` when the program holds no buffer, and when a lease of it is open.
  void put(CallSite where = CallSite::here());
  /// On the sending side, waits until the receivers have read all frames that were put, or have them in their buffers.
  /// Call it before the pipe is destroyed, or the last frames may be lost. On the receiving side, returns at once.
  /// Throws as get() does.
  void drain(CallSite where = CallSite::here());
  /// Moves what can be moved and returns at once; true if drain() would not wait. Throws as get() does.
  bool test_drained(CallSite where = CallSite::here());
  /// Ends this side of the pipe on this rank (the destructor of the pipe ends both sides). Frames that were put and not
  /// drained may be lost. Peers that wait for this side fail with `peer_lost`, and so does the other side of this rank
  /// if it waits for this one; otherwise that side goes on. The memory of this side is not touched any more. Never
  /// waits. Later calls throw `invalid_use`.
  void end();
  /// Returns true if a call has thrown `peer_lost` because a rank of the other side has ended its side or destroyed its
  /// pipe, and not because that rank has failed. For a receiver this is the end of the stream: it has got all frames
  /// that the rank has put.
  bool peer_has_ended() const noexcept;

  /// Number of buffers of this side, and of those that the program holds.
  Index count() const noexcept;
  Index held() const noexcept;

 private:
  friend class Pipe;
  struct State;
  explicit PipeEnd(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Only the thread of the rank may use a pipe. A pipe can be moved but not copied. The two groups may be any ranks of
/// the world: disjoint, overlapping or the same. A rank in both groups has both ends. Ranks in neither group take part
/// in the set-up only.
///
/// The k-th frame that each sender puts is the k-th frame that its receivers get. A frame moves as one epoch of an
/// exchange, so it goes straight from buffer to buffer if memory is shared. A rank that waits in get() or drain() does
/// the copying, so that a rank that computes need not. If neither side waits, the side whose put() or test comes second
/// copies; if both wait, both copy. A frame that was put also moves while its sender waits for anything else. A sender
/// runs ahead of its receivers by at most as many frames as both sides have buffers. Flow control is that of the
/// exchange, for each pair of ranks that share cells: a receiver never waits for a rank that sends nothing to it, and a
/// sender never waits for a rank that gets nothing from it. A receiver that gets nothing from any rank counts the
/// frames of the first sender that has cells.
class Pipe {
 public:
  /// Collective over the world; waits for all ranks until the world's timeout. `source` and `target` are the
  /// distributions of the two sides, over ranks of this world. A rank may leave out a side that it is not in; the other
  /// ranks then tell it the distribution. Costs the buffers and the set-up of lcm(from.count, to.count) exchanges,
  /// which may be at most 256. get() and put() allocate nothing.
  ///
  /// Throws on all ranks: `mismatch` when ranks give different distributions or numbers of buffers, when no rank gives
  /// a side, and when extents or elements differ; `invalid_use` for a number of buffers out of range, a grid that needs
  /// more ranks than the world has, missing memory, buffers that share memory, and a read-only array of the target;
  /// `no_memory`, `unsupported`, `timeout` and `peer_lost` as Exchange does.
  Pipe(World& world, const std::optional<ArraySpec>& source, const std::optional<ArraySpec>& target,
       const PipeOptions& options = {}, CallSite where = CallSite::here());
  /// Not collective and never waits. Frames that were put and not drained may be lost; peers that wait for this rank
  /// fail with `peer_lost`.
  ~Pipe();
  Pipe(Pipe&&) noexcept;
  Pipe& operator=(Pipe&&) = delete;

  bool sends() const noexcept;
  bool receives() const noexcept;
  /// Return the ends of this rank. Throw `invalid_use` on a rank that is not in that group.
  PipeEnd& sender(CallSite where = CallSite::here());
  PipeEnd& receiver(CallSite where = CallSite::here());

  /// Return the specs of both sides, which all ranks know after the set-up.
  const ArraySpec& source() const noexcept;
  const ArraySpec& target() const noexcept;
  /// Describes how this rank moves one frame (see Exchange::explain).
  std::string explain() const;

 private:
  friend class PipeEnd;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
