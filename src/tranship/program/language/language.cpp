#include <algorithm>
#include <map>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/language.hpp>
#include <tranship/program/language/draft.hpp>
#include <tranship/program/verify.hpp>

namespace tranship::language {
namespace {

// Limits of a program. Files store ranks and blocks as 32-bit numbers; the limits keep a program that was written by
// mistake (a loop over the wrong variable) from filling the memory.
constexpr tranship::Rank ranks_max = 1 << 20;
constexpr int blocks_max = 1 << 20;

void check_rank(const ProgramDraft& program, tranship::Rank rank, const char* what) {
  const auto ranks = static_cast<tranship::Rank>(program.header.ranks.size());
  if (rank < 0 || rank >= ranks)
    throw_error(ErrorCode::invalid_use, "{} {} is out of bounds: the program \"{}\" has {}", what, rank,
                program.header.name, amount(ranks, "rank"));
}

void check_chunk(const ProgramDraft& program, const Chunk& chunk, tranship::Rank owner, const char* what) {
  if (chunk.rank != owner)
    throw_error(ErrorCode::invalid_use, "the {} is a chunk of rank {}, but this operation takes one of rank {}", what,
                chunk.rank, owner);
  check_rank(program, chunk.rank, "rank");
  const Index chunks = program.resources(chunk.rank).chunks[static_cast<std::size_t>(chunk.buffer)];
  if (chunk.first < 0 || chunk.count < 0 || chunk.first > chunks || chunk.count > chunks - chunk.first)
    throw_error(ErrorCode::invalid_use, "the {} is {} of rank {}, which has {}", what,
                chunks_text(name_of(chunk.buffer), chunk.first, chunk.count), chunk.rank, counted(chunks, "chunk"));
}

void check_sizes(const Chunk& target, const Chunk& source) {
  if (target.count != source.count)
    throw_error(ErrorCode::invalid_use, "the target has {}, the source {}", counted(target.count, "chunk"),
                source.count);
}

void check_scratch(const Chunk& chunk, const char* what) {
  if (chunk.buffer != BufferKind::scratch)
    throw_error(ErrorCode::invalid_use, "the {} is in {}, but packets must lie in scratch", what,
                name_of(chunk.buffer));
}

Operand operand_of(const Chunk& chunk, std::int32_t via = -1) {
  return {.buffer = chunk.buffer, .via = via, .first = chunk.first, .count = chunk.count};
}

/// Returns the remote buffer of `rank` for a buffer of a peer; adds it where there is none.
std::int32_t remote_buffer(ProgramDraft& program, tranship::Rank rank, const Chunk& chunk, ChannelKind kind) {
  auto& buffers = program.resources(rank).remote_buffers;
  auto at = std::find_if(buffers.begin(), buffers.end(), [&](const RemoteBuffer& buffer) {
    return buffer.rank == chunk.rank && buffer.buffer == chunk.buffer;
  });
  if (at == buffers.end()) at = buffers.insert(at, {.rank = chunk.rank, .buffer = chunk.buffer, .access = {}});
  if (std::find(at->access.begin(), at->access.end(), kind) == at->access.end()) at->access.push_back(kind);
  return static_cast<std::int32_t>(at - buffers.begin());
}

void append(ProgramDraft& program, tranship::Rank rank, int block, Draft draft) {
  if (program.in_loop) {
    program.gathered.push_back({rank, block, std::move(draft)});
    return;
  }
  auto& blocks = program.at(rank).blocks;
  if (static_cast<std::size_t>(block) >= blocks.size()) blocks.resize(static_cast<std::size_t>(block) + 1);
  blocks[static_cast<std::size_t>(block)].steps.push_back(std::move(draft));
}

void check_block(int block) {
  if (block < 0 || block >= blocks_max)
    throw_error(ErrorCode::invalid_use, "thread block {}: blocks are numbered from 0 to {}", block, blocks_max - 1);
}

/// Adds an operation to each of its blocks, with the block's share of the bytes.
void add(ProgramDraft& program, tranship::Rank rank, const ThreadBlocks& blocks, Draft draft, CallSite where) {
  for (const int block : blocks.ids()) check_block(block);
  draft.step.line = where.line;
  draft.blocks = blocks.ids();
  draft.order = program.order++;
  draft.step.shares = blocks.shares();
  draft.step.share = blocks.first_share();
  for (const int block : blocks.ids()) {
    append(program, rank, block, draft);
    if (blocks.is_group()) ++draft.step.share;
  }
}

std::int32_t add_channel(ProgramDraft& program, ChannelEnds ends, ChannelKind kind) {
  check_rank(program, ends.source, "source rank");
  check_rank(program, ends.target, "target rank");
  auto& peers = program.resources(ends.source).peers[static_cast<std::size_t>(kind)];
  peers.push_back(ends.target);
  return static_cast<std::int32_t>(peers.size() - 1);
}

Draft signal_draft(StepKind step, ChannelKind kind, std::int32_t channel, DataSync sync) {
  Draft draft;
  draft.step.kind = step;
  draft.step.channel = kind;
  draft.step.ids = {channel};
  draft.channels = {channel};
  draft.sync = sync;
  return draft;
}

/// A transfer of one source to one target over a channel.
struct Transfer {
  StepKind step;
  ChannelKind kind;
  ChannelEnds ends;
  std::int32_t channel;
};
void add_transfer(ProgramDraft& program, const Transfer& transfer, const Chunk& target, const Chunk& source,
                  const ThreadBlocks& blocks, CallSite where) {
  const bool is_get = transfer.step == StepKind::get;
  check_chunk(program, source, is_get ? transfer.ends.target : transfer.ends.source, "source");
  check_chunk(program, target, is_get ? transfer.ends.source : transfer.ends.target, "target");
  check_sizes(target, source);
  const StepShape& shape = shape_of(transfer.step);
  if (shape_of_source(shape, 0).format != OperandFormat::plain) check_scratch(source, "source");
  if (shape_of_target(shape, 0).format != OperandFormat::plain) check_scratch(target, "target");
  Draft draft;
  draft.step.kind = transfer.step;
  draft.step.channel = transfer.kind;
  draft.step.sources = 1;
  const std::int32_t remote = remote_buffer(program, transfer.ends.source, is_get ? source : target, transfer.kind);
  draft.step.operands = {operand_of(source, is_get ? remote : -1), operand_of(target, is_get ? -1 : remote)};
  draft.channels = {transfer.channel};
  // Plan files name the channels of gets and of port requests.
  if (is_get || transfer.kind == ChannelKind::port) draft.step.ids = draft.channels;
  add(program, transfer.ends.source, blocks, std::move(draft), where);
}

void add_local(ProgramDraft& program, StepKind step, const Chunk& target, const Chunk& source,
               const ThreadBlocks& blocks, CallSite where) {
  check_chunk(program, source, target.rank, "source");
  check_chunk(program, target, target.rank, "target");
  check_sizes(target, source);
  const StepShape& shape = shape_of(step);
  if (shape_of_source(shape, 0).format != OperandFormat::plain) check_scratch(source, "source");
  if (shape_of_target(shape, 0).format != OperandFormat::plain) check_scratch(target, "target");
  Draft draft;
  draft.step.kind = step;
  draft.step.sources = 1;
  draft.step.operands = {operand_of(source), operand_of(target)};
  add(program, target.rank, blocks, std::move(draft), where);
}

/// The common part of all reductions: the first source and the options.
Draft reduction_draft(const ProgramDraft& program, StepKind step, tranship::Rank rank, const Chunk& source,
                      const std::vector<Chunk>& others, const ReduceOptions& options) {
  const Chunk& target = options.target ? *options.target : source;
  check_chunk(program, source, rank, "source");
  check_chunk(program, target, rank, "target");
  check_sizes(target, source);
  if (others.empty()) throw_error(ErrorCode::invalid_use, "reduce: there is no operand beside the first source");
  for (const Chunk& other : others)
    if (other.count != source.count)
      throw_error(ErrorCode::invalid_use, "reduce: the source has {}, an operand has {}",
                  counted(source.count, "chunk"), other.count);
  Draft draft;
  draft.step.kind = step;
  draft.step.reduction = options.reduction;
  draft.step.sources = static_cast<std::int32_t>(1 + others.size());
  draft.step.operands = {operand_of(source)};
  return draft;
}

void add_local_reduction(ProgramDraft& program, StepKind step, const Chunk& source, const std::vector<Chunk>& others,
                         const ThreadBlocks& blocks, const ReduceOptions& options, CallSite where) {
  Draft draft = reduction_draft(program, step, source.rank, source, others, options);
  for (const Chunk& other : others) {
    check_chunk(program, other, source.rank, "source");
    if (step == StepKind::reduce_packets) check_scratch(other, "source");
    draft.step.operands.push_back(operand_of(other));
  }
  draft.step.operands.push_back(operand_of(options.target ? *options.target : source));
  add(program, source.rank, blocks, std::move(draft), where);
}

Collective collective_of(const char* name, tranship::Rank ranks, const CollectiveOptions& options, bool cuts_input,
                         bool joins_output) {
  if (ranks < 1 || ranks > ranks_max)
    throw_error(ErrorCode::invalid_use, "a collective of {}; 1 to {} are possible", amount(ranks, "rank"), ranks_max);
  if (options.chunk_factor < 1)
    throw_error(ErrorCode::invalid_use, "a chunk factor of {}; it is 1 or more", options.chunk_factor);
  const Index all = checked_multiply(Index(ranks), options.chunk_factor);
  const auto each = [&](bool has_all) {
    return std::vector<Index>(static_cast<std::size_t>(ranks), has_all ? all : options.chunk_factor);
  };
  return {name, each(cuts_input), each(joins_output), options.in_place};
}

}  // namespace

Collective all_reduce(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("allreduce", ranks, options, true, true);
}
Collective all_gather(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("allgather", ranks, options, false, true);
}
Collective reduce_scatter(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("reducescatter", ranks, options, true, false);
}
Collective all_to_all(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("alltoall", ranks, options, true, true);
}
Collective send_recv(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("sendrecv", ranks, options, false, false);
}
Collective broadcast(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("broadcast", ranks, options, false, false);
}
Collective reduce(tranship::Rank ranks, const CollectiveOptions& options) {
  return collective_of("reduce", ranks, options, false, false);
}
Collective custom(std::vector<Index> input_chunks, std::vector<Index> output_chunks) {
  return {"test", std::move(input_chunks), std::move(output_chunks), false};
}

Chunk Buffer::operator[](Range range) const {
  if (range.begin < 0 || range.end < range.begin || range.end > chunks_)
    throw_error(ErrorCode::invalid_use, "[{}..{}) is not a range of a buffer of {} ({} of rank {})", range.begin,
                range.end, counted(chunks_, "chunk"), name_of(kind_), rank_);
  return {rank_, kind_, first_ + range.begin, range.end - range.begin};
}

ThreadBlocks::ThreadBlocks(std::vector<int> group) : ids_(std::move(group)), shares_(static_cast<int>(ids_.size())) {
  std::vector<int> sorted = ids_;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw_error(ErrorCode::invalid_use, "thread block {} is twice in a group of {}", *twice, ids_.size());
  if (ids_.empty()) throw_error(ErrorCode::invalid_use, "a group needs at least 1 thread block");
}

ThreadBlocks ThreadBlocks::one_of(int block, std::vector<int> group) {
  ThreadBlocks out(std::move(group));
  const auto at = std::find(out.ids_.begin(), out.ids_.end(), block);
  if (at == out.ids_.end())
    throw_error(ErrorCode::invalid_use, "thread block {} is not in the group of {}", block, out.ids_.size());
  out.first_share_ = static_cast<int>(at - out.ids_.begin());
  out.ids_ = {block};
  return out;
}

CollectiveProgram::CollectiveProgram(std::string name, Collective collective, Options options)
    : draft_(std::make_unique<ProgramDraft>()) {
  if (options.protocol != "Simple" && options.protocol != "LL")
    throw_error(ErrorCode::invalid_use, "the protocol is \"{}\"; it must be \"Simple\" or \"LL\"", options.protocol);
  if (options.instances < 1)
    throw_error(ErrorCode::invalid_use, "the program has {}; at least 1 is needed",
                amount(options.instances, "instance"));
  if (options.threads_per_block < 1)
    throw_error(ErrorCode::invalid_use, "{} per block; at least 1 is needed",
                amount(options.threads_per_block, "thread"));
  if (options.buffer_alignment < 1)
    throw_error(ErrorCode::invalid_use, "buffers are aligned to {}; at least 1 is needed",
                amount(options.buffer_alignment, "byte"));
  if (options.message_bytes_min > options.message_bytes_max)
    throw_error(ErrorCode::invalid_use, "the smallest message, {}, is larger than the largest, {}",
                options.message_bytes_min, amount(options.message_bytes_max, "byte"));
  const std::size_t ranks = collective.input_chunks.size();
  if (ranks != collective.output_chunks.size())
    throw_error(ErrorCode::invalid_use, "a collective has {} and {}: their numbers must be equal",
                amount(ranks, "input"), amount(collective.output_chunks.size(), "output"));
  if (ranks < 1 || ranks > static_cast<std::size_t>(ranks_max))
    throw_error(ErrorCode::invalid_use, "a collective of {}; 1 to {} are possible", amount(ranks, "rank"), ranks_max);
  Program& header = draft_->header;
  header.name = std::move(name);
  header.collective = collective.name;
  header.protocol = options.protocol;
  header.in_place = collective.in_place;
  header.reuse_resources = options.reuse_resources;
  header.double_scratch = options.double_scratch;
  header.threads_per_block = options.threads_per_block;
  header.buffer_alignment = options.buffer_alignment;
  header.message_bytes_min = options.message_bytes_min;
  header.message_bytes_max = options.message_bytes_max;
  header.ranks.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Index input = collective.input_chunks[rank], output = collective.output_chunks[rank];
    if (input < 0 || output < 0)
      throw_error(ErrorCode::invalid_use, "buffers have {} and {}: both must be 0 or more (rank {})", input,
                  counted(output, "chunk"), rank);
    header.ranks[rank].chunks[static_cast<int>(BufferKind::input)] = input;
    header.ranks[rank].chunks[static_cast<int>(BufferKind::output)] = output;
  }
  draft_->ranks.resize(header.ranks.size());
  draft_->collective = std::move(collective);
  draft_->options = std::move(options);
}
CollectiveProgram::~CollectiveProgram() = default;
CollectiveProgram::CollectiveProgram(CollectiveProgram&&) noexcept = default;
CollectiveProgram& CollectiveProgram::operator=(CollectiveProgram&&) noexcept = default;

