// Private: Pseudorandom numbers that depend only on a seed, on every machine: SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>

namespace tranship {

/// Returns a hash in which each bit depends on all bits of `x`.
constexpr std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() noexcept { return splitmix64(state_ += 0x9e3779b97f4a7c15u); }
  /// Returns a number from 0 to `count` - 1.
  std::uint64_t below(std::uint64_t count) noexcept { return next() % count; }

 private:
  std::uint64_t state_;
};

}  // namespace tranship
