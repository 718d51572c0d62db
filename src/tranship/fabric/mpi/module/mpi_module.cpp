// The module of one ABI: compiled once for each, with its <mpi.h>, and linked to nothing.
#include <tranship/fabric/mpi/mpi_calls.hpp>

extern "C" __attribute__((visibility("default"))) const tranship::MpiModule* tranship_mpi_module() {
  return &tranship::detail::mpi::calls;
}
