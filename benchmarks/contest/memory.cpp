#include <algorithm>
#include <new>

#include <contest/memory.hpp>
#include <sys/mman.h>

namespace contest {

void ask_for_huge_pages(void* start, std::size_t bytes) noexcept {
  if (bytes < huge_bytes_min) return;
  const auto first = (reinterpret_cast<std::uintptr_t>(start) + huge_page_bytes - 1) / huge_page_bytes;
  const auto end = (reinterpret_cast<std::uintptr_t>(start) + bytes) / huge_page_bytes;
  ::madvise(reinterpret_cast<void*>(first * huge_page_bytes), (end - first) * huge_page_bytes, MADV_HUGEPAGE);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes >= huge_bytes_min) alignment = std::max(alignment, huge_page_bytes);
  const std::size_t room = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* start = std::aligned_alloc(alignment, room);
  if (!start) throw std::bad_alloc();
  ask_for_huge_pages(start, room);
  return start;
}

Memory memory(std::int64_t elements, std::size_t alignment) {
  auto* start = static_cast<double*>(allocate(std::size_t(elements) * sizeof(double), alignment));
  std::fill_n(start, elements, 0.0);
  return Memory(start);
}

}  // namespace contest
