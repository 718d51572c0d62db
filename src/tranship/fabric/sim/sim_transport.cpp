#include <algorithm>
#include <utility>

#include <tranship/fabric/sim/sim_transport.hpp>
#include <tranship/kernels/host_move.hpp>

namespace tranship {
namespace {

/// A part of a block: where it begins on both sides, in bytes from the block's own bases.
struct Piece {
  CopyBlock block;
  long long source_offset = 0;
  long long target_offset = 0;
};

/// Nothing is one piece of nothing; anything larger than an element is cut once or twice, along its longest dimension.
std::vector<Piece> pieces_of(const CopyBlock& block, Random& random) {
  std::vector<Piece> out;
  if (element_count(block) == 0) return out;
  int longest = -1;
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] > 1 && (longest < 0 || block.extents[d] > block.extents[longest])) longest = d;
  if (longest < 0) return {{block}};
  const long long extent = block.extents[longest];
  long long lower = 0;
  while (lower < extent) {
    const bool last = out.size() == 2 || random.below(2) == 0;
    const long long upper = last ? extent : lower + 1 + (long long)(random.below(std::uint64_t(extent - lower)));
    Piece piece{block, lower * block.source_strides[longest], lower * block.target_strides[longest]};
    piece.block.extents[longest] = upper - lower;
    out.push_back(piece);
    lower = upper;
  }
  return out;
}

void move_block(const CopyBlock& given, int width, const void* source, void* target) {
  CopyBlock block = given;
  canonicalise(block, width);
  move_on_host(block, Move::copy, Arithmetic::none, width, {}, source, target);
}

std::vector<std::byte> packed(const CopyBlock& block, int width, const void* source) {
  std::vector<std::byte> out(std::size_t(element_count(block) * width));
  move_block(with_dense_target(block, width), width, source, out.data());
  return out;
}

}  // namespace

InFlight SimTransport::made(InFlight::Kind kind, Rank target, int width) const {
  InFlight what;
  what.kind = kind;
  what.context = context_;
  what.target = target;
  what.serial = simulation_.next_serial();
  what.fences = fences_;
  what.width = width;
  return what;
}

void SimTransport::put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                       Completion completion, CallSite) {
  simulation_.step(rank_);
  std::uint64_t first = 0, last = 0;
  for (const Piece& piece : pieces_of(block, simulation_.random())) {
    InFlight what = made(InFlight::Kind::put, target.peer, width);
    what.block = piece.block;
    what.offset_bytes = target.offset_bytes + std::size_t(piece.target_offset);
    const std::byte* from = static_cast<const std::byte*>(source) + piece.source_offset;
    // A blocking put has read its source when it returns; the other may read it at any time until the next quiet.
    if (completion == Completion::blocking)
      what.payload = packed(piece.block, width, from);
    else
      what.source = from;
    last = what.serial;
    if (first == 0) first = last;
    simulation_.send(rank_, std::move(what));
  }
  if (!signal) return;
  InFlight what = made(InFlight::Kind::signal, target.peer, sizeof signal->value);
  what.after_first = first;
  what.after_end = last + 1;
  what.offset_bytes = signal->offset_bytes;
  what.op = signal->op == SignalOp::set ? AtomicOp::set : AtomicOp::add;
  what.operand = signal->value;
  simulation_.send(rank_, std::move(what));
}

void SimTransport::get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                       CallSite) {
  simulation_.step(rank_);
  for (const Piece& piece : pieces_of(block, simulation_.random())) {
    const std::size_t offset = source.offset_bytes + std::size_t(piece.source_offset);
    std::byte* to = static_cast<std::byte*>(target) + piece.target_offset;
    if (completion == Completion::blocking) {
      move_block(piece.block, width, simulation_.heap_of(source.peer) + offset, to);
      simulation_.step(rank_);
    } else {
      InFlight what = made(InFlight::Kind::get, source.peer, width);
      what.block = piece.block;
      what.offset_bytes = offset;
      what.local_target = to;
      simulation_.send(rank_, std::move(what));
    }
  }
}

void SimTransport::atomic(Remote at, int width, AtomicOp op, std::uint64_t operand, std::uint64_t compare, void* before,
                          Completion completion, CallSite) {
  simulation_.step(rank_);
  if (before && completion == Completion::blocking) {
    simulation_.deliver_fenced(rank_, context_, at.peer, fences_);
    apply_atomic(simulation_.heap_of(at.peer) + at.offset_bytes, width, op, &operand, &compare, before);
    simulation_.step(rank_);
    return;
  }
  InFlight what = made(InFlight::Kind::update, at.peer, width);
  what.offset_bytes = at.offset_bytes;
  what.op = op;
  what.operand = operand;
  what.compare = compare;
  what.before = before;
  simulation_.send(rank_, std::move(what));
}

void SimTransport::fence(CallSite) {
  simulation_.step(rank_);
  ++fences_;
}

void SimTransport::quiet(CallSite) {
  simulation_.step(rank_);
  while (simulation_.deliver_one_of(rank_, context_)) simulation_.step(rank_);
}

void SimTransport::poll() {
  simulation_.poll(rank_);
}

void SimTransport::abandon() noexcept {
  simulation_.forget(rank_, context_);
}

}  // namespace tranship
