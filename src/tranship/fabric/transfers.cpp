#include "tranship/fabric/transfers.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/polls.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship::detail {
namespace {

/// Returns the block between two views of equal element types and extents. Throws `unsupported` for complex numbers in
/// two planes.
CopyBlock block_of(const StridedView& target, const StridedView& source, int width, Rank rank, CallSite where) {
  if (target.type != source.type)
    throw_error(ErrorCode::mismatch, "the source has elements {}, the target {} (rank {}, {})", name_of(source.type),
                name_of(target.type), rank, short_name(where));
  if (!(target.extents == source.extents) || target.strides.size() != target.extents.size() ||
      source.strides.size() != source.extents.size())
    throw_error(ErrorCode::mismatch, "the source has extents [{}] and {}, the target [{}] and {} (rank {}, {})",
                to_string(source.extents), amount(source.strides.size(), "stride"), to_string(target.extents),
                target.strides.size(), rank, short_name(where));
  if (target.imaginary || source.imaginary)
    throw_error(ErrorCode::unsupported, "complex numbers in two planes: put each plane by itself (rank {}, {})", rank,
                short_name(where));
  CopyBlock block;
  block.dims = target.dims();
  for (int d = 0; d < block.dims; ++d) {
    block.extents[d] = target.extents[d];
    block.source_strides[d] = checked_multiply(source.strides[d], width);
    block.target_strides[d] = checked_multiply(target.strides[d], width);
  }
  checked_product(target.extents);
  return block;
}

/// Moves c256 as two adjacent elements of 16 bytes.
CopyBlock split_wide(CopyBlock block, int& width) {
  if (width != 32) return block;
  width = 16;
  const int d = block.dims++;
  block.extents[d] = 2;
  block.source_strides[d] = block.target_strides[d] = 16;
  return block;
}

}  // namespace

Transfers::Transfers(World& world, std::unique_ptr<Transport> transport, int spin_rounds, bool are_sizes_equal,
                     bool checks_blocks)
    : world_(&world),
      size_(world.size()),
      rank_(world.rank()),
      spin_rounds_(spin_rounds),
      are_sizes_equal_(are_sizes_equal),
      checks_blocks_(checks_blocks),
      heap_bytes_(world.heap().place().size_bytes),
      transport_(std::move(transport)) {
  direct_.heaps = world.heap().place().table(size_);
  if (checks_blocks_) direct_.heaps.size_bytes = 0;
}

Transfers::~Transfers() = default;

Transfers::Reach Transfers::reach_of(const CopyBlock& block, const long long* strides, int width) {
  Reach reach{.end = width};
  for (int d = 0; d < block.dims; ++d) {
    if (block.extents[d] == 0) return {};
    const std::int64_t span = strides[d] * (block.extents[d] - 1);
    (span < 0 ? reach.first : reach.end) += span;
  }
  return reach;
}

const std::byte* Transfers::in_heap(const void* own) const noexcept {
  const auto* const at = static_cast<const std::byte*>(own);
  const std::optional<std::size_t> offset = world_->heap().offset_of_registered(at);
  return offset ? world_->heap().place().own + *offset : at;
}

bool Transfers::overlap(const void* target, Reach to, const void* source, Reach from) const noexcept {
  const auto has_common = [&](const void* one, const void* other) {
    const std::uintptr_t distance = (reinterpret_cast<std::uintptr_t>(one) + std::uintptr_t(to.first)) -
                                    (reinterpret_cast<std::uintptr_t>(other) + std::uintptr_t(from.first));
    return distance < std::uintptr_t(from.end - from.first) || -distance < std::uintptr_t(to.end - to.first);
  };
  if (has_common(target, source)) return true;
  // Registered memory has two addresses.
  return world_->heap().has_registered() && has_common(in_heap(target), in_heap(source));
}

/// Returns false if contiguous bytes surely do not overlap; costs less than overlap().
bool Transfers::may_overlap(const void* to, const void* from, std::size_t bytes) const noexcept {
  const std::uintptr_t distance = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  return distance + bytes - 1 < 2 * bytes - 1 || world_->heap().has_registered();
}

void Transfers::put_many(void* to, const void* from, std::size_t bytes) const noexcept {
  if (may_overlap(to, from, bytes)) [[unlikely]]
    if (const Reach all{.end = std::int64_t(bytes)}; overlap(to, all, from, all))
      return void(std::memmove(const_cast<std::byte*>(in_heap(to)), in_heap(from), bytes));
  copy_piece(to, from, static_cast<long long>(bytes), PieceOf::target_of_peer);
}