tranship::Rank CollectiveProgram::ranks() const noexcept {
  return static_cast<tranship::Rank>(draft_->ranks.size());
}
const Collective& CollectiveProgram::collective() const noexcept {
  return draft_->collective;
}
Index CollectiveProgram::chunks_of(tranship::Rank rank, BufferKind buffer) const {
  check_rank(*draft_, rank, "rank");
  return draft_->resources(rank).chunks[static_cast<std::size_t>(buffer)];
}
Buffer CollectiveProgram::input(tranship::Rank rank) const {
  return {rank, BufferKind::input, 0, chunks_of(rank, BufferKind::input)};
}
Buffer CollectiveProgram::output(tranship::Rank rank) const {
  return {rank, BufferKind::output, 0, chunks_of(rank, BufferKind::output)};
}
Buffer CollectiveProgram::scratch(tranship::Rank rank, Index chunks) {
  const Index first = chunks_of(rank, BufferKind::scratch);
  if (chunks < 0)
    throw_error(ErrorCode::invalid_use, "a scratch buffer has {}: it must have 0 or more", counted(chunks, "chunk"));
  draft_->resources(rank).chunks[static_cast<int>(BufferKind::scratch)] = checked_add(first, chunks);
  return {rank, BufferKind::scratch, first, chunks};
}

