// Private: Times, a vector clock: for each timeline, how many of its first actions are known. Everything that acts in
// its own order has a timeline: a rank, a thread block, the proxy of a port channel.
//
// Clocks are trees that share equal subtrees: a copy costs nothing, and a join costs only what differs.
#pragma once

#include <cstdint>
#include <utility>

#include <tranship/base/index.hpp>

namespace tranship {

using Timeline = std::int32_t;
using Time = std::uint32_t;

/// One time per timeline, initially 0. Not thread-safe, not even for copies, which share nodes.
class Times {
 public:
  Times() = default;
  Times(const Times& other) noexcept;
  Times(Times&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  Times& operator=(Times other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~Times();

  Time of(Timeline timeline) const noexcept;
  /// Makes the time of one timeline at least `time`.
  void raise(Timeline timeline, Time time);
  /// Raises each timeline to the later of both times. Adds the number of nodes that it examined to `work`.
  void join(const Times& other, Index& work);
  void join(const Times& other) {
    Index work = 0;
    join(other, work);
  }

 private:
  struct Node;
  static Node* retain(Node* node) noexcept;
  static void release(Node* node) noexcept;
  static Node* joined(Node* a, Node* b, Index& work);
  static Node* raised(Node* node, int height, Timeline timeline, Time time);
  void grow(int height);

  Node* root_ = nullptr;
};

}  // namespace tranship
