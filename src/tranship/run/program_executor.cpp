#include "tranship/run/program_executor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/host/reduce.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/run/channel_ends.hpp>
#include <tranship/run/program_machine.hpp>
#include <tranship/run/program_verdict.hpp>

namespace tranship {
namespace {

/// The elements of a caller in a memory of this rank: segments, which are consecutive at the caller.
struct Segments {
  int memory;
  Index offset = 0;
  Index count = 0;
  Index bytes = 0;     ///< of each segment
  Index distance = 0;  ///< between their beginnings in the memory

  Index total_bytes() const { return count * bytes; }
  /// Returns true when they are consecutive in the memory, too.
  bool are_joined() const { return count <= 1; }
};

void check_reductions(const Program& program, ElementType type) {
  for (const RankProgram& rank : program.ranks)
    for_each_step(rank, [&](const Step& step, const Pipeline*) {
      if (combines(step) && !detail::can_reduce(step.reduction, type))
        throw_error(ErrorCode::invalid_use, "{} has no {}", name_of(type), name_of(step.reduction));
    });
}

}  // namespace

class ProgramExecutor::State {
 public:
  State(World& world, const Program& program, Index elements, const ProgramOptions& options, CallSite where)
      : world_(world), context_(world.context()), width_(size_bytes(options.type)) {
    if (options.reduction && !combines_by(program, *options.reduction))
      set_up(with_reduction(program, *options.reduction), elements, options.type, where);
    else
      set_up(program, elements, options.type, where);
  }

  Index input_elements() const { return chunking_.input_elements(); }
  Index output_elements() const { return chunking_.output_elements(); }
  Index steps() const { return machine_->steps(); }
  Index polls() const { return machine_->polls(); }

  std::span<std::byte> input() { return own_buffer(input_, gathered_input_); }
  std::span<std::byte> output() { return own_buffer(output_, gathered_output_); }

  void run(CallSite where) {
    world_.check_process();
    if (is_plain_) return machine_->launch(where);
    run_in_buffers(where);
  }
  /// Not inlined, so that the shortest launch saves no registers.
  [[gnu::noinline]] void run_in_buffers(CallSite where) {
    run(input().data(), output().data(), where);
    // No data is copied, and no write of the caller needs to be announced.
    is_plain_ = !meets_between_ && context_.completes_at_once(world_.rank()) && gathered_input_.empty() &&
                gathered_output_.empty();
  }

  void run(const void* input, void* output, CallSite where) {
    world_.check_process();
    is_plain_ = false;
    const auto* const from = static_cast<const std::byte*>(input);
    auto* const to = static_cast<std::byte*>(output);
    const bool are_apart = from + input_.total_bytes() <= to || to + output_.total_bytes() <= from;
    if (input_.total_bytes() > 0) {
      // The memory may be read where the caller has it, and is never written there.
      const bool in_place = input_is_private_ && are_apart && from != heap_address(input_);
      if (input_is_private_)
        machine_->use(input_.memory, in_place ? const_cast<std::byte*>(from) : heap(input_.memory));
      if (!in_place) take_in(from, where);
    }
    const bool writes_in_place = output_is_private_ && output_.total_bytes() > 0 && are_apart;
    if (output_is_private_) machine_->use(output_.memory, writes_in_place ? to : heap(output_.memory));
    if (meets_between_) world_.barrier(where);  // no rank may read an input that is not there yet
    machine_->launch(where);
    if (meets_between_) world_.barrier(where);
    if (output_.total_bytes() > 0 && !writes_in_place) give_out(to, where);
  }

 private:
  // --- Set-up ------------------------------------------------------------------------------------------------------

  void set_up(const Program& program, Index elements, ElementType type, CallSite where) {
    if (static_cast<Index>(program.ranks.size()) != world_.size())
      throw_error(ErrorCode::invalid_use, "the program is for {}, the world has {}",
                  amount(program.ranks.size(), "rank"), world_.size());
    compare_programs(program, elements, type, where);
    meets_between_ = verdict_on(world_, program, where).needs_meeting;
    if (16 % width_ != 0)
      throw_error(ErrorCode::unsupported, "programs cannot run on elements of {} ({}): the size must divide 16 bytes",
                  amount(width_, "byte"), name_of(type));
    check_reductions(program, type);
    chunking_ = chunking_of(program, world_.rank(), elements, width_);
    const ChannelEnds ends(program);
    allocate(program, ends, where);
    build(program, ends, type, where);
    place_segments(program);
  }

  const RankProgram& own(const Program& program) const {
    return program.ranks[static_cast<std::size_t>(world_.rank())];
  }

