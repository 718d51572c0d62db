#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/kernels/host/reduce.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/run/program_executor.hpp>

namespace tranship {
namespace {

constexpr Index unit_bytes = 16;  // of chunks and of the shares of blocks
constexpr int scratch_memory = 2;

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

/// How the elements of a caller lie in chunks: each segment begins with a chunk.
struct Chunking {
  Index input_segments = 1, output_segments = 1;
  Index segment_elements = 0;
  Index segment_chunks = 1;
  Index chunk_bytes = 0;
  Index output_elements = 0;
};

Chunking chunking_of(const Program& program, Index elements, Index width) {
  const auto ranks = static_cast<Index>(program.ranks.size());
  const auto& chunks = program.ranks[0].chunks;
  Chunking out;
  const bool cuts_input = program.collective == "alltoall" || program.collective == "reducescatter";
  const bool joins = program.collective == "alltoall" || program.collective == "allgather";
  if (cuts_input) out.input_segments = ranks;
  if (joins) out.output_segments = ranks;
  if (elements < 0 || elements % out.input_segments != 0)
    throw_error(ErrorCode::invalid_use, "an input of {} elements is not cut into {} equal parts, as {} does", elements,
                out.input_segments, program.collective);
  out.segment_elements = elements / out.input_segments;
  out.segment_chunks = chunks[0] == 0 ? 1 : chunks[0] / out.input_segments;
  const Index per_chunk = (out.segment_elements + out.segment_chunks - 1) / out.segment_chunks;
  out.chunk_bytes = round_up(checked_multiply(per_chunk, width), std::max(unit_bytes, width));
  const bool is_known = CollectiveMeaning(program).is_known();
  out.output_elements = is_known ? out.segment_elements * out.output_segments : chunks[1] * (out.chunk_bytes / width);
  return out;
}

}  // namespace

class ProgramExecutor::Machine {
 public:
  Machine(World& world, Program program, Index elements, const ProgramOptions& options, CallSite where)
      : world_(world),
        context_(world.context()),
        program_(std::move(program)),
        type_(options.type),
        reduction_(options.reduction),
        width_(size_bytes(options.type)),
        elements_(elements) {
    if (static_cast<Index>(program_.ranks.size()) != world.size())
      throw_error(ErrorCode::invalid_use, "a program for {} ranks in a world of {}", program_.ranks.size(),
                  world.size());
    const Verification verified = verify(program_);
    if (!verified.is_right())
      throw_error(ErrorCode::invalid_use, "the program \"{}\" is not right: {}", program_.name, verified.text());
    meets_between_ = verified.needs_meeting;
    if (unit_bytes % width_ != 0)
      throw_error(ErrorCode::unsupported, "programs on elements of {} bytes ({})", width_, name_of(type_));
    check_reductions();
    chunking_ = chunking_of(program_, elements, width_);
    allocate(where);
    compare_programs(where);
    build();
  }

  Index input_elements() const { return elements_; }
  Index output_elements() const { return chunking_.output_elements; }
  Index steps() const { return steps_; }
  Index polls() const { return polls_; }

  void run(const void* input, void* output, CallSite where) {
    move_segments(BufferKind::input, chunking_.input_segments, [&](std::byte* chunk, Index at, std::size_t bytes) {
      std::memcpy(chunk, static_cast<const std::byte*>(input) + at, bytes);
      context_.writes(std::span<const std::byte>(chunk, bytes), where);
    });
    ++launch_;
    if (meets_between_) world_.barrier(where);  // no rank reads an input that is not there yet
    launch(where);
    if (meets_between_) world_.barrier(where);
    move_segments(BufferKind::output, chunking_.output_segments, [&](std::byte* chunk, Index at, std::size_t bytes) {
      context_.reads(std::span<const std::byte>(chunk, bytes), where);
      std::memcpy(static_cast<std::byte*>(output) + at, chunk, bytes);
    });
  }

 private:
  struct Block {
    const ThreadBlock* program = nullptr;
    int index = 0;
    std::size_t at = 0, inner = 0;
    Index iteration = 0;
    std::size_t waited = 0;  ///< ids of the step that have been waited for
    Index packets = 0;       ///< of the step, that have come
    bool has_arrived = false;
  };

