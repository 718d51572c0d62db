// Detail: RegisteredMemory, memory that a program has of its own (a mapping, aligned allocations, its static variables)
// as part of the symmetric heap. Nothing is copied between the two: they are the same pages, at two addresses.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <tranship/fabric/symmetric.hpp>

namespace tranship {

/// Owns a registration of World::register_memory. Letting go of it is not collective, and must come before the memory
/// itself is freed: the program then keeps its values, in pages of its own. From then on no peer may touch this rank's
/// part. The place in the heap is free again after the last rank has let go.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  /// `in_heap` is where `size_bytes` bytes at `memory` lie in this rank's heap.
  RegisteredMemory(const void* memory, std::size_t size_bytes, std::byte* in_heap, std::shared_ptr<void> joined)
      : memory_(static_cast<const std::byte*>(memory)),
        in_heap_(in_heap),
        size_bytes_(size_bytes),
        joined_(std::move(joined)) {}
  RegisteredMemory(RegisteredMemory&&) noexcept = default;
  RegisteredMemory& operator=(RegisteredMemory&&) noexcept = default;

  std::size_t size_bytes() const noexcept { return size_bytes_; }

  /// The symmetric name of `count` elements that this rank has at `first`; peers have theirs as far from the start of
  /// what they have registered. Throws `invalid_use` where they do not lie in it.
  template <Transferable T>
  Symmetric<T> symmetric(T* first, Index count = 1) const {
    return Symmetric<T>::at(reinterpret_cast<T*>(in_heap_ + offset_of(first, count, sizeof(T))), count);
  }

 private:
  std::size_t offset_of(const void* first, Index count, std::size_t element_bytes) const;

  const std::byte* memory_ = nullptr;
  std::byte* in_heap_ = nullptr;
  std::size_t size_bytes_ = 0;
  std::shared_ptr<void> joined_;
};

}  // namespace tranship