void Transfers::get_many(void* to, const void* from, std::size_t bytes) const noexcept {
  if (may_overlap(to, from, bytes)) [[unlikely]]
    if (const Reach all{.end = std::int64_t(bytes)}; overlap(to, all, from, all))
      return void(std::memmove(const_cast<std::byte*>(in_heap(to)), in_heap(from), bytes));
  copy_piece(to, from, static_cast<long long>(bytes), PieceOf::source_of_peer);
}

void Transfers::check_peer(Rank peer, CallSite where) const {
  world_->check_process();
  if (peer < 0 || peer >= size_)
    throw_error(ErrorCode::invalid_use, "no rank {} in a world of {} (rank {}, {})", peer, size_, rank_,
                short_name(where));
}

std::size_t Transfers::checked_offset(const char* what, const void* local, std::int64_t first, std::int64_t end,
                                      CallSite where) const {
  world_->check_process();
  if (first == end) return 0;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(local) + std::uintptr_t(first) -
                               reinterpret_cast<std::uintptr_t>(direct_.heaps.own);
  const auto bytes = static_cast<std::size_t>(end - first);
  if (bytes > heap_bytes_ || begin > heap_bytes_ - bytes) {
    for (Rank other = 0; other < size_; ++other)
      if (const std::byte* theirs = world_->heap().place().mapped.of(other);
          other != rank_ && theirs != nullptr &&
          reinterpret_cast<std::uintptr_t>(local) - reinterpret_cast<std::uintptr_t>(theirs) < heap_bytes_)
        throw_error(
            ErrorCode::invalid_use,
            "{} lies in the heap of rank {}: a symmetric object is named by this rank's own address (rank {}, {})",
            what, other, rank_, short_name(where));
    throw_error(ErrorCode::invalid_use, "{} of {} does not lie in the symmetric heap of {} (rank {}, {})", what,
                amount(bytes, "byte"), amount(heap_bytes_, "byte"), rank_, short_name(where));
  }
  if (checks_blocks_ && !world_->heap().is_allocated(begin, bytes))
    throw_error(ErrorCode::invalid_use,
                "{}: bytes [{}, {}) of the symmetric heap do not lie in one block that is allocated (rank {}, {})",
                what, begin, begin + bytes, rank_, short_name(where));
  return begin - std::uintptr_t(first);
}

std::size_t Transfers::checked_elements(const char* what, const void* local, Index size, std::size_t width,
                                        CallSite where) const {
  world_->check_process();
  if (size < 0) refuse_count(what, 0, size, where);
  if (std::size_t(size) > heap_bytes_ / width)
    throw_error(ErrorCode::invalid_use, "{}: {} {} of {} at {} do not lie in the symmetric heap of {} (rank {}, {})",
                what, size, plural(size, "element"), amount(width, "byte"), local, amount(heap_bytes_, "byte"), rank_,
                short_name(where));
  return checked_offset(what, local, 0, std::int64_t(std::size_t(size) * width), where);
}

void Transfers::check_slice(const char* what, const void* local, const Run& run, CallSite where) const {
  world_->check_process();
  if (run.slice < 0) refuse_count(what, 0, run.slice, where);
  const std::size_t offset = direct_.heaps.offset_of(local), slice = std::size_t(run.slice);
  if (run.count > 0 && (slice > heap_bytes_ / run.width || offset > heap_bytes_ - slice * run.width))
    checked_elements(what, local, run.slice, run.width, where);
}

std::size_t Transfers::checked_words(const char* what, const void* local, Index size, std::size_t width,
                                     CallSite where) const {
  const std::size_t offset = checked_elements(what, local, size, width, where);
  if (size > 0 && reinterpret_cast<std::uintptr_t>(local) % width != 0)
    throw_error(ErrorCode::invalid_use,
                "{} of {} at offset {} of the symmetric heap is not aligned to its size (rank {}, {})", what,
                amount(width, "byte"), offset, rank_, short_name(where));
  return offset;
}

std::byte* Transfers::checked_word(const char* what, const void* local, std::size_t bytes, Rank peer,
                                   CallSite where) const {
  check_peer(peer, where);
  return at_peer(checked_offset(what, local, 0, std::int64_t(bytes), where), peer);
}

