// Detail: What a rank's world is in a child that the rank forks: a copy, which belongs to no rank. The parent is the
// rank, and its peers know of no other; so every call in the child that would act for the rank throws `invalid_use`.
#pragma once

#include <list>

#include <tranship/base/index.hpp>

namespace tranship {

class Context;

namespace detail {

/// How many forks lie between the first process of this program and this one, counted from the first world on.
inline constinit unsigned forks = 0;

/// Counts forks from here on.
void count_forks();
/// Contexts come and go in any order, and there may be many of them.
using ContextList = std::list<Context*>;

/// Contexts of which a child finds copies, whose transfers by loads and stores are closed there.
ContextList::iterator add_forked(Context& context);
void remove_forked(ContextList::iterator context) noexcept;

/// Throws `invalid_use`. The rank is -1 where the caller does not know it.
[[noreturn]] void refuse_in_child(Rank rank);

/// Remembers the process in which it was made; copies remember the same.
class ProcessOfRank {
 public:
  ProcessOfRank() { count_forks(); }
  bool is_here() const noexcept { return forks_ == forks; }
  /// Throws `invalid_use` in a child. Costs a load and a comparison.
  void check(Rank rank = -1) const {
    if (!is_here()) [[unlikely]]
      refuse_in_child(rank);
  }

 private:
  unsigned forks_ = forks;
};

}  // namespace detail
}  // namespace tranship
