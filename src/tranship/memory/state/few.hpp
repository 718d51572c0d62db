// Private: Few, a list that nearly always has one element, for which it allocates nothing.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace tranship::detail {

template <class T>
class Few {
 public:
  Few() noexcept {}  // NOLINT(modernize-use-equals-default): leaves the room as it is
  ~Few() {
    if (has_one_) std::destroy_at(&one_);
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  /// Appends an element and returns it. The reference is valid until the next call.
  T& add() {
    if (has_one_) {
      many_.push_back(std::move(one_));
      std::destroy_at(&one_);
      has_one_ = false;
    } else if (many_.empty()) {
      ::new (static_cast<void*>(&one_)) T;  // not T(), which would clear it first
      has_one_ = true;
      return one_;
    }
    return many_.emplace_back();
  }
  bool empty() const noexcept { return all().empty(); }
  std::span<T> all() noexcept { return has_one_ ? std::span<T>(&one_, 1) : std::span<T>(many_); }
  std::span<const T> all() const noexcept {
    return has_one_ ? std::span<const T>(&one_, 1) : std::span<const T>(many_);
  }

 private:
  union {
    T one_;
  };
  bool has_one_ = false;
  std::vector<T> many_;  ///< used for two or more elements
};

}  // namespace tranship::detail
