// Private: UnderWay: the operations that a rank has started and not finished (exchanges in flight). Every wait and
// every polling loop of the rank advances them, so that ranks may finish their operations in any order.
//
// There is one list per rank, for its world and all sub-worlds. Joining and leaving take a lock, which is free unless
// another thread destroys an item, as a garbage collector may.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <tranship/base/mutex.hpp>

namespace tranship {

/// The activity of the rank during which its operations advance.
enum class Meanwhile : std::uint8_t { waits, polls };

/// Used by the thread of its rank.
class UnderWay {
  struct Link {
    Link* next = this;
    Link* before = this;

    Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    ~Link() = default;

    void insert_before(Link& link) noexcept {
      next = &link;
      before = link.before;
      link.before = link.before->next = this;
    }
    void unlink() noexcept {
      before->next = next;
      next->before = before;
      next = before = this;
    }
  };

 public:
  class Item : private Link {
   public:
    /// Moves whatever can be moved now. Never waits; keeps an error for the call that waits for the item. May leave the
    /// list.
    virtual void move_on(Meanwhile meanwhile) = 0;
    /// Returns an owner that keeps the item alive during move_on(): where ranks are fibers, another rank may destroy
    /// the owner of the item meanwhile.
    virtual std::shared_ptr<void> kept() = 0;

   protected:
    Item() = default;
    ~Item() { leave(); }
    /// May be called by any thread. Afterwards the item no longer moves, except if it is in move_on() of a rank that is
    /// a fiber of the same thread. Must be called before anything that move_on() uses is destroyed.
    void leave() noexcept {
      if (UnderWay* const list = list_.load(std::memory_order_acquire)) list->remove(*this);
    }

   private:
    friend class UnderWay;
    std::atomic<UnderWay*> list_ = nullptr;
  };

  UnderWay() = default;
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    const Owning owning(*this);
    while (items_.next != &items_) unlink(static_cast<Item&>(*items_.next));
  }

  /// Records that the rank is about to leave as failed although no exception is visible here.
  void set_failing() noexcept { is_failing_ = true; }
  bool is_failing() const noexcept { return is_failing_; }

  /// Does nothing if the item is in a list already.
  void join(Item& item) {
    if (item.list_.load(std::memory_order_relaxed) != nullptr) return;
    const Owning owning(*this);
    item.insert_before(items_);
    item.list_.store(this, std::memory_order_release);
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void move_all(Meanwhile meanwhile) {
    if (const int count = count_.load(std::memory_order_relaxed); count > 0) [[unlikely]]
      move(count, meanwhile, nullptr);
  }
  /// Advances the item that has waited longest, other than `but`, which advances itself. The cost does not depend on
  /// the number of items.
  void move_one(Meanwhile meanwhile, const Item& but) {
    const int others = count_.load(std::memory_order_relaxed) - (but.list_.load(std::memory_order_relaxed) ? 1 : 0);
    if (others > 0) [[unlikely]]
      move(1, meanwhile, &but);
  }

 private:
  /// Returns an address that differs between threads.
  static const void* this_thread() noexcept {
    static thread_local const char mark = 0;
    return &mark;
  }
  /// Holds the lock of the list, unless a function or fiber of this thread holds it already.
  class Owning {
   public:
    explicit Owning(UnderWay& list)
        : list_(list), is_outer_(list.owner_.load(std::memory_order_relaxed) != this_thread()) {
      if (!is_outer_) return;
      list_.mutex_.lock();
      list_.owner_.store(this_thread(), std::memory_order_relaxed);
    }
    Owning(const Owning&) = delete;
    Owning& operator=(const Owning&) = delete;
    ~Owning() {
      if (!is_outer_) return;
      list_.owner_.store(nullptr, std::memory_order_relaxed);
      list_.mutex_.unlock();
    }

   private:
    UnderWay& list_;
    const bool is_outer_;
  };

  void unlink(Item& item) noexcept {
    static_cast<Link&>(item).unlink();
    item.list_.store(nullptr, std::memory_order_release);
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  void remove(Item& item) noexcept {
    const Owning owning(*this);
    if (item.list_.load(std::memory_order_relaxed) == this) unlink(item);
  }

  /// Advances the items that have waited longest and puts them at the end of the list. Does nothing when called from
  /// within itself.
  void move(int count, Meanwhile meanwhile, const Item* but) {
    if (is_moving_) return;
    const Owning owning(*this);
    struct Moving {
      bool& is;
      explicit Moving(bool& flag) : is(flag) { is = true; }
      Moving(const Moving&) = delete;
      Moving& operator=(const Moving&) = delete;
      ~Moving() { is = false; }
    } moving(is_moving_);
    for (; count > 0 && items_.next != &items_; --count) {
      Link& link = *items_.next;
      link.unlink();
      link.insert_before(items_);
      auto& item = static_cast<Item&>(link);
      if (&item == but) {
        but = nullptr;
        ++count;
        continue;
      }
      const std::shared_ptr<void> kept = item.kept();
      item.move_on(meanwhile);
    }
  }

  Link items_;
  std::atomic<int> count_ = 0;
  Mutex mutex_;
  std::atomic<const void*> owner_ = nullptr;
  bool is_failing_ = false;
  bool is_moving_ = false;  // used by the thread of the rank only
};

}  // namespace tranship