  // --- Set-up ------------------------------------------------------------------------------------------------------

  const RankProgram& of(Rank rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }
  const RankProgram& own() const { return of(world_.rank()); }

  void check_reductions() const {
    const auto check = [&](const Step& step) {
      const StepShape& shape = shape_of(step.kind);
      if (shape.pairing == Pairing::all && (shape.sources.size() > 1 || shape.sources == "S") &&
          !detail::can_reduce(reduction_.value_or(step.reduction), type_))
        throw_error(ErrorCode::invalid_use, "{} has no {}", name_of(type_),
                    name_of(reduction_.value_or(step.reduction)));
    };
    for (const RankProgram& rank : program_.ranks)
      for (const ThreadBlock& block : rank.blocks)
        for (const Step& step : block.steps) {
          check(step);
          if (step.pipeline)
            for (const Step& inner : step.pipeline->steps) check(inner);
        }
  }

  void allocate(CallSite where) {
    Index bytes[buffer_kinds] = {0, 0, 0};
    std::size_t counters = 0;
    for (Rank rank = 0; rank < world_.size(); ++rank) {
      for (int memory = 0; memory < buffer_kinds; ++memory)
        bytes[memory] =
            std::max(bytes[memory], checked_multiply(memory_chunks(program_, rank, memory), chunking_.chunk_bytes));
      counters = std::max(counters, inbound_of(rank).size());
    }
    scratch_bytes_ = 2 * bytes[scratch_memory];  // packets have twice the bytes
    bytes[scratch_memory] = scratch_bytes_ * (program_.double_scratch ? 2 : 1);
    for (int memory = 0; memory < buffer_kinds; ++memory)
      memories_[memory] = world_.allocate<std::byte>(bytes[memory], where);
    counters_ = world_.allocate<std::uint64_t>(Index(counters) * words_per_line, where);
    seen_.assign(counters, 0);
    semaphores_.assign(own().semaphores.begin(), own().semaphores.end());
  }

  /// All ranks see all texts' hashes, so that all of them refuse.
  void compare_programs(CallSite where) {
    std::uint64_t hash = splitmix64(static_cast<std::uint64_t>(elements_) * 64 + std::uint64_t(type_));
    for (const char letter : write_program(program_)) hash = splitmix64(hash ^ static_cast<unsigned char>(letter));
    const auto hashes = world_.allocate<std::uint64_t>(world_.size(), where);
    for (Rank peer = 0; peer < world_.size(); ++peer) context_.set(hashes.slice(world_.rank(), 1), hash, peer, where);
    context_.quiet(where);
    world_.barrier(where);
    for (Rank peer = 0; peer < world_.size(); ++peer)
      if (hashes[peer] != hash)
        throw_error(ErrorCode::mismatch,
                    "rank {} has another program, or another number or type of elements, than rank {}", peer,
                    world_.rank());
    world_.barrier(where);
  }

  /// The signals that a rank receives, in an order that all know: (kind, from whom, the how-many-eth channel).
  using Inbound = std::map<std::tuple<int, Rank, Index>, std::size_t>;
  Inbound inbound_of(Rank rank) const {
    Inbound out;
    const auto add = [&](int kind, Rank from, Index number) { out.try_emplace({kind, from, number}, out.size()); };
    for (int kind = 0; kind < 2; ++kind) {
      std::map<Rank, Index> seen;
      for (const Rank peer : of(rank).peers[kind]) add(kind, peer, seen[peer]++);
      for (Rank peer = 0; peer < world_.size(); ++peer) {
        Index number = 0;
        for (const Rank to : of(peer).peers[kind])
          if (to == rank) add(kind, peer, number++);
      }
    }
    return out;
  }

  void build() {
    const Inbound inbound = inbound_of(world_.rank());
    std::map<Rank, Inbound> of_peers;
    for (int kind = 0; kind < 2; ++kind) {
      std::map<Rank, Index> seen;
      for (const Rank peer : own().peers[kind]) {
        const Index number = seen[peer]++;
        in_[kind].push_back(inbound.at({kind, peer, number}));
        auto at = of_peers.find(peer);
        if (at == of_peers.end()) at = of_peers.emplace(peer, inbound_of(peer)).first;
        out_[kind].push_back(at->second.at({kind, world_.rank(), number}));
      }
    }
    for (const ThreadBlock& block : own().blocks)
      blocks_.push_back({.program = &block, .index = static_cast<int>(blocks_.size())});
    block_buffer_.resize(block_bytes);
  }

