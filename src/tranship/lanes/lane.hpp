// Detail: Lanes, the threads of a kernel, and the groups they work in. A kernel is a template on its lane,
//
//   template <class Lane>
//   TRANSHIP_SHARED void kernel(const Lane& lane, ...);
//
// so that the same source runs on a GPU (cuda_lane.hpp) and on the CPU (fabric/lanes/cpu_lanes.hpp). A lane has
//
//   index(), lanes()            its number in its block, and how many that has
//   block_index(), blocks()     the block's number in its grid
//   thread(), warp(), block()   the groups that it belongs to
//
// and a group, which is a value,
//
//   lane(), lanes()             the lane's number in the group, and how many that has
//   sync()                      waits for all lanes of the group; what they wrote before, all of them see after
//
// What the lanes of a group do together, all of them call at the same place and with the same arguments. On the CPU
// that is checked. What else a group has is for rma.hpp, where `call()` returns the GroupCall, if the group keeps one:
//
//   enter(call), leave(call)    a sync that can say what it is for
//   share(call, value)          leave(), and lane 0's value on all lanes; 8 bytes at most
//   wait(place, call, word, comparison, value, ready)
//                               waits until ready() is true, for one lane. Its failure shows a word of this rank and
//                               what it is compared with. On the CPU it throws at the deadline of the rank, or at once
//                               when the rank `place.raised_by` has ended; a GPU gives up as wait_guard.hpp says, where
//                               false is returned if the kernel is to run out
//   refuse(call, problem)       misuse: throws on the CPU, stops a GPU
//   check_block(call, offset, bytes)
//                               refuses what does not lie in one block of the symmetric heap, where the rank checks
//                               blocks (fabric/context.hpp); a GPU has none
//   saw(word, bytes)            what this rank has there has been looked at: what came before it is ordered; a GPU has
//                               none
//   polled(call, local, peer, seen)
//                               after a value has come that a loop may look for; a GPU has none
//   missed(call, word, comparison, value)
//                               after a test of a word of this rank that is false; a GPU has none
//   stores(call, first, bytes)  the lanes have stored there by themselves, where order is checked; a GPU has none
//   messenger()                 carries operations that loads and stores cannot; a GPU has none
//   runs_side_by_side           whether lanes run at the same time, or one after the other
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

enum class Scope : unsigned char { thread, warp, block };

/// Where in a kernel's source an operation is called.
struct KernelSite {
  const char* file;
  int line;

  TRANSHIP_SHARED static constexpr KernelSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// What a group is asked to do. Lanes that bring different ones have diverged.
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
  Argument arguments[arguments_max] = {};  ///< as many as have names
};

/// Elements that lie side by side.
template <class T>
struct Span {
  T* data = nullptr;
  long long size = 0;

  Span() = default;
  TRANSHIP_SHARED constexpr Span(T* first, long long count) : data(first), size(count) {}
  /// To what may only be read.
  template <class U>
  requires(detail::is_same<const U, T> && !detail::is_same<U, T>) TRANSHIP_SHARED constexpr Span(const Span<U>& other)
      : data(other.data), size(other.size) {}
  TRANSHIP_SHARED constexpr T& operator[](long long i) const { return data[i]; }
};

}  // namespace tranship
