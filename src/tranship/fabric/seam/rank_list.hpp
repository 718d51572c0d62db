// Private: RankList: the part of a message that describes many ranks: each of the first ten, and the number of the
// others.
#pragma once

#include <string>

#include <tranship/base/index.hpp>

namespace tranship {

class RankList {
 public:
  static constexpr int listed_max = 10;

  /// Appends "; rank 3 <what>"; `what` is called only for ranks that are listed.
  template <class What>
  void add(Rank rank, What&& what) {
    if (ranks_++ < listed_max) text_ += "; rank " + std::to_string(rank) + " " + std::string(what());
  }
  std::string text() const {
    return ranks_ <= listed_max ? text_ : text_ + "; and " + std::to_string(ranks_ - listed_max) + " more";
  }

 private:
  std::string text_;
  int ranks_ = 0;
};

}  // namespace tranship
