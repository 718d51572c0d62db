// Private: UnderWay, what a rank has started and not finished: exchanges in flight. Every wait of the rank and every
// loop that polls moves it on, so that ranks may finish in any order what they have started.
//
// A list of one rank, for its world and the sub-worlds of that. To join and to leave it costs a lock, which is free
// unless another thread destroys an item, as a collector of garbage may.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <tranship/base/mutex.hpp>

namespace tranship {

/// How the rank spends its time while what it has started moves on.
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
    /// Moves what can be moved now. Never waits, and keeps what has gone wrong for those who wait for it. May leave the
    /// list.
    virtual void move_on(Meanwhile meanwhile) = 0;
    /// Keeps it while it moves: where ranks are fibers, another one may destroy its owner meanwhile.
    virtual std::shared_ptr<void> kept() = 0;

   protected:
    Item() = default;
    ~Item() { leave(); }
    /// By any thread; then it does not move any more, but for a rank that is a fiber of the same thread and is in
    /// move_on(). Before anything is destroyed that move_on() touches.
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

  /// The rank is about to leave as failed, though no exception is on its way here.
  void set_failing() noexcept { is_failing_ = true; }
  bool is_failing() const noexcept { return is_failing_; }

  /// Does nothing where it is in the list.
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
  /// Moves the item that was not moved for longest, except one that moves itself, so that a loop costs as much whatever
  /// is under way.
  void move_one(Meanwhile meanwhile, const Item& but) {
    const int others = count_.load(std::memory_order_relaxed) - (but.list_.load(std::memory_order_relaxed) ? 1 : 0);
    if (others > 0) [[unlikely]]
      move(1, meanwhile, &but);
  }

 private:
  /// An address that is each thread's own.
  static const void* this_thread() noexcept {
    static thread_local const char mark = 0;
    return &mark;
  }
  /// Holds the list, unless a function or fiber of this thread does already.
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

  /// Those that were not moved for longest; they go to the end of the list. Not from within itself.
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
  bool is_moving_ = false;  // by the thread of the rank
};

}  // namespace tranship