  void allocate(const Program& program, const ChannelEnds& ends, CallSite where) {
    Index bytes[memory_count] = {0, 0, 0};
    for (Rank rank = 0; rank < world_.size(); ++rank)
      for (int memory = 0; memory < memory_count; ++memory)
        bytes[memory] =
            std::max(bytes[memory], checked_multiply(memory_chunks(program, rank, memory), chunking_.chunk_bytes));
    scratch_bytes_ = 2 * bytes[scratch_memory];  // packets have twice the bytes
    bytes[scratch_memory] = scratch_bytes_ * (program.double_scratch ? 2 : 1);
    for (int memory = 0; memory < memory_count; ++memory)
      memories_[memory] = world_.allocate<std::byte>(bytes[memory], where);
    counters_ = world_.allocate<std::uint64_t>(Index(ends.counters_max()) * words_per_line, where);
  }

  /// When programs differ, all ranks throw.
  void compare_programs(const Program& program, Index elements, ElementType type, CallSite where) {
    std::uint64_t hash = splitmix64(static_cast<std::uint64_t>(elements) * 64 + std::uint64_t(type));
    for_each_number(program, [&](std::uint64_t number) { hash = splitmix64(hash * 0x9e3779b97f4a7c15u + number); });
    using Hashes = Alike<std::uint64_t>;
    const auto both = [](const Hashes& a, const Hashes& b) { return joined(a, b); };
    const Hashes all = world_.team().reduce(Hashes::of(world_.rank(), hash), both, where);
    if (all.differ())
      throw_error(ErrorCode::mismatch,
                  "rank {} has another program, reduction, or number or type of elements, than rank {}",
                  all.other_member, all.first_member);
  }

  static constexpr Index words_per_line = 8;
  Symmetric<std::uint64_t> counter(std::size_t id) const { return counters_.slice(Index(id) * words_per_line, 1); }

  void build(const Program& program, const ChannelEnds& ends, ElementType type, CallSite where) {
    const auto reaches = [&](Rank rank) { return context_.reaches(rank); };
    ProgramMachine::Setup setup;
    setup.program = placed(program, chunking_, {.rank = world_.rank(), .type = type, .reaches = reaches});
    for (int memory = 0; memory < memory_count; ++memory) setup.memories[memory] = memories_[memory];
    setup.second_scratch_bytes = program.double_scratch ? scratch_bytes_ : 0;
    setup.wires = wires(program, ends, where);
    setup.semaphores = own(program).semaphores;
    machine_.emplace(world_, std::move(setup), where);
  }

  std::vector<ProgramMachine::Wire> wires(const Program& program, const ChannelEnds& ends, CallSite where) const {
    std::vector<ProgramMachine::Wire> out;
    std::vector<Index> seen(program.ranks.size());
    for (int kind = 0; kind < 2; ++kind) {
      std::fill(seen.begin(), seen.end(), 0);
      for (const Rank peer : own(program).peers[kind]) {
        const Index number = seen[static_cast<std::size_t>(peer)]++;
        ProgramMachine::Wire wire{.peer = peer,
                                  .in = counter(ends.counter(world_.rank(), kind, peer, number)),
                                  .out = counter(ends.counter(peer, kind, world_.rank(), number))};
        if (context_.reaches(peer)) wire.out_at = context_.peer_array(wire.out, peer, where).data();
        out.push_back(wire);
      }
    }
    return out;
  }

  // --- Input and output of the caller --------------------------------------------------------------------------------

  void place_segments(const Program& program) {
    const auto place = [&](BufferKind buffer, Index segments) {
      const BufferPlace at = place_of(program, world_.rank(), buffer);
      Segments out{.memory = at.memory,
                   .offset = at.first_chunk * chunking_.chunk_bytes,
                   .count = segments,
                   .bytes = chunking_.segment_elements * width_,
                   .distance = chunking_.segment_chunks * chunking_.chunk_bytes};
      if (out.bytes == out.distance) {
        out.bytes *= out.count;
        out.count = 1;
      }
      return out;
    };
    input_ = place(BufferKind::input, chunking_.input_segments);
    output_ = place(BufferKind::output, chunking_.output_segments);
    // Steps work on whole chunks, so they would touch memory behind data that ends within one.
    const auto is_whole = [&](const Segments& segments, BufferKind buffer) {
      return segments.offset == 0 &&
             segments.total_bytes() == own(program).chunks[static_cast<int>(buffer)] * chunking_.chunk_bytes;
    };
    if (program.in_place) return;
    const std::array<Touched, memory_count> all = touched(program, world_.rank());
    const Touched &input = all[input_memory], &output = all[output_memory];
    input_is_private_ = is_whole(input_, BufferKind::input) && !input.by_peers && !input.is_written;
    output_is_private_ = is_whole(output_, BufferKind::output) && !output.by_peers;
  }