void Transfers::put_checked(void* target, const void* source, Run run, const SignalAt* signal, Completion completion,
                            Rank peer, CallSite where) {
  check_slice("the target of a put", target, run, where);
  int width = static_cast<int>(run.width);
  // Elements of a width that the kernels do not support move as bytes.
  if (!std::has_single_bit(run.width) || run.width > 16) {
    run.count *= run.width;
    width = 1;
  }
  put_block(target, row_of(run.count, std::size_t(width)), width, source, signal, completion, peer, where);
}

void Transfers::put_view(const StridedView& target, const StridedView& source, const SignalAt* signal,
                         Completion completion, Rank peer, CallSite where) {
  int width = size_bytes(target.type);
  const CopyBlock block = split_wide(block_of(target, source, width, rank_, where), width);
  put_block(target.data, block, width, source.data, signal, completion, peer, where);
}

void Transfers::put_block(void* target, const CopyBlock& block, int width, const void* source, const SignalAt* signal,
                          Completion completion, Rank peer, CallSite where) {
  check_peer(peer, where);
  direct_.acted = true;
  const Reach reach = reach_of(block, block.target_strides, width);
  const std::size_t offset = checked_offset("the target of a put", target, reach.first, reach.end, where);
  const std::size_t signal_offset =
      signal ? checked_words("a signal", signal->local, 1, sizeof(std::uint64_t), where) : 0;
  if (peer == rank_ && overlap(target, reach, source, reach_of(block, block.source_strides, width))) [[unlikely]] {
    const std::vector<std::byte> held = packed_on_host(block, width, source);
    return put_block(target, with_dense_source(block, width), width, held.data(), signal, Completion::blocking, peer,
                     where);
  }
  if (!is_direct(peer)) {
    const Transport::Signal sent =
        signal ? Transport::Signal{signal_offset, signal->value, signal->op} : Transport::Signal{};
    return transport_->put({peer, offset}, block, width, source, signal ? &sent : nullptr, completion, where);
  }
  if (reach.first != reach.end) copy_on_host(block, width, source, at_peer(offset, peer));
  if (signal) raise(at_peer(signal_offset, peer), signal->value, signal->op);
}

Transport::Departure Transfers::put_departing(void* target, std::span<const std::byte> source,
                                              const std::shared_ptr<const void>& owner, const SignalAt& signal,
                                              Rank peer, CallSite where) {
  check_peer(peer, where);
  TRANSHIP_ASSERT(!is_direct(peer));
  direct_.acted = true;
  const std::size_t offset = checked_offset("the target of a put", target, 0, std::int64_t(source.size()), where);
  const std::size_t signal_offset = checked_words("a signal", signal.local, 1, sizeof(std::uint64_t), where);
  return transport_->put_departing({peer, offset}, source, owner, {signal_offset, signal.value, signal.op}, where);
}

void Transfers::get_checked(void* target, const void* source, Run run, Completion completion, Rank peer,
                            CallSite where) {
  check_slice("the source of a get", source, run, where);
  get_block(target, row_of(run.bytes, 1), 1, source, completion, peer, where);
}

void Transfers::get_view(const StridedView& target, const StridedView& source, Completion completion, Rank peer,
                         CallSite where) {
  int width = size_bytes(target.type);
  const CopyBlock block = split_wide(block_of(target, source, width, rank_, where), width);
  get_block(target.data, block, width, source.data, completion, peer, where);
  if (--polls_left_ > 0) return;
  look_at("get", source.data, peer, block, width, target.data, where);
}

void Transfers::get_block(void* target, const CopyBlock& block, int width, const void* source, Completion completion,
                          Rank peer, CallSite where) {
  check_peer(peer, where);
  const Reach reach = reach_of(block, block.source_strides, width);
  const std::size_t offset = checked_offset("the source of a get", source, reach.first, reach.end, where);
  if (peer == rank_ && overlap(target, reach_of(block, block.target_strides, width), source, reach)) [[unlikely]] {
    std::vector<std::byte> held(std::size_t(element_count(block)) * std::size_t(width));
    get_block(held.data(), with_dense_target(block, width), width, source, Completion::blocking, peer, where);
    return copy_on_host(with_dense_source(block, width), width, held.data(), target);
  }
  if (!is_direct(peer))
    transport_->get(target, block, width, {peer, offset}, completion, where);
  else if (reach.first != reach.end)
    copy_on_host(block, width, at_peer(offset, peer), target);
}

