#include "tranship/memory/device/host_device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/strided_copy.hpp>
#include <tranship/memory/combination.hpp>

namespace tranship {
namespace {

constexpr std::size_t alignment_bytes = 256;
// Huge pages save TLB misses when rows are far apart. Rounding up adds at most a third.
constexpr std::size_t huge_page_bytes = std::size_t(2) << 20;
constexpr std::size_t huge_bytes_min = 2 * huge_page_bytes;

constinit std::atomic<std::size_t> fresh_bytes = 0;

/// Returns the value of all bytes of an element when they are equal, else -1.
int only_byte(const void* element, int width) {
  if (!element) return 0;
  const auto* bytes = static_cast<const unsigned char*>(element);
  return std::all_of(bytes, bytes + width, [&](unsigned char byte) { return byte == bytes[0]; }) ? bytes[0] : -1;
}

/// Calls f(canonical block). Most blocks have one dimension and are canonical already.
template <class F>
void with_canonical(const CopyBlock& block, int width, F f) {
  if (block.dims == 1) return f(block);
  CopyBlock fused = block;
  canonicalise(fused, width);
  f(fused);
}

void check_not_null(const CopyBlock& block, const char* role, const void* memory) {
  if (!memory && element_count(block) > 0)
    throw_error(ErrorCode::invalid_use, "the {} of a stream's work on {} is null", role,
                amount(element_count(block), "element"));
}

}  // namespace

void* allocate_on_host(std::size_t size_bytes) noexcept {
  const bool is_huge = size_bytes >= huge_bytes_min;
  const std::size_t alignment = is_huge ? huge_page_bytes : alignment_bytes;
  std::size_t room;
  if (__builtin_add_overflow(size_bytes, alignment - 1, &room)) return nullptr;
  room -= room % alignment;
  void* memory = std::aligned_alloc(alignment, room);
  // Only a hint: a system without huge pages ignores it.
  if (memory && is_huge) ::madvise(memory, room, MADV_HUGEPAGE);
  return memory;
}

void free_on_host(void* memory) noexcept {
  std::free(memory);
}

std::shared_ptr<void> fresh_pages_on_host(std::size_t size_bytes) {
  std::size_t room;
  if (__builtin_add_overflow(size_bytes, 2 * huge_page_bytes, &room)) return nullptr;
  room = round_down(room, page_bytes());
  void* const pages = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  const auto skipped =
      round_up(reinterpret_cast<std::uintptr_t>(pages), huge_page_bytes) - reinterpret_cast<std::uintptr_t>(pages);
  std::byte* const memory = static_cast<std::byte*>(pages) + skipped;
  // Only a hint: a system without huge pages ignores it.
  ::madvise(memory, size_bytes, MADV_HUGEPAGE);
  fresh_bytes.fetch_add(room, std::memory_order_relaxed);
  return {memory, [pages, room](void*) {
            ::munmap(pages, room);
            fresh_bytes.fetch_sub(room, std::memory_order_relaxed);
          }};
}

std::size_t fresh_bytes_on_host() noexcept {
  return fresh_bytes.load(std::memory_order_relaxed);
}

void check_width(int width) {
  if (!can_move(ElementMap::copy, Arithmetic::none, width))
    throw_error(ErrorCode::invalid_use, "a stream cannot move elements of {}: it moves elements of 1, 2, 4, 8 and 16",
                amount(width, "byte"));
}

void check_extents(const CopyBlock& block) {
  if (block.dims < 0 || block.dims > block_dims_max)
    throw_error(ErrorCode::invalid_use, "a block of a stream's work has {}; it has 0 to {}",
                amount(block.dims, "dimension"), block_dims_max);
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] < 0)
      throw_error(ErrorCode::invalid_use, "a block of a stream's work has extent {} in dimension {}", block.extents[d],
                  d);
}

void check_target(const CopyBlock& block, const void* target) {
  check_extents(block);
  check_not_null(block, "target", target);
}

void check_memory(const CopyBlock& block, const void* source, const void* target) {
  check_extents(block);
  check_not_null(block, "source", source);
  check_not_null(block, "target", target);
}

void copy_on_host(const CopyBlock& block, int width, const void* source, void* target) {
  with_canonical(block, width, [&](const CopyBlock& fused) {
    const long long bytes = element_count(fused) * width;
    const CopyMethod way = copy_method(bytes);
    if (fused.dims != 1 || !has_contiguous_rows(fused, width) || bytes == 0)
      return move_on_host(fused, ElementMap::copy, Arithmetic::none, width, way, source, target);
    copy_row(target, source, bytes, way);
  });
}

std::vector<std::byte> packed_on_host(const CopyBlock& block, int width, const void* source) {
  std::vector<std::byte> out(std::size_t(element_count(block)) * std::size_t(width));
  if (!out.empty()) copy_on_host(with_dense_target(block, width), width, source, out.data());
  return out;
}

void fill_on_host(const CopyBlock& block, int width, const void* element, void* target) {
  if (element_count(block) == 0) return;
  CopyBlock same = block;
  std::fill_n(same.source_strides, same.dims, 0);
  with_canonical(same, width, [&](const CopyBlock& fused) {
    const bool is_dense = fused.dims == 1 && fused.target_strides[0] == width;
    if (const int byte = only_byte(element, width); is_dense && byte >= 0)
      std::memset(target, byte, std::size_t(fused.extents[0]) * std::size_t(width));
    else
      fill(fused, width, element, target);
  });
}

void check_kernel(const std::unique_ptr<Kernel>& kernel) {
  if (!kernel) throw_error(ErrorCode::invalid_use, "a stream is given a kernel that is null");
}

void run_kernel(std::unique_ptr<Kernel> kernel) noexcept {
  const bool outer = std::exchange(is_in_kernel, true);
  kernel->run();
  kernel.reset();  // It may hold buffers.
  is_in_kernel = outer;
}

void EagerStream::wait(Event event) {
  if (!tranship::is_over(event)) tranship::finish(event, Deadline::after_ns(wait_timeout_ns_));
}

void EagerStream::copy(const CopyBlock& block, int width, const void* source, void* target) {
  check_width(width);
  check_memory(block, source, target);
  copy_on_host(block, width, source, target);
}

void EagerStream::fill(const CopyBlock& block, int width, const void* element, void* target) {
  check_width(width);
  check_target(block, target);
  fill_on_host(block, width, element, target);
}

void EagerStream::combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) {
  detail::check_combination(how, type);
  check_memory(block, source, target);
  detail::combine_block(how, type, block, source, target);
}

void EagerStream::run(std::unique_ptr<Kernel> kernel) {
  check_kernel(kernel);
  run_kernel(std::move(kernel));
}

std::unique_ptr<Stream> HostDriver::make_stream() {
  return std::make_unique<EagerStream>(Device::host(), wait_timeout_ns_);
}

}  // namespace tranship