void CollectiveProgram::copy(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where) {
  add_local(*draft_, StepKind::copy, target, source, blocks, where);
}
void CollectiveProgram::copy_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                                     CallSite where) {
  add_local(*draft_, StepKind::copy_packets, target, source, blocks, where);
}
void CollectiveProgram::unpack_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                                       CallSite where) {
  add_local(*draft_, StepKind::unpack_packets, target, source, blocks, where);
}
void CollectiveProgram::reduce(const Chunk& source, const std::vector<Chunk>& others, const ThreadBlocks& blocks,
                               const ReduceOptions& options, CallSite where) {
  add_local_reduction(*draft_, StepKind::reduce, source, others, blocks, options, where);
}
void CollectiveProgram::reduce_packets(const Chunk& source, const std::vector<Chunk>& others,
                                       const ThreadBlocks& blocks, const ReduceOptions& options, CallSite where) {
  add_local_reduction(*draft_, StepKind::reduce_packets, source, others, blocks, options, where);
}

void CollectiveProgram::barrier(tranship::Rank rank, const std::vector<int>& blocks, CallSite where) {
  check_rank(*draft_, rank, "rank");
  if (blocks.empty()) throw_error(ErrorCode::invalid_use, "a barrier needs at least 1 thread block");
  Draft draft;
  if (blocks.size() > 1) {
    std::vector<int> group = ThreadBlocks(blocks).ids();
    auto& barriers = draft_->at(rank).barriers;
    const auto at = std::find(barriers.begin(), barriers.end(), group);
    draft.step.kind = StepKind::barrier;
    draft.step.ids = {static_cast<std::int32_t>(at - barriers.begin())};
    draft.step.participants = static_cast<std::int32_t>(group.size());
    if (at == barriers.end()) barriers.push_back(std::move(group));
  }
  for (const int block : blocks) check_block(block);
  draft.step.line = where.line;
  draft.blocks = blocks;
  draft.order = draft_->order++;
  for (const int block : blocks) append(*draft_, rank, block, draft);
}

