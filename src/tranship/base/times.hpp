// Private: Times, a vector clock: how many of the first actions of each timeline are known. Whatever acts in an order
// of its own has a timeline: a rank, a thread block, the proxy of a port channel.
//
// Clocks are trees that share what is equal, so that a copy costs nothing, and a join what the two differ in.
#pragma once

#include <cstdint>
#include <utility>

#include <tranship/base/index.hpp>

namespace tranship {

using Timeline = std::int32_t;
using Time = std::uint32_t;

/// A time for each timeline, at first 0. Not for use by several threads at once, not even of copies.
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
  /// The later one of both times of each timeline. Adds the nodes that it has looked at to `work`.
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
