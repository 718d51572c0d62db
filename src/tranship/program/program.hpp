// Detail: Program, the steps that every thread block of every rank carries out for one collective operation. Thread
// blocks run concurrently; only signals, semaphores, barriers and packets order their accesses to shared memory. The
// language is that of MSCCL++ execution plans (plan_file.hpp); steps.def lists the steps.
//
// Buffers are cut into chunks. The size of a chunk is known only when a program runs, so one program serves messages of
// every size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/reduction.hpp>

namespace tranship {

enum class StepKind : std::uint8_t {
#define TRANSHIP_STEP(name, word, channel, sources, targets, pairing) name,
#include <tranship/program/steps.def>
#undef TRANSHIP_STEP
};

/// How a channel carries data: `memory` by loads and stores in the peer's memory, `port` by requests that a proxy
/// carries out in the order of the channel, `switched` at the same place of several ranks at once.
enum class ChannelKind : std::uint8_t { memory, port, switched };
inline constexpr int channel_kinds = 3;

enum class BufferKind : std::uint8_t { input, output, scratch };
inline constexpr int buffer_kinds = 3;

/// Chunks that a step reads or writes. The shape of the step says whose they are: this rank's, a peer's (`via` is then
/// a remote buffer of the rank), or those of all ranks of a switch channel (`via` is then the channel).
struct Operand {
  BufferKind buffer = BufferKind::input;
  std::int32_t via = -1;
  Index first = 0;
  Index count = 0;

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Step;

/// A loop: each iteration executes all steps on the next `unit_bytes` of `chunks` chunks.
struct Pipeline {
  Index unit_bytes = 0;
  Index chunks = 0;
  std::vector<Step> steps;
};

/// One step of a thread block.
struct Step {
  StepKind kind = StepKind::nop;
  ChannelKind channel = ChannelKind::memory;  ///< for steps that use one
  Reduction reduction = Reduction::sum;       ///< for steps that combine
  bool names_reduction = true;                ///< false in plans of versions that knew only sums
  /// The bytes of all operands are cut into `shares` parts; this step takes part number `share`.
  std::int32_t share = 0;
  std::int32_t shares = 0;  ///< 0: not cut
  /// The first `sources` operands are sources; the others are targets.
  std::int32_t sources = 0;
  /// For a barrier: the number of thread blocks that meet.
  std::int32_t participants = 0;
  /// The line of the source program that wrote the step; -1 when not known.
  std::int32_t line = -1;
  /// Channels of the rank, by kind; for acquire and release, semaphores; for a barrier, its id.
  std::vector<std::int32_t> ids;
  std::vector<Operand> operands;
  std::shared_ptr<const Pipeline> pipeline;
};

struct ThreadBlock {
  std::vector<Step> steps;
  /// The channels and remote buffers that the block uses, in the order of their numbers in plan files.
  std::vector<std::int32_t> channels[channel_kinds];
  std::vector<std::int32_t> remote_buffers[channel_kinds];
};

/// A buffer of a peer, and the kinds of channels that reach it.
struct RemoteBuffer {
  Rank rank = 0;
  BufferKind buffer = BufferKind::input;
  std::vector<ChannelKind> access;
};

/// The ranks of a switch channel, whose buffers a step accesses at the same place at once.
struct SwitchGroup {
  BufferKind buffer = BufferKind::input;
  std::vector<Rank> ranks;
};

/// The blocks of one rank, and the buffers, channels and semaphores that they use.
struct RankProgram {
  Index chunks[buffer_kinds] = {0, 0, 0};
  /// Channel i of a kind leads to rank peers[i]. The k-th channel from r to p and the k-th one from p to r are the two
  /// ends of one connection: a wait on one takes the signals sent on the other.
  std::vector<Rank> peers[2];  // by kind: memory, port
  std::vector<SwitchGroup> switches;
  std::vector<RemoteBuffer> remote_buffers;
  std::vector<Index> semaphores;  ///< initial values
  std::vector<ThreadBlock> blocks;
};

/// A member of a plan file that no known version has. It is kept and written back to its place, and otherwise ignored:
/// what it asks for is neither proved nor executed.
struct UnknownKey {
  std::string where;  ///< path of its object, "gpus[0].threadblocks[1]"; empty for the file itself
  std::string key;
  std::string value;  ///< JSON text

  friend bool operator==(const UnknownKey&, const UnknownKey&) = default;
};

/// A program. `collective` names its promise (collective.hpp): "allreduce", "allgather", "reducescatter", "alltoall",
/// "sendrecv", "broadcast" or "reduce"; with any other name only safety can be proved.
struct Program {
  std::string name;
  std::string collective;
  std::string protocol = "Simple";  ///< "LL": data travels in packets, and scratch buffers have twice the bytes
  bool in_place = false;
  bool reuse_resources = false;
  bool double_scratch = false;  ///< launches use the two halves of twice the scratch in turn
  Index threads_per_block = 1024;
  Index buffer_alignment = 16;
  std::uint64_t message_bytes_min = 0;
  std::uint64_t message_bytes_max = UINT64_MAX;
  std::vector<RankProgram> ranks;
  std::vector<UnknownKey> unknown_keys;
};

const char* name_of(StepKind kind) noexcept;
const char* name_of(ChannelKind kind) noexcept;  ///< "memory", "port" or "switch"
const char* name_of(BufferKind kind) noexcept;   ///< "input", "output" or "scratch"
/// The text for chunks of a buffer in all messages: "input[3]", or "input[2..5)" for chunks 2, 3 and 4.
std::string chunks_text(std::string_view buffer, Index first, Index count);

/// The path of the key, in printable characters: "gpus[0].colour".
std::string path_of(const UnknownKey& key);

/// Returns true when all steps that combine use this reduction.
bool combines_by(const Program& program, Reduction reduction);
/// Returns the program with this reduction in all its steps.
Program with_reduction(Program program, Reduction reduction);

/// Number of steps of all blocks; a step of a pipeline counts once.
Index count_steps(const Program& program);

/// Returns the whole program, without source lines, as numbers in a fixed order: equal only for equal programs.
std::vector<std::uint64_t> numbers_of(const Program& program);
/// Calls f with each of these numbers in order, without memory for all of them.
void for_each_number(const Program& program, FunctionRef<void(std::uint64_t)> f);

/// Checks that every id names something, that every operand lies in its buffer, and that every step has the operands
/// and channels that steps.def requires. Throws `bad_file` for the first fault, with its rank, block and step.
void check_structure(const Program& program);

}  // namespace tranship
