// Detail: A program: what every thread block of every rank does, step by step, to carry out one collective operation.
// Thread blocks run at the same time; what they do to memory that others use too is ordered by signals, semaphores,
// barriers and packets only. The language is that of MSCCL++ (execution plans, plan_file.hpp); steps.def lists the
// steps.
//
// Buffers are cut into chunks. How many bytes a chunk has is known when a program runs, so a program serves messages of
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

/// How a channel carries data: `memory` by loads and stores of the peer's memory, `port` by requests that something
/// else carries out in the order of the channel, `switched` at one place of several ranks at a time.
enum class ChannelKind : std::uint8_t { memory, port, switched };
inline constexpr int channel_kinds = 3;

enum class BufferKind : std::uint8_t { input, output, scratch };
inline constexpr int buffer_kinds = 3;

/// Chunks that a step reads or writes. Whose they are follows from the shape of the step: this rank's, a peer's (`via`
/// is then a remote buffer of the rank), or those of all ranks of a switch channel (`via` is then the channel).
struct Operand {
  BufferKind buffer = BufferKind::input;
  std::int32_t via = -1;
  Index first = 0;
  Index count = 0;

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Step;

/// A loop: each iteration does all steps on the next `unit_bytes` of `chunks` chunks.
struct Pipeline {
  Index unit_bytes = 0;
  Index chunks = 0;
  std::vector<Step> steps;
};

/// One step of a thread block.
struct Step {
  StepKind kind = StepKind::nop;
  ChannelKind channel = ChannelKind::memory;  ///< where the step has one
  Reduction reduction = Reduction::sum;       ///< where the step combines
  bool names_reduction = true;                ///< false in plans of versions that knew sums only
  /// The bytes of all operands are cut into `shares` parts, of which this step takes the one numbered `share`.
  std::int32_t share = 0;
  std::int32_t shares = 0;  ///< 0: not cut
  /// How many of `operands` are sources; the others are targets.
  std::int32_t sources = 0;
  /// Of a barrier: how many thread blocks meet.
  std::int32_t participants = 0;
  /// Where the program that this step comes from was written: a line, or -1.
  std::int32_t line = -1;
  /// Channels of the rank, by kind; for acquire and release, semaphores; for a barrier, its id.
  std::vector<std::int32_t> ids;
  std::vector<Operand> operands;
  std::shared_ptr<const Pipeline> pipeline;
};

struct ThreadBlock {
  std::vector<Step> steps;
  /// The channels and remote buffers that the block uses, in the order in which plan files number them.
  std::vector<std::int32_t> channels[channel_kinds];
  std::vector<std::int32_t> remote_buffers[channel_kinds];
};

/// A buffer of a peer, and the kinds of channels that reach it.
struct RemoteBuffer {
  Rank rank = 0;
  BufferKind buffer = BufferKind::input;
  std::vector<ChannelKind> access;
};

/// One place of the buffers of several ranks, reached at once.
struct SwitchGroup {
  BufferKind buffer = BufferKind::input;
  std::vector<Rank> ranks;
};

/// What one rank does, and what it needs for that.
struct RankProgram {
  Index chunks[buffer_kinds] = {0, 0, 0};
  /// Channel i of a kind leads to rank peers[i]. The k-th channel from r to p and the k-th one from p to r are the two
  /// ends of one connection: a signal on one is waited for on the other.
  std::vector<Rank> peers[2];  // memory, port
  std::vector<SwitchGroup> switches;
  std::vector<RemoteBuffer> remote_buffers;
  std::vector<Index> semaphores;  ///< their initial values
  std::vector<ThreadBlock> blocks;
};

/// A member of a plan file that no version known here has. It is kept, and written back to its place, and nothing reads
/// it: what it asks for is neither proved nor executed.
struct UnknownKey {
  std::string where;  ///< the path of the object that has it, "gpus[0].threadblocks[1]"; empty for the file itself
  std::string key;
  std::string value;  ///< as JSON

  friend bool operator==(const UnknownKey&, const UnknownKey&) = default;
};

/// `collective` says what the program promises (collective.hpp): "allreduce", "allgather", "reducescatter", "alltoall",
/// "sendrecv", "broadcast", "reduce", or anything else for a program of which only safety can be proved.
struct Program {
  std::string name;
  std::string collective;
  std::string protocol = "Simple";  ///< "LL": data travels in packets, and scratch buffers have twice the bytes
  bool in_place = false;
  bool reuse_resources = false;
  bool double_scratch = false;  ///< launches use two halves of twice the scratch in turn
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
/// Chunks of a buffer, as they are shown everywhere: "input[3]", or "input[2..5)" for chunks 2, 3 and 4.
std::string chunks_text(std::string_view buffer, Index first, Index count);

/// The path of the key, in printable characters: "gpus[0].colour".
std::string path_of(const UnknownKey& key);

/// Whether all steps that combine do so by this reduction.
bool combines_by(const Program& program, Reduction reduction);
/// The same program with one reduction in all of them.
Program with_reduction(Program program, Reduction reduction);

/// Number of steps of all blocks; those of a pipeline count once each.
Index count_steps(const Program& program);

/// All that a program says but the lines that it comes from, as numbers in one fixed order: equal for equal programs
/// alone.
std::vector<std::uint64_t> numbers_of(const Program& program);
/// The same one after the other, without memory for all of them.
void for_each_number(const Program& program, FunctionRef<void(std::uint64_t)> f);

/// Checks that every id names something, that every operand lies in its buffer, and that every step has the operands
/// and channels that steps.def says. Throws `bad_file` for the first place that does not, with its rank, block and
/// step.
void check_structure(const Program& program);

}  // namespace tranship
