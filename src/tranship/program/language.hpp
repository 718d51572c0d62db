// The channel language: programs written operation by operation, as in MSCCL++, and lowered to a Program
// (program/program.hpp) in passes.
//
//   namespace lang = tranship::language;
//   lang::CollectiveProgram all("swap", lang::all_to_all(2));
//   for (tranship::Rank r = 0; r < 2; ++r) {
//     lang::MemoryChannel channel(all, {.target = 1 - r, .source = r});
//     channel.put(all.output(1 - r)[{r, r + 1}], all.input(r)[{1 - r, 2 - r}], 0);
//     channel.signal(0, {.data_sync = lang::DataSync::before});
//     ...
//   }
//   tranship::Program program = all.lower();
//
// Each operation is checked when it is written and throws `invalid_use` with both numbers; verify()
// (program/verify.hpp) proves the program as a whole. A program, and every object made from it, belongs to one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/program/program.hpp>

namespace tranship::language {

/// A collective operation: the number of chunks of each buffer, and a name that stands for a promise
/// (program/collective.hpp).
struct Collective {
  std::string name;
  std::vector<Index> input_chunks;   ///< by rank
  std::vector<Index> output_chunks;  ///< by rank
  bool in_place = false;  ///< input and output share memory: equal buffers, or the smaller one is slice r of the larger
};

struct CollectiveOptions {
  Index chunk_factor = 1;  ///< chunks of the smallest part that the collective treats separately
  bool in_place = false;
};
Collective all_reduce(tranship::Rank ranks, const CollectiveOptions& options = {});      ///< n·cf to n·cf chunks
Collective all_gather(tranship::Rank ranks, const CollectiveOptions& options = {});      ///< cf to n·cf
Collective reduce_scatter(tranship::Rank ranks, const CollectiveOptions& options = {});  ///< n·cf to cf
Collective all_to_all(tranship::Rank ranks, const CollectiveOptions& options = {});      ///< n·cf to n·cf
Collective send_recv(tranship::Rank ranks, const CollectiveOptions& options = {});       ///< cf to cf
Collective broadcast(tranship::Rank ranks, const CollectiveOptions& options = {});       ///< cf to cf; not in MSCCL++
Collective reduce(tranship::Rank ranks, const CollectiveOptions& options = {});          ///< cf to cf; not in MSCCL++
/// A program that promises nothing but safety. Both lists have one number of chunks per rank.
Collective custom(std::vector<Index> input_chunks, std::vector<Index> output_chunks);

/// How chunks are renumbered when a program is replicated. `interleaved`: instance k of N works on every N-th group of
/// chunks. `none`: all instances work on the chunks as written and share their bytes.
enum class ReplicationPolicy : std::uint8_t { interleaved, none };

/// The passes of lower(), in order. Each can be switched off.
struct Passes {
  bool pairing = true;  ///< refuses signals without a wait, and waits without a signal
  /// Inserts barriers where a thread block uses what another block of a group writes, if the program is right with them
  /// and not without.
  bool group_barriers = true;
  bool fusion = true;        ///< joins neighbouring steps
  bool data_sync = true;     ///< turns the meetings that operations ask for into steps
  bool dependencies = true;  ///< inserts meetings between steps of a block that use the same chunks
  bool replication = true;   ///< makes `instances` copies of everything
};

struct Options {
  Index instances = 1;
  std::string protocol = "Simple";  ///< "Simple", or "LL" for programs that send packets
  ReplicationPolicy replication = ReplicationPolicy::interleaved;
  bool reuse_resources = false;
  Index threads_per_block = 1024;
  bool double_scratch = false;  ///< successive launches use two scratch buffers in turn
  Index buffer_alignment = 16;  ///< bytes
  /// Limits of the messages that the plan is for, in bytes of the input, and for an allgather of the output.
  std::uint64_t message_bytes_min = 0;
  std::uint64_t message_bytes_max = UINT64_MAX;
  Passes passes = {};
};

/// Chunks `first` to `first + count - 1` of a buffer of a rank. An operation on no chunks is legal and moves nothing.
struct Chunk {
  tranship::Rank rank = 0;
  BufferKind buffer = BufferKind::input;
  Index first = 0;
  Index count = 0;
};

/// The input or output of a rank, or a part of its scratch.
class Buffer {
 public:
  struct Range {
    Index begin, end;
  };

  tranship::Rank rank() const noexcept { return rank_; }
  BufferKind kind() const noexcept { return kind_; }
  Index chunks() const noexcept { return chunks_; }
  Chunk operator[](Range range) const;
  Chunk all() const { return {rank_, kind_, first_, chunks_}; }

 private:
  friend class CollectiveProgram;
  Buffer(tranship::Rank rank, BufferKind kind, Index first, Index chunks) noexcept
      : rank_(rank), kind_(kind), first_(first), chunks_(chunks) {}

