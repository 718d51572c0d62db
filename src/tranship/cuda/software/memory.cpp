#include "tranship/cuda/software/memory.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>

namespace tranship::cuda::software {
namespace {

constexpr std::size_t alignment_bytes = 256;
/// Bytes behind each allocation that belong to no allocation.
constexpr std::size_t gap_bytes = 256;
constexpr std::size_t page_bytes = 4096;

std::size_t rounded(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

int nameless_file(std::size_t bytes) {
  const int file = memfd_create("software card", MFD_CLOEXEC);
  if (file < 0)
    throw_error(ErrorCode::no_memory, "software card: the system has no file for {}", amount(bytes, "byte"));
  if (ftruncate(file, off_t(bytes)) != 0) {
    close(file);
    throw_error(ErrorCode::no_memory, "software card: the system has no file of {}", amount(bytes, "byte"));
  }
  return file;
}

unsigned char* mapped(std::size_t bytes, int access, int file) {
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const at = mmap(nullptr, bytes, access, kind | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED)
    throw_error(ErrorCode::no_memory, "software card: the system maps no memory of {}", amount(bytes, "byte"));
  return static_cast<unsigned char*>(at);
}

Address address_of(const void* at) {
  return reinterpret_cast<Address>(at);
}
void* pointer(Address address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses of cards are numbers
}

}  // namespace

Physical::Physical(int of_card, std::size_t size_bytes, int file_of)
    : card(of_card), bytes(size_bytes), file(file_of), window(mapped(bytes, PROT_READ | PROT_WRITE, file_of)) {}

Physical::~Physical() {
  munmap(window, bytes);
  close(file);
}

Memory::Memory(int cards, std::size_t capacity_bytes, std::uint64_t seed)
    : capacity_bytes_(rounded(capacity_bytes, page_bytes)), seed_(seed) {
  for (int card = 0; card < cards; ++card) {
    Arena arena;
    // Gaps are no part of the capacity.
    const std::size_t bytes = 2 * capacity_bytes_;
    arena.file = nameless_file(bytes);
    arena.first = address_of(mapped(bytes, PROT_NONE, arena.file));
    arena.window = mapped(bytes, PROT_READ | PROT_WRITE, arena.file);
    // An allocation that happens to be aligned to more than was promised would hide mistakes.
    arena.free[alignment_bytes] = bytes - alignment_bytes;
    arenas_.push_back(std::move(arena));
    reached_by_.push_back({only(card), only(card)});
  }
}

std::size_t Memory::used_bytes(int card) const {
  const std::lock_guard lock(mutex_);
  const Arena& arena = arenas_[std::size_t(card)];
  return arena.used + arena.created;
}

void Memory::Reach::let(int card, bool may_load, bool may_store) noexcept {
  loads = may_load ? loads | only(card) : loads & ~only(card);
  stores = may_store ? stores | only(card) : stores & ~only(card);
}

std::uint64_t Memory::add_pool(int card) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t pool = pool_reached_by_.size() + 1;
  pool_reached_by_[pool] = {only(card), only(card)};
  return pool;
}

Address Memory::allocate(int card, std::size_t bytes, std::uint64_t pool) {
  const std::lock_guard lock(mutex_);
  Arena& arena = arenas_[std::size_t(card)];
  if (bytes > capacity_bytes_ || arena.used + arena.created + bytes > capacity_bytes_) return 0;
  const std::size_t taken = rounded(bytes, alignment_bytes) + gap_bytes;
  const auto found =
      std::find_if(arena.free.begin(), arena.free.end(), [&](const auto& hole) { return hole.second >= taken; });
  if (found == arena.free.end()) return 0;
  const auto [offset, room] = *found;
  arena.free.erase(found);
  if (room > taken) arena.free[offset + taken] = room - taken;
  arena.used += bytes;
  const Reach& reach = pool == 0 ? reached_by_[std::size_t(card)] : pool_reached_by_.at(pool);
  Range range{.first = arena.first + offset,
              .bytes = bytes,
              .card = card,
              .window = arena.window + offset,
              .loads = reach.loads,
              .stores = reach.stores,
              .pool = pool};
  // Garbage where programs look first and last.
  const auto garbage = int(splitmix64(seed_ ^ offset) & 0xff);
  const std::size_t looked_at = std::min<std::size_t>(bytes, 32 << 10);
  std::memset(range.window, garbage, looked_at);
  std::memset(range.window + bytes - looked_at, garbage, looked_at);
  const Address first = range.first;
  ranges_.emplace(first, std::move(range));
  ++version_;
  return first;
}

void Memory::release(Address first) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(first);
  if (found == ranges_.end()) return;
  const Range range = found->second;
  ranges_.erase(found);
  ++version_;
  Arena& arena = arenas_[std::size_t(range.card)];
  arena.used -= range.bytes;
  std::size_t offset = first - arena.first, bytes = rounded(range.bytes, alignment_bytes) + gap_bytes;
  auto next = arena.free.lower_bound(offset);
  if (next != arena.free.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = arena.free.erase(next);
  }
  if (next != arena.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
    }
  }
  arena.free[offset] = bytes;
  // The system takes whole pages back.
  const std::size_t begin = rounded(first - arena.first, page_bytes);
  const std::size_t end = (first - arena.first + range.bytes) / page_bytes * page_bytes;
  if (begin < end) fallocate(arena.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(begin), off_t(end - begin));
}