  template <class F>
  void move_segments(BufferKind buffer, Index segments, F&& move) {
    const bool is_input = buffer == BufferKind::input;
    const bool is_promised = CollectiveMeaning(program_).is_known();
    if (own().chunks[static_cast<int>(buffer)] == 0 && (is_input || !is_promised)) return;
    const BufferPlace place = place_of(program_, world_.rank(), buffer);
    const Index elements = is_input || is_promised ? chunking_.segment_elements : chunking_.output_elements;
    const auto bytes = static_cast<std::size_t>(elements * width_);
    if (bytes == 0) return;
    for (Index segment = 0; segment < segments; ++segment) {
      const Index chunk = place.first_chunk + segment * chunking_.segment_chunks;
      move(memories_[place.memory].local() + chunk * chunking_.chunk_bytes, segment * Index(bytes), bytes);
    }
  }

  // --- Steps -------------------------------------------------------------------------------------------------------

  void launch(CallSite where) {
    where_ = where;
    for (Block& block : blocks_) block = {.program = block.program, .index = block.index};
    std::vector<Block*> running;
    for (Block& block : blocks_) running.push_back(&block);
    // Whether any block could go on.
    const auto pass = [&] {
      const Index before = steps_ + progress_;
      std::erase_if(running, [&](Block* block) { return advance(*block); });
      return running.empty() || steps_ + progress_ != before;
    };
    while (!running.empty())
      if (!pass()) wait_for(*running.front(), pass);
    context_.quiet(where);
  }

  template <class Pass>
  void wait_for(const Block& block, const Pass& pass) {
    const Step& outer = block.program->steps[block.at];
    const Step& step = outer.pipeline ? outer.pipeline->steps[block.inner] : outer;
    const std::string label = fmt::format("step {} ({}) of block {}", block.at, shape_of(step.kind).word, block.index);
    Rank raised_by = WaitNote::anyone;
    if (waits(step.kind)) {
      const auto kind = static_cast<std::size_t>(step.channel);
      raised_by = own().peers[kind][static_cast<std::size_t>(step.ids[block.waited])];
    }
    world_.wait_until(pass, WaitNote(label.c_str(), raised_by, where_));
  }

  /// Goes as far as the block can. Whether it has ended.
  bool advance(Block& block) {
    const std::vector<Step>& steps = block.program->steps;
    while (block.at < steps.size()) {
      const Step& step = steps[block.at];
      if (step.pipeline && !step.pipeline->steps.empty()) {
        const Index iterations = iterations_of(*step.pipeline);
        if (block.iteration < iterations) {
          if (!execute(block, step.pipeline->steps[block.inner], step.pipeline.get())) return false;
          block.waited = 0;
          block.packets = 0;
          if (++block.inner == step.pipeline->steps.size()) {
            block.inner = 0;
            ++block.iteration;
          }
          continue;
        }
        block.iteration = 0;
      } else if (!execute(block, step, nullptr)) {
        return false;
      }
      block.waited = 0;
      block.packets = 0;
      ++block.at;
    }
    return true;
  }

  Index iterations_of(const Pipeline& loop) const {
    const Index unit = round_up(loop.unit_bytes, unit_bytes);
    return std::max<Index>(1, (loop.chunks * chunking_.chunk_bytes + unit - 1) / unit);
  }

  /// Whether the step was done; else it is tried again later.
  bool execute(Block& block, const Step& step, const Pipeline* loop) {
    switch (step.kind) {
      case StepKind::nop:
      case StepKind::pipeline:
        break;
      case StepKind::barrier:
        if (!come_to_barrier(block, step)) return false;
        break;
      case StepKind::signal:
      case StepKind::relaxed_signal:
        for (const std::int32_t channel : step.ids) signal(step.channel, channel);
        break;
      case StepKind::wait:
      case StepKind::relaxed_wait:
        for (; block.waited < step.ids.size(); ++block.waited)
          if (!take_signal(step.channel, step.ids[block.waited])) return false;
        break;
      case StepKind::acquire:
        for (; block.waited < step.ids.size(); ++block.waited) {
          Index& value = semaphores_[static_cast<std::size_t>(step.ids[block.waited])];
          if (value == 0) return false;
          --value;
          ++progress_;
        }
        break;
      case StepKind::release:
        for (const std::int32_t id : step.ids) ++semaphores_[static_cast<std::size_t>(id)];
        break;
      case StepKind::flush:
        context_.quiet(where_);
        break;
      default:
        if (!move(block, step, loop)) return false;
    }
    ++steps_;
    return true;
  }

