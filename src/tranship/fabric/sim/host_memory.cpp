#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <sys/mman.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/sim/host_memory.hpp>

namespace tranship {
namespace {

void set_protection(const void* memory, std::size_t size_bytes, int protection) noexcept {
  // A simulation that cannot close memory would prove nothing, one that cannot open it could not go on.
  if (mprotect(const_cast<void*>(memory), size_bytes, protection) != 0) std::abort();
}

}  // namespace

HostMemory::HostMemory(const SharedWorld& shared, int ranks_per_host)
    : heap_(shared.heap()),
      ranks_(shared.shape().ranks),
      ranks_per_host_(ranks_per_host),
      mapped_bytes_(shared.size_bytes()) {
  void* mapped =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shared.descriptor(), 0);
  if (mapped == MAP_FAILED)
    throw_error(ErrorCode::no_memory, "cannot map the {} bytes of {} simulated heaps twice: {}", mapped_bytes_, ranks_,
                std::strerror(errno));
  mapped_ = static_cast<std::byte*>(mapped);
  heaps_ = mapped_ + shared.heap_offset_bytes();
}

HostMemory::~HostMemory() {
  munmap(mapped_, mapped_bytes_);
}

void HostMemory::enter(int host) noexcept {
  constexpr std::uint64_t closed_turns = 4096, spell = 64, spells = 16;
  const std::uint64_t turn = turns_++;
  close_others(turn < closed_turns || turn / spell % spells == 0 ? host : everywhere);
}

void HostMemory::close_others(int host) noexcept {
  if (host == host_) return;
  const int hosts = (ranks_ + ranks_per_host_ - 1) / ranks_per_host_;
  // From everywhere all others are closed, to everywhere all others are opened; from one host to another, only these.
  for (int other = 0; other < hosts; ++other) {
    const bool was_open = host_ == everywhere || host_ == other, is_open = host == everywhere || host == other;
    if (was_open != is_open) protect(other, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  host_ = host;
}

void HostMemory::protect(int host, int protection) noexcept {
  const int first = host * ranks_per_host_, end = std::min(ranks_, first + ranks_per_host_);
  set_protection(heap_.first + std::size_t(first) * heap_.stride_bytes, std::size_t(end - first) * heap_.stride_bytes,
                 protection);
  for (const auto& [memory, range] : allocated_)
    if (range.host == host) set_protection(memory, range.size_bytes, protection);
}

void HostMemory::open_allocated(const void* own) noexcept {
  const auto after = allocated_.upper_bound(own);
  if (after == allocated_.begin()) return;
  const auto& [memory, range] = *std::prev(after);
  if (static_cast<const std::byte*>(own) < static_cast<const std::byte*>(memory) + range.size_bytes)
    set_protection(memory, range.size_bytes, PROT_READ | PROT_WRITE);
}

std::shared_ptr<void> HostMemory::allocate(int host, std::size_t size_bytes) {
  const std::size_t bytes = std::max<std::size_t>(page_bytes(), round_up(size_bytes, page_bytes()));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  allocated_.emplace(memory, Range{host, bytes});
  return {memory, [self = shared_from_this(), bytes](void* freed) {
            self->allocated_.erase(freed);
            munmap(freed, bytes);
          }};
}

}  // namespace tranship
