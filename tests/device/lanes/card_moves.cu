// Instantiates the kernels of collective_cases.hpp that only move data.
#include "lanes/card_cases.hpp"
#include "lanes/collective_cases.hpp"

namespace tranship::device {

void add_move_kernels(Kernels& to) {
  KernelsOf<MoveCases>::add(to);
}

}  // namespace tranship::device
