// Detail: The world of a rank in a forked child: a copy that belongs to no rank. The parent stays the rank, and its
// peers know of no other process; so every call in the child that would act for the rank throws `invalid_use`.
#pragma once

#include <list>

#include <tranship/base/index.hpp>

namespace tranship {

class Context;

namespace detail {

/// Number of forks between this process and the process that made the first world.
inline constinit unsigned forks = 0;

/// Starts to count forks; later calls do nothing.
void count_forks();
/// A list, since contexts come and go in any order and there may be many.
using ContextList = std::list<Context*>;

/// Contexts of this process. A forked child closes the direct transfers of their copies.
ContextList::iterator add_forked(Context& context);
void remove_forked(ContextList::iterator context) noexcept;

/// Throws `invalid_use`. The rank is -1 if the caller does not know it.
[[noreturn]] void refuse_in_child(Rank rank);

/// Remembers the process in which it was made; copies refer to that process, too.
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
