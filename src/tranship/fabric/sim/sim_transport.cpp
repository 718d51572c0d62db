#include <algorithm>
#include <utility>

#include <tranship/fabric/sim/sim_transport.hpp>
#include <tranship/memory/host_device.hpp>

namespace tranship {
namespace {

/// A part of a block: where it begins on both sides, in bytes from the block's own bases.
struct Piece {
  CopyBlock block;
  long long source_offset = 0;
  long long target_offset = 0;
};

/// Nothing is one piece of nothing; anything larger than an element is cut once or twice, along its longest dimension.
std::vector<Piece> pieces_of(const CopyBlock& block, SplitMix64& random) {
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

std::vector<std::byte> packed(const CopyBlock& block, int width, const void* source) {
  std::vector<std::byte> out(std::size_t(element_count(block) * width));
  copy_on_host(with_dense_target(block, width), width, source, out.data());
  return out;
}

/// The bytes that one side of a block touches in the heap of `owner`, from `offset` on, run by run.
std::vector<Order::Bytes> bytes_of(const CopyBlock& given, bool is_target, int width, Rank owner, std::size_t offset) {
  CopyBlock block = given;
  for (int d = 0; d < block.dims; ++d)
    (is_target ? block.source_strides : block.target_strides)[d] =
        (is_target ? block.target_strides : block.source_strides)[d];
  canonicalise(block, width);
  std::vector<Order::Bytes> out;
  if (element_count(block) == 0) return out;
  const int last = block.dims - 1;
  const bool has_rows = last >= 0 && block.target_strides[last] == width;
  const auto run = std::size_t(has_rows ? block.extents[last] * width : width);
  const int loops = has_rows ? last : block.dims;
  std::vector<long long> at(std::size_t(loops), 0);
  for (;;) {
    long long from = 0;
    for (int d = 0; d < loops; ++d) from += at[std::size_t(d)] * block.target_strides[d];
    const std::size_t first = offset + std::size_t(from);
    out.push_back({owner, first, first + run});
    int d = loops - 1;
    while (d >= 0 && ++at[std::size_t(d)] == block.extents[d]) at[std::size_t(d--)] = 0;
    if (d < 0) return out;
  }
}

const char* name_of(AtomicOp op) {
  constexpr const char* names[] = {"set", "fetch", "swap", "compare_swap", "add", "bit_and", "bit_or", "bit_xor"};
  return names[static_cast<int>(op)];
}

}  // namespace

std::shared_ptr<Order::Knowledge> SimTransport::note(Rank target, Order::What what, const char* name,
                                                     const std::vector<Order::Bytes>& bytes, CallSite where) {
  Order* order = simulation_.order();
  if (!order) return nullptr;
  Order::Sent sent = order->send(rank_, context_, target, fences_, what, name, bytes, where);
  sent.before.single.emplace(rank_, sent.number);
  return std::make_shared<Order::Knowledge>(std::move(sent.before));
}

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
                       Completion completion, CallSite where) {
  simulation_.step(rank_);
  const std::shared_ptr<Order::Knowledge> tells =
      element_count(block) == 0 ? nullptr
                                : note(target.peer, Order::What::write, signal ? "put_signal" : "put",
                                       bytes_of(block, true, width, target.peer, target.offset_bytes), where);
  std::uint64_t first = 0, last = 0;
  for (const Piece& piece : pieces_of(block, simulation_.random())) {
    InFlight what = made(InFlight::Kind::put, target.peer, width);
    what.block = piece.block;
    what.offset_bytes = target.offset_bytes + std::size_t(piece.target_offset);
    const std::byte* from = static_cast<const std::byte*>(source) + piece.source_offset;
    // A blocking put has read its source when it returns; the other may read it at any time until the next quiet.
    if (completion == Completion::blocking || simulation_.random().below(2) == 0)
      what.payload = packed(piece.block, width, from);
    else
      what.source = from;
    constexpr long long words_max = 8;
    if (piece.block.dims == 1 && width <= 8 && piece.block.extents[0] <= words_max) what.tells = tells;
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
  const Order::Bytes word{target.peer, signal->offset_bytes, signal->offset_bytes + sizeof signal->value};
  if (const auto told = note(target.peer, Order::What::update, "signal", {word}, where)) {
    if (tells) told->join(*tells);
    what.tells = told;
  }
  simulation_.send(rank_, std::move(what));
}

void SimTransport::get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                       CallSite where) {
  simulation_.step(rank_);
  const auto bytes = bytes_of(block, false, width, source.peer, source.offset_bytes);
  if (completion == Completion::nonblocking)
    note(source.peer, Order::What::read, "get_nbi", bytes, where);
  else if (Order* order = simulation_.order())
    for (const Order::Bytes& run : bytes) order->access(rank_, Order::What::read, "get", run, where);
  for (const Piece& piece : pieces_of(block, simulation_.random())) {
    const std::size_t offset = source.offset_bytes + std::size_t(piece.source_offset);
    std::byte* to = static_cast<std::byte*>(target) + piece.target_offset;
    if (completion == Completion::blocking || simulation_.random().below(2) == 0) {
      copy_on_host(piece.block, width, simulation_.heap_of(source.peer) + offset, to);
      simulation_.look(rank_);
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
                          Completion completion, CallSite where) {
  simulation_.step(rank_);
  const Order::Bytes word{at.peer, at.offset_bytes, at.offset_bytes + std::size_t(width)};
  if (before && completion == Completion::blocking) {
    simulation_.deliver_fenced(rank_, context_, at.peer, fences_);
    if (Order* order = simulation_.order()) {
      order->access(rank_, Order::What::update, name_of(op), word, where);
      order->acquire(rank_, at.peer, at.offset_bytes);
      if (op != AtomicOp::fetch) order->release(at.peer, at.offset_bytes, order->known(rank_), true);
    }
    apply_atomic(simulation_.heap_of(at.peer) + at.offset_bytes, width, op, &operand, &compare, before);
    simulation_.look(rank_);
    return;
  }
  InFlight what = made(InFlight::Kind::update, at.peer, width);
  what.offset_bytes = at.offset_bytes;
  what.op = op;
  what.operand = operand;
  what.compare = compare;
  what.before = before;
  what.tells = note(at.peer, Order::What::update, name_of(op), {word}, where);
  simulation_.send(rank_, std::move(what));
}

void SimTransport::fence(CallSite) {
  simulation_.step(rank_);
  ++fences_;
}

void SimTransport::quiet(CallSite) {
  simulation_.step(rank_);
  while (simulation_.deliver_one_of(rank_, context_)) simulation_.step(rank_);
  if (Order* order = simulation_.order()) order->quiet(rank_, context_);
}

void SimTransport::poll() {
  simulation_.poll(rank_);
}

void SimTransport::seen(std::size_t offset_bytes) {
  if (Order* order = simulation_.order()) order->acquire(rank_, rank_, offset_bytes);
}

void SimTransport::touches(std::size_t offset_bytes, std::size_t size_bytes, bool stores, CallSite where) {
  if (Order* order = simulation_.order())
    order->access(rank_, stores ? Order::What::write : Order::What::read, stores ? "stores" : "loads",
                  {rank_, offset_bytes, offset_bytes + size_bytes}, where);
}

void SimTransport::abandon() noexcept {
  simulation_.forget(rank_, context_);
}

}  // namespace tranship
