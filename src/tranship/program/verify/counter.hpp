// Private: Counter, signals in one direction of a channel or releases of a semaphore. It knows what a taker learns from
// them, whatever the order in which several senders send.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <tranship/program/verify/cells.hpp>

namespace tranship::verification {

class Counter {
 public:
  /// Announces `times` signals of this block in each launch.
  void expect(int block, Index times) {
    source_of(block).each_launch += times;
    each_launch_ += times;
  }
  void begin_at(Index initial) { issued_ = initial_ = initial; }
  void issue(int block, Snapshot snapshot) {
    source_of(block).sent.push_back(std::move(snapshot));
    ++issued_;
  }
  Index issued() const { return issued_; }
  Index taken() const { return taken_; }
  bool has_next() const { return issued_ > taken_; }

  /// Takes the next one, and calls learn(snapshot) for what must have been sent by then under every order.
  template <class F>
  void take(F&& learn) {
    const Index wanted = ++taken_ - initial_;
    if (wanted <= 0 || each_launch_ == 0) return;
    const Index launches = (wanted + each_launch_ - 1) / each_launch_;
    for (Source& source : sources_) {
      const Index others = (each_launch_ - source.each_launch) * launches;
      const Index sure = wanted - others;
      if (sure <= source.learned) continue;
      const auto last = static_cast<std::size_t>(sure - source.learned - 1);
      if (last >= source.sent.size()) continue;
      learn(source.sent[last]);
      source.sent.erase(source.sent.begin(), source.sent.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      source.learned = sure;
    }
  }
  /// The blocks that issue, with their number of signals in each launch.
  std::vector<std::pair<int, Index>> sources() const {
    std::vector<std::pair<int, Index>> out;
    for (const Source& source : sources_) out.emplace_back(source.block, source.each_launch);
    return out;
  }
  std::size_t source_count() const { return sources_.size(); }
  Index each_launch() const { return each_launch_; }

  std::optional<Stamp> last_taker;
  std::vector<int> waiting;  ///< blocks that wait here

 private:
  struct Source {
    int block;
    Index each_launch = 0;
    Index learned = 0;
    std::deque<Snapshot> sent;  ///< snapshots after the first `learned`
  };
  Source& source_of(int block) {
    if (last_source_ < sources_.size() && sources_[last_source_].block == block) return sources_[last_source_];
    for (last_source_ = 0; last_source_ < sources_.size(); ++last_source_)
      if (sources_[last_source_].block == block) return sources_[last_source_];
    return sources_.emplace_back(Source{.block = block});
  }

  std::vector<Source> sources_;
  std::size_t last_source_ = 0;
  Index each_launch_ = 0, initial_ = 0, issued_ = 0, taken_ = 0;
};

}  // namespace tranship::verification
