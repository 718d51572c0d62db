#include "programs.hpp"

#include <contest/collective.hpp>

namespace contest {
namespace {

using namespace tranship;

/// Packets have twice the bytes: from here on a meeting costs less.
constexpr std::int64_t packets_bytes_max = 512;
/// Up to here a copy costs less than a second meeting.
constexpr std::int64_t scratch_bytes_max = 16384;
/// Two ranks combine up to so many bytes whole, each for itself.
constexpr std::int64_t whole_bytes_max = 1 << 20;

Operand here(BufferKind buffer, Index first, Index count = 1) {
  return {.buffer = buffer, .first = first, .count = count};
}

class Writer {
 public:
  Writer(const Work& work, Rank rank)
      : work_(work),
        rank_(rank),
        ranks_(work.ranks),
        is_cut_(cuts(work)),
        has_packets_(uses_packets(work)),
        has_scratch_(uses_scratch(work)) {}

  static bool cuts(const Work& work) {
    return work.collective == Collective::reduce_scatter || work.collective == Collective::all_to_all;
  }
  static bool uses_packets(const Work& work) { return sizes_of(work).part * 8 <= packets_bytes_max; }

  static bool uses_scratch(const Work& work) { return sizes_of(work).part * 8 <= scratch_bytes_max; }

  RankProgram run() {
    const Index n = ranks_;
    const bool is_reduced_whole = work_.collective == Collective::all_reduce;
    // The parts of a large allreduce are the chunks that each rank combines.
    const Index whole = is_reduced_whole && (has_scratch_ || combines_whole()) ? 1 : n;
    out_.chunks[0] = work_.collective == Collective::all_gather ? 1 : whole;
    out_.chunks[1] = work_.collective == Collective::reduce_scatter ? 1 : whole;
    out_.chunks[2] = has_packets_ ? n : has_scratch_ ? out_.chunks[0] : 0;
    for (int i = 1; i < ranks_; ++i) {
      const Rank peer = (rank_ + i) % ranks_;
      out_.peers[0].push_back(peer);
      for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch})
        out_.remote_buffers.push_back({.rank = peer, .buffer = buffer, .access = {ChannelKind::memory}});
    }
    if (has_packets_)
      exchange();
    else if (has_scratch_)
      load_copies();
    else
      load_inputs();
    for (std::int32_t i = 0; i < ranks_ - 1; ++i) block_.channels[0].push_back(i);
    for (std::int32_t i = 0; i < 3 * (ranks_ - 1); ++i) block_.remote_buffers[0].push_back(i);
    out_.blocks.push_back(std::move(block_));
    return std::move(out_);
  }

 private:
  Rank peer(int i) const { return (rank_ + i) % ranks_; }
  Operand there(int i, BufferKind buffer, Index first) const {
    return {.buffer = buffer, .via = 3 * (i - 1) + std::int32_t(buffer), .first = first, .count = 1};
  }
  Index input_for(Rank target) const { return is_cut_ ? target : 0; }
  Step& add(StepKind kind) {
    block_.steps.push_back({.kind = kind});
    return block_.steps.back();
  }
  void move(StepKind kind, std::vector<Operand> from, const std::vector<Operand>& to) {
    Step& step = add(kind);
    step.sources = std::int32_t(from.size());
    step.operands = std::move(from);
    step.operands.insert(step.operands.end(), to.begin(), to.end());
  }
  bool adds() const {
    return work_.collective == Collective::all_reduce || work_.collective == Collective::reduce_scatter;
  }

  void exchange() {
    for (int i = 1; i < ranks_; ++i)
      move(StepKind::put_packets, {here(BufferKind::input, input_for(peer(i)))},
           {there(i, BufferKind::scratch, rank_)});
    if (adds()) {
      std::vector<Operand> from = {here(BufferKind::input, input_for(rank_))};
      for (int i = 1; i < ranks_; ++i) from.push_back(here(BufferKind::scratch, peer(i)));
      return move(StepKind::reduce_packets, from, {here(BufferKind::output, 0)});
    }
    move(StepKind::copy, {here(BufferKind::input, input_for(rank_))}, {here(BufferKind::output, rank_)});
    for (int i = 1; i < ranks_; ++i)
      move(StepKind::unpack_packets, {here(BufferKind::scratch, peer(i))}, {here(BufferKind::output, peer(i))});
  }

  /// Two ranks read each other's input whole: as many lines cross between them as when each combines a half for both,
  /// and none of them is written by the one and held by the other.
  bool combines_whole() const { return ranks_ == 2 && work_.bytes <= whole_bytes_max; }

  void tell_all() {
    add(StepKind::nop);
    with_all_channels(StepKind::signal);
  }
  void wait_for_all() {
    with_all_channels(StepKind::wait);
    add(StepKind::nop);
  }
  void with_all_channels(StepKind kind) {
    Step& step = add(kind);
    for (std::int32_t i = 0; i < ranks_ - 1; ++i) step.ids.push_back(i);
  }

  /// From copies of the inputs, which stay until the launch after the next one.
  void load_copies() {
    const Index chunks = out_.chunks[0];
    move(StepKind::copy, {here(BufferKind::input, 0, chunks)}, {here(BufferKind::scratch, 0, chunks)});
    tell_all();
    load(BufferKind::scratch);
  }
  void load_inputs() {
    tell_all();
    load(BufferKind::input);
    tell_all();
    wait_for_all();
  }

  /// What is here is copied while the others come.
  void load(BufferKind buffer) {
    const bool is_whole = out_.chunks[0] == 1 && adds();
    if (!adds()) move(StepKind::copy, {here(BufferKind::input, input_for(rank_))}, {here(BufferKind::output, rank_)});
    wait_for_all();
    if (!adds()) {
      for (int i = 1; i < ranks_; ++i)
        move(StepKind::get, {there(i, buffer, input_for(rank_))}, {here(BufferKind::output, peer(i))});
      return;
    }
    const Index part = is_whole ? 0 : rank_;
    const bool gives = work_.collective == Collective::all_reduce && !is_whole;
    std::vector<Operand> from = {here(BufferKind::input, part)};
    std::vector<Operand> to = {here(BufferKind::output, gives ? rank_ : 0)};
    for (int i = 1; i < ranks_; ++i) {
      from.push_back(there(i, buffer, part));
      if (gives) to.push_back(there(i, BufferKind::output, rank_));
    }
    move(gives ? StepKind::read_reduce_put : StepKind::read_reduce, from, to);
  }

  const Work& work_;
  const Rank rank_;
  const int ranks_;
  const bool is_cut_, has_packets_, has_scratch_;
  RankProgram out_;
  ThreadBlock block_;
};

}  // namespace

Program program_of(const Work& work) {
  constexpr const char* names[] = {"allreduce", "allgather", "reducescatter", "alltoall"};
  Program program;
  program.name = program.collective = names[int(work.collective)];
  program.protocol = Writer::uses_packets(work) ? "LL" : "Simple";
  program.double_scratch = Writer::uses_scratch(work);
  for (Rank rank = 0; rank < work.ranks; ++rank) program.ranks.push_back(Writer(work, rank).run());
  return program;
}

}  // namespace contest