void Memory::let_reach(int card, int owner, bool may) {
  const std::lock_guard lock(mutex_);
  Reach& reach = reached_by_[std::size_t(owner)];
  reach.let(card, may, may);
  for (auto& [first, range] : ranges_)
    if (range.place == Place::device && range.pool == 0 && range.card == owner)
      range.loads = reach.loads, range.stores = reach.stores;
  ++version_;
}
void Memory::let_reach_pool(int card, std::uint64_t pool, bool may_load, bool may_store) {
  const std::lock_guard lock(mutex_);
  Reach& reach = pool_reached_by_.at(pool);
  reach.let(card, may_load, may_store);
  for (auto& [first, range] : ranges_)
    if (range.place == Place::device && range.pool == pool) range.loads = reach.loads, range.stores = reach.stores;
  ++version_;
}

bool Memory::has_memory_of(std::uint64_t pool) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const auto& one) { return one.second.place == Place::device && one.second.pool == pool; });
}

Address Memory::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* const at =
      mmap(nullptr, rounded(bytes, page_bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 0;
  ranges_.emplace(address_of(at), Range{.first = address_of(at),
                                        .bytes = bytes,
                                        .place = Place::pinned,
                                        .window = static_cast<unsigned char*>(at),
                                        .loads = ~CardSet(0),
                                        .stores = ~CardSet(0)});
  ++version_;
  return address_of(at);
}

bool Memory::release_pinned(Address first) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(first);
  if (found == ranges_.end() || found->second.place != Place::pinned) return false;
  munmap(pointer(first), rounded(found->second.bytes, page_bytes));
  ranges_.erase(found);
  ++version_;
  return true;
}

bool Memory::register_host(Address first, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.lower_bound(first);
  if (next != ranges_.end() && next->first < first + bytes) return false;
  if (next != ranges_.begin() && std::prev(next)->second.end() > first) return false;
  ranges_.emplace(first, Range{.first = first,
                               .bytes = bytes,
                               .place = Place::registered,
                               .window = static_cast<unsigned char*>(pointer(first)),
                               .loads = ~CardSet(0),
                               .stores = ~CardSet(0)});
  ++version_;
  return true;
}

bool Memory::unregister_host(Address first) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(first);
  if (found == ranges_.end() || found->second.place != Place::registered) return false;
  ranges_.erase(found);
  ++version_;
  return true;
}

std::shared_ptr<Physical> Memory::create(int card, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Arena& arena = arenas_[std::size_t(card)];
  if (bytes > capacity_bytes_ || arena.used + arena.created + bytes > capacity_bytes_) return nullptr;
  arena.created += bytes;
  return std::shared_ptr<Physical>(new Physical(card, bytes, nameless_file(bytes)), [this](Physical* physical) {
    const int of_card = physical->card;
    const std::size_t size = physical->bytes;
    delete physical;
    const std::lock_guard relock(mutex_);
    arenas_[std::size_t(of_card)].created -= size;
  });
}

std::shared_ptr<Physical> Memory::import(int card, int file) {
  struct stat status = {};
  if (fstat(file, &status) != 0 || status.st_size <= 0) return nullptr;
  const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  return std::make_shared<Physical>(card, std::size_t(status.st_size), own);
}

Address Memory::reserve(std::size_t bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  alignment = std::max(alignment, std::size_t(2) << 20);
  void* const at = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 0;
  const Address begin = address_of(at), first = rounded(begin, alignment);
  if (first > begin) munmap(at, first - begin);
  if (begin + alignment > first) munmap(pointer(first + bytes), begin + alignment - first);
  reserved_[first] = {bytes};
  ++version_;
  return first;
}

bool Memory::unreserve(Address first, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(first);
  if (found == reserved_.end() || found->second.bytes != bytes) return false;
  const auto mapping = ranges_.lower_bound(first);
  if (mapping != ranges_.end() && mapping->first < first + bytes) return false;
  munmap(pointer(first), bytes);
  reserved_.erase(found);
  ++version_;
  return true;
}

void Memory::protect(const Range& range) const {
  int access = PROT_NONE;
  if (open_ > 0 && range.loads) access |= PROT_READ;
  if (open_ > 0 && range.stores) access |= PROT_WRITE;
  mprotect(pointer(range.first), range.bytes, access);
}

