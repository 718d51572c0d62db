// Private: SharedFlags: 64-bit flags that all ranks of a world can read and raise, `count` per rank, each on its own
// cache line. World::shared_flags makes them; their users decide what they count (epochs, claims, credits). Flags of
// messaged peers are carried by transfers: a load takes a round trip, and a store arrives later. In a simulated world,
// flags of reachable peers change at once; the simulator's checks know the ordering by load, store, compare_exchange
// and fetch_add, but not accesses to the word itself (`at`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tranship/base/error.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/forked.hpp>
#include <tranship/fabric/seam/heap_place.hpp>
#include <tranship/fabric/seam/members.hpp>

namespace tranship {

/// Observes a rank's accesses to words.
class FlagWatch {
 public:
  virtual ~FlagWatch() = default;
  virtual void loaded(const void* word) = 0;
  virtual void stored(const void* word) = 0;
  virtual void updated(const void* word) = 0;
};

/// Performs the operations of SharedFlags on flags of messaged peers.
class FlagCarrier {
 public:
  virtual ~FlagCarrier() = default;
  /// `own` is this rank's flag of the same index. Each call orders as the operation of SharedFlags of that name.
  virtual std::uint64_t load(Rank rank, const void* own) = 0;
  virtual void store(Rank rank, const void* own, std::uint64_t value) = 0;
  virtual bool compare_exchange(Rank rank, const void* own, std::uint64_t expected, std::uint64_t desired) = 0;
  virtual std::uint64_t fetch_add(Rank rank, const void* own, std::uint64_t by) = 0;
};

/// One rank's handle. Copies share the words, which are freed when the last handle of the last rank is gone, in any
/// order and without a meeting. Any thread may use any word, but only the rank's thread may use those of messaged
/// peers, and only while its world lives. In a forked child, all operations throw `invalid_use`.
class SharedFlags {
 public:
  SharedFlags() = default;
  /// The flags of a rank begin `offset_bytes` after its address in `heaps`; `memory` owns this rank's.
  SharedFlags(std::shared_ptr<void> memory, HeapAddresses heaps, std::size_t offset_bytes, int count, std::string label,
              std::shared_ptr<FlagWatch> watch = nullptr)
      : memory_(std::move(memory)),
        heaps_(std::move(heaps)),
        offset_bytes_(offset_bytes),
        count_(count),
        label_(std::move(label)),
        watch_(std::move(watch)),
        reachable_{.count = heaps_.count()} {}

  /// Restricts loads and stores to the flags of the `reachable` ranks, `rank` among them; `carrier` serves the others.
  void carry_others(Rank rank, const Members& reachable, std::shared_ptr<FlagCarrier> carrier) {
    rank_ = rank;
    reachable_ = reachable;
    carrier_ = std::move(carrier);
  }

  /// Flags per rank.
  int count() const noexcept { return count_; }
  int ranks() const noexcept { return heaps_.count(); }
  const char* label() const noexcept { return label_.c_str(); }

  /// Acquire.
  std::uint64_t load(Rank rank, int index) const {
    process_.check();
    if (is_carried(rank)) [[unlikely]]
      return carrier_->load(rank, &at(rank_, index));
    RealSync::Word& word = at(rank, index);
    if (watch_) [[unlikely]]
      watch_->loaded(&word);
    return word.load_acquire();
  }
  /// Release.
  void store(Rank rank, int index, std::uint64_t value) const {
    process_.check();
    if (is_carried(rank)) [[unlikely]]
      return carrier_->store(rank, &at(rank_, index), value);
    RealSync::Word& word = at(rank, index);
    if (watch_) [[unlikely]]
      watch_->stored(&word);
    word.store_release(value);
  }
  /// Acquire and release. Returns true on success.
  bool compare_exchange(Rank rank, int index, std::uint64_t expected, std::uint64_t desired) const {
    process_.check();
    if (is_carried(rank)) [[unlikely]]
      return carrier_->compare_exchange(rank, &at(rank_, index), expected, desired);
    RealSync::Word& word = at(rank, index);
    const bool is_exchanged = word.compare_exchange(expected, desired);
    if (watch_) [[unlikely]] {
      watch_->loaded(&word);
      if (is_exchanged) watch_->updated(&word);
    }
    return is_exchanged;
  }
  /// Acquire and release. Returns the previous value.
  std::uint64_t fetch_add(Rank rank, int index, std::uint64_t by) const {
    process_.check();
    if (is_carried(rank)) [[unlikely]]
      return carrier_->fetch_add(rank, &at(rank_, index), by);
    RealSync::Word& word = at(rank, index);
    if (watch_) [[unlikely]] {
      watch_->loaded(&word);
      watch_->updated(&word);
    }
    return word.fetch_add(by);
  }

  /// Returns the word itself, for protocols (claim.hpp); the rank must be reachable. Valid while a handle lives.
  RealSync::Word& at(Rank rank, int index) const {
    TRANSHIP_ASSERT_COSTLY(rank >= 0 && rank < ranks() && index >= 0 && index < count());
    TRANSHIP_ASSERT_COSTLY(!is_carried(rank));
    return reinterpret_cast<RealSync::Word*>(heaps_.data()[rank] + offset_bytes_)[index];
  }

 private:
  bool is_carried(Rank rank) const noexcept { return carrier_ && reachable_.member_of(rank) < 0; }

  std::shared_ptr<void> memory_;
  detail::ProcessOfRank process_;
  HeapAddresses heaps_;
  std::size_t offset_bytes_ = 0;
  int count_ = 0;
  std::string label_;
  std::shared_ptr<FlagWatch> watch_;
  Rank rank_ = 0;
  Members reachable_;
  std::shared_ptr<FlagCarrier> carrier_;
};

}  // namespace tranship
