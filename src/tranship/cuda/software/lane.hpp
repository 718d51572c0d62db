// Private: SoftwareLane, a lane of a kernel on a software card, as lanes/lane.hpp says. A kernel is
//
//   template <class Lane>
//   TRANSHIP_SHARED void body(const Lane& lane, const Args& args);
//
// and reads and writes memory by its lane, which then checks that the address is aligned, lies in an allocation that
// the card reaches or in shared memory of the block, that shared memory was written, and that no other lane accesses
// the same bytes without a barrier between. What breaks a rule ends the kernel, as on a card: with an error that stays.
// Accesses by plain pointers work as well, and only lose the checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tranship/kernels/word.hpp>
#include <tranship/lanes/lane.hpp>

namespace tranship::cuda::software {

enum class Access : unsigned char { load, store, atomic };

/// The interface of a lane to the code that runs it.
class LaneRun {
 public:
  int index, lanes, block_index, blocks, warp_lanes;

  /// Before `bytes` at `address` are accessed. Does not return where they may not be.
  virtual void touch(const void* address, unsigned bytes, Access access, KernelSite where) = 0;
  /// Waits for the other lanes of the group; those that bring another name or place have diverged.
  virtual void meet(Scope scope, const char* name, KernelSite where) = 0;
  /// The words that lanes of a group bring to it, one for each.
  virtual unsigned long long* words(Scope scope) noexcept = 0;
  /// Lets others run.
  virtual void pause() = 0;
  virtual void* shared(const void* tag, std::size_t bytes, std::size_t alignment) = 0;
  virtual void* dynamic_shared() noexcept = 0;
  /// Ends the kernel as a trap does.
  [[noreturn]] virtual void refuse(const char* problem, KernelSite where) = 0;

 protected:
  ~LaneRun() = default;
};

template <Scope scope>
class SoftwareGroup {
 public:
  SoftwareGroup(LaneRun& run, int lane, int lanes) : run_(&run), lane_(lane), lanes_(lanes) {}

  // One after the other, but with the same operations: what has to hold on a card has to hold here.
  static constexpr bool runs_side_by_side = true;

  int lane() const noexcept { return lane_; }
  int lanes() const noexcept { return lanes_; }
  void sync(KernelSite where = KernelSite::here()) const { meet("sync", where); }

  template <class Call>
  void enter(const Call& call) const {
    const GroupCall made = call();
    meet(made.name, made.where);
  }
  template <class Call>
  void leave(const Call& call) const {
    enter(call);
  }
  template <class Call, class T>
  T share(const Call& call, T value) const {
    static_assert(sizeof(T) <= sizeof(unsigned long long));
    if constexpr (scope == Scope::thread) return value;
    if (lane_ == 0) std::memcpy(run_->words(scope), &value, sizeof value);
    enter(call);
    std::memcpy(&value, run_->words(scope), sizeof value);
    enter(call);
    return value;
  }
  template <class Call, class T, class Ready>
  void wait(const Call&, const T*, Comparison, T, int, const Ready& ready) const {
    while (!ready()) run_->pause();
  }
  template <class Call>
  [[noreturn]] void refuse(const Call& call, const char* problem) const {
    run_->refuse(problem, call().where);
  }

 private:
  void meet(const char* name, KernelSite where) const {
    if constexpr (scope != Scope::thread) run_->meet(scope, name, where);
  }

  LaneRun* run_;
  int lane_;
  int lanes_;
};

class SoftwareLane {
 public:
  explicit SoftwareLane(LaneRun& run) : run_(&run) {}

  int index() const noexcept { return run_->index; }
  int lanes() const noexcept { return run_->lanes; }
  int block_index() const noexcept { return run_->block_index; }
  int blocks() const noexcept { return run_->blocks; }

  SoftwareGroup<Scope::thread> thread() const { return {*run_, 0, 1}; }
  SoftwareGroup<Scope::warp> warp() const { return {*run_, run_->index % 32, run_->warp_lanes}; }
  SoftwareGroup<Scope::block> block() const { return {*run_, run_->index, run_->lanes}; }

  /// Shared memory of the block, one object for each T that the kernel asks for.
  template <class T>
  T& shared() const {
    static constexpr char tag = 0;
    return *static_cast<T*>(run_->shared(&tag, sizeof(T), alignof(T)));
  }
  void* dynamic_shared() const noexcept { return run_->dynamic_shared(); }

  template <class V>
  V load(const void* from, KernelSite where = KernelSite::here()) const {
    run_->touch(from, sizeof(V), Access::load, where);
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <class V>
  void store(void* to, const V& value, KernelSite where = KernelSite::here()) const {
    run_->touch(to, sizeof(V), Access::store, where);
    std::memcpy(to, &value, sizeof value);
  }
  /// Returns what was there before.
  template <class T>
  T atomic_add(T* to, T value, KernelSite where = KernelSite::here()) const {
    run_->touch(to, sizeof(T), Access::atomic, where);
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
  }
  /// A word that other lanes, cards or the host write meanwhile.
  template <class T>
  T load_word(const T* from, KernelSite where = KernelSite::here()) const {
    run_->touch(from, sizeof(T), Access::atomic, where);
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
  }
  template <class T>
  void store_word(T* to, T value, KernelSite where = KernelSite::here()) const {
    run_->touch(to, sizeof(T), Access::atomic, where);
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
  }

  /// The value of lane `source` of the warp.
  template <class T>
  T shuffle(T value, int source, KernelSite where = KernelSite::here()) const {
    static_assert(sizeof(T) <= sizeof(unsigned long long));
    unsigned long long* const words = run_->words(Scope::warp);
    std::memcpy(&words[run_->index % 32], &value, sizeof value);
    run_->meet(Scope::warp, "shuffle", where);
    std::memcpy(&value, &words[source % 32], sizeof value);
    run_->meet(Scope::warp, "shuffle", where);
    return value;
  }
  /// Bit i is that of lane i of the warp.
  unsigned ballot(bool mine, KernelSite where = KernelSite::here()) const {
    unsigned long long* const words = run_->words(Scope::warp);
    words[run_->index % 32] = mine;
    run_->meet(Scope::warp, "ballot", where);
    unsigned bits = 0;
    for (int i = 0; i < run_->warp_lanes; ++i) bits |= unsigned(words[i]) << i;
    run_->meet(Scope::warp, "ballot", where);
    return bits;
  }
  /// Between two looks for what others will write.
  void pause() const { run_->pause(); }

 private:
  LaneRun* run_;
};

/// How a software card runs a kernel that has a twin under the same name for nvcc.
struct KernelTwin {
  const char* name;
  std::size_t args_bytes;
  void (*run)(const SoftwareLane& lane, const void* args) = nullptr;
  int lanes_max = 1024;          ///< of a block
  std::size_t shared_bytes = 0;  ///< most that SoftwareLane::shared gives
  int registers = 32;            ///< of a lane
};

/// To be called before any other thread runs, as initialisers of static variables are. Returns true.
bool register_kernel(const KernelTwin& twin);

/// The twin of `body(lane, args)`, a function template of a lane by way of a function object that has no state.
template <class Args, class Body>
KernelTwin twin_of(const char* name, Body, int lanes_max = 1024, std::size_t shared_bytes = 0) {
  return {.name = name,
          .args_bytes = sizeof(Args),
          .run = [](const SoftwareLane& lane, const void* args) { Body()(lane, *static_cast<const Args*>(args)); },
          .lanes_max = lanes_max,
          .shared_bytes = shared_bytes};
}

}  // namespace tranship::cuda::software
