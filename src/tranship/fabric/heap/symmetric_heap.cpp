#include "tranship/fabric/heap/symmetric_heap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

namespace detail {
void refuse_slice(Index first, Index count, Index size) {
  throw_error(ErrorCode::invalid_use, "{} {} from element {} on: a symmetric object has {}", count,
              plural(count, "element"), first, size);
}
}  // namespace detail

/// Blocks that this rank has let go of and has not told the others. Any thread may let go.
struct SymmetricHeap::Released {
  std::mutex mutex;
  std::vector<std::uint64_t> serials;
};

/// What this rank has lent, at the end of the heap, by offset. It stays lent until no borrower holds it any more, which
/// a rank learns when it next meets all of them, or all ranks.
struct SymmetricHeap::Lendings {
  struct One {
    std::size_t size_bytes = 0;
    Members borrowers;
    std::uint64_t number = 0;     ///< no other one has it
    bool is_held = true;          ///< by this rank; any thread may let go
    std::size_t words_bytes = 0;  ///< at its beginning, by which kernels meet; 0 for a sub-world
  };
  std::mutex mutex;
  std::map<std::size_t, One> by_offset;
  std::uint64_t count = 0;

  /// Where those begin that this rank holds.
  std::size_t lowest_held(std::size_t otherwise) const {
    for (const auto& [offset, one] : by_offset)
      if (one.is_held) return offset;
    return otherwise;
  }
};

SymmetricHeap::SymmetricHeap(World& world, Fabric& fabric)
    : world_(world),
      fabric_(fabric),
      place_(fabric.domain().heap()),
      ranges_(place_.size_bytes, reinterpret_cast<std::uintptr_t>(own(0))),
      touched_bytes_(place_.is_zeroed ? 0 : place_.size_bytes),
      released_(std::make_shared<Released>()),
      lendings_(std::make_shared<Lendings>()) {}

std::byte* SymmetricHeap::own(std::size_t offset) const noexcept {
  return place_.own + offset;
}

