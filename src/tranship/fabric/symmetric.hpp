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
/// memory is free again at the first allocation after the last rank has let go. It may be let go of after the world has
/// ended.
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

}  // namespace tranship
