// Detail: Lanes, the threads of a kernel, and the groups in which they work. A kernel is a template on its lane,
//
//   template <class Lane>
//   TRANSHIP_SHARED void kernel(const Lane& lane, ...);
//
// so that the same source runs on a GPU (cuda_lane.hpp) and on the CPU (fabric/lanes/cpu_lanes.hpp). A lane has
//
//   index(), lanes()            its number in its block, and the number of lanes of the block
//   block_index(), blocks()     the block's number in its grid
//   thread(), warp(), block()   the groups to which it belongs
//
// and a group, which is a value,
//
//   lane(), lanes()             the lane's number in the group, and the number of lanes of the group
//   sync()                      waits for all lanes of the group; afterwards all see what any of them wrote before
//
// For an operation of a group, all its lanes make the same call at the same place with the same arguments. The CPU
// checks this. The other members of a group are for rma.hpp. `call()` returns the GroupCall, if the group keeps one:
//
//   enter(call), leave(call)    a sync with a name for messages
//   share(call, value)          leave(), and returns lane 0's value to all lanes; at most 8 bytes
//   wait(place, call, word, comparison, value, ready)
//                               makes one lane wait until ready() is true. A message of its failure shows a word of
//                               this rank and the value with which it is compared. On the CPU it throws at the deadline
//                               of the rank, or at once when the rank `place.raised_by` has ended. A GPU gives up as
//                               wait_guard.hpp says, and returns false if the kernel should run out
//   refuse(call, problem)       reports misuse: throws on the CPU, stops a GPU
//   check_block(call, offset, bytes)
//                               refuses bytes that do not lie in one block of the symmetric heap, if the rank checks
//                               blocks (fabric/context.hpp); a GPU has none
//   saw(word, bytes)            tells that this rank has looked at a word: earlier accesses are ordered; a GPU has none
//   polled(call, local, peer, seen)
//                               called when a value arrives for which a loop may poll; a GPU has none
//   missed(call, word, comparison, value)
//                               called when a test of a word of this rank is false; a GPU has none
//   stores(call, first, bytes)  tells that lanes have stored there themselves, if order is checked; a GPU has none
//   messenger()                 carries operations that loads and stores cannot do; a GPU has none
//   runs_side_by_side           true if lanes run at the same time, false if they run one after the other
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

enum class Scope : unsigned char { thread, warp, block };

/// The place in a kernel's source where an operation is called.
struct KernelSite {
  const char* file;
  int line;

  TRANSHIP_SHARED static constexpr KernelSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// The operation that a group is asked to make. Lanes that bring different operations have diverged.
struct GroupCall {
  struct Argument {
    const char* name = nullptr;
    unsigned long long value = 0;
    bool is_address = false;

    Argument() = default;
    TRANSHIP_SHARED Argument(const char* of, const void* address)
        : name(of), value(reinterpret_cast<unsigned long long>(address)), is_address(true) {}
    TRANSHIP_SHARED Argument(const char* of, unsigned long long number) : name(of), value(number) {}
  };
  static constexpr int arguments_max = 8;

  const char* name;
  KernelSite where;
  Argument arguments[arguments_max] = {};  ///< the arguments with a name count
};

/// Contiguous elements.
template <class T>
struct Span {
  T* data = nullptr;
  long long size = 0;

  Span() = default;
  TRANSHIP_SHARED constexpr Span(T* first, long long count) : data(first), size(count) {}
  /// Converts to a span of constant elements.
  template <class U>
  requires(detail::is_same<const U, T> && !detail::is_same<U, T>) TRANSHIP_SHARED constexpr Span(const Span<U>& other)
      : data(other.data), size(other.size) {}
  TRANSHIP_SHARED constexpr T& operator[](long long i) const { return data[i]; }
};

}  // namespace tranship
