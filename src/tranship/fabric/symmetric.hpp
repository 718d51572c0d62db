// Detail: Symmetric<T>: memory that every rank has at the same offset of its symmetric heap. One value names the
// elements of this rank and of all its peers, so that an address of a peer cannot be passed by mistake.
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

/// A type whose bytes are its value, so that ranks can move it.
template <class T>
concept Transferable = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

/// A view: copies name the same elements and do not own the memory. All calls are local and cost nothing.
template <class T>
class Symmetric {
 public:
  using Element = T;

  Symmetric() = default;
  /// Names `count` elements of this rank's symmetric heap. Calls that use them check that they lie there.
  static Symmetric at(T* local, Index count) noexcept { return Symmetric(local, count); }
  /// Converts to a read-only view.
  operator Symmetric<const T>() const noexcept requires(!std::is_const_v<T>) {
    return Symmetric<const T>::at(local_, count_);
  }

  /// This rank's elements, to load and store. Data that a peer puts there is visible only after a wait, a signal or a
  /// barrier.
  T* local() const noexcept { return local_; }
  std::span<T> span() const noexcept { return {local_, static_cast<std::size_t>(count_)}; }
  operator std::span<T>() const noexcept { return span(); }
  operator std::span<const T>() const noexcept requires(!std::is_const_v<T>) { return span(); }
  T& operator[](Index i) const { return local_[i]; }

  Index size() const noexcept { return count_; }
  Index size_bytes() const noexcept { return count_ * Index(sizeof(T)); }
  explicit operator bool() const noexcept { return count_ > 0; }

  /// Returns elements [first, first + count) of every rank. Throws `invalid_use` when they do not lie within this view.
  Symmetric slice(Index first, Index count) const {
    if (first < 0 || count < 0 || first > count_ || count > count_ - first) detail::refuse_slice(first, count, count_);
    return Symmetric(local_ + first, count);
  }
  /// Returns the elements from `first` on. Throws `invalid_use` for a `first` outside [0, size()].
  Symmetric from(Index first) const { return slice(first, first > count_ ? 0 : count_ - first); }

 private:
  Symmetric(T* local, Index count) noexcept : local_(local), count_(count) {}

  T* local_ = nullptr;
  Index count_ = 0;
};

/// Owns an allocation of World::allocate; movable only. Releasing it is not collective and never waits: the memory
/// becomes free at the first allocation after the last rank has released it. It may be released after the world has
/// ended.
template <class T>
class SymmetricArray : public Symmetric<T> {
 public:
  SymmetricArray() = default;
  SymmetricArray(Symmetric<T> view, std::shared_ptr<void> memory) noexcept
      : Symmetric<T>(view), memory_(std::move(memory)) {}
  SymmetricArray(SymmetricArray&&) noexcept = default;
  SymmetricArray& operator=(SymmetricArray&&) noexcept = default;

  /// Takes the memory out, for World::free.
  std::shared_ptr<void> take_memory() && noexcept {
    static_cast<Symmetric<T>&>(*this) = {};
    return std::move(memory_);
  }

 private:
  std::shared_ptr<void> memory_;
};

/// Owns a registration of World::register_memory; movable only. Releasing it is not collective, and must happen before
/// the memory itself is freed. The program then keeps the values, in pages of its own, and peers must no longer touch
/// this rank's part. The addresses in the heap become free after the last rank has released its registration.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  /// `in_heap` is the place of these bytes in this rank's heap.
  RegisteredMemory(const void* memory, std::size_t size_bytes, std::byte* in_heap, std::shared_ptr<void> joined)
      : memory_(static_cast<const std::byte*>(memory)),
        in_heap_(in_heap),
        size_bytes_(size_bytes),
        joined_(std::move(joined)) {}
  RegisteredMemory(RegisteredMemory&&) noexcept = default;
  RegisteredMemory& operator=(RegisteredMemory&&) noexcept = default;

  std::size_t size_bytes() const noexcept { return size_bytes_; }

  /// Returns the symmetric name of the `count` elements that this rank has at `first`. On a peer it names the elements
  /// at the same distance from the start of the memory that the peer has registered. Throws `invalid_use` when they do
  /// not lie in the registered memory.
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

/// Use of the symmetric heap of one rank, in blocks and bytes.
struct HeapUsage {
  std::size_t blocks = 0;
  std::size_t used_bytes = 0;
  std::size_t used_bytes_max = 0;
  std::size_t reserved_bytes = 0;
};

}  // namespace tranship
