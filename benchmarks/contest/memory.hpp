// Memory of arrays, alike for all contestants: aligned to a cache line or more, in huge pages where arrays of tranship
// would lie in them, and touched by the thread that asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace contest {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
/// Arrays of so many bytes and more are asked to lie in huge pages; those of tranship are from this size on.
constexpr std::size_t huge_bytes_min = 2 * huge_page_bytes;

/// Asks for huge pages for what libraries have allocated, before it is touched. Does nothing for less than
/// huge_bytes_min, and is a hint only: a system without huge pages, or without them for shared memory, gives others.
void ask_for_huge_pages(void* start, std::size_t bytes) noexcept;

/// Aligned to a huge page where huge pages are asked for. Not touched. Freed by std::free. Throws std::bad_alloc.
void* allocate(std::size_t bytes, std::size_t alignment = line_bytes);

struct Freed {
  void operator()(double* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<double[], Freed>;
/// Zeros.
Memory memory(std::int64_t elements, std::size_t alignment = line_bytes);

}  // namespace contest