  tranship::Rank rank_;
  BufferKind kind_;
  Index first_;
  Index chunks_;
};

/// The thread blocks that carry out one operation: one block, or a group in which each block takes its share of the
/// bytes, in the order of the group.
class ThreadBlocks {
 public:
  ThreadBlocks(int block) : ids_{block} {}
  /// A group. Throws `invalid_use` for an empty group, and for a block that occurs twice.
  ThreadBlocks(std::vector<int> group);
  ThreadBlocks(std::initializer_list<int> group) : ThreadBlocks(std::vector<int>(group)) {}
  /// One block of a group, with its share of the bytes; the other blocks take theirs by operations of their own. Throws
  /// `invalid_use` also for a block that is not in the group.
  static ThreadBlocks one_of(int block, std::vector<int> group);

  const std::vector<int>& ids() const noexcept { return ids_; }
  bool is_group() const noexcept { return shares_ > 0; }
  /// Position in the group of the first of `ids()`; the others follow it.
  int first_share() const noexcept { return first_share_; }
  /// Number of blocks of the group; 0 for a single block without a group.
  int shares() const noexcept { return shares_; }

 private:
  std::vector<int> ids_;
  int first_share_ = 0;
  int shares_ = 0;
};

/// When the threads of the block meet: before an operation, after it, or both.
enum class DataSync : std::uint8_t { none = 0, before = 1, after = 2, both = 3 };
constexpr bool has(DataSync all, DataSync one) noexcept {
  return (static_cast<int>(all) & static_cast<int>(one)) != 0;
}

struct SyncOptions {
  DataSync data_sync = DataSync::both;
  bool relaxed = false;  ///< orders execution only and publishes nothing; only memory channels support it
};

struct ReduceOptions {
  const Chunk* target = nullptr;  ///< null: the first source
  Reduction reduction = Reduction::sum;
};

struct Draft;
struct RankDraft;
struct ProgramDraft;

class CollectiveProgram {
 public:
  /// Throws `invalid_use` for options or numbers of chunks that no program can have.
  CollectiveProgram(std::string name, Collective collective, Options options = {});
  ~CollectiveProgram();
  CollectiveProgram(CollectiveProgram&&) noexcept;
  CollectiveProgram& operator=(CollectiveProgram&&) noexcept;

  tranship::Rank ranks() const noexcept;
  const Collective& collective() const noexcept;
  Buffer input(tranship::Rank rank) const;
  Buffer output(tranship::Rank rank) const;
  /// Appends `chunks` chunks to the scratch of the rank and returns them.
  Buffer scratch(tranship::Rank rank, Index chunks);
  /// Number of chunks of a buffer of the rank; of the scratch, those appended so far.
  Index chunks_of(tranship::Rank rank, BufferKind buffer) const;

  /// Operations of one rank without a channel. All chunks of one operation have the same count.
  void copy(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where = CallSite::here());
  /// Copies plain data to packets in scratch.
  void copy_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                    CallSite where = CallSite::here());
  /// Copies packets in scratch to plain data; waits until the packets have come.
  void unpack_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                      CallSite where = CallSite::here());
  void reduce(const Chunk& source, const std::vector<Chunk>& others, const ThreadBlocks& blocks,
              const ReduceOptions& options = {}, CallSite where = CallSite::here());
  /// Like reduce(), with packets in scratch as `others`; waits until they have come.
  void reduce_packets(const Chunk& source, const std::vector<Chunk>& others, const ThreadBlocks& blocks,
                      const ReduceOptions& options = {}, CallSite where = CallSite::here());
  /// The named blocks of the rank meet. A single block meets its own threads.
  void barrier(tranship::Rank rank, const std::vector<int>& blocks, CallSite where = CallSite::here());

  /// Returns the program written so far. More operations may follow, and lower() may be called again. Throws
  /// `invalid_use` where a pass refuses, and while a loop is open. The pass `group_barriers` may cost two proofs
  /// (verify.hpp).
  Program lower() const;
  Program lower(const Passes& passes) const;

 private:
  friend class MemoryChannel;
  friend class PortChannel;
  friend class SwitchChannel;
  friend class Semaphore;
  friend class LoopIterationContext;
  std::unique_ptr<ProgramDraft> draft_;
};

/// A channel from rank `source` to rank `target`. The k-th channel of a kind from r to p and the k-th one from p to r
/// are the two ends of one connection: a wait on one takes the signals sent on the other.
struct ChannelEnds {
  tranship::Rank target;
  tranship::Rank source;
};

/// Loads and stores in the peer's memory. The program must outlive its channels.
class MemoryChannel {
 public:
  MemoryChannel(CollectiveProgram& program, ChannelEnds ends);

  std::int32_t id() const noexcept { return id_; }  ///< number among the memory channels of the source
  ChannelEnds ends() const noexcept { return ends_; }