  struct Barrier {
    int arrived = 0;
    Index round = 0;
  };
  bool come_to_barrier(Block& block, const Step& step) {
    Barrier& barrier = barriers_[step.ids[0]];
    if (!block.has_arrived) {
      block.has_arrived = true;
      block.packets = barrier.round;  // which one it has come to
      if (++barrier.arrived == step.participants) {
        barrier.arrived = 0;
        ++barrier.round;
      }
    }
    if (barrier.round == block.packets) return false;
    block.has_arrived = false;
    return true;
  }

  static constexpr Index words_per_line = 8;
  Symmetric<std::uint64_t> counter(std::size_t id) const { return counters_.slice(Index(id) * words_per_line, 1); }

  void signal(ChannelKind kind, std::int32_t channel) {
    const auto k = static_cast<std::size_t>(kind);
    const Rank peer = own().peers[k][static_cast<std::size_t>(channel)];
    context_.fence(where_);
    context_.signal(counter(out_[k][static_cast<std::size_t>(channel)]), 1, SignalOp::add, peer, where_);
  }
  bool take_signal(ChannelKind kind, std::int32_t channel) {
    const std::size_t id = in_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(channel)];
    if (look_at(counter(id)) <= seen_[id]) {
      ++polls_;
      return false;
    }
    ++seen_[id];
    ++progress_;
    return true;
  }

  // --- Data --------------------------------------------------------------------------------------------------------

  /// Acquires. Where no transfers are under way that must be driven, this is one load.
  std::uint64_t look_at(Symmetric<std::uint64_t> word) const {
    return context_.completes_at_once() ? __atomic_load_n(word.local(), __ATOMIC_ACQUIRE)
                                        : context_.signal_fetch(word, where_);
  }

  /// Bytes of the chunks of each operand on which a step works.
  struct Part {
    Index begin, end;
  };
  Part part_of(const Block& block, const Step& step, const Pipeline* loop) const {
    Index begin = 0, end = (step.operands.empty() ? 0 : step.operands[0].count) * chunking_.chunk_bytes;
    if (loop) {
      const Index unit = round_up(loop->unit_bytes, unit_bytes);
      begin = std::min(end, block.iteration * unit);
      end = std::min(end, begin + unit);
    }
    if (step.shares > 0) {
      const Index units = (end - begin) / unit_bytes, each = units / step.shares, more = units % step.shares;
      begin += (step.share * each + std::min<Index>(step.share, more)) * unit_bytes;
      end = begin + (each + (step.share < more ? 1 : 0)) * unit_bytes;
    }
    return {begin, end};
  }

  /// Where bytes of an operand lie, at a rank.
  struct Place {
    Rank rank;
    Symmetric<std::byte> bytes;
    Format format;
  };
  Place place(Rank rank, const Operand& operand, Format format, Part part) const {
    const BufferPlace at = place_of(program_, rank, operand.buffer);
    Index first = (at.first_chunk + operand.first) * chunking_.chunk_bytes + part.begin, count = part.end - part.begin;
    if (format != Format::plain) first *= 2, count *= 2;
    if (at.memory == scratch_memory && program_.double_scratch && launch_ % 2 == 0) first += scratch_bytes_;
    return {rank, memories_[at.memory].slice(first, count), format};
  }
  template <class F>
  void for_each_place(const Operand& operand, OperandShape shape, Part part, F&& f) const {
    switch (shape.where) {
      case Where::here:
        return f(place(world_.rank(), operand, shape.format, part));
      case Where::peer:
        return f(place(own().remote_buffers[static_cast<std::size_t>(operand.via)].rank, operand, shape.format, part));
      case Where::group:
        for (const Rank rank : own().switches[static_cast<std::size_t>(operand.via)].ranks)
          f(place(rank, operand, shape.format, part));
    }
  }

