// Private: RankList, what messages say of many ranks: of the first ten each, and how many more there are.
#pragma once

#include <string>

#include <tranship/base/index.hpp>

namespace tranship {

class RankList {
 public:
  static constexpr int listed_max = 10;

  /// "; rank 3 <what>", where `what` is called for ranks that are listed alone.
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
