// Private: SharedFlags, 64-bit flags that all ranks of a world can read and raise, `count` per rank, each on its own
// cache line. What they count (epochs, claims, credits) is their user's business. World::shared_flags makes them. Those
// of peers that are only messaged are carried by transfers: loads of them take a round trip, stores come late. In a
// simulated world those of reachable peers are raised at once; what load, store, compare_exchange and fetch_add order
// is known to its checks, what is done to the word itself (`at`) is not.
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

/// Sees what a rank loads of words and stores to them.
class FlagWatch {
 public:
  virtual ~FlagWatch() = default;
  virtual void loaded(const void* word) = 0;
  virtual void stored(const void* word) = 0;
  virtual void updated(const void* word) = 0;
};

/// Does to flags of peers that are only messaged what is done to others by loads and stores.
class FlagCarrier {
 public:
  virtual ~FlagCarrier() = default;
  /// `own` is this rank's flag of the same index. Each orders as the operation of SharedFlags of that name.
  virtual std::uint64_t load(Rank rank, const void* own) = 0;
  virtual void store(Rank rank, const void* own, std::uint64_t value) = 0;
  virtual bool compare_exchange(Rank rank, const void* own, std::uint64_t expected, std::uint64_t desired) = 0;
  virtual std::uint64_t fetch_add(Rank rank, const void* own, std::uint64_t by) = 0;
};

/// In a child that a rank forks, all operations throw `invalid_use`.
/// One rank's handle. Copies share the words; they are freed when the last handle of the last rank is gone, in any
/// order and without a meeting. Any thread may use any word; those of messaged peers only the thread of its rank, while
/// its world lives.
class SharedFlags {
 public:
  SharedFlags() = default;
  /// Those of a rank begin `offset_bytes` behind its address in `heaps`; `memory` keeps them.
  SharedFlags(std::shared_ptr<void> memory, HeapAddresses heaps, std::size_t offset_bytes, int count, std::string label,
              std::shared_ptr<FlagWatch> watch = nullptr)
      : memory_(std::move(memory)),
        heaps_(std::move(heaps)),
        offset_bytes_(offset_bytes),
        count_(count),
        label_(std::move(label)),
        watch_(std::move(watch)),
        reachable_{.count = heaps_.count()} {}

  /// The same where only the flags of some ranks, `rank` among them, are reached by loads and stores.
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
  /// Acquire and release; true on success.
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
  /// Acquire and release; the value before.
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

  /// The word itself, of a rank that is reached, for protocols (claim.hpp). Valid while a handle lives.
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