  bool move(Block& block, const Step& step, const Pipeline* loop) {
    const StepShape& shape = shape_of(step.kind);
    const Part part = part_of(block, step, loop);
    const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
    if (!have_packets_come(block, step, shape, part)) return false;
    const Index bytes = part.end - part.begin;
    for (Index first = 0; first < bytes; first += block_bytes) {
      const Part now{part.begin + first, std::min(part.end, part.begin + first + block_bytes)};
      if (shape.pairing == Pairing::pairs) {
        for (std::size_t i = 0; i < targets; ++i) {
          const std::byte* const data = loaded(step.operands[i], shape_of_source(shape, i), now);
          store(step.operands[sources + i], shape_of_target(shape, i), now, data);
        }
      } else {
        const std::byte* const data = combined(step, shape, now);
        for (std::size_t i = 0; i < targets; ++i)
          store(step.operands[sources + i], shape_of_target(shape, i), now, data);
      }
    }
    if (step.kind == StepKind::put_signal || step.kind == StepKind::put_signal_flush)
      for (const std::int32_t channel : step.ids) signal(ChannelKind::port, channel);
    if (step.kind == StepKind::put_signal_flush) context_.quiet(where_);
    return true;
  }

  /// The data of one source: where it lies, or in `block_buffer_`.
  const std::byte* loaded(const Operand& operand, OperandShape shape, Part part) {
    const std::byte* data = nullptr;
    for_each_place(operand, shape, part, [&](const Place& at) { data = load(at, block_buffer_.data()); });
    return data;
  }

