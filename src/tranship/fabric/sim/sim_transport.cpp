#include "tranship/fabric/sim/sim_transport.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <tranship/memory/device/host_device.hpp>

namespace tranship {
namespace {

/// A part of a block: where it begins on both sides, in bytes from the block's bases.
struct Piece {
  CopyBlock block;
  long long source_offset = 0;
  long long target_offset = 0;
};

/// Cuts a block of more than one element into up to three pieces along its longest dimension. An empty block has none.
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

class HeldSource final : public RaceDetector::Held {
 public:
  HeldSource(const CopyBlock& block, int width, const void* source)
      : block_(block), width_(width), source_(source), held_(packed_on_host(block, width, source)) {}
  bool is_unchanged() const override { return packed_on_host(block_, width_, source_) == held_; }

 private:
  CopyBlock block_;
  int width_;
  const void* source_;
  std::vector<std::byte> held_;
};

/// Calls f(first, length) for the contiguous runs that one side of a block touches, in bytes from its base.
template <class F>
void for_each_run(const CopyBlock& given, const long long* strides, int width, F&& f) {
  CopyBlock block = given;
  for (int d = 0; d < block.dims; ++d) block.source_strides[d] = block.target_strides[d] = strides[d];
  canonicalise(block, width);
  if (element_count(block) == 0) return;
  const int last = block.dims - 1;
  const bool has_rows = last >= 0 && block.target_strides[last] == width;
  const long long run = has_rows ? block.extents[last] * width : width;
  const int loops = has_rows ? last : block.dims;
  std::vector<long long> at(std::size_t(loops), 0);
  for (;;) {
    long long from = 0;
    for (int d = 0; d < loops; ++d) from += at[std::size_t(d)] * block.target_strides[d];
    f(from, run);
    int d = loops - 1;
    while (d >= 0 && ++at[std::size_t(d)] == block.extents[d]) at[std::size_t(d--)] = 0;
    if (d < 0) return;
  }
}
std::vector<RaceDetector::Bytes> bytes_in_heap(const CopyBlock& block, const long long* strides, int width, Rank owner,
                                               std::size_t offset) {
  std::vector<RaceDetector::Bytes> out;
  for_each_run(block, strides, width, [&](long long from, long long run) {
    const std::size_t first = offset + std::size_t(from);
    out.push_back({owner, first, first + std::size_t(run)});
  });
  return out;
}
std::vector<RaceDetector::Bytes> local_bytes(const Simulation& simulation, Rank rank, const CopyBlock& block,
                                             const long long* strides, int width, const void* base) {
  std::vector<RaceDetector::Bytes> out;
  for_each_run(block, strides, width, [&](long long from, long long run) {
    out.push_back(simulation.bytes_at(rank, static_cast<const std::byte*>(base) + from, std::size_t(run)));
  });
  return out;
}

struct AtomicNames {
  const char* name;
  const char* fetching;
};
const char* name_of(AtomicOp op, bool fetches) {
  constexpr AtomicNames names[] = {
#define TRANSHIP_ATOMIC_OP(op, fetching) {#op, fetching},
#include <tranship/kernels/atomics.def>
  };
  const AtomicNames& both = names[static_cast<int>(op)];
  return fetches ? both.fetching : both.name;
}

}  // namespace

std::shared_ptr<Told> SimTransport::note(Rank target, RaceDetector::Fencing fencing,
                                         const RaceDetector::Accesses& remote, const RaceDetector::Accesses* local) {
  RaceDetector* detector = this->detector();
  if (!detector) return nullptr;
  RaceDetector::Sent sent = detector->send(rank_, way(target), fencing, 0, remote, local);
  sent.before.over.push_back(std::move(sent.transfer));
  return std::make_shared<Told>(std::move(sent.before));
}

InFlight SimTransport::made(InFlight::Kind kind, Rank target, int width) const {
  InFlight what;
  what.kind = kind;
  what.rank = rank_;
  what.context = order_->context;
  what.target = target;
  what.serial = simulation_.next_serial();
  what.fences = fences_to(target);
  what.width = width;
  return what;
}

void SimTransport::put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                       Completion completion, CallSite where) {
  const detail::UnloggedCall unlogged;
  simulation_.step(rank_);
  sends(target.peer, std::size_t(element_count(block) * width));
  const bool blocks = completion == Completion::blocking;
  const char* name = signal ? (blocks ? "put_signal" : "put_signal_nbi") : blocks ? "put" : "put_nbi";
  std::shared_ptr<Told> told;
  if (RaceDetector* detector = this->detector(); detector && element_count(block) > 0) {
    const RaceDetector::Accesses remote{
        {RaceDetector::What::write, name, where},
        bytes_in_heap(block, block.target_strides, width, target.peer, target.offset_bytes)};
    const RaceDetector::Accesses local{{RaceDetector::What::read, name, where, RaceDetector::Side::source},
                                       local_bytes(simulation_, rank_, block, block.source_strides, width, source)};
    if (blocks) detector->access(rank_, local);
    RaceDetector::Sent sent =
        detector->send(rank_, way(target.peer), RaceDetector::Fencing::ordered,
                       std::size_t(element_count(block) * width), remote, blocks ? nullptr : &local);
    if (!blocks) detector->watch(rank_, {sent.transfer, local, std::make_unique<HeldSource>(block, width, source)});
    told = std::make_shared<Told>(std::move(sent.before));
    told->put = std::move(sent.transfer);
  }
  std::uint64_t first = 0, last = 0;
  for (const Piece& piece : pieces_of(block, simulation_.random())) {
    InFlight what = made(InFlight::Kind::put, target.peer, width);
    what.block = piece.block;
    what.offset_bytes = target.offset_bytes + std::size_t(piece.target_offset);
    const std::byte* from = static_cast<const std::byte*>(source) + piece.source_offset;
    // A blocking put has read its source when it returns; another may read it at any time until the next quiet.
    if (blocks || simulation_.random().below(2) == 0)
      what.payload = packed_on_host(piece.block, width, from);
    else
      what.source = from;
    if (told)
      what.written = bytes_in_heap(piece.block, piece.block.target_strides, width, target.peer, what.offset_bytes);
    what.tells = told;
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
  const RaceDetector::Bytes word{target.peer, signal->offset_bytes, signal->offset_bytes + sizeof signal->value};
  const RaceDetector::Use update{RaceDetector::What::update, "signal", where};
  what.tells = note(target.peer, RaceDetector::Fencing::ordered, {update, {word}}, nullptr);
  if (what.tells) {
    what.written = {word};
    if (told) what.tells->over.push_back(told->put);  // it comes after all of the put
  }
  simulation_.send(rank_, std::move(what));
}

void SimTransport::get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                       CallSite where) {
  const detail::UnloggedCall unlogged;
  simulation_.step(rank_);
  simulation_.looks_at(rank_, source.peer, source.offset_bytes);
  simulation_.count_message(rank_, source.peer, 0);
  simulation_.count_message(source.peer, rank_, std::size_t(element_count(block) * width));
  const bool blocks = completion == Completion::blocking;
  if (RaceDetector* detector = this->detector(); detector && element_count(block) > 0) {
    const char* name = blocks ? "get" : "get_nbi";
    const RaceDetector::Accesses remote{
        {RaceDetector::What::read, name, where},
        bytes_in_heap(block, block.source_strides, width, source.peer, source.offset_bytes)};
    const RaceDetector::Accesses local{{RaceDetector::What::write, name, where, RaceDetector::Side::target},
                                       local_bytes(simulation_, rank_, block, block.target_strides, width, target)};
    if (blocks) {
      detector->access(rank_, remote);
      detector->access(rank_, local);
    } else {
      note(source.peer, RaceDetector::Fencing::unordered, remote, &local);
    }
  }
  for (const Piece& piece : pieces_of(block, simulation_.random())) {
    const std::size_t offset = source.offset_bytes + std::size_t(piece.source_offset);
    std::byte* to = static_cast<std::byte*>(target) + piece.target_offset;
    if (blocks || simulation_.random().below(2) == 0) {
      copy_on_host(piece.block, width, simulation_.heap_of(source.peer) + offset, to);
      simulation_.look(rank_);
    } else {
      InFlight what = made(InFlight::Kind::get, source.peer, width);
      order_->is_awaited = true;
      what.is_fenced = false;
      what.block = piece.block;
      what.offset_bytes = offset;
      what.local_target = to;
      simulation_.send(rank_, std::move(what));
    }
  }
}

