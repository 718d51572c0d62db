#include "tranship/base/times.hpp"

#include <algorithm>

namespace tranship {
namespace {
constexpr int bits = 5, width = 1 << bits;
}

/// A leaf (height 0) holds the times of `width` timelines; any other node has `width` children of the next lower
/// height. A missing child stands for times of 0.
struct Times::Node {
  explicit Node(int of_height) : height(of_height) {
    if (height == 0)
      std::fill(times, times + width, Time(0));
    else
      std::fill(children, children + width, nullptr);
  }
  std::uint32_t owners = 1;
  int height;
  union {
    Time times[width];
    Node* children[width];
  };
};

Times::Node* Times::retain(Node* node) noexcept {
  if (node) ++node->owners;
  return node;
}
void Times::release(Node* node) noexcept {
  if (!node || --node->owners > 0) return;
  if (node->height > 0)
    for (Node* const child : node->children) release(child);
  delete node;
}

Times::Times(const Times& other) noexcept : root_(retain(other.root_)) {}
Times::~Times() {
  release(root_);
}

Time Times::of(Timeline timeline) const noexcept {
  const Node* node = root_;
  if (!node || timeline >> (bits * (node->height + 1)) != 0) return 0;
  for (; node && node->height > 0; node = node->children[(timeline >> (bits * node->height)) & (width - 1)]) {
  }
  return node ? node->times[timeline & (width - 1)] : 0;
}

void Times::grow(int height) {
  while (root_->height < height) {
    Node* const above = new Node(root_->height + 1);
    above->children[0] = root_;
    root_ = above;
  }
}

void Times::raise(Timeline timeline, Time time) {
  if (of(timeline) >= time) return;
  int height = 0;
  while (timeline >> (bits * (height + 1)) != 0) ++height;
  if (!root_)
    root_ = new Node(height);
  else
    grow(height);
  Node* const next = raised(root_, root_->height, timeline, time);
  release(root_);
  root_ = next;
}

Times::Node* Times::raised(Node* node, int height, Timeline timeline, Time time) {
  Node* out = nullptr;
  if (!node)
    out = new Node(height);
  else if (node->owners == 1)
    out = retain(node);  // the caller is the only owner and releases it next
  else {
    out = new Node(*node);
    out->owners = 1;
    if (height > 0)
      for (Node* const child : out->children) retain(child);
  }
  if (height == 0) {
    out->times[timeline & (width - 1)] = time;
    return out;
  }
  Node*& child = out->children[(timeline >> (bits * height)) & (width - 1)];
  Node* const next = raised(child, height - 1, timeline, time);
  release(child);
  child = next;
  return out;
}

Times::Node* Times::joined(Node* a, Node* b, Index& work) {
  if (a == b || !b) return retain(a);
  if (!a) return retain(b);
  ++work;
  bool is_a = true, is_b = true;
  if (a->height == 0) {
    for (int i = 0; i < width; ++i) {
      is_a &= a->times[i] >= b->times[i];
      is_b &= b->times[i] >= a->times[i];
    }
    if (is_a) return retain(a);
    if (is_b) return retain(b);
    Node* const out = new Node(0);
    for (int i = 0; i < width; ++i) out->times[i] = std::max(a->times[i], b->times[i]);
    return out;
  }
  Node* const out = new Node(a->height);
  for (int i = 0; i < width; ++i) {
    out->children[i] = joined(a->children[i], b->children[i], work);
    is_a &= out->children[i] == a->children[i];
    is_b &= out->children[i] == b->children[i];
  }
  if (!is_a && !is_b) return out;
  release(out);
  return retain(is_a ? a : b);
}

void Times::join(const Times& other, Index& work) {
  if (root_ == other.root_ || !other.root_) return;
  if (!root_) {
    root_ = retain(other.root_);
    return;
  }
  Times wider = other;
  grow(other.root_->height);
  wider.grow(root_->height);
  Node* const next = joined(root_, wider.root_, work);
  release(root_);
  root_ = next;
}

}  // namespace tranship
