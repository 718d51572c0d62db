// Private: a program as one rank executes it: one flat list of small steps, made once. Operands are offsets from the
// beginnings of memories, loops are jumps, and channels are numbers of wires. ProgramMachine (program_machine.hpp)
// walks the list at each launch and looks nothing up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <tranship/base/element_type.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/kernels/host/reduce.hpp>
#include <tranship/program/program.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {

/// The layout of a caller's elements in chunks: equal segments, each of which begins with a chunk. Segments are the
/// parts that the collective cuts or joins; for programs that promise nothing, each chunk is a segment.
struct Chunking {
  Index input_segments = 0, output_segments = 0;  ///< of the rank
  Index segment_elements = 0;
  Index segment_chunks = 1;
  Index chunk_bytes = 0;  ///< a multiple of 16, unless no step cuts chunks and each is a segment

  Index input_elements() const { return input_segments * segment_elements; }
  Index output_elements() const { return output_segments * segment_elements; }
};
/// `elements` as in ProgramExecutor; `width` is the size of an element. Throws `invalid_use` when they do not divide
/// into equal parts.
Chunking chunking_of(const Program& program, Rank rank, Index elements, Index width);

/// The memories of a rank, numbered like BufferPlace::memory; the first one holds input and output of programs in
/// place.
inline constexpr int input_memory = 0, output_memory = 1, scratch_memory = 2, memory_count = 3;

/// An operand: at `offset` of a memory of a rank. Offsets and sizes of packets include their flags.
struct PlacedOperand {
  Rank rank = 0;
  std::uint32_t base = 0;  ///< rank * memory_count + memory
  Index offset = 0;
  OperandFormat format = OperandFormat::plain;
  bool is_own = false;
  bool is_read_by_peers = false;  ///< own memory that peers read from
  bool is_reached = false;        ///< loads and stores reach it
  Rank made_by = -1;              ///< for packets that are waited for: the other rank that stores them, if it is one
};

struct PlacedStep {
  enum class Act : std::uint8_t {
    nothing,
    meet,
    signal,
    wait,
    acquire,
    release,
    flush,
    copy,        ///< operands are pairs of a source and a target, all plain and reached
    combine,     ///< several sources, all operands plain and reached
    pack,        ///< one plain source, or pairs, into packets of ranks that are reached
    unpack,      ///< sources with packets among them, into plain memory that is reached
    transfer,    ///< all other moves: packets, and peers that are not reached
    begin_loop,  ///< begins a loop of `iterations` up to the matching end
    end_loop,    ///< goes back to the step after `first`, the loop's begin
    end,         ///< ends the block
  };
  Act act = Act::nothing;
  StepKind kind = StepKind::nop;  ///< the step that it was made from, for messages
  Pairing pairing = Pairing::all;
  bool in_loop = false;
  bool is_last = true;       ///< the last one made from a step of the program
  bool by_memory = false;    ///< its transfers are ordered like the stores of a memory channel
  bool has_packets = false;  ///< it waits for packets
  /// One of its two sources is packets, and they are combined straight into the target as they come, without a copy.
  bool combines_packets = false;
  bool fetches = false;                ///< reads from peers that are not reached
  std::int32_t position = 0;           ///< number of the step in its block
  std::int32_t share = 0, shares = 0;  ///< used in loops; outside, `begin` and `bytes` have the share already
  std::uint32_t first = 0;             ///< index of the first operand or id; sources come before targets
  std::uint32_t count = 0;             ///< number of ids, or of pairs
  std::uint32_t sources = 0, targets = 0;
  std::int32_t participants = 0;
  Index begin = 0;  ///< start of its part of each operand, in bytes of data; in loops, of all iterations
  Index bytes = 0;
  Index iterations = 0;
  Index unit_bytes = 0;  ///< bytes of one iteration of a loop
  detail::Combiner combine = {};
};

struct PlacedProgram {
  std::vector<PlacedStep> steps;
  std::vector<std::size_t> blocks;  ///< the first step of each block
  std::vector<PlacedOperand> operands;
  /// Numbers of wires, semaphores and barriers. The wires of port channels follow those of memory channels.
  std::vector<std::int32_t> ids;
  std::size_t operands_max = 0;  ///< largest number of sources, or of targets, of a step
  std::size_t barriers = 0;
};

struct PlacingOptions {
  Rank rank = 0;
  ElementType type{};
  FunctionRef<bool(Rank)> reaches;
};
/// Translates the steps of one rank. `program` must have been verified.
PlacedProgram placed(const Program& program, const Chunking& chunking, const PlacingOptions& options);

/// Which ranks touch a memory. Where no peer does, this rank's own steps may work on the caller's memory.
struct Touched {
  bool by_peers = false;  ///< peers read or write it
  bool is_read_by_peers = false;
  bool is_written = false;  ///< this rank writes it
};
/// By memory of the rank.
std::array<Touched, memory_count> touched(const Program& program, Rank rank);

}  // namespace tranship