void SimTransport::atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand,
                          std::uint64_t compare, void* before, Completion completion, CallSite where) {
  const detail::UnloggedCall unlogged;
  simulation_.step(rank_);
  if (before) {
    simulation_.looks_at(rank_, at.peer, at.offset_bytes);
    simulation_.count_message(rank_, at.peer, 0);
    simulation_.count_message(at.peer, rank_, std::size_t(width));
  } else {
    sends(at.peer, std::size_t(width));
  }
  const RaceDetector::Bytes word{at.peer, at.offset_bytes, at.offset_bytes + std::size_t(width)};
  const char* name = name_of(op, before != nullptr);
  const RaceDetector::What does = op == AtomicOp::fetch ? RaceDetector::What::fetch : RaceDetector::What::update;
  const RaceDetector::Accesses remote{{does, name, where, RaceDetector::Side::peer, kind}, {word}};
  if (before && completion == Completion::blocking) {
    simulation_.deliver_fenced(rank_, order_->context, at.peer, fences_to(at.peer));
    std::shared_ptr<Told> tells;
    RaceDetector* const detector = this->detector();
    if (detector) {
      tells = std::make_shared<Told>(detector->access(rank_, way(at.peer), remote));
      detector->acquire(rank_, word);
      tells->known = detector->known(rank_);
    }
    simulation_.apply_atomic_noting(simulation_.heap_of(at.peer) + at.offset_bytes, width, op, &operand, &compare,
                                    before);
    if (detector && writes(op, width, compare, before)) detector->release(word, tells, RaceDetector::Release::joins);
    simulation_.look(rank_);
    return;
  }
  InFlight what = made(InFlight::Kind::update, at.peer, width);
  order_->is_awaited = order_->is_awaited || before;
  // To a fence, an atomic that returns a value is a get.
  what.is_fenced = !before;
  what.offset_bytes = at.offset_bytes;
  what.op = op;
  what.operand = operand;
  what.compare = compare;
  what.before = before;
  if (detector()) {
    RaceDetector::Accesses local{{RaceDetector::What::write, name, where, RaceDetector::Side::value}, {}};
    if (before) local.bytes = {simulation_.bytes_at(rank_, before, std::size_t(width))};
    what.written = {word};
    what.tells = note(at.peer, what.is_fenced ? RaceDetector::Fencing::ordered : RaceDetector::Fencing::unordered,
                      remote, before ? &local : nullptr);
  }
  simulation_.send(rank_, std::move(what));
}