Program CollectiveProgram::lower() const {
  return lower(draft_->options.passes);
}

Program CollectiveProgram::lower(const Passes& passes) const {
  if (draft_->in_loop)
    throw_error(ErrorCode::invalid_use, "a loop over {} is still open", amount(draft_->loop_shape.chunks, "chunk"));
  const auto lowered = [&](ProgramDraft program) {
    if (passes.replication) split_for_instances(program);
    if (passes.fusion) fuse(program);
    if (passes.data_sync) insert_data_sync(program);
    if (passes.dependencies) insert_dependencies(program);
    if (passes.replication) replicate(program);
    Program out = numbered(program);
    check_structure(out);
    return out;
  };
  if (passes.pairing) check_pairing(*draft_);
  Program out = lowered(*draft_);
  if (!passes.group_barriers) return out;
  // The blocks of a group may be ordered by signals through other ranks, which only a proof can tell.
  ProgramDraft with_barriers = *draft_;
  if (!insert_group_barriers(with_barriers) || verify(out).is_right()) return out;
  Program waiting = lowered(std::move(with_barriers));
  return verify(waiting).is_right() ? waiting : out;
}

MemoryChannel::MemoryChannel(CollectiveProgram& program, ChannelEnds ends)
    : draft_(program.draft_.get()), ends_(ends), id_(add_channel(*draft_, ends, ChannelKind::memory)) {}

