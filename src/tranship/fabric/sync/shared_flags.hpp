// SharedFlags: 64-bit flags that all ranks of a world can read and raise, `count` per rank, each on its own cache line.
// What they count (epochs, claims, credits) is their user's business. World::shared_flags makes them. In a simulated
// world they are raised at once; what load, store, compare_exchange and fetch_add order is known to its checks, what is
// done to the word itself (`at`) is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tranship/base/error.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/sync.hpp>

namespace tranship {

/// Sees what a rank loads of words and stores to them.
class FlagWatch {
 public:
  virtual ~FlagWatch() = default;
  virtual void loaded(const void* word) = 0;
  virtual void stored(const void* word) = 0;
  virtual void updated(const void* word) = 0;
};

/// One rank's handle. Copies share the words; they are freed when the last handle of the last rank is gone, in any
/// order and without a meeting. Any thread may use any word.
class SharedFlags {
 public:
  SharedFlags() = default;
  /// Those of rank r begin at first + r * stride; `memory` keeps them.
  SharedFlags(std::shared_ptr<void> memory, RealSync::Word* first, std::ptrdiff_t stride, int ranks, int count,
              std::string label, std::shared_ptr<FlagWatch> watch = nullptr)
      : memory_(std::move(memory)),
        first_(first),
        stride_(stride),
        ranks_(ranks),
        count_(count),
        label_(std::move(label)),
        watch_(std::move(watch)) {}

  /// Flags per rank.
  int count() const noexcept { return count_; }
  int ranks() const noexcept { return ranks_; }
  const char* label() const noexcept { return label_.c_str(); }

  /// Acquire.
  std::uint64_t load(Rank rank, int index) const {
    RealSync::Word& word = at(rank, index);
    if (watch_) [[unlikely]]
      watch_->loaded(&word);
    return word.load_acquire();
  }
  /// Release.
  void store(Rank rank, int index, std::uint64_t value) const {
    RealSync::Word& word = at(rank, index);
    if (watch_) [[unlikely]]
      watch_->stored(&word);
    word.store_release(value);
  }
  /// Acquire and release; true on success.
  bool compare_exchange(Rank rank, int index, std::uint64_t expected, std::uint64_t desired) const {
    RealSync::Word& word = at(rank, index);
    const bool is_exchanged = word.compare_exchange(expected, desired);
    if (watch_) [[unlikely]] {
      watch_->loaded(&word);
      if (is_exchanged) watch_->updated(&word);
    }
    return is_exchanged;
  }
  /// Acquire and release; the value before.
  std::uint64_t fetch_add(Rank rank, int index, std::uint64_t by) const {
    RealSync::Word& word = at(rank, index);
    if (watch_) [[unlikely]] {
      watch_->loaded(&word);
      watch_->updated(&word);
    }
    return word.fetch_add(by);
  }

  /// The word itself, for protocols (claim.hpp). Valid while a handle lives.
  RealSync::Word& at(Rank rank, int index) const {
    TRANSHIP_ASSERT_COSTLY(rank >= 0 && rank < ranks() && index >= 0 && index < count());
    return first_[rank * stride_ + index];
  }

 private:
  std::shared_ptr<void> memory_;
  RealSync::Word* first_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  int ranks_ = 0;
  int count_ = 0;
  std::string label_;
  std::shared_ptr<FlagWatch> watch_;
};

}  // namespace tranship
