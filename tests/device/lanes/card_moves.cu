// Kernels of collective_cases.hpp: what only moves.
#include "lanes/card_cases.hpp"
#include "lanes/collective_cases.hpp"

namespace tranship::device {

void add_move_kernels(Kernels& to) {
  KernelsOf<MoveCases>::add(to);
}

}  // namespace tranship::device
