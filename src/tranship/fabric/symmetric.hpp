// Detail: Symmetric<T>, memory that every rank has at the same place of its symmetric heap. It names what lies at the
// caller and at all its peers alike; no address of a peer can be mistaken for it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <tranship/base/index.hpp>

namespace tranship {

namespace detail {
[[noreturn]] void refuse_slice(Index first, Index count, Index size);
}

/// What can be moved between ranks: the bytes are the value.
template <class T>
concept Transferable = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

/// A value: copies name the same elements. It does not keep the memory. All calls are local and cost nothing.
template <class T>
class Symmetric {
 public:
  using Element = T;

  Symmetric() = default;
  /// `count` elements of this rank's symmetric heap. Whether they lie there is checked when they are used.
  static Symmetric at(T* local, Index count) noexcept { return Symmetric(local, count); }
  /// To what may only be read.
  operator Symmetric<const T>() const noexcept requires(!std::is_const_v<T>) {
    return Symmetric<const T>::at(local_, count_);
  }

  /// This rank's elements, to load and store. What peers put there is there once a wait, a signal or a barrier says so.
  T* local() const noexcept { return local_; }
  std::span<T> span() const noexcept { return {local_, static_cast<std::size_t>(count_)}; }
  operator std::span<T>() const noexcept { return span(); }
  operator std::span<const T>() const noexcept requires(!std::is_const_v<T>) { return span(); }
  T& operator[](Index i) const { return local_[i]; }

  Index size() const noexcept { return count_; }
  Index size_bytes() const noexcept { return count_ * Index(sizeof(T)); }
  explicit operator bool() const noexcept { return count_ > 0; }

  /// Elements [first, first + count), of every rank. Throws `invalid_use` where they do not lie in this.
  Symmetric slice(Index first, Index count) const {
    if (first < 0 || count < 0 || first > count_ || count > count_ - first) detail::refuse_slice(first, count, count_);
    return Symmetric(local_ + first, count);
  }
  Symmetric from(Index first) const { return slice(first, first > count_ ? 0 : count_ - first); }

 private:
  Symmetric(T* local, Index count) noexcept : local_(local), count_(count) {}

  T* local_ = nullptr;
  Index count_ = 0;
};

/// Owns an allocation of World::allocate. Moves, does not copy. Letting go of it is not collective and never waits: the
/// memory is free again at the first allocation after the last rank has released it. It may be released after the world
/// has ended.
template <class T>
class SymmetricArray : public Symmetric<T> {
 public:
  SymmetricArray() = default;
  SymmetricArray(Symmetric<T> view, std::shared_ptr<void> memory) noexcept
      : Symmetric<T>(view), memory_(std::move(memory)) {}
  SymmetricArray(SymmetricArray&&) noexcept = default;
  SymmetricArray& operator=(SymmetricArray&&) noexcept = default;

  /// For World::free.
  std::shared_ptr<void> take_memory() && noexcept {
    static_cast<Symmetric<T>&>(*this) = {};
    return std::move(memory_);
  }

 private:
  std::shared_ptr<void> memory_;
};

/// Owns a registration of World::register_memory. Letting go of it is not collective, and must come before the memory
/// itself is freed: the program then keeps its values, in pages of its own. From then on no peer may touch this rank's
/// part. The place in the heap is free again after the last rank has released it.
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

/// How much of the symmetric heap of one rank is in use.
struct HeapUsage {
  std::size_t blocks = 0;
  std::size_t used_bytes = 0;
  std::size_t used_bytes_max = 0;
  std::size_t reserved_bytes = 0;
};

}  // namespace tranship