std::shared_ptr<void> SymmetricHeap::allocate(Team& everyone, const Request& request, CallSite where) {
  if (!std::has_single_bit(request.alignment))
    throw_error(ErrorCode::invalid_use, "an alignment of {} bytes is no power of two (rank {}, {})", request.alignment,
                world_.rank(), short_name(where));
  if (request.alignment > place_.alignment_bytes)
    throw_error(ErrorCode::invalid_use,
                "an alignment of {} bytes; the symmetric heaps of all ranks are aligned alike up to {} (rank {}, {})",
                request.alignment, place_.alignment_bytes, world_.rank(), short_name(where));
  const Call call{
      .kind = request.kind, .type = request.type, .size_bytes = request.size_bytes, .detail = request.alignment};
  // What this rank has put must not come to what is allocated next.
  world_.context().quiet(where);
  // Many small blocks are as much memory as a large one. All ranks count alike, so all ask or none.
  constexpr std::size_t worth_asking = std::size_t(1) << 20;
  const Asking asking = unasked_bytes_ + request.size_bytes >= worth_asking ? Asking::yes : Asking::no;
  const Index available = free_released(asking, everyone, call, where);
  if (request.size_bytes == 0) return nullptr;

  // Whole lines, so that what ranks write for different blocks does not share one.
  const std::size_t bytes = round_up(request.size_bytes, 64);
  const std::size_t alignment = std::max<std::size_t>(request.alignment, 64);
  const auto offset = bytes < request.size_bytes ? std::nullopt : ranges_.allocate(bytes, alignment);
  if (!offset)  // on every rank, for all keep the same books
    throw_error(ErrorCode::no_memory,
                "the symmetric heap of {} bytes a rank has no room for {}: {} are in use, {} are free in one piece{}; "
                "TRANSHIP_HEAP makes it larger (rank {}, {})",
                place_.size_bytes, request.size_bytes, ranges_.used_bytes(), ranges_.largest_free_bytes(),
                ranges_.size_bytes() < place_.size_bytes
                    ? fmt::format(", {} at its end are those of sub-worlds", place_.size_bytes - ranges_.size_bytes())
                    : "",
                world_.rank(), short_name(where));

  // Of a sparse block each rank may touch as little as it will, but it could touch all of it.
  const bool is_sparse = bytes >= Domain::sparse_bytes_min;
  if (is_sparse && double(bytes) > double(available)) {
    ranges_.release(*offset);
    throw_error(ErrorCode::no_memory, "a block of {} bytes in a symmetric heap; {} are available (rank {}, {})", bytes,
                available, world_.rank(), short_name(where));
  }
  if (const double all = double(bytes) * fabric_.on_this_machine().count; !is_sparse && all > double(available)) {
    ranges_.release(*offset);  // on every rank, too: systems would rather end processes than refuse
    throw_error(ErrorCode::no_memory,
                "{} ranks need {} bytes each for their symmetric heaps, {} are available (rank {}, {})",
                fabric_.on_this_machine().count, bytes, available, world_.rank(), short_name(where));
  }
  unasked_bytes_ = asking == Asking::yes ? 0 : unasked_bytes_ + bytes;
  if (is_sparse) sparse_bytes_ += bytes;
  const Result<void> obtained = fabric_.domain().obtain(*offset, bytes);
  if (obtained.ok()) {
    const std::size_t end = *offset + bytes, lent = std::max(*offset, ever_lent_from_);
    make_zero(*offset, std::min(end, touched_bytes_));
    make_zero(lent, end);
  }
  touched_bytes_ = std::max(touched_bytes_, *offset + bytes);
  if (const auto refusal = first_refusal(obtained, everyone, call, where)) {
    ranges_.release(*offset);
    if (is_sparse) sparse_bytes_ -= bytes;
    fabric_.domain().give_back(*offset, bytes);
    obtained.value();
    throw_error(refusal->code, "rank {} cannot get {} bytes for its symmetric heap: {} (rank {}, {})", refusal->rank,
                bytes, refusal->reason, world_.rank(), short_name(where));
  }

  const std::uint64_t serial = next_serial_++;
  const auto is_held = std::make_shared<std::atomic<bool>>(true);
  blocks_[*offset] = {.serial = serial, .size_bytes = request.size_bytes, .is_held = is_held};
  offset_of_[serial] = *offset;
  const auto release = [serial, is_held, released = released_, lifetime = fabric_.domain().lifetime()](void*) {
    is_held->store(false, std::memory_order_relaxed);
    const std::lock_guard lock(released->mutex);
    released->serials.push_back(serial);
  };
  return {own(*offset), release};
}

std::optional<SymmetricHeap::Refusal> SymmetricHeap::first_refusal(const Result<void>& mine, Team& everyone,
                                                                   const Call& call, CallSite where) {
  std::vector<std::uint8_t> all(std::size_t(world_.size()));
  const std::uint8_t own = mine.ok() ? 0 : static_cast<std::uint8_t>(mine.error().code());
  everyone.all_gather(call, &own, 1, all.data(), where);
  const auto found = std::find_if(all.begin(), all.end(), [](std::uint8_t code) { return code != 0; });
  if (found == all.end()) return std::nullopt;
  const Rank rank = Rank(found - all.begin());
  std::array<char, 256> reason{};
  if (world_.rank() == rank) mine.error().message().copy(reason.data(), reason.size() - 1);
  std::vector<std::array<char, 256>> reasons(all.size());
  everyone.all_gather(call, reason.data(), reason.size(), reasons.data(), where);
  return Refusal{.rank = rank, .code = static_cast<ErrorCode>(*found), .reason = reasons[std::size_t(rank)].data()};
}

