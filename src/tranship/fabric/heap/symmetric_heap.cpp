#include "tranship/fabric/heap/symmetric_heap.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// The number of blocks that this rank has released and other ranks still hold. Any thread may release one.
struct SymmetricHeap::Released {
  std::atomic<Index> count = 0;
};

/// The parts at the end of the heap that this rank has lent, by offset. A part stays lent until no borrower holds it,
/// which a rank learns when it next meets all of them, or all ranks.
struct SymmetricHeap::Lendings {
  struct One {
    std::size_t size_bytes = 0;
    Members borrowers;
    bool is_held = true;          ///< by this rank; any thread may release it
    std::size_t words_bytes = 0;  ///< words for kernels, at the beginning; 0 for a sub-world
  };
  std::mutex mutex;
  std::map<std::size_t, One> by_offset;

  /// Returns the lowest offset of a part that this rank holds.
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
    throw_error(ErrorCode::invalid_use, "an alignment of {} is no power of two (rank {}, {})",
                amount(request.alignment, "byte"), world_.rank(), short_name(where));
  if (request.alignment > place_.alignment_bytes)
    throw_error(ErrorCode::invalid_use,
                "an alignment of {} is too large: symmetric heaps are aligned to {} (rank {}, {})",
                amount(request.alignment, "byte"), place_.alignment_bytes, world_.rank(), short_name(where));
  const Call call{
      .kind = request.kind, .type = request.type, .size_bytes = request.size_bytes, .detail = request.alignment};
  // Pending puts of this rank must not write to the block that is allocated next.
  world_.context().quiet(where);
  // Many small blocks need as much memory as a large one. All ranks count alike, so either all ask or none does.
  constexpr std::size_t worth_asking = std::size_t(1) << 20;
  const Asking asking = unasked_bytes_ + request.size_bytes >= worth_asking ? Asking::yes : Asking::no;
  const Index available = free_released(asking, everyone, call, where);
  if (request.size_bytes == 0) return nullptr;

  // Whole cache lines, so that two blocks never share one.
  const std::size_t bytes = round_up(request.size_bytes, 64);
  const std::size_t alignment = std::max<std::size_t>(request.alignment, 64);
  const auto offset = bytes < request.size_bytes ? std::nullopt : ranges_.allocate(bytes, alignment);
  if (!offset)  // on every rank, since all keep the same records
    throw_error(ErrorCode::no_memory,
                "the symmetric heap of {} per rank has no room for {}: {} are in use, {} are free in one piece{}; "
                "TRANSHIP_HEAP makes it larger (rank {}, {})",
                amount(place_.size_bytes, "byte"), request.size_bytes, ranges_.used_bytes(),
                ranges_.largest_free_bytes(),
                ranges_.size_bytes() < place_.size_bytes
                    ? fmt::format(", {} at its end belong to sub-worlds", place_.size_bytes - ranges_.size_bytes())
                    : "",
                world_.rank(), short_name(where));

  // Each rank may touch little of a sparse block, but it could touch all of it.
  const bool is_sparse = bytes >= Domain::sparse_bytes_min;
  if (is_sparse && double(bytes) > double(available)) {
    ranges_.release(*offset);
    throw_error(ErrorCode::no_memory,
                "a symmetric block of {} exceeds the memory of this machine: {} are available (rank {}, {})",
                amount(bytes, "byte"), available, world_.rank(), short_name(where));
  }
  if (const double all = double(bytes) * fabric_.on_this_machine().count; !is_sparse && all > double(available)) {
    ranges_.release(*offset);  // on every rank, too: systems rather kill processes than refuse memory
    throw_error(
        ErrorCode::no_memory,
        "a symmetric block of {} for each of {} exceeds the memory of this machine: {} are available (rank {}, {})",
        amount(bytes, "byte"), amount(fabric_.on_this_machine().count, "rank"), available, world_.rank(),
        short_name(where));
  }
  unasked_bytes_ = asking == Asking::yes ? 0 : unasked_bytes_ + bytes;
  if (is_sparse) sparse_bytes_ += bytes;
  const std::size_t own_bytes = std::min(round_up(request.own_bytes.value_or(bytes), 64), bytes);
  const Result<void> obtained = fabric_.domain().obtain(*offset, own_bytes);
  if (obtained.ok()) {
    const std::size_t end = *offset + own_bytes, lent = std::max(*offset, ever_lent_from_);
    make_zero(*offset, std::min(end, touched_bytes_));
    make_zero(lent, end);
  }
  touched_bytes_ = std::max(touched_bytes_, *offset + bytes);
  const Result<void> agreed = attempt([&] {
    const std::string cannot = fmt::format("cannot get {} for its symmetric heap", amount(own_bytes, "byte"));
    agree(everyone, call, obtained, cannot, where);
  });
  if (!agreed) {
    ranges_.release(*offset);
    if (is_sparse) sparse_bytes_ -= bytes;
    fabric_.domain().give_back(*offset, bytes);
    agreed.value();
  }