void MemoryChannel::signal(int block, const SyncOptions& options, CallSite where) {
  add(*draft_, ends_.source, block,
      signal_draft(options.relaxed ? StepKind::relaxed_signal : StepKind::signal, ChannelKind::memory, id_,
                   options.data_sync),
      where);
}
void MemoryChannel::wait(int block, const SyncOptions& options, CallSite where) {
  add(*draft_, ends_.source, block,
      signal_draft(options.relaxed ? StepKind::relaxed_wait : StepKind::wait, ChannelKind::memory, id_,
                   options.data_sync),
      where);
}
void MemoryChannel::put(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where) {
  add_transfer(*draft_, {StepKind::put, ChannelKind::memory, ends_, id_}, target, source, blocks, where);
}
void MemoryChannel::get(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where) {
  add_transfer(*draft_, {StepKind::get, ChannelKind::memory, ends_, id_}, target, source, blocks, where);
}
void MemoryChannel::put_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks, CallSite where) {
  add_transfer(*draft_, {StepKind::put_packets, ChannelKind::memory, ends_, id_}, target, source, blocks, where);
}
void MemoryChannel::read_put_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                                     CallSite where) {
  add_transfer(*draft_, {StepKind::read_put_packets, ChannelKind::memory, ends_, id_}, target, source, blocks, where);
}
void MemoryChannel::reduce(const Chunk& local, const std::vector<Chunk>& remote, const ThreadBlocks& blocks,
                           const ReduceOptions& options, CallSite where) {
  Draft draft = reduction_draft(*draft_, StepKind::read_reduce, ends_.source, local, remote, options);
  for (const Chunk& other : remote) {
    check_chunk(*draft_, other, ends_.target, "source");
    draft.step.operands.push_back(operand_of(other, remote_buffer(*draft_, ends_.source, other, ChannelKind::memory)));
  }
  draft.step.operands.push_back(operand_of(options.target ? *options.target : local));
  draft.channels = {id_};
  add(*draft_, ends_.source, blocks, std::move(draft), where);
}