RegisteredMemory SymmetricHeap::join(Team& everyone, void* memory, std::size_t size_bytes, CallSite where) {
  const Request request{.size_bytes = size_bytes, .alignment = page_bytes(), .kind = CallKind::registration};
  std::shared_ptr<void> block = allocate(everyone, request, where);
  if (!block) return {};
  auto* const in_heap = static_cast<std::byte*>(block.get());
  std::shared_ptr<void> joined;
  Result<void> mine;
  if (auto pages = fabric_.domain().join(std::move(block), std::size_t(in_heap - own(0)), size_bytes, memory))
    joined = std::move(pages).value();
  else
    mine = pages.error();
  const Call call{.kind = CallKind::registration, .size_bytes = size_bytes};
  if (const auto refusal = first_refusal(mine, everyone, call, where)) {
    mine.value();
    throw_error(refusal->code, "rank {} cannot register its {} bytes: {} (rank {}, {})", refusal->rank, size_bytes,
                refusal->reason, world_.rank(), short_name(where));
  }
  std::erase_if(registered_, [](const Registered& one) { return one.joined.expired(); });
  registered_.push_back({static_cast<std::byte*>(memory), size_bytes, std::size_t(in_heap - own(0)), joined});
  return {memory, size_bytes, in_heap, std::move(joined)};
}

std::optional<std::size_t> SymmetricHeap::find_registered(const std::byte* memory) const noexcept {
  for (const Registered& one : registered_)
    if (const auto behind = std::size_t(memory - one.memory); behind < one.size_bytes && !one.joined.expired())
      return one.offset + behind;
  return std::nullopt;
}

Index SymmetricHeap::free_released(Asking asking, Team& everyone, const Call& call, CallSite where) {
  struct Some {
    Index available = INT64_MAX;
    std::uint64_t size_bytes = 0;
    std::uint64_t count = 0;  ///< of all blocks that it has let go of; the first ones are these
    std::uint64_t serials[29] = {};
    std::size_t told() const { return std::min<std::size_t>(count, std::size(serials)); }
  };
  const Index granted = Index(granted_bytes()) * fabric_.on_this_machine().count;
  Some mine{.available = asking == Asking::yes ? fabric_.domain().available_bytes(granted) : INT64_MAX};
  {
    const std::lock_guard lock(lendings_->mutex);
    mine.size_bytes = lendings_->lowest_held(place_.size_bytes);
  }
  std::vector<Some> all(std::size_t(world_.size()));
  Index available = INT64_MAX;
  std::size_t size_bytes = place_.size_bytes;
  for (bool has_more = true; has_more;) {
    {
      const std::lock_guard lock(released_->mutex);
      auto& serials = released_->serials;
      mine.count = serials.size();
      std::copy_n(serials.begin(), mine.told(), mine.serials);
      serials.erase(serials.begin(), serials.begin() + std::ptrdiff_t(mine.told()));
    }
    everyone.all_gather(call, &mine, sizeof mine, all.data(), where);
    has_more = false;
    for (const Some& some : all) {
      has_more |= some.count > some.told();
      size_bytes = std::min<std::size_t>(size_bytes, some.size_bytes);
      available = std::min(available, some.available);
      for (std::size_t i = 0; i < some.told(); ++i) {
        const auto offset = offset_of_.find(some.serials[i]);
        if (offset == offset_of_.end()) continue;
        const auto block = blocks_.find(offset->second);
        if (++block->second.released_by == world_.size()) forget(block, where);
      }
    }
  }
  ranges_.resize(size_bytes);
  // What lies below the lowest that any rank holds is held by none.
  const std::lock_guard lock(lendings_->mutex);
  auto& lendings = lendings_->by_offset;
  lendings.erase(lendings.begin(), lendings.lower_bound(size_bytes));
  return available;
}

