// Words: 64-bit flags that all ranks of a world can read and raise, `count` per rank, each on its own cache line.
// What they count (epochs, claims, credits) is their user's business. World::words makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tranship/base/error.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/sync.hpp>

namespace tranship {

/// The memory behind Words: count x ranks words, rank by rank, all 0.
class WordBlock {
 public:
  WordBlock(int ranks, int count, std::string label)
      : words_(new RealSync::Word[static_cast<std::size_t>(ranks) * static_cast<std::size_t>(count)]),
        ranks_(ranks),
        count_(count),
        label_(std::move(label)) {}

  RealSync::Word* words() noexcept { return words_.get(); }
  int ranks() const noexcept { return ranks_; }
  int count() const noexcept { return count_; }
  const std::string& label() const noexcept { return label_; }

 private:
  std::unique_ptr<RealSync::Word[]> words_;
  int ranks_;
  int count_;
  std::string label_;
};

/// One rank's handle. Copies share the words; they are freed when the last handle of the last rank is gone, in any
/// order and without a meeting. Any thread may use any word.
class Words {
 public:
  Words() = default;
  explicit Words(std::shared_ptr<WordBlock> block) : block_(std::move(block)), first_(block_->words()) {}

  /// Words per rank.
  int count() const noexcept { return block_ ? block_->count() : 0; }
  int ranks() const noexcept { return block_ ? block_->ranks() : 0; }
  const char* label() const noexcept { return block_ ? block_->label().c_str() : ""; }

  /// Acquire.
  std::uint64_t load(Rank rank, int index) const { return at(rank, index).load_acquire(); }
  /// Release.
  void store(Rank rank, int index, std::uint64_t value) const { at(rank, index).store_release(value); }
  /// Acquire and release; true on success.
  bool compare_exchange(Rank rank, int index, std::uint64_t expected, std::uint64_t desired) const {
    return at(rank, index).compare_exchange(expected, desired);
  }
  /// Acquire and release; the value before.
  std::uint64_t fetch_add(Rank rank, int index, std::uint64_t by) const { return at(rank, index).fetch_add(by); }

  /// The word itself, for protocols (claim.hpp). Valid while a handle lives.
  RealSync::Word& at(Rank rank, int index) const {
    TRANSHIP_ASSERT_COSTLY(rank >= 0 && rank < ranks() && index >= 0 && index < count());
    return first_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(block_->count()) +
                  static_cast<std::size_t>(index)];
  }

 private:
  std::shared_ptr<WordBlock> block_;
  RealSync::Word* first_ = nullptr;
};

}  // namespace tranship