  const std::uint64_t serial = next_serial_++;
  const auto is_held = std::make_shared<std::atomic<bool>>(true);
  blocks_[*offset] = {.serial = serial, .size_bytes = request.size_bytes, .own_bytes = own_bytes, .is_held = is_held};
  const auto release = [is_held, released = released_, lifetime = fabric_.domain().lifetime()](void*) {
    if (is_held->exchange(false)) released->count.fetch_add(1);
  };
  return {own(*offset), release};
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
  agree(everyone, call, mine, fmt::format("cannot register its {}", amount(size_bytes, "byte")), where);
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

std::vector<std::uint64_t> SymmetricHeap::released_bits() const {
  std::vector<std::uint64_t> bits;
  if (released_->count.load() == 0) return bits;
  std::size_t number = 0;
  for (const auto& [offset, block] : blocks_) {
    if (!block.is_held->load()) {
      bits.resize(number / 64 + 1);
      bits.back() |= std::uint64_t(1) << number % 64;
    }
    ++number;
  }
  return bits;
}

Index SymmetricHeap::free_released(Asking asking, Team& everyone, const Call& call, CallSite where) {
  constexpr std::size_t words_max = 4;
  struct Some {
    Index available = INT64_MAX;
    std::uint64_t size_bytes = 0;
    std::uint64_t words = 0;  ///< of bits, up to the last block that this rank has released
    std::uint64_t bits[words_max] = {};
  };
  const auto least = [](const Some& a, const Some& b) {
    Some out{.available = std::min(a.available, b.available),
             .size_bytes = std::min(a.size_bytes, b.size_bytes),
             .words = std::min(a.words, b.words)};
    for (std::size_t i = 0; i < words_max; ++i) out.bits[i] = a.bits[i] & b.bits[i];
    return out;
  };
  const Index granted = Index(granted_bytes()) * fabric_.on_this_machine().count;
  Some mine{.available = asking == Asking::yes ? fabric_.domain().available_bytes(granted) : INT64_MAX};
  {
    const std::lock_guard lock(lendings_->mutex);
    mine.size_bytes = lendings_->lowest_held(place_.size_bytes);
  }
  // All ranks keep the same records, so a block has the same number on all of them.
  const std::vector<std::uint64_t> bits = released_bits();
  mine.words = bits.size();
  std::vector<std::uint64_t> by_all;
  Some all;
  do {
    for (std::size_t i = 0; i < words_max; ++i)
      mine.bits[i] = by_all.size() + i < bits.size() ? bits[by_all.size() + i] : 0;
    all = everyone.reduce(call, mine, least, where);
    by_all.insert(by_all.end(), std::begin(all.bits), std::end(all.bits));
  } while (by_all.size() < all.words);

  auto block = blocks_.begin();
  for (std::size_t i = 0; i < 64 * all.words && block != blocks_.end(); ++i) {
    const auto next = std::next(block);
    if ((by_all[i / 64] >> i % 64 & 1) != 0) forget(block, where);
    block = next;
  }
  const std::size_t size_bytes = all.size_bytes;
  const Index available = all.available;
  ranges_.resize(size_bytes);
  // No rank holds a part below the lowest one that any rank holds.
  const std::lock_guard lock(lendings_->mutex);
  auto& lendings = lendings_->by_offset;
  lendings.erase(lendings.begin(), lendings.lower_bound(size_bytes));
  return available;
}

SymmetricHeap::Lent SymmetricHeap::lend(Team& borrowers, std::optional<std::size_t> wanted, CallKind kind,
                                        CallSite where) {
  const Call call{.kind = kind, .size_bytes = wanted.value_or(0)};
  // A size above that of the heap is not rounded, which could overflow.
  const std::size_t asked = wanted.value_or(place_.size_bytes / 8);
  const std::size_t size_bytes =
      asked > place_.size_bytes ? asked : round_up(std::max<std::size_t>(asked, 1), page_bytes());

  /// Parts that this rank cannot give away, from the highest end down. A part that it has released itself is excluded
  /// only if all its borrowers are here: those that still hold it object themselves.
  struct Used {
    std::size_t begin = 0, end = 0;
  };
  const Members& here = borrowers.members();
  std::vector<Used> held{{.end = ranges_.used_end()}};
  {
    const std::lock_guard lock(lendings_->mutex);
    for (const auto& [offset, one] : lendings_->by_offset)
      if (one.is_held || one.borrowers.among(here).count < one.borrowers.count)
        held.push_back({offset, offset + one.size_bytes});
  }
  std::sort(held.begin(), held.end(), [](const Used& a, const Used& b) { return a.end > b.end; });
  constexpr std::size_t huge_page = std::size_t(2) << 20;
  const std::size_t alignment = size_bytes >= huge_page ? std::min(huge_page, place_.alignment_bytes) : page_bytes();
  const auto first = reinterpret_cast<std::uintptr_t>(own(0));
  // The highest offset at which such a part ends before `limit`.
  const auto below = [&](std::size_t limit) {
    const std::size_t excess = (first + limit - size_bytes) & (alignment - 1);
    return limit - size_bytes < excess ? std::nullopt : std::optional(limit - size_bytes - excess);
  };
  std::size_t largest = 0;
  const auto highest_below = [&](std::size_t end) {
    for (const Used& one : held) {
      if (one.end < end) largest = std::max(largest, end - one.end);
      if (size_bytes <= end && one.end <= below(end).value_or(0)) break;
      end = std::min(end, one.begin);
    }
    return size_bytes > end ? std::nullopt : below(end);
  };

  /// Proposed places plus 1; 0 if this rank has none.
  struct Places {
    std::uint64_t lowest = 0, highest = 0;
  };
  const auto both = [](const Places& a, const Places& b) {
    return Places{std::min(a.lowest, b.lowest), std::max(a.highest, b.highest)};
  };
  // The highest place that suits all is at most the lowest proposal, so the search continues from there.
  Places places;
  for (std::size_t limit = place_.size_bytes;; limit = places.lowest - 1 + size_bytes) {
    const std::optional<std::size_t> place = highest_below(limit);
    const std::uint64_t mine = place ? *place + 1 : 0;
    places = borrowers.reduce(call, Places{mine, mine}, both, where);
    if (places.lowest == 0 || places.lowest == places.highest) break;
  }
  if (places.lowest == 0)
    throw_error(ErrorCode::no_memory,
                "the symmetric heap of {} per rank has no room for {} of {}: {} are free in one piece; TRANSHIP_HEAP "
                "makes it larger; memory of ended sub-worlds of other ranks becomes free at the next allocation of all "
                "ranks (rank {}, {})",
                amount(place_.size_bytes, "byte"),
                kind == CallKind::sub_world ? "the heap of a sub-world" : "the words of a team", size_bytes, largest,
                world_.rank(), short_name(where));

  const std::size_t offset = places.lowest - 1;
  ever_lent_from_ = std::min(ever_lent_from_, offset);
  {
    const std::lock_guard lock(lendings_->mutex);
    // No borrower holds the parts that were lent there before; otherwise it would not have agreed.
    std::erase_if(lendings_->by_offset, [&](const auto& before) {
      return before.first < offset + size_bytes && offset < before.first + before.second.size_bytes;
    });
    lendings_->by_offset[offset] = {
        .size_bytes = size_bytes, .borrowers = here, .words_bytes = kind == CallKind::sub_world ? 0 : *wanted};
  }
  const auto release = [lendings = lendings_, offset](void*) {
    const std::lock_guard lock(lendings->mutex);
    lendings->by_offset.at(offset).is_held = false;
  };
  return {offset, size_bytes, std::shared_ptr<void>(own(offset), release)};
}

std::shared_ptr<void> SymmetricHeap::lend_words(Team& borrowers, std::size_t size_bytes, CallSite where) {
  const Lent lent = lend(borrowers, size_bytes, CallKind::kernel_team, where);
  const Result<void> obtained = fabric_.domain().obtain(lent.offset_bytes, lent.size_bytes);
  if (obtained.ok()) std::memset(own(lent.offset_bytes), 0, size_bytes);
  // No borrower may raise a word before all have zeroed theirs.
  agree(borrowers, {.kind = CallKind::kernel_team, .size_bytes = size_bytes}, obtained,
        fmt::format("cannot get {} for the words of a team", amount(size_bytes, "byte")), where);
  return lent.hold;
}

void SymmetricHeap::make_zero(std::size_t first, std::size_t end) {
  if (first >= end) return;
  if (end - first < Domain::sparse_bytes_min) return void(std::memset(own(first), 0, end - first));
  // Whole pages that are given back read as zeros and take no memory.
  const std::size_t pages_first = round_up(first, page_bytes()), pages_end = round_down(end, page_bytes());
  fabric_.domain().give_back(pages_first, pages_end - pages_first);
  std::memset(own(first), 0, pages_first - first);
  std::memset(own(pages_end), 0, end - pages_end);
}

void SymmetricHeap::forget(std::map<std::size_t, Block>::iterator block, CallSite where) {
  const std::size_t bytes = ranges_.release(block->first);
  world_.context().touches(own(block->first), block->second.own_bytes, Touch::frees, "free", where);
  if (bytes >= Domain::sparse_bytes_min) sparse_bytes_ -= bytes;
  fabric_.domain().give_back(block->first, bytes);
  if (!block->second.is_held->exchange(false)) released_->count.fetch_sub(1);
  blocks_.erase(block);
}

void SymmetricHeap::free(Team& everyone, const std::shared_ptr<void>& block, CallSite where) {
  if (block.use_count() > 1)
    throw_error(ErrorCode::invalid_use, "free: this symmetric block still has {} (rank {}, {})",
                amount(block.use_count() - 1, "other owner"), world_.rank(), short_name(where));
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