PortChannel::PortChannel(CollectiveProgram& program, ChannelEnds ends)
    : draft_(program.draft_.get()), ends_(ends), id_(add_channel(*draft_, ends, ChannelKind::port)) {}

void PortChannel::signal(int block, DataSync data_sync, CallSite where) {
  add(*draft_, ends_.source, block, signal_draft(StepKind::signal, ChannelKind::port, id_, data_sync), where);
}
void PortChannel::wait(int block, DataSync data_sync, CallSite where) {
  add(*draft_, ends_.source, block, signal_draft(StepKind::wait, ChannelKind::port, id_, data_sync), where);
}
void PortChannel::flush(int block, DataSync data_sync, CallSite where) {
  add(*draft_, ends_.source, block, signal_draft(StepKind::flush, ChannelKind::port, id_, data_sync), where);
}
void PortChannel::put(const Chunk& target, const Chunk& source, int block, CallSite where) {
  add_transfer(*draft_, {StepKind::put, ChannelKind::port, ends_, id_}, target, source, block, where);
}
void PortChannel::put_with_signal(const Chunk& target, const Chunk& source, int block, CallSite where) {
  add_transfer(*draft_, {StepKind::put_signal, ChannelKind::port, ends_, id_}, target, source, block, where);
}
void PortChannel::put_with_signal_and_flush(const Chunk& target, const Chunk& source, int block, CallSite where) {
  add_transfer(*draft_, {StepKind::put_signal_flush, ChannelKind::port, ends_, id_}, target, source, block, where);
}
void PortChannel::put_packets(const Chunk& target, const Chunk& source, int block, CallSite where) {
  add_transfer(*draft_, {StepKind::port_put_packets, ChannelKind::port, ends_, id_}, target, source, block, where);
}
void PortChannel::read_put_packets(const Chunk& target, const Chunk& source, const ThreadBlocks& blocks,
                                   CallSite where) {
  add_transfer(*draft_, {StepKind::read_put_packets, ChannelKind::port, ends_, id_}, target, source, blocks, where);
}

SwitchChannel::SwitchChannel(CollectiveProgram& program, std::vector<tranship::Rank> ranks, BufferKind buffer)
    : draft_(program.draft_.get()), ranks_(std::move(ranks)), buffer_(buffer) {
  if (ranks_.empty()) throw_error(ErrorCode::invalid_use, "a switch channel needs at least 1 rank");
  std::vector<tranship::Rank> sorted = ranks_;
  std::sort(sorted.begin(), sorted.end());
  for (const tranship::Rank rank : sorted) check_rank(*draft_, rank, "rank");
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw_error(ErrorCode::invalid_use, "rank {} is twice in a switch channel of {}", *twice, ranks_.size());
  for (const tranship::Rank rank : ranks_) {
    auto& switches = draft_->resources(rank).switches;
    ids_.push_back(static_cast<std::int32_t>(switches.size()));
    switches.push_back({.buffer = buffer_, .ranks = ranks_});
  }
}

std::int32_t SwitchChannel::id_at(tranship::Rank rank) const {
  const auto at = std::find(ranks_.begin(), ranks_.end(), rank);
  if (at == ranks_.end())
    throw_error(ErrorCode::invalid_use, "rank {} is not among the {} of the switch channel", rank,
                amount(ranks_.size(), "rank"));
  return ids_[static_cast<std::size_t>(at - ranks_.begin())];
}

void SwitchChannel::check(tranship::Rank rank, const Chunk& chunk, Index first) const {
  check_chunk(*draft_, chunk, rank, "chunk");
  for (const tranship::Rank peer : ranks_)
    check_chunk(*draft_, {peer, buffer_, first, chunk.count}, peer, "place of the channel");
}

namespace {

void add_switched(ProgramDraft& program, StepKind step, tranship::Rank rank, std::int32_t channel,
                  const Operand& source, const Operand& target, Reduction reduction, int block, CallSite where) {
  Draft draft;
  draft.step.kind = step;
  draft.step.channel = ChannelKind::switched;
  draft.step.reduction = reduction;
  draft.step.sources = 1;
  draft.step.operands = {source, target};
  draft.channels = {channel};
  add(program, rank, block, std::move(draft), where);
}

}  // namespace

