#include "tranship/collectives/members.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/kernels/host/reduce.hpp>

namespace tranship {

namespace {

/// Bytes that are combined at a time: few enough that they stay in a core's nearest caches with the part of one peer.
constexpr std::size_t block_bytes = 16384;

std::size_t bytes_of(const SymmetricSpan& span, Rank rank, CallSite where) {
  if (span.count < 0)
    throw_error(ErrorCode::invalid_use, "an array of {}: a count is 0 or more (rank {}, {})",
                amount(span.count, "element"), rank, short_name(where));
  return static_cast<std::size_t>(checked_multiply(span.count, size_bytes(span.type)));
}
std::byte* in_heap(const Context& context, const SymmetricSpan& span, std::size_t bytes, Rank rank, CallSite where) {
  auto* const local = static_cast<std::byte*>(span.local);
  if (bytes > 0) context.peer_array(Symmetric<std::byte>::at(local, Index(bytes)), rank, where);
  return local;
}

}  // namespace

bool can_reduce(Reduction reduction, ElementType type) noexcept {
  return detail::can_reduce(reduction, type);
}

MemberCall::MemberCall(Team& team, CallKind kind, const SymmetricSpan& target, const SymmetricSpan& source,
                       CallSite where, int variant)
    : team_(team),
      context_(team.world().context()),
      in_library_(context_),
      where_(where),
      rank_(team.rank()),
      size_(team.size()),
      type_(source.type),
      width_(size_bytes(source.type)) {
  const Rank here = team.world().rank();
  target_bytes_ = bytes_of(target, here, where);
  source_bytes_ = bytes_of(source, here, where);
  if (target.type != source.type)
    throw_error(ErrorCode::invalid_use, "{}: the target has elements {}, the source {} (rank {}, {})", name_of(kind),
                name_of(target.type), name_of(source.type), here, short_name(where));
  target_ = in_heap(context_, target, target_bytes_, here, where);
  source_ = in_heap(context_, source, source_bytes_, here, where);
  const std::byte* const heap = team.world().heap().place().own;
  const auto offset_of = [&](const std::byte* local, std::size_t bytes) {
    return bytes > 0 ? std::uint64_t(local - heap) : UINT64_MAX;
  };
  // In place, the target may be the member's own part of the source, and only the source is equal on all members.
  const bool is_in_source = target_ >= source_ && target_ + target_bytes_ <= source_ + source_bytes_;
  const std::uint64_t source_at = offset_of(source_, source_bytes_);
  const std::uint64_t target_at = is_in_source ? source_at : offset_of(target_, target_bytes_);
  const std::uint64_t places = splitmix64(source_at + splitmix64(target_at));
  call_ = {.kind = kind,
           .type = static_cast<std::uint8_t>(source.type),
           .size_bytes = source_bytes_,
           .detail = places << 16 | std::uint16_t(variant)};
}

void MemberCall::require_parts(int target_parts, int source_parts) const {
  // Both consist of whole parts, all of one size.
  const auto of = [](std::size_t bytes, int parts) { return bytes / std::size_t(parts); };
  if (target_bytes_ % std::size_t(target_parts * width_) == 0 &&
      source_bytes_ % std::size_t(source_parts * width_) == 0 &&
      of(target_bytes_, target_parts) == of(source_bytes_, source_parts))
    return;
  const auto elements = [&](std::size_t bytes) { return bytes / std::size_t(width_); };
  throw_error(ErrorCode::invalid_use, "{}: a target of {} in {} and a source of {} in {} do not fit (rank {}, {})",
              name_of(call_.kind), amount(elements(target_bytes_), "element"), amount(target_parts, "part"),
              elements(source_bytes_), source_parts, team_.world().rank(), short_name(where_));
}

void MemberCall::check_apart(bool may_be_same, std::size_t at_target, std::size_t at_source) const {
  const auto apart = [](const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
    return a_bytes == 0 || b_bytes == 0 || a + a_bytes <= b || b + b_bytes <= a;
  };
  if (apart(target_, target_bytes_, source_, source_bytes_)) return;
  if (may_be_same && target_ + at_target == source_ + at_source) return;
  throw_error(
      ErrorCode::invalid_use, "{}: the source begins {} after the target, which has {}: they overlap (rank {}, {})",
      name_of(call_.kind), amount(source_ - target_, "byte"), target_bytes_, team_.world().rank(), short_name(where_));
}

void MemberCall::require_reduction(Reduction reduction) const {
  if (!can_reduce(reduction, type_))
    throw_error(ErrorCode::invalid_use, "{}: {} has no {} (rank {}, {})", name_of(call_.kind), name_of(type_),
                name_of(reduction), team_.world().rank(), short_name(where_));
}

void MemberCall::require_root(const Team& team, int root, CallSite where) {
  if (root < 0 || root >= team.size())
    throw_error(ErrorCode::invalid_use, "no root {} in a team of {} (rank {}, {})", root, team.size(),
                team.world().rank(), short_name(where));
}

void MemberCall::begin(std::size_t source_bytes) {
  meet();
  if (!detail::MemoryUse::is_watched(context_)) return;
  const detail::MemoryUse::Part parts[] = {{source_, source_bytes, Touch::loads},
                                           {target_, target_bytes_, Touch::stores}};
  use_ = {context_, parts, name_of(call_.kind), "its return", where_};
  covered_.emplace(context_);
}

void MemberCall::meet() {
  team_.meet(call_, where_);
}

void MemberCall::fetch(int member, std::byte* to, const std::byte* local, std::size_t bytes) {
  if (bytes == 0) return;
  const auto from = Symmetric<const std::byte>::at(local, Index(bytes));
  context_.get_nbi<const std::byte>({to, bytes}, from, team_.world_rank(member), where_);
}
void MemberCall::complete() {
  context_.quiet(where_);
}

const std::byte* MemberCall::loadable(int member, const std::byte* local, std::size_t bytes) const {
  // The race detector sees simulated transfers, but not loads.
  const Rank rank = team_.world_rank(member);
  if (member == rank_) return local;
  if (!context_.completes_at_once(rank)) return nullptr;
  return context_.peer_array(Symmetric<const std::byte>::at(local, Index(bytes)), rank, where_).data();
}

void MemberCall::combine(std::byte* to, const std::byte* local, std::size_t bytes, Reduction reduction) {
  if (bytes == 0) return;
  std::vector<const std::byte*> sources(static_cast<std::size_t>(size_));
  std::vector<std::byte> fetched;
  for (int member = 0; member < size_; ++member) sources[std::size_t(member)] = loadable(member, local, bytes);
  if (const auto missing = std::count(sources.begin(), sources.end(), nullptr); missing > 0) {
    fetched.resize(std::size_t(missing) * bytes);
    std::byte* next = fetched.data();
    for (int i = 1; i < size_; ++i) {
      const int member = (rank_ + i) % size_;
      if (sources[std::size_t(member)]) continue;
      fetch(member, next, local, bytes);
      sources[std::size_t(member)] = next;
      next += bytes;
    }
    complete();
  }
  alignas(64) std::byte sum[block_bytes];  // the target may be this member's source, which is read in its turn
  for (std::size_t first = 0; first < bytes; first += block_bytes) {
    const std::size_t now = std::min(block_bytes, bytes - first);
    std::memcpy(sum, sources[0] + first, now);
    for (int member = 1; member < size_; ++member)
      detail::reduce_into(sum, sources[std::size_t(member)] + first, now, reduction, type_);
    std::memcpy(to + first, sum, now);
  }
}

}  // namespace tranship