bool Memory::map(Address first, std::size_t bytes, std::shared_ptr<Physical> physical) {
  const std::lock_guard lock(mutex_);
  auto found = reserved_.upper_bound(first);
  if (found == reserved_.begin()) return false;
  --found;
  if (first + bytes > found->first + found->second.bytes) return false;
  const auto next = ranges_.lower_bound(first);
  if (next != ranges_.end() && next->first < first + bytes) return false;
  if (next != ranges_.begin() && std::prev(next)->second.end() > first) return false;
  if (mmap(pointer(first), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, physical->file, 0) == MAP_FAILED)
    return false;
  Range range{
      .first = first, .bytes = bytes, .place = Place::mapped, .card = physical->card, .window = physical->window};
  range.physical = std::move(physical);
  ranges_.emplace(first, std::move(range));
  ++version_;
  return true;
}

bool Memory::maps_whole(Address first, std::size_t bytes) const {
  Address at = first;
  while (at < first + bytes) {
    const auto found = ranges_.find(at);
    if (found == ranges_.end() || found->second.place != Place::mapped) return false;
    at = found->second.end();
  }
  return at == first + bytes;
}

bool Memory::unmap(Address first, std::size_t bytes) {
  std::vector<std::shared_ptr<Physical>> kept;  // goes after the lock, which the last owner of a piece takes
  const std::lock_guard lock(mutex_);
  const auto reservation = reserved_.upper_bound(first);
  if (reservation == reserved_.begin()) return false;
  const auto next = ranges_.lower_bound(first);
  const bool has_none = (next == ranges_.end() || next->first >= first + bytes) &&
                        (next == ranges_.begin() || std::prev(next)->second.end() <= first);
  if (has_none) return true;
  if (!maps_whole(first, bytes)) return false;
  if (mmap(pointer(first), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
      MAP_FAILED)
    return false;
  for (auto range = next; range != ranges_.end() && range->first < first + bytes; range = ranges_.erase(range))
    kept.push_back(std::move(range->second.physical));
  ++version_;
  return true;
}

bool Memory::set_access(Address first, std::size_t bytes, int card, bool may_load, bool may_store) {
  const std::lock_guard lock(mutex_);
  if (!maps_whole(first, bytes)) return false;
  for (auto found = ranges_.find(first); found != ranges_.end() && found->first < first + bytes; ++found) {
    Range& range = found->second;
    range.loads = may_load ? range.loads | only(card) : range.loads & ~only(card);
    range.stores = may_store ? range.stores | only(card) : range.stores & ~only(card);
    protect(range);
  }
  ++version_;
  return true;
}

const Range* Memory::at(Address address) const {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  const Range& range = std::prev(next)->second;
  return range.has(address) ? &range : nullptr;
}

std::optional<Range> Memory::find(Address address) const {
  const std::lock_guard lock(mutex_);
  const Range* const range = at(address);
  return range ? std::optional<Range>(*range) : std::nullopt;
}

bool Memory::is_of_cards(Address address) const {
  const std::lock_guard lock(mutex_);
  for (const Arena& arena : arenas_)
    if (address - arena.first < 2 * capacity_bytes_) return true;
  const auto next = reserved_.upper_bound(address);
  return next != reserved_.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes;
}

std::vector<Stretch> Memory::stretches(Address first, std::size_t bytes, bool for_writing) const {
  const bool may_be_pageable = !is_of_cards(first);
  const std::lock_guard lock(mutex_);
  std::vector<Stretch> all;
  if (const Range* const known = at(first); !known) {
    if (first != 0 && may_be_pageable) all.push_back({static_cast<unsigned char*>(pointer(first)), bytes, nullptr});
    return all;
  }
  for (Address here = first; here < first + bytes;) {
    const Range* const range = at(here);
    if (!range || (for_writing ? range->stores : range->loads) == 0) return {};
    const std::size_t part = std::min(range->end() - here, first + bytes - here);
    all.push_back({range->window + (here - range->first), part, range->physical});
    here += part;
  }
  return all;
}

void Memory::open() {
  const std::lock_guard lock(mutex_);
  if (++open_ > 1) return;
  for (const Arena& arena : arenas_) mprotect(pointer(arena.first), 2 * capacity_bytes_, PROT_READ | PROT_WRITE);
  for (const auto& [first, range] : ranges_)
    if (range.place == Place::mapped) protect(range);
}

void Memory::close() {
  const std::lock_guard lock(mutex_);
  if (--open_ > 0) return;
  for (const Arena& arena : arenas_) mprotect(pointer(arena.first), 2 * capacity_bytes_, PROT_NONE);
  for (const auto& [first, range] : ranges_)
    if (range.place == Place::mapped) protect(range);
}

}  // namespace tranship::cuda::software
