#include "mpi_methods.hpp"
namespace contest {
Methods mpi_halo_methods(const Work&, int) {
  return {};
}
}  // namespace contest
