// Declares the functions by which the CPU side of device_lanes uses the card. No header of CUDA is needed here.
#pragma once

#include <string>
#include <vector>

#include "lanes/arena.hpp"

namespace tranship::device {

/// Kernels are in the order of facts_of_cases() (host_cases.hpp).
using Kernels = std::vector<const void*>;
void add_transfer_kernels(Kernels& to);
void add_signal_kernels(Kernels& to);
void add_wait_kernels(Kernels& to);
void add_atomic_kernels(Kernels& to);
void add_array_kernels(Kernels& to);
void add_memory_kernels(Kernels& to);
void add_move_kernels(Kernels& to);
void add_reduction_kernels(Kernels& to);
void add_wide_reduction_kernels(Kernels& to);

/// Selects how the ranks of a run are present at the same time.
enum class As { blocks, streams };
inline const char* name_of(As as) {
  return as == As::blocks ? "blocks" : "streams";
}

/// Ends the program, with a fault that names what runs, when that exceeds its time limit. Waits of kernels have a
/// shorter limit of their own.
class Watchdog {
 public:
  explicit Watchdog(double limit_s);
  void begin(const std::string& what);
  void end();
  double limit_s() const { return limit_s_; }

 private:
  double limit_s_;
};

/// Holds the heaps of a run on one card.
class Card {
 public:
  explicit Card(double limit_s);
  ~Card();

  /// Loads all kernels: a kernel that is loaded at its first launch would wait for those that spin.
  void load(const Kernels& kernels);
  /// Runs a kernel on heaps that hold `bytes` of all ranks, one after the other by place, and copies them back. Blocks
  /// and lanes are numbered over several dimensions where their counts can be divided that way.
  void run(const void* kernel, As as, RunArgs run, int lanes, std::vector<unsigned char>& bytes,
           const std::string& what);
  /// Measures what the header's own operations cost.
  void measure();
  /// Checks that waits for what never comes end, in an error that says who has waited, and that the next kernel works.
  void check_lost_waits(double limit_s, int trials);
  /// The same of a wait that traps. The card is of no use afterwards.
  void check_trap();

 private:
  Watchdog watchdog_;
  struct Parts;
  Parts* parts_;
};

}  // namespace tranship::device
