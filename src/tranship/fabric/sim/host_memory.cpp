#include "tranship/fabric/sim/host_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

#include <sys/mman.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>

namespace tranship {
namespace {

void set_protection(const void* memory, std::size_t size_bytes, int protection) noexcept {
  // A simulation that cannot close memory proves nothing, and one that cannot open it cannot continue.
  if (mprotect(const_cast<void*>(memory), size_bytes, protection) != 0) std::abort();
}

constexpr std::size_t arena_bytes = std::size_t(64) << 20;

}  // namespace

HostMemory::SecondMapping::SecondMapping(int descriptor, std::size_t size_bytes) noexcept : size_bytes_(size_bytes) {
  void* mapped = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  data_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}
HostMemory::SecondMapping::~SecondMapping() {
  if (data_) munmap(data_, size_bytes_);
}

HostMemory::HostMemory(const SharedWorld& shared, int ranks_per_host)
    : first_(shared.heap_of(0)),
      stride_bytes_(shared.stride_bytes()),
      ranks_(shared.shape().ranks),
      ranks_per_host_(ranks_per_host),
      mapped_(shared.descriptor(), shared.size_bytes()) {
  if (!mapped_.data())
    throw_error(ErrorCode::no_memory, "cannot map the {} of {} twice: {}", amount(shared.size_bytes(), "byte"),
                amount(ranks_, "simulated heap"), std::strerror(errno));
  heaps_ = mapped_.data() + shared.heap_offset_bytes();
}

void HostMemory::enter(int host) noexcept {
  constexpr std::uint64_t closed_turns = 1024, spell = 64, spells = 16;
  const std::uint64_t turn = turns_++;
  close_others(turn < closed_turns || turn / spell % spells == 0 ? host : everywhere);
}

void HostMemory::close_others(int host) noexcept {
  if (host == host_) return;
  const int hosts = (ranks_ + ranks_per_host_ - 1) / ranks_per_host_;
  // Coming from everywhere closes all other hosts, going to everywhere opens them; between two hosts, only these
  // change.
  for (int other = 0; other < hosts; ++other) {
    const bool was_open = host_ == everywhere || host_ == other, is_open = host == everywhere || host == other;
    if (was_open != is_open) protect(other, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  host_ = host;
}

void HostMemory::protect(int host, int protection) noexcept {
  const int first = host * ranks_per_host_, end = std::min(ranks_, first + ranks_per_host_);
  set_protection(first_ + std::size_t(first) * stride_bytes_, std::size_t(end - first) * stride_bytes_, protection);
  for (const auto& [memory, arena] : arenas_)
    if (arena.host == host) set_protection(memory, arena.blocks.size_bytes(), protection);
}

std::shared_ptr<void> HostMemory::allocate(int host, std::size_t size_bytes) {
  const std::size_t bytes = std::max<std::size_t>(page_bytes(), round_up(size_bytes, page_bytes()));
  std::optional<std::size_t> offset;
  Arena* arena = nullptr;
  for (auto& [memory, made] : arenas_) {
    if (made.host != host) continue;
    arena = &made;
    if ((offset = arena->blocks.allocate(bytes, page_bytes()))) break;
  }
  if (!offset) {
    arena = new_arena(host, std::max(bytes, arena_bytes));
    if (!arena) return nullptr;
    offset = arena->blocks.allocate(bytes, page_bytes());
  }
  return {arena->memory.data() + *offset,
          [self = shared_from_this()](void* block) { self->release(static_cast<std::byte*>(block)); }};
}

HostMemory::Arena* HostMemory::new_arena(int host, std::size_t size_bytes) try {
  SharedMemory memory = SharedMemory::for_processes(size_bytes);
  const void* const first = memory.data();
  SecondMapping open(memory.descriptor(), size_bytes);
  if (!open.data()) return nullptr;
  return &arenas_.emplace(first, Arena{host, std::move(memory), std::move(open), RangeAllocator(size_bytes)})
              .first->second;
} catch (const Error&) {
  return nullptr;
}

void HostMemory::release(std::byte* block) noexcept {
  const auto found = std::prev(arenas_.upper_bound(block));
  Arena& arena = found->second;
  arena.blocks.release(std::size_t(block - arena.memory.data()));
  if (arena.blocks.used_bytes() == 0 && arena.blocks.size_bytes() > arena_bytes) arenas_.erase(found);
}

void* HostMemory::open_allocated(const void* own) const noexcept {
  if (const auto after = arenas_.upper_bound(own); after != arenas_.begin()) {
    const Arena& arena = std::prev(after)->second;
    const std::ptrdiff_t offset = static_cast<const std::byte*>(own) - arena.memory.data();
    if (offset < static_cast<std::ptrdiff_t>(arena.blocks.size_bytes())) return arena.open.data() + offset;
  }
  return const_cast<void*>(own);
}

}  // namespace tranship
