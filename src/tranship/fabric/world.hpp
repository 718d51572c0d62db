// World: one rank's view of all ranks that run together: who am I, how many are we, whom can I reach, wait for me.
//
// Every wait has a deadline; none hangs silently. A wait fails with `timeout` (the message says who waits on what,
// since when, and what all others are doing), or with `peer_lost` as soon as a rank has failed, or has returned without
// doing what is awaited of it. A failed world can only be left: after such an error no further collective call is
// possible.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/fabric.hpp>
#include <tranship/fabric/wait_note.hpp>
#include <tranship/fabric/words.hpp>

namespace tranship {

/// The timeout of waits where nothing else is said: 60 s, or what the environment variable TRANSHIP_TIMEOUT gives:
/// seconds, or "off" for never (INT64_MAX). Throws `bad_text` for anything else.
std::int64_t default_timeout_ns();

/// One value per rank, as bytes. Not bool, of which std::vector makes bits.
template <class T>
concept Gatherable = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_same_v<T, bool>;

/// Used by the thread of its rank only. Calls marked collective must be made by all ranks, in the same order.
class World {
 public:
  World(Fabric& fabric, std::int64_t timeout_ns) : fabric_(&fabric), timeout_ns_(timeout_ns) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Rank rank() const noexcept { return fabric_->rank(); }
  int size() const noexcept { return fabric_->size(); }

  /// Throws `invalid_use` for a rank that is not in this world.
  PeerKind peer_kind(Rank peer) const;
  /// The address under which this rank can load and store what lies at `address` in the memory of `peer`, or nullptr
  /// when that peer is only messaged. Throws `invalid_use` for a rank that is not in this world.
  void* reach(Rank peer, const void* address) const;

  /// What a rank does now, as failures report it: "running", "finished", "failed: ...", "waiting for ... for 0.2 s". A
  /// wait shows once it has lasted longer than a short spin. Throws `invalid_use` for a rank that is not in this world.
  std::string activity_of(Rank peer) const;

  /// Collective. What any rank wrote before it is seen by every rank after it.
  void barrier(CallSite where = CallSite::here()) { fabric_->barrier(*this, where); }

  /// Collective: `size_bytes` from every rank, in rank order, to `all` of every rank, which has room for all of them.
  /// For small data of set-ups. Throws `mismatch` on every rank when sizes differ.
  void all_gather(const void* mine, std::size_t size_bytes, void* all, CallSite where = CallSite::here()) {
    fabric_->all_gather(*this, mine, size_bytes, all, where);
  }
  template <Gatherable T>
  std::vector<T> all_gather(const T& mine, CallSite where = CallSite::here()) {
    std::vector<T> all(static_cast<std::size_t>(size()));
    all_gather(&mine, sizeof(T), all.data(), where);
    return all;
  }

  /// Collective: `count` words for every rank, all 0. Throws `mismatch` on every rank when counts differ, `invalid_use`
  /// when `count` is less than 1. Letting go of them is not collective.
  Words words(int count, const char* label, CallSite where = CallSite::here());

  /// Throws `peer_lost` with its reason when a rank has failed. For those who wait by other means than these.
  void check_failed() const;

  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }
  /// For later waits of this rank; INT64_MAX is never.
  void set_timeout_ns(std::int64_t timeout_ns) noexcept { timeout_ns_ = timeout_ns; }
  /// Now plus the timeout.
  Deadline deadline() const noexcept { return Deadline::after_ns(timeout_ns_); }

  /// Waits until `ready()` is true, calling it from this thread: spinning, then yielding, then sleeping for up to 1 ms.
  /// When `ready()` is true before the call, this costs the one call. `ready` may itself make progress; what it throws
  /// passes through. It is called once more after a failure has been seen: what is true is never reported as failed.
  template <class Ready>
  void wait_until(Ready&& ready, const WaitNote& note) {
    if (!ready()) wait_longer(ready, note, deadline());
  }
  template <class Ready>
  void wait_until(Ready&& ready, const WaitNote& note, Deadline deadline) {
    if (!ready()) wait_longer(ready, note, deadline);
  }

  /// Waits until a word is `at_least` that value (acquire). Where the note names no rank, the owner of the word is
  /// meant to raise it.
  void wait(const Words& words, Rank rank, int index, std::uint64_t at_least, WaitNote note) {
    if (words.load(rank, index) < at_least) wait_for_word(words, rank, index, at_least, note, deadline());
  }
  void wait(const Words& words, Rank rank, int index, std::uint64_t at_least, WaitNote note, Deadline deadline) {
    if (words.load(rank, index) < at_least) wait_for_word(words, rank, index, at_least, note, deadline);
  }

 private:
  void wait_longer(FunctionRef<bool()> ready, const WaitNote& note, Deadline deadline);
  void wait_for_word(const Words& words, Rank rank, int index, std::uint64_t at_least, WaitNote& note,
                     Deadline deadline);
  void check_peer(Rank peer) const;

  Fabric* fabric_;
  std::int64_t timeout_ns_;
};

}  // namespace tranship
