// RankHandle, the World that Python holds. Objects that live in the world (arrays, exchanges, contexts) must end before
// it, but Python frees objects at any time: so each of them is registered here, and ends with the rank.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/forked.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/sub_world.hpp>
#include <tranship/fabric/world.hpp>

#include "interpreter.hpp"

namespace tranship::python {

/// An object that must end before its world.
class Resident {
 public:
  virtual ~Resident() = default;
  virtual void leave() noexcept = 0;
};

class RankHandle final : public Resident {
 public:
  explicit RankHandle(World& world) : world_(&world) {}
  RankHandle(std::shared_ptr<RankHandle> around, SubWorld sub)
      : thread_(around->thread_), around_(std::move(around)), sub_(std::move(sub)) {
    world_ = &sub_->world();
  }
  /// Makes the handle of a process that has joined by a call; close() leaves the world.
  explicit RankHandle(RankScope scope) : scope_(std::move(scope)) { world_ = &scope_->world(); }
  ~RankHandle() override { close(); }
  RankHandle(const RankHandle&) = delete;
  RankHandle& operator=(const RankHandle&) = delete;

  /// Throws `invalid_use` once the rank has left, and in a child process that it has forked.
  World& world() const {
    if (world_ == nullptr)
      throw_error(ErrorCode::invalid_use, "the rank has left its world, or the function that it was for has returned");
    world_->check_process();
    return *world_;
  }
  /// Returns true when this is the copy of a rank's handle in a forked child.
  bool is_in_child() const noexcept { return !process_.is_here(); }

  /// Returns true when the calling thread made this handle, or the handle of the world around it.
  bool is_of_this_thread() const { return thread_ == PyThread_get_thread_ident(); }

  void add(std::weak_ptr<Resident> resident) {
    if (residents_.size() >= sweep_at_) {
      std::erase_if(residents_, [](const std::weak_ptr<Resident>& one) { return one.expired(); });
      sweep_at_ = std::max<std::size_t>(64, 2 * residents_.size());
    }
    residents_.push_back(std::move(resident));
  }
  /// Keeps an object that a non-blocking transfer still reads or writes, until the next quiet or barrier.
  void hold(nb::object object) { held_.push_back(std::move(object)); }
  void release() noexcept { held_.clear(); }
  bool holds_any() const noexcept { return !held_.empty(); }
  void leave() noexcept override { close(); }
  /// Ends the objects that live in the world, the last one first, and leaves the world, as a failed rank when there is
  /// an error.
  void close(const std::optional<Error>& error = std::nullopt) noexcept {
    if (error && world_ != nullptr) world_->set_failing();
    if (!is_in_child())
      for (std::size_t i = residents_.size(); i-- > 0;)
        if (const std::shared_ptr<Resident> resident = residents_[i].lock()) resident->leave();
    residents_.clear();
    world_ = nullptr;
    without_gil([&] {  // these may wait for their transfers
      sub_.reset();
      if (scope_) error ? scope_->fail(*error) : scope_->finish();
    });
    around_.reset();
    held_.clear();
  }

 private:
  unsigned long thread_ = PyThread_get_thread_ident();
  std::shared_ptr<RankHandle> around_;
  std::optional<SubWorld> sub_;
  std::optional<RankScope> scope_;
  detail::ProcessOfRank process_;  // a forked child is no rank, and must not end its parent's objects
  World* world_ = nullptr;
  std::vector<std::weak_ptr<Resident>> residents_;
  std::size_t sweep_at_ = 64;
  std::vector<nb::object> held_;
};

}  // namespace tranship::python