SymmetricHeap::Lent SymmetricHeap::lend(Team& borrowers, std::optional<std::size_t> wanted, CallKind kind,
                                        CallSite where) {
  const Call call{.kind = kind, .size_bytes = wanted.value_or(0)};
  // What is more than the heap is not rounded: it may be more than any number of pages.
  const std::size_t asked = wanted.value_or(place_.size_bytes / 8);
  const std::size_t size_bytes =
      asked > place_.size_bytes ? asked : round_up(std::max<std::size_t>(asked, 1), page_bytes());

  /// What one of them uses. The first one is that of blocks, whose number counts lendings.
  struct Used {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t number = 0;
    std::uint64_t is_free = 0;  ///< this rank has let go, and all who had it are here
  };
  const Members& here = borrowers.members();
  std::vector<Used> mine;
  {
    const std::lock_guard lock(lendings_->mutex);
    mine.push_back({.end = ranges_.used_end(), .number = lendings_->count});
    for (const auto& [offset, one] : lendings_->by_offset) {
      const bool all_here = one.borrowers.among(here).count == one.borrowers.count;
      mine.push_back({offset, offset + one.size_bytes, one.number, !one.is_held && all_here});
    }
  }
  const std::uint64_t count = mine.size();
  std::vector<std::uint64_t> counts(std::size_t(borrowers.size()));
  borrowers.all_gather(call, &count, sizeof count, counts.data(), where);
  mine.resize(*std::max_element(counts.begin(), counts.end()));
  std::vector<Used> used(mine.size() * counts.size());
  borrowers.all_gather(call, mine.data(), mine.size() * sizeof(Used), used.data(), where);

  std::uint64_t lendings = 0;
  for (std::size_t member = 0; member < counts.size(); ++member)
    lendings = std::max(lendings, std::exchange(used[member * mine.size()].number, 0) + 1);
  const auto is_held = [&](const Used& one) {
    return one.number == 0 || std::any_of(used.begin(), used.end(), [&](const Used& other) {
             return other.number == one.number && other.is_free == 0;
           });
  };
  std::vector<Used> held;
  std::copy_if(used.begin(), used.end(), std::back_inserter(held), is_held);

  // Downwards from the end, past what any of them uses.
  std::sort(held.begin(), held.end(), [](const Used& a, const Used& b) { return a.end > b.end; });
  constexpr std::size_t huge_page = std::size_t(2) << 20;
  const std::size_t alignment = size_bytes >= huge_page ? std::min(huge_page, place_.alignment_bytes) : page_bytes();
  const auto first = reinterpret_cast<std::uintptr_t>(own(0));
  // The highest offset at which such a part ends before `limit`.
  const auto below = [&](std::size_t limit) {
    const std::size_t excess = (first + limit - size_bytes) & (alignment - 1);
    return limit - size_bytes < excess ? std::nullopt : std::optional(limit - size_bytes - excess);
  };
  std::size_t end = place_.size_bytes, largest = 0;
  for (const Used& one : held) {
    if (one.end < end) largest = std::max<std::size_t>(largest, end - one.end);
    if (size_bytes <= end && one.end <= below(end).value_or(0)) break;
    end = std::min<std::size_t>(end, one.begin);
  }
  if (size_bytes > end || !below(end))
    throw_error(ErrorCode::no_memory,
                "the symmetric heap of {} bytes a rank has no room for {} of {}: {} are free in one "
                "piece; TRANSHIP_HEAP makes it larger; what sub-worlds of other ranks have had is free after the next "
                "allocation of all ranks (rank {}, {})",
                place_.size_bytes, kind == CallKind::sub_world ? "that of a sub-world" : "the words of a team",
                size_bytes, largest, world_.rank(), short_name(where));

  const std::size_t offset = *below(end);
  ever_lent_from_ = std::min(ever_lent_from_, offset);
  {
    const std::lock_guard lock(lendings_->mutex);
    for (auto one = mine.begin() + 1; one != mine.end(); ++one)
      if (!is_held(*one)) lendings_->by_offset.erase(one->begin);
    lendings_->count = lendings;
    // All borrowers count alike, and no two lendings of the first one have the same count.
    const std::uint64_t number = std::uint64_t(here.rank_of(0) + 1) << 40 | lendings;
    lendings_->by_offset[offset] = {.size_bytes = size_bytes,
                                    .borrowers = here,
                                    .number = number,
                                    .words_bytes = kind == CallKind::sub_world ? 0 : *wanted};
  }
  const auto let_go = [lendings = lendings_, offset](void*) {
    const std::lock_guard lock(lendings->mutex);
    lendings->by_offset.at(offset).is_held = false;
  };
  return {offset, size_bytes, std::shared_ptr<void>(own(offset), let_go)};
}

