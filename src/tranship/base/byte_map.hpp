// Private: ByteMap, a map from stretches of bytes to values. A visit splits the stretches at both of its ends, so that
// one value always holds for all bytes of its stretch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace tranship {

template <class Value>
class ByteMap {
 public:
  /// Calls `f(first, end, value)` for each stretch of [first, end). Bytes without a value first get an empty one.
  template <class F>
  void visit(std::size_t first, std::size_t end, F&& f) {
    cut(first);
    cut(end);
    for (std::size_t at = first; at < end;) {
      auto stretch = stretches_.lower_bound(at);
      if (stretch == stretches_.end() || stretch->first > at) {
        const std::size_t next = stretch == stretches_.end() ? end : std::min(stretch->first, end);
        stretch = stretches_.emplace_hint(stretch, at, Stretch{next, Value{}});
      }
      f(at, stretch->second.end, stretch->second.value);
      at = stretch->second.end;
    }
  }
  /// Calls `f(first, end, value)` for each stretch of [first, end) that has a value; splits nothing.
  template <class F>
  void look(std::size_t first, std::size_t end, F&& f) const {
    auto stretch = stretches_.upper_bound(first);
    if (stretch != stretches_.begin()) --stretch;
    for (; stretch != stretches_.end() && stretch->first < end; ++stretch)
      if (stretch->second.end > first)
        f(std::max(stretch->first, first), std::min(stretch->second.end, end), stretch->second.value);
  }
  /// Calls `f` for each stretch that has a value.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [first, stretch] : stretches_) f(first, stretch.end, stretch.value);
  }
  /// Gives all bytes of [first, end) one value.
  void assign(std::size_t first, std::size_t end, Value value) {
    erase(first, end);
    if (first < end) stretches_.emplace(first, Stretch{end, std::move(value)});
  }
  void erase(std::size_t first, std::size_t end) {
    cut(first);
    cut(end);
    stretches_.erase(stretches_.lower_bound(first), stretches_.lower_bound(end));
  }
  std::size_t stretches() const noexcept { return stretches_.size(); }
  template <class F>
  void erase_if(F&& f) {
    std::erase_if(stretches_, [&](const auto& stretch) { return f(stretch.second.value); });
  }

 private:
  struct Stretch {
    std::size_t end = 0;
    Value value;
  };

  void cut(std::size_t at) {
    auto stretch = stretches_.lower_bound(at);
    if (stretch == stretches_.begin()) return;
    --stretch;
    if (stretch->second.end <= at) return;
    Stretch rest = stretch->second;
    stretch->second.end = at;
    stretches_.emplace(at, std::move(rest));
  }

  std::map<std::size_t, Stretch> stretches_;
};

}  // namespace tranship
