// Private: Polls: counts the polls of this library's own loops among those of a rank (seam/polling.hpp). World::look is
// the call for all other loops.
#pragma once

#include <cstdint>

#include <tranship/fabric/seam/polling.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship {

struct CopyBlock;

namespace detail {

/// Refers to a world, which must outlive it. Costs nothing to make.
class Polls {
 public:
  explicit Polls(World& world) noexcept : world_(world) {}

  /// Does what World::look does, for loops over flags of this rank alone, which no transport sees otherwise.
  int look_at_flags(const WaitNote& note);
  /// Does what World::look does, for loops that get elements until these have a wanted value: the elements of `target`
  /// at the target strides of `block`.
  int look_at(WaitNote note, const CopyBlock& block, int width, const void* target);
  /// Adds polls that were made since the last look beyond those that it has let pass. A poll that a group of lanes
  /// makes together counts once for each lane.
  void add(std::int64_t more) noexcept { world_.polling_->add_polls(more); }
  /// Ends the row of polls: the rank has done something else, by other means than a Context.
  void end_row() noexcept { world_.polling_->end_row(); }

 private:
  World& world_;
};

}  // namespace detail
}  // namespace tranship