  void signal(int block, const SyncOptions& options = {}, CallSite where = CallSite::here());
  void wait(int block, const SyncOptions& options = {}, CallSite where = CallSite::here());
  void put(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where = CallSite::here());
  void get(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where = CallSite::here());
  /// Copies plain data to packets in the peer's scratch.
  void put_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                   CallSite where = CallSite::here());
  /// Copies packets of this rank, after waiting for them, to packets of the peer.
  void read_put_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                        CallSite where = CallSite::here());
  /// Combines `local` with `remote` chunks of the peer, into `local` or ReduceOptions::target.
  void reduce(const Chunk& local, const std::vector<Chunk>& remote, const ThreadBlocks& blocks,
              const ReduceOptions& options = {}, CallSite where = CallSite::here());

 private:
  ProgramDraft* draft_;
  ChannelEnds ends_;
  std::int32_t id_;
};

/// Posts requests that a proxy carries out in the order of the channel. A source may be overwritten after a flush, or
/// after the peer has answered a signal posted behind it.
class PortChannel {
 public:
  PortChannel(CollectiveProgram& program, ChannelEnds ends);

  std::int32_t id() const noexcept { return id_; }
  ChannelEnds ends() const noexcept { return ends_; }

  void signal(int block, DataSync data_sync = DataSync::both, CallSite where = CallSite::here());
  void wait(int block, DataSync data_sync = DataSync::both, CallSite where = CallSite::here());
  void flush(int block, DataSync data_sync = DataSync::both, CallSite where = CallSite::here());
  void put(const Chunk& target, const Chunk& source, int block, CallSite where = CallSite::here());
  void put_with_signal(const Chunk& target, const Chunk& source, int block, CallSite where = CallSite::here());
  void put_with_signal_and_flush(const Chunk& target, const Chunk& source, int block,
                                 CallSite where = CallSite::here());
  /// The source already holds packets, which are sent as they are, without waiting for them.
  void put_packets(const Chunk& target, const Chunk& source, int block, CallSite where = CallSite::here());
  void read_put_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                        CallSite where = CallSite::here());

 private:
  ProgramDraft* draft_;
  ChannelEnds ends_;
  std::int32_t id_;
};

/// Accesses the same place of a buffer of several ranks in one operation.
class SwitchChannel {
 public:
  SwitchChannel(CollectiveProgram& program, std::vector<tranship::Rank> ranks, BufferKind buffer);

  const std::vector<tranship::Rank>& ranks() const noexcept { return ranks_; }
  BufferKind buffer() const noexcept { return buffer_; }
  std::int32_t id_at(tranship::Rank rank) const;  ///< number among the switch channels of the rank

  /// `rank` combines the chunks from `first` on of all ranks into its own `target`.
  void reduce(tranship::Rank rank, Index first, const Chunk& target, int block, Reduction reduction = Reduction::sum,
              CallSite where = CallSite::here());
  /// `rank` writes its own `source` to the chunks from `first` on of all ranks.
  void broadcast(tranship::Rank rank, const Chunk& source, Index first, int block, CallSite where = CallSite::here());
  /// Like broadcast(), with packets in scratch on both sides.
  void broadcast_packets(tranship::Rank rank, const Chunk& source, Index first, int block,
                         CallSite where = CallSite::here());

 private:
  void check(tranship::Rank rank, const Chunk& chunk, Index first) const;

  ProgramDraft* draft_;
  std::vector<tranship::Rank> ranks_;
  BufferKind buffer_;
  std::vector<std::int32_t> ids_;
};

/// A counter for the thread blocks of one rank.
class Semaphore {
 public:
  Semaphore(CollectiveProgram& program, tranship::Rank rank, Index initial_value);

  tranship::Rank rank() const noexcept { return rank_; }
  std::int32_t id() const noexcept { return id_; }
  /// Waits until the value is positive, then decrements it. release() increments it.
  void acquire(int block, DataSync data_sync = DataSync::both, CallSite where = CallSite::here());
  void release(int block, DataSync data_sync = DataSync::both, CallSite where = CallSite::here());

 private:
  ProgramDraft* draft_;
  tranship::Rank rank_;
  std::int32_t id_;
};

struct LoopShape {
  Index unit_bytes;  ///< unit that one iteration takes of each chunk
  Index chunks;      ///< chunks whose bytes, taken together, are cut into units
};

/// While it lives, the operations of every block go into a loop. Loops do not nest: a second one throws
/// `invalid_use`.
class LoopIterationContext {
 public:
  LoopIterationContext(CollectiveProgram& program, LoopShape shape);
  ~LoopIterationContext();
  /// Ends the loop. A second call does nothing.
  void close();
  LoopIterationContext(const LoopIterationContext&) = delete;
  LoopIterationContext& operator=(const LoopIterationContext&) = delete;

 private:
  ProgramDraft* draft_;
};

}  // namespace tranship::language
