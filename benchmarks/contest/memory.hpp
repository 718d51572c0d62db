// Memory of arrays, equal for all contestants: aligned to a cache line or more, in huge pages where arrays of tranship
// would lie in them, and touched first by the thread that asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace contest {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
/// Arrays of at least this size ask for huge pages, as arrays of tranship do.
constexpr std::size_t huge_bytes_min = 2 * huge_page_bytes;

/// Asks for huge pages for memory that a library has allocated and that is not touched yet. Does nothing for less than
/// huge_bytes_min. This is only a hint: a system without huge pages, or without them for shared memory, ignores it.
void ask_for_huge_pages(void* start, std::size_t bytes) noexcept;

/// Returns untouched memory, aligned to a huge page where huge pages are asked for; free it by std::free. Throws
/// std::bad_alloc.
void* allocate(std::size_t bytes, std::size_t alignment = line_bytes);

struct Freed {
  void operator()(double* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<double[], Freed>;
/// Returns memory filled with zeros. Throws std::bad_alloc.
Memory memory(std::int64_t elements, std::size_t alignment = line_bytes);

}  // namespace contest
