// Private: TeamSlots: which places for meetings of teams are taken: those of a rank's teams in all worlds that it is
// in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tranship {

class TeamSlots {
 public:
  /// The slots of three teams are always taken: of the whole world, of the ranks that share memory, and of those of the
  /// machine.
  static constexpr int predefined = 3;
  static constexpr int count_default = 64;
  static constexpr int count_min = predefined + 1, count_max = 1 << 15;

  explicit TeamSlots(int count) : count_(count), words_((std::size_t(count) + 63) / 64) {}

  int count() const noexcept { return count_; }
  void take(int slot) noexcept { word(slot) |= bit(slot); }
  void release(int slot) noexcept { word(slot) &= ~bit(slot); }
  /// Returns one bit per slot, including the predefined ones, to be sent to other ranks.
  std::vector<std::uint64_t> taken() const {
    std::vector<std::uint64_t> out = words_;
    out.front() |= (std::uint64_t(1) << predefined) - 1;
    return out;
  }
  /// Marks the slots that other ranks have taken.
  static void add(std::vector<std::uint64_t>& taken, std::span<const std::uint64_t> others) noexcept {
    for (std::size_t i = 0; i < others.size(); ++i) taken[i % taken.size()] |= others[i];
  }
  /// Returns the lowest slot that is free in `taken`; count() if there is none.
  int first_free(std::span<const std::uint64_t> taken) const noexcept {
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (const int slot = int(64 * i) + std::countr_one(taken[i]); taken[i] != UINT64_MAX)
        return slot < count_ ? slot : count_;
    return count_;
  }

 private:
  std::uint64_t& word(int slot) noexcept { return words_[std::size_t(slot) / 64]; }
  static std::uint64_t bit(int slot) noexcept { return std::uint64_t(1) << (slot % 64); }

  int count_;
  std::vector<std::uint64_t> words_;
};

}  // namespace tranship