std::uint64_t SimTransport::fences_to(Rank target) const {
  const auto own = order_->fences_to.find(target);
  return order_->fences + (own == order_->fences_to.end() ? 0 : own->second);
}

void SimTransport::fence(std::optional<Rank> peer, CallSite) {
  simulation_.step(rank_);
  ++(peer ? order_->fences_to[*peer] : order_->fences);
}

void SimTransport::sends(Rank peer, std::size_t bytes) {
  simulation_.count_message(rank_, peer, bytes);
  order_->unanswered.insert(peer);
}

/// A quiet of the program also completes the library's transfers, as if both used one context.
void SimTransport::quiet(std::optional<Rank> peer, CallSite where) {
  const detail::UnloggedCall unlogged;
  simulation_.step(rank_);
  if (in_library_ == 0) complete(of_library_, peer, where);
  complete(*order_, peer, where);
  simulation_.fail_late(rank_);
}

void SimTransport::complete(Order& order, std::optional<Rank> peer, CallSite where) {
  std::erase_if(order.unanswered, [&](Rank other) {
    if (peer && other != *peer) return false;
    simulation_.count_message(rank_, other, 0);
    simulation_.count_message(other, rank_, 0);
    return true;
  });
  while (simulation_.deliver_one_of(rank_, order.context, peer)) simulation_.step(rank_);
  if (order.is_awaited) simulation_.look(rank_);
  if (!peer) order.is_awaited = false;
  if (RaceDetector* detector = this->detector()) detector->quiet(rank_, order.context, peer, where);
}

void SimTransport::poll(std::int64_t polls) {
  simulation_.poll(rank_, polls);
}

void SimTransport::seen(const void* first, std::size_t size_bytes) {
  if (RaceDetector* detector = this->detector())
    detector->acquire(rank_, simulation_.bytes_at(rank_, first, size_bytes));
}

void SimTransport::touches(const void* first, std::size_t size_bytes, Touch touch, const char* name, CallSite where) {
  RaceDetector* detector = this->detector();
  if (!detector || size_bytes == 0) return;
  constexpr RaceDetector::What whats[] = {RaceDetector::What::read, RaceDetector::What::write,
                                          RaceDetector::What::free};
  detector->access(rank_, {{whats[int(touch)], name, where}, {simulation_.bytes_at(rank_, first, size_bytes)}});
}

bool SimTransport::watches_uses() const noexcept {
  return simulation_.race_detector() != nullptr;
}

std::uint64_t SimTransport::begin_use(std::span<const Use> uses, const char* name, const char* completion,
                                      CallSite where) {
  using What = RaceDetector::What;
  using Side = RaceDetector::Side;
  std::vector<RaceDetector::Accesses> all;
  const char* of = nullptr;
  for (const Use& use : uses) {
    const bool loads = use.touch == Touch::loads;
    const What what = loads ? What::read : What::write;
    if (all.empty() || use.of != of || all.back().use.what != what) {
      of = use.of;
      RaceDetector::Use touched{.what = what,
                                .name = name,
                                .where = where,
                                .side = loads ? Side::source : Side::target,
                                .completion = completion};
      if (of) {
        touched.of = simulation_.race_detector()->kept(of);
        touched.of_first = simulation_.bytes_at(rank_, use.of_first, 1).first;
      }
      all.push_back({.use = touched, .bytes = {}});
    }
    all.back().bytes.push_back(simulation_.bytes_at(rank_, use.first, use.size_bytes));
  }
  return simulation_.race_detector()->begin(rank_, all);
}

void SimTransport::end_use(std::uint64_t number) noexcept {
  simulation_.race_detector()->end(rank_, number);
}

void SimTransport::enter_library() noexcept {
  if (detail::access_log != nullptr) detail::access_log->enter_library();
  if (in_library_++ == 0) order_ = &of_library_;
}

void SimTransport::leave_library() noexcept {
  if (--in_library_ == 0) order_ = &of_program_;
  if (detail::access_log != nullptr) detail::access_log->leave_library();
}

void SimTransport::abandon() noexcept {
  for (const Order* order : {&of_program_, &of_library_}) simulation_.forget(rank_, order->context);
}

}  // namespace tranship