void SwitchChannel::reduce(tranship::Rank rank, Index first, const Chunk& target, int block, Reduction reduction,
                           CallSite where) {
  const std::int32_t id = id_at(rank);
  check(rank, target, first);
  add_switched(*draft_, StepKind::switch_reduce, rank, id, {buffer_, id, first, target.count}, operand_of(target),
               reduction, block, where);
}
void SwitchChannel::broadcast(tranship::Rank rank, const Chunk& source, Index first, int block, CallSite where) {
  const std::int32_t id = id_at(rank);
  check(rank, source, first);
  add_switched(*draft_, StepKind::switch_broadcast, rank, id, operand_of(source), {buffer_, id, first, source.count},
               Reduction::sum, block, where);
}
void SwitchChannel::broadcast_packets(tranship::Rank rank, const Chunk& source, Index first, int block,
                                      CallSite where) {
  const std::int32_t id = id_at(rank);
  check(rank, source, first);
  check_scratch(source, "source");
  check_scratch({rank, buffer_, first, source.count}, "target");
  add_switched(*draft_, StepKind::switch_broadcast_packets, rank, id, operand_of(source),
               {buffer_, id, first, source.count}, Reduction::sum, block, where);
}

Semaphore::Semaphore(CollectiveProgram& program, tranship::Rank rank, Index initial_value)
    : draft_(program.draft_.get()), rank_(rank) {
  check_rank(*draft_, rank, "rank");
  if (initial_value < 0)
    throw_error(ErrorCode::invalid_use, "a semaphore begins at {}; it must begin at 0 or more", initial_value);
  auto& semaphores = draft_->resources(rank).semaphores;
  id_ = static_cast<std::int32_t>(semaphores.size());
  semaphores.push_back(initial_value);
}
void Semaphore::acquire(int block, DataSync data_sync, CallSite where) {
  Draft draft = signal_draft(StepKind::acquire, ChannelKind::memory, id_, data_sync);
  draft.channels.clear();
  add(*draft_, rank_, block, std::move(draft), where);
}
void Semaphore::release(int block, DataSync data_sync, CallSite where) {
  Draft draft = signal_draft(StepKind::release, ChannelKind::memory, id_, data_sync);
  draft.channels.clear();
  add(*draft_, rank_, block, std::move(draft), where);
}

LoopIterationContext::LoopIterationContext(CollectiveProgram& program, LoopShape shape) : draft_(program.draft_.get()) {
  if (draft_->in_loop) throw_error(ErrorCode::invalid_use, "a loop within a loop: loops do not nest");
  if (shape.unit_bytes < 1 || shape.chunks < 1)
    throw_error(ErrorCode::invalid_use, "a loop over units of {} of {}; both must be 1 or more",
                amount(shape.unit_bytes, "byte"), amount(shape.chunks, "chunk"));
  draft_->in_loop = true;
  draft_->loop_shape = shape;
}

LoopIterationContext::~LoopIterationContext() {
  close();
}

void LoopIterationContext::close() {
  if (draft_ == nullptr) return;
  ProgramDraft* const program = std::exchange(draft_, nullptr);
  program->in_loop = false;
  std::vector<ProgramDraft::Gathered> gathered = std::move(program->gathered);
  program->gathered.clear();
  struct Loop {
    tranship::Rank rank;
    int block;
    Draft draft;
  };
  std::vector<Loop> loops;
  std::map<std::pair<tranship::Rank, int>, std::size_t> places;
  for (auto& one : gathered) {
    const auto [at, is_new] = places.try_emplace({one.rank, one.block}, loops.size());
    if (is_new) {
      Draft draft;
      draft.step.kind = StepKind::pipeline;
      draft.step.line = one.draft.step.line;
      draft.blocks = {one.block};
      draft.shape = program->loop_shape;
      loops.push_back({one.rank, one.block, std::move(draft)});
    }
    loops[at->second].draft.loop.push_back(std::move(one.draft));
  }
  for (Loop& loop : loops) {
    loop.draft.order = program->order++;
    append(*program, loop.rank, loop.block, std::move(loop.draft));
  }
}

}  // namespace tranship::language