  const std::byte* combined(const Step& step, const StepShape& shape, Part part) {
    const auto bytes = static_cast<std::size_t>(part.end - part.begin);
    const Reduction reduction = reduction_.value_or(step.reduction);
    const std::byte* first = nullptr;
    bool is_sum = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(step.sources); ++i)
      for_each_place(step.operands[i], shape_of_source(shape, i), part, [&](const Place& at) {
        if (!first) {
          first = load(at, block_buffer_.data());
          return;
        }
        if (!is_sum && first != block_buffer_.data()) std::memcpy(block_buffer_.data(), first, bytes);
        is_sum = true;
        first = block_buffer_.data();
        alignas(64) std::byte next[block_bytes];
        detail::reduce_into(block_buffer_.data(), load(at, next), bytes, reduction, type_);
      });
    return first;
  }

  bool reaches(Rank rank) const { return context_.completes_at_once() || rank == world_.rank(); }

  /// Where plain data lies, or `buffer` with what was fetched or unpacked.
  const std::byte* load(const Place& at, std::byte* buffer) {
    const auto bytes = static_cast<std::size_t>(at.bytes.size());
    if (at.format == Format::plain) {
      if (at.rank == world_.rank()) {
        context_.reads(std::span<const std::byte>(at.bytes.local(), bytes), where_);
        return at.bytes.local();
      }
      if (reaches(at.rank)) return context_.peer_array(at.bytes, at.rank, where_).data();
      context_.get<std::byte>(std::span(buffer, bytes), at.bytes, at.rank, where_);
      return buffer;
    }
    const auto* const packets = reinterpret_cast<const std::uint64_t*>(at.bytes.local());
    for (std::size_t i = 0; i < bytes / 8; ++i) {
      const auto data = static_cast<std::uint32_t>(__atomic_load_n(packets + i, __ATOMIC_RELAXED));
      std::memcpy(buffer + 4 * i, &data, sizeof data);
    }
    return buffer;
  }

  void store(const Operand& operand, OperandShape shape, Part part, const std::byte* data) {
    for_each_place(operand, shape, part, [&](const Place& at) {
      const auto bytes = static_cast<std::size_t>(part.end - part.begin);
      if (at.format != Format::plain) return store_packets(at, data, bytes);
      if (at.rank != world_.rank()) return context_.put<std::byte>(at.bytes, std::span(data, bytes), at.rank, where_);
      context_.writes(std::span<const std::byte>(at.bytes.local(), bytes), where_);
      if (data != at.bytes.local()) std::memmove(at.bytes.local(), data, bytes);
    });
  }

  void store_packets(const Place& at, const std::byte* data, std::size_t bytes) {
    const auto flag = std::uint64_t(static_cast<std::uint32_t>(launch_)) << 32;
    const auto packet = [&](std::size_t i) {
      std::uint32_t value;
      std::memcpy(&value, data + 4 * i, sizeof value);
      return flag | value;
    };
    if (reaches(at.rank)) {
      // This rank's own are there at once: a port channel may send them on without waiting for their flags.
      std::byte* const first =
          at.rank == world_.rank() ? at.bytes.local() : context_.peer_array(at.bytes, at.rank, where_).data();
      auto* const packets = reinterpret_cast<std::uint64_t*>(first);
      for (std::size_t i = 0; i < bytes / 4; ++i) __atomic_store_n(packets + i, packet(i), __ATOMIC_RELEASE);
      return;
    }
    const auto words =
        Symmetric<std::uint64_t>::at(reinterpret_cast<std::uint64_t*>(at.bytes.local()), Index(bytes) / 4);
    for (std::size_t i = 0; i < bytes / 4; ++i) context_.set(words.slice(Index(i), 1), packet(i), at.rank, where_);
  }

  /// Whether all packets that the step reads have the flag of this launch. Those that have come are not looked at
  /// again.
  bool have_packets_come(Block& block, const Step& step, const StepShape& shape, Part part) {
    bool have_come = true;
    Index passed = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(step.sources) && have_come; ++i) {
      const OperandShape what = shape_of_source(shape, i);
      if (what.format != Format::packets) continue;
      for_each_place(step.operands[i], what, part, [&](const Place& at) {
        const auto words =
            Symmetric<std::uint64_t>::at(reinterpret_cast<std::uint64_t*>(at.bytes.local()), at.bytes.size() / 8);
        for (Index k = std::max<Index>(0, block.packets - passed); k < words.size() && have_come; ++k) {
          have_come = look_at(words.slice(k, 1)) >> 32 == flag();
          if (!have_come) break;
          block.packets = passed + k + 1;
          ++progress_;
        }
        passed += words.size();
      });
    }
    if (!have_come) ++polls_;
    return have_come;
  }
  std::uint64_t flag() const { return static_cast<std::uint32_t>(launch_); }

  static constexpr Index block_bytes = 16384;  // what is combined at a time stays in the nearest caches

  World& world_;
  Context& context_;
  Program program_;
  ElementType type_;
  std::optional<Reduction> reduction_;
  Index width_;
  Index elements_;
  Chunking chunking_;
  bool meets_between_ = false;
  SymmetricArray<std::byte> memories_[buffer_kinds];
  SymmetricArray<std::uint64_t> counters_;
  Index scratch_bytes_ = 0;
  std::vector<std::uint64_t> seen_;
  std::vector<std::size_t> in_[2], out_[2];  ///< counters of channels, by kind
  std::vector<Index> semaphores_;
  std::map<int, Barrier> barriers_;
  std::vector<Block> blocks_;
  std::vector<std::byte> block_buffer_;
  std::uint64_t launch_ = 0;
  CallSite where_;
  Index steps_ = 0, polls_ = 0;
  Index progress_ = 0;  ///< within steps
};

ProgramExecutor::ProgramExecutor(World& world, Program program, Index elements, const ProgramOptions& options,
                                 CallSite where)
    : machine_(std::make_unique<Machine>(world, std::move(program), elements, options, where)) {}
ProgramExecutor::~ProgramExecutor() = default;
ProgramExecutor::ProgramExecutor(ProgramExecutor&&) noexcept = default;
ProgramExecutor& ProgramExecutor::operator=(ProgramExecutor&&) noexcept = default;

Index ProgramExecutor::input_elements() const noexcept {
  return machine_->input_elements();
}
Index ProgramExecutor::output_elements() const noexcept {
  return machine_->output_elements();
}
Index ProgramExecutor::steps() const noexcept {
  return machine_->steps();
}
Index ProgramExecutor::polls() const noexcept {
  return machine_->polls();
}

void ProgramExecutor::run(const void* input, void* output, CallSite where) {
  machine_->run(input, output, where);
}

}  // namespace tranship