std::shared_ptr<void> SymmetricHeap::lend_words(Team& borrowers, std::size_t size_bytes, CallSite where) {
  const Lent lent = lend(borrowers, size_bytes, CallKind::kernel_team, where);
  const Result<void> obtained = fabric_.domain().obtain(lent.offset_bytes, lent.size_bytes);
  if (obtained.ok()) std::memset(own(lent.offset_bytes), 0, size_bytes);
  // No borrower raises a word before all have made theirs zero.
  const std::uint8_t mine = obtained.ok() ? 0 : static_cast<std::uint8_t>(obtained.error().code());
  std::vector<std::uint8_t> all(std::size_t(borrowers.size()));
  borrowers.all_gather({.kind = CallKind::kernel_team, .size_bytes = size_bytes}, &mine, 1, all.data(), where);
  obtained.value();
  for (int member = 0; member < borrowers.size(); ++member)
    if (const std::uint8_t code = all[std::size_t(member)])
      throw_error(static_cast<ErrorCode>(code), "rank {} cannot get {} bytes for the words of a team (rank {}, {})",
                  borrowers.world_rank(member), size_bytes, world_.rank(), short_name(where));
  return lent.hold;
}

void SymmetricHeap::make_zero(std::size_t first, std::size_t end) {
  if (first >= end) return;
  if (end - first < Domain::sparse_bytes_min) return void(std::memset(own(first), 0, end - first));
  // Whole pages that are given back hold zeros, and take no memory.
  const std::size_t pages_first = round_up(first, page_bytes()), pages_end = round_down(end, page_bytes());
  fabric_.domain().give_back(pages_first, pages_end - pages_first);
  std::memset(own(first), 0, pages_first - first);
  std::memset(own(pages_end), 0, end - pages_end);
}

void SymmetricHeap::forget(std::map<std::size_t, Block>::iterator block, CallSite where) {
  const std::size_t bytes = ranges_.release(block->first);
  world_.context().touches(own(block->first), bytes, Touch::frees, "free", where);
  if (bytes >= Domain::sparse_bytes_min) sparse_bytes_ -= bytes;
  fabric_.domain().give_back(block->first, bytes);
  offset_of_.erase(block->second.serial);
  blocks_.erase(block);
}

void SymmetricHeap::free(Team& everyone, std::shared_ptr<void> block, CallSite where) {
  if (block.use_count() > 1)
    throw_error(ErrorCode::invalid_use, "a symmetric block is freed that {} others hold (rank {}, {})",
                block.use_count() - 1, world_.rank(), short_name(where));
  const std::size_t offset = block ? std::size_t(static_cast<std::byte*>(block.get()) - own(0)) : 0;
  const auto at = block ? blocks_.find(offset) : blocks_.end();
  if (block && at == blocks_.end())
    throw_error(ErrorCode::invalid_use, "{} is no block of the symmetric heap (rank {}, {})", block.get(),
                world_.rank(), short_name(where));
  const std::uint64_t serial = block ? at->second.serial : 0;
  world_.context().quiet(where);
  everyone.meet({.kind = CallKind::release, .detail = serial}, where);
  if (!block) return;
  forget(at, where);
  block.reset();  // queues it, for no handle is left
  const std::lock_guard lock(released_->mutex);
  std::erase(released_->serials, serial);
}

HeapUsage SymmetricHeap::usage() const noexcept {
  return {.blocks = blocks_.size(),
          .used_bytes = ranges_.used_bytes(),
          .used_bytes_max = ranges_.used_bytes_max(),
          .reserved_bytes = place_.size_bytes};
}

bool SymmetricHeap::is_allocated(std::size_t offset_bytes, std::size_t size_bytes) const {
  const auto contains = [&](std::size_t first, std::size_t bytes) {
    const std::size_t within = offset_bytes - first;
    return within <= bytes && size_bytes <= bytes - within;
  };
  if (const auto behind = blocks_.upper_bound(offset_bytes); behind != blocks_.begin())
    if (const auto& [first, block] = *std::prev(behind); contains(first, block.size_bytes))
      return block.is_held->load(std::memory_order_relaxed);
  const std::lock_guard lock(lendings_->mutex);
  const auto& lendings = lendings_->by_offset;
  const auto lent = lendings.upper_bound(offset_bytes);
  return lent != lendings.begin() && std::prev(lent)->second.is_held &&
         contains(std::prev(lent)->first, std::prev(lent)->second.words_bytes);
}

}  // namespace tranship