  std::byte* heap(int memory) const { return memories_[memory].local(); }
  std::byte* heap_address(const Segments& segments) const { return heap(segments.memory) + segments.offset; }

  std::span<std::byte> own_buffer(const Segments& segments, std::vector<std::byte>& gathered) const {
    const auto bytes = static_cast<std::size_t>(segments.total_bytes());
    if (segments.are_joined()) return {heap_address(segments), bytes};
    gathered.resize(bytes);
    return gathered;
  }

  void take_in(const std::byte* from, CallSite where) {
    for (Index i = 0; i < input_.count; ++i) {
      std::byte* const at = heap_address(input_) + i * input_.distance;
      context_.writes(std::span<const std::byte>(at, static_cast<std::size_t>(input_.bytes)), where);
      if (at != from + i * input_.bytes) copy_piece(at, from + i * input_.bytes, input_.bytes);
    }
  }
  void give_out(std::byte* to, CallSite where) {
    for (Index i = 0; i < output_.count; ++i) {
      const std::byte* const at = heap_address(output_) + i * output_.distance;
      context_.reads(std::span<const std::byte>(at, static_cast<std::size_t>(output_.bytes)), where);
      if (at != to + i * output_.bytes) copy_piece(to + i * output_.bytes, at, output_.bytes);
    }
  }

  World& world_;
  Context& context_;
  Index width_;
  Chunking chunking_;
  bool meets_between_ = false;
  SymmetricArray<std::byte> memories_[memory_count];
  SymmetricArray<std::uint64_t> counters_;
  Index scratch_bytes_ = 0;
  std::optional<ProgramMachine> machine_;
  Segments input_{.memory = input_memory}, output_{.memory = output_memory};
  bool input_is_private_ = false, output_is_private_ = false;
  std::vector<std::byte> gathered_input_, gathered_output_;
  bool is_plain_ = false;  ///< the next run() on the executor's own buffers is just the launch
};

Index elements_of(const Program& program, Rank rank, const RankElements& own) {
  const auto chunks_of = [&](std::size_t of, BufferKind buffer) { return program.ranks[of].chunks[int(buffer)]; };
  for (std::size_t at = 0; at < program.ranks.size(); ++at)
    if (chunks_of(at, BufferKind::input) == 0 && chunks_of(at, BufferKind::output) == 0)
      throw_error(
          ErrorCode::invalid_use,
          "rank {} has neither input nor output in the program \"{}\": the number of elements cannot be derived", at,
          printable(program.name, name_chars_max));
  const Index inputs = chunks_of(std::size_t(rank), BufferKind::input);
  const Index chunks = inputs > 0 ? inputs : chunks_of(std::size_t(rank), BufferKind::output);
  const Index elements = inputs > 0 ? own.input : own.output,
              chunks_max = std::max<Index>(1, input_chunks_max(program));
  if (elements < 0 || (chunks != chunks_max && elements % chunks != 0))
    throw_error(ErrorCode::invalid_use, "cannot cut {} into the {} of rank {}", amount(elements, "element"),
                amount(chunks, "chunk"), rank);
  return chunks == chunks_max ? elements : checked_multiply(elements / chunks, chunks_max);
}

ProgramExecutor::ProgramExecutor(World& world, const Program& program, Index elements, const ProgramOptions& options,
                                 CallSite where)
    : state_(std::make_unique<State>(world, program, elements, options, where)) {}
ProgramExecutor::~ProgramExecutor() = default;
ProgramExecutor::ProgramExecutor(ProgramExecutor&&) noexcept = default;
ProgramExecutor& ProgramExecutor::operator=(ProgramExecutor&&) noexcept = default;

Index ProgramExecutor::input_elements() const noexcept {
  return state_->input_elements();
}
Index ProgramExecutor::output_elements() const noexcept {
  return state_->output_elements();
}
Index ProgramExecutor::steps() const noexcept {
  return state_->steps();
}
Index ProgramExecutor::polls() const noexcept {
  return state_->polls();
}

void ProgramExecutor::run(const void* input, void* output, CallSite where) {
  state_->run(input, output, where);
}
void ProgramExecutor::run(CallSite where) {
  state_->run(where);
}
std::span<std::byte> ProgramExecutor::input() {
  return state_->input();
}
std::span<std::byte> ProgramExecutor::output() {
  return state_->output();
}

}  // namespace tranship