void Transfers::signal_checked(const SignalAt& signal, Rank peer, CallSite where) {
  put_block(nullptr, row_of(0, 1), 1, nullptr, &signal, Completion::blocking, peer, where);
}

void Transfers::atomic_checked(const AtomicWord& word, AtomicOp op, const void* operand, const void* expected,
                               void* before, Completion completion, Rank peer, CallSite where) {
  const auto [at, width, kind] = word;
  check_peer(peer, where);
  const std::size_t offset = checked_words("an atomic variable", at, 1, width, where);
  if (is_direct(peer))
    return apply_atomic(at_peer(offset, peer), static_cast<int>(width), op, operand, expected, before);
  std::uint64_t by = 0, compare = 0;
  std::memcpy(&by, operand, width);
  std::memcpy(&compare, expected, width);
  transport_->atomic({peer, offset}, static_cast<int>(width), kind, op, by, compare, before, completion, where);
}

void* Transfers::peer_address(const void* local, Index size, std::size_t width, Rank peer, CallSite where) const {
  check_peer(peer, where);
  const std::size_t offset = checked_elements("a peer's array", local, size, width, where);
  if (peer != rank_ && !is_direct(peer))
    throw_error(ErrorCode::unsupported, "rank {} cannot load and store the memory of rank {}: it is {} ({})", rank_,
                peer, world_->peer_kind(peer) == PeerKind::messaged ? "messaged" : "simulated", short_name(where));
  if (size == 0) return nullptr;
  return peer == rank_ ? world_->heap().place().own + offset : at_peer(offset, peer);
}

void Transfers::refuse_sizes(Index ours, Index other, CallSite where) const {
  throw_error(ErrorCode::invalid_use,
              "{} symmetric {} and {} on the other side, where sizes must be equal (rank {}, {})", ours,
              plural(ours, "element"), other, rank_, short_name(where));
}
void Transfers::refuse_count(const char* what, Index needed, Index size, CallSite where) const {
  throw_error(ErrorCode::invalid_use, "{} needs {} symmetric {} or more, got {} (rank {}, {})", what, needed,
              plural(needed, "element"), size, rank_, short_name(where));
}
void Transfers::refuse_room(std::size_t room, Index needed, CallSite where) const {
  throw_error(ErrorCode::invalid_use, "the array of places has {}; it needs one for each of {} (rank {}, {})",
              amount(room, "entry", "entries"), amount(needed, "variable"), rank_, short_name(where));
}
void Transfers::refuse_values(std::size_t values, Index variables, CallSite where) const {
  throw_error(ErrorCode::invalid_use, "{} for {}: give one value, or one for each variable (rank {}, {})",
              amount(values, "value"), amount(variables, "variable"), rank_, short_name(where));
}

void Transfers::fence_transport(std::optional<Rank> peer, CallSite where) {
  world_->check_process();
  transport_->fence(peer, where);
}
void Transfers::seen_in_transport(const void* local, std::size_t bytes) const {
  world_->check_process();
  transport_->seen(local, bytes);
}
void Transfers::touches_in_transport(const void* local, std::size_t bytes, Touch touch, const char* name,
                                     CallSite where) const {
  world_->check_process();
  transport_->touches(local, bytes, touch, name, where);
}
void Transfers::check_touched(const void* local, Index size, std::size_t width, CallSite where) const {
  checked_elements("what a rank touches", local, size, width, where);
}
void Transfers::look(const WaitNote& note) const {
  polls_left_ = world_->look(note);
}
void Transfers::look_at(const char* label, const void* local, Rank peer, const void* seen, std::size_t bytes,
                        CallSite where) const {
  look_at(label, local, peer, row_of(bytes, 1), 1, seen, where);
}
void Transfers::look_at(const char* label, const void* local, Rank peer, const CopyBlock& block, int width,
                        const void* target, CallSite where) const {
  WaitNote note(label, WaitNote::anyone, where);
  note.flag_rank = peer;
  note.flag_index = std::int64_t(direct_.heaps.offset_of(local));
  polls_left_ = Polls(*world_).look_at(note, block, width, target);
}
void Transfers::poll_transport() const {
  world_->check_process();
  transport_->poll();
}
void Transfers::quiet_transport(std::optional<Rank> peer, CallSite where) {
  world_->check_process();
  transport_->quiet(peer, where);
}

}  // namespace tranship::detail
