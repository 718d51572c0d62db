// RankHandle, the World that Python holds. What lives in the world (arrays, exchanges, contexts) must be gone before
// it, but Python frees when it likes: so each of them is registered here, and ends with the rank.
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

/// Something that must be gone before its world.
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
  /// Of a process that has joined by a call: it leaves when it is closed.
  explicit RankHandle(RankScope scope) : scope_(std::move(scope)) { world_ = &scope_->world(); }
  ~RankHandle() override { close(); }
  RankHandle(const RankHandle&) = delete;
  RankHandle& operator=(const RankHandle&) = delete;

  /// Throws `invalid_use` once the rank has left, and in a child that it has forked.
  World& world() const {
    if (world_ == nullptr)
      throw_error(ErrorCode::invalid_use, "the rank has left its world, or the function that it was for has returned");
    world_->check_process();
    return *world_;
  }
  /// Whether this is the copy that a fork has made of a rank's.
  bool is_in_child() const noexcept { return !process_.is_here(); }

  /// Whether the calling thread has begun as this rank.
  bool is_of_this_thread() const { return thread_ == PyThread_get_thread_ident(); }

  void add(std::weak_ptr<Resident> resident) {
    if (residents_.size() >= sweep_at_) {
      std::erase_if(residents_, [](const std::weak_ptr<Resident>& one) { return one.expired(); });
      sweep_at_ = std::max<std::size_t>(64, 2 * residents_.size());
    }
    residents_.push_back(std::move(resident));
  }
  /// Keeps what a transfer that does not block still reads or writes, until the next quiet or barrier.
  void hold(nb::object object) { held_.push_back(std::move(object)); }
  void release() noexcept { held_.clear(); }
  bool holds_any() const noexcept { return !held_.empty(); }
  void leave() noexcept override { close(); }
  /// Ends all that lives in the world, the last first, and the rank's part in it: as failed where there is an error.
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
  detail::ProcessOfRank process_;  // a child that it forks is no rank, and leaves what its parent has
  World* world_ = nullptr;
  std::vector<std::weak_ptr<Resident>> residents_;
  std::size_t sweep_at_ = 64;
  std::vector<nb::object> held_;
};

}  // namespace tranship::python
